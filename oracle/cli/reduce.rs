//! `graph-oracle reduce`: the smallest case that breaks the same rule.

use super::check::ValuesArgument;
use super::files::{self, Input};
use super::worker::WorkerOptions;
use super::{CouldNotRun, PassOptions, Status, print};
use crate::campaign::expecting;
use crate::case::{Case, Expectation, Subject};
use crate::judge::{self, CannotJudge, Options, Verdict};
use crate::limits::{Limit, Limits};
use crate::reduce::{self, Budget, Pin};
use crate::report;
use crate::rules;
use clap::Args;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args, Debug)]
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
    /// How values are compared.
    #[arg(long, value_enum, default_value_t = ValuesArgument::Auto)]
    values: ValuesArgument,
    /// Seconds at most; the best case so far is the result.
    #[arg(long, value_name = "S", default_value_t = 20)]
    seconds: u64,
    /// Where to write the reduced case; default: standard output, followed by the explanation.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Reduce {
    pub(super) fn run(
        &self,
        limits: &Limits,
        out: &mut dyn Write,
        complain: &mut dyn Write,
    ) -> Result<Status, CouldNotRun> {
        let name = self.case.display().to_string();
        let case = match files::read(&self.case, limits)? {
            Input::Case(case) => *case,
            Input::Graph(graph) => Case::of_graph(*graph),
            Input::Outcomes(_) => {
                return Err(CouldNotRun::new(format_args!("{name}: holds an outcome; expected a case")));
            }
        };
        let pass = self.pass.clone().or_else(|| case.pass.as_ref().map(|pass| pass.name.clone()));
        let pass =
            pass.ok_or_else(|| CouldNotRun::new(format_args!("{name}: names no pass; give --pass")))?;
        let config = self.options.config(&pass, case.pass.as_ref())?;
        let named = || self.candidate.clone().unwrap_or_else(|| expected(&case));
        let candidate = self.worker.or_named(limits, named)?;
        let case = Case { pass: Some(config), outcome: None, ..case };
        let element_limit = limits.get(Limit::Elements);
        let options = Options { values: self.values.values(), element_limit, ..Options::default() };
        let explain = |error: CannotJudge| CouldNotRun::judging(&name, error);
        let judgement = judge::judge(&case, candidate.as_ref(), &options).map_err(explain)?;
        let violated = judgement.violated_rules();
        let rule = match &self.rule {
            None => violated.first().copied().ok_or_else(|| {
                CouldNotRun::new(format_args!("{name}: {} violates no rule on it", candidate.name()))
            })?,
            Some(id) => {
                let rule = rules::statement(id).ok_or_else(|| {
                    CouldNotRun::new(format_args!("unknown rule {id:?} (graph-oracle rules)"))
                })?;
                if !violated.contains(&rule.id) {
                    let found = if violated.is_empty() { "nothing".into() } else { violated.join(", ") };
                    return Err(CouldNotRun::new(format_args!(
                        "{name}: {} does not violate {id} on it; it violates {found}",
                        candidate.name()
                    )));
                }
                rule.id
            }
        };
        let budget = Budget { time: Duration::from_secs(self.seconds), questions: usize::MAX };
        let pin = Pin::of(&judgement, rule);
        let mut shows = |case: &Case| reduce::violates(case, candidate.as_ref(), &options, &pin);
        // A progress line would disturb what is piped; the size goes to standard error, a line for each halving.
        let mut told = case.graph.len();
        let mut progress = |best: &Case| {
            if best.graph.len() * 2 <= told {
                told = best.graph.len();
                let _ = writeln!(complain, "{told} nodes");
            }
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
        if !reduced.finished {
            let _ = writeln!(complain, "time is up: the best so far; --seconds gives more");
        }
        let text = expecting(rule, &reduced.case, candidate.as_ref(), &options).to_string();
        match &self.output {
            Some(path) => {
                std::fs::write(path, &text)
                    .map_err(|error| CouldNotRun::new(format_args!("{}: {error}", path.display())))?;
                let nodes = (case.graph.len(), reduced.case.graph.len());
                print(
                    out,
                    &format!("{rule}: {} nodes before, {} after; {}\n", nodes.0, nodes.1, path.display()),
                )?;
            }
            None => {
                let judgement = judge::judge(&reduced.case, candidate.as_ref(), &options).map_err(explain)?;
                let subject = format!("{pass} of {name}, reduced, by {}", candidate.name());
                let report = report::text(&judgement, &subject, None, false);
                let commented: String =
                    report.lines().map(|line| format!("# {line}").trim_end().to_string() + "\n").collect();
                print(out, &format!("{}\n{commented}", text))?;
            }
        }
        match judgement.verdict {
            Verdict::Violated(_) => Ok(Status::Violated),
            _ => Ok(Status::Sound),
        }
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
