//! Which number a constant stands for.
//!
//! A program writes 1/3, the root of 2/5 or the logarithm of 2 as a float next to it, and another one may write another
//! float next to it. So a constant is read as the simplest number that lies within one unit in its last place; one that
//! is near nothing simple is the decimal that it is written as, or itself.
//!
//! A wrong guess makes one number of two that lie so near one another; that is what is meant by *constants as recognised*.

/// A number that a constant stands for, but for its sign.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Constant {
    /// A fraction.
    Fraction(u128, u128),
    /// The square root of a fraction, so often.
    Root(u128, u128, u32),
    /// A fraction times the natural logarithm of a number.
    Log(u128, u128, u64),
    /// A fraction divided by the natural logarithm of a number.
    ByLog(u128, u128, u64),
    /// A whole number times a power of two.
    Float(u64, i32),
}

/// How far a constant is looked at: `precision` bits count.
struct Reading {
    precision: i32,
    /// The largest denominator, and the largest whole number by which 1 may be divided.
    denominators: u128,
    divisors: f64,
    digits: usize,
}

const SINGLE: Reading = Reading { precision: 24, denominators: 64, divisors: 4096.0, digits: 7 };
const DOUBLE: Reading =
    Reading { precision: 53, denominators: 1000, divisors: (1u64 << 31) as f64, digits: 12 };

/// The number that the magnitude of a finite float stands for; `single`: it is computed with as a float of 32 bits.
pub(super) fn recognised(x: f64, single: bool) -> Constant {
    let x = x.abs();
    let is_single = single && f64::from(x as f32) == x;
    let reading = if is_single { &SINGLE } else { &DOUBLE };
    if x == x.trunc() && x < 2f64.powi(53) {
        return Constant::Fraction(x as u128, 1);
    }
    // What was computed of constants in double precision is near a simple number only as a float of 32 bits.
    let as_single = || SINGLE.simple(f64::from(x as f32)).filter(|_| single);
    let simple = reading.simple(x).or_else(|| reading.decimal(x, is_single)).or_else(as_single);
    simple.unwrap_or_else(|| exact(x))
}

impl Reading {
    fn simple(&self, x: f64) -> Option<Constant> {
        let fraction = self.fraction(x, self.denominators).map(|(p, q)| Constant::Fraction(p, q));
        fraction.or_else(|| self.inverse(x)).or_else(|| self.root(x)).or_else(|| self.logarithm(x))
    }

    fn is_near(&self, x: f64, y: f64) -> bool {
        self.is_within(1.0, x, y)
    }

    /// So many units in the last place.
    fn is_within(&self, units: f64, x: f64, y: f64) -> bool {
        (x - y).abs() <= units * x.abs() * 2f64.powi(1 - self.precision)
    }

    fn fraction(&self, x: f64, most: u128) -> Option<(u128, u128)> {
        let of = |q: u128| {
            let p = (x * q as f64).round();
            // What a float holds is next to no other one.
            let is_near = if q.is_power_of_two() { x == p / q as f64 } else { self.is_near(x, p / q as f64) };
            ((1.0..1e9).contains(&p) && is_near).then_some((p as u128, q))
        };
        (1..=most).find_map(of)
    }

    /// 1 divided by a whole number.
    fn inverse(&self, x: f64) -> Option<Constant> {
        let n = (1.0 / x).round();
        (n <= self.divisors && self.is_near(x, 1.0 / n)).then_some(Constant::Fraction(1, n as u128))
    }

