"""A gather joins a bucket that starts before an in-place write to what it gathers: it gathers the old value

Pass bucketing with kind=all_gather mode=custom_ops_multidtype selection=adjacent, PyTorch 2.15.0+cu132; breaks
bucket/members-independent.
Needs torch alone and replay.py, which builds and runs the graph. Exit status 1 if the failure shows, else 0.
It looks for an exception, a graph that is none, ranks that wait for one another, other values than before.
bucket/members-independent says more than that: it may be broken where the status is 0.
"""

import operator
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
    an_extremely_long_name_as_tracing_makes_them_from_module_paths_layers_17_attention_wq_weight_all_gather_into_tensor_out_default_wait_tensor_split_with_sizes_getitem_reshape_view_convert_element_type_1234567890 = g.input('an_extremely_long_name_as_tracing_makes_them_from_module_paths_layers_17_attention_wq_weight_all_gather_into_tensor_out_default_wait_tensor_split_with_sizes_getitem_reshape_view_convert_element_type_1234567890', [2, 2, 4], torch.float16)
    x0 = g.input('x0', [3, 3], torch.float16)
    x1 = g.input('x1', [3, 4], torch.float16)
    x2 = g.input('x2', [9], torch.bool)
    view = g.input('view', [2, 7], torch.float16)
    x3 = g.input('x3', [5], torch.float16)
    x4 = g.input('x4', [2, 2], torch.float32)
    getitem_1 = g('getitem_1', aten.gt.Scalar,
        an_extremely_long_name_as_tracing_makes_them_from_module_paths_layers_17_attention_wq_weight_all_gather_into_tensor_out_default_wait_tensor_split_with_sizes_getitem_reshape_view_convert_element_type_1234567890, 0)
    cat_1 = g('cat_1', aten.where.self, getitem_1,
        an_extremely_long_name_as_tracing_makes_them_from_module_paths_layers_17_attention_wq_weight_all_gather_into_tensor_out_default_wait_tensor_split_with_sizes_getitem_reshape_view_convert_element_type_1234567890, an_extremely_long_name_as_tracing_makes_them_from_module_paths_layers_17_attention_wq_weight_all_gather_into_tensor_out_default_wait_tensor_split_with_sizes_getitem_reshape_view_convert_element_type_1234567890)
    g0 = g('g0', comm.all_gather_into_tensor.default,
        an_extremely_long_name_as_tracing_makes_them_from_module_paths_layers_17_attention_wq_weight_all_gather_into_tensor_out_default_wait_tensor_split_with_sizes_getitem_reshape_view_convert_element_type_1234567890, 3, 'dp')
    w0 = g('w0', comm.wait_tensor.default, g0)
    m0 = g('m0', aten.mul_.Tensor,
        an_extremely_long_name_as_tracing_makes_them_from_module_paths_layers_17_attention_wq_weight_all_gather_into_tensor_out_default_wait_tensor_split_with_sizes_getitem_reshape_view_convert_element_type_1234567890, 2)
    s3 = g('s3', comm.reduce_scatter_tensor.default, x0, 'product', 3, 'dp')
    w4 = g('w4', comm.wait_tensor.default, s3)
    t0 = g('t0', torch.ops.prims.convert_element_type.default, m0, torch.float16)
    v1 = g('v1', aten.transpose.int, w4, 0, 1)
    copy_ = g('copy_', aten.permute.default, view, [1, 0])
    g1 = g('g1', comm.all_gather_into_tensor.default, copy_, 3, 'dp')
    getitem = g('getitem', comm.all_gather_into_tensor.default, v1, 3, 'dp')
    wait_tensor = g('wait_tensor', torch.ops.prims.convert_element_type.default, t0, torch.float16)
    größe_名前 = g('größe_名前', comm.all_gather_into_tensor.default, wait_tensor, 3, 'dp')
    clone = g('clone', comm.wait_tensor.default, größe_名前)
    t4 = g('t4', aten.relu.default, x3)
    t5 = g('t5', aten.split.Tensor, t4, 2)
    v4 = g('v4', operator.getitem, t5, 1)
    v5 = g('v5', operator.getitem, t5, 2)
    t6 = g('t6', aten.constant_pad_nd.default, v5, [0, 1], 1.0)
    v6 = g('v6', aten.view.default, x3, [5])
    t8 = g('t8', aten.relu.default, x4)
    t9 = g('t9', aten.split.Tensor, t8, 2)
    v7 = g('v7', operator.getitem, t9, 0)
    t10 = g('t10', aten.cat.default, [v7])
    s6 = g('s6', comm.reduce_scatter_tensor.default, t10, 'avg', 1, 'solo')
    w8 = g('w8', comm.wait_tensor.default, s6)
    m1 = g('m1', aten.copy_.default, t10, w8)
    t11 = g('t11', aten.stack.default, [view, view, view])
    t12 = g('t12', aten.sub.Tensor, t8, m1)
    t13 = g('t13', aten.add.Tensor, t10, m1, alpha=2)
    _pre_bucket_all_gather = g('_pre_bucket_all_gather', aten.cat.default, [t12, m1, t13])
    wait_tensor_1 = g('wait_tensor_1', aten.mul.Tensor, x0, 1)
    g.tag(getitem_1, cat_1, g0, w0, m0, v1, v6, t8, t9, v7, t10, s6, w8, m1, _pre_bucket_all_gather, wait_tensor_1,
        custom={'scope': 'a'})
    g.tag(getitem_1, cat_1, g0, w0, m0, s3, w4, t12, t13, _pre_bucket_all_gather, wait_tensor_1, module='layers.0')
    g.tag(s3, w4, t0, copy_, g1, getitem, wait_tensor, größe_名前, clone, t4, t5, v4, v5, t6, t11, t12, t13,
        custom={'scope': 'b'})
    g.tag(t0, v1, module='layers.1')
    g.tag(copy_, g1, getitem, wait_tensor, größe_名前, clone, t4, t5, v4, v5, t6, module='layers.2')
    g.tag(v6, t8, t9, v7, t10, s6, w8, m1, t11, module='layers.3')
    g.output(())


def run_pass(module, mode):
    """The pass, as PyTorch calls it."""
    bucketing.deduplicate_wait_tensors(module.graph)
    cap = lambda index: 2000.0  # MB by bucket
    bucketing.bucket_all_gather(module, cap, 'custom_ops_multidtype')
    stable_topological_sort(module.graph)
    return [module]


replay(build, run_pass, world=3, groups={"dp": [[0, 1, 2]], "solo": [[0], [1], [2]]},
    nothing='nothing fails that this looks at; bucket/members-independent may be broken all the same',
)
