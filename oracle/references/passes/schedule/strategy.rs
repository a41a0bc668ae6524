//! The ingredients of the passes that another algorithm would choose differently, one method each. The defaults are
//! the reference; whoever wants another algorithm, or a broken one, replaces a method.

use super::Config;
use super::steps::{Facts, Kind};
use crate::analysis::Origin;
use crate::graph::NodeId;
use crate::simulate::{Buffers, EstimateError, Estimates};

/// The choices of a scheduler.
pub trait Strategy {
    /// The estimates that decide, as rank `rank` has them. By default those that all ranks agree on.
    fn estimates(&self, config: &Config, rank: u32) -> Result<Estimates, EstimateError> {
        let _ = rank;
        Estimates::agreed(&config.estimates)
    }

    /// The budget of memory that decides. By default the smallest of all ranks'.
    fn budget(&self, config: &Config, rank: u32) -> f64 {
        let _ = rank;
        config.budget()
    }

    /// What a node is to the scheduler.
    fn kind(&self, facts: &Facts, node: NodeId) -> Kind {
        Kind::of(facts, node)
    }

    /// A dependence as the scheduler sees it: which node must come before which; `None`: it does not see it.
    fn edge(&self, facts: &Facts, before: NodeId, after: NodeId, origin: Origin) -> Option<(NodeId, NodeId)> {
        let _ = (facts, origin);
        Some((before, after))
    }

    /// The edges that keep communication in order; `launches` in list order. By default a chain through all of them,
    /// whatever their group.
    fn chain(&self, facts: &Facts, launches: &[NodeId]) -> Vec<(NodeId, NodeId)> {
        let _ = facts;
        launches.windows(2).map(|pair| (pair[0], pair[1])).collect()
    }

    /// What is kept in memory.
    fn buffers(&self, facts: &Facts) -> Buffers {
        Buffers::new(facts.graph, &facts.edges, &facts.storages)
    }

    /// Whether collectives are raised in the order of the list, or shortest first.
    fn raises_shortest_first(&self) -> bool {
        false
    }

    /// Whether a swap is refused for the time that it exposes, seconds before and after: of the collective that is
    /// moved, and of the others that it passes. By default where the sum grows; where there are no others it cannot.
    fn exposes_more(&self, own: (f64, f64), others: &[(f64, f64)]) -> bool {
        let growth = |pair: &(f64, f64)| pair.1 - pair.0;
        !others.is_empty() && growth(&own) + others.iter().map(growth).sum::<f64>() > 0.0
    }
}

/// The reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reference;

impl Strategy for Reference {}
