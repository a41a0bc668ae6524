//! How process groups lie to each other: what a move in one group does to the position in another.
//!
//! A *move* `g := j` takes a rank to the member with index `j` of its instance of group `g`. Two facts decide when
//! two sequences of moves lead to the same rank:
//! - *axes*: `g` and `h` are axes of a mesh: a move in one keeps the index in the other, and moves in the two
//!   commute;
//! - *inside*: every instance of `h` lies in one instance of `g`: a move in `h` before a move in `g` is lost.
//!
//! With rank lists both are read off the lists. Without them (a recorded graph knows only sizes) the groups are taken
//! for axes of a mesh, except for one that is as large as all the others multiplied and so holds them all inside.
//! This is what [`World::assume_mesh`] assumes too, but for two groups of one size: they may be two axes or twice
//! the same ranks, so nothing is assumed of them.

use crate::graph::World;
use rustc_hash::FxHashMap;

/// Work on rank lists above which two groups count as unrelated. Unrelated is the careful answer: two sequences of
/// moves are then equal only when they are the same.
const MOST_STEPS: u64 = 1 << 24;

/// What is known about the groups of a world.
#[derive(Clone, Debug, Default)]
pub(super) struct Topology {
    /// Groups of the same ranks in the same order are one.
    names: FxHashMap<String, usize>,
    groups: Vec<Layout>,
    assumed: Assumed,
}

/// What is assumed of the groups without rank lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Assumed {
    #[default]
    Nothing,
    /// All are axes.
    Axes,
    /// This one holds the others, which are axes.
    Whole(usize),
}

#[derive(Clone, Debug, Default)]
struct Layout {
    name: String,
    size: u32,
    /// For each rank its instance and index; empty without rank lists. `u32::MAX` for a rank of no instance.
    position: Vec<(u32, u32)>,
    instances: Vec<Vec<u32>>,
}

const NOWHERE: (u32, u32) = (u32::MAX, u32::MAX);

impl Topology {
    pub(super) fn new(world: &World) -> Topology {
        let mut names = FxHashMap::default();
        let mut groups = Vec::new();
        let mut same_ranks: FxHashMap<Vec<&[u32]>, usize> = FxHashMap::default();
        for group in &world.groups {
            let mut instances: Vec<&[u32]> = group.instances.iter().map(Vec::as_slice).collect();
            instances.sort_unstable();
            let index = match instances.is_empty() {
                true => groups.len(),
                false => *same_ranks.entry(instances).or_insert(groups.len()),
            };
            names.entry(group.name.clone()).or_insert(index);
            let ranks = group.instances.iter().flatten().max().map_or(0, |&r| r as usize + 1);
            let known: usize = group.instances.iter().map(Vec::len).sum();
            let mut layout = Layout { name: group.name.clone(), size: group.size, ..Layout::default() };
            // A world of a few scattered, huge rank numbers is legal; a table of them all would not pay.
            if ranks as u64 <= MOST_STEPS && ranks <= 64 * known.max(1) {
                layout.position = vec![NOWHERE; ranks];
                for (i, instance) in group.instances.iter().enumerate() {
                    for (k, &rank) in instance.iter().enumerate() {
                        layout.position[rank as usize] = (i as u32, k as u32);
                    }
                }
                layout.instances.clone_from(&group.instances);
            }
            groups.push(layout);
        }
        let open: Vec<usize> = (0..groups.len()).filter(|&i| world.groups[i].instances.is_empty()).collect();
        let largest = open.iter().copied().max_by_key(|&i| (groups[i].size, std::cmp::Reverse(i)));
        let product = |but: usize| {
            open.iter().filter(|&&i| i != but).try_fold(1u32, |n, &i| n.checked_mul(groups[i].size))
        };
        let assumed = match largest {
            Some(one) if open.len() > 1 && product(one) == Some(groups[one].size) => {
                if open.len() == 2 {
                    Assumed::Nothing
                } else {
                    Assumed::Whole(one)
                }
            }
            _ => Assumed::Axes,
        };
        Topology { names, groups, assumed }
    }

    fn find(&self, name: &str) -> Option<(usize, &Layout)> {
        let index = *self.names.get(name)?;
        Some((index, self.groups.get(index)?))
    }

    /// The name of the first group that has the same ranks in the same order, where both are known.
    pub(super) fn first_name<'s>(&'s self, name: &'s str) -> &'s str {
        self.find(name).map_or(name, |(_, layout)| &layout.name)
    }

    /// Number of ranks in each instance of a group of the world.
    pub(super) fn size(&self, name: &str) -> Option<u32> {
        self.find(name).map(|(_, layout)| layout.size)
    }

