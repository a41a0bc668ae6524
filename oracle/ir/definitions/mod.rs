//! What operators mean, as data: softmax, norms, losses, pooling and attention written with simpler operators.
//!
//! # The idea
//!
//! An operator is a function of its arguments. `operators.txt` says which one, in terms over operators that every
//! evaluator knows, so a definition is written once and no evaluator learns anything new: [`written_out`] puts the term in
//! the place of the call. Sizes, arguments and dtypes are known there, so loops over dimensions are unrolled.
//!
//! # What is exact
//!
//! A definition was held against PyTorch 2.15 on a CPU. It is *exact* if eager gave the same bits in every sample (f64,
//! f32, bf16, f16, NaN, infinities, denormals; all 16-bit values where the operator is pointwise). Otherwise it is the same
//! function to 1e-9 in float64, and its kernel rounds elsewhere: such calls are written out only where results may be
//! rounded otherwise. Exact rests on a premise: an operator gives the same bits for the same element wherever it lies in
//! memory. Kernels that treat the tail of a loop in another way break it (gelu, atan2, softplus, pow and some others).
//!
//! # What it does not do
//!
//! A call stays as it is where a size is symbolic, where it writes or returns views, where a result is taken as a whole, or
//! where its record is not that of the term. Operators of which several results are right (the index of one of several
//! equal elements) have no definition.

mod core;
mod evaluate;
mod syntax;

use crate::graph::{Editor, Graph, NodeId, Op, Tags};
use crate::ops::Ops;
use evaluate::Writer;
use rustc_hash::FxHashSet;
use std::sync::LazyLock;
use syntax::File;

static FILE: LazyLock<File> =
    LazyLock::new(|| File::parse(include_str!("operators.txt")).unwrap_or_default());

/// Graphs with the calls written out that are defined; `None` where there are none. `rounds`: results may be rounded
/// otherwise. An operator is written out in all graphs or in none. The names of new nodes end with the mark of their
/// graph, so that marked graphs share none of them.
pub fn written_out(graphs: &[(&Graph, &str)], rounds: bool) -> Option<Vec<Graph>> {
    let mut left_out: FxHashSet<String> = FxHashSet::default();
    loop {
        let known = left_out.len();
        let written: Vec<Option<Graph>> =
            graphs.iter().map(|(graph, mark)| one_written_out(graph, mark, rounds, &mut left_out)).collect();
        if written.iter().all(Option::is_none) {
            return None;
        }
        if left_out.len() == known {
            let each = written.into_iter().zip(graphs);
            return Some(
                each.map(|(written, (graph, _))| written.unwrap_or_else(|| (*graph).clone())).collect(),
            );
        }
    }
}

/// A graph with the calls written out that are defined. Operators of which one cannot be are added to `left_out`.
fn one_written_out(
    graph: &Graph,
    mark: &str,
    rounds: bool,
    left_out: &mut FxHashSet<String>,
) -> Option<Graph> {
    let ops = Ops::of(graph);
    let is_defined = |&id: &NodeId| {
        let of = || FILE.operators.get(graph.target(id));
        graph.node(id).op == Op::Call
            && of().is_some_and(|definition| rounds || definition.is_exact)
            && !left_out.contains(graph.target(id))
    };
    let calls: Vec<NodeId> = graph.ids().filter(is_defined).collect();
    if calls.is_empty() {
        return None;
    }
    let draws: Vec<bool> = calls.iter().map(|&id| ops.draws(graph, id)).collect();
    let mut writer = Writer::new(Editor::new(graph), ops, &FILE, mark);
    for (id, draws) in calls.into_iter().zip(draws) {
        let first = writer.editor.graph().len();
        if draws || writer.write(id).is_err() {
            left_out.insert(graph.target(id).to_string());
            return None;
        }
        // All of it runs on the stream of the call.
        let custom = graph.tags(id).and_then(|tags| tags.custom);
        let tags = writer.editor.graph_mut().intern_tags(Tags { custom, ..Tags::default() });
        for new in (first..writer.editor.graph().len()).map(|at| NodeId(at as u32)) {
            writer.editor.graph_mut().node_mut(new).tags = tags;
        }
    }
    Some(writer.editor.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::text;

    #[test]
    fn the_file_can_be_read() {
        let file = File::parse(include_str!("operators.txt")).unwrap();
        assert!(file.operators.len() > 290, "{}", file.operators.len());
        for target in file.operators.keys() {
            let graph = text::parse(format!("x = input : f32[2]\ny = {target}(x)\noutput y\n").as_bytes());
            let graph = graph.unwrap_or_else(|error| panic!("{target}: {error}")).graph;
            let call = graph.find("y").unwrap();
            let ops = Ops::of(&graph);
            assert!(ops.get(&graph, call).schema.is_some(), "{target} has no schema");
        }
    }

    /// The definition of one call, as a text case.
    fn written(text: &str, rounds: bool) -> String {
        let graph = text::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}")).graph;
        written_out(&graph, rounds, "")
            .map_or_else(|| "as it is".to_string(), |graph| text::print_graph(&graph))
    }

    #[test]
    fn calls_become_terms() {
        println!("{}", written("x = input : f32[2, 4]\ny = softmax(x, -1, False)\noutput y\n", true));
        println!(
            "{}",
            written(
                "x = input : bf16[2, 4]\nw = input : bf16[4]\nl = native_layer_norm(x, [4], w, None, 1e-05) : (bf16[2, 4], bf16[2, 1], bf16[2, 1])\ny = l[0]\noutput y\n",
                true
            )
        );
        assert_eq!(
            written("x = input : f32[2, 4]\ny = softmax(x, -1, False)\noutput y\n", false),
            "as it is"
        );
        // A record that is not that of the term, a symbolic size, a result that is taken as a whole.
        for call in ["x = input : f32[2, 4]\ny = softmax(x, -1, False) : f32[4, 2]\noutput y\n"] {
            assert_eq!(written(call, true), "as it is");
        }
    }
}
