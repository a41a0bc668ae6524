//! `order/*`: the same nodes, in an order that keeps what was ordered.

use super::super::Checked;
use super::super::correspondence::Calls;
use super::super::streams::unlooked;
use super::evidence::{Evidence, Explain, Outcome};
use crate::analysis::Origin;
use crate::analysis::fault::Fault;
use crate::analysis::topological::{Violation, violations};
use crate::graph::{Graph, NodeId, Op};
use crate::rules::Code;
use std::collections::BTreeMap;

/// The same nodes.
pub(super) fn permutation(evidence: &Evidence) -> Checked {
    let mut findings = Vec::new();
    for outcome in &evidence.outcomes {
        let (before, after) = (evidence.before(outcome).graph, outcome.after.graph);
        let mut report = |title: String, node: Option<NodeId>, observed: String| {
            let finding = evidence.finding("order/permutation", outcome, title);
            let nodes: Vec<NodeId> = node.into_iter().collect();
            findings.push(
                finding
                    .with_nodes(evidence, outcome, &nodes)
                    .contrast("a scheduler changes positions only", observed),
            );
        };
        let is_structure = |fault: &&Fault| fault.is_fatal() && !fault.concerns_order();
        for fault in outcome.after.faults().iter().filter(is_structure) {
            report(fault.to_string(), before.find(&fault.name), "the graph cannot be executed".into());
        }
        let mut count: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        before.ids().for_each(|id| count.entry(before.name(id)).or_default().0 += 1);
        after.ids().for_each(|id| count.entry(after.name(id)).or_default().1 += 1);
        let mut is_permutation = true;
        for (name, (was, is)) in count.iter().filter(|(_, (was, is))| was != is) {
            is_permutation = false;
            let node = before.find(name);
            match (was, is) {
                (_, 0) => report(format!("{name} is gone"), node, "no node after is it".into()),
                (0, _) => report(format!("{name} was added"), None, "no node before is it".into()),
                (was, is) => report(
                    format!("{name} occurs {is} times"),
                    node,
                    format!("before, it occurs {was} times"),
                ),
            }
        }
        if is_permutation && let Some(difference) = edited(before, after, outcome) {
            report("the graph was edited".into(), None, difference);
        }
    }
    Checked::Findings(findings)
}

/// The first difference beyond order; ordering edges may be added.
fn edited(before: &Graph, after: &Graph, outcome: &Outcome) -> Option<String> {
    let order: Vec<NodeId> = outcome.place.iter().flatten().map(|&place| NodeId(place)).collect();
    let mut back = after.clone().reordered(&order);
    back.ordering.clone_from(&before.ordering);
    let calls = Calls::new(before, &back);
    before.difference_in_calls(&back, &|id| calls.same_arguments(id, id))
}

/// Data edges, and the places of inputs and outputs. Whoever calls the graph hands its inputs over by position.
pub(super) fn producer_before_reader(evidence: &Evidence) -> Checked {
    let mut findings = Vec::new();
    for outcome in &evidence.outcomes {
        let before = evidence.before(outcome);
        for id in before.graph.ids() {
            for &input in before.edges.inputs(id) {
                if !outcome.is_reversed(input, id) {
                    continue;
                }
                let (a, b) = (before.graph.name(input), before.graph.name(id));
                let title = format!("{b} runs before {a}, whose value it takes");
                findings.push(
                    evidence
                        .finding("order/producer-before-reader", outcome, title)
                        .with_nodes(evidence, outcome, &[id, input])
                        .with_fact(Origin::Data.describe(before.graph, input, id))
                        .contrast(
                            format!("{a} comes first"),
                            describe_places(outcome, input, id, before.graph),
                        ),
                );
            }
        }
        let is_input = |id: &NodeId| before.graph.node(*id).op == Op::Placeholder;
        let inputs: Vec<NodeId> = before.graph.ids().filter(is_input).collect();
        let swapped = inputs.windows(2).find(|pair| outcome.is_reversed(pair[0], pair[1]));
        if let Some(&[first, second]) = swapped {
            let (a, b) = (before.graph.name(first), before.graph.name(second));
            findings.push(
                evidence
                    .finding("order/producer-before-reader", outcome, format!("{b} is taken before {a}"))
                    .with_nodes(evidence, outcome, &[second, first])
                    .with_fact("the caller hands inputs over by position")
                    .contrast(
                        format!("{a} stays before {b}"),
                        describe_places(outcome, first, second, before.graph),
                    ),
            );
        }
        let after = &outcome.after;
        for violation in violations(after.graph, &after.edges) {
            if matches!(violation, Violation::UseBeforeDefinition { .. }) {
                continue;
            }
            let node = before.graph.find(after.graph.name(violation.node()));
            let nodes: Vec<NodeId> = node.into_iter().collect();
            findings.push(
                evidence
                    .finding("order/producer-before-reader", outcome, violation.describe(after.graph))
                    .with_nodes(evidence, outcome, &nodes),
            );
        }
    }
    Checked::Findings(findings)
}

