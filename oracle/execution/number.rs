//! Python numbers: sizes, scalars, and what `item` takes out of a tensor.

use super::domain::{Outcome, raise, refuse};
use super::hash::mix;
use crate::graph::{Dtype, DtypeClass};
use crate::ops::Number as Op;
use std::fmt;

/// A Python number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Number {
    /// `True` or `False`.
    Bool(bool),
    /// An int. Python's have no bound; the interpreter's have 64 bits.
    Int(i64),
    /// A float.
    Float(f64),
    /// A complex number.
    Complex(f64, f64),
    /// A number that the domain knows only as a term.
    Term(u64),
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Bool(b) => write!(f, "{b}"),
            Number::Int(n) => write!(f, "{n}"),
            Number::Float(x) => write!(f, "{x:?}"),
            Number::Complex(re, im) => write!(f, "{re:?}{im:+?}i"),
            Number::Term(term) => write!(f, "term {term:016x}"),
        }
    }
}

impl Number {
    /// As a float; 0 for a term.
    pub fn float(self) -> f64 {
        match self {
            Number::Bool(b) => f64::from(u8::from(b)),
            Number::Int(n) => n as f64,
            Number::Float(x) | Number::Complex(x, _) => x,
            Number::Term(_) => 0.0,
        }
    }

    /// As an integer, where it is one.
    pub fn int(self) -> Option<i64> {
        match self {
            Number::Bool(b) => Some(i64::from(b)),
            Number::Int(n) => Some(n),
            _ => None,
        }
    }

    /// Whether it equals an integer, whatever its type.
    pub fn is(self, n: i64) -> bool {
        match self {
            Number::Bool(_) | Number::Int(_) => self.int() == Some(n),
            Number::Float(x) => x == n as f64,
            Number::Complex(x, y) => x == n as f64 && y == 0.0,
            Number::Term(_) => false,
        }
    }

    /// The dtype that a tensor made of it has (`torch.tensor(number)` under the default dtype).
    pub fn dtype(self) -> Dtype {
        match self {
            Number::Bool(_) => Dtype::Bool,
            Number::Int(_) | Number::Term(_) => Dtype::I64,
            Number::Float(_) => Dtype::F32,
            Number::Complex(..) => Dtype::C64,
        }
    }

    /// Whether PyTorch refuses to make an element of it: it lies outside the dtype's range. A negative integer that
    /// fits an unsigned dtype by its magnitude wraps. Source: `c10::overflows` in c10/util/TypeCast.h.
    pub fn overflows(self, dtype: Dtype) -> bool {
        let Some((low, high)) = range(dtype) else { return false };
        match self {
            Number::Bool(_) | Number::Term(_) => false,
            Number::Int(n) if n < 0 && low == 0.0 => -(n as f64) > high,
            Number::Int(n) => (n as f64) < low || n as f64 > high,
            Number::Float(x) | Number::Complex(x, _) => {
                let float = dtype.class() >= DtypeClass::Float;
                match x {
                    // float8_e4m3fn has no infinity.
                    _ if x.is_infinite() => !float || dtype == Dtype::F8E4M3,
                    _ if x.is_nan() => !float,
                    _ => x < low || x > high,
                }
            }
        }
    }

    /// A hash of the number. Numbers that Python takes for equal have equal hashes, but for zeros of either sign.
    pub fn key(self) -> u64 {
        match self {
            Number::Int(n) if n as f64 as i64 != n => mix(0x6269, n as u64),
            Number::Bool(_) | Number::Int(_) | Number::Float(_) => mix(0x6E75, self.float().to_bits()),
            Number::Complex(x, y) => mix(mix(0x6370, x.to_bits()), y.to_bits()),
            Number::Term(term) => mix(0x7465, term),
        }
    }

    /// Python's arithmetic. Integers that leave 64 bits become floats.
    pub fn apply(op: Op, operands: &[Number]) -> Outcome<Number> {
        if op == Op::Other {
            return Err(refuse!("a function of numbers that is not computed"));
        }
        if operands.iter().any(|n| matches!(n, Number::Term(_))) {
            let start = mix(0x6F70, op as u64);
            // A float makes the result one.
            let key = |n: &Number| mix(n.key(), u64::from(matches!(n, Number::Float(_))));
            return Ok(Number::Term(operands.iter().fold(start, |all, n| mix(all, key(n)))));
        }
        match (op, operands) {
            (Op::Sum, numbers) => {
                numbers.iter().try_fold(Number::Int(0), |sum, &n| Number::apply(Op::Add, &[sum, n]))
            }
            (Op::Max | Op::Min, [first, rest @ ..]) => Ok(rest.iter().fold(*first, |best, &n| {
                let better = if op == Op::Max { n.float() > best.float() } else { n.float() < best.float() };
                if better { n } else { best }
            })),
            (Op::Neg, &[a]) => Number::apply(Op::Sub, &[Number::Int(0), a]),
            (Op::Not, &[a]) => Ok(Number::Bool(a.float() == 0.0)),
            (_, &[a, b]) => binary(op, a, b),
            _ => Err(raise!("{op:?} does not take {} numbers", operands.len())),
        }
    }
}

