//! Choice, clamping, and further functions of several elements.

use super::Row;
use crate::ops::kind::Kind;

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    ("where",                   Kind::Where,      "aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor"),
    ("where_scalar_other",      Kind::Where,      "aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor"),
    ("where_scalar_self",       Kind::Where,      "aten::where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor"),
    ("where_scalar",            Kind::Where,      "aten::where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor"),
    ("masked_fill",             Kind::MaskedFill, "aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor"),
    ("masked_fill_tensor",      Kind::MaskedFill, "aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor"),
    ("masked_fill_",            Kind::MaskedFill, "aten::masked_fill_.Scalar(Tensor(a!) self, Tensor mask, Scalar value) -> Tensor(a!)"),
    ("masked_fill_tensor_",     Kind::MaskedFill, "aten::masked_fill_.Tensor(Tensor(a!) self, Tensor mask, Tensor value) -> Tensor(a!)"),
    ("clamp",                   Kind::Clamp,      "aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor"),
    ("clamp_tensor",            Kind::Clamp,      "aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor"),
    ("clamp_",                  Kind::Clamp,      "aten::clamp_(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor(a!)"),
    ("clamp_tensor_",           Kind::Clamp,      "aten::clamp_.Tensor(Tensor(a!) self, Tensor? min=None, Tensor? max=None) -> Tensor(a!)"),
    ("fma",                     Kind::Fma,        "prims::fma(Tensor a, Tensor b, Tensor c) -> Tensor"),
    // Elementwise, not computed.
    ("addcmul",                 Kind::Pointwise,  "aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor"),
    ("addcmul_",                Kind::Pointwise,  "aten::addcmul_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)"),
    ("addcdiv",                 Kind::Pointwise,  "aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor"),
    ("addcdiv_",                Kind::Pointwise,  "aten::addcdiv_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)"),
    ("lerp",                    Kind::Pointwise,  "aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor"),
    ("lerp_tensor",             Kind::Pointwise,  "aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor"),
    ("lerp_",                   Kind::Pointwise,  "aten::lerp_.Scalar(Tensor(a!) self, Tensor end, Scalar weight) -> Tensor(a!)"),
    ("lerp_tensor_",            Kind::Pointwise,  "aten::lerp_.Tensor(Tensor(a!) self, Tensor end, Tensor weight) -> Tensor(a!)"),
    ("atan2",                   Kind::Pointwise,  "aten::atan2(Tensor self, Tensor other) -> Tensor"),
    ("hardswish",               Kind::Pointwise,  "aten::hardswish(Tensor self) -> Tensor"),
    ("hardsigmoid",             Kind::Pointwise,  "aten::hardsigmoid(Tensor self) -> Tensor"),
    ("leaky_relu",              Kind::Pointwise,  "aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor"),
    ("elu",                     Kind::Pointwise,  "aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor"),
    ("softplus",                Kind::Pointwise,  "aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor"),
    ("mish",                    Kind::Pointwise,  "aten::mish(Tensor self) -> Tensor"),
    ("erfinv",                  Kind::Pointwise,  "aten::erfinv(Tensor self) -> Tensor"),
    ("lgamma",                  Kind::Pointwise,  "aten::lgamma(Tensor self) -> Tensor"),
    ("digamma",                 Kind::Pointwise,  "aten::digamma(Tensor self) -> Tensor"),
    ("frac",                    Kind::Pointwise,  "aten::frac(Tensor self) -> Tensor"),
    ("sigmoid_backward",        Kind::Pointwise,  "aten::sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor"),
    ("tanh_backward",           Kind::Pointwise,  "aten::tanh_backward(Tensor grad_output, Tensor output) -> Tensor"),
    ("silu_backward",           Kind::Pointwise,  "aten::silu_backward(Tensor grad_output, Tensor self) -> Tensor"),
    ("gelu_backward",           Kind::Pointwise,  r#"aten::gelu_backward(Tensor grad_output, Tensor self, *, str approximate="none") -> Tensor"#),
    ("native_dropout_backward", Kind::Pointwise,  "aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor"),
];
