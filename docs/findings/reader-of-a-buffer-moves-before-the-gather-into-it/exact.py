"""A reader of the buffer of all_gather_into_tensor_out, through a view of it, moves before the gather: it reads memory
that nobody wrote

Pass bucketing with kind=all mode=default cap=144B selection=adjacent max_topo_span=30, PyTorch 2.15.0+cu132; breaks
rewrite/values.
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
    x0 = g.input('x0', [2, 1, 8], torch.bfloat16)
    x1 = g.input('x1', [1, 2, 3], torch.bfloat16)
    x2 = g.input('x2', [6, 1], torch.int64)
    x3 = g.input('x3', [4, 4], torch.bfloat16)
    x4 = g.input('x4', [3, 5], torch.float16)
    x5 = g.input('x5', [6], torch.float32)
    b0 = g('b0', aten.empty.memory_format, [6, 1, 8], dtype=torch.bfloat16, device=torch.device('cuda:0'),
        pin_memory=False)
    v0 = g('v0', aten.transpose.int, b0, 0, 2)
    g0 = g('g0', comm.all_gather_into_tensor_out.default, x0, 3, 'dp', out=b0)
    w0 = g('w0', comm.wait_tensor.default, g0)
    t0 = g('t0', aten.relu.default, v0)
    b1 = g('b1', aten.empty.memory_format, [3, 2, 3], dtype=torch.bfloat16, device=torch.device('cuda:0'),
        pin_memory=False)
    g1 = g('g1', comm.all_gather_into_tensor_out.default, x1, 3, 'dp', out=b1)
    t3 = g('t3', torch.ops.prims.convert_element_type.default, x2, torch.float16)
    t4 = g('t4', aten.clone.default, t3)
    g2 = g('g2', comm.all_gather_into_tensor.default, x1, 3, 'dp')
    t5 = g('t5', aten.relu.default, t4)
    s2 = g('s2', comm.reduce_scatter_tensor.default, t5, 'sum', 3, 'dp')
    w5 = g('w5', comm.wait_tensor.default, s2)
    t6 = g('t6', aten.relu.default, w5)
    m0 = g('m0', aten.relu_.default, t6)
    t16 = g('t16', torch.ops.prims.convert_element_type.default, x5, torch.bfloat16)
    t17 = g('t17', aten.clone.default, t16)
    s5 = g('s5', comm.reduce_scatter_tensor.default, t16, 'sum', 3, 'dp')
    w9 = g('w9', comm.wait_tensor.default, g2)
    w10 = g('w10', comm.wait_tensor.default, s5)
    g.tag(b0, v0, g0, w0, t0, b1, g1, g2, custom={'scope': 'a'})
    g.tag(b0, v0, g0, w0, t0, b1, g1, t3, t4, t16, t17, s5, w9, w10, module='layers.0')
    g.tag(t3, t4, t5, s2, w5, t6, m0, t16, t17, s5, w9, w10, custom={'scope': 'b'})
    g.tag(g2, module='layers.1')
    g.tag(t5, s2, w5, t6, module='layers.2')
    g.tag(m0, module='layers.3')
    g.output((w0, t0,))


def run_pass(module, mode):
    """The pass, as PyTorch calls it."""
    bucketing.deduplicate_wait_tensors(module.graph)
    cap = lambda index: 0.0001373291015625  # MB by bucket
    bucketing.bucket_reduce_scatter(module, cap, 'default')
    bucketing.bucket_all_reduce(module, cap, 'default')
    bucketing.bucket_all_gather(module, cap, 'default')
    stable_topological_sort(module.graph)
    return [module]


replay(build, run_pass, world=3, groups={"dp": [[0, 1, 2]], "tp": [[0, 1, 2]], "pp": [[0, 1, 2]]})
