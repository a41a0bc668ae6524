//! The streams that a graph names: where its calls run, and what its events order.
//!
//! Each number of a stream is a stream of the rank, and `record_event`, `wait_event` and `wait_stream` are commands as
//! they stand. The host's own waits (`synchronize_*`, an item) hold back every stream of the rank from then on. Memory
//! belongs to the stream that allocated it. PyTorch's allocator gives it away again with that stream's next allocation,
//! so it is freed with that; `record_stream` makes it wait for another stream, beside all streams.
//!
//! The numbers are read by [`ir::analysis::streams`](crate::analysis::streams); what happens before what is not asked
//! there: the plan is another way of knowing.

use super::lower::Lowering;
use super::{Action, Lane};
use crate::analysis::streams::{Named, has_device, has_host, number};
use crate::graph::{Graph, NodeId, Value};
use crate::ops::{Ops, Sync};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the streams of one rank, as its nodes are lowered in order.
#[derive(Default)]
pub(super) struct Streams {
    /// `None`: all calls run on the stream of the caller.
    named: Option<Named>,
    /// The stream that the last `fork` or `join` entered.
    entered: i64,
    /// The events of the graph, as they were recorded last.
    events: BTreeMap<i64, u32>,
    /// What the host has waited for, in order.
    host: Vec<u32>,
    /// By stream of the plan, how much of that holds it back already.
    held_back: BTreeMap<u32, usize>,
    /// The streams that memory was told of, by buffer.
    recorded: BTreeMap<u32, BTreeSet<u32>>,
    /// By owner, what the graph has let go of: buffers, each with the events of the streams that it was told of.
    dead: BTreeMap<u32, Vec<(u32, Vec<u32>)>>,
}

impl Streams {
    /// Those of a rank's graph.
    ///
    /// # Errors
    /// Where it is not known which stream is meant, or what runs on none.
    pub(super) fn new(graph: &Graph, ops: &Ops) -> Result<Streams, String> {
        let named = Named::new(graph, ops).map_err(|unclear| unclear.tell(graph))?;
        if !named.is_empty() && has_device(graph) && has_host(graph) {
            return Err("it has several streams and tensors of the host, which are on none".to_string());
        }
        Ok(Streams { named: Some(named).filter(|named| !named.is_empty()), ..Streams::default() })
    }

    /// The stream of a number; what nothing runs on is the caller's.
    fn lane(&self, number: i64) -> Lane {
        let is_named = self.named.as_ref().is_some_and(|named| named.place(number).is_some());
        if is_named { Lane::Numbered(number) } else { Lane::Compute }
    }

    /// The stream on which a node runs.
    pub(super) fn of(&self, node: NodeId) -> Lane {
        let tag = self.named.as_ref().and_then(|named| named.tag(node));
        self.lane(tag.unwrap_or(self.entered))
    }

    /// What the host has waited for and a stream has not, which it does now.
    pub(super) fn behind(&mut self, stream: u32) -> Vec<u32> {
        if self.host.is_empty() {
            return Vec::new();
        }
        let known = self.held_back.entry(stream).or_default();
        let events = self.host.get(*known..).unwrap_or_default().to_vec();
        *known = self.host.len();
        events
    }
}

