//! Case by case: what is chosen, where no law makes two choices one.
//!
//! # The idea
//!
//! What a graph asks of its inputs (which of two values is larger, whether a condition holds, whether something is no number)
//! is answered by hand instead of by numbers. With given answers nothing is chosen any more, and values are equal or are not
//! by the laws. So a run with some answers speaks for all inputs of which they are true, whatever these are; and each element
//! remembers on which answers it depends.
//!
//! # The statement
//!
//! An element is the same in both graphs if it is the same in each case, and the cases cover all inputs: for each combination
//! of answers to the questions that it depends on there is a run whose answers are among these, or it is true of no inputs.
//! Which combinations are true of none is said by relations between what is asked, which are confirmed in the fields: one
//! value is another one and a number, the sum or the product of two others, or bounded.
//!
//! Of two values that are equal either one is the larger: a maximum is the same there by both cases, and what is computed of
//! it is formal. A comparison has a third answer. Where two values are equal, results that differ by a multiple of their
//! difference are the same.
//!
//! What is added up, or given to a function of which nothing is known, is the same if each part is, whatever the answers are on
//! which the other ones depend. So the questions of an element fall into *groups*, and the cases of each are tried with the
//! other ones as they were: where `f(a) + g(b)` is 0 for all `a` at one `b`, and for all `b` at one `a`, it always is.
//!
//! # What it does not do
//!
//! What is made of cells as bytes or as numbers of the host does not remember answers: then nothing is said.

use super::super::domain::{
    Addend, Domain, Draw, MatmulSize, Operand, Outcome, Pointwise, RankReduce, Rounding, refuse,
};
use super::super::hash::{mix, text};
use super::super::number::Number;
use super::super::numerics::Numerics;
use super::Fingerprints;
use super::cell::{Algebra, Cell, Table};
use super::field::Field;
use crate::graph::{Dtype, NodeId};
use crate::ops::{Binary, Reduce, Unary};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum About {
    /// Which sign a value has; of floats bit for bit that of its sign bit, where nothing compares it.
    Sign,
    /// Whether a condition holds.
    Holds,
    /// Whether a value is no number.
    None,
}

#[derive(Clone, Copy, Debug)]
struct Question {
    about: About,
    of: Cell,
    /// Whether it is an integer.
    is_whole: bool,
    /// Whether it makes a difference that it is 0.
    is_compared: bool,
    /// Whether two values whose difference it is have the same bits where it is 0.
    is_of_bits: bool,
}

/// A question, and its answer: less than 0, greater and 0; or no and yes.
pub(super) type Answer = (usize, u8);

/// The sign of a value, which is 0 for 0, and that of its sign bit.
type Sign = (i32, i32);

/// The answers on which an element depends, in groups of which no two have a question.
type Path = Vec<Vec<Answer>>;

/// Groups of which no two have a question, from some that may.
fn apart(mut groups: Path) -> Path {
    groups.retain(|group| !group.is_empty());
    groups.sort_unstable();
    groups.dedup();
    let mut found: Path = Vec::with_capacity(groups.len());
    for mut group in groups {
        let shares = |other: &Vec<Answer>| other.iter().any(|answer| group.contains(answer));
        let (joined, others): (Path, Path) = found.into_iter().partition(shares);
        found = others;
        joined.into_iter().for_each(|other| group.extend(other));
        group.sort_unstable();
        group.dedup();
        found.push(group);
    }
    found.sort_unstable();
    found
}

const LESS: u8 = 0;
const GREATER: u8 = 1;
const EQUAL: u8 = 2;
const YES: u8 = 1;

/// More than [`LESS`] and [`GREATER`] by so much: the same, and not 0.
const STRICTLY: u8 = 3;
const STRICTLY_GREATER: u8 = STRICTLY + GREATER;

/// A product, or a quotient.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product {
    pub(super) cell: Cell,
    pub(super) of: [Cell; 2],
    pub(super) is_quotient: bool,
    /// Whether it may be 0 although no factor is: for want of room, or by an infinite divisor.
    pub(super) may_vanish: bool,
}

impl Product {
    /// Whether it may have a sign where its factors have theirs.
    fn may_have(&self, (sign, bit): Sign, [(a, of_a), (b, of_b)]: [Sign; 2]) -> bool {
        bit == of_a * of_b
            && match () {
                _ if self.is_quotient && b == 0 => true,
                _ if a == 0 || b == 0 => sign == 0,
                _ => sign == a * b || self.may_vanish && sign == 0,
            }
    }
}

/// Questions at most.
const MOST_QUESTIONS: usize = 256;

/// Questions of one group at most.
const MOST_ANSWERS: usize = 20;

/// So many operations lead from what is no number to what is none for it.
const DEPTH: usize = 4;

/// Positive values that are tried as factors.
const FEW_FACTORS: usize = 16;

/// Questions, and what is answered in this run.
#[derive(Debug, Default)]
pub(super) struct Cases {
    questions: Vec<Question>,
    known: FxHashMap<(About, u64), (usize, bool)>,
    /// Products and quotients.
    products: FxHashMap<u64, Product>,
    /// What is no number where one of these is none, and where it is none for no other reason.
    made_of: FxHashMap<u64, (Vec<Cell>, bool)>,
    /// Inputs.
    leaves: Vec<Cell>,
    /// What inputs are where two values are equal.
    equal: FxHashMap<usize, Option<(u64, Cell)>>,
    /// How values that are asked about are made of each other, as far as that was looked at.
    shifts: FxHashMap<(usize, usize), [Option<f64>; 2]>,
    sums: FxHashMap<[usize; 3], [Option<i32>; 3]>,
    pub(super) answers: FxHashMap<usize, u8>,
    /// Whether zeros of either sign are told apart, and whether they are one.
    is_exact: bool,
    is_real: bool,
    /// Whether something depends on answers and does not remember them.
    is_open: bool,
    asked: Vec<(usize, Answer)>,
    positive: Vec<Cell>,
    paths: Vec<Path>,
    numbers: FxHashMap<Path, usize>,
    of: FxHashMap<u64, (u64, usize)>,
}

fn distinct(mut answers: Vec<Answer>) -> Vec<Answer> {
    answers.sort_unstable();
    answers.dedup();
    answers
}

impl Cases {
    pub(super) fn new(level: Numerics) -> Cases {
        let is_real = level >= Numerics::Reassociation;
        Cases { is_exact: level == Numerics::Exact, is_real, ..Cases::default() }
    }

