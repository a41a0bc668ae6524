//! `partition/compared-saved`: what backward compares for equality is not computed again for it.
//!
//! # The idea
//!
//! The gradient of a maximum goes to where the input equals it. Where the maximum is saved and the input is computed
//! again, two kernels have computed the input: one fuses a product into a sum, the other does not, and in the last bit
//! the two differ. Then nothing is equal to the maximum. A value that is saved, or moved and selected from what is
//! saved, has the same bits wherever it is read.
//!
//! # What it does not do
//!
//! A maximum that is computed again from the same recomputation is equal to part of it, and is let pass. Equality that
//! is written in another way (a difference compared with 0) is not seen.

use super::super::{AnalyzedGraph, Checked};
use super::evidence::PartitionEvidence;
use crate::graph::{DtypeClass, NodeId, Value};
use crate::ops::{Binary, Kind, Unary};

const RULE: &str = "partition/compared-saved";

/// A comparison of backward of a value with another one that is made of it.
struct Compared {
    by: NodeId,
    value: NodeId,
    with: NodeId,
}

/// Such comparisons, by nodes of the joint graph.
fn compared(evidence: &PartitionEvidence) -> Vec<Compared> {
    let side = &evidence.joint;
    let kind = |id| side.ops.call(side.graph, id).map(|info| info.kind);
    let is_equality = |id: &NodeId| matches!(kind(*id), Some(Kind::Binary(Binary::Eq | Binary::Ne)));
    let mut found = Vec::new();
    for by in side.graph.ids().filter(is_equality).filter(|&id| evidence.runs_in_backward(id)) {
        let (Some(Value::Node(a)), Some(Value::Node(b))) =
            (side.graph.argument(by, 0, "self"), side.graph.argument(by, 1, "other"))
        else {
            continue;
        };
        for (value, with) in [(a, b), (b, a)] {
            let value = shown(side, value);
            if value != with && reaches(side, with)[value.index()] {
                found.push(Compared { by, value, with });
            }
        }
    }
    found
}

/// What a view, or several in a row, show.
fn shown(side: &AnalyzedGraph, mut id: NodeId) -> NodeId {
    while let (true, Some(Value::Node(base))) =
        (side.ops.call(side.graph, id).is_some_and(|info| info.is_view()), side.graph.argument(id, 0, "self"))
    {
        id = base;
    }
    id
}

/// What a node is made of, itself included.
fn reaches(side: &AnalyzedGraph, id: NodeId) -> Vec<bool> {
    let mut found = vec![false; side.graph.len()];
    let mut stack = vec![id];
    while let Some(id) = stack.pop() {
        if !std::mem::replace(&mut found[id.index()], true) {
            stack.extend(side.edges.inputs(id));
        }
    }
    found
}

/// Whether an operator may give other bits in another kernel.
fn rounds(kind: Kind) -> bool {
    use Binary::{Add, Div, Fmod, Mul, Pow, Remainder, Rmul, Rsub, Sub};
    match kind {
        Kind::Unary(unary) => !matches!(unary, Unary::Neg | Unary::Abs | Unary::Relu),
        Kind::Binary(binary) => {
            matches!(binary, Add | Sub | Rsub | Mul | Rmul | Div | Pow | Remainder | Fmod)
        }
        Kind::Fma
        | Kind::Pointwise
        | Kind::Reduce(_)
        | Kind::Cumsum
        | Kind::Matmul(_)
        | Kind::Opaque
        | Kind::Unknown => true,
        _ => false,
    }
}

/// No value is computed again to be compared with a saved value that is made of it.
pub(super) fn compared_saved(evidence: &PartitionEvidence) -> Checked {
    if !evidence.config.promises.compared_saved {
        return Checked::NotChecked("compared_saved is not promised".into());
    }
    let (joint, backward) = (&evidence.joint, &evidence.backward);
    let name = |id: NodeId| joint.graph.name(id);
    let mut findings = Vec::new();
    for Compared { by, value, with } in compared(evidence) {
        let is_float = joint
            .graph
            .tensor_of(value)
            .is_some_and(|tensor| matches!(tensor.dtype.class(), DtypeClass::Float | DtypeClass::Complex));
        let Some(again) = evidence.in_backward[value.index()].filter(|_| is_float) else { continue };
        let made_of = reaches(backward, again);
        let is_rounded = |&id: &NodeId| {
            made_of[id.index()] && backward.ops.call(backward.graph, id).is_some_and(|info| rounds(info.kind))
        };
        let Some(rounded) = backward.graph.ids().find(is_rounded) else { continue };
        let Some(other) = backward.graph.find(name(with)) else { continue };
        let other_made_of = reaches(backward, other);
        let mut is_made_of_value = vec![false; joint.graph.len()];
        is_made_of_value[value.index()] = true;
        for id in joint.graph.ids() {
            is_made_of_value[id.index()] |=
                joint.edges.inputs(id).iter().any(|id| is_made_of_value[id.index()]);
        }
        let from = evidence.saved.iter().find_map(|saved| {
            let (joint, input) = (saved.joint.filter(|&id| id != value)?, saved.backward?);
            (other_made_of[input.index()] && is_made_of_value[joint.index()]).then_some(joint)
        });
        let Some(from) = from else { continue };
        findings.push(
            evidence
                .finding(
                    RULE,
                    format!("{} is computed again, and compared with what forward made of it", name(value)),
                )
                .nodes(evidence, [name(value), name(by), name(from)])
                .fact(format!("{} compares it with {}, which is made of it", name(by), name(with)))
                .fact(format!("{} is saved; {} rounds in backward", name(from), backward.graph.name(rounded)))
                .contrast(
                    format!("{} is saved too, or nothing that is made of it", name(value)),
                    "two kernels compute it, and may differ in the last bit",
                ),
        );
    }
    Checked::Findings(findings)
}
