//! Judging a partition: a joint graph, and the forward and backward graphs that somebody made of it.

mod candidate;
mod failure;
mod network;
mod replay;

pub(super) use candidate::{judge_candidate, judge_given};
pub use network::{cut_network, network};
pub use replay::{StageGraphs, forward_outputs, judge_replay, stages};

use super::{CannotJudge, Judgement, Options, Values, undecided, verdict};
use crate::candidates::Reference;
use crate::case::Case;
use crate::case::PassConfig;
use crate::graph::Graph;
use crate::ops::shape::complete;
use crate::rules::partition::{
    self, AskedValues, Further, PartitionConfig, PartitionEvidence, compose, returned_keys, with_flat_output,
};
use crate::rules::{self, Side};

/// What the options of a pass say to the judge.
pub(super) fn config(pass: &PassConfig) -> Result<PartitionConfig, CannotJudge> {
    PartitionConfig::from_pass(pass).map_err(CannotJudge::Pass)
}

/// Judges the parts that are recorded in a case.
///
/// # Errors
/// As [`judge_partition`]; and where the case names another pass, or records no parts.
pub fn judge_recorded_parts(case: &Case, options: &Options) -> Result<Judgement, CannotJudge> {
    let pass = case.pass.as_ref().filter(|pass| pass.name == "partition");
    let pass = pass.ok_or_else(|| CannotJudge::Pass("the case does not name the pass partition".into()))?;
    let config = PartitionConfig::from_pass(pass).map_err(CannotJudge::Pass)?;
    let Some(parts) = &case.parts else {
        return Err(CannotJudge::Pass("the case records no forward and backward".into()));
    };
    let mut further = Further::default();
    if config.promises.minimum_cut {
        further.network = Some(network(&case.graph, pass)?);
    }
    if options.run_again && config.method == crate::rules::partition::Method::Replay {
        further.again = replay::next_round(&case.graph, &parts.forward, &parts.backward, pass, &Reference);
    }
    let parts = (parts.forward.clone(), parts.backward.clone());
    judge_given(&case.graph, &parts, pass, further, options)
}

/// Judges one triple.
///
/// # Errors
/// The joint graph cannot be judged as an input, or it does not say how many of its outputs are forward's.
pub fn judge_partition(
    joint: &Graph,
    forward: &Graph,
    backward: &Graph,
    config: &PartitionConfig,
    options: &Options,
) -> Result<Judgement, CannotJudge> {
    judge_partition_with(joint, forward, backward, config, Further::default(), options)
}

/// The same with what is known beyond the triple: other ranks, an earlier partition, the network that was cut.
///
/// # Errors
/// As [`judge_partition`].
pub fn judge_partition_with(
    joint: &Graph,
    forward: &Graph,
    backward: &Graph,
    config: &PartitionConfig,
    further: Further,
    options: &Options,
) -> Result<Judgement, CannotJudge> {
    let mut keys = returned_keys(forward);
    keys.extend(returned_keys(backward));
    if returned_keys(joint) != keys {
        let why = "the parts return mappings with other keys than the joint graph";
        return Err(CannotJudge::Pass(why.into()));
    }
    // Passes often leave their new nodes without recorded results, and may return them in other lists.
    let given = |graph: &Graph| {
        let completed = complete(graph);
        with_flat_output(completed.as_ref().unwrap_or(graph)).or(completed)
    };
    let changed = (given(joint), given(forward), given(backward));
    let joint = changed.0.as_ref().unwrap_or(joint);
    let (forward, backward) = (changed.1.as_ref().unwrap_or(forward), changed.2.as_ref().unwrap_or(backward));
    let joint = Side::new(joint);
    let unfit: Vec<String> =
        joint.faults().iter().filter(|fault| fault.is_fatal()).map(ToString::to_string).collect();
    if !unfit.is_empty() {
        return Err(CannotJudge::Input(unfit));
    }
    let config = config.clone().or_from_file(joint.graph);
    let Some(forward_outputs) = config.forward_outputs else {
        let missing = "the joint graph does not say how many of its outputs are forward's (num_fwd_outputs)";
        return Err(CannotJudge::Pass(missing.into()));
    };
    let named = partition::parts_named_as(joint.graph, forward, backward, forward_outputs);
    let (forward, backward) = (named.0.as_ref().unwrap_or(forward), named.1.as_ref().unwrap_or(backward));
    let composition = compose(joint.graph, forward, backward, forward_outputs);
    let mut evidence = PartitionEvidence::of_joint(joint, forward, backward, &composition, config);
    evidence.further = further;
    partition::compare_values(&mut evidence, asked(options));
    if options.values == Values::Agree {
        let (findings, unknown) = rules::contradictions_of_partition(&evidence);
        let (notes, acted) = (partition::notes(&evidence), !evidence.saved.is_empty());
        return Ok(Judgement { verdict: verdict(findings, unknown), rules: Vec::new(), notes, acted });
    }
    let (findings, rules) = partition::check_all(&evidence);
    let undecided = undecided(&rules);
    let verdict = verdict(findings, undecided);
    let acted = !evidence.saved.is_empty();
    Ok(Judgement { verdict, rules, notes: partition::notes(&evidence), acted })
}

fn asked(options: &Options) -> AskedValues {
    AskedValues {
        prove: matches!(options.values, Values::Auto | Values::ProofFirst | Values::Extents | Values::Agree),
        execute: !matches!(options.values, Values::Extents | Values::Off),
        only_in_doubt: options.values == Values::ProofFirst,
        both: matches!(options.values, Values::Execute | Values::Agree),
        agree: options.values == Values::Agree,
        element_limit: options.element_limit,
    }
}
