//! Graphs as they are compared where a rewrite may change its inputs or the stream of its draws.

use super::seen_through::is_malformed;
use crate::graph::{Dim, Editor, Graph, NodeId, Op, Out, Tensor};
use crate::rules::{Allowed, Restreamed};

/// Both sides, written so that they can be compared.
pub(super) struct Comparable {
    pub(super) before: Graph,
    /// One for each graph after.
    pub(super) after: Vec<Graph>,
    /// Whether draws of one kind were matched in list order, and may be matched otherwise.
    pub(super) are_draws_ambiguous: bool,
}

impl Comparable {
    /// `None` where nothing is written otherwise.
    pub(super) fn new(before: &Graph, after: &[&Graph], allowed: &Allowed) -> Option<Comparable> {
        if !(allowed.signature || allowed.restreamed) || after.iter().any(|graph| is_malformed(graph)) {
            return None;
        }
        let mut this = Comparable {
            before: before.clone(),
            after: after.iter().map(|&graph| graph.clone()).collect(),
            are_draws_ambiguous: false,
        };
        let mut is_other = false;
        if allowed.signature {
            is_other |= this.align();
        }
        if allowed.restreamed {
            is_other |= this.restream();
        }
        is_other.then_some(this)
    }

    /// All graphs with the inputs of all, in one order; whether that was done. Inputs that are added must be tensors of
    /// known sizes.
    fn align(&mut self) -> bool {
        let mut signature: Vec<(String, Option<Input>)> = inputs(&self.before);
        for graph in &self.after {
            for (name, input) in inputs(graph) {
                if !signature.iter().any(|(known, _)| *known == name) {
                    signature.push((name, input));
                }
            }
        }
        let all: Option<Vec<Graph>> = std::iter::once(&self.before)
            .chain(&self.after)
            .map(|graph| with_inputs(graph, &signature))
            .collect();
        let mut graphs = all.into_iter().flatten();
        let Some(before) = graphs.next() else { return false };
        (self.before, self.after) = (before, graphs.collect());
        true
    }

    /// All graphs with their draws written in one way; whether that was done.
    fn restream(&mut self) -> bool {
        let all = std::iter::once(&self.before).chain(&self.after);
        let restreamed: Option<Vec<Restreamed>> = all.map(Restreamed::new).collect();
        let mut graphs = restreamed.into_iter().flatten();
        let Some(before) = graphs.next() else { return false };
        self.are_draws_ambiguous = before.is_ambiguous;
        self.before = before.graph;
        self.after = graphs.map(|graph| graph.graph).collect();
        true
    }
}

/// A tensor of known sizes, apart from its graph.
struct Input {
    tensor: Tensor,
    sizes: Vec<i64>,
    strides: Vec<i64>,
    device: String,
}

/// The inputs of a graph by name, in order.
fn inputs(graph: &Graph) -> Vec<(String, Option<Input>)> {
    let input = |id: NodeId| {
        let tensor = *graph.tensor_of(id)?;
        let is_known = |dim: &Dim| matches!(dim, Dim::Static(_));
        let all_known = graph.dims(tensor.shape).iter().chain(graph.dims(tensor.stride)).all(is_known);
        Some(Input {
            sizes: graph.sizes(tensor.shape).filter(|_| all_known)?,
            strides: graph.sizes(tensor.stride)?,
            device: graph.text(tensor.device).to_string(),
            tensor,
        })
    };
    let of = graph.ids().filter(|&id| graph.node(id).op == Op::Placeholder);
    of.map(|id| (graph.name(id).to_string(), input(id))).collect()
}

/// The graph with these inputs, in this order; `None` where one that it has not is no tensor of known sizes.
fn with_inputs(graph: &Graph, signature: &[(String, Option<Input>)]) -> Option<Graph> {
    let mut editor = Editor::new(graph);
    let is_input = |id: &NodeId| graph.node(*id).op == Op::Placeholder;
    let anchor = graph.ids().find(|id| !is_input(id));
    for (name, input) in signature {
        let own = graph.find(name).filter(is_input);
        let id = match (own, input) {
            (Some(own), _) => own,
            (None, None) => return None,
            (None, Some(input)) => {
                let into = editor.graph_mut();
                let tensor = Tensor {
                    shape: into.intern_sizes(&input.sizes),
                    stride: into.intern_sizes(&input.strides),
                    device: into.intern(&input.device),
                    storage: None,
                    storage_bytes: None,
                    is_guessed: false,
                    ..input.tensor
                };
                let out = Out::Tensor(into.push_tensor(tensor));
                let id = editor.insert_before(anchor, name, name, &[], &[], out);
                editor.graph_mut().node_mut(id).op = Op::Placeholder;
                id
            }
        };
        editor.move_before(anchor, id);
    }
    Some(editor.finish())
}
