//! Numbers: cells are the bits of real dtypes, and operators compute as PyTorch computes.
//!
//! # Arithmetic
//!
//! Floats of 16 and 8 bits are computed in f32 and rounded once per operator, to nearest, ties to even; sums,
//! means, running sums and matrix products accumulate in f32 (f64 for f64) from the first element on, and so do
//! reductions over ranks, in the order of the group. Integers wrap around. Transcendental functions are computed
//! in f64 and rounded: that is within one unit of the last place of what PyTorch's vectorised code gives, and
//! always the same for the same input.
//!
//! # Inputs
//!
//! Inputs are integer-valued and distinct per rank. Fifteen elements of sixteen are at most 255 in magnitude (8 for
//! the 8-bit floats), never 0: every float dtype holds them exactly, f32 sums of 2^16 of them are exact, and so are
//! dot products of length 2^8. The sixteenth is past 2^8, 2^11 or 2^24 in turn, and odd where the dtype can hold
//! that: the values that bf16, f16 and f32 have to round. [`Concrete::large_every`] changes the share, 0 is never.
//!
//! Such numbers find what is rounded too early or added in another order, but leave every float's range within some
//! layers of a network. [`Concrete::near`] gives floats of one magnitude, as trained networks have, with as many bits
//! as the dtype holds: they stay finite and distinct through deep chains, functions such as the exponential do not
//! saturate, and roundings show.
//!
//! # Operators without kernel
//!
//! They are refused, by name: other executors compute what the oracle does not. Between two graphs they need not be
//! known. With [`Concrete::draws_functions`] each is a function drawn at random: its elements are those of an input
//! whose key is a hash of the operator and of the values of its arguments. Equal arguments give equal results, others
//! give others, and nothing is said of what the operator computes. Random operators that nobody models are drawn in
//! the same way, by the key of the draw. What such numbers prove: [`trials`](super::trials).
//!
//! # What it does not do
//!
//! Arithmetic on 8-bit floats, which PyTorch has for a few operators
//! only, is defined here for all. complex128 is moved, not computed with.

mod format;
mod function;
pub(super) mod wide;

use super::domain::{Addend, Domain, Draw, MatmulSize, Operand, Outcome, Pointwise, RankReduce, refuse};
use super::hash::{mix, words};
use super::number::Number;
use crate::graph::{Dtype, DtypeClass};
use crate::ops::Reduce;
use format::{C64, Format, encode, with_float, with_integer};
pub(super) use format::{Scalar, decode};
use function::Real;

/// The domain of numbers.
#[derive(Clone, Copy, Debug)]
pub struct Concrete {
    /// Changes all inputs and draws.
    pub seed: u64,
    /// One input element in so many is large; 0 for none.
    pub large_every: u32,
    /// Floats of inputs are this power of two times a number from 1/2 to 1 of either sign, and none is large.
    pub near: Option<i32>,
    /// Whether inputs are positive, so that roots and logarithms of them are numbers.
    pub are_positive: bool,
    /// Whether an operator without kernel is a function drawn at random; else it is refused.
    pub draws_functions: bool,
}

/// The trial with positive inputs.
const POSITIVE: u32 = 3;

impl Default for Concrete {
    fn default() -> Concrete {
        Concrete { seed: 0, large_every: 16, near: None, are_positive: false, draws_functions: false }
    }
}

/// A number rounded to a dtype.
pub(super) fn rounded(number: Number, dtype: Dtype) -> Number {
    match (decode(cell(number, dtype), dtype), number) {
        (_, Number::Term(_)) => number,
        (Scalar::Float(x), _) => Number::Float(x),
        _ => number,
    }
}

/// A number as a cell.
pub(super) fn cell(number: Number, dtype: Dtype) -> u64 {
    let scalar = match number {
        Number::Bool(b) => Scalar::Int(i128::from(b)),
        Number::Int(n) => Scalar::Int(i128::from(n)),
        Number::Float(x) => Scalar::Float(x),
        Number::Complex(re, im) => Scalar::Complex(re as f32, im as f32),
        Number::Term(term) if dtype.class() < DtypeClass::Float => Scalar::Int(i128::from(term)),
        Number::Term(_) => Scalar::Float(f64::NAN),
    };
    encode(scalar, if dtype == Dtype::C128 { Dtype::F64 } else { dtype })
}

