//! Which nodes forward needs, which backward must compute, and which nobody claims.
//!
//! Source: `torch._functorch.partitioners.classify_nodes` of PyTorch 2.15.

use super::error::{Origin, PartitionError, Problem};
use super::extract::{Piece, extract};
use super::joint::{Joint, Role, Side, nodes_of};
use super::marks::Placement;
use super::strategy::Strategy;
use crate::config::partition::PartitionConfig;
use crate::graph::NodeId;
use fixedbitset::FixedBitSet;

/// The distance of what backward never needs.
pub const FAR: i64 = 1_000_000_000;

/// The classes of the nodes of a joint graph. They may overlap: a forward value can be a gradient.
#[derive(Clone, Debug)]
pub struct Classes {
    /// Must be computed in backward: depends on a tangent or has an effect there.
    pub tangents_closure: FixedBitSet,
    /// Must be available in backward: the closure and the backward outputs.
    pub backward: FixedBitSet,
    /// Survive in the graph that forward would be if backward did not exist.
    pub forward: FixedBitSet,
    /// In neither `forward` nor `backward`, in graph order.
    pub unclaimed: Vec<NodeId>,
    /// The forward nodes in graph order.
    pub in_order: Vec<NodeId>,
    /// The rank of each node in `in_order`.
    pub order: Vec<u32>,
    /// Primals, then forward seeds.
    pub inputs: Vec<NodeId>,
    /// Primals that live for the whole program.
    pub static_inputs: FixedBitSet,
}

impl Classes {
    /// Classifies the nodes of `joint`.
    pub fn of(
        joint: &Joint,
        config: &PartitionConfig,
        strategy: &dyn Strategy,
    ) -> Result<Classes, PartitionError> {
        let n = joint.graph.len();
        let mut tangents_closure = FixedBitSet::with_capacity(n);
        for id in joint.ids() {
            if joint.role(id) == Role::Tangent || strategy.must_be_backward(joint, id) {
                tangents_closure.insert(id.index());
            }
            if tangents_closure.contains(id.index()) {
                joint.users(id).iter().for_each(|user| tangents_closure.insert(user.index()));
            }
        }
        let mut backward = tangents_closure.clone();
        for id in nodes_of(&joint.backward_outputs) {
            if strategy.claims_output(joint, &tangents_closure, id) {
                backward.insert(id.index());
            }
        }
        contradictions(joint, &tangents_closure, strategy)?;
        let primals = joint.with_role(Role::Primal);
        let is_static = config.static_inputs.of(&joint.graph, primals.len());
        let mut static_inputs = FixedBitSet::with_capacity(n);
        primals
            .iter()
            .zip(is_static)
            .filter(|(_, yes)| *yes)
            .for_each(|(id, _)| static_inputs.insert(id.index()));
        let mut inputs = primals;
        inputs.extend(joint.with_role(Role::ForwardSeed));
        let alone: Piece = extract(joint, strategy, inputs.clone(), &joint.forward_outputs, Side::Forward)?;
        let mut forward = FixedBitSet::with_capacity(n);
        alone.list.iter().for_each(|id| forward.insert(id.index()));
        let claimed = |id: &NodeId| forward.contains(id.index()) || backward.contains(id.index());
        let unclaimed = joint.ids().filter(|id| !claimed(id)).collect();
        let in_order: Vec<NodeId> = joint.ids().filter(|id| forward.contains(id.index())).collect();
        let mut order = vec![u32::MAX; n];
        in_order.iter().zip(0..).for_each(|(id, rank)| order[id.index()] = rank);
        Ok(Classes { tangents_closure, backward, forward, unclaimed, in_order, order, inputs, static_inputs })
    }

    /// Whether forward needs `id`.
    pub fn needs_forward(&self, id: NodeId) -> bool {
        self.forward.contains(id.index())
    }

    /// How many steps of forward nodes lie between a node and the first user outside forward: the output is
    /// [`FAR`], a node outside forward 0.
    pub fn distances(&self, joint: &Joint) -> Vec<i64> {
        distances(joint, &self.forward)
    }
}

/// [`Classes::distances`] for any set of forward nodes.
pub fn distances(joint: &Joint, forward: &FixedBitSet) -> Vec<i64> {
    let mut distances = vec![0; joint.graph.len()];
    for id in joint.ids().rev() {
        distances[id.index()] = match joint.role(id) {
            Role::Output => FAR,
            _ if !forward.contains(id.index()) => 0,
            _ => joint.users(id).iter().fold(FAR, |least, user| least.min(distances[user.index()] + 1)),
        };
    }
    distances
}

/// Refuses tags that exclude one another: what must run in forward and yet depends on a tangent.
fn contradictions(
    joint: &Joint,
    closure: &FixedBitSet,
    strategy: &dyn Strategy,
) -> Result<(), PartitionError> {
    let bad = |id: &NodeId| closure.contains(id.index()) && strategy.must_be_forward(joint, *id);
    let Some(id) = joint.ids().find(bad) else { return Ok(()) };
    let why = match joint.tags(id).placement {
        Placement::MustBeForward => "must be in forward, says its tag",
        _ => "must be in forward: it writes to an argument and is not tagged backward",
    };
    let mut error = PartitionError::new(
        Problem::ContradictoryTags,
        format!("{} must be in forward and needs what only backward has", joint.name(id)),
    )
    .with(joint.name(id), Origin::Annotation, why);
    // Up to where the dependence begins.
    let mut at = id;
    while let Some(&input) = joint.edges.inputs(at).iter().find(|input| closure.contains(input.index())) {
        let text = format!("depends on {}", joint.name(input));
        error = error.with(joint.name(at), Origin::DataDependence, text);
        at = input;
    }
    let start = match joint.role(at) {
        Role::Tangent => (Origin::DataDependence, "is a tangent"),
        _ => (Origin::Annotation, "must be in backward"),
    };
    Err(error.with(joint.name(at), start.0, start.1))
}
