//! The plan: what a host program enqueues on a device, command by command.
//!
//! All ranks share one device. Every rank has a compute stream, one more for each stream that its graph names
//! (`plan/streams.rs`), and one communication stream per process group that it uses, as PyTorch's NCCL backend has. The
//! commands stand in the order in which one host thread enqueues them; on a device the streams run side by side, and
//! only the events order them.
//!
//! # A collective
//!
//! 1. Every member records *ready* on its compute stream when it starts the collective. One that works in place on a copy
//!    of what it is given (all_reduce, broadcast) makes the copy before.
//! 2. When the last member has started it, each member's communication stream waits for all *ready* and moves or reduces
//!    the members' inputs into its own output, and records *moved*.
//! 3. It then waits for all *moved* and records *done*: now its output is there, and nobody reads its input any more.
//!    Where output and input of a collective share memory, step 2 writes to a buffer of the communicator, and the
//!    output is copied from there in step 3.
//!
//! The wait of the graph makes the compute stream wait for *done*.

mod collective;
mod inputs;
mod kernel;
mod lower;
mod native;
mod predict;
mod streams;
mod view;

pub use inputs::small_inputs;
pub use kernel::{Arithmetic, Function, Kernel, Launch};
pub use lower::{Source, lower};
pub use predict::{Bytes, Live, Prediction};
pub use view::{Part, View};

use crate::graph::NodeId;
use crate::semantics::StorageRef;
use crate::semantics::observe::Content;
use std::collections::{BTreeMap, BTreeSet};

/// What a stream of a rank is for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Lane {
    /// The stream on which the graph is called.
    Compute,
    /// The stream to which the graph gives this number.
    Numbered(i64),
    /// The collectives of this process group.
    Group(String),
    /// The end of this buffer, which waits for streams that do not own it, and holds none of them back.
    End(u32),
}

/// A stream.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stream {
    /// The rank whose it is.
    pub rank: u32,
    /// What it is for.
    pub lane: Lane,
}

impl Stream {
    /// Whether collectives run on it.
    pub fn communicates(&self) -> bool {
        matches!(self.lane, Lane::Group(_))
    }
}

impl std::fmt::Display for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.lane {
            Lane::Compute => write!(f, "r{}.compute", self.rank),
            Lane::Numbered(number) => write!(f, "r{}.stream {number}", self.rank),
            Lane::Group(group) => write!(f, "r{}.{group}", self.rank),
            Lane::End(buffer) => write!(f, "r{}.end of {buffer}", self.rank),
        }
    }
}

/// Where a buffer comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The caller gives it, with these bytes.
    Given(Content),
    /// The plan allocates it.
    Made,
    /// It belongs to a communicator, and is there before the first step.
    Communicator,
}

/// A storage of one rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Buffer {
    /// The rank whose it is.
    pub rank: u32,
    /// The name of the node that makes it.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Where it comes from.
    pub origin: Origin,
}

impl std::fmt::Display for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "r{}.{}", self.rank, self.name)
    }
}

/// What a command does.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// Allocates a buffer.
    Alloc(u32),
    /// Frees a buffer.
    Free(u32),
    /// Runs a kernel.
    Launch(Launch),
    /// Records an event. Each event is recorded once.
    Record(u32),
    /// Waits for an event.
    Wait(u32),
}

/// A command.
#[derive(Clone, PartialEq, Debug)]
pub struct Command {
    /// The stream.
    pub stream: u32,
    /// The step that enqueues it.
    pub step: u32,
    /// What it does.
    pub action: Action,
}

/// What a device must hold somewhere at some time.
#[derive(Clone, PartialEq, Debug)]
pub struct Expected {
    /// Where.
    pub part: Part,
    /// What.
    pub content: Content,
}

/// One node of one rank.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// The rank.
    pub rank: u32,
    /// The node.
    pub node: NodeId,
    /// The node's name.
    pub name: String,
    /// Whether the node is over; one that itself waits for other ranks is begun in one step and over in another.
    pub over: bool,
    /// What the step has written when it is over.
    pub expected: Vec<Expected>,
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "r{}.{}", self.rank, self.name)
    }
}

/// What a plan returns, or leaves in an input.
#[derive(Clone, PartialEq, Debug)]
pub struct Final {
    /// The rank.
    pub rank: u32,
    /// The node whose value it is.
    pub name: String,
    /// What the device must hold at the end.
    pub expected: Expected,
}

