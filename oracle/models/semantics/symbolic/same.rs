//! Whether two values are the same, where their ids differ.
//!
//! # The idea
//!
//! Equal ids are equal values. Different ids may still be equal values, written differently: a window that could not be
//! flattened against runs. A pair of values is taken apart into runs, a pair of runs into elements or into the inputs
//! of the calls that made them; so the question becomes one about other pairs, of older values. Each pair is settled
//! once, and what is known of it is kept for all questions about the arena. All that a pair rests on is the same: same.
//! One pair of elements that come from different places: different. Anything that cannot be looked into: unknown.
//!
//! A difference found on the way through something assumed (an operator of which nothing is known, a symbolic size, an
//! index operator that may not look at the element) proves nothing.

use super::arena::Arena;
use super::element::Element;
use super::key::{KeyDifference, difference};
use super::run::Piece;
use super::source::{KeyId, Source, SourceId, Traits, ValueId};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Pieces of the same two sources that are looked at where something is not known.
const PIECES: u32 = 16;

/// Whether two values are the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Proved the same.
    Same,
    /// They differ, and this is certain.
    Different,
    /// Not known.
    Unknown,
}

/// Two things that may be the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Pair {
    Values(ValueId, ValueId),
    Keys(KeyId, KeyId),
    Elements(Element, Element),
}

/// Where two values part.
pub(super) struct Parting {
    /// The elements, in row-major order.
    pub(super) elements: Range<i64>,
    /// What is there, in words.
    pub(super) found: String,
    /// What was expected.
    pub(super) expected: String,
    /// Whether both are the same call, on other inputs.
    pub(super) derived: bool,
}

/// What two elements are to each other.
pub(super) enum Relation {
    Same,
    Different,
    /// The same if these pairs are.
    IfSame(Vec<Pair>),
    /// The same if these pairs are; but a difference there proves nothing.
    Perhaps(Vec<Pair>),
    /// The same if the `whole` pairs are, different if one of the `made_of` pairs is.
    Made {
        whole: Vec<Pair>,
        made_of: Vec<Pair>,
    },
    /// Different if one of these pairs is, else unknown.
    Apart(Vec<Pair>),
    /// Different if one of these pairs is. Else it says nothing: there are others.
    Sample(Vec<Pair>),
    /// Calls whose operands may be exchanged: the operands in order, and crosswise. Of which elements they are calls.
    Exchanged {
        operands: Box<[Pair; 4]>,
        of: Box<(Element, Element)>,
    },
    /// Different if all pairs of one row are, else unknown.
    Unmatched(Vec<Vec<Pair>>),
    Unknown,
}

/// What of a pair is being decided.
struct Frame {
    pair: Pair,
    /// Of two values: the pieces that are not looked at yet, the next one last, and of the first how far.
    pieces: Vec<(Piece, Piece)>,
    at: i64,
    /// Where anything is not known: how many pieces of each two sources were looked at since.
    tried: FxHashMap<(SourceId, SourceId), u32>,
    /// What is known of the part that is looked at, and which pairs of it come next.
    relations: Vec<Relation>,
    relation: usize,
    next: usize,
    /// Whether a pair of the relation that is looked at is not the same.
    open: bool,
    /// Whether anything is not known.
    unknown: bool,
}

impl Frame {
    /// Ends the relation that is looked at.
    fn end_relation(&mut self, is_unknown: bool) {
        self.unknown |= is_unknown;
        self.relation += 1;
        self.next = 0;
        self.open = false;
    }
}

/// What comes next for a pair.
enum Step {
    Ask(Pair),
    Settled(Verdict),
}

