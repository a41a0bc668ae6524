//! A picture of a small graph, drawn without help from another program.
//!
//! Top to bottom is list order, so the picture shows the schedule. Collectives and their waits are filled by
//! kind, process groups are stripes, buckets have a heavy border and say how many tensors they hold, an
//! asynchronous value is a broad line from start to wait, ordering edges are dashed, and what is wrong is red.
//! The same graph gives the same picture, byte for byte.

mod draw;
mod layout;
pub(super) mod style;

use super::picture::Picture;
use crate::graph::{Graph, NodeId};

/// The most nodes that a picture shows: beyond it nobody can read it.
pub const NODE_LIMIT: usize = 220;
/// The most edges that a picture shows.
pub const EDGE_LIMIT: usize = 2000;

/// A graph is too large for a picture.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a picture of {nodes} nodes and {edges} edges cannot be read (the limit is {NODE_LIMIT} nodes and {EDGE_LIMIT} \
     edges): choose a part of it with --around NODE, for example --around {example}"
)]
pub struct TooLarge {
    /// Nodes of the graph.
    pub nodes: usize,
    /// Edges of the graph.
    pub edges: usize,
    /// A node that is worth looking at: the first collective, else the middle one.
    pub example: String,
}

/// The picture of `graph` as an SVG document.
pub fn svg(graph: &Graph) -> Result<String, TooLarge> {
    // Counted first, so that a large graph costs nothing.
    let mut edges = graph.ordering.len();
    if graph.len() <= NODE_LIMIT {
        edges += graph.ids().map(|id| graph.inputs(id).len()).sum::<usize>();
    } else {
        graph.ids().for_each(|id| graph.for_each_input(id, &mut |_: NodeId| edges += 1));
    }
    if graph.len() > NODE_LIMIT || edges > EDGE_LIMIT {
        return Err(TooLarge { nodes: graph.len(), edges, example: example(graph) });
    }
    Ok(draw::draw(graph, &Picture::new(graph)))
}

fn example(graph: &Graph) -> String {
    let ops = crate::ops::Ops::of(graph);
    let collective = graph.ids().find(|&id| ops.call(graph, id).is_some_and(|info| info.collective().is_some()));
    collective.or_else(|| graph.ids().nth(graph.len() / 2)).map_or(String::new(), |id| graph.name(id).to_string())
}
