//! Changes of `recompute` tags before a partition: boundaries of checkpointed regions, and values that are saved
//! by force.
//!
//! Source: `torch._functorch.partitioners.cleanup_recompute_tags`, `force_save_collectives`,
//! `force_save_effectful_ops`, `force_save_bw_mutation_src` of PyTorch 2.15.

use super::error::{Origin, PartitionError, Problem};
use super::joint::{Joint, Role, Sort};
use super::marks::{Placement, Recompute};
use crate::config::partition::PartitionConfig;
use crate::graph::{NodeId, Value};
use fixedbitset::FixedBitSet;

/// Saves the values at the boundaries of checkpointed regions: what a later region takes from an earlier one, what
/// a backward hook waits for, and, for the default partitioner, the inputs of a region. Tags change along the way,
/// so a node that became `MUST_SAVE` no longer counts as tagged for later ones.
pub fn clean_up(joint: &mut Joint, is_default: bool) {
    for id in joint.ids() {
        let marks = *joint.tags(id);
        let saves = {
            let mut users = joint.users(id).iter().map(|&user| joint.tags(user));
            if marks.recomputes() {
                let later = |user: Option<i64>| matches!((user, marks.region), (Some(u), Some(n)) if u > n);
                let boundary = users.clone().any(|user| user.recomputes() && later(user.region));
                boundary || (marks.hook && !users.any(|user| user.recomputes()))
            } else {
                is_default
                    && marks.region.is_none()
                    && users.any(|user| user.recomputes())
                    && !result_of_region(joint, id)
            }
        };
        if saves {
            joint.marks.get_mut(id).recompute = Some(Recompute::MustSave);
        }
    }
}

/// Makes one of the tags of communication and its waits, where they let `id` be saved while it is in flight: it is
/// computed again if a wait must be, else its waits are saved. Gives whether a tag changed. (PyTorch saves the buffer
/// that is still being filled.)
pub fn join_waits(joint: &mut Joint, id: NodeId) -> bool {
    let waits = joint.waits(id).to_vec();
    let must = |wait: &NodeId| joint.tags(*wait).recompute == Some(Recompute::MustRecompute);
    let (nodes, recompute, region) = match waits.iter().copied().find(must) {
        Some(wait) => {
            let launch = match joint.graph.arg(id, 0) {
                Some(Value::Node(launch)) if joint.target(id).getitem => Some(launch),
                _ => None,
            };
            let nodes = launch.into_iter().chain([id]).collect();
            (nodes, Recompute::MustRecompute, joint.tags(wait).region)
        }
        None => (waits, Recompute::MustSave, None),
    };
    let mut changed = false;
    for id in nodes {
        let own = joint.marks.get_mut(id);
        changed |= own.recompute != Some(recompute);
        own.recompute = Some(recompute);
        own.region = region.or(own.region);
    }
    changed
}

/// Whether `id` takes one of the results of a node in a checkpointed region.
fn result_of_region(joint: &Joint, id: NodeId) -> bool {
    let Some(Value::Node(parent)) = joint.graph.arg(id, 0) else { return false };
    joint.target(id).getitem && joint.sort(parent) != Sort::Tensor && joint.tags(parent).region.is_some()
}

/// The three passes that save values by force: what collectives give, unless they are tagged; what effects in
/// forward give; and the source of a forward write to what backward writes to as well.
pub fn force_saves(joint: &mut Joint, config: &PartitionConfig) -> Result<(), PartitionError> {
    let mut saved = Vec::new();
    if !config.optimizes_collectives {
        for id in joint.ids() {
            if joint.target(id).collective && !joint.tags(id).recomputes() {
                leaves(joint, id, true, &mut saved);
                saved
                    .drain(..)
                    .for_each(|leaf| joint.marks.get_mut(leaf).recompute = Some(Recompute::MustSave));
            }
        }
    }
    for id in joint.ids() {
        if !joint.target(id).with_effects || joint.tags(id).placement == Placement::Backward {
            continue;
        }
        if joint.tags(id).recompute == Some(Recompute::MustRecompute) {
            let error = PartitionError::new(
                Problem::ContradictoryTags,
                format!("{} has an effect, which cannot be repeated", joint.name(id)),
            );
            let error =
                error.with(joint.name(id), Origin::Annotation, "must be computed again (MUST_RECOMPUTE)");
            return Err(error.with(joint.name(id), Origin::Annotation, "has an effect (with_effects)"));
        }
        leaves(joint, id, false, &mut saved);
    }
    save_twice_written(joint, &mut saved);
    saved.iter().for_each(|leaf| joint.marks.get_mut(*leaf).recompute = Some(Recompute::MustSave));
    Ok(())
}

/// The results of a node with several that are no tuples themselves.
pub fn results(joint: &Joint, id: NodeId, found: &mut Vec<NodeId>) {
    leaves(joint, id, false, found);
}

/// The results of `id` that are no tuples, through nested getitems. `itself`: whether a node that nobody
/// indexes is one.
fn leaves(joint: &Joint, id: NodeId, itself: bool, found: &mut Vec<NodeId>) {
    let mut stack = vec![(id, itself)];
    while let Some((at, itself)) = stack.pop() {
        let getitems: Vec<NodeId> = joint.getitems(at).collect();
        let counts = match itself {
            // A collective: leaves of the tree of getitems.
            true => getitems.is_empty(),
            false => at != id,
        };
        if counts && joint.sort(at) != Sort::Tuple {
            found.push(at);
        }
        stack.extend(getitems.into_iter().map(|getitem| (getitem, itself)));
    }
}

fn save_twice_written(joint: &Joint, saved: &mut Vec<NodeId>) {
    let mut written = FixedBitSet::with_capacity(joint.graph.len());
    for id in joint.ids().rev().filter(|&id| joint.role(id) != Role::Output) {
        if !joint.target(id).copy {
            return;
        }
        let Some(Value::Node(destination)) = joint.graph.arg(id, 0) else { continue };
        match joint.tags(id).placement {
            Placement::MustBeBackward => written.insert(destination.index()),
            Placement::MustBeForward if written.contains(destination.index()) => {
                if let Some(Value::Node(source)) = joint.graph.arg(id, 1) {
                    saved.push(source);
                }
            }
            _ => {}
        }
    }
}
