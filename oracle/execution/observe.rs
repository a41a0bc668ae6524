//! Watching a run: which windows each node reads and writes on each rank, and what it leaves there.
//!
//! # The idea
//!
//! [`observe`] executes a program once over [`Concrete`] and writes down what an executor on a device has to repeat:
//! the order in which ranks run their nodes, every window that a node reads or writes with the bytes that it leaves,
//! and every collective with its inputs and outputs. Afterwards [`Observed::evaluate`] executes one node again over
//! bytes that the caller supplies: that is how a replay computes values without kernels of its own.
//!
//! # What it does not do
//!
//! Nothing is said of storages that an operator makes for itself and that no node shows: they are no part of a
//! schedule.

use super::block::{Block, Mark};
use super::comm::{Comm, Launch};
use super::concrete::Concrete;
use super::domain::{Outcome, Trouble, refuse};
use super::hazard::Hazard;
use super::layout::{StorageRef, Window};
use super::memory::Flight;
use super::program::{Action, Program};
use super::rank::{Item, Rank, State, storages_of};
use super::run::{Failure, Options, all_ranks, stuck};
use crate::graph::{NodeId, World};
use crate::ops::Collective;

/// How a node touches a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touch {
    /// It reads it. A collective reads its inputs at the node that starts it.
    Read,
    /// It writes it.
    Write,
    /// It waits for this launch of its rank, which writes it.
    Land(u32),
}

/// Bytes of a window in row-major order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Content {
    /// The bytes, least significant first.
    pub bytes: Vec<u8>,
    /// Whether each byte is known; empty where all are.
    pub known: Vec<bool>,
}

/// A node touches a window.
#[derive(Clone, PartialEq, Debug)]
pub struct Sighting {
    /// The node.
    pub node: NodeId,
    /// How.
    pub touch: Touch,
    /// What.
    pub window: Window,
    /// What is there when the node is over, of a window that it writes or lands.
    pub after: Content,
}

/// A collective that a rank starts.
#[derive(Clone, Debug)]
pub struct Start {
    /// The node.
    pub node: NodeId,
    /// The process group, by its position in the world.
    pub group: u32,
    /// What all members agree on.
    pub what: Launch,
    /// The channel: an instance of a group, or one direction between two of its members.
    pub channel: usize,
    /// Its place in the channel's sequence.
    pub round: usize,
    /// The rank's position among the members.
    pub position: usize,
    /// How many members there are.
    pub members: usize,
    /// What it reads.
    pub inputs: Vec<Window>,
    /// What it writes.
    pub outputs: Vec<Window>,
    /// Rows that this rank sends to, and receives from, each member (all_to_all).
    pub splits: (Vec<i64>, Vec<i64>),
}

/// A rank runs a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    /// The rank.
    pub rank: u32,
    /// The node.
    pub node: NodeId,
    /// Whether it has come to an end: a node that itself waits for other ranks is begun in one turn and over in
    /// another.
    pub over: bool,
}

/// What happened on one rank.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// All touches, in order.
    pub sightings: Vec<Sighting>,
    /// All collectives, in the order in which they were started.
    pub starts: Vec<Start>,
    /// The windows that each node's value shows.
    pub shown: Vec<Vec<Window>>,
    /// The size of each storage, in bytes.
    pub storages: Vec<u64>,
    /// The contents of each input's storage before the first node.
    pub inputs: Vec<(StorageRef, Content)>,
    /// What the graph returns, and its inputs, at the end: the node whose value it is.
    pub finals: Vec<(NodeId, Window, Content)>,
    /// How many storages there are when each node is over.
    made: Vec<u32>,
}

/// Writes down what a rank does.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    seen: Seen,
    /// The first sighting of the present node.
    from: usize,
    flights: Vec<Flight>,
}

impl Watch {
    pub(super) fn saw(&mut self, node: NodeId, touch: Touch, window: Window) {
        self.seen.sightings.push(Sighting { node, touch, window, after: Content::default() });
    }

    pub(super) fn departed(&mut self, flight: Flight) {
        self.flights.push(flight);
    }

    /// A node is over: what it has written is as it leaves it.
    pub(super) fn settled(&mut self, rank: &Rank, node: NodeId) -> Outcome<()> {
        for sighting in self.seen.sightings.iter_mut().skip(self.from) {
            if sighting.touch != Touch::Read {
                sighting.after = content(rank.memory.peek(rank.domain, &sighting.window)?);
            }
        }
        self.from = self.seen.sightings.len();
        let mut shown = Vec::new();
        windows_of(&rank.items[node.index()], &mut shown);
        self.seen.shown.push(shown);
        self.seen.made.push(rank.memory.count() as u32);
        Ok(())
    }
}

