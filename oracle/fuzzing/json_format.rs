//! Reading is total, and writing loses nothing.

use crate::format::json::{self, Document};

/// Any bytes give a document or an error; a graph written and read again is the same graph.
pub fn check(data: &[u8]) {
    let graph = match json::read(data) {
        Ok(Document::Graph(graph)) => graph,
        Ok(Document::Outcome(_)) => return,
        Err(error) => {
            assert!(!error.to_string().is_empty(), "an error says something");
            return;
        }
    };
    let mut written = Vec::new();
    if json::write(&graph, &mut written).is_err() {
        return;
    }
    match json::read(&written) {
        Ok(Document::Graph(again)) => {
            assert_eq!(graph.difference(&again), None, "{}", String::from_utf8_lossy(&written));
        }
        other => panic!("what was written reads as {other:?}"),
    }
}
