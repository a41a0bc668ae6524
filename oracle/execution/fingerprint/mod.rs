//! Fingerprints: algebra without search.
//!
//! # The idea
//!
//! A cell is a number and an element of each of two [fields](field). Sums, products and quotients are computed in all three;
//! exponentials lead from the first field to the second one and logarithms back, so that `exp(a + b) = exp(a) exp(b)` and
//! `log(exp(a)) = a` hold as they are. Any other function is drawn by a hash of what it is given. A maximum is the set of
//! what it is made of, and a choice `no + condition * (yes - no)`, whatever the condition is.
//!
//! # The statement
//!
//! Equal expressions have equal cells in one of the fields. Of different ones, which are quotients of polynomials of degree
//! d in inputs, exponentials and drawn functions, the cells are equal in the first field by an accident of chance at most
//! `(d / 8209)^4`, and in the second one of `d / 2^60`. So equal cells are a proof up to that chance that two expressions
//! are the same function of real numbers, wherever both are defined. Where they are not defined the number says: the
//! logarithm and the root of what is negative, and 0 / 0, are no numbers, and that is compared. What remains is whether
//! both are undefined in the same places: the argument of each logarithm, root and quotient takes, for each element, every
//! sign in some trial that its bounds in either graph leave open ([`Table::uncovered`](cell::Table::uncovered)).
//!
//! # Choices
//!
//! Unless one of two values is no number, they are equal, or the first is less, or greater. So a comparison is a function of
//! at most four conditions, and a value that is chosen by a few conditions is a table of what it is by their outcomes: equal
//! tables are equal whatever the conditions are. A table over the comparison of two values that gives the larger of them, or
//! of others whose difference is in proportion to theirs, is that maximum.
//!
//! An index selects one of some elements: `first + sum of [index = j] * (element j - first)`. That it lies in its range is
//! what a graph requires that would raise otherwise; the graph after must not require more than the one before.
//!
//! # Premises
//!
//! Nothing overflows, inputs are finite, and constants are what they are [recognised](constant) as.
//!
//! # Rounding
//!
//! A cast that may lose something is a drawn function, and a cast back of what was exact is none. Floats of less than 32 bits
//! are rounded where they leave their dtype (bit for bit: wherever they are computed). Sums in another order are
//! the same, then, and sums that are computed in another dtype are not.
//!
//! # What it does not do
//!
//! Nothing is said of decisions whose arguments are rounded otherwise ([`worlds`]): they are other conditions.

mod bits;
mod cases;
mod cell;
mod constant;
mod field;
mod parts;
mod trial;
mod worlds;

use super::concrete::wide::wide;
use super::concrete::{Concrete, Scalar, cell as concrete_cell, decode};
use super::domain::{Addend, Domain, Draw, MatmulSize, Operand, Outcome, Pointwise, RankReduce, Rounding};
use super::hash::{mix, text, words};
use super::identity::{is_neutral, written};
use super::number::Number;
use super::numerics::Numerics;
use crate::graph::{Dtype, DtypeClass, NodeId};
use crate::ops::{Binary, Reduce, Unary};
use cases::Product;
use cell::{Algebra, Cell, Selection, Table};
use field::Field;
use std::cmp::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
pub use trial::{Alike, Likeness};
pub(super) use trial::{least_apart, part};

/// Which laws hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Laws {
    /// Whether sums and products of floats are those of real numbers, and constants what they are recognised as; else each
    /// is a function of its operands, in either order.
    reals: bool,
    /// Whether the larger of zeros of either sign is one of them.
    zeros: bool,
    /// Whether a sum with 0 is what 0 is added to, although it may be a zero of another sign.
    signs: bool,
    /// Whether the inverse of what depends on inputs is one.
    quotients: bool,
    /// Whether functions that are made of others are written out, such as the logistic function.
    functions: bool,
    /// Whether exponentials, logarithms, roots, sines and cosines are what they are.
    analysis: bool,
    /// Whether maxima are sets, and choices are made of sums and products.
    choices: bool,
    /// Whether floats are cast to other floats as they are.
    casts: bool,
    /// Whether the numbers of integers select elements, although other numbers would select others.
    any_index: bool,
    /// Whether floats may be infinite or no numbers.
    nans: bool,
}

impl Laws {
    /// Those of a level.
    fn of(level: Numerics) -> Laws {
        let is_real = level >= Numerics::Reassociation;
        Laws {
            reals: is_real,
            zeros: level >= Numerics::ZeroSign,
            signs: level >= Numerics::ZeroSign,
            quotients: is_real,
            functions: level >= Numerics::Contraction,
            analysis: level >= Numerics::Contraction,
            choices: true,
            casts: level >= Numerics::Precision,
            any_index: false,
            nans: !is_real,
        }
    }

    /// Whether constants are what they are recognised as.
    fn recognises(&self) -> bool {
        self.reals && self.choices
    }

    /// Whether maxima of a dtype are sets.
    fn have_sets(&self, dtype: Dtype) -> bool {
        self.zeros || self.choices && !rounds(dtype)
    }

    /// Whether integers and conditions alone have laws of arithmetic, and nothing is said of infinities.
    fn are_bits(&self) -> bool {
        !self.reals
    }
}

/// Conditions by which operands are chosen, at most, so that a function of them is computed choice by choice.
const FEW_CONDITIONS: usize = 3;

/// The domain of fingerprints. The runs that are compared share one.
#[derive(Debug)]
pub struct Fingerprints {
    laws: Laws,
    field: &'static Field,
    numbers: Concrete,
    inputs: Inputs,
    table: Arc<Mutex<Table>>,
}

/// What inputs hold.
#[derive(Clone, Debug)]
enum Inputs {
    /// Numbers of one size.
    OfTrial,
    /// From an eighth of those to several hundred times as much.
    Wide,
    /// One in two is one of these, or near it.
    Marked(Vec<f64>),
    /// All elements of an input are one of these, or as in the trial.
    Flat(Vec<f64>),
    /// All elements of one input in two are this.
    At(f64),
    /// All lie within 1 of this: above it, below it, or those of one input above it and those of another one below it.
    Beside(f64, Option<bool>),
}

impl Inputs {
    /// The number of an element that is `number` in the trial; `None` where it stays that.
    fn mark(&self, number: f64, of_input: u64, of_element: u64) -> Option<f64> {
        let pick = |marks: &[f64], hash: u64, of: usize| {
            let at = (hash >> 8) as usize % (of * marks.len().max(1));
            marks.get(at).map(|mark| mark + [0.0, 0.0, 0.25, -0.25][(hash >> 56) as usize % 4])
        };
        match self {
            Inputs::OfTrial => None,
            Inputs::Wide => Some(number * 2f64.powi((of_element >> 8) as i32 % 14 - 3)),
            Inputs::Marked(marks) => pick(marks, of_element, 2),
            Inputs::Flat(marks) => pick(marks, of_input, 2),
            Inputs::At(mark) => (of_input >> 8).is_multiple_of(2).then_some(*mark),
            Inputs::Beside(mark, is_above) => {
                let apart = number.abs() / (1.0 + number.abs());
                let is_above = is_above.unwrap_or((of_input >> 8).is_multiple_of(2));
                Some(if is_above { mark + apart } else { mark - apart })
            }
        }
    }
}

fn is_float(dtype: Dtype) -> bool {
    dtype.class() == DtypeClass::Float
}

/// Floats, and complex numbers, which are made of them.
fn rounds(dtype: Dtype) -> bool {
    dtype.class() >= DtypeClass::Float
}

/// Floats of less than 32 bits.
fn is_small(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F16 | Dtype::BF16 | Dtype::F8E4M3 | Dtype::F8E5M2)
}

fn number_of(cell: u64, dtype: Dtype) -> f64 {
    match decode(cell, dtype) {
        Scalar::Float(x) => x,
        Scalar::Int(n) => n as f64,
        Scalar::Complex(..) => f64::NAN,
    }
}

/// Integers that are computed wrap around, unless their dtype holds them.
fn in_range(cell: Cell, dtype: Dtype) -> Cell {
    match bits::holds(dtype, &cell) {
        true => cell,
        false => Cell { low: f64::NEG_INFINITY, high: f64::INFINITY, is_not_zero: false, ..cell },
    }
}

