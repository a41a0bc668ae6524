//! The world of a case: ranks, and the process groups that they form.
//!
//! A process group *name* stands, on each rank, for the group that this rank belongs to: `tp` on a 2-D mesh is
//! one name and many groups. So a name has several *instances*, each a list of ranks in group order; the
//! instances of one name are disjoint. Instances of different names may overlap in any way.
//!
//! A graph recorded by PyTorch knows only the size of each group and the recording rank's index in it. Then the
//! instances are unknown, and [`World::assume_mesh`] says which layout is assumed where one is needed.

use crate::limits::Limit;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::fmt;

/// Ranks and process groups.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct World {
    /// Number of ranks, where known.
    pub ranks: Option<u32>,
    /// Groups in order of first mention.
    pub groups: Vec<Group>,
}

/// A process group name and what is known about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// The name that graphs use.
    pub name: String,
    /// Ranks in each instance.
    pub size: u32,
    /// Index, in its instance, of the rank that a recorded graph was made on.
    pub recorded_rank: Option<u32>,
    /// Rank lists, one per instance; empty where the file does not say.
    pub instances: Vec<Vec<u32>>,
}

/// Ranks of a world at most: a file that says more must not cost the memory for it.
pub const MOST_RANKS: u32 = Limit::Ranks.standard() as u32;

/// Something wrong with a world.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum WorldFault {
    NoRanks,
    TooManyRanks,
    TooManyGroups { groups: usize },
    TooManyMembers { members: u64 },
    DuplicateGroup { group: String },
    EmptyGroup { group: String },
    RankTwice { group: String, rank: u32 },
    RankOutside { group: String, rank: u32, ranks: u32 },
    UnevenInstances { group: String, size: u32, found: u32 },
    RecordedRankOutside { group: String, rank: u32, size: u32 },
}

impl fmt::Display for WorldFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorldFault::NoRanks => write!(f, "the world has no ranks"),
            WorldFault::TooManyRanks => {
                write!(f, "the world has too many ranks: at most {MOST_RANKS} can be judged")
            }
            WorldFault::TooManyGroups { groups } => {
                write!(f, "the world has {groups} process groups: at most {}", Limit::Groups.standard())
            }
            WorldFault::TooManyMembers { members } => {
                let most = Limit::Members.standard();
                write!(f, "the process groups have {members} members together: at most {most}")
            }
            WorldFault::DuplicateGroup { group } => write!(f, "process group {group:?} is defined twice"),
            WorldFault::EmptyGroup { group } => write!(f, "process group {group:?} has no ranks"),
            WorldFault::RankTwice { group, rank } => {
                write!(f, "process group {group:?} lists rank {rank} twice")
            }
            WorldFault::RankOutside { group, rank, ranks } => {
                write!(f, "process group {group:?} lists rank {rank}, but the world has ")?;
                match ranks.checked_sub(1) {
                    None => write!(f, "no ranks"),
                    Some(last) => write!(f, "ranks 0 to {last}"),
                }
            }
            WorldFault::UnevenInstances { group, size, found } => {
                write!(f, "process group {group:?} has instances of {size} and of {found} ranks")
            }
            WorldFault::RecordedRankOutside { group, rank, size } => {
                write!(f, "process group {group:?} of size {size} was recorded at rank {rank}")
            }
        }
    }
}

impl Group {
    /// The instance that `rank` belongs to and its index there.
    pub fn instance_of(&self, rank: u32) -> Option<(usize, usize)> {
        self.instances
            .iter()
            .enumerate()
            .find_map(|(i, ranks)| ranks.iter().position(|&r| r == rank).map(|index| (i, index)))
    }
}

/// Where each rank stands in each group, for worlds that are asked about many ranks.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// By name.
    groups: FxHashMap<String, usize>,
    /// For each rank its groups, each with the instance and the index there; in order of the groups.
    of_rank: Vec<Vec<(usize, usize, usize)>>,
}

impl Places {
    /// The places in a world of so many ranks; ranks beyond them have none. Linear in the lists of ranks.
    pub fn new(world: &World, ranks: usize) -> Places {
        let mut places = Places { groups: FxHashMap::default(), of_rank: vec![Vec::new(); ranks] };
        for (g, group) in world.groups.iter().enumerate() {
            places.groups.entry(group.name.clone()).or_insert(g);
            for (instance, members) in group.instances.iter().enumerate() {
                for (index, &rank) in members.iter().enumerate() {
                    // As for `Group::instance_of`, the first mention counts.
                    if let Some(of) = places.of_rank.get_mut(rank as usize)
                        && of.last().is_none_or(|last| last.0 != g)
                    {
                        of.push((g, instance, index));
                    }
                }
            }
        }
        places
    }

    /// The number of the group called `name`; the first of several.
    pub fn group(&self, name: &str) -> Option<usize> {
        self.groups.get(name).copied()
    }

