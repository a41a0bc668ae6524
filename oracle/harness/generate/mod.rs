//! Random cases: graphs valid by construction, with a pass and its options.
//!
//! # General strategy
//!
//! 1. The [`Config`] says what may occur; a swarm switches features on and off for each case.
//! 2. A world is drawn, then what the pass is to be asked, then the keys that collectives use.
//! 3. Steps write a few nodes each: they start collectives, wait for some that are in flight, compute, view, join,
//!    write. Operands are values at hand that may be read or written now, else new inputs.
//! 4. What is still in flight is waited for, unused values become outputs, and caps are set by the sizes of the
//!    collectives that there are.
//!
//! Choices come from a [`Source`], one at a time, and each step depends on its own choices and on the values at
//! hand: a small change of choices gives a small change of the graph. The same choices give the same case on every
//! machine.
//!
//! *Valid* means: the list is topological (unless the case is for the repair), what is recorded of results is what
//! the operators' shape rules say, the world is whole, every collective is waited for, nothing reads a value in
//! flight or memory that nothing has written, and nothing writes what a collective in flight reads.
//!
//! docs/generator.md lists what is made and what is never made; [`Feature`] finds in a case what it has.

mod blocks;
mod builder;
mod collectives;
mod compute;
mod config;
mod edits;
mod effects;
mod features;
mod forms;
pub mod joint;
mod keys;
mod layers;
pub mod memory;
mod neighbours;
mod operands;
mod order;
mod pass;
mod pool;
mod regions;
pub mod schedule;
mod smaller;
mod source;
mod steps;
#[cfg(any(test, feature = "proptest"))]
pub mod strategy;
mod streams;
mod survey;
mod symbolic;
mod target;
mod traits;
mod types;
#[cfg(feature = "arbitrary")]
mod unstructured;
mod views;
mod wanted;
mod window;
mod without;
mod world;

pub(crate) use crate::analysis::propagate::propagated;
pub use crate::analysis::resize::shrink;
pub(crate) use crate::analysis::resize::{with_groups, with_sizes};
pub use crate::judge::Without;
pub use config::{Config, Knob, Swarm};
pub use edits::intrusions;
pub use edits::{Edit, edit};
pub use features::{Feature, Features};
pub use forms::vary;
pub use layers::Layers;
pub use order::reordered;
pub use pass::{Bucketing, Pass, Selection};
pub use regions::with_region;
pub use smaller::Shrink;
#[cfg(feature = "arbitrary")]
pub use source::Unstructured;
pub use source::{Bytes, FRAME, Longest, Seeded, Source};
pub use streams::spread;
pub(crate) use streams::{CALLER, order_streams, run_on};
pub use survey::Survey;
pub use symbolic::with_symbol;
pub use wanted::{Offers, Wanted, offers};
pub(crate) use wanted::{bucketing, execution, partition, rewrite, schedule as schedule_case};
pub use window::window;

use crate::case::Case;
use crate::graph::{Graph, Value};
use builder::{Builder, is_input};
use pass::Plan;

/// The version of the generator: the same choices give the same case in every release with this number.
pub const VERSION: u32 = 5;

/// A generated case.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The graph with its world.
    pub graph: Graph,
    /// The pass.
    pub pass: Pass,
}

impl Generated {
    /// What it has in it.
    pub fn survey(&self) -> Survey {
        Survey::of(&self.graph, &self.pass)
    }

    /// As a case, without expectations.
    pub fn into_case(self) -> Case {
        Case { pass: Some(self.pass.config()), ..Case::of_graph(self.graph) }
    }
}

/// Case number `index` of the campaign `seed`: a swarm of `config`. Which thread or machine asks makes no difference.
pub fn case(config: &Config, seed: u64, index: u64) -> Generated {
    let mut source = Seeded::case(seed, index);
    let config = config.clone().swarmed(&mut source);
    generate(&mut source, &config)
}

/// Generates a case from the choices of `source`. Knobs out of their range count as the nearest value in it.
pub fn generate(source: &mut impl Source, config: &Config) -> Generated {
    let mut config = config.clamped();
    source.step();
    let world = world::draw(source, &config);
    let plan = Plan::draw(source, &config);
    if plan.is_repair() {
        config = config.pure();
    }
    source.step();
    let nodes = source.length(config.min_nodes, config.max_nodes) as usize;
    let mut builder = Builder::new(source, &config, world, nodes.min(4096));
    builder.focus = plan.focus();
    builder.steps(nodes);
    builder.end(&plan).with(plan)
}

/// A finished graph, before its caps are known.
struct Ended {
    graph: Graph,
    candidates: Vec<builder::Candidate>,
}

impl Ended {
    fn with(self, plan: Plan) -> Generated {
        Generated { graph: self.graph, pass: plan.finish(&self.candidates) }
    }
}

impl<S: Source> Builder<'_, S> {
    /// Waits for what is in flight, chooses outputs, gives the list its order.
    fn end(mut self, plan: &Plan) -> Ended {
        while !self.flights.is_empty() {
            let index = self.late.below(self.flights.len() as u32) as usize;
            self.land(index);
        }
        if self.late.percent(self.config.epilogue) {
            self.epilogue();
        }
        let outputs = self.outputs();
        let order = plan.is_repair().then(|| {
            let (inputs, others) = self.counts();
            order::shuffled(&mut self.late, inputs, others)
        });
        let cyclic = order.is_some() && self.late.percent(self.config.cycle);
        let mut late = self.late.clone();
        let (mut graph, candidates) = self.finish(&outputs, order.as_deref());
        if cyclic {
            order::add_cycle(&mut late, &mut graph);
        }
        Ended { graph, candidates }
    }

    /// The values that become outputs: at least one, where there is any.
    fn outputs(&mut self) -> Vec<Value> {
        let mut outputs = Vec::with_capacity(16);
        let mut last = None;
        for var in self.pool.vars() {
            let held = *self.pool.get(var);
            if !self.pool.is_readable(held.storage) {
                continue;
            }
            last = Some(var);
            let (unused, used) = held.output;
            if if held.uses == 0 { unused } else { used } {
                outputs.push(self.take(var));
            }
        }
        match (outputs.first().copied(), last) {
            (None, Some(var)) => outputs.push(self.take(var)),
            // Graphs may return one value twice.
            (Some(first), _)
                if self.late.percent(10) && !matches!(first, Value::Node(node) if is_input(node)) =>
            {
                outputs.push(first);
            }
            _ => {}
        }
        outputs
    }
}

#[cfg(test)]
mod tests;
