//! Edits of graphs on several streams: what orders calls, and what keeps memory.
//!
//! A wrong one is certain where the edited graph has two calls of which one uses what the other makes and need not wait
//! for it, or memory that goes back to its stream under a reader, and the graph before had neither. That is found out
//! with sets: for each call those that have certainly ended when it starts, taken over from event to event. The judge
//! counts calls for each stream instead ([`crate::analysis::streams`]).

use super::Places;
use super::reading::Reading;
use crate::analysis::storages::{Mode, StorageIndex};
use crate::analysis::streams::{Named, are_several, freed, number};
use crate::analysis::{Collectives, Edges, Storages};
use crate::generate::{CALLER, order_streams, run_on};
use crate::graph::{Graph, NodeId, Op, Value};
use crate::ops::{Kind, Ops, Sync};
use fixedbitset::FixedBitSet;
use std::collections::BTreeMap;

/// Which calls have certainly ended.
struct Order {
    before: Vec<FixedBitSet>,
    /// The stream of each node; none for what orders streams.
    on: Vec<Option<i64>>,
    /// Memory that goes back to its stream while a call may use it.
    freed: bool,
}

impl Order {
    /// That of a graph; `None` where streams are entered (`fork`), or not known.
    fn new(graph: &Graph, ops: &Ops, storages: &Storages, collectives: &Collectives) -> Option<Order> {
        let named = Named::new(graph, ops).ok()?;
        let empty = || FixedBitSet::with_capacity(graph.len());
        let mut order =
            Order { before: vec![empty(); graph.len()], on: vec![None; graph.len()], freed: false };
        let mut ended: BTreeMap<i64, FixedBitSet> = BTreeMap::new();
        let mut events: BTreeMap<i64, FixedBitSet> = BTreeMap::new();
        let mut host = empty();
        let mut recorded: BTreeMap<StorageIndex, FixedBitSet> = BTreeMap::new();
        let mut dead: Vec<(StorageIndex, FixedBitSet)> = Vec::new();
        let mut lasts: BTreeMap<NodeId, Vec<StorageIndex>> = BTreeMap::new();
        for (storage, last) in freed(graph, storages) {
            lasts.entry(last).or_default().push(storage);
        }
        for id in graph.ids() {
            let stream = |param| number(graph, ops, id, param).ok();
            let of = |ended: &BTreeMap<i64, FixedBitSet>, stream: i64, host: &FixedBitSet| {
                let mut set = ended.get(&stream).cloned().unwrap_or_else(empty);
                set.union_with(host);
                set
            };
            let info = ops.call(graph, id);
            match info.and_then(|info| info.sync()) {
                Some(Sync::RecordEvent) => drop(events.insert(stream(0)?, of(&ended, stream(1)?, &host))),
                Some(Sync::WaitEvent | Sync::Deallocate) => {
                    let event = events.get(&stream(0)?).cloned().unwrap_or_else(empty);
                    ended.entry(stream(1)?).or_insert_with(empty).union_with(&event);
                }
                Some(Sync::WaitStream) => {
                    let other = of(&ended, stream(1)?, &host);
                    ended.entry(stream(0)?).or_insert_with(empty).union_with(&other);
                }
                Some(Sync::SynchronizeEvent) => {
                    host.union_with(&events.get(&stream(0)?).cloned().unwrap_or_else(empty));
                }
                Some(Sync::SynchronizeStream) => host = of(&ended, stream(0)?, &host),
                Some(Sync::RecordStream) => {
                    let Some(Value::Node(tensor)) = graph.arg(id, 0) else { return None };
                    let stream = usize::try_from(stream(1)?).ok()?;
                    recorded.entry(storages.storage_of(tensor)?).or_default().grow_and_insert(stream);
                }
                Some(Sync::Fork | Sync::Join | Sync::SynchronizeDevice) => return None,
                None => {
                    let own = match graph.node(id).op {
                        Op::Call => named.tag(id).unwrap_or(CALLER),
                        _ => CALLER,
                    };
                    let mut before = of(&ended, own, &host);
                    if let Some(at) = collectives.waits.iter().position(|waits| waits.contains(&id)) {
                        let launch = collectives.calls[at].node;
                        before.union_with(&order.before[launch.index()]);
                        before.insert(launch.index());
                    }
                    let mut after = before.clone();
                    after.insert(id.index());
                    order.before[id.index()] = before;
                    order.on[id.index()] = Some(own);
                    if info.is_some_and(|info| info.kind == Kind::Item) {
                        host.union_with(&after);
                    }
                    ended.insert(own, after);
                    let is_new = |&storage: &_| storages.storage(storage).by == id;
                    if graph.node(id).op == Op::Call && storages.ids().any(|storage| is_new(&storage)) {
                        order.take(storages, &mut dead, Some(own), &ended);
                    }
                }
            }
            for &storage in lasts.get(&id).into_iter().flatten() {
                let streams = recorded.get(&storage).into_iter().flat_map(FixedBitSet::ones);
                let mut kept = host.clone();
                streams.for_each(|stream| kept.union_with(&of(&ended, stream as i64, &host)));
                dead.push((storage, kept));
            }
        }
        for set in ended.values_mut() {
            set.union_with(&host);
        }
        order.take(storages, &mut dead, None, &ended);
        Some(order)
    }

