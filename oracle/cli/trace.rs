//! `graph-oracle trace` and `graph-oracle watch`: judge what PyTorch wrote with TORCH_TRACE or TORCH_LOGS, or is still
//! writing.

use super::html::Html;
use super::numbers::within;
use super::{CouldNotRun, Format, Status, files, formats, print, signals};
use crate::candidates::judging;
use crate::case::{PassConfig, Setting};
use crate::format::json::Document;
use crate::graph::World;
use crate::judge::{self, Verdict};
use crate::limits::{Limit, Limits};
use crate::rules::{Policies, Reason};
use crate::trace::{Cost, Follow, Options, Outcome, ReadGraph, Row, TraceReport, judge_folder, watch_folder};
use clap::Args;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

#[derive(Args, Debug)]
pub(super) struct Trace {
    /// The folder that TORCH_TRACE named, or one file of it; or what TORCH_LOGS wrote to stderr. All may be gzip.
    folder: PathBuf,
    #[command(flatten)]
    known: Known,
    /// Write every graph into this folder, as rank_R/FRAME_COMPILE/ARTIFACT.json: exchange JSON, which check, show, run
    /// and convert read.
    #[arg(long, value_name = "DIR")]
    extract: Option<PathBuf>,
    /// The format of the report.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    listing: Listing,
    #[command(flatten)]
    html: Html,
}

#[derive(Args, Debug)]
pub(super) struct Watch {
    /// The folder that TORCH_TRACE names, or one file of it.
    folder: PathBuf,
    #[command(flatten)]
    known: Known,
    /// Seconds between two looks at the folder.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    every: f64,
    /// Ends when nothing was written for so many seconds; else Ctrl-C does.
    #[arg(long, value_name = "SECONDS")]
    until_idle: Option<f64>,
    #[command(flatten)]
    listing: Listing,
}

/// What texts do not say.
#[derive(Args, Debug)]
struct Known {
    /// Ranks and process groups: exchange JSON with `world` and `groups`.
    #[arg(long, value_name = "FILE")]
    groups: Option<PathBuf>,
    /// How many ranks the world has: among them the members of groups are looked for whose names are hashes.
    #[arg(long, value_name = "N", value_parser = within::<u32>(1, Limit::Ranks.standard()))]
    ranks: Option<u32>,
    /// An fx_graph_runnable.py of the same graph: what it says of inputs, symbols and groups completes graphs whose
    /// inputs have its names.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// What passes may do beyond keeping every bit, as in check rewrite --allow; instead of what is known of passes by
    /// name.
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    allow: Vec<String>,
    /// What every pass promises, as in check rewrite --demand.
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    demand: Vec<String>,
}

impl Known {
    fn options(&self, limits: &Limits) -> Result<Options, CouldNotRun> {
        let mut world = match &self.groups {
            Some(path) => files::world(path, limits)?,
            None => World::default(),
        };
        if let (Some(given), Some(stated)) = (self.ranks, world.ranks)
            && given != stated
        {
            return Err(CouldNotRun::new(format_args!(
                "--ranks says {given}, and --groups {stated}: give one of them"
            )));
        }
        world.ranks = world.ranks.or(self.ranks);
        let runnable =
            self.from.as_ref().map(|from| files::runnable(from, limits)).transpose()?.map(Arc::new);
        // A proof is enough; what it leaves open is executed.
        let values = judge::Values::ProofFirst;
        let judge = judge::Options { values, element_limit: limits.get(Limit::Elements), ..judging() };
        let (allow, demand) = (self.allow.clone(), self.demand.clone());
        check_keys(&allow, &demand)?;
        let (text, parts) = (limits.get(Limit::Text), limits.get(Limit::Parts));
        Ok(Options { judge, allow, demand, world, text, parts, runnable, reads_only: false })
    }
}

/// Whether everything that is allowed or demanded exists.
fn check_keys(allow: &[String], demand: &[String]) -> Result<(), CouldNotRun> {
    let list = |items: &[String]| Setting::List(items.iter().cloned().map(Setting::Text).collect());
    let mut pass = PassConfig::new("rewrite");
    for (key, items) in [("allow", allow), ("demand", demand)] {
        if !items.is_empty() {
            pass.set(key.to_string(), list(items));
        }
    }
    Policies::from_pass(&pass, false).map(|_| ()).map_err(CouldNotRun::new)
}

