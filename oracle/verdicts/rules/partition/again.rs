//! Several partitions of one thing: on other ranks, of variants that should not matter, and no partition at all.

use super::super::{Checked, Finding};
use super::evidence::PartitionEvidence;
use crate::analysis::Collectives;
use crate::analysis::sequences::{Launch, Sequences};
use crate::graph::Graph;
use crate::ops::Ops;

/// All ranks save the same values, in whatever order, and communicate in the same order. Launches that meet stand for
/// one launch of the joint graph, or for equal ones: what two gathers of one size send is not mixed up.
pub(super) fn same_decision(evidence: &PartitionEvidence) -> Checked {
    const RULE: &str = "comm/spmd-same-decision";
    if evidence.further.ranks.is_empty() {
        return Checked::NotChecked("the parts on other ranks are not known".into());
    }
    let own_saved: Vec<&str> = evidence.saved.iter().map(|saved| saved.name.as_str()).collect();
    let own = [
        ("forward", Sequences::new(evidence.forward.graph, &evidence.forward.collectives)),
        ("backward", Sequences::new(evidence.backward.graph, &evidence.backward.collectives)),
    ];
    let mut findings = Vec::new();
    for &(rank, forward, backward) in &evidence.further.ranks {
        let saved = saved_names(forward, evidence.forward_outputs);
        let differ = |a: &[&str], b: &[&str]| -> Vec<String> {
            a.iter().filter(|name| !b.contains(name)).map(|name| name.to_string()).collect()
        };
        let (lacks, adds) = (differ(&own_saved, &saved), differ(&saved, &own_saved));
        if !lacks.is_empty() || !adds.is_empty() {
            let names: Vec<&str> = lacks.iter().chain(&adds).map(String::as_str).collect();
            let title = format!("rank {rank} saves other values than the first rank");
            findings.push(evidence.finding(RULE, title).nodes(evidence, names.iter().copied()).contrast(
                "ranks of one program make one choice",
                format!("rank {rank} does not save [{}] and saves [{}]", lacks.join(", "), adds.join(", ")),
            ));
        }
        for ((part, own), graph) in own.iter().zip([forward, backward]) {
            let ops = Ops::of(graph);
            let other = Sequences::new(graph, &Collectives::new(graph, &ops));
            if let Some(text) = first_mismatch(evidence, own, &other) {
                let title = format!("{part} on rank {rank} communicates differently");
                findings.push(
                    evidence.finding(RULE, title).contrast(
                        "the ranks of a group start the same communication in the same order",
                        text,
                    ),
                );
            }
        }
    }
    Checked::Findings(findings.into_iter().map(Finding::across_ranks).collect())
}

fn saved_names(forward: &Graph, forward_outputs: usize) -> Vec<&str> {
    let nodes = super::compose::returned_nodes(forward, forward_outputs);
    nodes.into_iter().map(|id| forward.name(id)).collect()
}

/// What a forward graph returns behind its first `forward_outputs` outputs, by name: what it saves.
pub fn returned_names(forward: &Graph, forward_outputs: usize) -> Vec<String> {
    saved_names(forward, forward_outputs).into_iter().map(str::to_string).collect()
}

/// Where two sequences part. Sizes may differ from rank to rank.
fn first_mismatch(evidence: &PartitionEvidence, a: &Sequences, b: &Sequences) -> Option<String> {
    let joint = evidence.joint.graph;
    let stand_for_one = |x: &Launch, y: &Launch| {
        let pair = joint.find(&x.name).zip(joint.find(&y.name));
        x.name == y.name || pair.is_none_or(|(a, b)| evidence.equal_nodes(a).contains(&b))
    };
    let groups = a.groups.iter().chain(&b.groups).map(|sequence| sequence.group.as_str());
    for group in groups {
        let (x, y) = (a.of(group), b.of(group));
        let same = |x: &Launch, y: &Launch| {
            (x.kind, &x.reduce_op, x.dtype, x.root) == (y.kind, &y.reduce_op, y.dtype, y.root)
                && stand_for_one(x, y)
        };
        let at = x
            .iter()
            .zip(y)
            .position(|(x, y)| !same(x, y))
            .or((x.len() != y.len()).then_some(x.len().min(y.len())));
        if let Some(at) = at {
            let tell = |launch: Option<&Launch>| launch.map_or("nothing".to_string(), ToString::to_string);
            return Some(format!(
                "on group {group}, launch {at} is {} on the first rank and {} here",
                tell(x.get(at)),
                tell(y.get(at))
            ));
        }
    }
    None
}

/// What does not matter does not change the choice.
pub(super) fn metamorphic_stable(evidence: &PartitionEvidence) -> Checked {
    if evidence.further.variants.is_empty() {
        return Checked::NotChecked("no variant was partitioned".into());
    }
    let mut own: Vec<&str> = evidence.saved.iter().map(|saved| saved.name.as_str()).collect();
    own.sort_unstable();
    let mut findings = Vec::new();
    for (change, saved) in &evidence.further.variants {
        let mut other: Vec<&str> = saved.iter().map(String::as_str).collect();
        other.sort_unstable();
        if own != other {
            let names: Vec<&str> = own
                .iter()
                .filter(|name| !other.contains(name))
                .chain(other.iter().filter(|name| !own.contains(name)))
                .copied()
                .collect();
            findings.push(
                evidence
                    .finding("partition/metamorphic-stable", format!("the choice changes with: {change}"))
                    .nodes(evidence, names.iter().copied())
                    .contrast(
                        format!("{} values are saved", own.len()),
                        format!("then it is {}", other.len()),
                    ),
            );
        }
    }
    Checked::Findings(findings)
}

/// A joint graph that can be partitioned is.
pub(super) fn total(evidence: &PartitionEvidence) -> Checked {
    let Some(reason) = &evidence.further.refused else {
        return Checked::Findings(Vec::new());
    };
    Checked::Findings(vec![
        evidence
            .finding("partition/total", "the partition was refused")
            .fact(format!("the reason given: {reason}"))
            .contrast(
                "the joint graph has no fault, and saving what backward needs is allowed",
                "the implementation gave no parts",
            ),
    ])
}
