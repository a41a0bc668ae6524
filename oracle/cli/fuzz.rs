//! `graph-oracle fuzz`: campaigns.

use super::check::ValuesArgument;
use super::cluster::ClusterOptions;
use super::found::{self, Show};
use super::html::Html;
use super::numbers::{count, within};
use super::worker::WorkerOptions;
use super::{CouldNotRun, Format, PassOptions, Status, cluster, files, formats, print, signals};
use crate::campaign::{BATCH, Campaign, Diff, Ending, KnownList, Limit, RankPlan, Summary, merge};
use crate::candidates::{self, Candidate, judging};
use crate::case::PassConfig;
use crate::family::{Gives, row};
use crate::format::text;
use crate::judge::Options;
use crate::judge::partition::forward_outputs;
use crate::limits::Limits;
use crate::reduce::Budget;
use crate::report::results::Place;
use crate::rules::PassKind;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

/// Threads at most. Each has a stack and a case of its own, and more of them than cores make nothing faster.
const MOST_JOBS: u64 = crate::limits::Limit::Threads.standard();

#[derive(Args, Debug)]
pub(super) struct Fuzz {
    /// The pass: rewrite, bucketing, repair, partition, schedule, memory or all; or execute, which holds the oracle's
    /// own interpreter against a worker that executes graphs.
    pass: String,
    /// Who is judged (repeatable: one campaign each, on the same cases).
    #[arg(id = "candidate", long = "candidate", value_name = "NAME", default_value = "reference")]
    candidates: Vec<String>,
    #[command(flatten)]
    worker: WorkerOptions,
    /// An older implementation, the name of a candidate or a command as for --worker: tell what got worse and what got
    /// better since, on the same cases. Exit status 1 if something got worse.
    #[arg(long, value_name = "NAME|CMD", conflicts_with_all = ["out", "repro", "known"])]
    against: Option<String>,
    /// As which ranks an implementation runs that bakes the rank in: as all of them, as one drawn for each case (values
    /// are then proved, not executed), or as all in one case of eight; default: all, for a worker one case of eight.
    #[arg(long, value_enum, value_name = "WHICH")]
    ranks: Option<RanksArgument>,
    /// Write each finding as a folder of its own there: case.graph, before.json, explanation.txt and, if the worker can
    /// make one, repro.py.
    #[arg(long, value_name = "DIR")]
    repro: Option<PathBuf>,
    /// How many cases, such as 500, 10k or 1M.
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = count)]
    cases: Option<u64>,
    /// How long, for each candidate, instead of a number of cases.
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
    /// The seed: the same seed gives the same cases and findings.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Print case N as text, which `check` takes, and judge nothing.
    #[arg(long, value_name = "N", conflicts_with_all = ["cases", "seconds", "out", "repro", "against", "known", "html"])]
    case: Option<u64>,
    /// Threads, at most 1024; 0: one per core. What is found does not depend on it.
    #[arg(long, value_name = "J", default_value_t = 0, value_parser = within::<usize>(0, MOST_JOBS))]
    jobs: usize,
    /// Run part I of N (from 0), so that several machines share a campaign.
    #[arg(long, value_name = "I/N", value_parser = shard, default_value = "0/1")]
    shard: (u64, u64),
    #[command(flatten)]
    cluster: ClusterOptions,
    /// Where to keep what is found; an earlier run there is continued. Several candidates: a folder each.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Findings that are known, one JSON object a line: {"rule": ..., "words": [...], "link": ...}
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// A real graph, exchange JSON or .graph (repeatable): cases are windows of these, made small and edited, or for
    /// partition joint graphs with edits, instead of generated ones.
    #[arg(long = "graph", value_name = "FILE")]
    graphs: Vec<PathBuf>,
    #[command(flatten)]
    options: PassOptions,
    /// How values are compared; auto executes every eighth case, and those that are not proved or refuted symbolically.
    #[arg(long, value_enum, default_value_t = ValuesArgument::Auto)]
    values: ValuesArgument,
    /// Seconds that the reduction of one finding may take.
    #[arg(long, value_name = "S", default_value_t = 20)]
    reduce_seconds: u64,
    /// How much is shown of what was found.
    #[arg(long, value_enum, default_value_t = Show::Causes)]
    show: Show,
    /// The format of the summary.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    html: Html,
}