#[derive(Args, Debug)]
struct Listing {
    /// List pairs that the pass did not change, and what is to be said of how each was read.
    #[arg(long, short)]
    verbose: bool,
}

impl Trace {
    pub(super) fn run(&self, limits: &Limits, out: &mut dyn Write) -> Result<Status, CouldNotRun> {
        let mut report = judge_folder(&self.folder, &self.known.options(limits)?)
            .map_err(|error| files::in_file(&self.folder, &error))?;
        if let Some(folder) = &self.extract {
            report.notes.extend(extract(&report.graphs, folder)?);
        }
        let table = || self.listing.table(&report) + "\n" + &summary(&report);
        let results = || {
            let said = summary(&report);
            let notes = said.lines().filter_map(|line| Some(line.strip_prefix("note: ")?.to_string()));
            let headline = said.lines().next().unwrap_or("").to_string();
            formats::trace::trace(&report, &self.folder, headline, notes.collect())
        };
        self.html.write(out, || page(&report, &self.folder))?;
        let mut nowhere = std::io::sink();
        self.format.print(self.html.beside(out, &mut nowhere), table, || json(&report), results)?;
        Ok(status(&report))
    }
}

/// Writes all graphs into a folder; what is to be said of it, a line each.
fn extract(graphs: &[ReadGraph], folder: &Path) -> Result<Vec<String>, CouldNotRun> {
    let mut written: BTreeMap<PathBuf, usize> = BTreeMap::new();
    let mut notes = Vec::new();
    for read in graphs {
        let rank = read.rank.map_or("rank_unknown".to_string(), |rank| format!("rank_{rank}"));
        let id = match read.id.to_string().replace(['/', '!', '?'], "_") {
            id if id == "-" => "no_frame".to_string(),
            id => id,
        };
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
        let name: String = read.name.chars().map(plain).collect();
        let place = folder.join(&rank).join(&id).join(&name);
        let printed = match &read.graph {
            Ok(printed) => printed,
            Err(why) => {
                notes.push(format!("{} is not written: {why}", place.display()));
                continue;
            }
        };
        // A compilation may write several graphs under one name.
        let number = written.entry(place.clone()).or_default();
        *number += 1;
        let suffix = if *number > 1 { format!("_{number}") } else { String::new() };
        let at_place = |error| files::in_file(&place, &error);
        std::fs::create_dir_all(folder).map_err(at_place)?;
        let of_rank = crate::files::folder_inside(folder, &rank).map_err(at_place)?;
        let of_frame = crate::files::folder_inside(&of_rank, &id).map_err(at_place)?;
        let document = Document::Graph(Box::new(printed.graph.clone()));
        crate::files::write_path_inside(&document, &of_frame, &format!("{name}{suffix}.json"))
            .map_err(at_place)?;
    }
    let count = written.values().sum();
    notes.push(format!("{} written to {}", crate::words::count(count, "graph"), folder.display()));
    Ok(notes)
}

/// The report as a page.
fn page(report: &TraceReport, folder: &Path) -> String {
    let rows = report.rows.iter().map(|row| pages::trace::Row {
        pass: row.pass.clone(),
        frame: row.id.to_string(),
        rank: row.rank,
        place: place(row),
        verdict: verdict(&row.outcome),
        why: why(row),
        judgement: match &row.outcome {
            Outcome::Judged(judgement) => Some(judgement),
            _ => None,
        },
        allowed: row.allowed.as_deref(),
        cost: row.cost,
        notes: &row.notes,
    });
    let notes: Vec<String> =
        report.notes.iter().cloned().chain(assumed(report).map(str::to_string)).collect();
    let summary = summary(report);
    pages::trace::Trace {
        subject: &folder.display().to_string(),
        summary: summary.lines().next().unwrap_or(""),
        rows: rows.collect(),
        rank_findings: &report.rank_findings,
        rank_doubts: &report.rank_doubts,
        notes: &notes,
    }
    .page()
}

/// Where the graphs of a row stand.
fn place(row: &Row) -> String {
    match row.lines {
        (before, Some(after)) => format!("{}:{before} and :{after}", row.file),
        (before, None) => format!("{}:{before}", row.file),
    }
}