/// A number as a cell of numbers.
fn as_number(x: f64, dtype: Dtype) -> u64 {
    match is_float(dtype) {
        true => x.to_bits(),
        false => concrete_cell(Number::Int(x as i64), dtype),
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

/// Whether a dtype holds whatever lies between the bounds of an integer.
fn holds(dtype: Dtype, cell: &Cell) -> bool {
    let held = 2f64.powi(dtype.precision().0 as i32);
    if is_float(dtype) { cell.low >= -held && cell.high <= held } else { bits::holds(dtype, cell) }
}

/// Whether a function of integers wraps as they do: the same whether they wrap before it or after it.
fn is_ring_of_integers(function: Pointwise) -> bool {
    match function {
        Pointwise::Unary(op, _) => matches!(op, Unary::Neg | Unary::Square | Unary::BitwiseNot),
        Pointwise::Binary(op, ..) => matches!(op, Binary::Add | Binary::Sub | Binary::Mul | Binary::Pow),
        _ => false,
    }
}

/// Whether a function is one of floats that is computed in at least 32 bits.
fn is_arithmetic(function: Pointwise) -> bool {
    match function {
        Pointwise::Unary(op, _) => op == Unary::Square,
        Pointwise::Binary(op, ..) => {
            matches!(op, Binary::Add | Binary::Sub | Binary::Mul | Binary::Div | Binary::Pow)
        }
        _ => false,
    }
}

/// Whether a function gives one of its operands, or what each dtype holds: casts may be made before it or after it.
fn keeps_dtype(function: Pointwise) -> bool {
    use Binary::*;
    match function {
        Pointwise::Where => true,
        Pointwise::Unary(op, _) => matches!(op, Unary::Relu | Unary::Abs | Unary::Sign | Unary::LogicalNot),
        Pointwise::Binary(op, ..) => {
            matches!(op, Maximum | Minimum | ClampMin | ClampMax | Eq | Ne | Lt | Le | Gt | Ge)
        }
        _ => false,
    }
}

/// Whether a function gives a number wherever it is given finite ones within the bounds of these.
fn is_total(function: Pointwise, of: &[Cell]) -> bool {
    use Unary::*;
    let is = |at: usize, holds: fn(&Cell) -> bool| of.get(at).is_some_and(holds);
    match function {
        Pointwise::Unary(Log | Log2 | Log10 | Rsqrt, _) => is(0, Cell::is_positive),
        Pointwise::Unary(Log1p, _) => is(0, |cell| cell.low > -1.0),
        Pointwise::Unary(Sqrt, _) => is(0, |cell| cell.low >= 0.0),
        Pointwise::Unary(Reciprocal, _) => is(0, |cell| cell.is_not_zero),
        Pointwise::Unary(Tan | Asin | Acos | Acosh | Atanh, _) => false,
        Pointwise::Binary(Binary::Div | Binary::Remainder | Binary::Fmod | Binary::FloorDivide, ..) => {
            is(1, |cell| cell.is_not_zero)
        }
        Pointwise::Binary(op, ..) => op != Binary::Pow,
        Pointwise::Unary(..) | Pointwise::Fma | Pointwise::Where | Pointwise::Conj => true,
        Pointwise::Opaque(..) => false,
    }
}

/// Between which bounds the results of a function lie that are numbers.
fn range_of(function: Pointwise) -> (f64, f64) {
    match function {
        Pointwise::Unary(Unary::Exp | Unary::Exp2 | Unary::Sqrt | Unary::Rsqrt | Unary::Cosh, _) => {
            (0.0, f64::INFINITY)
        }
        Pointwise::Unary(Unary::Sigmoid, _) => (0.0, 1.0),
        Pointwise::Unary(Unary::Tanh | Unary::Erf | Unary::Sin | Unary::Cos, _) => (-1.0, 1.0),
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    }
}

/// The dtype of a function's results.
pub(super) fn result(function: Pointwise, dtype: Dtype) -> Dtype {
    use Binary::*;
    match function {
        Pointwise::Opaque(_, out) => out,
        Pointwise::Unary(Unary::Isnan | Unary::Isinf | Unary::LogicalNot, _)
        | Pointwise::Binary(Eq | Ne | Lt | Le | Gt | Ge, ..) => Dtype::Bool,
        _ => dtype,
    }
}

impl Fingerprints {
    fn new(laws: Laws) -> Fingerprints {
        let (field, numbers) = (Field::of(false), Concrete::of_trial(1));
        Fingerprints { laws, field, numbers, inputs: Inputs::OfTrial, table: Arc::default() }
    }

    /// The laws of bits: elements that are equal are so bit for bit, up to the bits of a NaN.
    pub fn in_bits() -> Fingerprints {
        Fingerprints::new(Laws::of(Numerics::Exact))
    }

    /// The laws by which values are told apart that differ in more than roundings.
    pub(super) fn but_for_roundings() -> Fingerprints {
        Fingerprints::new(Laws {
            reals: true,
            zeros: false,
            signs: false,
            quotients: true,
            functions: true,
            analysis: false,
            choices: false,
            casts: false,
            any_index: true,
            nans: false,
        })
    }

    fn algebra<'t>(&'t self, table: &'t mut Table) -> Algebra<'t> {
        Algebra { field: self.field, are_bits: self.laws.are_bits(), nans: false, is_whole: false, table }
    }

    /// The algebra of elements of a dtype.
    fn algebra_of<'t>(&'t self, table: &'t mut Table, dtype: Dtype) -> Algebra<'t> {
        let nans = self.laws.nans && rounds(dtype);
        Algebra { nans, is_whole: dtype.class() == DtypeClass::Int, ..self.algebra(table) }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An element that a dtype holds, kept.
    fn held(&self, table: &mut Table, cell: Cell, dtype: Dtype) -> u64 {
        let key = table.keep(cell);
        table.exact.insert((key, dtype));
        key
    }

    /// Cells as elements of a dtype that may have to round them.
    fn fit(&self, table: &mut Table, key: u64, dtype: Dtype) -> u64 {
        if is_small(dtype) && !self.laws.reals { self.rounded(table, key, Dtype::F32, dtype) } else { key }
    }

    /// A cell of one dtype as an element of another that may not hold it.
    fn rounded(&self, table: &mut Table, key: u64, from: Dtype, to: Dtype) -> u64 {
        // PyTorch makes the floats of less than 32 bits of a float32, whatever it casts.
        if is_small(to) && from != Dtype::F32 {
            let first = if is_exact(from, Dtype::F32) {
                key
            } else {
                self.rounded_once(table, key, from, Dtype::F32)
            };
            return self.rounded_once(table, first, Dtype::F32, to);
        }
        self.rounded_once(table, key, from, to)
    }

    fn rounded_once(&self, table: &mut Table, key: u64, from: Dtype, to: Dtype) -> u64 {
        if table.exact.contains(&(key, to)) || is_float(to) && self.is_negative_of_exact(table, key, to) {
            return key;
        }
        let what = words(text("cast"), [to as u64, from.class() as u64]);
        let mut algebra = self.algebra(table);
        let cell = algebra.cell(key);
        if let Some(leaves) = algebra.leaves(&cell).filter(|leaves| !leaves.contains(&key)) {
            // What is chosen is rounded, whatever that is.
            let rounded: Vec<(u64, u64)> =
                leaves.into_iter().map(|leaf| (leaf, self.rounded_once(table, leaf, from, to))).collect();
            let mut algebra = self.algebra(table);
            let of_leaf = |algebra: &mut Algebra, of: &[Cell]| {
                let leaf = algebra.table.keep(of[0]);
                let found = rounded.iter().find(|(known, _)| *known == leaf);
                algebra.cell(found.map_or(leaf, |(_, rounded)| *rounded))
            };
            if let Some(chosen) = algebra.by_choice(&[cell], &[], of_leaf) {
                let number = self.cast_number(cell.number, from, to);
                return self.held(table, Cell { number, is_lost: cell.is_lost, ..chosen }, to);
            }
        }
        if from.class() == DtypeClass::Int && holds(to, &cell) {
            return self.held(table, cell, to);
        }
        let algebra = self.algebra(table);
        let number = self.cast_number(cell.number, from, to);
        if cell.known_integer().is_some_and(|known| number == known as f64) {
            return self.held(table, cell, to);
        }
        if self.laws.are_bits() && cell.known().is_some() && number.is_finite() {
            let mut algebra = self.algebra(table);
            let known =
                if is_float(to) { algebra.exact_float(number) } else { algebra.integer(number as i128) };
            return self.held(table, known, to);
        }
        // A rounding keeps the order of numbers, and may make 0 of what is none.
        let low = if cell.low >= 0.0 && is_float(to) { 0.0 } else { f64::NEG_INFINITY };
        // What leaves the range of a dtype is no evidence.
        let leaves = cell.number.is_finite() && (!number.is_finite() || number == 0.0 && cell.number != 0.0);
        let rounded = Cell { low, number, is_lost: cell.is_lost || leaves, ..algebra.opaque(what, &[cell]) };
        let rounded = if cell.is_special() { cell } else { rounded };
        let held = self.held(algebra.table, rounded, to);
        if from == to {
            algebra.table.unwrapped.insert(held, cell);
        }
        held
    }

    /// Whether a float of a dtype has the same magnitude.
    fn is_negative_of_exact(&self, table: &mut Table, key: u64, dtype: Dtype) -> bool {
        let algebra = self.algebra(table);
        let other = algebra.neg(algebra.cell(key));
        table.exact.contains(&(other.key(), dtype))
    }

    fn cast_number(&self, x: f64, from: Dtype, to: Dtype) -> f64 {
        let cells = self.numbers.cast(&[as_number(x, from)], wide(from), to);
        cells.ok().and_then(|cells| cells.first().map(|&cell| number_of(cell, to))).unwrap_or(f64::NAN)
    }

    /// A number as an operand: PyTorch computes with f32 where the elements are floats of at most as many bits.
    fn scalar(&self, algebra: &mut Algebra, number: Number, dtype: Dtype) -> Cell {
        match number {
            Number::Term(term) => Cell { is_lost: true, ..algebra.drawn(mix(text("item"), term)) },
            Number::Complex(re, im) => {
                let (re, im, unit) = (
                    algebra.float(re, false),
                    algebra.float(im, false),
                    algebra.drawn(text("imaginary unit")),
                );
                let both = algebra.add(re, algebra.mul(im, unit));
                Cell { is_lost: true, is_constant: true, ..both }
            }
            Number::Float(x) if self.laws.recognises() => {
                algebra.float(x, is_float(dtype) && dtype != Dtype::F64)
            }
            Number::Float(x) if is_float(dtype) && dtype != Dtype::F64 => {
                algebra.exact_float(f64::from(x as f32))
            }
            Number::Float(x) => algebra.exact_float(x),
            Number::Bool(b) => algebra.integer(b.into()),
            Number::Int(n) => algebra.integer(n.into()),
        }
    }

    /// A number as an element: integers wrap it.
    fn element(&self, algebra: &mut Algebra, number: Number, dtype: Dtype) -> Cell {
        match (number, decode(concrete_cell(number, dtype), dtype)) {
            (Number::Bool(_) | Number::Int(_) | Number::Float(_), Scalar::Int(n)) => algebra.integer(n),
            _ => self.scalar(algebra, number, dtype),
        }
    }

    /// What a function without undefined places gives where it is given what is infinite or no number: what the number
    /// says. Else it has that number, as far as it has any. `ring`: sums, products and quotients alone are computed, so
    /// that what was divided by 0 stays that, or becomes 0.
    fn settled(&self, algebra: &mut Algebra, cell: Cell, number: f64, of: &[Cell], ring: bool) -> Cell {
        if algebra.decides() {
            return Cell { is_lost: cell.known().is_none(), ..cell };
        }
        let is_lost = cell.is_lost || of.iter().any(|operand| operand.is_lost);
        if self.laws.are_bits() {
            return Cell { number, is_lost, ..cell };
        }
        let poles = of.iter().filter(|operand| operand.is_pole).count();
        if poles > 0 {
            return match number {
                _ if !ring => Cell { is_lost: true, number: f64::NAN, ..cell },
                0.0 if !is_lost => algebra.integer(0),
                _ if number.is_nan() && poles == 1 && !is_lost => algebra.special(number),
                _ => algebra.pole(),
            };
        }
        if !is_lost && of.iter().any(Cell::is_special) {
            return Cell { is_constant: false, ..algebra.float(number, false) };
        }
        if cell.is_special() {
            return cell;
        }
        Cell {
            number,
            is_lost: is_lost || !number.is_finite(),
            is_irregular: cell.is_irregular || of.iter().any(|operand| operand.is_irregular),
            ..cell
        }
    }

    /// What a choice gives: one of its operands.
    fn chosen(&self, algebra: &Algebra, cell: Cell, number: f64, of: &[Cell]) -> Cell {
        if algebra.decides() {
            return cell;
        }
        let is_lost = of.iter().any(|operand| operand.is_lost);
        let is_pole = of.iter().any(|operand| operand.is_pole);
        match is_lost || is_pole || number.is_finite() || self.laws.are_bits() {
            true => Cell { number, is_lost: is_lost || is_pole, is_pole: false, ..cell },
            false => algebra.special(number),
        }
    }

    fn unary(&self, algebra: &mut Algebra, op: Unary, tanh: bool, dtype: Dtype, a: Cell) -> Option<Cell> {
        let laws = self.laws;
        let one = algebra.integer(1);
        let are_sets = laws.have_sets(dtype);
        let is_real = laws.reals && is_float(dtype);
        let is_arithmetic = op.is_step() || matches!(op, Unary::Sqrt | Unary::Reciprocal | Unary::Square);
        if laws.are_bits()
            && is_arithmetic
            && let Some(known) = self.of_known(algebra, Pointwise::Unary(op, tanh), dtype, &[a])
        {
            return Some(known);
        }
        Some(match op {
            Unary::LogicalNot | Unary::BitwiseNot if dtype == Dtype::Bool && laws.choices => {
                return algebra.logic(&[a], |of| !of[0]);
            }
            Unary::LogicalNot if laws.choices && dtype.class() <= DtypeClass::Float => {
                let zero = algebra.integer(0);
                return self.compared(algebra, Binary::Eq, dtype, a, zero);
            }
            Unary::BitwiseNot if dtype.class() == DtypeClass::Int && laws.choices => {
                if algebra.table.exact.contains(&(a.key(), dtype)) {
                    return algebra.bitwise(dtype, [a, a], |a, _| !a);
                }
                algebra.neg(algebra.add(a, one))
            }
            Unary::Neg if is_float(dtype) => algebra.negated(a),
            Unary::Neg => algebra.neg(a),
            Unary::Relu if are_sets => {
                let zero = algebra.integer(0);
                algebra.extreme(true, is_real, &[a, zero])
            }
            Unary::Relu if laws.choices && is_float(dtype) => {
                let zero = algebra.integer(0);
                return self.clamped(algebra, true, dtype, a, zero);
            }
            // The magnitude of the least integer wraps to itself.
            Unary::Abs if dtype.class() == DtypeClass::Int && laws.choices => {
                if matches!(dtype, Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::U64) {
                    return Some(a);
                }
                let other = algebra.neg(algebra.table.unwrapped.get(&a.key()).copied().unwrap_or(a));
                let key = algebra.table.keep(other);
                let key = self.rounded_once(algebra.table, key, dtype, dtype);
                let other = algebra.cell(key);
                algebra.extreme(true, false, &[a, other])
            }
            Unary::Abs if are_sets || algebra.decides() && is_float(dtype) => algebra.abs(is_real, a),
            Unary::Floor if laws.choices && is_float(dtype) => algebra.floor(a),
            Unary::Ceil if laws.choices && is_float(dtype) => algebra.ceil(a),
            Unary::Round | Unary::Trunc if laws.choices && is_float(dtype) => {
                let other = algebra.neg(a);
                let turns = (other.u, other.v) < (a.u, a.v);
                let whole = algebra.whole(op as u64, if turns { other } else { a });
                if turns { algebra.turned_sign(whole) } else { whole }
            }
            // What is asked is not known, whatever the premises are.
            Unary::Isnan if laws.choices && is_float(dtype) => {
                return self.compared(algebra, Binary::Ne, dtype, a, a);
            }
            Unary::Sign if laws.choices && dtype.class() <= DtypeClass::Float => {
                let zero = algebra.integer(0);
                let above = self.compared(algebra, Binary::Gt, dtype, a, zero)?;
                let below = self.compared(algebra, Binary::Lt, dtype, a, zero)?;
                let otherwise = algebra.choice(below, algebra.integer(-1), zero, false);
                algebra.choice(above, one, otherwise, false)
            }
            Unary::Square if laws.are_bits() && is_float(dtype) => {
                let product = (Binary::Mul, one, Rounding::True);
                return self.rounded_arithmetic(algebra, product, dtype, a, a);
            }
            _ if laws.are_bits() && rounds(dtype) => return None,
            Unary::Square => algebra.square(a),
            Unary::Reciprocal if laws.quotients => algebra.inverse(a),
            Unary::Exp if laws.analysis => algebra.exp(a),
            Unary::Log if laws.analysis => algebra.log(a),
            Unary::Sqrt if laws.analysis => algebra.root(a),
            Unary::Sin if laws.analysis => algebra.turned(a, false),
            Unary::Cos if laws.analysis => algebra.turned(a, true),
            Unary::Exp2 if laws.analysis => {
                let log = algebra.float(std::f64::consts::LN_2, false);
                let exponent = algebra.mul(a, log);
                algebra.exp(exponent)
            }
            Unary::Log2 if laws.analysis => self.log_by(algebra, a, std::f64::consts::LN_2),
            _ if !laws.functions => return None,
            Unary::Rsqrt => {
                let root = self.unary_or_drawn(algebra, Unary::Sqrt, a);
                algebra.inverse(root)
            }
            Unary::Expm1 => {
                let exp = self.unary_or_drawn(algebra, Unary::Exp, a);
                algebra.add(exp, algebra.neg(one))
            }
            Unary::Log1p => {
                let above = algebra.add(one, a);
                self.unary_or_drawn(algebra, Unary::Log, above)
            }
            Unary::Sigmoid => self.sigmoid(algebra, a),
            Unary::Silu => {
                let sigmoid = self.sigmoid(algebra, a);
                algebra.mul(a, sigmoid)
            }
            Unary::Tanh => self.tanh(algebra, a),
            // The functions that change their sign with their argument.
            Unary::Erf | Unary::Atan => {
                self.signed(algebra, &[a], |algebra, of| algebra.opaque(words(text("odd"), [op as u64]), of))
            }
            Unary::Gelu if tanh && laws.analysis => {
                let (of_cube, scale, half) = (
                    algebra.float(0.044715, false),
                    algebra.float(0.797_884_560_802_865_4, false),
                    algebra.float(0.5, false),
                );
                let cube = algebra.power(a, 3);
                let inner = algebra.mul(scale, algebra.add(a, algebra.mul(of_cube, cube)));
                let tanh = self.tanh(algebra, inner);
                algebra.mul(algebra.mul(half, a), algebra.add(one, tanh))
            }
            _ => return None,
        })
    }

    fn log_by(&self, algebra: &mut Algebra, a: Cell, of_base: f64) -> Cell {
        let (log, base) = (algebra.log(a), algebra.float(of_base, false));
        if log.is_special() { log } else { algebra.times_inverse(log, base) }
    }

    fn unary_or_drawn(&self, algebra: &mut Algebra, op: Unary, a: Cell) -> Cell {
        let drawn = algebra.opaque(words(text("function"), [op as u64]), &[a]);
        self.unary(algebra, op, false, Dtype::F32, a).unwrap_or(match op {
            Unary::Exp => Cell { low: 0.0, is_not_zero: true, ..drawn },
            _ => drawn,
        })
    }

    fn sigmoid(&self, algebra: &mut Algebra, a: Cell) -> Cell {
        let (one, minus) = (algebra.integer(1), algebra.neg(a));
        let below = self.unary_or_drawn(algebra, Unary::Exp, minus);
        let below = algebra.add(one, below);
        Cell { high: 1.0, ..algebra.inverse(below) }
    }

    fn tanh(&self, algebra: &mut Algebra, a: Cell) -> Cell {
        let two = algebra.integer(2);
        let sigmoid = self.sigmoid(algebra, algebra.mul(two, a));
        let cell = algebra.add(algebra.mul(two, sigmoid), algebra.integer(-1));
        Cell { low: -1.0, high: 1.0, is_not_zero: false, ..cell }
    }

    /// A function of two elements by its laws, where it has any here.
    fn binary(
        &self,
        algebra: &mut Algebra,
        (op, alpha, rounding): (Binary, Cell, Rounding),
        dtype: Dtype,
        [a, b]: [Cell; 2],
        number: Option<Number>,
    ) -> Option<Cell> {
        let laws = self.laws;
        let is_bool = dtype == Dtype::Bool;
        let one = algebra.integer(1);
        let are_sets = laws.have_sets(dtype);
        let is_real = laws.reals && is_float(dtype);
        Some(match op {
            _ if is_bool && !laws.choices => return None,
            Binary::LogicalAnd | Binary::BitwiseAnd | Binary::Mul | Binary::Minimum if is_bool => {
                return algebra.logic(&[a, b], |of| of[0] && of[1]);
            }
            // A factor that is no number of bools counts as one.
            Binary::Add if is_bool && alpha.known() == Some(0.0) => return Some(a),
            Binary::LogicalOr | Binary::BitwiseOr | Binary::Add | Binary::Maximum if is_bool => {
                return algebra.logic(&[a, b], |of| of[0] || of[1]);
            }
            Binary::LogicalXor | Binary::BitwiseXor | Binary::Ne if is_bool => {
                return algebra.logic(&[a, b], |of| of[0] != of[1]);
            }
            Binary::Eq if is_bool => return algebra.logic(&[a, b], |of| of[0] == of[1]),
            _ if is_bool => return None,
            Binary::Remainder | Binary::Fmod | Binary::FloorDivide | Binary::Div
                if dtype.class() == DtypeClass::Int && laws.choices =>
            {
                return self.divided(algebra, (op, rounding), dtype, a, b);
            }
            Binary::Maximum | Binary::Minimum if a.is(&b) => a,
            Binary::Maximum | Binary::ClampMin if are_sets => algebra.extreme(true, is_real, &[a, b]),
            Binary::Minimum | Binary::ClampMax if are_sets => algebra.extreme(false, is_real, &[a, b]),
            // Which of two zeros is the larger one depends on where they lie, unless one of them is a bound.
            Binary::Maximum | Binary::Minimum | Binary::ClampMin | Binary::ClampMax
                if laws.choices
                    && is_float(dtype)
                    && (!matches!(op, Binary::Maximum | Binary::Minimum)
                        || b.known().is_some_and(|b| b != 0.0)) =>
            {
                return self.clamped(algebra, matches!(op, Binary::Maximum | Binary::ClampMin), dtype, a, b);
            }
            Binary::Lt | Binary::Gt | Binary::Le | Binary::Ge | Binary::Eq | Binary::Ne if laws.choices => {
                return self.compared(algebra, op, dtype, a, b);
            }
            // So PyTorch computes squares and cubes (ATen/native/cpu/PowKernel.cpp).
            Binary::Pow
                if laws.are_bits() && is_float(dtype) && number.is_some_and(|n| n.is(2) || n.is(3)) =>
            {
                let product = (Binary::Mul, one, Rounding::True);
                let square = self.rounded_arithmetic(algebra, product, dtype, a, a)?;
                if number.is_some_and(|n| n.is(2)) {
                    return Some(square);
                }
                let key = algebra.table.keep(square);
                let key = self.fit(algebra.table, key, dtype);
                let square = algebra.cell(key);
                self.rounded_arithmetic(algebra, product, dtype, square, a)?
            }
            _ if laws.are_bits() && rounds(dtype) => {
                return self.rounded_arithmetic(algebra, (op, alpha, rounding), dtype, a, b);
            }
            Binary::Add | Binary::Sub => {
                let times = algebra.mul(alpha, b);
                let added = if op == Binary::Sub { algebra.neg(times) } else { times };
                let sum = algebra.add(a, added);
                let is_one = alpha.is(&algebra.integer(1)) && dtype.class() == DtypeClass::Int;
                let number = |cell: &Cell| if is_one { cell.known_integer() } else { None };
                if let Some(number) = number(&b) {
                    algebra.note_shift(&sum, &a, if op == Binary::Sub { -number } else { number });
                } else if let Some(number) = number(&a).filter(|_| op == Binary::Add) {
                    algebra.note_shift(&sum, &b, number);
                }
                sum
            }
            Binary::Mul if is_float(dtype) => {
                let chosen = if laws.choices { algebra.product_by_choice(a, b) } else { None };
                let product = chosen.unwrap_or_else(|| algebra.product(a, b));
                let of = [a, b];
                algebra.note_product(Product { cell: product, of, is_quotient: false, may_vanish: false });
                product
            }
            Binary::Mul => algebra.mul(a, b),
            Binary::Div if rounding == Rounding::True && (laws.quotients || b.is_constant && b.u != 0) => {
                algebra.times_inverse(a, b)
            }
            Binary::Pow if is_float(dtype) || number.is_some_and(|n| n.int().is_some_and(|n| n >= 0)) => {
                return self.power(algebra, a, number?);
            }
            Binary::BitwiseAnd | Binary::BitwiseOr | Binary::BitwiseXor if laws.choices => {
                let bits = algebra.bitwise(dtype, [a, b], |a, b| match op {
                    Binary::BitwiseAnd => a & b,
                    Binary::BitwiseOr => a | b,
                    _ => a ^ b,
                });
                let drawn = || algebra.unordered(words(text("bits"), [op as u64, dtype as u64]), &[a, b]);
                bits.unwrap_or_else(drawn)
            }
            _ => return None,
        })
    }

    /// A quotient of integers by a number, or what remains of it.
    fn divided(
        &self,
        algebra: &mut Algebra,
        (op, rounding): (Binary, Rounding),
        dtype: Dtype,
        a: Cell,
        b: Cell,
    ) -> Option<Cell> {
        let divisor = u64::try_from(b.known_integer()?).ok().filter(|divisor| *divisor > 0)?;
        let is_rest = matches!(op, Binary::Remainder | Binary::Fmod);
        let is_down = match op {
            Binary::Remainder | Binary::FloorDivide => true,
            Binary::Fmod => a.low >= 0.0,
            _ if rounding == Rounding::True => return None,
            _ => a.low >= 0.0 || matches!(rounding, Rounding::Floor | Rounding::FloorSteps),
        };
        if is_down && divisor.is_power_of_two() {
            return match is_rest {
                true => algebra.bitwise(dtype, [a, algebra.integer((divisor - 1).into())], |a, b| a & b),
                false => Some(algebra.shifted_right(dtype, a, divisor.trailing_zeros())),
            };
        }
        let most = divisor as f64 - 1.0;
        let rest = match is_down {
            true if a.low >= 0.0 && a.high <= most => a,
            true => {
                Cell { low: 0.0, high: most, ..algebra.opaque(words(text("remainder"), [divisor]), &[a]) }
            }
            false => Cell { low: -most, high: most, ..algebra.opaque(words(text("rest"), [divisor]), &[a]) },
        };
        let cell = if is_rest { rest } else { algebra.over(algebra.add(a, algebra.neg(rest)), divisor)? };
        let key = algebra.table.keep(cell);
        algebra.table.exact.insert((key, dtype));
        Some(cell)
    }

    /// A comparison of how many of some conditions hold with a number.
    fn counted(
        &self,
        algebra: &mut Algebra,
        conditions: &[Cell],
        number: i64,
        holds: impl Fn(Option<Ordering>) -> bool,
    ) -> Option<Cell> {
        let count = conditions.len();
        let of = |n: usize| holds(Some((n as i64).cmp(&number)));
        let not = |algebra: &mut Algebra, of: Cell| algebra.logic(&[of], |of| !of[0]);
        if count > 1 && (2..=count).all(|n| of(n) == of(1)) && of(0) != of(1) {
            let any = algebra.any(conditions);
            return if of(1) { Some(any) } else { not(algebra, any) };
        }
        if count > 1 && (1..count).all(|n| of(n) == of(0)) && of(count) != of(0) {
            let all = folded_conditions(algebra, Reduce::All, conditions);
            return if of(count) { Some(all) } else { not(algebra, all) };
        }
        algebra.logic(conditions, |holding| of(holding.iter().filter(|holds| **holds).count()))
    }

    /// A comparison. Unless one of both is no number, they are equal, or one of them is less: so a comparison is a function
    /// of four conditions.
    fn compared(&self, algebra: &mut Algebra, op: Binary, dtype: Dtype, a: Cell, b: Cell) -> Option<Cell> {
        // A constant comes second.
        let is_turned = (a.is_constant, a.u, a.v) > (b.is_constant, b.u, b.v);
        let [a, b] = if is_turned { [b, a] } else { [a, b] };
        let holds = |outcome: Option<Ordering>| {
            let outcome = if is_turned { outcome.map(Ordering::reverse) } else { outcome };
            match op {
                Binary::Lt => outcome == Some(Ordering::Less),
                Binary::Gt => outcome == Some(Ordering::Greater),
                Binary::Le => matches!(outcome, Some(Ordering::Less | Ordering::Equal)),
                Binary::Ge => matches!(outcome, Some(Ordering::Greater | Ordering::Equal)),
                Binary::Eq => outcome == Some(Ordering::Equal),
                _ => outcome != Some(Ordering::Equal),
            }
        };
        let (no, yes) = (algebra.integer(0), algebra.integer(1));
        if let Some((x, y)) = a.known().zip(b.known()) {
            return Some(if holds(x.partial_cmp(&y)) { yes } else { no });
        }
        if !rounds(dtype) {
            let outcome = match () {
                _ if a.high < b.low => Some(Ordering::Less),
                _ if a.low > b.high => Some(Ordering::Greater),
                _ => None,
            };
            if outcome.is_some() {
                return Some(if holds(outcome) { yes } else { no });
            }
            let is_decided = algebra.is_condition(&a) && b.known_integer().is_some();
            let chosen = |algebra: &mut Algebra, of: &[Cell]| {
                let outcome = of[0].known().zip(b.known()).and_then(|(x, y)| x.partial_cmp(&y));
                algebra.integer(holds(outcome).into())
            };
            if let Some(compared) = is_decided.then(|| algebra.by_choice(&[a], &[], chosen)).flatten() {
                return Some(compared);
            }
            let counted = algebra.table.counts.get(&a.key()).cloned().zip(b.known_integer());
            if let Some(compared) =
                counted.and_then(|(conditions, number)| self.counted(algebra, &conditions, number, holds))
            {
                return Some(compared);
            }
        }
        // A sign that bounds leave no choice is the same in bits, where nothing is too small for them.
        let real = algebra.real(&a);
        let is_sign = rounds(dtype) && !self.laws.nans && b.known() == Some(0.0);
        if is_sign && real.is_not_zero && (real.low >= 0.0 || real.high <= 0.0) {
            let outcome = if real.low >= 0.0 { Ordering::Greater } else { Ordering::Less };
            return Some(if holds(Some(outcome)) { yes } else { no });
        }
        let is_special = |cell: &Cell| algebra.is_partial(cell) || cell.is_never_a_number();
        let may_be_none = self.laws.nans || a.is(&b) || is_special(&a) || is_special(&b);
        if algebra.decides() {
            let is_none =
                may_be_none && rounds(dtype) && [a, b].iter().any(|cell| algebra.is_none_by_case(*cell));
            let outcome = if is_none { None } else { Some(algebra.order_by_case(a, b, true)) };
            return Some(if holds(outcome) { yes } else { no });
        }
        let none = [a, b].map(|cell| self.none(algebra, may_be_none, dtype, cell));
        let [equal, less] = algebra.comparison(dtype, a, b);
        let is_int = !rounds(dtype);
        algebra.logic(&[none[0], none[1], equal, less], |of| {
            holds(match *of {
                [false, false, false, false] => Some(Ordering::Greater),
                [false, false, true, is_less] if is_int || !is_less => Some(Ordering::Equal),
                [false, false, _, _] => Some(Ordering::Less),
                _ => None,
            })
        })
    }

    /// Whether a value is no number.
    fn none(&self, algebra: &mut Algebra, may_be_none: bool, dtype: Dtype, a: Cell) -> Cell {
        match may_be_none && rounds(dtype) && a.known().is_none() {
            true if a.is_never_a_number() => algebra.integer(1),
            true => algebra.none(a),
            false => algebra.integer(0),
        }
    }

    /// At least or at most a bound: of zeros of either sign, the value.
    fn clamped(
        &self,
        algebra: &mut Algebra,
        is_least: bool,
        dtype: Dtype,
        a: Cell,
        bound: Cell,
    ) -> Option<Cell> {
        bound.known()?;
        let beyond = if is_least { Binary::Lt } else { Binary::Gt };
        let is_beyond = self.compared(algebra, beyond, dtype, a, bound)?;
        Some(algebra.choice(is_beyond, bound, a, false))
    }

    /// Which of some elements an index selects. `from_end`: one that is negative counts from the end.
    fn selected(&self, algebra: &mut Algebra, index: Cell, from_end: bool, of: &[Cell]) -> Cell {
        let Some(first) = of.first() else { return algebra.pole() };
        let count = of.len() as i64;
        if let Some(known) = index.known_integer() {
            return of[known.rem_euclid(count) as usize];
        }
        let is_at = |algebra: &mut Algebra, j: i64| {
            let names = [Some(j), from_end.then_some(j - count)];
            names.into_iter().flatten().fold(algebra.integer(0), |any, name| {
                let name = algebra.integer(name.into());
                let is_named = self.compared(algebra, Binary::Eq, Dtype::I64, index, name);
                algebra.add(any, is_named.unwrap_or(name))
            })
        };
        let others: Vec<i64> = (1..count).filter(|&j| !of[j as usize].is(first)).collect();
        // One element, or another one wherever else the index points.
        let alone = match others.as_slice() {
            [] => return *first,
            &[alone] => Some((is_at(algebra, alone), of[alone as usize], *first)),
            all if all.len() as i64 == count - 1 && all.iter().all(|&j| of[j as usize].is(&of[1])) => {
                let is_other = (1..count).fold(algebra.integer(0), |any, j| {
                    let is_at = is_at(algebra, j);
                    algebra.add(any, is_at)
                });
                let is_first = algebra.add(algebra.integer(1), algebra.neg(is_other));
                Some((is_first, *first, of[1]))
            }
            _ => None,
        };
        if let Some((is_there, yes, no)) = alone {
            return algebra.choice(
                Cell { low: 0.0, high: 1.0, is_constant: false, ..is_there },
                yes,
                no,
                false,
            );
        }
        let mut chosen = *first;
        for j in others {
            let is_at = is_at(algebra, j);
            let other = algebra.mul(is_at, algebra.add(of[j as usize], algebra.neg(*first)));
            chosen = algebra.add(chosen, other);
        }
        chosen
    }

    /// Arithmetic of floats, rounded: a function of both operands in either order, with the laws of signs, of 0, 1 and powers
    /// of two that hold in bits.
    fn rounded_arithmetic(
        &self,
        algebra: &mut Algebra,
        (op, alpha, rounding): (Binary, Cell, Rounding),
        dtype: Dtype,
        a: Cell,
        b: Cell,
    ) -> Option<Cell> {
        // Floats of less than 32 bits are computed in as many, and rounded behind it.
        let computed = if is_small(dtype) { Dtype::F32 } else { dtype };
        let what = |name: &str| mix(text(name), computed as u64);
        // What is computed of constants is rounded, and its number is not.
        let number =
            |cell: &Cell| (cell.is_constant && cell.low == cell.high).then_some(Number::Float(cell.low));
        let kept = |number: Option<Number>, first: bool| {
            let alpha = if alpha.is(&algebra.integer(1)) { Number::Int(1) } else { Number::Int(2) };
            number.is_some_and(|number| is_neutral(op, (number, first), alpha, rounding, dtype))
        };
        if kept(number(&b), false) {
            return Some(a);
        }
        if kept(number(&a), true) {
            return Some(b);
        }
        let is_one = alpha.is(&algebra.integer(1));
        let is_zero = |cell: &Cell| self.laws.signs && is_one && cell.known() == Some(0.0);
        match op {
            Binary::Mul | Binary::Div if b.known() == Some(-1.0) && rounding == Rounding::True => {
                return Some(algebra.turned_sign(a));
            }
            Binary::Mul if a.known() == Some(-1.0) => return Some(algebra.turned_sign(b)),
            Binary::Add | Binary::Sub if is_zero(&b) => return Some(a),
            Binary::Add if is_zero(&a) => return Some(b),
            Binary::Sub if is_zero(&a) => return Some(algebra.turned_sign(b)),
            _ => {}
        }
        let is_arithmetic = matches!(op, Binary::Add | Binary::Sub | Binary::Mul | Binary::Div);
        let function = Pointwise::Binary(op, Number::Int(1), rounding);
        if is_one
            && is_arithmetic
            && let Some(known) = self.of_known(algebra, function, dtype, &[a, b])
        {
            return Some(known);
        }
        match op {
            Binary::Add if is_one => Some(self.rounded_sum(algebra, what("sum"), [a, b])),
            Binary::Sub if is_one => {
                Some(self.rounded_sum(algebra, what("sum"), [a, algebra.turned_sign(b)]))
            }
            Binary::Mul => {
                // What was multiplied by 0 stays what it is.
                let keeps = |cell: &Cell| {
                    number(cell).is_some_and(|n| n.float().is_sign_positive() && n.float().is_finite())
                };
                for (factor, of) in [(a, b), (b, a)] {
                    if keeps(&factor) && algebra.table.zeros.contains(&(of.u, of.v)) {
                        return Some(of);
                    }
                }
                let [a, b] = if a.is(&b) { [algebra.without_sign(a); 2] } else { [a, b] };
                let product =
                    self.signed(algebra, &[a, b], |algebra, of| algebra.unordered(what("product"), of));
                let is_positive = a.is(&b) || a.low >= 0.0 && b.low >= 0.0;
                let product = if is_positive { Cell { low: 0.0, ..product } } else { product };
                let may_vanish = ![a, b].iter().any(|cell| cell.known().is_some_and(|x| x.abs() >= 1.0));
                algebra.note_product(Product { cell: product, of: [a, b], is_quotient: false, may_vanish });
                if [a, b].iter().any(|cell| number(cell).is_some_and(|n| n.float() == 0.0)) {
                    let other = algebra.neg(product);
                    algebra.table.zeros.extend([(product.u, product.v), (other.u, other.v)]);
                }
                Some(product)
            }
            Binary::Div if rounding == Rounding::True => {
                // Half of it is a product by half.
                let power = number(&b).map_or(0.0, Number::float);
                let is_power = power.is_normal()
                    && power.abs().log2().fract() == 0.0
                    && power.abs().log2().abs() < 100.0;
                let inverse = if is_power { Some(algebra.exact_float(1.0 / power)) } else { None };
                Some(match inverse {
                    Some(inverse) => self
                        .signed(algebra, &[a, inverse], |algebra, of| algebra.unordered(what("product"), of)),
                    None => {
                        let quotient =
                            self.signed(algebra, &[a, b], |algebra, of| algebra.opaque(what("quotient"), of));
                        let inverse = b.known().filter(|x| *x != 0.0).map(|x| algebra.exact_float(1.0 / x));
                        algebra.note_product(Product {
                            cell: quotient,
                            of: [a, inverse.unwrap_or(b)],
                            is_quotient: inverse.is_none(),
                            may_vanish: b.known().is_none_or(|x| x == 0.0 || x.abs() > 1.0),
                        });
                        quotient
                    }
                })
            }
            // What is left of a division has the sign of what is divided.
            Binary::Fmod => {
                let divisor = algebra.without_sign(b);
                Some(
                    self.signed(algebra, &[a], |algebra, of| algebra.opaque(what("rest"), &[of[0], divisor])),
                )
            }
            _ => None,
        }
    }

    /// What a function that every machine rounds alike makes of floats that are known.
    fn of_known(
        &self,
        algebra: &mut Algebra,
        function: Pointwise,
        dtype: Dtype,
        of: &[Cell],
    ) -> Option<Cell> {
        let held = |cell: &Cell| {
            let known = cell.known().or_else(|| cell.is_never_a_number().then_some(f64::NAN))?;
            let held = concrete_cell(Number::Float(known), dtype);
            (number_of(held, dtype).to_bits() == known.to_bits()).then_some([held])
        };
        let held: Vec<[u64; 1]> = of.iter().map(held).collect::<Option<_>>().filter(|_| is_float(dtype))?;
        let operands: Vec<Operand> = held.iter().map(|cell| Operand::Cells(cell)).collect();
        let computed = self.numbers.pointwise(function, dtype, &operands, 1).ok()?;
        Some(algebra.exact_float(number_of(*computed.first()?, dtype)))
    }

    /// A sum that is rounded. With both signs turned it is that with another sign, but for the sign of 0.
    fn rounded_sum(&self, algebra: &mut Algebra, what: u64, of: [Cell; 2]) -> Cell {
        let turned = of.map(|cell| algebra.turned_sign(cell));
        let [sum, other] = [&of, &turned].map(|of| algebra.unordered(what, of));
        let turns = self.laws.zeros && (other.u, other.v) < (sum.u, sum.v);
        let other = algebra.neg(other);
        let (sum, other) = if turns { (other, sum) } else { (sum, other) };
        algebra.table.sums.extend([(sum.key(), (other, of)), (other.key(), (sum, of))]);
        if of.iter().all(|cell| cell.low >= 0.0) { Cell { low: 0.0, ..sum } } else { sum }
    }

    /// A function that changes its sign with each operand.
    fn signed(&self, algebra: &Algebra, of: &[Cell], function: impl Fn(&Algebra, &[Cell]) -> Cell) -> Cell {
        let mut is_negative = false;
        let without_sign = |cell: &Cell| {
            let other = algebra.neg(*cell);
            let turns = (other.u, other.v) < (cell.u, cell.v);
            is_negative ^= turns;
            if turns { other } else { *cell }
        };
        let of: Vec<Cell> = of.iter().map(without_sign).collect();
        let cell = function(algebra, &of);
        if is_negative { algebra.neg(cell) } else { cell }
    }

    fn power(&self, algebra: &mut Algebra, a: Cell, exponent: Number) -> Option<Cell> {
        let twice = exponent.float() * 2.0;
        if matches!(exponent, Number::Complex(..) | Number::Term(_))
            || twice != twice.trunc()
            || twice.abs() > 64.0
        {
            return None;
        }
        let twice = twice as i64;
        let is_whole = twice % 2 == 0;
        let laws = self.laws;
        if !is_whole && !laws.analysis || twice < 0 && !laws.quotients || !laws.quotients && twice > 6 {
            return None;
        }
        let base = if is_whole { a } else { algebra.root(a) };
        let times = if is_whole { twice.unsigned_abs() / 2 } else { twice.unsigned_abs() };
        let power = algebra.power(base, times);
        Some(if twice < 0 { algebra.inverse(power) } else { power })
    }

    /// Numbers of a function of corresponding elements; none where it has no kernel.
    fn numbers_of(
        &self,
        function: Pointwise,
        dtype: Dtype,
        operands: &[Operand],
        cells: &[Vec<Cell>],
        count: usize,
    ) -> Vec<f64> {
        let lost = || vec![f64::NAN; count];
        let out = result(function, dtype);
        if dtype.class() > DtypeClass::Float || matches!(function, Pointwise::Opaque(..)) {
            return lost();
        }
        let of_condition =
            |i: usize| if i == 0 && function == Pointwise::Where { Dtype::Bool } else { dtype };
        let numbers: Vec<Vec<u64>> = (cells.iter().enumerate())
            .map(|(i, cells)| cells.iter().map(|cell| as_number(cell.number, of_condition(i))).collect())
            .collect();
        let operands: Vec<Operand> = (operands.iter().zip(&numbers))
            .map(|(operand, numbers)| match operand {
                Operand::Number(Number::Term(_)) => Operand::Number(Number::Float(f64::NAN)),
                Operand::Number(number) => Operand::Number(*number),
                Operand::Cells(_) => Operand::Cells(numbers),
            })
            .collect();
        let computed = self.numbers.pointwise(function, wide(dtype), &operands, count);
        computed.map_or_else(
            |_| lost(),
            |cells| cells.into_iter().map(|cell| number_of(cell, wide(out))).collect(),
        )
    }

    /// Folds a run of cells by a binary law, and settles what comes of it.
    fn folded(&self, algebra: &mut Algebra, op: Reduce, dtype: Dtype, run: &[Cell], number: f64) -> Cell {
        let laws = self.laws;
        let sum =
            |algebra: &Algebra| run.iter().fold(algebra.integer(0), |sum, &cell| algebra.add(sum, cell));
        let is_constant = run.iter().all(|cell| cell.is_constant);
        let cell = match op {
            // A sum begins with 0, which a zero of another sign becomes.
            Reduce::Prod if run.len() == 1 => run[0],
            Reduce::Sum | Reduce::Mean if run.len() == 1 && laws.signs => run[0],
            Reduce::Sum | Reduce::Mean | Reduce::Prod if laws.are_bits() && rounds(dtype) => {
                algebra.opaque(words(text("reduce"), [op as u64, dtype as u64]), run)
            }
            Reduce::Sum => sum(algebra),
            Reduce::Mean => {
                let (sum, count) = (sum(algebra), algebra.integer(run.len() as i128));
                algebra.times_inverse(sum, count)
            }
            Reduce::Prod => run.iter().fold(algebra.integer(1), |product, &cell| algebra.mul(product, cell)),
            _ if run.len() == 1 => run[0],
            Reduce::Amax | Reduce::Amin
                if !rounds(dtype) && run.iter().all(|cell| algebra.is_condition(cell)) =>
            {
                folded_conditions(algebra, if op == Reduce::Amax { Reduce::Any } else { Reduce::All }, run)
            }
            Reduce::Amax | Reduce::Amin if laws.have_sets(dtype) => {
                let cell = algebra.extreme(op == Reduce::Amax, laws.reals && is_float(dtype), run);
                return self.chosen(algebra, cell, number, run);
            }
            Reduce::Any | Reduce::All if laws.choices => folded_conditions(algebra, op, run),
            _ => algebra.opaque(words(text("reduce"), [op as u64]), run),
        };
        self.settled(
            algebra,
            Cell { is_constant: is_constant || algebra.decides() && cell.is_constant, ..cell },
            number,
            run,
            matches!(op, Reduce::Sum | Reduce::Mean | Reduce::Prod),
        )
    }
}

/// Whether any or all of some conditions hold.
fn folded_conditions(algebra: &mut Algebra, op: Reduce, run: &[Cell]) -> Cell {
    let not = |algebra: &mut Algebra, of: Cell| algebra.logic(&[of], |of| !of[0]).unwrap_or(of);
    if op == Reduce::Any {
        return algebra.any(run);
    }
    let others: Vec<Cell> = run.iter().map(|&cell| not(algebra, cell)).collect();
    let any = algebra.any(&others);
    not(algebra, any)
}

impl Domain for Fingerprints {
    fn name(&self) -> &'static str {
        "fingerprints"
    }

    fn enter(&self, node: NodeId) {
        self.table().node = Some(node);
    }

    fn split(&self, cell: u64, bytes: u8) -> (u64, u64) {
        parts::split(cell, bytes)
    }

    fn join(&self, low: u64, high: u64, bytes: u8) -> u64 {
        parts::join(low, high, bytes)
    }

    fn input(&self, key: u64, index: u64, dtype: Dtype) -> u64 {
        let number = number_of(self.numbers.input(key, index, dtype), dtype);
        let of_input = mix(mix(self.numbers.seed, key), text("input"));
        let hash = mix(mix(of_input, index), dtype as u64);
        let is_marked = is_float(dtype) || matches!(self.inputs, Inputs::Beside(..)) && dtype != Dtype::Bool;
        let mark = if is_marked { self.inputs.mark(number, of_input, mix(hash, 1)) } else { None };
        let number = mark.map_or(number, |mark| self.cast_number(mark, Dtype::F64, dtype));
        let is_drawn = matches!(self.inputs, Inputs::Wide | Inputs::Beside(..));
        let table = &mut *self.table();
        let mut algebra = self.algebra(table);
        let cell = match mark {
            Some(_) if !is_drawn => algebra.float(number, dtype != Dtype::F64),
            _ => algebra.drawn(hash),
        };
        let (low, high) = match bits::range(dtype) {
            _ if dtype == Dtype::Bool => (0.0, 1.0),
            Some(range) if cell.known_integer().is_none() => range,
            _ => (cell.low, cell.high),
        };
        let is_lost = dtype.class() > DtypeClass::Float || table.cases.is_some();
        let cell = Cell { number, low, high, is_lost, is_constant: false, ..cell };
        let cell = self.algebra_of(table, dtype).input_by_case(cell);
        self.held(table, cell, dtype)
    }

    fn constant(&self, number: Number, dtype: Dtype) -> u64 {
        let table = &mut *self.table();
        let mut algebra = self.algebra(table);
        if let Number::Term(_) = number {
            let cell = self.scalar(&mut algebra, number, dtype);
            let key = table.keep(cell);
            return self.fit(table, key, dtype);
        }
        let number = match decode(concrete_cell(number, dtype), dtype) {
            Scalar::Float(x) => Number::Float(x),
            Scalar::Int(_) => number,
            Scalar::Complex(re, im) => Number::Complex(f64::from(re), f64::from(im)),
        };
        let cell = self.element(&mut algebra, number, dtype);
        self.held(table, cell, dtype)
    }

    fn cast(&self, cells: &[u64], from: Dtype, to: Dtype) -> Outcome<Vec<u64>> {
        if from == to {
            return Ok(cells.to_vec());
        }
        if self.laws.casts && is_float(from) && is_float(to) {
            return Ok(cells.to_vec());
        }
        let table = &mut *self.table();
        let leaving = |table: &mut Table, key: u64| match (from, to) {
            // Any other dtype holds what an integer has wrapped, and a double what a float32 has rounded.
            _ if from.class() == DtypeClass::Int => self.rounded_once(table, key, from, from),
            _ if !self.laws.reals => key,
            (Dtype::F32, Dtype::F64) => self.rounded(table, key, Dtype::F64, from),
            _ if is_small(from) => self.rounded(table, key, Dtype::F32, from),
            _ => key,
        };
        let mut cast = |(i, key): (usize, u64)| {
            table.element = i;
            let key = leaving(table, key);
            if self.laws.choices && to == Dtype::Bool {
                let mut algebra = self.algebra_of(table, from);
                let (cell, zero) = (algebra.cell(key), algebra.integer(0));
                if let Some(is_not_zero) = self.compared(&mut algebra, Binary::Ne, from, cell, zero) {
                    if algebra.decides() {
                        return self.held(table, is_not_zero, to);
                    }
                    let number = self.cast_number(cell.number, from, to);
                    let condition =
                        Cell { number, is_lost: cell.is_lost, low: 0.0, high: 1.0, ..is_not_zero };
                    return self.held(table, condition, to);
                }
            }
            if from == Dtype::Bool {
                let mut algebra = self.algebra(table);
                if algebra.decides() {
                    let decided = algebra.decided(algebra.cell(key));
                    return self.held(table, decided, to);
                }
                algebra.note_condition(key);
            }
            if !is_exact(from, to) {
                return self.rounded(table, key, from, to);
            }
            // What a small float holds, a float32 holds.
            let wider = if is_small(from) { Dtype::F32 } else { to };
            table.exact.extend([(key, from), (key, to), (key, wider)]);
            key
        };
        Ok(cells.iter().copied().enumerate().map(&mut cast).collect())
    }

    fn number(&self, cell: u64, dtype: Dtype) -> Number {
        Number::Term(mix(mix(text("number"), dtype as u64), cell))
    }

    fn integers(&self, cells: &[u64], dtype: Dtype) -> Option<Vec<i64>> {
        let known = |(index, is_open): (i64, bool)| (!is_open).then_some(index);
        self.indices(cells, dtype)?.into_iter().map(known).collect()
    }

    fn indices(&self, cells: &[u64], dtype: Dtype) -> Option<Vec<(i64, bool)>> {
        if dtype.class() != DtypeClass::Int || dtype == Dtype::U8 {
            return None;
        }
        let table = &mut *self.table();
        let algebra = self.algebra(table);
        let of = |&key: &u64| {
            let cell = algebra.cell(key);
            let is_open = !cell.is_constant && !self.laws.any_index;
            (!cell.is_lost).then_some((cell.number as i64, is_open))
        };
        cells.iter().map(of).collect()
    }

    fn by_index(&self, index: u64, from_end: bool, dtype: Dtype, of: &[u64]) -> u64 {
        let table = &mut *self.table();
        let mut algebra = self.algebra(table);
        let index = algebra.cell(index);
        let count = of.len() as i64;
        algebra.note_range(&index, if from_end { -count } else { 0 }, count);
        let cells: Vec<Cell> = of.iter().map(|&key| algebra.cell(key)).collect();
        let Some(first) = cells.first().copied() else { return algebra.pole().u };
        // What selects may itself be chosen.
        let select = |algebra: &mut Algebra, of: &[Cell]| self.selected(algebra, of[0], from_end, &cells);
        let by_choice = algebra.by_choice(&[index], &[], select);
        let chosen = by_choice.unwrap_or_else(|| {
            let selected = self.selected(&mut algebra, index, from_end, &cells);
            algebra.note_selection(&selected, Selection { index, from_end, of: cells.clone() });
            selected
        });
        let bound = |f: fn(f64, f64) -> f64, part: fn(&Cell) -> f64| {
            cells.iter().map(part).reduce(f).unwrap_or(f64::NAN)
        };
        let at = (index.number as i64).rem_euclid(cells.len() as i64) as usize;
        let cell = Cell {
            low: bound(f64::min, |cell| cell.low),
            high: bound(f64::max, |cell| cell.high),
            is_not_zero: cells.iter().all(|cell| cell.is_not_zero),
            is_constant: false,
            exponential: 0,
            ..chosen
        };
        let with_index: Vec<Cell> = cells.iter().copied().chain([index]).collect();
        let cell = if chosen.is(&first) {
            first
        } else {
            self.chosen(&algebra, cell, cells[at].number, &with_index)
        };
        match of.iter().all(|&key| algebra.table.exact.contains(&(key, dtype))) {
            true => self.held(algebra.table, cell, dtype),
            false => algebra.table.keep(cell),
        }
    }

    fn pointwise(
        &self,
        function: Pointwise,
        dtype: Dtype,
        operands: &[Operand],
        count: usize,
    ) -> Outcome<Vec<u64>> {
        if let (Pointwise::Conj, [Operand::Cells(cells)]) = (function, operands) {
            let table = &mut *self.table();
            let mut algebra = self.algebra(table);
            return Ok(cells.iter().map(|&key| algebra.conjugate(key)).collect());
        }
        let (function, operands) = written(function, operands);
        let table = &mut *self.table();
        let mut algebra = self.algebra_of(table, dtype);
        let out = result(function, dtype);
        let wraps_first = dtype.class() == DtypeClass::Int && !is_ring_of_integers(function);
        let mut are_exact = true;
        let mut cells: Vec<Vec<Cell>> = Vec::with_capacity(operands.len());
        for (at, operand) in operands.iter().enumerate() {
            let is_condition = at == 0 && function == Pointwise::Where;
            cells.push(match operand {
                Operand::Number(number) if wraps_first => vec![self.element(&mut algebra, *number, dtype)],
                // Kernels take an exponent as a double, and round it for some elements only (PowKernel.cpp).
                Operand::Number(number) => {
                    let is_exponent = at == 1 && matches!(function, Pointwise::Binary(Binary::Pow, ..));
                    let kept = self.laws.are_bits() && is_exponent && is_float(dtype);
                    vec![self.scalar(&mut algebra, *number, if kept { Dtype::F64 } else { dtype })]
                }
                Operand::Cells(keys) if is_condition => keys.iter().map(|&key| algebra.cell(key)).collect(),
                Operand::Cells(keys) => {
                    let wrapped = |key: u64| match wraps_first {
                        true => self.rounded_once(algebra.table, key, dtype, dtype),
                        false => key,
                    };
                    let keys: Vec<u64> = keys.iter().copied().map(wrapped).collect();
                    are_exact &= keys.iter().all(|&key| algebra.table.exact.contains(&(key, out)));
                    keys.into_iter().map(|key| algebra.cell(key)).collect()
                }
            });
        }
        let at = |i: usize| -> Vec<Cell> {
            let of = |cells: &Vec<Cell>| cells.get(i).or(cells.first()).copied();
            cells.iter().filter_map(of).collect()
        };
        let numbers = self.numbers_of(function, dtype, operands, &cells, count);
        let alpha = match function {
            Pointwise::Binary(_, alpha, _) => self.scalar(&mut algebra, alpha, dtype),
            _ => algebra.integer(1),
        };
        let number_given = match operands {
            [_, Operand::Number(n)] => Some(*n),
            _ => None,
        };
        let of = if keeps_dtype(function) { dtype.class() as u64 } else { mix(1, dtype as u64) };
        let ring = match function {
            Pointwise::Unary(op, _) => matches!(op, Unary::Neg | Unary::Square | Unary::Reciprocal),
            Pointwise::Binary(op, _, rounding) => {
                matches!(op, Binary::Add | Binary::Sub | Binary::Mul)
                    || op == Binary::Div && rounding == Rounding::True
            }
            function => function == Pointwise::Fma,
        };
        let key = match function {
            Pointwise::Unary(op, tanh) => words(1, [op as u64, u64::from(tanh)]),
            Pointwise::Binary(op, alpha, rounding) => words(2, [op as u64, alpha.key(), rounding as u64]),
            Pointwise::Opaque(key, _) => mix(3, key),
            _ => 4,
        };
        // Whether it gives no number where it is given one that is none.
        let gives_none = rounds(out)
            && match function {
                Pointwise::Unary(op, _) => op != Unary::Sign,
                Pointwise::Binary(op, ..) => !matches!(op, Binary::Pow | Binary::ThresholdBackward),
                function => function == Pointwise::Fma,
            };
        let mut results = Vec::with_capacity(count);
        for i in 0..count {
            algebra.table.element = i;
            let of_element = at(i);
            let number = numbers.get(i).copied().unwrap_or(f64::NAN);
            let law = |algebra: &mut Algebra, of: &[Cell]| match (function, of) {
                (Pointwise::Unary(op, tanh), &[a]) => self.unary(algebra, op, tanh, dtype, a),
                (Pointwise::Binary(op, _, rounding), &[a, b]) => {
                    self.binary(algebra, (op, alpha, rounding), dtype, [a, b], number_given)
                }
                (Pointwise::Fma, &[a, b, c]) if self.laws.reals => Some(algebra.add(algebra.mul(a, b), c)),
                (Pointwise::Where, &[condition, yes, no]) => {
                    let is_one = yes.is(&no);
                    let are_sets = self.laws.have_sets(dtype);
                    let is_real = self.laws.reals && is_float(dtype);
                    if !self.laws.choices && !is_one {
                        return None;
                    }
                    let chosen = algebra.choice(condition, yes, no, dtype == Dtype::Bool);
                    Some(if are_sets { algebra.as_extreme(is_real, chosen) } else { chosen })
                }
                _ => None,
            };
            let drawn = |algebra: &mut Algebra, of_these: &[Cell]| {
                let drawn = algebra.opaque(words(text("function"), [key, of]), of_these);
                let (low, high) = range_of(function);
                Cell { is_lost: matches!(function, Pointwise::Opaque(..)), low, high, ..drawn }
            };
            use Binary::{ClampMax, ClampMin, Maximum, Minimum, ThresholdBackward};
            let is_choice = matches!(
                function,
                Pointwise::Where
                    | Pointwise::Unary(Unary::Relu | Unary::Abs, _)
                    | Pointwise::Binary(Maximum | Minimum | ClampMin | ClampMax | ThresholdBackward, ..)
            );
            // A function of what is chosen is chosen among what it gives.
            let pulls = self.laws.are_bits()
                && function != Pointwise::Where
                && dtype != Dtype::Bool
                && algebra.conditions(&of_element) <= FEW_CONDITIONS;
            let pulled = match pulls {
                true => algebra.by_choice(&of_element, &[], |algebra, of| {
                    law(algebra, of).unwrap_or_else(|| drawn(algebra, of))
                }),
                false => None,
            };
            let selected = if self.laws.choices {
                algebra.by_selection(&of_element, |algebra, of| {
                    law(algebra, of).unwrap_or_else(|| drawn(algebra, of))
                })
            } else {
                None
            };
            let selected = selected.map(|selection| {
                let selected =
                    self.selected(&mut algebra, selection.index, selection.from_end, &selection.of);
                algebra.note_selection(&selected, selection);
                selected
            });
            // What a quotient by 0 is is not known, nor what is made of it.
            let is_pole = match function {
                Pointwise::Where => false,
                // An infinity that a number is not known to be multiplied with is one of either sign, or none.
                Pointwise::Binary(Binary::Mul | Binary::Div, ..)
                    if algebra.decides() && of_element.iter().any(Cell::is_infinite) =>
                {
                    of_element.iter().any(|cell| cell.known().is_none_or(|x| x == 0.0))
                }
                _ => algebra.is_pole(&of_element),
            };
            let times = matches!(function, Pointwise::Binary(Binary::Mul, ..));
            let of_pole = |algebra: &mut Algebra| match times {
                true => algebra.times_pole(&of_element),
                false => algebra.made_of_pole(words(text("function"), [key, of]), &of_element),
            };
            let computed = match is_pole && rounds(out) {
                true => Some(of_pole(&mut algebra)),
                false => pulled.or(selected).or_else(|| law(&mut algebra, &of_element)),
            };
            // 0 times what may be undefined is not 0, and neither is that less itself; but for inputs that are 0 at this point.
            let may_be_undefined = ring
                && self.laws.recognises()
                && of_element.iter().any(|cell| algebra.is_partial(cell))
                && !of_element.iter().any(|cell| cell.vanishes() && !cell.is_constant);
            let computed = computed.filter(|cell| !(may_be_undefined && cell.vanishes()));
            let is_computed = computed.is_some();
            let cell = computed.unwrap_or_else(|| drawn(&mut algebra, &of_element));
            let cell = match is_choice {
                true => self.chosen(&algebra, cell, number, &of_element),
                false => self.settled(&mut algebra, cell, number, &of_element, ring),
            };
            // The roots and logarithms of what is negative are no numbers, in bits too. Of another function that is drawn it
            // is asked, unless it has a kernel and is given numbers.
            let has_kernel = !matches!(function, Pointwise::Opaque(..));
            let is_known = has_kernel && cell.is_constant;
            let is_real = algebra.decides() && !self.laws.nans && rounds(out) && !is_known;
            let is_of_positive = matches!(
                function,
                Pointwise::Unary(Unary::Log | Unary::Log2 | Unary::Sqrt | Unary::Rsqrt, _)
            ) && !is_computed;
            let is_total = is_total(function, &of_element);
            let are_known = of_element.iter().all(|cell| cell.known().is_some());
            let cell = match () {
                _ if algebra.decides() && !is_computed && are_known && !number.is_finite() => {
                    algebra.special(number)
                }
                _ if !is_real || is_computed || is_total => cell,
                _ if is_of_positive => match (algebra.sign_by_case(of_element[0], true, false), function) {
                    (Ordering::Less, _) => algebra.special(f64::NAN),
                    (Ordering::Equal, Pointwise::Unary(Unary::Sqrt, _)) => algebra.integer(0),
                    (Ordering::Equal, Pointwise::Unary(Unary::Rsqrt, _)) => {
                        algebra.made_of_pole(key, &of_element)
                    }
                    (Ordering::Equal, _) => algebra.special(f64::NEG_INFINITY),
                    (Ordering::Greater, _) => cell,
                },
                _ if algebra.is_none_by_case(cell) => algebra.made_of_pole(text("undefined"), &[cell]),
                _ => cell,
            };
            algebra.note_partial(&cell, &of_element, is_total || is_real && is_of_positive);
            // One that is drawn is undefined where its number is none.
            let is_drawn = !is_computed && !is_total && has_kernel;
            let is_seen = is_drawn && self.laws.recognises() && rounds(out) && !algebra.decides();
            let are_finite = of_element.iter().all(|cell| !cell.is_lost && cell.number.is_finite());
            let is_undefined = is_seen && number.is_nan() && are_finite;
            if is_seen && !cell.is_constant {
                algebra.see_function(&cell, is_undefined);
            }
            let cell = match is_undefined {
                true => Cell { is_constant: cell.is_constant, ..algebra.special(f64::NAN) },
                false => cell,
            };
            // What is computed of no number is none.
            let none = of_element.iter().find(|cell| cell.is_never_a_number());
            let cell = none.filter(|_| gives_none && algebra.decides()).copied().unwrap_or(cell);
            let is_known = !rounds(dtype)
                && !rounds(out)
                && of_element.iter().all(|cell| cell.known_integer().is_some())
                && number.abs() < 2f64.powi(53);
            let cell = match out {
                _ if is_known
                    && (!is_ring_of_integers(function) || cell.is(&algebra.integer(number as i128))) =>
                {
                    algebra.integer(number as i128)
                }
                Dtype::Bool if !algebra.decides() => Cell { low: 0.0, high: 1.0, ..cell },
                _ if out.class() != DtypeClass::Int || is_choice => cell,
                _ if algebra.table.exact.contains(&(cell.key(), out)) => cell,
                _ => in_range(cell, out),
            };
            if gives_none {
                let is_none_alone = match function {
                    Pointwise::Unary(op, _) => {
                        matches!(op, Unary::Exp | Unary::Tanh | Unary::Sigmoid | Unary::Erf)
                    }
                    Pointwise::Binary(op, ..) => match op {
                        Binary::Add | Binary::Sub => true,
                        Binary::Mul => of_element.iter().all(|cell| cell.known() != Some(0.0)),
                        _ => false,
                    },
                    _ => false,
                };
                algebra.note_made_of(&cell, &of_element, is_none_alone);
            }
            let key = algebra.table.keep(cell);
            let is_held = is_choice && are_exact
                || out.class() == DtypeClass::Int && bits::holds(out, &cell)
                || !is_computed
                || out == Dtype::Bool
                || self.laws.are_bits() && rounds(out) && !(is_small(out) && is_arithmetic(function));
            results.push(match is_held {
                true => self.held(algebra.table, cell, out),
                false => self.fit(algebra.table, key, out),
            });
        }
        Ok(results)
    }

    fn reduce(&self, op: Reduce, dtype: Dtype, cells: &[u64], run: usize) -> Outcome<Vec<u64>> {
        let table = &mut *self.table();
        let mut algebra = self.algebra_of(table, dtype);
        let mut reduced = Vec::with_capacity(cells.len() / run.max(1));
        let adds = matches!(op, Reduce::Sum | Reduce::Mean | Reduce::Prod);
        for (element, run) in cells.chunks_exact(run.max(1)).enumerate() {
            algebra.table.element = element;
            let wrapped = |key: u64| match dtype.class() == DtypeClass::Int && !adds {
                true => self.rounded_once(algebra.table, key, dtype, dtype),
                false => key,
            };
            let keys: Vec<u64> = run.iter().copied().map(wrapped).collect();
            let are_exact = keys.iter().all(|&key| algebra.table.exact.contains(&(key, dtype)));
            let of: Vec<Cell> = keys.into_iter().map(|key| algebra.cell(key)).collect();
            let numbers: Vec<u64> = of.iter().map(|cell| as_number(cell.number, dtype)).collect();
            let number = self.numbers.reduce(op, wide(dtype), &numbers, numbers.len());
            let number =
                number.ok().and_then(|cells| cells.first().map(|&cell| number_of(cell, wide(dtype))));
            let cell = self.folded(&mut algebra, op, dtype, &of, number.unwrap_or(f64::NAN));
            let what = words(text("reduce"), [op as u64]);
            let cell = algebra.undefined(what, &of, op == Reduce::Prod).unwrap_or(cell);
            let is_sum = op == Reduce::Sum && dtype.class() == DtypeClass::Int;
            if is_sum && bits::holds(dtype, &cell) && of.iter().all(|cell| algebra.is_condition(cell)) {
                algebra.table.counts.insert(cell.key(), of.clone());
            }
            if rounds(dtype) {
                algebra.note_made_of(&cell, &of, false);
            }
            algebra.note_partial(&cell, &of, true);
            let wraps = dtype.class() == DtypeClass::Int && !matches!(op, Reduce::Amax | Reduce::Amin);
            let cell = if wraps { in_range(cell, dtype) } else { cell };
            let key = algebra.table.keep(cell);
            reduced.push(match op {
                Reduce::Sum | Reduce::Mean | Reduce::Prod if self.laws.reals || !rounds(dtype) => {
                    self.fit(algebra.table, key, dtype)
                }
                _ if !are_exact && !self.laws.are_bits() => key,
                _ => self.held(algebra.table, cell, dtype),
            });
        }
        Ok(reduced)
    }

    fn cumsum(&self, dtype: Dtype, cells: &[u64], run: usize) -> Outcome<Vec<u64>> {
        if self.laws.are_bits() && dtype == Dtype::F32 {
            // PyTorch's CPU adds up float32 in double precision, and rounds each sum.
            let sums = self.cumsum(Dtype::F64, &self.cast(cells, dtype, Dtype::F64)?, run)?;
            return self.cast(&sums, Dtype::F64, dtype);
        }
        let table = &mut *self.table();
        let mut algebra = self.algebra(table);
        let numbers: Vec<u64> = cells.iter().map(|&key| as_number(algebra.cell(key).number, dtype)).collect();
        let numbers = self.numbers.cumsum(wide(dtype), &numbers, run)?;
        let is_drawn = self.laws.are_bits() && rounds(dtype);
        let mut sums = Vec::with_capacity(cells.len());
        let mut last = algebra.integer(0);
        for (i, (&key, &number)) in cells.iter().zip(&numbers).enumerate() {
            algebra.table.element = i;
            if i % run.max(1) == 0 {
                last = algebra.integer(0);
            }
            let next = algebra.cell(key);
            let sum = match is_drawn {
                true => algebra.opaque(mix(text("running sum"), dtype as u64), &[last, next]),
                false => algebra.add(last, next),
            };
            let of = [last, next];
            let none = of.into_iter().find(|cell| algebra.decides() && cell.is_never_a_number());
            let undefined = none.or_else(|| algebra.undefined(text("running sum"), &of, false));
            last = undefined.unwrap_or_else(|| {
                let sum = self.settled(&mut algebra, sum, number_of(number, wide(dtype)), &of, true);
                algebra.note_partial(&sum, &of, true);
                sum
            });
            last = if dtype.class() == DtypeClass::Int { in_range(last, dtype) } else { last };
            let key = algebra.table.keep(last);
            sums.push(match is_drawn {
                true => self.held(algebra.table, last, dtype),
                false => self.fit(algebra.table, key, dtype),
            });
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
        let MatmulSize { batch, m, k, n, of_vectors } = size;
        let table = &mut *self.table();
        let mut algebra = self.algebra(table);
        let cells = |algebra: &Algebra, keys: &[u64]| -> Vec<Cell> {
            keys.iter().map(|&key| algebra.cell(key)).collect()
        };
        let (a, b) = (cells(&algebra, a), cells(&algebra, b));
        let addend = addend.map(|addend| {
            let bias = cells(&algebra, addend.bias);
            (
                bias,
                self.element(&mut algebra, addend.beta, dtype),
                self.element(&mut algebra, addend.alpha, dtype),
            )
        });
        let is_drawn = self.laws.are_bits() && rounds(dtype);
        let mut products = Vec::with_capacity(batch * m * n);
        for at in 0..batch * m * n {
            algebra.table.element = at;
            let (p, i, j) = (at / (m * n), at / n.max(1) % m.max(1), at % n.max(1));
            let (mut sum, mut number) = (algebra.integer(0), 0.0);
            let mut of = Vec::with_capacity(2 * k + 3);
            for l in 0..k {
                let (x, y) = (a[(p * m + i) * k + l], b[(p * k + l) * n + j]);
                if !is_drawn {
                    sum = algebra.add(sum, algebra.mul(x, y));
                }
                number += x.number * y.number;
                of.extend([x, y]);
            }
            if let Some((bias, beta, alpha)) = &addend
                && let Some(bias) = bias.get(at)
            {
                sum = algebra.add(algebra.mul(*alpha, sum), algebra.mul(*beta, *bias));
                // A factor of 0 keeps what it is given from being read.
                let is_read = beta.number != 0.0;
                number = alpha.number * number + if is_read { beta.number * bias.number } else { 0.0 };
                of.extend([*alpha, *beta].into_iter().chain(is_read.then_some(*bias)));
            }
            if is_drawn {
                let what = text(if of_vectors { "product of vectors" } else { "dot product" });
                sum = algebra.opaque(words(what, [dtype as u64, out as u64, k as u64]), &of);
            }
            let cell = self.settled(&mut algebra, sum, number, &of, true);
            let cell = algebra.undefined(text("matrix product"), &of, true).unwrap_or(cell);
            algebra.note_partial(&cell, &of, true);
            let cell = if dtype.class() == DtypeClass::Int { in_range(cell, dtype) } else { cell };
            let key = algebra.table.keep(cell);
            products.push(match is_drawn {
                true => self.held(algebra.table, cell, out),
                false => self.fit(algebra.table, key, out),
            });
        }
        Ok(products)
    }

    fn across_ranks(&self, op: RankReduce, dtype: Dtype, parts: &[&[u64]]) -> Outcome<Vec<u64>> {
        let count = parts.first().map_or(0, |part| part.len());
        let all: Vec<u64> = (0..count).flat_map(|i| parts.iter().map(move |part| part[i])).collect();
        let reduce = match op {
            // Conditions are joined, not counted.
            RankReduce::Sum if dtype == Dtype::Bool => Some(Reduce::Amax),
            RankReduce::Product if dtype == Dtype::Bool => Some(Reduce::Amin),
            RankReduce::Sum => Some(Reduce::Sum),
            RankReduce::Avg => Some(Reduce::Mean),
            RankReduce::Product => Some(Reduce::Prod),
            RankReduce::Max => Some(Reduce::Amax),
            RankReduce::Min => Some(Reduce::Amin),
            RankReduce::Band | RankReduce::Bor | RankReduce::Bxor => None,
        };
        // In which order numbers are added up over ranks, and in which dtype, is the backend's choice: bit for bit it is a
        // function of its own.
        let adds = matches!(reduce, Some(Reduce::Sum | Reduce::Mean | Reduce::Prod));
        if let Some(reduce) = reduce.filter(|_| !(adds && self.laws.are_bits() && rounds(dtype))) {
            return self.reduce(reduce, dtype, &all, parts.len());
        }
        let what = words(text("ranks"), [op as u64, if adds { dtype as u64 } else { dtype.class() as u64 }]);
        let table = &mut *self.table();
        let algebra = self.algebra(table);
        let mut of = |run: &[u64]| {
            let of: Vec<Cell> = run.iter().map(|&key| algebra.cell(key)).collect();
            if let [only] = of.as_slice() {
                return self.held(algebra.table, *only, dtype);
            }
            let drawn = if adds { algebra.opaque(what, &of) } else { algebra.unordered(what, &of) };
            let number = reduce.and_then(|reduce| {
                let numbers: Vec<u64> = of.iter().map(|cell| as_number(cell.number, dtype)).collect();
                let found = self.numbers.reduce(reduce, wide(dtype), &numbers, numbers.len()).ok()?;
                Some(number_of(*found.first()?, wide(dtype)))
            });
            let is_lost = number.is_none() || of.iter().any(|cell| cell.is_lost);
            self.held(algebra.table, Cell { is_lost, number: number.unwrap_or(f64::NAN), ..drawn }, dtype)
        };
        Ok(all.chunks(parts.len().max(1)).map(&mut of).collect())
    }

    fn draw(&self, draw: Draw, key: u64, dtype: Dtype, count: usize) -> Outcome<Vec<u64>> {
        let what = match draw {
            Draw::Uniform => 1,
            Draw::Normal => 2,
            Draw::Bernoulli(p) => mix(3, p.to_bits()),
            Draw::Opaque(key) => mix(4, key),
        };
        let of_draw = words(mix(text("draw"), what), [key, dtype as u64]);
        let numbers = self.numbers.draw(draw, key, dtype, count)?;
        let table = &mut *self.table();
        let algebra = self.algebra(table);
        let drawn = (0..).zip(&numbers).map(|(i, &number)| Cell {
            number: number_of(number, dtype),
            is_lost: dtype.class() > DtypeClass::Float,
            ..algebra.drawn(mix(of_draw, i))
        });
        let drawn: Vec<Cell> = drawn.collect();
        Ok(drawn.into_iter().map(|cell| self.held(algebra.table, cell, dtype)).collect())
    }

    fn uninterpreted(
        &self,
        key: u64,
        output: u64,
        dtype: Dtype,
        count: usize,
        _what: &str,
    ) -> Outcome<Vec<u64>> {
        let table = &mut *self.table();
        let mut algebra = self.algebra(table);
        // Of a function that nothing is known of, an infinity and no number are not ruled out either.
        let is_total = dtype.class() < DtypeClass::Float;
        let mut drawn = |i: u64| {
            let cell = algebra.drawn(words(text("call"), [key, output, i]));
            algebra.note_partial(&cell, &[], is_total);
            self.held(algebra.table, Cell { is_lost: true, number: f64::NAN, ..cell }, dtype)
        };
        Ok((0..count as u64).map(&mut drawn).collect())
    }

    fn interprets_everything(&self) -> bool {
        true
    }
}
