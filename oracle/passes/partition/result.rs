//! What a partitioner gives back.

use super::config::{Method, PartitionConfig};
use super::error::PartitionError;
use super::joint::Joint;
use super::modules::Modules;
use crate::graph::{Graph, NodeId, StorageId};
use rustc_hash::FxHashSet;

/// A value that forward hands to backward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedValue {
    /// The node, in the joint graph that was given.
    pub node: NodeId,
    /// Its name, which it has in all three graphs.
    pub name: String,
    /// Its size in bytes; a view has its own, not its storage's.
    pub bytes: i64,
    /// The recorded storage of its tensor.
    pub storage: Option<StorageId>,
}

/// A value of a minimum cut and what proves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The maximum flow, in weighted bytes.
    pub flow: u128,
    /// The weights of the saved values together: equal to the flow.
    pub cut: u128,
}

/// A joint graph cut in two.
#[derive(Clone, Debug)]
pub struct Partition {
    /// The partitioner that decided: the default one also decides where there is nothing to cut, and the
    /// min-cut one where the default one may not.
    pub method: Method,
    /// The joint graph that was cut: without dead and doubled nodes, with the tags that the decision rests on.
    pub joint: Graph,
    /// Forward.
    pub forward: Graph,
    /// Backward.
    pub backward: Graph,
    /// The number of forward's outputs that are the program's; the rest is saved.
    pub num_forward_outputs: usize,
    /// Saved tensors, in order.
    pub values: Vec<SavedValue>,
    /// Saved symbolic numbers, in order.
    pub symbols: Vec<SavedValue>,
    /// Saved objects, in order.
    pub objects: Vec<SavedValue>,
    /// Names of the nodes that both sides compute, in forward's order.
    pub recomputed: Vec<String>,
    /// The proof that the cut is minimal, where one was made.
    pub certificate: Option<Certificate>,
}

impl Partition {
    /// Everything that is saved, in the order of forward's outputs.
    pub fn saved(&self) -> impl Iterator<Item = &SavedValue> {
        self.values.iter().chain(&self.objects).chain(&self.symbols)
    }

    /// Bytes of the saved tensors, each by its own size.
    pub fn bytes(&self) -> i64 {
        self.values.iter().fold(0, |sum, value| sum.saturating_add(value.bytes))
    }

    /// The number of distinct recorded storages of the saved tensors; a tensor without one counts as one.
    pub fn storages(&self) -> usize {
        let mut seen = FxHashSet::default();
        self.values.iter().filter(|value| value.storage.is_none_or(|storage| seen.insert(storage))).count()
    }

    pub(super) fn new(
        given: &Graph,
        joint: &Joint,
        modules: &Modules,
        graphs: (Graph, Graph),
        method: Method,
        certificate: Option<Certificate>,
    ) -> Result<Partition, PartitionError> {
        let saved = |list: &[NodeId]| -> Result<Vec<SavedValue>, PartitionError> {
            list.iter().map(|&id| saved_value(given, joint, id)).collect()
        };
        let backward = modules.backward.computed(joint);
        let forward = modules.forward.computed(joint);
        let both = |id: &&NodeId| forward.contains(id.index()) && backward.contains(id.index());
        let mut tagged = joint.graph.clone();
        for id in joint.ids() {
            if let Some(policy) = joint.tags(id).recompute {
                super::marks::set_recompute(&mut tagged, id, policy);
            }
        }
        Ok(Partition {
            method,
            joint: tagged,
            forward: graphs.0,
            backward: graphs.1,
            num_forward_outputs: joint.forward_outputs.len(),
            values: saved(&modules.saved.values)?,
            symbols: saved(&modules.saved.symbols)?,
            objects: saved(&modules.saved.objects)?,
            recomputed: modules
                .forward
                .list
                .iter()
                .filter(both)
                .map(|&id| joint.name(id).to_string())
                .collect(),
            certificate,
        })
    }
}

fn saved_value(given: &Graph, joint: &Joint, id: NodeId) -> Result<SavedValue, PartitionError> {
    let name = joint.name(id);
    Ok(SavedValue {
        // Elimination and merging keep names.
        node: given.find(name).unwrap_or(id),
        name: name.to_string(),
        bytes: joint.size(id)?,
        storage: joint.graph.tensor_of(id).and_then(|tensor| tensor.storage),
    })
}

/// The forward outputs that a configuration names, for messages.
pub(super) fn needs_tangents(joint: &Joint, config: &PartitionConfig) -> Result<(), PartitionError> {
    use super::error::{Origin, Problem};
    use super::joint::{Role, nodes_of};
    if !config.needs_tangents || joint.ids().any(|id| joint.role(id) == Role::Tangent) {
        return Ok(());
    }
    let error = PartitionError::new(
        Problem::NoTangents,
        "the joint graph has no tangents: no input's target contains \"tangents\", so nothing is backward",
    );
    Err(nodes_of(&joint.backward_outputs).fold(error, |error, id| {
        error.with(joint.name(id), Origin::DataDependence, "is a backward output and depends on no tangent")
    }))
}
