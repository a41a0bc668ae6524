//! Calls whose records contradict their operators.
//!
//! # The idea
//!
//! Sizes that depend on data are recorded as hints, and the hints of one graph often do not fit each other. Which of
//! the records is false cannot be known, and no pass is at fault for it. So such a call of a pass's input is opaque: it
//! stands for a function of its arguments that gives what is recorded. [`contradiction`] says which calls these are,
//! for everything that asks; [`make_opaque`] makes them calls of an operator that is not computed.
//!
//! A pass that repeats such a call copies its record, and the copy is opaque too. A pass that corrects the record says
//! which one was false: then the operator counts.
//!
//! # What it does not do
//!
//! Strides and offsets say how elements lie, not what they are, and recorded integers are hints: these make no call
//! opaque. Communication stays: a launch still sends, and a wait still waits. Each gives what its operator gives, and
//! what is recorded of it is a function of that, behind it.

use super::edges::Edges;
use super::topological::TopologicalOrder;
use crate::graph::{Editor, Graph, NodeId, Op, Value};
use crate::ops::shape::{Inferred, ShapeError, ShapeFault, check, infer, record};
use crate::ops::{Kind, Ops, uncomputed};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

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

/// Makes the contradicted calls of a graph, and their copies in what a pass made of it, opaque.
pub fn make_opaque(before: &mut Graph, after: Vec<&mut Graph>) {
    let found = contradicted(before);
    // A false record of a call that had a true one is the pass's own.
    let is_own = |graph: &Graph, id: NodeId| {
        before
            .find(graph.name(id))
            .is_some_and(|twin| before.target(twin) == graph.target(id) && !found.contains_key(&twin))
    };
    let of_after: Vec<FxHashMap<NodeId, String>> = after
        .iter()
        .map(|graph| {
            let mut contradicted = contradicted(graph);
            contradicted.retain(|&id, _| !is_own(graph, id));
            contradicted
        })
        .collect();
    let is_corrected = |id: NodeId| {
        after.iter().zip(&of_after).any(|(graph, contradicted)| {
            graph.find(before.name(id)).is_some_and(|twin| {
                graph.target(twin) == before.target(id) && !contradicted.contains_key(&twin)
            })
        })
    };
    let same: FxHashSet<(String, &str)> = found
        .iter()
        .filter(|&(&id, _)| !is_corrected(id))
        .map(|(&id, fault)| (before.target(id).to_string(), fault.as_str()))
        .collect();
    for (graph, contradicted) in
        std::iter::once(before).chain(after).zip(std::iter::once(&found).chain(&of_after))
    {
        let is_same = |id: &NodeId| {
            contradicted
                .get(id)
                .is_some_and(|fault| same.contains(&(graph.target(*id).to_string(), fault.as_str())))
        };
        let ops = Ops::of(graph);
        let (communication, calls): (Vec<NodeId>, Vec<NodeId>) =
            graph.ids().filter(is_same).partition(|&id| communicates(graph, &ops, id));
        leave_uncomputed(graph, &calls, "opaque");
        give_what_is_recorded(graph, &communication);
    }
}

/// The graph with these calls opaque, but for communication, and its nodes as they are numbered; `None` where there are
/// none.
pub fn with_opaque_calls(graph: &Graph, ops: &Ops, calls: &FxHashMap<NodeId, String>) -> Option<Graph> {
    let mut calls: Vec<NodeId> = calls.keys().copied().collect();
    calls.retain(|&id| !communicates(graph, ops, id));
    calls.sort_unstable();
    let mut opaque = (!calls.is_empty()).then(|| graph.clone())?;
    leave_uncomputed(&mut opaque, &calls, "opaque");
    Some(opaque)
}

/// Whether a call is a wait, or a launch that is to be waited for and of which its operator says what it gives.
fn communicates(graph: &Graph, ops: &Ops, id: NodeId) -> bool {
    let info = ops.get(graph, id);
    let is_launch = info.collective().is_some() && !info.is_done_at_once();
    info.kind == Kind::Wait
        || is_launch && matches!(infer(graph, ops, id), Ok(Inferred::One(_) | Inferred::Many(_)))
}

