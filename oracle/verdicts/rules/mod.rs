//! The rules: statements with stable ids about what a pass did to a graph.
//!
//! # The idea
//!
//! A rule sees only the [`Evidence`]: the graph before, the graph before and after repair, and what follows from
//! them (edges, storages, launches, which launches were merged into which, values). It never sees an
//! implementation, the reference included, so a verdict needs no trust in any of them.
//!
//! Soundness rules hold for every correct implementation. Policy rules hold where the pass promises them: they
//! are switched on by the case's configuration and say what budget they compared with.
//!
//! All findings are reported. [`arrange`] puts the most fundamental first and groups under each finding those
//! that merely follow from it.
//!
//! # What they do not do
//!
//! Rules do not run a pass, generate or shrink. Where a rule lacks evidence it says what it lacks
//! ([`RuleStatus::NotChecked`]) instead of passing.

mod accepted;
mod agreement;
mod aliases;
mod allowed;
mod analyzed;
mod bucket;
mod budget;
mod cause;
mod comm;
mod contract;
mod correspondence;
mod demanded;
mod device;
mod draws;
pub mod eager;
mod equal;
mod events;
mod evidence;
mod executed;
mod exposure;
mod finding;
mod folded;
mod generators;
mod graph;
mod groups;
mod layout;
mod local;
mod loosened;
mod matching;
pub mod memory;
mod messages;
mod metadata;
mod order;
mod overlap;
mod own_index;
pub mod partition;
mod policies;
mod policy;
mod proved;
mod ranks;
mod reason;
mod recorded;
mod relation;
mod restreamed;
mod rule;
pub mod schedule;
mod sizes;
mod streamed;
mod streams;
mod unread;
mod unwritten;
mod values;
pub mod worker;

pub use crate::family::PassKind;
pub use agreement::WAYS_AGREE;
pub(crate) use agreement::{contradictions, contradictions_of_partition};
pub use allowed::Allowed;
pub use analyzed::AnalyzedGraph;
pub use budget::Budget;
pub(crate) use budget::budget;
pub use contract::AsGiven;
pub use correspondence::{Correspondence, Merge};
pub use demanded::{Collectives, Demanded};
pub(crate) use evidence::same_evidence;
pub use evidence::{Evidence, RankOutcome};
pub use exposure::CostModel;
pub use finding::{Finding, NodeMention, Severity, Stage};
pub(crate) use graph::contradicting_records;
pub use groups::MovedGroup;
pub(crate) use loosened::most_rounded;
pub(crate) use matching::{Account, named_as, named_through};
pub(crate) use order::foreign_unrepaired;
pub use policies::{Caps, JUDGE_OPTIONS, Policies, REWRITE_OPTIONS};
pub use proved::Evaluated;
pub use ranks::{Given, OnRanks, RankGraph, distinct, join, name_ranks};
pub use reason::{Code, Reason};
pub use relation::relation;
pub(crate) use restreamed::Restreamed;
pub use rule::{Checked, Family, Rule, RuleStatus, Statuses};
use rule::{check_each, severity_in};
pub use values::{Evaluators, ValueEvidence, ValueMethod};

/// A rule without a check: somebody else sees a violation of it happen.
pub struct Promise {
    /// Its stable id, `family/name`.
    pub id: &'static str,
    /// What it states.
    pub statement: &'static str,
    /// Why it must hold.
    pub reason: &'static str,
}

/// What a rule says, apart from its check: of the rules here and of those of the other families.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statement {
    /// Its stable id, `family/name`.
    pub id: &'static str,
    /// How much its violation matters.
    pub severity: Severity,
    /// The passes whose outcomes it judges.
    pub passes: Vec<PassKind>,
    /// What it states.
    pub statement: &'static str,
    /// Why it must hold.
    pub reason: &'static str,
}

/// The statements of all rules: of every family, about workers, and about the oracle itself. A rule that several
/// families have stands once, with the passes of all.
pub fn statements() -> Vec<Statement> {
    let of_families = PassKind::ALL.iter().flat_map(|pass| (pass.row().statements)());
    let all = of_families
        .chain(promises_in(worker::CATALOGUE, PassKind::ALL))
        .chain(promises_in(agreement::CATALOGUE, agreement::PASSES));
    let mut statements: Vec<Statement> = Vec::new();
    for new in all {
        match statements.iter_mut().find(|known| known.id == new.id) {
            Some(known) => {
                let more = new.passes.into_iter().filter(|pass| !known.passes.contains(pass));
                let more: Vec<PassKind> = more.collect();
                known.passes.extend(more);
            }
            None => statements.push(new),
        }
    }
    statements
}

