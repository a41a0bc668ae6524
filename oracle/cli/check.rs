//! `graph-oracle check`: judge a pair, or a candidate, or two partitions one after the other.

use super::files::{self, Input};
use super::formats::Sources;
use super::html::Html;
use super::idle::settings::{self, Reader};
use super::numbers::count;
use super::pointed::Pointed;
use super::seen::{Answers, Heard, Seen, stage_view};
use super::worker::WorkerOptions;
use super::{CouldNotRun, Format, PassOptions, Status, Timing};
use crate::candidates::{Candidate, CandidateExt, Outcome, Reference, judging};
use crate::case::{Case, PassConfig, Recorded, RecordedGraphs};
use crate::family::Gives;
use crate::format::Spot;
use crate::graph::Graph;
use crate::judge::partition::{StageGraphs, judge_replay};
use crate::judge::schedule::{self, ranks_recorded};
use crate::judge::{self, CannotJudge, Judgement, Options, Remark, Values, Verdict};
use crate::limits::{Limit, Limits};
use crate::report;
use crate::report::memory::MemoryReport;
use crate::report::results::{self, Results};
use crate::report::schedule::ScheduleReport;
use crate::rules::{Finding, PassKind, Reason};
use crate::simulate::Estimates;
use clap::{Args, ValueEnum};
use pages::View;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What came after, per rank.
pub(super) type Outcomes = Vec<(Option<u32>, Outcome)>;

/// Nodes of a graph whose figures are told beside a verdict: those of a larger one would take longer than the verdict.
const FIGURES: usize = 20_000;

#[derive(Args, Debug)]
pub(super) struct Check {
    /// The pass: rewrite, bucketing, repair, partition, schedule or memory.
    pass: String,
    /// The graph before the pass: exchange JSON (may be gzip), a .graph case, or a graph as PyTorch prints it.
    before: PathBuf,
    /// The graph after it; several where the implementation bakes the rank in, in rank order. Of a partition: FORWARD
    /// and BACKWARD, or both of each rank in turn. Without any, the outcome recorded in BEFORE is judged, or else what
    /// --candidate, --worker or --python names is run.
    after: Vec<PathBuf>,
    #[command(flatten)]
    missing: files::Missing,
    /// The graph after the pass and before its repair sort, if it was kept.
    #[arg(long, value_name = "FILE")]
    unrepaired: Option<PathBuf>,
    /// The implementation to run and judge where there is no AFTER, such as reference.
    #[arg(long, value_name = "NAME")]
    candidate: Option<String>,
    #[command(flatten)]
    worker: WorkerOptions,
    #[command(flatten)]
    options: PassOptions,
    /// What a rewrite may do beyond keeping every bit: zero-sign, reassociation, contraction, precision or approximate;
    /// tolerance=X; draws=restreamed, aliases=lost, signature. The same as --set allow=[KEY,...] (docs/rules.md)
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    allow: Vec<String>,
    /// What is demanded of a rewrite beyond being right: strides, names, collectives=same, collectives=order,
    /// waits=once, edges=needed, peak=1.1x, exposed=1x, tags, unchanged, deterministic. The same as --set demand=[KEY,...]
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    demand: Vec<String>,
    /// What a second run of the same pass gave for the same BEFORE, for --demand deterministic.
    #[arg(long, value_name = "FILE")]
    second: Option<PathBuf>,
    /// How values are compared.
    #[arg(long, value_enum, default_value_t = ValuesArgument::Auto)]
    values: ValuesArgument,
    /// The most elements that execution may touch; beyond it values are proved symbolically only. The same as --limit
    /// elements=N; default: 4000000.
    #[arg(long, value_name = "N", value_parser = count)]
    element_limit: Option<u64>,
    /// Two partitions, one after the other: BEFORE is the first stage, AFTER the second. A stage is a joint graph, a
    /// .graph case, or the files JOINT,FORWARD,BACKWARD. What is not given is made: parts by the candidate, the second
    /// joint graph by tracing the first parts again.
    #[arg(long)]
    replay: bool,
    /// The order to run in, a name a line: what is counted for memory.
    #[arg(long, value_name = "FILE")]
    order: Option<PathBuf>,
    /// A memory snapshot of PyTorch, which is put beside both counts of memory (docs/memory.md).
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
    /// The format of the report.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    html: Html,
    /// Tell all findings in full and list every rule.
    #[arg(long, short)]
    verbose: bool,
    /// Tell on standard error how long reading and judging took.
    #[arg(long)]
    timing: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum ValuesArgument {
    /// Proved symbolically, and executed where that is possible.
    Auto,
    /// Proved symbolically.
    #[value(alias = "extents")]
    Symbolic,
    /// Executed on every rank.
    Execute,
    /// In all ways, held against each other: a contradiction is a fault of graph-oracle.
    Agree,
    /// Not compared.
    Off,
}

impl ValuesArgument {
    pub(super) fn values(self) -> Values {
        match self {
            ValuesArgument::Auto => Values::Auto,
            ValuesArgument::Symbolic => Values::Symbolic,
            ValuesArgument::Execute => Values::Execute,
            ValuesArgument::Agree => Values::Agree,
            ValuesArgument::Off => Values::Off,
        }
    }
}

impl Check {
    /// The implementation to run: the one that the command line names, since a default would be judged unasked.
    fn candidate(&self, limits: &Limits) -> Result<Box<dyn Candidate>, CouldNotRun> {
        let name = match (&self.candidate, self.worker.is_given()) {
            (None, false) => return Err(self.nothing_to_judge()),
            (name, _) => name.as_deref().unwrap_or_default(),
        };
        self.worker.or_named(&self.pass, limits, || name.to_string())
    }

