//! A partition that is right because it is simple, for tests and fuzz targets: forward runs everything that needs no
//! tangent, and backward gets everything that it reads. What is tagged to be recomputed, and what only shows gathered
//! parameters that are, is computed again from what is saved.

use crate::graph::{Graph, NodeId, Op, Out, Span, Value};
use crate::ops::Ops;

/// Forward and backward of a joint graph whose first `forward_outputs` results are forward's. `again` says what
/// backward is to compute again.
pub fn partition(joint: &Graph, forward_outputs: usize, again: &dyn Fn(NodeId) -> bool) -> (Graph, Graph) {
    let ops = Ops::of(joint);
    let region = |id: NodeId| {
        let tags = joint.tags(id).and_then(|tags| tags.partitioner_tag);
        tags.map_or("", |text| joint.text(text))
    };
    let mut late = vec![false; joint.len()];
    for id in joint.ids() {
        let mutates = ops.call(joint, id).is_some_and(|info| info.writes());
        let own = match joint.node(id).op {
            Op::Placeholder => joint.target(id).contains("tangents"),
            Op::Call => region(id) == "must_be_in_backward" || (mutates && region(id) == "is_backward"),
            _ => false,
        };
        late[id.index()] = own || joint.inputs(id).iter().any(|input| late[input.index()]);
    }
    let values = flattened(joint);
    let (first, second) = values.split_at(forward_outputs.min(values.len()));
    let mut needed = vec![false; joint.len()];
    let mut repeated = vec![false; joint.len()];
    let nodes = |values: &[Value]| -> Vec<NodeId> {
        values.iter().filter_map(|v| if let Value::Node(id) = v { Some(*id) } else { None }).collect()
    };
    nodes(second).into_iter().for_each(|id| needed[id.index()] = true);
    for id in joint.ids().rev() {
        let is_call = joint.node(id).op == Op::Call;
        // What cannot be handed over is made again.
        let is_constant = joint.node(id).op == Op::GetAttr || matches!(joint.node(id).out, Out::Tuple(_));
        let mutates = ops.call(joint, id).is_some_and(|info| info.writes());
        needed[id.index()] |= mutates && late[id.index()];
        let runs_late = late[id.index()] && is_call && needed[id.index()];
        repeated[id.index()] =
            needed[id.index()] && !late[id.index()] && ((is_call && again(id)) || is_constant);
        if runs_late || repeated[id.index()] {
            joint.inputs(id).into_iter().for_each(|input| needed[input.index()] = true);
        }
    }
    let symbols = joint.has_expressions();
    let is_symbol = |id: NodeId| match joint.node(id).out {
        Out::SymInt(_) | Out::SymBool(_) | Out::Int(_) => true,
        Out::Other(name) => joint.text(name) == "SymFloat",
        _ => false,
    };
    let binds = |id: NodeId| symbols && joint.node(id).op == Op::Placeholder && is_symbol(id);
    let saved =
        |id: &NodeId| (needed[id.index()] || binds(*id)) && !late[id.index()] && !repeated[id.index()];
    let saved: Vec<NodeId> = joint.ids().filter(saved).collect();
    let class = |id: NodeId| match joint.node(id).out {
        Out::Tensor(_) => 0,
        _ if is_symbol(id) => 2,
        _ => 1,
    };
    let mut out = saved.clone();
    out.sort_by_key(|&id| class(id));
    let mut into = saved.clone();
    into.sort_by_key(|&id| (class(id) + 1) % 3);

    let is_tangent = |id: NodeId| joint.node(id).op == Op::Placeholder && late[id.index()];
    let output = joint.output();
    let returned: Vec<Value> = first.iter().copied().chain(out.iter().map(|&id| Value::Node(id))).collect();
    let mut forward = joint.clone();
    forward.kind = "forward".into();
    set_output(&mut forward, &returned);
    let list: Vec<NodeId> = joint
        .ids()
        .filter(|id| !late[id.index()] && joint.node(*id).op != Op::Output)
        .chain(output)
        .collect();
    let forward = forward.reordered(&list);

    let mut backward = joint.clone();
    backward.kind = "backward".into();
    for &id in &saved {
        let name = backward.node(id).name;
        let target = backward.target_named(name);
        let node = backward.node_mut(id);
        (node.op, node.target, node.args, node.kwargs) = (Op::Placeholder, target, Span::EMPTY, Span::EMPTY);
    }
    set_output(&mut backward, second);
    let calls = joint.ids().filter(|id| {
        let is_late = late[id.index()] && joint.node(*id).op == Op::Call;
        (is_late && needed[id.index()]) || repeated[id.index()]
    });
    let tangents = joint.ids().filter(|&id| is_tangent(id));
    let list: Vec<NodeId> = into.into_iter().chain(tangents).chain(calls).chain(output).collect();
    (forward, backward.reordered(&list))
}

fn flattened(graph: &Graph) -> Vec<Value> {
    fn walk(graph: &Graph, values: &[Value], found: &mut Vec<Value>) {
        for &value in values {
            match value {
                Value::List(span) => walk(graph, graph.values(span), found),
                value => found.push(value),
            }
        }
    }
    let mut found = Vec::new();
    graph.output().into_iter().for_each(|output| walk(graph, graph.args(output), &mut found));
    found
}

fn set_output(graph: &mut Graph, values: &[Value]) {
    let Some(output) = graph.output() else { return };
    let list = graph.list(values);
    let args = graph.push_values(&[list]);
    graph.node_mut(output).args = args;
}
