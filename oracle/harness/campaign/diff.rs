//! Two implementations on the same cases: what got worse, and what got better.
//!
//! # The idea
//!
//! Each case is judged with both candidates. What the new one violates and the old one does not is worse; the other way
//! round it is better. A violation is known by its rule and kind, so that one exception in place of another is both.
//! The first case of each change is reduced while it stays that change.
//!
//! # What it does not do
//!
//! It keeps no store: a comparison is run again.

use super::progress::Progress;
use super::{Campaign, CampaignError, Distinct, Summary, key};
use crate::candidates::Candidate;
use crate::candidates::worker::panic_message;
use crate::case::Case;
use crate::generate::Wanted;
use crate::judge::{self, Options, Verdict};
use crate::reduce::{self, Pin};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// What changed, of one kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// The rule with its kind; or `refused`, `panic`.
    pub what: String,
    /// How many cases.
    pub cases: u64,
    /// The first of them.
    pub first: u64,
    /// Its reduced form; `None` of what is no rule.
    pub reduced: Option<Distinct>,
}

/// The difference between two candidates.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Diff {
    /// The names: the new one, the old one.
    pub names: (String, String),
    /// Cases judged.
    pub cases: u64,
    /// Cases on which both are judged alike.
    pub same: u64,
    /// Cases with a violation: by the new one, by the old one.
    pub violated: (u64, u64),
    /// Cases in which a pass did something: the new one's, the old one's.
    pub acted: (u64, u64),
    /// The signal that ended it early.
    pub stopped: Option<u8>,
    /// What the new one does wrong and the old one does not.
    pub worse: Vec<Change>,
    /// What the old one does wrong and the new one does not.
    pub better: Vec<Change>,
}

/// What is wrong with an outcome: what it is called, and the pin where it is a violation.
type Wrongs = BTreeMap<String, Option<Pin>>;

/// What became of a case: what is wrong, and whether the pass did something.
type Judged = (Wrongs, bool);

/// By what changed: how many cases, the first of them, and its pin.
type Counts = BTreeMap<String, (u64, u64, Option<Pin>)>;

impl Campaign<'_> {
    /// Holds the candidate against an older one.
    pub fn compare(&self, old: &dyn Candidate) -> Result<Diff, CampaignError> {
        let both = [self.candidate, old];
        let pool = self.pool()?;
        let wanted = self.wanted(&both);
        let names = (self.candidate.name().to_string(), old.name().to_string());
        let mut diff = Diff { names, ..Diff::default() };
        let (mut worse, mut better) = (Counts::new(), Counts::new());
        let started = Instant::now();
        let mut seen = Summary::new(&self.header()?);
        let progress = Progress::new(self.progress, self.limit, &seen);
        let mut batch = self.shard.0;
        while !self.stop.is_requested() {
            let Some(first) = batch.checked_mul(self.batch) else { break };
            let Some(end) = self.end_of_batch(first, started) else { break };
            let judged: Vec<[Judged; 2]> = pool.install(|| {
                self.until_stopped(first..end, |number| {
                    let judged = self.both(&both, &wanted, number);
                    progress.judged();
                    judged
                })
            });
            for (number, [(new, new_acted), (old, old_acted)]) in (first..).zip(&judged) {
                let has = |wrongs: &Wrongs| u64::from(wrongs.values().any(Option::is_some));
                diff.cases += 1;
                diff.same += u64::from(new == old);
                diff.violated.0 += has(new);
                diff.violated.1 += has(old);
                diff.acted.0 += u64::from(*new_acted);
                diff.acted.1 += u64::from(*old_acted);
                add(&mut worse, new, old, number);
                add(&mut better, old, new, number);
            }
            seen.total.cases = diff.cases;
            progress.show(&seen, started.elapsed());
            batch += self.shard.1;
        }
        progress.finish();
        diff.stopped = self.stop.signal();
        let reduced = |counts: Counts, wrong: &dyn Candidate, right: &dyn Candidate| -> Vec<Change> {
            let counts: Vec<_> = counts.into_iter().collect();
            let change = |(what, (cases, first, pin)): &(String, (u64, u64, Option<Pin>))| Change {
                what: what.clone(),
                cases: *cases,
                first: *first,
                reduced: pin.as_ref().map(|pin| {
                    let case = wanted.case(*first);
                    self.reduce_change(&case, *first, pin, wrong, right)
                }),
            };
            pool.install(|| counts.par_iter().map(change).collect())
        };
        diff.worse = reduced(worse, self.candidate, old);
        diff.better = reduced(better, old, self.candidate);
        Ok(diff)
    }

    fn both(&self, both: &[&dyn Candidate; 2], wanted: &Wanted, number: u64) -> [Judged; 2] {
        let case = wanted.case(number);
        let options = self.options(number);
        both.map(|candidate| wrongs(&case, candidate, &options))
    }

    /// The case made smaller while `wrong` breaks the rule on it and `right` does not.
    fn reduce_change(
        &self,
        case: &Case,
        number: u64,
        pin: &Pin,
        wrong: &dyn Candidate,
        right: &dyn Candidate,
    ) -> Distinct {
        let options = self.options(number);
        let mut shows = |case: &Case| {
            !self.stop.is_requested()
                && reduce::violates(case, wrong, &options, pin)
                && judge::judge(case, right, &options).is_ok_and(|judgement| !pin.is_shown(&judgement))
        };
        let reduced = reduce::reduce(case, self.reduction, &mut shows, &mut |_| {});
        let case = reduced.map_or_else(|_| case.clone(), |reduced| reduced.case);
        Distinct::new(pin, number, &case, wrong, &options)
    }
}