impl Watch {
    pub(super) fn run(&self, limits: &Limits, out: &mut dyn Write) -> Result<Status, CouldNotRun> {
        let seconds = |flag: &str, seconds: f64| {
            Duration::try_from_secs_f64(seconds)
                .map_err(|_| CouldNotRun::new(format_args!("--{flag} {seconds}: no number of seconds")))
        };
        let stop = signals::stop_on_signals()?;
        let follow = Follow {
            every: seconds("every", self.every)?,
            until_idle: self.until_idle.map(|idle| seconds("until-idle", idle)).transpose()?,
            stop,
        };
        let options = self.known.options(limits)?;
        let mut show = |row: &Row| -> io::Result<()> {
            if self.listing.shows(row) {
                let [pass, frame, rank, verdict, ..] = cells(row);
                let mut text = format!("{verdict:<10}  rank {rank:<3} {frame:<8} {pass}\n");
                self.listing.details(row, &mut text);
                print(out, &text).map_err(|error| io::Error::other(error.to_string()))?;
            }
            Ok(())
        };
        let report = watch_folder(&self.folder, &options, &follow, &mut show)
            .map_err(|error| files::in_file(&self.folder, &error))?;
        print(out, &summary(&report))?;
        Ok(status(&report))
    }
}

/// The exit status that a report asks for.
fn status(report: &TraceReport) -> Status {
    let has = |word: &str| report.rows.iter().any(|row| verdict(&row.outcome) == word);
    match () {
        () if has("violated") || !report.rank_findings.is_empty() => Status::Violated,
        () if report.is_partial || has("undecided") || has("refused") || has("not judged") => {
            Status::Undecided
        }
        () if !report.rank_doubts.is_empty() => Status::Undecided,
        () if report.rows.is_empty() => Status::Undecided,
        () => Status::Sound,
    }
}

