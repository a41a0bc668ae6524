//! `graph/*`: the result is a graph at all.

use super::{AnalyzedGraph, Checked, Evidence, PassKind, Stage, aliases};
use crate::analysis::fault::{Fault, FaultKind, Subject};
use rustc_hash::FxHashSet;

/// The rule that the families of passes which give graphs have in common.
pub(super) const WELL_FORMED_ID: &str = "rewrite/well-formed";

/// The statement of `rewrite/well-formed`, which several families have, and its reason.
pub(super) const WELL_FORMED: (&str, &str) = (
    "The result, of a partition each part, is a graph, and so are its bodies: unique names, existing references, \
     definitions before uses where no other rule asks for them, arguments that fit the operator, one output, nested as \
     before, a consistent world.",
    "What is not a graph cannot be executed.",
);

/// The rule that reports faults of a subject in what a pass gives.
pub(super) fn rule_of(subject: Subject, pass: PassKind) -> &'static str {
    let is_partition = pass == PassKind::Partition;
    match subject {
        Subject::Structure => WELL_FORMED_ID,
        Subject::Order | Subject::Cycle if pass == PassKind::Rewrite => WELL_FORMED_ID,
        Subject::Order | Subject::Cycle if is_partition => "order/bw-order-valid",
        Subject::Order => "order/list-topological",
        Subject::Cycle => "order/acyclic",
        Subject::Waiting if is_partition => "comm/no-unwaited-crossing",
        Subject::Waiting => "rewrite/in-flight",
        Subject::Records if is_partition => "partition/metadata-true",
        Subject::Records => "rewrite/metadata",
    }
}

/// The faults of a graph after that are not in the graph before, and that no other rule of the pass reports.
pub(super) fn ill_formed<'f>(before: &AnalyzedGraph, faults: &'f [Fault], pass: PassKind) -> Vec<&'f Fault> {
    // Where a node stands in the list is the pass's to choose.
    let told = |fault: &Fault| (fault.name.clone(), fault.kind.to_string());
    let known: FxHashSet<(String, String)> = before.faults().iter().map(told).collect();
    let own = faults.iter().filter(|fault| rule_of(fault.kind.subject(), pass) == WELL_FORMED_ID);
    own.filter(|fault| !known.contains(&told(fault))).collect()
}

/// The result has no faults that the input had not. Those of some subjects have [a rule of their own](rule_of).
pub(super) fn well_formed(evidence: &Evidence) -> Checked {
    let mut findings: Vec<super::Finding> = Vec::new();
    let before = &evidence.before;
    let (expected, count) = before.graph.nesting();
    for (side, stage) in evidence.stages() {
        let (found, values) = side.graph.nesting();
        if values == count && found != expected {
            let [one, other] = apart(&expected, &found);
            let finding =
                evidence.finding(WELL_FORMED_ID, stage, "the results are nested in another way".to_string());
            findings.push(
                finding
                    .expected(format!("the graph before returns {one}"))
                    .observed(format!("it returns {other}")),
            );
        }
        if let Some(title) = before.graph.world.contradiction(&side.graph.world) {
            findings.push(
                evidence.finding(WELL_FORMED_ID, stage, title).expected("ranks and groups stay as they are"),
            );
        }
        // What the rules leave to another one is the same for bucketing and for repair.
        let pass = if evidence.policies.any_rewrite { PassKind::Rewrite } else { PassKind::Bucketing };
        for fault in ill_formed(before, evidence.faults_of(side), pass) {
            let title = fault.to_string();
            let is_repaired = fault.concerns_order() && !std::ptr::eq(side, &*evidence.after);
            if is_repaired || findings.iter().any(|f| f.title == title) {
                continue;
            }
            let finding =
                evidence.finding(WELL_FORMED_ID, stage, title).side_nodes(evidence, side, fault.node);
            findings.push(match &fault.kind {
                FaultKind::Cycle { nodes, .. } => finding.side_nodes(evidence, side, nodes.iter().copied()),
                FaultKind::ForwardReference { to, .. } => finding.side_nodes(evidence, side, [*to]),
                FaultKind::Dangling { to } => match before.graph.find(to) {
                    Some(erased) => finding
                        .before_nodes(evidence, [erased])
                        .observed(format!("the pass erased {to} and left this use of it")),
                    None => finding.observed(format!("no graph has a node {to}")),
                },
                _ => finding,
            });
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every fault of what a pass gives is reported: the rule of its subject is one of those that run for the pass.
    #[test]
    fn no_fault_is_left_to_a_rule_that_does_not_run() {
        let mut asked = 0;
        for &pass in PassKind::ALL {
            let rules: Vec<&str> = (pass.row().statements)()
                .iter()
                .filter(|rule| rule.passes.contains(&pass))
                .map(|rule| rule.id)
                .collect();
            if !rules.contains(&WELL_FORMED_ID) {
                continue;
            }
            asked += 1;
            for subject in Subject::ALL {
                let rule = rule_of(subject, pass);
                assert!(
                    rules.contains(&rule),
                    "{pass:?} leaves {subject:?} to {rule}, which it does not run"
                );
            }
        }
        assert_eq!(asked, 4, "rewrite, bucketing, repair and partition");
    }
}
