//! The calls of a graph on several streams, with the events that keep them in order.
//!
//! # The idea
//!
//! Each call is put on a stream. Whatever it depends on (an operand, or bytes that both touch and one of them writes)
//! and stands on another stream is waited for, by one of the ways that PyTorch has. Memory that another stream uses is
//! kept until that has done with it: by `record_stream`, by `sync_dealloc`, or since its own stream waits. In the end
//! the stream of the caller waits for all. So nothing races, and most waits are needed.
//!
//! # What it does not do
//!
//! Streams that `fork` and `join` enter; races of the given graph.

use super::source::Source;
use crate::analysis::conflicts::conflicts;
use crate::analysis::storages::{Mode, StorageIndex};
use crate::analysis::{Collectives, Edges, Storages};
use crate::graph::{Editor, Graph, NodeId, Op, Out, Tags, Value};
use crate::ops::Ops;
use std::collections::{BTreeMap, BTreeSet};

/// The number of the stream on which the graph is called.
pub(crate) const CALLER: i64 = 0;
/// Streams beside it, at most.
const MOST: u32 = 3;

struct Spread<'a, S: Source> {
    source: &'a mut S,
    graph: &'a Graph,
    editor: Editor,
    storages: Storages,
    /// The stream of each node.
    on: BTreeMap<NodeId, i64>,
    /// For a stream and another one: up to which node it has waited for it.
    known: BTreeMap<(i64, i64), NodeId>,
    events: i64,
    /// By node: what is given back behind it, once another stream has come to an event.
    given_back: BTreeMap<NodeId, Vec<(i64, StorageIndex)>>,
    safe: BTreeSet<(StorageIndex, i64)>,
}

/// A graph with its calls on up to four streams. What it computes, and the order of its calls, stay.
pub fn spread<S: Source>(source: &mut S, graph: &Graph) -> Graph {
    let (ops, edges) = (Ops::of(graph), Edges::new(graph));
    let collectives = Collectives::new(graph, &ops);
    let storages = Storages::new(graph, &ops, &edges, &collectives, Mode::Physical);
    let mut needs: BTreeMap<NodeId, BTreeSet<NodeId>> = BTreeMap::new();
    for id in graph.ids() {
        needs.entry(id).or_default().extend(graph.inputs(id));
    }
    for conflict in conflicts(&storages) {
        needs.entry(conflict.after).or_default().insert(conflict.before);
    }
    let mut this = Spread {
        source,
        graph,
        editor: Editor::new(graph),
        storages,
        on: BTreeMap::new(),
        known: BTreeMap::new(),
        events: 0,
        given_back: BTreeMap::new(),
        safe: BTreeSet::new(),
    };
    let streams = i64::from(this.source.between(1, MOST));
    let mut stream = CALLER;
    for id in graph.ids() {
        let is_call = graph.node(id).op == Op::Call;
        if is_call && this.source.percent(40) {
            stream = i64::from(this.source.between(0, streams as u32));
        }
        let own = if is_call { stream } else { CALLER };
        this.on.insert(id, own);
        if graph.node(id).op == Op::Output {
            this.join_all(streams, id);
        }
        if is_call {
            this.wait_for(id, own, needs.get(&id).into_iter().flatten().copied());
            if own != CALLER {
                run_on(&mut this.editor, id, own);
            }
            this.keep(id, own);
        }
    }
    this.editor.finish()
}

/// Puts a call on a stream.
pub(crate) fn run_on(editor: &mut Editor, id: NodeId, stream: i64) {
    let graph = editor.graph_mut();
    let custom = graph.intern(&format!("{{\"stream\": {stream}}}"));
    let tags = Tags { custom: Some(custom), ..graph.tags(id).cloned().unwrap_or_default() };
    let tags = graph.intern_tags(tags);
    graph.node_mut(id).tags = tags;
}