/// As which ranks an implementation runs that bakes the rank in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum RanksArgument {
    /// As every rank.
    All,
    /// As one rank, which differs from case to case.
    One,
    /// As every rank in one case of eight.
    Some,
}

/// Cases in a batch of a worker: a few seconds of PyTorch.
const WORKER_BATCH: u64 = 64;

/// Without --cases and --seconds.
const CASES: u64 = 10_000;

fn shard(text: &str) -> Result<(u64, u64), String> {
    let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match parts {
        Some((i, n)) if i < n => Ok((i, n)),
        _ => Err("expected I/N with I from 0 to N - 1".into()),
    }
}

impl Fuzz {
    pub(super) fn run(
        &self,
        arguments: &[OsString],
        limits: &Limits,
        out: &mut dyn Write,
    ) -> Result<Status, CouldNotRun> {
        let stop = signals::stop_on_signals()?;
        if self.cluster.is_wanted() {
            return cluster::run(arguments, &stop);
        }
        let pass = match self.pass.as_str() {
            "all" => None,
            name => {
                let with_all = |error| CouldNotRun::new(format_args!("{error}, all"));
                Some(PassKind::named(name).map_err(with_all)?)
            }
        };
        let candidates: Vec<Box<dyn Candidate>> = match self.worker.start(&self.pass, limits, &stop)? {
            Some(worker) => vec![Box::new(worker)],
            None => {
                let find = |name: &String| candidates::find(name).map_err(CouldNotRun::new);
                self.candidates.iter().map(find).collect::<Result<_, _>>()?
            }
        };
        if let Some(pass) = pass {
            for candidate in &candidates {
                self.offers(candidate.as_ref(), pass)?;
            }
        }
        let mut set = self.options.settings()?;
        // In whatever order they are given, it is one campaign.
        set.sort_by(|(a, _), (b, _)| a.cmp(b));
        if pass.is_none() && !set.is_empty() {
            return Err(CouldNotRun::new("--set: name one pass, since each has options of its own"));
        }
        let old = self.against.as_ref();
        let old = old.map(|old| self.worker.named_or_command(old, limits, &stop)).transpose()?;
        let known = self.known(limits)?;
        let of_graphs = |pass: PassKind| row(pass).of_graphs;
        if let Some(pass) = pass.filter(|&pass| !self.graphs.is_empty() && of_graphs(pass).is_none()) {
            let others = PassKind::ALL.iter().filter(|&&pass| of_graphs(pass).is_some());
            let others: Vec<&str> = others.map(|pass| pass.name()).collect();
            return Err(CouldNotRun::new(format_args!(
                "--graph: cases are made of real graphs for {}, not for {}",
                others.join(", "),
                pass.name()
            )));
        }
        let mut graphs = Vec::new();
        for path in &self.graphs {
            let graph = files::read(path, limits)?.into_graph(path)?;
            if graph.is_empty() {
                return Err(CouldNotRun::new(format_args!("{}: holds no node", path.display())));
            }
            let faults = crate::judge::input_faults(&graph, PassKind::Repair);
            if !faults.is_empty() {
                return Err(CouldNotRun::faults(path, &faults));
            }
            if pass.is_some_and(|pass| pass.row().gives == Gives::Parts) {
                forward_outputs(&graph, &PassConfig::new("partition")).map_err(|_| {
                    let why = "it does not say how many outputs are forward's (num_fwd_outputs)";
                    CouldNotRun::new(format_args!("{}: {why}", path.display()))
                })?;
            }
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            graphs.push((name, graph));
        }
        let limit = match (self.cases, self.seconds) {
            (_, Some(seconds)) => Limit::Time(Duration::from_secs(seconds)),
            (cases, None) => Limit::Cases(cases.unwrap_or(CASES)),
        };
        let (mut summaries, mut diffs, mut failed) = (Vec::new(), Vec::new(), None);
        for candidate in &candidates {
            let kept_in = self.out.as_ref().map(|folder| match candidates.len() {
                1 => folder.clone(),
                _ => folder.join(candidate.name()),
            });
            let campaign = Campaign {
                pass,
                candidate: candidate.as_ref(),
                seed: self.seed,
                limit,
                jobs: self.jobs,
                shard: self.shard,
                out: kept_in,
                known: known.clone(),
                options: Options {
                    values: self.values.values(),
                    element_limit: limits.get(crate::limits::Limit::Elements),
                    ..judging()
                },
                reduction: Budget { time: Duration::from_secs(self.reduce_seconds), ..Budget::default() },
                graphs: graphs.clone(),
                set: set.clone(),
                ranks: self.ranks(),
                batch: if self.worker.is_given() { WORKER_BATCH } else { BATCH },
                reproductions: self.repro.clone(),
                progress: std::io::stderr().is_terminal(),
                stop: stop.clone(),
            };
            campaign.check_set().map_err(|why| CouldNotRun::new(format_args!("--set: {why}")))?;
            if let Some(number) = self.case {
                print(out, &text::print(&campaign.case(number)))?;
                return Ok(Status::Sound);
            }
            let done = match &old {
                Some(old) => campaign.compare(old.as_ref()).map(|diff| diffs.push(diff)),
                None => campaign.run().map(|summary| summaries.push(summary)),
            };
            // What was found before is told before the error.
            failed = done.err().map(CouldNotRun::new);
            if failed.is_some() || stop.is_requested() {
                break;
            }
        }
        let mut nowhere = std::io::sink();
        let report_to = self.html.beside(out, &mut nowhere);
        let status = match (&old, &failed) {
            (_, Some(_)) if summaries.is_empty() && diffs.is_empty() => Ok(Status::CouldNotRun),
            (Some(_), _) => report_diffs(&diffs, self.format, report_to),
            (None, _) => {
                let folders = |number: usize| {
                    let out = self.out.iter().map(|folder| match candidates.get(number) {
                        Some(candidate) if candidates.len() > 1 => folder.join(candidate.name()),
                        _ => folder.clone(),
                    });
                    out.chain(self.repro.clone()).collect()
                };
                report(&summaries, (self.format, self.show), &folders, report_to)
            }
        };
        if let Some(failed) = failed {
            return Err(failed);
        }
        self.html.write(out, || found::page(&summaries, self.out.as_deref()))?;
        let status = status?;
        if self.format == Format::Text && !self.html.is_printed() {
            let notes: Vec<String> = candidates.iter().chain(&old).flat_map(|one| one.notes()).collect();
            print(out, &notes.iter().map(|note| format!("{note}\n")).collect::<String>())?;
        }
        Ok(status)
    }

