//! Placement in an arena, with the lives that the replay finds: a storage that a collective in flight uses, or that
//! another alias still needs, is not free for others.

use super::evidence::{MemoryEvidence, found, not_claimed};
use crate::lifecycle::{ArenaFault, Placement, check_arena};
use crate::rules::Checked;
use rustc_hash::FxHashMap;

/// No two lives meet in a byte.
pub(super) fn disjoint(evidence: &MemoryEvidence) -> Checked {
    const RULE: &str = "memory/placement-disjoint";
    let Some(offsets) = &evidence.claim.offsets else { return not_claimed("offsets in an arena") };
    let replay = match evidence.truth() {
        Ok(replay) => replay,
        Err(unchecked) => return unchecked,
    };
    let (mut findings, mut doubts) = (Vec::new(), Vec::new());
    let index: FxHashMap<&str, usize> =
        offsets.iter().enumerate().map(|(i, o)| (o.name.as_str(), i)).collect();
    let last = (replay.steps.steps.len() as u32).saturating_sub(1);
    let mut placements = Vec::with_capacity(offsets.len());
    for offset in offsets {
        let Some(resolved) = evidence.resolve(&offset.name) else {
            let title = format!("{} is placed, which is no storage of the graph", offset.name);
            findings.push(evidence.finding(RULE, title, []));
            placements.push(Placement { name: offset.name.clone(), ..Placement::default() });
            continue;
        };
        let life = replay.lives[resolved.storage];
        placements.push(Placement {
            name: offset.name.clone(),
            offset: offset.offset,
            bytes: life.bytes,
            start: life.start.unwrap_or(0),
            end: life.end.unwrap_or(last).max(life.start.unwrap_or(0)),
            in_place_of: offset
                .in_place_of
                .as_ref()
                .map(|of| index.get(of.as_str()).copied().unwrap_or(usize::MAX)),
        });
    }
    for fault in check_arena(&placements, None) {
        let names = match &fault {
            ArenaFault::Nonsense { name, .. } => vec![name],
            ArenaFault::Overlap { earlier, later, .. } => vec![later, earlier],
        };
        let resolved: Vec<_> = names.iter().filter_map(|name| evidence.resolve(name)).collect();
        if resolved.iter().any(|r| !evidence.is_certain(r.storage)) {
            doubts.push(format!("{fault}; but it may share memory"));
            continue;
        }
        let mut finding = evidence.finding(RULE, fault.to_string(), resolved.iter().map(|r| r.node));
        if let ArenaFault::Overlap { .. } = fault {
            let told = |r: &super::evidence::Resolved| {
                format!("{}: {}", evidence.graph.name(r.node), replay.held[r.storage].tell(evidence.graph))
            };
            finding.facts = resolved.iter().rev().map(told).collect();
        }
        findings.push(finding);
    }
    found(findings, doubts)
}
