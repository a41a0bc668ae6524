//! Who schedules: the reference, and the mutants.

pub mod mutants;

use crate::graph::Graph;
use crate::passes::schedule::{Config, Policy, Reference, schedule_with};

/// An implementation of the scheduling passes.
pub trait Scheduler: Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// The graph in its new order, as global rank `rank`; its reason, if it declines.
    fn run(&self, graph: &Graph, config: &Config, rank: u32) -> Result<Graph, String>;
}

/// The reference.
impl Scheduler for Reference {
    fn name(&self) -> &str {
        "reference"
    }

    fn run(&self, graph: &Graph, config: &Config, rank: u32) -> Result<Graph, String> {
        run_with(graph, config, rank, self)
    }
}

/// The passes with other ingredients.
fn run_with(graph: &Graph, config: &Config, rank: u32, policy: &dyn Policy) -> Result<Graph, String> {
    schedule_with(graph, config, rank, policy)
        .map(|scheduled| scheduled.graph)
        .map_err(|refusal| refusal.to_string())
}
#[cfg(test)]
mod tests;
