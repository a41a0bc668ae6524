//! What a campaign has done so far.

use super::Distinct;
use super::header::Header;
use ir::words;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Reasons for refusals that are counted; so many for doubts too.
const REASONS: usize = 100;
/// Reasons for refusals that are told; so many for doubts too.
const SHOWN: usize = 10;
/// Missing shards that are told.
const SHARDS: usize = 16;
/// Cases of a pass, in none of which it did anything, after which this is no accident.
const IDLE: u64 = 32;

/// What one batch gave; also the sums over all of them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// Its number.
    pub number: u64,
    /// Cases judged.
    pub cases: u64,
    /// Whether a stop was asked for before its findings were reduced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// Cases in which the pass did something.
    pub useful: u64,
    /// Sound cases in which the pass did nothing and the reference did something.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left: u64,
    /// The first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_left: Option<u64>,
    /// By pass: the cases that were judged, and those in which it did something.
    pub acts: BTreeMap<String, (u64, u64)>,
    /// Cases that were violated.
    pub violated: u64,
    /// Violated cases in which everything is known, before they are reduced or when they have been.
    pub known: u64,
    /// Cases that the candidate refused.
    pub refused: u64,
    /// Cases that could not be decided.
    pub undecided: u64,
    /// The first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_undecided: Option<u64>,
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
    /// Refusals by the [kind](crate::rules::Reason::kind) of their reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refusals: BTreeMap<String, u64>,
    /// Undecided cases by the code of their first reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub doubts: BTreeMap<String, u64>,
    /// New distinct findings.
    pub found: Vec<Distinct>,
}

/// How a run of a campaign ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Ending {
    /// At its limit.
    #[default]
    Whole,
    /// By a signal: its number.
    Stopped(u8),
    /// Because something could not be written, in words. What was found is in the summary.
    Failed(String),
}

/// What a campaign has done so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// What was asked, in words.
    pub title: String,
    /// The sums over all batches, with all distinct findings in order of their cases.
    pub total: Batch,
    /// Batches that are done, by their numbers.
    pub batches: BTreeMap<u64, Batch>,
    /// Of merged stores: by how many shards there are, those that are among them.
    pub shards: BTreeMap<u64, BTreeSet<u64>>,
    /// How the run ended.
    pub ending: Ending,
}

impl Summary {
    pub(super) fn new(header: &Header) -> Summary {
        Summary { title: header.title(), ..Summary::default() }
    }

    /// Whether the first `cases` cases of a batch are done.
    pub(super) fn has(&self, batch: u64, cases: u64) -> bool {
        self.batches.get(&batch).is_some_and(|batch| batch.length() >= (cases, true))
    }

    /// What was known before a batch: the sums over all that come before it.
    pub(super) fn before(&self, batch: u64) -> Cow<'_, Batch> {
        match self.batches.last_key_value() {
            Some((&last, _)) if last >= batch => {
                Cow::Owned(sum(self.batches.range(..batch).map(|(_, batch)| batch)))
            }
            _ => Cow::Borrowed(&self.total),
        }
    }

    /// Adds a batch. Of two with one number the longer one counts; of two that are as long the findings of both.
    pub(super) fn add(&mut self, batch: Batch) {
        let is_next = self.batches.last_key_value().is_none_or(|(&last, _)| last < batch.number);
        if is_next {
            self.total.add(&batch);
        }
        let batch = match self.batches.remove(&batch.number) {
            Some(other) => other.or(batch),
            None => batch,
        };
        self.batches.insert(batch.number, batch);
        if !is_next {
            self.total = sum(self.batches.values());
        }
    }

    /// The passes that did nothing in any of so many cases that it is no accident, with the cases; all passes, where
    /// the campaign did nothing at all. What they are worth was not judged.
    pub fn idle(&self) -> Vec<(&str, u64)> {
        let acts = self.total.acts.iter();
        let idle = |cases: u64, acted: u64| acted == 0 && (cases >= IDLE || self.total.useful == 0);
        acts.filter(|(_, (cases, acted))| idle(*cases, *acted))
            .map(|(p, (cases, _))| (p.as_str(), *cases))
            .collect()
    }

    /// Shards that are missing, where that is known: of how many, and which. Shards of several divisions are whole if
    /// those of one are.
    pub fn missing_shards(&self) -> Option<(u64, Vec<u64>)> {
        let missing = |(&of, there): (&u64, &BTreeSet<u64>)| {
            let missing: Vec<u64> = (0..of).filter(|shard| !there.contains(shard)).take(SHARDS).collect();
            (of, missing)
        };
        let all: Vec<(u64, Vec<u64>)> = self.shards.iter().map(missing).collect();
        match all.iter().any(|(_, missing)| missing.is_empty()) {
            true => None,
            false => all.into_iter().next_back(),
        }
    }

    /// Whether nothing was judged: there was no case in which the candidate did something.
    pub fn judged_nothing(&self) -> bool {
        self.total.useful == 0
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The sums over batches in order of their numbers.
fn sum<'b>(batches: impl Iterator<Item = &'b Batch>) -> Batch {
    let mut total = Batch::default();
    batches.for_each(|batch| total.add(batch));
    total
}

