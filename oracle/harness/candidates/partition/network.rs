//! The network that a minimum cut has to cut, as evidence: PyTorch's, as the reference builds it.

use crate::graph::NodeId;
use crate::passes::partition::Partition;
use crate::passes::partition::max_flow::INFINITE;
use crate::rules::partition::{CutEdge, CutNetwork};
use rustc_hash::FxHashSet;

/// The network that a partition cut; `None` where none was, or where the cut was changed afterwards: then backward
/// computes what the cut saves, and nothing can be demanded of others.
pub(in crate::candidates) fn cut_network(parts: &Partition) -> Option<CutNetwork> {
    let proof = parts.proof.as_ref()?;
    let network = &proof.network;
    let kept: FxHashSet<&str> = parts.saved().map(|saved| saved.name.as_str()).collect();
    if proof.saved.iter().any(|name| !kept.contains(name.as_str()) && parts.backward.find(name).is_some()) {
        return None;
    }
    let edges = network.edges().map(|(from, to, capacity)| {
        // A node is the edge from its entry to its exit.
        let saves = (from >= 2 && from % 2 == 0 && to == from + 1)
            .then(|| parts.joint.name(NodeId((from - 2) / 2)).to_string());
        CutEdge {
            from: from as usize,
            to: to as usize,
            capacity: (capacity < INFINITE).then(|| u64::try_from(capacity).unwrap_or(u64::MAX)),
            saves,
        }
    });
    Some(CutNetwork { vertices: network.vertices(), source: 0, sink: 1, edges: edges.collect() })
}