impl Lowering<'_> {
    /// Marks what a stream was given so far.
    fn mark(&mut self, stream: u32, what: String) -> u32 {
        let event = self.event(what);
        self.enqueue(stream, Action::Record(event));
        event
    }

    /// The host goes on when a stream has got as far as this.
    pub(super) fn host_waits(&mut self, rank: u32, stream: u32, node: &str) {
        if self.user[rank as usize].named.is_some() {
            let event = self.mark(stream, format!("the host's wait in r{rank}.{node}"));
            self.user[rank as usize].host.push(event);
        }
    }

    /// A call that orders streams.
    ///
    /// # Errors
    /// Where it does not say which.
    pub(super) fn synchronize(&mut self, rank: u32, node: NodeId, sync: Sync) -> Result<(), String> {
        let at = rank as usize;
        if self.user[at].named.is_none() {
            return Ok(());
        }
        let source = self.source;
        let graph = source.graph(rank);
        let name = graph.name(node);
        let number =
            |param| number(graph, source.ops(rank), node, param).map_err(|unclear| unclear.tell(graph));
        let stream = |this: &mut Self, number: i64| {
            let lane = this.user[at].lane(number);
            this.stream(rank, lane)
        };
        match sync {
            Sync::Fork | Sync::Join => self.user[at].entered = number(1)?,
            Sync::RecordEvent => {
                let (event, stream) = (number(0)?, stream(self, number(1)?));
                let mark = self.mark(stream, format!("event {event} of r{rank}.{name}"));
                self.user[at].events.insert(event, mark);
            }
            Sync::WaitEvent | Sync::Deallocate => {
                let (event, stream) = (number(0)?, stream(self, number(1)?));
                if let Some(&mark) = self.user[at].events.get(&event) {
                    self.enqueue(stream, Action::Wait(mark));
                }
            }
            Sync::WaitStream => {
                let (waiting, other) = (stream(self, number(0)?), stream(self, number(1)?));
                let mark = self.mark(other, format!("all before r{rank}.{name}"));
                self.enqueue(waiting, Action::Wait(mark));
            }
            Sync::SynchronizeStream => {
                let stream = stream(self, number(0)?);
                self.host_waits(rank, stream, name);
            }
            Sync::SynchronizeEvent => {
                let mark = self.user[at].events.get(&number(0)?).copied();
                self.user[at].host.extend(mark);
            }
            Sync::SynchronizeDevice => {
                for stream in self.numbered(rank) {
                    self.host_waits(rank, stream, name);
                }
            }
            Sync::RecordStream => {
                let stream = stream(self, number(1)?);
                for buffer in self.shown_by(rank, graph.argument(node, 0, "tensor")) {
                    self.user[at].recorded.entry(buffer).or_default().insert(stream);
                }
            }
        }
        Ok(())
    }

    /// The streams of a rank that are there by now, and run its calls.
    fn numbered(&self, rank: u32) -> Vec<u32> {
        let runs_calls = |lane: &Lane| matches!(lane, Lane::Compute | Lane::Numbered(_));
        let of_rank = self.plan.streams.iter().zip(0..);
        of_rank.filter(|(s, _)| s.rank == rank && runs_calls(&s.lane)).map(|(_, at)| at).collect()
    }

    /// The buffers of the tensors that a value shows.
    fn shown_by(&self, rank: u32, value: Option<Value>) -> Vec<u32> {
        let Some(Value::Node(node)) = value else { return Vec::new() };
        let shown = self.observed.seen[rank as usize].shown.get(node.index()).map_or(&[][..], Vec::as_slice);
        shown.iter().filter_map(|window| self.buffers[rank as usize][window.storage.index()]).collect()
    }

    /// Allocates buffers. With that comes back what the stream owns and the graph has let go of.
    pub(super) fn allocate(&mut self, rank: u32, stream: u32, buffers: &[u32]) {
        for &buffer in buffers {
            self.owners.insert(buffer, stream);
            self.enqueue(stream, Action::Alloc(buffer));
        }
        if !buffers.is_empty() {
            self.give_back(rank, stream);
        }
    }

    /// The graph lets go of a buffer.
    pub(super) fn let_go(&mut self, rank: u32, buffer: u32) {
        let compute = self.stream(rank, Lane::Compute);
        let owner = self.owners.get(&buffer).copied().unwrap_or(compute);
        let user = &mut self.user[rank as usize];
        if user.named.is_none() {
            return self.enqueue(owner, Action::Free(buffer));
        }
        let recorded = user.recorded.remove(&buffer).unwrap_or_default().into_iter();
        let marks = recorded.map(|stream| self.end_of(stream, buffer)).collect();
        self.user[rank as usize].dead.entry(owner).or_default().push((buffer, marks));
        self.plan.late.insert(buffer, self.plan.steps.len() as u32 - 1);
    }

    /// Marks what a stream has done until it has no more use for a buffer.
    fn end_of(&mut self, stream: u32, buffer: u32) -> u32 {
        self.mark(stream, format!("the end of {}", self.plan.buffers[buffer as usize]))
    }

    /// What a stream owns and the graph has let go of comes back.
    fn give_back(&mut self, rank: u32, stream: u32) {
        for (buffer, mut marks) in self.user[rank as usize].dead.remove(&stream).unwrap_or_default() {
            let mut of = stream;
            if !marks.is_empty() {
                marks.push(self.end_of(stream, buffer));
                of = self.stream(rank, Lane::End(buffer));
            }
            marks.into_iter().for_each(|mark| self.enqueue(of, Action::Wait(mark)));
            self.enqueue(of, Action::Free(buffer));
        }
    }

    /// At the end all of it does: the caller may allocate.
    pub(super) fn give_all_back(&mut self, rank: u32) {
        let streams: Vec<u32> = self.user[rank as usize].dead.keys().copied().collect();
        streams.into_iter().for_each(|stream| self.give_back(rank, stream));
    }
}
