"""A bucket of gathers starts before the copy that fills its input, where a member is computed after the first gather:
the ranks gather memory that nobody wrote

Pass bucketing, PyTorch 2.9.0+cu128; breaks rewrite/values.
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
    x0 = g.input('x0', [2], torch.float32)
    x1 = g.input('x1', [1], torch.float32)
    g0 = g('g0', comm.all_gather_into_tensor.default, x0, 2, 'dp')
    w0 = g('w0', comm.wait_tensor.default, g0)
    t1 = g('t1', aten.relu.default, x1)
    g1 = g('g1', comm.all_gather_into_tensor.default, t1, 2, 'dp')
    w1 = g('w1', comm.wait_tensor.default, g1)
    g.output((w0, w1,))


def run_pass(module, mode):
    """The pass, as PyTorch calls it."""
    cap = lambda index: 2000.0  # MB by bucket
    bucketing.bucket_reduce_scatter(module, cap, 'default')
    bucketing.bucket_all_gather(module, cap, 'default')
    stable_topological_sort(module.graph)
    return [module]


replay(build, run_pass, world=2, groups={"dp": [[0, 1]]})
