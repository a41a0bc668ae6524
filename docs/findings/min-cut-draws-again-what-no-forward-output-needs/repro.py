"""The min-cut partitioner bans draws from being repeated only where forward outputs need them: another one is drawn on
both sides

Pass partition with method=min-cut num_fwd_outputs=1 static_inputs=0, PyTorch 2.15.0+cu132; breaks partition/rng-
paired.
Needs torch alone and replay.py, which builds and runs the graph. Exit status 1 if the failure shows, else 0.
It looks for an exception, a graph that is none, ranks that wait for one another, other values than before.
partition/rng-paired says more than that: it may be broken where the status is 0.
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
    primals_2 = g.input('primals_2', [4, 64], torch.float32)
    tangents_1 = g.input('tangents_1', [4, 4], torch.float32)
    neg = g('neg', aten.neg.default, primals_1)
    rand_like = g('rand_like', aten.rand_like.default, primals_1)
    mm = g('mm', aten.mm.default, rand_like, primals_2)
    sum_1 = g('sum_1', aten.sum.dim_IntList, mm, [0, 1])
    mul = g('mul', aten.mul.Tensor, tangents_1, sum_1)
    mul_1 = g('mul_1', aten.mul.Tensor, mul, rand_like)
    g.tag(neg, rand_like, mm, sum_1, partitioner_tag='is_forward')
    g.tag(mul, mul_1, partitioner_tag='is_backward')
    g.output((neg, mul_1, None,))


def run_pass(module, mode):
    """The pass, as PyTorch calls it."""
    for node in module.graph.nodes:
        if isinstance(node.meta.get('val'), torch.Tensor):
            node.meta['tensor_meta'] = _extract_tensor_metadata(node.meta['val'])
    with config.patch({'graphsafe_rng_functionalization': False}), mode, torch._guards.tracing(torch._guards.TracingContext(mode)):
        return list(partitioners.min_cut_rematerialization_partition(
            module, (), num_fwd_outputs=1, static_lifetime_input_indices=[0]
        ))


replay(build, run_pass, world=2, groups={}, check='partition',
    nothing='nothing fails that this looks at; partition/rng-paired may be broken all the same',
)
