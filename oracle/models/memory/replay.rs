//! The truth: which memory is live when the list is executed as it stands.
//!
//! # The idea
//!
//! Storages are those of the run time ([`Mode::Physical`]): a view, a wait, an in-place result is the storage of
//! what it came from, and counts once. A storage is held
//! - by the caller, if it is an input or a constant: never freed, unless the input is donated;
//! - by the caller, if the output returns it or a view of it;
//! - by whoever still needs the value of a node that shows any part of it, whole tuples included;
//! - by a collective in flight, input and result alike, until the wait. What nobody waits for is held to the end.
//!
//! In each step the fresh storages are allocated, the peak is taken, and then what nobody holds any more is freed.
//!
//! # What it does not do
//!
//! Where an operator is unknown, or a view may be a copy, it is not certain which storages there are. The replay
//! then counts every storage that there may be, holds it while anybody may hold it, and says so
//! ([`Replay::uncertain`]): its peak is an upper bound.

use super::ledger::Ledger;
use super::size::Sizes;
use super::steps::{self, Devices, Life, MemoryFault, Steps};
use super::strategy::{Reference, Strategy};
use crate::analysis::storages::Mode;
use crate::analysis::{Collectives, Edges, Storages, Touch};
use crate::graph::{Graph, NodeId, Op};
use crate::ops::Ops;

/// Who is the last to hold a storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held {
    /// Nobody needs it but who made it.
    Nobody,
    /// This node needs it.
    By(NodeId),
    /// A collective in flight: a launch, and the wait that ends the flight.
    InFlight {
        /// Who started it.
        start: NodeId,
        /// Who waits.
        wait: NodeId,
    },
    /// A collective that nobody waits for.
    NeverWaited(NodeId),
    /// The caller, who gave it.
    Caller,
    /// The caller, to whom this output returns it.
    Output(NodeId),
}

impl Held {
    /// In words.
    pub fn describe(self, graph: &Graph) -> String {
        let name = |id: NodeId| graph.name(id);
        match self {
            Held::Nobody => "nobody reads it".to_string(),
            Held::By(node) => format!("{} needs it last", name(node)),
            Held::InFlight { start, wait } => {
                format!("{} is in flight with it until {}", name(start), name(wait))
            }
            Held::NeverWaited(start) => format!("{} is never waited for", name(start)),
            Held::Caller => "it belongs to the caller".to_string(),
            Held::Output(_) => "the output returns it".to_string(),
        }
    }
}

/// What a replay supposes.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Which devices count.
    pub devices: Devices,
    /// What a symbol without a hint counts as; `None`: storages of such sizes are a fault.
    pub unbacked: Option<i64>,
    /// Which inputs the caller gives away: they are freed after their last use.
    pub donated: &'a dyn Fn(&Graph, NodeId) -> bool,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options { devices: Devices::All, unbacked: None, donated: &|_, _| false }
    }
}

/// What follows from a graph for its memory, computed once.
pub struct Facts<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// Its operators.
    pub ops: Ops,
    /// Its communication.
    pub collectives: Collectives<'a>,
    /// Its storages at run time.
    pub storages: Storages,
}

impl<'a> Facts<'a> {
    /// Derives the facts.
    pub fn new(graph: &'a Graph) -> Facts<'a> {
        let ops = Ops::of(graph);
        let collectives = Collectives::new(graph, &ops);
        let storages = Storages::new(graph, &ops, &Edges::new(graph), &collectives, Mode::Physical);
        Facts { graph, ops, collectives, storages }
    }
}

/// What is live when.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Live bytes step by step.
    pub steps: Steps,
    /// The storages.
    pub ledger: Ledger,
    /// The life of each storage of the ledger.
    pub lives: Vec<Life>,
    /// Who holds each storage last.
    pub held: Vec<Held>,
    /// Nodes of which it is not certain which storages they show: then every number is an upper bound.
    pub uncertain: Vec<NodeId>,
    /// Allocators of storages whose size rests on an assumed symbol.
    pub assumed: Vec<NodeId>,
}

impl Replay {
    /// The storages that are live in a step after its allocations, the largest first: indices of the ledger.
    pub fn contents(&self, step: Option<u32>) -> Vec<usize> {
        contents(&self.lives, step)
    }

    /// In words, how many storages count nothing for the sake of their device; `None` where there are none.
    pub fn uncounted(&self, graph: &Graph, devices: Devices) -> Option<String> {
        let of = self.ledger.entries.iter().filter(|entry| {
            !devices.count(graph, entry.device) && entry.bytes.map_or(true, |bytes| bytes.count > 0)
        });
        match of.count() {
            0 => None,
            1 => Some("1 storage is in the memory of the host, which does not count".to_string()),
            n => Some(format!("{n} storages are in the memory of the host, which does not count")),
        }
    }
}

/// The lives that cover a step (before the first one where there is none), the largest first.
pub fn contents(lives: &[Life], step: Option<u32>) -> Vec<usize> {
    let covers = |life: &Life| match step {
        Some(step) => life.covers(step),
        None => life.start.is_none(),
    };
    let mut found: Vec<usize> =
        (0..lives.len()).filter(|&i| lives[i].bytes > 0 && covers(&lives[i])).collect();
    found.sort_by_key(|&i| std::cmp::Reverse(lives[i].bytes));
    found
}

