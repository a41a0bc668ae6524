//! Doubles: every float is computed in double precision, whatever its dtype.
//!
//! # The idea
//!
//! Two graphs that compute the same real functions, written in two ways, differ in double precision by some units of
//! its last place, however they round in their own dtypes. So numbers near one another in several runs are a test of
//! that: a wrong constant, operand or function parts them by far more. It is a test and no proof.
//!
//! Where a value leaves its dtype it is rounded to it, so that a cast more or less is seen; unless casts are what may
//! differ.
//!
//! # What it does not do
//!
//! Functions without kernel are drawn from all bits of what they are given, so that after one of them nothing is near.

use super::compare::{Difference, Place};
use super::concrete::{Concrete, Scalar, cell, decode};
use super::domain::{Addend, Domain, Draw, MatmulSize, Operand, Outcome, Pointwise, RankReduce};
use super::hash::mix;
use super::number::Number;
use super::provenance::Provenance;
use super::run::{Leaf, Run, TensorValue};
use crate::graph::{Dtype, DtypeClass};
use crate::ops::Reduce;

/// How near two graphs come to one another.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Nearness {
    /// The largest distance in double precision.
    pub in_doubles: f64,
    /// The largest distance in the dtypes of the graphs, relative to the largest element of a tensor.
    pub in_own: f64,
    /// Of so many runs.
    pub runs: u32,
    /// Whether being near is evidence of computing the same: choices, say, may be made otherwise elsewhere.
    pub is_evidence: bool,
}

impl Nearness {
    /// How near graphs are in double precision that compute the same real functions.
    pub const SAME: f64 = 1e-9;

    /// How near they are that differ in no more than the last digits of their constants, which have 24 bits, where sums
    /// take away seven more.
    pub const ROUNDED: f64 = 1e-5;
}

/// The domain of doubles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doubles {
    /// What inputs hold.
    pub(super) numbers: Concrete,
    /// Whether casts round.
    pub(super) casts: bool,
    /// Which numbers inputs hold.
    pub(super) inputs: Inputs,
}

/// Numbers of inputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Inputs {
    /// Those of the trial, which are of one size.
    OfTrial,
    /// From an eighth of those to several hundred times as much.
    Wide,
    /// One in two is 0, 1 or -1.
    Marked,
    /// All elements of an input are 0, or 1, or as in the trial.
    Flat,
}

impl Inputs {
    /// All but those of the trial.
    pub(super) const OTHERS: [Inputs; 3] = [Inputs::Wide, Inputs::Marked, Inputs::Flat];
}

impl Doubles {
    /// With inputs as in a trial.
    pub(super) fn new(numbers: Concrete, casts: bool) -> Doubles {
        Doubles { numbers, casts, inputs: Inputs::OfTrial }
    }
}

fn is_float(dtype: Dtype) -> bool {
    dtype.class() == DtypeClass::Float
}

/// The dtype that is computed in.
fn wide(dtype: Dtype) -> Dtype {
    if is_float(dtype) { Dtype::F64 } else { dtype }
}

/// Cells of a dtype as doubles, where it is one of floats.
fn widened(mut cells: Vec<u64>, dtype: Dtype) -> Vec<u64> {
    if is_float(dtype) {
        cells.iter_mut().for_each(|cell| *cell = double(*cell, dtype).to_bits());
    }
    cells
}

fn double(cell: u64, dtype: Dtype) -> f64 {
    match decode(cell, dtype) {
        Scalar::Float(x) => x,
        Scalar::Int(n) => n as f64,
        Scalar::Complex(re, _) => f64::from(re),
    }
}

/// A double rounded to a dtype.
fn rounded(x: u64, dtype: Dtype) -> u64 {
    double(cell(Number::Float(f64::from_bits(x)), dtype), dtype).to_bits()
}

