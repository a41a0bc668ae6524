//! Both parts with the names of the joint graph, where they have others: the rules go by names.
//!
//! Forward's inputs are the joint graph's without those that only backward gets; backward's are what forward saves, and
//! then those. All are bound by position, as the runtime hands them over.

use super::super::matching::{Account, part_named_as};
use super::compose::{is_generator_input, item_of_added, returned};
use super::evidence::{ValueClass, class_of, is_backward_only, is_tangent};
use crate::graph::{Graph, NodeId, Op, Value};

/// Forward and backward as the joint graph names their nodes; `None` for a part whose names fit as they are. The first
/// `forward_outputs` results of forward are the joint graph's.
pub(crate) fn parts_named_as(
    joint: &Graph,
    forward: &Graph,
    backward: &Graph,
    forward_outputs: usize,
    account: Account,
) -> (Option<Graph>, Option<Graph>) {
    let returns = returned(joint);
    let (of_forward, of_backward) = returns.split_at(forward_outputs.min(returns.len()));
    let (given, later): (Vec<NodeId>, Vec<NodeId>) =
        inputs(joint).into_iter().partition(|&id| !is_backward_only(joint, id));
    let named_forward =
        part_named_as(joint, forward, bound(&given, forward), both(of_forward, &returned(forward)), account);
    let known = named_forward.as_ref().unwrap_or(forward);

    let saved = returned(known).into_iter().skip(forward_outputs).filter_map(node);
    // States of generators are handed to inputs of their own.
    let is_value =
        |id: &NodeId| id.index() < known.len() && !matches!(item_of_added(joint, known, *id), Some((_, 0)));
    let saved: Vec<NodeId> = saved.filter(is_value).collect();
    let of_class =
        |wanted: fn(ValueClass) -> bool| saved.iter().copied().filter(move |&id| wanted(class_of(known, id)));
    let handed = of_class(|class| class == ValueClass::Symbol)
        .chain(of_class(|class| !matches!(class, ValueClass::Symbol | ValueClass::Opaque)))
        .chain(of_class(|class| class == ValueClass::Opaque));
    let handed: Vec<NodeId> = handed.collect();
    let (tangents, rest): (Vec<NodeId>, Vec<NodeId>) =
        later.into_iter().partition(|&id| is_tangent(joint.target(id)));
    let of_joint = handed.iter().map(|&id| joint.find(known.name(id)));
    let expected: Vec<Option<NodeId>> = of_joint.chain(tangents.into_iter().chain(rest).map(Some)).collect();
    let bound = bound(&expected, backward);
    let is_known = bound.iter().filter_map(|&(expected, id)| Some((expected?, id))).collect();
    let mut named_backward =
        part_named_as(joint, backward, is_known, both(of_backward, &returned(backward)), account);
    // What forward hands over and the joint graph does not have goes by forward's name.
    let own: Vec<(NodeId, &str)> = handed
        .iter()
        .zip(&bound)
        .filter(|(_, (expected, _))| expected.is_none())
        .map(|(&id, &(_, input))| (input, known.name(id)))
        .collect();
    let part = named_backward.as_ref().unwrap_or(backward);
    if own.iter().any(|&(input, name)| part.name(input) != name) {
        let is_free = |name: &str| part.find(name).is_none();
        let name = |id: NodeId| {
            let given = own.iter().find(|&&(input, name)| input == id && is_free(name));
            given.map_or(part.name(id), |&(_, name)| name).to_string()
        };
        named_backward = Some(part.with_names(name));
    }
    (named_forward, named_backward)
}

fn inputs(graph: &Graph) -> Vec<NodeId> {
    graph.ids().filter(|&id| graph.node(id).op == Op::Placeholder).collect()
}

/// The inputs of a part with what is handed to them; nothing where the numbers differ.
fn bound<T: Copy>(expected: &[T], part: &Graph) -> Vec<(T, NodeId)> {
    let inputs = inputs(part).into_iter().filter(|&id| !is_generator_input(part.target(id)));
    let inputs: Vec<NodeId> = inputs.collect();
    match inputs.len() == expected.len() {
        true => expected.iter().copied().zip(inputs).collect(),
        false => Vec::new(),
    }
}

/// The nodes that two lists return in one place.
fn both(joint: &[Value], part: &[Value]) -> Vec<(NodeId, NodeId)> {
    joint.iter().zip(part).filter_map(|(&a, &b)| node(a).zip(node(b))).collect()
}

fn node(value: Value) -> Option<NodeId> {
    if let Value::Node(id) = value { Some(id) } else { None }
}
