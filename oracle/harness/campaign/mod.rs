//! A campaign: many generated cases, judged in parallel, until something breaks.
//!
//! # The idea
//!
//! Case `i` of a campaign is generated from the campaign's seed and `i`, so what is found does not depend on the number
//! of jobs. Cases are judged in batches; when a batch is done its violations are taken in order of `i`. For each rule
//! the first ones are reduced, and two findings are one if they break the same rule on the same reduced shape. A rule
//! whose reductions keep giving what is known already is reduced ever more rarely, so that a campaign against a
//! candidate that is always wrong still goes on. After each batch a line goes to the store: a killed campaign goes on
//! where it was, with nothing lost or counted twice. One that is asked to stop ends with the cases that are done, up to
//! the first that is not.
//!
//! Values are compared symbolically, which proves or refutes on one generic rank; where that cannot tell, and in every
//! eighth case as a second opinion, the graphs of all ranks are executed as well.
//!
//! Instead of generated graphs, cases may be neighbours of real ones: windows, made small and edited; or grafts, where
//! joint graphs are cut.
//!
//! A shard takes every `n`-th batch; the stores of shards merge into one summary.
//!
//! # What it does not do
//!
//! It keeps no case that was sound. Time limits end it between batches only.

mod cause;
mod diff;
mod digest;
mod finding;
mod header;
mod known;
mod merge;
mod origin;
mod progress;
mod reproduction;
mod score;
mod store;
mod summary;
#[cfg(test)]
mod tests;

pub use cause::Cause;
pub use diff::{Change, Diff};
pub use digest::of_graph as digest_of_graph;
pub use finding::{Distinct, breaking, expecting};
pub use header::{GraphId, Header};
pub use known::{Known, KnownList};
pub use merge::merge;
pub use origin::origin_in;
pub use score::{Reduction, Score, reductions, score};
pub use store::{Store, StoreError};
pub use summary::{Batch, Ending, Summary};

use crate::candidates::worker::panic_message;
use crate::candidates::{Candidate, CandidateExt, Reference, judging};
use crate::case::{Case, Setting};
use crate::generate::{self, Wanted, offers};
use crate::graph::Graph;
use crate::judge::{self, CannotJudge, Judgement, Options, Ranks, Values, Verdict};
use crate::reduce::{self, Budget, Guard, Pin};
use crate::rules::{Code, PassKind, Reason};
use crate::stop::Stop;
use crate::threads::within_limit;
use progress::Progress;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Cases in a batch: a few tenths of a second of work on one core, so that a stop loses little.
pub const BATCH: u64 = 512;

/// Findings of a rule after which their kinds are no longer told apart when it is decided what to reduce: a message may
/// say something new each time.
const MOST_KINDS: usize = 100;

/// Reductions of a rule that may give nothing new before the rule is reduced more rarely.
const PATIENCE: u64 = 4;

/// Of so many cases one is also executed, on all its ranks, where the symbolic evaluator has decided it: a proof costs
/// a quarter of an execution, and what is judged must not rest on one evaluator alone.
const SECOND_OPINION: u64 = 8;

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
    /// The pass; all of them if `None`.
    pub pass: Option<PassKind>,
    /// Who is judged.
    pub candidate: &'a dyn Candidate,
    /// The seed.
    pub seed: u64,
    /// The end.
    pub limit: Limit,
    /// Threads; 0 for one per core.
    pub jobs: usize,
    /// This shard, from 0, and the number of shards.
    pub shard: (u64, u64),
    /// Where the store is, if there is one.
    pub out: Option<PathBuf>,
    /// Findings that are known.
    pub known: KnownList,
    /// How cases are judged.
    pub options: Options,
    /// The budget of each reduction.
    pub reduction: Budget,
    /// Real graphs, by name: where there are some, cases are windows of them, made small and edited, or grafts of joint
    /// graphs.
    pub graphs: Vec<(String, Graph)>,
    /// Options that every case gives its pass, in place of what is generated.
    pub set: Vec<(String, Setting)>,
    /// As which ranks a candidate runs that bakes the rank in.
    pub ranks: RankPlan,
    /// Cases in a batch: [`BATCH`], or fewer where a case takes long.
    pub batch: u64,
    /// Where to write each finding as a folder of its own.
    pub reproductions: Option<PathBuf>,
    /// Whether progress is shown on standard error.
    pub progress: bool,
    /// Asked for by whoever wants it to end early.
    pub stop: Stop,
}

