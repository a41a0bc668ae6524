"""A gather goes into a bucket before the copy_ through a view that fills its input: it gathers the old value.

bucket_all_gather of PyTorch 2.15.0 on a graph in which a tensor is filled through a view, and gathered.
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
    x, y = g.input("x", [4], torch.float32), g.input("y", [4], torch.float32)
    w0 = g("w0", comm.wait_tensor.default, g("g0", comm.all_gather_into_tensor.default, x, 2, "dp"))
    g("m0", aten.copy_.default, g("v0", aten.detach.default, y), g("t0", aten.slice.Tensor, w0, 0, 0, 4))
    w1 = g("w1", comm.wait_tensor.default, g("g1", comm.all_gather_into_tensor.default, y, 2, "dp"))
    g.output((w0, w1))


def run_pass(module, mode):
    """The pass, and the sort that Inductor runs behind it."""
    bucketing.bucket_all_gather(module, lambda index: 2000.0, "default")
    stable_topological_sort(module.graph)
    return [module]


replay(build, run_pass, world=2, groups={"dp": [[0, 1]]})
