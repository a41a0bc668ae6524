//! Elements that are others on each rank: by the own index in a group.

use super::element::Element;
use super::pieces::element;
use super::run::Piece;
use super::same::{Judge, Pair, RestsOn};
use super::source::{Source, SourceId};

impl Judge<'_> {
    /// The group on whose index an element depends at first sight.
    pub(super) fn index_group(&self, at: Element) -> Option<super::GroupId> {
        match self.arena.get(at.source) {
            Source::Select { group, .. } => Some(group),
            _ => self.arena.places.get(at.place).scales.first().map(|&(group, _)| group),
        }
    }

    /// How many ranks a group has, on whose index a source depends.
    pub(super) fn ranks(&self, group: super::GroupId, a: SourceId, b: SourceId) -> Option<u32> {
        let chosen = |source| match self.arena.get(source) {
            Source::Select { group: over, table } if over == group => {
                Some(self.arena.table(table).len() as u32)
            }
            _ => None,
        };
        chosen(a).or_else(|| chosen(b)).or_else(|| self.arena.places.group_size(group))
    }

    /// The element on a rank whose index in `group` is `k`.
    pub(super) fn at_index(&mut self, at: Element, group: super::GroupId, k: u32) -> Option<Element> {
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
    /// every index.
    pub(super) fn by_index(&mut self, a: Element, b: Element, group: super::GroupId) -> RestsOn {
        let each = (0..self.ranks(group, a.source, b.source)?)
            .map(|k| Some((self.at_index(a, group, k)?, self.at_index(b, group, k)?)));
        let each: Vec<(Element, Element)> = each.collect::<Option<_>>()?;
        Some(each.into_iter().filter(|(x, y)| x != y).map(|(x, y)| Pair::Elements(x, y)).collect())
    }
}
