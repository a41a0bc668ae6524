//! Folders of TORCH_TRACE and TORCH_LOGS: every pass that wrote its graph before and after is judged.
//!
//! # The idea
//!
//! Each process wrote one file (`ir::format::torch_trace`), or all wrote into one (`ir::format::torch_logs`); `sources`
//! finds them. A file is read as a stream, files at the same time; a graph is kept until its partner has been read
//! (`pairs`), and the pair is judged as a rewrite, since a pass of any name must mean what it was given. What cannot be
//! judged is a row too, with its reason: nothing is left out silently. In the end the ranks are compared: what they run
//! as it was traced must launch the same in one order on each process group (`first`), and what a pass makes of equal
//! graphs must launch the same again (`ranks`, `together`).
//!
//! # What it does not do
//!
//! Graphs of Python operators (Dynamo's, and those before decomposition) are counted and not judged. Of a joint graph
//! with its parts the meaning is judged, not which values are saved.

mod cache;
mod contracts;
mod doubtful;
mod first;
mod pairs;
mod ranks;
mod row;
mod runnables;
mod shown;
mod sources;
mod together;
mod triples;
mod verdict;
mod watch;

use cache::Cache;
pub use first::{EmptyLog, ReadGraph, programs};
use pairs::{FileJudge, FileReport};
pub use row::{Cost, Outcome, Row};
pub use watch::{Follow, watch_folder};

use crate::graph::World;
use crate::judge;
use crate::limits::Limit;
use ir::format::fx::Runnable;
use rayon::prelude::*;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// What a folder of traces came to.
#[derive(Clone, Debug, Default)]
pub struct TraceReport {
    /// A row for each pair, and for each graph that has no partner; by file, in the order of the file.
    pub rows: Vec<Row>,
    /// Files that were read.
    pub files: usize,
    /// What is to be said of files: a line each.
    pub notes: Vec<String>,
    /// Whether some file could not be read to its end: what it holds besides is not judged.
    pub is_partial: bool,
    /// Where ranks launch different collectives, a line each.
    pub rank_findings: Vec<String>,
    /// Where they may do so, a line each: the rest of the job may explain it.
    pub rank_doubts: Vec<String>,
    /// All graphs that could be read or not, in the order of the files.
    pub graphs: Vec<ReadGraph>,
    /// Logs of ranks that hold none.
    pub empty: Vec<EmptyLog>,
}

impl TraceReport {
    /// Compares what the ranks run, as it was traced.
    fn compare_programs(&mut self, path: &Path, options: &Options) {
        let compared = first::compare(&self.graphs, &self.empty, path.is_dir(), options);
        self.rank_findings.extend(compared.findings);
        self.rank_doubts.extend(compared.doubts);
        self.notes.extend(compared.notes);
    }

    /// How many rows have this outcome.
    pub fn count(&self, of: impl Fn(&Outcome) -> bool) -> usize {
        self.rows.iter().filter(|row| of(&row.outcome)).count()
    }
}

/// How traces are judged.
#[derive(Clone, Debug)]
pub struct Options {
    /// How pairs are judged.
    pub judge: judge::Options,
    /// What every pass may do beyond keeping every bit, as `check rewrite --allow` takes it.
    pub allow: Vec<String>,
    /// What every pass promises, as `check rewrite --demand` takes it.
    pub demand: Vec<String>,
    /// The process groups, where they are known.
    pub world: World,
    /// The most bytes that a compressed file may hold.
    pub text: u64,
    /// The most parts of one graph's text.
    pub parts: u64,
    /// What `fx_graph_runnable.py` says of graphs with its inputs, where the records have none.
    pub runnable: Option<Arc<Runnable>>,
    /// Whether graphs are read only: no pair is judged, and ranks are not compared.
    pub reads_only: bool,
}

impl Options {
    /// Graphs are read, and nothing is judged.
    pub fn reading(judge: judge::Options) -> Options {
        let (allow, demand) = (Vec::new(), Vec::new());
        Options {
            judge,
            allow,
            demand,
            world: World::default(),
            text: Limit::Text.standard(),
            parts: Limit::Parts.standard(),
            runnable: None,
            reads_only: true,
        }
    }
}

/// Judges all that the processes of a run wrote into a folder; or into one file.
///
/// # Errors
/// The folder cannot be read, or holds nothing that PyTorch logs graphs in.
pub fn judge_folder(path: &Path, options: &Options) -> io::Result<TraceReport> {
    let sources = sources::find(path, options.text)?;
    let cache = Cache::new(options.world.ranks);
    let read: Vec<FileReport> = sources
        .processes
        .par_iter()
        .map(|process| match process.open(options.text) {
            Ok(mut records) => {
                let mut judge = FileJudge::new(&process.file, process.rank, options, &cache);
                judge.read(&mut records);
                judge.finish()
            }
            Err(error) => FileReport::unreadable(&process.file, &error),
        })
        .collect();
    let mut report = TraceReport {
        files: sources.files,
        notes: sources.notes,
        is_partial: sources.is_partial,
        empty: sources.empty,
        ..TraceReport::default()
    };
    let mut kept = Vec::new();
    for file in read {
        let rows = report.rows.len();
        kept.extend(file.kept.into_iter().map(|kept| together::Kept { row: rows + kept.row, ..kept }));
        report.rows.extend(file.rows);
        report.notes.extend(file.notes);
        report.graphs.extend(file.graphs);
        report.empty.extend(file.empty);
        report.is_partial |= file.is_partial;
    }
    if options.reads_only {
        return Ok(report);
    }
    report.compare_programs(path, options);
    report.rank_findings.extend(ranks::differences(report.rows.iter()));
    let together = together::judge(&report.rows, &kept, options);
    report.rank_findings.extend(together.findings);
    report.notes.extend(together.notes);
    Ok(report)
}
