//! What one graph does on its streams.

use super::{AnalyzedGraph, Code, Reason};
use crate::analysis::StorageIndex;
use crate::analysis::streams::{Named, Race, Streams, number};
use crate::graph::{NodeId, Op};
use crate::ops::Sync;
use std::collections::BTreeSet;

/// What one graph does on its streams.
pub(super) struct Side<'e, 'a> {
    pub(super) of: &'e AnalyzedGraph<'a>,
    pub(super) streams: Streams,
}

impl<'e, 'a> Side<'e, 'a> {
    /// `other`: the graph that it is compared with.
    pub(super) fn new(
        of: &'e AnalyzedGraph<'a>,
        other: &AnalyzedGraph,
        has_device: bool,
    ) -> Result<Side<'e, 'a>, Reason> {
        let named = Named::new(of.graph, &of.ops).and_then(|own| {
            let others = Named::new(other.graph, &other.ops)?;
            Ok(own.with(&others))
        });
        let streams = named.and_then(|named| {
            Streams::new(of.graph, &of.ops, of.storages(), &of.collectives, named, has_device)
        });
        let streams = streams.map_err(|unclear| Code::StreamsNotKnown.because(unclear.tell(of.graph)))?;
        Ok(Side { of, streams })
    }

    /// The calls, in list order.
    pub(super) fn calls(&self) -> impl Iterator<Item = NodeId> {
        self.of.graph.ids().filter(|&id| self.of.graph.node(id).op == Op::Call)
    }

    /// How a call orders streams.
    pub(super) fn sync(&self, id: NodeId) -> Option<Sync> {
        self.of.ops.call(self.of.graph, id)?.sync()
    }

    /// The calls that do one of these to an event, and the number of that.
    pub(super) fn events(&self, wanted: &[Sync]) -> Vec<(i64, NodeId)> {
        let of = |id: NodeId| Some((number(self.of.graph, &self.of.ops, id, 0).ok()?, id));
        self.calls()
            .filter(|&id| self.sync(id).is_some_and(|sync| wanted.contains(&sync)))
            .filter_map(of)
            .collect()
    }

    pub(super) fn races(&self) -> Vec<Race> {
        self.streams.races(self.of.graph, self.of.storages())
    }

    pub(super) fn owner(&self, storage: StorageIndex) -> NodeId {
        self.of.storages().storage(storage).by
    }

    /// Whether one of two nodes waits for the other.
    pub(super) fn are_ordered(&self, one: NodeId, other: NodeId) -> bool {
        self.streams.happens_before(one, other) || self.streams.happens_before(other, one)
    }

    /// Whether the caller finds what a node writes when it goes on: what is on the host it reads at once, of what is
    /// on a device it may have been told to wait.
    pub(super) fn is_there(&self, id: NodeId) -> bool {
        let graph = self.of.graph;
        let is_on_host = graph.tensor_at(id, 0).is_some_and(|tensor| graph.text(tensor.device) == "cpu");
        match is_on_host {
            true => self.streams.ends_before_return(id),
            false => self.streams.is_synchronized(id),
        }
    }

    /// Nodes that write what the caller sees: what the output returns, and the caller's own memory.
    pub(super) fn writers(&self) -> BTreeSet<NodeId> {
        let storages = self.of.storages();
        let mut found = BTreeSet::new();
        for storage in storages.ids() {
            let accesses = || storages.accesses_of(storage);
            let is_returned = accesses().any(|access| self.of.graph.node(access.node).op == Op::Output);
            let known = storages.storage(storage);
            if is_returned || known.external {
                found.extend(accesses().filter(|access| access.touch.writes()).map(|access| access.node));
            }
            if is_returned && !known.external {
                found.insert(known.by);
            }
        }
        found
    }
}