    /// With the same questions, and other answers.
    pub(super) fn next(self, answers: FxHashMap<usize, u8>) -> Cases {
        Cases {
            questions: self.questions,
            known: self.known,
            products: self.products,
            made_of: self.made_of,
            leaves: self.leaves,
            equal: self.equal,
            shifts: self.shifts,
            sums: self.sums,
            is_exact: self.is_exact,
            is_real: self.is_real,
            is_open: self.is_open,
            answers,
            ..Cases::default()
        }
    }

    fn number(&mut self, path: Path) -> usize {
        let next = self.paths.len();
        let paths = &mut self.paths;
        *self.numbers.entry(path).or_insert_with_key(|path| {
            paths.push(path.clone());
            next
        })
    }

    fn path(&self, key: u64) -> &[Vec<Answer>] {
        self.of.get(&key).and_then(|(_, path)| self.paths.get(*path)).map_or(&[], Vec::as_slice)
    }

    pub(super) fn own(&self, key: u64) -> u64 {
        self.of.get(&key).map_or(key, |(own, _)| *own)
    }

    /// Whether any of some elements depends on answers.
    fn are_asked(&self, cells: &[u64]) -> bool {
        cells.iter().any(|key| self.of.contains_key(key))
    }

    /// The signs that a value may have by an answer. Where it makes no difference that it is 0, a zero is among those of its
    /// sign bit; real numbers and integers have one zero.
    fn signs(&self, question: usize, outcome: u8) -> &'static [Sign] {
        let Question { is_compared, is_whole, .. } = self.questions[question];
        match (outcome, is_compared, self.is_real || is_whole) {
            (LESS, true, _) => &[(-1, -1)],
            (LESS, false, false) => &[(-1, -1), (0, -1)],
            (LESS, false, true) => &[(-1, -1), (0, -1), (0, 1)],
            (GREATER, true, _) => &[(1, 1)],
            (GREATER, false, false) => &[(1, 1), (0, 1)],
            (GREATER, false, true) => &[(1, 1), (0, -1), (0, 1)],
            (STRICTLY, ..) => &[(-1, -1)],
            (STRICTLY_GREATER, ..) => &[(1, 1)],
            _ => &[(0, -1), (0, 1)],
        }
    }

    fn outcomes(&self, question: usize) -> u8 {
        let question = &self.questions[question];
        if question.about == About::Sign && question.is_compared { 3 } else { 2 }
    }

    /// Whether too much is asked, or something does not remember what.
    fn are_useless(&self) -> bool {
        self.is_open || self.questions.len() > MOST_QUESTIONS
    }
}