    fn nothing_to_judge(&self) -> CouldNotRun {
        let (before, function) = (self.before.display(), "--worker CMD or --python FILE.py:FUNCTION");
        let after = match PassKind::parse(&self.pass).map(|pass| pass.row().gives) {
            Some(Gives::Parts) => "FORWARD and BACKWARD",
            Some(Gives::Claim | Gives::Executed) => "a case that records a result",
            Some(Gives::Graph) | None => "AFTER",
        };
        CouldNotRun::new(format_args!(
            "{before}: nothing to judge: give {after}, or the implementation to run: --candidate NAME, {function}"
        ))
    }

    pub(super) fn run(
        &self,
        arguments: &[OsString],
        limits: &Limits,
        out: &mut dyn Write,
    ) -> Result<Status, CouldNotRun> {
        if self.replay {
            let mut timing = Timing::new(self.timing);
            let (judgement, subject, stages) = self.judge_stages(limits)?;
            timing.print("reading and judging");
            let views = stages.iter().map(stage_view).collect();
            self.write_page(&judgement, &subject, views, Estimates::default(), arguments, out)?;
            let mut sources = Sources::default();
            sources.add_before(split_at_commas(&self.before).first().unwrap_or(&&*self.before), []);
            return self.report(&judgement, &subject, None, &sources, arguments, out);
        }
        let mut timing = Timing::new(self.timing);
        let (before, outcomes) = self.read(limits);
        timing.print("reading");
        self.run_on(before, outcomes, arguments, limits, out)
    }

    /// The same of what was read.
    pub(super) fn run_on(
        &self,
        before: Result<Input, CouldNotRun>,
        outcomes: Option<Result<Outcomes, CouldNotRun>>,
        arguments: &[OsString],
        limits: &Limits,
        out: &mut dyn Write,
    ) -> Result<Status, CouldNotRun> {
        let mut timing = Timing::new(self.timing);
        let Prepared { case, config, options, remarks } = self.prepare(before, outcomes.is_some(), limits)?;
        let counts = match self.pass == PassKind::Memory.name() {
            true => Some(self.memory(&case.graph, limits)?),
            false => None,
        };
        let schedule = match self.pass == PassKind::Schedule.name() {
            true => self.scheduled(&case, outcomes.as_ref(), &config, limits),
            false => None,
        };
        let sources = self.sources(&case, outcomes.as_ref());
        // What a candidate answers is kept for a page only: without one there is nothing after to tell figures of.
        let is_after_known = outcomes.is_some() || self.takes_record(&case);
        let has_figures = schedule.is_some() || counts.is_some();
        let is_one_graph = case.programs.is_empty() && case.graph.len() <= FIGURES;
        let is_told = is_after_known && !has_figures && is_one_graph;
        let mut seen = self.seen(&case, outcomes.as_ref(), is_told);
        let tables = Estimates::of_ranks(&config.estimates).and_then(|tables| Estimates::agreed(&tables));
        let estimates = tables.unwrap_or_default();
        let answers = Answers::default();
        let (mut judgement, subject) = match options.values {
            Values::Agree => self.judge_and_compare(case, outcomes, config, &options, &answers, limits)?,
            _ => self.judge(case, outcomes, config, &options, &answers, limits)?,
        };
        timing.print("judging");
        remarks.note(&mut judgement, &self.before);
        if let Some(seen) = &mut seen {
            seen.answered(answers);
            let views = seen.views(&judgement);
            // Of a wrong result they would mean little, and of ranks that differ they are those of one.
            if let ([view], false) = (&views[..], matches!(judgement.verdict, Verdict::Violated(_))) {
                judgement.notes.extend(pages::change(view, &estimates));
            }
            if self.html.is_wanted() {
                self.write_page(&judgement, &subject, views, estimates, arguments, out)?;
            }
        }
        let counts = match schedule {
            Some(report) if !order_is_broken(&judgement) => Some((report.text(), report.json())),
            _ => counts,
        };
        self.report(&judgement, &subject, counts, &sources, arguments, out)
    }

