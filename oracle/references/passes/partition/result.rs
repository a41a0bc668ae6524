//! What a partitioner gives back.

use super::error::{Origin, PartitionError, Problem};
use super::joint::{Joint, Role, nodes_of};
use super::max_flow::Network;
use super::modules::Modules;
use crate::config::partition::{Method, PartitionConfig};
use crate::graph::{Graph, NodeId};
use rustc_hash::FxHashMap;

/// A value that forward hands to backward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedValue {
    /// The node, in the joint graph that was given.
    pub node: NodeId,
    /// Its name, which it has in all three graphs.
    pub name: String,
    /// Its size in bytes; a view has its own, not its storage's.
    pub bytes: i64,
    /// The storage of its tensor: equal numbers mean one storage. As recorded, or else as the schemas say.
    pub storage: Option<u32>,
    /// The size of that storage in bytes: what keeping the value keeps. Its own size, where that is not recorded.
    pub storage_bytes: i64,
}

/// A value of a minimum cut and what proves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The maximum flow, in weighted bytes.
    pub flow: u128,
    /// The weights of the saved values together: equal to the flow.
    pub cut: u128,
}

/// A minimum cut's value and the network that it cuts. Node `i` of the joint graph that was cut
/// ([`Partition::joint`]) enters at vertex `2 + 2i` and leaves at `3 + 2i`; 0 is the source, 1 the sink.
#[derive(Clone, Debug)]
pub struct Proof {
    /// The value.
    pub certificate: Certificate,
    /// The network, with the capacities that it had before anything flowed.
    pub network: Network,
    /// What the cut saves, by name. Afterwards what backward does not read is dropped, and communication waited for.
    pub saved: Vec<String>,
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
    pub proof: Option<Proof>,
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

    /// The number of distinct storages of the saved tensors.
    pub fn storages(&self) -> usize {
        self.by_storage().len()
    }

    /// Bytes that the saved tensors keep: those of each distinct storage once.
    pub fn storage_bytes(&self) -> i64 {
        self.by_storage().into_iter().fold(0, |sum, bytes| sum.saturating_add(bytes))
    }

    /// The bytes of each distinct storage; a tensor without a known one has its own.
    fn by_storage(&self) -> Vec<i64> {
        let mut places: FxHashMap<u32, usize> = FxHashMap::default();
        let mut bytes: Vec<i64> = Vec::new();
        for value in &self.values {
            let place =
                value.storage.map_or(bytes.len(), |storage| *places.entry(storage).or_insert(bytes.len()));
            match bytes.get_mut(place) {
                Some(most) => *most = value.storage_bytes.max(*most),
                None => bytes.push(value.storage_bytes),
            }
        }
        bytes
    }

    pub(super) fn new(
        given: &Graph,
        joint: &Joint,
        modules: &Modules,
        graphs: (Graph, Graph),
        method: Method,
        proof: Option<Proof>,
    ) -> Result<Partition, PartitionError> {
        let storages = super::storage::storages(joint);
        let saved = |list: &[NodeId]| -> Result<Vec<SavedValue>, PartitionError> {
            list.iter().map(|&id| saved_value(given, joint, id, storages[id.index()])).collect()
        };
        let backward = modules.backward.computed(joint);
        let forward = modules.forward.computed(joint);
        let both = |id: &&NodeId| forward.contains(id.index()) && backward.contains(id.index());
        let mut tagged = joint.graph.clone();
        for id in joint.ids() {
            if let Some(strategy) = joint.tags(id).recompute {
                super::marks::set_recompute(&mut tagged, id, strategy);
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
            proof,
        })
    }
}

fn saved_value(
    given: &Graph,
    joint: &Joint,
    id: NodeId,
    storage: Option<u32>,
) -> Result<SavedValue, PartitionError> {
    let name = joint.name(id);
    let bytes = joint.size(id)?;
    let recorded = joint.graph.tensor_of(id).and_then(|tensor| joint.graph.hint(tensor.storage_bytes?));
    Ok(SavedValue {
        // Elimination and merging keep names.
        node: given.find(name).unwrap_or(id),
        name: name.to_string(),
        bytes,
        storage,
        storage_bytes: recorded.unwrap_or(bytes),
    })
}

/// Refuses a joint graph without tangents, where they are asked for.
pub(super) fn needs_tangents(joint: &Joint, config: &PartitionConfig) -> Result<(), PartitionError> {
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
