//! Who schedules: the reference, and the mutants.

pub mod mutants;

pub(crate) use mutants::planted;

use super::refusals::{bad_options, refusal};
use super::{Answer, Reference, Refusal};
use crate::case::PassConfig;
use crate::graph::Graph;
use crate::judge::options::schedule_config;
pub use crate::judge::schedule::Scheduler;
use crate::passes::schedule::{self, Config, Strategy, schedule_with};
use crate::rules::Reason;

impl Scheduler for Reference {
    fn name(&self) -> &str {
        "reference"
    }

    fn run(&self, graph: &Graph, config: &Config, rank: u32) -> Result<Graph, Reason> {
        run_with(graph, config, rank, &schedule::Reference).map_err(|refusal| refusal.reason)
    }
}

/// The passes with other ingredients.
fn run_with(graph: &Graph, config: &Config, rank: u32, strategy: &dyn Strategy) -> Result<Graph, Refusal> {
    schedule_with(graph, config, rank, strategy).map(|scheduled| scheduled.graph).map_err(refusal)
}

/// The passes with other ingredients, by the options of a case.
pub(super) fn run_options(
    graph: &Graph,
    pass: &PassConfig,
    rank: u32,
    strategy: &dyn Strategy,
) -> Result<Answer, Refusal> {
    let config = schedule_config(pass).map_err(bad_options)?;
    Ok(run_with(graph, &config, rank, strategy)?.into())
}

#[cfg(test)]
mod tests;
