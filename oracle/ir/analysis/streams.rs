//! What happens before what, where a graph runs on several streams of a device.
//!
//! # The idea
//!
//! The host launches a graph's calls in list order, each on a stream: the one of its tag `custom.stream`, else the one
//! that the last `fork` or `join` entered, else the stream on which the graph is called. Calls of one stream run one
//! after the other. Between streams there is no order but that of events: `record_event` marks what a stream was given
//! so far, `wait_event` holds another stream back until then, `wait_stream` does both at once, and `synchronize_*` hold
//! the host back, and with it whatever it launches later. The collectives of a process group run on a stream of their
//! own, in the order of their launches, as NCCL's do: each begins after what stands before its launch, and a wait holds
//! its own stream back until it ends. What goes through symmetric memory runs on the stream of its caller instead. What a collective copies first, it copies on the stream that launches it.
//!
//! Each call has a clock: for each stream, how many of its calls have ended when this one starts. A call happens before
//! another one if the other's clock counts it.
//!
//! Two accesses of the same bytes, one of them a write, are a *race* if neither happens before the other. A storage is
//! *freed early* if it goes back to the stream that allocated it (after the last call, in list order, that takes it)
//! and another stream may still use it at that stream's next allocation, which may take its place. `record_stream`
//! keeps it from that, and so does waiting for the other stream first. Inputs are made by the caller on its stream,
//! before all calls; what the output returns, and what the caller owns, is read on that stream behind all calls.
//!
//! # What it does not do
//!
//! The stream of number 0 is the one on which the graph is called, as PyTorch numbers them, and so is every stream that
//! events name and on which nothing runs: PyTorch gives the current stream a new number each time it asks for it.
//! Tensors of the CPU belong to the host, unless the graph has no others. A copy between device and host ends before
//! the host goes on, unless it says `non_blocking`. What frees memory at other times than after the last use, and what
//! runs on streams of its own making, is not looked at.
//!
//! Source: `torch/_dynamo/variables/streams.py`, `torch/_functorch/_aot_autograd/streams.py`.

use super::collectives::{CollectiveCall, Collectives, GroupName};
use super::conflicts::conflicts;
use super::edges::Edges;
use super::sharing::argument;
use super::storages::{Mode, Storage, StorageIndex, Storages};
use crate::graph::{Graph, NodeId, Op, Out, Str, Value};
use crate::limits::Limit;
use crate::ops::{Collective, Kind, OpInfo, Ops, Sync};
use rustc_hash::{FxHashMap, FxHashSet};

/// Why it is not known what happens before what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unclear {
    /// A node does not say which stream or event it means.
    Number(NodeId),
    /// A call runs a body that names streams.
    Inside(NodeId),
    /// There are more calls times streams than are counted.
    TooMany(u64),
}

impl Unclear {
    /// In words.
    pub fn tell(&self, graph: &Graph) -> String {
        match self {
            Unclear::Number(id) => format!("{} does not say which stream or event it means", graph.name(*id)),
            Unclear::Inside(id) => {
                format!("the body {} names streams, and it is not known when it runs", graph.name(*id))
            }
            Unclear::TooMany(n) => format!("{n} clocks would be needed to tell what happens before what"),
        }
    }
}

/// A stream of this graph: [`CURRENT`], [`HOST`], or one of those that nodes name.
type Stream = usize;
const CURRENT: Stream = 0;
const HOST: Stream = 1;

/// The streams on which calls run, besides that of the caller, by the numbers that nodes give them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// Sorted.
    numbers: Vec<i64>,
    tags: FxHashMap<NodeId, i64>,
}

impl Named {
    /// Those of a graph.
    ///
    /// # Errors
    /// Where a node does not say which stream it means, or a body names one.
    pub fn new(graph: &Graph, ops: &Ops) -> Result<Named, Unclear> {
        let tags = tagged(graph)?;
        let mut numbers: Vec<i64> = Vec::new();
        for id in graph.ids() {
            if graph.node(id).op == Op::GetAttr
                && graph.subgraph(graph.target(id)).is_some_and(|body| names_streams(body))
            {
                return Err(Unclear::Inside(id));
            }
            let named = match enters(graph, ops, id) {
                true => Some(number(graph, ops, id, 1)?),
                false => tags.get(&id).copied(),
            };
            numbers.extend(named.filter(|&n| n != 0));
        }
        Ok(Named { numbers: Vec::new(), tags }.and(&numbers))
    }

