//! Two partitions, one after the other: what the first one saves is written on its forward graph, both parts are traced
//! again as one joint graph, and that is cut by the replay.
//!
//! AutoParallel compiles twice: its own partition comes first, and `torch.compile` over the result gives the second
//! joint graph. The steps are [`tag_forward`], [`retrace_with`], maybe [activation
//! checkpointing](super::activation_checkpointing), and the replay, which repeats the choice of the first partition
//! ([`super::replay`]).

use super::error::PartitionError;
use super::retrace::{Retraced, Side, retrace_with};
use super::strategy::{Reference, Strategy};
use super::tagging::{saved_by, tag_forward, tag_saved};
use crate::case::TracedAgain;
use crate::graph::Graph;

/// Tags a first partition and traces it again. Of forward's outputs the first `forward_outputs` are the program's.
pub fn trace_again(
    joint: &Graph,
    forward: &Graph,
    backward: &Graph,
    forward_outputs: usize,
) -> Result<TracedAgain, PartitionError> {
    trace_again_with(joint, forward, backward, forward_outputs, &Reference)
}

/// [`trace_again`] by another strategy.
pub fn trace_again_with(
    joint: &Graph,
    forward: &Graph,
    backward: &Graph,
    forward_outputs: usize,
    strategy: &dyn Strategy,
) -> Result<TracedAgain, PartitionError> {
    let (mut joint, mut backward) = (joint.clone(), backward.clone());
    if !strategy.tags_forward_only() {
        let saved = saved_by(forward);
        tag_saved(&mut joint, &saved);
        tag_saved(&mut backward, &saved);
    }
    let forward = tag_forward(forward);
    let Retraced { joint: second, origins } = retrace_with(&forward, &backward, forward_outputs, strategy)?;
    let (mut names, mut backward_names) = (Vec::new(), Vec::new());
    for (id, origin) in second.ids().zip(&origins) {
        let Some((side, from)) = *origin else { continue };
        let (part, names) = match side {
            Side::Forward => (&forward, &mut names),
            Side::Backward => (&backward, &mut backward_names),
        };
        names.push((part.name(from).to_string(), second.name(id).to_string()));
    }
    Ok(TracedAgain { joint, forward, backward, second, names, backward_names })
}
