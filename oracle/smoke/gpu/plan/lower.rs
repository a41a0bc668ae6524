//! From an observed run to a plan.

use super::collective::{dense, movements};
use super::kernel::{Kernel, Launch};
use super::native::{Written, pieces};
use super::streams::Streams;
use super::view::{Part, View};
use super::{Action, Buffer, Command, Expected, Final, Lane, Origin, Plan, Prediction, Round, Step, Stream};
use crate::graph::{Graph, NodeId, Op, World};
use crate::ops::{Kind, Ops};
use crate::semantics::Window;
use crate::semantics::observe::{Observed, Seen, Start, Touch};
use std::collections::{BTreeMap, BTreeSet};

/// What is lowered.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The name of the case.
    pub name: &'a str,
    /// The graph that all ranks run, or one for each rank.
    pub graphs: &'a [Graph],
    /// Their operators.
    pub ops: &'a [Ops],
    /// The world.
    pub world: &'a World,
}

impl<'a> Source<'a> {
    /// The graph of a rank.
    pub fn graph(&self, rank: u32) -> &'a Graph {
        self.graphs.get(rank as usize).unwrap_or(&self.graphs[0])
    }

    pub(super) fn ops(&self, rank: u32) -> &'a Ops {
        self.ops.get(rank as usize).unwrap_or(&self.ops[0])
    }
}

/// Lowers a run. A plan holds what the graph asks for and repairs nothing: a graph that races gives a plan that races.
///
/// # Errors
/// A reason, for communication that cannot be expressed as copies and streams that are not known.
pub fn lower(source: Source, observed: &Observed) -> Result<Plan, String> {
    if source.graphs.is_empty() || source.ops.len() != source.graphs.len() {
        return Err("there is no graph".to_string());
    }
    let mut lowering = Lowering::new(source, observed)?;
    for turn in 0..observed.turns.len() {
        lowering.turn(turn)?;
    }
    lowering.finish();
    Ok(lowering.plan)
}

pub(super) struct Lowering<'a> {
    pub(super) source: Source<'a>,
    pub(super) observed: &'a Observed<'a>,
    pub(super) plan: Plan,
    /// By rank and storage.
    pub(super) buffers: Vec<Vec<Option<u32>>>,
    streams: BTreeMap<Stream, u32>,
    /// By rank: the streams that its graph names.
    pub(super) user: Vec<Streams>,
    /// The stream that allocates each buffer.
    pub(super) owners: BTreeMap<u32, u32>,
    /// By rank, then launch: the events of *ready* and *done*.
    ready: Vec<BTreeMap<u32, u32>>,
    done: Vec<BTreeMap<u32, u32>>,
    /// Who has started a round: by channel and number, the launches of its members by position.
    rounds: BTreeMap<(usize, usize), Vec<Option<(u32, u32)>>>,
    /// Launches that each rank has started, and the next sighting.
    started: Vec<u32>,
    looked_at: Vec<usize>,
    begun: BTreeSet<(u32, NodeId)>,
    /// By rank and node: the storages that it allocates, and those that it is the last to hold.
    made_by: Vec<BTreeMap<NodeId, Vec<u32>>>,
    last_of: Vec<BTreeMap<NodeId, Vec<u32>>>,
    host_only: BTreeSet<String>,
}

