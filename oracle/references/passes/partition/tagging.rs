//! What a first partition saved, written on the nodes of its forward graph.
//!
//! Every output that is computed is tagged `ap_must_save`, the program's own outputs included; for one of
//! several results the operator is tagged, and the index is put on its list. The joint graph and backward keep
//! their tags. Source: the forward compiler of `autoparallel.compile`.

use super::marks::set_must_save;
use crate::graph::{Graph, NodeId, Op, Value};

/// Tags the values that `forward` returns.
pub fn tag_forward(forward: &Graph) -> Graph {
    let mut graph = forward.clone();
    tag_saved(&mut graph, &saved_by(forward));
    graph
}

/// The computed values that `forward` returns, by name: the operator, and the index where it gives several results.
pub fn saved_by(forward: &Graph) -> Vec<(String, Option<i64>)> {
    let Some(output) = forward.output() else { return Vec::new() };
    let mut returned: Vec<NodeId> = Vec::new();
    forward.for_each_input(output, &mut |id| returned.push(id));
    let calls = returned.into_iter().filter(|&id| forward.node(id).op == Op::Call);
    let named = calls.map(|id| {
        let getitem = matches!(forward.target(id), "operator.getitem" | "_operator.getitem");
        match (getitem, forward.arg(id, 0), forward.arg(id, 1)) {
            (true, Some(Value::Node(parent)), Some(Value::Int(index))) => {
                (forward.name(parent).to_string(), Some(index))
            }
            _ => (forward.name(id).to_string(), None),
        }
    });
    named.collect()
}

/// Tags the calls of `graph` that are listed, by name.
pub fn tag_saved(graph: &mut Graph, saved: &[(String, Option<i64>)]) {
    for (name, index) in saved {
        if let Some(id) = graph.find(name).filter(|&id| graph.node(id).op == Op::Call) {
            set_must_save(graph, id, *index);
        }
    }
}
