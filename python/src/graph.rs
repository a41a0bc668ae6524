//! `Graph`: a graph of the oracle's own, from a file, a text or `torch.fx`.

use crate::objects::{cannot, guarded, kept};
use graph_oracle::case::PassConfig;
use graph_oracle::cli::read_graph;
use graph_oracle::format::{json, text};
use graph_oracle::graph;
use graph_oracle::judge::partition::forward_outputs;
use pyo3::prelude::*;
use std::path::PathBuf;

/// A graph. Read from a file with `load`, from text with `Graph(text)`, from PyTorch with `graph_oracle.graph(module)`.
#[pyclass(frozen, weakref, module = "graph_oracle")]
pub struct Graph {
    pub inner: graph_oracle::case::Case,
    /// By target, what tells it from another of the same name (fx.rs).
    pub marks: Vec<(String, String)>,
}

impl Graph {
    pub fn of(graph: graph::Graph) -> Graph {
        Graph { inner: graph_oracle::case::Case::of_graph(graph), marks: Vec::new() }
    }

    /// What `run` gives, which has this graph for its case.
    fn guarded<T>(&self, py: Python<'_>, run: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
        guarded(py, || kept(py, &text::print(&self.inner)), run)
    }
}

#[pymethods]
impl Graph {
    /// A graph from text: exchange JSON, a text case, or as PyTorch prints it.
    #[new]
    fn new(py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<Graph> {
        let text: String = text.extract().map_err(|_| cannot("Graph(text) takes a graph as text"))?;
        let read = || read_graph(&PathBuf::from("text"), Some(text.as_bytes())).map_err(cannot);
        let inner = guarded(py, || kept(py, &text), || py.detach(read))?;
        Ok(Graph { inner, marks: Vec::new() })
    }

    /// A graph from a file, which may be compressed with gzip.
    #[staticmethod]
    fn load(py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<Graph> {
        let path: PathBuf =
            path.extract().map_err(|_| cannot("Graph.load(path) takes the path of a file"))?;
        let read = || read_graph(&path, None).map_err(cannot);
        let inner = guarded(py, || Ok(path.clone()), || py.detach(read))?;
        Ok(Graph { inner, marks: Vec::new() })
    }

    /// The names of its nodes, in list order.
    #[getter]
    fn names(&self) -> Vec<String> {
        let graph = &self.inner.graph;
        graph.ids().map(|id| graph.name(id).to_string()).collect()
    }

    /// What it is: "forward", "backward", "joint", ... or empty.
    #[getter]
    fn kind(&self) -> &str {
        &self.inner.graph.kind
    }

    /// How many ranks there are, where that is known.
    #[getter]
    fn ranks(&self) -> Option<u32> {
        self.inner.graph.world.ranks
    }

    /// Of a joint graph: how many of its outputs are forward's, where that is known.
    #[getter]
    fn num_fwd_outputs(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        let none = PassConfig::new("partition");
        let pass = self.inner.pass.as_ref().unwrap_or(&none);
        self.guarded(py, || Ok(forward_outputs(&self.inner.graph, pass).ok()))
    }

    /// As exchange JSON.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        self.guarded(py, || {
            let mut text = Vec::new();
            json::write(&self.inner.graph, &mut text).map_err(cannot)?;
            String::from_utf8(text).map_err(cannot)
        })
    }

    /// As a text case.
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        self.guarded(py, || Ok(text::print(&self.inner)))
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        self.text(py)
    }

    fn __len__(&self) -> usize {
        self.inner.graph.len()
    }

    fn __repr__(&self) -> String {
        format!("<graph_oracle.Graph {:?}: {} nodes>", self.inner.graph.name, self.inner.graph.len())
    }
}