/// The statements of a catalogue.
pub(crate) fn statements_in<F: Family>(catalogue: &'static [Rule<F>]) -> Vec<Statement> {
    let statement = |&Rule { id, severity, passes, statement, reason, .. }: &Rule<F>| Statement {
        id,
        severity,
        passes: passes.to_vec(),
        statement,
        reason,
    };
    catalogue.iter().map(statement).collect()
}

/// The statements of rules without checks.
pub(crate) fn promises_in(catalogue: &[Promise], passes: &[PassKind]) -> Vec<Statement> {
    let statement = |&Promise { id, statement, reason }: &Promise| Statement {
        id,
        severity: Severity::Soundness,
        passes: passes.to_vec(),
        statement,
        reason,
    };
    catalogue.iter().map(statement).collect()
}

/// Ids that rules had once, each with the one that they have now. Old ids are understood wherever a rule is named.
pub const RENAMED: &[(&str, &str)] = &[
    ("bucket/rank-semantics-equal", "rewrite/values"),
    ("bucket/metadata-true", "rewrite/metadata"),
    ("graph/aliases-kept", "rewrite/aliases"),
    ("comm/wait-before-use", "rewrite/in-flight"),
    ("comm/same-order-across-ranks", "rewrite/collectives"),
    ("graph/well-formed", "rewrite/well-formed"),
    ("order/mutation-sequence", "order/keep-ordering-edges"),
    ("comm/wait-placement", "order/producer-before-reader"),
];

/// The id that a rule has now, given that or an older one.
pub fn current_id(id: &str) -> &str {
    RENAMED.iter().find(|(old, _)| *old == id).map_or(id, |(_, now)| now)
}

/// The statement of the rule with this id, of whatever family.
pub fn statement(id: &str) -> Option<Statement> {
    let id = current_id(id);
    statements().into_iter().find(|rule| rule.id == id)
}

/// Rules about a graph before and after: any rewrite, bucketing and repair.
pub enum Rewrites {}

impl Family for Rewrites {
    type Evidence<'a> = Evidence<'a>;
}

const BUCKETING: &[PassKind] = &[PassKind::Bucketing];
const REPAIR: &[PassKind] = &[PassKind::Repair];
const BOTH: &[PassKind] = &[PassKind::Bucketing, PassKind::Repair];
/// What holds of every rewrite, bucketing and repair among them.
const REWRITES: &[PassKind] = &[PassKind::Rewrite, PassKind::Bucketing, PassKind::Repair];

/// Passes that may be given budgets.
const BUDGETED: &[PassKind] = &[PassKind::Rewrite, PassKind::Bucketing];
const REWRITE: &[PassKind] = &[PassKind::Rewrite];

