//! Members of process groups whose names are hashes.
//!
//! PyTorch calls a group that it makes for a list of ranks by the SHA-1 of `RANKS_JOINED_BY_UNDERSCORES_COUNTER`, as in
//! `0_1_2_3_38`. The list that has the name is found by trying: lists of equal steps (blocks, and the axes of meshes)
//! with small counters. A hit proves the members; nothing else is concluded from none.
//!
//! Source: `_process_group_name` in `torch/distributed/distributed_c10d.py` of PyTorch 2.15.
//!
//! Each list is hashed once in a run: names are looked up among the hashes of the lists of their size, so what a run
//! costs does not grow with the number of names. How many hashes there are is limited by [`Limit::Hashes`], divided by
//! the size of the group: all sizes together cost some seconds, and the result does not depend on which name came first.
//!
//! # What it does not do
//!
//! Lists without equal steps are not tried, nor lists past the limit.

use super::Printed;
use crate::graph::Group;
use crate::limits::Limit;
use crate::words::count;
use rustc_hash::FxHashMap;
use sha1::{Digest, Sha1};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

/// Counters that are tried: few ones for all lists before many for any, since the first groups have the first counters.
const COUNTERS: [u32; 3] = [64, 512, 4096];

/// The largest world that is tried where nobody says how many ranks there are.
const LARGEST_WORLD: u32 = 4096;

/// The members of groups by their names, for all graphs of a run.
#[derive(Debug, Default)]
pub struct Members {
    /// Ranks of the world, where they are known.
    ranks: Option<u32>,
    /// By the size of the group, where it is known.
    hashed: BTreeMap<Option<u32>, Hashed>,
}

impl Members {
    /// Of a world with so many ranks, where that is known.
    pub fn new(ranks: Option<u32>) -> Members {
        Members { ranks, hashed: BTreeMap::new() }
    }

    /// The ranks of a group, if its name is the hash of a list that is tried. A size that is not known may be any.
    pub fn of(&mut self, name: &str, size: Option<u32>) -> Option<Vec<u32>> {
        let hash = hash_of(name)?;
        let ranks = self.ranks;
        let list = self.hashed.entry(size).or_insert_with(|| Hashed::new(size, ranks)).find(hash)?;
        Some(list.ranks().collect())
    }
}

/// The hashes of the lists of one size, computed as far as they were needed.
struct Hashed {
    /// A list and its counter, by the first bytes of their hash.
    known: FxHashMap<[u8; 8], (List, u32)>,
    /// What is to be hashed next: lists with ranges of counters.
    rest: Box<dyn Iterator<Item = (List, std::ops::Range<u32>)> + Send>,
    /// Hashes that may still be computed.
    left: u64,
}

impl fmt::Debug for Hashed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hashed")
            .field("known", &self.known.len())
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl Hashed {
    fn new(size: Option<u32>, ranks: Option<u32>) -> Hashed {
        let worlds: Vec<u32> = match ranks {
            Some(ranks) if u64::from(ranks) > Limit::Ranks.standard() => Vec::new(),
            Some(ranks) => vec![ranks],
            None => (1..).map(|power| 1 << power).take_while(|&world| world <= LARGEST_WORLD).collect(),
        };
        let tried = std::iter::once(0).chain(COUNTERS).zip(COUNTERS);
        let rest = tried.flat_map(move |(tried, counters)| {
            let lists = worlds.clone().into_iter().flat_map(move |world| lists(world, size));
            lists.map(move |list| (list, tried..counters))
        });
        let left = Limit::Hashes.standard() / u64::from(size.unwrap_or(1).max(1));
        Hashed { known: FxHashMap::default(), rest: Box::new(rest), left }
    }

    /// The list of this hash.
    fn find(&mut self, hash: [u8; 20]) -> Option<List> {
        loop {
            if let Some(&(list, counter)) = self.known.get(&hash[..8]) {
                // The first bytes of two hashes may be equal.
                return Some(list).filter(|list| list.hash(counter) == hash);
            }
            if self.left == 0 {
                return None;
            }
            let (list, counters) = self.rest.next()?;
            self.add(list, counters);
        }
    }

    /// Hashes a list with each of these counters.
    fn add(&mut self, list: List, counters: std::ops::Range<u32>) {
        let text = list.text();
        let start = Sha1::new_with_prefix(&text);
        // Long lists cost as much as several short ones.
        self.left = self.left.saturating_sub(text.len() as u64 / 64);
        for counter in counters {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            let hash = hash_with(start.clone(), counter);
            if let Some(&first) = hash.first_chunk() {
                self.known.entry(first).or_insert((list, counter));
            }
        }
    }
}

fn hash_with(mut start: Sha1, counter: u32) -> [u8; 20] {
    start.update(counter.to_string());
    start.finalize().into()
}