    /// Which of them a number is; none: that of the caller.
    pub fn place(&self, number: i64) -> Option<usize> {
        self.numbers.binary_search(&number).ok()
    }

    /// The number that a node is tagged with.
    pub fn tag(&self, id: NodeId) -> Option<i64> {
        self.tags.get(&id).copied()
    }

    /// The same with the streams on which calls of another graph run: what is a stream in one is none of the caller's
    /// in the other.
    pub fn with(self, other: &Named) -> Named {
        self.and(&other.numbers)
    }

    fn and(mut self, numbers: &[i64]) -> Named {
        self.numbers.extend(numbers);
        self.numbers.sort_unstable();
        self.numbers.dedup();
        self
    }

    /// Whether all calls run on the stream of the caller.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }
}

/// Two nodes that touch the same bytes, one of them writing, of which neither waits for the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Race {
    /// The first in the list.
    pub first: NodeId,
    /// The other one.
    pub second: NodeId,
    /// Whose bytes.
    pub storage: StorageIndex,
    /// Whether they certainly touch the same.
    pub certain: bool,
}

/// The streams of one graph. Built in list order, which must be topological.
#[derive(Clone, Debug)]
pub struct Streams {
    /// For each node its stream and its place there; none for what does not run.
    at: Vec<Option<(Stream, u32)>>,
    /// For launches that copy first: the place of the collective itself, which makes the result.
    made: FxHashMap<NodeId, (Stream, u32)>,
    /// What orders streams, and runs nothing.
    idle: FxHashSet<NodeId>,
    /// By wait: where its collective runs. The wait itself runs nothing either.
    ended_by: FxHashMap<NodeId, (Stream, u32)>,
    /// By call that records an event: what has ended when that is done.
    marks: FxHashMap<NodeId, Vec<u32>>,
    /// By call that waits for an event: the stream that it holds back, and its first place behind it.
    holds: FxHashMap<NodeId, (Stream, u32)>,
    /// For each node its clock, one number for each stream.
    clocks: Vec<u32>,
    width: usize,
    /// What has ended when the host returns from the graph, and of that what it was told to wait for by
    /// `synchronize_*`.
    at_return: Vec<u32>,
    told: Vec<u32>,
    freed_early: Vec<(StorageIndex, NodeId)>,
}

impl Streams {
    /// The streams of a graph. `named`: those that it names, and others that there are. `has_device`: whether there is
    /// a device beside the host, which this graph need not show.
    ///
    /// # Errors
    /// Where it is not known which stream or event is meant, or more would have to be counted than the limit.
    pub fn new(
        graph: &Graph,
        ops: &Ops,
        storages: &Storages,
        collectives: &Collectives,
        named: Named,
        has_device: bool,
    ) -> Result<Streams, Unclear> {
        let first = named.numbers.len() + 2;
        let flights = Flights::new(collectives, first);
        let width = first + flights.groups;
        let (counted, limit) = (graph.len() as u64 * width as u64, Limit::StreamClocks.standard());
        if counted > limit {
            return Err(Unclear::TooMany(counted));
        }
        let machine = Machine {
            graph,
            ops,
            storages,
            named,
            flights,
            owners: vec![CURRENT; graph.len()],
            has_device,
            entered: CURRENT,
            clocks: vec![vec![0; width]; width],
            events: FxHashMap::default(),
            landed: FxHashMap::default(),
            works: FxHashMap::default(),
            streams: Streams {
                at: vec![None; graph.len()],
                made: FxHashMap::default(),
                idle: FxHashSet::default(),
                ended_by: FxHashMap::default(),
                marks: FxHashMap::default(),
                holds: FxHashMap::default(),
                clocks: vec![0; graph.len() * width],
                width,
                at_return: Vec::new(),
                told: vec![0; width],
                freed_early: Vec::new(),
            },
        };
        machine.run()
    }

    /// Whether `first` has ended when `second` starts. What does not run waits for nothing. For the output: both when
    /// its stream goes on after the graph.
    pub fn happens_before(&self, first: NodeId, second: NodeId) -> bool {
        self.row(second).is_none_or(|clock| self.is_counted(first, clock))
    }

    /// Whether a call has ended when an event that `record` records is done.
    pub fn is_marked(&self, call: NodeId, record: NodeId) -> bool {
        self.marks.get(&record).is_some_and(|clock| self.is_counted(call, clock))
    }

