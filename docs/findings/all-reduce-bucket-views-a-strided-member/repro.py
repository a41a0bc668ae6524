"""A bucket of all-reduces flattens a member with view, which its strides do not allow after all-gathers were bucketed.

bucket_all_reduce and then bucket_all_gather of PyTorch 2.15.0, in the order of post_grad_passes, on gathers whose results
are summed. The graph after cannot be run operator by operator.
Needs torch alone and replay.py, which builds and runs the graph. Exit status 1 if the failure shows, else 0.
"""

import pathlib
import sys

import torch
from torch._inductor.fx_passes import bucketing
from torch._inductor.pattern_matcher import stable_topological_sort

sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).resolve().parents[:2]]
from replay import replay

comm = torch.ops._c10d_functional


def build(g):
    """The graph before the pass."""
    x, y = g.input("x", [1, 5], torch.float32), g.input("y", [1, 5], torch.float32)
    w0 = g("w0", comm.wait_tensor.default, g("g0", comm.all_gather_into_tensor.default, x, 2, "dp"))
    w1 = g("w1", comm.wait_tensor.default, g("g1", comm.all_gather_into_tensor.default, y, 2, "dp"))
    w2 = g("w2", comm.wait_tensor.default, g("r0", comm.all_reduce.default, w0, "sum", "dp"))
    w3 = g("w3", comm.wait_tensor.default, g("r1", comm.all_reduce.default, w1, "sum", "dp"))
    g.output((w2, w3))


def run_pass(module, mode):
    """The pass, and the sort that Inductor runs behind it."""
    bucketing.bucket_all_reduce(module, lambda index: 2000.0, "default")
    bucketing.bucket_all_gather(module, lambda index: 2000.0, "default")
    stable_topological_sort(module.graph)
    return [module]


replay(build, run_pass, world=2, groups={"dp": [[0, 1]]})
