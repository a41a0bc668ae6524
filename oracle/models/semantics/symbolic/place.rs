//! Where the elements of a run lie, seen from the rank that holds the run.
//!
//! A *place* is a sequence of moves, carried out from the own rank, and coefficients: the run's offset grows by
//! `coefficient * own index` for each group that has one. The empty place is the own rank.
//!
//! Two sequences of moves that lead to the same rank are one place, as far as the topology tells: see
//! [`Topology`]. Groups of one rank have no moves and no coefficients.

use super::topology::Topology;
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

/// A process group of an arena.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct GroupId(pub(super) u32);

/// A place of an arena. Ids stay below 2^31.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct PlaceId(pub(super) u32);

/// The own rank.
pub(super) const HERE: PlaceId = PlaceId(0);

/// Moves and coefficients.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Place {
    /// Moves in the order in which they are carried out.
    pub(super) moves: Box<[(GroupId, u32)]>,
    /// Coefficients, by group, none of them 0.
    pub(super) scales: Box<[(GroupId, i64)]>,
}

/// Why a place cannot be written down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PlaceError {
    /// The offset depends on the index in a group, and what a move does to that index is not known.
    Entangled,
    /// An offset that does not fit 64 bits.
    Overflow,
}

/// All places of an arena.
#[derive(Clone, Debug)]
pub(super) struct Places {
    all: IndexSet<Place, FxBuildHasher>,
    groups: IndexSet<Box<str>, FxBuildHasher>,
    topology: Topology,
    axes: FxHashMap<(GroupId, GroupId), bool>,
    inside: FxHashMap<(GroupId, GroupId), bool>,
    moved: FxHashMap<(PlaceId, GroupId, u32), Result<(PlaceId, i64), PlaceError>>,
}

impl Places {
    pub(super) fn new(topology: Topology) -> Places {
        let mut all = IndexSet::default();
        all.insert(Place::default());
        Places {
            all,
            groups: IndexSet::default(),
            topology,
            axes: FxHashMap::default(),
            inside: FxHashMap::default(),
            moved: FxHashMap::default(),
        }
    }

    /// The id of a group. Groups of the same ranks in the same order have one.
    pub(super) fn group(&mut self, name: &str) -> GroupId {
        let name = self.topology.first_name(name);
        GroupId(
            self.groups.get_index_of(name).unwrap_or_else(|| self.groups.insert_full(name.into()).0) as u32
        )
    }

    /// The name of a group.
    pub(super) fn group_name(&self, group: GroupId) -> &str {
        self.groups.get_index(group.0 as usize).map_or("", |name| name)
    }

    /// The size of a group of the world.
    pub(super) fn group_size(&self, group: GroupId) -> Option<u32> {
        self.topology.size(self.group_name(group))
    }

    pub(super) fn get(&self, id: PlaceId) -> &Place {
        &self.all[id.0 as usize]
    }

    fn intern(&mut self, place: Place) -> PlaceId {
        if let Some(index) = self.all.get_index_of(&place) {
            return PlaceId(index as u32);
        }
        PlaceId(self.all.insert_full(place).0 as u32)
    }

    /// The own rank, with an offset that grows by `scale` for each step in `group`.
    #[cfg(test)]
    pub(super) fn scaled(&mut self, group: GroupId, scale: i64) -> PlaceId {
        let scales: Box<[_]> = if scale == 0 { [].into() } else { [(group, scale)].into() };
        self.intern(Place { moves: [].into(), scales })
    }

    /// The place, with an offset that grows by `scale` more for each step in `group`, to which it has no
    /// coefficient yet.
    pub(super) fn with_scale(&mut self, id: PlaceId, group: GroupId, scale: i64) -> PlaceId {
        if scale == 0 {
            return id;
        }
        let place = self.get(id);
        let moves = place.moves.clone();
        let mut scales = place.scales.to_vec();
        let at = scales.partition_point(|&(other, _)| other < group);
        scales.insert(at, (group, scale));
        self.intern(Place { moves, scales: scales.into() })
    }

    /// The place without its coefficient of a group.
    pub(super) fn without_scale(&mut self, id: PlaceId, group: GroupId) -> PlaceId {
        let place = self.get(id).clone();
        let scales = place.scales.iter().copied().filter(|(g, _)| *g != group).collect();
        self.intern(Place { moves: place.moves, scales })
    }

    /// The place as a rank of index `index` in `group` sees it: a move there that nothing keeps from being the
    /// first is none.
    pub(super) fn without_move(&mut self, id: PlaceId, group: GroupId, index: u32) -> PlaceId {
        let place = self.get(id).clone();
        let Some(at) = place.moves.iter().position(|&(g, _)| g == group) else { return id };
        let first = place.moves[..at].iter().all(|&(g, _)| self.axes(g, group));
        if place.moves[at].1 != index || !first {
            return id;
        }
        let mut moves = place.moves.to_vec();
        moves.remove(at);
        self.intern(Place { moves: moves.into(), scales: place.scales })
    }

    /// The place with its coefficients only.
    pub(super) fn without_moves(&mut self, id: PlaceId) -> PlaceId {
        if self.get(id).moves.is_empty() {
            return id;
        }
        let scales = self.get(id).scales.clone();
        self.intern(Place { moves: [].into(), scales })
    }

    /// The place whose coefficients are multiplied by `numerator / denominator`; `None` where that is not whole.
    pub(super) fn rescaled(&mut self, id: PlaceId, numerator: i64, denominator: i64) -> Option<PlaceId> {
        let place = self.get(id);
        if place.scales.is_empty() || numerator == denominator {
            return Some(id);
        }
        let moves = place.moves.clone();
        let scale = |&(group, scale): &(GroupId, i64)| {
            let scale = scale.checked_mul(numerator)?;
            (scale % denominator == 0).then_some((group, scale / denominator))
        };
        let scales = place.scales.iter().map(scale).collect::<Option<_>>()?;
        Some(self.intern(Place { moves, scales }))
    }

