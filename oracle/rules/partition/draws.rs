//! Which random draws the parts make, and in what order.
//!
//! A generator hands out its numbers in the order of the draws, so a draw that is added, lost or moved before another
//! gives every later draw other numbers from the same seed. Draws of different devices or generators are independent.
//!
//! # What is no draw of its own
//!
//! What starts from a state that it is given repeats numbers or has a generator of its own, and functions of a seed
//! draw nothing. A second run that nothing pairs with the first is told by `partition/rng-paired`, and a write of
//! random numbers that is lost is told with the other writes.

use super::compose::{Wrapper, added_wrapper, is_from_state, item_of_added};
use super::evidence::PartitionEvidence;
use crate::graph::{Graph, NodeId, Out, Value};
use crate::ops::Ops;
use crate::rules::{Finding, Side};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

const RULE: &str = "partition/effects-once-in-order";

/// The draws that are added, lost or in another order than in the joint graph.
pub(super) fn strayed_draws(evidence: &PartitionEvidence) -> Vec<Finding> {
    let Ok(composition) = evidence.composition.as_ref() else { return Vec::new() };
    let (joint, ops) = (evidence.joint.graph, &evidence.joint.ops);
    let mut findings = Vec::new();
    // By generator: what the parts draw, by node of the joint graph, in order of execution.
    let mut drawn: BTreeMap<String, [Vec<NodeId>; 2]> = BTreeMap::new();
    let composed = [&composition.of_forward, &composition.of_backward];
    for (place, (side, part)) in evidence.parts().into_iter().enumerate() {
        for id in side.graph.ids().filter(|&id| draws_anew(joint, side, id)) {
            let twin = composed[place][id.index()].and_then(|node| composition.twin[node.index()]);
            let of_part = if place == 0 { &evidence.of_forward } else { &evidence.of_backward };
            let is_wrapped = added_wrapper(joint, side.graph, id).is_some();
            match twin.filter(|&twin| (is_wrapped || of_part[id.index()].is_some()) && ops.draws(joint, twin))
            {
                Some(twin) => drawn.entry(generator(joint, twin)).or_default()[place].push(twin),
                None => {
                    let name = side.graph.name(id);
                    findings.push(
                        evidence
                            .finding(
                                RULE,
                                format!("{part} draws {name}, which the joint graph does not draw"),
                            )
                            .nodes(evidence, [name])
                            .fact(format!("{name} is {}, which draws random numbers", side.graph.target(id)))
                            .however(
                                "the parts draw what the joint graph draws",
                                format!("{name} takes numbers that the draws after it are to have"),
                            ),
                    );
                }
            }
        }
    }
    let kept: FxHashSet<NodeId> =
        composition.draws.iter().filter_map(|draw| composition.twin[draw.node.index()]).collect();
    let writes = |id| ops.get(joint, id).mutated().next().is_some();
    let is_lost = |id: &NodeId| is_draw(joint, ops, *id) && evidence.live_joint[id.index()] && !writes(*id);
    for id in joint.ids().filter(is_lost).filter(|id| !kept.contains(id)) {
        let name = joint.name(id);
        findings.push(
            evidence
                .finding(RULE, format!("{name} is not drawn"))
                .nodes(evidence, [name])
                .fact(format!("{name} is {}, which draws random numbers", joint.target(id)))
                .however("the joint graph draws it, for something that it returns", "neither part does"),
        );
    }
    for [forward, backward] in drawn.values() {
        let again: FxHashSet<NodeId> = forward.iter().copied().collect();
        let own: Vec<NodeId> = backward.iter().copied().filter(|id| !again.contains(id)).collect();
        // What needs no gradient is drawn before and while forward runs; what needs one may stand anywhere in the joint
        // graph, and is drawn after all of it.
        let no_tangent = |id: &&NodeId| !evidence.needs_tangent[id.index()];
        let both: Vec<NodeId> = forward.iter().chain(&own).filter(no_tangent).copied().collect();
        let sequences = [("forward draws", forward), ("backward draws", &own), ("the parts draw", &both)];
        let swapped = sequences
            .iter()
            .find_map(|(part, sequence)| Some((part, sequence.windows(2).find(|pair| pair[0] > pair[1])?)));
        let Some((part, &[first, second])) = swapped else { continue };
        let (first, second) = (joint.name(first), joint.name(second));
        findings.push(
            evidence
                .finding(RULE, format!("{part} {first} before {second}"))
                .nodes(evidence, [first, second])
                .however(
                    format!("the joint graph draws {second} first"),
                    "from one seed each has the numbers of the other",
                ),
        );
    }
    findings
}

/// Whether a node draws from a generator that goes on from draw to draw.
fn is_draw(graph: &Graph, ops: &Ops, id: NodeId) -> bool {
    ops.draws(graph, id) && !is_from_state(graph, id)
}

/// Whether a node of a part draws numbers that it does not take from a state.
fn draws_anew(joint: &Graph, side: &Side, id: NodeId) -> bool {
    match added_wrapper(joint, side.graph, id) {
        Some(kind) => kind == Wrapper::Save,
        None => item_of_added(joint, side.graph, id).is_none() && is_draw(side.graph, &side.ops, id),
    }
}

/// What names the generator of a draw: its device, and the generator that it is given.
fn generator(graph: &Graph, id: NodeId) -> String {
    fn device(graph: &Graph, out: Out) -> Option<&str> {
        match out {
            Out::Tensor(tensor) => Some(graph.text(graph.tensor(tensor).device)),
            Out::Tuple(span) => graph.outs(span).iter().find_map(|&out| device(graph, out)),
            _ => None,
        }
    }
    let kwargs = graph.values(graph.node(id).kwargs).chunks_exact(2);
    let given = kwargs.filter(|pair| matches!(pair[0], Value::Str(key) if graph.text(key) == "generator"));
    let given = given.map(|pair| pair[1]).find(|&value| value != Value::None);
    format!("{:?} {given:?}", device(graph, graph.node(id).out))
}