fn wrongs(case: &Case, candidate: &dyn Candidate, options: &Options) -> Judged {
    let judged = catch_unwind(AssertUnwindSafe(|| judge::judge(case, candidate, options)));
    let judgement = match judged {
        Ok(Ok(judgement)) => judgement,
        // The case is at fault, for both.
        Ok(Err(_)) => return (Wrongs::new(), false),
        Err(panic) => {
            return (Wrongs::from([(format!("panic: {}", panic_message(&*panic)), None)]), false);
        }
    };
    let wrongs = match judgement.verdict {
        // What the oracle cannot tell says nothing about either.
        Verdict::Sound | Verdict::Undecided(_) => Wrongs::new(),
        Verdict::Refused(_) => Wrongs::from([("refused".to_string(), None)]),
        Verdict::Violated(_) => {
            let pins = judgement.violated_rules().into_iter().map(|rule| Pin::of(&judgement, rule));
            pins.map(|pin| (key(pin.rule, pin.kind.as_deref()), Some(pin))).collect()
        }
    };
    (wrongs, judgement.acted)
}

/// Counts what is among `these` and not among `those`.
fn add(counts: &mut Counts, these: &Wrongs, those: &Wrongs, number: u64) {
    for (what, pin) in these.iter().filter(|(what, _)| !those.contains_key(*what)) {
        counts.entry(what.clone()).or_insert_with(|| (0, number, pin.clone())).0 += 1;
    }
}

impl Diff {
    /// For people.
    pub fn text(&self) -> String {
        let (new, old) = &self.names;
        let mut text = format!(
            "{new} against {old}: {} cases, {} judged alike; {} violated by {new}, {} by {old}\n",
            self.cases, self.same, self.violated.0, self.violated.1
        );
        for (name, acted, other) in [(new, self.acted.0, self.acted.1), (old, self.acted.1, self.acted.0)] {
            if acted == 0 {
                text += &format!(
                    "nothing was judged of {name}: it did nothing in any case; the other one in {other}\n"
                );
            }
        }
        if let Some(signal) = self.stopped {
            text += &format!("stopped by signal {signal}: this is what was done until then\n");
        }
        for (word, changes) in [("worse", &self.worse), ("better", &self.better)] {
            if changes.is_empty() {
                text += &format!("nothing got {word}\n");
                continue;
            }
            text += &format!("got {word}, by cases:\n");
            for change in changes {
                text += &format!("  {:>8}  {} (first: case {})\n", change.cases, change.what, change.first);
            }
        }
        for (word, changes) in [("worse", &self.worse), ("better", &self.better)] {
            for change in changes {
                let Some(finding) = &change.reduced else { continue };
                text += &format!("\n{word}: {}, reduced to {} nodes\n\n", change.what, finding.nodes);
                for line in finding.case.trim_end().lines().chain(["", finding.report.trim_end()]) {
                    for line in line.lines().chain(line.is_empty().then_some("")) {
                        text += format!("    {line}").trim_end();
                        text.push('\n');
                    }
                }
            }
        }
        text
    }

    /// For machines.
    pub fn json(&self) -> serde_json::Value {
        let changes = |changes: &[Change]| -> Vec<serde_json::Value> {
            let json = |c: &Change| serde_json::json!({"what": c.what, "cases": c.cases, "first": c.first, "reduced": c.reduced});
            changes.iter().map(json).collect()
        };
        serde_json::json!({
            "diff_version": "graph-oracle-diff/1",
            "new": self.names.0,
            "old": self.names.1,
            "cases": self.cases,
            "same": self.same,
            "violated_by_new": self.violated.0,
            "violated_by_old": self.violated.1,
            "acted_by_new": self.acted.0,
            "acted_by_old": self.acted.1,
            "stopped_by_signal": self.stopped,
            "worse": changes(&self.worse),
            "better": changes(&self.better),
        })
    }
}
