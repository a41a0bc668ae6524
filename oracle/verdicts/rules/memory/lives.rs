//! Rules about the lives of storages: allocated in time, freed once, late enough, and at all.

use super::evidence::{MemoryEvidence, Resolved, found};
use crate::analysis::Edges;
use crate::analysis::topological::violations;
use crate::case::ClaimedLife;
use crate::memory::Held;
use crate::rules::{Checked, Finding};
use rustc_hash::FxHashMap;

macro_rules! claimed {
    ($evidence:expr) => {
        match $evidence.lives() {
            Ok(found) => found,
            Err(unchecked) => return unchecked,
        }
    };
}

/// Allocated before use, defined once.
pub(super) fn alloc_before_use(evidence: &MemoryEvidence) -> Checked {
    const RULE: &str = "memory/alloc-before-use";
    let graph = evidence.graph;
    let mut findings: Vec<Finding> = violations(graph, &Edges::new(graph))
        .into_iter()
        .map(|violation| evidence.finding(RULE, violation.describe(graph), [violation.node()]))
        .collect();
    let Ok((replay, lives)) = evidence.lives() else {
        return match findings.is_empty() && evidence.claim.order.is_none() {
            true => claimed_nothing(evidence),
            false => Checked::Findings(findings),
        };
    };
    let mut first: FxHashMap<&str, usize> = FxHashMap::default();
    for (i, life) in lives.iter().enumerate() {
        if let Some(&earlier) = first.get(life.name.as_str()) {
            let title = format!("{} is defined twice", life.name);
            let node = evidence.resolve(&life.name).map(|resolved| resolved.node);
            let mut finding = evidence.finding(RULE, title, node);
            finding.facts = vec![
                format!("one life of it begins {}", begin(&lives[earlier])),
                format!("another one begins {}", begin(life)),
            ];
            findings.push(finding);
            continue;
        }
        first.insert(&life.name, i);
        let Some(resolved) = evidence.resolve(&life.name) else {
            if graph.find(&life.name).is_none() {
                let title = format!("the life of {} is claimed, which no node makes", life.name);
                findings.push(evidence.finding(RULE, title, []));
            }
            continue;
        };
        let truth = replay.lives[resolved.storage];
        let late = match (life.alloc, truth.start) {
            (Some(claimed), Some(needed)) => resolved.owner && claimed > needed,
            (Some(_), None) => resolved.owner,
            (None, _) => false,
        };
        if late {
            let title = format!("{} is used before it is allocated", life.name);
            let mut finding = evidence.finding(RULE, title, [resolved.node]);
            finding.expected = Some(match truth.start {
                Some(step) => format!("{} writes it", evidence.step(replay, step)),
                None => "it is there before the first step".to_string(),
            });
            finding.observed = Some(format!("by the claim its memory is there from {}", begin(life)));
            findings.push(finding);
        }
    }
    let speakers = evidence.speakers(lives);
    for (storage, life) in replay.lives.iter().enumerate() {
        if life.bytes > 0
            && life.start.is_some()
            && !speakers.contains_key(&storage)
            && evidence.is_certain(storage)
        {
            let title = format!("no life is claimed for the {} bytes of {}", life.bytes, graph.name(life.by));
            findings.push(evidence.finding(RULE, title, [life.by]));
        }
    }
    Checked::Findings(findings)
}

fn claimed_nothing(evidence: &MemoryEvidence) -> Checked {
    match evidence.lives() {
        Err(unchecked) => unchecked,
        Ok(_) => Checked::Findings(Vec::new()),
    }
}

fn begin(life: &ClaimedLife) -> String {
    life.alloc.map_or("before the first step".to_string(), |step| format!("in step {step}"))
}