/// Every rule, most fundamental first: a violation of an earlier rule may bring about violations of later ones.
pub static CATALOGUE: &[Rule<Rewrites>] = &[
    Rule {
        id: "bucket/failure-atomic",
        severity: Severity::Soundness,
        passes: BOTH,
        statement: "When the pass refuses or fails, the input graph is unchanged.",
        reason: "Callers may go on without the pass.",
        check: bucket::failure_atomic,
    },
    Rule {
        id: "rewrite/well-formed",
        severity: Severity::Soundness,
        passes: REWRITES,
        statement: graph::WELL_FORMED.0,
        reason: graph::WELL_FORMED.1,
        check: graph::well_formed,
    },
    Rule {
        id: "bucket/members-independent",
        severity: Severity::Soundness,
        passes: BUCKETING,
        statement: "No member of a bucket reaches another member's issue in the graph before, through arguments at \
                    any depth, keyword arguments, ordering edges, mutations and waits.",
        reason: "A collective cannot depend on itself.",
        check: bucket::members_independent,
    },
    Rule {
        id: "bucket/contracted-acyclic",
        severity: Severity::Soundness,
        passes: BUCKETING,
        statement: "The graph before, with all buckets contracted jointly, is acyclic.",
        reason: "Buckets that are fine one by one can depend on each other.",
        check: bucket::contracted_acyclic,
    },
    Rule {
        id: "bucket/homogeneous",
        severity: Severity::Soundness,
        passes: BUCKETING,
        statement: "The members of a bucket and its collective agree in kind, process group, group size, reduction \
                    and device, and in dtype unless a gather carries the bytes of every member to where they belong.",
        reason: "One collective serves all members.",
        check: bucket::homogeneous,
    },
    Rule {
        id: "comm/moved-exactly-once",
        severity: Severity::Soundness,
        passes: BUCKETING,
        statement: "Every collective before is found after exactly once: as itself, or as one member of one bucket.",
        reason: "Nothing may be lost or sent twice.",
        check: comm::moved_exactly_once,
    },
    Rule {
        id: "comm/rank-invariant-choice",
        severity: Severity::Soundness,
        passes: BUCKETING,
        statement: "All ranks choose the same buckets and pack them in the same order: the choice depends on rank-invariant \
                    data only.",
        reason: "Ranks that choose differently wait for each other for ever, or take one another's data for other data.",
        check: comm::rank_invariant_choice,
    },
    Rule {
        id: "rewrite/collectives",
        severity: Severity::Soundness,
        passes: REWRITES,
        statement: "For each process group the sequence of collectives (kind, reduction, dtype, sizes) is the same on all its \
                    ranks; each message has both its ends, which agree on size, dtype and tag; no ranks wait for each other \
                    in a circle, and where the graphs of some are not given, none waits for more than before the pass; and no two \
                    collectives through symmetric memory of one group run at once.",
        reason: "A mismatch is a deadlock or mixed-up data.",
        check: comm::same_order_across_ranks,
    },
    Rule {
        id: "rewrite/payloads",
        severity: Severity::Soundness,
        passes: &[PassKind::Rewrite],
        statement: "Where ranks have graphs of their own, what meets in a collective is laid out alike on all of them.",
        reason: "A rank that packs in another order takes one value of the others for another one, though its graph would be \
                 right if all ranks ran it.",
        check: comm::same_payloads,
    },
    Rule {
        id: "order/same-nodes",
        severity: Severity::Soundness,
        passes: REPAIR,
        statement: "A repair changes the order of the nodes and nothing else: not their arguments, and not the dtypes, sizes, \
                    strides, offsets and devices recorded of their results.",
        reason: "A repair that edits nodes is another pass.",
        check: order::same_nodes,
    },
    Rule {
        id: "order/acyclic",
        severity: Severity::Soundness,
        passes: BOTH,
        statement: "The graph after is acyclic over arguments at any depth, keyword arguments and ordering edges.",
        reason: "Otherwise there is no order to execute it in.",
        check: order::acyclic,
    },
    Rule {
        id: "order/list-topological",
        severity: Severity::Soundness,
        passes: BOTH,
        statement: "After repair the list is topological: inputs first, definitions before uses, the output last.",
        reason: "The list is what is executed.",
        check: order::list_topological,
    },
    Rule {
        id: "rewrite/in-flight",
        severity: Severity::Soundness,
        passes: REWRITES,
        statement: "Every collective is waited for exactly once, before any use of its value, and what it sends is not \
                    written until then. An input that the graph before waits for is in flight until its first wait.",
        reason: "Its value is undefined until then, and so is what it sends.",
        check: comm::wait_before_use,
    },
    Rule {
        id: "order/streams",
        severity: Severity::Soundness,
        passes: REWRITES,
        statement: "Where a graph runs on several streams, calls that touch the same bytes, one of them writing, stay ordered by \
                    events wherever they were ordered before; and no memory goes back to its stream while another stream may still \
                    use it, unless it did so before. Events that only the caller waits for or records still mark and hold \
                    back what they did; where they do not, that is left open.",
        reason: "Streams run beside each other: without an event one reads what is not written yet, or no longer there.",
        check: streams::ordered,
    },
    Rule {
        id: "rewrite/unwritten",
        severity: Severity::Soundness,
        passes: REWRITES,
        statement: "No call reads memory that nobody has written, or that was taken away, where none did before; those \
                    whose result nobody uses included. Copies of it, and what a partial write leaves, are not followed.",
        reason: "What lies there is anything: an index or an assertion made of it fails on some runs.",
        check: unwritten::written_before_read,
    },
    Rule {
        id: "rewrite/overlapping-writes",
        severity: Severity::Soundness,
        passes: REWRITES,
        statement: "No call writes through a tensor two elements of which lie in one place, nor into what it reads as \
                    another argument, where it did not before; fills, copies of one number and functions of \
                    corresponding elements apart.",
        reason: "What stays, or is read, depends on the order in which the kernel works.",
        check: overlap::written_apart,
    },
    Rule {
        id: "order/write-before-aliased-read",
        severity: Severity::Soundness,
        passes: BUCKETING,
        statement: "Every new write to a storage that is read through another alias is a graph ancestor of that read, \
                    and every new read of one that is written later an ancestor of that write.",
        reason: "Otherwise the next topological sort may swap them.",
        check: order::write_before_aliased_read,
    },
    Rule {
        id: "order/edges-kept",
        severity: Severity::Soundness,
        passes: BOTH,
        statement: "Where an ordering edge was, arguments and ordering edges lead between what stands for its ends: a \
                    surviving node for itself, the bucket's collective for a member, its wait for a member's wait.",
        reason: "An edge that is lost, or left on an erased node, holds nothing in place in the next sort.",
        check: order::edges_kept,
    },
    Rule {
        id: "order/effects-preserved",
        severity: Severity::Soundness,
        passes: BOTH,
        statement: "Conflicting nodes (one storage and at least one write, random draws, other effects) keep their \
                    relative order, and nothing draws that did not.",
        reason: "State must come out the same.",
        check: order::effects_preserved,
    },
    Rule {
        id: "bucket/users-rewired",
        severity: Severity::Soundness,
        passes: BUCKETING,
        statement: "Whoever read a removed node reads a value of the same shape, dtype, device and contents.",
        reason: "Values must not move.",
        check: bucket::users_rewired,
    },
    Rule {
        id: "rewrite/groups",
        severity: Severity::Soundness,
        passes: REWRITE,
        statement: "A collective on another process group than before meets the same ranks in the same order.",
        reason: "Two groups of the same ranks carry the same values; other ranks have others.",
        check: groups::groups_kept,
    },
    Rule {
        id: "rewrite/metadata",
        severity: Severity::Soundness,
        passes: REWRITES,
        statement: "The recorded result of every node is what its operator makes of its inputs, on their device or the \
                    one that it names, and is recorded in no other memory's storage, and in one as large as it takes, and \
                    a view in that of what it is a view of, as far as it was so before.",
        reason: "Later passes trust the metadata.",
        check: metadata::metadata_true,
    },
    Rule {
        id: aliases::ID,
        severity: Severity::Soundness,
        passes: REWRITES,
        statement: aliases::STATEMENT.0,
        reason: aliases::STATEMENT.1,
        check: graph::aliases_kept,
    },
    Rule {
        id: "rewrite/values",
        severity: Severity::Soundness,
        passes: REWRITES,
        statement: "Executed in list order on all ranks in lock step, with fresh memory poisoned, outputs are equal \
                    before and after, bit for bit, or as far as is allowed.",
        reason: "This is what the program computes.",
        check: values::outputs_equal,
    },
    Rule {
        id: "rewrite/state",
        severity: Severity::Soundness,
        passes: REWRITES,
        statement: "What inputs and constants hold in the end is equal, bit for bit.",
        reason: "They outlive the graph: parameters, buffers, gradients.",
        check: values::state_equal,
    },
    Rule {
        id: "rewrite/effects",
        severity: Severity::Soundness,
        passes: REWRITES,
        statement: "Assertions, prints, barriers and other effects are the same, in the same order.",
        reason: "They are seen from outside.",
        check: values::effects_equal,
    },
    Rule {
        id: "rewrite/draws",
        severity: Severity::Soundness,
        passes: REWRITES,
        statement: "As many random numbers are drawn as before, by the same operators, and as many of each kind before \
                    each draw that is read.",
        reason: "Each draw moves the generator on: what is drawn later depends on it.",
        check: draws::draws_kept,
    },
    Rule {
        id: "rewrite/generators",
        severity: Severity::Soundness,
        passes: REWRITE,
        statement: "A generator that is handed to draws (graphsafe_run_with_rng_state) has one draw, or as many as before.",
        reason: "It goes on as it draws: the second draw has other numbers than a generator of its own would give.",
        check: generators::drawn_once,
    },
    Rule {
        id: "rewrite/policy-unchanged",
        severity: Severity::Policy,
        passes: REWRITE,
        statement: "Nothing but tags differs: the nodes, their order, names, arguments and records are as before.",
        reason: "Who only annotates changes nothing.",
        check: contract::unchanged,
    },
    Rule {
        id: "rewrite/policy-deterministic",
        severity: Severity::Policy,
        passes: REWRITE,
        statement: "A second run of the pass on the same graph gives the same graph.",
        reason: "Reproducibility, and agreement between ranks.",
        check: contract::deterministic,
    },
    Rule {
        id: "rewrite/policy-names",
        severity: Severity::Policy,
        passes: REWRITE,
        statement: "Inputs and outputs keep their names, in their order.",
        reason: "Callers may find them by name.",
        check: contract::names_kept,
    },
    Rule {
        id: "rewrite/policy-strides",
        severity: Severity::Policy,
        passes: REWRITE,
        statement: "Outputs have the strides that they had.",
        reason: "Later code may be compiled for them.",
        check: contract::strides_kept,
    },
    Rule {
        id: "rewrite/policy-tags",
        severity: Severity::Policy,
        passes: REWRITE,
        statement: "A node that is still there has the recompute tag and the checkpointed region that it had.",
        reason: "A partition that follows decides by them.",
        check: contract::tags_kept,
    },
    Rule {
        id: "rewrite/policy-collectives",
        severity: Severity::Policy,
        passes: REWRITE,
        statement: "There are the same collectives as before, each as often; where that is demanded, in the same order on each group.",
        reason: "Another communication pass, or another rank, counts on them.",
        check: contract::collectives_kept,
    },
    Rule {
        id: "rewrite/policy-waits",
        severity: Severity::Policy,
        passes: REWRITE,
        statement: "Every collective is waited for exactly once.",
        reason: "A second wait costs time, and some runtimes take none.",
        check: contract::waits_once,
    },
    Rule {
        id: "rewrite/policy-edges",
        severity: Severity::Policy,
        passes: REWRITE,
        statement: "No ordering edge is added between ends that arguments and other ordering edges order already.",
        reason: "It holds nothing, and each later pass has to carry it.",
        check: contract::edges_needed,
    },
    Rule {
        id: "order/sort-idempotent",
        severity: Severity::Soundness,
        passes: REPAIR,
        statement: "Repairing twice is repairing once, and a sorted list is left alone.",
        reason: "Determinism.",
        check: order::sort_idempotent,
    },
    Rule {
        id: "order/position-equal-reference",
        severity: Severity::Policy,
        passes: REPAIR,
        statement: "The repaired order is exactly that of the stable topological sort.",
        reason: "Reproducibility.",
        check: order::position_equal_reference,
    },
    Rule {
        id: "bucket/policy-cap",
        severity: Severity::Policy,
        passes: BUCKETING,
        statement: "The bytes of a bucket of at least 2 members stay within the cap, counting for each member the \
                    larger of its input and its output.",
        reason: "Bounds the memory of a bucket.",
        check: policy::cap,
    },
    Rule {
        id: "bucket/policy-min-size",
        severity: Severity::Policy,
        passes: BUCKETING,
        statement: "A bucket has at least 2 members.",
        reason: "A bucket of one is pure overhead.",
        check: policy::min_size,
    },
    Rule {
        id: "bucket/policy-adjacency",
        severity: Severity::Policy,
        passes: BUCKETING,
        statement: "The members of a bucket are neighbours, in wait order, among the collectives of their kind.",
        reason: "Keeps the order of communication stable.",
        check: policy::adjacency,
    },
    Rule {
        id: "bucket/policy-topo-span",
        severity: Severity::Policy,
        passes: BUCKETING,
        statement: "The list distance between the first and the last member of a bucket is at most max_topo_span.",
        reason: "Bounds how much lifetimes grow.",
        check: policy::topo_span,
    },
    Rule {
        id: "bucket/policy-maximal",
        severity: Severity::Policy,
        passes: BUCKETING,
        statement: "No collective was left out that could have joined a bucket when it was its turn.",
        reason: "A missed merge is lost bandwidth.",
        check: policy::maximal,
    },
    Rule {
        id: "bucket/policy-peak-memory",
        severity: Severity::Policy,
        passes: BUDGETED,
        statement: "The peak of live storage bytes after is within the budget.",
        reason: "A bucket keeps all its members alive until the last use of any.",
        check: policy::peak_memory,
    },
    Rule {
        id: "bucket/policy-exposed-time",
        severity: Severity::Policy,
        passes: BUDGETED,
        statement: "The time that communication is not hidden behind computation grows by no more than the budget.",
        reason: "Overlap is the purpose.",
        check: policy::exposed_time,
    },
    Rule {
        id: "bucket/policy-deterministic",
        severity: Severity::Policy,
        passes: BUCKETING,
        statement: "The choice of buckets is the same when nodes are renamed and independent inputs are permuted.",
        reason: "Reproducibility, and agreement between ranks.",
        check: policy::deterministic,
    },
];

