//! A rule: what it says, and how its violations are found.
//!
//! Rules of one [`Family`] look at one kind of evidence. A catalogue lists them, most fundamental first: a violation of
//! an earlier rule may bring about violations of later ones.

use super::{Code, Finding, PassKind, Reason, Severity};

/// Rules that look at the same kind of evidence.
pub trait Family: 'static {
    /// All that they see.
    type Evidence<'a>;
}

/// A rule.
pub struct Rule<F: Family> {
    /// Its stable id, `family/name`.
    pub id: &'static str,
    /// How much its violation matters.
    pub severity: Severity,
    /// The passes whose outcomes it judges.
    pub passes: &'static [PassKind],
    /// What it states.
    pub statement: &'static str,
    /// Why it must hold.
    pub reason: &'static str,
    /// Looks for violations.
    pub check: for<'e, 'a> fn(&'e F::Evidence<'a>) -> Checked,
}

/// What became of the rules of a catalogue, in its order.
pub type Statuses = Vec<(&'static str, RuleStatus)>;

/// Applies rules one after the other: all findings in the order of the rules, and what became of each rule.
pub(super) fn check_each<F: Family>(
    rules: impl IntoIterator<Item = &'static Rule<F>>,
    evidence: &F::Evidence<'_>,
) -> (Vec<Finding>, Statuses) {
    let mut findings = Vec::new();
    let check = |rule: &'static Rule<F>| (rule.id, (rule.check)(evidence).settle(&mut findings));
    let statuses = rules.into_iter().map(check).collect();
    (findings, statuses)
}

/// How much a violation of the rule with this id matters.
pub(super) fn severity_in<F: Family>(catalogue: &[Rule<F>], id: &str) -> Severity {
    catalogue.iter().find(|rule| rule.id == id).map_or(Severity::Soundness, |rule| rule.severity)
}

/// What looking for violations of one rule gave.
#[derive(Clone, PartialEq, Debug)]
pub enum Checked {
    /// The rule was applied; these are its violations.
    Findings(Vec<Finding>),
    /// The rule does not apply or was not asked for, and why.
    NotChecked(String),
    /// The rule applies, but could not be decided, and why.
    Undecided(Reason),
}

impl Checked {
    /// The rule could not be decided, for a reason of this kind.
    pub(super) fn undecided(code: Code, message: impl Into<String>) -> Checked {
        Checked::Undecided(code.because(message))
    }

    /// Findings, or where there are none a doubt.
    pub(super) fn found(findings: Vec<Finding>, doubt: Option<Reason>) -> Checked {
        match doubt.filter(|_| findings.is_empty()) {
            Some(doubt) => Checked::Undecided(doubt),
            None => Checked::Findings(findings),
        }
    }

    /// What this makes of its rule; the findings are added to `findings`.
    pub(super) fn settle(self, findings: &mut Vec<Finding>) -> RuleStatus {
        match self {
            Checked::Findings(found) if found.is_empty() => RuleStatus::Holds,
            Checked::Findings(found) => {
                let count = found.len();
                findings.extend(found);
                RuleStatus::Violated(count)
            }
            Checked::NotChecked(why) => RuleStatus::NotChecked(why),
            Checked::Undecided(why) => RuleStatus::Undecided(why),
        }
    }
}

/// What became of one rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RuleStatus {
    /// Applied, nothing found.
    Holds,
    /// Applied, so many findings.
    Violated(usize),
    /// Not applied, and why.
    NotChecked(String),
    /// Applied without a decision, and why.
    Undecided(Reason),
}