    /// A root of a simple fraction, or a root of that.
    fn root(&self, x: f64) -> Option<Constant> {
        let simple = |x: f64| {
            let whole = (1.0 / x).round();
            if (1.0..=65536.0).contains(&whole) && self.is_within(8.0, x, 1.0 / whole) {
                return Some((1, whole as u128));
            }
            (1..=16).find_map(|q| {
                let p = (x * q as f64).round();
                let is_near = (1.0..=65536.0).contains(&p) && self.is_within(8.0, x, p / q as f64);
                is_near.then_some((p as u128, q))
            })
        };
        // A power has several times the error of its root, which is what has to be near in the end.
        (1..=2).find_map(|times| {
            let (p, q) = simple(x.powi(1 << times))?;
            let back = (0..times).fold(p as f64 / q as f64, |root: f64, _| root.sqrt());
            self.is_near(x, back).then_some(Constant::Root(p, q, times))
        })
    }

    fn logarithm(&self, x: f64) -> Option<Constant> {
        let simple = |x: f64| self.fraction(x, 8).filter(|(p, _)| *p <= 8);
        [2u64, 10].into_iter().find_map(|base| {
            let log = (base as f64).ln();
            let times = simple(x / log).map(|(p, q)| Constant::Log(p, q, base));
            times.or_else(|| simple(x * log).map(|(p, q)| Constant::ByLog(p, q, base)))
        })
    }

    /// The decimal that it is written as, where that is short.
    fn decimal(&self, x: f64, is_single: bool) -> Option<Constant> {
        let text = if is_single { format!("{:e}", x as f32) } else { format!("{x:e}") };
        let (mantissa, exponent) = text.split_once('e')?;
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        let exponent = exponent.parse::<i32>().ok()? - (digits.len() as i32 - 1);
        if digits.len() > self.digits || exponent.abs() > 20 {
            return None;
        }
        let (number, power) = (digits.parse::<u128>().ok()?, 10u128.pow(exponent.unsigned_abs()));
        Some(match exponent < 0 {
            true => Constant::Fraction(number, power),
            false => Constant::Fraction(number * power, 1),
        })
    }
}

/// The magnitude of a float, as a whole number times a power of two.
pub(super) fn exact(x: f64) -> Constant {
    let bits = x.abs().to_bits();
    let exponent = (bits >> 52) as i32;
    let mantissa = bits & ((1 << 52) - 1) | if exponent > 0 { 1 << 52 } else { 0 };
    Constant::Float(mantissa, exponent.max(1) - 1075)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_what_they_stand_for() {
        use Constant::*;
        for (x, single, stands_for) in [
            (3.0, true, Fraction(3, 1)),
            (0.5, true, Fraction(1, 2)),
            (0.1, false, Fraction(1, 10)),
            (f64::from(0.1f32), true, Fraction(1, 10)),
            (1.0 / 3.0, true, Fraction(1, 3)),
            (f64::from(1.0f32 / 3.0), true, Fraction(1, 3)),
            (0.044715, true, Fraction(44715, 1_000_000)),
            (1e-5, true, Fraction(1, 100_000)),
            (f64::from(1e-5f32), true, Fraction(1, 100_000)),
            (0.125f64.sqrt(), true, Root(1, 8, 1)),
            (128f64.powf(-0.25), true, Root(1, 128, 2)),
            (std::f64::consts::LN_2, true, Log(1, 1, 2)),
            (std::f64::consts::LOG2_E, true, ByLog(1, 1, 2)),
            (std::f64::consts::LN_10, false, Log(1, 1, 10)),
        ] {
            assert_eq!(recognised(x, single), stands_for, "{x} {single}");
            assert_eq!(recognised(-x, single), stands_for, "{x} {single}");
        }
        // A float of 64 bits is not read as one of 32.
        assert_ne!(recognised(f64::from(0.1f32), false), Fraction(1, 10));
        assert!(matches!(recognised(std::f64::consts::PI, false), Float(..)));
    }

    #[test]
    fn what_is_near_and_not_next_is_another_number() {
        for (x, y) in
            [(1e-5, 1.01e-5), (0.5, 0.5001), (0.333, 1.0 / 3.0), (6.0, 6.001), (0.3535, 0.125f64.sqrt())]
        {
            assert_ne!(recognised(x, true), recognised(y, true), "{x} {y}");
        }
    }
}
