//! Runnables of the compilations of a file: PyTorch writes one before the graphs that Inductor changes.

use crate::graph::Group;
use ir::format::fx::Runnable;
use ir::format::parts;
use ir::format::torch_trace::{CompileId, Record};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What runnables are known.
pub(super) struct Runnables {
    by_id: FxHashMap<CompileId, Vec<Arc<Runnable>>>,
    /// The one that the user gave.
    given: Option<Arc<Runnable>>,
}

impl Runnables {
    pub(super) fn new(given: Option<Arc<Runnable>>) -> Runnables {
        Runnables { by_id: FxHashMap::default(), given }
    }

    /// Adds the one of a record, of at most so many parts, and gives its process groups. An error is a line for the
    /// notes.
    pub(super) fn add(&mut self, record: &Record, most: u64) -> Result<Vec<Group>, String> {
        let text = record.payload.as_deref().unwrap_or("");
        let unread = |line, why| format!("line {line}: fx_graph_runnable is not read: {why}");
        parts::check(text.as_bytes(), most).map_err(|why| unread(record.line, why))?;
        let read = Runnable::read(text).map_err(|error| unread(record.line_of(error.line), error.message));
        let Some(runnable) = read? else { return Ok(Vec::new()) };
        let groups = runnable.groups.clone();
        self.by_id.entry(record.id()).or_default().push(Arc::new(runnable));
        Ok(groups)
    }

    /// Forgets those of a compilation.
    pub(super) fn remove(&mut self, id: &CompileId) {
        self.by_id.remove(id);
    }

    /// Those of a compilation. Which of them is of a graph, the names of its inputs say.
    pub(super) fn of(&self, id: &CompileId) -> Vec<Arc<Runnable>> {
        self.by_id.get(id).into_iter().flatten().chain(&self.given).cloned().collect()
    }
}