/// As which ranks a candidate runs that bakes the rank in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RankPlan {
    /// As every rank.
    #[default]
    All,
    /// As one rank, which differs from case to case. Values are then proved and not executed.
    One,
    /// As every rank in one case of eight, as one rank in the others.
    Some,
}

impl RankPlan {
    fn of_case(self, number: u64) -> Ranks {
        match self {
            RankPlan::All => Ranks::All,
            RankPlan::Some if number.is_multiple_of(SECOND_OPINION) => Ranks::All,
            RankPlan::One | RankPlan::Some => Ranks::One(number as u32),
        }
    }

    fn title(self) -> &'static str {
        match self {
            RankPlan::All => "all ranks",
            RankPlan::One => "one rank",
            RankPlan::Some => "all ranks in one case of eight",
        }
    }
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
    /// A finding cannot be written down.
    #[error("{0}")]
    Reproduction(String),
    /// A graph cannot be read over.
    #[error("graph {0}: {1}")]
    Graph(String, std::io::Error),
}

/// What became of one case.
struct Judged {
    /// The pass, of a case that was judged.
    pass: Option<String>,
    outcome: Outcome,
}

enum Outcome {
    Sound {
        useful: bool,
        /// Whether the pass did nothing, and the reference did something.
        left: bool,
    },
    Violated {
        rules: Vec<&'static str>,
        /// The most fundamental one that is not known.
        first: Option<Found>,
        /// Where those that are known are tracked, each once.
        known: Vec<String>,
    },
    /// The kind of its reason.
    Refused(String),
    /// The code of the first reason.
    Undecided(String),
    /// The case cannot be judged: the generator is at fault.
    Invalid(String),
    /// The candidate or the oracle panicked.
    Crashed(String),
}

/// A violation as a case of the campaign showed it.
#[derive(Clone, PartialEq, Eq)]
struct Found {
    pin: Pin,
    /// How values were compared.
    values: Values,
    /// The explanation, of a worker's failure: it may not come again.
    explanation: Option<String>,
}

