"""In the mode custom_ops_multidtype a float32 is put where a buffer of bfloat16 cannot be viewed as float32: the graph
after raises when it runs

Pass bucketing with kind=all_gather mode=custom_ops_multidtype selection=adjacent, PyTorch 2.15.0+cu132; breaks
bucket/homogeneous.
Needs torch alone and replay.py, which builds and runs the graph. Exit status 1 if the failure shows, else 0.
It looks for an exception, a graph that is none, ranks that wait for one another, other values than before.
bucket/homogeneous says more than that: it may be broken where the status is 0.
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
    x0 = g.input('x0', [3], torch.bfloat16)
    x1 = g.input('x1', [1], torch.float32)
    g0 = g('g0', comm.all_gather_into_tensor.default, x0, 2, 'dp')
    g1 = g('g1', comm.all_gather_into_tensor.default, x1, 2, 'dp')
    w0 = g('w0', comm.wait_tensor.default, g0)
    w1 = g('w1', comm.wait_tensor.default, g1)
    g.output((w0, w1,))


def run_pass(module, mode):
    """The pass, as PyTorch calls it."""
    bucketing.deduplicate_wait_tensors(module.graph)
    cap = lambda index: 2000.0  # MB by bucket
    bucketing.bucket_all_gather(module, cap, 'custom_ops_multidtype')
    stable_topological_sort(module.graph)
    return [module]


replay(build, run_pass, world=2, groups={"dp": [[0, 1]]},
    nothing='nothing fails that this looks at; bucket/homogeneous may be broken all the same',
)