/// The reading of a cell for people.
pub(super) fn show(cell: u64, dtype: Dtype) -> String {
    if dtype == Dtype::C128 {
        return f64::from_bits(cell).to_string();
    }
    match decode(cell, dtype) {
        Scalar::Float(x) => x.to_string(),
        Scalar::Int(n) if dtype == Dtype::Bool => (n != 0).to_string(),
        Scalar::Int(n) => n.to_string(),
        Scalar::Complex(re, im) => format!("{re}{im:+}i"),
    }
}

/// Whether two cells are one number: a NaN has a sign and a payload where it was not computed, and these say nothing.
pub(super) fn is_same(a: u64, b: u64, dtype: Dtype) -> bool {
    let nan = |cell| match decode(cell, if dtype == Dtype::C128 { Dtype::F64 } else { dtype }) {
        Scalar::Float(x) => x.is_nan(),
        Scalar::Int(_) | Scalar::Complex(..) => false,
    };
    a == b || nan(a) && nan(b)
}

/// Whether a cell is neither NaN nor infinite.
pub(super) fn is_finite(cell: u64, dtype: Dtype) -> bool {
    match dtype {
        Dtype::C128 => f64::from_bits(cell).is_finite(),
        _ => match decode(cell, dtype) {
            Scalar::Float(x) => x.is_finite(),
            Scalar::Int(_) => true,
            Scalar::Complex(re, im) => re.is_finite() && im.is_finite(),
        },
    }
}

impl Concrete {
    /// The numbers of trial `n` of two graphs against each other. Those of the first one are large; the others are near
    /// powers of two, of which one or another suits the depth and the functions of a graph, and those of one are positive.
    pub fn of_trial(n: u32) -> Concrete {
        let near = n.checked_sub(1).map(|i| [-3, -1, -5, 0][i as usize % 4]);
        let are_positive = n == POSITIVE;
        Concrete { seed: u64::from(n), near, are_positive, draws_functions: true, ..Concrete::default() }
    }

    /// The number that an input element holds before its dtype is considered.
    fn value(&self, key: u64, index: u64, dtype: Dtype) -> f64 {
        let Some(near) = self.near.filter(|_| dtype.class() >= DtypeClass::Float) else {
            return self.integer(key, index, dtype);
        };
        let hash = mix(mix(mix(self.seed, key), index), 0x6E65);
        let sign = if self.are_positive || hash & 1 == 0 { 1.0 } else { -1.0 };
        // As far as the dtype goes.
        let (least, most) = match dtype {
            Dtype::F8E4M3 => (-5, 8),
            Dtype::F8E5M2 => (-13, 16),
            Dtype::F16 => (-13, 16),
            Dtype::F64 | Dtype::C128 => (-1021, 1024),
            _ => (-125, 128),
        };
        let near = near.clamp(least, most);
        let steps = match dtype {
            Dtype::F8E5M2 => 1 << 2,
            Dtype::F8E4M3 => 1 << 3,
            Dtype::BF16 => 1 << 7,
            Dtype::F16 => 1 << 10,
            _ => 1 << 23,
        };
        sign * (steps + (hash >> 32) % steps) as f64 / steps as f64 * 2f64.powi(near - 1)
    }

