//! Type promotion: the dtype in which an operator computes with operands of different dtypes.
//!
//! Tensors with dimensions decide before tensors without, and those before Python numbers; a lower category
//! counts only where it is of a higher kind (bool < int < float < complex). Source: `at::native::result_type`,
//! `c10::promoteTypes`.

use super::domain::{Outcome, raise};
use super::number::Number;
use crate::graph::{Dtype, DtypeClass};

/// One operand, as far as promotion looks at it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Participant {
    /// A tensor: dtype and number of dimensions.
    Tensor(Dtype, usize),
    /// A Python number.
    Number(Number),
}

/// The dtype that two dtypes promote to.
pub fn promote_types(a: Dtype, b: Dtype) -> Outcome<Dtype> {
    use Dtype::*;
    if a == b {
        return Ok(a);
    }
    let none = || raise!("{} and {} do not promote", a.name(), b.name());
    if [a, b].iter().any(|d| matches!(d, F8E4M3 | F8E5M2)) {
        return Err(none());
    }
    let (low, high) = if a.class() <= b.class() { (a, b) } else { (b, a) };
    let wide_unsigned = |d| matches!(d, U16 | U32 | U64);
    match (low.class(), high.class()) {
        (DtypeClass::Bool, DtypeClass::Int) if wide_unsigned(high) => Err(none()),
        (DtypeClass::Bool, _) => Ok(high),
        (DtypeClass::Int, DtypeClass::Float) => Ok(high),
        (DtypeClass::Int, DtypeClass::Complex) if !wide_unsigned(low) => Ok(high),
        (DtypeClass::Float, DtypeClass::Complex) => Ok(if low == F64 { C128 } else { high }),
        (DtypeClass::Complex, DtypeClass::Complex) => Ok(C128),
        (DtypeClass::Float, DtypeClass::Float) => Ok(match (low, high) {
            (F64, _) | (_, F64) => F64,
            _ => F32,
        }),
        (DtypeClass::Int, DtypeClass::Int) if !wide_unsigned(low) && !wide_unsigned(high) => {
            let signed = |d| if d == U8 { I16 } else { d };
            let (x, y) = (signed(a), signed(b));
            Ok(if x.itemsize() >= y.itemsize() { x } else { y })
        }
        _ => Err(none()),
    }
}

/// The dtype that operands promote to.
pub fn result_type(participants: &[Participant]) -> Outcome<Dtype> {
    let (mut with_dims, mut without, mut numbers) = (None, None, None);
    for participant in participants {
        let (slot, dtype) = match *participant {
            Participant::Tensor(dtype, 0) => (&mut without, dtype),
            Participant::Tensor(dtype, _) => (&mut with_dims, dtype),
            Participant::Number(number) => (&mut numbers, number.dtype()),
        };
        *slot = Some(match *slot {
            Some(known) => promote_types(known, dtype)?,
            None => dtype,
        });
    }
    let combined = combine(with_dims, combine(without, numbers)?)?;
    combined.ok_or_else(|| raise!("there is no operand"))
}

/// A higher category, with a lower one that counts only if it is of a higher kind.
fn combine(high: Option<Dtype>, low: Option<Dtype>) -> Outcome<Option<Dtype>> {
    let (Some(h), Some(l)) = (high, low) else { return Ok(high.or(low)) };
    Ok(Some(match (h.class(), l.class()) {
        (DtypeClass::Complex, _) => h,
        (DtypeClass::Float, DtypeClass::Complex) if h == Dtype::F64 => Dtype::C128,
        (DtypeClass::Float, DtypeClass::Complex) => Dtype::C64,
        (DtypeClass::Float, _) => h,
        (DtypeClass::Bool, _) | (_, DtypeClass::Float | DtypeClass::Complex) => promote_types(h, l)?,
        _ => h,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Dtype::*;
    use Participant::{Number as N, Tensor as T};

    /// The table of `torch.promote_types` (2.15), by the order of `Dtype::ALL`; `-` raises.
    #[test]
    fn table() {
        let order = [F64, F32, F16, BF16, C64, I64, I32, I16, I8, U8, U16, Bool];
        let table = "
            f64 f64 f64 f64 c128 f64 f64 f64 f64 f64 f64 f64
            f64 f32 f32 f32 c64  f32 f32 f32 f32 f32 f32 f32
            f64 f32 f16 f32 c64  f16 f16 f16 f16 f16 f16 f16
            f64 f32 f32 bf16 c64 bf16 bf16 bf16 bf16 bf16 bf16 bf16
            c128 c64 c64 c64 c64 c64 c64 c64 c64 c64 - c64
            f64 f32 f16 bf16 c64 i64 i64 i64 i64 i64 - i64
            f64 f32 f16 bf16 c64 i64 i32 i32 i32 i32 - i32
            f64 f32 f16 bf16 c64 i64 i32 i16 i16 i16 - i16
            f64 f32 f16 bf16 c64 i64 i32 i16 i8 i16 - i8
            f64 f32 f16 bf16 c64 i64 i32 i16 i16 u8 - u8
            f64 f32 f16 bf16 - - - - - - u16 -
            f64 f32 f16 bf16 c64 i64 i32 i16 i8 u8 - bool";
        for (a, row) in order.into_iter().zip(table.trim().lines()) {
            for (b, expected) in order.into_iter().zip(row.split_whitespace()) {
                assert_eq!(promote_types(a, b).ok(), Dtype::parse_short(expected), "{a:?} {b:?}");
            }
        }
        assert!(promote_types(F8E4M3, F32).is_err());
        assert_eq!(promote_types(F8E4M3, F8E4M3).unwrap(), F8E4M3);
    }

    #[test]
    fn categories() {
        let of = |parts: &[Participant]| result_type(parts).unwrap();
        assert_eq!(of(&[T(BF16, 1), T(F32, 0)]), BF16);
        assert_eq!(of(&[T(BF16, 1), N(Number::Float(0.1))]), BF16);
        assert_eq!(of(&[T(I64, 1), N(Number::Float(0.1))]), F32);
        assert_eq!(of(&[T(I32, 1), N(Number::Int(1))]), I32);
        assert_eq!(of(&[T(Bool, 1), N(Number::Int(1))]), I64);
        assert_eq!(of(&[T(I8, 1), T(I64, 0)]), I8);
        assert_eq!(of(&[T(I8, 1), T(F64, 0)]), F64);
        assert_eq!(of(&[T(F64, 0), N(Number::Complex(0.0, 1.0))]), C128);
        assert_eq!(of(&[N(Number::Int(1)), N(Number::Float(2.0))]), F32);
    }
}
