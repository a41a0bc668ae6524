//! Findings by cause: what people are shown of a campaign.
//!
//! One mistake of a pass breaks several rules on many shapes. Findings whose rules state one
//! [relation](crate::rules::relation) are one cause; of failures of a worker those of one kind, which is the error with all
//! names blanked. A cause is told by its smallest example.
//!
//! It cannot tell two mistakes apart that break one relation: all findings are still there, and each cause says in how
//! many ways it shows.

use super::{Distinct, Summary, key};
use crate::rules::relation;
use std::cmp::Reverse;

/// Findings of one cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cause<'s> {
    /// The rules that they break, that of the smallest example first.
    pub rules: Vec<&'s str>,
    /// Of failures of a worker their kind.
    pub kind: Option<&'s str>,
    /// Cases of the campaign whose most fundamental violation is one of these.
    pub cases: u64,
    /// In what ways it shows, the most frequent first, each with the number of findings.
    pub ways: Vec<(&'s str, usize)>,
    /// The findings, the smallest first.
    pub findings: Vec<&'s Distinct>,
}

impl Summary {
    /// The findings by cause, that of the most cases first.
    pub fn causes(&self) -> Vec<Cause<'_>> {
        let mut causes: Vec<Cause> = Vec::new();
        let mut found: Vec<&Distinct> = self.total.found.iter().collect();
        found.sort_by_key(|finding| (finding.nodes, finding.number));
        for finding in found {
            let is_of = |cause: &&mut Cause| {
                let same_relation =
                    cause.rules.first().is_some_and(|rule| relation(rule) == relation(&finding.rule));
                same_relation && cause.kind == finding.kind.as_deref()
            };
            match causes.iter_mut().find(is_of) {
                Some(cause) => cause.findings.push(finding),
                None => causes.push(Cause {
                    rules: vec![&finding.rule],
                    kind: finding.kind.as_deref(),
                    cases: 0,
                    ways: Vec::new(),
                    findings: vec![finding],
                }),
            }
        }
        for cause in &mut causes {
            for finding in &cause.findings {
                if !cause.rules.contains(&finding.rule.as_str()) {
                    cause.rules.push(&finding.rule);
                }
                match cause.ways.iter_mut().find(|(way, _)| *way == finding.way) {
                    Some((_, count)) => *count += 1,
                    None => cause.ways.push((&finding.way, 1)),
                }
            }
            cause.ways.sort_by_key(|(_, count)| Reverse(*count));
            let first = |rule: &&str| self.total.first_rules.get(&key(rule, cause.kind));
            cause.cases = cause.rules.iter().filter_map(first).sum();
        }
        causes.sort_by_key(|cause| Reverse(cause.cases));
        causes
    }
}
