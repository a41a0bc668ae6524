//! The memory rules: statements about what an implementation claims about the memory of a graph.
//!
//! # The idea
//!
//! An implementation of a memory pass does not give back a graph but statements: this is the peak, these are the lives
//! of the storages, this is the order to run in, these are the offsets in the arena. A [`Claim`] holds whichever of
//! them it makes. The [`MemoryEvidence`] replays the storages of the graph in the claimed order, and each rule
//! compares. A rule that needs a statement that the claim does not make is not checked, and says so.
//!
//! # What they do not do
//!
//! Where the replay is not certain about aliases (unknown operators, views that may be copies), only what holds
//! either way is a violation; the rest is undecided.

mod evidence;
mod lives;
mod numbers;
mod order;
mod placement;
mod relation;

pub use crate::case::{Claim, ClaimedLife, Increment, Offset};
pub use evidence::{Counting, MemoryConfig, MemoryEvidence};
pub use order::reordered;

use super::{Family, Finding, PassKind, Rule, Severity, Statuses, arrange, check_each, severity_in};

const MEMORY: &[PassKind] = &[PassKind::Memory];

/// Rules about what is claimed of memory.
pub enum Memories {}

impl Family for Memories {
    type Evidence<'a> = MemoryEvidence<'a>;
}

/// Every memory rule, most fundamental first.
pub static CATALOGUE: &[Rule<Memories>] = &[
    Rule {
        id: "memory/alloc-before-use",
        severity: Severity::Soundness,
        passes: MEMORY,
        statement: "A buffer is allocated before its first use, and every name is defined once.",
        reason: "What is not there cannot be used.",
        check: lives::alloc_before_use,
    },
    Rule {
        id: "memory/dependences-kept",
        severity: Severity::Soundness,
        passes: MEMORY,
        statement: "In the claimed order whatever reads or writes memory, draws or has an effect stays after what it depends on.",
        reason: "Calls that are moved across a write see other values.",
        check: order::dependences_kept,
    },
    Rule {
        id: "memory/no-use-after-free",
        severity: Severity::Soundness,
        passes: MEMORY,
        statement: "While any alias of a storage is used, or a collective in flight reads or writes it, the storage is live.",
        reason: "Memory that was given back belongs to somebody else.",
        check: lives::no_use_after_free,
    },
    Rule {
        id: "memory/protected-never-freed",
        severity: Severity::Soundness,
        passes: MEMORY,
        statement: "Inputs that the caller keeps and what the output returns are never freed; an output that is a view keeps \
                    what it is a view of.",
        reason: "They belong to the caller.",
        check: lives::protected_never_freed,
    },
    Rule {
        id: "memory/freed-once",
        severity: Severity::Soundness,
        passes: MEMORY,
        statement: "A storage is freed once at most, whatever number of aliases it has.",
        reason: "The second free hits whoever got the memory meanwhile.",
        check: lives::freed_once,
    },
    Rule {
        id: "memory/no-leak",
        severity: Severity::Soundness,
        passes: MEMORY,
        statement: "At the end exactly the outputs and the caller's inputs are live.",
        reason: "Memory that nobody frees runs out.",
        check: lives::no_leak,
    },
    Rule {
        id: "memory/placement-disjoint",
        severity: Severity::Soundness,
        passes: MEMORY,
        statement: "A storage that a step makes and another one frees has a place in the arena, and one only, whichever of its \
                    names the claim uses. Two storages whose lives, closed at both ends, meet have no byte in common, exact \
                    in-place slices apart: there each element of the result needs only the element that it replaces.",
        reason: "One would overwrite the other.",
        check: placement::disjoint,
    },
    Rule {
        id: "memory/alias-relation",
        severity: Severity::Soundness,
        passes: MEMORY,
        statement: "Which outputs share memory with which inputs and with each other is the same before and after, and so is \
                    which inputs are written.",
        reason: "The caller writes to its tensors, and sees them written.",
        check: relation::alias_relation,
    },
    Rule {
        id: "memory/timeline-conservation",
        severity: Severity::Soundness,
        passes: MEMORY,
        statement: "Every life of the timeline adds and removes the same bytes, and the live bytes of every step are the sum \
                    of the lives that cover it.",
        reason: "A timeline that does not add up says nothing.",
        check: numbers::timeline_conservation,
    },
    Rule {
        id: "memory/peak-post-alloc",
        severity: Severity::Soundness,
        passes: MEMORY,
        statement: "The peak is the maximum over the steps of the live bytes after the allocations and before the frees of \
                    the step.",
        reason: "That is when a step needs the most.",
        check: numbers::peak_post_alloc,
    },
    Rule {
        id: "memory/estimate-equals-replay",
        severity: Severity::Soundness,
        passes: MEMORY,
        statement: "What is claimed to be live, storage by storage and step by step, is what the replay of the storages \
                    finds.",
        reason: "Decisions rest on it.",
        check: numbers::estimate_equals_replay,
    },
    Rule {
        id: "memory/estimators-agree",
        severity: Severity::Soundness,
        passes: MEMORY,
        statement: "Several estimates of the peak of one order agree.",
        reason: "They estimate the same.",
        check: numbers::estimators_agree,
    },
    Rule {
        id: "memory/incremental-equals-recompute",
        severity: Severity::Soundness,
        passes: MEMORY,
        statement: "After each swap the values kept incrementally equal a full recomputation.",
        reason: "The next decision rests on them.",
        check: numbers::incremental_equals_recompute,
    },
    Rule {
        id: "memory/peak-after-each-swap",
        severity: Severity::Soundness,
        passes: MEMORY,
        statement: "The potential peak of a swap is computed from the state after the swap before it.",
        reason: "A stale state allows what exceeds the budget.",
        check: numbers::peak_after_each_swap,
    },
    Rule {
        id: "memory/verifier-idempotent",
        severity: Severity::Soundness,
        passes: MEMORY,
        statement: "A run that fails does not change what a verifier says of the runs after it.",
        reason: "One failure would hide or make others.",
        check: numbers::verifier_idempotent,
    },
    Rule {
        id: "memory/distinct-storages",
        severity: Severity::Policy,
        passes: MEMORY,
        statement: "Aliases of one storage count once.",
        reason: "They are the same memory.",
        check: lives::distinct_storages,
    },
    Rule {
        id: "memory/input-whole-storage",
        severity: Severity::Policy,
        passes: MEMORY,
        statement: "An input counts its whole storage, whatever part of it is read.",
        reason: "The storage lives as a whole.",
        check: lives::input_whole_storage,
    },
];

/// All findings, arranged, and what became of each rule, in catalogue order.
pub fn check_all(evidence: &MemoryEvidence) -> (Vec<Finding>, Statuses) {
    let (findings, statuses) = check_each(CATALOGUE, evidence);
    (arrange(findings), statuses)
}

/// Whether a claim says something that can be wrong: an order, or lives.
pub fn says_something(evidence: &MemoryEvidence) -> bool {
    evidence.claim.order.is_some() || evidence.replay.as_ref().is_ok_and(|replay| !replay.lives.is_empty())
}

#[cfg(test)]
mod tests;
