//! Mutants that lose or spoil ordering edges.

use crate::graph::{Graph, OrderingEdge};
use crate::passes::bucketing::Strategy;
use crate::passes::bucketing::merge::Moved;
use crate::passes::repair::{self, Cycle};

/// Edges stay on the nodes that were merged, and go with them.
pub(super) struct NotRemapped;

impl Strategy for NotRemapped {
    fn moved_edge(&self, _: &Moved, edge: OrderingEdge) -> Option<OrderingEdge> {
        Some(edge)
    }
}

/// Edges between two members become an edge of the bucket to itself.
pub(super) struct SelfEdges;

impl Strategy for SelfEdges {
    fn moved_edge(&self, moved: &Moved, edge: OrderingEdge) -> Option<OrderingEdge> {
        Some(OrderingEdge { before: moved.node(edge.before), after: moved.node(edge.after) })
    }
}

/// Sorts by data edges.
pub(super) fn sort_without_ordering(graph: &Graph) -> Result<Graph, Cycle> {
    let order = repair::stable_data_order(graph)?;
    Ok(graph.clone().reordered(&order))
}
