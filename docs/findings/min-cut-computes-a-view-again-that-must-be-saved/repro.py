"""The min-cut partitioner computes a view or an item of a split again though it is tagged MUST_SAVE.

Needs torch alone. Exit status 1 if the failure shows, else 0.
"""

import operator
import sys

import torch
from torch import fx
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


x = placeholder("primals_1", 64)
tangent_1, tangent_2 = placeholder("tangents_1", 8, 8), placeholder("tangents_2", 32)
view = call(aten.view.default, call(aten.exp.default, x), [8, 8])
item = call(operator.getitem, call(aten.split.Tensor, call(aten.tanh.default, x), 32), 1)
view.meta["recompute"] = item.meta["recompute"] = CheckpointPolicy.MUST_SAVE
outputs = [call(aten.cos.default, view), call(aten.cos.default, item)]
gradients = [
    call(aten.mul.Tensor, tangent_1, call(aten.sin.default, view)),
    call(aten.mul.Tensor, tangent_2, call(aten.sin.default, item)),
]
graph.output((*outputs, *gradients))
joint = fx.GraphModule(torch.nn.Module(), graph)
_, backward = min_cut_rematerialization_partition(joint, (), num_fwd_outputs=2, static_lifetime_input_indices=[0])
print(backward.code)
again = [node.name for node in backward.graph.nodes if node.target in (aten.exp.default, aten.tanh.default)]
print("backward computes again:", again)
sys.exit(bool(again))
