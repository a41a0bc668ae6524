//! The command line: parsing arguments and printing. Every decision is made elsewhere.
//!
//! Exit status: 0 sound, 1 violated, 2 could not run (bad arguments, unreadable input), 3 undecided, refused or nothing
//! judged, 77 left out for want of a GPU, 130 and 143 stopped by Ctrl-C and SIGTERM.

mod check;
mod cluster;
mod files;
mod flight;
mod formats;
mod found;
mod fuzz;
mod html;
mod idle;
mod keep;
mod lifecycle;
mod numbers;
mod pair;
mod pointed;
mod python;
mod reduce;
mod rules;
mod run;
mod score;
mod seen;
mod serve;
mod shell;
mod show;
mod signals;
mod simulate;
mod smoke;
mod sweep;
mod terminal;
mod timing;
mod trace;
mod worker;

use crate::judge::CannotJudge;
use crate::limits::{Limit, Limits};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use formats::{Format, ReportFormat, TextOrJson};
use std::ffi::OsString;
use std::fmt;
use std::io::Write;
use terminal::Terminal;
use timing::Timing;

pub use pair::{Pair, read_graph};

/// The commit that the program was built from (build.rs); empty where that is not known.
const COMMIT: &str = match option_env!("GRAPH_ORACLE_COMMIT") {
    Some(commit) => commit,
    None => "",
};

/// The version, with the commit where that is known.
const VERSION: &str = match option_env!("GRAPH_ORACLE_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

/// Says whether a distributed-training graph pass did its job, and why not.
#[derive(Parser, Debug)]
#[command(name = "graph-oracle", version = VERSION, about, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Raises or lowers a limit, such as text=2GiB or elements=20000000 (repeatable; docs/limits.md)
    #[arg(long = "limit", global = true, value_name = "NAME=VALUE", value_parser = limit)]
    limits: Vec<(Limit, u64)>,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Make graphs, run a candidate on them, judge it, and print the smallest graphs that break it.
    Fuzz(fuzz::Fuzz),
    /// What campaigns have found: one or more --out folders as one summary.
    Results(fuzz::Results),
    /// Say how soon the planted bugs are convicted.
    Score(score::Score),
    /// Serve the reference or another candidate as a worker: requests on standard input, answers on standard output.
    Worker(worker::Serve),
    /// Drive a worker through right, wrong and hostile exchanges, and print what it fails.
    WorkerTest(worker::Test),
    /// Make a case smaller while it breaks the same rule.
    Reduce(reduce::Reduce),
    /// Make a test of a finding, which passes once the pass is right.
    Keep(keep::Keep),
    /// Judge what a pass did: a graph before and after it. Without AFTER, run a candidate and judge it.
    Check(check::Check),
    /// Run the reference (or another candidate) alone and write its result.
    Run(run::Run),
    /// Run all ranks against each other: do they finish, and what communication is exposed? Or look at where they
    /// stood.
    Simulate(simulate::Simulate),
    /// Replay schedules on a device: values, lifetimes and memory, step by step.
    Smoke(smoke::Smoke),
    /// Judge every pass whose graphs are in a folder of TORCH_TRACE.
    Trace(trace::Trace),
    /// The same of a folder that still grows: a row as soon as a pass has written its graphs.
    Watch(trace::Watch),
    /// Judge the events of an executor (allocations, frees, reads, writes), or a memory snapshot of PyTorch.
    Lifecycle(lifecycle::Lifecycle),
    /// Print a graph as text, JSON, DOT or a picture.
    Show(show::Show),
    /// Convert between formats, chosen by the file names' endings.
    Convert(show::Convert),
    /// Print the catalogue of rules, or one rule.
    Rules(rules::Rules),
    /// Print completions for a shell.
    Completions(shell::Completions),
    /// Print the manual page, or write one for each command.
    Man(shell::Man),
    /// Show pages in a browser on this machine: a form for two graphs, and a folder.
    Serve(serve::Serve),
}

/// The exit status of a run that came to an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Status {
    /// Sound, or done.
    Sound = 0,
    /// Some rule is violated.
    Violated = 1,
    /// The input or the arguments cannot be used.
    CouldNotRun = 2,
    /// Undecided or refused only, or nothing was judged.
    Undecided = 3,
    /// Left out, as was asked for where there is no GPU.
    Skipped = 77,
    /// Stopped by Ctrl-C.
    Interrupted = 130,
    /// Stopped by SIGTERM.
    Terminated = 143,
}

/// Why the program could not run: one clear message, each line complete in itself.
#[derive(Debug)]
pub struct CouldNotRun(String);

/// Faults of one file that are told at most.
const MOST_FAULTS: usize = 20;