    /// What is said of graphs in memory, without the figures that reports have beside it.
    pub(super) fn judge_in_memory(
        &self,
        before: Case,
        outcomes: Option<Outcomes>,
        limits: &Limits,
    ) -> Result<(Judgement, String), CouldNotRun> {
        let before = Ok(Input::Case(Box::new(before)));
        let Prepared { case, config, options, remarks } = self.prepare(before, outcomes.is_some(), limits)?;
        let (mut judgement, subject) =
            self.judge(case, outcomes.map(Ok), config, &options, &Answers::default(), limits)?;
        remarks.note(&mut judgement, &self.before);
        Ok((judgement, subject))
    }

    /// What is judged, and how: the arguments and what was read, held against each other.
    fn prepare(
        &self,
        before: Result<Input, CouldNotRun>,
        is_after_given: bool,
        limits: &Limits,
    ) -> Result<Prepared, CouldNotRun> {
        let case = before?.into_case().ok_or_else(|| {
            let before = self.before.display();
            CouldNotRun::new(format_args!("{before}: holds an outcome; BEFORE must be a graph or a case"))
        })?;
        let pass_options = self.pass_options();
        let config = pass_options.config(&self.pass, case.pass.as_ref())?;
        let second_run = self.second_run(&config, limits)?;
        let reader = match (is_after_given, self.takes_record(&case)) {
            (true, _) => Reader::Judge { again: false },
            (false, true) => Reader::Judge { again: true },
            (false, false) => Reader::Both { worker: self.worker.is_given() },
        };
        settings::refuse(&config, &pass_options.settings()?, reader)?;
        if matches!(reader, Reader::Both { worker: false }) && self.candidate.is_none() {
            return Err(self.nothing_to_judge());
        }
        let of_pass = settings::remarks(&config, case.pass.as_ref(), reader);
        self.reject_cycles(&case.graph)?;
        let case = self.reordered(case, limits)?;
        let options = Options { second_run, ..self.judge_options(limits) };
        let remarks = Remarks { of_graph: judge::remarks(&case), of_pass };
        Ok(Prepared { case, config, options, remarks })
    }

    /// The options of the pass, those with flags of their own among them.
    fn pass_options(&self) -> PassOptions {
        let mut options = self.options.clone();
        for (key, items) in [("allow", &self.allow), ("demand", &self.demand)] {
            if !items.is_empty() {
                options.set.push(format!("{key}=[{}]", items.join(",")));
            }
        }
        options
    }

    /// What a second run gave: wanted where two runs are to agree and one is given, and nowhere else.
    fn second_run(&self, config: &PassConfig, limits: &Limits) -> Result<Option<Arc<Graph>>, CouldNotRun> {
        let demanded = ["demand", "contracts"].iter().any(|key| {
            config.words(key).ok().flatten().is_some_and(|items| items.contains(&"deterministic"))
        });
        match (&self.second, demanded && !self.after.is_empty()) {
            (None, true) => Err(CouldNotRun::new(
                "--demand deterministic compares two runs: give what the second one gave, --second FILE",
            )),
            (Some(_), false) => Err(CouldNotRun::new(
                "--second: it is looked at beside AFTER and --demand deterministic only: leave it out",
            )),
            (None, false) => Ok(None),
            (Some(path), true) => {
                let graph = files::read(path, limits)?.into_graph(path)?;
                Ok(Some(Arc::new(graph)))
            }
        }
    }

