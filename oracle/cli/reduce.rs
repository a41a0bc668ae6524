//! `graph-oracle reduce`: the smallest case that breaks the same rule.
//!
//! The work is done by a thread of its own, which says what it has found so far. When time is up, the program ends with
//! that, whatever the thread is at: a single judgement of a large case may take longer than all the time there is.

use super::check::ValuesArgument;
use super::files;
use super::idle::NO_VALUES;
use super::idle::settings::{self, Reader};
use super::worker::WorkerOptions;
use super::{CouldNotRun, PassOptions, Status, print, signals};
use crate::campaign::{breaking, expecting};
use crate::candidates::judging;
use crate::case::{Case, Expectation, Subject};
use crate::judge::{self, CannotJudge, Judgement, Options};
use crate::limits::{Limit, Limits};
use crate::reduce::{self, Budget, Pin};
use crate::report;
use crate::rules::PassKind;
use clap::Args;
use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant};

#[derive(Args, Clone, Debug)]
pub(super) struct Reduce {
    /// The case: a .graph file, or a graph as exchange JSON with --pass.
    case: PathBuf,
    /// The pass, where the file names none.
    #[arg(long)]
    pass: Option<String>,
    /// Who breaks the rule; default: the candidate that the case expects something of, else the reference.
    #[arg(long)]
    candidate: Option<String>,
    #[command(flatten)]
    worker: WorkerOptions,
    /// The rule that must stay broken; default: the most fundamental one that is.
    #[arg(long, value_name = "ID")]
    rule: Option<String>,
    #[command(flatten)]
    options: PassOptions,
    /// How values are compared; default: auto.
    #[arg(long, value_enum)]
    values: Option<ValuesArgument>,
    /// Seconds at most, the first judgement included; the best case so far is the result.
    #[arg(long, value_name = "S", default_value_t = 20)]
    seconds: u64,
    /// Where to write the reduced case; default: standard output, followed by the explanation.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The stack of the thread that does the work, bytes: as much as a main thread has. Rules follow chains of nodes.
const STACK: usize = 8 << 20;

/// How often it is looked whether a stop was asked for.
const POLL: Duration = Duration::from_millis(100);

/// A year: more is no limit, and would not fit the clock.
const MOST_SECONDS: u64 = 365 * 24 * 3600;

/// What the thread that does the work says.
enum News {
    /// This candidate breaks this rule on the case.
    Breaks { rule: &'static str, candidate: String, case: Box<Case> },
    /// A smaller case that does.
    Smaller(Box<Case>),
    /// It is done: what to print, or why it could not be done.
    Done(Box<Result<Done, CouldNotRun>>),
}

/// The end of a reduction.
struct Done {
    /// The smallest case, with what it expects.
    case: Case,
    /// Why it breaks the rule, as comments.
    explanation: String,
    /// Whether nothing was left to try.
    finished: bool,
}

impl Reduce {
    pub(super) fn run(
        &self,
        limits: &Limits,
        out: &mut dyn Write,
        complain: &mut dyn Write,
    ) -> Result<Status, CouldNotRun> {
        let deadline = Instant::now() + Duration::from_secs(self.seconds.min(MOST_SECONDS));
        let stop = signals::stop_on_signals()?;
        let (news, told) = mpsc::channel();
        let (own, limits) = (self.clone(), limits.clone());
        let work = move || {
            let done = own.work(&limits, deadline, &news);
            // Nobody listens any more where time was up.
            let _ = news.send(News::Done(Box::new(done)));
        };
        let name = self.case.display();
        // Judges go deep: the thread gets as much as the main one has.
        let thread = std::thread::Builder::new().stack_size(STACK).spawn(work);
        drop(thread.map_err(|error| CouldNotRun::new(format_args!("{name}: no thread: {error}")))?);
        let mut first: Option<(&str, String, Case)> = None;
        let (mut best, mut shown) = (None, usize::MAX);
        let done = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match told.recv_timeout(left.min(POLL)) {
                Ok(News::Breaks { rule, candidate, case }) => {
                    shown = case.graph.len();
                    first = Some((rule, candidate, *case));
                }
                Ok(News::Smaller(case)) => {
                    // A progress line would disturb what is piped; the size goes to standard error, a line for each
                    // halving.
                    if case.graph.len() * 2 <= shown {
                        shown = case.graph.len();
                        let _ = writeln!(complain, "{shown} nodes");
                    }
                    best = Some(*case);
                }
                Ok(News::Done(done)) => break Some((*done)?),
                Err(mpsc::RecvTimeoutError::Timeout) if left > POLL && !stop.is_requested() => {}
                Err(_) => break None,
            }
        };
        let Some((rule, candidate, case)) = first else {
            if let Some(signal) = stop.signal() {
                let _ = writeln!(complain, "stopped before the case was judged");
                return Ok(signals::status(signal));
            }
            let seconds = self.seconds;
            return Err(CouldNotRun::new(format_args!(
                "{name}: not judged within {seconds} seconds; --seconds gives more"
            )));
        };
        let before = case.graph.len();
        let done = done.unwrap_or_else(|| Done {
            case: breaking(rule, &best.unwrap_or(case), &candidate),
            explanation: String::new(),
            finished: false,
        });
        if stop.is_requested() {
            let _ = writeln!(complain, "stopped: the best so far");
        } else if !done.finished {
            let _ = writeln!(complain, "time is up: the best so far; --seconds gives more");
        }
        let text = done.case.to_string();
        match &self.output {
            Some(path) => {
                crate::files::write(path, &text)
                    .map_err(|error| CouldNotRun::new(format_args!("{}: {error}", path.display())))?;
                let after = done.case.graph.len();
                print(out, &format!("{rule}: {before} nodes before, {after} after; {}\n", path.display()))?;
            }
            None => print(out, &format!("{text}\n{}", done.explanation))?,
        }
        Ok(stop.signal().map_or(Status::Violated, signals::status))
    }