impl Algebra<'_> {
    /// Whether what is asked is answered by hand.
    pub(super) fn decides(&self) -> bool {
        self.table.cases.is_some()
    }

    fn answer(&mut self, question: usize) -> u8 {
        let element = self.table.element;
        let Some(cases) = &mut self.table.cases else { return 0 };
        let is_positive = cases.questions[question].of.low >= 0.0;
        let usual = if is_positive && cases.questions[question].about == About::Sign { GREATER } else { 0 };
        let outcome = cases.answers.get(&question).copied().unwrap_or(usual);
        cases.asked.push((element, (question, outcome)));
        outcome
    }

    /// The number of a question, and whether its sign is turned.
    fn question(&mut self, about: About, of: Cell, is_of_bits: bool) -> (usize, bool) {
        let found = self.asked_before(about, of);
        let is_whole = self.is_whole;
        let Some(cases) = &mut self.table.cases else { return (0, false) };
        let found = found.unwrap_or_else(|| {
            let question = Question { about, of, is_whole, is_compared: false, is_of_bits: false };
            cases.questions.push(question);
            (cases.questions.len() - 1, false)
        });
        cases.known.insert((about, of.key()), found);
        cases.questions[found.0].is_of_bits |= is_of_bits;
        found
    }

    fn asked_before(&self, about: About, of: Cell) -> Option<(usize, bool)> {
        let cases = self.table.cases.as_ref()?;
        if let Some(&known) = cases.known.get(&(about, of.key())) {
            return Some(known);
        }
        let other = self.neg(of);
        cases.questions.iter().enumerate().filter(|(_, question)| question.about == about).find_map(
            |(at, question)| match about {
                About::Holds => None,
                About::None => question.of.is(&other).then_some((at, false)),
                About::Sign if self.are_bits => question.of.is(&other).then_some((at, true)),
                About::Sign => {
                    // It is the other value times what is positive, or times the inverse of that value squared.
                    let product = self.mul(of, question.of);
                    let one = self.integer(1);
                    let scaled = cases.positive.iter().map(|factor| (of, self.mul(*factor, question.of)));
                    let inverse = cases.positive.iter().chain([&one]).map(|factor| (product, *factor));
                    let is_scaled = |(of, base)| Some((at, self.proportion(of, base)? < 0));
                    [(of, question.of)].into_iter().chain(scaled).chain(inverse).find_map(is_scaled)
                }
            },
        )
    }

    /// The sign of a value; unless it `is_compared`, either one where it is 0.
    pub(super) fn sign_by_case(&mut self, of: Cell, is_compared: bool, is_of_bits: bool) -> Ordering {
        self.sign_within(of, is_compared, is_of_bits, DEPTH)
    }

    fn sign_within(&mut self, of: Cell, is_compared: bool, is_of_bits: bool, depth: usize) -> Ordering {
        if of.vanishes() {
            return Ordering::Equal;
        }
        if let Some(known) = of.known() {
            let order = if known == 0.0 && is_compared { Some(Ordering::Equal) } else { None };
            return order.unwrap_or_else(|| known.total_cmp(&0.0));
        }
        match () {
            _ if of.low >= 0.0 && (of.is_not_zero || of.low > 0.0 || !is_compared) => {
                return Ordering::Greater;
            }
            _ if of.high <= 0.0 && (of.is_not_zero || of.high < 0.0 || !is_compared) => {
                return Ordering::Less;
            }
            _ => {}
        }
        // A sum has a sign, or is 0, whether or not it is rounded.
        let sum = [of, self.neg(of)].into_iter().zip([false, true]).find_map(|(cell, is_turned)| {
            let [a, b] = self.table.sums.get(&cell.key())?.1;
            Some((self.add(a, b), is_turned))
        });
        if let Some((sum, is_turned)) = sum.filter(|_| depth > 0) {
            let sign = self.sign_within(sum, is_compared, is_of_bits, depth.saturating_sub(1));
            return if is_turned { sign.reverse() } else { sign };
        }
        if !self.are_bits && self.asked_before(About::Sign, of).is_none() {
            let is_factor = |product: &Product| (product.cell.is(&of), product.of);
            let both = [of, self.neg(of)];
            let cases = self.table.cases.as_ref();
            let made = both.iter().find_map(|cell| cases?.products.get(&cell.key()).map(is_factor));
            if let Some((is_own, [a, b])) = made.filter(|_| depth > 0) {
                // Real numbers are 0 where a factor is, and have the signs of both elsewhere.
                let signs =
                    [a, b].map(|factor| self.sign_within(factor, is_compared, false, depth - 1) as i32);
                let sign = (signs[0] * signs[1]).cmp(&0);
                return if is_own { sign } else { sign.reverse() };
            }
            if self.is_made_of_positive(&of) {
                return Ordering::Greater;
            }
        }
        let (question, is_turned) = self.question(About::Sign, of, is_of_bits);
        if let Some(cases) = &mut self.table.cases {
            cases.questions[question].is_compared |= is_compared;
        }
        let order = match self.answer(question) {
            LESS => Ordering::Less,
            GREATER => Ordering::Greater,
            _ => Ordering::Equal,
        };
        if is_turned { order.reverse() } else { order }
    }

    /// Whether a value is a positive one, or the product of two, up to a positive number.
    fn is_made_of_positive(&self, of: &Cell) -> bool {
        let Some(cases) = &self.table.cases else { return false };
        let is_that = |factor: &Cell| self.proportion(*of, *factor).is_some_and(|sign| sign > 0);
        let all = &cases.positive;
        let products = || all.iter().enumerate().flat_map(|(i, a)| all[i..].iter().map(|b| self.mul(*a, *b)));
        all.iter().any(is_that) || products().any(|product| is_that(&product))
    }

    /// Which number was multiplied with another value.
    fn multiple(&self, of: &Cell, by: &Cell) -> Option<f64> {
        let Product { cell, of: [a, b], .. } = self.table.cases.as_ref()?.products.get(&of.key())?;
        let times = [(a, b), (b, a)].into_iter().find_map(|(value, number)| {
            let times = number.known()?;
            match () {
                _ if value.is(by) => Some(times),
                _ if value.is(&self.neg(*by)) => Some(-times),
                _ => None,
            }
        })?;
        Some(if cell.is(of) { times } else { -times })
    }

    /// How two numbers compare.
    pub(super) fn order_by_case(&mut self, a: Cell, b: Cell, is_compared: bool) -> Ordering {
        let infinity = |cell: &Cell| cell.known().filter(|x| x.is_infinite());
        match (infinity(&a), infinity(&b)) {
            (Some(a), Some(b)) => return a.total_cmp(&b),
            (None, None) => {}
            (a_is, b_is) => {
                let of = self.opaque(text("infinite"), &[a, b]);
                let (question, _) = self.question(About::Holds, of, false);
                let is_infinite = self.nans && self.answer(question) == YES;
                let sign = a_is.unwrap_or_else(|| -b_is.unwrap_or_default());
                return if is_infinite { Ordering::Equal } else { sign.total_cmp(&0.0) };
            }
        }
        // What is a multiple of a value is on one side of it, however it is rounded.
        if !is_compared && let Some(times) = self.multiple(&b, &a) {
            let sign = self.sign_by_case(a, false, false);
            return if times > 1.0 { sign.reverse() } else { sign };
        }
        if !is_compared && let Some(times) = self.multiple(&a, &b) {
            let sign = self.sign_by_case(b, false, false);
            return if times > 1.0 { sign } else { sign.reverse() };
        }
        let is_of_bits = [a, b].iter().any(|cell| cell.known().is_some_and(|x| x != 0.0));
        let apart = self.minus(a, b);
        let is_new = self.table.get(apart.key()).is_none();
        if let Some(cases) = self.table.cases.as_mut().filter(|_| is_new) {
            cases.made_of.entry(apart.key()).or_insert_with(|| (vec![a, b], false));
        }
        self.sign_by_case(apart, is_compared, is_of_bits)
    }

    /// A condition that is 1 or 0.
    pub(super) fn decided(&mut self, condition: Cell) -> Cell {
        if condition.is_constant && condition.u < 2 && condition.u == condition.v {
            return condition;
        }
        let (question, _) = self.question(About::Holds, condition, false);
        let holds = self.answer(question) == YES;
        self.integer(holds.into())
    }

    /// Whether a value is no number.
    pub(super) fn is_none_by_case(&mut self, of: Cell) -> bool {
        if of.is_never_a_number() || of.known().is_some() {
            return of.is_never_a_number();
        }
        let alone = [of, self.neg(of)].iter().find_map(|cell| {
            let (parts, is_alone) = self.table.cases.as_ref()?.made_of.get(&cell.key())?;
            parts.iter().find(|part| *is_alone && part.known().is_none()).copied()
        });
        if let Some(part) = alone {
            return self.is_none_by_case(part);
        }
        let (question, _) = self.question(About::None, of, false);
        self.answer(question) == YES
    }

    /// The largest (true) or least of some values.
    pub(super) fn extreme_by_case(&mut self, is_max: bool, cells: &[Cell]) -> Cell {
        let Some((&first, rest)) = cells.split_first() else { return self.special(f64::NAN) };
        let may_be_none = |this: &Self, cell: &Cell| this.nans || this.is_partial(cell);
        if cells
            .iter()
            .any(|cell| may_be_none(self, cell) && self.is_none_by_case(*cell) || cell.is_never_a_number())
        {
            return self.special(f64::NAN);
        }
        rest.iter().fold(first, |best, &next| {
            let order = self.order_by_case(best, next, false);
            if (order == Ordering::Less) == is_max && order != Ordering::Equal { next } else { best }
        })
    }

    /// An input as it is where the answers make it equal to something, or no number.
    pub(super) fn input_by_case(&mut self, input: Cell) -> Cell {
        let Some(mut cases) = self.table.cases.take() else { return input };
        if cases.leaves.len() < MOST_QUESTIONS && !cases.leaves.iter().any(|leaf| leaf.is(&input)) {
            cases.leaves.push(input);
        }
        let of = |(&at, &outcome): (&usize, &u8)| (at, outcome);
        let is_special = |&(at, outcome): &Answer| match cases.questions[at].about {
            About::Sign => outcome == EQUAL,
            About::None => outcome == YES,
            About::Holds => false,
        };
        let mut special: Vec<Answer> = cases.answers.iter().map(of).filter(is_special).collect();
        special.sort_unstable();
        let mut found = input;
        for (question, outcome) in special {
            let value = match cases.equal.get(&question) {
                Some(known) => *known,
                None => {
                    let value = self.solved(&cases, cases.questions[question]);
                    cases.equal.insert(question, value);
                    value
                }
            };
            if let Some((of, value)) = value
                && of == input.key()
            {
                cases.asked.push((0, (question, outcome)));
                found = value;
                break;
            }
        }
        self.table.cases = Some(cases);
        found
    }

    /// An input that is a number or another input where a value is 0, or none where that is none, and what it is there.
    fn solved(&self, cases: &Cases, question: Question) -> Option<(u64, Cell)> {
        let one = self.integer(1);
        let of = question.of;
        if question.about == About::None {
            let is_leaf = |leaf: &&Cell| leaf.is(&of) || leaf.is(&self.neg(of));
            let leaf = cases.leaves.iter().find(is_leaf)?;
            return Some((leaf.key(), self.special(f64::NAN)));
        }
        // Bit for bit there are two zeros, and something may tell them apart.
        let tells_zeros = self.are_bits && !question.is_whole;
        let both = |leaf: &Cell| [self.minus(of, *leaf), self.neg(self.add(of, *leaf))];
        cases.leaves.iter().find_map(|leaf| {
            // It is this less what remains, or what remains less this.
            both(leaf).into_iter().find_map(|rest| {
                let value = self.neg(rest);
                let number = if value.vanishes() { Some(0.0) } else { self.ratio(value, one) };
                let Some(number) = number else {
                    let is_value = |leaf: &Cell| leaf.is(&value) || leaf.is(&self.neg(value));
                    let is_input = !tells_zeros && cases.leaves.iter().any(is_value);
                    return is_input.then_some((leaf.key(), Cell { is_lost: true, ..value }));
                };
                let (low, high) = (number, number);
                let is_not_zero = number != 0.0;
                let value = Cell { number, low, high, is_not_zero, is_constant: true, ..value };
                (is_not_zero || !tells_zeros).then_some((leaf.key(), value))
            })
        })
    }

    /// Whether one of these is made of a quotient by 0 by the answers of this run.
    pub(super) fn is_pole(&self, of: &[Cell]) -> bool {
        self.decides() && of.iter().any(|cell| self.table.poles.contains(&cell.key()))
    }

    /// A function of what is made of a quotient by 0: nothing is known of it.
    pub(super) fn made_of_pole(&mut self, what: u64, of: &[Cell]) -> Cell {
        let cell = self.opaque(mix(text("of a pole"), what), of);
        self.table.poles.insert(cell.key());
        Cell { is_lost: true, is_constant: false, ..cell }
    }

    /// The same of a product, whose factors have no order.
    pub(super) fn times_pole(&mut self, of: &[Cell]) -> Cell {
        let cell = self.unordered(text("times a pole"), of);
        self.table.poles.insert(cell.key());
        Cell { is_lost: true, is_constant: false, ..cell }
    }

    /// What comes of operands of which one is made of a quotient by 0, or is no number. `by_infinities`: or is an infinity.
    pub(super) fn undefined(&mut self, what: u64, of: &[Cell], by_infinities: bool) -> Option<Cell> {
        if !self.decides() {
            return None;
        }
        if self.is_pole(of) || by_infinities && of.iter().any(Cell::is_infinite) {
            return Some(self.made_of_pole(what, of));
        }
        of.iter().find(|cell| cell.is_never_a_number()).copied()
    }

    /// Notes a product.
    pub(super) fn note_product(&mut self, product: Product) {
        if let Some(cases) = &mut self.table.cases {
            cases.products.insert(product.cell.key(), product);
        }
    }

    /// Notes that a value is no number where one of those is none of which it is made.
    /// `is_none_alone`: for no other reason, if all but one of them are finite numbers and known.
    pub(super) fn note_made_of(&mut self, cell: &Cell, of: &[Cell], is_none_alone: bool) {
        if self.nans
            && !cell.is_constant
            && !of.iter().any(|own| own.is(cell) || own.is(&self.neg(*cell)))
            && let Some(cases) = &mut self.table.cases
        {
            let known = |cell: &&Cell| cell.known().is_none_or(|x| !x.is_finite());
            let mut open = of.iter().filter(known);
            let first = open.next();
            let is_one = open.next().is_none() && first.is_some();
            cases.made_of.entry(cell.key()).or_insert_with(|| (of.to_vec(), is_none_alone && is_one));
        }
    }

    /// Whether a value is no number where some answers are true.
    fn is_none(&self, cases: &Cases, of: &Cell, answers: &[Answer], depth: usize) -> bool {
        let other = self.neg(*of);
        let says = |&(question, outcome): &Answer| {
            let Question { about, of: asked, .. } = cases.questions[question];
            about == About::None && outcome == YES && (asked.is(of) || asked.is(&other))
        };
        let parts = || {
            let made = [of, &other].into_iter().filter_map(|cell| cases.made_of.get(&cell.key()));
            made.flat_map(|(parts, _)| parts)
        };
        of.is_never_a_number()
            || answers.iter().any(says)
            || depth > 0 && parts().any(|part| self.is_none(cases, part, answers, depth - 1))
    }

    /// Notes a value that is positive.
    pub(super) fn note_positive(&mut self, of: Cell) {
        if let Some(cases) = &mut self.table.cases
            && cases.positive.len() < FEW_FACTORS
            && !cases.positive.iter().any(|known| known.is(&of))
        {
            cases.positive.push(of);
        }
    }

    /// By what one value differs from another one, or from what is less than nothing by it, if that is a number.
    fn shift(&self, cases: &mut Cases, one: usize, other: usize) -> [Option<f64>; 2] {
        if let Some(&known) = cases.shifts.get(&(one, other)) {
            return known;
        }
        let [one_of, other_of] = [one, other].map(|at| cases.questions[at].of);
        let unit = self.integer(1);
        let found = [other_of, self.neg(other_of)].map(|turned| self.ratio(self.minus(one_of, turned), unit));
        cases.shifts.insert((one, other), found);
        found
    }

    /// The signs with which one value is a sum of two others, for either sign of the first of these, and that with which it is
    /// their product.
    fn made_of(&self, cases: &mut Cases, at: [usize; 3]) -> [Option<i32>; 3] {
        if let Some(&known) = cases.sums.get(&at) {
            return known;
        }
        let [all, a, b] = at.map(|at| cases.questions[at].of);
        let rest = [a, self.neg(a)].map(|turned| self.proportion(self.minus(all, turned), b));
        let product = if self.are_bits { None } else { self.proportion(all, self.mul(a, b)) };
        let found = [rest[0], rest[1], product];
        cases.sums.insert(at, found);
        found
    }

    /// Whether one more answer may be true where others are, as far as is known.
    fn fits(&self, cases: &mut Cases, given: &[Answer], (at, outcome): Answer) -> bool {
        let question = cases.questions[at];
        let all = [given, &[(at, outcome)]].concat();
        // What is no number is not known to be one, and equals nothing.
        let is_number = |&&(of, outcome): &&Answer| match cases.questions[of].about {
            About::None => outcome != YES,
            About::Sign => outcome == EQUAL,
            About::Holds => false,
        };
        let is_none = |&(of, _): &Answer| self.is_none(cases, &cases.questions[of].of, &all, DEPTH);
        if all.iter().filter(is_number).any(is_none) {
            return false;
        }
        if question.about != About::Sign {
            return true;
        }
        let of = question.of;
        let is_in_bounds = |sign: i32| match sign {
            -1 => of.low < 0.0,
            1 => of.high > 0.0,
            _ => !of.is_not_zero,
        };
        let signs = |&(at, outcome): &Answer| (at, cases.signs(at, outcome));
        let is_sign = |answer: &&Answer| cases.questions[answer.0].about == About::Sign;
        let own = signs(&(at, outcome));
        let others: Vec<(usize, &[Sign])> = given.iter().filter(is_sign).map(signs).collect();
        let mut all = others.clone();
        all.push(own);
        own.1.iter().any(|&(sign, _)| is_in_bounds(sign))
            && self.are_products(cases, &all)
            && others.iter().all(|&other| self.may_be_shifted(cases, own, other))
            && others.iter().enumerate().all(|(j, &a)| {
                (others[j..].iter()).all(|&b| self.may_be_made_of(cases, own, a, b))
                    && all.iter().all(|&b| self.may_be_made_of(cases, a, own, b))
            })
    }

    fn may_be_shifted(&self, cases: &mut Cases, one: (usize, &[Sign]), other: (usize, &[Sign])) -> bool {
        let is_whole = cases.questions[other.0].is_whole;
        let shifts = self.shift(cases, one.0, other.0);
        let may_be = |sign: i32, other: i32, by: f64| {
            let (low, high) = range(other, is_whole);
            let (low, high) = (low + by, high + by);
            // An open end is none of its own.
            let is_open = other != 0 && !is_whole;
            match sign {
                -1 => low < 0.0,
                1 => high > 0.0,
                _ if is_open => low < 0.0 && high > 0.0,
                _ => low <= 0.0 && high >= 0.0,
            }
        };
        one.1.iter().any(|&(sign, _)| {
            other.1.iter().any(|&(other, _)| {
                let of_turn =
                    |(by, turn): (&Option<f64>, i32)| by.is_none_or(|by| may_be(sign, other * turn, by));
                shifts.iter().zip([1, -1]).all(of_turn)
            })
        })
    }

    fn may_be_made_of(
        &self,
        cases: &mut Cases,
        all: (usize, &[Sign]),
        a: (usize, &[Sign]),
        b: (usize, &[Sign]),
    ) -> bool {
        if all.0 == a.0 || all.0 == b.0 {
            return true;
        }
        let [plus, minus, product] = self.made_of(cases, [all.0, a.0, b.0]);
        let may_be = |sign: i32, a: i32, b: i32| {
            let is_sum = |a: i32, b: i32| a * b < 0 || sign == (a + b).signum();
            plus.is_none_or(|times| is_sum(a, times * b))
                && minus.is_none_or(|times| is_sum(-a, times * b))
                && product.is_none_or(|times| sign == times * a * b)
        };
        let is_same = a.0 == b.0;
        all.1.iter().any(|&(sign, _)| {
            a.1.iter().any(|&s| {
                let mut others = b.1.iter().filter(|&&t| !is_same || s == t);
                others.any(|&(t, _)| may_be(sign, s.0, t))
            })
        })
    }

    /// Whether products may have their signs.
    fn are_products(&self, cases: &Cases, signs: &[(usize, &'static [Sign])]) -> bool {
        let signs_of = |of: &Cell| -> Option<Vec<Sign>> {
            if let Some(known) = of.known() {
                let bit = if known.is_sign_negative() { -1 } else { 1 };
                return Some(vec![(if known == 0.0 { 0 } else { bit }, bit)]);
            }
            signs.iter().find_map(|&(at, signs)| match cases.questions[at].of {
                own if own.is(of) => Some(signs.to_vec()),
                own if own.is(&self.neg(*of)) => Some(signs.iter().map(|(s, bit)| (-s, -bit)).collect()),
                _ => None,
            })
        };
        cases.products.values().all(|product| {
            let [a, b] = product.of;
            let (Some(all), Some(s), Some(t)) = (signs_of(&product.cell), signs_of(&a), signs_of(&b)) else {
                return true;
            };
            let is_same = a.is(&b);
            all.iter().any(|&sign| {
                s.iter().any(|&s| {
                    t.iter().filter(|&&t| !is_same || s == t).any(|&t| product.may_have(sign, [s, t]))
                })
            })
        })
    }

    /// Whether some answers may be true at once, as far as is known.
    fn may_hold(&self, cases: &mut Cases, answers: &[Answer]) -> bool {
        (0..answers.len()).all(|i| self.fits(cases, &answers[..i], answers[i]))
    }

    /// Where some value must be 0 for all answers to be true, and it makes no difference to the answer: the answers with that
    /// of the other side. Bit for bit a zero is on one side alone.
    fn other_side(&self, cases: &mut Cases, answers: &[Answer]) -> Option<Vec<Answer>> {
        (0..answers.len()).find_map(|i| {
            let (at, outcome) = answers[i];
            let Question { about, is_compared, is_whole, .. } = cases.questions[at];
            if about != About::Sign || is_compared || cases.is_exact && !is_whole {
                return None;
            }
            let mut others = answers.to_vec();
            others[i].1 = outcome + STRICTLY;
            if self.may_hold(cases, &others) {
                return None;
            }
            others[i].1 = if outcome == LESS { GREATER } else { LESS };
            Some(others)
        })
    }

    /// Answers that are among those of no case, and may be true at once.
    fn uncovered(
        &self,
        cases: &mut Cases,
        known: &[Vec<Answer>],
        given: &mut Vec<Answer>,
    ) -> Option<Vec<Answer>> {
        let says = |given: &[Answer], question: usize| {
            given.iter().find(|(own, _)| *own == question).map(|own| own.1)
        };
        let is_consistent = |given: &[Answer], case: &Vec<Answer>| {
            case.iter().all(|&(question, outcome)| says(given, question).is_none_or(|said| said == outcome))
        };
        let Some(case) = known.iter().find(|case| is_consistent(given, case)) else {
            return Some(given.clone());
        };
        let &(question, _) = case.iter().find(|(question, _)| says(given, *question).is_none())?;
        for outcome in 0..cases.outcomes(question) {
            if !self.fits(cases, given, (question, outcome)) {
                continue;
            }
            given.push((question, outcome));
            let found = self.uncovered(cases, known, given);
            given.pop();
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Whether a value is 0, of either sign, wherever some answers are true.
    fn is_zero_by(&self, cases: &Cases, of: &Cell, answers: &[Answer], depth: usize) -> bool {
        let both = [*of, self.neg(*of)];
        let says = |&(question, outcome): &Answer| {
            let Question { about, of, .. } = cases.questions[question];
            about == About::Sign && outcome == EQUAL && both.iter().any(|cell| cell.is(&of))
        };
        let is_product = |product: &Product| {
            let [a, b] = product.of;
            let times_zero = |number: &Cell, other: &Cell| {
                number.known().is_some_and(f64::is_finite)
                    && self.is_zero_by(cases, other, answers, depth - 1)
            };
            !product.is_quotient && (times_zero(&a, &b) || times_zero(&b, &a))
        };
        of.known() == Some(0.0)
            || answers.iter().any(says)
            || depth > 0 && both.iter().filter_map(|cell| cases.products.get(&cell.key())).any(is_product)
    }

    /// Whether two elements are the same wherever some answers are true.
    fn is_same(&self, cases: &mut Cases, one: &Cell, other: &Cell, answers: &[Answer]) -> bool {
        if one.u == other.u || one.v == other.v {
            return true;
        }
        if [one, other].iter().all(|cell| self.is_none(cases, cell, answers, DEPTH)) {
            return true;
        }
        if !cases.is_exact && [one, other].iter().all(|cell| self.is_zero_by(cases, cell, answers, DEPTH)) {
            return true;
        }
        let apart = self.minus(*one, *other);
        let is_tied = |&(question, outcome): &Answer| {
            let Question { about, of, is_of_bits, .. } = cases.questions[question];
            let is_multiple = || match self.are_bits {
                true => of.is(&apart) || of.is(&self.neg(apart)),
                false => self.proportion(apart, of).is_some(),
            };
            about == About::Sign && outcome == EQUAL && (is_of_bits || !cases.is_exact) && is_multiple()
        };
        answers.iter().any(is_tied)
    }
}

/// Where a number lies of which the sign is known.
fn range(sign: i32, is_whole: bool) -> (f64, f64) {
    let least = if is_whole { 1.0 } else { 0.0 };
    match sign {
        0 => (0.0, 0.0),
        1 => (least, f64::INFINITY),
        _ => (f64::NEG_INFINITY, -least),
    }
}

/// Cases of one element at most.
const MOST_CASES: usize = 96;

/// What a run says of an element, or of all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Found {
    /// All cases are known.
    Covered,
    /// There are more.
    More,
    /// It is not the same in this case, where the fields lack a root.
    Irregular,
    /// It is not the same in this case.
    Apart,
}

/// Runs at most that say nothing of an element whose groups are tried one after the other.
const MOST_WASTED: usize = 32;

/// What is known of one element after some runs.
#[derive(Debug, Default)]
pub(super) struct Element {
    /// The answers of all groups in the first run.
    first: Option<Path>,
    /// The cases of each group, the other ones being as they were in that run.
    cases: Vec<Vec<Vec<Answer>>>,
    /// Where all questions are one group: the cases in which both are the same.
    same: Vec<Vec<Answer>>,
    /// Those of the other side, where a case takes in but a border.
    on_a_border: Vec<Vec<Answer>>,
    /// Whether all questions are one group: where some answers of two groups exclude each other they are not independent.
    is_joined: bool,
    wasted: usize,
    is_covered: bool,
}

impl Element {
    /// Notes the case of a run, and gives the answers of one that is missing to `next`, as far as these leave it.
    fn note(
        &mut self,
        algebra: &Algebra,
        cases: &mut Cases,
        [one, other]: [(Cell, Path); 2],
        next: &mut FxHashMap<usize, u8>,
    ) -> Found {
        if self.is_covered {
            return Found::Covered;
        }
        let path = [one.1, other.1].concat();
        let path = apart(if self.is_joined { vec![distinct(path.concat())] } else { path });
        if path.iter().any(|group| group.len() > MOST_ANSWERS) {
            return Found::Apart;
        }
        let answers = path.concat();
        if !algebra.is_same(cases, &one.0, &other.0, &answers) {
            if path.len() > 1 {
                return self.join();
            }
            if algebra.may_hold(cases, &answers) {
                let Some(other_case) = algebra.other_side(cases, &answers) else {
                    let is_irregular = one.0.is_irregular || other.0.is_irregular;
                    return if is_irregular && !answers.is_empty() { Found::Irregular } else { Found::Apart };
                };
                self.on_a_border.push(other_case);
            }
        } else if path.len() <= 1 && !self.same.contains(&answers) {
            self.same.push(answers.clone());
        }
        // What is infinite or no number hides all other parts.
        let hides = |cell: &Cell| {
            cell.is_never_a_number()
                || algebra.is_pole(&[*cell])
                || cell.low == cell.high && cell.low.is_infinite()
        };
        if self.first.is_none() && path.len() > 1 && (hides(&one.0) || hides(&other.0)) {
            return self.join();
        }
        if self.first.is_none() {
            self.cases = path.iter().map(|group| vec![group.clone()]).collect();
        }
        let first = self.first.get_or_insert_with(|| path.clone());
        // A run counts for the one group in which it is another case, if all others are as they were.
        let changed: Vec<usize> = (0..first.len()).filter(|&at| !path.contains(&first[at])).collect();
        if let [group] = *changed {
            let own = path.iter().filter(|own| !first.contains(own)).flatten();
            let case = distinct(own.copied().collect());
            if !self.cases[group].contains(&case) {
                self.cases[group].push(case);
            }
        } else if !changed.is_empty() {
            self.wasted += 1;
            if self.wasted > MOST_WASTED {
                return self.join();
            }
        }
        for at in 0..first.len() {
            let Some(missing) = algebra.uncovered(cases, &self.cases[at], &mut Vec::new()) else { continue };
            if self.cases[at].len() >= MOST_CASES {
                return Found::Apart;
            }
            let others = first.iter().enumerate().filter(|(other, _)| *other != at);
            let all: Vec<Answer> =
                missing.into_iter().chain(others.flat_map(|(_, group)| group.clone())).collect();
            if all.iter().all(|(question, outcome)| next.get(question).is_none_or(|own| own == outcome)) {
                next.extend(all);
            }
            return Found::More;
        }
        let is_shown = |other_case: &Vec<Answer>| {
            algebra.uncovered(cases, &self.same, &mut other_case.clone()).is_none()
        };
        if !self.on_a_border.iter().all(is_shown) {
            return Found::Apart;
        }
        self.is_covered = true;
        Found::Covered
    }

    /// Begins anew, with one group.
    fn join(&mut self) -> Found {
        let is_new = !self.is_joined;
        *self = Element { is_joined: true, ..Element::default() };
        if is_new { Found::More } else { Found::Apart }
    }
}

/// Fingerprints whose elements remember the answers that they depend on.
#[derive(Debug)]
pub(super) struct Remembered(pub(super) Fingerprints);

impl Remembered {
    fn is_on(&self) -> bool {
        self.0.table().cases.is_some()
    }

    /// What elements are without their answers.
    fn own(&self, cells: &[u64]) -> Vec<u64> {
        let table = self.0.table();
        let Some(cases) = &table.cases else { return cells.to_vec() };
        cells.iter().map(|&key| cases.own(key)).collect()
    }

    /// Elements with the answers of those that each is made of, and of what was asked to compute it. `are_parts`: each of
    /// those is a part of its own, if nothing was asked.
    fn with_answers(
        &self,
        results: Vec<u64>,
        are_parts: bool,
        of: impl Fn(usize, &mut dyn FnMut(u64)),
    ) -> Vec<u64> {
        let table = &mut *self.0.table();
        let Some(cases) = &mut table.cases else { return results };
        let mut asked: FxHashMap<usize, Vec<Answer>> = FxHashMap::default();
        for (element, answer) in std::mem::take(&mut cases.asked) {
            asked.entry(element).or_default().push(answer);
        }
        let mut all = Vec::with_capacity(results.len());
        for (i, own) in results.into_iter().enumerate() {
            let asked = asked.remove(&i).unwrap_or_default();
            let is_joined = !are_parts || !asked.is_empty();
            let mut path = vec![asked];
            of(i, &mut |key| path.extend_from_slice(cases.path(key)));
            let path = apart(if is_joined { vec![distinct(path.concat())] } else { path });
            if path.is_empty() {
                all.push(own);
                continue;
            }
            let number = cases.number(path);
            let key = mix(mix(text("case"), own), number as u64);
            cases.of.insert(key, (own, number));
            all.push(key);
        }
        all
    }

    /// Whether results are sums of what is made of each operand alone, or functions of them of which nothing is known.
    fn are_parts(&self, function: Pointwise, operands: &[Operand]) -> bool {
        let table = self.0.table();
        let Some(cases) = &table.cases else { return false };
        let is_asked = |operand: &&Operand| match operand {
            Operand::Number(_) => false,
            Operand::Cells(cells) => cases.are_asked(cells),
        };
        match function {
            Pointwise::Opaque(..) => true,
            // Bit for bit a sum of numbers is rounded, and one of zeros is none.
            _ if self.0.laws.are_bits() => false,
            Pointwise::Binary(Binary::Add | Binary::Sub, ..) | Pointwise::Unary(Unary::Neg, _) => true,
            Pointwise::Binary(Binary::Mul, ..) => operands.iter().filter(is_asked).count() < 2,
            Pointwise::Binary(Binary::Div, _, Rounding::True) => {
                !operands.get(1).is_some_and(|divisor| is_asked(&divisor))
            }
            _ => false,
        }
    }

    /// The one of some conditions that says alone whether any or all of them hold.
    fn decides(&self, op: Reduce, run: &[u64]) -> Option<u64> {
        let says = match op {
            Reduce::Any => 1.0,
            Reduce::All => 0.0,
            _ => return None,
        };
        let table = self.0.table();
        let cases = table.cases.as_ref()?;
        run.iter()
            .copied()
            .find(|&key| table.get(cases.own(key)).is_some_and(|cell| cell.known() == Some(says)))
    }

    /// Notes that what depends on elements does not remember it.
    fn forgets(&self, cells: &[u64]) -> bool {
        let mut table = self.0.table();
        let Some(cases) = &mut table.cases else { return false };
        let forgets = cases.are_asked(cells);
        cases.is_open |= forgets;
        forgets
    }
}

/// Operands with other cells.
pub(super) fn with_cells<'c>(operands: &[Operand], cells: &[&'c [u64]]) -> Vec<Operand<'c>> {
    let mut cells = cells.iter();
    let of = |operand: &Operand| match operand {
        Operand::Number(number) => Operand::Number(*number),
        Operand::Cells(_) => Operand::Cells(cells.next().copied().unwrap_or_default()),
    };
    operands.iter().map(of).collect()
}