/// Answers questions about one arena. The arena remembers the answers.
pub(super) struct Judge<'a> {
    pub(super) arena: &'a mut Arena,
}
impl<'a> Judge<'a> {
    pub(super) fn new(arena: &'a mut Arena) -> Judge<'a> {
        Judge { arena }
    }

    /// Whether two values are the same.
    pub(super) fn values(&mut self, a: ValueId, b: ValueId) -> Verdict {
        if a == b { Verdict::Same } else { self.settle(Pair::Values(a, b)) }
    }

    /// Whether two calls are the same.
    pub(super) fn keys(&mut self, a: KeyId, b: KeyId) -> Verdict {
        if a == b { Verdict::Same } else { self.settle(Pair::Keys(a, b)) }
    }

    fn settle(&mut self, pair: Pair) -> Verdict {
        if let Some(&known) = self.arena.settled.get(&pair) {
            return known;
        }
        let mut frames = vec![self.open(pair)];
        while let Some(mut frame) = frames.pop() {
            match self.step(&mut frame) {
                Step::Ask(pair) => {
                    let asked = self.open(pair);
                    frames.extend([frame, asked]);
                }
                Step::Settled(verdict) => {
                    self.arena.settled.insert(frame.pair, verdict);
                }
            }
        }
        self.arena.settled.get(&pair).copied().unwrap_or(Verdict::Unknown)
    }

    fn open(&mut self, pair: Pair) -> Frame {
        // Values are made of older ones, so that no pair comes up for itself. Of one that does nothing is known.
        self.arena.settled.insert(pair, Verdict::Unknown);
        let (mut pieces, mut relations) = (Vec::new(), Vec::new());
        match pair {
            Pair::Values(a, b) if self.arena.len(a) != self.arena.len(b) => {
                relations.push(self.compare_sizes(a, b))
            }
            Pair::Values(a, b) => {
                pieces = self.arena.differing(a, b);
                pieces.reverse();
            }
            Pair::Keys(a, b) => relations.push(self.compare_keys(a, b)),
            Pair::Elements(a, b) => relations.push(self.compare_elements(a, b)),
        }
        Frame {
            pair,
            pieces,
            at: 0,
            tried: FxHashMap::default(),
            relations,
            relation: 0,
            next: 0,
            open: false,
            unknown: false,
        }
    }

    /// Two values of other lengths. What is not followed has one element that stands for all of it: it may be the whole
    /// of the other one, unless it cannot be made of the same inputs.
    fn compare_sizes(&mut self, a: ValueId, b: ValueId) -> Relation {
        let is_assumed = |value| self.arena.traits(value).has(Traits::ASSUMED);
        if !is_assumed(a) && !is_assumed(b) {
            return Relation::Different;
        }
        match (self.arena.element(a, 0), self.arena.element(b, 0)) {
            (Some(a), Some(b)) if self.arena.depend_on_others(a.source, b.source) => Relation::Different,
            _ => Relation::Unknown,
        }
    }

    /// Goes on with a pair until another one must be settled first.
    fn step(&mut self, frame: &mut Frame) -> Step {
        loop {
            let Some(relation) = frame.relations.get(frame.relation) else {
                let Some(&(p, q)) = frame.pieces.last() else {
                    let verdict = if frame.unknown { Verdict::Unknown } else { Verdict::Same };
                    return Step::Settled(verdict);
                };
                frame.relations.clear();
                frame.relation = 0;
                // Only a difference still counts: a few pieces of the same two sources are enough.
                if frame.unknown && frame.at == 0 {
                    let tried = frame.tried.entry((p.source, q.source)).or_default();
                    *tried += 1;
                    if *tried > PIECES {
                        frame.pieces.pop();
                        continue;
                    }
                }
                match self.compare_pieces((p, q), frame.at, frame.unknown, &mut frame.relations) {
                    Some(at) => frame.at = at,
                    None => {
                        frame.pieces.pop();
                        frame.at = 0;
                    }
                }
                continue;
            };
            match relation {
                Relation::Exchanged { operands, of } => match self.exchanged(**operands) {
                    Ok(Some(verdict @ Verdict::Different)) => return Step::Settled(verdict),
                    Ok(Some(_)) => frame.end_relation(false),
                    Ok(None) => {
                        let (a, b) = **of;
                        frame.relations[frame.relation] = self.unmatched(a, b);
                    }
                    Err(pair) => return Step::Ask(pair),
                },
                Relation::Unmatched(rows) => match self.has_unmatched(rows, &mut frame.next) {
                    Ok(true) => return Step::Settled(Verdict::Different),
                    Ok(false) => frame.end_relation(true),
                    Err(pair) => return Step::Ask(pair),
                },
                _ => {}
            }
            let Some(relation) = frame.relations.get(frame.relation) else { continue };
            // First the pairs of which one that differs decides, then those that must be the same, but whose difference
            // says nothing.
            let (deciding, whole): (&[Pair], &[Pair]) = match relation {
                Relation::Exchanged { .. } | Relation::Unmatched(_) => continue,
                Relation::Same => (&[], &[]),
                Relation::Different => return Step::Settled(Verdict::Different),
                Relation::Unknown => {
                    frame.end_relation(true);
                    continue;
                }
                Relation::IfSame(pairs) | Relation::Apart(pairs) | Relation::Sample(pairs) => (pairs, &[]),
                Relation::Perhaps(pairs) => (&[], pairs),
                Relation::Made { whole, made_of } => (made_of, whole),
            };
            let decides = frame.next < deciding.len();
            let is_open = !decides || matches!(relation, Relation::IfSame(_));
            let pair = deciding.get(frame.next).or_else(|| whole.get(frame.next - deciding.len()));
            let Some(&pair) = pair else {
                let is_unknown = frame.open || matches!(relation, Relation::Apart(_));
                frame.end_relation(is_unknown);
                continue;
            };
            let verdict = match self.known(pair) {
                Ok(verdict) => verdict,
                Err(pair) => return Step::Ask(pair),
            };
            frame.next += 1;
            match verdict {
                Verdict::Different if decides => return Step::Settled(Verdict::Different),
                Verdict::Different | Verdict::Unknown if !decides => frame.end_relation(true),
                Verdict::Unknown => frame.open |= is_open,
                _ => {}
            }
        }
    }

    /// What is known of a pair; the pair where that must be asked for.
    pub(super) fn known(&self, pair: Pair) -> Result<Verdict, Pair> {
        match pair {
            Pair::Values(a, b) if a == b => Ok(Verdict::Same),
            Pair::Keys(a, b) if a == b => Ok(Verdict::Same),
            Pair::Elements(a, b) if a == b => Ok(Verdict::Same),
            pair => self.arena.settled.get(&pair).copied().ok_or(pair),
        }
    }

    /// Whether two calls are the same whose operands may be exchanged: crosswise they are not looked into. `None` where
    /// the operands alone do not say it.
    fn exchanged(&self, [a, b, c, d]: [Pair; 4]) -> Result<Option<Verdict>, Pair> {
        use Verdict::{Different, Same};
        let straight = (self.known(a)?, self.known(b)?);
        let shallow = |pair| self.known(pair).unwrap_or(Verdict::Unknown);
        let crosswise = (shallow(c), shallow(d));
        let all = [straight, crosswise];
        if all.contains(&(Same, Same)) {
            return Ok(Some(Same));
        }
        let is_one_apart = |pair: &(Verdict, Verdict)| matches!(pair, (Same, Different) | (Different, Same));
        Ok(all.iter().any(is_one_apart).then_some(Different))
    }

    /// Whether a row, from a given one on, has only pairs that differ. What must be asked for is of the row that it is
    /// left at.
    fn has_unmatched(&self, rows: &[Vec<Pair>], next: &mut usize) -> Result<bool, Pair> {
        while let Some(row) = rows.get(*next) {
            let mut is_apart = !row.is_empty();
            for &pair in row {
                is_apart &= self.known(pair)? == Verdict::Different;
                if !is_apart {
                    break;
                }
            }
            if is_apart {
                return Ok(true);
            }
            *next += 1;
        }
        Ok(false)
    }

    pub(super) fn compare_keys(&mut self, a: KeyId, b: KeyId) -> Relation {
        if a == b {
            return Relation::Same;
        }
        match difference(self.arena.words(a), self.arena.words(b)) {
            KeyDifference::Call => Relation::Different,
            KeyDifference::Shapes => Relation::Unknown,
            KeyDifference::Inputs(values, numbers) => Relation::IfSame(
                values
                    .into_iter()
                    .map(|(a, b)| Pair::Values(a, b))
                    .chain(numbers.into_iter().map(|(a, b)| Pair::Keys(a, b)))
                    .collect(),
            ),
        }
    }

    /// The first elements at which `b` certainly differs from `a`, else at which they are written differently.
    pub(super) fn parting(&mut self, a: ValueId, b: ValueId) -> Option<Parting> {
        let spots = self.arena.differing_at(a, b);
        let mut best = *spots.first()?;
        for (at, expected, found) in spots {
            let (x, y) = (self.arena.piece(expected), self.arena.piece(found));
            if self.values(x, y) == Verdict::Different {
                best = (at, expected, found);
                break;
            }
        }
        let (at, expected, found) = best;
        let derived = self.is_derived(expected.source, found.source);
        let words = self.arena.difference_words(found, expected);
        Some(Parting { elements: at..at + found.len, found: words.0, expected: words.1, derived })
    }

    /// Whether two sources are the same call on other inputs.
    fn is_derived(&self, a: SourceId, b: SourceId) -> bool {
        match (self.arena.get(a), self.arena.get(b)) {
            (Source::Opaque { key: k, output: n }, Source::Opaque { key: l, output: m }) => {
                n == m && difference(self.arena.words(k), self.arena.words(l)) != KeyDifference::Call
            }
            (Source::Cast { source: s, .. }, Source::Cast { source: r, .. })
            | (Source::Reduced { source: s, .. }, Source::Reduced { source: r, .. }) => self.is_derived(s, r),
            _ => false,
        }
    }
}
