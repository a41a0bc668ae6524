//! Dead-code elimination: one sweep from the end that drops every node nobody reads and that has no effect.
//!
//! Three things change its result: whether draws of random numbers count as effects, whether waits do
//! ([`PartitionConfig`](super::PartitionConfig)), and which nodes may be dropped at all: the default partitioner
//! sweeps once more for collectives alone. Source: `torch.fx.Graph.eliminate_dead_code` of PyTorch 2.15.

use super::extract::Piece;
use super::joint::Joint;
use crate::graph::{Graph, NodeId};
use fixedbitset::FixedBitSet;

/// The nodes of `joint` that stay.
pub fn live(joint: &Joint) -> Vec<NodeId> {
    let mut read = FixedBitSet::with_capacity(joint.graph.len());
    let mut kept = Vec::with_capacity(joint.graph.len());
    for id in joint.ids().rev() {
        if read.contains(id.index()) || joint.survives(id) {
            joint.edges.inputs(id).iter().for_each(|input| read.insert(input.index()));
            kept.push(id);
        }
    }
    kept.reverse();
    kept
}

/// The joint graph without its dead nodes; `None` if there are none.
pub fn eliminate(joint: &Joint) -> Option<Graph> {
    let live = live(joint);
    (live.len() < joint.graph.len()).then(|| joint.graph.clone().reordered(&live))
}

/// Drops the collectives of one side that nobody reads: dead waits, then what they waited for.
pub fn eliminate_collectives(joint: &Joint, piece: &mut Piece) {
    piece.eliminate(joint, |id| !joint.target(id).collective);
}
