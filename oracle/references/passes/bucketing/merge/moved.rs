//! Where the edges of erased nodes lead.
//!
//! What comes after a member's start comes after the merged start; what comes after its wait, after the merged wait.
//! What comes before a member's start must come before the node that packs the member's input, since that is where
//! the input is read now.

use crate::graph::{NodeId, OrderingEdge};
use rustc_hash::FxHashMap;

/// Erased nodes and what stands for them.
#[derive(Clone, Debug, Default)]
pub struct Moved {
    /// Merged start or wait.
    node: FxHashMap<NodeId, NodeId>,
    /// The node that packs a member's input.
    packer: FxHashMap<NodeId, NodeId>,
}

impl Moved {
    /// A start, or a cast in front of it, was merged.
    pub fn start(&mut self, old: NodeId, start: NodeId, packer: NodeId) {
        self.node.insert(old, start);
        self.packer.insert(old, packer);
    }

    /// A wait was merged.
    pub fn wait(&mut self, old: NodeId, wait: NodeId) {
        self.node.insert(old, wait);
    }

    /// What stands for a node as one end of an edge.
    pub fn node(&self, id: NodeId) -> NodeId {
        self.node.get(&id).copied().unwrap_or(id)
    }

    /// Where an ordering edge of the graph or a hazard leads; `None` where both ends have become one node.
    pub fn edge(&self, edge: OrderingEdge) -> Option<OrderingEdge> {
        let before = self.node(edge.before);
        if before == self.node(edge.after) {
            return None;
        }
        let after = self.packer.get(&edge.after).copied().unwrap_or_else(|| self.node(edge.after));
        (before != after).then_some(OrderingEdge { before, after })
    }
}
