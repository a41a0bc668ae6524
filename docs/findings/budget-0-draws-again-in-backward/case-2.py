"""With activation_memory_budget = 0 backward computes again what is tagged MUST_SAVE.

Needs torch alone. Exit status 1 if the failure shows, else 0.
"""

import sys

import torch
from torch import fx
from torch._functorch import config
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.passes.shape_prop import _extract_tensor_metadata
from torch.utils.checkpoint import CheckpointPolicy

aten = torch.ops.aten
graph, mode = fx.Graph(), FakeTensorMode()


def described(node, value):
    node.meta["val"] = value
    if isinstance(value, torch.Tensor):
        node.meta["tensor_meta"] = _extract_tensor_metadata(value)
    return node


def placeholder(name, *shape):
    with mode:
        return described(graph.placeholder(name), torch.empty(shape))


def call(target, *args):
    values = fx.map_arg(args, lambda node: node.meta["val"])
    with mode:
        return described(graph.call_function(target, args), target(*values))


x, tangent = placeholder("primals_1", 64), placeholder("tangents_1", 64)
saved = call(aten.exp.default, x)
saved.meta["recompute"] = CheckpointPolicy.MUST_SAVE
graph.output((call(aten.cos.default, saved), call(aten.mul.Tensor, tangent, call(aten.sin.default, saved))))
joint = fx.GraphModule(torch.nn.Module(), graph)
with config.patch(activation_memory_budget=0.0):
    _, backward = min_cut_rematerialization_partition(joint, (), num_fwd_outputs=1, static_lifetime_input_indices=[])
print(backward.code)
again = any(node.target is aten.exp.default for node in backward.graph.nodes)
print("backward computes exp again:", again)
sys.exit(again)