    /// Whether what the case records is judged: nobody is named who is to be run.
    fn takes_record(&self, case: &Case) -> bool {
        case.is_recorded() && self.candidate.is_none() && !self.worker.is_given() && self.order.is_none()
    }

    /// Whether the evaluators contradict each other, and where they do not, what is to be said of the pass.
    fn judge_and_compare(
        &self,
        case: Case,
        outcomes: Option<Result<Outcomes, CouldNotRun>>,
        config: PassConfig,
        options: &Options,
        answers: &Answers,
        limits: &Limits,
    ) -> Result<(Judgement, String), CouldNotRun> {
        let outcomes = outcomes.transpose()?;
        let (compared, subject) =
            self.judge(case.clone(), outcomes.clone().map(Ok), config.clone(), options, answers, limits)?;
        let note = match &compared.verdict {
            Verdict::Violated(_) | Verdict::Refused(_) => return Ok((compared, subject)),
            Verdict::Sound => {
                "concrete values, fingerprints and symbolic values do not contradict each other".to_string()
            }
            Verdict::Undecided(why) => {
                format!(
                    "whether concrete values, fingerprints and symbolic values agree: {}",
                    Reason::joined(why)
                )
            }
        };
        let options = Options { values: Values::Auto, ..options.clone() };
        let (mut judgement, subject) =
            self.judge(case, outcomes.map(Ok), config, &options, &Answers::default(), limits)?;
        judgement.notes.push(note);
        Ok((judgement, subject))
    }

    /// Where findings are, for formats that say so.
    fn sources(&self, case: &Case, outcomes: Option<&Result<Outcomes, CouldNotRun>>) -> Sources {
        let mut sources = Sources::default();
        if !self.format.has_places() {
            return sources;
        }
        let graphs = case.programs.iter().map(|program| &program.graph);
        sources.add_before(&self.before, std::iter::once(&case.graph).chain(graphs));
        let mut results = outcomes.and_then(|given| given.as_ref().ok()).into_iter().flatten();
        for path in &self.after {
            // One file may hold the outcomes of all ranks.
            let of_file = if self.after.len() > 1 { 1 } else { usize::MAX };
            sources.add_after(path, results.by_ref().take(of_file).map(|(_, outcome)| &outcome.repaired));
        }
        sources
    }

    /// Prints the judgement, and the figures of its pass before it.
    fn report(
        &self,
        judgement: &Judgement,
        subject: &str,
        counts: Option<(String, serde_json::Value)>,
        sources: &Sources,
        arguments: &[OsString],
        out: &mut dyn Write,
    ) -> Result<Status, CouldNotRun> {
        let replay = replay(arguments);
        let mut nowhere = std::io::sink();
        self.format.print(
            self.html.beside(out, &mut nowhere),
            || {
                let counts = counts.as_ref().map_or(String::new(), |(text, _)| format!("{text}\n"));
                let is_violated = matches!(judgement.verdict, Verdict::Violated(_));
                let case = if is_violated { Pointed::of(&self.before) } else { None };
                let points =
                    |finding: &Finding| case.as_ref().map_or(String::new(), |case| case.lines(finding));
                counts + &report::text_pointing(judgement, subject, Some(&replay), self.verbose, &points)
            },
            || {
                let mut report = report::json(judgement, subject, Some(&replay));
                if let (Some((_, counts)), Some(report)) = (&counts, report.as_object_mut()) {
                    report.insert(self.pass.clone(), counts.clone());
                }
                report
            },
            || Results {
                command: format!("check {}", self.pass),
                headline: results::headline(judgement, subject),
                notes: judgement.notes.clone(),
                replay: Some(replay.clone()),
                tests: results::of_judgement(judgement, &|finding| sources.locate(finding)),
            },
        )?;
        Ok(match judgement.verdict {
            Verdict::Sound => Status::Sound,
            Verdict::Violated(_) => Status::Violated,
            Verdict::Refused(_) | Verdict::Undecided(_) => Status::Undecided,
        })
    }