impl Batch {
    /// Whether a finding is among those so far.
    pub(super) fn has(&self, finding: &Distinct) -> bool {
        self.found.iter().any(|found| found.is_same(finding))
    }

    /// The findings of a rule.
    pub(super) fn kinds(&self, rule: &str) -> usize {
        self.found.iter().filter(|found| found.rule == rule).count()
    }

    /// How far it came: its cases, and whether their findings are reduced.
    pub(super) fn length(&self) -> (u64, bool) {
        (self.cases, !self.stopped)
    }

    /// The longer of two with one number; of two that are as long always the same one, with the findings of both.
    fn or(self, other: Batch) -> Batch {
        let rank =
            |batch: &Batch| (batch.length(), Reverse(serde_json::to_string(batch).unwrap_or_default()));
        let (mut better, worse) = match rank(&self) >= rank(&other) {
            true => (self, other),
            false => (other, self),
        };
        if better.length() == worse.length() {
            better.found.extend(worse.found);
            better.found.sort_by(|a, b| (a.number, &a.rule, &a.case).cmp(&(b.number, &b.rule, &b.case)));
            let found = std::mem::take(&mut better.found);
            for finding in found {
                if !better.has(&finding) {
                    better.found.push(finding);
                }
            }
        }
        better
    }

    /// Whether the counts can be those of a batch of this campaign; if not, why.
    pub(super) fn consistent(&self, campaign: &Header) -> Result<(), String> {
        let (shard, shards) = campaign.shard;
        let first = self.number.checked_mul(campaign.batch);
        let Some(first) = first.filter(|_| self.number.checked_rem(shards) == Some(shard)) else {
            return Err(format!("there is no batch {} in shard {shard}/{shards}", self.number));
        };
        let sum = |counts: &BTreeMap<String, u64>| counts.values().fold(0u64, |a, &b| a.saturating_add(b));
        let kinds = [self.violated, self.refused, self.undecided, self.invalid, self.crashed];
        let is_ours = |number: u64| number >= first && number - first < self.cases;
        let checks = [
            (self.cases <= campaign.batch, "more cases than a batch has"),
            (kinds.iter().fold(0u64, |a, &b| a.saturating_add(b)) <= self.cases, "more verdicts than cases"),
            (
                self.useful <= self.cases && self.violated <= self.useful,
                "other useful cases than there can be",
            ),
            (
                self.rules.values().all(|&count| count <= self.violated),
                "more cases of a rule than violated ones",
            ),
            (sum(&self.first_rules) <= self.violated, "more first rules than violated cases"),
            (sum(&self.refusals) == self.refused, "other reasons for refusals than refused cases"),
            (sum(&self.doubts) == self.undecided, "other doubts than undecided cases"),
            (self.first_violation.is_none_or(is_ours), "a first violation elsewhere"),
            (self.first_undecided.is_none_or(is_ours), "a first undecided case elsewhere"),
            (
                self.left <= self.cases - self.useful.min(self.cases),
                "more cases left alone than there can be",
            ),
            (
                self.first_left.is_some() == (self.left > 0),
                "a first case left alone without a count, or none with one",
            ),
            (self.first_left.is_none_or(is_ours), "a first case left alone elsewhere"),
            (self.found.iter().all(|finding| is_ours(finding.number)), "a finding elsewhere"),
        ];
        match checks.iter().find(|(holds, _)| !holds) {
            Some((_, why)) => Err(format!("batch {} has {why}", self.number)),
            None => Ok(()),
        }
    }

