//! `schedule/group-contiguous-convex`.

use super::super::Checked;
use super::evidence::{Evidence, Explain};
use crate::graph::NodeId;

/// Groups stand together, and could.
pub(super) fn contiguous_and_convex(evidence: &Evidence) -> Checked {
    let mut findings = Vec::new();
    let is_grouped = |side: &super::super::AnalyzedGraph| !side.graph.clusters.is_empty();
    if !evidence.before.iter().any(is_grouped) {
        return Checked::NotChecked("the graph has no groups".into());
    }
    for outcome in &evidence.outcomes {
        let before = evidence.before(outcome);
        let graph = before.graph;
        for cluster in &graph.clusters {
            let mut places: Vec<(u32, NodeId)> = cluster
                .members
                .iter()
                .filter_map(|&member| Some((*outcome.place.get(member.index())?.as_ref()?, member)))
                .collect();
            places.sort_unstable();
            let Some(gap) = places.windows(2).find(|pair| pair[1].0 != pair[0].0 + 1) else { continue };
            let between = outcome.after.graph.name(NodeId(gap[0].0 + 1));
            let (a, b) = (graph.name(gap[0].1), graph.name(gap[1].1));
            // Whether it could be contiguous at all.
            let is_member = |id: NodeId| cluster.members.contains(&id);
            let between_node = graph.find(between);
            let leaves = |from: NodeId| {
                before.dependences().after(from).iter().copied().find(|&next| !is_member(next))
            };
            let is_convex = !returns(evidence, outcome, &cluster.members);
            let why = match is_convex {
                true => "nothing must come between them".to_string(),
                false => {
                    let out = cluster.members.iter().find_map(|&member| leaves(member));
                    let out = out.map_or("a node outside".to_string(), |id| graph.name(id).to_string());
                    format!(
                        "the group is not convex: {out} and others must come between its members, so it cannot be one"
                    )
                }
            };
            let mut nodes = vec![gap[0].1, gap[1].1];
            nodes.extend(between_node);
            findings.push(
                evidence
                    .finding(
                        "schedule/group-contiguous-convex",
                        outcome,
                        format!("{between} stands between {a} and {b} of group {}", cluster.name),
                    )
                    .with_nodes(evidence, outcome, &nodes)
                    .with_fact(why)
                    .contrast(
                        "the members of a group stand together",
                        format!("{a} is at #{} and {b} at #{}", gap[0].0, gap[1].0),
                    ),
            );
        }
    }
    Checked::Findings(findings)
}

/// Whether a path leaves the members and comes back.
fn returns(evidence: &Evidence, outcome: &super::Outcome, members: &[NodeId]) -> bool {
    let before = evidence.before(outcome);
    let mut is_member = vec![false; before.graph.len()];
    for member in members {
        if let Some(mark) = is_member.get_mut(member.index()) {
            *mark = true;
        }
    }
    let mut left = vec![false; before.graph.len()];
    // The list before is in order, so one sweep sees every path.
    for id in before.graph.ids() {
        for (from, _) in before.dependences().before(id) {
            if left[from.index()] {
                if is_member[id.index()] {
                    return true;
                }
                left[id.index()] = true;
            }
            if is_member[from.index()] && !is_member[id.index()] {
                left[id.index()] = true;
            }
        }
    }
    false
}
