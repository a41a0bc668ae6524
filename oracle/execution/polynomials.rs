//! Polynomials: a cell is the value of a polynomial at a random point of the integers modulo a prime.
//!
//! # The idea
//!
//! Sums, differences and products are computed, on numbers drawn for the inputs; every other operator is a function
//! drawn at random of what it is given. Two elements with equal cells are the same polynomial of the same calls (the
//! converse holds always, an accident has one chance in 2^60 for each degree). So different terms are descended through
//! equal heads for as long as that goes, and no further: `relu(a + b)` is `relu(b + a)`, and `clamp_max(x, 1000)` is
//! not `x`.
//!
//! That is less than equal values, since it knows of no rounding; and more, since numbers never see the places where a
//! clamp begins to act. Together they acquit (see [`trials`](super::trials)).
//!
//! # Rounding
//!
//! A cast that may lose something is such a function, and a cast back of what was exact is none. What floats of less
//! than 32 bits compute is rounded by that function. Roundings to f32, f64 and integers are not seen: random numbers
//! show them.
//!
//! That acquits. Where numbers differ, the question is the other one: whether they differ by roundings alone. For that
//! ([`Polynomials::unrounded`]) small floats are not rounded where they are computed, but where they leave their dtype,
//! so that a sum in another order is the same and one that is computed in another dtype is not; and quotients are
//! computed too.

use super::concrete::{Scalar, cell, decode};
use super::domain::{Addend, Domain, Draw, MatmulSize, Operand, Outcome, Pointwise, RankReduce};
use super::hash::{mix, text, words};
use super::identity::written;
use super::number::Number;
use super::provenance::Provenance;
use crate::graph::{Dtype, DtypeClass};
use crate::ops::{Binary, Reduce, Unary};
use rustc_hash::FxHashSet;
use std::sync::Mutex;

/// The prime: cells are less than it, but for those that are only moved.
const PRIME: u64 = (1 << 61) - 1;

/// The domain of polynomials. The runs that are compared share one.
#[derive(Debug, Default)]
pub(super) struct Polynomials {
    /// Cells that a dtype holds exactly, although they may lie in another one.
    exact: Mutex<FxHashSet<(u64, Dtype)>>,
    /// Whether quotients are computed, and small floats rounded only where they leave their dtype.
    unrounded: bool,
    /// Whether a quotient is a function drawn at random: `x * y / y` is no `x` where `y` is 0.
    opaque_quotients: bool,
}

fn add(a: u64, b: u64) -> u64 {
    (a + b) % PRIME
}

fn neg(a: u64) -> u64 {
    (PRIME - a) % PRIME
}

fn mul(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(PRIME)) as u64
}

fn pow(a: u64, mut n: u64) -> u64 {
    let (mut power, mut result) = (a, 1);
    while n > 0 {
        if n & 1 == 1 {
            result = mul(result, power);
        }
        power = mul(power, power);
        n >>= 1;
    }
    result
}

fn inverse(a: u64) -> u64 {
    pow(a, PRIME - 2)
}

/// A cell to compute with. Parts of cells and conjugates are not values of polynomials.
fn element(cell: u64) -> u64 {
    if cell < PRIME { cell } else { mix(1, cell) % PRIME }
}

/// A function drawn at random.
fn drawn(what: &str, key: u64, cells: impl IntoIterator<Item = u64>) -> u64 {
    words(mix(text(what), key), cells) % PRIME
}

fn integer(n: i128) -> u64 {
    n.rem_euclid(i128::from(PRIME)) as u64
}

/// A float is a whole number times a power of two.
fn float(x: f64) -> u64 {
    if !x.is_finite() {
        return drawn("float", x.to_bits(), []);
    }
    let bits = x.abs().to_bits();
    let exponent = (bits >> 52) as i32;
    let mantissa = bits & ((1 << 52) - 1) | if exponent > 0 { 1 << 52 } else { 0 };
    let power = exponent.max(1) - 1075;
    let two = if power < 0 { inverse(2) } else { 2 };
    let magnitude = mul(mantissa, pow(two, u64::from(power.unsigned_abs())));
    if x < 0.0 { neg(magnitude) } else { magnitude }
}