/// A run of all ranks, written down.
pub struct Observed<'a> {
    ranks: Vec<Rank<'a>>,
    /// The nodes in the order in which they were run, ranks taking turns where they have to wait for each other.
    pub turns: Vec<Turn>,
    /// By rank.
    pub seen: Vec<Seen>,
    /// Races and the like.
    pub hazards: Vec<Hazard>,
}

/// Runs a program on all ranks and writes down what happens. `options.free_after_last_use` does not count.
///
/// # Errors
/// As [`run`](super::run()).
pub fn observe<'a>(
    programs: &'a [Program],
    world: &World,
    domain: &'a Concrete,
    options: &'a Options,
) -> Result<Observed<'a>, Failure> {
    let mut ranks = all_ranks(programs, world, domain, options)?;
    let mut comm = Comm::new(world);
    let mut turns = Vec::new();
    for rank in &mut ranks {
        rank.begin(0)?;
        rank.memory.watch = Some(Box::default());
        let mut inputs = Vec::new();
        rank.inputs.iter().for_each(|item| storages_of(item, &mut inputs));
        inputs.sort();
        inputs.dedup();
        let raw = inputs.into_iter().map(|storage| {
            let (bytes, known) = rank.memory.raw(storage);
            (storage, Content { bytes, known })
        });
        let raw = raw.collect();
        if let Some(watch) = &mut rank.memory.watch {
            watch.seen.inputs = raw;
        }
    }
    loop {
        let mut progress = false;
        for rank in ranks.iter_mut().filter(|rank| rank.state != State::Done) {
            let (before, begun) = (rank.at(), !rank.blocking.is_empty());
            progress |= rank.advance(&mut comm)?;
            let number = rank.rank;
            let turn = |node: usize, over| Turn { rank: number, node: NodeId(node as u32), over };
            turns.extend((before..rank.at()).map(|node| turn(node, true)));
            let fresh = rank.at() > before || !begun;
            if !rank.blocking.is_empty() && fresh {
                turns.push(turn(rank.at(), false));
            }
        }
        if ranks.iter().all(|rank| rank.state == State::Done) {
            break;
        }
        if !progress {
            return Err(stuck(&ranks));
        }
    }
    let (mut seen, mut hazards) = (Vec::new(), Vec::new());
    for rank in &mut ranks {
        let number = rank.rank;
        hazards.extend(rank.memory.hazards.iter().map(|&(node, kind)| Hazard { rank: number, node, kind }));
        let watch = rank.memory.watch.take().unwrap_or_default();
        seen.push(finished(rank, &comm, *watch)?);
        rank.memory.calm();
    }
    Ok(Observed { ranks, turns, seen, hazards })
}

/// Adds what only the end of a run shows.
fn finished(rank: &Rank, comm: &Comm, watch: Watch) -> Result<Seen, Failure> {
    let mut seen = watch.seen;
    for note in &rank.launches {
        seen.starts.push(Start {
            node: note.node,
            group: note.group,
            what: note.what.clone(),
            channel: note.place.channel,
            round: note.place.round,
            position: note.place.position,
            members: comm.size(note.place),
            inputs: Vec::new(),
            outputs: Vec::new(),
            splits: comm.splits(note.place),
        });
    }
    for flight in watch.flights {
        let Some(start) = seen.starts.get_mut(flight.launch as usize) else { continue };
        start.outputs = flight.outputs.iter().map(|&(_, window)| window).collect();
        start.inputs = flight.inputs;
        // A collective in place reads what it writes.
        if start.inputs.is_empty() && start.what.kind != Collective::Recv {
            start.inputs = start.outputs.clone();
        }
    }
    for start in seen.starts.iter_mut().filter(|start| start.outputs.is_empty()) {
        // What its own node sees through never departs.
        let of_node = |s: &&Sighting| s.node == start.node && s.touch == Touch::Read;
        start.inputs = seen.sightings.iter().filter(of_node).map(|s| s.window).collect();
        start.outputs = seen.shown.get(start.node.index()).cloned().unwrap_or_default();
    }
    seen.storages = (0..rank.memory.count())
        .map(|at| {
            let (cells, grain) = rank.memory.size(StorageRef(at as u32));
            cells as u64 * u64::from(grain)
        })
        .collect();
    let graph = rank.program.graph;
    let mut kept: Vec<NodeId> = rank.program.inputs.iter().map(|input| input.node).collect();
    for id in graph.ids().filter(|&id| graph.node(id).op == crate::graph::Op::Output) {
        graph.for_each_input(id, &mut |input| kept.push(input));
    }
    kept.sort();
    kept.dedup();
    for node in kept {
        for &window in seen.shown.get(node.index()).into_iter().flatten() {
            let block = rank.memory.peek(rank.domain, &window).map_err(|t| rank.failure(node, t))?;
            seen.finals.push((node, window, content(block)));
        }
    }
    Ok(seen)
}

