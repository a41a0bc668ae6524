"""A bucket of all-reduces flattens a member with view, which its strides do not allow after all-gathers were bucketed

Pass bucketing with kind=all mode=coalesced selection=adjacent, PyTorch 2.15.0+cu132; breaks rewrite/metadata.
Needs torch alone and replay.py, which builds and runs the graph. Exit status 1 if the failure shows, else 0.
It looks for an exception, a graph that is none, ranks that wait for one another, other values than before.
rewrite/metadata says more than that: it may be broken where the status is 0.
"""

import pathlib
import sys

import torch
from torch._inductor.fx_passes import bucketing
from torch._inductor.pattern_matcher import stable_topological_sort

sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).resolve().parents[:2]]
from replay import replay

aten = torch.ops.aten
comm = torch.ops._c10d_functional


def build(g):
    """The graph before the pass."""
    x0 = g.input('x0', [1, 1, 9], torch.float64)
    x1 = g.input('x1', [7], torch.float64)
    x2 = g.input('x2', [2, 2], torch.float64)
    x3 = g.input('x3', [2, 2], torch.float64)
    x4 = g.input('x4', [2, 2], torch.float64)
    x5 = g.input('x5', [1, 5], torch.float64)
    x6 = g.input('x6', [1, 5], torch.float64)
    x7 = g.input('x7', [1, 5], torch.float64)
    g0 = g('g0', comm.all_gather_into_tensor.default, x0, 2, 'tp')
    w0 = g('w0', comm.wait_tensor.default, g0)
    g1 = g('g1', comm.all_gather_into_tensor.default, x1, 2, 'tp')
    w1 = g('w1', comm.wait_tensor.default, g1)
    t0 = g('t0', torch.ops.prims.convert_element_type.default, w1, torch.float64)
    t2 = g('t2', aten.mm.default, x2, x3)
    r0 = g('r0', comm.all_reduce.default, t2, 'sum', 'tp')
    w3 = g('w3', comm.wait_tensor.default, r0)
    t3 = g('t3', aten.relu.default, w3)
    t4 = g('t4', aten.mm.default, t3, x4)
    r1 = g('r1', comm.all_reduce.default, t4, 'sum', 'tp')
    w4 = g('w4', comm.wait_tensor.default, r1)
    t5 = g('t5', aten.relu.default, w4)
    g2 = g('g2', comm.all_gather_into_tensor.default, x5, 2, 'tp')
    w5 = g('w5', comm.wait_tensor.default, g2)
    r2 = g('r2', comm.all_reduce.default, w5, 'sum', 'tp')
    t6 = g('t6', aten.mul.Tensor, w5, 2)
    w6 = g('w6', comm.wait_tensor.default, r2)
    g3 = g('g3', comm.all_gather_into_tensor.default, x6, 2, 'tp')
    w7 = g('w7', comm.wait_tensor.default, g3)
    t7 = g('t7', aten.mul.Tensor, w7, other=t6)
    r3 = g('r3', comm.all_reduce.default, t7, 'sum', 'tp')
    t8 = g('t8', aten.mul.Tensor, t7, 2)
    w8 = g('w8', comm.wait_tensor.default, r3)
    g4 = g('g4', comm.all_gather_into_tensor.default, x7, 2, 'tp')
    w9 = g('w9', comm.wait_tensor.default, g4)
    t9 = g('t9', aten.mul.Tensor, w9, t8)
    r4 = g('r4', comm.all_reduce.default, t9, 'sum', 'tp')
    t10 = g('t10', aten.mul.Tensor, t9, 2)
    w10 = g('w10', comm.wait_tensor.default, r4)
    g.tag(g0, w0, g1, w1, t0, g2, w5, r2, t6, w6, g3, w7, t7, r3, t8, w8, g4, w9, t9, r4, t10, w10,
        custom={'scope': 'a'})
    g.tag(g0, w0, g1, w1, t0, t2, r0, w3, t3, g2, w5, r2, t6, w6, module='layers.0')
    g.tag(t2, r0, w3, t3, t4, r1, w4, t5, custom={'scope': 'b'})
    g.tag(t4, r1, w4, t5, g3, w7, t7, r3, t8, w8, module='layers.1')
    g.tag(g4, w9, t9, r4, t10, w10, module='layers.2')
    g.output(())


def run_pass(module, mode):
    """The pass, as PyTorch calls it."""
    bucketing.deduplicate_wait_tensors(module.graph)
    cap = lambda index: 2000.0  # MB by bucket
    bucketing.bucket_reduce_scatter(module, cap, 'coalesced')
    bucketing.bucket_all_reduce(module, cap, 'coalesced')
    bucketing.bucket_all_gather(module, cap, 'coalesced')
    stable_topological_sort(module.graph)
    return [module]


replay(build, run_pass, world=4, groups={"dp": [[0, 1], [2, 3]], "tp": [[0, 2], [1, 3]], "pp": [[0, 3], [1, 2]]},
    nothing='nothing fails that this looks at; rewrite/metadata may be broken all the same',
)