/// The least and the greatest finite number of a dtype; of a complex one, those of its parts. `None` for bool, which
/// takes every number.
pub(super) fn range(dtype: Dtype) -> Option<(f64, f64)> {
    let signed = |bits: i32| (-(2f64.powi(bits - 1)), 2f64.powi(bits - 1) - 1.0);
    let unsigned = |bits: i32| (0.0, 2f64.powi(bits) - 1.0);
    let float = |greatest: f64| (-greatest, greatest);
    Some(match dtype {
        Dtype::I8 => signed(8),
        Dtype::I16 => signed(16),
        Dtype::I32 => signed(32),
        Dtype::I64 => signed(64),
        Dtype::U8 => unsigned(8),
        Dtype::U16 => unsigned(16),
        Dtype::U32 => unsigned(32),
        Dtype::U64 => unsigned(64),
        Dtype::F8E4M3 => float(448.0),
        Dtype::F8E5M2 => float(57344.0),
        Dtype::F16 => float(65504.0),
        Dtype::BF16 => float(half::bf16::MAX.to_f64()),
        Dtype::F32 | Dtype::C64 => float(f64::from(f32::MAX)),
        Dtype::F64 | Dtype::C128 => float(f64::MAX),
        _ => return None,
    })
}

fn binary(op: Op, a: Number, b: Number) -> Outcome<Number> {
    let (x, y) = (a.float(), b.float());
    let ints = a.int().zip(b.int());
    let arithmetic = |int: fn(i64, i64) -> Option<i64>, float: fn(f64, f64) -> f64| match ints
        .and_then(|(m, n)| int(m, n))
    {
        Some(n) => Number::Int(n),
        None => Number::Float(float(x, y)),
    };
    let needs_divisor = matches!(op, Op::TrueDiv | Op::FloorDiv | Op::Mod);
    if needs_divisor && y == 0.0 {
        return Err(raise!("division by zero"));
    }
    let compare = |int: fn(&i64, &i64) -> bool, float: fn(&f64, &f64) -> bool| {
        Number::Bool(ints.map_or_else(|| float(&x, &y), |(m, n)| int(&m, &n)))
    };
    Ok(match op {
        Op::Add => arithmetic(i64::checked_add, |x, y| x + y),
        Op::Sub => arithmetic(i64::checked_sub, |x, y| x - y),
        Op::Mul => arithmetic(i64::checked_mul, |x, y| x * y),
        Op::TrueDiv => Number::Float(x / y),
        Op::FloorDiv => arithmetic(floor_div, |x, y| (x / y).floor()),
        Op::Mod => arithmetic(|m, n| floor_div(m, n).map(|q| m - q * n), |x, y| x - (x / y).floor() * y),
        Op::Pow => arithmetic(|m, n| m.checked_pow(u32::try_from(n).ok()?), f64::powf),
        Op::Eq => compare(i64::eq, f64::eq),
        Op::Ne => compare(i64::ne, f64::ne),
        Op::Lt => compare(i64::lt, f64::lt),
        Op::Le => compare(i64::le, f64::le),
        Op::Gt => compare(i64::gt, f64::gt),
        Op::Ge => compare(i64::ge, f64::ge),
        Op::And | Op::Or => match (a, b) {
            (Number::Bool(m), Number::Bool(n)) => Number::Bool(if op == Op::And { m & n } else { m | n }),
            _ => match ints {
                Some((m, n)) => Number::Int(if op == Op::And { m & n } else { m | n }),
                None => return Err(raise!("{op:?} takes no floats")),
            },
        },
        Op::Sum | Op::Max | Op::Min | Op::Neg | Op::Not | Op::Other => {
            return Err(raise!("{op:?} does not take 2 numbers"));
        }
    })
}

/// The quotient, rounded down; `None` if it does not fit.
pub(crate) fn floor_div(m: i64, n: i64) -> Option<i64> {
    let quotient = m.checked_div(n)?;
    Some(if m % n != 0 && (m < 0) != (n < 0) { quotient - 1 } else { quotient })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_arithmetic() {
        use Number::*;
        let ap = |op, a, b| Number::apply(op, &[a, b]).unwrap();
        assert_eq!(ap(Op::FloorDiv, Int(-7), Int(2)), Int(-4));
        assert_eq!(ap(Op::Mod, Int(-7), Int(2)), Int(1));
        assert_eq!(ap(Op::FloorDiv, Float(7.0), Int(2)), Float(3.0));
        assert_eq!(ap(Op::TrueDiv, Int(7), Int(2)), Float(3.5));
        assert_eq!(ap(Op::Add, Int(i64::MAX), Int(1)), Float(9223372036854775808.0));
        assert_eq!(ap(Op::Pow, Int(2), Int(-1)), Float(0.5));
        assert_eq!(ap(Op::Ge, Int(3), Float(2.5)), Bool(true));
        assert_eq!(ap(Op::And, Bool(true), Bool(false)), Bool(false));
        assert_eq!(Number::apply(Op::Sum, &[Int(1), Int(2), Int(3)]).unwrap(), Int(6));
        assert_eq!(Number::apply(Op::Max, &[Int(1), Int(5), Int(3)]).unwrap(), Int(5));
        assert!(Number::apply(Op::Mod, &[Int(1), Int(0)]).is_err());
    }

    #[test]
    fn equal_numbers_have_equal_keys() {
        assert_eq!(Number::Int(1).key(), Number::Bool(true).key());
        assert_eq!(Number::Int(2).key(), Number::Float(2.0).key());
        assert_ne!(Number::Float(0.0).key(), Number::Float(-0.0).key());
        assert_ne!(Number::Int(2).key(), Number::Int(3).key());
        let term = Number::Term(7);
        assert_ne!(
            Number::apply(Op::Sub, &[term, Number::Int(1)]).unwrap(),
            Number::apply(Op::Add, &[term, Number::Int(1)]).unwrap()
        );
        assert_ne!(
            Number::apply(Op::Mul, &[term, Number::Int(1)]).unwrap(),
            Number::apply(Op::Mul, &[term, Number::Float(1.0)]).unwrap()
        );
    }
}