    /// Whether a call starts only after the event that `wait` waits for.
    pub fn is_held(&self, call: NodeId, wait: NodeId) -> bool {
        let Some(&(stream, first)) = self.holds.get(&wait) else { return false };
        let is_behind = |(own, place): (Stream, u32)| own == stream && place >= first;
        let waits_for_it = || self.row(call).is_some_and(|clock| is_ended((stream, first), clock));
        match stream {
            // The host goes on afterwards.
            HOST => call > wait,
            _ => self.at[call.index()].is_some_and(is_behind) || waits_for_it(),
        }
    }

    /// Whether `node` has ended when the host returns from the graph.
    pub fn ends_before_return(&self, node: NodeId) -> bool {
        self.is_counted(node, &self.at_return)
    }

    /// Whether the host is told to wait for it by a call of its own, and does not merely wait for something else behind
    /// it.
    pub fn is_synchronized(&self, node: NodeId) -> bool {
        self.is_counted(node, &self.told)
    }

    fn is_counted(&self, node: NodeId, clock: &[u32]) -> bool {
        self.at.get(node.index()).copied().flatten().is_none_or(|at| is_ended(at, clock))
    }

    /// Where a node uses a storage; `owner`: who makes it. What a wait ends is used by its collective.
    fn use_of(&self, node: NodeId, owner: NodeId) -> Option<(Stream, u32)> {
        let made = self.made.get(&node).filter(|_| node == owner);
        let elsewhere = made.or(self.ended_by.get(&node)).copied();
        elsewhere.or(self.at.get(node.index()).copied().flatten()).filter(|_| !self.idle.contains(&node))
    }

    /// Storages that go back to their stream while a node of another may still use them, each with such a node.
    pub fn freed_early(&self) -> &[(StorageIndex, NodeId)] {
        &self.freed_early
    }

    /// The races: what touches the same bytes and has no order. What the output returns is read by the stream of the
    /// caller after the graph; what the caller owns it may then write, or free.
    pub fn races(&self, graph: &Graph, storages: &Storages) -> Vec<Race> {
        let race = |first, second, storage, certain| Race { first, second, storage, certain };
        let told = conflicts(storages);
        let told = told.into_iter().map(|c| race(c.before, c.after, c.storage, c.certain));
        // A fresh result is written by whoever makes it, and an input by the caller before the graph.
        let made = storages.accesses().iter().filter_map(|access| {
            let by = storages.storage(access.part.storage).by;
            (by < access.node).then(|| race(by, access.node, access.part.storage, access.part.certain))
        });
        let output = graph.ids().rfind(|&id| graph.node(id).op == Op::Output);
        let seen = storages.accesses().iter().filter_map(|access| {
            let is_external = storages.storage(access.part.storage).external;
            let output = output.filter(|&output| is_external && access.node != output)?;
            Some(race(access.node, output, access.part.storage, access.part.certain))
        });
        let mut races: Vec<Race> = told
            .chain(made)
            .chain(seen)
            .filter(|r| storages.storage(r.storage).bytes != Some(0))
            .filter(|r| {
                let first = self.use_of(r.first, storages.storage(r.storage).by);
                let runs = |id| !self.idle.contains(&id) && !self.ended_by.contains_key(&id);
                let clock = self.row(r.second).filter(|_| runs(r.second));
                first.zip(clock).is_some_and(|(at, clock)| !is_ended(at, clock))
            })
            .collect();
        races.sort_unstable_by_key(|r| (r.second, r.first, !r.certain, r.storage));
        races.dedup_by_key(|r| (r.second, r.first));
        races
    }

    fn row(&self, id: NodeId) -> Option<&[u32]> {
        self.at.get(id.index()).copied().flatten()?;
        self.clocks.get(id.index() * self.width..(id.index() + 1) * self.width)
    }
}

/// Whether some tensor is not on the host.
pub fn has_device(graph: &Graph) -> bool {
    graph.ids().any(|id| is_on_device(graph, id))
}

/// Whether some tensor is on the host.
pub fn has_host(graph: &Graph) -> bool {
    graph.ids().any(|id| is_on_host(graph, id))
}

/// Whether there is anything to ask: several streams, a call that orders them or makes the host wait, or a copy that
/// the host does not wait for.
pub fn are_asked(graph: &Graph, ops: &Ops) -> bool {
    let is_asked = |id| {
        let asks = |info: &OpInfo| info.sync().is_some() || info.copy_is_waited_for(graph, id) == Some(false);
        ops.call(graph, id).is_some_and(asks)
    };
    graph.ids().any(is_asked) || are_several(graph, ops)
}