    fn ranks(&self) -> RankPlan {
        match self.ranks {
            Some(RanksArgument::All) => RankPlan::All,
            Some(RanksArgument::One) => RankPlan::One,
            Some(RanksArgument::Some) => RankPlan::Some,
            None if self.worker.is_given() => RankPlan::Some,
            None => RankPlan::All,
        }
    }

    /// A worker that does not offer the pass at all would refuse every case.
    fn offers(&self, candidate: &dyn Candidate, pass: PassKind) -> Result<(), CouldNotRun> {
        let passes = candidate.capabilities().passes;
        if !self.worker.is_given() || passes.contains(&pass) {
            return Ok(());
        }
        let offered: Vec<&str> = passes.iter().map(|pass| pass.name()).collect();
        Err(CouldNotRun::new(format_args!(
            "{} does not offer {}; it offers: {}",
            candidate.name(),
            pass.name(),
            offered.join(", ")
        )))
    }

    fn known(&self, limits: &Limits) -> Result<KnownList, CouldNotRun> {
        let Some(path) = &self.known else { return Ok(KnownList::default()) };
        let name = path.display();
        let text = files::words(path, limits)?;
        KnownList::parse(&text).map_err(|error| CouldNotRun::new(format_args!("{name}:{error}")))
    }
}

