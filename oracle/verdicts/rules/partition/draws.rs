//! Which random draws the parts make, and in what order.
//!
//! A generator hands out its numbers in the order of the draws, so a draw that is added, lost or moved before another
//! gives every later draw other numbers from the same seed. Draws of different devices or generators are independent.
//!
//! A draw that backward alone needs may be made there, after those of forward, wherever the joint graph has it: its
//! value is a new one all the same. Only who compares with a run of the joint graph from one seed can tell, so a note
//! says it.
//!
//! # What is no draw of its own
//!
//! What starts from a state that it is given repeats numbers or has a generator of its own, and functions of a seed
//! draw nothing. A second run that nothing pairs with the first is told by `partition/rng-paired`, and a write of
//! random numbers that is lost is told with the other writes.

use super::compose::{Composition, Wrapper, added_wrapper, is_from_state, item_of_added};
use super::evidence::PartitionEvidence;
use crate::analysis::Draws;
use crate::graph::{Graph, NodeId};
use crate::ops::Ops;
use crate::rules::{AnalyzedGraph, Finding};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

const RULE: &str = "partition/effects-once-in-order";

/// By generator: what forward and backward draw, by node of the joint graph, in order of execution.
type Drawn = BTreeMap<String, [Vec<NodeId>; 2]>;

/// What the parts draw of what the joint graph draws, and what they draw besides: which part, and its node.
fn drawn(evidence: &PartitionEvidence, composition: &Composition) -> (Drawn, Vec<(usize, NodeId)>) {
    let (joint, ops) = (evidence.joint.graph, &evidence.joint.ops);
    let draws = Draws::new(joint, ops);
    let (mut drawn, mut added) = (Drawn::new(), Vec::new());
    let composed = [&composition.of_forward, &composition.of_backward];
    for (place, (side, _)) in evidence.parts().into_iter().enumerate() {
        for id in side.graph.ids().filter(|&id| draws_anew(joint, side, id)) {
            let twin = composed[place][id.index()].and_then(|node| composition.twin[node.index()]);
            let of_part = if place == 0 { &evidence.of_forward } else { &evidence.of_backward };
            let is_wrapped = added_wrapper(joint, side.graph, id).is_some();
            match twin.filter(|&twin| (is_wrapped || of_part[id.index()].is_some()) && ops.draws(joint, twin))
            {
                Some(twin) => {
                    if let Some(draw) = draws.of(twin) {
                        drawn.entry(draws.generator(draw).to_string()).or_default()[place].push(twin);
                    }
                }
                None => added.push((place, id)),
            }
        }
    }
    (drawn, added)
}

/// Of what backward draws, what forward has not drawn.
fn own(forward: &[NodeId], backward: &[NodeId]) -> Vec<NodeId> {
    let again: FxHashSet<NodeId> = forward.iter().copied().collect();
    backward.iter().copied().filter(|id| !again.contains(id)).collect()
}

/// The first two draws in a row that the joint graph makes the other way round.
fn swapped(sequence: &[NodeId]) -> Option<[NodeId; 2]> {
    sequence.windows(2).find(|pair| pair[0] > pair[1]).map(|pair| [pair[0], pair[1]])
}

/// A line for people: the draws that backward makes after those of forward, and the joint graph before them.
pub(super) fn notes(evidence: &PartitionEvidence) -> Option<String> {
    let composition = evidence.composition.as_ref().ok()?;
    // What needs a gradient is drawn after all of forward, wherever it stands in the joint graph.
    let is_late = |forward: &[NodeId], id: &NodeId| {
        !evidence.needs_tangent[id.index()] && forward.last().is_some_and(|last| id < last)
    };
    let (drawn, _) = drawn(evidence, composition);
    let late: Vec<&str> = drawn
        .values()
        .flat_map(|[forward, backward]| {
            own(forward, backward).into_iter().filter(|id| is_late(forward, id)).collect::<Vec<_>>()
        })
        .map(|id| evidence.joint.graph.name(id))
        .collect();
    let (first, more) = (late.first()?, late.len() - 1);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    Some(format!(
        "{first}{more}: drawn in backward, after draws of forward that the joint graph makes later; from one seed the \
         numbers are others"
    ))
}

/// The draws that are added, lost or in another order than in the joint graph; and why that is not known, where it is
/// not known which generator is drawn from.
pub(super) fn strayed_draws(evidence: &PartitionEvidence) -> (Vec<Finding>, Option<String>) {
    let Ok(composition) = evidence.composition.as_ref() else { return Default::default() };
    let (joint, ops) = (evidence.joint.graph, &evidence.joint.ops);
    let (mut findings, mut doubt) = (Vec::new(), None);
    let (drawn, added) = drawn(evidence, composition);
    for (place, id) in added {
        let (side, part) = evidence.parts()[place];
        let name = side.graph.name(id);
        findings.push(
            evidence
                .finding(RULE, format!("{part} draws {name}, which the joint graph does not draw"))
                .nodes(evidence, [name])
                .fact(format!("{name} is {}, which draws random numbers", side.graph.target(id)))
                .contrast(
                    "the parts draw what the joint graph draws",
                    format!("{name} takes numbers that the draws after it are to have"),
                ),
        );
    }
    let kept: FxHashSet<NodeId> =
        composition.draws.iter().filter_map(|draw| composition.twin[draw.node.index()]).collect();
    let writes = |id| ops.get(joint, id).writes();
    let is_lost = |id: &NodeId| is_draw(joint, ops, *id) && evidence.live_joint[id.index()] && !writes(*id);
    for id in joint.ids().filter(is_lost).filter(|id| !kept.contains(id)) {
        let name = joint.name(id);
        findings.push(
            evidence
                .finding(RULE, format!("{name} is not drawn"))
                .nodes(evidence, [name])
                .fact(format!("{name} is {}, which draws random numbers", joint.target(id)))
                .contrast("the joint graph draws it, for something that it returns", "neither part does"),
        );
    }
    for (generator, [forward, backward]) in &drawn {
        let own = own(forward, backward);
        let sequences = [("forward draws", forward), ("backward draws", &own)];
        let found = sequences.iter().find_map(|(part, sequence)| Some((part, swapped(sequence)?)));
        let Some((part, [first, second])) = found else { continue };
        let (first, second) = (joint.name(first), joint.name(second));
        if generator.is_empty() {
            let why = format!("{part} {first} before {second}; whether they share a generator is not known");
            doubt = doubt.or(Some(why));
            continue;
        }
        findings.push(
            evidence
                .finding(RULE, format!("{part} {first} before {second}"))
                .nodes(evidence, [first, second])
                .contrast(
                    format!("the joint graph draws {second} first"),
                    "from one seed each has the numbers of the other",
                ),
        );
    }
    (findings, doubt)
}

/// Whether a node draws from a generator that goes on from draw to draw.
fn is_draw(graph: &Graph, ops: &Ops, id: NodeId) -> bool {
    ops.draws(graph, id) && !is_from_state(graph, id)
}

/// Whether a node of a part draws numbers that it does not take from a state.
fn draws_anew(joint: &Graph, side: &AnalyzedGraph, id: NodeId) -> bool {
    match added_wrapper(joint, side.graph, id) {
        Some(kind) => kind == Wrapper::Save,
        None => item_of_added(joint, side.graph, id).is_none() && is_draw(side.graph, &side.ops, id),
    }
}
