"""An in-place all-reduce moves before a coalesced gather that reads its input: the gather reads the sum

Pass bucketing, PyTorch 2.15.0+cu132; breaks order/effects-preserved.
Needs torch alone and replay.py, which builds and runs the graph. Exit status 1 if the failure shows, else 0.
It looks for an exception, a graph that is none, ranks that wait for one another, other values than before.
order/effects-preserved says more than that: it may be broken where the status is 0.
"""

import operator
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
    x1 = g.input('x1', [1, 1], torch.float32)
    x2 = g.input('x2', [1, 1, 1], torch.float32)
    x3 = g.input('x3', [1, 1], torch.float32)
    r0 = g('r0', comm.all_reduce.default, x1, 'sum', 'tp')
    w2 = g('w2', comm.wait_tensor.default, r0)
    c0 = g('c0', comm.all_gather_into_tensor_coalesced.default, [x2, w2], 2, 'dp')
    v1 = g('v1', operator.getitem, c0, 0)
    w6 = g('w6', comm.wait_tensor.default, v1)
    c1 = g('c1', comm.all_reduce_.default, x2, 'sum', 'tp')
    r2 = g('r2', comm.all_reduce.default, x3, 'sum', 'tp')
    w12 = g('w12', comm.wait_tensor.default, r2)
    g.output(())


def run_pass(module, mode):
    """The pass, as PyTorch calls it."""
    if hasattr(bucketing, 'deduplicate_wait_tensors'):  # There is nothing for it here; since 2.15.
        bucketing.deduplicate_wait_tensors(module.graph)
    cap = lambda index: 2000.0  # MB by bucket
    bucketing.bucket_reduce_scatter(module, cap, 'default')
    bucketing.bucket_all_reduce(module, cap, 'default')
    bucketing.bucket_all_gather(module, cap, 'default')
    stable_topological_sort(module.graph)
    return [module]


replay(build, run_pass, world=2, groups={"dp": [[0, 1]], "tp": [[0, 1]]},
    nothing='nothing fails that this looks at; order/effects-preserved may be broken all the same',
)
