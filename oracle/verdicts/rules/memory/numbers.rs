//! Rules about numbers: what is live at each step, and the peak.

use super::evidence::{Counting, Found, MemoryEvidence, known, not_claimed};
use super::order::reordered;
use crate::case::{ClaimedLife, Increment};
use crate::graph::Graph;
use crate::memory::Tracker;
use crate::memory::profile::{not_placeholder, recorded_ledger};
use crate::memory::replay::{Options, replay};
use crate::rules::{Checked, Code, Finding};

/// Live bytes by a list of lives: before the first step, and after the allocations and the frees of each.
fn add_up(lives: &[ClaimedLife], steps: usize) -> Option<(i64, Vec<(i64, i64)>)> {
    let (mut allocated, mut freed) = (vec![0i64; steps], vec![0i64; steps]);
    let mut before = 0i64;
    for life in lives {
        match life.alloc {
            None => before = before.checked_add(life.bytes)?,
            Some(step) => {
                let slot = allocated.get_mut(step as usize)?;
                *slot = slot.checked_add(life.bytes)?;
            }
        }
        for &step in &life.frees {
            let slot = freed.get_mut(step as usize)?;
            *slot = slot.checked_add(life.bytes)?;
        }
    }
    let mut live = before;
    let mut sums = Vec::with_capacity(steps);
    for (allocated, freed) in allocated.into_iter().zip(freed) {
        live = live.checked_add(allocated)?;
        let peak = live;
        live = live.checked_sub(freed)?;
        sums.push((peak, live));
    }
    Some((before, sums))
}

/// The timeline adds up.
pub(super) fn timeline_conservation(evidence: &MemoryEvidence) -> Checked {
    const RULE: &str = "memory/timeline-conservation";
    let Some(lives) = &evidence.claim.lives else { return not_claimed("the lives of storages") };
    let steps = evidence.calls.len();
    let mut findings: Vec<Finding> = Vec::new();
    for life in lives {
        let outside = |&step: &u32| step as usize >= steps;
        let why = if life.bytes < 0 {
            format!("{} has {} bytes", life.name, life.bytes)
        } else if let Some(step) = life.alloc.iter().chain(&life.frees).copied().find(|step| outside(step)) {
            format!("{} is allocated or freed in step {step} of {steps}", life.name)
        } else if let Some(freed) = life.frees.iter().find(|&&f| life.alloc.is_some_and(|a| f < a)) {
            format!("{} is freed in step {freed}, before it is allocated", life.name)
        } else {
            continue;
        };
        let node = evidence.resolve(&life.name).map(|resolved| resolved.node);
        findings.push(evidence.finding(RULE, why, node));
    }
    if !findings.is_empty() {
        return Checked::Findings(findings);
    }
    if evidence.has_resizes() {
        return Checked::NotChecked("a storage changes its size: its life has no single one".into());
    }
    let Some((before, sums)) = add_up(lives, steps) else {
        let title = "the sum of the lives does not fit 64 bits".to_string();
        return Checked::Findings(vec![evidence.finding(RULE, title, [])]);
    };
    if let Some(claimed) = evidence.claim.before.filter(|&claimed| claimed != before) {
        let title =
            format!("{claimed} bytes are claimed before the first step, the lives add up to {before}");
        findings.push(evidence.finding(RULE, title, []));
    }
    if let Some(claimed) = &evidence.claim.steps {
        findings.extend(part(evidence, RULE, claimed, &sums, "the lives that cover it add up to"));
    }
    Checked::Findings(findings)
}

/// The first step in which two timelines part, as a finding.
fn part(
    evidence: &MemoryEvidence,
    rule: &'static str,
    claimed: &[(i64, i64)],
    known: &[(i64, i64)],
    truth_is: &str,
) -> Option<Finding> {
    if claimed.len() != known.len() {
        let title = format!("{} steps are claimed, the list has {}", claimed.len(), known.len());
        return Some(evidence.finding(rule, title, []));
    }
    let (step, (claim, truth)) = claimed.iter().zip(known).enumerate().find(|(_, (a, b))| a != b)?;
    let node = evidence.calls.get(step).copied();
    let (phase, claim, truth) = match claim.0 == truth.0 {
        false => ("after the allocations", claim.0, truth.0),
        true => ("after the frees", claim.1, truth.1),
    };
    let name = node.map_or("?", |node| evidence.graph.name(node));
    let mut finding =
        evidence.finding(rule, format!("the claim parts from the truth at step {step} ({name})"), node);
    finding.expected = Some(format!("{truth_is} {truth} bytes {phase} of the step"));
    finding.observed = Some(format!("{claim} bytes are claimed to be live"));
    Some(finding)
}

