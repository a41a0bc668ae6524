//! Rules about the lives of storages: allocated in time, freed once, late enough, and at all.

use super::evidence::{Found, MemoryEvidence, known};
use crate::analysis::Edges;
use crate::analysis::topological::violations;
use crate::case::ClaimedLife;
use crate::graph::{NodeId, Op};
use crate::memory::Held;
use crate::rules::Checked;
use rustc_hash::{FxHashMap, FxHashSet};

/// Allocated before use, defined once.
pub(super) fn alloc_before_use(evidence: &MemoryEvidence) -> Checked {
    const RULE: &str = "memory/alloc-before-use";
    let graph = evidence.graph;
    let mut found = Found::default();
    for violation in violations(graph, &Edges::new(graph)) {
        found.add(true, evidence.finding(RULE, violation.describe(graph), [violation.node()]));
    }
    let lives = match evidence.lives() {
        Ok(lives) => lives,
        Err(unchecked) if found.findings.is_empty() && evidence.claim.order.is_none() => return unchecked,
        Err(_) => return found.checked(),
    };
    let mut earlier: FxHashMap<&str, &ClaimedLife> = FxHashMap::default();
    for life in lives {
        let name = life.name.as_str();
        let resolved = evidence.resolve(name);
        if let Some(earlier) = earlier.insert(name, life) {
            let node = resolved.map(|resolved| resolved.node);
            let mut finding = evidence.finding(RULE, format!("{name} is defined twice"), node);
            finding.facts = vec![
                format!("one life of it begins {}", begin(earlier)),
                format!("another one begins {}", begin(life)),
            ];
            found.add(true, finding);
        } else if evidence.parts(name).is_empty() && (life.bytes > 0 || graph.find(name).is_none()) {
            let title = format!("the life of {name} is claimed, which is no storage of the graph");
            found.add(true, evidence.finding(RULE, title, graph.find(name)));
        } else if resolved.is_none() && life.bytes > 0 {
            found.doubt(&format!("{name} stands for one of several storages"));
        }
    }
    let replay = match evidence.truth() {
        Ok(replay) => replay,
        Err(unchecked) if found.findings.is_empty() => return unchecked,
        Err(_) => return found.checked(),
    };
    let claimed = evidence.storage_lives(lives);
    for (&storage, &(life, resolved)) in &claimed {
        let needed = replay.lives[storage].start;
        // What is there before the first step has no step that allocates it.
        if life.alloc.is_none_or(|claimed| needed.is_some_and(|needed| claimed <= needed)) {
            continue;
        }
        let title = format!("{} is used before it is allocated", life.name);
        let mut finding = evidence.finding(RULE, title, [resolved.node]);
        finding.expected = Some(match needed {
            Some(step) => format!("{} writes it", evidence.step(step)),
            None => "it is there before the first step".to_string(),
        });
        finding.observed = Some(format!("by the claim its memory is there from {}", begin(life)));
        found.add(resolved.certain, finding);
    }
    for (storage, life) in replay.lives.iter().enumerate() {
        if life.bytes > 0
            && life.start.is_some()
            && !claimed.contains_key(&storage)
            && evidence.is_certain(storage)
        {
            let title = format!("no life is claimed for the {} bytes of {}", life.bytes, graph.name(life.by));
            found.add(true, evidence.finding(RULE, title, [life.by]));
        }
    }
    found.checked()
}

fn begin(life: &ClaimedLife) -> String {
    life.alloc.map_or("before the first step".to_string(), |step| format!("in step {step}"))
}

/// Not freed while it is in use.
pub(super) fn no_use_after_free(evidence: &MemoryEvidence) -> Checked {
    let lives = known!(evidence.lives());
    let replay = known!(evidence.truth());
    let mut found = Found::default();
    let sizes = replay.ledger.largest_sizes();
    for (storage, (life, resolved)) in evidence.storage_lives(lives) {
        let (held, truth) = (replay.held[storage], replay.lives[storage]);
        let needed = match (held, truth.end) {
            (Held::Caller | Held::Output(_), _) => continue,
            (Held::NeverWaited(_), _) => u32::MAX,
            (_, Some(end)) => end,
            (_, None) => continue,
        };
        let Some(&freed) = life.frees.iter().min().filter(|&&freed| freed < needed) else { continue };
        // No byte is read after the free of none.
        if sizes[storage] == Ok(0) {
            continue;
        }
        let title = format!("{} is freed while it is needed", life.name);
        let witness = match held {
            Held::By(node) | Held::InFlight { wait: node, .. } | Held::NeverWaited(node) => Some(node),
            _ => None,
        };
        let mut finding =
            evidence.finding("memory/no-use-after-free", title, [resolved.node].into_iter().chain(witness));
        if let Some(user) = witness {
            finding.facts.extend(alias_chain(evidence, user, storage));
        }
        finding.expected = Some(match needed {
            u32::MAX => held.describe(evidence.graph),
            needed => format!("{}, in step {needed}", held.describe(evidence.graph)),
        });
        finding.observed = Some(format!("by the claim it is freed after {}", evidence.step(freed)));
        found.add(evidence.is_certain(storage), finding);
    }
    found.checked()
}

