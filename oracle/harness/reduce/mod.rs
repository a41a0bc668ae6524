//! The reducer: the smallest case that still shows the same thing.
//!
//! # The idea
//!
//! A case is made smaller by edits of its graph, never of the bytes that it was generated from: nodes go together
//! with their uses, or are replaced by an operand; sizes, ranks and groups shrink; operators become simpler; features
//! and options are dropped. Each edit that leaves a valid graph is put to the caller's question ("is the same rule
//! still violated?"); what passes is kept, and the edits go on from there. Large edits come first, so that the number
//! of questions grows with the logarithm of what can go rather than with its size.
//!
//! Where ranks have graphs of their own, one of these for all ranks is tried first, then the same edit of all graphs,
//! then edits of each by itself.
//!
//! Guards come before work: the case must be valid and must show the thing, and the empty graph must not (a question
//! that everything answers with yes reduces everything to nothing).
//!
//! It ends when no edit is left, or when the budget of time or questions is used up; the best case so far is the
//! result, and `progress` is told of each.
//!
//! # What it does not do
//!
//! It promises no global minimum, and it does not touch a recorded outcome: what is reduced is what a candidate is
//! run on.

mod edits;
mod search;
#[cfg(test)]
mod tests;

mod shrink;

pub(crate) use search::emptied;
pub use search::{Budget, Guard, Reduced, reduce};
pub use shrink::Reducer;
#[cfg(any(test, feature = "proptest"))]
pub use shrink::cases;

use crate::candidates::{Candidate, Reference};
use crate::case::Case;
use crate::judge::{self, Judgement, Options, Verdict};
use crate::rules::{Finding, worker};

/// What a reduction keeps.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Pin {
    /// The rule.
    pub rule: &'static str,
    /// The kind of the finding, where findings of the rule have one ([`worker::kind`]); any, if `None`.
    pub kind: Option<String>,
}

impl From<&'static str> for Pin {
    fn from(rule: &'static str) -> Pin {
        Pin { rule, kind: None }
    }
}

impl Pin {
    /// The violation of `rule` in a judgement.
    pub fn of(judgement: &Judgement, rule: &'static str) -> Pin {
        let finding = findings(judgement).into_iter().find(|f| f.rule == rule);
        finding.map_or(Pin::from(rule), Pin::of_finding)
    }

    /// The violation that a finding tells.
    pub fn of_finding(finding: &Finding) -> Pin {
        Pin { rule: finding.rule, kind: worker::kind(finding).map(String::from) }
    }

    /// Whether a judgement shows it.
    pub fn is_shown(&self, judgement: &Judgement) -> bool {
        self.finding(judgement).is_some()
    }

    /// The finding of a judgement that tells it.
    pub fn finding<'j>(&self, judgement: &'j Judgement) -> Option<&'j Finding> {
        findings(judgement).into_iter().find(|finding| self.is_of(finding))
    }

    /// Whether it is the violation that a finding tells.
    pub fn is_of(&self, finding: &Finding) -> bool {
        finding.rule == self.rule && (self.kind.is_none() || worker::kind(finding) == self.kind.as_deref())
    }
}

fn findings(judgement: &Judgement) -> Vec<&Finding> {
    match &judgement.verdict {
        Verdict::Violated(findings) => findings.iter().flat_map(Finding::all).collect(),
        _ => Vec::new(),
    }
}

/// The question that pins a reduction: does `candidate` show it on the case, and does the reference violate nothing on
/// it? The second half keeps the case one that a correct implementation masters. Options that only the candidate has
/// are not held against the case.
pub fn violates(case: &Case, candidate: &dyn Candidate, options: &Options, pin: &Pin) -> bool {
    violates_so(case, candidate, options, &|judgement| pin.is_shown(judgement))
}

/// The same of any question about a judgement.
pub fn violates_so(
    case: &Case,
    candidate: &dyn Candidate,
    options: &Options,
    is_shown: &dyn Fn(&Judgement) -> bool,
) -> bool {
    let is_violated = |judgement: Judgement| matches!(judgement.verdict, Verdict::Violated(_));
    judge::judge(case, candidate, options).is_ok_and(|judgement| is_shown(&judgement))
        && (candidate.name() == Reference.name()
            || !judge::judge(case, &Reference, options).is_ok_and(is_violated))
}
