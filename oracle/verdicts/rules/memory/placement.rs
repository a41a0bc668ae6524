//! Placement in an arena, with the lives that the replay finds: a storage that a collective in flight uses, or that
//! another alias still needs, is not free for others. Each device has an arena of its own.
//!
//! All names of one storage (views, in-place results, other aliases) stand for one entry, whose place is that of the
//! storage's first byte. So the claim is first held against itself: entries of one storage must agree.

use super::evidence::{Found, MemoryEvidence, Resolved, not_claimed};
use crate::case::Offset;
use crate::graph::Str;
use crate::lifecycle::{ArenaFault, Placement, check_arena};
use crate::rules::{Checked, Code};
use rustc_hash::FxHashMap;

const RULE: &str = "memory/placement-disjoint";

/// A storage of the graph and the place that a claim gives it.
struct Placed<'c> {
    entry: &'c Offset,
    resolved: Resolved,
    /// The storage whose memory it takes over; no storage of the graph has the number `usize::MAX`.
    in_place_of: Option<usize>,
}

/// The storages that a claim places, each once, in the order of the claim; and where each storage stands among them.
fn places<'c>(
    evidence: &MemoryEvidence<'c>,
    offsets: &'c [Offset],
    found: &mut Found,
) -> (Vec<Placed<'c>>, FxHashMap<usize, usize>) {
    let (mut placed, mut of): (Vec<Placed>, FxHashMap<usize, usize>) = Default::default();
    for entry in offsets {
        let name = &entry.name;
        let Some(resolved) = evidence.resolve(name) else {
            let title = format!("{name} is placed, which is no storage of the graph");
            found.add(evidence.parts(name).is_empty(), evidence.finding(RULE, title, []));
            continue;
        };
        let base = entry.in_place_of.as_ref();
        let base = base.map(|of| evidence.resolve(of).map_or(usize::MAX, |base| base.storage));
        let in_place_of = base.filter(|&base| base != resolved.storage);
        let number = *of.entry(resolved.storage).or_insert(placed.len());
        let Some(first) = placed.get_mut(number) else {
            placed.push(Placed { entry, resolved, in_place_of });
            continue;
        };
        let bases = first.in_place_of.zip(in_place_of);
        let title = if first.entry.offset != entry.offset {
            let at = |entry: &Offset| format!("{} is placed at byte {}", entry.name, entry.offset);
            format!("{}, and {}", at(first.entry), at(entry))
        } else if bases.is_some_and(|(first, own)| first != own) {
            format!("{name} takes over the memory of two storages")
        } else {
            first.in_place_of = first.in_place_of.or(in_place_of);
            continue;
        };
        let mut finding = evidence.finding(RULE, title, [first.resolved.node, resolved.node]);
        finding.expected = Some(format!("one place for the storage of {}", evidence.owner(resolved.storage)));
        found.add(*name == first.entry.name || (resolved.certain && first.resolved.certain), finding);
    }
    // What a name may also stand for has one place too.
    for Placed { entry, .. } in placed.iter().filter(|placed| !placed.resolved.certain) {
        let others = evidence.parts(&entry.name).iter().filter_map(|part| of.get(&part.storage.index()));
        for other in others.map(|&other| placed[other].entry).filter(|other| other.offset != entry.offset) {
            found.doubt(&format!("{} is placed elsewhere than {}", entry.name, other.name));
        }
    }
    (placed, of)
}

/// No two lives meet in a byte.
pub(super) fn disjoint(evidence: &MemoryEvidence) -> Checked {
    let Some(offsets) = &evidence.claim.offsets else { return not_claimed("offsets in an arena") };
    let mut found = Found::default();
    let (placed, of) = places(evidence, offsets, &mut found);
    let replay = match evidence.truth() {
        Ok(replay) => replay,
        Err(unchecked) if found.findings.is_empty() => return unchecked,
        Err(_) => return found.checked(),
    };
    // Also where its device does not count for the sums, a storage has bytes.
    let sizes = replay.ledger.largest_sizes();
    // What is not freed lives on after the last step.
    let never = replay.steps.steps.len() as u32;
    // One arena for each device, in the order in which they are first placed on.
    let mut arenas: Vec<Vec<Placement>> = Vec::new();
    let mut arena_of: FxHashMap<Option<Str>, usize> = FxHashMap::default();
    // The arena of each storage, and its number there.
    let mut numbers: Vec<Option<(usize, usize)>> = Vec::with_capacity(placed.len());
    for Placed { entry, resolved, .. } in &placed {
        let life = replay.lives[resolved.storage];
        let start = life.start.unwrap_or(0);
        let bytes = match sizes[resolved.storage] {
            Ok(bytes) => bytes,
            Err(why) => {
                let why = Code::SizeNotKnown.because(format!("{} is placed: {why}", entry.name));
                found.doubt.get_or_insert(why);
                numbers.push(None);
                continue;
            }
        };
        let next = arenas.len();
        let arena = *arena_of.entry(replay.ledger.entries[resolved.storage].device).or_insert(next);
        if arena == next {
            arenas.push(Vec::new());
        }
        numbers.push(Some((arena, arenas[arena].len())));
        arenas[arena].push(Placement {
            name: entry.name.clone(),
            offset: entry.offset,
            bytes,
            start,
            end: life.end.unwrap_or(never).max(start),
            in_place_of: None,
        });
    }
    for (placed, own) in placed.iter().zip(&numbers) {
        let (Some(base), &Some((arena, number))) = (placed.in_place_of, own) else { continue };
        let base = of.get(&base).and_then(|&base| numbers[base]).filter(|base| base.0 == arena);
        arenas[arena][number].in_place_of = Some(base.map_or(usize::MAX, |base| base.1));
    }
    for fault in arenas.iter().flat_map(|placements| check_arena(placements, None)) {
        let names = match &fault {
            ArenaFault::Nonsense { name, .. } => vec![name],
            ArenaFault::Overlap { earlier, later, .. } => vec![later, earlier],
        };
        let resolved: Vec<_> = names.iter().filter_map(|name| evidence.resolve(name)).collect();
        let mut finding = evidence.finding(RULE, fault.to_string(), resolved.iter().map(|r| r.node));
        let is_overlap = matches!(fault, ArenaFault::Overlap { .. });
        if is_overlap {
            let held = |r: &Resolved| {
                let held = replay.held[r.storage].describe(evidence.graph);
                format!("{}: {held}", evidence.graph.name(r.node))
            };
            finding.facts = resolved.iter().rev().map(held).collect();
        }
        let is_certain = resolved.iter().all(|r| evidence.is_certain(r.storage));
        found.add(is_certain || !is_overlap, finding);
    }
    found.checked()
}
