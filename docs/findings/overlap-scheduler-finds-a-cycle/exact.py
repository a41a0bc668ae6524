"""The overlap scheduler ends with RuntimeError because of a cycle that its own extra dependencies make

Pass bucketing with selection=overlap mode=default, PyTorch 2.15.0+cu132; breaks worker/error.
Needs torch alone and replay.py, which builds and runs the graph. Exit status 1 if the failure shows, else 0.
"""

import pathlib
import sys

import torch
from torch._inductor.fx_passes import bucketing, overlap_manual_scheduling, overlap_scheduling
from torch._inductor.pattern_matcher import stable_topological_sort


def estimate(node, size):
    """A runtime in milliseconds for the overlap scheduler that no machine has a part in."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return 0.0
    value = node.meta.get("val")
    bytes_ = value.numel() * value.element_size() if isinstance(value, torch.Tensor) else 0
    if size is not None:
        bytes_ = size
    if node.target.namespace == "_c10d_functional":
        return 0.01 + bytes_ * 1e-5
    return 0.001 + bytes_ * 1e-6


sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).resolve().parents[:2]]
from replay import replay

aten = torch.ops.aten
comm = torch.ops._c10d_functional


def build(g):
    """The graph before the pass."""
    arg0_1 = g.input('arg0_1', [0, 4], torch.bfloat16, device='cpu')
    arg3_1 = g.input('arg3_1', [1, 1, 2], torch.bfloat16, device='cpu')
    arg4_1 = g.input('arg4_1', [8, 1, 1], torch.float16, device='cpu')
    permute_default = g('permute_default', aten.permute.default, arg3_1, [2, 1, 0])
    all_gather_into_tensor_default = g('all_gather_into_tensor_default', comm.all_gather_into_tensor.default, arg0_1,
        1, 'self')
    wait_tensor_default = g('wait_tensor_default', comm.wait_tensor.default, all_gather_into_tensor_default)
    clone_default_1 = g('clone_default_1', aten.clone.default, wait_tensor_default)
    all_gather_into_tensor_default_1 = g('all_gather_into_tensor_default_1', comm.all_gather_into_tensor.default,
        arg4_1, 1, 'self')
    _to_copy_default = g('_to_copy_default', aten._to_copy.default, wait_tensor_default, dtype=torch.bfloat16)
    all_gather_into_tensor_default_2 = g('all_gather_into_tensor_default_2', comm.all_gather_into_tensor.default,
        _to_copy_default, 1, 'self')
    view_default = g('view_default', aten.view.default, permute_default, [-1])
    mul_tensor = g('mul_tensor', aten.mul.Tensor, clone_default_1, clone_default_1)
    convert_element_type_default = g('convert_element_type_default', torch.ops.prims.convert_element_type.default,
        wait_tensor_default, torch.bfloat16)
    all_gather_into_tensor_default_3 = g('all_gather_into_tensor_default_3', comm.all_gather_into_tensor.default,
        convert_element_type_default, 1, 'self')
    wait_tensor_default_1 = g('wait_tensor_default_1', comm.wait_tensor.default, all_gather_into_tensor_default_1)
    wait_tensor_default_2 = g('wait_tensor_default_2', comm.wait_tensor.default, all_gather_into_tensor_default_2)
    wait_tensor_default_3 = g('wait_tensor_default_3', comm.wait_tensor.default, all_gather_into_tensor_default_3)
    g.output(())


def run_pass(module, mode):
    """The pass, as PyTorch calls it."""
    bucketing.deduplicate_wait_tensors(module.graph)
    overlap_scheduling.schedule_overlap_bucketing(
        module, collective_bucketing=True, insert_overlap_deps=False, custom_runtime_estimation=estimate,
        collective_estimator='analytical', compute_estimator='analytical',
        bucket_mode='default', pre_bucketing_fsdp_collectives=False,
    )
    stable_topological_sort(module.graph)
    return [module]


replay(build, run_pass, world=4, groups={"dp": [[0, 1, 2, 3]], "pair": [[0, 1], [2, 3]], "self": [[0], [1], [2], [3]], "all2": [[0, 1, 2, 3]], "cross": [[0, 2], [1, 3]]})
