//! `graph/*`: the result is a graph at all.

use super::{Checked, Evidence};
use crate::analysis::fault::FaultKind;

/// The result has no faults that the input had not.
///
/// Faults with a rule of their own are left to it: order (`order/list-topological`, `order/acyclic`), references
/// to erased nodes (`bucket/users-rewired`), recorded results (`bucket/metadata-true`) and waits
/// (`comm/wait-before-use`).
pub(super) fn well_formed(evidence: &Evidence) -> Checked {
    let excused: Vec<String> = evidence.before.faults().iter().map(ToString::to_string).collect();
    let mut findings: Vec<super::Finding> = Vec::new();
    for (side, stage) in evidence.stages() {
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
                evidence.finding("graph/well-formed", stage, title).side_nodes(evidence, side, fault.node),
            );
        }
    }
    Checked::Findings(findings)
}

/// The input's recorded results follow from their operators, and lie within their storages.
pub(super) fn input_shapes(evidence: &Evidence) -> Checked {
    let before = &evidence.before;
    let mut findings = Vec::new();
    for fault in before.faults() {
        if !matches!(fault.kind, FaultKind::Shape { .. } | FaultKind::OutsideStorage { .. }) {
            continue;
        }
        findings.push(
            evidence
                .finding("graph/input-shapes", super::Stage::Before, fault.to_string())
                .before_nodes(evidence, fault.node),
        );
    }
    Checked::Findings(findings)
}
