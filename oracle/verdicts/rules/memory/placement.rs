//! Placement in an arena, with the lives that the replay finds: a storage that a collective in flight uses, or that
//! another alias still needs, is not free for others. Each device has an arena of its own.
//!
//! All names of one storage (views, in-place results, other aliases) stand for one entry, whose place is that of the
//! storage's first byte. So the claim is first held against itself: entries of one storage must agree.

use super::evidence::{Found, MemoryEvidence, Resolved, not_claimed};
use crate::analysis::StorageIndex;
use crate::analysis::bytes::{ByteSet, Overlap};
use crate::case::Offset;
use crate::graph::{Str, Tensor};
use crate::lifecycle::{ArenaFault, Placement, check_arena};
use crate::ops::Kind;
use crate::rules::{Checked, Code};
use crate::words;
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

/// Whether a storage may take over the memory of another one, which the call that makes it reads: each element that it
/// writes replaces one that only this element of the result needs.
fn check_in_place(evidence: &MemoryEvidence, [heir, base]: [&Placed; 2], found: &mut Found) {
    let (graph, storages) = (evidence.graph, &evidence.facts.storages);
    let made = storages.storage(StorageIndex(heir.resolved.storage as u32));
    let Some(result) = storages.tensor(made.by, made.place as usize).map(|id| graph.tensor(id)) else {
        return;
    };
    let kind = evidence.facts.ops.get(graph, made.by).kind;
    let bytes = |tensor: &Tensor, place: &Placed| {
        let width = i64::from(tensor.dtype.itemsize());
        let start = tensor.offset.checked_mul(width)?.checked_add(place.entry.offset)?;
        let (sizes, strides) = graph.sizes(tensor.shape).zip(graph.sizes(tensor.stride))?;
        let set = ByteSet::of_window(start, &sizes, &strides, width);
        let dims = sizes.into_iter().zip(strides).filter(|&(size, _)| size != 1);
        Some((set, (start, width, dims.collect::<Vec<_>>())))
    };
    let written = bytes(result, heir);
    for input in graph.inputs(made.by) {
        let shows_base = storages.all_parts(input).any(|part| part.storage.index() == base.resolved.storage);
        let Some(operand) = graph.tensor_of(input).filter(|_| shows_base && !matches!(kind, Kind::Fill(_)))
        else {
            continue;
        };
        let read = bytes(operand, base);
        let overlap = written.as_ref().zip(read.as_ref()).map(|(a, b)| a.0.overlap(b.0));
        let is_one = written.as_ref().zip(read.as_ref()).is_some_and(|(a, b)| a.1 == b.1);
        if overlap == Some(Overlap::No) || (is_one && kind.takes_corresponding()) {
            continue;
        }
        let [name, from] = [made.by, input].map(|id| graph.name(id));
        let title = format!("{name} overwrites elements of {from} that it still reads");
        // Of an operator that is not known, nor which elements it needs.
        let is_known =
            overlap == Some(Overlap::Yes) && !matches!(kind, Kind::Opaque | Kind::Unknown | Kind::Random(_));
        if !is_known {
            let why = format!(
                "{name} takes over the memory of {from}; whether it needs other elements of it is not known"
            );
            found.doubt.get_or_insert_with(|| Code::NotModelled.because(why));
            continue;
        }
        let mut finding = evidence.finding(RULE, title, [made.by, input]);
        finding.expected = Some("an element is replaced by the one that is made of it alone".to_string());
        finding.observed = Some(match kind.takes_corresponding() {
            true => format!("{name} and {from} are not laid out alike"),
            false => format!("an element of {name} is made of other elements of {from}"),
        });
        found.add(evidence.is_certain(base.resolved.storage), finding);
    }
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
    let needs_place = |&storage: &usize| {
        let life = replay.lives[storage];
        life.bytes > 0 && life.start.and(life.end).is_some() && evidence.is_certain(storage)
    };
    let mut unplaced =
        (0..replay.lives.len()).filter(needs_place).filter(|storage| !of.contains_key(storage));
    if let Some(storage) = unplaced.next() {
        let (by, more) = (replay.lives[storage].by, unplaced.count());
        let others = if more > 0 { format!(", nor {}", words::count(more, "other")) } else { String::new() };
        let title = format!("{} has no place in the arena{others}", evidence.owner(storage));
        let mut finding = evidence.finding(RULE, title, [by]);
        finding.expected = Some("what a step makes and another one frees has a place".to_string());
        finding.observed = Some("the claim gives it none".to_string());
        found.add(true, finding);
    } else if offsets.is_empty() {
        return Checked::NotChecked("no storage needs a place, and none has one".into());
    }
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
    let mut bases: Vec<(usize, usize)> = Vec::new();
    for (own_place, (heir, own)) in placed.iter().zip(&numbers).enumerate() {
        let (Some(base), &Some((arena, number))) = (heir.in_place_of, own) else { continue };
        let base = of.get(&base).filter(|&&base| numbers[base].is_some_and(|base| base.0 == arena)).copied();
        let number_of = |base: usize| numbers[base].map_or(usize::MAX, |base| base.1);
        arenas[arena][number].in_place_of = Some(base.map_or(usize::MAX, number_of));
        bases.extend(base.map(|base| (own_place, base)));
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
    // What is made while its memory is still needed elsewhere is found above.
    if found.findings.is_empty() {
        bases
            .iter()
            .for_each(|&(heir, base)| check_in_place(evidence, [&placed[heir], &placed[base]], &mut found));
    }
    found.checked()
}
