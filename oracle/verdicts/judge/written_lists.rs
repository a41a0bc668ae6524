//! Items of lists that are written in place.
//!
//! Inductor turns `_foreach_add` into `_foreach_add_` and goes on taking items of the result. The operator returns
//! nothing, and Inductor's lowering gives back the list that it wrote: so item k is the k-th tensor of that list.
//! Written so, the graph says what is run. Source: `torch._inductor.lowering`, `register_foreach_inplace`.

use crate::graph::{Graph, NodeId, Op, Value};
use crate::ops::Ops;

/// The graph with aliases of the tensors that were written for such items; `None` where there are none.
pub(super) fn with_items(graph: &Graph) -> Option<Graph> {
    let ops = Ops::of(graph);
    let found: Vec<(NodeId, NodeId)> =
        graph.ids().filter_map(|id| Some((id, written_item(graph, &ops, id)?))).collect();
    if found.is_empty() {
        return None;
    }
    let mut aliased = graph.clone();
    for (item, tensor) in found {
        let target = aliased.intern_target("aten.alias.default");
        let args = aliased.push_values(&[Value::Node(tensor)]);
        let node = aliased.node_mut(item);
        (node.target, node.args) = (target, args);
    }
    Some(aliased)
}

/// The tensor that an item of a call without results is: the one of that place in the list that it writes.
fn written_item(graph: &Graph, ops: &Ops, id: NodeId) -> Option<NodeId> {
    let ("operator.getitem", &[Value::Node(call), Value::Int(at)]) = (graph.target(id), graph.args(id))
    else {
        return None;
    };
    if call.index() >= graph.len() || graph.node(call).op != Op::Call {
        return None;
    }
    let schema = ops.get(graph, call).schema.as_ref()?;
    let list = schema.params.first().filter(|param| param.write && param.ty == "Tensor[]")?;
    let written = graph.argument(call, 0, &list.name);
    let Some(Value::List(span)) = written.filter(|_| schema.returns.is_empty()) else { return None };
    match graph.values(span).get(usize::try_from(at).ok()?) {
        Some(&Value::Node(tensor)) => Some(tensor),
        _ => None,
    }
}