/// A collective with its members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Round {
    /// What it is, in words.
    pub what: String,
    /// The channel, and the place in its sequence.
    pub channel: usize,
    /// The place in the channel's sequence.
    pub number: usize,
    /// Rank and node of each member.
    pub members: Vec<(u32, NodeId)>,
}

/// Everything that is enqueued.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Plan {
    /// Its name: the case.
    pub name: String,
    /// How many ranks there are.
    pub ranks: u32,
    /// The streams.
    pub streams: Vec<Stream>,
    /// The buffers.
    pub buffers: Vec<Buffer>,
    /// The events, in words.
    pub events: Vec<String>,
    /// The commands in the order in which they are enqueued.
    pub commands: Vec<Command>,
    /// The steps in the order in which they are enqueued.
    pub steps: Vec<Step>,
    /// What is there at the end.
    pub finals: Vec<Final>,
    /// The collectives.
    pub rounds: Vec<Round>,
    /// What the memory analysis says of the graph, or of each rank's.
    pub predictions: Vec<Prediction>,
    /// Kernels that only the host has: the operators, each once.
    pub host_only: Vec<String>,
    /// Buffers that the plan allocates and the caller keeps.
    pub kept: BTreeSet<u32>,
    /// Buffers that are freed later than the graph lets go of them, with the step in which it does.
    pub late: BTreeMap<u32, u32>,
    /// The storages of the observed run that are buffers, by rank.
    pub(super) storages: Vec<Vec<Option<u32>>>,
}

impl Plan {
    /// The stream on which a rank's graph is called.
    pub fn compute(&self, rank: u32) -> u32 {
        let of_rank = |stream: &Stream| stream.rank == rank && stream.lane == Lane::Compute;
        self.streams.iter().position(of_rank).unwrap_or(0) as u32
    }

    /// The commands of each step, in order.
    pub fn by_step(&self) -> Vec<std::ops::Range<usize>> {
        let mut ranges = vec![0..0; self.steps.len()];
        let mut from = 0;
        for (step, range) in ranges.iter_mut().enumerate() {
            let to = from + self.commands[from..].iter().take_while(|c| c.step as usize == step).count();
            *range = from..to;
            from = to;
        }
        ranges
    }

    /// The buffer that a storage of the observed run is; what an operator makes for itself is none.
    pub(super) fn buffer_of(&self, rank: u32, storage: StorageRef) -> Option<u32> {
        *self.storages.get(rank as usize)?.get(storage.index())?
    }

    /// A hash of everything that is enqueued: the same for the same plan on every machine.
    pub fn hash(&self) -> u64 {
        let mut hash = Fnv::default();
        hash.add(format!("{:?} {:?}", self.streams, self.events).as_bytes());
        for buffer in &self.buffers {
            hash.add(format!("{buffer} {}", buffer.bytes).as_bytes());
        }
        for command in &self.commands {
            hash.add(format!("{command:?}").as_bytes());
        }
        hash.0
    }

    /// What a command is, for people.
    pub fn describe(&self, command: usize) -> String {
        let Some(command) = self.commands.get(command) else {
            let caller = if command == self.commands.len() {
                "the caller, who goes on with it"
            } else {
                "the caller, who gives it"
            };
            return caller.to_string();
        };
        let step = &self.steps[command.step as usize];
        let what = match &command.action {
            Action::Alloc(buffer) => format!("allocates {}", self.buffers[*buffer as usize]),
            Action::Free(buffer) => format!("frees {}", self.buffers[*buffer as usize]),
            Action::Launch(launch) => launch.kernel.name(),
            Action::Record(event) => format!("records {}", self.events[*event as usize]),
            Action::Wait(event) => format!("waits for {}", self.events[*event as usize]),
        };
        format!("{step} ({what} on {})", self.streams[command.stream as usize])
    }
}

/// FNV-1a, 64 bits.
#[derive(Clone, Copy, Debug)]
pub struct Fnv(pub u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xCBF2_9CE4_8422_2325)
    }
}

impl Fnv {
    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }

    /// The hash of some bytes.
    pub fn of(bytes: &[u8]) -> u64 {
        let mut this = Fnv::default();
        this.add(bytes);
        this.0
    }
}
