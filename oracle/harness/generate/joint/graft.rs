//! Grafts: edits of a given joint graph that keep it a joint graph.
//!
//! Real joint graphs have operators and patterns that the generator does not make. A graft cuts one down and changes
//! it: a forward value becomes an input, a gradient on its way becomes a tangent, a returned gradient becomes `None`,
//! nodes get other tags. What nobody needs any more is dropped. Whatever remains was valid and stays so: it computes
//! from its inputs what it computed before.

use super::returned;
use crate::analysis::{Collectives, Edges};
use crate::generate::Source;
use crate::graph::{Graph, NodeId, Op, Out, Span, Value};
use crate::ops::{Kind, Ops};

/// An edit of `joint`, of which the first `forward_outputs` results are forward's: the graph, with as many of them.
/// `None` where nothing that could be called a step is left.
pub fn graft(source: &mut impl Source, joint: &Graph, forward_outputs: usize) -> Option<Graph> {
    source.step();
    let mut graph = joint.clone();
    for _ in 0..source.between(0, 3) {
        cut(source, &mut graph);
    }
    if source.percent(50) {
        drop_gradients(source, &mut graph, forward_outputs);
    }
    graph = swept(graph);
    if source.percent(60) {
        retag(source, &mut graph);
    }
    let edges = Edges::new(&graph);
    let late = tangent_dependent(&graph, &edges);
    let calls = graph.ids().filter(|&id| graph.node(id).op == Op::Call);
    let (mut forward, mut backward) = (0, 0);
    calls.for_each(|id| *(if late[id.index()] { &mut backward } else { &mut forward }) += 1);
    (forward > 0 && backward > 0).then_some(graph)
}

fn tangent_dependent(graph: &Graph, edges: &Edges) -> Vec<bool> {
    let mut late = vec![false; graph.len()];
    for id in graph.ids() {
        late[id.index()] = (graph.node(id).op == Op::Placeholder && graph.target(id).contains("tangents"))
            || edges.inputs(id).iter().any(|input| late.get(input.index()) == Some(&true));
    }
    late
}

/// Makes a value an input: a primal, or a tangent where it depends on one.
///
/// The value must be a tensor in a storage of its own that nobody writes: an input stands for memory that it does not
/// share. It must not be in flight.
fn cut(source: &mut impl Source, graph: &mut Graph) {
    let ops = Ops::of(graph);
    let edges = Edges::new(graph);
    let collectives = Collectives::new(graph, &ops);
    let late = tangent_dependent(graph, &edges);
    let fits = |id: &NodeId| {
        let Some(info) = ops.call(graph, *id) else { return false };
        let plain = matches!(
            info.kind,
            Kind::Unary(_)
                | Kind::Binary(_)
                | Kind::Matmul(_)
                | Kind::Pointwise
                | Kind::Reduce(_)
                | Kind::Cast
        );
        let is_contiguous = graph.tensor_of(*id).is_some_and(|tensor| {
            let sizes = graph.sizes(tensor.shape);
            sizes.is_some_and(|sizes| {
                graph.sizes(tensor.stride) == Some(crate::graph::contiguous_strides(&sizes))
                    && tensor.offset == 0
            })
        });
        let written =
            edges.users(*id).iter().any(|&user| ops.call(graph, user).is_some_and(|user| user.writes()));
        plain && is_contiguous && !written && !info.writes() && collectives.launch_of_value(*id).is_none()
    };
    let places: Vec<NodeId> = graph.ids().filter(fits).collect();
    if places.is_empty() {
        return;
    }
    let id = places[source.below(places.len() as u32) as usize];
    let base = if late[id.index()] { "tangents_cut" } else { "primals_cut" };
    let name = graph.name(id).to_string();
    let target = graph.intern_target(&format!("{base}_{name}"));
    let is_late = late[id.index()];
    let node = graph.node_mut(id);
    (node.op, node.target, node.args, node.kwargs) = (Op::Placeholder, target, Span::EMPTY, Span::EMPTY);
    (node.tags, node.extra) = (None, None);
    let is_input = |id: &NodeId| graph.node(*id).op == Op::Placeholder;
    let is_tangent = |id: &NodeId| graph.target(*id).contains("tangents");
    let mut list: Vec<NodeId> = graph.ids().filter(|other| is_input(other) && *other != id).collect();
    let first_tangent = list.iter().position(is_tangent).unwrap_or(list.len());
    list.insert(if is_late { list.len() } else { first_tangent }, id);
    list.extend(graph.ids().filter(|id| !is_input(id)));
    // An input's name is its target.
    let renamed = format!("{base}_{name}");
    let reordered = std::mem::take(graph).reordered(&list);
    *graph = reordered.with_names(|other| {
        let old = reordered.name(other);
        if old == name { renamed.clone() } else { old.to_string() }
    });
}

/// Makes some of the returned gradients `None`.
fn drop_gradients(source: &mut impl Source, graph: &mut Graph, forward_outputs: usize) {
    let Some(output) = graph.output() else { return };
    let mut values = returned(graph);
    for value in values.iter_mut().skip(forward_outputs) {
        if source.percent(40) {
            *value = Value::None;
        }
    }
    let list = graph.list(&values);
    let args = graph.push_values(&[list]);
    graph.node_mut(output).args = args;
}

/// Without nodes that nobody needs.
fn swept(graph: Graph) -> Graph {
    let ops = Ops::of(&graph);
    let mut needed = vec![false; graph.len()];
    for id in graph.ids().rev() {
        let node = graph.node(id);
        let has_effect = ops.call(&graph, id).is_some_and(|info| {
            let communicates = info.collective().is_some() || info.kind == Kind::Wait;
            (info.effect && !communicates) || info.writes()
        });
        needed[id.index()] |= has_effect || matches!(node.op, Op::Output | Op::Placeholder);
        if needed[id.index()] {
            graph.for_each_input(id, &mut |input| {
                if let Some(slot) = needed.get_mut(input.index()) {
                    *slot = true;
                }
            });
        }
    }
    let list: Vec<NodeId> = graph.ids().filter(|id| needed[id.index()]).collect();
    graph.reordered(&list)
}

/// Changes the tags of some pure nodes that do not communicate.
fn retag(source: &mut impl Source, graph: &mut Graph) {
    let ops = Ops::of(graph);
    let edges = Edges::new(graph);
    let late = tangent_dependent(graph, &edges);
    let any_write = graph.ids().any(|id| ops.call(graph, id).is_some_and(|info| info.writes()));
    let percent = source.between(1, 20);
    for id in graph.ids() {
        let Some(info) = ops.call(graph, id) else { continue };
        let pure = matches!(info.kind, Kind::Unary(_) | Kind::Binary(_) | Kind::Matmul(_) | Kind::Pointwise);
        let gathered = graph.tags(id).and_then(|tags| tags.ac_graph_id) == Some(100_000);
        let tensor = matches!(graph.node(id).out, Out::Tensor(_));
        if !pure || gathered || !tensor || late[id.index()] || info.writes() {
            continue;
        }
        if !source.percent(percent) {
            continue;
        }
        // What is recomputed must not read memory that is written since.
        let policies: &[&str] = if any_write {
            &["MUST_SAVE", "PREFER_SAVE"]
        } else {
            &["MUST_SAVE", "PREFER_RECOMPUTE", "MUST_RECOMPUTE"]
        };
        let policy = graph.intern(source.one_of(policies));
        let mut tags = graph.tags(id).cloned().unwrap_or_default();
        (tags.recompute, tags.ac_graph_id) = (Some(policy), None);
        let tags = graph.intern_tags(tags);
        graph.node_mut(id).tags = tags;
    }
}