    /// A stream (or each, at the end) takes what is dead of its memory.
    fn take(
        &mut self,
        storages: &Storages,
        dead: &mut Vec<(StorageIndex, FixedBitSet)>,
        stream: Option<i64>,
        ended: &BTreeMap<i64, FixedBitSet>,
    ) {
        dead.retain(|&(storage, ref kept)| {
            let own = self.on[storages.storage(storage).by.index()].unwrap_or(CALLER);
            if stream.is_some_and(|stream| stream != own) {
                return true;
            }
            let is_over = |node: NodeId| {
                // What orders streams uses no memory.
                self.on[node.index()].is_none_or(|stream| stream == own)
                    || kept.contains(node.index())
                    || ended.get(&own).is_some_and(|set| set.contains(node.index()))
            };
            let mut accesses = storages.accesses_of(storage);
            self.freed |= accesses.any(|access| access.part.certain && !is_over(access.node));
            false
        });
    }

    /// Whether one of two calls need not wait for the other, which makes what it uses.
    fn races(&self, graph: &Graph, storages: &Storages) -> bool {
        storages.accesses().iter().any(|access| {
            let known = storages.storage(access.part.storage);
            let is_call = |id: NodeId| graph.node(id).op == Op::Call;
            known.bytes.is_some_and(|bytes| bytes > 0)
                && access.part.certain
                && known.by < access.node
                && is_call(known.by)
                && is_call(access.node)
                && self.on[access.node.index()].is_some()
                && !self.before[access.node.index()].contains(known.by.index())
        })
    }
}

/// Whether calls of a graph race, or memory goes back under a reader; `None` where that is not known.
fn is_faulty(graph: &Graph) -> Option<bool> {
    let (ops, edges) = (Ops::of(graph), Edges::new(graph));
    let collectives = Collectives::new(graph, &ops);
    let storages = Storages::new(graph, &ops, &edges, &collectives, Mode::Physical);
    let order = Order::new(graph, &ops, &storages, &collectives)?;
    Some(order.freed || order.races(graph, &storages))
}

/// The places where a change makes a graph faulty that is not.
fn spoiling(reading: &Reading, mut places: Places) -> Places {
    if is_faulty(reading.graph) != Some(false) {
        return Places::default();
    }
    let tried = places.found.len();
    places.found.retain(|place| is_faulty(&(place.change)(reading.graph)) == Some(true));
    places.left_out += tried - places.found.len();
    places
}

/// The calls that order streams.
fn orders<'r>(reading: &'r Reading) -> impl Iterator<Item = (NodeId, Sync)> + 'r {
    let is_asked = are_several(reading.graph, &reading.ops);
    reading.calls().filter_map(move |(id, info)| Some((id, info.sync().filter(|_| is_asked)?)))
}