    /// The graphs before and after, where a page is wanted or their figures are told.
    fn seen(
        &self,
        case: &Case,
        outcomes: Option<&Result<Outcomes, CouldNotRun>>,
        is_told: bool,
    ) -> Option<Seen> {
        let mut seen = (is_told || self.html.is_wanted()).then(|| Seen::new(case))?;
        let is_partition = PassKind::parse(&self.pass).is_some_and(|pass| pass.row().gives == Gives::Parts);
        match outcomes {
            Some(outcomes) => seen.given(outcomes.as_ref().ok()?, is_partition),
            None if self.takes_record(case) => seen.recorded(),
            None => {}
        }
        Some(seen)
    }

    /// Writes the page, where one is wanted.
    fn write_page(
        &self,
        judgement: &Judgement,
        subject: &str,
        views: Vec<View>,
        estimates: Estimates,
        arguments: &[OsString],
        out: &mut dyn Write,
    ) -> Result<(), CouldNotRun> {
        let replay = replay(arguments);
        let is_about_timelines =
            [PassKind::Memory, PassKind::Schedule].map(PassKind::name).contains(&&*self.pass);
        let page = pages::check::Check {
            judgement,
            subject,
            replay: Some(&replay),
            views,
            estimates,
            is_about_timelines,
        };
        self.html.write(out, || page.page())
    }

    /// Judges two partitions, one after the other.
    fn judge_stages(&self, limits: &Limits) -> Result<(Judgement, String, Vec<StageGraphs>), CouldNotRun> {
        if self.pass != PassKind::Partition.name() {
            return Err(CouldNotRun::new(format_args!(
                "--replay: two stages are of a partition, not of {}",
                self.pass
            )));
        }
        let (first, pass) = stage(&self.before, limits)?;
        let second = match &self.after[..] {
            [] => None,
            [second] => Some(stage(second, limits)?.0),
            _ => return Err(CouldNotRun::new("--replay takes two stages: FIRST and SECOND")),
        };
        let mut pass = self.options.config(&self.pass, pass.as_ref())?;
        // A case of the first stage says how that was cut.
        if let Ok(Some(method)) = pass.word("method")
            && method != "replay"
        {
            let method = method.to_string();
            pass.options.retain(|(key, _)| key != "first");
            pass = pass.with("first", method);
        }
        pass.options.retain(|(key, _)| key != "method");
        let pass = pass.with("method", "replay");
        let is_made = |stage: &StageGraphs| stage.parts.is_none();
        let candidate = match is_made(&first) || second.as_ref().is_none_or(is_made) {
            true => self.candidate(limits)?,
            // Everything is given; only what the first parts become when they are traced is computed.
            false => Box::new(Reference),
        };
        let pass = candidate.promised(&pass);
        candidate.check_options(&pass).map_err(CouldNotRun::new)?;
        let before = self.before.display();
        let judgement =
            judge_replay(&first, second.as_ref(), candidate.as_ref(), &pass, &self.judge_options(limits))
                .map_err(|error| CouldNotRun::judging(&self.before, error))?;
        let subject = match &self.after[..] {
            [second] => format!("partition of {before}, replayed in {}", second.display()),
            _ => format!("partition of {before}, and its replay by {}", candidate.name()),
        };
        Ok((judgement, subject, std::iter::once(first).chain(second).collect()))
    }

    /// Reads BEFORE and, at the same time, what came after; `None` where nothing is given.
    fn read(&self, limits: &Limits) -> (Result<Input, CouldNotRun>, Option<Result<Outcomes, CouldNotRun>>) {
        if self.after.is_empty() && self.unrepaired.is_none() {
            return (files::read_with(&self.before, &self.missing, limits), None);
        }
        std::thread::scope(|scope| {
            let before = scope.spawn(|| files::read_with(&self.before, &self.missing, limits));
            let outcomes = self.outcomes(limits);
            let before = before.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (before, Some(outcomes))
        })
    }

    /// The case with its calls in the order of --order, a name a line.
    fn reordered(&self, case: Case, limits: &Limits) -> Result<Case, CouldNotRun> {
        let Some(path) = &self.order else { return Ok(case) };
        let name = path.display();
        let text = files::words(path, limits)?;
        let order: Vec<String> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).map(String::from).collect();
        let graph = crate::rules::memory::reordered(&case.graph, &order)
            .map_err(|why| CouldNotRun::new(format_args!("{name}: {why}")))?;
        Ok(Case { graph, outcome: None, claim: None, ..case })
    }

