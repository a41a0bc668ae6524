//! What touches a collective's memory while it is in flight.
//!
//! Between its start and its wait a collective reads its inputs and writes its result whenever it likes. Until
//! the wait nobody may write the inputs, and nobody may touch the result. After the wait the result is the
//! wait's: whoever still takes the raw value has no edge that keeps it behind the wait.

use super::bytes::Overlap;
use super::collectives::Collectives;
use super::storages::{Access, Part, Storages};
use crate::graph::{Graph, NodeId};
use crate::ops::{Kind, Ops};

/// What a node does to the memory of a collective in flight.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Intrusion {
    /// Writes an input.
    WritesInput,
    /// Reads the result.
    ReadsResult,
    /// Writes the result.
    WritesResult,
    /// Takes the raw value, in flight or not.
    TakesRawValue,
}

/// A node that touches a collective's memory in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InFlight {
    /// The node.
    pub node: NodeId,
    /// The launch: an index into [`Collectives::calls`].
    pub launch: usize,
    /// What it does.
    pub what: Intrusion,
    /// Whether it certainly does.
    pub certain: bool,
    /// The wait that ends the flight of the bytes touched; `None` where there is none, and for a raw value.
    pub wait: Option<NodeId>,
}

impl InFlight {
    /// In words.
    pub fn describe(&self, graph: &Graph, collectives: &Collectives) -> String {
        let start = graph.name(collectives.calls[self.launch].node);
        let node = graph.name(self.node);
        let wait = match self.wait {
            Some(wait) => format!("before its wait {}", graph.name(wait)),
            None => "which nobody waits for".to_string(),
        };
        let verb = |word: &str| match self.certain {
            true => format!("{word}s"),
            false => format!("may {word}"),
        };
        match self.what {
            Intrusion::WritesInput => {
                format!("{node} {} an input of {start} in flight, {wait}", verb("write"))
            }
            Intrusion::ReadsResult => {
                format!("{node} {} the result of {start} in flight, {wait}", verb("read"))
            }
            Intrusion::WritesResult => {
                format!("{node} {} the result of {start} in flight, {wait}", verb("write"))
            }
            Intrusion::TakesRawValue => {
                format!("{node} takes the value of {start} itself, not that of a wait for it")
            }
        }
    }
}

/// Everything that touches the memory of a collective in flight, by launch, then in list order. A node that
/// takes the raw value of a launch is told so once, and not again for reading it. Of what touches a tensor that
/// nobody waits for only the first is told.
pub fn in_flight(graph: &Graph, ops: &Ops, storages: &Storages, collectives: &Collectives) -> Vec<InFlight> {
    let mut found = Vec::new();
    let raw = raw_uses(graph, ops, collectives);
    let mut last_write = vec![NodeId(0); storages.len()];
    for access in storages.accesses().iter().filter(|access| access.touch.writes()) {
        last_write[access.part.storage.index()] = access.node;
    }
    for (launch, call) in collectives.calls.iter().enumerate() {
        // These are done when they return.
        if call.is_done_at_once {
            continue;
        }
        let begin = found.len();
        let of_launch = raw.partition_point(|r| r.0 < launch)..raw.partition_point(|r| r.0 <= launch);
        found.extend(raw[of_launch].iter().map(|&(launch, node)| InFlight {
            node,
            launch,
            what: Intrusion::TakesRawValue,
            certain: true,
            wait: None,
        }));
        let takers: Vec<NodeId> = found[begin..].iter().map(|f| f.node).collect();
        let waits = &collectives.waits[launch];
        let mut intrude = |part: &Part, is_result: bool| {
            // Only writes intrude on inputs.
            if !is_result && last_write[part.storage.index()] <= call.node {
                return;
            }
            let meets = |access: &&Access| part.bytes.overlap(access.part.bytes) != Overlap::No;
            let later = storages.accesses_after(part.storage, call.node).filter(meets);
            // Of several waits for one launch the first that stands behind it; of a list of tensors the first that lands
            // or releases these bytes.
            let is_wait = |access: &&Access| waits.binary_search(&access.node).is_ok();
            let wait = match call.coalesced {
                false => waits.iter().copied().find(|&wait| wait > call.node),
                true if waits.is_empty() => None,
                true => later.clone().find(is_wait).map(|access| access.node),
            };
            for access in later.take_while(|a| wait.is_none_or(|wait| a.node < wait)) {
                let writes = access.touch.writes();
                let what = match (is_result, writes) {
                    (false, true) => Intrusion::WritesInput,
                    (true, false) if takers.contains(&access.node) => continue,
                    (true, false) => Intrusion::ReadsResult,
                    (true, true) => Intrusion::WritesResult,
                    (false, false) => continue,
                };
                let surely = part.bytes.overlap(access.part.bytes) == Overlap::Yes;
                let certain = part.certain && access.part.certain && surely;
                found.push(InFlight { node: access.node, launch, what, certain, wait });
                if wait.is_none() {
                    break;
                }
            }
        };
        for &input in call.held() {
            if !call.in_place {
                storages.all_parts(input).for_each(|part| intrude(part, false));
            }
        }
        storages.all_parts(call.node).for_each(|part| intrude(part, true));
        found[begin..].sort_by_key(|f| (f.node, f.what, !f.certain));
        let mut tail = found.split_off(begin);
        tail.dedup_by_key(|f| (f.node, f.what));
        found.append(&mut tail);
    }
    found
}

/// (launch, node) for every node that takes a raw value and is neither a wait nor the `getitem` of a launch that
/// returns several; sorted.
fn raw_uses(graph: &Graph, ops: &Ops, collectives: &Collectives) -> Vec<(usize, NodeId)> {
    let mut uses = Vec::new();
    for id in graph.ids() {
        let passes = collectives.launch_of_value(id).is_some() && collectives.launch_at(id).is_none();
        if passes || ops.call(graph, id).is_some_and(|info| info.kind == Kind::Wait) {
            continue;
        }
        graph.for_each_input(id, &mut |input| {
            uses.extend(collectives.launch_of_value(input).map(|launch| (launch, id)));
        });
    }
    uses.sort_unstable();
    uses.dedup();
    uses
}