/// Not freed while anybody holds it.
pub(super) fn no_use_after_free(evidence: &MemoryEvidence) -> Checked {
    let (replay, lives) = claimed!(evidence);
    let (mut findings, mut doubts) = (Vec::new(), Vec::new());
    let speakers = evidence.speakers(lives);
    // Whose bytes do not count for the sums, for the sake of its device, may still not be freed too early.
    let of_no_account = |resolved: &Resolved| {
        let entry = &replay.ledger.entries[resolved.storage];
        resolved.owner
            && !evidence.devices.count(evidence.graph, entry.device)
            && entry.bytes.is_ok_and(|bytes| bytes.count > 0)
    };
    for (i, life) in lives.iter().enumerate() {
        let (Some(resolved), Some(&freed)) = (evidence.resolve(&life.name), life.frees.iter().min()) else {
            continue;
        };
        if speakers.get(&resolved.storage) != Some(&i) || (life.bytes == 0 && !of_no_account(&resolved)) {
            continue;
        }
        let (held, truth) = (replay.held[resolved.storage], replay.lives[resolved.storage]);
        let needed = match (held, truth.end) {
            (Held::Caller | Held::Output(_), _) => continue,
            (Held::NeverWaited(_), _) => u32::MAX,
            (_, Some(end)) => end,
            (_, None) => continue,
        };
        if freed >= needed {
            continue;
        }
        let title = format!("{} is freed while it is needed", life.name);
        if !evidence.is_certain(resolved.storage) {
            doubts.push(format!("{title}, or not: it may share memory"));
            continue;
        }
        let witness = match held {
            Held::By(node) | Held::InFlight { wait: node, .. } | Held::NeverWaited(node) => Some(node),
            _ => None,
        };
        let mut finding =
            evidence.finding("memory/no-use-after-free", title, [resolved.node].into_iter().chain(witness));
        if let Some(user) = witness {
            finding.facts.extend(alias_chain(evidence, user, resolved.storage));
        }
        finding.expected = Some(match needed {
            u32::MAX => held.describe(evidence.graph),
            needed => format!("{}, in step {needed}", held.describe(evidence.graph)),
        });
        finding.observed = Some(format!("by the claim it is freed after {}", evidence.step(replay, freed)));
        findings.push(finding);
    }
    found(findings, doubts)
}

/// Through which of its inputs a node uses a storage that another one made.
fn alias_chain(evidence: &MemoryEvidence, user: crate::graph::NodeId, storage: usize) -> Option<String> {
    let (graph, storages) = (evidence.graph, &evidence.facts.storages);
    let owner = evidence.replay.as_ref().ok()?.lives[storage].by;
    let mut inputs = graph.inputs(user).into_iter();
    let alias = inputs.find(|&n| storages.all_parts(n).any(|part| part.storage.index() == storage))?;
    let (name, user) = (graph.name(alias), graph.name(user));
    (alias != owner).then(|| format!("{user} takes {name}, which is memory of {}", graph.name(owner)))
}

/// What belongs to the caller stays.
pub(super) fn protected_never_freed(evidence: &MemoryEvidence) -> Checked {
    let (replay, lives) = claimed!(evidence);
    let mut findings = Vec::new();
    let speakers = evidence.speakers(lives);
    for (i, life) in lives.iter().enumerate() {
        let (Some(resolved), Some(&freed)) = (evidence.resolve(&life.name), life.frees.first()) else {
            continue;
        };
        let held = replay.held[resolved.storage];
        if speakers.get(&resolved.storage) != Some(&i) || !matches!(held, Held::Caller | Held::Output(_)) {
            continue;
        }
        let title = format!("{} is freed, which belongs to the caller", life.name);
        let mut finding = evidence.finding("memory/protected-never-freed", title, [resolved.node]);
        if let Held::Output(output) = held {
            finding.facts.extend(alias_chain(evidence, output, resolved.storage));
        }
        finding.expected = Some(held.describe(evidence.graph));
        finding.observed = Some(format!("by the claim it is freed after {}", evidence.step(replay, freed)));
        findings.push(finding);
    }
    Checked::Findings(findings)
}

/// At most one free.
pub(super) fn freed_once(evidence: &MemoryEvidence) -> Checked {
    let (replay, lives) = claimed!(evidence);
    let mut findings = Vec::new();
    for life in lives.iter().filter(|life| life.frees.len() > 1) {
        let title = format!("{} is freed {} times", life.name, life.frees.len());
        let node = evidence.resolve(&life.name).map(|resolved| resolved.node);
        let mut finding = evidence.finding("memory/freed-once", title, node);
        finding.facts =
            life.frees.iter().map(|&f| format!("freed after {}", evidence.step(replay, f))).collect();
        findings.push(finding);
    }
    Checked::Findings(findings)
}