    /// Both counts of the memory of a graph, for people and for machines.
    fn memory(&self, graph: &Graph, limits: &Limits) -> Result<(String, serde_json::Value), CouldNotRun> {
        let before = self.before.display();
        let faults = crate::judge::input_faults(graph, PassKind::Memory);
        if !faults.is_empty() {
            return Err(CouldNotRun::faults(&self.before, &faults));
        }
        let report =
            MemoryReport::new(graph).map_err(|fault| CouldNotRun::new(format_args!("{before}: {fault}")))?;
        let (mut text, mut json) = (report.text(), report.json());
        if let Some(path) = &self.snapshot {
            let (words, value) = self.measured(path, &report, limits)?;
            text += &words;
            if let Some(json) = json.as_object_mut() {
                json.insert("snapshot".to_string(), value);
            }
        }
        Ok((text, json))
    }

    /// What a memory snapshot measured, beside the graph.
    fn measured(
        &self,
        path: &Path,
        report: &MemoryReport,
        limits: &Limits,
    ) -> Result<(String, serde_json::Value), CouldNotRun> {
        let bytes = files::plain(path, limits)?;
        files::with_snapshot(path, &bytes, limits, |measured| {
            let measured = &measured;
            let (mut text, devices) = measured.beside(report);
            let (faults, name) = (measured.faults(), path.display());
            if faults > 0 {
                text += &format!(
                    "note: the snapshot has {faults} events that cannot be right: graph-oracle lifecycle {name} tells them\n"
                );
            }
            let devices_of = || measured.devices.iter().enumerate();
            let failed = devices_of().flat_map(|(at, device)| {
                device.out_of_memory.iter().map(move |&event| measured.ran_out_at(at, event))
            });
            let notes: Vec<String> =
                failed.chain(devices_of().flat_map(|(_, device)| device.notes.clone())).collect();
            notes.iter().for_each(|note| text += &format!("note: {note}\n"));
            Ok((text, serde_json::json!({ "devices": devices, "faults": faults, "notes": notes })))
        })
    }

    /// What the orders after a schedule are worth, by the estimates that all ranks agree on; `None` where there are
    /// none.
    fn scheduled(
        &self,
        case: &Case,
        outcomes: Option<&Result<Outcomes, CouldNotRun>>,
        config: &PassConfig,
        limits: &Limits,
    ) -> Option<ScheduleReport> {
        let tables = Estimates::of_ranks(&config.estimates).ok()?;
        let estimates = Estimates::agreed(&tables).ok()?;
        let made;
        let outcomes = match (outcomes, &case.outcome) {
            (Some(outcomes), _) => outcomes.as_ref().ok()?,
            (None, Some(recorded)) if self.takes_record(case) => {
                made = judge::recorded_outcomes(recorded);
                &made
            }
            (None, _) => {
                let candidate = self.candidate(limits).ok()?;
                made = schedule::outcomes_of(case, config, candidate.as_ref())?;
                &made
            }
        };
        let ranks = ranks_recorded(&case.graph, &case.programs, outcomes).ok()?;
        Some(ScheduleReport::new(&ranks, &estimates))
    }

    fn judge_options(&self, limits: &Limits) -> Options {
        let values = self.values.values();
        let run_again = self.after.is_empty();
        let element_limit = self.element_limit.unwrap_or(limits.get(Limit::Elements));
        Options { values, element_limit, run_again, ..judging() }
    }

    /// A cyclic input is unusable for every pass, even for a repair that would refuse it.
    fn reject_cycles(&self, before: &Graph) -> Result<(), CouldNotRun> {
        let edges = crate::analysis::Edges::new(before);
        match crate::analysis::cycle::shortest_cycle(&edges) {
            None => Ok(()),
            Some(cycle) => {
                let first = cycle.nodes.first().map(|&id| Spot::Node(before.name(id).to_string()));
                Err(CouldNotRun::new(format_args!(
                    "{}: the graph has a cycle: {}",
                    files::place_of(&self.before, &first.unwrap_or(Spot::File)),
                    cycle.reasons(before, &edges).join("; ")
                )))
            }
        }
    }

