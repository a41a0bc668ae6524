//! Graphs in messages.

use crate::format::json;
use crate::graph::Graph;
use serde_json::value::RawValue;

/// Writes a graph on one line, with the rank lists of its groups.
pub(super) fn append_graph(bytes: &mut Vec<u8>, graph: &Graph) {
    let from = bytes.len();
    let explicit;
    let graph = match graph.world.is_explicit() {
        true => graph,
        false => {
            explicit = with_ranks(graph);
            &explicit
        }
    };
    // Writing to memory does not fail.
    let _ = json::write(graph, &mut *bytes);
    // Line ends stand between values only: in strings they are escaped.
    for byte in &mut bytes[from..] {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

fn with_ranks(graph: &Graph) -> Graph {
    let mut graph = graph.clone();
    if let Some(world) = graph.world.assume_mesh() {
        graph.world = world;
    }
    graph.world.ranks = graph.world.ranks.or(Some(1));
    graph
}

/// Reads a graph out of a message.
pub(super) fn graph(key: &str, text: Option<&RawValue>) -> Result<Graph, String> {
    let text = text.ok_or_else(|| format!("the key {key} is missing"))?;
    match json::read(text.get().as_bytes()) {
        Ok(json::Document::Graph(graph)) => Ok(*graph),
        Ok(json::Document::Outcome(_)) => Err(format!("{key} is an outcome; expected a graph")),
        Err(error) => Err(format!("{key}: {error}")),
    }
}

/// Reads a graph that may be left out.
pub(super) fn optional_graph(key: &str, text: Option<&RawValue>) -> Result<Option<Graph>, String> {
    text.map(|text| graph(key, Some(text))).transpose()
}