/// Whether some call runs on another stream than that of the caller.
pub fn are_several(graph: &Graph, ops: &Ops) -> bool {
    Named::new(graph, ops).map_or(true, |named| !named.is_empty())
}

/// Two collectives on the streams of their callers, of one group and neither waiting for the other: each spins until all
/// ranks have come to it, in memory that the group has once, so that both may wait for ever.
///
/// # Errors
/// Where it is not known what happens before what.
pub fn at_once(graph: &Graph, ops: &Ops) -> Result<Option<(NodeId, NodeId)>, Unclear> {
    let named = Named::new(graph, ops)?;
    if named.is_empty() {
        return Ok(None);
    }
    let collectives = Collectives::new(graph, ops);
    let mut last: FxHashMap<GroupName, NodeId> = FxHashMap::default();
    let calls = collectives.calls.iter().filter(|call| call.is_on_callers_stream);
    // Who waits for the last one waits for all before it.
    let pairs: Vec<(NodeId, NodeId)> =
        calls.filter_map(|call| Some((last.insert(call.group, call.node)?, call.node))).collect();
    if pairs.is_empty() {
        return Ok(None);
    }
    let storages = Storages::new(graph, ops, &Edges::new(graph), &collectives, Mode::Physical);
    let streams = Streams::new(graph, ops, &storages, &collectives, named, has_device(graph))?;
    Ok(pairs.into_iter().find(|&(first, second)| !streams.happens_before(first, second)))
}

/// The storages that a graph makes and does not return, each with the last node that takes a tensor on it.
pub fn freed(graph: &Graph, storages: &Storages) -> Vec<(StorageIndex, NodeId)> {
    let mut last: Vec<NodeId> = storages.ids().map(|id| storages.storage(id).by).collect();
    let mut hold = |storage: StorageIndex, id: NodeId| {
        if let Some(last) = last.get_mut(storage.index()) {
            *last = (*last).max(id);
        }
    };
    for id in graph.ids() {
        storages.all_parts(id).for_each(|part| hold(part.storage, id));
        graph.for_each_input(id, &mut |input| {
            storages.all_parts(input).for_each(|part| hold(part.storage, id))
        });
    }
    storages.accesses().iter().for_each(|access| hold(access.part.storage, access.node));
    let is_freed = |&(storage, last): &(StorageIndex, NodeId)| {
        let known = storages.storage(storage);
        !known.external && known.bytes != Some(0) && graph.node(last).op != Op::Output
    };
    storages.ids().zip(last).filter(is_freed).collect()
}

/// Whether a body says which streams it runs on, or orders them.
fn names_streams(body: &Graph) -> bool {
    let ops = Ops::of(body);
    tagged(body).map_or(true, |tags| !tags.is_empty())
        || body.ids().any(|id| sync(body, &ops, id).is_some())
        || body.subgraphs.iter().any(|(_, inner)| names_streams(inner))
}

/// How a node orders streams.
fn sync(graph: &Graph, ops: &Ops, id: NodeId) -> Option<Sync> {
    ops.call(graph, id)?.sync()
}

/// Whether a node makes another stream the current one.
fn enters(graph: &Graph, ops: &Ops, id: NodeId) -> bool {
    matches!(sync(graph, ops, id), Some(Sync::Fork | Sync::Join))
}

/// The stream that each tagged node names.
fn tagged(graph: &Graph) -> Result<FxHashMap<NodeId, i64>, Unclear> {
    let mut read: FxHashMap<Str, Option<Option<i64>>> = FxHashMap::default();
    let mut found = FxHashMap::default();
    for id in graph.ids() {
        let Some(custom) = graph.tags(id).and_then(|tags| tags.custom) else { continue };
        let stream = *read.entry(custom).or_insert_with(|| {
            let value: serde_json::Value = serde_json::from_str(graph.text(custom)).ok()?;
            Some(value.get("stream").filter(|stream| !stream.is_null())?.as_i64())
        });
        match stream {
            None => {}
            Some(None) => return Err(Unclear::Number(id)),
            Some(Some(stream)) => {
                found.insert(id, stream);
            }
        }
    }
    Ok(found)
}

