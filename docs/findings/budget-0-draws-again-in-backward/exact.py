"""With activation_memory_budget = 0 backward draws random numbers again and works with other ones than forward

Pass partition with method=min-cut num_fwd_outputs=2 static_inputs=1,2 budget=0, PyTorch 2.15.0+cu132; breaks
partition/rng-paired.
Needs torch alone and replay.py, which builds and runs the graph. Exit status 1 if the failure shows, else 0.
It looks for an exception, a graph that is none, ranks that wait for one another, other values than before.
partition/rng-paired says more than that: it may be broken where the status is 0.
"""

import pathlib
import sys

import torch
import torch.distributed._functional_collectives
from torch._functorch import config, partitioners
from torch.fx.passes.shape_prop import _extract_tensor_metadata

sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).resolve().parents[:2]]
from replay import replay

aten = torch.ops.aten
comm = torch.ops._c10d_functional


def build(g):
    """The graph before the pass."""
    primals_1 = g.input('primals_1', [4, 8], torch.float32)
    primals_2 = g.input('primals_2', [8], torch.float32)
    tangents_1 = g.input('tangents_1', [4, 8], torch.float32)
    tangents_2 = g.input('tangents_2', [4, 8], torch.float32)
    rand_like_0 = g('rand_like_0', aten.rand_like.default, primals_1)
    gt_1 = g('gt_1', aten.gt.Scalar, rand_like_0, 0.5)
    mul_2 = g('mul_2', aten.mul.Tensor, primals_1, gt_1)
    sin_3 = g('sin_3', aten.sin.default, primals_2)
    mul_4 = g('mul_4', aten.mul.Tensor, primals_1, sin_3)
    relu_5 = g('relu_5', aten.relu.default, mul_2)
    sin_6 = g('sin_6', aten.sin.default, mul_4)
    all_reduce_7 = g('all_reduce_7', comm.all_reduce.default, sin_6, 'sum', 'dp')
    wait_tensor_8 = g('wait_tensor_8', comm.wait_tensor.default, all_reduce_7)
    add_9 = g('add_9', aten.add.Tensor, wait_tensor_8, mul_2)
    add_15 = g('add_15', aten.add.Tensor, add_9, relu_5)
    cos_17 = g('cos_17', aten.cos.default, mul_4)
    mul_18 = g('mul_18', aten.mul.Tensor, tangents_1, cos_17)
    threshold_backward_19 = g('threshold_backward_19', aten.threshold_backward.default, tangents_1, relu_5, 0)
    add_20 = g('add_20', aten.add.Tensor, tangents_1, threshold_backward_19)
    g.tag(rand_like_0, gt_1, mul_2, sin_3, mul_4, relu_5, sin_6, all_reduce_7, wait_tensor_8, add_9, add_15,
        partitioner_tag='is_forward')
    g.tag(add_9, recompute='MUST_RECOMPUTE')
    g.tag(add_15, recompute='PREFER_RECOMPUTE')
    g.tag(cos_17, mul_18, threshold_backward_19, add_20, partitioner_tag='is_backward')
    g.output((add_15, primals_1, gt_1, None, None,))


def run_pass(module, mode):
    """The pass, as PyTorch calls it."""
    for node in module.graph.nodes:
        if isinstance(node.meta.get('val'), torch.Tensor):
            node.meta['tensor_meta'] = _extract_tensor_metadata(node.meta['val'])
    with config.patch({'graphsafe_rng_functionalization': False, 'activation_memory_budget': 0.0}), mode, torch._guards.tracing(torch._guards.TracingContext(mode)):
        return list(partitioners.min_cut_rematerialization_partition(
            module, (), num_fwd_outputs=2, static_lifetime_input_indices=[1]
        ))


replay(build, run_pass, world=2, groups={"dp": [[0, 1]]}, check='partition',
    nothing='nothing fails that this looks at; partition/rng-paired may be broken all the same',
)