/// A call that orders streams is gone.
pub(super) fn unordered(reading: &Reading) -> Places {
    let mut places = Places::default();
    for (id, _) in orders(reading) {
        let what = format!("{} is gone", reading.graph.name(id));
        places.add(id, what, move |editor| editor.erase(id));
    }
    spoiling(reading, places)
}

/// An event is recorded one call earlier.
pub(super) fn early(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (id, _) in orders(reading).filter(|(_, sync)| *sync == Sync::RecordEvent) {
        let Some(earlier) = id.0.checked_sub(1).map(NodeId) else { continue };
        if graph.node(earlier).op == Op::Call {
            let what = format!("{} stands before {}", graph.name(id), graph.name(earlier));
            places.add(id, what, move |editor| editor.move_before(Some(earlier), id));
        }
    }
    spoiling(reading, places)
}

/// A call runs on another stream.
pub(super) fn restreamed(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    let Ok(named) = Named::new(graph, &reading.ops) else { return places };
    let mut numbers: Vec<i64> = graph.ids().filter_map(|id| named.tag(id)).chain([CALLER]).collect();
    numbers.sort_unstable();
    numbers.dedup();
    for (id, info) in reading.calls().filter(|_| !named.is_empty()) {
        let own = named.tag(id).unwrap_or(CALLER);
        let at = numbers.binary_search(&own).unwrap_or(0);
        let other = numbers[(at + 1) % numbers.len()];
        if other != own && info.sync().is_none() {
            let what = format!("{} runs on stream {other}", graph.name(id));
            places.add(id, what, move |editor| run_on(editor, id, other));
        }
    }
    spoiling(reading, places)
}

/// A stream waits once more, for a stream that it has waited for.
pub(super) fn waits(reading: &Reading) -> Places {
    let mut places = Places::default();
    for (id, _) in orders(reading).filter(|(_, sync)| *sync == Sync::WaitStream) {
        let graph = reading.graph;
        let Some(later) = graph.ids().find(|other| other.0 == id.0 + 1) else { continue };
        let (Some(waiting), Some(other)) = (graph.arg(id, 0), graph.arg(id, 1)) else { continue };
        let what = format!("behind {} it is waited once more", graph.name(id));
        places.add(id, what, move |editor| {
            order_streams(editor, Some(later), "wait_stream", &[waiting, other])
        });
    }
    places
}

/// A wait for a stream is one for an event that is recorded just before.
pub(super) fn by_event(reading: &Reading) -> Places {
    let mut places = Places::default();
    let events = orders(reading).filter_map(|(id, _)| number(reading.graph, &reading.ops, id, 0).ok());
    let fresh = events.max().unwrap_or(0).saturating_add(1);
    for (id, _) in orders(reading).filter(|(_, sync)| *sync == Sync::WaitStream) {
        let graph = reading.graph;
        let (Some(waiting), Some(other)) = (graph.arg(id, 0), graph.arg(id, 1)) else { continue };
        places.add(id, format!("{} is an event", graph.name(id)), move |editor| {
            order_streams(editor, Some(id), "record_event", &[Value::Int(fresh), other]);
            order_streams(editor, Some(id), "wait_event", &[Value::Int(fresh), waiting]);
            editor.erase(id);
        });
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{self, Config, Seeded};

    /// What is generated on several streams races nowhere.
    #[test]
    fn generated_graphs_are_in_order() {
        let (mut known, mut unknown) = (0, 0);
        for number in 0..200 {
            let graph =
                generate::case(&Config { repair: 0, ..Config::default() }, 5, number).into_case().graph;
            let graph = generate::spread(&mut Seeded::case(6, number), &graph);
            match is_faulty(&graph) {
                Some(faulty) => {
                    known += 1;
                    let told = crate::format::text::print(&crate::case::Case::of_graph(graph.clone()));
                    assert!(!faulty, "{number}\n{told}");
                }
                None => unknown += 1,
            }
        }
        assert!(known > 150, "{known} known, {unknown} not");
    }
}