/// Proves what both graphs compute, where that is asked for. `evaluated`: both graphs, where they have been evaluated
/// already.
pub fn prove_values(evidence: &mut Evidence, evaluators: Evaluators, evaluated: Option<Evaluated>) {
    evidence.values = ValueEvidence::prove(evidence, evaluators, evaluated);
}

/// Executes all ranks where that is asked for, after the values of each distinct graph have been proved; a line for
/// each way.
pub fn execute_values(all: &mut [Evidence], evaluators: Evaluators) -> Vec<String> {
    ValueEvidence::execute(all, evaluators);
    let executed = all.iter().take(1).flat_map(|first| first.values.notes_of_execution());
    proved::note(all).into_iter().chain(executed).collect()
}

/// Applies every rule for `pass` to the evidence: all findings, arranged, and the status of each rule.
pub fn check_all(evidence: &Evidence, pass: PassKind) -> (Vec<Finding>, Statuses) {
    check_where(evidence, &|rule| rule.passes.contains(&pass))
}

fn check_where(evidence: &Evidence, wanted: &dyn Fn(&Rule<Rewrites>) -> bool) -> (Vec<Finding>, Statuses) {
    let (mut findings, statuses) = check_each(CATALOGUE.iter().filter(|rule| wanted(rule)), evidence);
    by_weight(&mut findings);
    (arrange(findings), statuses)
}