/// Everything else is freed.
pub(super) fn no_leak(evidence: &MemoryEvidence) -> Checked {
    const RULE: &str = "memory/no-leak";
    let (replay, lives) = claimed!(evidence);
    let (mut findings, mut doubts) = (Vec::new(), Vec::new());
    let (mut kept, mut owed) = (0i128, 0i128);
    let speakers = evidence.speakers(lives);
    for life in lives.iter().filter(|life| life.frees.is_empty() && life.bytes > 0) {
        kept += i128::from(life.bytes);
        let Some(resolved) = evidence.resolve(&life.name) else { continue };
        let (held, truth) = (replay.held[resolved.storage], replay.lives[resolved.storage]);
        let Some(end) = truth.end else { continue };
        let title = format!("{} ({} bytes) is never freed", life.name, life.bytes);
        if !evidence.is_certain(resolved.storage) {
            doubts.push(format!("{title}, or it is the caller's: it may share memory"));
            continue;
        }
        let mut finding = evidence.finding(RULE, title, [resolved.node]);
        finding.expected = Some("at the end only outputs and the caller's inputs are live".to_string());
        finding.observed = Some(format!(
            "it is neither: {}, so it could be freed after {}",
            held.describe(evidence.graph),
            evidence.step(replay, end)
        ));
        findings.push(finding);
    }
    for (storage, life) in replay.lives.iter().enumerate() {
        if life.end.is_none() && speakers.contains_key(&storage) {
            owed += i128::from(life.bytes);
        }
    }
    if findings.is_empty() && doubts.is_empty() && kept != owed && freed_by_right(evidence, lives) {
        let title = format!("{kept} bytes are live at the end");
        let mut finding = evidence.finding(RULE, title, []);
        finding.expected = Some(format!("outputs and the caller's inputs have {owed} bytes"));
        findings.push(finding);
    }
    found(findings, doubts)
}

/// Whether no other rule tells that something of the caller's is freed, or counted twice or in part.
fn freed_by_right(evidence: &MemoryEvidence, lives: &[ClaimedLife]) -> bool {
    let clean = |checked: Checked| checked == Checked::Findings(Vec::new());
    clean(protected_never_freed(evidence))
        && clean(distinct_storages(evidence))
        && clean(input_whole_storage(evidence))
        && lives.iter().all(|life| evidence.resolve(&life.name).is_some())
}

/// Aliases count once.
pub(super) fn distinct_storages(evidence: &MemoryEvidence) -> Checked {
    let (replay, lives) = claimed!(evidence);
    let (mut findings, mut doubts) = (Vec::new(), Vec::new());
    let speakers = evidence.speakers(lives);
    for (i, life) in lives.iter().enumerate().filter(|(_, life)| life.bytes > 0) {
        let Some(resolved) = evidence.resolve(&life.name) else { continue };
        let Some(&speaker) = speakers.get(&resolved.storage).filter(|&&speaker| speaker != i) else {
            continue;
        };
        let counted = &lives[speaker];
        if counted.name == life.name || counted.bytes == 0 {
            continue;
        }
        let title = format!("{} counts {} bytes that {} counts already", life.name, life.bytes, counted.name);
        if !evidence.is_certain(resolved.storage) {
            doubts.push(format!("{title}, or not: it may share memory"));
            continue;
        }
        let mut finding = evidence.finding("memory/distinct-storages", title, [resolved.node]);
        finding.expected = Some(format!(
            "both are the memory of {}",
            evidence.graph.name(replay.lives[resolved.storage].by)
        ));
        findings.push(finding);
    }
    found(findings, doubts)
}

/// Inputs count whole.
pub(super) fn input_whole_storage(evidence: &MemoryEvidence) -> Checked {
    let (replay, lives) = claimed!(evidence);
    let mut findings = Vec::new();
    for life in lives {
        let Some(resolved) = evidence.resolve(&life.name) else { continue };
        let truth = replay.lives[resolved.storage];
        if truth.start.is_some() || !resolved.owner || life.bytes >= truth.bytes {
            continue;
        }
        let title = format!("{} counts {} bytes", life.name, life.bytes);
        let mut finding = evidence.finding("memory/input-whole-storage", title, [resolved.node]);
        finding.expected = Some(format!("its storage has {} bytes and lives as a whole", truth.bytes));
        findings.push(finding);
    }
    Checked::Findings(findings)
}
