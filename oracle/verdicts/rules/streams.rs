//! `order/streams`: what streams keep apart and together (`analysis/streams.rs`).
//!
//! A race of the graph after is a violation where the same two calls were ordered before, or where no two calls raced
//! before and one of these is new. With races before, nothing is said of new calls. The same holds of memory that is
//! freed early. What the caller gets has two readers: the stream on which the graph is called, and the host.

use super::streamed::Side;
use super::{AnalyzedGraph, Checked, Code, Evidence, Finding, Reason, Stage, events};
use crate::analysis::streams::{Race, are_asked, are_several, has_device};
use crate::graph::{Graph, NodeId, Op};
use std::collections::BTreeSet;

/// Of passes whose graphs are not looked at like this: a doubt, where one of them runs on several streams. `what`: the
/// graphs of such a pass.
pub(super) fn unlooked<'e, 'a: 'e>(
    graphs: impl IntoIterator<Item = &'e AnalyzedGraph<'a>>,
    what: &str,
) -> Option<Reason> {
    let is_used = graphs.into_iter().any(|side| are_several(side.graph, &side.ops));
    let why = || {
        Code::StreamsNotKnown.because(format!("what events order on the streams of {what} is not looked at"))
    };
    is_used.then(why)
}

/// Whether the graph after is the one before, node for node, with the same streams.
fn is_as_it_was(evidence: &Evidence) -> bool {
    let (before, after, nodes) = (evidence.before.graph, evidence.after.graph, &evidence.correspondence);
    let custom = |graph: &Graph, id| {
        graph.tags(id).and_then(|tags| tags.custom).map(|text| graph.text(text).to_string())
    };
    before.len() == after.len()
        && before
            .ids()
            .all(|id| nodes.after_of[id.index()] == Some(id) && custom(before, id) == custom(after, id))
        && nodes.rewires.is_empty()
        && nodes.changed.is_empty()
}

/// Calls stay ordered, and memory is not freed under a stream that uses it.
pub(super) fn ordered(evidence: &Evidence) -> Checked {
    let sides = [&*evidence.before, &*evidence.after];
    if !sides.into_iter().any(|side| are_asked(side.graph, &side.ops)) {
        return Checked::Findings(Vec::new());
    }
    let has_device = sides.into_iter().any(|side| has_device(side.graph));
    let [old, new] = sides;
    let (before, after) = match (Side::new(old, new, has_device), Side::new(new, old, has_device)) {
        (Ok(before), Ok(after)) => (before, after),
        (Err(reason), _) | (_, Err(reason)) => {
            return Checked::found(Vec::new(), Some(reason).filter(|_| !is_as_it_was(evidence)));
        }
    };
    let twin = |id: NodeId| evidence.correspondence.before_of[id.index()];
    let name = |id: NodeId| after.of.graph.name(id);
    let find = |title: String, nodes: &[NodeId]| {
        evidence.finding("order/streams", Stage::After, title).after_nodes(evidence, nodes.iter().copied())
    };
    let (mut findings, mut doubt): (Vec<Finding>, Option<Reason>) = (Vec::new(), None);

    let raced = !before.races().is_empty();
    for Race { first, second, storage, certain } in after.races() {
        let is_known = match (twin(first), twin(second)) {
            (Some(a), Some(b)) if !before.are_ordered(a, b) => continue,
            (Some(_), Some(_)) => true,
            _ => !raced,
        };
        if !is_known || !certain {
            let why = format!("nothing orders {} and {}, which may be as it was", name(first), name(second));
            doubt.get_or_insert(Code::StreamsNotKnown.because(why));
            continue;
        }
        let owner = after.owner(storage);
        let is_callers = after.of.storages().storage(storage).external;
        let fact = match owner == first {
            true => format!("{} uses what {} makes", name(second), name(first)),
            false if is_callers && after.of.graph.node(second).op == Op::Output => {
                format!(
                    "{} uses the memory of {}, which the caller may write or free after the graph",
                    name(first),
                    name(owner)
                )
            }
            false => format!(
                "{} and {} use the memory of {}, and one of them writes it",
                name(first),
                name(second),
                name(owner)
            ),
        };
        findings.push(
            find(
                format!("{} does not wait for {}, which runs on another stream", name(second), name(first)),
                &[first, second],
            )
            .fact(fact)
            .expected(format!("an event holds {} back until {} has ended", name(second), name(first)))
            .observed("no event does"),
        );
    }

    let was_early: BTreeSet<(NodeId, NodeId)> =
        before.streams.freed_early().iter().map(|&(storage, user)| (before.owner(storage), user)).collect();
    for &(storage, user) in after.streams.freed_early() {
        let owner = after.owner(storage);
        let is_known = match (twin(owner), twin(user)) {
            (Some(owner), Some(user)) if was_early.contains(&(owner, user)) => continue,
            // What it used may be in other memory now, and have been freed under it all the same.
            (Some(_), Some(user)) => was_early.iter().all(|&(_, other)| other != user),
            _ => was_early.is_empty(),
        };
        if !is_known {
            let why = format!("the memory of {} is freed early, as other memory was before", name(owner));
            doubt.get_or_insert(Code::StreamsNotKnown.because(why));
            continue;
        }
        findings.push(
            find(
                format!("the memory of {} is free while {} may still use it", name(owner), name(user)),
                &[owner, user],
            )
            .fact(format!("{} runs on another stream than {}, whose memory it uses", name(user), name(owner)))
            .expected("that stream is told (record_stream), or waits before the memory goes back to it")
            .observed("after the last use the next allocation may take its place"),
        );
    }

    // What the caller sees. The stream of the call is the output's own: its races are among those above.
    let ended: Vec<bool> = before.writers().iter().map(|&id| before.is_there(id)).collect();
    for writer in after.writers().into_iter().filter(|&id| !after.streams.ends_before_return(id)) {
        let had_ended = match twin(writer) {
            Some(old) => before.is_there(old),
            None => !ended.is_empty() && ended.iter().all(|&ended| ended),
        };
        if !had_ended && twin(writer).is_none() && ended.contains(&true) {
            let why = format!(
                "the host does not wait for {}, and did for others that the caller sees",
                name(writer)
            );
            doubt.get_or_insert(Code::StreamsNotKnown.because(why));
        }
        if had_ended {
            findings.push(
                find(format!("{} may still run when the host goes on", name(writer)), &[writer])
                    .fact(format!("the caller sees what {} writes", name(writer)))
                    .expected("the host waits for it, as before")
                    .observed("it does not"),
            );
        }
    }
    if doubt.is_none() {
        doubt = events::doubt(evidence, &before, &after);
    }
    Checked::found(findings, doubt)
}