    fn judge(
        &self,
        case: Case,
        outcomes: Option<Result<Outcomes, CouldNotRun>>,
        config: PassConfig,
        options: &Options,
        answers: &Answers,
        limits: &Limits,
    ) -> Result<(Judgement, String), CouldNotRun> {
        let before = self.before.display();
        let explain = |error: CannotJudge| CouldNotRun::judging(&self.before, error);
        let Some(outcomes) = outcomes else {
            if self.takes_record(&case) {
                let case = Case { pass: Some(config), ..case };
                let judgement = judge::judge_recorded(&case, options).map_err(explain)?;
                return Ok((judgement, format!("{} recorded in {before}", self.pass)));
            }
            let candidate = self.candidate(limits)?;
            let case = Case { pass: Some(config), outcome: None, parts: None, claim: None, ..case };
            let judgement = match self.html.is_wanted() {
                true => judge::judge(&case, &Heard { candidate: candidate.as_ref(), answers }, options),
                false => judge::judge(&case, candidate.as_ref(), options),
            };
            let judgement = judgement.map_err(explain)?;
            return Ok((judgement, format!("{} of {before} by {}", self.pass, candidate.name())));
        };
        let outcomes = outcomes?;
        let judgement = match case.programs.is_empty() {
            true => judge::judge_outcomes(&case.graph, &config, &outcomes, options),
            false => {
                let outcome = Some(recorded(outcomes));
                judge::judge_recorded(&Case { pass: Some(config), outcome, ..case }, options)
            }
        };
        let judgement = judgement.map_err(explain)?;
        let shown = if self.after.len() > 3 { 2 } else { self.after.len() };
        let mut after: Vec<String> =
            self.after.iter().take(shown).map(|path| path.display().to_string()).collect();
        if self.after.len() > shown {
            after.push(format!("{} more", self.after.len() - shown));
        }
        Ok((judgement, format!("{} of {before}, giving {}", self.pass, after.join(", "))))
    }

    fn outcomes(&self, limits: &Limits) -> Result<Outcomes, CouldNotRun> {
        let graph = |path: &Path| match files::read_with(path, &self.missing, limits)? {
            Input::Graph(graph) => Ok(*graph),
            Input::Case(case) => Ok(case.graph),
            Input::Outcomes(_) => {
                Err(CouldNotRun::new(format_args!("{}: expected one graph", path.display())))
            }
        };
        let mut outcomes = Vec::new();
        for (index, path) in self.after.iter().enumerate() {
            match files::read_with(path, &self.missing, limits)? {
                Input::Outcomes(recorded) => outcomes.extend(recorded),
                input => {
                    let rank = (self.after.len() > 1).then_some(index as u32);
                    outcomes
                        .extend(outcomes_of(input).into_iter().map(|(own, outcome)| (own.or(rank), outcome)));
                }
            }
        }
        if let Some(path) = &self.unrepaired {
            let unrepaired = graph(path)?;
            match outcomes.first_mut() {
                Some((_, outcome)) => outcome.unrepaired = Some(unrepaired),
                None => return Err(CouldNotRun::new("--unrepaired needs AFTER, the graph after its repair")),
            }
        }
        Ok(outcomes)
    }
}

/// What is judged, and how.
struct Prepared {
    case: Case,
    config: PassConfig,
    options: Options,
    remarks: Remarks,
}

/// What is said beside a verdict.
struct Remarks {
    of_graph: Vec<Remark>,
    of_pass: Vec<String>,
}

impl Remarks {
    /// Adds them to the notes, with the places in the file.
    fn note(self, judgement: &mut Judgement, before: &Path) {
        files::place_remarks(&mut judgement.notes, &self.of_graph, before);
        if !self.of_pass.is_empty() {
            let place = files::place_of(before, &Spot::Pass);
            judgement.notes.extend(self.of_pass.into_iter().map(|remark| format!("{place}: {remark}")));
        }
    }
}

