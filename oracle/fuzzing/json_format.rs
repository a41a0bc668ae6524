//! Reading is total and gives the same whether it is done by one thread or by several, and writing loses nothing.

use crate::format::json::{self, Document};

/// Any bytes give a document or an error; a graph written and read again is the same graph.
pub fn check(data: &[u8]) {
    check_blocks(data, 1);
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

/// Panics if a text whose nodes are read in blocks of at least `least` bytes does not give the graph, id for id, that
/// it gives when it is read from its first byte to the last. Returns whether it could be read in blocks.
pub fn check_blocks(data: &[u8], least: usize) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    match json::both_ways(text, least) {
        (_, None) => false,
        (Ok(Document::Graph(whole)), Some(Document::Graph(blocks))) => {
            assert!(whole.is_identical(&blocks), "another graph in blocks of {least} bytes: {text}");
            true
        }
        (whole, Some(_)) => panic!("read in blocks of {least} bytes, but as a whole it is {whole:?}"),
    }
}