/// Inserts a call of `torch.ops.streams` before `anchor`.
pub(crate) fn order_streams(editor: &mut Editor, anchor: Option<NodeId>, name: &str, args: &[Value]) {
    let target = format!("streams.{name}.default");
    editor.insert_before(anchor, name, &target, args, &[], Out::None);
}

impl<S: Source> Spread<'_, S> {
    fn call(&mut self, anchor: Option<NodeId>, name: &str, args: &[Value]) {
        order_streams(&mut self.editor, anchor, name, args);
    }

    fn event(&mut self) -> Value {
        self.events += 1;
        Value::Int(99 + self.events)
    }

    /// A stream waits for what a node depends on.
    fn wait_for(&mut self, id: NodeId, own: i64, needs: impl Iterator<Item = NodeId>) {
        let mut last: BTreeMap<i64, NodeId> = BTreeMap::new();
        for need in needs {
            let other = self.on.get(&need).copied().unwrap_or(CALLER);
            let known = self.known.get(&(own, other)).is_some_and(|&known| known >= need);
            if other != own && !known {
                let last = last.entry(other).or_insert(need);
                *last = need.max(*last);
            }
        }
        for (other, need) in last {
            let way = self.source.below(8);
            if way < 3 {
                self.call(Some(id), "wait_stream", &[Value::Int(own), Value::Int(other)]);
                self.known.insert((own, other), id);
                continue;
            }
            // Behind the node itself, or as late as can be.
            let behind = self.editor.next(need).filter(|_| way < 6 && self.graph.node(need).op == Op::Call);
            let event = self.event();
            self.call(behind.or(Some(id)), "record_event", &[event, Value::Int(other)]);
            match way {
                7 => self.call(Some(id), "synchronize_event", &[event]),
                _ => self.call(Some(id), "wait_event", &[event, Value::Int(own)]),
            }
            self.known.insert((own, other), need);
        }
    }

    /// Memory of other streams that a node uses is kept until it has done so.
    fn keep(&mut self, id: NodeId, own: i64) {
        let behind = self.editor.next(id);
        let storages: BTreeSet<StorageIndex> =
            self.storages.accesses_by(id).iter().map(|access| access.part.storage).collect();
        for storage in storages {
            let known = self.storages.storage(storage);
            let (owner, external) = (known.by, known.external);
            let of = self.on.get(&owner).copied().unwrap_or(CALLER);
            if external || of == own || self.safe.contains(&(storage, own)) {
                continue;
            }
            let last = self.storages.accesses_of(storage).map(|access| access.node).max().unwrap_or(id);
            let is_tensor = matches!(self.graph.node(owner).out, Out::Tensor(_));
            let is_returned = self.graph.node(last).op == Op::Output;
            match self.source.below(4) {
                0 | 1 if is_tensor => {
                    self.call(behind, "record_stream", &[Value::Node(owner), Value::Int(own)]);
                    self.safe.insert((storage, own));
                }
                2 if is_tensor && !is_returned && last > id => {
                    self.given_back.entry(last).or_default().push((own, storage));
                    self.safe.insert((storage, own));
                }
                _ => self.call(behind, "wait_stream", &[Value::Int(of), Value::Int(own)]),
            }
        }
        for (user, storage) in self.given_back.remove(&id).unwrap_or_default() {
            let owner = self.storages.storage(storage).by;
            let of = self.on.get(&owner).copied().unwrap_or(CALLER);
            let event = self.event();
            self.call(behind, "record_event", &[event, Value::Int(user)]);
            self.call(behind, "sync_dealloc", &[event, Value::Int(of), Value::Node(owner)]);
        }
    }

    /// The stream of the caller waits for all others.
    fn join_all(&mut self, streams: i64, output: NodeId) {
        let used: BTreeSet<i64> = self.on.values().copied().collect();
        for stream in (1..=streams).filter(|stream| used.contains(stream)) {
            self.call(Some(output), "wait_stream", &[Value::Int(CALLER), Value::Int(stream)]);
        }
    }
}
