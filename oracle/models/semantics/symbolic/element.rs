//! Two elements: what they rest on.
//!
//! Those of one operator are the same if its inputs are; casts and reductions of the same if what they are of is.

use super::key::inputs_that_differ;
use super::place::PlaceId;
use super::same::{Judge, Pair, RestsOn};
use super::source::{KeyId, Source, SourceId, Traits, ValueId};

/// One element, which may stand for those that follow it in its source.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Element {
    pub(super) source: SourceId,
    pub(super) place: PlaceId,
    pub(super) offset: i64,
    /// How many it stands for, itself included.
    pub(super) len: i64,
}

impl Judge<'_> {
    /// What two elements rest on, on the generic rank or else on the ranks of every index.
    pub(super) fn elements(&mut self, a: Element, b: Element) -> RestsOn {
        if a == b {
            return Some(Vec::new());
        }
        let on_each_rank = match self.holds_window(a.source) || self.holds_window(b.source) {
            true => match (self.resolve(a, 0), self.resolve(b, 0)) {
                (Some(x), Some(y)) if (x, y) != (a, b) => Some(vec![Pair::Elements(x, y)]),
                _ => None,
            },
            false => self.by_source(a, b),
        };
        on_each_rank.or_else(|| {
            let group = self.index_group(a).or_else(|| self.index_group(b))?;
            self.by_index(a, b, group)
        })
    }

    /// What two elements of sources that are made alike rest on.
    fn by_source(&mut self, a: Element, b: Element) -> RestsOn {
        let inner = |s, r| Some(vec![Pair::Elements(Element { source: s, ..a }, Element { source: r, ..b })]);
        match (self.arena.get(a.source), self.arena.get(b.source)) {
            (Source::Cast { source: s, from: f, to: t }, Source::Cast { source: r, from: g, to: u })
                if (f, t) == (g, u) =>
            {
                inner(s, r)
            }
            (Source::Bits { source: s, from: f, to: t }, Source::Bits { source: r, from: g, to: u })
                if (f, t) == (g, u) && f.itemsize() == t.itemsize() =>
            {
                inner(s, r)
            }
            (
                Source::Reduced { op: o, group: g, source: s, place: p },
                Source::Reduced { op: n, group: h, source: r, place: q },
            ) if (o, g) == (n, h) && a.place == b.place => Some(vec![Pair::Elements(
                Element { source: s, place: p, ..a },
                Element { source: r, place: q, ..b },
            )]),
            (Source::Opaque { key: k, output: n }, Source::Opaque { key: l, output: m }) if n == m => {
                if let Some([p, q, r, s]) = self.operands((k, a), (l, b)) {
                    // Crosswise they are not looked into.
                    let is_crosswise = [r, s].iter().all(|&pair| self.known(pair) == Some(true));
                    return Some(if is_crosswise { Vec::new() } else { vec![p, q] });
                }
                let is_alike = a.place == b.place && a.offset == b.offset;
                inputs_that_differ(self.arena.words(k), self.arena.words(l)).filter(|_| is_alike)
            }
            _ => None,
        }
    }

    /// Two elements of calls of one function of elements whose operands may be exchanged: the elements of these, in
    /// order and crosswise.
    fn operands(&mut self, (k, a): (KeyId, Element), (l, b): (KeyId, Element)) -> Option<[Pair; 4]> {
        let [[p, q], [r, s]] = self.arena.exchangeable(k, l)?;
        let mut pair = |x, y| Some(Pair::Values(self.shown(x, a)?, self.shown(y, b)?));
        Some([pair(p, r)?, pair(q, s)?, pair(p, s)?, pair(q, r)?])
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

    /// Whether a source shows a window, at whatever depth, be it on some ranks only.
    pub(super) fn holds_window(&self, source: SourceId) -> bool {
        self.arena.source_traits(source).has(Traits::WINDOW)
    }
}