/// Element i of an operand.
fn element(cells: &[u64], i: usize) -> Option<u64> {
    cells.get(i).or(cells.first()).copied()
}

impl Domain for Remembered {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn enter(&self, node: NodeId) {
        self.0.enter(node);
    }

    fn split(&self, cell: u64, bytes: u8) -> (u64, u64) {
        self.forgets(&[cell]);
        self.0.split(cell, bytes)
    }

    fn join(&self, low: u64, high: u64, bytes: u8) -> u64 {
        self.0.join(low, high, bytes)
    }

    fn input(&self, key: u64, index: u64, dtype: Dtype) -> u64 {
        let input = self.0.input(key, index, dtype);
        self.with_answers(vec![input], false, |_, _| {}).first().copied().unwrap_or(input)
    }

    fn constant(&self, number: Number, dtype: Dtype) -> u64 {
        self.0.constant(number, dtype)
    }

    fn cast(&self, cells: &[u64], from: Dtype, to: Dtype) -> Outcome<Vec<u64>> {
        if !self.is_on() {
            return self.0.cast(cells, from, to);
        }
        let cast = self.0.cast(&self.own(cells), from, to)?;
        let are_parts = cast == self.own(cells);
        Ok(self.with_answers(cast, are_parts, |i, add| add(cells[i])))
    }