/// The peak is the maximum of the timeline.
pub(super) fn peak_post_alloc(evidence: &MemoryEvidence) -> Checked {
    const RULE: &str = "memory/peak-post-alloc";
    let claim = evidence.claim;
    let Some(peak) = claim.peak else { return not_claimed("a peak and the live bytes of the steps") };
    let lives = claim.lives.as_ref().filter(|_| !evidence.has_resizes());
    let by_lives = lives.and_then(|lives| add_up(lives, evidence.calls.len()));
    let (before, steps) = match (&claim.steps, by_lives) {
        (Some(steps), by_lives) => {
            (claim.before.or(by_lives.map(|(before, _)| before)).unwrap_or(0), steps.clone())
        }
        (None, Some(by_lives)) => by_lives,
        (None, None) => return not_claimed("a peak and the live bytes of the steps"),
    };
    let most = steps.iter().map(|&(peak, _)| peak).fold(before, i64::max);
    if peak == most {
        return Checked::Findings(Vec::new());
    }
    let step = steps.iter().position(|&(peak, _)| peak == most);
    let mut finding = evidence.finding(RULE, format!("the claimed peak is {peak} bytes"), []);
    finding.expected = Some(match step {
        Some(step) => format!("after the allocations of step {step}, {most} bytes are claimed to be live"),
        None => format!("{most} bytes are claimed to be live before the first step"),
    });
    Checked::Findings(vec![finding])
}

/// What is claimed is what the replay finds.
pub(super) fn estimate_equals_replay(evidence: &MemoryEvidence) -> Checked {
    const RULE: &str = "memory/estimate-equals-replay";
    let claim = evidence.claim;
    let lives = evidence.lives();
    if claim.steps.is_none() && claim.peak.is_none() && claim.before.is_none() && lives.is_err() {
        return not_claimed("a peak, the live bytes of the steps or the lives of storages");
    }
    let truth = known!(evidence.measured());
    let mut found = lives.map_or_else(|_| Found::default(), |lives| sizes(evidence, lives));
    let mut findings: Vec<Finding> = Vec::new();
    if let Some(before) = claim.before.filter(|&before| before != truth.before) {
        let title = format!("{before} bytes are claimed to be live before the first step");
        let mut finding = evidence.finding(RULE, title, []);
        finding.expected = Some(format!("{} are", truth.before));
        findings.push(finding);
    }
    if let Some(steps) = &claim.steps {
        let known: Vec<(i64, i64)> = truth.steps.iter().map(|step| (step.peak, step.after)).collect();
        findings.extend(part(evidence, RULE, steps, &known, "the storages that are live have"));
    }
    let (peak, step) = truth.peak();
    if let Some(claimed) = claim.peak.filter(|&claimed| claimed != peak && findings.is_empty()) {
        let node = step.and_then(|step| truth.steps.get(step as usize)).map(|step| step.node);
        let mut finding = evidence.finding(RULE, format!("the claimed peak is {claimed} bytes"), node);
        finding.expected = Some(match node {
            Some(node) => format!("at {} {peak} bytes are live", evidence.graph.name(node)),
            None => format!("{peak} bytes are live before the first step"),
        });
        findings.push(finding);
    }
    let is_certain = evidence.config.counting == Counting::Recorded || !evidence.has_doubt();
    findings.into_iter().for_each(|finding| found.add(is_certain, finding));
    found.checked()
}

/// Claimed lives of another size than their storage. What does not count, since it is in the memory of the host, may
/// be claimed without bytes; of an input a part is left to `memory/input-whole-storage`.
fn sizes(evidence: &MemoryEvidence, lives: &[ClaimedLife]) -> Found {
    let mut found = Found::default();
    let Ok(replay) = &evidence.replay else { return found };
    let sizes = replay.ledger.largest_sizes();
    for (storage, (life, resolved)) in evidence.storage_lives(lives) {
        let (Ok(bytes), entry) = (sizes[storage], &replay.ledger.entries[storage]) else { continue };
        let counts = evidence.devices.count(evidence.graph, entry.device);
        let is_part = entry.external && life.bytes < bytes;
        if life.bytes == bytes || is_part || (life.bytes == 0 && !counts) {
            continue;
        }
        let title = format!("{} counts {} bytes", life.name, life.bytes);
        let mut finding = evidence.finding("memory/estimate-equals-replay", title, [resolved.node]);
        finding.expected =
            Some(format!("the storage of {} has {bytes} bytes", evidence.graph.name(entry.by)));
        found.add(resolved.certain, finding);
    }
    found
}

/// Estimates of one peak agree.
pub(super) fn estimators_agree(evidence: &MemoryEvidence) -> Checked {
    let [(first, bytes), rest @ ..] = &evidence.claim.estimates[..] else {
        return not_claimed("several estimates");
    };
    if rest.is_empty() {
        return not_claimed("several estimates");
    }
    let mut findings = Vec::new();
    for (other, found) in rest.iter().filter(|(_, found)| found != bytes) {
        let title = format!("{first} and {other} estimate different peaks");
        let mut finding = evidence.finding("memory/estimators-agree", title, []);
        finding.expected = Some(format!("{first} says {bytes} bytes"));
        finding.observed = Some(format!("{other} says {found} bytes"));
        findings.push(finding);
    }
    Checked::Findings(findings)
}

