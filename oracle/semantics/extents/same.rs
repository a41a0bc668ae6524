//! Whether two values are the same, where their ids differ.
//!
//! # The idea
//!
//! Equal ids are equal values. Different ids may still be equal values, written differently: a window that could not be
//! flattened against runs. So the question is decided by a list of pairs that must all be the same. A pair of
//! values is taken apart into runs, a pair of runs into elements or into the inputs of the calls that made them;
//! every pair that comes up joins the list. All pairs settled: same. One pair of elements that come from different
//! places: different. Anything that cannot be looked into: unknown.
//!
//! A difference found on the way through something assumed (an operator of which nothing is known, a symbolic size, an
//! index operator that may not look at the element) proves nothing.

use super::arena::Arena;
use super::key::{KeyDifference, difference};
use super::layout;
use super::place::PlaceId;
use super::run::Piece;
use super::source::{KeyId, Source, SourceId, Traits, ValueId};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Elements of a window up to which they are looked at one by one.
const ALL_ELEMENTS: i64 = 1 << 16;
/// How many are looked at otherwise.
const SAMPLES: i64 = 1 << 10;
/// Windows on windows that are looked through.
const DEPTH: u32 = 64;

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

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Pair {
    Values(ValueId, ValueId),
    Keys(KeyId, KeyId),
    Elements(Element, Element),
}

/// One element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Element {
    pub(super) source: SourceId,
    pub(super) place: PlaceId,
    pub(super) offset: i64,
}

/// What two elements are to each other.
enum Relation {
    Same,
    Different,
    /// The same if these pairs are.
    IfSame(Vec<Pair>),
    /// The same if these pairs are; but a difference there proves nothing.
    Perhaps(Vec<Pair>),
    Unknown,
}