impl Campaign<'_> {
    /// Runs the campaign. What ends it early, be it a stop or a disk that is full, loses nothing of what was found: the
    /// summary says how it ended.
    ///
    /// # Errors
    /// It cannot begin: the store is another's, or there is no place to write to.
    pub fn run(&self) -> Result<Summary, CampaignError> {
        let header = self.header()?;
        self.check_reproductions()?;
        let (mut store, mut summary) = match &self.out {
            Some(folder) => {
                let (store, summary) = Store::open(folder, &header)?;
                (Some(store), summary)
            }
            None => (None, Summary::new(&header)),
        };
        for finding in &summary.total.found {
            self.reproduce(finding)?;
        }
        let pool = self.pool()?;
        let wanted = self.wanted(&[self.candidate]);
        let started = Instant::now();
        let progress = Progress::new(self.progress, self.limit, &summary);
        let mut batch = self.shard.0;
        while !self.stop.is_requested() {
            let Some(first) = batch.checked_mul(self.batch) else { break };
            let Some(end) = self.end_of_batch(first, started) else { break };
            if !summary.has(batch, end - first) {
                let done = pool.install(|| {
                    let judged = self.until_stopped(first..end, |number| {
                        let judged = self.judge(&wanted, number);
                        progress.judged();
                        judged
                    });
                    self.count(&wanted, batch, first, judged, &summary.before(batch))
                });
                let shorter = summary.batches.get(&batch).cloned();
                if done.cases == 0 || shorter.as_ref().is_some_and(|batch| batch.length() >= done.length()) {
                    break;
                }
                let kept = self.keep(&done, shorter.as_ref(), store.as_mut());
                summary.add(done);
                progress.show(&summary, started.elapsed());
                if let Err(error) = kept {
                    summary.ending = Ending::Failed(error.to_string());
                    break;
                }
            }
            batch += self.shard.1;
        }
        progress.finish();
        if let (Some(signal), Ending::Whole) = (self.stop.signal(), &summary.ending) {
            summary.ending = Ending::Stopped(signal);
        }
        Ok(summary)
    }

    /// What `judge` says of the numbers in a range, in order, up to the first that was not done when a stop was asked
    /// for. Numbers are taken in order, so that a stop loses no more than the threads are busy with.
    fn until_stopped<T: Send>(&self, numbers: Range<u64>, judge: impl Fn(u64) -> T + Sync) -> Vec<T> {
        let until_stop = numbers.clone().take_while(|_| !self.stop.is_requested());
        let judged = until_stop.par_bridge().map(|number| (number, judge(number)));
        // What ended after the stop may have been cut short by it.
        let mut judged: Vec<(u64, T)> = judged.filter(|_| !self.stop.is_requested()).collect();
        judged.sort_by_key(|(number, _)| *number);
        let whole = numbers.zip(judged).take_while(|(number, (judged, _))| number == judged);
        whole.map(|(_, (_, judged))| judged).collect()
    }

    /// Writes a batch down wherever that was asked for.
    fn keep(
        &self,
        batch: &Batch,
        shorter: Option<&Batch>,
        store: Option<&mut Store>,
    ) -> Result<(), CampaignError> {
        if let Some(store) = store {
            store.append(batch, shorter)?;
        }
        batch.found.iter().try_for_each(|finding| self.reproduce(finding))
    }

    fn pool(&self) -> Result<rayon::ThreadPool, CampaignError> {
        let jobs = if self.jobs == 0 { rayon::current_num_threads() } else { self.jobs };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(within_limit(jobs)).build();
        pool.map_err(|error| CampaignError::Threads(error.to_string()))
    }

    /// Where the batch ends that begins with case `first`; `None` if the campaign has come to its end.
    fn end_of_batch(&self, first: u64, started: Instant) -> Option<u64> {
        match self.limit {
            Limit::Cases(cases) if first >= cases => None,
            Limit::Cases(cases) => Some(cases.min(first.saturating_add(self.batch))),
            Limit::Time(time) if started.elapsed() >= time => None,
            Limit::Time(_) => first.checked_add(self.batch),
        }
    }

    /// How case `number` is judged.
    fn options(&self, number: u64) -> Options {
        Options { ranks: self.ranks.of_case(number), ..self.options.clone() }
    }

    /// What identifies the campaign.
    fn header(&self) -> Result<Header, CampaignError> {
        let graph = |(name, graph): &(String, Graph)| {
            let digest =
                digest::of_graph(graph).map_err(|error| CampaignError::Graph(name.clone(), error))?;
            Ok(GraphId { name: name.clone(), digest })
        };
        Ok(Header {
            program: env!("CARGO_PKG_VERSION").to_string(),
            pass: self.pass.map_or("all", PassKind::name).to_string(),
            candidate: self.candidate.name().to_string(),
            runs: self.candidate.capabilities().command,
            seed: self.seed,
            shard: self.shard,
            values: self.options.values.name().to_string(),
            element_limit: self.options.element_limit,
            generator: generate::VERSION,
            graphs: self.graphs.iter().map(graph).collect::<Result<_, CampaignError>>()?,
            ranks: self.ranks,
            batch: self.batch,
            without: self.left_out(),
            set: self.set.iter().map(|(key, value)| format!("{key}={value}")).collect(),
            known: self.known.digest(),
            is_old: false,
        })
    }

    /// What is not generated, by pass.
    fn left_out(&self) -> Vec<String> {
        let passes = PassKind::ALL.iter().filter(|&&pass| self.pass.is_none_or(|only| only == pass));
        let of_pass = |&pass: &PassKind| {
            let without = self.candidate.offer(pass).map_or(&[][..], |offer| &offer.without).iter();
            without.map(move |one| format!("{}: {}", pass.name(), one.name())).collect::<Vec<_>>()
        };
        passes.flat_map(of_pass).collect()
    }

    /// What cases are made, as all candidates take them.
    fn wanted(&self, candidates: &[&dyn Candidate]) -> Wanted<'_> {
        Wanted {
            seed: self.seed,
            pass: self.pass,
            offers: candidates.iter().map(|candidate| offers(*candidate)).collect(),
            set: &self.set,
            graphs: &self.graphs,
            small: false,
        }
    }

    /// Case `number` of the campaign.
    pub fn case(&self, number: u64) -> Case {
        self.wanted(&[self.candidate]).case(number)
    }

    /// Whether the reference takes a case with what is set, but for options that are the candidate's own.
    ///
    /// # Errors
    /// What is wrong with an option.
    pub fn check_set(&self) -> Result<(), String> {
        if self.set.is_empty() {
            return Ok(());
        }
        let case = self.case(0);
        let case = Case { pass: case.pass.as_ref().map(|pass| self.candidate.known(pass)), ..case };
        let judged = judge::judge(&case, &Reference, &self.options);
        judged.map(|_| ()).map_err(|error| error.to_string())
    }

    fn judge(&self, wanted: &Wanted, number: u64) -> Judged {
        let judged = catch_unwind(AssertUnwindSafe(|| {
            let case = wanted.case(number);
            let options = self.options(number);
            let mut values = self.first_values(number);
            let mut judgement = judge::judge(&case, self.candidate, &Options { values, ..options.clone() })?;
            // What is executed after all may need the graphs of the other ranks.
            let is_short = values != options.values && options.ranks == Ranks::All;
            if is_short && matches!(judgement.verdict, Verdict::Undecided(_)) {
                values = options.values;
                judgement = judge::judge(&case, self.candidate, &options)?;
            }
            Ok((case, judgement, values))
        }));
        let (case, judgement, values) = match judged {
            Ok(Ok(judged)) => judged,
            Ok(Err(error)) => {
                return Judged { pass: None, outcome: Outcome::Invalid(CannotJudge::to_string(&error)) };
            }
            Err(panic) => return Judged { pass: None, outcome: Outcome::Crashed(panic_message(&*panic)) },
        };
        let outcome = match &judgement.verdict {
            Verdict::Sound if judgement.acted => Outcome::Sound { useful: true, left: false },
            Verdict::Sound => Outcome::Sound { useful: false, left: reference_acts(&case) },
            Verdict::Violated(findings) => {
                let rules = judgement.violated_rules();
                let (new, known) = self.known.sort(findings, method_of(&case));
                let first = new.first().map(|finding| {
                    let pin = Pin::of_finding(finding);
                    let explanation = pin.kind.is_some().then(|| finding.explanation());
                    Found { pin, values, explanation }
                });
                Outcome::Violated { rules, first, known }
            }
            Verdict::Refused(reason) => Outcome::Refused(reason.kind(&case.graph)),
            Verdict::Undecided(reasons) => {
                let first = reasons.first().map_or(Code::NotCompared.name().to_string(), Reason::code);
                Outcome::Undecided(first)
            }
        };
        Judged { pass: case.pass.map(|pass| pass.name), outcome }
    }

    /// How values of case `number` are compared at first.
    fn first_values(&self, number: u64) -> Values {
        match self.options.values {
            Values::Auto if !number.is_multiple_of(SECOND_OPINION) => Values::ProofFirst,
            values => values,
        }
    }

    /// Sums up a batch, and reduces what is new in it.
    fn count(&self, wanted: &Wanted, number: u64, first: u64, judged: Vec<Judged>, before: &Batch) -> Batch {
        let mut batch = Batch { number, ..Batch::default() };
        let mut to_reduce: Vec<(u64, Found)> = Vec::new();
        for (number, Judged { pass, outcome }) in (first..).zip(judged) {
            batch.cases += 1;
            if let (Some(pass), Outcome::Sound { .. } | Outcome::Violated { .. }) = (pass, &outcome) {
                let acted = !matches!(outcome, Outcome::Sound { useful: false, .. });
                let acts = batch.acts.entry(pass).or_insert((0, 0));
                *acts = (acts.0 + 1, acts.1 + u64::from(acted));
            }
            match outcome {
                Outcome::Sound { useful, left } => {
                    batch.useful += u64::from(useful);
                    if left {
                        batch.left += 1;
                        batch.first_left.get_or_insert(number);
                    }
                }
                Outcome::Refused(reason) => {
                    batch.refused += 1;
                    *batch.refusals.entry(reason).or_insert(0) += 1;
                }
                Outcome::Undecided(reason) => {
                    batch.undecided += 1;
                    batch.first_undecided.get_or_insert(number);
                    *batch.doubts.entry(reason).or_insert(0) += 1;
                }
                Outcome::Invalid(why) => {
                    batch.invalid += 1;
                    batch.first_invalid.get_or_insert_with(|| format!("case {number}: {why}"));
                }
                Outcome::Crashed(why) => {
                    batch.crashed += 1;
                    batch.first_crash.get_or_insert_with(|| format!("case {number}: {why}"));
                }
                Outcome::Violated { rules, first, known } => {
                    batch.useful += 1;
                    batch.violated += 1;
                    batch.first_violation.get_or_insert(number);
                    for rule in &rules {
                        *batch.rules.entry(rule.to_string()).or_insert(0) += 1;
                    }
                    for link in known {
                        *batch.known_links.entry(link).or_insert(0) += 1;
                    }
                    let Some(found) = first else {
                        batch.known += 1;
                        continue;
                    };
                    let pin = &found.pin;
                    let is_crowded = pin.kind.is_some() && before.kinds(pin.rule) >= MOST_KINDS;
                    let key = key(pin.rule, pin.kind.as_deref().filter(|_| !is_crowded));
                    let nth = before.first_rules.get(&key).copied().unwrap_or(0);
                    let misses = before.misses.get(&key).copied().unwrap_or(0);
                    let seen = batch.first_rules.entry(key).or_insert(0);
                    *seen += 1;
                    let nth = nth + *seen;
                    let here = to_reduce.iter().filter(|(_, other)| other.pin == *pin).count() as u64;
                    if (misses + here < PATIENCE && !is_crowded) || nth.is_power_of_two() {
                        to_reduce.push((number, found));
                    }
                }
            }
        }
        let reduced: Vec<Distinct> =
            to_reduce.par_iter().map(|(number, found)| self.reduced(wanted, *number, found)).collect();
        for finding in reduced {
            let rule = key(&finding.rule, finding.kind.as_deref());
            if self.known.holds(&finding) {
                batch.known += 1;
                *batch.misses.entry(rule).or_insert(0) += 1;
            } else if before.has(&finding) || batch.has(&finding) {
                *batch.misses.entry(rule).or_insert(0) += 1;
            } else {
                batch.found.push(finding);
            }
        }
        batch.stopped = self.stop.is_requested();
        batch
    }

    /// The reduced form of a case that showed a violation; the case itself, if reducing it panics.
    fn reduced(&self, wanted: &Wanted, number: u64, found: &Found) -> Distinct {
        let reduced = catch_unwind(AssertUnwindSafe(|| self.reduce(wanted, number, found)));
        reduced.unwrap_or_else(|panic| {
            let why = format!("The case is not reduced: there is a panic. {}\n", panic_message(&*panic));
            Distinct::unreduced(&found.pin, number, &wanted.case(number), self.candidate, why)
        })
    }

    /// The reduced form of a case that shows what is pinned. A worker's failure is looked for again in several ways
    /// before it is said that it was seen once.
    fn reduce(&self, wanted: &Wanted, number: u64, found: &Found) -> Distinct {
        let Found { pin, values, explanation } = found;
        let case = wanted.case(number);
        let explanation =
            explanation.as_ref().map_or(String::new(), |explanation| format!("\n{explanation}\n"));
        // As in every eighth case; as when it was found; and in other words.
        let all = self.options(number);
        let as_found = Options { values: *values, ..all.clone() };
        let any = Pin { kind: None, ..pin.clone() };
        for (pin, options) in [(pin, &all), (pin, &as_found), (&any, &all)] {
            if self.stop.is_requested() {
                break;
            }
            // What a process was asked before may matter: each try is the first that one is asked.
            if found.pin.kind.is_some() {
                self.candidate.renew();
            }
            match self.reduce_to(&case, pin, options) {
                Ok(case) => return Distinct::new(pin, number, &case, self.candidate, options),
                Err(Guard::NotShown) if found.pin.kind.is_some() => {}
                Err(_) if self.stop.is_requested() => {}
                Err(_) => return Distinct::new(pin, number, &case, self.candidate, options),
            }
        }
        if self.stop.is_requested() {
            let why = format!("The case is not reduced: a stop was asked for.\n{explanation}");
            return Distinct::unreduced(pin, number, &case, self.candidate, why);
        }
        let why = format!(
            "The worker failed like this once, and not in three further runs of the case alone, each in a new process: \
             what it was asked before may matter, or how busy the machine was.\n{explanation}"
        );
        Distinct {
            shape: "shown once".to_string(),
            ..Distinct::unreduced(pin, number, &case, self.candidate, why)
        }
    }

    /// The smallest case that shows what is pinned.
    fn reduce_to(&self, case: &Case, pin: &Pin, options: &Options) -> Result<Case, Guard> {
        let is_shown = |judgement: &Judgement| {
            let Verdict::Violated(findings) = &judgement.verdict else { return false };
            let (new, _) = self.known.sort(findings, method_of(case));
            new.into_iter().any(|finding| pin.is_of(finding))
        };
        let mut shows = |case: &Case| {
            !self.stop.is_requested() && reduce::violates_so(case, self.candidate, options, &is_shown)
        };
        match reduce::reduce(case, self.reduction, &mut shows, &mut |_| {}) {
            Ok(reduced) => Ok(reduced.case),
            // A worker that fails on every graph: nothing of this one matters.
            Err(Guard::EmptyShows) if pin.rule.starts_with("worker/") => Ok(reduce::emptied(case)),
            Err(why) => Err(why),
        }
    }
}

/// Whether the reference does something of a case. A rewrite may be anything: what the reference does is another one.
fn reference_acts(case: &Case) -> bool {
    if case.pass.as_ref().is_none_or(|pass| pass.name == PassKind::Rewrite.name()) {
        return false;
    }
    let options = Options { values: Values::Off, ..judging() };
    judge::judge(case, &Reference, &options).is_ok_and(|judgement| judgement.acted)
}

/// The option `method` that a case gives its pass.
fn method_of(case: &Case) -> Option<&str> {
    case.pass.as_ref()?.word("method").ok()?
}

/// What is counted together: a rule, with its kind where there is one.
fn key(rule: &str, kind: Option<&str>) -> String {
    kind.map_or(rule.to_string(), |kind| format!("{rule}: {kind}"))
}
