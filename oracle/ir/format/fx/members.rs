//! Members of process groups whose names are hashes.
//!
//! PyTorch calls a group that it makes for a list of ranks by the SHA-1 of `RANKS_JOINED_BY_UNDERSCORES_COUNTER`, as in
//! `0_1_2_3_38`. The list that has the name is found by trying: lists of equal steps (blocks, and the axes of meshes)
//! with small counters. A hit proves the members; nothing else is concluded from none.
//!
//! Source: `_process_group_name` in `torch/distributed/distributed_c10d.py` of PyTorch 2.15.
//!
//! # What it does not do
//!
//! Lists without equal steps are not tried, nor worlds that cost more than [`MOST_HASHES`] hashes: a second at most.

use super::Printed;
use crate::graph::Group;
use crate::limits::Limit;
use crate::words::count;
use sha1::{Digest, Sha1};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Hashes that are computed for one name.
const MOST_HASHES: u32 = 1 << 22;

/// Counters that are tried: few ones for all lists before many for any, since the first groups have the first counters.
const COUNTERS: [u32; 3] = [64, 512, 4096];

/// The largest world that is tried where nobody says how many ranks there are.
const LARGEST_WORLD: u32 = 4096;

/// The members of groups, each looked for once.
#[derive(Clone, Debug, Default)]
pub struct Members {
    /// Ranks of the world, where they are known.
    ranks: Option<u32>,
    found: BTreeMap<(String, Option<u32>), Option<Vec<u32>>>,
}

impl Members {
    /// Of a world with so many ranks, where that is known.
    pub fn new(ranks: Option<u32>) -> Members {
        Members { ranks, found: BTreeMap::new() }
    }

    /// The members of a group, if its name is the hash of a list that is tried. A size that is not known may be any.
    pub fn of(&mut self, name: &str, size: Option<u32>) -> Option<&[u32]> {
        let ranks = self.ranks;
        let members =
            self.found.entry((name.to_string(), size)).or_insert_with(|| members_of(name, size, ranks));
        members.as_deref()
    }
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

/// The list of ranks whose hash a name is.
///
/// `size` is how many they are, where that is known, and `ranks` how many ranks the world has; else worlds of 2, 4, 8,
/// ... ranks are tried.
pub fn members_of(name: &str, size: Option<u32>, ranks: Option<u32>) -> Option<Vec<u32>> {
    let hash = hash_of(name)?;
    if u64::from(ranks.unwrap_or(0)) > Limit::Ranks.standard() {
        return None;
    }
    let worlds: Vec<u32> = match ranks {
        Some(ranks) => vec![ranks],
        None => (1..).map(|power| 1 << power).take_while(|&world| world <= LARGEST_WORLD).collect(),
    };
    let mut left = MOST_HASHES;
    let mut tried = 0;
    for counters in COUNTERS {
        for &world in &worlds {
            for list in lists(world, size) {
                let found = list.counter_of(hash, tried..counters, &mut left);
                if found {
                    return Some(list.ranks().collect());
                }
                if left == 0 {
                    return None;
                }
            }
        }
        tried = counters;
    }
    None
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

    /// Whether the list has the hash with one of these counters; `left` hashes may still be computed.
    fn counter_of(self, hash: [u8; 20], counters: std::ops::Range<u32>, left: &mut u32) -> bool {
        let mut text = String::new();
        for rank in self.ranks() {
            let _ = write!(text, "{rank}_");
        }
        let start = Sha1::new_with_prefix(&text);
        // Long lists cost as much as several short ones.
        *left = left.saturating_sub(text.len() as u32 / 64);
        let is_it = |counter: u32| {
            let mut digest = start.clone();
            digest.update(counter.to_string());
            <[u8; 20]>::from(digest.finalize()) == hash
        };
        for counter in counters {
            if *left == 0 {
                return false;
            }
            *left -= 1;
            if is_it(counter) {
                return true;
            }
        }
        false
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
}
