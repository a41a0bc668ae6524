//! `order/*`, `comm/*` and `schedule/*` for passes that only move nodes: a scheduler may change the order of a graph,
//! and nothing else; and not every order.
//!
//! # The idea
//!
//! The evidence is the graph before and the graph after, on each rank. What must stay in order is derived from the
//! graph *before*, and looked up in the list after; nothing that the pass says about itself is read. What ranks do to
//! each other is decided by the [simulator](crate::simulate).
//!
//! Rules that need no scheduler to hold are soundness rules. Budgets and limits are policy: they are applied where they
//! are promised ([`Promises`]).
//!
//! # What they do not do
//!
//! Values are not compared: an order that keeps every dependence computes the same. Where a dependence is not certain
//! (an unknown operator, bytes that may overlap) and its order is changed, the rule is undecided, not violated.

mod communication;
mod evidence;
mod groups;
mod order;
mod policy;
mod ranks;

pub use evidence::{Evidence, Outcome, Promises};

use super::{Checked, Family, Finding, PassKind, Rule, RuleStatus, Severity, Statuses, arrange, severity_in};

/// Options that concern the judge and not the pass.
pub const JUDGE_OPTIONS: &[&str] =
    &["promises", "exposed_budget", "exposed_gather_budget", "displacement_budget", "max_in_flight"];

const SCHEDULE: &[PassKind] = &[PassKind::Schedule];

/// Rules about schedules.
pub enum Schedules {}

impl Family for Schedules {
    type Evidence<'a> = Evidence<'a>;
}

