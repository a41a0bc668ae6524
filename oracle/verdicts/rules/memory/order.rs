//! The order of a claim, applied to its graph.

use crate::graph::{Editor, Graph, NodeId, Op};
use rustc_hash::FxHashMap;

/// The graph with its calls in another order; inputs and constants stay first, the output last.
pub fn reordered(graph: &Graph, order: &[String]) -> Result<Graph, String> {
    let calls: FxHashMap<&str, NodeId> =
        graph.ids().filter(|&id| graph.node(id).op == Op::Call).map(|id| (graph.name(id), id)).collect();
    let mut seen = vec![false; graph.len()];
    let mut editor = Editor::new(graph);
    let output = graph.output();
    for name in order {
        let &id =
            calls.get(name.as_str()).ok_or_else(|| format!("the order names {name}, which is no call"))?;
        if std::mem::replace(&mut seen[id.index()], true) {
            return Err(format!("the order names {name} twice"));
        }
        editor.move_before(output, id);
    }
    if order.len() != calls.len() {
        return Err(format!("the order has {} calls, the graph {}", order.len(), calls.len()));
    }
    Ok(editor.finish())
}
