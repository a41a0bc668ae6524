//! Two pieces of equal length: what they rest on.
//!
//! What holds for the first element of a run holds for all. A window is looked at element by element, or as a whole
//! where it is large.

use super::arena::Arena;
use super::element::Element;
use super::run::Piece;
use super::same::{Judge, Pair};
use super::source::{Source, ValueId};

/// Elements of a window up to which they are looked at one by one.
const ALL_ELEMENTS: i64 = 1 << 16;
/// How many are looked at before what is known of them is asked for.
const AT_ONCE: i64 = 16;

impl Judge<'_> {
    /// Adds what two pieces of equal length rest on from element `t` on, and says up to where that goes. `None` where
    /// nothing tells.
    pub(super) fn pieces(&mut self, (p, q): (Piece, Piece), t: i64, rests_on: &mut Vec<Pair>) -> Option<i64> {
        if !self.holds_window(p.source) && !self.holds_window(q.source) {
            let len = if p.step == 1 && q.step == 1 { p.len } else { 1 };
            let first = |piece| Element { len, ..element(piece, 0) };
            rests_on.extend(self.elements(first(p), first(q))?);
            // What holds for the first element holds for all, if both go on alike.
            if p.len > 1 && p.step != q.step {
                rests_on.extend(self.elements(element(p, 1), element(q, 1))?);
            }
            return Some(p.len);
        }
        // Where it depends on the own index, each element is looked at on the ranks of every index.
        let group = self.index_group(element(p, 0)).or_else(|| self.index_group(element(q, 0)));
        let ranks = group.map_or(1, |group| self.ranks(group, p.source, q.source).unwrap_or(1)).max(1);
        if p.len.saturating_mul(i64::from(ranks)) > ALL_ELEMENTS {
            rests_on.push(self.whole_windows(p, q)?);
            return Some(p.len);
        }
        let end = t.saturating_add(AT_ONCE).min(p.len);
        for t in t..end {
            let (a, b) = (element(p, t), element(q, t));
            let (x, y) = self.resolve(a, 0).zip(self.resolve(b, 0)).unwrap_or((a, b));
            rests_on.extend(self.elements(x, y)?);
        }
        Some(end)
    }

    /// Windows of one layout are the same if what they cover is.
    fn whole_windows(&self, p: Piece, q: Piece) -> Option<Pair> {
        match (self.arena.get(p.source), self.arena.get(q.source)) {
            (Source::Window { content: c, layout: l }, Source::Window { content: d, layout: m })
                if l == m && (p.offset, p.step, p.place) == (q.offset, q.step, q.place) =>
            {
                Some(Pair::Values(c, d))
            }
            _ => None,
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
