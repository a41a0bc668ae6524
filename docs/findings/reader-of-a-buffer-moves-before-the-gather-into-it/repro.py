"""A gather into a given buffer (all_gather_into_tensor_out) joins a bucket, which gathers into memory of its own: who
reads the buffer through a view reads memory that nobody wrote.

bucket_all_gather of PyTorch 2.15.0 on a graph with the operator that buckets are made of: a second run of the pass.
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
    b0 = g("b0", aten.empty.memory_format, [8], dtype=torch.float32, device=torch.device("cuda:0"))
    v0 = g("v0", aten.view.default, b0, [2, 4])
    w0 = g("w0", comm.wait_tensor.default, g("g0", comm.all_gather_into_tensor_out.default, x, 2, "dp", out=b0))
    t0 = g("t0", aten.relu.default, v0)
    w1 = g("w1", comm.wait_tensor.default, g("g1", comm.all_gather_into_tensor.default, y, 2, "dp"))
    g.output((w0, t0, w1))


def run_pass(module, mode):
    """The pass, and the sort that Inductor runs behind it."""
    bucketing.bucket_all_gather(module, lambda index: 2000.0, "default")
    stable_topological_sort(module.graph)
    return [module]


replay(build, run_pass, world=2, groups={"dp": [[0, 1]]})
