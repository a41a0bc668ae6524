//! What touches a collective's memory while it is in flight.
//!
//! Between its start and its wait a collective reads its inputs and writes its result whenever it likes. Until
//! the wait nobody may write the inputs, and nobody may touch the result. After the wait the result is the
//! wait's: whoever still takes the raw value has no edge that keeps it behind the wait.

use super::bytes::Overlap;
use super::collectives::Collectives;
use super::storages::{Part, Storages, Touch};
use crate::graph::{Graph, NodeId};
use crate::ops::{Collective, Kind, Ops};

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
}

impl InFlight {
    /// In words.
    pub fn tell(&self, graph: &Graph, collectives: &Collectives) -> String {
        let start = graph.name(collectives.calls[self.launch].node);
        let node = graph.name(self.node);
        let wait = match collectives.waits[self.launch].first() {
            Some(&wait) => format!("before its wait {}", graph.name(wait)),
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
            Intrusion::ReadsResult => format!("{node} {} the result of {start} in flight, {wait}", verb("read")),
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
/// takes the raw value of a launch is told so once, and not again for reading it.
pub fn in_flight(graph: &Graph, ops: &Ops, storages: &Storages, collectives: &Collectives) -> Vec<InFlight> {
    let mut found = Vec::new();
    let raw = raw_uses(graph, ops, collectives);
    for (launch, call) in collectives.calls.iter().enumerate() {
        // These are done when they return.
        if matches!(call.kind, Collective::Barrier | Collective::ShardDimAllToAll | Collective::Other) {
            continue;
        }
        let begin = found.len();
        let of_launch = raw.partition_point(|r| r.0 < launch)..raw.partition_point(|r| r.0 <= launch);
        found.extend(raw[of_launch].iter().map(|&(launch, node)| InFlight {
            node,
            launch,
            what: Intrusion::TakesRawValue,
            certain: true,
        }));
        let takers: Vec<NodeId> = found[begin..].iter().map(|f| f.node).collect();
        // The memory that the result will be in: what waits for it land, or what the value shows.
        let end = collectives.waits[launch].first().map_or(NodeId(u32::MAX), |&wait| wait);
        let mut intrude = |part: &Part, is_result: bool| {
            let accesses = storages.accesses_of(part.storage);
            for access in accesses.skip_while(|a| a.node <= call.node).take_while(|a| a.node < end) {
                let writes = access.touch.writes();
                let what = match (is_result, writes) {
                    (false, true) => Intrusion::WritesInput,
                    (true, false) => Intrusion::ReadsResult,
                    (true, true) => Intrusion::WritesResult,
                    (false, false) => continue,
                };
                // The wait for another value of the same launch is no intruder.
                let ends = matches!(access.touch, Touch::Release | Touch::Land)
                    && collectives.waits[launch].contains(&access.node);
                let overlap = part.bytes.overlap(access.part.bytes);
                if overlap == Overlap::No || ends || (!writes && takers.contains(&access.node)) {
                    continue;
                }
                let certain = part.certain && access.part.certain && overlap == Overlap::Yes;
                found.push(InFlight { node: access.node, launch, what, certain });
            }
        };
        for &input in &call.inputs {
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
