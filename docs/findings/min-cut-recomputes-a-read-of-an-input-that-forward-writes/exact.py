"""The min-cut partitioner recomputes in backward a read of an input that forward has written since: backward sees the
new value

Pass partition with method=min-cut num_fwd_outputs=1 static_inputs=1, PyTorch 2.15.0+cu132; breaks partition/no-
recompute-after-mutation.
Needs torch alone and replay.py, which builds and runs the graph. Exit status 1 if the failure shows, else 0.
It looks for an exception, a graph that is none, ranks that wait for one another, other values than before.
partition/no-recompute-after-mutation says more than that: it may be broken where the status is 0.
"""

import operator
import pathlib
import sys

import torch
import torch.distributed._functional_collectives
from torch._functorch import config, partitioners
from torch.fx.passes.shape_prop import _extract_tensor_metadata

sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).resolve().parents[:2]]
from replay import replay

aten = torch.ops.aten


def build(g):
    """The graph before the pass."""
    primals_1 = g.input('primals_1', [2, 4], torch.float32)
    primals_2 = g.input('primals_2', [4], torch.float32)
    tangents_1 = g.input('tangents_1', [2, 4], torch.float32)
    split_0 = g('split_0', aten.split.Tensor, primals_1, 1, 1)
    getitem_1 = g('getitem_1', operator.getitem, split_0, 0)
    getitem_2 = g('getitem_2', operator.getitem, split_0, 1)
    getitem_3 = g('getitem_3', operator.getitem, split_0, 3)
    cat_4 = g('cat_4', aten.cat.default, [getitem_1, getitem_2, getitem_2, getitem_3], 1)
    split_5 = g('split_5', aten.split.Tensor, primals_1, 2, 1)
    sin_9 = g('sin_9', aten.sin.default, primals_2)
    mul_10 = g('mul_10', aten.mul.Tensor, cat_4, sin_9)
    add_11 = g('add_11', aten.add.Tensor, primals_2, 1.0)
    mul_12 = g('mul_12', aten.mul.Tensor, tangents_1, sin_9)
    slice_13 = g('slice_13', aten.slice.Tensor, mul_12, 1, 0, 1)
    slice_14 = g('slice_14', aten.slice.Tensor, mul_12, 1, 1, 2)
    copy_21 = g('copy_21', aten.copy_.default, primals_2, add_11)
    g.tag(split_0, getitem_1, getitem_2, getitem_3, split_5, mul_10, recompute='MUST_RECOMPUTE')
    g.tag(split_0, getitem_1, getitem_2, getitem_3, ac_graph_id=0)
    g.tag(split_0, getitem_1, getitem_2, getitem_3, cat_4, split_5, sin_9, mul_10, add_11, partitioner_tag='is_forward')
    g.tag(split_5, mul_10, ac_graph_id=1)
    g.tag(mul_12, slice_13, slice_14, partitioner_tag='is_backward')
    g.tag(copy_21, partitioner_tag='must_be_in_forward')
    g.output((mul_10, slice_13, None,))


def run_pass(module, mode):
    """The pass, as PyTorch calls it."""
    for node in module.graph.nodes:
        if isinstance(node.meta.get('val'), torch.Tensor):
            node.meta['tensor_meta'] = _extract_tensor_metadata(node.meta['val'])
    with config.patch({'graphsafe_rng_functionalization': False}), mode, torch._guards.tracing(torch._guards.TracingContext(mode)):
        return list(partitioners.min_cut_rematerialization_partition(
            module, (), num_fwd_outputs=1, static_lifetime_input_indices=[1]
        ))


replay(build, run_pass, world=2, groups={"dp": [[0, 1]]}, check='partition',
    nothing='nothing fails that this looks at; partition/no-recompute-after-mutation may be broken all the same',
)
