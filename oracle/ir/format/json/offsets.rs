//! Offsets that a file leaves out: where a view begins follows from its operator.
//!
//! What has memory of its own begins at 0, and so does what no rule decides; nobody holds that against a graph.

use crate::graph::{Graph, Out, TensorId};
use crate::ops::shape::{Inferred, Output, infer};
use crate::ops::{Kind, Ops};
use rustc_hash::FxHashSet;

/// Records the offsets of tensors of which a file says none.
pub(super) fn complete(graph: &mut Graph, left_out: &[TensorId]) {
    if left_out.is_empty() {
        return;
    }
    let left_out: FxHashSet<TensorId> = left_out.iter().copied().collect();
    let ops = Ops::of(graph);
    // In list order, since a view of a view begins where that one does.
    for id in graph.ids() {
        let is_view =
            ops.call(graph, id).is_some_and(|info| matches!(info.kind, Kind::View(_) | Kind::GetItem));
        let results: Vec<Out> = match graph.node(id).out {
            Out::Tuple(span) => graph.outs(span).to_vec(),
            out => vec![out],
        };
        let is_open = |out: &Out| matches!(out, Out::Tensor(tensor) if left_out.contains(tensor));
        if !is_view || !results.iter().any(is_open) {
            continue;
        }
        // A call that does not fit its operator is found by whoever checks the graph.
        let rules = match infer(graph, &ops, id) {
            Ok(Inferred::One(rule)) => vec![rule],
            Ok(Inferred::Many(rules)) => rules,
            Ok(Inferred::Nothing | Inferred::Undecided) | Err(_) => Vec::new(),
        };
        for (out, rule) in results.iter().zip(rules).filter(|(out, _)| is_open(out)) {
            if let (&Out::Tensor(tensor), Output::Tensor(rule)) = (out, rule)
                && let Some(offset) = rule.offset.known()
            {
                graph.tensor_mut(tensor).offset = offset;
            }
        }
    }
}