/// A number as an operand: PyTorch computes with f32 where the elements are floats of at most as many bits.
fn scalar(number: Number, dtype: Dtype) -> u64 {
    let class = dtype.class();
    match number {
        Number::Term(term) => drawn("item", 0, [term]),
        Number::Complex(re, im) => add(float(re), mul(float(im), drawn("i", 0, []))),
        Number::Float(x) if class == DtypeClass::Float && dtype != Dtype::F64 => float(f64::from(x as f32)),
        Number::Float(x) => float(x),
        Number::Bool(b) => u64::from(b),
        Number::Int(n) => integer(i128::from(n)),
    }
}

/// Whether each element of `from` is one of `to`.
fn is_exact(from: Dtype, to: Dtype) -> bool {
    // Bits of magnitude, and those below the point.
    let whole = |dtype: Dtype| match dtype {
        Dtype::Bool => Some((1, false)),
        _ if dtype.class() != DtypeClass::Int => None,
        Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::U64 => Some((8 * dtype.itemsize(), false)),
        _ => Some((8 * dtype.itemsize() - 1, true)),
    };
    let held = match to {
        Dtype::F64 => 53,
        Dtype::F32 => 24,
        Dtype::F16 => 11,
        Dtype::BF16 => 8,
        _ => 0,
    };
    match (whole(from), whole(to)) {
        (Some((bits, sign)), Some((room, signed))) => bits <= room && (signed || !sign),
        (Some((bits, _)), None) => bits <= held,
        (None, Some(_)) => false,
        (None, None) => match (from, to) {
            (Dtype::F8E4M3 | Dtype::F8E5M2, Dtype::F16 | Dtype::BF16) => true,
            (_, Dtype::F32) => is_small(from),
            (_, Dtype::F64) => from == Dtype::F32 || is_small(from),
            _ => false,
        },
    }
}

/// Floats of less than 32 bits.
fn is_small(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F16 | Dtype::BF16 | Dtype::F8E4M3 | Dtype::F8E5M2)
}

impl Polynomials {
    /// Those by which values are told apart that differ in more than roundings.
    pub(super) fn unrounded() -> Polynomials {
        Polynomials { unrounded: true, ..Polynomials::default() }
    }

    /// Those by which graphs are the same that may be rounded otherwise.
    pub(super) fn reals() -> Polynomials {
        Polynomials { opaque_quotients: true, ..Polynomials::unrounded() }
    }

    /// Cells as elements of a dtype that may have to round them.
    fn fit(&self, cells: Vec<u64>, dtype: Dtype) -> Vec<u64> {
        if is_small(dtype) && !self.unrounded { self.rounded(cells, Dtype::F32, dtype) } else { cells }
    }

    /// Cells that a float is to hold when they leave it for a wider one, or any other where it is small.
    fn leaving(&self, cells: Vec<u64>, from: Dtype, to: Dtype) -> Vec<u64> {
        match (from, to) {
            _ if !self.unrounded => cells,
            // A double holds what a float32 has rounded.
            (Dtype::F32, Dtype::F64) => self.rounded(cells, Dtype::F64, from),
            _ if is_small(from) => self.rounded(cells, Dtype::F32, from),
            _ => cells,
        }
    }

    /// Cells of one dtype as elements of another that may not hold them.
    fn rounded(&self, mut cells: Vec<u64>, from: Dtype, to: Dtype) -> Vec<u64> {
        let Ok(mut exact) = self.exact.lock() else { return cells };
        let mut round = |cell: u64, from: Dtype, to: Dtype| match exact.contains(&(cell, to)) {
            true => cell,
            false => {
                let rounded = drawn("cast", mix(to as u64, from.class() as u64), [cell]);
                exact.insert((rounded, to));
                rounded
            }
        };
        // PyTorch makes the floats of less than 32 bits of a float32, whatever it casts.
        let by_f32 = is_small(to) && from != Dtype::F32;
        for cell in &mut cells {
            *cell = match by_f32 {
                true => {
                    let first =
                        if is_exact(from, Dtype::F32) { *cell } else { round(*cell, from, Dtype::F32) };
                    round(first, Dtype::F32, to)
                }
                false => round(*cell, from, to),
            };
        }
        cells
    }

    /// Notes that a dtype holds these cells.
    fn known(&self, cells: Vec<u64>, dtype: Dtype) -> Vec<u64> {
        if let Ok(mut exact) = self.exact.lock() {
            exact.extend(cells.iter().map(|&cell| (cell, dtype)));
        }
        cells
    }

