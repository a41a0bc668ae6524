//! A cycle, told as a chain: each edge with its two nodes and where it comes from.

use crate::analysis::edges::EdgeKind;
use crate::analysis::origin::argument_path;
use crate::analysis::{Edges, shortest_cycle};
use crate::graph::{Graph, NodeId, OrderingEdge};
use std::fmt;

/// Why one node must precede another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The later node refers to the earlier one, here: `args[0][2]`, `kwargs[out]`.
    Data {
        /// The first place of the reference.
        path: String,
    },
    /// An ordering edge of the graph.
    Ordering,
    /// An extra edge given to the sort.
    Extra,
}

/// One edge: `from` must precede `to`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CycleEdge {
    /// Must run first.
    pub from: NodeId,
    /// Must run later.
    pub to: NodeId,
    /// Name of `from`.
    pub from_name: String,
    /// Name of `to`.
    pub to_name: String,
    /// Why.
    pub origin: Origin,
}

impl CycleEdge {
    /// The edge between two nodes with its origin: a data edge where there is one, else an ordering edge.
    pub fn of(graph: &Graph, from: NodeId, to: NodeId) -> CycleEdge {
        let origin = match argument_path(graph, to, from) {
            Some(path) => Origin::Data { path },
            None => Origin::Ordering,
        };
        let (from_name, to_name) = (graph.name(from).to_string(), graph.name(to).to_string());
        CycleEdge { from, to, from_name, to_name, origin }
    }
}

impl fmt::Display for CycleEdge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (&self.from_name, &self.to_name);
        match &self.origin {
            Origin::Data { path } => write!(f, "{to} reads {from} ({path})"),
            Origin::Ordering => write!(f, "an ordering edge puts {from} before {to}"),
            Origin::Extra => write!(f, "an extra edge puts {from} before {to}"),
        }
    }
}

/// A cycle of a graph: no list order satisfies its edges.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct Cycle {
    /// Its edges; the target of each is the source of the next, and that of the last the source of the first.
    pub edges: Vec<CycleEdge>,
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no order exists: ")?;
        for (i, edge) in self.edges.iter().enumerate() {
            write!(f, "{}{edge}", if i == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl Cycle {
    /// The shortest cycle of a graph with extra edges, from the node of it that stands first in the list; empty
    /// where there is none.
    pub(super) fn shortest(graph: &Graph, extra: &[OrderingEdge]) -> Cycle {
        let mut whole = graph.clone();
        whole.ordering.extend(extra);
        let Some(cycle) = shortest_cycle(&Edges::new(&whole)) else { return Cycle { edges: Vec::new() } };
        let own = Edges::new(graph);
        let edges = cycle.edges().map(|(from, to)| {
            let mut edge = CycleEdge::of(graph, from, to);
            if !matches!(own.kind(from, to), Some(EdgeKind::Data | EdgeKind::Ordering)) {
                edge.origin = Origin::Extra;
            }
            edge
        });
        Cycle { edges: edges.collect() }
    }
}