impl Observed<'_> {
    /// Executes a node of a rank again. `load` gives the bytes of each window that the node reads; the result is what
    /// it writes, in the order of its sightings.
    ///
    /// # Errors
    /// A reason, for a node that does something else than it did when it was observed.
    pub fn evaluate(
        &mut self,
        rank: u32,
        node: NodeId,
        load: &mut dyn FnMut(&Window) -> Vec<u8>,
    ) -> Result<Vec<(Window, Vec<u8>)>, String> {
        let (seen, rank) = match (self.seen.get(rank as usize), self.ranks.get_mut(rank as usize)) {
            (Some(seen), Some(rank)) => (seen, rank),
            _ => return Err(format!("there is no rank {rank}")),
        };
        evaluate(rank, seen, node, load).map_err(|trouble| match trouble {
            Trouble::Refuse(reason) | Trouble::Raise(reason) => reason,
            other => format!("{other:?}"),
        })
    }
}

fn evaluate(
    rank: &mut Rank,
    seen: &Seen,
    node: NodeId,
    load: &mut dyn FnMut(&Window) -> Vec<u8>,
) -> Outcome<Vec<(Window, Vec<u8>)>> {
    let program = rank.program;
    let Some(step) = program.steps.get(node.index()) else {
        return Err(refuse!("there is no node {}", node.0));
    };
    let Action::Call(kind) = step.action else { return Err(refuse!("node {} calls nothing", node.0)) };
    let before = |list: &[u32]| node.index().checked_sub(1).and_then(|at| list.get(at)).copied();
    let first = before(&seen.made).unwrap_or(seen.inputs.len() as u32);
    rank.memory.node = node;
    let from = seen.sightings.partition_point(|s| s.node < node);
    let own = || seen.sightings[from..].iter().take_while(|s| s.node == node);
    for sighting in own().filter(|s| s.touch == Touch::Read && s.window.storage.0 < first) {
        let window = Window { conj: false, ..sighting.window };
        let (_, grain) = rank.memory.size(window.storage);
        let bytes = load(&window);
        rank.memory.fill(&window, &block_of(&bytes, grain));
    }
    let made = rank.memory.count();
    rank.call(node, step, kind)?;
    let shift = made as u32 - first;
    let mut written = Vec::new();
    for sighting in own().filter(|s| s.touch == Touch::Write) {
        let mut window = sighting.window;
        if window.storage.0 >= first {
            window.storage.0 += shift;
        }
        if window.storage.index() >= rank.memory.count() {
            return Err(refuse!("node {} makes other storages than before", node.0));
        }
        written.push((sighting.window, content(rank.memory.peek(rank.domain, &window)?).bytes));
    }
    rank.memory.truncate(made);
    Ok(written)
}

fn windows_of(item: &Item, into: &mut Vec<Window>) {
    match item {
        Item::Tensor(window) => into.push(*window),
        Item::List(items) => items.iter().for_each(|item| windows_of(item, into)),
        Item::Dict(items) => items.iter().for_each(|(_, item)| windows_of(item, into)),
        _ => {}
    }
}

fn content(block: Block) -> Content {
    let grain = usize::from(block.grain);
    let bytes = block.cells.iter().flat_map(|cell| cell.to_le_bytes().into_iter().take(grain)).collect();
    let known = |mark: &Mark| std::iter::repeat_n(*mark == Mark::Known, grain);
    Content { bytes, known: block.marks.iter().flat_map(known).collect() }
}

fn block_of(bytes: &[u8], grain: u8) -> Block {
    let cell = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    };
    Block {
        cells: bytes.chunks(usize::from(grain.clamp(1, 8))).map(cell).collect(),
        marks: Vec::new(),
        grain,
    }
}
