"""Bucketing fails with AssertionError where a collective has two waits

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

comm = torch.ops._c10d_functional


def build(g):
    """The graph before the pass."""
    x5 = g.input('x5', [1], torch.float32)
    g5 = g('g5', comm.all_gather_into_tensor.default, x5, 1, 'dp')
    w6 = g('w6', comm.wait_tensor.default, g5)
    w14 = g('w14', comm.wait_tensor.default, g5)
    g.output(())


def run_pass(module, mode):
    """The pass, as PyTorch calls it. Since the waits are merged before it, this does not show any more."""
    if hasattr(bucketing, "deduplicate_wait_tensors"):
        bucketing.deduplicate_wait_tensors(module.graph)
    cap = lambda index: 2000.0  # MB by bucket
    bucketing.bucket_reduce_scatter(module, cap, 'default')
    bucketing.bucket_all_gather(module, cap, 'default')
    stable_topological_sort(module.graph)
    return [module]


replay(build, run_pass, world=1, groups={"dp": [[0]]})