/// Replays the list of `graph`. Linear in its size.
pub fn replay(graph: &Graph, options: Options) -> Result<Replay, MemoryFault> {
    replay_facts(&Facts::new(graph), options)
}

/// Replays with facts that are known.
pub fn replay_facts(facts: &Facts, options: Options) -> Result<Replay, MemoryFault> {
    let sizes = Sizes::new(facts.graph, options.unbacked);
    replay_ledger(facts, Ledger::derived(facts.graph, &sizes, &facts.storages), options, &Reference)
}

/// Replays with a ledger that was [derived](Ledger::derived) before, with the sizes that the options say, and with
/// other ingredients.
pub fn replay_ledger(
    facts: &Facts,
    ledger: Ledger,
    options: Options,
    strategy: &dyn Strategy,
) -> Result<Replay, MemoryFault> {
    let graph = facts.graph;
    let (sizes, assumed) = steps::sizes_of(graph, &ledger, options.devices)?;
    let (_, step_of) = steps::number_steps(graph);
    let held = holders(facts, &ledger, &options, strategy);
    let step = |node: NodeId| Some(step_of[node.index()]).filter(|&step| step != u32::MAX);
    let life = |(i, entry): (usize, &super::Entry)| {
        let end = match held[i] {
            Held::Nobody => step(entry.by),
            Held::By(node) | Held::InFlight { wait: node, .. } => step(node).max(step(entry.by)),
            Held::NeverWaited(_) | Held::Caller | Held::Output(_) => None,
        };
        Life { by: entry.by, bytes: sizes[i], start: if entry.external { None } else { step(entry.by) }, end }
    };
    let mut lives: Vec<Life> = ledger.entries.iter().enumerate().map(life).collect();
    let steps = steps::add_up(graph, &ledger, options.devices, &mut lives)?;
    let uncertain = ledger.uncertain.clone();
    Ok(Replay { steps, ledger, lives, held, uncertain, assumed })
}

/// Who holds each storage last.
fn holders(facts: &Facts, ledger: &Ledger, options: &Options, strategy: &dyn Strategy) -> Vec<Held> {
    let graph = facts.graph;
    let mut held = vec![Held::Nobody; ledger.entries.len()];
    let later = |held: &mut Held, node: NodeId, new: Held| {
        let until = match *held {
            Held::Nobody => None,
            Held::By(node) | Held::InFlight { wait: node, .. } => Some(node),
            Held::NeverWaited(_) | Held::Caller | Held::Output(_) => return,
        };
        if until.is_none_or(|until| until < node) {
            *held = new;
        }
    };
    for (id, user) in graph.ids().zip(steps::last_users(graph)) {
        for &storage in ledger.shown(id) {
            if ledger.entries[storage as usize].by != id && !strategy.keeps_for(graph, id) {
                continue;
            }
            let held = &mut held[storage as usize];
            // Whoever shows a part of it that nobody reads still needed it itself.
            later(
                held,
                id,
                if ledger.entries[storage as usize].by == id { Held::Nobody } else { Held::By(id) },
            );
            if let Some(user) = user {
                later(held, user, Held::By(user));
            }
        }
    }
    let mut in_flight: Vec<Option<NodeId>> = vec![None; graph.len()];
    for (launch, waits) in facts.collectives.waits.iter().enumerate() {
        for wait in waits {
            in_flight[wait.index()] = Some(facts.collectives.calls[launch].node);
        }
        let call = &facts.collectives.calls[launch];
        let ends = call.is_done_at_once;
        if waits.is_empty() && !ends {
            let of = call.inputs.iter().chain([&call.node]);
            for &storage in of.flat_map(|&node| ledger.shown(node)) {
                held[storage as usize] = Held::NeverWaited(call.node);
            }
        }
    }
    for access in facts.storages.accesses().iter().chain(facts.storages.kept()) {
        let ends = match access.touch {
            Touch::Release => strategy.holds_inputs_in_flight(),
            Touch::Land => strategy.holds_results_in_flight(),
            Touch::Read | Touch::Write => false,
        };
        if ends {
            let start = in_flight[access.node.index()].unwrap_or(access.node);
            let new = Held::InFlight { start, wait: access.node };
            later(&mut held[access.part.storage.index()], access.node, new);
        }
    }
    // The caller keeps what it gave and what it gets, whoever else needs it.
    for (i, entry) in ledger.entries.iter().enumerate() {
        let donated = graph.node(entry.by).op == Op::Placeholder && (options.donated)(graph, entry.by);
        // A donated input that nobody reads is the caller's after all: no step frees it.
        if entry.external && (!donated || held[i] == Held::Nobody) {
            held[i] = Held::Caller;
        }
    }
    for output in graph.ids().filter(|&id| graph.node(id).op == Op::Output) {
        graph.for_each_input(output, &mut |returned| {
            for &storage in ledger.shown(returned) {
                if ledger.entries[storage as usize].by == returned || strategy.keeps_returned_views() {
                    held[storage as usize] = Held::Output(output);
                }
            }
        });
    }
    held
}
