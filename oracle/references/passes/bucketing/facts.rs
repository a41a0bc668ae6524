//! What is derived once from the graph as it comes in: operators, storages, what depends on what.
//!
//! The ids are those of the editor too, which begins with the same nodes.

use super::member::{Member, Targets};
use crate::analysis::contradictions::{contradicted, with_opaque_calls};
use crate::analysis::dependences::Options;
use crate::analysis::storages::{Mode, StorageIndex};
use crate::analysis::{Collectives, Dependences, Edges, Origin, Origins, Storages};
use crate::graph::{Graph, NodeId, Op, OrderingEdge};
use crate::ops::Ops;
use rustc_hash::{FxHashMap, FxHashSet};

/// Facts about one graph.
pub struct Facts {
    /// Data and ordering edges.
    pub edges: Edges,
    /// Storages, as at run time.
    pub storages: Storages,
    /// Everything that orders two nodes.
    pub dependences: Dependences,
    /// Launches, waits and casts whose records contradict their operators, each with how. They are opaque, so nothing
    /// that is known of the operator may be made of them.
    pub contradicted: FxHashMap<NodeId, String>,
}

impl Facts {
    /// Derives them. Linear in the size of the graph.
    pub fn of(graph: &Graph, ops: &Ops) -> Facts {
        let targets = Targets::of(graph);
        let is_merged = |&id: &NodeId| {
            targets.kind(graph, id).is_some()
                || Targets::calls(graph, id, &[targets.wait, targets.convert, targets.to_copy])
        };
        let mut contradicted = contradicted(graph);
        // What a call of a false record reads and writes, nobody knows: a view may read.
        let opaque = with_opaque_calls(graph, ops, &contradicted);
        contradicted.retain(|id, _| is_merged(id));
        let opaque = opaque.map(|graph| (Ops::of(&graph), graph));
        let (ops, graph) = opaque.as_ref().map_or((ops, graph), |(ops, graph)| (ops, graph));
        let edges = Edges::new(graph);
        let collectives = Collectives::new(graph, ops);
        let storages = Storages::new(graph, ops, &edges, &collectives, Mode::Physical);
        let dependences = Dependences::new(graph, ops, &edges, &storages, &collectives, Options::default());
        Facts { edges, storages, dependences, contradicted }
    }

    /// What must come before what although no edge of the graph says so: conflicting accesses of storage, random
    /// draws, effects.
    pub fn hazards(&self) -> Vec<OrderingEdge> {
        let mut hazards = Vec::new();
        for after in (0..self.dependences.len() as u32).map(NodeId) {
            for (before, origin) in self.dependences.before(after) {
                if !matches!(origin, Origin::Data | Origin::Ordering) {
                    hazards.push(OrderingEdge { before, after });
                }
            }
        }
        hazards
    }

    /// Whether something must follow a node that does not take its value: it reads what is overwritten later, or
    /// an ordering edge says so. Nodes that the pass has made are not known, and nothing awaits them.
    pub fn is_awaited(&self, id: NodeId) -> bool {
        let follows = |&next: &NodeId| self.dependences.origin(id, next) != Some(Origin::Data);
        id.index() < self.dependences.len() && self.dependences.after(id).iter().any(follows)
    }

    /// Whether something must come before or after a node for another reason than a value that passes.
    pub fn has_hazards(&self, id: NodeId) -> bool {
        let known = id.index() < self.dependences.len();
        known && (self.is_awaited(id) || self.dependences.before(id).any(|(_, why)| why != Origin::Data))
    }

    /// Who would miss what a gather writes into its `out=` buffer, if it wrote elsewhere: a later node that
    /// touches the buffer other than through the gather's result, or the gather itself where the buffer lives
    /// outside the graph.
    pub fn misses(&self, graph: &Graph, gather: &Member) -> Option<NodeId> {
        let out = gather.out?;
        if out.index() >= self.dependences.len() {
            // An earlier bucket's result: what else shows it is not known.
            return Some(gather.start);
        }
        let buffers: Vec<StorageIndex> = self.storages.all_parts(out).map(|part| part.storage).collect();
        let shows = |id: NodeId| self.storages.all_parts(id).any(|part| buffers.contains(&part.storage));
        if buffers.iter().any(|&buffer| self.storages.storage(buffer).external) {
            return Some(gather.start);
        }
        // Every node that shows the buffer, from its allocation on, in list order; the gather's result and what
        // is made from it are other names of the new buffer.
        let mut stack = vec![self.storages.storage(*buffers.first()?).by];
        let mut seen: FxHashSet<NodeId> = stack.iter().copied().collect();
        let mut misses: Option<NodeId> = None;
        while let Some(id) = stack.pop() {
            for &user in self.edges.users(id) {
                if user == gather.start || seen.contains(&user) {
                    continue;
                }
                let touches =
                    graph.node(user).op == Op::Output || !self.storages.accesses_by(user).is_empty();
                if touches && user > gather.start && misses.is_none_or(|m| user < m) {
                    misses = Some(user);
                }
                if shows(user) {
                    seen.insert(user);
                    stack.push(user);
                }
            }
        }
        misses
    }
}