impl CouldNotRun {
    fn new(message: impl fmt::Display) -> CouldNotRun {
        let mut message = message.to_string();
        crate::words::cut_lines(&mut message);
        CouldNotRun(message)
    }

    /// The faults of what a file holds, a line each, with the line and column of what is at fault.
    fn faults(file: &std::path::Path, faults: &[impl fmt::Display]) -> CouldNotRun {
        let places = files::places(file);
        let line = |fault: &dyn fmt::Display| {
            let fault = fault.to_string();
            let file = file.display();
            match places.of_fault(&fault) {
                Some(at) => format!("{file}:{}:{}: {fault}", at.line, at.column),
                None => format!("{file}: {fault}"),
            }
        };
        let mut lines: Vec<String> = faults.iter().take(MOST_FAULTS).map(|fault| line(fault)).collect();
        if let Some(more) = faults.len().checked_sub(MOST_FAULTS).filter(|more| *more > 0) {
            lines.push(format!("{}: and {more} more", file.display()));
        }
        CouldNotRun::new(lines.join("\n"))
    }

    /// Why what is in a file cannot be judged.
    fn judging(file: &std::path::Path, error: CannotJudge) -> CouldNotRun {
        match error {
            CannotJudge::Input(faults) => CouldNotRun::faults(file, &faults),
            CannotJudge::Pass(why) => CouldNotRun(why),
        }
    }
}

impl fmt::Display for CouldNotRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `text=2GiB`
fn limit(text: &str) -> Result<(Limit, u64), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let limit = Limit::named(name).ok_or_else(|| {
        let raised = || Limit::ALL.iter().filter(|limit| !limit.is_fixed());
        let all: Vec<String> = raised().map(ToString::to_string).collect();
        let meant = crate::words::near(name, raised().map(|limit| limit.name()));
        let meant = meant.map_or("; these".to_string(), |meant| format!(": did you mean {meant:?}? These"));
        format!("no limit is called {name:?}{meant} can be set: {}", all.join(", "))
    })?;
    let value = crate::quantity::size(value)?;
    Limits::default().with(limit, value).map_err(|error| error.to_string())?;
    Ok((limit, value))
}

/// The limits that the arguments ask for.
fn limits(set: &[(Limit, u64)]) -> Limits {
    set.iter().fold(Limits::default(), |limits, &(limit, value)| {
        limits.clone().with(limit, value).unwrap_or(limits)
    })
}

/// Runs the program on `arguments` (the program's name first). Output goes to `out`, complaints to `complain`; both
/// with what could steer a terminal escaped.
pub fn run(arguments: &[OsString], out: &mut dyn Write, complain: &mut dyn Write) -> Status {
    run_in_colour(arguments, (out, false), (complain, false))
}

/// The same, with verdicts in colour on the writers that take it.
pub fn run_in_colour(
    arguments: &[OsString],
    (out, out_coloured): (&mut dyn Write, bool),
    (complain, complain_coloured): (&mut dyn Write, bool),
) -> Status {
    crate::threads::limit_pool();
    signals::outlive_long_files();
    let (out, complain) =
        (&mut Terminal::new(out, out_coloured), &mut Terminal::new(complain, complain_coloured));
    let matches = Arguments::command().try_get_matches_from(arguments);
    let parsed = matches.and_then(|matches| Ok((Arguments::from_arg_matches(&matches)?, matches)));
    let (parsed, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) if error.use_stderr() => {
            let _ = write!(complain, "{error}");
            return Status::CouldNotRun;
        }
        Err(help) => {
            let _ = write!(out, "{help}");
            return Status::Sound;
        }
    };
    if let Err(why) = idle::refuse(&matches, &parsed.limits) {
        let _ = writeln!(complain, "graph-oracle: {why}");
        return Status::CouldNotRun;
    }
    if let Err(why) = refuse_arguments(arguments, &matches) {
        let _ = writeln!(complain, "graph-oracle: {}", why.0);
        return Status::CouldNotRun;
    }
    let limits = limits(&parsed.limits);
    match dispatch(&parsed.command, arguments, &limits, out, complain) {
        Ok(status) => status,
        Err(error) => {
            let _ = writeln!(complain, "graph-oracle: {}", error.0.trim_end());
            Status::CouldNotRun
        }
    }
}

/// Refuses what would do harm: a name with a line break, which could pass for a line of ours in a log that is read by
/// machines (a worker's command may have some), and a page over a file that is none.
fn refuse_arguments(arguments: &[OsString], matches: &clap::ArgMatches) -> Result<(), CouldNotRun> {
    let before = std::iter::once(None).chain(arguments.iter().map(Some));
    for (before, argument) in before.zip(arguments).skip(1) {
        let is_command = |word: &OsString| {
            ["--worker", "--against"].iter().any(|flag| word.to_string_lossy().starts_with(flag))
        };
        let breaks = argument.to_string_lossy().contains(['\n', '\r']);
        if breaks && !is_command(argument) && !before.is_some_and(is_command) {
            return Err(CouldNotRun::new(format_args!("{argument:?}: holds a line break")));
        }
    }
    let page =
        matches.subcommand().and_then(|(_, given)| given.try_get_one::<std::path::PathBuf>("html").ok()?);
    page.map_or(Ok(()), |path| html::refuse_other(path))
}

