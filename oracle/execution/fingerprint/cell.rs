//! Cells of fingerprints, and what arithmetic does with them.
//!
//! A cell has a number, which is an element of a run in double precision, and one element of each field. What an operation
//! does not define in a field is drawn there by a hash of what it is given in the same field; so two values that are equal
//! in one field stay equal there, whatever is computed of both.

use super::super::hash::{mix, text, words};
use super::bits::Word;
use super::cases::{Cases, Product};
use super::constant::{Constant, exact, recognised};
use super::field::{self, Field, R};
use crate::graph::{Dtype, DtypeClass, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// One value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Cell {
    /// The number.
    pub(super) number: f64,
    pub(super) u: u64,
    pub(super) v: u64,
    /// The exponential of this value in the second field, where that is known otherwise than by `u`; else 0.
    pub(super) exponential: u64,
    /// Bounds that hold whatever the inputs are.
    pub(super) low: f64,
    pub(super) high: f64,
    /// Whether it is never 0.
    pub(super) is_not_zero: bool,
    /// Whether it depends on no input.
    pub(super) is_constant: bool,
    /// Whether something was divided by 0 on the way: an infinity whose sign is that of a zero, or what is made of one.
    pub(super) is_pole: bool,
    /// Whether a root or an inverse was drawn that the fields do not have at this point: then laws of roots and inverses do
    /// not show.
    pub(super) is_irregular: bool,
    /// Whether the number says nothing: it overflowed, or was drawn.
    pub(super) is_lost: bool,
}

/// Functions that are not defined everywhere.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Partial {
    Log,
    Root,
    Inverse,
    /// A function that is drawn: undefined (-) or not.
    Function,
    /// The larger or smaller of some: by the sign of the difference of two of them.
    Choice,
}

impl Partial {
    pub(super) fn words(self) -> &'static str {
        match self {
            Partial::Log => "logarithm",
            Partial::Root => "root",
            Partial::Inverse => "inverse",
            Partial::Function => "function",
            Partial::Choice => "larger or smaller",
        }
    }
}

/// An element that a partial function gives: that of a node of the graph before (0) or after (1).
pub(super) type Site = (usize, Option<NodeId>, Partial, usize);

/// Which signs the argument of a partial function must take in some trial, and which it took: -, 0 and + as bits.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Signs {
    pub(super) wanted: u8,
    pub(super) seen: u8,
}

const NEGATIVE: u8 = 1;
const ZERO: u8 = 2;
const POSITIVE: u8 = 4;

/// Conditions that a table of choices holds at most.
const MOST_CONDITIONS: usize = 8;

/// What a value is by the outcomes of some conditions: leaf `i` where condition `k` holds as bit `k` of `i` says.
#[derive(Clone, Debug)]
struct Choices {
    conditions: Vec<Cell>,
    leaves: Vec<Cell>,
}

impl Choices {
    /// The leaf where the conditions of `all`, of which these are some, have the outcomes of `at`.
    fn leaf(&self, all: &[Cell], at: usize) -> Option<Cell> {
        self.leaves.get(self.index(all, at)).copied()
    }

    /// The number of that leaf.
    fn index(&self, all: &[Cell], at: usize) -> usize {
        let bit = |(k, own): (usize, &Cell)| {
            let place = all.iter().position(|one| one.is(own)).unwrap_or(0);
            (at >> place & 1) << k
        };
        self.conditions.iter().enumerate().map(bit).sum()
    }
}

/// One of some elements, by an index. `from_end`: one that is negative counts from the end.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    pub(super) index: Cell,
    pub(super) from_end: bool,
    pub(super) of: Vec<Cell>,
}

/// Members of a set into which a factor moves at most.
const FEW_MEMBERS: usize = 64;

/// Values of an index at most of which exactly one holds.
const FEW_PLACES: i64 = 64;

/// All cells of the runs that are compared.
#[derive(Debug, Default)]
pub(super) struct Table {
    cells: FxHashMap<u64, Cell>,
    /// What maxima (true) and minima are made of.
    sets: FxHashMap<u64, (bool, Vec<Cell>)>,
    /// Values that are chosen.
    choices: FxHashMap<u64, Choices>,
    /// What is selected by an index.
    selections: FxHashMap<u64, Selection>,
    /// Products with 0 bit for bit.
    pub(super) zeros: FxHashSet<(u64, u64)>,
    /// Sums that are rounded: another one of this magnitude, and what is added up.
    pub(super) sums: FxHashMap<u64, (Cell, [Cell; 2])>,
    /// The roots of squares.
    roots: FxHashMap<u64, Cell>,
    /// What exponentials are those of.
    exponents: FxHashMap<u64, Cell>,
    /// The complex conjugates of each other.
    conjugates: FxHashMap<u64, u64>,
    /// Cells that a dtype holds exactly, although they may lie in another one.
    pub(super) exact: FxHashSet<(u64, Dtype)>,
    /// Arguments of partial functions in this trial, by side.
    asked: [BTreeMap<(Partial, u64), (Site, u8)>; 2],
    pub(super) sites: BTreeMap<Site, Signs>,
    /// The signs that arguments of partial functions take in this trial.
    signs: Vec<(Site, u8)>,
    /// Whether something undefined was not chosen in it.
    hides: bool,
    /// What is compared by a condition: two values, by the laws.
    compared: FxHashMap<u64, [Cell; 2]>,
    /// The conditions that the first of these is less.
    less: FxHashSet<u64>,
    /// The conditions that something is no number.
    none: FxHashMap<u64, Cell>,
    /// What an element in bits is by the laws, where that is not the same.
    pub(super) own_of: FxHashMap<u64, u64>,
    /// Floats that are whole numbers, or none.
    whole: FxHashSet<u64>,
    /// What the bits of integers are.
    pub(super) words: FxHashMap<u64, Word>,
    /// The conditions of which integers are how many hold.
    pub(super) counts: FxHashMap<u64, Vec<Cell>>,
    /// What integers are that were computed and wrapped.
    pub(super) unwrapped: FxHashMap<u64, Cell>,
    /// The least value of an index, and the first that is too large, or the graph raises; by side.
    ranges: [FxHashMap<u64, (i64, i64)>; 2],
    /// Integers that are others and a number.
    shifted: FxHashMap<u64, (Cell, i64)>,
    /// What may be no number although inputs are finite.
    partial: FxHashSet<u64>,
    /// What is made of a quotient by 0.
    pub(super) poles: FxHashSet<u64>,
    /// What is answered by hand, if anything is.
    pub(super) cases: Option<Cases>,
    /// Which graph runs, and which of its nodes.
    pub(super) side: usize,
    pub(super) node: Option<NodeId>,
    /// Which of its elements is computed.
    pub(super) element: usize,
}

/// A product of bounds; that of 0 and infinity is no bound that is needed.
fn product(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 { 0.0 } else { a * b }
}

