//! Communication scheduling: the nodes of a graph in a new order that hides communication behind computation.
//!
//! # The idea
//!
//! Seven passes, all of which only move nodes:
//!
//! - [`Pass::SinkWaits`], [`Pass::RaiseComms`] and [`Pass::ReorderComputeForOverlap`] are one list scheduler with three
//!   scores: of the nodes that are ready, the one with the lowest score comes next (`scored`);
//! - [`Pass::ReorderCommunicationPreservingPeakMemory`] moves collectives up, [`Pass::SinkWaitsIterative`] moves waits
//!   down, one neighbour at a time, as long as the peak of memory stays within a budget (`iterative`);
//!   [`Pass::SimpleOverlap`] does both with plain swaps and no budget (`overlap`);
//! - [`Pass::Fsdp`] puts the copies around each all-gather and reduce-scatter together and lets one of each kind be in
//!   flight (`fsdp`).
//!
//! They work on *steps* ([`Steps`]): a step is a node, or the nodes of a cluster, which stay together. Every reason for
//! one step to come before another counts, in every pass: data, ordering edges, storage that one writes and another
//! reads, random draws, effects, and the order of communication. Only whether a reason is *real* (the later step needs
//! what the earlier one made) or *order only* decides whether a step may join a moving group or stops it.
//!
//! # Formal statement
//!
//! Let D be the dependences of the graph (see [`analysis::dependences`](crate::analysis::dependences)), certain or not,
//! and C the chain of all communication in list order, whatever its group. The result is an order of the nodes,
//! inputs first, the output last, that keeps D and C; so the order of launches on every group is that of the input, on
//! all ranks. What remains free is decided by the graph, the agreed estimates and the budget, all of them the same on
//! all ranks.
//!
//! Sources: `torch/_inductor/comms.py` of PyTorch 2.15; the FSDP ordering as it was in 2.6 (pytorch#128568).
//!
//! # What it does not do
//!
//! Nothing is fused, and no estimate is measured: the table is an input. Views are steps that take no time, where
//! Inductor has none; that changes what a neighbour is, and with it some orders of the passes that swap neighbours.

mod fsdp;
mod iterative;
mod list;
mod memory;
mod overlap;
mod runtime;
mod scored;
mod steps;
mod strategy;

pub use crate::config::schedule::{Config, Pass};
pub use list::List;
pub use memory::{Plan, Tracker};
pub use steps::{Facts, Kind, Steps, is_real};
pub use strategy::{Reference, Strategy};

use crate::graph::{Graph, NodeId};
use crate::simulate::{Buffers, EstimateError};

/// Why a pass declines.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The list is not in order.
    #[error("{after} needs {before}, which does not stand before it")]
    Unsorted {
        /// What is needed.
        before: String,
        /// Who needs it.
        after: String,
    },
    /// A node in two clusters.
    #[error("{node} is in the clusters {first} and {second}")]
    Shared {
        /// The node.
        node: String,
        /// One cluster.
        first: String,
        /// The other.
        second: String,
    },
    /// Clusters that cannot be contiguous.
    #[error("cluster {cluster} is not convex: {path}")]
    NotConvex {
        /// The cluster, or several.
        cluster: String,
        /// Who must come between its members.
        path: String,
    },
    /// An ordering edge to a node outside, a cycle.
    #[error("{0}")]
    Input(String),
    /// Estimates that are no durations.
    #[error(transparent)]
    Estimates(#[from] EstimateError),
    /// A budget that is no share.
    #[error("the memory budget is {0}: a share is finite and not negative")]
    Budget(f64),
}

/// What a pass gives.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// The graph in its new order.
    pub graph: Graph,
    /// The order: nodes of the graph before.
    pub order: Vec<NodeId>,
    /// The groups that the pass made, dissolved in the result: nodes of the graph before.
    pub groups: Vec<Vec<NodeId>>,
    /// Peaks of memory in bytes, before and as the pass has tracked it since; `None` for passes that do not.
    pub peak: Option<(i64, i64)>,
    /// Number of swaps of neighbours.
    pub swaps: usize,
}

/// Runs a pass as the reference does.
pub fn schedule(graph: &Graph, config: &Config) -> Result<Scheduled, Refusal> {
    schedule_with(graph, config, 0, &Reference)
}

/// Runs a pass with other ingredients, as global rank `rank`.
pub fn schedule_with(
    graph: &Graph,
    config: &Config,
    rank: u32,
    strategy: &dyn Strategy,
) -> Result<Scheduled, Refusal> {
    if let Some(&bad) = config.budgets.iter().find(|budget| !budget.is_finite() || **budget < 0.0) {
        return Err(Refusal::Budget(bad));
    }
    let estimates = strategy.estimates(config, rank)?;
    let facts = steps::Facts::new(graph);
    if config.pass == Pass::Fsdp {
        return fsdp::order(&facts, &estimates, strategy);
    }
    let steps = Steps::new(&facts, &estimates, strategy, &[], &[])?;
    let (order, peak, swaps) = match config.pass {
        Pass::SinkWaits | Pass::RaiseComms | Pass::ReorderComputeForOverlap => {
            let mode = match config.pass {
                Pass::SinkWaits => scored::Mode { raises: false, sinks: true, overlaps: false },
                Pass::RaiseComms => scored::Mode { raises: true, sinks: false, overlaps: false },
                _ => scored::Mode { raises: true, sinks: true, overlaps: true },
            };
            (scored::order(&steps, mode, strategy), None, 0)
        }
        _ => {
            let buffers = strategy.buffers(&facts);
            let budget = strategy.budget(config, rank);
            let moved = match config.pass {
                Pass::SimpleOverlap => overlap::order(&steps, &buffers),
                Pass::SinkWaitsIterative => iterative::sink_waits(&steps, &buffers, config, budget, strategy),
                _ => iterative::raise_comms(&steps, &buffers, config, budget, strategy),
            };
            (moved.order, Some(moved.peak), moved.swaps)
        }
    };
    let order = steps.unpacked(&order);
    Ok(Scheduled { graph: graph.clone().reordered(&order), order, groups: Vec::new(), peak, swaps })
}

/// The buffers of a graph, as the passes that keep the peak of memory see them.
pub fn buffers(graph: &Graph) -> Buffers {
    Buffers::of(graph)
}

#[cfg(test)]
mod tests;
