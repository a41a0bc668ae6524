//! Which device a result is on: no pass moves values to another kind of device.
//!
//! Kinds are compared, not numbers: the graph of another rank is recorded on another device of the same kind.

use crate::graph::{Graph, NodeId, Value};

/// What is wrong with the device that `id` is recorded on, given the node that it was before.
pub(super) fn fault(graph: &Graph, id: NodeId, twin: Option<(&Graph, NodeId)>) -> Option<String> {
    let found = recorded(graph, id);
    if let Some((before, twin)) = twin {
        let was = recorded(before, twin);
        let pair = found.iter().zip(&was).find(|(now, was)| now != was);
        if let Some((now, was)) = pair {
            return Some(format!("it is on {now}, and was on {was} before"));
        }
        if named(graph, id) == named(before, twin) {
            return None;
        }
    }
    let (named, found) = (named(graph, id)?, *found.first()?);
    (named != found).then(|| format!("it is made on {named}, and recorded on {found}"))
}

/// The kinds of devices that the inputs of a node are on, where there are several; numbers of no dimension may be anywhere.
pub(super) fn mixed(graph: &Graph, id: NodeId) -> Option<String> {
    let inputs = graph.inputs(id).into_iter().filter_map(|input| graph.tensor_of(input));
    let mut kinds = inputs.filter(|t| !graph.dims(t.shape).is_empty()).map(|t| kind(graph.text(t.device)));
    let first = kinds.next()?;
    let other = kinds.find(|other| *other != first)?;
    Some(format!("its inputs are on {first} and on {other}"))
}

fn recorded(graph: &Graph, id: NodeId) -> Vec<&str> {
    let tensors = (0..).map_while(|index| graph.tensor_at(id, index));
    tensors.map(|tensor| kind(graph.text(tensor.device))).collect()
}

fn named(graph: &Graph, id: NodeId) -> Option<&str> {
    match graph.kwarg(id, "device") {
        Some(Value::Device(device)) => Some(kind(graph.text(device))),
        _ => None,
    }
}

/// `cuda` of `cuda:1`.
fn kind(device: &str) -> &str {
    device.split(':').next().unwrap_or(device)
}