impl<'a> Lowering<'a> {
    fn new(source: Source<'a>, observed: &'a Observed<'a>) -> Result<Lowering<'a>, String> {
        let ranks = observed.seen.len();
        let mut this = Lowering {
            source,
            observed,
            plan: Plan {
                name: source.name.to_string(),
                ranks: ranks as u32,
                predictions: source.graphs.iter().map(Prediction::new).collect(),
                ..Plan::default()
            },
            buffers: Vec::new(),
            streams: BTreeMap::new(),
            user: Vec::new(),
            owners: BTreeMap::new(),
            ready: vec![BTreeMap::new(); ranks],
            done: vec![BTreeMap::new(); ranks],
            rounds: BTreeMap::new(),
            started: vec![0; ranks],
            looked_at: vec![0; ranks],
            begun: BTreeSet::new(),
            made_by: Vec::new(),
            last_of: Vec::new(),
            host_only: BTreeSet::new(),
        };
        for (rank, seen) in observed.seen.iter().enumerate() {
            let (graph, ops) = (source.graph(rank as u32), source.ops(rank as u32));
            let resizes = |id: &NodeId| ops.call(graph, *id).is_some_and(|info| info.kind == Kind::Resize);
            if let Some(id) = graph.ids().find(resizes) {
                return Err(format!("{} resizes a storage, which is not replayed", graph.name(id)));
            }
            this.user.push(Streams::new(graph, ops)?);
            this.storages(rank as u32, seen);
            if let Some(of) = this.plan.predictions.get_mut(rank) {
                let doubt = contradicted(graph, seen, of);
                of.doubts.extend(doubt);
            }
        }
        Ok(this)
    }

    /// Makes a rank's buffers, and finds out when each is allocated and freed.
    fn storages(&mut self, rank: u32, seen: &Seen) {
        let graph = self.source.graph(rank);
        let mut last_user: Vec<NodeId> = graph.ids().collect();
        let mut kept_nodes = BTreeSet::new();
        for id in graph.ids() {
            graph.for_each_input(id, &mut |input| {
                if let Some(last) = last_user.get_mut(input.index()) {
                    *last = (*last).max(id);
                }
                if graph.node(id).op == Op::Output {
                    kept_nodes.insert(input);
                }
            });
        }
        // The first node that shows a storage, the last that holds it, and whether the caller keeps it.
        let mut first: Vec<Option<(NodeId, usize)>> = vec![None; seen.storages.len()];
        let mut last: Vec<NodeId> = vec![NodeId(0); seen.storages.len()];
        let mut kept = vec![false; seen.storages.len()];
        for (id, shown) in graph.ids().zip(&seen.shown) {
            for (place, window) in shown.iter().enumerate() {
                let at = window.storage.index();
                first[at].get_or_insert((id, place));
                last[at] = last[at].max(last_user[id.index()]);
                kept[at] |= kept_nodes.contains(&id);
            }
        }
        let mut landed: BTreeMap<u32, Vec<(Window, NodeId)>> = BTreeMap::new();
        for sighting in &seen.sightings {
            if let Touch::Land(launch) = sighting.touch {
                landed.entry(launch).or_default().push((sighting.window, sighting.node));
            }
        }
        for (launch, start) in seen.starts.iter().enumerate() {
            let lands = landed.get(&(launch as u32)).map_or(&[][..], Vec::as_slice);
            let over = match sees_through(start) {
                true => Some(start.node),
                // Every output has to be waited for.
                false => {
                    lands.iter().map(|&(_, node)| node).max().filter(|_| lands.len() == start.outputs.len())
                }
            };
            let mut hold = |window: &Window, until: Option<NodeId>| {
                let at = window.storage.index();
                match until {
                    Some(node) => last[at] = last[at].max(node),
                    None => kept[at] = true,
                }
            };
            // An input that is sent for one output alone is free when that has arrived.
            let piecewise = start.outputs.len() > 1 && start.inputs.len() == start.outputs.len();
            for (i, output) in start.outputs.iter().enumerate() {
                let arrival = lands.iter().find(|(window, _)| window == output).map(|&(_, node)| node);
                hold(output, arrival.filter(|_| !sees_through(start)).or(over));
                if let Some(input) = start.inputs.get(i).filter(|_| piecewise) {
                    hold(input, arrival);
                }
            }
            for input in start.inputs.iter().filter(|_| !piecewise) {
                hold(input, over);
            }
        }
        let given: BTreeMap<u32, _> = seen.inputs.iter().map(|(at, content)| (at.0, content)).collect();
        let mut buffers = vec![None; seen.storages.len()];
        let (mut made_by, mut last_of) = (BTreeMap::<_, Vec<u32>>::new(), BTreeMap::<_, Vec<u32>>::new());
        for (at, &bytes) in seen.storages.iter().enumerate() {
            let Some((node, place)) = first[at].filter(|_| bytes > 0) else { continue };
            let buffer = self.plan.buffers.len() as u32;
            buffers[at] = Some(buffer);
            let name = match (graph.node(node).op, place) {
                (Op::GetAttr, _) => graph.target(node).to_string(),
                (_, 0) => graph.name(node).to_string(),
                (_, place) => format!("{}.{place}", graph.name(node)),
            };
            let origin = match given.get(&(at as u32)) {
                Some(&content) => Origin::Given(content.clone()),
                None => {
                    made_by.entry(node).or_default().push(buffer);
                    match kept[at] {
                        true => drop(self.plan.kept.insert(buffer)),
                        false => last_of.entry(last[at]).or_default().push(buffer),
                    }
                    Origin::Made
                }
            };
            self.plan.buffers.push(Buffer { rank, name, bytes, origin });
        }
        self.buffers.push(buffers);
        self.made_by.push(made_by);
        self.last_of.push(last_of);
    }

    pub(super) fn stream(&mut self, rank: u32, lane: Lane) -> u32 {
        let plan = &mut self.plan;
        let stream = Stream { rank, lane };
        *self.streams.entry(stream.clone()).or_insert_with(|| {
            plan.streams.push(stream);
            plan.streams.len() as u32 - 1
        })
    }

    /// The stream on which a rank runs a node.
    fn stream_of(&mut self, rank: u32, node: NodeId) -> u32 {
        let lane = self.user[rank as usize].of(node);
        self.stream(rank, lane)
    }

    pub(super) fn event(&mut self, what: String) -> u32 {
        self.plan.events.push(what);
        self.plan.events.len() as u32 - 1
    }

    pub(super) fn enqueue(&mut self, stream: u32, action: Action) {
        let step = self.plan.steps.len() as u32 - 1;
        let rank = self.plan.streams[stream as usize].rank;
        let waits = self.user[rank as usize].behind(stream).into_iter().map(Action::Wait);
        self.plan.commands.extend(waits.chain([action]).map(|action| Command { stream, step, action }));
    }

    fn part(&self, rank: u32, window: &Window) -> Option<Part> {
        let view = View::of(window);
        let buffer = (*self.buffers.get(rank as usize)?.get(window.storage.index())?)?;
        (view.count() > 0).then_some(Part { buffer, view })
    }

    /// A rank runs a node, or begins one.
    fn turn(&mut self, turn: usize) -> Result<(), String> {
        let turn = self.observed.turns[turn];
        let (rank, node) = (turn.rank, turn.node);
        let graph = self.source.graph(rank);
        let seen = &self.observed.seen[rank as usize];
        let is_first = self.begun.insert((rank, node));
        let is_call = graph.node(node).op == Op::Call;
        // The sightings of a node are taken when it is over.
        let from = self.looked_at[rank as usize];
        let own = seen.sightings[from..].iter().take_while(|s| s.node <= node).count();
        let sightings = &seen.sightings[from..from + own];
        if turn.over {
            self.looked_at[rank as usize] += own;
        }
        if !is_call {
            return Ok(());
        }
        let written = sightings.iter().filter(|s| s.touch != Touch::Read && turn.over);
        let expected = written
            .filter_map(|s| {
                self.part(rank, &s.window).map(|part| Expected { part, content: s.after.clone() })
            })
            .collect();
        let name = graph.name(node).to_string();
        self.plan.steps.push(Step { rank, node, name, over: turn.over, expected });
        let stream = self.stream_of(rank, node);
        if is_first {
            let made = self.made_by[rank as usize].get(&node).cloned().unwrap_or_default();
            self.allocate(rank, stream, &made);
            let mut launches = Vec::new();
            let started = &mut self.started[rank as usize];
            while seen.starts.get(*started as usize).is_some_and(|start| start.node <= node) {
                launches.push(*started);
                *started += 1;
            }
            for launch in launches {
                self.start(rank, launch)?;
            }
        }
        if !turn.over {
            return Ok(());
        }
        let kind = self.source.ops(rank).get(graph, node).kind;
        let mut awaited: Vec<u32> = Vec::new();
        for sighting in sightings {
            if let Touch::Land(launch) = sighting.touch
                && !awaited.contains(&launch)
            {
                awaited.push(launch);
            }
        }
        // What a rank starts is in the order of its nodes.
        let first = seen.starts.partition_point(|start| start.node < node);
        let own = seen.starts.iter().enumerate().skip(first).take_while(|(_, start)| start.node == node);
        awaited.extend(own.filter(|(_, start)| sees_through(start)).map(|(launch, _)| launch as u32));
        for launch in awaited {
            if let Some(&done) = self.done[rank as usize].get(&launch) {
                self.enqueue(stream, Action::Wait(done));
            }
        }
        match kind {
            Kind::Collective(_) | Kind::Wait => {}
            Kind::Sync(sync) => self.synchronize(rank, node, sync)?,
            _ => self.compute(rank, node, kind, sightings),
        }
        if kind == Kind::Item {
            self.host_waits(rank, stream, graph.name(node));
        }
        for buffer in self.last_of[rank as usize].get(&node).cloned().unwrap_or_default() {
            self.let_go(rank, buffer);
        }
        Ok(())
    }

    /// Launches the kernels of a node.
    fn compute(
        &mut self,
        rank: u32,
        node: NodeId,
        kind: Kind,
        sightings: &[crate::semantics::observe::Sighting],
    ) {
        let graph = self.source.graph(rank);
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        let mut conjugated = false;
        for sighting in sightings {
            let Some(part) = self.part(rank, &sighting.window) else { continue };
            conjugated |= sighting.window.conj;
            match sighting.touch {
                Touch::Read => reads.push(part),
                Touch::Write => writes.push(Written { part, after: &sighting.after }),
                Touch::Land(_) => {}
            }
        }
        if reads.is_empty() && writes.is_empty() {
            return;
        }
        let stream = self.stream_of(rank, node);
        let native = pieces(graph, node, kind, &reads, &writes).filter(|_| !conjugated);
        let Some(native) = native else {
            self.host_only.insert(graph.target(node).to_string());
            let writes = writes.iter().map(|written| written.part).collect();
            let launch = Launch { kernel: Kernel::Interpret, rank, node, reads, writes };
            self.enqueue(stream, Action::Launch(launch));
            return;
        };
        for piece in native {
            let launch =
                Launch { kernel: piece.kernel, rank, node, reads: piece.reads, writes: piece.writes };
            self.enqueue(stream, Action::Launch(launch));
        }
    }

    /// A rank starts a collective; the last one to do so makes it go on.
    fn start(&mut self, rank: u32, launch: u32) -> Result<(), String> {
        let start = &self.observed.seen[rank as usize].starts[launch as usize];
        let graph = self.source.graph(rank);
        let stream = self.stream_of(rank, start.node);
        for (from, to) in copied(start) {
            if from.conj {
                return Err("a collective of a conjugated view".to_string());
            }
            if let (Some(from), Some(to)) = (self.part(rank, from), self.part(rank, to)) {
                let kernel = Kernel::Copy { from: 0, to: 0, count: to.view.count() as u64 };
                let launch = Launch { kernel, rank, node: start.node, reads: vec![from], writes: vec![to] };
                self.enqueue(stream, Action::Launch(launch));
            }
        }
        let ready = self.event(format!("ready of r{rank}.{}", graph.name(start.node)));
        self.ready[rank as usize].insert(launch, ready);
        self.enqueue(stream, Action::Record(ready));
        let members =
            self.rounds.entry((start.channel, start.round)).or_insert_with(|| vec![None; start.members]);
        if let Some(slot) = members.get_mut(start.position) {
            *slot = Some((rank, launch));
        }
        let members: Option<Vec<(u32, u32)>> = members.iter().copied().collect();
        match members {
            Some(members) => self.go(start, &members),
            None => Ok(()),
        }
    }

    /// All members have started a collective.
    fn go(&mut self, start: &Start, members: &[(u32, u32)]) -> Result<(), String> {
        let observed = self.observed;
        let sent: Vec<Start> = members
            .iter()
            .map(|&(rank, launch)| sending(&observed.seen[rank as usize].starts[launch as usize]))
            .collect();
        let starts: Vec<&Start> = sent.iter().collect();
        self.plan.rounds.push(Round {
            what: start.what.to_string(),
            channel: start.channel,
            number: start.round,
            members: members.iter().zip(&starts).map(|(&(rank, _), start)| (rank, start.node)).collect(),
        });
        let source = self.source;
        let group = source.world.groups.get(start.group as usize);
        let lane = group.map_or(Lane::Compute, |group| Lane::Group(group.name.clone()));
        let event_of = |events: &[BTreeMap<u32, u32>], (rank, launch): (u32, u32)| {
            events[rank as usize].get(&launch).copied()
        };
        let mut moved = Vec::new();
        let mut later: Vec<Vec<Launch>> = vec![Vec::new(); members.len()];
        for (me, &(rank, _)) in members.iter().enumerate() {
            let node = starts[me].node;
            let graph = source.graph(rank);
            let stream = self.stream(rank, lane.clone());
            for &member in members {
                if let Some(ready) = event_of(&self.ready, member) {
                    self.enqueue(stream, Action::Wait(ready));
                }
            }
            let movements = movements(&starts, me)?;
            // Outputs that share memory with an input of the collective are received elsewhere.
            let mut received: BTreeMap<usize, Part> = BTreeMap::new();
            for movement in movements {
                if !movement.kernel.is_native() {
                    self.host_only.insert(graph.target(node).to_string());
                }
                let Some(window) = starts[me].outputs.get(movement.output) else { continue };
                let Some(to) = self.part(rank, window) else { continue };
                let mut reads = Vec::new();
                for (from, window, view) in movement.reads {
                    if let Some(part) = self.part(members[from].0, &window) {
                        reads.push(Part { view, ..part });
                    }
                }
                let shares = members.iter().zip(&starts).any(|(&(other, _), start)| {
                    start
                        .inputs
                        .iter()
                        .any(|input| self.part(other, input).is_some_and(|p| p.buffer == to.buffer))
                });
                let mut write = Part { view: movement.to, ..to };
                if shares {
                    let own = match received.get(&movement.output) {
                        Some(&own) => own,
                        None => {
                            let own = self.communicators(rank, graph.name(node), &to.view);
                            let count = to.view.count() as u64;
                            let kernel = Kernel::Copy { from: 0, to: 0, count };
                            later[me].push(Launch { kernel, rank, node, reads: vec![own], writes: vec![to] });
                            received.insert(movement.output, own);
                            own
                        }
                    };
                    // Narrowed views of an output in place are not known to any collective.
                    if write.view != to.view {
                        return Err(format!("{} in place along a dimension", starts[me].what));
                    }
                    write = own;
                }
                let launch = Launch { kernel: movement.kernel, rank, node, reads, writes: vec![write] };
                self.enqueue(stream, Action::Launch(launch));
            }
            let event = self.event(format!("moved of r{rank}.{}", graph.name(node)));
            self.enqueue(stream, Action::Record(event));
            moved.push(event);
        }
        for (me, &(rank, launch)) in members.iter().enumerate() {
            let stream = self.stream(rank, lane.clone());
            for &event in &moved {
                self.enqueue(stream, Action::Wait(event));
            }
            for launch in later[me].drain(..) {
                self.enqueue(stream, Action::Launch(launch));
            }
            let done = self.event(format!("done of r{rank}.{}", source.graph(rank).name(starts[me].node)));
            self.done[rank as usize].insert(launch, done);
            self.enqueue(stream, Action::Record(done));
        }
        Ok(())
    }

    /// A buffer of a communicator that holds the elements of a view.
    fn communicators(&mut self, rank: u32, name: &str, of: &View) -> Part {
        let view = dense(of);
        let name = format!("{name}.received");
        let bytes = view.count() as u64 * view.size() as u64;
        self.plan.buffers.push(Buffer { rank, name, bytes, origin: Origin::Communicator });
        Part { buffer: self.plan.buffers.len() as u32 - 1, view }
    }

    fn finish(&mut self) {
        // A rank that computes nothing has a stream too: it holds what the caller gave.
        for rank in 0..self.plan.ranks {
            self.stream(rank, Lane::Compute);
            self.give_all_back(rank);
        }
        for (rank, seen) in self.observed.seen.iter().enumerate() {
            for (node, window, content) in &seen.finals {
                if let Some(part) = self.part(rank as u32, window) {
                    let name = self.source.graph(rank as u32).name(*node).to_string();
                    let expected = Expected { part, content: content.clone() };
                    self.plan.finals.push(Final { rank: rank as u32, name, expected });
                }
            }
        }
        self.plan.storages = std::mem::take(&mut self.buffers);
        self.plan.host_only = std::mem::take(&mut self.host_only).into_iter().collect();
    }
}

/// Where other sizes are predicted than an execution shows, since what the graph records is not what its operators
/// give.
fn contradicted(graph: &Graph, seen: &Seen, predicted: &Prediction) -> Option<String> {
    let allocated = predicted.nodes.values().flat_map(|bytes| &bytes.allocated);
    let mut predicted: Vec<u64> = predicted.before.iter().chain(allocated).copied().collect();
    let mut executed: Vec<u64> = seen.storages.iter().copied().filter(|&bytes| bytes > 0).collect();
    predicted.sort_unstable();
    executed.sort_unstable();
    if predicted == executed {
        return None;
    }
    let agrees = |id: NodeId, place: usize, window: &Window| {
        let Some(tensor) = graph.tensor_at(id, place) else { return true };
        let view = View::of(window);
        let shown = view.count() as i64 * view.size() as i64;
        let storage = tensor.storage_bytes.and_then(|bytes| graph.hint(bytes));
        graph.bytes(tensor).is_none_or(|bytes| bytes == shown)
            && storage.is_none_or(|bytes| seen.storages.get(window.storage.index()) == Some(&(bytes as u64)))
    };
    let mut shown = graph.ids().zip(&seen.shown);
    let wrong = shown.find(|(id, windows)| !windows.iter().enumerate().all(|(at, of)| agrees(*id, at, of)));
    wrong.map(|(id, _)| format!("the recorded size of {} is not what its operator gives", graph.name(id)))
}

/// What a collective copies before it sends the copies: `_c10d_functional.all_reduce` works in place on a clone of what
/// it is given, and so does `broadcast` (torch/csrc/distributed/c10d/Functional.cpp).
fn copied(start: &Start) -> impl Iterator<Item = (&Window, &Window)> {
    let copies = start.what.kind.sends_a_copy();
    let both = start.inputs.iter().zip(&start.outputs);
    both.filter(move |(from, to)| copies && from.storage != to.storage)
}

/// A collective that sends its copies.
fn sending(start: &Start) -> Start {
    let mut sent = start.clone();
    if copied(start).next().is_some() {
        sent.inputs.clone_from(&start.outputs);
    }
    sent
}

/// Whether the node that starts a collective also waits for it.
fn sees_through(start: &Start) -> bool {
    start.what.at_once
}
