//! The memory profile of an FX graph, as PyTorch estimates it.
//!
//! Source: `torch._inductor.fx_passes.memory_estimator.build_memory_profile` of PyTorch 2.15. Three rules of this
//! reference decide what PyTorch leaves to accident, and change nothing where every result has a reader and every
//! storage one size: a storage that several inputs share may be released only if all of them may; a storage has
//! the size it has at the step in question; a result that nobody reads dies where it is made. An input that
//! nobody reads stays.

use super::ledger::Ledger;
use super::size::{PYTORCH_UNBACKED, Sizes};
use super::steps::{self, Devices, Life, MemoryFault, Steps};
use crate::analysis::storages::Mode;
use crate::analysis::{Collectives, Edges, Storages};
use crate::graph::{Graph, NodeId, Op};
use crate::ops::Ops;

/// Which storages may be freed: told of their allocators.
pub type Releasable<'a> = &'a dyn Fn(&Graph, NodeId) -> bool;

/// PyTorch's default: whatever is not called `primals...`.
pub fn not_primals(graph: &Graph, node: NodeId) -> bool {
    !graph.name(node).starts_with("primals")
}

/// Whatever is not an input.
pub fn not_placeholder(graph: &Graph, node: NodeId) -> bool {
    graph.node(node).op != Op::Placeholder
}

/// A memory profile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Profile {
    /// Live bytes step by step.
    pub steps: Steps,
    /// The life of each storage of the ledger.
    pub lives: Vec<Life>,
    /// Allocators of storages whose size rests on an assumed symbol, in list order.
    pub assumed: Vec<NodeId>,
}

impl Profile {
    /// The entries of PyTorch's list: the inputs, then two for each step.
    pub fn entries(&self) -> Vec<i64> {
        let steps = self.steps.steps.iter().flat_map(|step| [step.peak, step.after]);
        std::iter::once(self.steps.before).chain(steps).collect()
    }
}

/// The ledger that PyTorch would see: recorded storages, each unbacked symbol counted as 8192.
pub fn recorded_ledger(graph: &Graph) -> Ledger {
    let sizes = Sizes::new(graph, Some(PYTORCH_UNBACKED));
    Ledger::recorded(graph, &sizes, || {
        let ops = Ops::of(graph);
        Storages::new(graph, &ops, &Edges::new(graph), &Collectives::new(graph, &ops), Mode::Logical)
    })
}

/// PyTorch's profile of `graph`: recorded storages, accelerators only, unbacked symbols as 8192.
pub fn profile(graph: &Graph, releasable: Releasable) -> Result<Profile, MemoryFault> {
    profile_of(graph, &recorded_ledger(graph), Devices::Accelerators, releasable)
}

/// The profile of the storages of a ledger. Linear in the size of the graph.
pub fn profile_of(
    graph: &Graph,
    ledger: &Ledger,
    devices: Devices,
    releasable: Releasable,
) -> Result<Profile, MemoryFault> {
    let (sizes, assumed) = steps::sizes_of(graph, ledger, devices)?;
    let (_, step_of) = steps::number_steps(graph);
    let mut lives = lives(graph, ledger, &sizes, &step_of, releasable);
    let steps = steps::add_up(graph, ledger, devices, &mut lives)?;
    Ok(Profile { steps, lives, assumed })
}

fn lives(
    graph: &Graph,
    ledger: &Ledger,
    sizes: &[i64],
    step_of: &[u32],
    releasable: Releasable,
) -> Vec<Life> {
    let mut last: Vec<Option<NodeId>> = vec![None; ledger.entries.len()];
    let mut kept = vec![false; ledger.entries.len()];
    for (id, user) in graph.ids().zip(steps::last_users(graph)) {
        let is_kept = match graph.node(id).op {
            Op::Placeholder => !releasable(graph, id),
            _ => false,
        };
        for &storage in ledger.shown(id) {
            let slot = &mut last[storage as usize];
            *slot = (*slot).max(user);
            kept[storage as usize] |= is_kept;
        }
    }
    let life = |(i, entry): (usize, &super::Entry)| {
        let step = |node: NodeId| Some(step_of[node.index()]).filter(|&step| step != u32::MAX);
        let end = match last[i] {
            _ if kept[i] || !releasable(graph, entry.by) => None,
            // What the output uses is never freed: the output is no step.
            Some(user) => step(user),
            None => step(entry.by),
        };
        let start = if entry.external { None } else { step(entry.by) };
        Life { by: entry.by, bytes: sizes[i], start, end }
    };
    ledger.entries.iter().enumerate().map(life).collect()
}
