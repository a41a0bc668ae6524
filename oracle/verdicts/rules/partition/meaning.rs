//! What the parts compute together.

use super::super::Checked;
use super::compose::Origin;
use super::evidence::PartitionEvidence;
use crate::analysis::storages::{Mode, Storages};
use crate::graph::{NodeId, Op};
use crate::rules::{AnalyzedGraph, Code, Reason, aliases};

/// Outputs of the parts share what those of the joint graph share, by the schemas: partitioners merge equal
/// communication, and do not see that all who wait for it have one buffer then.
pub(super) fn aliases_kept(evidence: &PartitionEvidence) -> Checked {
    let Some(composed) = &evidence.composed else {
        return Checked::undecided(Code::NotComposed, "forward and backward do not compose");
    };
    let finding = |title, nodes: Vec<NodeId>| {
        let names = nodes.into_iter().map(|node| composed.graph.name(node));
        evidence.finding(aliases::ID, title).nodes(evidence, names).contrast("", "")
    };
    let storages = |side: &AnalyzedGraph| {
        Storages::new(side.graph, &side.ops, &side.edges, &side.collectives, Mode::Logical)
    };
    let (joint, parts) = (storages(&evidence.joint), storages(composed));
    let (joint, parts) = ((evidence.joint.graph, &joint), (composed.graph, &parts));
    aliases::aliases_kept(joint, parts, Some(evidence.forward_outputs), aliases::Leave::default(), &finding)
}

/// Forward, then backward, computes what the joint graph computes.
pub(super) fn semantics_equal(evidence: &PartitionEvidence) -> Checked {
    if let Err(why) = &evidence.composition {
        return Checked::undecided(Code::NotComposed, format!("forward and backward do not compose: {why}"));
    }
    let values = &evidence.values;
    let findings = values.findings(evidence);
    match (values.known(), &values.checked) {
        (None, Some(Checked::Undecided(why))) => {
            let structure = values.structure.iter().filter_map(|result| result.clone().err());
            let structure = structure.map(|why| why.behind("structure: "));
            Checked::Undecided(Reason::joined(&structure.chain([why.clone()]).collect::<Vec<_>>()))
        }
        (None, _) => Checked::undecided(Code::NotCompared, "no way to compare values was asked"),
        _ => Checked::found(findings, left_between(evidence).map(|why| Code::LeftBetween.because(why))),
    }
}

/// What forward leaves in an input that backward overwrites, where it is not known to be what the joint graph writes
/// there: the caller sees it between the parts, and no result shows it.
fn left_between(evidence: &PartitionEvidence) -> Option<String> {
    let composition = evidence.composition.as_ref().ok()?;
    let side = &evidence.joint;
    let versions = super::terms::Versions::new(side);
    let name = |id: NodeId| side.graph.name(id);
    versions.inputs.iter().find_map(|(input, writers)| {
        let of_forward = writers.iter().filter_map(|&id| Some((id, evidence.in_forward[id.index()]?)));
        let overwritten = writers.iter().find(|id| evidence.in_backward[id.index()].is_some())?;
        let (joint, composed) = evidence.terms()?;
        let is_other = |&(id, twin): &(NodeId, NodeId)| {
            let twin = composition.of_forward[twin.index()];
            twin.is_none_or(|twin| composed.of[twin.index()] != joint.of[id.index()])
        };
        let (writer, _) = of_forward.into_iter().find(is_other)?;
        Some(format!(
            "{} leaves in {input} what is not known to be the joint graph's; {} writes over it, so that no result shows it",
            name(writer),
            name(*overwritten)
        ))
    })
}

/// What backward computes again is what forward computed. Other terms may be equal values (a copy, a cast, two negations):
/// they convict where a run shows that the parts compute something else than the joint graph does.
pub(super) fn recompute_terms_equal(evidence: &PartitionEvidence) -> Checked {
    const RULE: &str = "partition/recompute-terms-equal";
    let (Some((joint, composed)), Ok(composition)) = (evidence.terms(), evidence.composition.as_ref()) else {
        return Checked::NotChecked("forward and backward do not compose".into());
    };
    let (mut findings, mut doubts) = (Vec::new(), Vec::new());
    let values = &evidence.values;
    if values.is_proved_equal() || values.known() == Some(true) {
        return Checked::Findings(findings);
    }
    let side = &evidence.joint;
    for (id, forward, backward) in evidence.recomputed() {
        // A second draw has a rule of its own, and so have effects.
        let special = side.ops.draws(side.graph, id)
            || side.ops.call(side.graph, id).is_some_and(|info| info.effect || info.writes());
        let pair = composition.of_forward[forward.index()].zip(composition.of_backward[backward.index()]);
        let Some((a, b)) = pair.filter(|_| !special) else { continue };
        if composed.of[a.index()] == composed.of[b.index()] {
            continue;
        }
        // The first node at which they part is the cause: its inputs are equal, or it takes others.
        let inputs = |graph: &crate::graph::Graph, id| -> Vec<String> {
            graph.inputs(id).into_iter().map(|input| graph.name(input).to_string()).collect()
        };
        let name = side.graph.name(id);
        let (of_a, of_b) =
            (inputs(evidence.forward.graph, forward), inputs(evidence.backward.graph, backward));
        let inherited = of_a == of_b
            && of_b.iter().any(|input| {
                let known = side.graph.find(input).map(|id| id.index());
                known.is_some_and(|index| {
                    side.graph.nodes()[index].op == Op::Call
                        && evidence.in_forward[index].is_some()
                        && evidence.in_backward[index].is_some()
                })
            });
        let same_as_joint = composed.of[b.index()] == joint.of[id.index()];
        if inherited || same_as_joint {
            continue;
        }
        if values.compared.witness != Some(true) {
            doubts.push(format!(
                "{name} is recomputed in another way; whether it is the same value is not known"
            ));
            continue;
        }
        findings.push(
            evidence
                .finding(RULE, format!("{name} is recomputed as another value"))
                .nodes(evidence, [name])
                .contrast(
                    format!("forward computes it from {}", of_a.join(", ")),
                    format!("backward computes it from {}", of_b.join(", ")),
                ),
        );
    }
    // A replayed draw takes what the first one took.
    for draw in &composition.draws {
        let again = composition.origin[draw.node.index()] == Origin::Backward;
        let first = composition.draws.iter().find(|first| first.key == draw.key);
        let Some(first) = first.filter(|first| again && first.node != draw.node) else { continue };
        if composed.of[first.node.index()] != composed.of[draw.node.index()] {
            findings.push(
                evidence
                    .finding(RULE, format!("{} is replayed on other inputs", draw.key))
                    .nodes(evidence, [draw.key.as_str()])
                    .contrast("a replay repeats the first draw", "its arguments are others"),
            );
        }
    }
    Checked::found(findings, doubts.into_iter().next().map(|doubt| Code::ComputedOtherwise.because(doubt)))
}
