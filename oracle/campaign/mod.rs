//! A campaign: many generated cases, judged in parallel, until something breaks.
//!
//! # The idea
//!
//! Case `i` of a campaign is generated from the campaign's seed and `i`, so what is found does not depend on the
//! number of jobs. Cases are judged in batches; when a batch is done its violations are taken in order of `i`:
//! known ones are counted, the first ones of each kind are reduced, and two findings are one if they break the same
//! rule on the same reduced shape. After each batch a line goes to the store, so that a killed campaign goes on
//! where it was, with nothing lost or counted twice.
//!
//! A shard takes every `n`-th batch; the stores of shards merge into one summary.
//!
//! # What it does not do
//!
//! It keeps no case that was sound. Time limits end it between batches only, so that the last line is always true.

mod finding;
mod known;
mod merge;
mod progress;
mod store;
mod summary;

pub use finding::Distinct;
pub use known::{Known, KnownList};
pub use merge::merge;
pub use store::{Store, StoreError};
pub use summary::Summary;

use crate::candidates::Candidate;
use crate::case::Case;
use crate::generate;
use crate::judge::{self, Options, Verdict};
use crate::reduce::{self, Budget};
use crate::rules::PassKind;
use progress::Progress;
use rayon::prelude::*;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Cases in a batch: a few tenths of a second of work on one core, so that a stop loses little.
pub const BATCH: u64 = 512;

/// Violations of one kind (the same set of violated rules) that are reduced. Further ones are counted only.
const REDUCED_PER_KIND: u64 = 3;

/// When a campaign ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// After so many cases.
    Cases(u64),
    /// After so much time, at the end of a batch.
    Time(Duration),
}

/// What a campaign is asked to do.
pub struct Campaign<'a> {
    /// The pass.
    pub pass: PassKind,
    /// Who is judged.
    pub candidate: &'a dyn Candidate,
    /// The seed.
    pub seed: u64,
    /// The end.
    pub limit: Limit,
    /// Threads; 0 for one per core.
    pub jobs: usize,
    /// This shard and the number of shards.
    pub shard: (u64, u64),
    /// Where the store is, if there is one.
    pub out: Option<PathBuf>,
    /// Findings that are known.
    pub known: KnownList,
    /// How cases are judged.
    pub options: Options,
    /// The budget of each reduction.
    pub reduction: Budget,
    /// Whether progress is shown on standard error.
    pub progress: bool,
}

/// Why a campaign cannot run.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The threads.
    #[error("cannot start threads: {0}")]
    Threads(String),
}

/// What became of one case.
enum Judged {
    Sound { useful: bool },
    Violated { rules: Vec<&'static str> },
    Refused,
    Undecided,
    /// The generator made something that cannot be judged: our own fault.
    Invalid(String),
}

impl Campaign<'_> {
    /// Runs the campaign.
    pub fn run(&self) -> Result<Summary, CampaignError> {
        let header = store::Header {
            pass: self.pass.name().to_string(),
            candidate: self.candidate.name().to_string(),
            seed: self.seed,
            shard: self.shard,
        };
        let (mut store, mut summary) = match &self.out {
            Some(folder) => {
                let (store, summary) = Store::open(folder, &header)?;
                (Some(store), summary)
            }
            None => (None, Summary::new(&header)),
        };
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.jobs)
            .build()
            .map_err(|error| CampaignError::Threads(error.to_string()))?;
        let started = Instant::now();
        let mut progress = Progress::new(self.progress, self.limit);
        let mut batch = summary.next_batch(self.shard);
        loop {
            let first = batch * BATCH;
            let end = match self.limit {
                Limit::Cases(cases) if first >= cases => break,
                Limit::Cases(cases) => cases.min(first + BATCH),
                Limit::Time(time) if started.elapsed() >= time => break,
                Limit::Time(_) => first + BATCH,
            };
            let judged: Vec<Judged> =
                pool.install(|| (first..end).into_par_iter().map(|number| self.judge(number)).collect());
            let mut done = summary::Batch { number: batch, ..summary::Batch::default() };
            for (number, judged) in (first..end).zip(judged) {
                self.count(number, judged, &mut done, &mut summary);
            }
            if let Some(store) = &mut store {
                store.append(&done)?;
            }
            summary.add(&done);
            progress.show(&summary, started.elapsed());
            batch += self.shard.1;
        }
        progress.finish();
        Ok(summary)
    }

    /// Case `number` of the campaign.
    pub fn case(&self, number: u64) -> Case {
        generate::case(self.pass, self.seed, number)
    }

    fn judge(&self, number: u64) -> Judged {
        let case = self.case(number);
        match judge::judge(&case, self.candidate, &self.options) {
            Ok(judgement) => match &judgement.verdict {
                Verdict::Sound => Judged::Sound { useful: judgement.merged > 0 || self.pass == PassKind::Repair },
                Verdict::Violated(_) => Judged::Violated { rules: judgement.root_rules() },
                Verdict::Refused(_) => Judged::Refused,
                Verdict::Undecided(_) => Judged::Undecided,
            },
            Err(error) => Judged::Invalid(error.to_string()),
        }
    }

    /// Counts one case, and reduces it if its kind is new enough.
    fn count(
        &self,
        number: u64,
        judged: Judged,
        batch: &mut summary::Batch,
        summary: &mut Summary,
    ) {
        batch.cases += 1;
        match judged {
            Judged::Sound { useful } => batch.useful += u64::from(useful),
            Judged::Refused => batch.refused += 1,
            Judged::Undecided => batch.undecided += 1,
            Judged::Invalid(why) => {
                batch.invalid += 1;
                batch.first_invalid.get_or_insert_with(|| format!("case {number}: {why}"));
            }
            Judged::Violated { rules } => {
                batch.useful += 1;
                batch.violated += 1;
                batch.first_violation.get_or_insert(number);
                let kind = rules.join(" ");
                let before = summary.total.kinds.get(&kind).copied().unwrap_or(0);
                let here = batch.kinds.entry(kind).or_insert(0);
                *here += 1;
                if before + *here <= REDUCED_PER_KIND {
                    let distinct = self.reduce(number, rules[0]);
                    if self.known.holds(&distinct) {
                        batch.known += 1;
                    } else if let Some(new) = summary.insert(distinct) {
                        batch.found.push(new);
                    }
                }
            }
        }
    }

    /// The reduced form of a case that violates `rule`.
    fn reduce(&self, number: u64, rule: &'static str) -> Distinct {
        let case = self.case(number);
        let mut shows = |case: &Case| violates(case, self.candidate, &self.options, rule);
        let reduced = reduce::reduce(&case, self.reduction, &mut shows, &mut |_| {});
        let case = reduced.map_or(case, |reduced| reduced.case);
        Distinct::new(rule, number, &case, self.candidate, &self.options)
    }
}

/// Whether a candidate violates `rule` on a case.
pub fn violates(case: &Case, candidate: &dyn Candidate, options: &Options, rule: &str) -> bool {
    judge::judge(case, candidate, options).is_ok_and(|judgement| judgement.violated_rules().contains(&rule))
}