    /// The integer that an input element holds before its dtype is considered.
    fn integer(&self, key: u64, index: u64, dtype: Dtype) -> f64 {
        let hash = mix(mix(mix(self.seed, key), index), 0x696E);
        let sign = if self.are_positive || hash & 1 == 0 { 1.0 } else { -1.0 };
        let large = self.large_every > 0 && (hash >> 8).is_multiple_of(u64::from(self.large_every));
        let pick = (hash >> 32) as f64 / 4294967296.0;
        let below = |n: f64| (pick * n).floor();
        let magnitude = match dtype {
            Dtype::F8E4M3 if large => 16.0 * (2.0 + below(12.0)),
            Dtype::F8E5M2 if large => 256.0 * (1.0 + below(3.0)) * 8.0,
            Dtype::F8E4M3 | Dtype::F8E5M2 => 1.0 + below(8.0),
            // The step from which on the dtype cannot hold odd numbers.
            Dtype::BF16 if large => 256.0 + 2.0 * below(64.0),
            Dtype::F16 if large => [257.0, 2050.0][(hash >> 16) as usize % 2] + 2.0 * below(100.0),
            _ if large => {
                let from = [257.0, 2049.0, 16777217.0][(hash >> 16) as usize % 3];
                let odd = from + 2.0 * below(100.0);
                // f32 holds even numbers only up there.
                if dtype == Dtype::F32 && from > 4096.0 { odd + 1.0 } else { odd }
            }
            _ => 1.0 + below(255.0),
        };
        sign * magnitude
    }
}

