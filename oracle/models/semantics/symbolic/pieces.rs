//! Two pieces of equal length: which of their elements are looked at.
//!
//! What holds for the first element of a run holds for all. A window is looked at element by element, or at samples of
//! its elements where it is large: these can only prove a difference.

use super::arena::Arena;
use super::element::Element;
use super::run::Piece;
use super::same::{Judge, Pair, Relation};
use super::source::{Source, ValueId};

/// Elements of a window up to which they are looked at one by one.
const ALL_ELEMENTS: i64 = 1 << 16;
/// How many are looked at otherwise.
const SAMPLES: i64 = 1 << 10;
/// How many are looked at before what is known of them is asked for.
const AT_ONCE: i64 = 16;

impl Judge<'_> {
    /// Two pieces of equal length that are not the same piece, from element `t` on. What is not looked at yet goes on
    /// at the result. Where something is `unknown`, a few samples are enough: only a difference still counts.
    pub(super) fn compare_pieces(
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

    /// Two pieces that are too large to be looked at element by element: windows of one layout are the same if what
    /// they cover is.
    pub(super) fn compare_large(&self, p: Piece, q: Piece) -> Relation {
        match (self.arena.get(p.source), self.arena.get(q.source)) {
            (Source::Window { content: c, layout: l }, Source::Window { content: d, layout: m })
                if l == m && (p.offset, p.step, p.place) == (q.offset, q.step, q.place) =>
            {
                Relation::Perhaps(vec![Pair::Values(c, d)])
            }
            _ => Relation::Unknown,
        }
    }
}

pub(super) fn element(piece: Piece, t: i64) -> Element {
    Element { source: piece.source, place: piece.place, offset: piece.offset + t * piece.step, len: 1 }
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
