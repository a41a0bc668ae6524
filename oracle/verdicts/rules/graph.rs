//! `graph/*`: the result is a graph at all.

use super::{AnalyzedGraph, Checked, Evidence, Stage, aliases};
use crate::analysis::fault::{Fault, FaultKind};

/// The statement of `rewrite/well-formed`, which several families have, and its reason.
pub(super) const WELL_FORMED: (&str, &str) = (
    "The result, of a partition each part, is a graph: unique names, existing references, arguments that fit the operator, \
     one output, nested as before, a consistent world.",
    "What is not a graph cannot be executed.",
);

/// The result has no faults that the input had not.
///
/// Faults with a rule of their own are left to it: order (`order/list-topological`, `order/acyclic`), references
/// to erased nodes (`bucket/users-rewired`), recorded results (`rewrite/metadata`) and waits
/// (`rewrite/in-flight`).
pub(super) fn well_formed(evidence: &Evidence) -> Checked {
    let excused: Vec<String> = evidence.before.faults().iter().map(ToString::to_string).collect();
    let mut findings: Vec<super::Finding> = Vec::new();
    let (expected, count) = evidence.before.graph.nesting();
    for (side, stage) in evidence.stages() {
        let (found, values) = side.graph.nesting();
        if values == count && found != expected {
            let [one, other] = apart(&expected, &found);
            let finding = evidence.finding(
                "rewrite/well-formed",
                stage,
                "the results are nested in another way".to_string(),
            );
            findings.push(
                finding
                    .expected(format!("the graph before returns {one}"))
                    .observed(format!("it returns {other}")),
            );
        }
        if let Some(title) = evidence.before.graph.world.contradiction(&side.graph.world) {
            findings.push(
                evidence
                    .finding("rewrite/well-formed", stage, title)
                    .expected("ranks and groups stay as they are"),
            );
        }
        for fault in evidence.faults_of(side) {
            let elsewhere = matches!(
                fault.kind,
                FaultKind::Dangling { .. } | FaultKind::Shape { .. } | FaultKind::IdleWait { .. }
            ) || fault.concerns_order();
            if elsewhere {
                continue;
            }
            let title = fault.to_string();
            if excused.contains(&title) || findings.iter().any(|f| f.title == title) {
                continue;
            }
            findings.push(
                evidence.finding("rewrite/well-formed", stage, title).side_nodes(evidence, side, fault.node),
            );
        }
    }
    Checked::Findings(findings)
}

/// Two nestings where they part.
fn apart(one: &str, other: &str) -> [String; 2] {
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    [one, other].map(|text| {
        let (start, end) = (same.saturating_sub(12), (same + 24).min(text.len()));
        let dots = |is_cut: bool| if is_cut { "..." } else { "" };
        format!("{}{}{}", dots(start > 0), &text[start..end], dots(end < text.len()))
    })
}

/// Outputs share what they shared before.
pub(super) fn aliases_kept(evidence: &Evidence) -> Checked {
    let finding =
        |title, node| evidence.finding(aliases::ID, Stage::After, title).after_nodes(evidence, node);
    let (before, after) = (&evidence.before, &evidence.after);
    let after = (after.graph, after.storages());
    aliases::aliases_kept(
        (before.graph, before.storages()),
        after,
        None,
        evidence.policies.allowed.aliases,
        &finding,
    )
}

/// A line for people where what the input records contradicts its operators: sizes that do not fit each other, as hints
/// of sizes that depend on data often do not, or a tensor that reaches past its storage. No pass is at fault for that.
pub(crate) fn contradicting_records(before: &AnalyzedGraph) -> Option<String> {
    let contradicts =
        |fault: &&Fault| matches!(fault.kind, FaultKind::Shape { .. } | FaultKind::OutsideStorage { .. });
    let mut faults = before.faults().iter().filter(contradicts);
    let first = faults.next()?;
    let others = match faults.count() {
        0 => String::new(),
        n => format!("; {n} more like it"),
    };
    Some(format!(
        "input: its records contradict its operators, so these calls count as unknown functions of their inputs: {first}{others}"
    ))
}