    fn one_known(&self, cell: u64, dtype: Dtype) -> u64 {
        self.known(vec![cell], dtype);
        cell
    }
}

/// A function of one element by others of it.
type Rational = fn(u64, &dyn Fn(Unary, u64) -> u64) -> u64;

/// How a function is made of quotients, sums and functions that are simpler than it.
fn rational(op: Unary) -> Option<Rational> {
    fn sigmoid(x: u64, of: &dyn Fn(Unary, u64) -> u64) -> u64 {
        inverse(add(1, of(Unary::Exp, neg(x))))
    }
    Some(match op {
        Unary::Reciprocal => |x, _| inverse(x),
        Unary::Rsqrt => |x, of| inverse(of(Unary::Sqrt, x)),
        Unary::Expm1 => |x, of| add(of(Unary::Exp, x), neg(1)),
        Unary::Log1p => |x, of| of(Unary::Log, add(1, x)),
        Unary::Sigmoid => sigmoid,
        Unary::Silu => |x, of| mul(x, sigmoid(x, of)),
        Unary::Tanh => |x, of| add(mul(2, sigmoid(mul(2, x), of)), neg(1)),
        _ => return None,
    })
}

fn unary_key(op: Unary, tanh: bool) -> u64 {
    words(1, [op as u64, u64::from(tanh)])
}

/// Whether a function gives one of its operands, or what each dtype holds: casts may be made before it or after it.
fn keeps_dtype(function: Pointwise) -> bool {
    use Binary::*;
    match function {
        Pointwise::Where => true,
        Pointwise::Unary(op, _) => matches!(op, Unary::Relu | Unary::Abs | Unary::Sign),
        Pointwise::Binary(op, ..) => {
            matches!(op, Maximum | Minimum | ClampMin | ClampMax | Eq | Ne | Lt | Le | Gt | Ge)
        }
        _ => false,
    }
}

