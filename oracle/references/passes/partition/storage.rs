//! Which values share a storage, as a tracer sees it.

use super::joint::Joint;
use crate::analysis::storages::Mode;
use crate::analysis::{Collectives, Storages};
use crate::graph::{NodeId, Op};

/// The storage of each node whose value is one tensor: the recorded one where all of them are recorded, else
/// what the schemas say.
pub fn storages(joint: &Joint) -> Vec<Option<u32>> {
    let graph = &joint.graph;
    let tensors = || graph.ids().filter_map(|id| graph.tensor_of(id));
    if tensors().all(|tensor| tensor.storage.is_some()) {
        return graph.ids().map(|id| Some(graph.tensor_of(id)?.storage?.0)).collect();
    }
    let collectives = Collectives::new(graph, &joint.ops);
    let storages = Storages::new(graph, &joint.ops, &joint.edges, &collectives, Mode::Logical);
    let of = |id: NodeId| {
        graph.tensor_of(id)?;
        storages.storage_of(id).filter(|_| graph.node(id).op != Op::Output).map(|storage| storage.0)
    };
    graph.ids().map(of).collect()
}
