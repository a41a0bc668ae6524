//! Strides that are recorded and cannot be: pattern passes of Inductor leave those of a node that had the name before.
//!
//! The operator and its arguments count, and what it gives of them; the record counts as absent. Sizes and dtypes are
//! left as they are: where these contradict the operator, a pass recorded what is not true.

use crate::graph::{Graph, NodeId, Op};
use crate::ops::Ops;
use crate::ops::shape::{ShapeFault, check, record};

/// The graph with strides by its operators in the place of those that these cannot give, and the nodes concerned;
/// `None` where there are none.
pub(super) fn without_doubtful_strides(graph: &Graph) -> Option<(Graph, Vec<NodeId>)> {
    let ops = Ops::of(graph);
    let is_doubtful = |graph: &Graph, id: NodeId| {
        let faults = check(graph, &ops, id);
        !faults.is_empty() && faults.iter().all(|fault| matches!(fault, ShapeFault::Stride { .. }))
    };
    let is_call = |id: &NodeId| graph.node(*id).op == Op::Call;
    let first = graph.ids().filter(is_call).find(|&id| is_doubtful(graph, id))?;
    let (mut corrected, mut found) = (graph.clone(), Vec::new());
    // What was recorded by a wrong record is corrected after it.
    for id in graph.ids().filter(is_call).filter(|&id| id >= first) {
        if is_doubtful(&corrected, id)
            && let Ok(Some(out)) = record(&mut corrected, &ops, id, None)
        {
            corrected.node_mut(id).out = out;
            found.push(id);
        }
    }
    (!found.is_empty()).then_some((corrected, found))
}