impl Printed {
    /// Says of groups with hashed names what follows from these: how many ranks, and which.
    pub fn find_members(&mut self, known: &mut Members) {
        let stated = self.graph.world.groups.iter().filter(|group| group.instances.is_empty());
        let mut names: Vec<(String, Option<u32>)> =
            stated.map(|group| (group.name.clone(), Some(group.size))).collect();
        names.extend(self.unknown_groups.iter().map(|name| (name.clone(), None)));
        for (name, size) in names {
            let Some(members) = known.of(&name, size) else { continue };
            let members = &members[..];
            // A name may stand for other groups on other ranks. Of the whole world there is one.
            let world = known_world(members, self.graph.world.ranks);
            let instances = if world { vec![members.to_vec()] } else { Vec::new() };
            let group =
                Group { name: name.clone(), size: members.len() as u32, recorded_rank: None, instances };
            let shown: Vec<String> = members.iter().take(8).map(u32::to_string).collect();
            let more = if members.len() > shown.len() { ", ..." } else { "" };
            self.notes.push(format!(
                "process group {name} has {}, {}{more}: its name is their hash",
                count(members.len(), "rank"),
                shown.join(", ")
            ));
            match self.graph.world.groups.iter_mut().find(|group| group.name == name) {
                Some(known) => known.instances = group.instances,
                None => self.add_groups(&[group]),
            }
        }
    }
}

/// Whether members are all ranks of the world.
fn known_world(members: &[u32], ranks: Option<u32>) -> bool {
    ranks.is_some_and(|ranks| members.iter().copied().eq(0..ranks))
}

/// Ranks in equal steps.
#[derive(Clone, Copy)]
struct List {
    first: u32,
    step: u32,
    size: u32,
}

impl List {
    fn ranks(self) -> impl Iterator<Item = u32> {
        (0..self.size).map(move |at| self.first + at * self.step)
    }

    /// What is hashed before the counter.
    fn text(self) -> String {
        let mut text = String::new();
        for rank in self.ranks() {
            let _ = write!(text, "{rank}_");
        }
        text
    }

    fn hash(self, counter: u32) -> [u8; 20] {
        hash_with(Sha1::new_with_prefix(self.text()), counter)
    }
}

/// Lists of ranks of a world: itself, then the axes of meshes, whose steps divide it, then all other equal steps.
fn lists(world: u32, size: Option<u32>) -> impl Iterator<Item = List> {
    let sizes: Vec<u32> = match size {
        Some(size) => vec![size],
        None => (2..=world).rev().filter(|size| world.is_multiple_of(*size)).collect(),
    };
    let sizes: Vec<u32> = sizes.into_iter().filter(|&size| size > 0 && size <= world).collect();
    let axes = sizes.clone().into_iter().flat_map(move |size| {
        let rest = if world.is_multiple_of(size) { world / size } else { 0 };
        let steps = (1..=rest).filter(move |&step| rest.is_multiple_of(step));
        steps.flat_map(move |step| {
            let blocks = rest / step;
            (0..blocks).flat_map(move |block| {
                (0..step).map(move |at| List { first: block * step * size + at, step, size })
            })
        })
    });
    let others = sizes.into_iter().flat_map(move |size| {
        let longest = (world - 1).checked_div(size - 1).unwrap_or(1);
        let steps = 1..=longest;
        steps.flat_map(move |step| {
            let reach = (size - 1) * step;
            (0..world - reach).map(move |first| List { first, step, size })
        })
    });
    axes.chain(others)
}

/// The bytes of 40 hexadecimal digits.
fn hash_of(name: &str) -> Option<[u8; 20]> {
    let mut hash = [0; 20];
    if name.len() != 40 || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, at) in hash.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(name.get(at..at + 2)?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> String {
        Sha1::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn members_of(name: &str, size: Option<u32>, ranks: Option<u32>) -> Option<Vec<u32>> {
        Members::new(ranks).of(name, size)
    }

    #[test]
    fn lists_are_found_by_their_hashes() {
        // Of a sample: `0_1_2_3_38`.
        let sample = "87a621ab382d3799edf8b3edd049377c6693c3ce";
        for (size, ranks) in [(Some(4), Some(4)), (Some(4), None), (None, Some(8)), (None, None)] {
            assert_eq!(members_of(sample, size, ranks), Some(vec![0, 1, 2, 3]), "{size:?} {ranks:?}");
        }
        assert_eq!(members_of(&name("1_5_9_13_7"), Some(4), Some(16)), Some(vec![1, 5, 9, 13]));
        assert_eq!(members_of(&name("2_3_4_600"), Some(3), Some(8)), Some(vec![2, 3, 4]));
        assert_eq!(members_of(&name("5_0"), Some(1), Some(8)), Some(vec![5]));
    }

    #[test]
    fn nothing_is_concluded_from_no_hit() {
        assert_eq!(members_of("0", Some(4), Some(4)), None);
        assert_eq!(members_of(&name("0_1_3_0"), Some(3), Some(4)), None);
        assert_eq!(members_of(&name("0_1_0"), Some(9), Some(4)), None);
        assert_eq!(members_of(&name("0_1_0"), Some(0), Some(4)), None);
        assert_eq!(members_of(&name("0_1_0"), Some(2), Some(0)), None);
    }

    /// What one name costs, a thousand cost.
    #[test]
    fn lists_are_hashed_once_in_a_run() {
        let mut members = Members::new(Some(8));
        assert_eq!(members.of(&name("unknown"), Some(4)), None);
        let (known, left) = (members.hashed[&Some(4)].known.len(), members.hashed[&Some(4)].left);
        for number in 0..1000 {
            assert_eq!(members.of(&name(&number.to_string()), Some(4)), None);
        }
        assert_eq!(members.of(&name("0_2_4_6_5"), Some(4)), Some(vec![0, 2, 4, 6]));
        assert_eq!((members.hashed[&Some(4)].known.len(), members.hashed[&Some(4)].left), (known, left));
        assert!(known as u64 <= Limit::Hashes.standard() / 4);
    }
}
