"""In the mode custom_ops what split_with_sizes_copy(out=) writes is read through other views, with no edge from the copy.

Pass bucketing with kind=all_gather mode=custom_ops, PyTorch 2.15.0+cu132; breaks order/write-before-aliased-read.
Needs torch alone and replay.py, which builds and runs the graph. Exit status 1 if the failure shows, else 0.

The order rests on the list alone. After the pass, the copy is put where all edges of the graph allow it to stand (lint
passes): as the last node. The gathered values are then read before they are written.
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
    x0 = g.input("x0", [1, 5], torch.float64)
    x4 = g.input("x4", [4], torch.float64)
    g0 = g("g0", comm.all_gather_into_tensor.default, x0, 4, "dp")
    w1 = g("w1", comm.wait_tensor.default, g0)
    g4 = g("g4", comm.all_gather_into_tensor.default, x4, 4, "dp")
    w4 = g("w4", comm.wait_tensor.default, g4)
    g.output((w1, g("t3", aten.stack.default, [w4, w4])))


def run_pass(module, mode):
    """The pass, as PyTorch calls it, and another order that all edges of the graph allow."""
    bucketing.bucket_all_gather(module, lambda index: 2000.0, "custom_ops")
    stable_topological_sort(module.graph)
    (output,) = module.graph.find_nodes(op="output")
    for node in list(module.graph.nodes):
        if "split_with_sizes_copy" in str(node.target) and not node.users:
            output.prepend(node)
    return [module]


replay(build, run_pass, world=4, groups={"dp": [[1, 2, 3, 0]]})
