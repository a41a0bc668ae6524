"""The default partitioner fails with AssertionError where a result of a split is tagged MUST_RECOMPUTE and the split
is not

Pass partition with method=default num_fwd_outputs=1, PyTorch 2.15.0+cu132; breaks worker/error.
Needs torch alone and replay.py, which builds and runs the graph. Exit status 1 if the failure shows, else 0.
"""

import operator
import pathlib
import sys

import torch
import torch.distributed._functional_collectives
from torch._functorch import config, partitioners
from torch.fx.passes.shape_prop import _extract_tensor_metadata

sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).resolve().parents[:2]]
from replay import replay

aten = torch.ops.aten


def build(g):
    """The graph before the pass."""
    primals_1 = g.input('primals_1', [4, 4], torch.float32)
    tangents_1 = g.input('tangents_1', [4, 2], torch.float32)
    split = g('split', aten.split.Tensor, primals_1, 2, 1)
    getitem = g('getitem', operator.getitem, split, 1)
    sin = g('sin', aten.sin.default, getitem)
    cos = g('cos', aten.cos.default, getitem)
    mul = g('mul', aten.mul.Tensor, tangents_1, cos)
    g.tag(split, getitem, sin, partitioner_tag='is_forward')
    g.tag(getitem, recompute='MUST_RECOMPUTE')
    g.tag(cos, mul, partitioner_tag='is_backward')
    g.output((sin, mul,))


def run_pass(module, mode):
    """The pass, as PyTorch calls it."""
    for node in module.graph.nodes:
        if isinstance(node.meta.get('val'), torch.Tensor):
            node.meta['tensor_meta'] = _extract_tensor_metadata(node.meta['val'])
    with config.patch({'graphsafe_rng_functionalization': False}), mode, torch._guards.tracing(torch._guards.TracingContext(mode)):
        return list(partitioners.default_partition(
            module, (), num_fwd_outputs=1, static_lifetime_input_indices=[]
        ))


replay(build, run_pass, world=2, groups={}, check='partition')
