//! What parts record of their values: dtypes, sizes, strides, storages and devices.

use super::super::metadata::strides_not_recorded;
use super::super::sizes::{self, Sized, Sizes};
use super::super::{Checked, device, overlap};
use super::evidence::PartitionEvidence;
use crate::analysis::disagreements::{Elsewhere, recorded_elsewhere, resized};
use crate::analysis::fault::FaultKind;
use crate::graph::{Dim, Graph, NodeId, Op, StorageId, Value};
use crate::rules::AnalyzedGraph;
use rustc_hash::{FxHashMap, FxHashSet};

/// Recorded results of both parts follow from their operators, and lie in no other memory's storage. What the joint
/// graph already has is no fault of the partition.
pub(super) fn metadata_true(evidence: &PartitionEvidence) -> Checked {
    const RULE: &str = "partition/metadata-true";
    let joint = &evidence.joint;
    let shapes = |side: &AnalyzedGraph| -> Vec<(NodeId, String)> {
        let faults = side.faults().iter();
        let shapes = faults.filter(|fault| matches!(fault.kind, FaultKind::Shape { .. }));
        shapes.filter_map(|fault| Some((fault.node?, fault.kind.to_string()))).collect()
    };
    let told = |side: &AnalyzedGraph, id: NodeId, other: NodeId| {
        (id, format!("recorded in the storage of {}", side.graph.name(other)))
    };
    let foreign =
        |side: &AnalyzedGraph, is_known: &dyn Fn(NodeId, Elsewhere) -> bool| -> Vec<(NodeId, String)> {
            let found = recorded_elsewhere(side.graph, side.storages()).into_iter();
            let found = found.filter(|&(id, elsewhere)| !is_known(id, elsewhere));
            found.map(|(id, Elsewhere { other, .. })| told(side, id, other)).collect()
        };
    let raised = |side: &AnalyzedGraph| overlap::refused(side.graph, &side.ops, side.storages());
    let sized = |side: &AnalyzedGraph| resized(side.graph, &side.ops, side.storages());
    let strayed = foreign(joint, &|_, _| false).into_iter().chain(raised(joint)).chain(sized(joint));
    let known: FxHashSet<NodeId> = shapes(joint).into_iter().chain(strayed).map(|(node, _)| node).collect();
    let mut findings = Vec::new();
    let mut doubt = None;
    for (side, twins) in
        [(&evidence.forward, &evidence.of_forward), (&evidence.backward, &evidence.of_backward)]
    {
        // Strides that nobody recorded, and no rule tells, are no evidence.
        let guess = |id: NodeId| {
            let twin = || twins[id.index()].filter(|&twin| joint.graph.is_guessed(twin));
            side.graph.guess_behind(id).or_else(|| twin().map(|_| id))
        };
        // A value and what it is a view of lie in one storage in the joint graph; where one of them is handed over and
        // the other computed again, the records say so still.
        let storage = |id: NodeId, place: usize| {
            let twin = twins[id.index()]?;
            joint.graph.tensor(joint.storages().tensor(twin, place)?).storage
        };
        let share = |id: NodeId, Elsewhere { other, places, .. }: Elsewhere| {
            storage(id, places[0]).is_some_and(|own| storage(other, places[1]) == Some(own))
        };
        let confused = confused_inputs(joint, side, twins).into_iter();
        let confused: Vec<(NodeId, String)> = confused.map(|(id, other)| told(side, id, other)).collect();
        let mut shapes = shapes(side);
        if shapes.is_empty() {
            let tried = Sizes::tried((joint.graph, &joint.ops), std::iter::once(side.graph), false);
            shapes.extend(tried.flat_map(|Sized { sizes, after, .. }| {
                let told = |(id, why)| (id, format!("{why}, where {}", sizes.words()));
                let untrue = after.iter().flat_map(|graph| sizes::misfits(graph, &side.ops));
                untrue.map(told).collect::<Vec<_>>()
            }));
        }
        let is_told: FxHashSet<NodeId> = shapes.iter().map(|(id, _)| *id).collect();
        let all = shapes
            .into_iter()
            .chain(foreign(side, &share))
            .chain(confused)
            .chain(raised(side))
            .chain(sized(side));
        for (id, text) in all {
            if twins[id.index()].is_some_and(|twin| known.contains(&twin)) {
                continue;
            }
            if let Some(open) = guess(id).filter(|_| may_follow_from_strides(side, id)) {
                doubt.get_or_insert_with(|| strides_not_recorded(side.graph.name(open), side.graph.name(id)));
                continue;
            }
            let name = side.graph.name(id);
            findings.push(
                evidence
                    .finding(RULE, format!("the recorded result of {name} is not true"))
                    .nodes(evidence, [name])
                    .fact(format!("{name} calls {}", side.graph.target(id)))
                    .contrast("what is recorded is what the operator makes of its inputs", text),
            );
        }
        for (id, [expected, found]) in other_records(joint.graph, side.graph, twins) {
            if is_told.contains(&id) || twins[id.index()].is_some_and(|twin| known.contains(&twin)) {
                continue;
            }
            let sizes = |graph: &Graph, id| layout(graph, id).map(|[sizes, _]| sizes);
            let is_of_sizes =
                twins[id.index()].is_some_and(|twin| sizes(joint.graph, twin) != sizes(side.graph, id));
            if let Some(open) = guess(id).filter(|_| !is_of_sizes) {
                doubt.get_or_insert_with(|| strides_not_recorded(side.graph.name(open), side.graph.name(id)));
                continue;
            }
            let name = side.graph.name(id);
            findings.push(
                evidence
                    .finding(RULE, format!("the recorded result of {name} has changed"))
                    .nodes(evidence, [name])
                    .contrast(
                        format!("the joint graph records {expected}, and it takes the same here"),
                        format!("{found} is recorded"),
                    ),
            );
        }
        let renumbered = device::renumbered(joint.graph, side.graph, &|id| twins[id.index()]);
        let mut renumbered = renumbered.into_iter().peekable();
        for id in side.graph.ids() {
            let twin = twins[id.index()].map(|twin| (joint.graph, twin));
            let fault = device::fault(side.graph, &side.ops, id, twin)
                .or_else(|| Some(renumbered.next_if(|(node, _)| *node == id)?.1))
                .or_else(|| device::strayed(side.graph, &side.ops, id).filter(|_| twin.is_none()));
            if let Some(why) = fault {
                let name = side.graph.name(id);
                findings.push(
                    evidence
                        .finding(RULE, format!("the device of {name} is not true"))
                        .nodes(evidence, [name])
                        .contrast("values stay on their device", why),
                );
            }
        }
        // A result that the joint graph does not know stands in the place of one that it does.
        let (of_joint, of_part) = match std::ptr::eq(side, &evidence.forward) {
            true => (&evidence.joint_returns[..evidence.forward_outputs], &evidence.forward_returns),
            false => (&evidence.joint_returns[evidence.forward_outputs..], &evidence.backward_returns),
        };
        for (&expected, &found) in of_joint.iter().zip(of_part) {
            let (Value::Node(expected), Value::Node(id)) = (expected, found) else { continue };
            if id.index() >= side.graph.len() || twins[id.index()].is_some() {
                continue;
            }
            if let Some(why) = device::fault(side.graph, &side.ops, id, Some((joint.graph, expected))) {
                let name = side.graph.name(id);
                findings.push(
                    evidence
                        .finding(RULE, format!("{name} is returned on another device"))
                        .nodes(evidence, [name])
                        .contrast("results stay on their device", why),
                );
            }
        }
    }
    Checked::found(findings, doubt)
}

