//! A graph that was read out of a trace.

use super::cache::Key;
use crate::graph::Op;
use ir::format::fx;
use ir::format::torch_trace::Record;
use std::sync::Arc;

/// A graph that was read.
#[derive(Clone)]
pub(super) struct Shown {
    pub(super) line: usize,
    /// The MD5 of its text.
    pub(super) digest: Key,
    /// Of its text, and of all that was known when it was read.
    pub(super) key: Key,
    pub(super) rank: Option<u32>,
    pub(super) graph: Result<Arc<fx::Printed>, String>,
    /// What it was read from, where it may be read again.
    pub(super) record: Option<Arc<Record>>,
}

impl Shown {
    /// The names of its inputs, in order.
    pub(super) fn inputs(&self) -> Option<Vec<&str>> {
        let graph = &self.graph.as_ref().ok()?.graph;
        let inputs = graph.ids().filter(|&id| graph.node(id).op == Op::Placeholder);
        Some(inputs.map(|id| graph.name(id)).collect())
    }
}
