"""A gather joins a bucket that starts before an in-place write to what it gathers: it gathers the old value.

bucket_all_gather of PyTorch 2.15.0 on a graph of two gathers of one tensor, with a write to it in between.
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
    x = g.input("x", [4], torch.float32)
    w0 = g("w0", comm.wait_tensor.default, g("g0", comm.all_gather_into_tensor.default, x, 2, "dp"))
    m0 = g("m0", aten.mul_.Tensor, x, 2)
    w1 = g("w1", comm.wait_tensor.default, g("g1", comm.all_gather_into_tensor.default, m0, 2, "dp"))
    g.output((w0, w1))


def run_pass(module, mode):
    """The pass, and the sort that Inductor runs behind it."""
    bucketing.bucket_all_gather(module, lambda index: 2000.0, "default")
    stable_topological_sort(module.graph)
    return [module]


replay(build, run_pass, world=2, groups={"dp": [[0, 1]]})
