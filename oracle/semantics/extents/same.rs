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

use super::algebra::Family;
use super::arena::Arena;
use super::key::{self, KeyDifference, difference};
use super::layout;
use super::place::{GroupSet, HERE, PlaceId};
use super::run::Piece;
use super::source::{KeyId, Source, SourceId, Symbol, Traits, ValueId};
use crate::ops;
use rustc_hash::FxHashSet;
use std::ops::Range;
use std::sync::Arc;

/// Elements of a window up to which they are looked at one by one.
const ALL_ELEMENTS: i64 = 1 << 16;
/// How many are looked at otherwise.
const SAMPLES: i64 = 1 << 10;
/// How many are looked at before what is known of them is asked for.
const AT_ONCE: i64 = 16;
/// Windows on windows that are looked through.
const DEPTH: u32 = 64;
/// Elements that are looked at to find what one is made of.
const PARTS: usize = 256;
/// Terms of a sum that are compared with those of another.
const TERMS: usize = 16;
/// Elements of two sums that are taken apart.
const TRIES: u32 = 16;

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

/// One element, which may stand for those that follow it in its source.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Element {
    pub(super) source: SourceId,
    pub(super) place: PlaceId,
    pub(super) offset: i64,
    /// How many it stands for, itself included.
    pub(super) len: i64,
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
enum Relation {
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
                relations.push(Relation::Different)
            }
            Pair::Values(a, b) => {
                pieces = self.arena.differing(a, b);
                pieces.reverse();
            }
            Pair::Keys(a, b) => relations.push(self.compare_keys(a, b)),
            Pair::Elements(a, b) => relations.push(self.compare_elements(a, b)),
        }
        Frame { pair, pieces, at: 0, relations, relation: 0, next: 0, open: false, unknown: false }
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
            // First the pairs of which one that differs decides, then those that must be the same, but whose difference says nothing.
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
    fn known(&self, pair: Pair) -> Result<Verdict, Pair> {
        match pair {
            Pair::Values(a, b) if a == b => Ok(Verdict::Same),
            Pair::Keys(a, b) if a == b => Ok(Verdict::Same),
            Pair::Elements(a, b) if a == b => Ok(Verdict::Same),
            pair => self.arena.settled.get(&pair).copied().ok_or(pair),
        }
    }

    /// Whether two calls are the same whose operands may be exchanged: crosswise they are not looked into. `None` where the operands alone do not say it.
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

    /// The operands of two sums (or products) of many, those of sums among them taken apart: each of the one that both do not
    /// share, against each of the other.
    fn unmatched(&mut self, a: Element, b: Element) -> Relation {
        let Source::Opaque { key, .. } = self.arena.get(a.source) else { return Relation::Unknown };
        let tried = self.arena.tried.entry((a.source, b.source)).or_default();
        *tried += 1;
        if *tried > TRIES {
            return Relation::Unknown;
        }
        let operator = key::target(self.arena.words(key));
        let (Some(left), Some(right)) = (self.parts(a, operator), self.parts(b, operator)) else {
            return Relation::Unknown;
        };
        let mut right = right.to_vec();
        let is_left = |term: &&Element| match right.iter().position(|other| other == *term) {
            Some(at) => {
                right.swap_remove(at);
                false
            }
            None => true,
        };
        let mut left: Vec<Element> = left.iter().filter(is_left).copied().collect();
        // What is a function of elements itself may be a multiple of others.
        left.retain(|term| !self.is_elementwise(term.source));
        if left.len().max(right.len()) > TERMS {
            return Relation::Unknown;
        }
        let row = |term: &Element| right.iter().map(|&other| Pair::Elements(*term, other)).collect();
        Relation::Unmatched(left.iter().map(row).collect())
    }

    /// The elements that an element is made of, in order: by sums (or products) of `operator`, or by functions of its own
    /// [`Family`]. `None` where they are too many, or not known.
    fn parts(&mut self, of: Element, operator: Option<Symbol>) -> Option<Arc<[Element]>> {
        let of = Element { source: self.arena.uncast(of.source), len: 1, ..of };
        if let Some(known) = self.arena.parts.get(&(of, operator)) {
            return known.clone();
        }
        let found = self.find_parts(of, operator).map(Arc::from);
        self.arena.parts.insert((of, operator), found.clone());
        found
    }

    fn find_parts(&mut self, of: Element, operator: Option<Symbol>) -> Option<Vec<Element>> {
        let family = self.arena.family(of.source);
        let mut open = vec![of];
        let mut found = Vec::new();
        let mut steps = 0;
        while let Some(mut at) = open.pop() {
            steps += 1;
            if steps > PARTS {
                return None;
            }
            at.source = self.arena.uncast(at.source);
            let Source::Opaque { key, .. } = self.arena.get(at.source) else {
                found.push(at);
                continue;
            };
            let words = self.arena.words(key);
            let is_part = match operator {
                None => self.arena.family(at.source) != family || !self.is_elementwise(at.source),
                some => key::target(words) != some || self.arena.exchangeable(key).is_none(),
            };
            if is_part {
                found.push(at);
                continue;
            }
            let sizes = key::broadcast(words)?;
            let read: Vec<_> = key::tensors(words).map(|(v, own)| (v, read_by(own, &sizes, at)[1])).collect();
            for (value, of) in read {
                let shown = self.shown(value, of)?;
                let part = self.arena.element(shown, 0)?;
                open.push(self.resolve(part, 0)?);
            }
        }
        Some(found)
    }

    /// Whether a row, from a given one on, has only pairs that differ. What must be asked for is of the row that it is left at.
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

    /// Two elements of calls whose operands may be exchanged: the relation of their operands.
    fn compare_exchangeable(
        &mut self,
        (k, a): (KeyId, Element),
        (l, b): (KeyId, Element),
    ) -> Option<Relation> {
        let ([p, q], [r, s]) = (self.arena.exchangeable(k)?, self.arena.exchangeable(l)?);
        let kinds = |arena: &Arena, key| {
            let words = arena.words(key);
            let kinds = key::tokens(words).map(|(word, rest)| (word, rest.get(1..).map(<[u64]>::to_vec)));
            kinds.filter(|(word, _)| key::tag(*word) == Some(key::Tag::Tensor)).collect::<Vec<_>>()
        };
        let (one, other) = (kinds(self.arena, k), kinds(self.arena, l));
        if one != other || one.first() != one.last() {
            return None;
        }
        let mut pair = |x, y| Some(Pair::Values(self.shown(x, a)?, self.shown(y, b)?));
        let mut pairs = || Some([pair(p, r)?, pair(q, s)?, pair(p, s)?, pair(q, r)?]);
        Some(match pairs() {
            Some(operands) => Relation::Exchanged { operands: Box::new(operands), of: Box::new((a, b)) },
            None => Relation::Perhaps(vec![Pair::Values(p, r), Pair::Values(q, s)]),
        })
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

    /// Two pieces of equal length that are not the same piece, from element `t` on. What is not looked at yet goes on at the
    /// result. Where something is `unknown`, a few samples are enough: only a difference still counts.
    fn compare_pieces(
        &mut self,
        (p, q): (Piece, Piece),
        mut t: i64,
        unknown: bool,
        relations: &mut Vec<Relation>,
    ) -> Option<i64> {
        if !self.holds_window(p.source) && !self.holds_window(q.source) {
            let len = if p.step == 1 && q.step == 1 { p.len } else { 1 };
            let first = |piece| Element { len, ..element(piece, 0) };
            relations.push(self.compare_elements(first(p), first(q)));
            // What holds for the first element holds for all, if both go on alike.
            if p.len > 1 && p.step != q.step {
                relations.push(self.compare_elements(element(p, 1), element(q, 1)));
            }
            return None;
        }
        let len = p.len;
        // Where it depends on the own index, each element is looked at on the ranks of every index.
        let group = self.index_group(element(p, 0)).or_else(|| self.index_group(element(q, 0)));
        let ranks = group.map_or(1, |group| self.ranks(group, p.source, q.source).unwrap_or(1)).max(1);
        let all = len.saturating_mul(i64::from(ranks)) <= ALL_ELEMENTS;
        if t == 0 && !all {
            relations.push(self.compare_large(p, q));
        }
        let step = match (unknown, all) {
            (true, _) => ((len - t) / AT_ONCE).max(1),
            (_, true) => 1,
            _ => (len / (SAMPLES / i64::from(ranks)).max(AT_ONCE)).max(1),
        };
        let end = if unknown { len } else { t.saturating_add(AT_ONCE * step).min(len) };
        while t < end {
            let (a, b) = (element(p, t), element(q, t));
            let (x, y) = self.resolve(a, 0).zip(self.resolve(b, 0)).unwrap_or((a, b));
            let relation = self.compare_elements(x, y);
            match relation {
                Relation::Same => {}
                relation if all => relations.push(relation),
                // Samples can only prove a difference.
                Relation::IfSame(pairs)
                | Relation::Apart(pairs)
                | Relation::Sample(pairs)
                | Relation::Made { made_of: pairs, .. } => relations.push(Relation::Sample(pairs)),
                Relation::Different => relations.push(Relation::Different),
                Relation::Exchanged { .. } => relations.push(Relation::Sample(vec![Pair::Elements(x, y)])),
                Relation::Perhaps(_) | Relation::Unmatched(_) | Relation::Unknown => {}
            }
            t += step;
        }
        (t < len).then_some(t)
    }

    /// Two pieces that are too large to be looked at element by element: windows of one layout are the same if what they cover is.
    fn compare_large(&self, p: Piece, q: Piece) -> Relation {
        match (self.arena.get(p.source), self.arena.get(q.source)) {
            (Source::Window { content: c, layout: l }, Source::Window { content: d, layout: m })
                if l == m && (p.offset, p.step, p.place) == (q.offset, q.step, q.place) =>
            {
                Relation::Perhaps(vec![Pair::Values(c, d)])
            }
            _ => Relation::Unknown,
        }
    }

    /// Whether a source shows a window, at whatever depth, be it on some ranks only.
    fn holds_window(&self, source: SourceId) -> bool {
        self.arena.source_traits(source).has(Traits::WINDOW)
    }

    /// Whether two offsets are two elements: a window may show one element twice, and so may a choice by index.
    fn tells_elements_apart(&self, source: SourceId) -> bool {
        !self.holds(source, |one| matches!(one, Source::Window { .. } | Source::Select { .. }))
    }

    fn holds(&self, mut source: SourceId, what: impl Fn(Source) -> bool) -> bool {
        loop {
            match self.arena.get(source) {
                one if what(one) => return true,
                Source::Cast { source: inner, .. }
                | Source::Bits { source: inner, .. }
                | Source::Reduced { source: inner, .. }
                | Source::Elsewhere { source: inner, .. } => source = inner,
                _ => return false,
            }
        }
    }

    /// The element, looked at through all windows; `None` where that is not possible.
    fn resolve(&mut self, at: Element, depth: u32) -> Option<Element> {
        if depth > DEPTH {
            return None;
        }
        match self.arena.get(at.source) {
            Source::Window { content, layout } => {
                if !self.arena.places.get(at.place).scales.is_empty() {
                    return None;
                }
                let t = layout::position(self.arena.layout(layout), at.offset);
                let inner = self.arena.element(content, t)?;
                let inner = self.resolve(inner, depth + 1)?;
                self.seen_from(inner, at.place)
            }
            Source::Cast { source, from, to } => {
                let inner = self.resolve(Element { source, ..at }, depth + 1)?;
                Some(Element { source: self.arena.cast_source(inner.source, from, to), ..inner })
            }
            Source::Bits { source, from, to } if from.itemsize() == to.itemsize() => {
                let inner = self.resolve(Element { source, ..at }, depth + 1)?;
                let source = self.arena.source(Source::Bits { source: inner.source, from, to });
                Some(Element { source, ..inner })
            }
            Source::Reduced { op, group, source, place } => {
                if self.holds_window(source) && !self.arena.places.get(at.place).scales.is_empty() {
                    return None;
                }
                let inner = Element { source, place: super::place::HERE, ..at };
                let inner = self.resolve(inner, depth + 1)?;
                let inner = self.seen_from(inner, place)?;
                let reduced = self.arena.source(Source::Reduced {
                    op,
                    group,
                    source: inner.source,
                    place: inner.place,
                });
                Some(Element { source: reduced, place: at.place, ..inner })
            }
            _ => Some(at),
        }
    }

    /// An element of the rank that a place leads to, seen from here.
    fn seen_from(&mut self, mut element: Element, place: PlaceId) -> Option<Element> {
        if self.arena.is_uniform(element.source) {
            return Some(element);
        }
        let outer = self.arena.places.get(place).clone();
        if !outer.scales.is_empty() {
            return None;
        }
        for &(group, index) in outer.moves.iter().rev() {
            let (place, added) = self.arena.places.moved(element.place, group, index).ok()?;
            element = Element { place, offset: element.offset.checked_add(added)?, ..element };
        }
        Some(element)
    }

    /// The group on whose index an element depends at first sight.
    fn index_group(&self, at: Element) -> Option<super::GroupId> {
        match self.arena.get(at.source) {
            Source::Select { group, .. } => Some(group),
            _ => self.arena.places.get(at.place).scales.first().map(|&(group, _)| group),
        }
    }

    /// How many ranks a group has, on whose index a source depends.
    fn ranks(&self, group: super::GroupId, a: SourceId, b: SourceId) -> Option<u32> {
        let chosen = |source| match self.arena.get(source) {
            Source::Select { group: over, table } if over == group => {
                Some(self.arena.table(table).len() as u32)
            }
            _ => None,
        };
        chosen(a).or_else(|| chosen(b)).or_else(|| self.arena.places.group_size(group))
    }

    /// The element on a rank whose index in `group` is `k`.
    fn at_index(&mut self, at: Element, group: super::GroupId, k: u32) -> Option<Element> {
        let place = self.arena.places.get(at.place);
        match self.arena.get(at.source) {
            Source::Select { group: over, table } if over == group => {
                if *place != super::place::Place::default() {
                    return None;
                }
                let chosen = *self.arena.table(table).get(k as usize)?;
                // One element over and over does not stand for those behind it.
                if chosen.step == 0 && at.len > 1 && !self.arena.is_uniform(chosen.source) {
                    return None;
                }
                let piece = Piece { len: 1, offset: at.offset, source: at.source, place: at.place, step: 1 };
                let chosen = element(super::value::chosen_piece(piece, chosen).ok()?, 0);
                self.at_index(Element { len: at.len, ..chosen }, group, k)
            }
            Source::Select { .. } => None,
            _ => {
                let scale = place.scales.iter().find(|(g, _)| *g == group).map_or(0, |&(_, scale)| scale);
                let offset = at.offset.checked_add(scale.checked_mul(i64::from(k))?)?;
                let place = self.arena.places.without_scale(at.place, group);
                Some(Element { place: self.arena.places.without_move(place, group, k), offset, ..at })
            }
        }
    }

    /// Two elements, one of which is another on each rank of `group`: they are the same if they are on the ranks of
    /// every index. A difference is certain only where nothing below the two depends on the index again.
    fn compare_by_index(&mut self, a: Element, b: Element, group: super::GroupId) -> Relation {
        let Some(ranks) = self.ranks(group, a.source, b.source) else { return Relation::Unknown };
        let (mut whole, mut made_of) = (Vec::new(), Vec::new());
        for k in 0..ranks {
            let (Some(x), Some(y)) = (self.at_index(a, group, k), self.at_index(b, group, k)) else {
                return Relation::Unknown;
            };
            let plain = |at: Element| {
                matches!(
                    self.arena.get(at.source),
                    Source::Poison
                        | Source::Placeholder { .. }
                        | Source::Beyond { .. }
                        | Source::Attribute { .. }
                        | Source::Constant { .. }
                        | Source::Opaque { .. }
                )
            };
            let are_plain = plain(x) && plain(y);
            let are_axes = self.arena.places.are_axes(&[x.place, y.place], &[group]);
            let holds = are_axes && self.arena.hold_for_each_index(x.source, y.source, group);
            match self.compare_elements(x, y) {
                Relation::Same => {}
                Relation::Different if holds || are_axes && are_plain => return Relation::Different,
                _ if holds => made_of.push(Pair::Elements(x, y)),
                _ => whole.push(Pair::Elements(x, y)),
            }
        }
        whole.extend(&made_of);
        match (whole.is_empty(), made_of.is_empty()) {
            (true, _) => Relation::Same,
            (_, true) => Relation::Perhaps(whole),
            _ => Relation::Made { whole, made_of },
        }
    }

    fn compare_keys(&mut self, a: KeyId, b: KeyId) -> Relation {
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

    /// Of two calls of a function of corresponding elements: elements of the inputs that the elements `a` of the one and `b` of the
    /// other are made of. `None` for other calls.
    fn made_of(&mut self, (k, a): (KeyId, Element), (l, b): (KeyId, Element)) -> Option<Vec<Pair>> {
        if !self.is_elementwise(a.source) {
            return None;
        }
        let inputs = |words: &[u64], of: Element| -> Option<Vec<(ValueId, [Element; 2])>> {
            let sizes = key::broadcast(words)?;
            Some(key::tensors(words).map(|(value, own)| (value, read_by(own, &sizes, of))).collect())
        };
        let one = inputs(self.arena.words(k), a)?;
        let other = inputs(self.arena.words(l), b)?;
        let mut pairs = Vec::with_capacity(one.len());
        for ((x, [all_x, first_x]), (y, [all_y, first_y])) in one.into_iter().zip(other) {
            let (p, q) = if all_x.len == all_y.len { (all_x, all_y) } else { (first_x, first_y) };
            pairs.push(Pair::Values(self.shown(x, p)?, self.shown(y, q)?));
        }
        Some(pairs)
    }

    /// The part of a value that lies where elements do: their offsets, on their rank.
    fn shown(&mut self, value: ValueId, at: Element) -> Option<ValueId> {
        let place = self.arena.places.get(at.place);
        if !place.scales.is_empty() || at.offset < 0 || at.offset.checked_add(at.len)? > self.arena.len(value)
        {
            return None;
        }
        let moves = place.moves.clone();
        let part = self.arena.slice(value, at.offset, at.len);
        self.arena.moved_along(part, &moves).ok()
    }

    /// Whether a source is the result of a function of corresponding elements, be it cast or reduced over ranks.
    fn is_elementwise(&self, source: SourceId) -> bool {
        self.holds(source, |one| match one {
            Source::Opaque { key, .. } => key::target(self.arena.words(key))
                .and_then(|target| ops::by_target(self.arena.text(target)))
                .is_some_and(|info| info.kind.is_elementwise()),
            _ => false,
        })
    }

    /// Whether reductions over two groups certainly differ: where each is, its group, and along which groups what it
    /// reduces varies. What is the same all along gives the same, whatever the ranks that it is reduced over.
    fn reduced_apart(
        &mut self,
        (a, g, one): (PlaceId, super::GroupId, GroupSet),
        (b, h, other): (PlaceId, super::GroupId, GroupSet),
    ) -> bool {
        let places = &mut self.arena.places;
        if one == GroupSet::ALL && other == GroupSet::ALL && a == HERE && b == HERE {
            // The elements tell which ranks they come from.
            return !(places.inside(g, h) && places.inside(h, g));
        }
        places.are_axes(&[a, b], &[g, h]) && (one.has(g) || other.has(h))
    }

    fn compare_elements(&mut self, a: Element, b: Element) -> Relation {
        match self.compare_on_each_rank(a, b) {
            // What depends on the own index in another way may still be told apart index by index.
            Relation::Unknown if self.arena.places.scales_differ(a.place, b.place) => {
                match self.index_group(a).or_else(|| self.index_group(b)) {
                    Some(group) => self.compare_by_index(a, b, group),
                    None => Relation::Unknown,
                }
            }
            relation => relation,
        }
    }

    /// Elements of sources that are made by other calls, or by none.
    fn compare_functions(&mut self, a: Element, b: Element) -> Relation {
        let operator = |arena: &Arena, source| match arena.get(source) {
            Source::Opaque { key, .. } => key::target(arena.words(key)),
            _ => None,
        };
        let (one, other) = (operator(self.arena, a.source), operator(self.arena, b.source));
        // Another constant, or another cast.
        if one.is_some() && one == other || self.arena.uncast(a.source) == self.arena.uncast(b.source) {
            return Relation::Different;
        }
        match (self.arena.family(a.source), self.arena.family(b.source)) {
            (Family::Smooth, Family::Smooth) | (Family::Broken, Family::Broken) => Relation::Unknown,
            // It may be what the other one is made of: times 1, or the larger of what is positive and 0.
            (Family::Smooth, _) => self.compare_with_parts(a, b),
            (_, Family::Smooth) => self.compare_with_parts(b, a),
            (Family::Broken, _) => self.compare_with_parts(a, b),
            (_, Family::Broken) => self.compare_with_parts(b, a),
            _ => Relation::Different,
        }
    }

    /// A function of elements and another element: they differ if that is none of those that the function is made of.
    fn compare_with_parts(&mut self, function: Element, other: Element) -> Relation {
        let start = Element { source: self.arena.uncast(function.source), len: 1, ..function };
        let mut parts = match self.parts(function, None) {
            // A product, or a sum over ranks.
            Some(parts) if *parts == [start] => match self.arena.family(other.source) {
                Family::Broken => return self.compare_with_parts(other, function),
                _ => return Relation::Different,
            },
            Some(parts) => parts.to_vec(),
            None => return Relation::Unknown,
        };
        let mut seen = FxHashSet::default();
        parts.retain(|&part| seen.insert(part));
        if parts.len() > TERMS {
            return Relation::Unknown;
        }
        let other = Element { source: self.arena.uncast(other.source), len: 1, ..other };
        Relation::Unmatched(vec![parts.iter().map(|&part| Pair::Elements(part, other)).collect()])
    }

    fn compare_on_each_rank(&mut self, a: Element, b: Element) -> Relation {
        if a == b {
            return Relation::Same;
        }
        let traits = self.arena.source_traits(a.source).and(self.arena.source_traits(b.source));
        // What one rank has not written makes a reduction unwritten, whatever the other ranks hold.
        let reduces =
            |at: Element| !matches!(self.arena.get(at.source), Source::Poison | Source::Select { .. });
        let holds = |at: Element| self.arena.source_traits(at.source).has(Traits::POISON);
        let both_unwritten = holds(a) && holds(b) && (reduces(a) || reduces(b));
        let assumed = traits.has(Traits::ASSUMED) || both_unwritten;
        let different = || if assumed { Relation::Unknown } else { Relation::Different };
        if !assumed && self.arena.depend_on_others(a.source, b.source) {
            return Relation::Different;
        }
        let alike = a.place == b.place && a.offset == b.offset;
        if !alike && a.place != b.place && self.arena.places.may_be_equal(a.place, b.place) {
            return Relation::Unknown;
        }
        let is_elsewhere = a.offset != b.offset || self.arena.places.scales_differ(a.place, b.place);
        // In a graph that fills a slot of its own, what the own rank holds is what it gets of itself.
        let is_home = |place| self.arena.places.is_home(place);
        if a.source == b.source && a.offset == b.offset && is_home(a.place) && is_home(b.place) {
            return Relation::Unknown;
        }
        match (self.arena.get(a.source), self.arena.get(b.source)) {
            _ if self.holds_window(a.source) || self.holds_window(b.source) => {
                match (self.resolve(a, 0), self.resolve(b, 0)) {
                    (Some(x), Some(y)) if (x, y) != (a, b) => Relation::IfSame(vec![Pair::Elements(x, y)]),
                    _ => match self.index_group(a).or_else(|| self.index_group(b)) {
                        Some(group) => self.compare_by_index(a, b, group),
                        None => Relation::Unknown,
                    },
                }
            }
            _ if a.source == b.source
                && self.tells_elements_apart(a.source)
                && (!is_elsewhere || !self.is_elementwise(a.source)) =>
            {
                // The same element on two ranks may be one value, unless it differs along what parts them.
                let groups = self.arena.varies(a.source);
                let moves = |place| &self.arena.places.get(place).moves;
                let parted = a.offset != b.offset
                    || moves(a.place) == moves(b.place)
                    || self.arena.places.part_along(a.place, b.place, groups);
                if parted { different() } else { Relation::Unknown }
            }
            (Source::Cast { source: s, from: f, to: t }, Source::Cast { source: r, from: g, to: u })
                if (f, t) == (g, u) =>
            {
                Relation::IfSame(vec![Pair::Elements(Element { source: s, ..a }, Element { source: r, ..b })])
            }
            (Source::Bits { source: s, from: f, to: t }, Source::Bits { source: r, from: g, to: u })
                if (f, t) == (g, u) && f.itemsize() == t.itemsize() =>
            {
                Relation::IfSame(vec![Pair::Elements(Element { source: s, ..a }, Element { source: r, ..b })])
            }
            (
                Source::Reduced { op: o, group: g, source: s, place: p },
                Source::Reduced { op: n, group: h, source: r, place: q },
            ) if (o, g) == (n, h) && a.place == b.place => {
                let pair = Pair::Elements(
                    Element { source: s, place: p, ..a },
                    Element { source: r, place: q, ..b },
                );
                if both_unwritten { Relation::Perhaps(vec![pair]) } else { Relation::IfSame(vec![pair]) }
            }
            (Source::Opaque { key: k, output: n }, Source::Opaque { key: l, output: m })
                if alike && n == m =>
            {
                match self.compare_keys(k, l) {
                    Relation::Different if assumed => Relation::Unknown,
                    Relation::Different => self.compare_functions(a, b),
                    Relation::IfSame(pairs) if assumed => Relation::Perhaps(pairs),
                    Relation::IfSame(_) if let Some(relation) = self.compare_exchangeable((k, a), (l, b)) => {
                        relation
                    }
                    Relation::IfSame(whole) => match self.made_of((k, a), (l, b)) {
                        Some(mut made_of) => {
                            made_of.extend(whole.iter().filter(|pair| matches!(pair, Pair::Keys(..))));
                            Relation::Made { whole, made_of }
                        }
                        None => Relation::IfSame(whole),
                    },
                    relation => relation,
                }
            }
            (Source::Opaque { key: k, output: n }, Source::Opaque { key: l, output: m })
                if a.offset != b.offset
                    && n == m
                    && difference(self.arena.words(k), self.arena.words(l)) != KeyDifference::Call
                    && self.is_elementwise(a.source) =>
            {
                match self.made_of((k, a), (l, b)) {
                    Some(made_of) if !assumed => {
                        self.compare_exchangeable((k, a), (l, b)).unwrap_or(Relation::Apart(made_of))
                    }
                    _ => Relation::Unknown,
                }
            }
            // The same call on another rank may have the same inputs there.
            (Source::Opaque { key: k, output: n }, Source::Opaque { key: l, output: m })
                if a.offset == b.offset && n == m =>
            {
                match difference(self.arena.words(k), self.arena.words(l)) {
                    KeyDifference::Call if assumed => Relation::Unknown,
                    KeyDifference::Call => self.compare_functions(a, b),
                    KeyDifference::Shapes | KeyDifference::Inputs(..) => Relation::Unknown,
                }
            }
            (
                Source::Reduced { op: o, group: g, source: s, place: p },
                Source::Reduced { op: n, group: h, source: r, place: q },
            ) if o == n => {
                let one = self.arena.varies(s).and(self.arena.places.follows(p));
                let other = self.arena.varies(r).and(self.arena.places.follows(q));
                let elsewhere = a.offset != b.offset && a.place == b.place
                    || self.arena.places.scales_differ(a.place, b.place);
                let other_elements = elsewhere
                    && s == r
                    && self.tells_elements_apart(s)
                    && !self.is_elementwise(s)
                    && one != GroupSet::NONE;
                let other_ranks = g != h && self.reduced_apart((a.place, g, one), (b.place, h, other));
                if other_elements || other_ranks { different() } else { Relation::Unknown }
            }
            (Source::Select { group, .. }, _) | (_, Source::Select { group, .. }) => {
                self.compare_by_index(a, b, group)
            }
            (Source::Elsewhere { .. } | Source::Bits { .. }, _)
            | (_, Source::Elsewhere { .. } | Source::Bits { .. }) => Relation::Unknown,
            _ if assumed => Relation::Unknown,
            _ => self.compare_functions(a, b),
        }
    }
}

fn element(piece: Piece, t: i64) -> Element {
    Element { source: piece.source, place: piece.place, offset: piece.offset + t * piece.step, len: 1 }
}

/// Which elements of an input of these sizes some elements of a result are made of, and the first of them. Of an input that is
/// broadcast, where that is not a stretch, the first alone.
fn read_by(own: &[u64], sizes: &[u64], of: Element) -> [Element; 2] {
    let (mut left, mut index, mut weight) = (of.offset, 0i64, 1i64);
    for (&size, own) in sizes.iter().rev().zip(own.iter().rev().map(Some).chain(std::iter::repeat(None))) {
        let size = (size as i64).max(1);
        if let Some(&own) = own.filter(|own| **own > 1) {
            index = index.saturating_add((left % size).saturating_mul(weight));
            weight = weight.saturating_mul(own as i64);
        }
        left /= size;
    }
    let first = Element { offset: index, len: 1, ..of };
    let count = |sizes: &[u64]| sizes.iter().fold(1i64, |count, &size| count.saturating_mul(size as i64));
    let inner = sizes.len().saturating_sub(own.len());
    let all = if count(own) == count(sizes) {
        of
    } else if count(own) == count(&sizes[inner..])
        && of.len >= count(own)
        && of.offset % count(own).max(1) == 0
    {
        // Its elements are shown over and over.
        Element { offset: 0, len: count(own), ..of }
    } else {
        first
    };
    [all, first]
}

impl Arena {
    /// Element `t` of a value.
    pub(super) fn element(&self, value: ValueId, t: i64) -> Option<Element> {
        super::run::pieces(self.runs(value), t, 1).next().map(|piece| element(piece, 0))
    }

    /// Where two values of one length differ: pairs of pieces of equal length.
    pub(super) fn differing(&self, a: ValueId, b: ValueId) -> Vec<(Piece, Piece)> {
        self.differing_at(a, b).into_iter().map(|(_, p, q)| (p, q)).collect()
    }

    /// The same, each with the position of its first element.
    pub(super) fn differing_at(&self, a: ValueId, b: ValueId) -> Vec<(i64, Piece, Piece)> {
        let len = self.len(a).min(self.len(b));
        let mut left = super::run::pieces(self.runs(a), 0, len);
        let mut right = super::run::pieces(self.runs(b), 0, len);
        let (mut p, mut q) = (left.next(), right.next());
        let mut at = 0i64;
        let mut found = Vec::new();
        while let (Some(one), Some(other)) = (p, q) {
            let both = one.len.min(other.len);
            let (x, y) = (Piece { len: both, ..one }, Piece { len: both, ..other });
            let alike = element(x, 0) == element(y, 0) && (both == 1 || x.step == y.step);
            if !alike {
                found.push((at, x, y));
            }
            at += both;
            let rest = |piece: Piece| Piece {
                len: piece.len - both,
                offset: piece.offset + both * piece.step,
                ..piece
            };
            p = if one.len > both { Some(rest(one)) } else { left.next() };
            q = if other.len > both { Some(rest(other)) } else { right.next() };
        }
        found
    }
}
