//! The cross-rank simulator: do all ranks finish, whatever order the streams choose?
//!
//! # The idea
//!
//! A [`Program`] is what one rank does, as seen by the others: it computes, launches operations on communicators and
//! waits for them. The host goes on after a launch; the communicator works through its launches one by one, in the
//! order in which they were made; an operation is complete when all its ranks have come to it.
//!
//! In this machine whatever can happen can still happen after anything else has happened, and with the same result:
//! a launch only adds to the end of a queue, a completion takes away the heads of queues that nothing else takes.
//! So all interleavings end alike, and *one* run decides for every order that the streams allow. The tests compare
//! with a search through all interleavings.
//!
//! # Formal statement
//!
//! State: for each rank its place in its program, for each rank and stream a queue of launched operations. Moves:
//! - a rank at a launch appends the operation to the queue of its stream, and goes on;
//! - a rank at a wait goes on if the operation is complete;
//! - a collective that is at the head of the queue of *all* ranks of its group is completed and taken off there. The
//!   `k`-th launch of one rank on a communicator meets the `k`-th of every other;
//! - a send at the head of the queue of a pair of ranks, and a receive at the head of the other rank's, likewise.
//!
//! The program finishes if every rank comes to its end and every queue is empty (a device synchronises at the end).
//!
//! A stream is a communicator ([`Streams::PerGroup`], as NCCL runs them), or there is one stream per rank for all
//! communicators ([`Streams::One`], a device that has room for one collective at a time and takes them in launch
//! order). On one stream a collective starts when everything is complete that its rank launched before it, and
//! whatever the rank launches after it starts when it is complete. Messages without a collective between them do not
//! hold each other up there: each pair of ranks takes them in order, as it does with streams per group. So of two
//! communications the launch order counts if they share a communicator or a pair, or if one of them is a collective.
//! A program that finishes with streams per group and not with one stream has ranks that launch such two in different
//! orders: whether it hangs is left to the device.
//!
//! # Ranks that do the same
//!
//! Ranks with the same program that meet ranks with the same programs behave alike, so one of them is run for all
//! (`classes`). Point-to-point programs name their peers, so there every rank is run.
//!
//! # Which launch meets which
//!
//! What meets must be of one kind, dtype and size, or the ranks hang. Launches may agree in all that and still be two
//! different collectives, whose data are mixed up: see `exchange`.
//!
//! # What it does not do
//!
//! Values and memory are not looked at. A collective whose group is not named by a string, or whose kind is not known
//! to the table of operators, is not modelled: the report says so and decides nothing that rests on it. What is not
//! modelled is launched like all else, so that ranks which launch it in different orders are found. Messages
//! are paired as [`messages`](crate::analysis::messages) says. Time is simulated (see `timeline`) but decides nothing.

mod buffers;
mod classes;
mod estimates;
mod exchange;
mod explain;
pub mod flight;
mod machine;
mod mismatch;
mod perfetto;
mod program;
mod sequences;
mod timeline;

pub use buffers::{Buffer, Buffers, Peak};
pub use estimates::{EstimateError, Estimates};
pub use explain::{Deadlock, Link};
pub use mismatch::Mismatch;
pub use perfetto::trace;
pub use program::{Operation, Part, Program, Step};
pub use timeline::{Flight, Timeline, Track, exposure};

use crate::graph::{Graph, World};
use std::fmt;

/// What a stream is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Streams {
    /// One per communicator and rank.
    #[default]
    PerGroup,
    /// One per rank, for the collectives of all its communicators; messages wait for them, and they for messages.
    One,
}

/// When a message between two ranks is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Messages {
    /// Sends and receives are launched like collectives, on a stream of the pair of ranks, and complete together.
    #[default]
    Rendezvous,
    /// The same, and the host stands still until its send or receive is complete.
    Blocking,
    /// A send is complete when it is launched; a receive is complete when the message has been sent. The host stands
    /// still at a receive until then.
    Buffered,
}

/// How to simulate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// What a stream is.
    pub streams: Streams,
    /// When a message is complete.
    pub messages: Messages,
}

/// What every rank runs.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    /// The distinct programs.
    pub programs: Vec<Program>,
    /// For each rank its program: an index.
    pub of_rank: Vec<usize>,
    /// The process groups; every group used must list its ranks.
    pub world: World,
}

