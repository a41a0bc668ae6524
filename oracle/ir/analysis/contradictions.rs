//! Calls whose records contradict their operators.
//!
//! # The idea
//!
//! Sizes that depend on data are recorded as hints, and the hints of one graph often do not fit each other. Which of
//! the records is false cannot be known, and no pass is at fault for it. So such a call of a pass's input is opaque: it
//! stands for a function of its arguments that gives what is recorded. [`contradiction`] says which calls these are,
//! for everything that asks; [`opaque`] writes them as calls of an operator that is not computed.
//!
//! A pass that repeats such a call copies its record, and the copy is opaque too. A pass that corrects the record says
//! which one was false: then the operator counts.
//!
//! # What it does not do
//!
//! Strides and offsets say how elements lie, not what they are, and recorded integers are hints: these make no call
//! opaque. Communication stays what it is.

use crate::graph::{Graph, NodeId, Op};
use crate::ops::shape::{ShapeError, ShapeFault, check};
use crate::ops::{Kind, Ops, uncomputed};
use rustc_hash::{FxHashMap, FxHashSet};

/// Why the values that are recorded of a call contradict its operator: another kind of thing, other sizes, another
/// dtype, or inputs that the operator refuses. `None` for calls whose records may be true.
pub fn contradiction(graph: &Graph, ops: &Ops, id: NodeId) -> Option<ShapeFault> {
    if graph.node(id).op != Op::Call {
        return None;
    }
    let is_of_values = |fault: &ShapeFault| match fault {
        ShapeFault::Refused(ShapeError::Arguments(_)) => false,
        ShapeFault::Refused(_) => graph.guess_behind(id).is_none(),
        ShapeFault::Count { .. }
        | ShapeFault::Sort { .. }
        | ShapeFault::Shape { .. }
        | ShapeFault::Dtype { .. } => true,
        ShapeFault::Stride { .. }
        | ShapeFault::Offset { .. }
        | ShapeFault::Begins { .. }
        | ShapeFault::Value { .. } => false,
    };
    check(graph, ops, id).into_iter().find(is_of_values)
}

/// A graph and what a pass made of it, with the contradicted calls of the graph, and their copies, opaque. `None` where
/// there are none.
pub fn opaque(before: &Graph, after: &[&Graph]) -> Option<(Graph, Vec<Graph>)> {
    let found = contradicted(before);
    if found.is_empty() {
        return None;
    }
    let of_after: Vec<FxHashMap<NodeId, String>> = after.iter().map(|graph| contradicted(graph)).collect();
    let is_corrected = |id: NodeId| {
        after.iter().zip(&of_after).any(|(graph, contradicted)| {
            graph.find(before.name(id)).is_some_and(|twin| {
                graph.target(twin) == before.target(id) && !contradicted.contains_key(&twin)
            })
        })
    };
    let same: FxHashSet<(&str, &str)> = found
        .iter()
        .filter(|&(&id, _)| !is_corrected(id))
        .map(|(&id, fault)| (before.target(id), fault.as_str()))
        .collect();
    if same.is_empty() {
        return None;
    }
    let written = |graph: &Graph, contradicted: &FxHashMap<NodeId, String>| {
        let is_same = |id: &NodeId| {
            contradicted.get(id).is_some_and(|fault| same.contains(&(graph.target(*id), fault.as_str())))
        };
        with_uncomputed(graph, is_same)
    };
    let graphs = after.iter().zip(&of_after).map(|(graph, contradicted)| written(graph, contradicted));
    Some((written(before, &found), graphs.collect()))
}

/// The contradicted calls that can be opaque, each with the contradiction as text.
fn contradicted(graph: &Graph) -> FxHashMap<NodeId, String> {
    let ops = Ops::of(graph);
    // Of references past the end of the list nothing is recorded.
    if graph.ids().any(|id| graph.inputs(id).iter().any(|input| input.index() >= graph.len())) {
        return FxHashMap::default();
    }
    let fault = |id: NodeId| {
        let info = ops.call(graph, id)?;
        let stays = info.schema.is_none()
            || info.collective().is_some()
            || matches!(info.kind, Kind::Wait | Kind::GetItem | Kind::Unknown | Kind::Sync(_));
        if stays { None } else { Some((id, contradiction(graph, &ops, id)?.to_string())) }
    };
    graph.ids().filter_map(fault).collect()
}

/// The graph with some calls as calls of operators that are not computed.
fn with_uncomputed(graph: &Graph, is_one: impl Fn(&NodeId) -> bool) -> Graph {
    let ops = Ops::of(graph);
    let mut written = graph.clone();
    let mut known = FxHashSet::default();
    for id in graph.ids().filter(is_one) {
        let Some((target, facts)) = uncomputed(ops.get(graph, id)) else { continue };
        written.node_mut(id).target = written.intern_target(&target);
        if known.insert(graph.node(id).target) {
            written.facts.push((target, facts));
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::text::parse;

    fn graph(body: &str) -> Graph {
        parse(format!("x = input : f32[4]\n{body}output y\n").as_bytes()).unwrap().graph
    }

    fn targets(graph: &Graph) -> Vec<&str> {
        graph.ids().map(|id| graph.target(id)).filter(|target| target.contains("aten")).collect()
    }

    #[test]
    fn a_copy_of_a_contradicted_call_is_opaque_too() {
        let before = graph("a = mul_scalar(x, 2) : f64[4]\ny = relu(a) : f64[4]\n");
        let after =
            graph("a = mul_scalar(x, 2) : f64[4]\nb = mul_scalar(x, 2) : f64[4]\ny = relu(b) : f64[4]\n");
        let (before, after) = opaque(&before, &[&after]).unwrap();
        let opaque = "aten.mul.Scalar (opaque)";
        assert_eq!(targets(&before), [opaque, "aten.relu.default"]);
        assert_eq!(targets(&after[0]), [opaque, opaque, "aten.relu.default"]);
        let ops = Ops::of(&before);
        assert_eq!(ops.get(&before, NodeId(1)).kind, Kind::Opaque);
        assert_eq!(contradiction(&before, &ops, NodeId(1)), None);
    }

    #[test]
    fn a_corrected_record_leaves_the_operator() {
        let before = graph("y = mul_scalar(x, 2) : f64[4]\n");
        let after = graph("y = mul_scalar(x, 2) : f32[4]\n");
        assert!(opaque(&before, &[&after]).is_none());
        assert!(opaque(&after, &[&before]).is_none());
    }

    #[test]
    fn strides_and_communication_make_nothing_opaque() {
        let strided = graph("y = relu(x) : f32[4] strides [2]\n");
        assert!(opaque(&strided, &[&strided]).is_none());
        let scattered =
            "world 2 ranks, groups dp = [0 1]\nx = input : f32[4]\ny = all_gather(x, dp) : f32[9]\n";
        let scattered = parse(format!("{scattered}output y\n").as_bytes()).unwrap().graph;
        assert!(opaque(&scattered, &[&scattered]).is_none());
    }
}
