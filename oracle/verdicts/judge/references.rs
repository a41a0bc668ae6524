//! The reference passes, as far as the judge asks them. They are handed in from above ([`Options`](super::Options)):
//! the judge knows what they are for, not how they work. docs/architecture.md lists what rests on them, and why that is
//! sound.

use super::candidate::{Candidate, Refusal};
use crate::case::{PassConfig, TracedAgain};
use crate::config::partition::Stage;
use crate::config::schedule::Config;
use crate::graph::{Graph, NodeId};
use crate::rules::partition::CutNetwork;
use std::fmt::Debug;

/// The reference of every pass. As a candidate it cuts joint graphs: where somebody refuses to, and under other
/// budgets.
pub trait References: Candidate + Debug {
    /// The order that a stable topological sort gives; `None` if there is a cycle.
    fn stable_order(&self, graph: &Graph) -> Option<Vec<NodeId>>;

    /// A graph in the order of a scheduling pass; `None` if the reference refuses it.
    fn scheduled(&self, graph: &Graph, config: &Config) -> Option<Graph>;

    /// A joint graph with the tags of activation checkpointing.
    fn checkpointed(&self, joint: &Graph, stage: Stage) -> Result<Graph, Refusal>;

    /// The network that a minimum cut of a joint graph has to cut; `None` if there is nothing to cut, or if the cut was
    /// changed afterwards, so that nothing can be asked of others.
    fn cut_network(&self, joint: &Graph, pass: &PassConfig) -> Result<Option<CutNetwork>, Refusal>;

    /// Tags a first partition and traces both parts again, as [`Candidate::trace_again`] says.
    fn traced_again(
        &self,
        joint: &Graph,
        forward: &Graph,
        backward: &Graph,
        forward_outputs: usize,
    ) -> Result<TracedAgain, Refusal>;
}