/// The command that arguments (without the program's name) ask for, and all the arguments.
fn parsed(arguments: Vec<OsString>) -> Result<(Vec<OsString>, Command), CouldNotRun> {
    let all: Vec<OsString> = std::iter::once("graph-oracle".into()).chain(arguments).collect();
    let parsed = Arguments::try_parse_from(&all).map_err(CouldNotRun::new)?;
    Ok((all, parsed.command))
}

/// Runs a command.
fn dispatch(
    command: &Command,
    arguments: &[OsString],
    limits: &Limits,
    out: &mut dyn Write,
    complain: &mut dyn Write,
) -> Result<Status, CouldNotRun> {
    match command {
        Command::Fuzz(fuzz) => fuzz.run(arguments, limits, out),
        Command::Results(results) => results.run(out),
        Command::Score(score) => score.run(limits, out),
        Command::Worker(serve) => serve.run(out),
        Command::WorkerTest(test) => test.run(limits, out),
        Command::Reduce(reduce) => reduce.run(limits, out, complain),
        Command::Keep(keep) => keep.run(limits, out),
        Command::Check(check) => check.run(arguments, limits, out),
        Command::Run(run) => run.run(limits, out),
        Command::Simulate(show) => show.run(limits, out),
        Command::Smoke(smoke) => smoke.run(limits, out),
        Command::Trace(trace) => trace.run(limits, out),
        Command::Watch(watch) => watch.run(limits, out),
        Command::Lifecycle(lifecycle) => lifecycle.run(limits, out),
        Command::Show(show) => show.run(limits, out),
        Command::Convert(convert) => convert.run(limits, out),
        Command::Rules(rules) => rules.run(out),
        Command::Completions(completions) => completions.run(out),
        Command::Man(man) => man.run(out),
        Command::Serve(serve) => serve.run(limits, out),
    }
}

/// Writes to standard output; a reader that has gone away is no error.
fn print(out: &mut dyn Write, text: &str) -> Result<(), CouldNotRun> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(CouldNotRun::new(format_args!("cannot write the output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Options that a pass takes, as `key=value`.
#[derive(clap::Args, Clone, Debug, Default)]
struct PassOptions {
    /// An option of the pass, as in a case file: kind=all_gather, cap=64MiB, mode=custom_ops, ... (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// The method of a pass that has several: the same as --set method=METHOD
    #[arg(long)]
    method: Option<String>,
}

impl PassOptions {
    /// The pass with its options; those of a case file first, overridden by those of the command line.
    fn config(
        &self,
        pass: &str,
        case: Option<&crate::case::PassConfig>,
    ) -> Result<crate::case::PassConfig, CouldNotRun> {
        let mut config = crate::case::PassConfig::new(pass);
        if let Some(case) = case.filter(|case| case.name == pass) {
            config = case.clone();
        }
        for (key, value) in self.settings()? {
            config.set(key, value);
        }
        Ok(config)
    }

    /// What the command line sets.
    fn settings(&self) -> Result<Vec<(String, crate::case::Setting)>, CouldNotRun> {
        let method = self.method.iter().map(|method| format!("method={method}"));
        let mut settings: Vec<(String, crate::case::Setting)> = Vec::new();
        for setting in self.set.iter().cloned().chain(method) {
            let Some((key, value)) = setting.split_once('=') else {
                return Err(CouldNotRun::new(format_args!("--set {setting}: expected KEY=VALUE")));
            };
            let value = match value.strip_prefix('[').and_then(|v| v.strip_suffix(']')) {
                None => crate::case::Setting::Text(value.to_string()),
                Some(list) => crate::case::Setting::List(
                    list.split([',', ' '])
                        .filter(|item| !item.is_empty())
                        .map(|item| crate::case::Setting::Text(item.to_string()))
                        .collect(),
                ),
            };
            match settings.iter().find(|(known, _)| known == key) {
                Some((_, other)) if *other != value => {
                    let why = format_args!("--set {key}: given twice, as {other} and as {value}");
                    return Err(CouldNotRun::new(why));
                }
                Some(_) => {}
                None => settings.push((key.to_string(), value)),
            }
        }
        Ok(settings)
    }
}

/// A path, or `-` for standard output.
fn is_stdout(path: &std::path::Path) -> bool {
    path.as_os_str() == "-"
}