    fn number(&self, cell: u64, dtype: Dtype) -> Number {
        self.forgets(&[cell]);
        self.0.number(cell, dtype)
    }

    fn integers(&self, cells: &[u64], dtype: Dtype) -> Option<Vec<i64>> {
        if self.forgets(cells) { None } else { self.0.integers(cells, dtype) }
    }

    fn indices(&self, cells: &[u64], dtype: Dtype) -> Option<Vec<(i64, bool)>> {
        let mut indices = self.0.indices(&self.own(cells), dtype)?;
        let table = self.0.table();
        if let Some(cases) = &table.cases {
            // It would be another one with other answers.
            let depend = cells.iter().map(|key| cases.of.contains_key(key));
            indices.iter_mut().zip(depend).for_each(|((_, is_open), depends)| *is_open |= depends);
        }
        Some(indices)
    }

    fn by_index(&self, index: u64, from_end: bool, dtype: Dtype, of: &[u64]) -> u64 {
        if !self.is_on() {
            return self.0.by_index(index, from_end, dtype, of);
        }
        let own = self.0.by_index(self.own(&[index])[0], from_end, dtype, &self.own(of));
        let all =
            self.with_answers(vec![own], false, |_, add| [&[index], of].concat().into_iter().for_each(add));
        all[0]
    }