/// Whether what is wrong with a record of a node may come from the strides of what it takes.
fn may_follow_from_strides(side: &AnalyzedGraph, id: NodeId) -> bool {
    let mut faults = side.faults().iter().filter(|fault| fault.node == Some(id));
    faults.any(|fault| matches!(&fault.kind, FaultKind::Shape { fault } if fault.may_follow_from_strides()))
}

/// Inputs of a part that are recorded in the storage of an earlier one, each with that, where the joint graph has two
/// storages for what they are, and records two.
fn confused_inputs(
    joint: &AnalyzedGraph,
    part: &AnalyzedGraph,
    twins: &[Option<NodeId>],
) -> Vec<(NodeId, NodeId)> {
    let recorded = |graph: &Graph, id: NodeId| graph.tensor_of(id)?.storage;
    let lie_apart = |a: NodeId, b: NodeId| {
        let parts = |id: NodeId| joint.storages().all_parts(id);
        recorded(joint.graph, a).zip(recorded(joint.graph, b)).is_some_and(|(a, b)| a != b)
            && parts(a).all(|own| parts(b).all(|other| own.storage != other.storage))
    };
    let mut first: FxHashMap<StorageId, NodeId> = FxHashMap::default();
    let inputs = part.graph.ids().filter(|&id| part.graph.node(id).op == Op::Placeholder);
    let pairs = inputs.filter_map(|id| Some((id, *first.entry(recorded(part.graph, id)?).or_insert(id))));
    let is_confused = |&(id, other): &(NodeId, NodeId)| {
        twins[id.index()].zip(twins[other.index()]).is_some_and(|(a, b)| lie_apart(a, b))
    };
    pairs.filter(is_confused).collect()
}

