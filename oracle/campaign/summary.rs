//! What a campaign has done so far.

use super::Distinct;
use super::store::Header;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What one batch gave.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Batch {
    /// Its number.
    pub number: u64,
    /// Cases judged.
    pub cases: u64,
    /// Cases in which the pass had something to do.
    pub useful: u64,
    /// Cases that were violated.
    pub violated: u64,
    /// Violations whose reduced form is known.
    pub known: u64,
    /// Cases that the candidate refused.
    pub refused: u64,
    /// Cases that could not be decided.
    pub undecided: u64,
    /// Cases that could not be judged at all.
    pub invalid: u64,
    /// The first of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_invalid: Option<String>,
    /// The first violated case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_violation: Option<u64>,
    /// Violations by kind: the violated root rules, with a space between.
    pub kinds: BTreeMap<String, u64>,
    /// New distinct findings.
    pub found: Vec<Distinct>,
}

/// What a campaign has done so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// What was asked, in words.
    pub title: String,
    /// The sums over all batches; `found` is empty here.
    pub total: Batch,
    /// Distinct findings, in order of discovery.
    pub findings: Vec<Distinct>,
    /// Batches that are done.
    pub batches: BTreeSet<u64>,
}

impl Summary {
    pub(super) fn new(header: &Header) -> Summary {
        Summary { title: header.title(), ..Summary::default() }
    }

    /// The first batch of a shard that is not done.
    pub(super) fn next_batch(&self, (shard, of): (u64, u64)) -> u64 {
        let mut batch = shard;
        while self.batches.contains(&batch) {
            batch += of;
        }
        batch
    }

    /// Takes in a finding; a copy of it, if it is new.
    pub(super) fn insert(&mut self, finding: Distinct) -> Option<Distinct> {
        if self.findings.iter().any(|f| f.rule == finding.rule && f.shape == finding.shape) {
            return None;
        }
        self.findings.push(finding.clone());
        Some(finding)
    }

    /// Adds what a batch counted.
    pub(super) fn add(&mut self, batch: &Batch) {
        if !self.batches.insert(batch.number) {
            return;
        }
        let total = &mut self.total;
        total.cases += batch.cases;
        total.useful += batch.useful;
        total.violated += batch.violated;
        total.known += batch.known;
        total.refused += batch.refused;
        total.undecided += batch.undecided;
        total.invalid += batch.invalid;
        if total.first_invalid.is_none() {
            total.first_invalid.clone_from(&batch.first_invalid);
        }
        total.first_violation = match (total.first_violation, batch.first_violation) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        for (kind, count) in &batch.kinds {
            *total.kinds.entry(kind.clone()).or_insert(0) += count;
        }
    }

    /// Violations by rule.
    pub fn by_rule(&self) -> BTreeMap<&str, u64> {
        let mut by_rule = BTreeMap::new();
        for (kind, count) in &self.total.kinds {
            for rule in kind.split(' ') {
                *by_rule.entry(rule).or_insert(0) += count;
            }
        }
        by_rule
    }

    /// The summary for people.
    pub fn text(&self) -> String {
        let t = &self.total;
        let percent = |part: u64| if t.cases == 0 { 0.0 } else { 100.0 * part as f64 / t.cases as f64 };
        let mut text = format!(
            "{}: {} cases, {:.1}% of them useful; {} violated, {} refused, {} undecided\n",
            self.title,
            t.cases,
            percent(t.useful),
            t.violated,
            t.refused,
            t.undecided
        );
        if let Some(first) = &t.first_invalid {
            text += &format!("{} cases could not be judged, the first is {first}\n", t.invalid);
        }
        if let Some(first) = t.first_violation {
            text += &format!("the first violation is case {first}\n");
        }
        for (rule, count) in self.by_rule() {
            text += &format!("  {count:>8} {rule}\n");
        }
        if t.known > 0 {
            text += &format!("  {:>8} known findings\n", t.known);
        }
        text
    }
}
