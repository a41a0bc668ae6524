//! Which device a result is on: no pass moves values to another device.
//!
//! The graph of another rank is recorded on another device of the same kind. So of nodes that were there before kinds
//! are compared, and numbers only with one another: what was on one device, or named it, is on one device, or names it. A
//! node is on the device that it names; a new one that names none is on that of its inputs. A device without a number is
//! the current one: it is the same as any of its kind.

use crate::graph::{Graph, NodeId, Op, Value};
use crate::ops::{Kind, OpInfo, Ops};
use rustc_hash::FxHashMap;

/// What is wrong with the device that `id` is recorded on, given the node that it was before. What an assertion names is
/// the device of what it looks at.
pub(super) fn fault(graph: &Graph, ops: &Ops, id: NodeId, twin: Option<(&Graph, NodeId)>) -> Option<String> {
    let found = recorded(graph, id);
    if let Some((before, twin)) = twin {
        let was = recorded(before, twin);
        let pair =
            found.iter().zip(&was).map(|(now, was)| (kind(now), kind(was))).find(|(now, was)| now != was);
        if let Some((now, was)) = pair {
            return Some(format!("it is on {now}, and was on {was} before"));
        }
        if named(graph, id) == named(before, twin) {
            return None;
        }
    }
    let named = named(graph, id)?;
    let asserts = ops.call(graph, id).is_some_and(OpInfo::asserts);
    let of = if asserts { recorded(graph, *graph.inputs(id).first()?) } else { found };
    let found = *of.first()?;
    let does = if asserts { "asserts" } else { "is made on" };
    differ(named, found).then(|| format!("it {does} {named}, and recorded is {found}"))
}

/// Nodes whose device has another number than that of others on the same device before; `twin_of` gives the node
/// before.
pub(super) fn renumbered(
    before: &Graph,
    after: &Graph,
    twin_of: &dyn Fn(NodeId) -> Option<NodeId>,
) -> Vec<(NodeId, String)> {
    let (mut to, mut from) = (FxHashMap::default(), FxHashMap::default());
    let mut found = Vec::new();
    for id in after.ids() {
        let Some(twin) = twin_of(id) else { continue };
        // What the graph gives is told of the nodes that make it, where these are known.
        if after.node(id).op == Op::Output && !found.is_empty() {
            continue;
        }
        let devices = devices(before, twin).into_iter().zip(devices(after, id));
        let numbered =
            devices.filter(|(was, is)| was.contains(':') && is.contains(':') && kind(was) == kind(is));
        let wrong = numbered.filter_map(|(was, is)| {
            let &mut (now, other) = to.entry(was).or_insert((is, id));
            let &mut (then, another) = from.entry(is).or_insert((was, id));
            match (now == is, then == was) {
                (true, true) => None,
                (false, _) => {
                    Some(format!("it is on {is}, and {} on {now}; both were on {was}", after.name(other)))
                }
                _ => Some(format!("it is on {is} with {}, and was on {was} before", after.name(another))),
            }
        });
        found.extend(wrong.take(1).map(|why| (id, why)));
    }
    found
}

/// What is wrong with the device of a node that is new: another one than that it names, or than that of its inputs.
pub(super) fn strayed(graph: &Graph, ops: &Ops, id: NodeId) -> Option<String> {
    let info = ops.call(graph, id)?;
    if info.schema.is_none() || matches!(info.kind, Kind::Opaque | Kind::Unknown) {
        return None;
    }
    let found = graph.text(graph.tensor_at(id, 0)?.device);
    if named(graph, id).is_some() {
        return None;
    }
    let inputs = graph.inputs(id);
    // Numbers of no dimension may be anywhere.
    let tensors = inputs.iter().filter_map(|&input| graph.tensor_of(input));
    let mut devices = tensors.filter(|t| !graph.dims(t.shape).is_empty()).map(|t| graph.text(t.device));
    let on = devices.next()?;
    (on != found && devices.all(|device| device == on))
        .then(|| format!("its inputs are on {on}, and it is recorded on {found}"))
}

/// The kinds of devices that the inputs of a node are on, where there are several; numbers of no dimension may be
/// anywhere, and a copy may lead from one to another.
pub(super) fn mixed(graph: &Graph, ops: &Ops, id: NodeId) -> Option<String> {
    if ops.call(graph, id).is_some_and(|info| info.copy_is_waited_for(graph, id).is_some()) {
        return None;
    }
    let inputs = graph.inputs(id).into_iter().filter_map(|input| graph.tensor_of(input));
    let mut kinds = inputs.filter(|t| !graph.dims(t.shape).is_empty()).map(|t| kind(graph.text(t.device)));
    let first = kinds.next()?;
    let other = kinds.find(|other| *other != first)?;
    Some(format!("its inputs are on {first} and on {other}"))
}

fn recorded(graph: &Graph, id: NodeId) -> Vec<&str> {
    let tensors = (0..).map_while(|index| graph.tensor_at(id, index));
    tensors.map(|tensor| graph.text(tensor.device)).collect()
}

/// The device that a call names.
fn named(graph: &Graph, id: NodeId) -> Option<&str> {
    let kwargs = graph.kwargs(id).map(|(_, value)| value);
    graph.args(id).iter().copied().chain(kwargs).find_map(|value| match value {
        Value::Device(device) => Some(graph.text(device)),
        _ => None,
    })
}

/// The devices that a node is recorded on, and names; of the output, those of what it gives.
fn devices(graph: &Graph, id: NodeId) -> Vec<&str> {
    if graph.node(id).op == Op::Output {
        return graph.inputs(id).into_iter().flat_map(|input| recorded(graph, input)).collect();
    }
    recorded(graph, id).into_iter().chain(named(graph, id)).collect()
}

/// Whether two devices are not the same. One without a number is the current one, whichever that is.
fn differ(a: &str, b: &str) -> bool {
    kind(a) != kind(b) || a.contains(':') && b.contains(':') && a != b
}

/// `cuda` of `cuda:1`.
fn kind(device: &str) -> &str {
    device.split(':').next().unwrap_or(device)
}
