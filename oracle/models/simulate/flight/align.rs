//! Where in its graph a rank is, by what it launched.
//!
//! # The idea
//!
//! A graph launches its collectives in a fixed order, again and again, step after step. So the end of a rank's record,
//! as far as it is on groups of the graph, should be a piece of that round. Of each launch the kind, the group, the
//! element type and the numbers of elements are compared, and the place in the round is taken at which the longest
//! piece fits. Where several places fit as well, all are told and none is chosen. Linear in both, by the Z function.
//!
//! Groups are matched by name and size, then by ranks, then by size where no other group has it; a group without a
//! partner is told and left out. A record may hold what other graphs launch; so the fit may begin in the middle, and
//! how long it is is told.
//!
//! # What it does not do
//!
//! Kinds, types and sizes are not identities: two collectives that agree in all of that trade places unseen.

use super::{FlightRank, Flights, Launched};
use crate::graph::{Dtype, World};
use crate::ops::Collective;
use crate::simulate::{Operation, Program};
use rustc_hash::FxHashMap;

/// Launches at the end of a record that may be none of the graph's, and still the ones before them are looked at.
const TAIL: usize = 8;

/// Rounds of the graph that are compared at most.
const ROUNDS: usize = 3;

/// A place in the round of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The launch of the rank: an index into its launches.
    pub launch: usize,
    /// The operation of its program: an index.
    pub operation: usize,
}

/// How the end of a record fits a graph.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Alignment {
    /// The last launch that fits, with the operations that it may be: one where the place is known.
    pub last: Vec<Place>,
    /// How many launches in a row fit, that one included.
    pub fits: usize,
    /// How many launches of the record are on the graph's groups.
    pub of: usize,
    /// The launch after it that is on a group of the graph and not what the graph launches next.
    pub deviates: Option<usize>,
    /// For each launch in the row, where the place is known, the operation that it is; by launch.
    pub row: Vec<Place>,
    /// Recorded groups that the graph does not have.
    pub unknown_groups: Vec<usize>,
    /// Whether sizes of the graph are not known, so that they are not compared.
    pub without_sizes: bool,
}

/// What is compared of a launch: its group, kind, type and sizes.
type Key = (usize, Collective, Option<Dtype>, [Option<i64>; 2]);

/// Aligns the record of a rank with the program that it should have run.
pub fn align(flights: &Flights, rank: u32, program: &Program, world: &World) -> Alignment {
    let mut alignment = Alignment::default();
    let Some(of) = flights.ranks.get(&rank) else { return alignment };
    let groups = match_groups(flights, rank, of, program, world, &mut alignment.unknown_groups);
    let has_sizes = |kind: Collective| {
        use Collective::{AllGather, AllReduce, Broadcast, ReduceScatter};
        matches!(kind, AllReduce | AllGather | ReduceScatter | Broadcast)
    };
    alignment.without_sizes = program.operations.iter().any(|operation| {
        let sizes = [operation.numel_in, operation.numel_out];
        has_sizes(operation.kind) && (sizes.contains(&None) || operation.dtype.is_none())
    });
    let sizes = !alignment.without_sizes;
    let key = |group: usize, kind: Collective, dtype: Option<Dtype>, elements: [Option<i64>; 2]| -> Key {
        match has_sizes(kind) && sizes {
            true => (group, kind, dtype, elements),
            false => (group, kind, None, [None; 2]),
        }
    };
    // The classes of the graph's operations, and those of the record's launches: 0 where the graph has none like it.
    let mut classes: FxHashMap<Key, u32> = FxHashMap::default();
    let mut names: FxHashMap<&str, usize> = FxHashMap::default();
    let mut round = Vec::with_capacity(program.operations.len());
    for operation in &program.operations {
        let next = names.len();
        let group = *names.entry(operation.group.as_str()).or_insert(next);
        let key = key(group, operation.kind, operation.dtype, [operation.numel_in, operation.numel_out]);
        let next = classes.len() as u32 + 1;
        round.push(*classes.entry(key).or_insert(next));
    }
    let mut record = Vec::new();
    for (i, launch) in of.launches.iter().enumerate() {
        let Some(group) = groups.get(&launch.group).and_then(|name| names.get(name)) else { continue };
        let class = launch.kind.map(|kind| key(*group, kind, launch.dtype, launch.elements));
        record.push((i, class.and_then(|class| classes.get(&class)).copied().unwrap_or(0)));
    }
    alignment.of = record.len();
    let best = (0..record.len().min(TAIL)).map(|left_out| {
        let end = record.len() - left_out;
        let fits = fits(&record[..end], &round);
        let longest = fits.iter().copied().max().unwrap_or(0);
        // Of equal ones that which goes back to the beginning of the record, where no other launches stand before it.
        ((longest, longest == end.min(round.len().saturating_mul(ROUNDS))), end, fits)
    });
    // Then the later end, which comes first.
    let best = best.reduce(|best, other| if other.0 > best.0 { other } else { best });
    let Some(((length, _), end, fits)) = best.filter(|best| best.0.0 > 0) else { return alignment };
    let Some(&(last, _)) = record.get(end - 1) else { return alignment };
    let places = (0..round.len()).filter(|&operation| fits[operation] == length);
    alignment.last = places.map(|operation| Place { launch: last, operation }).collect();
    alignment.fits = length;
    alignment.deviates = record.get(end).map(|(launch, _)| *launch);
    if let [place] = alignment.last[..] {
        let launches = record[end - length..end].iter().rev().map(|(launch, _)| *launch);
        let back = |steps: usize| (place.operation + round.len() - steps % round.len()) % round.len();
        let row = launches.enumerate().map(|(steps, launch)| Place { launch, operation: back(steps) });
        alignment.row = row.collect();
        alignment.row.reverse();
    }
    alignment
}