/// Applies one rule.
pub fn check_only(evidence: &Evidence, pass: PassKind, id: &str) -> (Vec<Finding>, Statuses) {
    check_where(evidence, &|rule| rule.id == id && rule.passes.contains(&pass))
}

/// Sorts findings by the catalogue. Where values first part comes before what is counted of collectives, since an
/// account that does not add up is often only what a wrong reader looks like; but not before an order that was lost, which
/// is why they part, or what keeps a graph from being executed at all.
fn by_weight(findings: &mut [Finding]) {
    let place = |id: &str| CATALOGUE.iter().position(|rule| rule.id == id).unwrap_or(CATALOGUE.len());
    let counted = place("comm/moved-exactly-once");
    let has_cause = findings.iter().any(|finding| finding.is_cause);
    let weight = |finding: &Finding| match finding.rule {
        "rewrite/collectives"
        | "order/acyclic"
        | "order/list-topological"
        | "order/effects-preserved"
        | "rewrite/in-flight"
            if has_cause =>
        {
            (counted, 0)
        }
        _ if finding.is_cause => (counted, 1),
        rule => (place(rule), 2),
    };
    findings.sort_by_key(weight);
}

/// Puts the most fundamental findings first and each consequence under its cause.
///
/// A finding follows from an earlier one of a more fundamental rule if the two share a node: the broken bucket,
/// its collective, or a user of it. Rules come in order of the catalogue, so a cause always precedes.
pub fn arrange(findings: Vec<Finding>) -> Vec<Finding> {
    let mut roots: Vec<Finding> = Vec::new();
    let mut owner: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    for finding in findings {
        let cause = finding.nodes.iter().find_map(|node| owner.get(&node.name).copied());
        let cause = cause.filter(|&i| {
            let root = &roots[i];
            (root.is_cause || root.rule != finding.rule) && root.severity == Severity::Soundness
        });
        let root = cause.unwrap_or(roots.len());
        for node in &finding.nodes {
            owner.entry(node.name.clone()).or_insert(root);
        }
        match cause {
            Some(i) => roots[i].consequences.push(finding),
            None => roots.push(finding),
        }
    }
    roots
}
