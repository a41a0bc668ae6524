//! Calls that are not known to be taken by their operators.
//!
//! A call that raises acquits nobody. The rules of shapes say of most operators what these take; of those without a kernel
//! they say what comes out. Such a call is taken if the graph before, which runs, makes one of the same arguments, or if
//! the definition of its operator holds for it; of symbolic sizes at those at which both graphs are looked at.

use super::sizes::Sizes;
use super::{AnalyzedGraph, Code, Evidence, Reason};
use crate::definitions::held;
use crate::graph::{Dim, Graph, NodeId};
use crate::ops::{Kind, Ops, Schema, Word, spelled};
use rustc_hash::FxHashSet;

/// Why it is not known that a new call runs.
pub(super) fn not_known_to_run(evidence: &Evidence) -> Option<Reason> {
    let (before, after) = (&evidence.before, &evidence.after);
    let new = uncomputed(after);
    if new.is_empty() {
        return None;
    }
    let run: FxHashSet<String> =
        uncomputed(before).into_iter().map(|id| given(before.graph, &before.ops, id)).collect();
    let is_new = |id: &NodeId| !run.contains(&given(after.graph, &after.ops, *id));
    let new: Vec<NodeId> = new.into_iter().filter(is_new).collect();
    if new.is_empty() {
        return None;
    }
    // Of sizes that are symbols, at those at which the pair is looked at.
    let sized: Vec<Graph> = Sizes::tried((before.graph, &before.ops), std::iter::once(after.graph), false)
        .flat_map(|sized| sized.after)
        .collect();
    let graphs = if sized.is_empty() { std::slice::from_ref(after.graph) } else { &sized };
    let held: Vec<FxHashSet<NodeId>> = graphs.iter().map(|graph| held(graph, &new)).collect();
    let id = new.into_iter().find(|id| !held.iter().all(|held| held.contains(id)))?;
    let (name, target) = (after.graph.name(id), after.graph.target(id));
    Some(Code::MayRaise.because(format!("whether {target} takes what {name} gives it is not known")))
}

/// The calls of PyTorch's operators without a kernel. Of those of others only their facts are known.
fn uncomputed(side: &AnalyzedGraph) -> Vec<NodeId> {
    let is_pytorchs = |schema: &Schema| matches!(schema.namespace.as_str(), "aten" | "prims");
    let is_uncomputed = |id: &NodeId| {
        let info = side.ops.call(side.graph, *id).filter(|info| info.kind == Kind::Opaque);
        info.and_then(|info| info.schema.as_ref()).is_some_and(is_pytorchs)
    };
    side.graph.ids().filter(is_uncomputed).collect()
}

/// A call by what its operator may ask of its arguments.
fn given(graph: &Graph, ops: &Ops, id: NodeId) -> String {
    let dim = |&dim: &Dim| match dim {
        Dim::Static(size) => size.to_string(),
        Dim::Symbolic(expr) => graph.text(graph.expr(expr).text).to_string(),
    };
    let tensors = |of: NodeId| {
        let all = graph.tensors_of(graph.node(of).out).into_iter().map(|at| graph.tensor(at));
        all.map(|tensor| (tensor.dtype, graph.dims(tensor.shape).iter().map(dim).collect())).collect()
    };
    let word = |word: Word| match word {
        Word::Node(of) if of.index() < graph.len() => {
            let tensors: Vec<(_, Vec<String>)> = tensors(of);
            format!("{tensors:?}")
        }
        other => format!("{other:?}"),
    };
    let words: Vec<String> = spelled(graph, ops, id).into_iter().map(word).collect();
    format!("{} {}", graph.target(id), words.join(" "))
}