/// The timeline of an order, by the count that the claim is measured by.
fn recomputed(evidence: &MemoryEvidence, increment: &Increment) -> Result<Vec<(i64, i64)>, String> {
    let graph = evidence.graph;
    match evidence.config.counting {
        Counting::Physical => {
            let graph = reordered(graph, &increment.order)?;
            let donated = |graph: &Graph, id: crate::graph::NodeId| {
                evidence.config.donated.iter().any(|name| name == graph.name(id))
            };
            let options =
                Options { devices: evidence.devices, unbacked: evidence.config.unbacked, donated: &donated };
            let replay = replay(&graph, options).map_err(|why| why.to_string())?;
            Ok(replay.steps.steps.iter().map(|step| (step.peak, step.after)).collect())
        }
        Counting::Recorded => {
            let ledger = recorded_ledger(graph);
            let mut tracker = Tracker::new(graph, &ledger, evidence.devices, &not_placeholder)
                .map_err(|why| why.to_string())?;
            let mut steps = Vec::with_capacity(increment.order.len());
            for name in &increment.order {
                let node =
                    graph.find(name).ok_or_else(|| format!("the order names {name}, which is no node"))?;
                tracker.schedule(node).map_err(|why| why.to_string())?;
                steps.push((tracker.last_peak(), tracker.current()));
            }
            Ok(steps)
        }
    }
}

/// Incremental values are those of a recomputation.
pub(super) fn incremental_equals_recompute(evidence: &MemoryEvidence) -> Checked {
    const RULE: &str = "memory/incremental-equals-recompute";
    let Some(increments) = &evidence.claim.increments else {
        return not_claimed("an incremental tracker's values");
    };
    let mut findings = Vec::new();
    for (swap, increment) in increments.iter().enumerate() {
        let known = match recomputed(evidence, increment) {
            Ok(known) => known,
            Err(why) => return Checked::undecided(Code::NoReplay, format!("swap {swap}: {why}")),
        };
        let parted = increment.steps.iter().zip(&known).position(|(a, b)| a != b);
        let title = match parted {
            _ if increment.steps.len() != known.len() => {
                format!("after swap {swap}, {} steps are told of {}", increment.steps.len(), known.len())
            }
            Some(step) => {
                format!("after swap {swap}, the values part at step {step} ({})", increment.order[step])
            }
            None => continue,
        };
        let node = parted.and_then(|step| evidence.graph.find(&increment.order[step]));
        let mut finding = evidence.finding(RULE, title, node);
        if let Some(step) = parted {
            let words = |(peak, after): (i64, i64)| {
                format!("{peak} bytes after its allocations, {after} after its frees")
            };
            finding.expected = Some(format!("recomputed it is {}", words(known[step])));
            finding.observed = Some(format!("the tracker says {}", words(increment.steps[step])));
        }
        findings.push(finding);
    }
    Checked::Findings(findings)
}

/// Foreseen peaks come true.
pub(super) fn peak_after_each_swap(evidence: &MemoryEvidence) -> Checked {
    const RULE: &str = "memory/peak-after-each-swap";
    let foreseen = evidence.claim.increments.iter().flatten().enumerate();
    let foreseen: Vec<_> = foreseen.filter_map(|(i, inc)| Some((i, inc, inc.potential.as_ref()?))).collect();
    if foreseen.is_empty() {
        return not_claimed("potential peaks of swaps");
    }
    let mut findings = Vec::new();
    for (swap, increment, (moved, potential)) in foreseen {
        let known = match recomputed(evidence, increment) {
            Ok(known) => known,
            Err(why) => return Checked::undecided(Code::NoReplay, format!("swap {swap}: {why}")),
        };
        let places = increment.order.iter().zip(&known).filter(|(name, _)| moved.contains(name));
        let Some((name, peak)) = places.map(|(name, &(peak, _))| (name, peak)).max_by_key(|&(_, peak)| peak)
        else {
            continue;
        };
        if peak != *potential {
            let title = format!("before swap {swap}, a peak of {potential} bytes was foreseen");
            let mut finding = evidence.finding(RULE, title, evidence.graph.find(name));
            finding.expected = Some(format!("after it, {peak} bytes are live at {name}"));
            findings.push(finding);
        }
    }
    Checked::Findings(findings)
}

/// A verifier says the same of the same run.
pub(super) fn verifier_idempotent(evidence: &MemoryEvidence) -> Checked {
    let Some([first, rest @ ..]) = evidence.claim.verifier_runs.as_deref() else {
        return not_claimed("what a verifier says of several runs");
    };
    let mut findings = Vec::new();
    for (run, said) in rest.iter().enumerate().filter(|(_, said)| *said != first) {
        let differs = first.iter().zip(said).position(|(a, b)| a != b).unwrap_or(first.len().min(said.len()));
        let word = |of: &[String]| of.get(differs).cloned().unwrap_or_else(|| "nothing".to_string());
        let title =
            format!("the verifier changes its mind about one and the same run, the {}. time", run + 2);
        let mut finding = evidence.finding("memory/verifier-idempotent", title, []);
        finding.expected = Some(format!("the first time it says: {}", word(first)));
        finding.observed = Some(format!("then it says: {}", word(said)));
        findings.push(finding);
    }
    Checked::Findings(findings)
}
