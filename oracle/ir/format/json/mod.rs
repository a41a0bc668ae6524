//! The exchange JSON: `fxjson/1` as recorded from PyTorch, and `graph-oracle/1`, its superset.
//!
//! A document is a graph or an outcome (what a pass returned, rank by rank). `docs/format.md` describes every
//! key. Both versions are read in the same way; a graph is written as `fxjson/1` if that version can hold it.
//!
//! # The idea
//!
//! Reading builds the graph's arenas directly from the text: no tree in between, strings borrowed until they
//! are interned. What the oracle does not interpret (schema facts, unknown keys) is kept as the JSON text that
//! it was, so reading and writing loses nothing. Writing is deterministic, one node per line. The nodes of a large
//! document that is written so are read by all threads of rayon's pool; the graph is the same.
//!
//! References are resolved by name after all nodes are known. A reference to a later node is kept, one to a
//! name that no node has becomes [`Value::Dangling`](crate::graph::Value::Dangling), and a second node of the
//! same name is kept: these are faults of the graph for [`analysis`](crate::analysis) to report. Everything
//! else that is wrong is a [`ReadError`] with line and column.
//!
//! # What it does not do
//!
//! It does not judge a graph or its world, and it does not read the facts that it keeps.

mod error;
mod facts;
mod gzip;
mod keys;
mod offsets;
mod outcome;
mod read;
mod read_blocks;
mod read_dict;
mod read_head;
mod read_node;
mod read_out;
mod read_parts;
mod read_value;
mod write;

pub use error::{Position, ReadError};
pub use gzip::decompressed;
pub use outcome::{Outcome, RankOutcome};
pub use write::{write, write_document, write_outcome};

use crate::graph::Graph;
use crate::limits::Limit;

/// The version that graphs are recorded in.
pub const FXJSON: &str = "fxjson/1";
/// The project's own version, a superset of [`FXJSON`].
pub const GRAPH_ORACLE: &str = "graph-oracle/1";

/// What a file holds.
#[derive(Clone, Debug)]
pub enum Document {
    /// A graph.
    Graph(Box<Graph>),
    /// What a pass returned.
    Outcome(Outcome),
}

impl Document {
    /// The graph, if this is one.
    pub fn into_graph(self) -> Option<Graph> {
        match self {
            Document::Graph(graph) => Some(*graph),
            Document::Outcome(_) => None,
        }
    }

    /// The outcome, if this is one.
    pub fn into_outcome(self) -> Option<Outcome> {
        match self {
            Document::Graph(_) => None,
            Document::Outcome(outcome) => Some(outcome),
        }
    }
}

/// Reads a document from JSON text, or from gzip data that holds JSON text.
pub fn read(bytes: &[u8]) -> Result<Document, ReadError> {
    read_within(bytes, Limit::Text.standard())
}

/// Reads a document as [`read`] does; gzip data may hold at most `most` bytes.
pub fn read_within(bytes: &[u8], most: u64) -> Result<Document, ReadError> {
    match decompressed(bytes, most)? {
        Some(text) => read::document(&text),
        None => read::document(bytes),
    }
}

/// What a text is when it is read from its first byte to the last, and when its nodes are read in blocks of at least
/// `least` bytes, if it can be read so. For those who check that there is no difference.
pub fn both_ways(text: &str, least: usize) -> (Result<Document, ReadError>, Option<Document>) {
    (read::whole(text), read_blocks::document(text, least))
}