/// How many pairs there are of each verdict, and what is to be said of the whole.
fn summary(report: &TraceReport) -> String {
    let mut text = String::new();
    let count = |word: &str| report.rows.iter().filter(|row| verdict(&row.outcome) == word).count();
    let words = ["sound", "unchanged", "violated", "undecided", "refused", "not judged"];
    let counts: Vec<String> = words
        .iter()
        .map(|word| (count(word), word))
        .filter(|&(count, _)| count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let pairs = crate::words::count(report.rows.len(), "pair");
    let files = crate::words::count(report.files, "file");
    let counts = if counts.is_empty() { "nothing to judge".to_string() } else { counts.join(", ") };
    let _ = writeln!(text, "{pairs} in {files}: {counts}");
    for line in &report.rank_findings {
        let _ = writeln!(text, "RANKS DIFFER: {line}");
    }
    for line in &report.rank_doubts {
        let _ = writeln!(text, "RANKS MAY DIFFER: {line}");
    }
    let assumed = assumed(report).map(str::to_string);
    for note in report.notes.iter().cloned().chain(assumed) {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

impl Listing {
    /// Whether a row is listed.
    fn shows(&self, row: &Row) -> bool {
        self.verbose || row.outcome != Outcome::Unchanged
    }

    fn table(&self, report: &TraceReport) -> String {
        let shown: Vec<&Row> = report.rows.iter().filter(|row| self.shows(row)).collect();
        let mut table = vec![HEAD.map(String::from)];
        table.extend(shown.iter().map(|row| cells(row)));
        let mut text = String::new();
        let width =
            |column: usize| table.iter().map(|cells| cells[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
        for (number, cells) in table.iter().enumerate() {
            let line: Vec<String> = cells
                .iter()
                .enumerate()
                .map(|(column, cell)| match column < FIRST_NUMBER {
                    true => format!("{cell:width$}", width = widths[column]),
                    false => format!("{cell:>width$}", width = widths[column]),
                })
                .collect();
            let _ = writeln!(text, "{}", line.join("  ").trim_end());
            if let Some(row) = number.checked_sub(1).and_then(|number| shown.get(number)) {
                self.details(row, &mut text);
            }
        }
        text
    }

    /// What is to be said below a row.
    fn details(&self, row: &Row, text: &mut String) {
        let mut lines = why(row);
        if let (Some(allowed), Outcome::Judged(judgement)) = (&row.allowed, &row.outcome) {
            lines.push(format!("with --allow {allowed}, which passes of this name do:"));
            lines.extend(judgement.notes.iter().filter(|note| is_of_values(note)).cloned());
        }
        if self.verbose {
            lines.extend(row.notes.iter().cloned());
        }
        if !lines.is_empty() {
            lines.insert(0, place(row));
        }
        for line in lines {
            let _ = writeln!(text, "    {line}");
        }
    }
}

/// Whether a note says how values were compared.
fn is_of_values(note: &str) -> bool {
    note.starts_with("symbolic values") || note.starts_with("concrete values")
}

/// What verdicts rest on that the texts do not say.
fn assumed(report: &TraceReport) -> impl Iterator<Item = &'static str> + use<> {
    let is_judged = report.count(|outcome| matches!(outcome, Outcome::Judged(_))) > 0;
    let all = [
        "texts do not say which inputs share memory, nor what constants hold: without an fx_graph_runnable inputs are taken \
         to be distinct, and constants of one name to be one",
        "each rank's graph is judged as one that all ranks run; ranks are compared by their launches, and judged together \
         where one text became several",
    ];
    all.into_iter().filter(move |_| is_judged)
}

/// The columns of the table.
const HEAD: [&str; 9] =
    ["pass", "frame", "rank", "verdict", "time", "collectives", "peak MB", "exposed us", "nodes"];

/// The columns before it hold words.
const FIRST_NUMBER: usize = 4;

/// The verdict in a word.
fn verdict(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Unchanged => "unchanged",
        Outcome::NotJudged(_) => "not judged",
        Outcome::Judged(judgement) => match judgement.verdict {
            Verdict::Sound => "sound",
            Verdict::Violated(_) => "violated",
            Verdict::Refused(_) => "refused",
            Verdict::Undecided(_) => "undecided",
        },
    }
}

/// Why a pair is not sound, a line each.
fn why(row: &Row) -> Vec<String> {
    let reason = |reason: &Reason| format!("{reason}");
    match &row.outcome {
        Outcome::Unchanged => Vec::new(),
        Outcome::NotJudged(why) => vec![why.clone()],
        Outcome::Judged(judgement) => match &judgement.verdict {
            Verdict::Sound => Vec::new(),
            Verdict::Violated(findings) => {
                findings.iter().map(|finding| format!("{}: {}", finding.rule, finding.title)).collect()
            }
            Verdict::Refused(why) => vec![reason(why)],
            Verdict::Undecided(why) => why.iter().map(reason).collect(),
        },
    }
}

fn cells(row: &Row) -> [String; 9] {
    let change = |of: &dyn Fn(&Cost) -> Option<String>| match &row.cost {
        None => String::new(),
        Some((before, after)) => {
            let (before, after) = (of(before), of(after));
            let words = |value: Option<String>| value.unwrap_or_else(|| "?".to_string());
            match before == after {
                true => words(before),
                false => format!("{} > {}", words(before), words(after)),
            }
        }
    };
    [
        row.pass.clone(),
        row.id.to_string(),
        row.rank.map_or("?".to_string(), |rank| rank.to_string()),
        verdict(&row.outcome).to_string(),
        format!("{:.0} ms", row.time.as_secs_f64() * 1e3),
        change(&|cost| Some(cost.collectives.to_string())),
        change(&|cost| cost.peak.map(|bytes| format!("{:.2}", bytes as f64 / 1e6))),
        change(&|cost| cost.exposed.map(|nanoseconds| format!("{:.1}", nanoseconds as f64 / 1e3))),
        change(&|cost| Some(cost.nodes.to_string())),
    ]
}

/// The report for machines (docs/report.md).
fn json(report: &TraceReport) -> Value {
    let cost = |cost: &Cost| {
        json!({
            "nodes": cost.nodes,
            "collectives": cost.collectives,
            "peak_bytes": cost.peak,
            "exposed_nanoseconds": cost.exposed,
        })
    };
    let rows: Vec<Value> = report
        .rows
        .iter()
        .map(|row| {
            json!({
                "pass": row.pass,
                "id": row.id.to_string(),
                "rank": row.rank,
                "file": row.file,
                "lines": { "before": row.lines.0, "after": row.lines.1 },
                "verdict": verdict(&row.outcome),
                "why": why(row),
                "allowed": row.allowed,
                "seconds": row.time.as_secs_f64(),
                "before": row.cost.as_ref().map(|(before, _)| cost(before)),
                "after": row.cost.as_ref().map(|(_, after)| cost(after)),
                "notes": row.notes,
            })
        })
        .collect();
    json!({
        "report_version": "graph-oracle-trace/1",
        "files": report.files,
        "pairs": rows,
        "ranks_differ": report.rank_findings,
        "ranks_may_differ": report.rank_doubts,
        "notes": report.notes.iter().cloned().chain(assumed(report).map(str::to_string)).collect::<Vec<String>>(),
    })
}