#[derive(Args, Debug)]
pub(super) struct Results {
    /// Folders that campaigns were given as --out.
    #[arg(required = true)]
    folders: Vec<PathBuf>,
    /// How much is shown of what was found.
    #[arg(long, value_enum, default_value_t = Show::Causes)]
    show: Show,
    /// The format of the summary.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    html: Html,
}

impl Results {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Status, CouldNotRun> {
        let summary = merge(&self.folders).map_err(CouldNotRun::new)?;
        self.html.write(out, || {
            found::page(std::slice::from_ref(&summary), self.folders.first().map(PathBuf::as_path))
        })?;
        let mut nowhere = std::io::sink();
        let to = self.html.beside(out, &mut nowhere);
        report(&[summary], (self.format, self.show), &|_| self.folders.clone(), to)
    }
}

fn report_diffs(diffs: &[Diff], format: Format, out: &mut dyn Write) -> Result<Status, CouldNotRun> {
    format.print(
        out,
        || diffs.iter().map(Diff::text).collect::<Vec<_>>().join("\n"),
        || diffs.iter().map(Diff::json).collect(),
        || formats::fuzz::diffs(diffs),
    )?;
    if let Some(signal) = diffs.iter().find_map(|diff| diff.stopped) {
        return Ok(signals::status(signal));
    }
    Ok(match () {
        () if diffs.iter().any(|diff| !diff.worse.is_empty()) => Status::Violated,
        () if diffs.iter().any(|diff| diff.acted.0 == 0) => Status::Undecided,
        () => Status::Sound,
    })
}

/// Prints summaries; `folders` says where the cases of the campaign with a number may have been written.
fn report(
    summaries: &[Summary],
    (format, show): (Format, Show),
    folders: &dyn Fn(usize) -> Vec<PathBuf>,
    out: &mut dyn Write,
) -> Result<Status, CouldNotRun> {
    format.print(
        out,
        || found::text(summaries, show),
        || summaries.iter().map(json).collect(),
        || {
            formats::fuzz::campaigns(summaries, &|number, finding| {
                folders(number).iter().find_map(|folder| finding.file_in(folder)).map(Place::file)
            })
        },
    )?;
    for summary in summaries {
        match &summary.ending {
            Ending::Whole => {}
            Ending::Stopped(signal) => return Ok(signals::status(*signal)),
            Ending::Failed(why) => return Err(CouldNotRun::new(why)),
        }
    }
    let total = |count: fn(&Summary) -> u64| summaries.iter().map(count).sum::<u64>();
    if total(|s| s.total.found.len() as u64 + s.total.crashed) > 0 {
        return Ok(Status::Violated);
    }
    if total(|s| s.total.invalid) > 0 {
        return Err(CouldNotRun::new(
            "some cases could not be judged (see above): the generator is at fault, or --set does not fit what else they \
             say of their pass",
        ));
    }
    let judged_nothing = |summary: &Summary| summary.judged_nothing() || !summary.idle().is_empty();
    match summaries.iter().any(judged_nothing) {
        true => Ok(Status::Undecided),
        false => Ok(Status::Sound),
    }
}

fn json(summary: &Summary) -> serde_json::Value {
    serde_json::json!({
        "summary_version": "graph-oracle-summary/1",
        "campaign": summary.title,
        "total": summary.total,
        "causes": found::json(summary),
        "nothing_judged_of": summary.idle().into_iter().map(|(pass, _)| pass).collect::<Vec<_>>(),
        "missing_shards": summary.missing_shards().map(|(of, missing)| {
            missing.iter().map(|shard| format!("{shard}/{of}")).collect::<Vec<_>>()
        }),
        "stopped_by_signal": match summary.ending {
            Ending::Stopped(signal) => Some(signal),
            _ => None,
        },
        "could_not_write": match &summary.ending {
            Ending::Failed(why) => Some(why),
            _ => None,
        },
    })
}
