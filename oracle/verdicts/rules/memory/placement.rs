//! Placement in an arena, with the lives that the replay finds: a storage that a collective in flight uses, or that
//! another alias still needs, is not free for others. Each device has an arena of its own.

use super::evidence::{MemoryEvidence, not_claimed};
use crate::graph::Str;
use crate::lifecycle::{ArenaFault, Placement, check_arena};
use crate::rules::{Checked, Code};
use rustc_hash::FxHashMap;

/// No two lives meet in a byte.
pub(super) fn disjoint(evidence: &MemoryEvidence) -> Checked {
    const RULE: &str = "memory/placement-disjoint";
    let Some(offsets) = &evidence.claim.offsets else { return not_claimed("offsets in an arena") };
    let replay = match evidence.truth() {
        Ok(replay) => replay,
        Err(unchecked) => return unchecked,
    };
    let (mut findings, mut doubt) = (Vec::new(), None);
    let index: FxHashMap<&str, usize> =
        offsets.iter().enumerate().map(|(i, o)| (o.name.as_str(), i)).collect();
    // What is not freed lives on after the last step.
    let never = replay.steps.steps.len() as u32;
    // One arena for each device, in the order in which they are first placed on.
    let mut arenas: Vec<(Option<Str>, Vec<Placement>)> = Vec::new();
    let mut arena_of: FxHashMap<Option<Str>, usize> = FxHashMap::default();
    // Where each offset went: its arena, and its number there.
    let mut placed: Vec<Option<(usize, usize)>> = vec![None; offsets.len()];
    for (i, offset) in offsets.iter().enumerate() {
        let Some(resolved) = evidence.resolve(&offset.name) else {
            let title = format!("{} is placed, which is no storage of the graph", offset.name);
            findings.push(evidence.finding(RULE, title, []));
            continue;
        };
        let (life, entry) = (replay.lives[resolved.storage], replay.ledger.entries[resolved.storage]);
        // Also where its device does not count for the sums, a storage has bytes.
        let bytes = match entry.bytes {
            Ok(bytes) => life.bytes.max(bytes.count),
            Err(why) => {
                doubt.get_or_insert(Code::SizeNotKnown.because(format!("{} is placed: {why}", offset.name)));
                continue;
            }
        };
        let arena = *arena_of.entry(entry.device).or_insert_with(|| {
            arenas.push((entry.device, Vec::new()));
            arenas.len() - 1
        });
        placed[i] = Some((arena, arenas[arena].1.len()));
        arenas[arena].1.push(Placement {
            name: offset.name.clone(),
            offset: offset.offset,
            bytes,
            start: life.start.unwrap_or(0),
            end: life.end.unwrap_or(never).max(life.start.unwrap_or(0)),
            in_place_of: None,
        });
    }
    for (offset, own) in offsets.iter().zip(&placed) {
        let (Some(of), &Some((arena, number))) = (&offset.in_place_of, own) else { continue };
        let base = index.get(of.as_str()).and_then(|&base| placed[base]);
        let base = base.filter(|base| base.0 == arena).map_or(usize::MAX, |base| base.1);
        arenas[arena].1[number].in_place_of = Some(base);
    }
    for fault in arenas.iter().flat_map(|(_, placements)| check_arena(placements, None)) {
        let names = match &fault {
            ArenaFault::Nonsense { name, .. } => vec![name],
            ArenaFault::Overlap { earlier, later, .. } => vec![later, earlier],
        };
        let resolved: Vec<_> = names.iter().filter_map(|name| evidence.resolve(name)).collect();
        if resolved.iter().any(|r| !evidence.is_certain(r.storage)) {
            doubt.get_or_insert(Code::MayShareMemory.because(format!("{fault}; but it may share memory")));
            continue;
        }
        let mut finding = evidence.finding(RULE, fault.to_string(), resolved.iter().map(|r| r.node));
        if let ArenaFault::Overlap { .. } = fault {
            let told = |r: &super::evidence::Resolved| {
                format!(
                    "{}: {}",
                    evidence.graph.name(r.node),
                    replay.held[r.storage].describe(evidence.graph)
                )
            };
            finding.facts = resolved.iter().rev().map(told).collect();
        }
        findings.push(finding);
    }
    Checked::found(findings, doubt)
}
