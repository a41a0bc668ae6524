//! Marks of fully sharded data parallelism: a gathered parameter is gathered again in backward, or kept.
//!
//! Source: `autoparallel.graph_passes.activation_checkpointing` (`force_recompute_fsdp_all_gather` and its
//! counterpart for parameters that stay gathered).

use super::error::{Origin, PartitionError, Problem};
use super::joint::{Joint, Role};
use super::marks::{Recompute, retag};
use super::strategy::{Reference, Strategy};
use super::{PartitionConfig, marks::Placement};
use crate::graph::{Graph, NodeId, Value};

/// The region of nodes that a pass tagged by itself: larger than any that a user has, so that none of them is
/// the border of a user's region.
pub const REGION: i64 = 100_000;

/// Tags the gathers of parameters in the joint graph. `reshard`: whether parameters are resharded after
/// forward, so that gathers, waits and what is derived from them alone must be computed again; else the last
/// value of the chain that a parameter goes through is saved.
pub fn mark(graph: &Graph, reshard: bool) -> Result<Graph, PartitionError> {
    mark_with(graph, reshard, &Reference)
}

/// [`mark`] by another strategy.
pub fn mark_with(graph: &Graph, reshard: bool, strategy: &dyn Strategy) -> Result<Graph, PartitionError> {
    let joint = Joint::new(
        graph.clone(),
        &PartitionConfig { num_forward_outputs: Some(0), ..PartitionConfig::default() },
    )?;
    let (marked, tag) = match reshard {
        true => (again(&joint, strategy), Recompute::MustRecompute),
        false => (kept(&joint)?, Recompute::MustSave),
    };
    let mut graph = joint.graph;
    for id in marked {
        retag(&mut graph, id, |graph, tags| {
            tags.recompute = Some(graph.intern(tag.name()));
            tags.ac_graph_id = Some(REGION);
        });
    }
    Ok(graph)
}

/// The nodes of gathers that must be computed again.
fn again(joint: &Joint, strategy: &dyn Strategy) -> Vec<NodeId> {
    let from_input = from_one_input(joint);
    let mut marked = Vec::new();
    for wait in joint.ids().filter(|&id| joint.target(id).wait_tensor) {
        let Some(Value::Node(gather)) = joint.graph.argument(wait, 0, "tensor") else { continue };
        if !joint.target(gather).all_gather || !from_input[gather.index()] {
            continue;
        }
        marked.extend([gather, wait]);
        let mut current = wait;
        while let Some(next) = strategy.derived(joint, current) {
            marked.push(next);
            current = next;
        }
        if let Some(Value::Node(input)) = joint.graph.arg(gather, 0)
            && joint.target(input).convert
        {
            marked.push(input);
        }
    }
    marked
}

/// The only reader of a node, where that reads nothing else.
pub fn derived(joint: &Joint, id: NodeId) -> Option<NodeId> {
    match joint.users(id) {
        [user] if joint.edges.inputs(*user).len() == 1 && joint.role(*user) == Role::Call => Some(*user),
        _ => None,
    }
}

/// For each node whether following the only input again and again ends at a placeholder.
fn from_one_input(joint: &Joint) -> Vec<bool> {
    let mut found = vec![false; joint.graph.len()];
    for id in joint.ids() {
        found[id.index()] = match (joint.role(id), joint.edges.inputs(id)) {
            (Role::Call, [input]) => found[input.index()],
            (Role::Call | Role::Constant | Role::Output, _) => false,
            _ => true,
        };
    }
    found
}

/// The gathered values that are saved, one for each parameter that is gathered.
fn kept(joint: &Joint) -> Result<Vec<NodeId>, PartitionError> {
    let mut marked = Vec::new();
    for input in
        joint.ids().filter(|&id| !matches!(joint.role(id), Role::Call | Role::Constant | Role::Output))
    {
        let mut gather = None;
        let mut current = input;
        while let Some(next) = derived(joint, current) {
            if joint.target(next).all_gather {
                gather = Some(next);
            }
            current = next;
        }
        let wait = gather
            .and_then(|gather| joint.users(gather).iter().find(|&&user| joint.target(user).wait_tensor));
        let Some(&wait) = wait else { continue };
        let mut end = wait;
        while let Some(next) = derived(joint, end).or_else(|| reassembled(joint, end)) {
            end = next;
        }
        let forward_only = |user: &NodeId| joint.tags(*user).placement == Placement::MustBeForward;
        let users = joint.users(end);
        if users.iter().all(forward_only) {
            let error = PartitionError::new(
                Problem::ContradictoryTags,
                format!(
                    "the gathered parameter {} is kept for backward, which cannot read it",
                    joint.name(end)
                ),
            );
            return Err(users.iter().fold(error, |error, &user| {
                error.with(joint.name(user), Origin::Annotation, "must be in forward, says its tag")
            }));
        }
        // Views of what is kept cost nothing.
        while joint.target(end).schema_view
            && let Some(&input) = joint.edges.inputs(end).first()
        {
            end = input;
        }
        marked.push(end);
    }
    Ok(marked)
}

/// The concatenation that puts the pieces of a split together again, where nobody reads the pieces otherwise.
fn reassembled(joint: &Joint, split: NodeId) -> Option<NodeId> {
    if joint.graph.target(split) != "aten.split.Tensor" {
        return None;
    }
    let mut cat = None;
    for &piece in joint.users(split) {
        let [reader] = joint.users(piece) else { return None };
        if !joint.target(piece).getitem || !joint.target(*reader).cat || cat.is_some_and(|cat| cat != *reader)
        {
            return None;
        }
        cat = Some(*reader);
    }
    cat
}