/// For each operation of the round, how many launches up to the end of the record fit if it is the last of them.
fn fits(record: &[(usize, u32)], round: &[u32]) -> Vec<usize> {
    let length = record.len().min(round.len().saturating_mul(ROUNDS));
    // Backwards: the record, what is in neither, and the round as often as it may be needed.
    let mut text: Vec<u32> = record.iter().rev().take(length).map(|(_, class)| *class).collect();
    text.push(u32::MAX);
    text.extend(round.iter().rev().cycle().take(round.len() + length));
    // What the graph does not have fits nothing.
    let z = z_function(&text);
    (0..round.len()).map(|operation| z[length + 1 + (round.len() - 1 - operation)].min(length)).collect()
}

/// For each place of a text the length of the longest piece from there that the text begins with.
pub(super) fn z_function(text: &[u32]) -> Vec<usize> {
    let mut z = vec![0; text.len()];
    let (mut left, mut right) = (0, 0);
    for i in 1..text.len() {
        if i < right {
            z[i] = z[i - left].min(right - i);
        }
        while i + z[i] < text.len() && text[z[i]] == text[i + z[i]] {
            z[i] += 1;
        }
        if i + z[i] > right {
            (left, right) = (i, i + z[i]);
        }
    }
    z
}

/// For each recorded group that the rank used the graph's name for it; those without one go into `unknown`.
fn match_groups<'p>(
    flights: &Flights,
    rank: u32,
    of: &FlightRank,
    program: &'p Program,
    world: &'p World,
    unknown: &mut Vec<usize>,
) -> FxHashMap<usize, &'p str> {
    let mut used: Vec<usize> = of.launches.iter().map(|launch: &Launched| launch.group).collect();
    used.sort_unstable();
    used.dedup();
    let mut names: Vec<&'p str> =
        program.operations.iter().map(|operation: &'p Operation| operation.group.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let world_group = |name: &str| world.groups.iter().find(|group| group.name == name);
    let size = |name: &str| world_group(name).map(|group| group.size as usize);
    let ranks = |name: &str| {
        let group = world_group(name)?;
        let (instance, _) = group.instance_of(rank)?;
        group.instances.get(instance).cloned()
    };
    let known = |group: usize| flights.groups.get(group).is_some_and(|group| group.ranks.is_some());
    // Where no dump says which ranks a group has, those that used it.
    let recorded = |group: usize| flights.members(group);
    let mut matched: FxHashMap<usize, &'p str> = FxHashMap::default();
    type Fits<'f> = &'f dyn Fn(usize, &str) -> bool;
    let by_name: Fits = &|group, name| {
        let same = flights.groups.get(group).is_some_and(|group| group.name == name);
        same && (!known(group) || size(name).is_none_or(|size| size == recorded(group).len()))
    };
    let by_ranks: Fits = &|group, name| ranks(name) == Some(recorded(group));
    let by_size: Fits = &|group, name| {
        let own = recorded(group).len();
        let is_only = |names: &[&str]| names.iter().filter(|other| size(other) == Some(own)).count() == 1;
        let of_size = |other: &&usize| recorded(**other).len() == own;
        size(name) == Some(own) && is_only(&names) && used.iter().filter(of_size).count() == 1
    };
    for fits in [by_name, by_ranks, by_size] {
        for &group in &used {
            let is_free = |name: &&&str| !matched.values().any(|taken| taken == *name);
            if !matched.contains_key(&group)
                && let Some(name) = names.iter().filter(is_free).find(|name| fits(group, name))
            {
                matched.insert(group, name);
            }
        }
    }
    unknown.extend(used.into_iter().filter(|group| !matched.contains_key(group)));
    matched
}
