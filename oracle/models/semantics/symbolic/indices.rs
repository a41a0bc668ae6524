//! Elements that are others on each rank: by the own index in a group.

use super::element::Element;
use super::pieces::element;
use super::run::Piece;
use super::same::{Judge, Pair, Relation};
use super::source::{Source, SourceId, Traits};

/// Casts and reductions of one another that are looked through.
const DEPTH: u32 = 64;

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
    /// every index. A difference is certain only where nothing below the two depends on the index again.
    pub(super) fn compare_by_index(&mut self, a: Element, b: Element, group: super::GroupId) -> Relation {
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
                _ if self.differ_on_every_rank(x, y) => return Relation::Different,
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

    /// Whether two elements differ whatever the own rank is: they depend on other inputs, or are two elements of one
    /// result, be they cast or reduced alike.
    fn differ_on_every_rank(&mut self, mut x: Element, mut y: Element) -> bool {
        for _ in 0..DEPTH {
            if self.arena.depend_on_others(x.source, y.source) {
                return true;
            }
            if self.holds_window(x.source) || self.holds_window(y.source) {
                match (self.resolve(x, 0), self.resolve(y, 0)) {
                    (Some(a), Some(b)) if (a, b) != (x, y) => (x, y) = (a, b),
                    _ => return false,
                }
                continue;
            }
            (x, y) = match (self.arena.get(x.source), self.arena.get(y.source)) {
                (Source::Cast { source: s, from: f, to: t }, Source::Cast { source: r, from: g, to: u })
                    if (f, t) == (g, u) =>
                {
                    (Element { source: s, ..x }, Element { source: r, ..y })
                }
                (
                    Source::Reduced { op: o, group: g, source: s, place: p },
                    Source::Reduced { op: n, group: h, source: r, place: q },
                ) if (o, g) == (n, h) && x.place == y.place => {
                    (Element { source: s, place: p, ..x }, Element { source: r, place: q, ..y })
                }
                (Source::Placeholder { .. } | Source::Opaque { .. }, _) if x.source == y.source => {
                    let holds = |traits| self.arena.source_traits(x.source).has(traits);
                    let is_sure =
                        ![Traits::ASSUMED, Traits::POISON, Traits::IN_FLIGHT].into_iter().any(holds);
                    return is_sure
                        && !self.is_elementwise(x.source)
                        && x.place == y.place
                        && x.offset != y.offset;
                }
                _ => return false,
            };
        }
        false
    }
}
