//! Who schedules: the reference, and the mutants.

pub mod mutants;

use super::{Outcome, Reference, Refusal};
use crate::case::PassConfig;
use crate::graph::Graph;
use crate::judge::options::schedule_config;
pub use crate::judge::schedule::Scheduler;
use crate::passes::schedule::{self, Config, Strategy, schedule_with};

impl Scheduler for Reference {
    fn name(&self) -> &str {
        "reference"
    }

    fn run(&self, graph: &Graph, config: &Config, rank: u32) -> Result<Graph, String> {
        run_with(graph, config, rank, &schedule::Reference)
    }
}

/// The passes with other ingredients.
fn run_with(graph: &Graph, config: &Config, rank: u32, strategy: &dyn Strategy) -> Result<Graph, String> {
    schedule_with(graph, config, rank, strategy)
        .map(|scheduled| scheduled.graph)
        .map_err(|refusal| refusal.to_string())
}

/// The passes with other ingredients, by the options of a case.
pub(super) fn run_options(
    graph: &Graph,
    pass: &PassConfig,
    rank: u32,
    strategy: &dyn Strategy,
) -> Result<Outcome, Refusal> {
    let config = schedule_config(pass).map_err(Refusal::new)?;
    let repaired = run_with(graph, &config, rank, strategy).map_err(Refusal::new)?;
    Ok(Outcome { unrepaired: None, repaired })
}

#[cfg(test)]
mod tests;
