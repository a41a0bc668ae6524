//! Where the elements of a run lie, seen from the rank that holds the run.
//!
//! A *place* is a sequence of moves, carried out from the own rank, and coefficients: the run's offset grows by
//! `coefficient * own index` for each group that has one. The empty place is the own rank.
//!
//! Two sequences of moves that lead to the same rank are one place, as far as the topology tells: see
//! [`Topology`]. Groups of one rank have no moves and no coefficients.

use super::topology::Topology;
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

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

/// A set of groups, as far as their ids are below 64; the others are never in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct GroupSet(u64);

impl GroupSet {
    pub(super) const NONE: GroupSet = GroupSet(0);
    pub(super) const ALL: GroupSet = GroupSet(u64::MAX);

    fn of(group: GroupId) -> GroupSet {
        GroupSet(1u64.checked_shl(group.0).unwrap_or(0))
    }

    /// The group, or all groups where its id is too large for a set.
    pub(super) fn at_most(group: GroupId) -> GroupSet {
        if group.0 < u64::BITS { GroupSet::of(group) } else { GroupSet::ALL }
    }

    pub(super) fn or(self, other: GroupSet) -> GroupSet {
        GroupSet(self.0 | other.0)
    }

    pub(super) fn and(self, other: GroupSet) -> GroupSet {
        GroupSet(self.0 & other.0)
    }

    pub(super) fn has(self, group: GroupId) -> bool {
        self.and(GroupSet::of(group)) != GroupSet::NONE
    }
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
    beside: FxHashMap<GroupId, GroupSet>,
    moved: FxHashMap<(PlaceId, GroupId, u32), Result<(PlaceId, i64), PlaceError>>,
    /// The own index in groups, in the graph of one rank: it is given for that rank, or fills a slot of its own.
    pub(super) own: FxHashSet<(GroupId, u32)>,
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
            beside: FxHashMap::default(),
            moved: FxHashMap::default(),
            own: FxHashSet::default(),
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

    /// Whether all groups that the places depend on, and `more`, are axes beside each other.
    pub(super) fn are_axes(&mut self, places: &[PlaceId], more: &[GroupId]) -> bool {
        let mut groups = more.to_vec();
        for &place in places {
            let place = self.get(place);
            groups.extend(place.moves.iter().map(|&(g, _)| g).chain(place.scales.iter().map(|&(g, _)| g)));
        }
        groups.iter().all(|&g| groups.iter().all(|&h| g == h || self.axes(g, h)))
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

    /// The groups that are axes beside a group.
    pub(super) fn beside(&mut self, group: GroupId) -> GroupSet {
        if let Some(&known) = self.beside.get(&group) {
            return known;
        }
        // Later groups are in no set.
        let all = (0..(self.groups.len() as u32).min(u64::BITS)).map(GroupId);
        let found = all
            .filter(|&other| self.axes(group, other))
            .fold(GroupSet::NONE, |set, other| set.or(GroupSet::of(other)));
        self.beside.insert(group, found);
        found
    }

    /// The groups that a place depends on, or more.
    pub(super) fn groups_of(&self, id: PlaceId) -> GroupSet {
        let Place { moves, scales } = self.get(id);
        let groups = moves.iter().map(|&(g, _)| g).chain(scales.iter().map(|&(g, _)| g));
        groups.fold(GroupSet::NONE, |set, group| set.or(GroupSet::at_most(group)))
    }

    /// The set without the groups that lie inside `outer`.
    pub(super) fn outside(&mut self, set: GroupSet, outer: GroupId) -> GroupSet {
        let all = (0..u64::BITS).map(GroupId).filter(|&group| set.has(group));
        all.filter(|&group| group.0 as usize >= self.groups.len() || !self.inside(group, outer))
            .fold(GroupSet::NONE, |set, group| set.or(GroupSet::of(group)))
    }

    /// The groups along which the rank that a place leads to moves with the own rank.
    pub(super) fn follows(&mut self, id: PlaceId) -> GroupSet {
        let groups = self.get(id).moves.len();
        (0..groups).fold(GroupSet::ALL, |set, i| {
            let (group, _) = self.get(id).moves[i];
            set.and(self.beside(group))
        })
    }

    /// Whether two places, of axes only, always lead to ranks that differ along one of these groups, for some own
    /// rank.
    pub(super) fn part_along(&self, a: PlaceId, b: PlaceId, groups: GroupSet) -> bool {
        let index = |place: &Place, group| place.moves.iter().find(|&&(g, _)| g == group).map(|&(_, i)| i);
        let (a, b) = (self.get(a), self.get(b));
        let mut all = a.moves.iter().chain(b.moves.iter());
        all.any(|&(g, _)| groups.has(g) && index(a, g) != index(b, g))
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

    /// Whether every rank may have one index in both of two different groups. Groups of other ranks can have that too:
    /// [0 1 | 2 3] and [0 3 | 2 1].
    fn may_have_one_index(&mut self, g: GroupId, h: GroupId) -> bool {
        !self.axes(g, h) && self.topology.may_have_one_index(self.group_name(g), self.group_name(h))
    }

    /// Whether two different places may still be one: more than one group is involved and how the groups lie to
    /// each other is not known.
    pub(super) fn may_be_equal(&mut self, a: PlaceId, b: PlaceId) -> bool {
        let (one, other) = (self.get(a).clone(), self.get(b).clone());
        let moved: Vec<GroupId> = one.moves.iter().chain(other.moves.iter()).map(|&(g, _)| g).collect();
        if moved.iter().any(|&g| moved.iter().any(|&h| g != h && !self.axes(g, h))) {
            return true;
        }
        let only = |place: &Place, than: &Place| -> Vec<GroupId> {
            place.scales.iter().filter(|scale| !than.scales.contains(scale)).map(|&(g, _)| g).collect()
        };
        match (&only(&one, &other)[..], &only(&other, &one)[..]) {
            // Indices count from 0 without gaps, so that multiples of them are the same only if they are themselves.
            (&[g], &[h]) => g != h && self.may_have_one_index(g, h),
            (some, more) => {
                let scaled = [some, more].concat();
                scaled.iter().any(|&g| scaled.iter().any(|&h| g != h && !self.axes(g, h)))
            }
        }
    }

    /// The offset at which the own rank finds what lies at a place and an offset, where that is itself and the graph says which
    /// one it is.
    pub(super) fn at_home(&self, place: PlaceId, offset: i64) -> Option<i64> {
        let Place { moves, scales } = self.get(place);
        if self.own.is_empty() || !moves.iter().all(|to| self.own.contains(to)) {
            return None;
        }
        scales.iter().try_fold(offset, |offset, &(group, scale)| {
            let (_, index) = self.own.iter().find(|(own, _)| *own == group)?;
            offset.checked_add(scale.checked_mul(i64::from(*index))?)
        })
    }

    /// Whether two places differ in how the offset depends on the own index.
    pub(super) fn scales_differ(&self, a: PlaceId, b: PlaceId) -> bool {
        self.get(a).scales != self.get(b).scales
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
        assert!(!p.may_be_equal(one, both));
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
        assert!(p.may_be_equal(far, both));
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