/// Through which of its inputs a node uses a storage that another one made.
fn alias_chain(evidence: &MemoryEvidence, user: NodeId, storage: usize) -> Option<String> {
    let (graph, storages) = (evidence.graph, &evidence.facts.storages);
    let owner = evidence.replay.as_ref().ok()?.lives[storage].by;
    let mut inputs = graph.inputs(user).into_iter();
    let alias = inputs.find(|&n| storages.all_parts(n).any(|part| part.storage.index() == storage))?;
    let (name, user) = (graph.name(alias), graph.name(user));
    (alias != owner).then(|| format!("{user} takes {name}, which is memory of {}", graph.name(owner)))
}

/// What belongs to the caller stays.
pub(super) fn protected_never_freed(evidence: &MemoryEvidence) -> Checked {
    let lives = known!(evidence.lives());
    let replay = known!(evidence.truth());
    let mut found = Found::default();
    let storages = &evidence.facts.storages;
    let outputs = evidence.graph.ids().filter(|&id| evidence.graph.node(id).op == Op::Output);
    let returned = outputs.flat_map(|output| evidence.graph.inputs(output));
    let returned = returned.flat_map(|id| storages.all_parts(id)).filter(|part| part.certain);
    let returned: FxHashSet<usize> = returned.map(|part| part.storage.index()).collect();
    for (storage, (life, resolved)) in evidence.storage_lives(lives) {
        let (Some(&freed), held) = (life.frees.first(), replay.held[storage]) else { continue };
        let is_sure = match held {
            Held::Caller => resolved.certain,
            Held::Output(_) => returned.contains(&storage),
            _ => continue,
        };
        let title = format!("{} is freed, which belongs to the caller", life.name);
        let mut finding = evidence.finding("memory/protected-never-freed", title, [resolved.node]);
        if let Held::Output(output) = held {
            finding.facts.extend(alias_chain(evidence, output, storage));
        }
        finding.expected = Some(held.describe(evidence.graph));
        finding.observed = Some(format!("by the claim it is freed after {}", evidence.step(freed)));
        found.add(is_sure, finding);
    }
    found.checked()
}

/// At most one free.
pub(super) fn freed_once(evidence: &MemoryEvidence) -> Checked {
    let lives = known!(evidence.lives());
    let mut found = Found::default();
    for life in lives.iter().filter(|life| life.frees.len() > 1) {
        let title = format!("{} is freed {} times", life.name, life.frees.len());
        let node = evidence.resolve(&life.name).map(|resolved| resolved.node);
        let mut finding = evidence.finding("memory/freed-once", title, node);
        finding.facts = life.frees.iter().map(|&f| format!("freed after {}", evidence.step(f))).collect();
        found.add(true, finding);
    }
    found.checked()
}

/// Everything else is freed.
pub(super) fn no_leak(evidence: &MemoryEvidence) -> Checked {
    let lives = known!(evidence.lives());
    let replay = known!(evidence.truth());
    let mut found = Found::default();
    for (storage, (life, resolved)) in evidence.storage_lives(lives) {
        let Some(end) = replay.lives[storage].end.filter(|_| life.frees.is_empty() && life.bytes > 0) else {
            continue;
        };
        let title = format!("{} ({} bytes) is never freed", life.name, life.bytes);
        let mut finding = evidence.finding("memory/no-leak", title, [resolved.node]);
        finding.expected = Some("at the end only outputs and the caller's inputs are live".to_string());
        finding.observed = Some(format!(
            "it is neither: {}, so it could be freed after {}",
            replay.held[storage].describe(evidence.graph),
            evidence.step(end)
        ));
        found.add(evidence.is_certain(storage), finding);
    }
    found.checked()
}

/// Aliases count once.
pub(super) fn distinct_storages(evidence: &MemoryEvidence) -> Checked {
    let lives = known!(evidence.lives());
    let mut found = Found::default();
    let claimed = evidence.storage_lives(lives);
    for life in lives.iter().filter(|life| life.bytes > 0) {
        let Some(resolved) = evidence.resolve(&life.name) else { continue };
        let (counted, by) = claimed[&resolved.storage];
        if counted.name == life.name {
            continue;
        }
        let title = format!("{} counts {} bytes that {} counts already", life.name, life.bytes, counted.name);
        let mut finding = evidence.finding("memory/distinct-storages", title, [resolved.node]);
        finding.expected = Some(format!("both are the memory of {}", evidence.owner(resolved.storage)));
        found.add(resolved.certain && by.certain, finding);
    }
    found.checked()
}

/// Inputs count whole.
pub(super) fn input_whole_storage(evidence: &MemoryEvidence) -> Checked {
    let lives = known!(evidence.lives());
    let replay = known!(evidence.truth());
    let mut found = Found::default();
    for (storage, (life, resolved)) in evidence.storage_lives(lives) {
        let truth = replay.lives[storage];
        if truth.start.is_some() || !resolved.certain || life.bytes >= truth.bytes {
            continue;
        }
        let title = format!("{} counts {} bytes", life.name, life.bytes);
        let mut finding = evidence.finding("memory/input-whole-storage", title, [resolved.node]);
        finding.expected = Some(format!("its storage has {} bytes and lives as a whole", truth.bytes));
        found.add(true, finding);
    }
    found.checked()
}