impl Programs {
    /// One graph on all ranks of its world. Where the file does not list the ranks of its groups, a mesh is assumed
    /// ([`World::assume_mesh`]).
    pub fn spmd(graph: &Graph, estimates: &Estimates) -> Programs {
        Programs::per_rank(std::slice::from_ref(&graph), &[], estimates)
    }

    /// Several graphs; `of_rank` says which of them each rank runs (all ranks the first where it is too short). The
    /// world is that of the first graph.
    pub fn per_rank(graphs: &[&Graph], of_rank: &[usize], estimates: &Estimates) -> Programs {
        let world = graphs.first().map(|graph| &graph.world);
        let world = world.and_then(World::assume_mesh).unwrap_or_default();
        let ranks = world.ranks.unwrap_or(1) as usize;
        let mut programs: Vec<Program> = graphs.iter().map(|graph| Program::of(graph, estimates)).collect();
        if let [_, _, ..] = graphs {
            programs.iter_mut().zip(graphs).for_each(|(program, graph)| program.identify(graph));
        }
        Programs {
            programs,
            of_rank: (0..ranks).map(|rank| of_rank.get(rank).copied().unwrap_or(0)).collect(),
            world,
        }
    }

    /// Whether it is known what a rank does.
    fn is_known(&self, rank: u32) -> bool {
        let program = self.of_rank.get(rank as usize).and_then(|&program| self.programs.get(program));
        program.is_some_and(|program| !program.is_unknown)
    }
}

/// What the simulation gave.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What is wrong with the input, each naming what it is about: a group with a rank outside the world, a peer
    /// outside its group.
    pub faults: Vec<String>,
    /// What was not modelled, so that nothing is decided.
    pub unmodelled: Vec<String>,
    /// Calls that may wait for ever, whatever other ranks do.
    pub hangs: Vec<String>,
    /// The first place of each communicator at which its ranks do not launch the same.
    pub mismatches: Vec<Mismatch>,
    /// Launches that meet, and may not be meant to.
    pub warnings: Vec<String>,
    /// Ranks that wait for each other for ever.
    pub deadlock: Option<Deadlock>,
    /// When what happened, for each rank that was run.
    pub timeline: Timeline,
}

impl Report {
    /// Whether all ranks finish, whatever order the streams choose; `None` where that could not be decided.
    pub fn finishes(&self) -> Option<bool> {
        match (
            self.faults.is_empty()
                && self.hangs.is_empty()
                && self.mismatches.is_empty()
                && self.deadlock.is_none(),
            &self.unmodelled,
        ) {
            (false, _) => Some(false),
            (true, reasons) if reasons.is_empty() => Some(true),
            _ => None,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.faults.iter().chain(&self.hangs).try_for_each(|fault| writeln!(f, "{fault}"))?;
        self.unmodelled.iter().try_for_each(|reason| writeln!(f, "not modelled: {reason}"))?;
        self.mismatches.iter().try_for_each(|mismatch| writeln!(f, "{mismatch}"))?;
        self.warnings.iter().try_for_each(|warning| writeln!(f, "warning: {warning}"))?;
        match (&self.deadlock, self.finishes()) {
            (Some(deadlock), _) => writeln!(f, "{deadlock}"),
            (None, Some(true)) => writeln!(f, "all ranks finish"),
            _ => Ok(()),
        }
    }
}

/// Runs all ranks. Linear in the steps of the programs that are run.
pub fn simulate(programs: &Programs, options: Options) -> Report {
    let mut report = Report { faults: sequences::faults(programs), ..Report::default() };
    for program in &programs.programs {
        report.unmodelled.extend(program.unmodelled.iter().cloned());
        report.hangs.extend(program.hangs.iter().cloned());
    }
    if !report.faults.is_empty() || !report.hangs.is_empty() {
        return report;
    }
    let classes = classes::Classes::new(programs);
    let network = machine::Network::new(programs, &classes);
    (report.mismatches, report.warnings) = sequences::mismatches(programs, &classes, &network);
    let mut machine = machine::Machine::new(programs, &classes, &network, &report.mismatches, options);
    machine.run();
    // What does not meet is a cause of its own, and a better one.
    if report.mismatches.is_empty() {
        report.deadlock = explain::deadlock(&machine);
    }
    report.timeline = machine.into_timeline();
    report
}

#[cfg(test)]
mod tests;