/// Where two nodes stand after.
fn describe_places(outcome: &Outcome, first: NodeId, second: NodeId, graph: &Graph) -> String {
    let place =
        |id: NodeId| outcome.place[id.index()].map_or("nowhere".to_string(), |place| format!("at #{place}"));
    format!(
        "after, {} is {} and {} is {}",
        graph.name(second),
        place(second),
        graph.name(first),
        place(first)
    )
}

/// Everything that orders without passing a value.
pub(super) fn keep_ordering_edges(evidence: &Evidence) -> Checked {
    let (mut findings, mut doubts) = (Vec::new(), Vec::new());
    for outcome in &evidence.outcomes {
        let before = evidence.before(outcome);
        let graph = before.graph;
        let dependences = before.dependences();
        // Of several waits for a value the one that comes first lands it, whichever that is.
        let mut acts_at = outcome.place.clone();
        for id in graph.ids() {
            let first = before.collectives.first_wait(id).index();
            acts_at[first] = acts_at[first].min(outcome.place[id.index()]);
        }
        for after in graph.ids() {
            for (first, origin) in dependences.before(after) {
                let is_reversed = match origin {
                    Origin::Data => false,
                    Origin::Ordering => outcome.is_reversed(first, after),
                    _ => acts_at[first.index()].zip(acts_at[after.index()]).is_some_and(|(a, b)| a > b),
                };
                if !is_reversed {
                    continue;
                }
                let reason = origin.describe(graph, first, after);
                if !origin.certain() {
                    doubts.push(format!("{reason}; after, their order is reversed"));
                    continue;
                }
                let (a, b) = (graph.name(first), graph.name(after));
                findings.push(
                    evidence
                        .finding("order/keep-ordering-edges", outcome, format!("{b} now runs before {a}"))
                        .with_nodes(evidence, outcome, &[after, first])
                        .with_fact(reason)
                        .contrast(
                            format!("{a} stays before {b}"),
                            describe_places(outcome, first, after, graph),
                        ),
                );
            }
        }
        // Edges of the graph are still there for whoever sorts it next.
        let kept = &outcome.after;
        for edge in &graph.ordering {
            let (Some(a), Some(b)) = (
                outcome.place.get(edge.before.index()).copied().flatten(),
                outcome.place.get(edge.after.index()).copied().flatten(),
            ) else {
                continue;
            };
            if kept.edges.is_ordered(NodeId(a), NodeId(b)) {
                continue;
            }
            let (a, b) = (graph.name(edge.before), graph.name(edge.after));
            findings.push(
                evidence
                    .finding(
                        "order/keep-ordering-edges",
                        outcome,
                        format!("the ordering edge from {a} to {b} is lost"),
                    )
                    .with_nodes(evidence, outcome, &[edge.before, edge.after])
                    .contrast(
                        "the graph after has it too",
                        "it has not: the next sort may put them in any order",
                    ),
            );
        }
    }
    let moved = evidence.outcomes.iter().filter(|outcome| !outcome.place.is_sorted());
    let doubt = doubts.first().map(|doubt| Code::UncertainDependence.because(doubt));
    let unlooked = || unlooked(moved.map(|outcome| evidence.before(outcome)), "a schedule");
    Checked::found(findings, doubt.or_else(unlooked))
}
