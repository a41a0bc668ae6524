//! What a campaign has done so far.

use super::Distinct;
use super::store::Header;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Reasons for refusals that are counted; so many for doubts too.
const REASONS: usize = 100;
/// Reasons for refusals that are told; so many for doubts too.
const TOLD: usize = 10;

/// What one batch gave; also the sums over all of them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// Its number.
    pub number: u64,
    /// Cases judged.
    pub cases: u64,
    /// Cases in which the pass had something to do.
    pub useful: u64,
    /// Cases that were violated.
    pub violated: u64,
    /// Violated cases in which everything is known, before they are reduced or when they have been.
    pub known: u64,
    /// Cases that the candidate refused.
    pub refused: u64,
    /// Cases that could not be decided.
    pub undecided: u64,
    /// Cases that could not be judged at all.
    pub invalid: u64,
    /// Cases on which the candidate or the oracle panicked.
    pub crashed: u64,
    /// The first case that could not be judged.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_invalid: Option<String>,
    /// The first panic.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_crash: Option<String>,
    /// The first violated case.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_violation: Option<u64>,
    /// Cases by violated rule, consequences included.
    pub rules: BTreeMap<String, u64>,
    /// Cases by their most fundamental violated rule.
    pub first_rules: BTreeMap<String, u64>,
    /// Cases that show a known finding, by where it is tracked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub known_links: BTreeMap<String, u64>,
    /// Reductions that gave nothing new, by rule.
    pub misses: BTreeMap<String, u64>,
    /// Refusals by reason, in which names and numbers are blanks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refusals: BTreeMap<String, u64>,
    /// Undecided cases by the first reason, likewise.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub doubts: BTreeMap<String, u64>,
    /// New distinct findings.
    pub found: Vec<Distinct>,
}

/// What a campaign has done so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// What was asked, in words.
    pub title: String,
    /// The sums over all batches, with all distinct findings in order of discovery.
    pub total: Batch,
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

    /// Whether a finding is among those so far.
    pub(super) fn has(&self, finding: &Distinct) -> bool {
        self.total.found.iter().any(|found| found.is_same(finding))
    }

    /// The findings of a rule.
    pub(super) fn kinds(&self, rule: &str) -> usize {
        self.total.found.iter().filter(|found| found.rule == rule).count()
    }

    /// Adds a batch, unless it was added before.
    pub(super) fn add(&mut self, batch: Batch) {
        if !self.batches.insert(batch.number) {
            return;
        }
        for finding in batch.found {
            if !self.has(&finding) {
                self.total.found.push(finding);
            }
        }
        let total = &mut self.total;
        total.cases += batch.cases;
        total.useful += batch.useful;
        total.violated += batch.violated;
        total.known += batch.known;
        total.refused += batch.refused;
        total.undecided += batch.undecided;
        total.invalid += batch.invalid;
        total.crashed += batch.crashed;
        total.first_invalid = total.first_invalid.take().or(batch.first_invalid);
        total.first_crash = total.first_crash.take().or(batch.first_crash);
        total.first_violation = match (total.first_violation, batch.first_violation) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let sums = [
            (&mut total.rules, batch.rules),
            (&mut total.first_rules, batch.first_rules),
            (&mut total.known_links, batch.known_links),
            (&mut total.misses, batch.misses),
            (&mut total.refusals, batch.refusals),
            (&mut total.doubts, batch.doubts),
        ];
        for (sum, counts) in sums {
            for (rule, count) in counts {
                *sum.entry(rule).or_insert(0) += count;
            }
        }
        // A reason may hold anything: the rarest ones are forgotten, so that memory stays bounded.
        for reasons in [&mut total.refusals, &mut total.doubts] {
            while reasons.len() > REASONS {
                let rarest =
                    reasons.iter().min_by_key(|(_, count)| **count).map(|(reason, _)| reason.clone());
                reasons.remove(&rarest.unwrap_or_default());
            }
        }
    }

    /// The summary for people: one paragraph, then the cases by rule.
    pub fn text(&self) -> String {
        let t = &self.total;
        let percent = if t.cases == 0 { 0.0 } else { 100.0 * t.useful as f64 / t.cases as f64 };
        let mut text = format!("{}\n{} cases, {percent:.1}% of them useful: ", self.title, t.cases);
        let sound = t.cases - t.violated - t.refused - t.undecided - t.invalid - t.crashed;
        let counts = [
            (sound, "sound"),
            (t.violated, "violated"),
            (t.refused, "refused"),
            (t.undecided, "undecided"),
            (t.invalid, "not judged"),
            (t.crashed, "crashed"),
        ];
        let mut words: Vec<String> = Vec::new();
        for (count, word) in counts {
            if count > 0 {
                words.push(format!("{count} {word}"));
            }
        }
        text += &words.join(", ");
        text.push('\n');
        if let Some(first) = &t.first_invalid {
            text += &format!("the first that could not be judged: {first}\n");
        }
        if let Some(first) = &t.first_crash {
            text += &format!("the first crash: {first}\n");
        }
        if let Some(first) = t.first_violation {
            text += &format!("the first violation is case {first}; cases by rule:\n");
        }
        for (rule, count) in &t.rules {
            text += &format!("  {count:>8}  {rule}\n");
        }
        for (title, reasons) in [("refused because", &t.refusals), ("undecided because", &t.doubts)] {
            let mut reasons: Vec<(&String, &u64)> = reasons.iter().collect();
            reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            if !reasons.is_empty() {
                text += &format!("{title}:\n");
            }
            for (reason, count) in reasons.into_iter().take(TOLD) {
                text += &format!("  {count:>8}  {reason}\n");
            }
        }
        if t.known > 0 {
            text += &format!("{} violated cases show known findings only\n", t.known);
        }
        for (link, count) in &t.known_links {
            text += &format!("  {count:>8}  {link}\n");
        }
        text
    }
}
