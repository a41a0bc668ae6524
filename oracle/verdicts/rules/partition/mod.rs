//! The rules of partitions: what holds between a joint graph and the forward and backward graphs made of it.
//!
//! # The idea
//!
//! A partition is judged from three graphs. Nodes keep their names, so a node that both parts have is recomputed, and
//! an input of backward with the name of a forward node is a saved value. What the parts mean is found by putting them
//! together again ([`compose`](fn@compose)) and comparing the result with the joint graph, as a graph before and after
//! any other pass: inputs, outputs, writes, draws and effects.
//!
//! Soundness rules hold for every partition, however the saved values were chosen. Policy rules speak about the
//! choice: they follow from tags, or from what the configuration promises. A rule that lacks evidence (other ranks,
//! the first of two partitions, the network that was cut) says so.
//!
//! # What they do not do
//!
//! They partition nothing, and they know no implementation.

mod again;
mod boundary;
mod compared;
mod compose;
mod config;
mod draws;
mod evidence;
mod feasible;
mod flow;
mod gathers;
mod meaning;
mod mutation;
mod names;
mod placement;
mod records;
mod replay;
mod replayed;
mod saved;
mod tags;
mod terms;
mod values;

pub use again::returned_names;
pub(super) use compose::draws_from_generator;
pub use compose::{Composition, Draw, Origin, compose, returned, returned_keys, with_flat_output};
pub use config::{JUDGE_OPTIONS, Method, PartitionConfig, Promises};
pub(super) use evidence::live;
pub use evidence::{
    BackwardInput, CutEdge, CutNetwork, Earlier, Further, PartitionEvidence, Saved, ValueClass,
};
pub use feasible::{Feasible, Question, feasible};
pub(crate) use names::parts_named_as;
pub use replayed::with_replays;
pub use saved::{BudgetUse, SavedBytes, saved_bytes};
pub use tags::{NodeTags, RECOMPUTE_TAGS, Recompute, Region};
pub use terms::Term;
pub use values::PartitionValues;

use super::{
    Evaluators, Family, Finding, PassKind, Rule, Severity, Statuses, arrange, check_each, severity_in,
};

const PARTITION: &[PassKind] = &[PassKind::Partition];

/// Rules about partitions.
pub enum Partitions {}

impl Family for Partitions {
    type Evidence<'a> = PartitionEvidence<'a>;
}

