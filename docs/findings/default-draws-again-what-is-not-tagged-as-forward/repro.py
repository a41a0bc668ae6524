"""Without partitioner tags the default partitioner makes a dropout in forward and once more in backward, with another
mask

Pass partition with method=default num_fwd_outputs=1, PyTorch 2.15.0+cu132; breaks partition/rng-paired.
Needs torch alone and replay.py, which builds and runs the graph. Exit status 1 if the failure shows, else 0.
It looks for an exception, a graph that is none, ranks that wait for one another, other values than before.
partition/rng-paired says more than that: it may be broken where the status is 0.
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
    tangents_1 = g.input('tangents_1', [4, 4], torch.float32)
    native_dropout = g('native_dropout', aten.native_dropout.default, primals_1, 0.5, True)
    getitem = g('getitem', operator.getitem, native_dropout, 0)
    getitem_1 = g('getitem_1', operator.getitem, native_dropout, 1)
    mul = g('mul', aten.mul.Tensor, tangents_1, getitem_1)
    g.output((getitem, mul,))


def run_pass(module, mode):
    """The pass, as PyTorch calls it."""
    for node in module.graph.nodes:
        if isinstance(node.meta.get('val'), torch.Tensor):
            node.meta['tensor_meta'] = _extract_tensor_metadata(node.meta['val'])
    with config.patch({'graphsafe_rng_functionalization': False}), mode, torch._guards.tracing(torch._guards.TracingContext(mode)):
        return list(partitioners.default_partition(
            module, (), num_fwd_outputs=1, static_lifetime_input_indices=[]
        ))


replay(build, run_pass, world=2, groups={}, check='partition',
    nothing='nothing fails that this looks at; partition/rng-paired may be broken all the same',
)