    /// Adds a batch to a sum.
    fn add(&mut self, batch: &Batch) {
        for finding in &batch.found {
            if !self.has(finding) {
                self.found.push(finding.clone());
            }
        }
        for (pass, (cases, acted)) in &batch.acts {
            let sum = self.acts.entry(pass.clone()).or_insert((0, 0));
            *sum = (sum.0 + cases, sum.1 + acted);
        }
        let total = self;
        total.cases += batch.cases;
        total.useful += batch.useful;
        total.left += batch.left;
        total.violated += batch.violated;
        total.known += batch.known;
        total.refused += batch.refused;
        total.undecided += batch.undecided;
        total.invalid += batch.invalid;
        total.crashed += batch.crashed;
        total.first_invalid = total.first_invalid.take().or(batch.first_invalid.clone());
        total.first_crash = total.first_crash.take().or(batch.first_crash.clone());
        let earlier = |a: Option<u64>, b: Option<u64>| [a, b].into_iter().flatten().min();
        total.first_violation = earlier(total.first_violation, batch.first_violation);
        total.first_left = earlier(total.first_left, batch.first_left);
        total.first_undecided = earlier(total.first_undecided, batch.first_undecided);
        let sums = [
            (&mut total.rules, &batch.rules),
            (&mut total.first_rules, &batch.first_rules),
            (&mut total.known_links, &batch.known_links),
            (&mut total.misses, &batch.misses),
            (&mut total.refusals, &batch.refusals),
            (&mut total.doubts, &batch.doubts),
        ];
        for (sum, counts) in sums {
            for (rule, count) in counts {
                *sum.entry(rule.clone()).or_insert(0) += count;
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
}

impl Summary {
    /// Why it cannot be said that nothing is there to be found: it was not done to its end, or judged nothing of a
    /// pass.
    pub fn open(&self) -> Option<String> {
        match &self.ending {
            Ending::Stopped(signal) => return Some(format!("it was stopped by signal {signal}")),
            Ending::Failed(why) => return Some(why.clone()),
            Ending::Whole => {}
        }
        if let Some((of, _)) = self.missing_shards() {
            return Some(format!("some of its {of} shards are missing"));
        }
        let idle: Vec<&str> = self.idle().into_iter().map(|(pass, _)| pass).collect();
        match (self.judged_nothing(), &idle[..]) {
            (true, []) => Some("nothing was judged".to_string()),
            (false, []) => None,
            (_, idle) => Some(format!("nothing was judged of {}", idle.join(", "))),
        }
    }

    /// How many cases came to what; zeros too.
    pub fn outcomes(&self) -> [(&'static str, u64); 6] {
        let t = &self.total;
        [
            ("sound", t.cases - t.violated - t.refused - t.undecided - t.invalid - t.crashed),
            ("violated", t.violated),
            ("refused", t.refused),
            ("undecided", t.undecided),
            ("not judged", t.invalid),
            ("crashed", t.crashed),
        ]
    }

    /// The summary for people: one paragraph.
    pub fn text(&self) -> String {
        let t = &self.total;
        let percent = if t.cases == 0 { 0.0 } else { 100.0 * t.useful as f64 / t.cases as f64 };
        let mut text = format!("{}\n  {} cases, {percent:.1}% of them useful: ", self.title, t.cases);
        let mut counted: Vec<String> = Vec::new();
        for (word, count) in self.outcomes() {
            if count > 0 {
                counted.push(format!("{count} {word}"));
            }
        }
        text += &counted.join(", ");
        if !t.found.is_empty() {
            let causes = words::count(self.causes().len(), "cause");
            text += &format!("; {causes} ({})", words::count(t.found.len(), "finding"));
        }
        text.push('\n');
        for (pass, cases) in self.idle() {
            text += &format!("nothing was judged of {pass}: it did nothing in any of its {cases} cases\n");
        }
        if let Some(first) = t.first_left {
            let cases = words::count(t.left as usize, "sound case");
            text += &format!(
                "in {cases} it did nothing where the reference did something; the first is case {first}\n"
            );
        }
        if let Some((of, missing)) = self.missing_shards() {
            let there = self.shards.get(&of).map_or(0, BTreeSet::len);
            let names: Vec<String> = missing.iter().map(|shard| format!("{shard}/{of}")).collect();
            let names = match of as usize - there > missing.len() {
                true => format!("{}, ...", names.join(", ")),
                false => names.join(", "),
            };
            text += &format!("partial: {there} of {of} shards are there; missing: {names}\n");
        }
        match &self.ending {
            Ending::Whole => {}
            Ending::Stopped(signal) => {
                text += &format!("stopped by signal {signal}: this is what was done until then\n")
            }
            Ending::Failed(_) => {
                text += "ended because something could not be written: this is what was done until then\n"
            }
        }
        if let Some(first) = &t.first_invalid {
            text += &format!("the first that could not be judged: {first}\n");
        }
        if let Some(first) = &t.first_crash {
            text += &format!("the first crash: {first}\n");
        }
        for (title, reasons) in [("refused because", &t.refusals), ("undecided because", &t.doubts)] {
            let mut reasons: Vec<(&String, &u64)> = reasons.iter().collect();
            reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            if let [(reason, count)] = &reasons[..] {
                text += &format!("  {title} {reason} ({count})\n");
                continue;
            }
            if !reasons.is_empty() {
                text += &format!("  {title}:\n");
            }
            for (reason, count) in reasons.into_iter().take(SHOWN) {
                text += &format!("  {count:>8}  {reason}\n");
            }
        }
        if let Some(first) = t.first_undecided {
            text += &format!("the first that is undecided: case {first}\n");
        }
        if [t.first_left, t.first_undecided].iter().any(Option::is_some)
            || [&t.first_invalid, &t.first_crash].into_iter().any(Option::is_some)
        {
            text += "the same command with --case N prints case N\n";
        }
        if t.known > 0 {
            text += &format!("{} violated cases show known findings only\n", t.known);
        }
        for (link, count) in &t.known_links {
            text += &format!("  {count:>8}  {link}\n");
        }
        text
    }

    /// The cases by rule, a line each, and which was the first.
    pub fn by_rule(&self) -> String {
        let first = self.total.first_violation;
        let first =
            first.map_or(String::new(), |first| format!("  the first violation is case {first}; by rule:\n"));
        self.total.rules.iter().fold(first, |text, (rule, count)| text + &format!("  {count:>8}  {rule}\n"))
    }
}
