//! Rules of elementwise operators: broadcasting, promotion, and strides that follow the operands'.

use super::call::{Call, Operand, Rule, Stop, fault};
use super::promote::{DEFAULT_FLOAT, ResultType, part_of};
use super::size::Size;
use super::{Inferred, Output, TensorMeta, one};
use crate::graph::{Dtype, DtypeClass, Value};
use crate::ops::{Binary, Kind, Unary};

/// The operands of one elementwise operator, gathered in the order of its parameters.
#[derive(Default)]
struct Operands {
    tensors: Vec<TensorMeta>,
    result: ResultType,
    /// A tensor's dtype is not known.
    open: bool,
    /// One of them is a bool.
    has_bool: bool,
    /// One of them is complex.
    has_complex: bool,
}

impl Operands {
    /// Adds an operand; `promotes` says whether it counts for the dtype of the result.
    fn add(&mut self, operand: Operand, promotes: bool) {
        match operand {
            Operand::Tensor(tensor) => {
                self.has_bool |= tensor.dtype == Some(Dtype::Bool);
                self.has_complex |= tensor.dtype.is_some_and(|dtype| dtype.class() == DtypeClass::Complex);
                match tensor.dtype {
                    Some(dtype) if promotes => self.result.tensor(dtype, tensor.shape.len()),
                    None if promotes => self.open = true,
                    _ => {}
                }
                self.tensors.push(tensor);
            }
            Operand::Number(class) if promotes => {
                self.has_bool |= class == DtypeClass::Bool;
                self.has_complex |= class == DtypeClass::Complex;
                self.result.number(class);
            }
            Operand::Number(_) | Operand::Absent => {}
        }
    }

    fn dtype(&self, call: &Call) -> Rule<Dtype> {
        if self.open {
            return Err(Stop::Undecided);
        }
        match self.result.result() {
            Some(dtype) => Ok(dtype),
            None => {
                let names: Vec<&str> = self.tensors.iter().filter_map(|t| t.dtype).map(Dtype::name).collect();
                fault(format!("{} has no common dtype for {}", call.name(), names.join(" and ")))
            }
        }
    }

    /// A fresh result of the broadcast shape.
    fn fresh(&self, call: &Call, dtype: Option<Dtype>) -> Rule<Inferred> {
        let shapes: Vec<&[Size]> = self.tensors.iter().map(|t| t.shape.as_slice()).collect();
        let shape = call.broadcast(&shapes)?;
        one(TensorMeta::like(&self.tensors, shape, dtype))
    }
}

/// Integers and bools become the default float.
pub(super) fn to_float(dtype: Dtype) -> Dtype {
    if dtype.class() < DtypeClass::Float { DEFAULT_FLOAT } else { dtype }
}

pub(super) fn unary(call: &Call, kind: Unary) -> Rule<Inferred> {
    let tensor = call.tensor(call.param(0))?;
    let dtype = tensor.dtype.map(|dtype| unary_dtype(call, kind, dtype)).transpose()?;
    let shape = tensor.shape.clone();
    one(TensorMeta::like(&[tensor], shape, dtype))
}

fn unary_dtype(call: &Call, kind: Unary, dtype: Dtype) -> Rule<Dtype> {
    use Unary::*;
    let class = dtype.class();
    let refused = match kind {
        Neg => class == DtypeClass::Bool,
        // In place there is no room for a real result.
        Abs => class == DtypeClass::Bool || (class == DtypeClass::Complex && call.name().ends_with('_')),
        Relu => matches!(class, DtypeClass::Bool | DtypeClass::Complex),
        Gelu | Silu => class < DtypeClass::Float,
        BitwiseNot => class > DtypeClass::Int,
        Sign | Floor | Ceil | Round | Trunc => class == DtypeClass::Complex,
        _ => false,
    };
    if refused {
        return fault(format!("{} does not take {}", call.name(), dtype.name()));
    }
    Ok(match kind {
        Relu | Neg | Sign | Floor | Ceil | Round | Trunc | BitwiseNot | Gelu | Silu => dtype,
        Abs => part_of(dtype).unwrap_or(dtype),
        Square if class == DtypeClass::Bool => Dtype::I64,
        Square => dtype,
        LogicalNot | Isnan | Isinf => Dtype::Bool,
        Exp | Exp2 | Expm1 | Log | Log2 | Log1p | Log10 | Sqrt | Rsqrt | Reciprocal | Sigmoid | Tanh
        | Sin | Cos | Tan | Asin | Acos | Atan | Sinh | Cosh | Asinh | Acosh | Atanh | Erf | Erfc => {
            to_float(dtype)
        }
    })
}

