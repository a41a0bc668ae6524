//! `graph-oracle simulate`: do all ranks finish? And where did they stand?

use super::files::{self, Input};
use super::flight;
use super::html::Html;
use super::{CouldNotRun, Format, Status, formats};
use crate::candidates::judging;
use crate::case::Case;
use crate::graph::Graph;
use crate::limits::Limits;
use crate::simulate::{self, Estimates, Messages, Options, Programs, Streams, Timeline};
use crate::trace;
use clap::{Args, ValueEnum};
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub(super) struct Simulate {
    /// The graph that all ranks run, or a case with graphs of ranks; or several graphs, which the ranks run in turn (or
    /// as --ranks says); or a folder of TORCH_TRACE, of which each rank runs the first graphs of its compilations.
    #[arg(required_unless_present = "flight")]
    graphs: Vec<PathBuf>,
    /// Dumps of PyTorch's flight recorder, one for each rank, or a folder of them (docs/schedule.md): who waits where,
    /// and what the graph says. Then nothing is simulated.
    #[arg(long, value_name = "DUMP", num_args = 1..)]
    flight: Vec<PathBuf>,
    /// For each rank the number of its graph, from 0: 0,0,1,1.
    #[arg(long, value_delimiter = ',', value_name = "N,...")]
    ranks: Vec<usize>,
    /// When messages between two ranks are complete.
    #[arg(long, value_enum, default_value_t = MessagesArgument::Rendezvous)]
    messages: MessagesArgument,
    /// One stream for all communicators of a rank, rather than one for each.
    #[arg(long)]
    one_stream: bool,
    /// Where to write the simulated timeline, for Perfetto.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// The format of the report.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    html: Html,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum MessagesArgument {
    /// A send and its receive complete together.
    Rendezvous,
    /// The same, and the host stands still until then.
    Blocking,
    /// A send is complete when it is launched.
    Buffered,
}

impl Simulate {
    pub(super) fn run(&self, limits: &Limits, out: &mut dyn Write) -> Result<Status, CouldNotRun> {
        if self.graphs.is_empty() {
            return flight::run(&self.flight, None, self.format, limits, out);
        }
        if let [folder] = &self.graphs[..]
            && folder.is_dir()
        {
            let (programs, notes) = traced(folder)?;
            return self.simulate(&programs, &notes, limits, out);
        }
        let mut graphs: Vec<Graph> = Vec::new();
        let mut of_rank = self.ranks.clone();
        let mut estimates = Estimates::default();
        let mut read = Vec::new();
        for path in &self.graphs {
            match files::read(path, limits)? {
                // Ranks with graphs of their own, and their estimates.
                Input::Case(case) if self.graphs.len() == 1 && self.ranks.is_empty() => {
                    let case = *case;
                    estimates = agreed(&case, path)?;
                    of_rank = graphs_of_ranks(&case, path)?;
                    read.push((case.graph, path));
                    read.extend(case.programs.into_iter().map(|program| (program.graph, path)));
                }
                Input::Case(case) if !case.programs.is_empty() => {
                    let why = "it has graphs of ranks, which are simulated where it is the only file";
                    return Err(CouldNotRun::new(format_args!("{}: {why}", path.display())));
                }
                input => read.push((input.into_graph(path)?, path)),
            }
        }
        for (graph, path) in read {
            let faults = crate::judge::input_faults(&graph, crate::rules::PassKind::Schedule);
            if !faults.is_empty() {
                return Err(CouldNotRun::faults(path, &faults));
            }
            graphs.push(graph);
        }
        if let Some(number) = self.ranks.iter().find(|&&number| number >= graphs.len()) {
            return Err(CouldNotRun::new(format_args!(
                "--ranks: there is no graph {number}; the last is {}",
                graphs.len() - 1
            )));
        }
        let all: Vec<&Graph> = graphs.iter().collect();
        let world = graphs.first().and_then(|graph| graph.world.assume_mesh());
        let ranks = world.and_then(|world| world.ranks).unwrap_or(1) as usize;
        if !self.ranks.is_empty() && self.ranks.len() != ranks {
            let given = self.ranks.len();
            return Err(CouldNotRun::new(format_args!(
                "--ranks: {given} graphs are named, and the world has {ranks} ranks: name one for each"
            )));
        }
        if of_rank.is_empty() {
            of_rank = (0..ranks).map(|rank| rank % graphs.len()).collect();
        }
        let is_idle = |(number, _): &(usize, _)| !of_rank.contains(number);
        if let Some((_, path)) =
            self.graphs.iter().enumerate().find(is_idle).filter(|_| self.graphs.len() > 1)
        {
            let why = format_args!("{}: no rank runs it; the world has {ranks} ranks", path.display());
            return Err(CouldNotRun::new(why));
        }
        self.simulate(&Programs::per_rank(&all, &of_rank, &estimates), &[], limits, out)
    }

