"""A gather goes into a bucket before the copy_ through a view that fills its input: it gathers the old value

Pass bucketing with kind=all mode=default selection=adjacent, PyTorch 2.15.0+cu132; breaks bucket/users-rewired.
Needs torch alone and replay.py, which builds and runs the graph. Exit status 1 if the failure shows, else 0.
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
    x0 = g.input('x0', [2, 8], torch.uint8)
    x1 = g.input('x1', [2, 2], torch.float32)
    x2 = g.input('x2', [2, 2], torch.float32)
    x3 = g.input('x3', [2, 2], torch.float32)
    x4 = g.input('x4', [2, 2], torch.float32)
    x5 = g.input('x5', [4], torch.float16)
    x6 = g.input('x6', [1, 1, 7], torch.float32)
    x7 = g.input('x7', [2], torch.float16)
    m0 = g('m0', aten.add_.Tensor, x0, 1)
    t0 = g('t0', aten.mul.Tensor, m0, 3)
    t1 = g('t1', aten.mm.default, x1, x2)
    r0 = g('r0', comm.all_reduce.default, t1, 'sum', 'dp')
    w0 = g('w0', comm.wait_tensor.default, r0)
    t2 = g('t2', aten.relu.default, w0)
    t3 = g('t3', aten.mm.default, t2, x3)
    r1 = g('r1', comm.all_reduce.default, t3, 'sum', 'dp')
    w1 = g('w1', comm.wait_tensor.default, r1)
    t4 = g('t4', aten.relu.default, w1)
    b0 = g('b0', aten.zeros.default, [2, 2], dtype=torch.float32, device=torch.device('cuda:0'), pin_memory=False)
    v0 = g('v0', aten.detach.default, b0)
    m1 = g('m1', aten.copy_.default, v0, w1)
    g0 = g('g0', comm.all_gather_into_tensor.default, b0, 2, 'dp')
    v1 = g('v1', aten.view.default, t4, [2, 1, 2])
    m2 = g('m2', aten.add_.Tensor, v1, 1)
    m3 = g('m3', aten.relu_.default, x0)
    t5 = g('t5', aten.gt.Scalar, x1, 0)
    t6 = g('t6', aten.where.self, t5, x1, m1)
    v2 = g('v2', aten.detach.default, x4)
    m4 = g('m4', aten.copy_.default, v2, w1)
    g1 = g('g1', comm.all_gather_into_tensor.default, x4, 2, 'dp')
    t7 = g('t7', aten.abs.default, m2)
    r2 = g('r2', comm.all_reduce.default, x5, 'sum', 'dp')
    r3 = g('r3', comm.all_reduce.default, x5, 'sum', 'dp')
    w2 = g('w2', comm.wait_tensor.default, r3)
    v3 = g('v3', aten.select.int, x4, 1, 1)
    t8 = g('t8', aten.abs.default, x3)
    w3 = g('w3', comm.wait_tensor.default, g1)
    r4 = g('r4', comm.all_reduce.default, x6, 'sum', 'dp')
    t9 = g('t9', torch.ops.prims.convert_element_type.default, b0, torch.float16)
    r5 = g('r5', comm.all_reduce.default, x7, 'sum', 'dp')
    w4 = g('w4', comm.wait_tensor.default, r5)
    w5 = g('w5', comm.wait_tensor.default, r4)
    w6 = g('w6', comm.wait_tensor.default, r2)
    w7 = g('w7', comm.wait_tensor.default, g0)
    g.tag(m0, t0, t1, r0, w0, t2, t3, r1, w1, t4, t5, t6, v2, m4, g1, t7, t8, w3, r4, custom={'scope': 'a'})
    g.tag(m0, t0, t1, r0, w0, t2, b0, v0, m1, g0, r5, w4, w5, w6, w7, module='layers.0')
    g.tag(t3, r1, w1, t4, v1, m2, m3, t5, t6, v2, m4, g1, module='layers.1')
    g.tag(b0, v0, m1, g0, v1, m2, m3, r2, r3, w2, v3, t9, r5, w4, w5, w6, w7, custom={'scope': 'b'})
    g.tag(t7, r2, r3, w2, v3, module='layers.2')
    g.tag(t8, w3, r4, t9, module='layers.3')
    g.output((w3, t9, w4,))


def run_pass(module, mode):
    """The pass, as PyTorch calls it."""
    bucketing.deduplicate_wait_tensors(module.graph)
    cap = lambda index: 2000.0  # MB by bucket
    bucketing.bucket_reduce_scatter(module, cap, 'default')
    bucketing.bucket_all_reduce(module, cap, 'default')
    bucketing.bucket_all_gather(module, cap, 'default')
    stable_topological_sort(module.graph)
    return [module]


replay(build, run_pass, world=4, groups={"dp": [[0, 1], [2, 3]], "tp": [[0, 2], [1, 3]], "pp": [[0, 1], [2, 3]], "solo": [[0], [1], [2], [3]]})
