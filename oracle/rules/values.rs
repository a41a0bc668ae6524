//! `bucket/rank-semantics-equal`: what both graphs compute, by whichever ways of knowing apply.
//!
//! Three ways (see [`semantics`](crate::semantics)): numbers on every rank, terms, and extents. Each gives its own
//! answer, and a difference found by any of them is a finding. A way that does not apply says why; only where none
//! applies is the rule undecided.

use super::correspondence::Rewire;
use super::{Checked, Evidence, Stage};
use std::fmt;

/// A way to know values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ValueMethod {
    /// Executed with real numbers on every rank.
    Numbers,
    /// Executed with terms on every rank.
    Terms,
    /// Proved symbolically, at full size.
    Extents,
}

impl fmt::Display for ValueMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ValueMethod::Numbers => "numbers",
            ValueMethod::Terms => "terms",
            ValueMethod::Extents => "extents",
        })
    }
}

/// One difference between what the two graphs compute.
#[derive(Clone, PartialEq, Debug)]
pub struct ValueDifference {
    /// One line.
    pub title: String,
    /// Names of the nodes concerned, the most important first.
    pub nodes: Vec<String>,
    /// What the graph before gives.
    pub expected: String,
    /// What the graph after gives.
    pub found: String,
}

/// What one way of knowing says.
#[derive(Clone, PartialEq, Debug)]
pub enum ValueResult {
    /// Everything is equal; what was compared, in words.
    Equal(String),
    /// These differ.
    Different(Vec<ValueDifference>),
    /// It cannot tell, and why.
    Unknown(String),
}

/// What both graphs compute.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ValueEvidence {
    /// The answer of each way that was asked.
    pub results: Vec<(ValueMethod, ValueResult)>,
    /// Why none was asked.
    pub not_asked: Option<String>,
    /// For rewired references whose contents certainly differ: (rewire, what differs).
    pub wrong_contents: Vec<(Rewire, String)>,
}

impl ValueEvidence {
    /// No values.
    pub fn none(why: &str) -> ValueEvidence {
        ValueEvidence { not_asked: Some(why.to_string()), ..ValueEvidence::default() }
    }

    /// Gathers.
    pub fn gather(_: &Evidence, _: Asked) -> ValueEvidence {
        ValueEvidence::none("later")
    }

    /// What is wrong with the contents that a rewired reference reads.
    pub(super) fn rewired_contents(&self, rewire: &Rewire) -> Option<String> {
        self.wrong_contents.iter().find(|(r, _)| r == rewire).map(|(_, what)| what.clone())
    }
}

/// Outputs, mutations and effects are equal.
pub(super) fn rank_semantics_equal(evidence: &Evidence) -> Checked {
    let values = &evidence.values;
    if let Some(why) = &values.not_asked {
        return Checked::NotChecked(why.clone());
    }
    let mut findings: Vec<super::Finding> = Vec::new();
    let mut unknown = Vec::new();
    let mut equal = false;
    for (method, result) in &values.results {
        match result {
            ValueResult::Equal(_) => equal = true,
            ValueResult::Unknown(why) => unknown.push(format!("{method}: {why}")),
            ValueResult::Different(differences) => {
                for difference in differences {
                    let mut finding = evidence
                        .finding("bucket/rank-semantics-equal", Stage::After, difference.title.clone())
                        .then(format!("before, {}", difference.expected))
                        .however(format!("after, {} (by {method})", difference.found));
                    finding.nodes = difference.nodes.iter().map(|name| evidence.mention(name)).collect();
                    if !findings.iter().any(|f| f.title == finding.title) {
                        findings.push(finding);
                    }
                }
            }
        }
    }
    match findings.is_empty() && !equal {
        true => Checked::Undecided(unknown.join("; ")),
        false => Checked::Findings(findings),
    }
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Asked {}