    /// Simulates programs, or puts dumps beside them.
    fn simulate(
        &self,
        programs: &Programs,
        notes: &[String],
        limits: &Limits,
        out: &mut dyn Write,
    ) -> Result<Status, CouldNotRun> {
        if !self.flight.is_empty() {
            return flight::run(&self.flight, Some(programs), self.format, limits, out);
        }
        let options = Options {
            streams: if self.one_stream { Streams::One } else { Streams::PerGroup },
            messages: match self.messages {
                MessagesArgument::Rendezvous => Messages::Rendezvous,
                MessagesArgument::Blocking => Messages::Blocking,
                MessagesArgument::Buffered => Messages::Buffered,
            },
        };
        let report = simulate::simulate(programs, options);
        if let Some(path) = &self.trace {
            let trace = simulate::trace(programs, &report.timeline).to_string();
            crate::files::write(path, trace)
                .map_err(|error| CouldNotRun::new(format_args!("{}: {error}", path.display())))?;
        }
        self.html.write(out, || {
            let names: Vec<String> = self.graphs.iter().map(|path| path.display().to_string()).collect();
            pages::simulate::page(programs, &report, &names.join(", "))
        })?;
        let status = match report.finishes() {
            Some(true) => Status::Sound,
            Some(false) => Status::Violated,
            None => Status::Undecided,
        };
        let path = self.graphs.first().map(|path| &**path);
        let mut nowhere = std::io::sink();
        self.format.print(
            self.html.beside(out, &mut nowhere),
            || {
                // Times of a run that does not end would be of a part of it.
                let times =
                    if report.finishes() == Some(true) { times(&report.timeline) } else { String::new() };
                let notes: String = notes.iter().map(|note| format!("note: {note}\n")).collect();
                format!("{report}{times}{notes}")
            },
            || {
                let lines = report.to_string();
                serde_json::json!({
                    "simulation_version": "graph-oracle-simulation/1",
                    "finishes": report.finishes(),
                    "ranks": programs.of_rank.len(),
                    "warnings": report.warnings.iter().chain(notes).collect::<Vec<_>>(),
                    "report": lines.lines().collect::<Vec<_>>(),
                    "end_nanoseconds": report.timeline.end(),
                    "exposed_nanoseconds": report.timeline.exposed(),
                })
            },
            || formats::runs::simulation(&report, path),
        )?;
        Ok(status)
    }
}

/// What the ranks of a trace run, and what is to be said of it.
fn traced(folder: &Path) -> Result<(Programs, Vec<String>), CouldNotRun> {
    let options = trace::Options::reading(judging());
    let read = trace::judge_folder(folder, &options).map_err(|error| files::in_file(folder, &error))?;
    let (programs, notes) =
        trace::programs(&read.graphs, &options).map_err(|why| files::in_file(folder, &why))?;
    Ok((programs, read.notes.into_iter().chain(notes).collect()))
}

/// The estimates of a case, one table for all ranks.
fn agreed(case: &Case, path: &Path) -> Result<Estimates, CouldNotRun> {
    let tables = case.pass.as_ref().map_or(&[][..], |pass| &pass.estimates);
    let agreed = Estimates::of_ranks(tables).and_then(|ranks| Estimates::agreed(&ranks));
    agreed.map_err(|error| CouldNotRun::new(format_args!("{}: {error}", path.display())))
}

/// For each rank of a case the number of its graph; empty where all run one.
fn graphs_of_ranks(case: &Case, path: &Path) -> Result<Vec<usize>, CouldNotRun> {
    if case.programs.is_empty() {
        return Ok(Vec::new());
    }
    let world = case.graph.world.assume_mesh().and_then(|world| world.ranks).unwrap_or(1);
    let mut of_rank = vec![0; world as usize];
    for (number, program) in (1..).zip(&case.programs) {
        for &rank in &program.ranks {
            match of_rank.get_mut(rank as usize) {
                Some(of) => *of = number,
                None => {
                    let path = path.display();
                    let why = format_args!("{path}: there is no rank {rank}: the world has {world} ranks");
                    return Err(CouldNotRun::new(why));
                }
            }
        }
    }
    Ok(of_rank)
}

/// How long everything took by the estimates, and the communication that was not hidden.
fn times(timeline: &Timeline) -> String {
    const SHOWN: usize = 8;
    let milliseconds = |nanoseconds: u64| nanoseconds as f64 / 1e6;
    let mut text = format!(
        "by estimates: {:.3} ms, {:.3} ms of it at waits for communication\n",
        milliseconds(timeline.end()),
        milliseconds(timeline.exposed())
    );
    let Some(track) =
        timeline.tracks.iter().max_by_key(|track| (track.exposed(), std::cmp::Reverse(track.rank)))
    else {
        return text;
    };
    let mut flights: Vec<_> = track.flights.iter().filter(|flight| flight.exposed > 0).collect();
    flights.sort_by_key(|flight| std::cmp::Reverse(flight.exposed));
    for flight in flights.iter().take(SHOWN) {
        text += &format!(
            "  rank {}: {} on group {} is exposed for {:.3} ms\n",
            track.rank,
            flight.name,
            flight.group,
            milliseconds(flight.exposed)
        );
    }
    if flights.len() > SHOWN {
        text += &format!("  and {} more\n", flights.len() - SHOWN);
    }
    text
}
