//! Cases of the generator, and the reducer's edits that make one smaller: what property tests are made of.

use crate::graph::Graph;
use crate::objects::{cannot, guarded, kept};
use graph_oracle::case::{Case, Setting};
use graph_oracle::format::text;
use graph_oracle::generate::{Offers, Wanted};
use graph_oracle::graph::{self, Op, Value};
use graph_oracle::judge::{Offer, Without};
use graph_oracle::reduce::Reducer;
use graph_oracle::rules::PassKind;
use pyo3::prelude::*;

/// What a case says of its graph, and not of what is asked of the pass: that is for the caller to say.
const OF_GRAPH: [&str; 2] = ["num_fwd_outputs", "static_inputs"];

/// Case `number` of the campaign `seed` for a kind of pass. `without`: what graphs must not have (docs/protocol.md);
/// `max_ranks`: the largest world.
#[pyfunction]
#[pyo3(signature = (kind, seed, number, without=Vec::new(), max_ranks=None))]
pub fn generate(
    py: Python<'_>,
    kind: &str,
    seed: u64,
    number: u64,
    without: Vec<String>,
    max_ranks: Option<u32>,
) -> PyResult<Graph> {
    let pass = PassKind::named(kind).map_err(cannot)?;
    let mut offer = Offer { max_ranks, ..Offer::default() };
    for word in &without {
        let known = Without::parse(word);
        offer.without.push(
            known.ok_or_else(|| cannot(format_args!("{word:?} is nothing that graphs can be without")))?,
        );
    }
    let offers = Offers::from([(pass, offer)]);
    // Joint graphs for a replay have tags that only a replay heeds.
    let set = match pass {
        PassKind::Partition => vec![("method".to_string(), Setting::Text("min-cut".to_string()))],
        _ => Vec::new(),
    };
    let wanted =
        Wanted { seed, pass: Some(pass), offers: vec![offers], set: &set, graphs: &[], small: false };
    let wish =
        || kept(py, &format!("# generated: {kind}, seed {seed}, case {number}, without {without:?}\n"));
    let mut case = guarded(py, wish, || Ok(py.detach(|| wanted.case(number))))?;
    if let Some(config) = &mut case.pass {
        config.options.retain(|(key, _)| OF_GRAPH.contains(&key.as_str()));
    }
    Ok(Graph { inner: Case { pass: case.pass, ..Case::of_graph(case.graph) }, marks: Vec::new() })
}

/// How many results a graph has.
fn results(graph: &graph::Graph) -> usize {
    let list = graph.output().and_then(|output| graph.arg(output, 0));
    match list {
        Some(Value::List(span)) => span.len(),
        other => usize::from(other.is_some()),
    }
}

/// A walk over the reducer's edits of a graph: each is made or left, and what is made is the graph from then on. To leave
/// one costs next to nothing.
#[pyclass(module = "graph_oracle._oracle")]
pub struct Shrinking {
    case: Case,
    family: usize,
    /// The edits of the family that are left, those that were walked over included.
    count: Option<usize>,
    next: usize,
}

impl Shrinking {
    /// What `run` gives, which has this graph for its case.
    fn guarded<T>(&self, py: Python<'_>, run: impl FnOnce() -> T) -> PyResult<T> {
        guarded(py, || kept(py, &text::print(&self.case)), || Ok(run()))
    }

    /// Whether a joint graph is one after an edit: with all its results, of which the first are forward's, with a tangent,
    /// and with something to compute.
    fn is_still_joint(&self, edited: &graph::Graph) -> bool {
        let is_tangent = |id| edited.node(id).op == Op::Placeholder && edited.name(id).contains("tangents");
        let is_joint = self.case.graph.kind == "joint";
        !is_joint
            || results(edited) == results(&self.case.graph)
                && edited.ids().any(is_tangent)
                && edited.nodes().iter().any(|node| node.op == Op::Call)
    }
}

#[pymethods]
impl Shrinking {
    #[new]
    fn new(graph: &Graph) -> Shrinking {
        Shrinking { case: graph.inner.clone(), family: 0, count: None, next: 0 }
    }

    /// Walks to the next edit; whether there is one in this round.
    fn propose(&mut self, py: Python<'_>) -> PyResult<bool> {
        while self.family < Reducer::FAMILIES {
            let count = match self.count {
                Some(count) => count,
                None => self.guarded(py, || Reducer.count(&self.case.graph, self.family))?,
            };
            self.count = Some(count);
            if self.next < count {
                self.next += 1;
                return Ok(true);
            }
            (self.family, self.count, self.next) = (self.family + 1, None, 0);
        }
        Ok(false)
    }

    /// Makes the edit that was walked to, where it leaves a smaller graph that is as valid.
    fn take(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(number) = self.next.checked_sub(1) else { return Ok(()) };
        let edited = self.guarded(py, || Reducer.edited(&self.case.graph, self.family, number))?;
        if let Some(edited) = edited.filter(|edited| self.is_still_joint(edited)) {
            (self.case.graph, self.count) = (edited, None);
        }
        Ok(())
    }

    /// Begins another round.
    fn again(&mut self) {
        (self.family, self.count, self.next) = (0, None, 0);
    }

    /// The graph as it is.
    fn graph(&self) -> Graph {
        Graph { inner: self.case.clone(), marks: Vec::new() }
    }
}
