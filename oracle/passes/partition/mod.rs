//! Partitioning of a joint graph.

pub mod build;
pub mod classes;
pub mod config;
pub mod dead_code;
pub mod default;
pub mod error;
pub mod extract;
pub mod joint;
pub mod marks;
pub mod modules;
pub mod operators;
pub mod order;
pub mod partition;
pub mod policy;
pub mod recompute_tags;
pub mod targets;

pub use config::{Bans, Method, PartitionConfig, Runtime, Solver, StaticInputs};
pub use error::{Constraint, PartitionError, Problem};
pub use joint::Joint;
pub use partition::{Certificate, Partition, SavedValue};
pub use policy::{Policy, Reference};

use crate::graph::Graph;
use classes::Classes;
use modules::{Modules, Saved, extract_modules};

/// Cuts a joint graph by the reference.
pub fn run(joint: &Graph, config: &PartitionConfig) -> Result<Partition, PartitionError> {
    run_with(joint, config, &Reference)
}

/// Cuts a joint graph by another policy.
pub fn run_with(graph: &Graph, config: &PartitionConfig, policy: &dyn Policy) -> Result<Partition, PartitionError> {
    let mut joint = Joint::new(graph.clone(), config)?;
    partition::needs_tangents(&joint, config)?;
    let checkpoints = joint.ids().any(|id| joint.tags(id).recomputes());
    recompute_tags::clean_up(&mut joint, true);
    recompute_tags::force_saves(&mut joint, config)?;
    Classes::of(&joint, config, policy)?;
    let saved = default::saved(&joint, checkpoints)?;
    let mut modules = extract_modules(&joint, policy, saved)?;
    dead_code::eliminate_collectives(&joint, &mut modules.forward);
    dead_code::eliminate_collectives(&joint, &mut modules.backward);
    if checkpoints {
        order::mimic_autograd(&joint, policy, &mut modules.backward);
    }
    order::raise_getitems(&joint, &mut modules.forward);
    order::raise_getitems(&joint, &mut modules.backward);
    let graphs = (modules.forward.build(&joint), modules.backward.build(&joint));
    Partition::new(graph, &joint, &modules, graphs, Method::Default, None)
}

#[cfg(test)]
mod tests;
