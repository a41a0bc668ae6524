//! Python's arithmetic on integers.

use super::Number;

impl Number {
    /// The result of `args`; `None` where there is none that fits 64 bits, or that is an integer.
    pub fn compute(self, args: &[i64]) -> Option<i64> {
        let truth = |b: bool| Some(i64::from(b));
        match (self, args) {
            (Number::Sum, _) => args.iter().try_fold(0i64, |sum, &n| sum.checked_add(n)),
            (Number::Max, _) => args.iter().copied().max(),
            (Number::Min, _) => args.iter().copied().min(),
            (Number::Neg, &[a]) => a.checked_neg(),
            (Number::Not, &[a]) => truth(a == 0),
            (Number::Add, &[a, b]) => a.checked_add(b),
            (Number::Sub, &[a, b]) => a.checked_sub(b),
            (Number::Mul, &[a, b]) => a.checked_mul(b),
            (Number::FloorDiv, &[a, b]) => floor(a, b).map(|(quotient, _)| quotient),
            (Number::Mod, &[a, b]) => floor(a, b).map(|(_, rest)| rest),
            (Number::Pow, &[a, b]) => a.checked_pow(u32::try_from(b).ok()?),
            (Number::Eq, &[a, b]) => truth(a == b),
            (Number::Ne, &[a, b]) => truth(a != b),
            (Number::Lt, &[a, b]) => truth(a < b),
            (Number::Le, &[a, b]) => truth(a <= b),
            (Number::Gt, &[a, b]) => truth(a > b),
            (Number::Ge, &[a, b]) => truth(a >= b),
            // On bools; on other integers these are bitwise, and `and` of bools is the same.
            (Number::And, &[a, b]) => Some(a & b),
            (Number::Or, &[a, b]) => Some(a | b),
            _ => None,
        }
    }
}

/// Quotient rounded down, and the rest, which has the sign of the divisor.
fn floor(a: i64, b: i64) -> Option<(i64, i64)> {
    let (quotient, rest) = (a.checked_div(b)?, a.checked_rem(b)?);
    if rest != 0 && (rest < 0) != (b < 0) {
        Some((quotient.checked_sub(1)?, rest + b))
    } else {
        Some((quotient, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::Number;

    #[test]
    fn division_rounds_down() {
        for (a, b, quotient, rest) in [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1)] {
            assert_eq!(Number::FloorDiv.compute(&[a, b]), Some(quotient));
            assert_eq!(Number::Mod.compute(&[a, b]), Some(rest));
        }
        assert_eq!(Number::FloorDiv.compute(&[1, 0]), None);
        assert_eq!(Number::FloorDiv.compute(&[i64::MIN, -1]), None);
        assert_eq!(Number::Add.compute(&[i64::MAX, 1]), None);
        assert_eq!(Number::Pow.compute(&[2, -1]), None);
    }
}