/// A number among the arguments of a call.
///
/// # Errors
/// Where it is no number.
pub fn number(graph: &Graph, ops: &Ops, id: NodeId, param: usize) -> Result<i64, Unclear> {
    let schema = ops.call(graph, id).and_then(|info| info.schema.as_ref());
    match schema.and_then(|schema| argument(graph, id, schema, param)) {
        Some(Value::Int(number)) => Ok(number),
        _ => Err(Unclear::Number(id)),
    }
}

/// Whether some result of a node is on the host.
fn is_on_host(graph: &Graph, id: NodeId) -> bool {
    is_on(graph, id, &|device| device == "cpu")
}

/// Whether some result of a node is not on the host.
fn is_on_device(graph: &Graph, id: NodeId) -> bool {
    is_on(graph, id, &|device| device != "cpu")
}

/// Whether some result of a node is on such a device.
fn is_on(graph: &Graph, id: NodeId, is_such: &dyn Fn(&str) -> bool) -> bool {
    fn any(graph: &Graph, out: Out, is_such: &dyn Fn(&str) -> bool) -> bool {
        match out {
            Out::Tensor(tensor) => is_such(graph.text(graph.tensor(tensor).device)),
            Out::Tuple(span) | Out::Dict(span) => {
                graph.outs(span).iter().any(|&part| any(graph, part, is_such))
            }
            _ => false,
        }
    }
    // A reference may lead out of the list.
    id.index() < graph.len() && any(graph, graph.node(id).out, is_such)
}

/// The collectives of a graph.
struct Flights<'a> {
    /// By launch: the stream of its group, where it has one, and the call.
    launches: FxHashMap<NodeId, (Option<Stream>, &'a CollectiveCall<'a>)>,
    /// By wait: the launch.
    waits: FxHashMap<NodeId, NodeId>,
    groups: usize,
}

impl<'a> Flights<'a> {
    /// The streams of groups have the numbers from `first` on. A single message has one to itself, since each pair of
    /// ranks has its own (`pointToPoint`, torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp).
    fn new(collectives: &'a Collectives<'a>, first: usize) -> Flights<'a> {
        let mut groups: Vec<Option<&GroupName>> = Vec::new();
        let mut flights = Flights { launches: FxHashMap::default(), waits: FxHashMap::default(), groups: 0 };
        for (call, waits) in collectives.calls.iter().zip(&collectives.waits) {
            let is_message = matches!(call.kind, Collective::Send | Collective::Recv);
            let is_known =
                call.group != GroupName::Unknown && !call.kind.is_unmodelled() && !call.is_on_callers_stream;
            let stream = (is_message || is_known).then(|| {
                let known = groups.iter().position(|&group| group == Some(&call.group));
                let at = known.filter(|_| !is_message).unwrap_or(groups.len());
                if at == groups.len() {
                    groups.push(Some(&call.group).filter(|_| !is_message));
                }
                first + at
            });
            flights.launches.insert(call.node, (stream, call));
            flights.waits.extend(waits.iter().map(|&wait| (wait, call.node)));
        }
        flights.groups = groups.len();
        flights
    }
}

/// A storage that its stream may take again, when this has ended on the streams that it was told of.
#[derive(Clone)]
struct Freed {
    storage: StorageIndex,
    ended: Vec<u32>,
}

/// Whether a clock counts a place of a stream.
fn is_ended((stream, place): (Stream, u32), clock: &[u32]) -> bool {
    clock.get(stream).is_some_and(|&ended| ended > place)
}

/// Both clocks have been seen.
fn join(clock: &mut [u32], other: &[u32]) {
    clock.iter_mut().zip(other).for_each(|(own, &other)| *own = (*own).max(other));
}

struct Machine<'a> {
    graph: &'a Graph,
    ops: &'a Ops,
    storages: &'a Storages,
    named: Named,
    flights: Flights<'a>,
    /// For each node the stream whose memory it takes.
    owners: Vec<Stream>,
    has_device: bool,
    /// The stream that the last `fork` or `join` entered.
    entered: Stream,
    /// For each stream what has ended when its next call starts; of the host, when it goes on.
    clocks: Vec<Vec<u32>>,
    events: FxHashMap<i64, Vec<u32>>,
    /// By launch: what has ended when the collective has.
    landed: FxHashMap<NodeId, Vec<u32>>,
    /// By storage: launches that write it and have not been waited for.
    works: FxHashMap<StorageIndex, Vec<NodeId>>,
    streams: Streams,
}

