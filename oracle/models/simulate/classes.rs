//! Ranks that behave alike: one of each class is run for all.
//!
//! Two ranks are alike if they run the same program and, group by group, meet ranks of the same classes: the
//! coarsest such partition, found by refining the partition by programs until it is stable. Where all ranks run one
//! program on a mesh there is one class, however many ranks there are.

use super::Programs;
use crate::graph::Places;
use std::collections::BTreeMap;

/// How often the partition is refined at most. Where it is not stable then, as along a chain of groups, each rank is
/// run by itself: that is a refinement too.
const ROUNDS: usize = 32;

/// The classes of all ranks.
pub(super) struct Classes {
    /// For each rank its class.
    pub(super) of_rank: Vec<usize>,
    /// For each class the first rank of it.
    pub(super) first: Vec<u32>,
    /// Where each rank stands in each group.
    pub(super) places: Places,
}

impl Classes {
    pub(super) fn new(programs: &Programs) -> Classes {
        let ranks = programs.of_rank.len();
        let places = Places::new(&programs.world, ranks);
        // Messages name their peers: there every rank is its own.
        let is_pointed = programs.programs.iter().any(super::Program::has_messages);
        let of_rank = match is_pointed {
            true => (0..ranks).collect(),
            false => refined(programs, &places).unwrap_or_else(|| (0..ranks).collect()),
        };
        let count = of_rank.iter().max().map_or(0, |most| most + 1);
        let mut first = vec![u32::MAX; count];
        for (rank, &class) in of_rank.iter().enumerate().rev() {
            first[class] = rank as u32;
        }
        Classes { of_rank, first, places }
    }

    /// Number of classes.
    pub(super) fn len(&self) -> usize {
        self.first.len()
    }
}

/// The coarsest partition in which ranks of a class meet the same classes, numbered by first rank; `None` where it is
/// not found in [`ROUNDS`].
fn refined(programs: &Programs, places: &Places) -> Option<Vec<usize>> {
    let groups = &programs.world.groups;
    let mut of_rank = programs.of_rank.clone();
    let mut count = 0;
    for _ in 0..ROUNDS {
        // What each instance meets, as a number: its classes in order.
        let mut numbers: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        let met: Vec<Vec<usize>> = groups
            .iter()
            .map(|group| {
                let of = |members: &Vec<u32>| {
                    let known = members.iter().filter_map(|&r| of_rank.get(r as usize).copied());
                    let mut classes: Vec<usize> = known.collect();
                    classes.sort_unstable();
                    let fresh = numbers.len();
                    *numbers.entry(classes).or_insert(fresh)
                };
                group.instances.iter().map(of).collect()
            })
            .collect();
        let mut names: BTreeMap<(usize, Vec<(usize, usize)>), usize> = BTreeMap::new();
        of_rank = (0..of_rank.len())
            .map(|rank| {
                let own = places.of_rank(rank as u32).iter();
                let meets = own.map(|&(group, instance, _)| (group, met[group][instance])).collect();
                let fresh = names.len();
                *names.entry((of_rank[rank], meets)).or_insert(fresh)
            })
            .collect();
        if names.len() == count {
            return Some(of_rank);
        }
        count = names.len();
    }
    None
}