impl Domain for Doubles {
    fn name(&self) -> &'static str {
        "doubles"
    }

    fn split(&self, cell: u64, bytes: u8) -> (u64, u64) {
        Provenance::default().split(cell, bytes)
    }

    fn join(&self, low: u64, high: u64, bytes: u8) -> u64 {
        Provenance::default().join(low, high, bytes)
    }

    fn input(&self, key: u64, index: u64, dtype: Dtype) -> u64 {
        let cell = widened(vec![self.numbers.input(key, index, dtype)], dtype)[0];
        if !is_float(dtype) {
            return cell;
        }
        let of_input = mix(mix(self.numbers.seed, key), 0x696E);
        let pick = mix(of_input, index) >> 8;
        let number = match self.inputs {
            Inputs::OfTrial => return cell,
            Inputs::Wide => f64::from_bits(cell) * 2f64.powi((pick % 14) as i32 - 3),
            Inputs::Marked => {
                [0.0, 1.0, -1.0].get(pick as usize % 6).copied().unwrap_or(f64::from_bits(cell))
            }
            Inputs::Flat => {
                [0.0, 1.0].get((of_input >> 8) as usize % 3).copied().unwrap_or(f64::from_bits(cell))
            }
        };
        rounded(number.to_bits(), dtype)
    }

    fn constant(&self, number: Number, dtype: Dtype) -> u64 {
        widened(vec![cell(number, dtype)], dtype)[0]
    }

    fn cast(&self, cells: &[u64], from: Dtype, to: Dtype) -> Outcome<Vec<u64>> {
        if from == to {
            return Ok(cells.to_vec());
        }
        let leaves = |&cell: &u64| if is_float(from) && self.casts { rounded(cell, from) } else { cell };
        let cells: Vec<u64> = cells.iter().map(leaves).collect();
        Ok(match (is_float(from), is_float(to)) {
            (true, true) if self.casts => cells.into_iter().map(|cell| rounded(cell, to)).collect(),
            (true, true) => cells,
            (_, true) => widened(self.numbers.cast(&cells, from, to)?, to),
            _ => self.numbers.cast(&cells, wide(from), to)?,
        })
    }

    fn number(&self, cell: u64, dtype: Dtype) -> Number {
        self.numbers.number(cell, wide(dtype))
    }

    fn integers(&self, cells: &[u64], dtype: Dtype) -> Option<Vec<i64>> {
        self.numbers.integers(cells, dtype)
    }

    fn pointwise(
        &self,
        function: Pointwise,
        dtype: Dtype,
        operands: &[Operand],
        count: usize,
    ) -> Outcome<Vec<u64>> {
        let cells = self.numbers.pointwise(function, wide(dtype), operands, count)?;
        Ok(match function {
            Pointwise::Opaque(_, out) => widened(cells, out),
            _ => cells,
        })
    }

    fn reduce(&self, op: Reduce, dtype: Dtype, cells: &[u64], run: usize) -> Outcome<Vec<u64>> {
        self.numbers.reduce(op, wide(dtype), cells, run)
    }

    fn cumsum(&self, dtype: Dtype, cells: &[u64], run: usize) -> Outcome<Vec<u64>> {
        self.numbers.cumsum(wide(dtype), cells, run)
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
        self.numbers.matmul(size, wide(dtype), a, b, addend, wide(out))
    }

    fn across_ranks(&self, op: RankReduce, dtype: Dtype, parts: &[&[u64]]) -> Outcome<Vec<u64>> {
        self.numbers.across_ranks(op, wide(dtype), parts)
    }

    fn draw(&self, draw: Draw, key: u64, dtype: Dtype, count: usize) -> Outcome<Vec<u64>> {
        Ok(widened(self.numbers.draw(draw, key, dtype, count)?, dtype))
    }

    fn uninterpreted(
        &self,
        key: u64,
        output: u64,
        dtype: Dtype,
        count: usize,
        what: &str,
    ) -> Outcome<Vec<u64>> {
        Ok(widened(self.numbers.uninterpreted(key, output, dtype, count, what)?, dtype))
    }

    fn interprets_everything(&self) -> bool {
        self.numbers.interprets_everything()
    }
}

/// What a distance between two floats is relative to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Relative {
    /// The larger of the two.
    Each,
    /// The largest of all elements of their tensor.
    Largest,
    /// The same, where both are finite. Far from 1 doubles overflow, or lose their bits, in one way and not in another.
    LargestFinite,
}

