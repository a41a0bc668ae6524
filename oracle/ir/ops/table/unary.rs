//! Functions of one element.

use super::Row;
use crate::ops::kind::Kind;

/// Functions of one element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Unary {
    Relu,
    Neg,
    Abs,
    Sign,
    Exp,
    Exp2,
    Expm1,
    Log,
    Log2,
    Log1p,
    Sqrt,
    Rsqrt,
    Reciprocal,
    Sigmoid,
    Silu,
    Gelu,
    Tanh,
    Sin,
    Cos,
    Log10,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Asinh,
    Acosh,
    Atanh,
    Erf,
    Erfc,
    Square,
    Floor,
    Ceil,
    /// Half to even.
    Round,
    Trunc,
    Isnan,
    Isinf,
    LogicalNot,
    BitwiseNot,
}

impl Unary {
    /// Whether it gives a whole number of each number: constant but for jumps.
    pub fn is_step(self) -> bool {
        matches!(self, Unary::Sign | Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc)
    }

    /// Whether it takes sums, products, quotients, choices and whole numbers alone.
    pub fn is_rational(self) -> bool {
        use Unary::*;
        self.is_step()
            || matches!(
                self,
                Relu | Neg | Abs | Reciprocal | Square | Isnan | Isinf | LogicalNot | BitwiseNot
            )
    }
}

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    ("relu",         Kind::Unary(Unary::Relu),       "aten::relu(Tensor self) -> Tensor"),
    ("neg",          Kind::Unary(Unary::Neg),        "aten::neg(Tensor self) -> Tensor"),
    ("abs",          Kind::Unary(Unary::Abs),        "aten::abs(Tensor self) -> Tensor"),
    ("sign",         Kind::Unary(Unary::Sign),       "aten::sign(Tensor self) -> Tensor"),
    ("exp",          Kind::Unary(Unary::Exp),        "aten::exp(Tensor self) -> Tensor"),
    ("exp2",         Kind::Unary(Unary::Exp2),       "aten::exp2(Tensor self) -> Tensor"),
    ("expm1",        Kind::Unary(Unary::Expm1),      "aten::expm1(Tensor self) -> Tensor"),
    ("log",          Kind::Unary(Unary::Log),        "aten::log(Tensor self) -> Tensor"),
    ("log2",         Kind::Unary(Unary::Log2),       "aten::log2(Tensor self) -> Tensor"),
    ("log1p",        Kind::Unary(Unary::Log1p),      "aten::log1p(Tensor self) -> Tensor"),
    ("sqrt",         Kind::Unary(Unary::Sqrt),       "aten::sqrt(Tensor self) -> Tensor"),
    ("rsqrt",        Kind::Unary(Unary::Rsqrt),      "aten::rsqrt(Tensor self) -> Tensor"),
    ("reciprocal",   Kind::Unary(Unary::Reciprocal), "aten::reciprocal(Tensor self) -> Tensor"),
    ("sigmoid",      Kind::Unary(Unary::Sigmoid),    "aten::sigmoid(Tensor self) -> Tensor"),
    ("silu",         Kind::Unary(Unary::Silu),       "aten::silu(Tensor self) -> Tensor"),
    ("gelu",         Kind::Unary(Unary::Gelu),       r#"aten::gelu(Tensor self, *, str approximate="none") -> Tensor"#),
    ("tanh",         Kind::Unary(Unary::Tanh),       "aten::tanh(Tensor self) -> Tensor"),
    ("sin",          Kind::Unary(Unary::Sin),        "aten::sin(Tensor self) -> Tensor"),
    ("cos",          Kind::Unary(Unary::Cos),        "aten::cos(Tensor self) -> Tensor"),
    ("log10",        Kind::Unary(Unary::Log10),      "aten::log10(Tensor self) -> Tensor"),
    ("tan",          Kind::Unary(Unary::Tan),        "aten::tan(Tensor self) -> Tensor"),
    ("asin",         Kind::Unary(Unary::Asin),       "aten::asin(Tensor self) -> Tensor"),
    ("acos",         Kind::Unary(Unary::Acos),       "aten::acos(Tensor self) -> Tensor"),
    ("atan",         Kind::Unary(Unary::Atan),       "aten::atan(Tensor self) -> Tensor"),
    ("sinh",         Kind::Unary(Unary::Sinh),       "aten::sinh(Tensor self) -> Tensor"),
    ("cosh",         Kind::Unary(Unary::Cosh),       "aten::cosh(Tensor self) -> Tensor"),
    ("asinh",        Kind::Unary(Unary::Asinh),      "aten::asinh(Tensor self) -> Tensor"),
    ("acosh",        Kind::Unary(Unary::Acosh),      "aten::acosh(Tensor self) -> Tensor"),
    ("atanh",        Kind::Unary(Unary::Atanh),      "aten::atanh(Tensor self) -> Tensor"),
    ("erf",          Kind::Unary(Unary::Erf),        "aten::erf(Tensor self) -> Tensor"),
    ("erfc",         Kind::Unary(Unary::Erfc),       "aten::erfc(Tensor self) -> Tensor"),
    ("square",       Kind::Unary(Unary::Square),     "aten::square(Tensor self) -> Tensor"),
    ("floor",        Kind::Unary(Unary::Floor),      "aten::floor(Tensor self) -> Tensor"),
    ("ceil",         Kind::Unary(Unary::Ceil),       "aten::ceil(Tensor self) -> Tensor"),
    ("round",        Kind::Unary(Unary::Round),      "aten::round(Tensor self) -> Tensor"),
    ("trunc",        Kind::Unary(Unary::Trunc),      "aten::trunc(Tensor self) -> Tensor"),
    ("logical_not",  Kind::Unary(Unary::LogicalNot), "aten::logical_not(Tensor self) -> Tensor"),
    ("bitwise_not",  Kind::Unary(Unary::BitwiseNot), "aten::bitwise_not(Tensor self) -> Tensor"),
    ("isnan",        Kind::Unary(Unary::Isnan),      "aten::isnan(Tensor self) -> Tensor"),
    ("isinf",        Kind::Unary(Unary::Isinf),      "aten::isinf(Tensor self) -> Tensor"),
    ("relu_",        Kind::Unary(Unary::Relu),       "aten::relu_(Tensor(a!) self) -> Tensor(a!)"),
    ("neg_",         Kind::Unary(Unary::Neg),        "aten::neg_(Tensor(a!) self) -> Tensor(a!)"),
    ("abs_",         Kind::Unary(Unary::Abs),        "aten::abs_(Tensor(a!) self) -> Tensor(a!)"),
    ("sign_",        Kind::Unary(Unary::Sign),       "aten::sign_(Tensor(a!) self) -> Tensor(a!)"),
    ("exp_",         Kind::Unary(Unary::Exp),        "aten::exp_(Tensor(a!) self) -> Tensor(a!)"),
    ("exp2_",        Kind::Unary(Unary::Exp2),       "aten::exp2_(Tensor(a!) self) -> Tensor(a!)"),
    ("expm1_",       Kind::Unary(Unary::Expm1),      "aten::expm1_(Tensor(a!) self) -> Tensor(a!)"),
    ("log_",         Kind::Unary(Unary::Log),        "aten::log_(Tensor(a!) self) -> Tensor(a!)"),
    ("log2_",        Kind::Unary(Unary::Log2),       "aten::log2_(Tensor(a!) self) -> Tensor(a!)"),
    ("log1p_",       Kind::Unary(Unary::Log1p),      "aten::log1p_(Tensor(a!) self) -> Tensor(a!)"),
    ("sqrt_",        Kind::Unary(Unary::Sqrt),       "aten::sqrt_(Tensor(a!) self) -> Tensor(a!)"),
    ("rsqrt_",       Kind::Unary(Unary::Rsqrt),      "aten::rsqrt_(Tensor(a!) self) -> Tensor(a!)"),
    ("reciprocal_",  Kind::Unary(Unary::Reciprocal), "aten::reciprocal_(Tensor(a!) self) -> Tensor(a!)"),
    ("sigmoid_",     Kind::Unary(Unary::Sigmoid),    "aten::sigmoid_(Tensor(a!) self) -> Tensor(a!)"),
    ("silu_",        Kind::Unary(Unary::Silu),       "aten::silu_(Tensor(a!) self) -> Tensor(a!)"),
    ("gelu_",        Kind::Unary(Unary::Gelu),       r#"aten::gelu_(Tensor(a!) self, *, str approximate="none") -> Tensor(a!)"#),
    ("tanh_",        Kind::Unary(Unary::Tanh),       "aten::tanh_(Tensor(a!) self) -> Tensor(a!)"),
    ("sin_",         Kind::Unary(Unary::Sin),        "aten::sin_(Tensor(a!) self) -> Tensor(a!)"),
    ("cos_",         Kind::Unary(Unary::Cos),        "aten::cos_(Tensor(a!) self) -> Tensor(a!)"),
    ("square_",      Kind::Unary(Unary::Square),     "aten::square_(Tensor(a!) self) -> Tensor(a!)"),
    ("floor_",       Kind::Unary(Unary::Floor),      "aten::floor_(Tensor(a!) self) -> Tensor(a!)"),
    ("ceil_",        Kind::Unary(Unary::Ceil),       "aten::ceil_(Tensor(a!) self) -> Tensor(a!)"),
    ("round_",       Kind::Unary(Unary::Round),      "aten::round_(Tensor(a!) self) -> Tensor(a!)"),
    ("trunc_",       Kind::Unary(Unary::Trunc),      "aten::trunc_(Tensor(a!) self) -> Tensor(a!)"),
    ("logical_not_", Kind::Unary(Unary::LogicalNot), "aten::logical_not_(Tensor(a!) self) -> Tensor(a!)"),
    ("bitwise_not_", Kind::Unary(Unary::BitwiseNot), "aten::bitwise_not_(Tensor(a!) self) -> Tensor(a!)"),
    ("neg_out",      Kind::Unary(Unary::Neg),        "aten::neg.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"),
    ("abs_out",      Kind::Unary(Unary::Abs),        "aten::abs.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"),
    ("exp_out",      Kind::Unary(Unary::Exp),        "aten::exp.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"),
    ("sqrt_out",     Kind::Unary(Unary::Sqrt),       "aten::sqrt.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"),
    ("rsqrt_out",    Kind::Unary(Unary::Rsqrt),      "aten::rsqrt.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"),
    ("sigmoid_out",  Kind::Unary(Unary::Sigmoid),    "aten::sigmoid.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"),
];
