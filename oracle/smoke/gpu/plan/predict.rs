//! Predicted memory: what the replay of [`memory`](crate::memory) says of the graph, for all ranks.
//!
//! The plan's own allocations come from an execution, storage by storage; the prediction comes from the graph without
//! executing anything. That the two agree at every step is the statement that is checked.

use super::{Action, Plan};
use crate::graph::{Graph, NodeId};
use crate::memory::replay::{Options, replay};
use crate::memory::steps::Devices;
use std::collections::BTreeMap;

/// Sizes of storages that a node allocates, and of those that are freed when it is over.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bytes {
    /// Sizes that are allocated.
    pub allocated: Vec<u64>,
    /// Sizes that are freed.
    pub freed: Vec<u64>,
}

/// What is predicted for one rank.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Prediction {
    /// Sizes of the storages that are there before the first step.
    pub before: Vec<u64>,
    /// By node.
    pub nodes: BTreeMap<NodeId, Bytes>,
    /// Why the numbers are no exact prediction; empty where they are.
    pub doubts: Vec<String>,
}

/// Live bytes of all ranks in one step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Live {
    /// After the step's allocations.
    pub peak: u64,
    /// After its frees.
    pub after: u64,
}

impl Prediction {
    /// Predicts the memory of a graph.
    pub fn new(graph: &Graph) -> Prediction {
        let mut this = Prediction::default();
        let options = Options { devices: Devices::All, ..Options::default() };
        let replay = match replay(graph, options) {
            Ok(replay) => replay,
            Err(fault) => {
                this.doubts.push(fault.to_string());
                return this;
            }
        };
        let name = |id: &NodeId| graph.name(*id).to_string();
        this.doubts.extend(
            replay.uncertain.iter().map(|id| format!("which storages {} shows is not certain", name(id))),
        );
        this.doubts.extend(replay.assumed.iter().map(|id| format!("the size of {} is assumed", name(id))));
        for life in replay.lives.iter().filter(|life| life.bytes > 0) {
            let bytes = life.bytes as u64;
            let step = |at: u32| replay.steps.steps.get(at as usize).map(|step| step.node);
            match life.start.and_then(step) {
                None => this.before.push(bytes),
                Some(node) => this.nodes.entry(node).or_default().allocated.push(bytes),
            }
            if let Some(node) = life.end.and_then(step) {
                this.nodes.entry(node).or_default().freed.push(bytes);
            }
        }
        this
    }
}

impl Plan {
    /// Why memory cannot be compared with the prediction, if it cannot.
    pub fn doubt(&self) -> Option<&str> {
        self.predictions.iter().find_map(|of| of.doubts.first()).map(String::as_str)
    }

    /// What is predicted for each rank, for machines: live bytes after each node, not rounded, inputs included.
    pub fn predictions(&self) -> Vec<serde_json::Value> {
        (0..self.ranks)
            .filter_map(|rank| {
                let of = self.predictions.get(rank as usize).or(self.predictions.first())?;
                let mut live: u64 = of.before.iter().sum();
                let before = live;
                let own = self.steps.iter().filter(|step| step.rank == rank && step.over);
                let steps: Vec<_> = own
                    .map(|step| {
                        if let Some(bytes) = of.nodes.get(&step.node) {
                            live += bytes.allocated.iter().sum::<u64>();
                            live = live.saturating_sub(bytes.freed.iter().sum());
                        }
                        serde_json::json!({ "node": step.name, "live_bytes": live })
                    })
                    .collect();
                Some(serde_json::json!({ "before_bytes": before, "doubts": of.doubts, "steps": steps }))
            })
            .collect()
    }

    /// Predicted live bytes of all ranks, step by step, if the allocator rounds sizes like `round`; and before the
    /// first step.
    pub fn predicted(&self, round: impl Fn(u64) -> u64) -> (u64, Vec<Live>) {
        let sum = |sizes: &[u64]| sizes.iter().map(|&bytes| round(bytes)).sum::<u64>();
        let of_communicators = |buffer: &&super::Buffer| buffer.origin == super::Origin::Communicator;
        let communicators: u64 =
            self.buffers.iter().filter(of_communicators).map(|buffer| round(buffer.bytes)).sum();
        let of_rank = |rank: u32| self.predictions.get(rank as usize).or(self.predictions.first());
        let given: u64 = (0..self.ranks).filter_map(of_rank).map(|of| sum(&of.before)).sum();
        let before = communicators + given;
        let mut live = before;
        let mut begun = std::collections::BTreeSet::new();
        let none = Bytes::default();
        // What a stream keeps a while longer than the graph (`late`) comes back with an allocation of its own, or at
        // the end.
        let held = |buffer: u32| round(self.buffers[buffer as usize].bytes);
        let (mut let_go, mut freed) = (vec![0; self.steps.len()], vec![0; self.steps.len()]);
        for (&buffer, &step) in &self.late {
            let_go[step as usize] += held(buffer);
        }
        for command in &self.commands {
            if let Action::Free(buffer) = command.action
                && self.late.contains_key(&buffer)
            {
                freed[command.step as usize] += held(buffer);
            }
        }
        let mut late = 0;
        let steps = self.steps.iter().enumerate().map(|(at, step)| {
            let bytes = of_rank(step.rank).and_then(|of| of.nodes.get(&step.node)).unwrap_or(&none);
            if begun.insert((step.rank, step.node)) {
                live += sum(&bytes.allocated);
            }
            let peak = live + late;
            if step.over {
                live = live.saturating_sub(sum(&bytes.freed));
            }
            late = late + let_go[at] - freed[at];
            Live { peak, after: live + late }
        });
        let steps = steps.collect();
        (before, steps)
    }
}
