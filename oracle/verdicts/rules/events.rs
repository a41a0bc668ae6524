//! Part of `order/streams`: what orders a graph and whoever calls it.
//!
//! An event that the graph records and does not wait for is waited for by the caller, or by another graph; one that it
//! waits for and does not record was recorded there. So what had ended when the one was recorded has ended after as
//! well, and what began after the other was waited for begins after it. The allocator is told of the caller's own
//! memory for the caller's sake: where the caller's stream waits for the last use, nobody needs it.
//!
//! Nobody knows what the caller does, so nothing is convicted here: it is left open.

use super::streamed::Side;
use super::{Code, Evidence, Reason};
use crate::analysis::streams::number;
use crate::graph::{NodeId, Op};
use crate::ops::Sync;

/// What is other than before for whoever calls the graph.
pub(super) fn doubt(evidence: &Evidence, before: &Side, after: &Side) -> Option<Reason> {
    let because = |why: String| Some(Code::StreamsNotKnown.because(why));
    let name = |id: NodeId| evidence.before.graph.name(id);
    let after_of = |id: NodeId| evidence.correspondence.after_of[id.index()];
    // Calls that both graphs make.
    let both: Vec<(NodeId, NodeId)> = before
        .calls()
        .filter(|&id| before.sync(id).is_none())
        .filter_map(|id| Some((id, after_of(id)?)))
        .collect();
    let records = [before, after].map(|side| side.events(&[Sync::RecordEvent]));
    let waits = [before, after].map(|side| side.events(WAITS));
    for &(event, record) in &records[0] {
        if waits[0].iter().any(|&(other, wait)| other == event && wait > record) {
            continue;
        }
        let done = || both.iter().filter(|(old, _)| before.streams.is_marked(*old, record));
        let marks_all = |new: NodeId| done().all(|&(_, call)| after.streams.is_marked(call, new));
        if !records[1].iter().any(|&(other, new)| other == event && marks_all(new)) {
            return because(format!(
                "{} records event {event}, which somebody outside of the graph may wait for, and after it marks less",
                name(record)
            ));
        }
    }
    for &(event, wait) in &waits[0] {
        if records[0].iter().any(|&(other, record)| other == event && record < wait) {
            continue;
        }
        let held = || both.iter().filter(|(old, _)| before.streams.is_held(*old, wait));
        let holds_all = |new: NodeId| held().all(|&(_, call)| after.streams.is_held(call, new));
        if !waits[1].iter().any(|&(other, new)| other == event && holds_all(new)) {
            return because(format!(
                "{} waits for event {event}, which somebody outside of the graph records, and after it holds back less",
                name(wait)
            ));
        }
    }
    untold(before, after).and_then(|id| {
        because(format!("the allocator is no longer told what {} tells it of the caller's memory", name(id)))
    })
}

/// What waits for an event.
const WAITS: &[Sync] = &[Sync::WaitEvent, Sync::SynchronizeEvent, Sync::Deallocate];

/// A use of the caller's memory that the allocator is told of before and not after, and that the caller's stream does
/// not wait for.
fn untold(before: &Side, after: &Side) -> Option<NodeId> {
    let told = |side: &Side| -> Vec<(String, i64, NodeId)> {
        let graph = side.of.graph;
        let one = |id: NodeId| {
            let stream = number(graph, &side.of.ops, id, 1).ok()?;
            let &tensor = graph.inputs(id).first()?;
            let storage = side.of.storages().storage(side.of.storages().storage_of(tensor)?);
            let owner = graph.name(storage.by).to_string();
            storage.external.then_some((owner, stream, id))
        };
        side.calls().filter(|&id| side.sync(id) == Some(Sync::RecordStream)).filter_map(one).collect()
    };
    let now = told(after);
    let is_told = |owner: &str, stream: i64| now.iter().any(|(other, of, _)| other == owner && *of == stream);
    let graph = after.of.graph;
    let is_waited_for = |owner: &str| {
        let storage = graph.find(owner).and_then(|id| after.of.storages().storage_of(id));
        let output = graph.ids().find(|&id| graph.node(id).op == Op::Output);
        storage.zip(output).is_none_or(|(storage, output)| {
            let mut users = after.of.storages().accesses_of(storage);
            users.all(|access| after.streams.happens_before(access.node, output))
        })
    };
    told(before)
        .into_iter()
        .find(|(owner, stream, _)| !is_told(owner, *stream) && !is_waited_for(owner))
        .map(|(_, _, id)| id)
}