/// What a file says that came after: of a case with graphs of ranks, the graph of each rank that has one of its own, and
/// for the others the first.
pub(super) fn outcomes_of(input: Input) -> Outcomes {
    let outcome = |repaired| Outcome { unrepaired: None, repaired };
    match input {
        Input::Graph(graph) => vec![(None, outcome(*graph))],
        Input::Case(case) if case.programs.is_empty() => vec![(None, outcome(case.graph))],
        Input::Case(case) => {
            let ranks = case.graph.world.assume_mesh().and_then(|world| world.ranks).unwrap_or(1);
            let of_rank = |rank: u32| case.programs.iter().find(|program| program.ranks.contains(&rank));
            let graph = |rank| of_rank(rank).map_or(&case.graph, |program| &program.graph);
            (0..ranks).map(|rank| (Some(rank), outcome(graph(rank).clone()))).collect()
        }
        Input::Outcomes(recorded) => recorded,
    }
}

/// Outcomes as a case records them.
pub(super) fn recorded(outcomes: Outcomes) -> Recorded {
    let graphs = |outcome: Outcome| RecordedGraphs {
        unrepaired: outcome.unrepaired,
        repaired: outcome.repaired,
        refused: None,
    };
    let is_same = matches!(outcomes[..], [(None, _)]);
    let mut entries = outcomes.into_iter().map(|(rank, outcome)| (rank.unwrap_or(0), graphs(outcome)));
    match entries.next() {
        Some((_, graphs)) if is_same => Recorded::Same(Box::new(graphs)),
        first => Recorded::PerRank(first.into_iter().chain(entries).collect()),
    }
}

/// A stage of two partitions, and the pass where a case names one: a file with a joint graph, or three files.
fn stage(argument: &Path, limits: &Limits) -> Result<(StageGraphs, Option<PassConfig>), CouldNotRun> {
    let names: Vec<&Path> = match argument.exists() {
        true => vec![argument],
        false => split_at_commas(argument),
    };
    let graph = |path: &Path| files::read(path, limits)?.into_graph(path);
    match names[..] {
        [joint] => match files::read(joint, limits)? {
            Input::Case(case) => {
                let parts = case.parts.map(|parts| (parts.forward, parts.backward));
                Ok((StageGraphs { joint: case.graph, parts }, case.pass))
            }
            input => Ok((StageGraphs { joint: input.into_graph(argument)?, parts: None }, None)),
        },
        [joint, forward, backward] => {
            let parts = Some((graph(forward)?, graph(backward)?));
            Ok((StageGraphs { joint: graph(joint)?, parts }, None))
        }
        _ => Err(CouldNotRun::new(format_args!(
            "{}: a stage is a joint graph, or the three files JOINT,FORWARD,BACKWARD",
            argument.display()
        ))),
    }
}

/// The paths in `JOINT,FORWARD,BACKWARD`, in whatever encoding.
#[cfg(unix)]
fn split_at_commas(argument: &Path) -> Vec<&Path> {
    use std::os::unix::ffi::OsStrExt;
    let bytes = argument.as_os_str().as_bytes();
    bytes.split(|&byte| byte == b',').map(|part| Path::new(std::ffi::OsStr::from_bytes(part))).collect()
}

/// The paths in `JOINT,FORWARD,BACKWARD`.
#[cfg(not(unix))]
fn split_at_commas(argument: &Path) -> Vec<&Path> {
    argument.to_str().map_or(vec![argument], |text| text.split(',').map(Path::new).collect())
}

/// Whether the result is no permutation, or is out of order: figures of it would mean nothing.
fn order_is_broken(judgement: &Judgement) -> bool {
    let broken = ["order/permutation", "order/producer-before-reader"];
    judgement.violated_rules().iter().any(|rule| broken.contains(rule))
}

/// The command line, quoted for a shell where needed.
fn replay(arguments: &[OsString]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    let quote = |argument: &OsString| match argument.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(plain) => text.to_string(),
        Some(text) => format!("'{}'", text.replace('\'', r"'\''")),
        // Bytes that are no text, as bash takes them.
        None => {
            let bytes = argument.as_encoded_bytes().iter();
            let text: String = bytes
                .map(|&byte| match char::from(byte) {
                    c if plain(c) => c.to_string(),
                    _ => format!("\\x{byte:02x}"),
                })
                .collect();
            format!("$'{text}'")
        }
    };
    let rest = arguments.iter().skip(1).map(quote);
    std::iter::once("graph-oracle".to_string()).chain(rest).collect::<Vec<_>>().join(" ")
}