    /// The instance of a group that `rank` belongs to, and its index there.
    pub fn instance_of(&self, group: usize, rank: u32) -> Option<(usize, usize)> {
        let of = self.of_rank(rank);
        let at = of.binary_search_by_key(&group, |place| place.0).ok()?;
        Some((of[at].1, of[at].2))
    }

    /// The groups of a rank in order, each with the instance and the index there.
    pub fn of_rank(&self, rank: u32) -> &[(usize, usize, usize)] {
        self.of_rank.get(rank as usize).map_or(&[], Vec::as_slice)
    }
}

impl World {
    /// The group called `name`.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|g| g.name == name)
    }

    /// The groups by name, of several with one name the first: for whoever asks for many.
    pub fn by_name(&self) -> FxHashMap<&str, &Group> {
        let mut groups = FxHashMap::default();
        for group in &self.groups {
            groups.entry(group.name.as_str()).or_insert(group);
        }
        groups
    }

    /// Whether both have the same ranks and groups, wherever they were recorded.
    pub fn is_same_network(&self, other: &World) -> bool {
        let groups = |world: &World| {
            world
                .groups
                .iter()
                .map(|group| Group { recorded_rank: None, ..group.clone() })
                .collect::<Vec<_>>()
        };
        self == other || (self.ranks == other.ranks && groups(self) == groups(other))
    }

    /// What `other` says otherwise of the ranks and of groups that both have, where both say it; groups, and instances of
    /// a group, that only one has are no contradiction: a process knows the instances that it belongs to.
    pub fn contradiction(&self, other: &World) -> Option<String> {
        if let (Some(ranks), Some(others)) = (self.ranks, other.ranks)
            && ranks != others
        {
            return Some(format!("the world has {others} ranks, and {ranks} before"));
        }
        let others = other.by_name();
        self.groups.iter().find_map(|group| {
            let same_name = others.get(group.name.as_str())?;
            let instances = &group.instances;
            let of_rank: FxHashMap<u32, usize> = (0..instances.len())
                .flat_map(|index| instances[index].iter().map(move |&rank| (rank, index)))
                .collect();
            let is_otherwise = |ranks: &Vec<u32>| {
                // Ranks of one instance have one list, which is compared once.
                let mut known: Vec<usize> =
                    ranks.iter().filter_map(|rank| of_rank.get(rank).copied()).collect();
                known.dedup();
                known.into_iter().any(|index| instances[index] != *ranks)
            };
            let differs = group.size != same_name.size || same_name.instances.iter().any(is_otherwise);
            differs.then(|| format!("group {} has other ranks than before", group.name))
        })
    }

    /// Whether every group says which ranks it has.
    pub fn is_explicit(&self) -> bool {
        self.ranks.is_some() && self.groups.iter().all(|g| !g.instances.is_empty())
    }

    /// All faults.
    pub fn faults(&self) -> Vec<WorldFault> {
        let mut faults = Vec::new();
        if self.ranks == Some(0) {
            faults.push(WorldFault::NoRanks);
        }
        if self.ranks.is_some_and(|ranks| ranks > MOST_RANKS) || self.mesh().is_none() {
            faults.push(WorldFault::TooManyRanks);
        }
        if self.groups.len() as u64 > Limit::Groups.standard() {
            faults.push(WorldFault::TooManyGroups { groups: self.groups.len() });
        }
        if self.members() > Limit::Members.standard() {
            faults.push(WorldFault::TooManyMembers { members: self.members() });
        }
        let mut names = BTreeSet::new();
        for group in &self.groups {
            let name = || group.name.clone();
            if !names.insert(&group.name) {
                faults.push(WorldFault::DuplicateGroup { group: name() });
            }
            if group.size == 0 || group.instances.iter().any(Vec::is_empty) {
                faults.push(WorldFault::EmptyGroup { group: name() });
            }
            if let Some(rank) = group.recorded_rank.filter(|&r| r >= group.size) {
                faults.push(WorldFault::RecordedRankOutside { group: name(), rank, size: group.size });
            }
            let mut seen = FxHashSet::default();
            for instance in &group.instances {
                if instance.len() != group.size as usize {
                    let found = instance.len() as u32;
                    faults.push(WorldFault::UnevenInstances { group: name(), size: group.size, found });
                }
                for &rank in instance {
                    if !seen.insert(rank) {
                        faults.push(WorldFault::RankTwice { group: name(), rank });
                    }
                    if let Some(ranks) = self.ranks.filter(|&n| rank >= n) {
                        faults.push(WorldFault::RankOutside { group: name(), rank, ranks });
                    }
                }
            }
        }
        faults
    }

    /// The world with rank lists for every group, assuming a mesh where the file gives sizes only.
    ///
    /// The assumption, in words: if the largest group is as large as all the others multiplied (and there are
    /// others), it is the whole world and the others are the axes of a mesh over it; otherwise every group is
    /// an axis. The first axis varies slowest. Groups that already list their ranks keep them. `None` when the
    /// world would have more than [`MOST_RANKS`] ranks, or its groups more members than their limit.
    pub fn assume_mesh(&self) -> Option<World> {
        if self.is_explicit() {
            return (self.ranks? <= MOST_RANKS).then(|| self.clone());
        }
        self.laid_out(self.mesh()?)
    }

    /// Other layouts that groups without rank lists may have: all of them axes, those of one size the same ranks, and each of
    /// neighbours, so that small groups lie in large ones.
    pub fn other_layouts(&self) -> Vec<World> {
        let Some(Mesh { open, axes, .. }) = self.mesh().filter(|_| !self.is_explicit()) else {
            return Vec::new();
        };
        let size = |&i: &usize| self.groups[i].size;
        let mut once: Vec<usize> = Vec::new();
        for &i in &open {
            if !once.iter().any(|other| size(other) == size(&i)) {
                once.push(i);
            }
        }
        let layouts = [open.clone(), once].into_iter().filter(|other| *other != axes);
        let meshes = layouts
            .filter_map(|axes| self.laid_out(Mesh { ranks: self.product(&axes)?, open: open.clone(), axes }));
        meshes.chain(self.nested(&open)).collect()
    }

    /// The world where each of these groups has neighbours.
    fn nested(&self, open: &[usize]) -> Option<World> {
        let largest = open.iter().map(|&i| self.groups[i].size).max()?;
        let ranks = self.ranks.unwrap_or(1).max(largest);
        let mut world = World { ranks: Some(ranks), groups: self.groups.clone() };
        for &i in open {
            let size = self.groups[i].size;
            if size == 0 || ranks % size != 0 || ranks > MOST_RANKS {
                return None;
            }
            world.groups[i].instances =
                (0..ranks / size).map(|block| (block * size..(block + 1) * size).collect()).collect();
        }
        (open.len() > 1).then_some(world)
    }

    /// The world where these groups are axes of a mesh, and each other one an axis of its size or the whole.
    fn laid_out(&self, mesh: Mesh) -> Option<World> {
        let Mesh { open, axes, ranks: mesh } = mesh;
        let ranks = self.ranks.unwrap_or(1).max(mesh);
        if ranks > MOST_RANKS || self.members() > Limit::Members.standard() {
            return None;
        }
        let mut world = World { ranks: Some(ranks), groups: self.groups.clone() };
        for i in open {
            let size = self.groups[i].size;
            let is_alike = |&axis: &usize| axis == i || mesh != size && self.groups[axis].size == size;
            let axis = axes.iter().position(|&a| a == i).or_else(|| axes.iter().position(is_alike));
            world.groups[i].instances = match axis {
                None => vec![(0..size).collect()],
                Some(axis) => {
                    let inner = self.product(&axes[axis + 1..])?.max(1);
                    let outer = mesh / (inner * size).max(1);
                    (0..outer)
                        .flat_map(|o| (0..inner).map(move |k| (o, k)))
                        .map(|(o, k)| (0..size).map(|j| (o * size + j) * inner + k).collect())
                        .collect()
                }
            };
        }
        Some(world)
    }

    /// The mesh that groups without rank lists are assumed to form; `None` if it has more than [`MOST_RANKS`] ranks.
    fn mesh(&self) -> Option<Mesh> {
        let open: Vec<usize> =
            (0..self.groups.len()).filter(|&i| self.groups[i].instances.is_empty()).collect();
        let largest = open.iter().copied().max_by_key(|&i| (self.groups[i].size, std::cmp::Reverse(i)));
        let axes: Vec<usize> = match largest {
            Some(whole) if open.len() > 1 => {
                let others: Vec<usize> = open.iter().copied().filter(|&i| i != whole).collect();
                if self.product(&others) == Some(self.groups[whole].size) { others } else { open.clone() }
            }
            _ => open.clone(),
        };
        let ranks = self.product(&axes).filter(|&ranks| ranks <= MOST_RANKS)?;
        Some(Mesh { open, axes, ranks })
    }

    /// How many ranks the lists of all groups hold, those that are assumed among them.
    fn members(&self) -> u64 {
        let mesh = self.mesh().map_or(0, |mesh| u64::from(mesh.ranks));
        let listed = |group: &Group| group.instances.iter().map(|instance| instance.len() as u64).sum();
        let of_group = |group: &Group| if group.instances.is_empty() { mesh } else { listed(group) };
        self.groups.iter().fold(0, |sum: u64, group| sum.saturating_add(of_group(group)))
    }

    /// How many ranks the mesh of these groups has.
    fn product(&self, groups: &[usize]) -> Option<u32> {
        groups.iter().try_fold(1u32, |product, &i| product.checked_mul(self.groups[i].size))
    }
}

/// The layout that is assumed for groups of which only the sizes are known.
struct Mesh {
    /// These groups.
    open: Vec<usize>,
    /// Those of them that are axes, the slowest first.
    axes: Vec<usize>,
    /// Ranks of the mesh.
    ranks: u32,
}
