"""The reordering of backward loses a write other than copy_ that stands before the first reader of a tangent

Pass partition with method=min-cut num_fwd_outputs=1, PyTorch 2.15.0+cu132; breaks partition/effects-once-in-order.
Needs torch alone and replay.py, which builds and runs the graph. Exit status 1 if the failure shows, else 0.
It looks for an exception, a graph that is none, ranks that wait for one another, other values than before.
partition/effects-once-in-order says more than that: it may be broken where the status is 0.
"""

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
    primals_2 = g.input('primals_2', [4], torch.float32)
    tangents_1 = g.input('tangents_1', [4, 4], torch.float32)
    sin = g('sin', aten.sin.default, primals_1)
    zero_ = g('zero_', aten.zero_.default, primals_2)
    cos = g('cos', aten.cos.default, primals_1)
    mul = g('mul', aten.mul.Tensor, tangents_1, cos)
    g.tag(sin, partitioner_tag='is_forward')
    g.tag(zero_, cos, mul, partitioner_tag='is_backward')
    g.output((sin, mul, None,))


def run_pass(module, mode):
    """The pass, as PyTorch calls it."""
    for node in module.graph.nodes:
        if isinstance(node.meta.get('val'), torch.Tensor):
            node.meta['tensor_meta'] = _extract_tensor_metadata(node.meta['val'])
    with config.patch({'graphsafe_rng_functionalization': False}), mode, torch._guards.tracing(torch._guards.TracingContext(mode)):
        return list(partitioners.min_cut_rematerialization_partition(
            module, (), num_fwd_outputs=1, static_lifetime_input_indices=[]
        ))


replay(build, run_pass, world=2, groups={}, check='partition',
    nothing='nothing fails that this looks at; partition/effects-once-in-order may be broken all the same',
)
