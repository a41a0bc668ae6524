//! The memory rules: statements about what an implementation claims about the memory of a graph.
//!
//! # The idea
//!
//! An implementation of a memory pass does not give back a graph but statements: this is the peak, these are the lives
//! of the storages, this is the order to run in, these are the offsets in the arena. A [`Claim`] holds whichever of
//! them it makes. The [`MemoryEvidence`] replays the storages of the graph in the claimed order, and each rule compares.
//! A rule that needs a statement that the claim does not make is not checked, and says so.
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

use super::{Checked, Finding, RuleStatus, Severity, arrange};

/// A rule about memory.
pub struct MemoryRule {
    /// Its stable id.
    pub id: &'static str,
    /// How much its violation matters.
    pub severity: Severity,
    /// What it states.
    pub statement: &'static str,
    /// Why it must hold.
    pub reason: &'static str,
    /// Looks for violations.
    pub check: fn(&MemoryEvidence) -> Checked,
}

/// Every memory rule, most fundamental first.
pub static CATALOGUE: &[MemoryRule] = &[
    MemoryRule {
        id: "memory/alloc-before-use",
        severity: Severity::Soundness,
        statement: "A buffer is allocated before its first use, and every name is defined once.",
        reason: "What is not there cannot be used.",
        check: lives::alloc_before_use,
    },
    MemoryRule {
        id: "memory/no-use-after-free",
        severity: Severity::Soundness,
        statement: "While any alias of a storage is used, or a collective in flight reads or writes it, the storage is live.",
        reason: "Memory that was given back belongs to somebody else.",
        check: lives::no_use_after_free,
    },
    MemoryRule {
        id: "memory/protected-never-freed",
        severity: Severity::Soundness,
        statement: "Inputs that the caller keeps and what the output returns are never freed; an output that is a view keeps \
                    what it is a view of.",
        reason: "They belong to the caller.",
        check: lives::protected_never_freed,
    },
    MemoryRule {
        id: "memory/freed-once",
        severity: Severity::Soundness,
        statement: "A storage is freed once at most, whatever number of aliases it has.",
        reason: "The second free hits whoever got the memory meanwhile.",
        check: lives::freed_once,
    },
    MemoryRule {
        id: "memory/no-leak",
        severity: Severity::Soundness,
        statement: "At the end exactly the outputs and the caller's inputs are live, in exact bytes.",
        reason: "Memory that nobody frees runs out.",
        check: lives::no_leak,
    },
    MemoryRule {
        id: "memory/placement-disjoint",
        severity: Severity::Soundness,
        statement: "Two storages whose lives, closed at both ends, meet have no byte of the arena in common, exact in-place \
                    slices apart.",
        reason: "One would overwrite the other.",
        check: placement::disjoint,
    },
    MemoryRule {
        id: "memory/alias-relation",
        severity: Severity::Soundness,
        statement: "Which outputs share memory with which inputs and with each other is the same before and after, and so is \
                    which inputs are written.",
        reason: "The caller writes to its tensors, and sees them written.",
        check: relation::alias_relation,
    },
    MemoryRule {
        id: "memory/timeline-conservation",
        severity: Severity::Soundness,
        statement: "Every life of the timeline adds and removes the same bytes, and the live bytes of every step are the sum \
                    of the lives that cover it.",
        reason: "A timeline that does not add up says nothing.",
        check: numbers::timeline_conservation,
    },
    MemoryRule {
        id: "memory/peak-post-alloc",
        severity: Severity::Soundness,
        statement: "The peak is the maximum over the steps of the live bytes after the allocations and before the frees of \
                    the step.",
        reason: "That is when a step needs the most.",
        check: numbers::peak_post_alloc,
    },
    MemoryRule {
        id: "memory/estimate-equals-replay",
        severity: Severity::Soundness,
        statement: "What is claimed to be live at each step is what the replay of the storages finds.",
        reason: "Decisions rest on it.",
        check: numbers::estimate_equals_replay,
    },
    MemoryRule {
        id: "memory/estimators-agree",
        severity: Severity::Soundness,
        statement: "Several estimates of the peak of one order agree.",
        reason: "They estimate the same.",
        check: numbers::estimators_agree,
    },
    MemoryRule {
        id: "memory/incremental-equals-recompute",
        severity: Severity::Soundness,
        statement: "After each swap the values kept incrementally equal a full recomputation.",
        reason: "The next decision rests on them.",
        check: numbers::incremental_equals_recompute,
    },
    MemoryRule {
        id: "memory/peak-after-each-swap",
        severity: Severity::Soundness,
        statement: "The potential peak of a swap is computed from the state after the swap before it.",
        reason: "A stale state allows what exceeds the budget.",
        check: numbers::peak_after_each_swap,
    },
    MemoryRule {
        id: "memory/verifier-idempotent",
        severity: Severity::Soundness,
        statement: "A run that fails does not change what a verifier says of the runs after it.",
        reason: "One failure would hide or make others.",
        check: numbers::verifier_idempotent,
    },
    MemoryRule {
        id: "memory/distinct-storages",
        severity: Severity::Policy,
        statement: "Aliases of one storage count once.",
        reason: "They are the same memory.",
        check: lives::distinct_storages,
    },
    MemoryRule {
        id: "memory/input-whole-storage",
        severity: Severity::Policy,
        statement: "An input counts its whole storage, whatever part of it is read.",
        reason: "The storage lives as a whole.",
        check: lives::input_whole_storage,
    },
];

/// The memory rule with this id.
pub fn find(id: &str) -> Option<&'static MemoryRule> {
    CATALOGUE.iter().find(|rule| rule.id == id)
}

/// All findings, arranged, and what became of each rule, in catalogue order.
pub fn check_all(evidence: &MemoryEvidence) -> (Vec<Finding>, Vec<(&'static str, RuleStatus)>) {
    let mut findings = Vec::new();
    let rules =
        CATALOGUE.iter().map(|rule| (rule.id, (rule.check)(evidence).settle(&mut findings))).collect();
    (arrange(findings), rules)
}

/// Whether a claim says something that can be wrong: an order, or lives.
pub fn says_something(evidence: &MemoryEvidence) -> bool {
    evidence.claim.order.is_some() || evidence.replay.as_ref().is_ok_and(|replay| !replay.lives.is_empty())
}

#[cfg(test)]
mod tests;