impl Domain for Polynomials {
    fn name(&self) -> &'static str {
        "polynomials"
    }

    fn split(&self, cell: u64, bytes: u8) -> (u64, u64) {
        Provenance::default().split(cell, bytes)
    }

    fn join(&self, low: u64, high: u64, bytes: u8) -> u64 {
        Provenance::default().join(low, high, bytes)
    }

    fn input(&self, key: u64, index: u64, dtype: Dtype) -> u64 {
        self.one_known(drawn("input", dtype as u64, [key, index]), dtype)
    }

    fn constant(&self, number: Number, dtype: Dtype) -> u64 {
        if let Number::Term(_) = number {
            return self.fit(vec![scalar(number, dtype)], dtype)[0];
        }
        let value = match decode(cell(number, dtype), dtype) {
            Scalar::Float(x) => float(x),
            Scalar::Int(n) => integer(n),
            Scalar::Complex(re, im) => scalar(Number::Complex(f64::from(re), f64::from(im)), dtype),
        };
        self.one_known(value, dtype)
    }

    fn cast(&self, cells: &[u64], from: Dtype, to: Dtype) -> Outcome<Vec<u64>> {
        if from == to {
            return Ok(cells.to_vec());
        }
        let cells = self.leaving(cells.iter().map(|&cell| element(cell)).collect(), from, to);
        Ok(match is_exact(from, to) {
            // What a small float holds, a float32 holds.
            true => self
                .known(self.known(self.known(cells, from), to), if is_small(from) { Dtype::F32 } else { to }),
            false => self.rounded(cells, from, to),
        })
    }

    fn number(&self, cell: u64, dtype: Dtype) -> Number {
        Number::Term(drawn("number", dtype as u64, [cell]))
    }

    fn integers(&self, cells: &[u64], dtype: Dtype) -> Option<Vec<i64>> {
        // To see whether sums differ by roundings alone, any index does, as long as both graphs use it. It proves
        // nothing else: elements of small dimensions coincide.
        let does = self.unrounded && !self.opaque_quotients;
        let is_index = dtype.class() == DtypeClass::Int && dtype != Dtype::U8;
        let signed = |&cell: &u64| if cell > PRIME / 2 { cell as i64 - PRIME as i64 } else { cell as i64 };
        (does && is_index).then(|| cells.iter().map(signed).collect())
    }

    fn pointwise(
        &self,
        function: Pointwise,
        dtype: Dtype,
        operands: &[Operand],
        count: usize,
    ) -> Outcome<Vec<u64>> {
        if let (Pointwise::Conj, [Operand::Cells(cells)]) = (function, operands) {
            // Its own inverse.
            return Ok(cells.iter().map(|&cell| cell ^ (1 << 63)).collect());
        }
        let (function, operands) = written(function, operands);
        let numbers: Vec<u64> = operands
            .iter()
            .map(|operand| match operand {
                Operand::Number(n) => scalar(*n, dtype),
                Operand::Cells(_) => 0,
            })
            .collect();
        let at = |operand: usize, i: usize| match operands.get(operand) {
            Some(Operand::Cells(cells)) => element(cells[i]),
            _ => numbers.get(operand).copied().unwrap_or(0),
        };
        let divisor = match operands {
            [_, Operand::Number(n)] if scalar(*n, dtype) != 0 => Some(inverse(scalar(*n, dtype))),
            _ => None,
        };
        let exponent = match operands {
            [_, Operand::Number(n)] => (1..=3u64).find(|&exponent| n.is(exponent as i64)),
            _ => None,
        };
        let divides = self.unrounded && !self.opaque_quotients && dtype.class() == DtypeClass::Float;
        use super::domain::Rounding::True;
        let rule: Option<Box<dyn Fn(usize) -> u64>> = match function {
            Pointwise::Unary(Unary::Neg, _) => Some(Box::new(|i| neg(at(0, i)))),
            Pointwise::Unary(Unary::Square, _) => Some(Box::new(|i| mul(at(0, i), at(0, i)))),
            Pointwise::Binary(Binary::Add, alpha, _) => {
                let alpha = scalar(alpha, dtype);
                Some(Box::new(move |i| add(at(0, i), mul(alpha, at(1, i)))))
            }
            Pointwise::Binary(Binary::Sub, alpha, _) => {
                let alpha = neg(scalar(alpha, dtype));
                Some(Box::new(move |i| add(at(0, i), mul(alpha, at(1, i)))))
            }
            Pointwise::Binary(Binary::Mul, ..) => Some(Box::new(|i| mul(at(0, i), at(1, i)))),
            Pointwise::Binary(Binary::Div, _, True) if let Some(inverse) = divisor => {
                Some(Box::new(move |i| mul(at(0, i), inverse)))
            }
            Pointwise::Binary(Binary::Pow, ..) if let Some(exponent) = exponent => {
                Some(Box::new(move |i| pow(at(0, i), exponent)))
            }
            Pointwise::Binary(Binary::Div, _, True) if divides => {
                Some(Box::new(|i| mul(at(0, i), inverse(at(1, i)))))
            }
            Pointwise::Unary(op, false) if divides && let Some(rational) = rational(op) => {
                let of = mix(1, dtype as u64);
                let called = move |op, x| drawn("function", mix(unary_key(op, false), of), [x]);
                Some(Box::new(move |i| rational(at(0, i), &called)))
            }
            Pointwise::Fma => Some(Box::new(|i| add(mul(at(0, i), at(1, i)), at(2, i)))),
            _ => None,
        };
        if let Some(rule) = rule {
            return Ok(self.fit((0..count).map(rule).collect(), dtype));
        }
        // The larger of equals, and what is chosen among equals, is that.
        let choice = match function {
            Pointwise::Where => Some((1, 2)),
            Pointwise::Binary(Binary::Maximum | Binary::Minimum, ..) => Some((0, 1)),
            _ => None,
        };
        let key = match function {
            Pointwise::Unary(op, tanh) => unary_key(op, tanh),
            Pointwise::Binary(op, alpha, rounding) => words(2, [op as u64, alpha.key(), rounding as u64]),
            Pointwise::Opaque(key, _) => mix(3, key),
            _ => 4,
        };
        let of = if keeps_dtype(function) { dtype.class() as u64 } else { mix(1, dtype as u64) };
        let cells = (0..count).map(|i| match choice {
            Some((one, other)) if at(one, i) == at(other, i) => at(one, i),
            _ => drawn("function", mix(key, of), (0..operands.len()).map(|operand| at(operand, i))),
        });
        Ok(self.known(cells.collect(), dtype))
    }

    fn reduce(&self, op: Reduce, dtype: Dtype, cells: &[u64], run: usize) -> Outcome<Vec<u64>> {
        let share = inverse(run.max(1) as u64);
        let one = |run: &[u64]| {
            let mut cells = run.iter().map(|&cell| element(cell));
            match op {
                Reduce::Sum => cells.fold(0, add),
                Reduce::Mean => mul(cells.fold(0, add), share),
                Reduce::Prod => cells.fold(1, mul),
                _ if run.len() == 1 => cells.next().unwrap_or(0),
                _ => drawn("reduce", words(op as u64, [dtype.class() as u64]), cells),
            }
        };
        let reduced = cells.chunks_exact(run.max(1)).map(one).collect();
        Ok(match op {
            Reduce::Sum | Reduce::Mean | Reduce::Prod => self.fit(reduced, dtype),
            _ => self.known(reduced, dtype),
        })
    }

    fn cumsum(&self, dtype: Dtype, cells: &[u64], run: usize) -> Outcome<Vec<u64>> {
        let mut sums = Vec::with_capacity(cells.len());
        for run in cells.chunks(run.max(1)) {
            let mut sum = 0;
            sums.extend(run.iter().map(|&cell| {
                sum = add(sum, element(cell));
                sum
            }));
        }
        Ok(self.fit(sums, dtype))
    }

    fn matmul(
        &self,
        size: MatmulSize,
        dtype: Dtype,
        a: &[u64],
        b: &[u64],
        addend: Option<Addend>,
        out: Dtype,
    ) -> Outcome<Vec<u64>> {
        let MatmulSize { batch, m, k, n } = size;
        let mut cells = Vec::with_capacity(batch * m * n);
        for p in 0..batch {
            for i in 0..m {
                let times = |l: usize, j: usize| {
                    mul(element(a[(p * m + i) * k + l]), element(b[(p * k + l) * n + j]))
                };
                cells.extend((0..n).map(|j| (0..k).map(|l| times(l, j)).fold(0, add)));
            }
        }
        if let Some(Addend { bias, beta, alpha }) = addend {
            let (beta, alpha) = (scalar(beta, dtype), scalar(alpha, dtype));
            for (cell, &bias) in cells.iter_mut().zip(bias) {
                *cell = add(mul(alpha, *cell), mul(beta, element(bias)));
            }
        }
        Ok(self.fit(cells, out))
    }

    fn across_ranks(&self, op: RankReduce, dtype: Dtype, parts: &[&[u64]]) -> Outcome<Vec<u64>> {
        let count = parts.first().map_or(0, |part| part.len());
        let share = inverse(parts.len().max(1) as u64);
        let one = |i: usize| {
            let mut cells = parts.iter().map(|part| element(part[i]));
            match op {
                RankReduce::Sum => cells.fold(0, add),
                RankReduce::Avg => mul(cells.fold(0, add), share),
                RankReduce::Product => cells.fold(1, mul),
                _ if parts.len() == 1 => cells.next().unwrap_or(0),
                _ => drawn("ranks", words(op as u64, [dtype.class() as u64]), cells),
            }
        };
        let reduced = (0..count).map(one).collect();
        Ok(match op {
            RankReduce::Sum | RankReduce::Avg | RankReduce::Product => self.fit(reduced, dtype),
            _ => self.known(reduced, dtype),
        })
    }

    fn draw(&self, draw: Draw, key: u64, dtype: Dtype, count: usize) -> Outcome<Vec<u64>> {
        let cells = Provenance::default().draw(draw, key, dtype, count)?;
        Ok(self.known(cells.into_iter().map(element).collect(), dtype))
    }

    fn uninterpreted(
        &self,
        key: u64,
        output: u64,
        dtype: Dtype,
        count: usize,
        _what: &str,
    ) -> Outcome<Vec<u64>> {
        let cells = (0..count as u64).map(|i| drawn("call", key, [output, i]));
        Ok(self.known(cells.collect(), dtype))
    }

    fn interprets_everything(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::domain::Rounding;
    use super::*;

    #[test]
    fn floats_are_numbers_of_the_field() {
        assert_eq!((float(1.0), float(-1.0), float(6.0), float(0.0)), (1, PRIME - 1, 6, 0));
        assert_eq!(mul(float(0.5), 2), 1);
        assert_eq!(add(float(0.75), float(-0.25)), inverse(2));
        assert_eq!(mul(float(f64::from_bits(1)), pow(2, 1074)), 1);
        assert_ne!(float(f64::INFINITY), float(f64::NEG_INFINITY));
    }

    #[test]
    fn laws_of_rings_hold_and_no_others() {
        let domain = Polynomials::default();
        let input = |key| domain.input(key, 0, Dtype::F32);
        let one = Number::Int(1);
        let binary = |op, a: u64, b: u64| {
            let (a, b) = ([a], [b]);
            let operands = [Operand::Cells(&a), Operand::Cells(&b)];
            let function = Pointwise::Binary(op, one, Rounding::True);
            domain.pointwise(function, Dtype::F32, &operands, 1).unwrap()[0]
        };
        let (x, y, z) = (input(1), input(2), input(3));
        assert_eq!(binary(Binary::Add, x, y), binary(Binary::Add, y, x));
        let (sum, products) =
            (binary(Binary::Add, x, y), [binary(Binary::Mul, x, z), binary(Binary::Mul, y, z)]);
        assert_eq!(binary(Binary::Mul, sum, z), binary(Binary::Add, products[0], products[1]));
        assert_ne!(binary(Binary::Sub, x, y), binary(Binary::Sub, y, x));
        assert_ne!(
            binary(Binary::Div, x, y),
            binary(Binary::Div, binary(Binary::Mul, x, z), binary(Binary::Mul, y, z))
        );
        assert_eq!(binary(Binary::Maximum, x, x), x);
        assert_ne!(binary(Binary::Maximum, x, y), x);
    }

    #[test]
    fn small_floats_are_rounded_where_they_are_computed_or_where_they_leave() {
        let one = Number::Int(1);
        for (domain, is_same) in [(Polynomials::default(), false), (Polynomials::unrounded(), true)] {
            let [x, y, z] = [1, 2, 3].map(|key| domain.input(key, 0, Dtype::BF16));
            let add = |a: u64, b: u64, dtype| {
                let (a, b) = ([a], [b]);
                let function = Pointwise::Binary(Binary::Add, one, Rounding::True);
                domain.pointwise(function, dtype, &[Operand::Cells(&a), Operand::Cells(&b)], 1).unwrap()[0]
            };
            let cast = |x: u64, from, to| domain.cast(&[x], from, to).unwrap()[0];
            let sum = add(add(x, y, Dtype::BF16), z, Dtype::BF16);
            assert_eq!(sum == add(x, add(y, z, Dtype::BF16), Dtype::BF16), is_same);
            let [x, y] = [x, y].map(|x| cast(x, Dtype::BF16, Dtype::F32));
            assert_ne!(cast(add(x, y, Dtype::BF16), Dtype::BF16, Dtype::F32), add(x, y, Dtype::F32));
        }
    }

    #[test]
    fn casts_that_lose_nothing_are_none() {
        let domain = Polynomials::default();
        let through = |from, to| {
            let x = domain.input(from as u64, to as u64, from);
            let there = domain.cast(&[x], from, to).unwrap();
            domain.cast(&there, to, from).unwrap()[0] == x
        };
        for (from, to) in [(Dtype::BF16, Dtype::F32), (Dtype::F16, Dtype::F64)] {
            assert!(through(from, to), "{from:?}");
        }
        assert!(through(Dtype::I32, Dtype::I64) && through(Dtype::U8, Dtype::BF16));
        assert!(!through(Dtype::BF16, Dtype::F16) && !through(Dtype::F16, Dtype::BF16));
        assert!(!through(Dtype::F32, Dtype::BF16) && !through(Dtype::I64, Dtype::F64));
        assert!(!through(Dtype::I64, Dtype::I32) && !through(Dtype::I8, Dtype::U8));
        // Once rounded, twice rounded.
        let x = domain.input(1, 2, Dtype::F32);
        let low = domain.cast(&[x], Dtype::F32, Dtype::BF16).unwrap();
        let wide = domain.cast(&low, Dtype::BF16, Dtype::F32).unwrap();
        assert_eq!(domain.cast(&wide, Dtype::F32, Dtype::BF16).unwrap(), low);
    }
}