    /// Judges the case, reduces it and explains what is left.
    fn work(
        &self,
        limits: &Limits,
        deadline: Instant,
        news: &mpsc::Sender<News>,
    ) -> Result<Done, CouldNotRun> {
        let started = Instant::now();
        let name = self.case.display().to_string();
        let case = files::read(&self.case, limits)?.into_case();
        let case =
            case.ok_or_else(|| CouldNotRun::new(format_args!("{name}: holds an outcome; expected a case")))?;
        let pass = self.pass.clone().or_else(|| case.pass.as_ref().map(|pass| pass.name.clone()));
        let pass =
            pass.ok_or_else(|| CouldNotRun::new(format_args!("{name}: names no pass; give --pass")))?;
        let config = self.options.config(&pass, case.pass.as_ref())?;
        let compares = PassKind::parse(&pass).is_none_or(|kind| kind.row().compares_values);
        if self.values.is_some() && !compares {
            return Err(CouldNotRun::new(format_args!("--values: {NO_VALUES}")));
        }
        let reader = Reader::Both { worker: self.worker.is_given() };
        settings::refuse(&config, &self.options.settings()?, reader)?;
        let named = || self.candidate.clone().unwrap_or_else(|| expected(&case));
        let candidate = self.worker.or_named(&pass, limits, named)?;
        let case = Case { pass: Some(config), outcome: None, ..case };
        let element_limit = limits.get(Limit::Elements);
        let options = Options {
            values: self.values.unwrap_or(ValuesArgument::Auto).values(),
            element_limit,
            ..judging()
        };
        let explain = |error: CannotJudge| CouldNotRun::judging(&self.case, error);
        let judgement = judge::judge(&case, candidate.as_ref(), &options).map_err(explain)?;
        let rule = self.rule_of(&judgement, candidate.name())?;
        let _ = news.send(News::Breaks {
            rule,
            candidate: candidate.name().to_string(),
            case: Box::new(case.clone()),
        });
        // The explanation at the end takes about as long as the first judgements did.
        let kept_back = started.elapsed() * 2;
        let time = deadline.saturating_duration_since(Instant::now()).saturating_sub(kept_back);
        let budget = Budget { time, questions: usize::MAX };
        let pin = Pin::of(&judgement, rule);
        let mut shows = |case: &Case| reduce::violates(case, candidate.as_ref(), &options, &pin);
        let mut progress = |best: &Case| {
            let _ = news.send(News::Smaller(Box::new(best.clone())));
        };
        let reduced = reduce::reduce(&case, budget, &mut shows, &mut progress).map_err(|guard| {
            let why = match guard {
                reduce::Guard::NotShown => {
                    format!("the reference violates a rule on it too, so {rule} says little")
                }
                guard => guard.to_string(),
            };
            CouldNotRun::new(format_args!("{name}: {why}"))
        })?;
        let mut explanation = String::new();
        if self.output.is_none() {
            let judgement = judge::judge(&reduced.case, candidate.as_ref(), &options).map_err(explain)?;
            let subject = format!("{pass} of {name}, reduced, by {}", candidate.name());
            let report = report::text(&judgement, &subject, None, false);
            explanation =
                report.lines().map(|line| format!("# {line}").trim_end().to_string() + "\n").collect();
        }
        let case = expecting(rule, &reduced.case, candidate.as_ref(), &options);
        Ok(Done { case, explanation, finished: reduced.finished })
    }

    /// The rule that must stay broken.
    fn rule_of(&self, judgement: &Judgement, candidate: &str) -> Result<&'static str, CouldNotRun> {
        let (name, violated) = (self.case.display(), judgement.violated_rules());
        let Some(id) = &self.rule else {
            return violated
                .first()
                .copied()
                .ok_or_else(|| CouldNotRun::new(format_args!("{name}: {candidate} violates no rule on it")));
        };
        let rule = super::rules::find(id)?;
        if violated.contains(&rule.id) {
            return Ok(rule.id);
        }
        let found = if violated.is_empty() { "nothing".into() } else { violated.join(", ") };
        Err(CouldNotRun::new(format_args!(
            "{name}: {candidate} does not violate {id} on it; it violates {found}"
        )))
    }
}

/// The candidate that a case expects something of.
fn expected(case: &Case) -> String {
    let named = case.expectations.iter().find_map(|expectation| match expectation {
        Expectation::Verdict { of: Subject::Candidate(name), .. } => Some(name.clone()),
        _ => None,
    });
    named.unwrap_or_else(|| "reference".into())
}