    /// Whether two groups are axes of a mesh. A group is no axis beside itself.
    pub(super) fn axes(&self, g: &str, h: &str) -> bool {
        let (Some((i, one)), Some((k, other))) = (self.find(g), self.find(h)) else { return false };
        if i == k {
            return false;
        }
        match (one.position.is_empty(), other.position.is_empty()) {
            (true, true) => match self.assumed {
                Assumed::Nothing => false,
                Assumed::Axes => true,
                Assumed::Whole(whole) => whole != i && whole != k,
            },
            (false, false) => {
                let (small, large) = if one.size <= other.size { (one, other) } else { (other, one) };
                are_axes(small, large)
            }
            _ => false,
        }
    }

    /// Whether every instance of `inner` lies in one instance of `outer`. A group lies inside itself.
    pub(super) fn inside(&self, inner: &str, outer: &str) -> bool {
        if inner == outer {
            return true;
        }
        let (Some((_, one)), Some((k, other))) = (self.find(inner), self.find(outer)) else { return false };
        match (one.position.is_empty(), other.position.is_empty()) {
            (true, true) => self.assumed == Assumed::Whole(k),
            (false, false) => one.instances.iter().all(|instance| {
                let mut places = instance.iter().map(|&rank| other.at(rank).0);
                let first = places.next();
                first.is_some_and(|f| f != u32::MAX) && places.all(|p| Some(p) == first)
            }),
            _ => false,
        }
    }
}

impl Layout {
    fn at(&self, rank: u32) -> (u32, u32) {
        self.position.get(rank as usize).copied().unwrap_or(NOWHERE)
    }
}

fn are_axes(small: &Layout, large: &Layout) -> bool {
    let ranks: u64 = large.instances.iter().map(|i| i.len() as u64).sum();
    if ranks.saturating_mul(u64::from(small.size)) > MOST_STEPS {
        return false;
    }
    // The index in `small` is the same all along an instance of `large`, and the instance of `large` that a move
    // in `small` leads to depends on the instance of `large` alone.
    large.instances.iter().all(|instance| {
        let Some(&first) = instance.first() else { return true };
        let (home, index) = small.at(first);
        let Some(reached) = small.instances.get(home as usize) else { return false };
        instance.iter().all(|&rank| {
            let (row, own) = large.at(rank);
            let (other, same) = small.at(rank);
            let Some(neighbours) = small.instances.get(other as usize) else { return false };
            same == index
                && row != u32::MAX
                && neighbours.len() == reached.len()
                && neighbours.iter().zip(reached).all(|(&n, &r)| {
                    let (n, r) = (large.at(n), large.at(r));
                    n.0 == r.0 && n.0 != u32::MAX && n.1 == own
                })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Group;

    fn group(name: &str, size: u32, instances: &[&[u32]]) -> Group {
        let instances = instances.iter().map(|i| i.to_vec()).collect();
        Group { name: name.into(), size, recorded_rank: None, instances }
    }

    #[test]
    fn a_mesh_by_its_rank_lists() {
        let world = World {
            ranks: Some(6),
            groups: vec![
                group("dp", 2, &[&[0, 3], &[1, 4], &[2, 5]]),
                group("tp", 3, &[&[0, 1, 2], &[3, 4, 5]]),
                group("all", 6, &[&[0, 1, 2, 3, 4, 5]]),
                group("odd", 2, &[&[0, 3], &[4, 1], &[2, 5]]),
            ],
        };
        let t = Topology::new(&world);
        assert!(t.axes("dp", "tp") && t.axes("tp", "dp"));
        assert!(!t.axes("dp", "all") && !t.axes("dp", "dp") && !t.axes("odd", "tp") && !t.axes("tp", "odd"));
        assert!(t.inside("dp", "all") && t.inside("tp", "all") && t.inside("tp", "tp"));
        assert!(!t.inside("all", "tp") && !t.inside("dp", "tp"));
        assert!(t.inside("odd", "dp") && !t.axes("odd", "dp"));
        assert!(!t.axes("dp", "nowhere") && t.size("nowhere").is_none());
    }

    #[test]
    fn sizes_alone_are_taken_for_a_mesh() {
        let sized = |sizes: &[u32]| World {
            ranks: None,
            groups: sizes.iter().enumerate().map(|(i, &n)| group(&i.to_string(), n, &[])).collect(),
        };
        let t = Topology::new(&sized(&[32, 8]));
        assert!(t.axes("0", "1") && !t.inside("1", "0"));
        let t = Topology::new(&sized(&[64, 8, 8]));
        assert!(!t.axes("0", "1") && t.axes("1", "2") && t.inside("1", "0") && !t.inside("0", "1"));
        let t = Topology::new(&sized(&[8, 8]));
        assert!(!t.axes("0", "1") && !t.inside("0", "1") && !t.inside("1", "0"));
        let t = Topology::new(&sized(&[u32::MAX, u32::MAX, u32::MAX]));
        assert!(t.axes("0", "1"));
    }
}