    /// What `id` on the rank that `group := index` leads to is, seen from here: the place, and what is added to
    /// the offset.
    pub(super) fn moved(
        &mut self,
        id: PlaceId,
        group: GroupId,
        index: u32,
    ) -> Result<(PlaceId, i64), PlaceError> {
        if let Some(&known) = self.moved.get(&(id, group, index)) {
            return known;
        }
        let result = self.find_moved(id, group, index);
        self.moved.insert((id, group, index), result);
        result
    }

    fn find_moved(&mut self, id: PlaceId, group: GroupId, index: u32) -> Result<(PlaceId, i64), PlaceError> {
        let place = self.get(id).clone();
        let mut added = 0i64;
        let mut scales = Vec::new();
        for &(other, scale) in &place.scales {
            if other == group {
                let shift = scale.checked_mul(i64::from(index)).ok_or(PlaceError::Overflow)?;
                added = added.checked_add(shift).ok_or(PlaceError::Overflow)?;
            } else if self.axes(other, group) {
                scales.push((other, scale));
            } else {
                return Err(PlaceError::Entangled);
            }
        }
        let moves = self.before(group, index, &place.moves);
        Ok((self.intern(Place { moves: moves.into(), scales: scales.into() }), added))
    }

    /// The move `group := index`, then `moves`, in the form that stands for all sequences known to be equal: a move
    /// that a later one undoes is dropped, and moves along axes stand in the order of their groups.
    fn before(&mut self, group: GroupId, index: u32, moves: &[(GroupId, u32)]) -> Vec<(GroupId, u32)> {
        let mut rest = Vec::with_capacity(moves.len() + 1);
        let mut lost = false;
        for &(other, _) in moves {
            if self.inside(group, other) {
                lost = true;
                break;
            }
            if !self.axes(group, other) {
                break;
            }
        }
        if !lost {
            rest.push((group, index));
        }
        rest.extend_from_slice(moves);
        // Insertion sort by group, past axes only.
        for i in 1..rest.len() {
            let mut k = i;
            while k > 0 && rest[k].0 < rest[k - 1].0 && self.axes(rest[k].0, rest[k - 1].0) {
                rest.swap(k, k - 1);
                k -= 1;
            }
        }
        rest
    }

    fn axes(&mut self, g: GroupId, h: GroupId) -> bool {
        let key = (g.min(h), g.max(h));
        if let Some(&known) = self.axes.get(&key) {
            return known;
        }
        let found = self.topology.axes(self.group_name(g), self.group_name(h));
        self.axes.insert(key, found);
        found
    }

    pub(super) fn inside(&mut self, inner: GroupId, outer: GroupId) -> bool {
        if inner == outer {
            return true;
        }
        if let Some(&known) = self.inside.get(&(inner, outer)) {
            return known;
        }
        let found = self.topology.inside(self.group_name(inner), self.group_name(outer));
        self.inside.insert((inner, outer), found);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Group, World};

    fn places(sizes: &[u32]) -> Places {
        let group = |(i, &size): (usize, &u32)| Group {
            name: i.to_string(),
            size,
            recorded_rank: None,
            instances: Vec::new(),
        };
        let world = World { ranks: None, groups: sizes.iter().enumerate().map(group).collect() };
        Places::new(Topology::new(&world))
    }

    #[test]
    fn a_later_move_in_the_same_group_wins() {
        let mut p = places(&[4, 8]);
        let (g, h) = (p.group("0"), p.group("1"));
        let (one, _) = p.moved(HERE, g, 2).unwrap();
        assert_eq!(p.moved(one, g, 3).unwrap().0, one);
        let (both, _) = p.moved(one, h, 5).unwrap();
        assert_eq!(*p.get(both).moves, [(g, 2), (h, 5)]);
        assert_eq!(p.moved(both, g, 1).unwrap().0, both);
        let (h5, _) = p.moved(HERE, h, 5).unwrap();
        assert_eq!(p.moved(h5, g, 2).unwrap().0, both);
    }

    #[test]
    fn a_move_inside_is_lost_before_a_move_of_the_whole() {
        let mut p = places(&[64, 8, 8]);
        let (whole, axis) = (p.group("0"), p.group("1"));
        let (far, _) = p.moved(HERE, whole, 9).unwrap();
        assert_eq!(p.moved(far, axis, 3).unwrap().0, far);
        let (near, _) = p.moved(HERE, axis, 3).unwrap();
        let (both, _) = p.moved(near, whole, 9).unwrap();
        assert_eq!(*p.get(both).moves, [(whole, 9), (axis, 3)]);
    }

    #[test]
    fn a_move_settles_the_index() {
        let mut p = places(&[4, 8]);
        let (g, h) = (p.group("0"), p.group("1"));
        let own = p.scaled(g, 10);
        let (there, added) = p.moved(own, g, 3).unwrap();
        assert_eq!((added, p.get(there).scales.len()), (30, 0));
        let (there, added) = p.moved(own, h, 3).unwrap();
        assert_eq!((added, &*p.get(there).scales), (0, &[(g, 10)][..]));
        assert_eq!(p.rescaled(own, 1, 4), None);
        let double = p.rescaled(own, 2, 1).unwrap();
        assert_eq!(*p.get(double).scales, [(g, 20)]);
        let unknown = p.group("elsewhere");
        assert_eq!(p.moved(own, unknown, 1), Err(PlaceError::Entangled));
        let large = p.scaled(g, i64::MAX);
        assert_eq!(p.moved(large, g, 2), Err(PlaceError::Overflow));
    }
}