/// Sorts cells, and leaves one of equal ones.
fn make_distinct(cells: &mut Vec<Cell>) {
    cells.sort_unstable_by_key(|cell| (cell.u, cell.v));
    cells.dedup_by(|one, other| one.is(other));
}

/// A cell that is not 0 to 0 in either field.
fn is_zero(cell: &Cell) -> bool {
    cell.u == 0 || cell.v == 0
}

impl Cell {
    /// What tells it from others.
    pub(super) fn key(&self) -> u64 {
        mix(mix(text("cell"), self.u), self.v)
    }

    /// Whether both are equal in both fields.
    pub(super) fn is(&self, other: &Cell) -> bool {
        (self.u, self.v) == (other.u, other.v)
    }

    /// Infinite or no number, and not for want of room.
    pub(super) fn is_special(&self) -> bool {
        !self.is_lost && !self.number.is_finite()
    }

    /// The infinity that it is, whatever the inputs are.
    fn infinity(&self) -> Option<f64> {
        (self.is_constant && !self.is_lost && !self.is_pole && self.number.is_infinite())
            .then_some(self.number)
    }

    /// Whether it is no number, whatever the inputs are.
    pub(super) fn is_never_a_number(&self) -> bool {
        self.is_constant && !self.is_lost && self.number.is_nan()
    }

    /// The sign of a float, where that is known.
    fn sign(&self) -> Option<Ordering> {
        match () {
            _ if is_zero(self) => Some(Ordering::Equal),
            _ if self.is_lost || self.number == 0.0 => None,
            _ => self.number.partial_cmp(&0.0),
        }
    }

    /// The integer that it is known to be.
    pub(super) fn known_integer(&self) -> Option<i64> {
        let n = if self.low == self.high { self.low } else { self.number };
        let is_known = self.is_constant && !self.is_lost && n == n.trunc() && n.abs() < 2f64.powi(53);
        let is_that = self.u == (n as i128).rem_euclid(i128::from(R)) as u64;
        (is_known && is_that).then_some(n as i64)
    }

    /// The number that it is known to be: its bounds say so, as what is computed of numbers has none of its own yet.
    pub(super) fn known(&self) -> Option<f64> {
        let is_known = self.is_constant && !self.is_lost && self.low == self.high;
        is_known.then_some(self.low).or_else(|| self.known_integer().map(|n| n as f64))
    }

    /// Whether it is 0 in both fields.
    pub(super) fn vanishes(&self) -> bool {
        self.u == 0 && self.v == 0
    }

    /// Whether it is known to be an infinity.
    pub(super) fn is_infinite(&self) -> bool {
        self.known().is_some_and(f64::is_infinite)
    }

    pub(super) fn is_positive(&self) -> bool {
        self.low > 0.0 || self.low == 0.0 && self.is_not_zero
    }
}

/// Cells of one run, and the laws that are applied to them.
pub(super) struct Algebra<'t> {
    pub(super) field: &'t Field,
    /// Whether inputs may be infinite or no numbers.
    pub(super) are_bits: bool,
    /// Whether what is computed may be no number.
    pub(super) nans: bool,
    /// Whether integers are computed.
    pub(super) is_whole: bool,
    pub(super) table: &'t mut Table,
}

impl Table {
    /// An empty one for a run whose answers are given.
    pub(super) fn of_cases(cases: Cases) -> Table {
        Table { cases: Some(cases), ..Table::default() }
    }

    /// How many cells there are.
    pub(super) fn size(&self) -> usize {
        self.cells.len()
    }

    /// Whether the graph after may raise for an index that the graph before takes.
    pub(super) fn is_narrower(&self) -> bool {
        let [before, after] = &self.ranges;
        let holds = |(key, range): (&u64, &(i64, i64))| {
            before.get(key).is_some_and(|known| known.0 >= range.0 && known.1 <= range.1)
        };
        !after.iter().all(holds)
    }

    pub(super) fn get(&self, key: u64) -> Option<Cell> {
        self.cells.get(&key).copied()
    }

    /// The key of a cell. What is known of it by one way to compute it holds for all.
    pub(super) fn keep(&mut self, cell: Cell) -> u64 {
        let key = cell.key();
        let kept = self.cells.entry(key).or_insert(cell);
        if kept.is_lost && !cell.is_lost {
            (kept.is_lost, kept.number) = (false, cell.number);
        }
        (kept.low, kept.high) = (kept.low.max(cell.low), kept.high.min(cell.high));
        kept.is_not_zero |= cell.is_not_zero;
        kept.is_constant |= cell.is_constant;
        if kept.is_constant && kept.low == kept.high {
            kept.number = kept.low;
        }
        key
    }

    /// Forgets the cells of a trial. What partial functions were given is wanted of every sign that it may have, if
    /// `is_random`; by the bounds of both graphs, where both give it to them.
    pub(super) fn end_trial(&mut self, is_random: bool) {
        for side in (0..2).filter(|_| is_random) {
            let [own, other] = [&self.asked[side], &self.asked[1 - side]];
            for (key, &(site, wanted)) in own {
                let of_other = other.get(key).map_or(wanted, |&(_, wanted)| wanted);
                self.sites.entry(site).or_default().wanted |= wanted & of_other;
            }
        }
        // Where something undefined was not chosen, nobody saw what comes of it.
        for (site, seen) in self.signs.drain(..).filter(|_| !self.hides) {
            self.sites.entry(site).or_default().seen |= seen;
        }
        let sites = std::mem::take(&mut self.sites);
        *self = Table { sites, ..Table::default() };
    }

    /// A site whose argument did not take every sign that it may have; of choices where these count.
    pub(super) fn uncovered(&self, choices_count: bool) -> Option<Site> {
        let mut sites =
            self.sites.iter().filter(|((_, _, partial, _), _)| choices_count || *partial != Partial::Choice);
        sites.find(|(_, signs)| signs.wanted & !signs.seen != 0).map(|(site, _)| *site)
    }
}

