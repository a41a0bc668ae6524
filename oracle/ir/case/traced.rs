//! What joins two partitions that run one after the other.

use crate::graph::Graph;

/// A first partition, tagged and traced again.
#[derive(Clone, Debug)]
pub struct TracedAgain {
    /// The first joint graph after tagging: as before, if tagging is right.
    pub joint: Graph,
    /// The first forward graph, tagged.
    pub forward: Graph,
    /// The first backward graph after tagging: as before, if tagging is right.
    pub backward: Graph,
    /// The second joint graph.
    pub second: Graph,
    /// The names of the first forward graph's nodes, and those that they have in the second joint graph.
    pub names: Vec<(String, String)>,
    /// The same of the first backward graph.
    pub backward_names: Vec<(String, String)>,
}