impl Domain for Concrete {
    fn name(&self) -> &'static str {
        "concrete values"
    }

    fn tells_dtypes_apart(&self) -> bool {
        true
    }

    fn split(&self, cell: u64, bytes: u8) -> (u64, u64) {
        let bits = u32::from(bytes) * 4;
        let mask = (1u64 << bits.min(63)) - 1;
        (cell & mask, (cell >> bits.min(63)) & mask)
    }

    fn join(&self, low: u64, high: u64, bytes: u8) -> u64 {
        low | high << (u32::from(bytes) * 4).min(63)
    }

    fn input(&self, key: u64, index: u64, dtype: Dtype) -> u64 {
        let n = self.value(key, index, dtype);
        match dtype {
            Dtype::Bool => u64::from(n > 0.0),
            Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::U64 => encode(Scalar::Float(n.abs()), dtype),
            Dtype::C64 => {
                let im = self.value(mix(key, 1), index, Dtype::F32);
                C64::store((self.value(key, index, Dtype::F32) as f32, im as f32))
            }
            Dtype::C128 => n.to_bits(),
            _ => encode(Scalar::Float(n), dtype),
        }
    }

    fn constant(&self, number: Number, dtype: Dtype) -> u64 {
        cell(number, dtype)
    }

    fn cast(&self, cells: &[u64], from: Dtype, to: Dtype) -> Outcome<Vec<u64>> {
        Ok(match (from, to) {
            _ if from == to => cells.to_vec(),
            (Dtype::F32, Dtype::BF16) => {
                cells.iter().map(|&c| format::BF16::store(format::F32::load(c))).collect()
            }
            (Dtype::BF16, Dtype::F32) => cells.iter().map(|&c| c << 16).collect(),
            _ => cells.iter().map(|&c| encode(decode(c, from), to)).collect(),
        })
    }

    fn number(&self, cell: u64, dtype: Dtype) -> Number {
        match decode(cell, dtype) {
            Scalar::Float(x) => Number::Float(x),
            Scalar::Int(n) if dtype == Dtype::Bool => Number::Bool(n != 0),
            Scalar::Int(n) => i64::try_from(n).map_or(Number::Float(n as f64), Number::Int),
            Scalar::Complex(re, im) => Number::Complex(f64::from(re), f64::from(im)),
        }
    }

    fn integers(&self, cells: &[u64], dtype: Dtype) -> Option<Vec<i64>> {
        if dtype.class() >= DtypeClass::Float {
            return None;
        }
        Some(with_integer!(dtype, F => cells.iter().map(|&c| F::load(c) as i64).collect(), else Vec::new()))
    }

    fn pointwise(
        &self,
        function: Pointwise,
        dtype: Dtype,
        operands: &[Operand],
        count: usize,
    ) -> Outcome<Vec<u64>> {
        match (function, operands) {
            (Pointwise::Unary(op, tanh), [a]) => function::unary(op, tanh, dtype, a, count),
            (Pointwise::Binary(op, alpha, rounding), [a, b]) => {
                function::binary(op, alpha, rounding, dtype, a, b, count)
            }
            (Pointwise::Fma, [a, b, c]) => function::fma(dtype, [a, b, c], count),
            (Pointwise::Conj, [Operand::Cells(cells)]) => Ok(cells
                .iter()
                .map(|&c| {
                    let (re, im) = C64::load(c);
                    C64::store((re, -im))
                })
                .collect()),
            (Pointwise::Where, [Operand::Cells(condition), yes, no]) => {
                let get = |operand: &Operand, i: usize| match operand {
                    Operand::Cells(cells) => cells[i],
                    Operand::Number(n) => cell(*n, dtype),
                };
                let choose = |i| if condition[i] != 0 { get(yes, i) } else { get(no, i) };
                Ok((0..count).map(choose).collect())
            }
            (Pointwise::Opaque(key, out), operands) if self.draws_functions => {
                let key = mix(key, dtype as u64);
                let element = |i: usize| {
                    let cells = operands.iter().map(|operand| match operand {
                        Operand::Cells(cells) => cells[i],
                        Operand::Number(number) => number.key(),
                    });
                    self.input(words(key, cells), 0, out)
                };
                Ok((0..count).map(element).collect())
            }
            _ => Err(refuse!("{function:?} has no kernel")),
        }
    }

    fn reduce(&self, op: Reduce, dtype: Dtype, cells: &[u64], run: usize) -> Outcome<Vec<u64>> {
        let runs = cells.chunks_exact(run.max(1));
        if dtype == Dtype::C64 {
            if !matches!(op, Reduce::Sum | Reduce::Mean) {
                return Err(refuse!("{op:?} of complex64"));
            }
            let n = if op == Reduce::Mean { run as f32 } else { 1.0 };
            return Ok(runs
                .map(|run| {
                    let (re, im) =
                        run.iter().map(|&c| C64::load(c)).fold((0.0, 0.0), |s, x| (s.0 + x.0, s.1 + x.1));
                    C64::store((re / n, im / n))
                })
                .collect());
        }
        Ok(with_float!(dtype, F => runs.map(|run| {
            let values = run.iter().map(|&c| F::load(c));
            F::store(float_reduce(op, values, run.len()))
        }).collect(), else with_integer!(dtype, F => runs.map(|run| {
            let values = run.iter().map(|&c| F::load(c));
            F::store(match op {
                Reduce::Amax => values.max().unwrap_or(0),
                Reduce::Amin => values.min().unwrap_or(0),
                Reduce::Prod => values.fold(1, i128::wrapping_mul),
                Reduce::Any => values.fold(0, |any, x| any | x),
                Reduce::All => values.fold(1, |all, x| all & x),
                Reduce::Sum | Reduce::Mean => values.fold(0, i128::wrapping_add),
            })
        }).collect(), else Vec::new())))
    }

    fn cumsum(&self, dtype: Dtype, cells: &[u64], run: usize) -> Outcome<Vec<u64>> {
        let mut sums = Vec::with_capacity(cells.len());
        for run in cells.chunks(run.max(1)) {
            // PyTorch's CPU adds up float32 in double precision (`at::acc_type<float, false>`), and 16 bits in float32.
            if dtype == Dtype::F32 {
                let mut sum = 0f64;
                sums.extend(run.iter().map(|&c| {
                    sum += f64::from(format::F32::load(c));
                    format::F32::store(sum as f32)
                }));
                continue;
            }
            with_float!(dtype, F => {
                let mut sum = <F as Format>::Value::ZERO;
                sums.extend(run.iter().map(|&c| { sum += F::load(c); F::store(sum) }));
            }, else with_integer!(dtype, F => {
                let mut sum = 0i128;
                sums.extend(run.iter().map(|&c| { sum = sum.wrapping_add(F::load(c)); F::store(sum) }));
            }, else {
                let mut sum = (0.0, 0.0);
                sums.extend(run.iter().map(|&c| {
                    let x = C64::load(c);
                    sum = (sum.0 + x.0, sum.1 + x.1);
                    C64::store(sum)
                }));
            }));
        }
        Ok(sums)
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
        if dtype == Dtype::C64 && out == dtype && addend.is_none() {
            let add = |x: (f32, f32), y: (f32, f32)| (x.0 + y.0, x.1 + y.1);
            let sums = products::<C64>(size, a, b, (0.0, 0.0), |sum, x, y| add(sum, function::times(x, y)));
            return Ok(sums.into_iter().map(C64::store).collect());
        }
        if dtype.class() == DtypeClass::Int && out == dtype {
            return with_integer!(dtype, F => {
                let sums = products::<F>(size, a, b, 0, |sum, x, y| sum.wrapping_add(x.wrapping_mul(y)));
                Ok(sums.into_iter().enumerate().map(|(i, sum)| F::store(match &addend {
                    Some(add) => F::number(add.beta)
                        .wrapping_mul(F::load(add.bias[i]))
                        .wrapping_add(F::number(add.alpha).wrapping_mul(sum)),
                    None => sum,
                })).collect())
            }, else Err(refuse!("a product of {}", dtype.name())));
        }
        with_float!(dtype, F => {
            let zero = <F as Format>::Value::ZERO;
            let sums = products::<F>(size, a, b, zero, |sum, x, y| sum + x * y);
            let finished = sums.into_iter().enumerate().map(|(i, sum)| match &addend {
                Some(add) if add.beta.is(0) => F::number(add.alpha) * sum,
                Some(add) => F::number(add.beta) * F::load(add.bias[i]) + F::number(add.alpha) * sum,
                None => sum,
            });
            Ok(finished.map(|value| match out {
                _ if out == dtype => F::store(value),
                _ => encode(Scalar::Float(value.wide()), out),
            }).collect())
        }, else Err(refuse!("a product of {} as {}", dtype.name(), out.name())))
    }

    fn across_ranks(&self, op: RankReduce, dtype: Dtype, parts: &[&[u64]]) -> Outcome<Vec<u64>> {
        let count = parts.first().map_or(0, |part| part.len());
        let ranks = parts.len();
        let reason = || refuse!("{} of {} over ranks", op.name(), dtype.name());
        if dtype == Dtype::C64 {
            if !matches!(op, RankReduce::Sum | RankReduce::Avg) {
                return Err(reason());
            }
            let n = if op == RankReduce::Avg { ranks as f32 } else { 1.0 };
            return Ok((0..count)
                .map(|i| {
                    let values = parts.iter().map(|part| C64::load(part[i]));
                    let (re, im) = values.fold((0.0, 0.0), |s, x| (s.0 + x.0, s.1 + x.1));
                    C64::store((re / n, im / n))
                })
                .collect());
        }
        let as_reduce = match op {
            RankReduce::Sum => Some(Reduce::Sum),
            RankReduce::Avg => Some(Reduce::Mean),
            RankReduce::Max => Some(Reduce::Amax),
            RankReduce::Min => Some(Reduce::Amin),
            RankReduce::Product => Some(Reduce::Prod),
            _ => None,
        };
        if dtype == Dtype::C128 {
            return Err(reason());
        }
        with_float!(dtype, F => {
            let reduce = as_reduce.ok_or_else(reason)?;
            Ok((0..count).map(|i| {
                let mut values = parts.iter().map(|part| F::load(part[i]));
                F::store(match (op, values.next()) {
                    // From the first value on: 0 + -0 would be 0, and -0 + -0 is -0.
                    (RankReduce::Sum, Some(first)) => values.fold(first, |sum, x| sum + x),
                    (RankReduce::Avg, Some(first)) => {
                        values.fold(first, |sum, x| sum + x)
                            / <<F as Format>::Value as Real>::narrow(ranks as f64)
                    }
                    (_, first) => float_reduce(reduce, first.into_iter().chain(values), ranks),
                })
            }).collect())
        }, else with_integer!(dtype, F => Ok((0..count).map(|i| {
            let values = parts.iter().map(|part| F::load(part[i]));
            F::store(match op {
                RankReduce::Max => values.max().unwrap_or(0),
                RankReduce::Min => values.min().unwrap_or(0),
                RankReduce::Product => values.fold(1, i128::wrapping_mul),
                RankReduce::Band => values.fold(-1, |all, x| all & x),
                RankReduce::Bor => values.fold(0, |any, x| any | x),
                RankReduce::Bxor => values.fold(0, |odd, x| odd ^ x),
                RankReduce::Sum | RankReduce::Avg => values.fold(0, i128::wrapping_add),
            })
        }).collect()), else Err(reason())))
    }

    fn draw(&self, draw: Draw, key: u64, dtype: Dtype, count: usize) -> Outcome<Vec<u64>> {
        let random = |i: usize| mix(mix(mix(self.seed, key), i as u64), 0x6472);
        // Multiples of 1/256: exact in every dtype of at least 16 bits.
        let uniform = |i: usize| (random(i) >> 56) as f64 / 256.0;
        (0..count)
            .map(|i| match draw {
                Draw::Uniform => Ok(encode(Scalar::Float(uniform(i)), dtype)),
                // A sum of 16 fair coins, centred: a whole number with variance 4.
                Draw::Normal => {
                    let heads = (random(i) >> 40 & 0xFFFF).count_ones();
                    Ok(encode(Scalar::Float(f64::from(heads) - 8.0), dtype))
                }
                Draw::Bernoulli(p) => Ok(encode(Scalar::Int(i128::from(uniform(i) < p)), dtype)),
                Draw::Opaque(operator) if self.draws_functions => {
                    Ok(self.input(mix(operator, key), i as u64, dtype))
                }
                Draw::Opaque(_) => Err(refuse!("a random operator without kernel")),
            })
            .collect()
    }

    fn uninterpreted(
        &self,
        key: u64,
        output: u64,
        dtype: Dtype,
        count: usize,
        what: &str,
    ) -> Outcome<Vec<u64>> {
        if !self.draws_functions {
            return Err(refuse!("{what} has no kernel"));
        }
        let key = mix(key, output);
        Ok((0..count as u64).map(|i| self.input(key, i, dtype)).collect())
    }

    fn interprets_everything(&self) -> bool {
        self.draws_functions
    }
}

