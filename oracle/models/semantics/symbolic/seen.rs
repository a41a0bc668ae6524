//! Elements seen through windows, and from other ranks.

use super::element::Element;
use super::layout;
use super::place::PlaceId;
use super::same::Judge;
use super::source::Source;

/// Windows on windows that are looked through.
const DEPTH: u32 = 64;

impl Judge<'_> {
    /// The element, looked at through all windows; `None` where that is not possible.
    pub(super) fn resolve(&mut self, at: Element, depth: u32) -> Option<Element> {
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
    pub(super) fn seen_from(&mut self, mut element: Element, place: PlaceId) -> Option<Element> {
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
}