/// The largest distance between floats that two runs give; `None` where they differ in anything else. `doubles`:
/// whether cells of floats are doubles.
pub(super) fn distance(before: &Run, after: &Run, doubles: bool, relative: Relative) -> Option<f64> {
    let mut largest = 0.0f64;
    let is_same = before.ranks.len() == after.ranks.len();
    for (one, other) in before.ranks.iter().zip(&after.ranks).filter(|_| is_same) {
        let same_lists = one.outputs.len() == other.outputs.len()
            && one.inputs.len() == other.inputs.len()
            && one.effects.len() == other.effects.len()
            && one.effects.iter().zip(&other.effects).all(|(a, b)| a.arguments == b.arguments);
        if !same_lists {
            return None;
        }
        let outputs = one.outputs.iter().zip(&other.outputs).map(|(a, b)| (&a.1, &b.1));
        let inputs = one.inputs.iter().zip(&other.inputs).map(|(a, b)| (&a.value, &b.value));
        for pair in outputs.chain(inputs) {
            let apart = match pair {
                (Leaf::Tensor(a), Leaf::Tensor(b)) => tensor_distance(a, b, doubles, relative)?,
                (a, b) if a == b => 0.0,
                _ => return None,
            };
            largest = largest.max(apart);
        }
    }
    is_same.then_some(largest)
}

/// Whether an element that is finite before is not finite after.
pub(super) fn overflows(before: &Run, after: &Run) -> bool {
    let is_finite = |cell: u64, dtype: Dtype| double(cell, dtype).is_finite();
    let of_tensor = |a: &TensorValue, b: &TensorValue| {
        let mut pairs = a.cells.iter().zip(&b.cells);
        is_float(a.dtype) && pairs.any(|(&x, &y)| is_finite(x, a.dtype) && !is_finite(y, b.dtype))
    };
    before.ranks.iter().zip(&after.ranks).any(|(one, other)| {
        let mut outputs = one.outputs.iter().zip(&other.outputs);
        outputs.any(|(a, b)| match (&a.1, &b.1) {
            (Leaf::Tensor(a), Leaf::Tensor(b)) => of_tensor(a, b),
            _ => false,
        })
    })
}

/// Whether two runs in double precision are nearer than `most` where runs in their own dtypes differ.
pub(super) fn is_near(difference: &Difference, before: &Run, after: &Run, most: f64) -> bool {
    let apart = match (leaf(before, difference), leaf(after, difference)) {
        (Some(Leaf::Tensor(a)), Some(Leaf::Tensor(b))) => tensor_distance(a, b, true, Relative::Largest),
        _ => None,
    };
    apart.is_some_and(|apart| apart <= most)
}

/// What a run gives where a difference is.
fn leaf<'r>(run: &'r Run, difference: &Difference) -> Option<&'r Leaf> {
    let rank = run.ranks.get(difference.rank as usize)?;
    match &difference.place {
        Place::Output(path) => rank.outputs.iter().find(|(at, _)| at == path).map(|(_, leaf)| leaf),
        Place::Input(name) => rank.inputs.iter().find(|input| input.name == *name).map(|input| &input.value),
        Place::Effect(_) | Place::World => None,
    }
}

fn tensor_distance(a: &TensorValue, b: &TensorValue, doubles: bool, relative: Relative) -> Option<f64> {
    let is_alike = a.dtype == b.dtype && a.shape == b.shape && a.poison == b.poison;
    if !is_alike || a.cells.len() != b.cells.len() {
        return None;
    }
    if !is_float(a.dtype) {
        return (a.cells == b.cells).then_some(0.0);
    }
    let dtype = if doubles { Dtype::F64 } else { a.dtype };
    let is_poison = |i: usize| a.poison.get(i).copied().unwrap_or(false);
    let pairs: Vec<(f64, f64)> = (0..a.cells.len())
        .filter(|&i| !is_poison(i))
        .map(|i| (double(a.cells[i], dtype), double(b.cells[i], dtype)))
        .collect();
    let finite = pairs.iter().flat_map(|&(x, y)| [x.abs(), y.abs()]).filter(|x| x.is_finite());
    let most = finite.fold(0.0, f64::max);
    pairs.into_iter().try_fold(0.0f64, |largest, (x, y)| {
        if x == y || x.is_nan() && y.is_nan() {
            return Some(largest);
        }
        let scale = match relative {
            Relative::LargestFinite if !(x.is_finite() && y.is_finite()) => return Some(largest),
            Relative::Each => x.abs().max(y.abs()),
            Relative::Largest | Relative::LargestFinite => most,
        };
        let apart = (x - y).abs() / scale;
        apart.is_finite().then(|| largest.max(apart))
    })
}
