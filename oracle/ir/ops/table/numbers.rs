//! Python functions and numbers.

use super::Row;
use crate::ops::kind::{Kind, Number};

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // Python functions. Their names follow FX's printing of the function.
    ("getitem",                Kind::GetItem,                  "operator.getitem"),
    ("sym_add",                Kind::Number(Number::Add),      "operator.add"),
    ("sym_sub",                Kind::Number(Number::Sub),      "operator.sub"),
    ("sym_mul",                Kind::Number(Number::Mul),      "operator.mul"),
    ("sym_truediv",            Kind::Number(Number::TrueDiv),  "operator.truediv"),
    ("sym_floordiv",           Kind::Number(Number::FloorDiv), "operator.floordiv"),
    ("sym_mod",                Kind::Number(Number::Mod),      "operator.mod"),
    ("sym_pow",                Kind::Number(Number::Pow),      "operator.pow"),
    ("sym_neg",                Kind::Number(Number::Neg),      "operator.neg"),
    ("sym_eq",                 Kind::Number(Number::Eq),       "operator.eq"),
    ("sym_ne",                 Kind::Number(Number::Ne),       "operator.ne"),
    ("sym_lt",                 Kind::Number(Number::Lt),       "operator.lt"),
    ("sym_le",                 Kind::Number(Number::Le),       "operator.le"),
    ("sym_gt",                 Kind::Number(Number::Gt),       "operator.gt"),
    ("sym_ge",                 Kind::Number(Number::Ge),       "operator.ge"),
    ("sym_and",                Kind::Number(Number::And),      "operator.and_"),
    ("sym_or",                 Kind::Number(Number::Or),       "operator.or_"),
    ("sym_sum",                Kind::Number(Number::Sum),      "torch.sym_sum"),
    ("sym_max",                Kind::Number(Number::Max),      "torch.sym_max"),
    ("sym_min",                Kind::Number(Number::Min),      "torch.sym_min"),
    ("sym_not",                Kind::Number(Number::Not),      "torch.sym_not"),
    // Sizes, and numbers out of tensors.
    ("sym_size",               Kind::SymSize,                  "aten::sym_size.int(Tensor self, int dim) -> SymInt"),
    ("sym_numel",              Kind::SymNumel,                 "aten::sym_numel(Tensor self) -> SymInt"),
    ("sym_stride",             Kind::SymStride,                "aten::sym_stride.int(Tensor self, int dim) -> SymInt"),
    ("item",                   Kind::Item,                     "aten::_local_scalar_dense(Tensor self) -> Scalar"),
    ("",                       Kind::Item,                     "aten::item(Tensor self) -> Scalar"),
    // Assertions.
    ("assert_scalar",          Kind::AssertScalar,             "aten::_assert_scalar(Scalar self, str assert_msg) -> ()"),
    ("assert_async",           Kind::Effect,                   "aten::_assert_async.msg(Tensor self, str assert_msg) -> ()"),
    ("assert_tensor_metadata", Kind::Effect,                   "aten::_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, *, Device? device=None, Layout? layout=None) -> ()"),
    ("",                       Kind::Effect,                   "aten::sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()"),
    ("",                       Kind::Effect,                   "aten::sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()"),
];
