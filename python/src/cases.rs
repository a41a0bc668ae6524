//! Cases of the generator, and the reducer's edits that make one smaller: what property tests are made of.

use crate::graph::Graph;
use crate::objects::cannot;
use graph_oracle::case::{Case, Setting};
use graph_oracle::generate::{Offers, Wanted};
use graph_oracle::graph;
use graph_oracle::judge::{Offer, Without};
use graph_oracle::reduce::{Place, Reducer};
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
    for word in without {
        let known = Without::parse(&word);
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
    let mut case = py.detach(|| wanted.case(number));
    if let Some(config) = &mut case.pass {
        config.options.retain(|(key, _)| OF_GRAPH.contains(&key.as_str()));
    }
    Ok(Graph { inner: Case { pass: case.pass, ..Case::of_graph(case.graph) } })
}

/// A walk over the reducer's edits of a graph: each is made or left, and what is made is the graph from then on.
#[pyclass(module = "graph_oracle._oracle")]
pub struct Shrinking {
    case: Case,
    edited: Option<graph::Graph>,
    place: Place,
}

#[pymethods]
impl Shrinking {
    #[new]
    fn new(graph: &Graph) -> Shrinking {
        Shrinking { case: graph.inner.clone(), edited: None, place: Place::default() }
    }

    /// Whether there is another edit in this round.
    fn propose(&mut self) -> bool {
        match Reducer.edited(&self.case.graph, &mut self.place) {
            Some(edited) => {
                self.edited = edited;
                true
            }
            None => false,
        }
    }

    /// Makes the edit, where it leaves a smaller graph that is as valid.
    fn take(&mut self) {
        if let Some(edited) = self.edited.take().filter(|edited| Reducer.allows(&self.case.graph, edited)) {
            self.case.graph = edited;
        }
    }

    /// Begins another round.
    fn again(&mut self) {
        self.place = Place::default();
    }

    /// The graph as it is.
    fn graph(&self) -> Graph {
        Graph { inner: self.case.clone() }
    }
}