/// Dtype and sizes of a tensor in words, and its strides; `None` where there is no tensor.
pub(super) fn layout(graph: &Graph, id: NodeId) -> Option<[String; 2]> {
    let words = |dims: &[Dim]| -> Vec<String> {
        let word = |&dim: &Dim| match dim {
            Dim::Static(n) => n.to_string(),
            Dim::Symbolic(expr) => graph.text(graph.expr(expr).text).to_string(),
        };
        dims.iter().map(word).collect()
    };
    let tensor = graph.tensor_of(id)?;
    let shape = graph.dims(tensor.shape);
    let mut strides = words(graph.dims(tensor.stride));
    // Where the one element of a dimension would stand next means nothing.
    let is_empty = shape.contains(&Dim::Static(0));
    let pairs = strides.iter_mut().zip(shape);
    pairs
        .filter(|(_, size)| is_empty || **size == Dim::Static(1))
        .for_each(|(stride, _)| *stride = "-".into());
    Some([format!("{}[{}]", tensor.dtype.short(), words(shape).join(", ")), strides.join(", ")])
}

/// Two tensors of another dtype, shape or layout, in words.
pub(super) fn other_layout(one: (&Graph, NodeId), other: (&Graph, NodeId)) -> Option<[String; 2]> {
    if one.0.same_result(one.1, other.0, other.1) {
        return None;
    }
    let ([a, p], [b, q]) = (layout(one.0, one.1)?, layout(other.0, other.1)?);
    match (a == b, p == q) {
        (true, true) => None,
        (true, false) => Some([format!("{a} with strides [{p}]"), format!("{b} with strides [{q}]")]),
        _ => Some([a, b]),
    }
}

/// The nodes of a part with another record than in the joint graph, though what they take has the same: inputs that are
/// handed to both, and calls. Each with what the two graphs say.
fn other_records(joint: &Graph, part: &Graph, twins: &[Option<NodeId>]) -> Vec<(NodeId, [String; 2])> {
    let mut is_same = vec![false; part.len()];
    let mut found = Vec::new();
    for id in part.ids() {
        let Some(twin) = twins[id.index()] else { continue };
        let inputs = part.inputs(id);
        let takes_the_same = || {
            let theirs = joint.inputs(twin);
            let mut pairs = inputs.iter().zip(&theirs);
            inputs.len() == theirs.len()
                && pairs.all(|(&a, &b)| a < id && twins[a.index()] == Some(b) && is_same[a.index()])
        };
        let is_handed = joint.node(twin).op == Op::Placeholder && part.node(id).op == Op::Placeholder;
        match other_layout((joint, twin), (part, id)) {
            None => is_same[id.index()] = true,
            Some(words) if is_handed || (part.node(id).op == Op::Call && takes_the_same()) => {
                found.push((id, words));
            }
            Some(_) => {}
        }
    }
    found
}