impl Algebra<'_> {
    pub(super) fn cell(&self, key: u64) -> Cell {
        self.table.get(key).unwrap_or_else(|| Cell { is_lost: true, number: f64::NAN, ..self.drawn(key) })
    }

    /// A value of which nothing is known but a hash.
    pub(super) fn drawn(&self, hash: u64) -> Cell {
        let (u, v) = self.field.drawn(hash);
        self.with(u, v)
    }

    fn with(&self, u: u64, v: u64) -> Cell {
        Cell {
            number: 0.0,
            u,
            v,
            exponential: 0,
            low: f64::NEG_INFINITY,
            high: f64::INFINITY,
            is_not_zero: false,
            is_constant: false,
            is_pole: false,
            is_irregular: false,
            is_lost: false,
        }
    }

    pub(super) fn pole(&self) -> Cell {
        Cell { is_pole: true, is_constant: false, ..self.special(f64::INFINITY) }
    }

    /// A function of which nothing is known, of some cells.
    pub(super) fn opaque(&self, what: u64, of: &[Cell]) -> Cell {
        let [u, v] =
            [|cell: &Cell| cell.u, |cell: &Cell| cell.v].map(|part| words(what, of.iter().map(part)));
        self.hashed(u, v, of)
    }

    /// A function that does not mind the order of what it is given.
    pub(super) fn unordered(&self, what: u64, of: &[Cell]) -> Cell {
        let sorted = |part: fn(&Cell) -> u64| {
            let mut parts: Vec<u64> = of.iter().map(part).collect();
            parts.sort_unstable();
            words(what, parts)
        };
        self.hashed(sorted(|cell| cell.u), sorted(|cell| cell.v), of)
    }

    /// What is drawn of some cells by a hash in each field.
    fn hashed(&self, u: u64, v: u64, of: &[Cell]) -> Cell {
        Cell {
            is_constant: of.iter().all(|cell| cell.is_constant),
            is_irregular: of.iter().any(|cell| cell.is_irregular),
            ..self.with(mix(u, 1) % R, mix(v, 2) % self.field.p)
        }
    }

    pub(super) fn integer(&self, n: i128) -> Cell {
        let in_field = |modulus: u64| n.rem_euclid(i128::from(modulus)) as u64;
        let bound = n as f64;
        // Between two doubles, if it is large.
        let is_large = bound.abs() >= 2f64.powi(53);
        Cell {
            low: if is_large { bound.next_down() } else { bound },
            high: if is_large { bound.next_up() } else { bound },
            is_not_zero: n != 0,
            is_constant: true,
            number: bound,
            ..self.with(in_field(R), in_field(self.field.p))
        }
    }

    /// An infinity, or no number.
    pub(super) fn special(&self, x: f64) -> Cell {
        let hash = mix(text("special"), if x.is_nan() { 0 } else { x.to_bits() });
        let (low, high) = if x.is_nan() { (f64::NEG_INFINITY, f64::INFINITY) } else { (x, x) };
        Cell { number: x, low, high, is_not_zero: true, is_constant: true, ..self.drawn(hash) }
    }

    /// A float bit for bit.
    pub(super) fn exact_float(&mut self, x: f64) -> Cell {
        if !x.is_finite() || x == 0.0 && x.is_sign_negative() {
            return self.special(x);
        }
        self.float_as(x, exact(x))
    }

    /// A float; `single`: it is computed with as one of 32 bits.
    pub(super) fn float(&mut self, x: f64, single: bool) -> Cell {
        if !x.is_finite() {
            return self.special(x);
        }
        self.float_as(x, recognised(x, single))
    }

    fn float_as(&mut self, x: f64, constant: Constant) -> Cell {
        let whole = |n: u128| i128::try_from(n).unwrap_or(i128::MAX);
        let fraction = |this: &mut Self, p: u128, q: u128| {
            let (p, q) = (this.integer(whole(p)), this.integer(whole(q)));
            this.times_inverse(p, q)
        };
        let magnitude = match constant {
            Constant::Fraction(p, q) => fraction(self, p, q),
            Constant::Root(p, q, times) => {
                let of = fraction(self, p, q);
                (0..times).fold(of, |of, _| self.root(of))
            }
            Constant::Log(p, q, base) => {
                let (times, log) = (fraction(self, p, q), self.integer(base.into()));
                let log = self.log(log);
                self.mul(times, log)
            }
            Constant::ByLog(p, q, base) => {
                let (times, log) = (fraction(self, p, q), self.integer(base.into()));
                let log = self.log(log);
                self.times_inverse(times, log)
            }
            Constant::Float(mantissa, power) => {
                let two = self.integer(2);
                let power_of_two = self.power(two, u64::from(power.unsigned_abs()));
                let mantissa = self.integer(mantissa.into());
                if power < 0 {
                    self.times_inverse(mantissa, power_of_two)
                } else {
                    self.mul(mantissa, power_of_two)
                }
            }
        };
        let signed = if x < 0.0 { self.neg(magnitude) } else { magnitude };
        Cell { number: x, low: x, high: x, is_not_zero: x != 0.0, is_constant: true, ..signed }
    }

    /// With another sign, bit for bit: that of 0 is another 0.
    pub(super) fn turned_sign(&self, a: Cell) -> Cell {
        if self.are_bits && is_zero(&a) { self.special(-0.0) } else { self.neg(a) }
    }

    fn exponential(&self, cell: &Cell) -> u64 {
        if cell.exponential == 0 { self.field.exp(cell.u) } else { cell.exponential }
    }

    pub(super) fn add(&self, a: Cell, b: Cell) -> Cell {
        let p = self.field.p;
        if let Some(none) = [a, b].into_iter().find(Cell::is_never_a_number) {
            return none;
        }
        // What is added to an infinity is finite, by the premises.
        if let Some(sum) = match (a.infinity(), b.infinity()) {
            (Some(a), Some(b)) => Some(a + b),
            (one, other) => one.or(other),
        } {
            return self.special(sum);
        }
        let exponential = match (a.exponential, b.exponential) {
            (0, 0) => 0,
            _ => field::mul(self.exponential(&a), self.exponential(&b), p),
        };
        let low = a.low + b.low;
        Cell {
            exponential,
            low: if low.is_nan() { f64::NEG_INFINITY } else { low },
            high: if (a.high + b.high).is_nan() { f64::INFINITY } else { a.high + b.high },
            is_not_zero: a.low >= 0.0 && b.low >= 0.0 && (a.is_positive() || b.is_positive()),
            is_constant: a.is_constant && b.is_constant,
            is_irregular: a.is_irregular || b.is_irregular,
            ..self.with(field::add(a.u, b.u, R), field::add(a.v, b.v, p))
        }
    }

    pub(super) fn neg(&self, a: Cell) -> Cell {
        if let Some(infinity) = a.infinity() {
            return self.special(-infinity);
        }
        if a.is_never_a_number() {
            return a;
        }
        let p = self.field.p;
        Cell {
            number: -a.number,
            u: field::neg(a.u, R),
            v: field::neg(a.v, p),
            exponential: field::inverse(a.exponential, p).unwrap_or(0),
            low: -a.high,
            high: -a.low,
            ..a
        }
    }

    pub(super) fn mul(&self, a: Cell, b: Cell) -> Cell {
        let p = self.field.p;
        if let Some(none) = [a, b].into_iter().find(Cell::is_never_a_number) {
            return none;
        }
        for (infinite, times) in [(&a, &b), (&b, &a)] {
            if let Some(infinity) = infinite.infinity()
                && let Some(times) = times.known().filter(|times| *times != 0.0)
            {
                return self.special(infinity * times);
            }
        }
        let are_positive = a.low >= 0.0 && b.low >= 0.0;
        let is_square = a.is(&b);
        let times = |of: &Cell, times: &Cell| {
            let n = times.known_integer().filter(|_| of.exponential != 0)?;
            let power = field::pow(of.exponential, n.unsigned_abs(), p);
            if n < 0 { field::inverse(power, p) } else { Some(power) }
        };
        Cell {
            exponential: times(&a, &b).or_else(|| times(&b, &a)).unwrap_or(0),
            low: if are_positive {
                product(a.low, b.low)
            } else if is_square {
                0.0
            } else {
                f64::NEG_INFINITY
            },
            high: if are_positive && a.high.max(b.high).is_finite() {
                a.high * b.high
            } else {
                f64::INFINITY
            },
            is_not_zero: a.is_not_zero && b.is_not_zero,
            is_constant: a.is_constant && b.is_constant,
            is_irregular: a.is_irregular || b.is_irregular,
            ..self.with(field::mul(a.u, b.u, R), field::mul(a.v, b.v, p))
        }
    }

    /// A product of a cell with itself, whose root is known.
    pub(super) fn square(&mut self, a: Cell) -> Cell {
        let square = self.mul(a, a);
        self.table.roots.insert(square.key(), a);
        square
    }

    pub(super) fn power(&mut self, a: Cell, n: u64) -> Cell {
        match n {
            0 => self.integer(1),
            1 => a,
            _ if n.is_multiple_of(2) => {
                let half = self.power(a, n / 2);
                self.square(half)
            }
            _ => {
                let rest = self.power(a, n - 1);
                self.mul(a, rest)
            }
        }
    }

    /// Notes which sign the argument of a partial function has, and gives it.
    fn ask(&mut self, partial: Partial, a: &Cell) -> Option<Ordering> {
        if self.decides() && partial != Partial::Choice && !a.is_constant {
            return Some(self.sign_by_case(*a, true, false));
        }
        let sign = a.sign();
        let side = self.table.side;
        let site = (side, self.table.node, partial, self.table.element);
        let seen = match sign {
            Some(Ordering::Less) => NEGATIVE,
            Some(Ordering::Equal) => ZERO,
            Some(Ordering::Greater) => POSITIVE,
            None => 0,
        };
        self.table.signs.push((site, seen));
        let mut wanted = match partial {
            Partial::Log => NEGATIVE | ZERO,
            Partial::Root => NEGATIVE,
            Partial::Inverse => ZERO,
            Partial::Function | Partial::Choice => return sign,
        };
        if a.low >= 0.0 {
            wanted &= !NEGATIVE;
        }
        if a.is_not_zero {
            wanted &= !ZERO;
        }
        if !a.is_constant {
            let key = mix(mix(text("asked"), a.u), a.v);
            let known = self.table.asked[side].entry((partial, key)).or_insert((site, wanted));
            known.1 &= wanted;
        }
        sign
    }

    /// Notes whether a function that is drawn is undefined.
    pub(super) fn see_function(&mut self, cell: &Cell, is_undefined: bool) {
        let side = self.table.side;
        let site = (side, self.table.node, Partial::Function, self.table.element);
        let seen = if is_undefined { NEGATIVE } else { 0 };
        self.table.signs.push((site, seen));
        self.table.asked[side].insert((Partial::Function, cell.key()), (site, NEGATIVE));
    }

    pub(super) fn inverse(&mut self, a: Cell) -> Cell {
        // The root of what is negative is no number, and neither is its inverse.
        if a.is_special() && a.number.is_nan() {
            return a;
        }
        if self.ask(Partial::Inverse, &a) == Some(Ordering::Equal) {
            return if self.decides() { self.made_of_pole(text("pole"), &[a]) } else { self.pole() };
        }
        let missing = self.opaque(text("inverse"), &[a]);
        let (u, v) = (field::inverse(a.u, R), field::inverse(a.v, self.field.p));
        let inverse = Cell {
            u: u.unwrap_or(missing.u),
            v: v.unwrap_or(missing.v),
            is_irregular: a.is_irregular || u.is_none() || v.is_none(),
            low: if a.low >= 0.0 { 0.0 } else { f64::NEG_INFINITY },
            is_not_zero: true,
            ..missing
        };
        if inverse.low >= 0.0 && !a.is_constant {
            self.note_positive(inverse);
        }
        inverse
    }

    /// A quotient. That of two zeros is no number.
    pub(super) fn times_inverse(&mut self, a: Cell, b: Cell) -> Cell {
        let inverse = self.inverse(b);
        match (is_zero(&b), is_zero(&a)) {
            (true, true) => self.special(f64::NAN),
            (true, false) if self.decides() => self.times_pole(&[a, inverse]),
            (true, false) => inverse,
            _ if self.is_pole(&[inverse]) => self.times_pole(&[a, inverse]),
            _ => {
                let quotient = self.product(a, inverse);
                self.note_product(Product {
                    cell: quotient,
                    of: [a, b],
                    is_quotient: true,
                    may_vanish: false,
                });
                quotient
            }
        }
    }

    pub(super) fn exp(&mut self, a: Cell) -> Cell {
        if let Some(infinity) = a.infinity() {
            return if infinity < 0.0 { self.integer(0) } else { a };
        }
        let v = self.exponential(&a);
        // Equal arguments are equal in one of the fields, and so are their exponentials, in the other one.
        let (u, _) = self.field.drawn(mix(text("exp"), a.v));
        let Cell { is_constant, is_irregular, .. } = a;
        let exp = Cell { low: 0.0, is_not_zero: true, is_constant, is_irregular, ..self.with(u, v) };
        self.table.exponents.insert(exp.key(), a);
        self.note_positive(exp);
        exp
    }

    pub(super) fn log(&mut self, a: Cell) -> Cell {
        match self.ask(Partial::Log, &a) {
            Some(Ordering::Less) => return self.special(f64::NAN),
            Some(Ordering::Equal) => return self.special(f64::NEG_INFINITY),
            _ => {}
        }
        let u = self.field.log(a.v);
        let (_, v) = self.field.drawn(mix(text("log"), a.u));
        let Cell { is_constant, is_irregular, .. } = a;
        Cell { exponential: a.v, is_constant, is_irregular, ..self.with(u, v) }
    }

    pub(super) fn root(&mut self, a: Cell) -> Cell {
        match self.ask(Partial::Root, &a) {
            Some(Ordering::Less) => return self.special(f64::NAN),
            Some(Ordering::Equal) => return self.integer(0),
            _ => {}
        }
        if let Some(&root) = self.table.roots.get(&a.key()) {
            return self.abs(true, root);
        }
        let missing = self.opaque(text("root"), &[a]);
        let root = self.field.sqrt(a.v);
        let is_irregular = a.is_irregular || root.is_none();
        Cell { v: root.unwrap_or(missing.v), low: 0.0, is_not_zero: a.is_not_zero, is_irregular, ..missing }
    }

    /// The cosine (true) or the sine.
    pub(super) fn turned(&self, a: Cell, is_cosine: bool) -> Cell {
        let opaque = self.opaque(text(if is_cosine { "cos" } else { "sin" }), &[a]);
        let (u, _) = self.field.drawn(mix(opaque.v, a.v));
        let v = self.field.turn(a.u).map(|(cosine, sine)| if is_cosine { cosine } else { sine });
        Cell { u, v: v.unwrap_or(opaque.v), low: -1.0, high: 1.0, ..opaque }
    }

    pub(super) fn conjugate(&mut self, key: u64) -> u64 {
        if let Some(&other) = self.table.conjugates.get(&key) {
            return other;
        }
        let cell = self.cell(key);
        let other = Cell { is_lost: true, ..self.opaque(text("conjugate"), &[cell]) };
        let other = self.table.keep(other);
        self.table.conjugates.extend([(key, other), (other, key)]);
        other
    }

    pub(super) fn abs(&mut self, is_real: bool, a: Cell) -> Cell {
        let a = self.without_sign(a);
        if self.decides() {
            return match self.sign_by_case(a, false, false) {
                Ordering::Less => self.turned_sign(a),
                Ordering::Equal => self.integer(0),
                Ordering::Greater => a,
            };
        }
        let other = self.neg(a);
        let larger = self.extreme(true, is_real, &[a, other]);
        Cell { low: larger.low.max(0.0), is_not_zero: a.is_not_zero, ..larger }
    }

    /// One of the values that have this magnitude.
    pub(super) fn without_sign(&self, a: Cell) -> Cell {
        let twin = [a, self.neg(a)].iter().find_map(|cell| Some(self.table.sums.get(&cell.key())?.0));
        let all = [a].into_iter().chain(twin);
        let both = all.flat_map(|cell| [cell, self.neg(cell)]);
        both.min_by_key(|cell| (cell.u, cell.v)).unwrap_or(a)
    }

    /// The largest whole number that is not larger.
    pub(super) fn floor(&mut self, a: Cell) -> Cell {
        self.whole(text("floor"), a)
    }

    /// A whole number that a function gives, which keeps whole numbers.
    pub(super) fn whole(&mut self, function: u64, a: Cell) -> Cell {
        if self.table.whole.contains(&a.key()) {
            return a;
        }
        let whole = self.opaque(mix(text("whole"), function), &[a]);
        let other = self.turned_sign(whole);
        self.table.whole.extend([whole.key(), other.key()]);
        whole
    }

    /// The least whole number that is not smaller.
    pub(super) fn ceil(&mut self, a: Cell) -> Cell {
        let other = self.turned_sign(a);
        let floor = self.floor(other);
        self.turned_sign(floor)
    }

    /// The larger (true) or smaller of some values: the set of those of which it is made.
    pub(super) fn extreme(&mut self, is_max: bool, is_real: bool, of: &[Cell]) -> Cell {
        let mut cells: Vec<Cell> = Vec::with_capacity(of.len());
        for cell in of {
            match self.table.sets.get(&cell.key()) {
                Some((kind, set)) if *kind == is_max => cells.extend(set),
                _ => cells.push(*cell),
            }
        }
        make_distinct(&mut cells);
        let low = |cell: &Cell| if is_max { cell.low } else { -cell.high };
        let high = |cell: &Cell| if is_max { cell.high } else { -cell.low };
        // What is never beyond another member is none. Of two that are always the same, one.
        let bounds = |i: usize| (low(&cells[i]), high(&cells[i]));
        let best = (0..cells.len()).reduce(|a, b| if bounds(b) > bounds(a) { b } else { a });
        let Some(best) = best else { return self.special(f64::NAN) };
        // What is no number makes the maximum none.
        let may_be_nan = |cell: &Cell| {
            self.are_bits && !cell.is_constant || self.is_partial(cell) || cell.is_never_a_number()
        };
        let beyond = |i: &usize| *i == best || may_be_nan(&cells[*i]) || high(&cells[*i]) > low(&cells[best]);
        let cells: Vec<Cell> = (0..cells.len()).filter(beyond).map(|i| cells[i]).collect();
        if let [only] = cells.as_slice() {
            return *only;
        }
        // Exponentials have the order of their exponents.
        let exponents: Option<Vec<Cell>> =
            cells.iter().map(|cell| self.table.exponents.get(&cell.key()).copied()).collect();
        if let Some(exponents) = exponents {
            let exponent = self.extreme(is_max, is_real, &exponents);
            return self.exp(exponent);
        }
        if self.decides() {
            return self.extreme_by_case(is_max, &cells);
        }
        let what = text(if is_max { "max" } else { "min" });
        let of_set = self.unordered(what, &cells);
        if let [one, other, ..] = of {
            self.see_choice(one, other);
        }
        let v = if is_real { self.larger(is_max, &cells) } else { of_set.v };
        let bound = |f: fn(f64, f64) -> f64, part: fn(&Cell) -> f64| {
            cells.iter().map(part).reduce(f).unwrap_or(f64::NAN)
        };
        let pick: fn(f64, f64) -> f64 = if is_max { f64::max } else { f64::min };
        let all_positive =
            cells.iter().all(Cell::is_positive) || is_max && cells.iter().any(Cell::is_positive);
        let cell = Cell {
            low: bound(pick, |cell| cell.low),
            high: bound(pick, |cell| cell.high),
            is_not_zero: all_positive,
            v,
            ..of_set
        };
        self.table.sets.insert(cell.key(), (is_max, cells));
        cell
    }

    /// A product. What is never negative moves into a maximum, and what is negative makes a minimum of it.
    pub(super) fn product(&mut self, a: Cell, b: Cell) -> Cell {
        let sign = |cell: &Cell| match () {
            _ if cell.is_positive() => 1,
            _ if cell.is_constant && cell.high < 0.0 => -1,
            _ => 0,
        };
        for (factor, of) in [(a, b), (b, a)] {
            let sign = sign(&factor);
            if sign != 0
                && let Some((is_max, members)) = self.few_members(&of)
            {
                let scaled: Vec<Cell> = members.iter().map(|member| self.mul(factor, *member)).collect();
                return self.extreme(is_max == (sign > 0), true, &scaled);
            }
        }
        if !a.is(&b) {
            return self.mul(a, b);
        }
        // That of an absolute value is that of the value.
        let of = self.table.sets.get(&a.key()).and_then(|(_, members)| match members.as_slice() {
            [one, other] if other.is(&self.neg(*one)) => Some(*one),
            _ => None,
        });
        self.square(of.unwrap_or(a))
    }

    /// What a maximum (true) or minimum is made of, where that is little.
    fn few_members(&self, a: &Cell) -> Option<(bool, Vec<Cell>)> {
        self.table.sets.get(&a.key()).filter(|(_, members)| members.len() <= FEW_MEMBERS).cloned()
    }

    /// With another sign: a maximum becomes a minimum.
    pub(super) fn negated(&mut self, a: Cell) -> Cell {
        match self.few_members(&a) {
            Some((is_max, members)) => {
                let negated: Vec<Cell> = members.iter().map(|member| self.neg(*member)).collect();
                self.extreme(!is_max, !self.are_bits, &negated)
            }
            None => self.turned_sign(a),
        }
    }

    /// In the second field the maximum of members of which `a` is the largest and `z` the smallest number is
    /// `a + h * (z - a)`: so it moves with all of them, and grows with all of them. `h` is drawn from what all others are
    /// between these two.
    fn larger(&self, is_max: bool, of: &[Cell]) -> u64 {
        let p = self.field.p;
        let value = |cell: &Cell| if is_max { cell.v } else { field::neg(cell.v, p) };
        let number = |cell: &Cell| if is_max { cell.number } else { -cell.number };
        let order = |a: &&Cell, b: &&Cell| number(a).total_cmp(&number(b)).then(value(a).cmp(&value(b)));
        let (Some(top), Some(bottom)) = (of.iter().max_by(order), of.iter().min_by(order)) else { return 0 };
        let minus = |a: u64, b: u64| field::add(a, field::neg(b, p), p);
        let span = minus(value(bottom), value(top));
        let per_span = field::inverse(span, p).unwrap_or(0);
        let mut between: Vec<u64> =
            of.iter().map(|cell| field::mul(minus(value(cell), value(top)), per_span, p)).collect();
        between.sort_unstable();
        let (_, part) = self.field.drawn(words(text("between"), between));
        let larger = field::add(value(top), field::mul(part, span, p), p);
        if is_max { larger } else { field::neg(larger, p) }
    }

    /// Notes which of two values is the larger one.
    fn see_choice(&mut self, one: &Cell, other: &Cell) {
        let site = (self.table.side, self.table.node, Partial::Choice, self.table.element);
        let signs = self.table.sites.entry(site).or_default();
        signs.wanted |= NEGATIVE | POSITIVE;
        if !one.is_lost && !other.is_lost && one.number != other.number {
            signs.seen |= if one.number > other.number { POSITIVE } else { NEGATIVE };
        }
    }

    /// A value as a table of choices: a condition is one, and what is not chosen is its only leaf.
    fn choices(&self, cell: &Cell, is_condition: bool) -> Choices {
        let is_decided = |cell: &Cell| cell.is_constant && cell.u < 2 && cell.u == cell.v;
        let known = self.table.choices.get(&cell.key());
        if let Some(choices) = known.filter(|known| !is_condition || known.leaves.iter().all(is_decided)) {
            return choices.clone();
        }
        match is_condition && !is_decided(cell) {
            true => Choices { conditions: vec![*cell], leaves: vec![self.integer(0), self.integer(1)] },
            false => Choices { conditions: Vec::new(), leaves: vec![*cell] },
        }
    }

    /// A function of chosen values, choice by choice. `None` where none of them is chosen, or there are too many conditions.
    pub(super) fn by_choice(
        &mut self,
        of: &[Cell],
        are_conditions: &[bool],
        mut function: impl FnMut(&mut Self, &[Cell]) -> Cell,
    ) -> Option<Cell> {
        let is_condition = |i: usize| are_conditions.get(i).copied().unwrap_or(false);
        let tables: Vec<Choices> =
            of.iter().enumerate().map(|(i, cell)| self.choices(cell, is_condition(i))).collect();
        let mut conditions: Vec<Cell> = tables.iter().flat_map(|table| table.conditions.clone()).collect();
        make_distinct(&mut conditions);
        if conditions.is_empty() && are_conditions.is_empty() || conditions.len() > MOST_CONDITIONS {
            return None;
        }
        let mut leaves = Vec::with_capacity(1 << conditions.len());
        for at in 0..1usize << conditions.len() {
            let operands: Vec<Cell> = tables.iter().filter_map(|table| table.leaf(&conditions, at)).collect();
            leaves.push(function(self, &operands));
        }
        // What is chosen may itself be a choice, by some of the same conditions.
        let chosen = Choices { conditions, leaves };
        let nested: Vec<Choices> = chosen.leaves.iter().map(|leaf| self.choices(leaf, false)).collect();
        let mut conditions = chosen.conditions.clone();
        conditions.extend(nested.iter().flat_map(|nested| nested.conditions.clone()));
        make_distinct(&mut conditions);
        if conditions.len() > MOST_CONDITIONS {
            return None;
        }
        let own = |at: usize| nested.get(chosen.index(&conditions, at))?.leaf(&conditions, at);
        let mut leaves: Vec<Cell> = (0..1usize << conditions.len()).filter_map(own).collect();
        // A condition whose outcome makes no difference is none.
        for k in (0..conditions.len()).rev() {
            let without = |at: usize| at & !(1 << k);
            if (0..leaves.len()).all(|at| leaves[at].is(&leaves[without(at)])) {
                conditions.remove(k);
                let kept = |(at, leaf): (usize, Cell)| (at >> k & 1 == 0).then_some(leaf);
                leaves = leaves.into_iter().enumerate().filter_map(kept).collect();
            }
        }
        let mut sums = leaves.clone();
        for condition in conditions.iter().rev() {
            let (no, yes) = sums.split_at(sums.len() / 2);
            sums = no.iter().zip(yes).map(|(no, yes)| self.between(*condition, *yes, *no)).collect();
        }
        let cell = *sums.first()?;
        if !conditions.is_empty() {
            self.table.choices.insert(cell.key(), Choices { conditions, leaves });
        }
        Some(cell)
    }

    /// One of two values, by a condition that is 1 or 0.
    pub(super) fn choice(&mut self, condition: Cell, yes: Cell, no: Cell, are_conditions: bool) -> Cell {
        if yes.is(&no) {
            return yes;
        }
        if self.decides() {
            return if self.decided(condition).u == 0 { no } else { yes };
        }
        let other = if condition.number == 0.0 { yes } else { no };
        self.table.hides |= !other.is_lost && !other.number.is_finite() && other.infinity().is_none();
        let pick = |_: &mut Self, of: &[Cell]| match of {
            [condition, yes, no] => {
                if condition.u == 0 {
                    *no
                } else {
                    *yes
                }
            }
            _ => no,
        };
        self.by_choice(&[condition, yes, no], &[true, are_conditions, are_conditions], pick)
            .unwrap_or_else(|| self.between(condition, yes, no))
    }

    /// By how many conditions some values are chosen.
    pub(super) fn conditions(&self, of: &[Cell]) -> usize {
        let choices = of.iter().filter_map(|cell| self.table.choices.get(&cell.key()));
        let mut conditions: Vec<u64> =
            choices.flat_map(|choices| &choices.conditions).map(Cell::key).collect();
        conditions.sort_unstable();
        conditions.dedup();
        conditions.len()
    }

    /// Whether a value is 1 or 0 by some conditions.
    pub(super) fn is_condition(&self, cell: &Cell) -> bool {
        let is_decided = |cell: &Cell| cell.known_integer().is_some_and(|n| n == 0 || n == 1);
        let choices = self.table.choices.get(&cell.key());
        is_decided(cell) || choices.is_some_and(|choices| choices.leaves.iter().all(is_decided))
    }

    /// What a value is chosen among, where it is.
    pub(super) fn leaves(&mut self, a: &Cell) -> Option<Vec<u64>> {
        let leaves = self.table.choices.get(&a.key())?.leaves.clone();
        Some(leaves.into_iter().map(|leaf| self.table.keep(leaf)).collect())
    }

    /// Notes that a value is 1 or 0.
    pub(super) fn note_condition(&mut self, key: u64) {
        let cell = self.cell(key);
        if !cell.is_constant && !self.table.choices.contains_key(&cell.key()) {
            let leaves = vec![self.integer(0), self.integer(1)];
            self.table.choices.insert(cell.key(), Choices { conditions: vec![cell], leaves });
        }
    }

    /// Whether any of some conditions holds.
    pub(super) fn any(&mut self, of: &[Cell]) -> Cell {
        if self.decides() {
            let holds = of.iter().any(|cell| self.decided(*cell).u != 0);
            return self.integer(holds.into());
        }
        let mut cells: Vec<Cell> = of.to_vec();
        make_distinct(&mut cells);
        let no = self.integer(0);
        let either = |this: &mut Self, any: Cell, cell: &Cell| this.logic(&[any, *cell], |of| of[0] || of[1]);
        let any = cells.iter().try_fold(no, |any, cell| either(self, any, cell));
        any.unwrap_or_else(|| Cell { low: 0.0, high: 1.0, ..self.unordered(text("any"), &cells) })
    }

    /// The condition that a value is no number.
    pub(super) fn none(&mut self, a: Cell) -> Cell {
        let condition = self.opaque(text("no number"), &[a]);
        self.table.none.entry(condition.key()).or_insert(a);
        condition
    }

    /// Notes that a value may be no number although inputs are finite, if one of those may be of which it is made, or it is
    /// not `total`.
    pub(super) fn note_partial(&mut self, cell: &Cell, of: &[Cell], is_total: bool) {
        if cell.is_constant || is_total && !of.iter().any(|own| self.is_partial(own)) {
            return;
        }
        let other = self.neg(*cell);
        self.table.partial.extend([cell.key(), other.key()]);
    }

    /// Whether a value may be no number although inputs are finite.
    pub(super) fn is_partial(&self, cell: &Cell) -> bool {
        self.table.partial.contains(&cell.key())
    }

    /// What an element in bits is by the laws.
    pub(super) fn real(&self, a: &Cell) -> Cell {
        self.table.own_of.get(&a.key()).and_then(|&own| self.table.get(own)).unwrap_or(*a)
    }

    /// The conditions by which two values that are numbers are compared: whether they are equal, and else whether the first
    /// is less.
    pub(super) fn comparison(&mut self, dtype: Dtype, a: Cell, b: Cell) -> [Cell; 2] {
        let computed = [a, b].map(|cell| self.table.unwrapped.get(&cell.key()).copied());
        let [one, other] = [computed[0].unwrap_or(a), computed[1].unwrap_or(b)];
        if one.is(&other) {
            return [self.integer(1), self.integer(0)];
        }
        let pair = [self.real(&a), self.real(&b)];
        for (of, number, is_turned) in [(&one, &other, false), (&other, &one, true)] {
            if let Some(known) = number.known_integer()
                && let Some(conditions) = self.place(of, known, is_turned)
            {
                return conditions;
            }
        }
        let mut conditions = ["equal", "less"].map(|what| self.opaque(text(what), &[a, b]));
        // Integers that wrap are equal if their difference is 0.
        if dtype.class() == DtypeClass::Int {
            let wraps = if computed.iter().any(Option::is_some) { dtype.itemsize() } else { 0 };
            conditions[0] = self.is_zero(&self.minus(one, other), wraps);
        }
        self.table.less.insert(conditions[1].key());
        for condition in &conditions {
            self.table.compared.entry(condition.key()).or_insert(pair);
        }
        conditions
    }

    /// Notes that a value is selected, if it is of few elements.
    pub(super) fn note_selection(&mut self, selected: &Cell, selection: Selection) {
        if selection.of.len() <= FEW_MEMBERS && !selected.is_constant {
            self.table.selections.insert(selected.key(), selection);
        }
    }

    /// A function of what is selected by one index is selected among what it gives.
    pub(super) fn by_selection(
        &mut self,
        of: &[Cell],
        mut function: impl FnMut(&mut Self, &[Cell]) -> Cell,
    ) -> Option<Selection> {
        let selections: Vec<Option<Selection>> =
            of.iter().map(|cell| self.table.selections.get(&cell.key()).cloned()).collect();
        let Selection { index, from_end, of: first } = selections.iter().flatten().next()?.clone();
        let is_same = |other: &Selection| {
            other.index.is(&index) && other.from_end == from_end && other.of.len() == first.len()
        };
        if !selections.iter().flatten().all(is_same) {
            return None;
        }
        let at = |j: usize| {
            let each = of.iter().zip(&selections);
            each.map(move |(cell, selection)| selection.as_ref().map_or(*cell, |selection| selection.of[j]))
        };
        let given: Vec<Vec<Cell>> = (0..first.len()).map(|j| at(j).collect()).collect();
        let of = given.iter().map(|of| function(self, of)).collect();
        Some(Selection { index, from_end, of })
    }

    /// Notes that a graph raises unless an index lies in a range.
    pub(super) fn note_range(&mut self, index: &Cell, low: i64, high: i64) {
        let (base, by) = self.table.shifted.get(&index.key()).copied().unwrap_or((*index, 0));
        let (low, high) = (low.saturating_sub(by), high.saturating_sub(by));
        let range = self.table.ranges[self.table.side].entry(base.key()).or_insert((low, high));
        *range = (range.0.max(low), range.1.min(high));
    }

    /// Notes that an integer is another one and a number.
    pub(super) fn note_shift(&mut self, sum: &Cell, of: &Cell, number: i64) {
        let (base, by) = self.table.shifted.get(&of.key()).copied().unwrap_or((*of, 0));
        if let Some(all) = by.checked_add(number) {
            self.table.shifted.entry(sum.key()).or_insert((base, all));
        }
    }

    /// How an index compares to a number, by the range outside of which the graph before raises: if it is none of the other
    /// values, it is the first one.
    fn place(&self, index: &Cell, number: i64, is_turned: bool) -> Option<[Cell; 2]> {
        let (base, by) = self.table.shifted.get(&index.key()).copied().unwrap_or((*index, 0));
        let &(low, high) = self.table.ranges[0].get(&base.key())?;
        let place = number.checked_sub(by)?;
        let (no, yes) = (self.integer(0), self.integer(1));
        if place < low || place >= high {
            return Some([no, if (place >= high) != is_turned { yes } else { no }]);
        }
        if place != low || high - low > FEW_PLACES {
            return None;
        }
        let is_at = |place: i64| {
            let apart = self.minus(base, self.integer(place.into()));
            self.is_zero(&apart, 0)
        };
        let is_other = (low + 1..high).fold(no, |any, place| self.add(any, is_at(place)));
        Some([Cell { low: 0.0, high: 1.0, is_constant: false, ..self.minus(yes, is_other) }, no])
    }

    /// The condition that a difference of integers, which wrap at so many bytes, is 0.
    fn is_zero(&self, apart: &Cell, wraps: u32) -> Cell {
        let other = self.neg(*apart);
        let apart = if (other.u, other.v) < (apart.u, apart.v) { other } else { *apart };
        self.opaque(mix(text("is 0"), u64::from(wraps)), &[apart])
    }

    /// A choice between two values by what they are compared to is the larger or the smaller of them, and so is one by the
    /// comparison of others, `is_real`, whose difference is in proportion to theirs.
    pub(super) fn as_extreme(&mut self, is_real: bool, cell: Cell) -> Cell {
        let Some(([first, second], [less, equal, greater])) = self.outcomes(&cell) else { return cell };
        let is_one = |leaf: &Cell| leaf.is(&first) || leaf.is(&second);
        let apart = self.minus(first, second);
        let is_part = |difference: Cell| self.proportion(difference, apart).is_some();
        let is_same = equal.is(&less) || is_real && is_part(self.minus(equal, less));
        let sign = match () {
            _ if !is_one(&equal) && !is_real || !is_same && is_real => None,
            _ if less.is(&greater) => return if is_real { less } else { cell },
            _ if less.is(&second) && greater.is(&first) => Some(-1),
            _ if less.is(&first) && greater.is(&second) => Some(1),
            _ if is_real => self.proportion(self.minus(less, greater), apart),
            _ => None,
        };
        sign.map_or(cell, |sign| self.extreme(sign < 0, is_real, &[less, greater]))
    }

    /// Two values, and what is chosen by how they compare: if the first is less, if they are equal, and if it is greater.
    fn outcomes(&self, cell: &Cell) -> Option<([Cell; 2], [Cell; 3])> {
        let Choices { conditions, leaves } = self.table.choices.get(&cell.key())?;
        let mut pairs = conditions.iter().filter_map(|condition| self.table.compared.get(&condition.key()));
        let &[first, second] = pairs.next()?;
        if pairs.any(|[one, other]| !one.is(&first) || !other.is(&second)) {
            return None;
        }
        let is_less = |condition: &Cell| self.table.less.contains(&condition.key());
        let none_of = |condition: &Cell| self.table.none.get(&condition.key());
        let is_equal = |condition: &Cell| !is_less(condition) && none_of(condition).is_none();
        let where_true = |holds: &dyn Fn(&Cell) -> bool| {
            leaves
                .get(
                    conditions.iter().enumerate().map(|(k, own)| usize::from(holds(own)) << k).sum::<usize>(),
                )
                .copied()
        };
        let (less, greater) = (where_true(&is_less)?, where_true(&|_| false)?);
        let equal = where_true(&is_equal)?;
        // What is no number is given on.
        let gives_on = |condition: &Cell| {
            none_of(condition)
                .is_none_or(|none| where_true(&|own| own.is(condition)).is_some_and(|leaf| leaf.is(none)))
        };
        let is_known = |condition: &Cell| {
            is_less(condition)
                || none_of(condition).is_some()
                || self.table.compared.contains_key(&condition.key())
        };
        if !conditions.iter().all(|condition| is_known(condition) && gives_on(condition)) {
            return None;
        }
        Some(([first, second], [less, equal, greater]))
    }

    /// A product with a value that is one of some numbers.
    pub(super) fn product_by_choice(&mut self, a: Cell, b: Cell) -> Option<Cell> {
        let is_number = |cell: &Cell| {
            let choices = self.table.choices.get(&cell.key());
            choices.is_some_and(|choices| choices.leaves.iter().all(|leaf| leaf.is_constant))
        };
        if !is_number(&a) && !is_number(&b) {
            return None;
        }
        let product = self.by_choice(&[a, b], &[], |this, of| this.mul(of[0], of[1]))?;
        Some(self.as_extreme(true, product))
    }

    pub(super) fn minus(&self, a: Cell, b: Cell) -> Cell {
        self.add(a, self.neg(b))
    }

    /// The sign of the number that one value is times another one, if that is a fraction of small numbers.
    pub(super) fn proportion(&self, a: Cell, b: Cell) -> Option<i32> {
        Some(if self.ratio(a, b)? > 0.0 { 1 } else { -1 })
    }

    /// That number.
    pub(super) fn ratio(&self, a: Cell, b: Cell) -> Option<f64> {
        let p = self.field.p;
        let ratio = field::mul(a.u, field::inverse(b.u, R)?, R);
        let (numerator, denominator) = field::fraction(ratio, R)?;
        let in_field = |n: i64| i128::from(n).rem_euclid(i128::from(p)) as u64;
        let is_so = field::mul(in_field(denominator), a.v, p) == field::mul(in_field(numerator), b.v, p);
        (is_so && numerator != 0).then_some(numerator as f64 / denominator as f64)
    }

    /// A function of conditions alone.
    pub(super) fn logic(&mut self, of: &[Cell], holds: impl Fn(&[bool]) -> bool) -> Option<Cell> {
        if self.decides() {
            let mut bits = vec![false; of.len()];
            for (i, cell) in of.iter().enumerate() {
                bits[i] = self.decided(*cell).u != 0;
            }
            return Some(self.integer(holds(&bits).into()));
        }
        self.by_choice(of, &[true; 4], |this, of| {
            let bits: Vec<bool> = of.iter().map(|cell| cell.u != 0).collect();
            this.integer(holds(&bits).into())
        })
    }

    fn between(&self, condition: Cell, yes: Cell, no: Cell) -> Cell {
        if yes.is(&no) {
            return yes;
        }
        // What is infinite or no number is what is chosen, and not all that may be.
        let [yes, no] = [yes, no].map(|cell| match cell.infinity().is_some() || cell.is_never_a_number() {
            true => Cell { number: 0.0, is_constant: false, ..cell },
            false => cell,
        });
        let difference = self.mul(condition, self.add(yes, self.neg(no)));
        Cell {
            low: yes.low.min(no.low),
            high: yes.high.max(no.high),
            is_not_zero: yes.is_not_zero && no.is_not_zero,
            exponential: 0,
            ..self.add(no, difference)
        }
    }
}