/// The contradicted calls that can be opaque, each with the contradiction as text.
pub fn contradicted(graph: &Graph) -> FxHashMap<NodeId, String> {
    let ops = Ops::of(graph);
    // Of references past the end of the list nothing is recorded.
    if graph.ids().any(|id| graph.inputs(id).iter().any(|input| input.index() >= graph.len())) {
        return FxHashMap::default();
    }
    let fault = |id: NodeId| {
        let info = ops.call(graph, id)?;
        let stays =
            info.schema.is_none() || matches!(info.kind, Kind::GetItem | Kind::Unknown | Kind::Sync(_));
        if stays { None } else { Some((id, contradiction(graph, &ops, id)?.to_string())) }
    };
    graph.ids().filter_map(fault).collect()
}

/// The operator that gives what was recorded of a launch or a wait, in the memory of what that gives.
const RECORDED: &str = "graph_oracle.recorded.default";

/// Whether a call gives what was recorded of the launch or wait that it takes, and contradicts it.
pub fn gives_what_was_recorded(graph: &Graph, id: NodeId) -> bool {
    graph.target(id) == RECORDED
}

/// Leaves launches and waits with what their operators give, and puts a call behind each that gives what was recorded of
/// it. So too with the waits for such a launch, and with its parts: what they give is what it gives.
fn give_what_is_recorded(graph: &mut Graph, calls: &[NodeId]) {
    if calls.is_empty() {
        return;
    }
    let ops = &Ops::of(graph);
    // Launches before their waits, in whatever order the list has them.
    let order = TopologicalOrder::or_list(&Edges::new(graph));
    let placed = |id: NodeId| (order.position(id), id);
    let mut editor = Editor::from_owned(std::mem::take(graph));
    let mut left: BTreeSet<(u32, NodeId)> = calls.iter().copied().map(placed).collect();
    let mut seen = FxHashSet::default();
    while let Some((_, id)) = left.pop_first() {
        let is_wait = ops.get(editor.graph(), id).kind == Kind::Wait;
        let given = match editor.graph().inputs(id).first() {
            Some(&launch) if is_wait => editor.graph().node(launch).out,
            _ => match record(editor.graph_mut(), ops, id, None) {
                Ok(Some(given)) => given,
                _ => continue,
            },
        };
        seen.insert(id);
        let recorded = std::mem::replace(&mut editor.graph_mut().node_mut(id).out, given);
        let takes_as_given =
            |&user: &NodeId| matches!(ops.get(editor.graph(), user).kind, Kind::Wait | Kind::GetItem);
        let (takers, readers): (Vec<NodeId>, Vec<NodeId>) =
            editor.users(id).iter().copied().partition(takes_as_given);
        left.extend(takers.into_iter().filter(|taker| !seen.contains(taker)).map(placed));
        if readers.is_empty() && !is_wait {
            continue;
        }
        let base = format!("{}_recorded", editor.graph().name(id));
        let own = editor.insert_before(editor.next(id), &base, RECORDED, &[Value::Node(id)], &[], recorded);
        readers.into_iter().for_each(|reader| editor.replace_input(reader, id, own));
    }
    *graph = editor.finish();
    let schema = "graph_oracle::recorded(Tensor(a) self) -> Tensor(a)";
    graph.facts.push((RECORDED.to_string(), serde_json::json!({ "schema": schema }).to_string()));
}

