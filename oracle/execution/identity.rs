//! Calls that give back the elements they take: `x * 1`, `x / 1`, `x - 0`, `x ** 1`, and `x + 0` of integers.
//!
//! These laws hold for every element exactly, up to the bits of a NaN. `x + 0.0` is none of them: -0.0 becomes 0.0. Nor
//! is `x * 1` of complex numbers: an infinite part times the 0 of the other factor is no number.

use super::domain::{Operand, Pointwise, Rounding};
use super::number::Number;
use crate::graph::{Dtype, DtypeClass};
use crate::ops::{Binary, Unary};

/// Whether `op` of an element and `number` is the element, computed in `dtype`. `first` says whether the number is the
/// first operand; `alpha` is the factor of the second one of sums and differences.
pub fn is_neutral(
    op: Binary,
    (number, first): (Number, bool),
    alpha: Number,
    rounding: Rounding,
    dtype: Dtype,
) -> bool {
    let class = dtype.class();
    let (is_int, is_float) = (class == DtypeClass::Int, class == DtypeClass::Float);
    let is_zero = number.is(0);
    let is_negative = matches!(number, Number::Float(x) if x.is_sign_negative());
    match op {
        Binary::Mul => class <= DtypeClass::Float && number.is(1),
        Binary::Div => !first && number.is(1) && (is_int || is_float && rounding == Rounding::True),
        Binary::Pow => !first && number.is(1) && (is_int || is_float),
        Binary::Add if first => alpha.is(1) && is_zero && (is_int || is_float && is_negative),
        Binary::Add => is_zero && (is_int || is_float && is_negative && alpha.is(1)),
        Binary::Sub => !first && is_zero && (is_int || is_float && !is_negative && alpha.is(1)),
        _ => false,
    }
}

/// The same function written in the one way: the larger of an element and 0 is `relu`, of zeros of either sign and of
/// NaN too.
pub(super) fn written<'o, 'c>(
    function: Pointwise,
    operands: &'o [Operand<'c>],
) -> (Pointwise, &'o [Operand<'c>]) {
    let is_zero =
        |number: Number| number.is(0) && !matches!(number, Number::Float(x) if x.is_sign_negative());
    match (function, operands) {
        (Pointwise::Binary(Binary::ClampMin, ..), [_, Operand::Number(n)]) if is_zero(*n) => {
            (Pointwise::Unary(Unary::Relu, false), &operands[..1])
        }
        _ => (function, operands),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Concrete;
    use super::super::domain::Domain;
    use super::*;

    const OPS: [Binary; 7] =
        [Binary::Mul, Binary::Div, Binary::Pow, Binary::Add, Binary::Sub, Binary::Maximum, Binary::BitwiseOr];

    /// Bits that are hard to keep: zeros of both signs, subnormals, the largest, infinities, and what lies between.
    fn cells(dtype: Dtype) -> Vec<u64> {
        let bits = dtype.itemsize() * 8;
        let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        if dtype == Dtype::Bool {
            return vec![0, 1];
        }
        let mut cells: Vec<u64> = (0..bits).flat_map(|bit| [1u64 << bit, (1u64 << bit) - 1]).collect();
        cells.extend(cells.clone().into_iter().map(|cell| !cell & mask));
        let steps = (0..500u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - bits));
        cells.extend(steps);
        cells.into_iter().map(|cell| cell & mask).collect()
    }

    /// What is called neutral leaves every element as it is.
    #[test]
    fn neutral_numbers_change_nothing() {
        let numbers = Concrete::default();
        let mut found = 0;
        for dtype in
            [Dtype::Bool, Dtype::U8, Dtype::I16, Dtype::I64, Dtype::F16, Dtype::BF16, Dtype::F32, Dtype::F64]
        {
            let cells = cells(dtype);
            let is_nan = |cell: u64| match dtype.class() {
                DtypeClass::Float => {
                    f64::from_bits(numbers.cast(&[cell], dtype, Dtype::F64).unwrap()[0]).is_nan()
                }
                _ => false,
            };
            let given =
                [Number::Int(0), Number::Int(1), Number::Float(1.0), Number::Float(0.0), Number::Float(-0.0)];
            for (op, number) in OPS.into_iter().flat_map(|op| given.map(|number| (op, number))) {
                for (first, alpha) in [(false, 1), (true, 1), (false, 2), (true, 2)] {
                    let alpha = Number::Int(alpha);
                    let fits = dtype.class() == DtypeClass::Float || !matches!(number, Number::Float(_));
                    if !fits || !is_neutral(op, (number, first), alpha, Rounding::True, dtype) {
                        continue;
                    }
                    // A true quotient of integers is a float.
                    if op == Binary::Div && dtype.class() != DtypeClass::Float {
                        continue;
                    }
                    found += 1;
                    let function = Pointwise::Binary(op, alpha, Rounding::True);
                    let (one, other) = (Operand::Number(number), Operand::Cells(&cells));
                    let operands = if first { [one, other] } else { [other, one] };
                    let computed = numbers.pointwise(function, dtype, &operands, cells.len()).unwrap();
                    let kept = computed.iter().zip(&cells).all(|(&a, &b)| a == b || is_nan(a) && is_nan(b));
                    assert!(kept, "{op:?} {number:?} {first} {dtype:?}");
                }
            }
        }
        assert_eq!(found, 117);
    }

    #[test]
    fn what_rounds_or_changes_a_sign_is_not_neutral() {
        let is = |op, number, first, alpha, dtype| {
            is_neutral(op, (number, first), Number::Int(alpha), Rounding::True, dtype)
        };
        assert!(!is(Binary::Add, Number::Float(0.0), false, 1, Dtype::F32));
        assert!(!is(Binary::Add, Number::Int(0), false, 1, Dtype::F32));
        assert!(!is(Binary::Sub, Number::Float(-0.0), false, 1, Dtype::F32));
        assert!(!is(Binary::Sub, Number::Int(0), true, 1, Dtype::I64));
        assert!(!is(Binary::Add, Number::Int(0), true, 2, Dtype::I64));
        assert!(!is(Binary::Div, Number::Int(1), true, 1, Dtype::F32));
        assert!(!is(Binary::Mul, Number::Int(1), false, 1, Dtype::C64));
        assert!(!is(Binary::Mul, Number::Float(1.5), false, 1, Dtype::I64));
        let floor =
            is_neutral(Binary::Div, (Number::Int(1), false), Number::Int(1), Rounding::Floor, Dtype::F32);
        assert!(!floor);
    }
}
