"""Bucketing fails with RuntimeError where one gather casts from one float8 type to another

Pass bucketing with kind=all_gather mode=default selection=adjacent, PyTorch 2.15.0+cu132; breaks worker/error.
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
    x0 = g.input('x0', [4], torch.float8_e5m2)
    x1 = g.input('x1', [4], torch.float8_e4m3fn)
    t0 = g('t0', aten._to_copy.default, x0, dtype=torch.float8_e4m3fn)
    g0 = g('g0', comm.all_gather_into_tensor.default, t0, 2, 'dp')
    g1 = g('g1', comm.all_gather_into_tensor.default, x1, 2, 'dp')
    w0 = g('w0', comm.wait_tensor.default, g0)
    w1 = g('w1', comm.wait_tensor.default, g1)
    g.output((w0, w1,))


def run_pass(module, mode):
    """The pass, as PyTorch calls it."""
    bucketing.deduplicate_wait_tensors(module.graph)
    cap = lambda index: 2000.0  # MB by bucket
    bucketing.bucket_all_gather(module, cap, 'default')
    stable_topological_sort(module.graph)
    return [module]


replay(build, run_pass, world=2, groups={"dp": [[0, 1]]})