/// Makes calls those of operators that are not computed, called by their names and `mark`.
pub(super) fn leave_uncomputed(graph: &mut Graph, calls: &[NodeId], mark: &str) {
    let ops = Ops::of(graph);
    let mut known = FxHashSet::default();
    for &id in calls {
        let Some((target, facts)) = uncomputed(ops.get(graph, id), mark) else { continue };
        let is_first = known.insert(graph.node(id).target);
        graph.node_mut(id).target = graph.intern_target(&target);
        if is_first {
            graph.facts.push((target, facts));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::text::parse;

    fn graph(body: &str) -> Graph {
        parse(format!("x = input : f32[4]\n{body}output y\n").as_bytes()).unwrap().graph
    }

    /// The operators of both graphs after contradicted calls are opaque.
    fn targets(mut before: Graph, mut after: Graph) -> [Vec<String>; 2] {
        make_opaque(&mut before, vec![&mut after]);
        [before, after].map(|graph| {
            let ops = Ops::of(&graph);
            let opaque = graph.ids().filter(|&id| graph.node(id).op == Op::Call);
            let text = |id| {
                let is_opaque = ops.get(&graph, id).kind == Kind::Opaque;
                assert!(!is_opaque || contradiction(&graph, &ops, id).is_none());
                format!("{}{}", graph.target(id), if is_opaque { "!" } else { "" })
            };
            opaque.map(text).collect()
        })
    }

    const OPAQUE: &str = "aten.mul.Scalar (opaque)!";

    #[test]
    fn a_copy_of_a_contradicted_call_is_opaque_too() {
        let before = graph("a = mul_scalar(x, 2) : f64[4]\ny = relu(a) : f64[4]\n");
        let after =
            graph("a = mul_scalar(x, 2) : f64[4]\nb = mul_scalar(x, 2) : f64[4]\ny = relu(b) : f64[4]\n");
        let [before, after] = targets(before, after);
        assert_eq!(before, [OPAQUE, "aten.relu.default"]);
        assert_eq!(after, [OPAQUE, OPAQUE, "aten.relu.default"]);
    }

    #[test]
    fn a_corrected_record_leaves_the_operator() {
        let texts = ["y = mul_scalar(x, 2) : f64[4]\n", "y = mul_scalar(x, 2) : f32[4]\n"];
        let plain = ["aten.mul.Scalar"];
        assert_eq!(targets(graph(texts[0]), graph(texts[1])), [plain, plain]);
        assert_eq!(targets(graph(texts[1]), graph(texts[0])), [plain, plain]);
    }

    /// Asserts what each node of a graph, and of its copy, reads first after records are put behind communication.
    fn assert_reads(communication: &str, expected: &[(&str, &str)]) {
        let text = format!("world 2 ranks, groups dp = [0 1]\nx = input : f32[4]\n{communication}");
        let graph = || parse(text.as_bytes()).unwrap().graph;
        let (mut before, mut after) = (graph(), graph());
        make_opaque(&mut before, vec![&mut after]);
        for graph in [before, after] {
            let ops = Ops::of(&graph);
            assert!(graph.ids().all(|id| contradiction(&graph, &ops, id).is_none()));
            for &(node, input) in expected {
                assert_eq!(graph.name(graph.inputs(graph.find(node).unwrap())[0]), input, "{node}");
            }
        }
    }

    #[test]
    fn what_is_recorded_of_a_wait_is_given_behind_it() {
        let text = "g = all_gather(x, dp) : f32[8]\nw = wait(g) : f64[2]\ny = relu(w) : f64[2]\noutput y\n";
        assert_reads(text, &[("y", "w_recorded"), ("w_recorded", "w")]);
    }

    #[test]
    fn strides_make_nothing_opaque() {
        let strided = "y = relu(x) : f32[4] strides [2]\n";
        assert_eq!(targets(graph(strided), graph(strided)), [["aten.relu.default"]; 2]);
    }

    #[test]
    fn a_launch_of_a_false_record_stays_a_launch() {
        let text = "g = all_gather(x, dp) : f32[9]\nw = wait(g) : f32[9]\ny = relu(w) : f32[9]\n\
                    z = relu(g) : f32[9]\noutput (y, z)\n";
        let reads = [("y", "w_recorded"), ("w_recorded", "w"), ("w", "g"), ("z", "g_recorded")];
        assert_reads(text, &reads);
    }

    #[test]
    fn a_wait_above_its_launch_gives_what_that_gives() {
        let text = "w = wait(g) : f32[8]\ng = all_gather(x, dp) : f32[9]\ny = relu(w) : f32[8]\noutput y\n";
        assert_reads(text, &[("y", "w_recorded"), ("w_recorded", "w"), ("w", "g")]);
    }

    #[test]
    fn what_waits_in_a_circle_ends() {
        let text = "world 2 ranks, groups dp = [0 1]\nx = input : f32[4]\ng = all_gather(x, dp) : f32[9]\n\
                    w = wait(v) : f32[8]\nv = wait(w) : f32[7]\noutput g\n";
        let mut graph = parse(text.as_bytes()).unwrap().graph;
        make_opaque(&mut graph, Vec::new());
    }
}