    fn pointwise(
        &self,
        function: Pointwise,
        dtype: Dtype,
        operands: &[Operand],
        count: usize,
    ) -> Outcome<Vec<u64>> {
        if !self.is_on() {
            return self.0.pointwise(function, dtype, operands, count);
        }
        let cells = |operand: &Operand| match operand {
            Operand::Number(_) => None,
            Operand::Cells(cells) => Some(self.own(cells)),
        };
        let cells: Vec<Vec<u64>> = operands.iter().filter_map(cells).collect();
        let own = with_cells(operands, &cells.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let results = self.0.pointwise(function, dtype, &own, count)?;
        let holds = |i: usize| Some(self.0.table().get(element(cells.first()?, i)?)?.known()? != 0.0);
        let chosen: Vec<Option<bool>> = match function {
            Pointwise::Where => (0..count).map(holds).collect(),
            _ => Vec::new(),
        };
        Ok(self.with_answers(results, self.are_parts(function, operands), |i, add| {
            // What is not chosen is not needed.
            let other = chosen.get(i).copied().flatten().map(|holds| if holds { 2 } else { 1 });
            for (at, operand) in operands.iter().enumerate() {
                if let Operand::Cells(cells) = operand
                    && other != Some(at)
                {
                    element(cells, i).into_iter().for_each(&mut *add);
                }
            }
        }))
    }

    fn reduce(&self, op: Reduce, dtype: Dtype, cells: &[u64], run: usize) -> Outcome<Vec<u64>> {
        if !self.is_on() {
            return self.0.reduce(op, dtype, cells, run);
        }
        let reduced = self.0.reduce(op, dtype, &self.own(cells), run)?;
        let runs: Vec<&[u64]> = cells.chunks_exact(run.max(1)).collect();
        let are_parts = matches!(op, Reduce::Sum | Reduce::Mean) && !self.0.laws.are_bits();
        let decided: Vec<Option<u64>> = runs.iter().map(|run| self.decides(op, run)).collect();
        Ok(self.with_answers(reduced, are_parts, |i, add| match decided[i] {
            Some(alone) => add(alone),
            None => runs[i].iter().copied().for_each(add),
        }))
    }

    fn cumsum(&self, dtype: Dtype, cells: &[u64], run: usize) -> Outcome<Vec<u64>> {
        if !self.is_on() {
            return self.0.cumsum(dtype, cells, run);
        }
        let sums = self.0.cumsum(dtype, &self.own(cells), run)?;
        let start = |i: usize| i - i % run.max(1);
        let are_parts = !self.0.laws.are_bits();
        Ok(self.with_answers(sums, are_parts, |i, add| cells[start(i)..=i].iter().copied().for_each(add)))
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
        if !self.is_on() {
            return self.0.matmul(size, dtype, a, b, addend, out);
        }
        let MatmulSize { m, k, n, .. } = size;
        let bias = addend.map_or(&[][..], |addend| addend.bias);
        let own = self.own(bias);
        let of_own = addend.map(|addend| Addend { bias: &own, ..addend });
        let products = self.0.matmul(size, dtype, &self.own(a), &self.own(b), of_own, out)?;
        let are_asked = |cells| self.0.table().cases.as_ref().is_some_and(|cases| cases.are_asked(cells));
        let are_parts = (!are_asked(a) || !are_asked(b)) && !self.0.laws.are_bits();
        Ok(self.with_answers(products, are_parts, |at, add| {
            let (p, i, j) = (at / (m * n), at / n.max(1) % m.max(1), at % n.max(1));
            for l in 0..k {
                add(a[(p * m + i) * k + l]);
                add(b[(p * k + l) * n + j]);
            }
            bias.get(at).copied().into_iter().for_each(add);
        }))
    }

    fn across_ranks(&self, op: RankReduce, dtype: Dtype, parts: &[&[u64]]) -> Outcome<Vec<u64>> {
        if !self.is_on() {
            return self.0.across_ranks(op, dtype, parts);
        }
        let own: Vec<Vec<u64>> = parts.iter().map(|part| self.own(part)).collect();
        let own: Vec<&[u64]> = own.iter().map(Vec::as_slice).collect();
        let reduced = self.0.across_ranks(op, dtype, &own)?;
        let are_parts = matches!(op, RankReduce::Sum | RankReduce::Avg) && !self.0.laws.are_bits();
        Ok(self.with_answers(reduced, are_parts, |i, add| parts.iter().for_each(|part| add(part[i]))))
    }

    fn draw(&self, draw: Draw, key: u64, dtype: Dtype, count: usize) -> Outcome<Vec<u64>> {
        self.0.draw(draw, key, dtype, count)
    }

    fn uninterpreted(
        &self,
        key: u64,
        output: u64,
        dtype: Dtype,
        count: usize,
        what: &str,
    ) -> Outcome<Vec<u64>> {
        // Its key is made of its inputs, whose answers are not known here.
        if self.0.table().cases.as_ref().is_some_and(|cases| !cases.of.is_empty()) {
            return Err(refuse!("{what} may depend on what was chosen"));
        }
        self.0.uninterpreted(key, output, dtype, count, what)
    }

    fn interprets_everything(&self) -> bool {
        self.0.interprets_everything()
    }
}

/// An element of the tensors that two runs give, and what it is in both.
pub(super) type Both = ((usize, usize), [u64; 2]);

/// What one more run says; the table has the answers for the next one.
pub(super) fn look(
    table: &mut Table,
    field: &Field,
    level: Numerics,
    pairs: &[Both],
    elements: &mut FxHashMap<(usize, usize), Element>,
) -> Found {
    let Some(mut cases) = table.cases.take().filter(|cases| !cases.are_useless()) else {
        return Found::Apart;
    };
    let (mut next, mut found) = (FxHashMap::default(), Found::Covered);
    let of = |key: u64| Some((table.get(cases.own(key))?, cases.path(key).to_vec()));
    let both = |&(at, [one, other]): &Both| Some((at, [of(one)?, of(other)?]));
    let Some(cells) = pairs.iter().map(both).collect::<Option<Vec<_>>>() else { return Found::Apart };
    let are_bits = level < Numerics::Reassociation;
    let algebra = Algebra { field, are_bits, nans: false, is_whole: false, table };
    for (at, both) in cells {
        let element = elements.entry(at).or_default();
        found = found.max(element.note(&algebra, &mut cases, both, &mut next));
    }
    table.cases = Some(cases.next(next));
    found
}
