//! The ingredients of the replay that another implementation might choose differently, one method each. The defaults
//! are the reference; whoever wants a broken one replaces a method.

use crate::graph::{Graph, NodeId};

/// The choices of a replay.
pub trait Strategy {
    /// Whether a node that shows memory of another one keeps it alive for its own users.
    fn keeps_for(&self, graph: &Graph, view: NodeId) -> bool {
        let _ = (graph, view);
        true
    }

    /// Whether the memory that a returned view shows is kept.
    fn keeps_returned_views(&self) -> bool {
        true
    }

    /// Whether a collective in flight holds what it reads.
    fn holds_inputs_in_flight(&self) -> bool {
        true
    }

    /// Whether a collective in flight holds what it writes.
    fn holds_results_in_flight(&self) -> bool {
        true
    }
}

/// The reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reference;

impl Strategy for Reference {}
