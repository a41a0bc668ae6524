//! `Pair`: what a pass was given and what it made of it, to be judged.

use crate::graph::Graph;
use crate::objects::{cannot, guarded, kept, object};
use graph_oracle::cli;
use graph_oracle::format::text;
use graph_oracle::report;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;
use std::ffi::OsString;

/// A graph before a pass, the graphs after it, and the arguments of `graph-oracle check`: the kind, then options.
#[pyclass(frozen, module = "graph_oracle._oracle")]
pub struct Pair {
    before: Py<Graph>,
    after: Vec<Py<Graph>>,
    arguments: Vec<OsString>,
    unrepaired: Option<Py<Graph>>,
}

#[pymethods]
impl Pair {
    #[new]
    #[pyo3(signature = (before, after, arguments, unrepaired=None))]
    fn new(
        before: Py<Graph>,
        after: Vec<Py<Graph>>,
        arguments: Vec<OsString>,
        unrepaired: Option<Py<Graph>>,
    ) -> Pair {
        Pair { before, after, arguments, unrepaired }
    }

    /// The report, as `graph-oracle check --format json` prints it.
    fn judge<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let report = self.guarded(py, |pair| {
            let (judgement, subject) = pair.judge()?;
            Ok(report::json(&judgement, &subject, None))
        });
        object(py, &report?)
    }

    /// The report as a page for a browser.
    fn page(&self, py: Python<'_>) -> PyResult<String> {
        self.guarded(py, cli::Pair::page)
    }
}

impl Pair {
    /// What `run` makes of the graphs, while other threads of Python go on.
    fn guarded<T: Send>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(cli::Pair) -> Result<T, cli::CouldNotRun> + Send,
    ) -> PyResult<T> {
        let case = || {
            let pair = self.of_graphs();
            let command = format!("# judged as {:?}\n", pair.arguments);
            kept(py, &(command + &text::print(&pair.case())))
        };
        guarded(py, case, || py.detach(|| run(self.of_graphs())).map_err(cannot))
    }

    fn of_graphs(&self) -> cli::Pair {
        let before = self.before.get();
        cli::Pair {
            before: before.inner.clone(),
            after: self.after.iter().map(|after| told_apart(before, after.get())).collect(),
            unrepaired: self.unrepaired.as_ref().map(|graph| graph.get().inner.graph.clone()),
            arguments: self.arguments.clone(),
        }
    }
}

/// The graph after the pass, in which a target that is another thing than the one of its name before has another name:
/// an attribute with other values, another function.
fn told_apart(before: &Graph, after: &Graph) -> graph_oracle::graph::Graph {
    let mut graph = after.inner.graph.clone();
    let mut known: FxHashMap<&str, Vec<&str>> = FxHashMap::default();
    for (name, mark) in &before.marks {
        known.entry(name).or_default().push(mark);
    }
    for (name, mark) in &after.marks {
        if known.get(name.as_str()).is_some_and(|others| others.iter().any(|other| other != mark)) {
            rename(&mut graph, name);
        }
    }
    graph
}

fn rename(graph: &mut graph_oracle::graph::Graph, name: &str) {
    let Some(old) = graph.find_target(name) else {
        // One of a body.
        for (_, body) in &mut graph.subgraphs {
            rename(std::sync::Arc::make_mut(body), name);
        }
        return;
    };
    let new = graph.intern_target(&format!("{name} (another than before)"));
    for id in graph.ids() {
        let node = graph.node_mut(id);
        if node.target == old {
            node.target = new;
        }
    }
}
