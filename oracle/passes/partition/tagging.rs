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
    let Some(output) = forward.output() else { return graph };
    let mut returned: Vec<NodeId> = Vec::new();
    forward.for_each_input(output, &mut |id| returned.push(id));
    for id in returned.into_iter().filter(|&id| forward.node(id).op == Op::Call) {
        let getitem = matches!(forward.target(id), "operator.getitem" | "_operator.getitem");
        match (getitem, forward.arg(id, 0), forward.arg(id, 1)) {
            (true, Some(Value::Node(parent)), Some(Value::Int(index))) => {
                set_must_save(&mut graph, parent, Some(index));
            }
            _ => set_must_save(&mut graph, id, None),
        }
    }
    graph
}
