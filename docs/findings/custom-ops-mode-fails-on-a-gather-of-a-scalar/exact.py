"""In the mode custom_ops bucketing fails with IndexError on an all-gather of a tensor without dimensions

Pass bucketing with kind=all mode=custom_ops cap=95B selection=adjacent, PyTorch 2.15.0+cu132; breaks worker/error.
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
    x0 = g.input('x0', [4], torch.float32)
    getitem_1 = g.input('getitem_1', [2, 4], torch.float32)
    dp = g.input('dp', [1, 4], torch.float32)
    empty_1 = g.input('empty_1', [1, 4], torch.float32)
    x2 = g.input('x2', [2, 4], torch.float32)
    x5 = g.input('x5', [], torch.float32)
    reduce_scatter_tensor = g('reduce_scatter_tensor', comm.all_gather_into_tensor.default, dp, 4, 'dp')
    slice_2 = g('slice_2', comm.all_gather_into_tensor.default, empty_1, 4, 'dp')
    output_1 = g('output_1', comm.wait_tensor.default, reduce_scatter_tensor)
    t6 = g('t6', aten._to_copy.default, x5, dtype=torch.float32)
    g2 = g('g2', comm.all_gather_into_tensor.default, t6, 4, 'dp')
    w5 = g('w5', comm.wait_tensor.default, g2)
    g.tag(reduce_scatter_tensor, slice_2, output_1, custom={'scope': 'b'})
    g.tag(reduce_scatter_tensor, t6, g2, w5, module='layers.1')
    g.tag(slice_2, output_1, module='layers.0')
    g.tag(t6, g2, w5, custom={'scope': 'a'})
    g.output(())


def run_pass(module, mode):
    """The pass, as PyTorch calls it."""
    bucketing.deduplicate_wait_tensors(module.graph)
    cap = lambda index: 9.059906005859375e-05  # MB by bucket
    bucketing.bucket_reduce_scatter(module, cap, 'custom_ops')
    bucketing.bucket_all_reduce(module, cap, 'custom_ops')
    bucketing.bucket_all_gather(module, cap, 'custom_ops')
    stable_topological_sort(module.graph)
    return [module]


replay(build, run_pass, world=4, groups={"dp": [[0, 1, 2, 3]]})
