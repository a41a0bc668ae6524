//! Ranks that behave alike: one of each class is run for all.
//!
//! Two ranks are alike if they run the same program and, group by group, meet ranks of the same classes: the
//! coarsest such partition, found by refining the partition by programs until it is stable. Where all ranks run one
//! program on a mesh there is one class, however many ranks there are.

use super::Programs;
use std::collections::BTreeMap;

/// The classes of all ranks.
pub(super) struct Classes {
    /// For each rank its class.
    pub(super) of_rank: Vec<usize>,
    /// For each class the first rank of it.
    pub(super) first: Vec<u32>,
    /// For each rank and group the instance that the rank is in.
    pub(super) instance: Vec<Vec<Option<usize>>>,
}

impl Classes {
    pub(super) fn new(programs: &Programs) -> Classes {
        let ranks = programs.of_rank.len();
        let groups = &programs.world.groups;
        let mut instance = vec![vec![None; groups.len()]; ranks];
        for (g, group) in groups.iter().enumerate() {
            for (i, members) in group.instances.iter().enumerate() {
                for &rank in members {
                    if let Some(of_rank) = instance.get_mut(rank as usize) {
                        of_rank[g] = Some(i);
                    }
                }
            }
        }
        // Messages name their peers: there every rank is its own.
        let is_pointed = programs.programs.iter().any(super::Program::has_messages);
        let mut of_rank: Vec<usize> =
            if is_pointed { (0..ranks).collect() } else { programs.of_rank.clone() };
        let mut count = 0;
        loop {
            // The classes met in each instance, and then of each rank what it meets in each group.
            let met: Vec<Vec<Vec<usize>>> = groups
                .iter()
                .map(|group| {
                    let of = |members: &Vec<u32>| {
                        let known = members.iter().filter_map(|&r| of_rank.get(r as usize).copied());
                        let mut classes: Vec<usize> = known.collect();
                        classes.sort_unstable();
                        classes
                    };
                    group.instances.iter().map(of).collect()
                })
                .collect();
            let mut names: BTreeMap<(usize, Vec<Option<&Vec<usize>>>), usize> = BTreeMap::new();
            let refined: Vec<usize> = (0..ranks)
                .map(|rank| {
                    let meets = (0..groups.len()).map(|g| instance[rank][g].map(|i| &met[g][i])).collect();
                    let fresh = names.len();
                    *names.entry((of_rank[rank], meets)).or_insert(fresh)
                })
                .collect();
            let found = names.len();
            of_rank = refined;
            if found == count {
                break;
            }
            count = found;
        }
        let mut first = vec![u32::MAX; count];
        for (rank, &class) in of_rank.iter().enumerate().rev() {
            first[class] = rank as u32;
        }
        Classes { of_rank, first, instance }
    }

    /// Number of classes.
    pub(super) fn len(&self) -> usize {
        self.first.len()
    }
}
