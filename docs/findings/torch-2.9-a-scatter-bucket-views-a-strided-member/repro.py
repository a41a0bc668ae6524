"""A bucket of reduce-scatters flattens a member with view, which its strides do not allow: the pass raises ValueError

Pass bucketing, PyTorch 2.9.0+cu128; breaks worker/error.
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
    x3 = g.input('x3', [1], torch.float32)
    x5 = g.input('x5', [2, 2], torch.float32)
    s6 = g('s6', comm.reduce_scatter_tensor.default, x3, 'sum', 1, 'dp')
    v3 = g('v3', aten.permute.default, x5, [1, 0])
    s13 = g('s13', comm.reduce_scatter_tensor.default, v3, 'sum', 1, 'dp')
    w13 = g('w13', comm.wait_tensor.default, s13)
    w14 = g('w14', comm.wait_tensor.default, s6)
    g.output(())


def run_pass(module, mode):
    """The pass, as PyTorch calls it."""
    cap = lambda index: 2000.0  # MB by bucket
    bucketing.bucket_reduce_scatter(module, cap, 'default')
    bucketing.bucket_all_gather(module, cap, 'default')
    stable_topological_sort(module.graph)
    return [module]


replay(build, run_pass, world=1, groups={"dp": [[0]]})
