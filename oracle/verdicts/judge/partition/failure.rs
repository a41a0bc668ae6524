//! A candidate that raises on a joint graph: it has failed, unless nobody could have cut the graph.

use super::super::{Judgement, declined, left_open, refused};
use crate::graph::Graph;
use crate::judge::candidate::Refusal;
use crate::rules::partition::{Feasible, PartitionConfig, feasible};
use crate::rules::worker::Class;
use crate::rules::{AnalyzedGraph, Code};

/// Judges a candidate that gave no parts. What it declines it may decline; what it raises is a finding where the joint
/// graph can be cut.
pub(super) fn without_parts(joint: &Graph, config: &PartitionConfig, refusal: &Refusal) -> Judgement {
    let Some(failure) = refusal.failure.as_ref().filter(|failure| failure.class == Class::Error) else {
        return declined(refusal.clone());
    };
    let raised = &failure.title;
    match feasible(&AnalyzedGraph::new(joint), config) {
        Feasible::Yes => declined(refusal.clone()),
        Feasible::No(lines) => {
            let why = format!("no partition is possible: {} (it raised {raised})", lines.join("; "));
            refused(Code::NoPartition.because(why))
        }
        Feasible::Unknown(why) => {
            let doubt =
                format!("it raised {raised}, and whether the joint graph can be cut is not known: {why}");
            left_open(Code::MayHaveNoCut.because(doubt))
        }
    }
}