impl Machine<'_> {
    fn run(mut self) -> Result<Streams, Unclear> {
        let mut dying: FxHashMap<NodeId, Vec<StorageIndex>> = FxHashMap::default();
        for (storage, last) in freed(self.graph, self.storages) {
            dying.entry(last).or_default().push(storage);
        }
        let takes_memory = |known: &&Storage| known.bytes != Some(0) && !known.external;
        let made = self.storages.ids().map(|storage| self.storages.storage(storage));
        let allocates: FxHashSet<NodeId> = made.filter(takes_memory).map(|known| known.by).collect();
        let mut freed: Vec<Vec<Freed>> = vec![Vec::new(); self.streams.width];
        // Made by the caller, before all calls, wherever it stands.
        for id in
            self.graph.ids().filter(|&id| matches!(self.graph.node(id).op, Op::Placeholder | Op::GetAttr))
        {
            let is_of_host = self.has_device && !is_on_device(self.graph, id);
            self.start(id, if is_of_host { HOST } else { CURRENT });
        }
        for id in self.graph.ids() {
            match self.graph.node(id).op {
                Op::Output => self.start(id, CURRENT),
                Op::Call => match sync(self.graph, self.ops, id) {
                    Some(sync) => {
                        self.streams.idle.insert(id);
                        self.synchronize(id, sync)?;
                    }
                    None => self.call(id),
                },
                Op::Placeholder | Op::GetAttr => {}
            }
            // What was freed on this stream may be taken by what is allocated now, which waits for what it waits for.
            if allocates.contains(&id) {
                let stream = self.owners[id.index()];
                std::mem::take(&mut freed[stream]).into_iter().for_each(|freed| self.reuse(&freed, stream));
            }
            for &storage in dying.get(&id).into_iter().flatten() {
                let by = self.storages.storage(storage).by;
                let owner = self.owners[by.index()];
                freed[owner].push(Freed { storage, ended: self.recorded(storage) });
            }
        }
        // Or by what the caller allocates, when the host is there.
        for (stream, freed) in freed.into_iter().enumerate() {
            self.join(stream, &self.clocks[HOST].clone());
            freed.iter().for_each(|freed| self.reuse(freed, stream));
        }
        self.streams.at_return = std::mem::take(&mut self.clocks[HOST]);
        Ok(self.streams)
    }

    fn stream(&self, number: i64) -> Stream {
        self.named.place(number).map_or(CURRENT, |place| place + 2)
    }

    /// The host waits because it is told to.
    fn host_waits(&mut self, ended: &[u32]) {
        self.join(HOST, ended);
        join(&mut self.streams.told, ended);
    }

    fn join(&mut self, stream: Stream, ended: &[u32]) {
        join(&mut self.clocks[stream], ended);
    }

    /// The next call of a stream.
    fn start(&mut self, id: NodeId, stream: Stream) {
        let host = self.clocks[HOST].clone();
        self.join(stream, &host);
        let row = id.index() * self.streams.width;
        self.streams.clocks[row..row + self.streams.width].copy_from_slice(&self.clocks[stream]);
        let place = self.clocks[stream][stream];
        self.streams.at[id.index()] = Some((stream, place));
        self.clocks[stream][stream] = place + 1;
    }

    fn call(&mut self, id: NodeId) {
        let (graph, info) = (self.graph, self.ops.call(self.graph, id));
        let (mut takes_host, mut takes_device) = (false, false);
        graph.for_each_input(id, &mut |input| {
            takes_host |= is_on_host(graph, input);
            takes_device |= is_on_device(graph, input);
        });
        let (is_host, is_device) = (is_on_host(graph, id), is_on_device(graph, id));
        let is_of_host = self.has_device && !is_device && !takes_device && (is_host || takes_host);
        let crosses = self.has_device && ((takes_device && is_host) || (takes_host && is_device));
        let blocks = info.is_some_and(|info| {
            info.kind == Kind::Item || (crosses && info.copy_is_waited_for(graph, id) == Some(true))
        });
        let stream = match is_of_host {
            true => HOST,
            false => self.named.tag(id).map_or(self.entered, |number| self.stream(number)),
        };
        let launch = self.flights.waits.get(&id).copied();
        if info.is_some_and(|info| info.kind == Kind::Wait) {
            for launch in self.popped(id, launch) {
                let ended = self.landed.get(&launch).cloned().unwrap_or_default();
                self.join(stream, &ended);
            }
        }
        match self.flights.launches.get(&id) {
            Some(&(group, call)) => {
                self.launch(id, stream, group.filter(|_| !is_of_host), call.sends_a_copy());
                if call.is_done_at_once {
                    let ended = self.landed.get(&id).cloned().unwrap_or_default();
                    self.join(stream, &ended);
                }
            }
            None => self.start(id, stream),
        }
        if let Some(launch) = launch
            && let Some((Some(_), _)) = self.flights.launches.get(&launch)
            && let Some(at) = self.streams.use_of(launch, launch)
        {
            self.streams.ended_by.insert(id, at);
        }
        // Memory of the host belongs to no stream.
        self.owners[id.index()] = if self.has_device && is_host { HOST } else { stream };
        if blocks {
            let ended = self.clocks[stream].clone();
            self.join(HOST, &ended);
        }
    }

    /// The launches that a wait finds to wait for: those into the storages of its tensors since the wait before
    /// (`wait_tensor`, torch/csrc/distributed/c10d/Functional.cpp: the works of a storage are popped). `launch`: the
    /// one it is for, where its tensor is on no storage.
    fn popped(&mut self, wait: NodeId, launch: Option<NodeId>) -> Vec<NodeId> {
        let inputs = self.graph.inputs(wait);
        let parts = inputs.iter().flat_map(|&input| self.storages.all_parts(input));
        let storages: Vec<StorageIndex> = parts.map(|part| part.storage).collect();
        if storages.is_empty() {
            return launch.into_iter().collect();
        }
        storages.iter().flat_map(|storage| self.works.remove(storage).unwrap_or_default()).collect()
    }

    /// A collective is launched: it runs on the stream of its group, but for the copy that it makes first.
    fn launch(&mut self, id: NodeId, stream: Stream, group: Option<Stream>, copies: bool) {
        let runs_on = group.filter(|_| !copies).unwrap_or(stream);
        if runs_on != stream {
            let ended = self.clocks[stream].clone();
            self.join(runs_on, &ended);
        }
        self.start(id, runs_on);
        let mut ended = self.clocks[runs_on].clone();
        if let Some(group) = group {
            self.join(group, &ended);
            if copies {
                self.streams.made.insert(id, (group, self.clocks[group][group]));
                self.clocks[group][group] += 1;
            }
            ended.clone_from(&self.clocks[group]);
        }
        self.landed.insert(id, ended);
        for part in self.storages.all_parts(id) {
            self.works.entry(part.storage).or_default().push(id);
        }
    }

    fn synchronize(&mut self, id: NodeId, sync: Sync) -> Result<(), Unclear> {
        let number = |param| number(self.graph, self.ops, id, param);
        // What the host launched after it waited holds a stream back as well.
        let of = |this: &Self, stream: Stream| {
            let clocks = this.clocks[stream].iter().zip(&this.clocks[HOST]);
            clocks.map(|(&own, &host)| own.max(host)).collect::<Vec<u32>>()
        };
        match sync {
            Sync::RecordEvent => {
                let (event, stream) = (number(0)?, self.stream(number(1)?));
                let ended = of(self, stream);
                self.streams.marks.insert(id, ended.clone());
                self.events.insert(event, ended);
            }
            Sync::WaitEvent | Sync::Deallocate => {
                let (event, stream) = (number(0)?, self.stream(number(1)?));
                self.streams.holds.insert(id, (stream, self.clocks[stream][stream]));
                if let Some(ended) = self.events.get(&event).cloned() {
                    self.join(stream, &ended);
                }
            }
            Sync::WaitStream => {
                let (waiting, other) = (self.stream(number(0)?), self.stream(number(1)?));
                let ended = of(self, other);
                self.join(waiting, &ended);
            }
            Sync::SynchronizeStream => {
                let ended = of(self, self.stream(number(0)?));
                self.host_waits(&ended);
            }
            Sync::SynchronizeEvent => {
                self.streams.holds.insert(id, (HOST, 0));
                if let Some(ended) = self.events.get(&number(0)?).cloned() {
                    self.host_waits(&ended);
                }
            }
            Sync::SynchronizeDevice if !self.is_of(id) => {}
            Sync::SynchronizeDevice => {
                for stream in 0..self.streams.width {
                    let ended = of(self, stream);
                    self.host_waits(&ended);
                }
            }
            Sync::Fork | Sync::Join => self.entered = self.stream(number(1)?),
            // It concerns the allocator: see `reuse`.
            Sync::RecordStream => {}
        }
        Ok(())
    }

    /// Whether tensors of this graph are on the device that a call names: with its number, or of its kind.
    fn is_of(&self, id: NodeId) -> bool {
        let Some(Value::Str(kind)) = self.graph.argument(id, 0, "device_type") else { return true };
        let named = match self.graph.argument(id, 1, "device_index") {
            Some(Value::Int(number)) => format!("{}:{number}", self.graph.text(kind)),
            _ => self.graph.text(kind).to_string(),
        };
        let is_named = |name: &str| name == named || !name.contains(':') || !named.contains(':');
        let is_such = |name: &str| name != "cpu" && is_named(name);
        !self.has_device || self.graph.ids().any(|id| is_on(self.graph, id, &is_such))
    }

    /// What the streams have done by now that a storage was told of: it comes back when that has ended.
    fn recorded(&self, storage: StorageIndex) -> Vec<u32> {
        let mut ended = self.clocks[HOST].clone();
        for id in self.storages.accesses_of(storage).map(|access| access.node) {
            if sync(self.graph, self.ops, id) == Some(Sync::RecordStream)
                && let Ok(number) = number(self.graph, self.ops, id, 1)
            {
                join(&mut ended, &self.clocks[self.stream(number)]);
            }
        }
        ended
    }

    /// A storage that was freed is taken again on `owner`, the stream that allocated it.
    fn reuse(&mut self, freed: &Freed, owner: Stream) {
        let by = self.storages.storage(freed.storage).by;
        let mut ended = freed.ended.clone();
        join(&mut ended, &self.clocks[owner]);
        let accesses = self.storages.accesses_of(freed.storage).map(|access| access.node).chain([by]);
        let mut late: Vec<NodeId> = accesses
            .filter(|&id| {
                self.streams.use_of(id, by).is_some_and(|at| {
                    let is_other = at.0 != owner && at.0 != HOST && owner != HOST;
                    is_other && !is_ended(at, &ended)
                })
            })
            .collect();
        late.dedup();
        self.streams.freed_early.extend(late.into_iter().map(|id| (freed.storage, id)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::text;

    /// The races and the storages freed early, by name.
    fn faults(body: &str) -> Result<(Vec<String>, Vec<String>), Unclear> {
        let case = text::parse(body).unwrap_or_else(|e| panic!("{}", e.render(None)));
        let graph = &case.graph;
        let (ops, edges) = (Ops::of(graph), Edges::new(graph));
        let collectives = Collectives::new(graph, &ops);
        let storages = Storages::new(graph, &ops, &edges, &collectives, Mode::Physical);
        let name = |id| graph.name(id).to_string();
        let named = Named::new(graph, &ops)?;
        let streams = Streams::new(graph, &ops, &storages, &collectives, named, has_device(graph))?;
        let races = streams.races(graph, &storages);
        let freed = streams.freed_early().iter();
        Ok((
            races.iter().map(|race| format!("{} {}", name(race.first), name(race.second))).collect(),
            freed.map(|&(of, user)| format!("{} {}", name(storages.storage(of).by), name(user))).collect(),
        ))
    }

    const ON_SIDE: &str = r#"{custom: '{"stream": 1}'}"#;

    #[test]
    fn events_order_streams() {
        let text = |wait: &str| {
            format!(
                "x = input : f32[4]\na = neg(x) : f32[4]\nr = streams.record_event.default(5, 0)\n{wait}b = neg(a) : f32[4] \
                 {ON_SIDE}\nj = streams.wait_stream.default(0, 1)\nc = neg(b) : f32[4]\noutput c\n"
            )
        };
        let waits = "w = streams.wait_event.default(5, 1)\n";
        assert_eq!(faults(&text(waits)), Ok((vec![], vec!["b c".to_string()])));
        let (races, _) = faults(&text("")).unwrap_or_default();
        assert_eq!(races, ["a b"]);
        let (races, _) = faults(&text("w = streams.wait_event.default(6, 1)\n")).unwrap_or_default();
        assert_eq!(races, ["a b"]);
        let (races, _) = faults(&text("w = streams.synchronize_event.default(5)\n")).unwrap_or_default();
        assert_eq!(races, [""; 0]);
    }
}