pub(super) fn binary(call: &Call, kind: Binary) -> Rule<Inferred> {
    let mut operands = Operands::default();
    for index in 0..2 {
        operands.add(call.operand(call.param(index))?, true);
    }
    if operands.tensors.is_empty() {
        return Err(Stop::Undecided);
    }
    use Binary::*;
    let dtype = match kind {
        Eq | Ne | Lt | Le | Gt | Ge | LogicalAnd | LogicalOr | LogicalXor => Dtype::Bool,
        _ => operands.dtype(call)?,
    };
    let rounds = call.schema.param("rounding_mode").is_some() && call.has("rounding_mode");
    if let Some(mode) =
        call.word("rounding_mode").filter(|mode| rounds && !matches!(*mode, "floor" | "trunc"))
    {
        return fault(format!("{} does not round by {mode:?}", call.name()));
    }
    let whole = rounds || matches!(kind, FloorDivide | Remainder | Fmod);
    let ordered = matches!(kind, Lt | Le | Gt | Ge | Maximum | Minimum | ClampMin | ClampMax);
    if operands.has_complex && (whole || ordered) {
        return fault(format!("{} does not take complex numbers", call.name()));
    }
    let negative = |name: &str| matches!(call.value(name), Some(Value::Int(n)) if n < 0);
    let dtype = match kind {
        _ if whole && dtype == Dtype::Bool => return fault(format!("{} does not take bool", call.name())),
        Pow if dtype.class() < DtypeClass::Float && negative("exponent") => {
            return fault(format!("{} of {} by a negative integer", call.name(), dtype.name()));
        }
        Div if !rounds => to_float(dtype),
        Sub | Rsub if operands.has_bool => return fault(format!("{} does not take bool", call.name())),
        // Eager and traced PyTorch differ.
        Pow if dtype == Dtype::Bool => return Err(Stop::Undecided),
        BitwiseAnd | BitwiseOr | BitwiseXor if dtype.class() > DtypeClass::Int => {
            return fault(format!("{} does not take {}", call.name(), dtype.name()));
        }
        _ => dtype,
    };
    if dtype.class() < DtypeClass::Float && matches!(call.value("alpha"), Some(Value::Float(_))) {
        return fault(format!("{} of {} does not take a float alpha", call.name(), dtype.name()));
    }
    if dtype != Dtype::Bool && matches!(call.value("alpha"), Some(Value::Bool(_))) {
        return fault(format!("{} of {} does not take a bool as alpha", call.name(), dtype.name()));
    }
    let result = operands.fresh(call, Some(dtype))?;
    // These may be composed of other operators, which take the strides differently.
    let composed = matches!(kind, LogicalAnd | LogicalOr | LogicalXor | FloorDivide)
        || rounds
        || (kind == Pow && matches!(call.operand(call.param(0))?, Operand::Number(_)));
    match result {
        Inferred::One(Output::Tensor(tensor)) if composed => {
            let broadcasts = operands.tensors.iter().any(|t| t.shape != tensor.shape);
            let loose = TensorMeta::loose(tensor.shape.clone(), tensor.dtype);
            one(if broadcasts { loose } else { tensor.packed() })
        }
        result => Ok(result),
    }
}

/// `where`, `masked_fill`, `clamp`, `fma`, and elementwise operators that are not computed.
pub(super) fn others(call: &Call) -> Rule<Inferred> {
    let mut operands = Operands::default();
    match call.info.kind {
        Kind::Where => {
            let condition = call.tensor("condition")?;
            if let Some(dtype) = condition.dtype.filter(|d| !matches!(d, Dtype::Bool | Dtype::U8)) {
                return fault(format!("the condition of where is {}, not bool", dtype.name()));
            }
            operands.add(Operand::Tensor(condition), false);
            operands.add(call.operand("self")?, true);
            operands.add(call.operand("other")?, true);
        }
        Kind::MaskedFill => {
            let tensor = call.tensor("self")?;
            let mask = call.tensor("mask")?;
            if let Some(dtype) = mask.dtype.filter(|&d| d != Dtype::Bool) {
                return fault(format!("the mask of {} is {}, not bool", call.name(), dtype.name()));
            }
            if let Operand::Tensor(value) = call.operand("value")?
                && !value.shape.is_empty()
            {
                return fault(format!("the value of {} is {}", call.name(), call.text(&value.shape)));
            }
            let dtype = tensor.dtype;
            operands.add(Operand::Tensor(tensor), false);
            operands.add(Operand::Tensor(mask), false);
            return operands.fresh(call, dtype);
        }
        Kind::Clamp => {
            for name in ["self", "min", "max"] {
                operands.add(call.operand(name)?, true);
            }
            if !call.has("min") && !call.has("max") {
                return fault(format!("{} has neither min nor max", call.name()));
            }
            if operands.has_complex {
                return fault(format!("{} does not take complex numbers", call.name()));
            }
        }
        _ => {
            for param in &call.schema.params {
                if param.ty == "Tensor" && !(param.write && param.keyword_only) {
                    operands.add(call.operand(&param.name)?, true);
                }
            }
            // A weight without dimensions may have another one.
            let with_dims = operands.tensors.iter().filter(|tensor| !tensor.shape.is_empty());
            let mut dtypes = with_dims.filter_map(|tensor| tensor.dtype);
            let first = dtypes.next();
            if call.name().starts_with("lerp") && dtypes.any(|dtype| Some(dtype) != first) {
                return fault(format!("the tensors of {} have several dtypes", call.name()));
            }
            let dtype = operands.dtype(call)?;
            let makes_floats = call.info.kind == Kind::Pointwise && !call.name().starts_with("addcmul");
            let dtype = if makes_floats { to_float(dtype) } else { dtype };
            return operands.fresh(call, Some(dtype));
        }
    }
    let dtype = operands.dtype(call)?;
    operands.fresh(call, Some(dtype))
}