/// Every rule, most fundamental first: a violation of an earlier rule may bring about violations of later ones.
pub static CATALOGUE: &[Rule<Schedules>] = &[
    Rule {
        id: "order/permutation",
        severity: Severity::Soundness,
        passes: SCHEDULE,
        statement: "The list after is a permutation of the list before: the same nodes with the same arguments, none lost, \
                    none added, none changed.",
        reason: "A scheduler that edits nodes is another pass.",
        check: order::permutation,
    },
    Rule {
        id: "order/producer-before-reader",
        severity: Severity::Soundness,
        passes: SCHEDULE,
        statement: "Whoever takes a value stands behind the node that makes it; inputs stand first and in their \
                    order, the output last.",
        reason: "The list is what is executed, and inputs are bound by position.",
        check: order::producer_before_reader,
    },
    Rule {
        id: "order/keep-ordering-edges",
        severity: Severity::Soundness,
        passes: SCHEDULE,
        statement: "What orders without passing a value is kept too: ordering edges, writes after reads, random draws, \
                    effects.",
        reason: "Results depend on it, and no argument shows it.",
        check: order::keep_ordering_edges,
    },
    Rule {
        id: "comm/in-flight-untouched",
        severity: Severity::Soundness,
        passes: SCHEDULE,
        statement: "From the launch of a collective to its wait nobody writes its inputs, and nobody touches its result.",
        reason: "The collective reads and writes them whenever it likes.",
        check: communication::in_flight_untouched,
    },
    Rule {
        id: "comm/collective-order-aligned",
        severity: Severity::Soundness,
        passes: SCHEDULE,
        statement: "On each process group all ranks launch the same collectives in the same order; where only one rank is \
                    seen, in the order of the list before.",
        reason: "Ranks meet launch by launch: a mismatch hangs or mixes up data.",
        check: ranks::collective_order_aligned,
    },
    Rule {
        id: "comm/all-ranks-finish",
        severity: Severity::Soundness,
        passes: SCHEDULE,
        statement: "All ranks finish, whatever order their streams choose, if they did before.",
        reason: "Ranks that wait for each other hang for ten minutes without a word.",
        check: ranks::all_ranks_finish,
    },
    Rule {
        id: "comm/overlapping-groups-ordered",
        severity: Severity::Soundness,
        passes: SCHEDULE,
        statement: "Ranks that share two process groups launch on both in one order: they finish even if the device runs \
                    one communication kernel at a time, if they did before.",
        reason: "Two kernels that hold two devices crosswise wait for ever.",
        check: ranks::overlapping_groups_ordered,
    },
    Rule {
        id: "schedule/group-contiguous-convex",
        severity: Severity::Soundness,
        passes: SCHEDULE,
        statement: "The members of a group stand together, and nothing must come between them.",
        reason: "A group is one scheduling unit.",
        check: groups::contiguous_and_convex,
    },
    Rule {
        id: "schedule/deterministic",
        severity: Severity::Soundness,
        passes: SCHEDULE,
        statement: "The same input gives the same order, again and under other names.",
        reason: "Ranks must agree without talking.",
        check: ranks::deterministic,
    },
    Rule {
        id: "schedule/rank-noise",
        severity: Severity::Soundness,
        passes: SCHEDULE,
        statement: "Every rank launches its communication, over all process groups, in the same order although each has other \
                    estimates and limits of its own.",
        reason: "What is measured differs from rank to rank; which launch meets which must not.",
        check: ranks::rank_noise,
    },
    Rule {
        id: "schedule/rank-order",
        severity: Severity::Policy,
        passes: SCHEDULE,
        statement: "Every rank gives the same order of all nodes although each has other estimates and limits of its own.",
        reason: "What is known of one rank, its peak of memory for one, is then known of all.",
        check: ranks::rank_order,
    },
    Rule {
        id: "comm/in-flight-limit",
        severity: Severity::Policy,
        passes: SCHEDULE,
        statement: "At most so many all-gathers, and so many reduce-scatters, are in flight.",
        reason: "Each holds its buffers.",
        check: policy::in_flight_limit,
    },
    Rule {
        id: "schedule/peak-within-budget",
        severity: Severity::Policy,
        passes: SCHEDULE,
        statement: "The peak of memory after, recomputed in full, is at most (1 + budget) times the peak before.",
        reason: "Out of memory.",
        check: policy::peak_within_budget,
    },
    Rule {
        id: "schedule/exposed-time",
        severity: Severity::Policy,
        passes: SCHEDULE,
        statement: "The time that communication is not hidden behind computation stays within the budget.",
        reason: "Overlap is the purpose.",
        check: policy::exposed_time,
    },
    Rule {
        id: "comm/no-exposed-gather",
        severity: Severity::Policy,
        passes: SCHEDULE,
        statement: "No all-gather is exposed for longer than the budget.",
        reason: "Parameters are known long before they are needed, so a gather that is waited for was launched too late.",
        check: policy::no_exposed_gather,
    },
    Rule {
        id: "schedule/progress",
        severity: Severity::Policy,
        passes: SCHEDULE,
        statement: "The last wait does not stand still in front of computation that it could have been moved behind.",
        reason: "A pass that never moves is sound and useless.",
        check: policy::progress,
    },
    Rule {
        id: "schedule/displacement",
        severity: Severity::Policy,
        passes: SCHEDULE,
        statement: "No more than the promised share of nodes is taken out of its order.",
        reason: "A list that is shuffled for one move grows lifetimes everywhere.",
        check: policy::displacement,
    },
    Rule {
        id: "schedule/position-equal-reference",
        severity: Severity::Policy,
        passes: SCHEDULE,
        statement: "The order is exactly the reference's.",
        reason: "Reproducibility.",
        check: policy::position_equal_reference,
    },
];

/// Applies every rule: all findings, arranged, and the status of each rule.
pub fn check_all(evidence: &Evidence) -> (Vec<Finding>, Statuses) {
    let (mut findings, mut statuses) = (Vec::new(), Vec::new());
    let mut is_permutation = true;
    for rule in CATALOGUE {
        let checked = match is_permutation {
            true => (rule.check)(evidence),
            false => Checked::NotChecked("the list after is no permutation of the list before".into()),
        };
        let status = checked.settle(&mut findings);
        is_permutation &= rule.id != "order/permutation" || !matches!(status, RuleStatus::Violated(_));
        statuses.push((rule.id, status));
    }
    (arrange(findings), statuses)
}

#[cfg(test)]
mod tests;