/// Every rule, most fundamental first: a violation of an earlier rule may bring about violations of later ones.
pub static CATALOGUE: &[Rule<Partitions>] = &[
    Rule {
        id: "partition/total",
        severity: Severity::Soundness,
        passes: PARTITION,
        statement: "A valid joint graph for which saving what backward needs is allowed is partitioned.",
        reason: "A refusal stops the training of a sound program.",
        check: again::total,
    },
    Rule {
        id: "rewrite/well-formed",
        severity: Severity::Soundness,
        passes: PARTITION,
        statement: super::graph::WELL_FORMED.0,
        reason: super::graph::WELL_FORMED.1,
        check: boundary::well_formed,
    },
    Rule {
        id: "partition/bw-closed",
        severity: Severity::Soundness,
        passes: PARTITION,
        statement: "Backward computes from saved values, tangents and what the runtime gives, and from nothing else.",
        reason: "A forward value that is not saved is gone.",
        check: boundary::closed,
    },
    Rule {
        id: "order/bw-order-valid",
        severity: Severity::Soundness,
        passes: PARTITION,
        statement: "Both lists are topological; where promised, items stand directly behind what they are items of.",
        reason: "The list is what is executed.",
        check: boundary::order_valid,
    },
    Rule {
        id: "partition/no-tangent-in-forward",
        severity: Severity::Soundness,
        passes: PARTITION,
        statement: "Nothing in forward depends on a tangent; what does, and is needed, is in backward.",
        reason: "Gradients do not exist in forward.",
        check: placement::no_tangent_in_forward,
    },
    Rule {
        id: "partition/rng-paired",
        severity: Severity::Soundness,
        passes: PARTITION,
        statement: "A random operator is drawn once; where both parts run it, the state before the first run is saved \
                    and the second run starts from it.",
        reason: "An independent redraw gives wrong gradients.",
        check: placement::random_paired,
    },
    Rule {
        id: "partition/no-effect-replay",
        severity: Severity::Soundness,
        passes: PARTITION,
        statement: "No node with an effect runs in both parts.",
        reason: "Effects happen once.",
        check: placement::no_effect_replay,
    },
    Rule {
        id: "partition/effects-once-in-order",
        severity: Severity::Soundness,
        passes: PARTITION,
        statement: "Writes, effects, communication and random draws are those of the joint graph, a draw that nobody \
                    reads apart, and each write, effect and draw happens exactly once, in the part to which it \
                    belongs, in the order of the joint graph within that part. What is tagged must_be_in_forward or \
                    must_be_in_backward belongs there; a write or an effect also where it was traced.",
        reason: "A write that is lost, doubled or moved changes state, and a draw the numbers of those after it.",
        check: placement::effects_once_in_order,
    },
    Rule {
        id: "partition/no-recompute-after-mutation",
        severity: Severity::Soundness,
        passes: PARTITION,
        statement: "What backward recomputes reads memory in the version that the joint graph reads.",
        reason: "Otherwise it sees what was written since.",
        check: mutation::no_recompute_after_mutation,
    },
    Rule {
        id: "partition/saved-alias-is-current",
        severity: Severity::Soundness,
        passes: PARTITION,
        statement: "A saved value whose memory is written later is saved only where backward is to see the write.",
        reason: "A saved view is no snapshot.",
        check: mutation::saved_alias_is_current,
    },
    Rule {
        id: "partition/saved-kinds",
        severity: Severity::Soundness,
        passes: PARTITION,
        statement: "What is saved is a tensor, an object or a symbol; a condition that is only asserted is not saved.",
        reason: "Autograd saves nothing else.",
        check: boundary::saved_kinds,
    },
    Rule {
        id: "comm/no-unwaited-crossing",
        severity: Severity::Soundness,
        passes: PARTITION,
        statement: "No result of communication is used, or leaves forward, before it was waited for.",
        reason: "It is undefined until then; across graphs it would be waited for twice.",
        check: boundary::no_unwaited_crossing,
    },
    Rule {
        id: "partition/recompute-terms-equal",
        severity: Severity::Soundness,
        passes: PARTITION,
        statement: "What both parts compute under one name is one value.",
        reason: "Backward would go on with another value than forward did.",
        check: meaning::recompute_terms_equal,
    },
    Rule {
        id: "partition/outputs-preserved",
        severity: Severity::Soundness,
        passes: PARTITION,
        statement: "Forward takes the primals and returns the user's outputs, backward takes the tangents and returns \
                    the gradients, all in the order of the joint graph, None in its places.",
        reason: "This is the calling convention.",
        check: boundary::outputs_preserved,
    },
    Rule {
        id: "partition/signature-match",
        severity: Severity::Soundness,
        passes: PARTITION,
        statement: "Forward saves what backward takes, by name, dtype, shape and strides: tensors, objects, generator states, \
                    symbols on one side; symbols, tensors, objects, generator states, tangents, the rest on the other.",
        reason: "The runtime slices both by position.",
        check: boundary::signature,
    },
    Rule {
        id: "partition/metadata-true",
        severity: Severity::Soundness,
        passes: PARTITION,
        statement: "The recorded result of every node of both parts is what its operator makes of its inputs, on their \
                    device or the one that it names, and is recorded in no other memory's storage, and in one as large \
                    as it takes, as far as it is so in the joint graph; where a node takes the same as there, it is recorded as there. A view may be \
                    recorded in a storage of its own.",
        reason: "Later passes trust the metadata.",
        check: records::metadata_true,
    },
    Rule {
        id: "partition/symbols-bound",
        severity: Severity::Soundness,
        passes: PARTITION,
        statement: "Every symbol in the sizes of backward's inputs is an input of backward itself.",
        reason: "Otherwise the generated code does not know the size.",
        check: boundary::symbols_bound,
    },
    Rule {
        id: "partition/semantics-equal",
        severity: Severity::Soundness,
        passes: PARTITION,
        statement: "Forward, then backward on what forward saved, gives the outputs, writes and effects of the joint \
                    graph, with each random draw made once.",
        reason: "This is what the program computes.",
        check: meaning::semantics_equal,
    },
    Rule {
        id: super::aliases::ID,
        severity: Severity::Soundness,
        passes: PARTITION,
        statement: super::aliases::STATEMENT.0,
        reason: super::aliases::STATEMENT.1,
        check: meaning::aliases_kept,
    },
    Rule {
        id: "comm/spmd-same-decision",
        severity: Severity::Soundness,
        passes: PARTITION,
        statement: "The ranks of one program save the same values and start the same communication in the same order.",
        reason: "Ranks that choose differently wait for each other for ever.",
        check: again::same_decision,
    },
    Rule {
        id: "partition/no-saved-gather-exposed",
        severity: Severity::Policy,
        passes: PARTITION,
        statement: "Nothing that has to be recomputed is saved, and nothing that is a gathered tensor which has to be \
                    gathered again: no view, cast, copy, piece or reassembly of it.",
        reason: "Saving the view costs the bytes of the gather.",
        check: gathers::no_saved_gather,
    },
    Rule {
        id: "partition/must-save-honoured",
        severity: Severity::Policy,
        passes: PARTITION,
        statement: "What is tagged MUST_SAVE is not computed again in backward unless its memory is saved.",
        reason: "The tag is the user's wish.",
        check: gathers::must_save_honoured,
    },
    Rule {
        id: "comm/collective-once",
        severity: Severity::Policy,
        passes: PARTITION,
        statement: "Where promised, each collective runs once over both parts unless its recomputation is asked for.",
        reason: "Repeated communication is traffic.",
        check: placement::collective_once,
    },
    Rule {
        id: "comm/no-dead-collective",
        severity: Severity::Policy,
        passes: PARTITION,
        statement: "Where promised, no part runs communication whose result nothing needs.",
        reason: "It is traffic for nothing.",
        check: placement::no_dead_collective,
    },
    Rule {
        id: "partition/no-dead-saved",
        severity: Severity::Policy,
        passes: PARTITION,
        statement: "From each saved tensor a path leads to a result or an effect of backward.",
        reason: "It would be kept for nothing.",
        check: saved::no_dead_saved,
    },
    Rule {
        id: "partition/saved-distinct",
        severity: Severity::Policy,
        passes: PARTITION,
        statement: "Where promised, no storage and no value is saved twice.",
        reason: "It would be counted and kept twice.",
        check: saved::distinct,
    },
    Rule {
        id: "partition/compared-saved",
        severity: Severity::Policy,
        passes: PARTITION,
        statement: "Where promised, a value that backward compares for equality with a saved value made of it is itself saved, \
                    and not computed again by operators that round.",
        reason: "A kernel of backward may round otherwise than that of forward: the maximum is then nowhere equal to what it is \
                 the maximum of, and its gradient is lost.",
        check: compared::compared_saved,
    },
    Rule {
        id: "partition/cut-certificate",
        severity: Severity::Policy,
        passes: PARTITION,
        statement: "The saved values are a cut of the network, of the value of its maximum flow. Under a budget the network is that of the values which the knapsack keeps.",
        reason: "The flow proves that no cut is cheaper.",
        check: saved::cut_certificate,
    },
    Rule {
        id: "partition/cut-sink-closest",
        severity: Severity::Policy,
        passes: PARTITION,
        statement: "Of all minimum cuts the saved values are the one closest to the sink.",
        reason: "The choice does not depend on the solver.",
        check: saved::cut_sink_closest,
    },
    Rule {
        id: "partition/budget-respected",
        severity: Severity::Policy,
        passes: PARTITION,
        statement: "Saved bytes stay within the budget, and a smaller budget never saves more.",
        reason: "This is what the budget means.",
        check: saved::budget_respected,
    },
    Rule {
        id: "partition/replay-saves-match",
        severity: Severity::Policy,
        passes: PARTITION,
        statement: "A replay saves what the first partition saved, as far as backward needs it, and nothing else: \
                    inputs, symbols, objects and what has to be recomputed left aside.",
        reason: "This is its purpose.",
        check: replay::saves_match,
    },
    Rule {
        id: "partition/replay-index-fidelity",
        severity: Severity::Policy,
        passes: PARTITION,
        statement: "A replay saves an item of a tuple if and only if the first partition saved that item.",
        reason: "Another item is another tensor.",
        check: replay::index_fidelity,
    },
    Rule {
        id: "partition/replay-fixed-point",
        severity: Severity::Policy,
        passes: PARTITION,
        statement: "Tagging, retracing and partitioning once more saves the same values.",
        reason: "Tags that decay lose the choice.",
        check: replay::fixed_point,
    },
    Rule {
        id: "partition/tag-locality",
        severity: Severity::Policy,
        passes: PARTITION,
        statement: "Tagging the forward graph changes no tag of the joint graph or of backward.",
        reason: "A tag is a statement about the forward graph alone.",
        check: replay::tag_locality,
    },
    Rule {
        id: "partition/cse-tag-merge",
        severity: Severity::Policy,
        passes: PARTITION,
        statement: "Where equal communication is merged, it has to be recomputed if any copy had to be.",
        reason: "Tags speak of the value, not of the copy.",
        check: gathers::cse_tag_merge,
    },
    Rule {
        id: "partition/metamorphic-stable",
        severity: Severity::Policy,
        passes: PARTITION,
        statement: "Renaming, legal reordering, duplicating a pure node, an unused input, and scaling all sizes by a \
                    power of two leave the choice as it is.",
        reason: "None of them changes the problem.",
        check: again::metamorphic_stable,
    },
];

/// Compares values in the ways that are asked, and adds what they say to the evidence.
pub fn compare_values(evidence: &mut PartitionEvidence, evaluators: Evaluators) {
    evidence.values = PartitionValues::gather(evidence, evaluators);
}

/// Applies every rule: all findings, arranged, and the status of each rule.
pub fn check_all(evidence: &PartitionEvidence) -> (Vec<Finding>, Statuses) {
    let (findings, statuses) = check_each(CATALOGUE, evidence);
    (arrange(findings), statuses)
}

/// Lines for people: what is saved, and how values were compared.
pub fn notes(evidence: &PartitionEvidence) -> Vec<String> {
    let mut notes = saved::notes(evidence);
    notes.extend(evidence.values.notes());
    notes.extend(draws::notes(evidence));
    notes
}