/// Folds from the first value on.
fn float_reduce<R: Real>(op: Reduce, values: impl Iterator<Item = R>, count: usize) -> R {
    let best = |keep: fn(&R, &R) -> bool| {
        move |best: Option<R>, x: R| match best {
            Some(b) if b.wide().is_nan() || keep(&b, &x) => Some(b),
            _ => Some(x),
        }
    };
    match op {
        Reduce::Amax => values.fold(None, best(R::ge)).unwrap_or(R::ZERO),
        Reduce::Amin => values.fold(None, best(R::le)).unwrap_or(R::ZERO),
        Reduce::Prod => values.fold(R::ONE, |product, x| product * x),
        Reduce::Mean => values.fold(R::ZERO, |sum, x| sum + x) / R::narrow(count as f64),
        _ => values.fold(R::ZERO, |sum, x| sum + x),
    }
}

/// Sums of products over the inner dimension, in order.
fn products<F: Format>(
    size: MatmulSize,
    a: &[u64],
    b: &[u64],
    zero: F::Value,
    step: impl Fn(F::Value, F::Value, F::Value) -> F::Value,
) -> Vec<F::Value> {
    let MatmulSize { batch, m, k, n, .. } = size;
    let a: Vec<F::Value> = a.iter().map(|&c| F::load(c)).collect();
    let b: Vec<F::Value> = b.iter().map(|&c| F::load(c)).collect();
    let mut sums = vec![zero; batch * m * n];
    for p in 0..batch {
        for i in 0..m {
            let row = &mut sums[(p * m + i) * n..(p * m + i + 1) * n];
            for l in 0..k {
                let x = a[(p * m + i) * k + l];
                let from = &b[(p * k + l) * n..(p * k + l + 1) * n];
                for (sum, &y) in row.iter_mut().zip(from) {
                    *sum = step(*sum, x, y);
                }
            }
        }
    }
    sums
}