/// Answers questions about one arena, and remembers the answers.
pub(super) struct Judge<'a> {
    pub(super) arena: &'a mut Arena,
    known: FxHashMap<(ValueId, ValueId), Verdict>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(arena: &'a mut Arena) -> Judge<'a> {
        Judge { arena, known: FxHashMap::default() }
    }

    /// Whether two values are the same.
    pub(super) fn values(&mut self, a: ValueId, b: ValueId) -> Verdict {
        if a == b {
            return Verdict::Same;
        }
        if let Some(&known) = self.known.get(&(a, b)) {
            return known;
        }
        let verdict = self.settle(Pair::Values(a, b));
        self.known.insert((a, b), verdict);
        verdict
    }

    /// Whether two calls are the same.
    pub(super) fn keys(&mut self, a: KeyId, b: KeyId) -> Verdict {
        if a == b { Verdict::Same } else { self.settle(Pair::Keys(a, b)) }
    }

    fn settle(&mut self, pair: Pair) -> Verdict {
        // Pairs still to be looked at, and whether a difference there is certain.
        let mut open = vec![(pair, true)];
        // Pairs met, and whether they have been looked at as certain ones.
        let mut met: FxHashMap<Pair, bool> = FxHashMap::default();
        let mut unknown = false;
        while let Some((pair, certain)) = open.pop() {
            match met.get(&pair) {
                Some(&before) if before || !certain => continue,
                _ => met.insert(pair, certain),
            };
            if let Pair::Values(a, b) = pair {
                match self.known.get(&(a, b)) {
                    Some(Verdict::Same) => continue,
                    Some(Verdict::Different) if certain => return Verdict::Different,
                    _ => {}
                }
            }
            let relations = match pair {
                Pair::Values(a, b) => self.compare_values(a, b),
                Pair::Keys(a, b) => vec![self.compare_keys(a, b)],
                Pair::Elements(a, b) => vec![self.compare_elements(a, b)],
            };
            for relation in relations {
                match relation {
                    Relation::Same => {}
                    Relation::Different if certain => return Verdict::Different,
                    Relation::Different | Relation::Unknown => unknown = true,
                    Relation::IfSame(pairs) => open.extend(pairs.into_iter().map(|p| (p, certain))),
                    Relation::Perhaps(pairs) => open.extend(pairs.into_iter().map(|p| (p, false))),
                }
            }
        }
        if unknown { Verdict::Unknown } else { Verdict::Same }
    }

    /// The first elements at which two values certainly differ, else at which they are written differently; what
    /// `b` has there, and what `a` has.
    pub(super) fn parting(&mut self, a: ValueId, b: ValueId) -> Option<(Range<i64>, String, String)> {
        let spots = self.arena.differing_at(a, b);
        let &(at, expected, found) = spots.first()?;
        let mut best = (at, expected, found);
        for (at, expected, found) in spots {
            let x = self.arena.piece(expected);
            let y = self.arena.piece(found);
            if self.values(x, y) == Verdict::Different {
                best = (at, expected, found);
                break;
            }
        }
        let (at, expected, found) = best;
        let words = self.arena.difference_words(found, expected);
        Some((at..at + found.len, words.0, words.1))
    }

    fn compare_values(&mut self, a: ValueId, b: ValueId) -> Vec<Relation> {
        if a == b {
            return vec![Relation::Same];
        }
        if self.arena.len(a) != self.arena.len(b) {
            return vec![Relation::Different];
        }
        let mut relations = Vec::new();
        for (p, q) in self.arena.differing(a, b) {
            self.compare_pieces(p, q, &mut relations);
            if matches!(relations.last(), Some(Relation::Different)) {
                break;
            }
        }
        relations
    }

    /// Two pieces of equal length that are not the same piece.
    fn compare_pieces(&mut self, p: Piece, q: Piece, relations: &mut Vec<Relation>) {
        let window = |arena: &Arena, s| matches!(arena.get(s), Source::Window { .. });
        if !self.holds_window(p.source) && !self.holds_window(q.source) {
            let first = (element(p, 0), element(q, 0));
            let relation = self.compare_elements(first.0, first.1);
            // What holds for the first element holds for all, if both go on alike.
            if p.len > 1 && p.step != q.step && !matches!(relation, Relation::Different) {
                relations.push(relation);
                relations.push(self.compare_elements(element(p, 1), element(q, 1)));
                return;
            }
            relations.push(relation);
            return;
        }
        let len = p.len;
        let all = len <= ALL_ELEMENTS;
        // Windows of one layout are the same if what they cover is, even where they are too large to be looked at.
        if !all
            && p.offset == q.offset
            && p.step == q.step
            && p.place == q.place
            && window(self.arena, p.source)
            && window(self.arena, q.source)
            && let (Source::Window { content: c, layout: l }, Source::Window { content: d, layout: m }) =
                (self.arena.get(p.source), self.arena.get(q.source))
            && l == m
        {
            relations.push(Relation::Perhaps(vec![Pair::Values(c, d)]));
        } else if !all {
            relations.push(Relation::Unknown);
        }
        let step = if all { 1 } else { (len / SAMPLES).max(1) };
        let mut t = 0;
        while t < len {
            let (a, b) = (self.resolve(element(p, t), 0), self.resolve(element(q, t), 0));
            match (a, b) {
                (Some(a), Some(b)) if a == b => {}
                (Some(a), Some(b)) => match self.compare_elements(a, b) {
                    Relation::Same => {}
                    // Samples can only prove a difference.
                    Relation::Different => {
                        relations.push(Relation::Different);
                        return;
                    }
                    relation if all => relations.push(relation),
                    Relation::IfSame(_) => relations.push(Relation::IfSame(vec![Pair::Elements(a, b)])),
                    _ => {}
                },
                _ if all => {
                    relations.push(Relation::Unknown);
                    return;
                }
                _ => {}
            }
            t += step;
        }
    }

    /// Whether a source shows a window, at whatever depth.
    fn holds_window(&self, source: SourceId) -> bool {
        match self.arena.get(source) {
            Source::Window { .. } => true,
            Source::Cast { source, .. }
            | Source::Bits { source, .. }
            | Source::Reduced { source, .. }
            | Source::Elsewhere { source, .. } => self.holds_window(source),
            _ => false,
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
                let inner = Element { source, place: super::place::HERE, offset: at.offset };
                let inner = self.resolve(inner, depth + 1)?;
                let inner = self.seen_from(inner, place)?;
                let reduced = self.arena.source(Source::Reduced {
                    op,
                    group,
                    source: inner.source,
                    place: inner.place,
                });
                Some(Element { source: reduced, place: at.place, offset: inner.offset })
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

    fn compare_keys(&mut self, a: KeyId, b: KeyId) -> Relation {
        if a == b {
            return Relation::Same;
        }
        match difference(self.arena.words(a), self.arena.words(b)) {
            KeyDifference::Call => Relation::Different,
            KeyDifference::Inputs(values, numbers) => Relation::IfSame(
                values
                    .into_iter()
                    .map(|(a, b)| Pair::Values(a, b))
                    .chain(numbers.into_iter().map(|(a, b)| Pair::Keys(a, b)))
                    .collect(),
            ),
        }
    }

    fn compare_elements(&mut self, a: Element, b: Element) -> Relation {
        if a == b {
            return Relation::Same;
        }
        let traits = self.arena.source_traits(a.source).and(self.arena.source_traits(b.source));
        let assumed = traits.has(Traits::ASSUMED);
        let different = || if assumed { Relation::Unknown } else { Relation::Different };
        let alike = a.place == b.place && a.offset == b.offset;
        if !alike && a.place != b.place && self.arena.places.may_be_equal(a.place, b.place) {
            return Relation::Unknown;
        }
        match (self.arena.get(a.source), self.arena.get(b.source)) {
            (Source::Window { .. }, _) | (_, Source::Window { .. }) => {
                match (self.resolve(a, 0), self.resolve(b, 0)) {
                    (Some(x), Some(y)) if (x, y) != (a, b) => Relation::IfSame(vec![Pair::Elements(x, y)]),
                    _ => Relation::Unknown,
                }
            }
            _ if a.source == b.source => different(),
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
            ) if (o, g) == (n, h) && a.place == b.place => Relation::IfSame(vec![Pair::Elements(
                Element { source: s, place: p, offset: a.offset },
                Element { source: r, place: q, offset: b.offset },
            )]),
            (Source::Opaque { key: k, output: n }, Source::Opaque { key: l, output: m })
                if alike && n == m =>
            {
                match self.compare_keys(k, l) {
                    Relation::Different => different(),
                    Relation::IfSame(pairs) if assumed => Relation::Perhaps(pairs),
                    relation => relation,
                }
            }
            (Source::Elsewhere { .. } | Source::Bits { .. }, _)
            | (_, Source::Elsewhere { .. } | Source::Bits { .. }) => Relation::Unknown,
            _ => different(),
        }
    }
}

fn element(piece: Piece, t: i64) -> Element {
    Element { source: piece.source, place: piece.place, offset: piece.offset + t * piece.step }
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
