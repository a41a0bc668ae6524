//! The default partitioner: what stands in the forward region of the list is forward, and backward gets
//! whatever of it it reads.
//!
//! Source: `torch._functorch.partitioners.default_partition` of PyTorch 2.15.

use super::error::{Origin, PartitionError, Problem};
use super::joint::{Joint, Role, Sort};
use super::marks::Placement;
use super::modules::Saved;
use crate::graph::{NodeId, Value};

/// Whether a graph writes only to its inputs, and only by copies.
pub fn is_functional(joint: &Joint) -> bool {
    joint.ids().all(|id| {
        let target = joint.target(id);
        let into_input = match joint.graph.arg(id, 0) {
            Some(Value::Node(destination)) => {
                joint.graph.node(destination).op == crate::graph::Op::Placeholder
            }
            _ => false,
        };
        !target.mutable || (target.functional_write && into_input)
    })
}

/// The forward region: every node up to the last one that is tagged forward or is an input, tangents excepted.
/// `true` for its nodes.
fn forward_region(joint: &Joint) -> Result<Vec<bool>, PartitionError> {
    let counts = |id: &NodeId| {
        joint.tags(*id).placement == Placement::Forward
            || matches!(joint.role(*id), Role::Primal | Role::ForwardSeed)
    };
    let last = joint.ids().rfind(counts).ok_or_else(|| {
        PartitionError::new(
            Problem::Malformed,
            "the joint graph has neither an input nor a node tagged is_forward",
        )
    })?;
    Ok(joint.ids().map(|id| id <= last && joint.role(id) != Role::Tangent).collect())
}

/// What forward hands over, before what backward does not read is dropped. `checkpoints`: whether the graph has
/// `recompute` tags.
pub fn saved(joint: &Joint, checkpoints: bool) -> Result<Saved, PartitionError> {
    let region = forward_region(joint)?;
    let mut saved = Saved::default();
    for id in joint.ids().filter(|id| region[id.index()]) {
        let opaque = joint.opaque(id);
        let target = joint.target(id);
        if joint.role(id) == Role::Output || target.annotation || is_subgraph(joint, id) {
            continue;
        }
        if joint.symbolic(id) {
            saved.symbols.push(id);
            continue;
        }
        if joint.read_by_index(id) {
            continue;
        }
        let effect = joint.role(id) == Role::Call && joint.impure(id, false) && !target.wait;
        if effect && checkpoints && !joint.tags(id).must_save() {
            let error = PartitionError::new(
                Problem::ContradictoryTags,
                "a graph with an effect cannot be checkpointed by the default partitioner",
            );
            let error = error.with(joint.name(id), Origin::DataDependence, "has an effect");
            let tagged = joint.ids().find(|&id| joint.tags(id).recomputes());
            return Err(tagged.into_iter().fold(error, |error, id| {
                error.with(joint.name(id), Origin::Annotation, "is tagged to be computed again")
            }));
        }
        if joint.tags(id).must_save() || effect || opaque {
            let list = if opaque { &mut saved.objects } else { &mut saved.values };
            list.push(id);
            continue;
        }
        if joint.role(id) == Role::Call && joint.sort(id) != Sort::Tensor {
            let error = PartitionError::new(Problem::NeitherSavedNorRecomputed, "a tuple cannot be saved");
            let text = "has no tensor as its value, and not all of its readers index it";
            return Err(error.with(joint.name(id), Origin::DataDependence, text));
        }
        let outside = || joint.users(id).iter().copied().filter(|user| !region[user.index()]);
        if outside().all(|user| joint.symbolic(user)) {
            saved.symbols.extend(outside());
        } else if !joint.tags(id).recomputes() {
            saved.values.push(id);
        }
    }
    saved.deduplicate();
    saved.symbols.retain(|&id| !joint.asserted_only(id));
    Ok(saved)
}

/// Whether `id` is the body of a higher-order operator: nothing is recorded of its value.
fn is_subgraph(joint: &Joint, id: NodeId) -> bool {
    joint.role(id) == Role::Constant && joint.sort(id) == Sort::Nothing
}
