//! Folders of TORCH_TRACE: every pass that wrote its graph before and after is judged.
//!
//! # The idea
//!
//! Each process wrote one file (`ir::format::torch_trace`). A file is read as a stream, files at the same time; a graph is
//! kept until its partner has been read (`pairs`), and the pair is judged as a rewrite, since a pass of any name must
//! mean what it was given. What cannot be judged is a row too, with its reason: nothing is left out silently. In the end
//! the ranks are compared: for one pass of one compilation they must launch the same collectives in one order.
//!
//! # What it does not do
//!
//! Graphs of Python operators (Dynamo's, and those before decomposition) are counted and not judged. Of a joint graph with
//! its parts the meaning is judged, not which values are saved.

mod cache;
mod pairs;
mod ranks;
mod row;
mod triples;
mod watch;

use cache::Cache;
use pairs::{FileJudge, FileReport};
pub use row::{Cost, Outcome, Row};
pub use watch::{Follow, watch_folder};

use crate::graph::World;
use crate::judge;
use crate::limits::Limit;
use flate2::read::MultiGzDecoder;
use ir::format::torch_trace::Records;
use rayon::prelude::*;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// What a folder of traces came to.
#[derive(Clone, Debug, Default)]
pub struct TraceReport {
    /// A row for each pair, and for each graph that has no partner; by file, in the order of the file.
    pub rows: Vec<Row>,
    /// Files that were read.
    pub files: usize,
    /// What is to be said of files: a line each.
    pub notes: Vec<String>,
    /// Where ranks launch different collectives after a pass that launched the same before it, a line each.
    pub rank_findings: Vec<String>,
}

impl TraceReport {
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
    /// The process groups, where they are known.
    pub world: World,
}

/// Judges all that the processes of a run wrote into a folder; or into one file.
///
/// # Errors
/// The folder cannot be read, or holds no file of TORCH_TRACE.
pub fn judge_folder(path: &Path, options: &Options) -> io::Result<TraceReport> {
    let files = files(path)?;
    if files.is_empty() {
        let message = "no file of TORCH_TRACE here (dedicated_log_torch_trace_*.log, plain or gzip)";
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    }
    let ranks: Vec<Option<u32>> = files.iter().map(|file| rank_of(file)).collect();
    // One process of unknown rank is rank 0; of several nobody knows.
    let alone = (files.len() == 1).then_some(0);
    let cache = Cache::default();
    let read: Vec<FileReport> = files
        .par_iter()
        .zip(ranks)
        .map(|(file, rank)| match open(file) {
            Ok(input) => {
                let mut judge = FileJudge::new(file, rank.or(alone), options, &cache);
                judge.read(&mut Records::new(input));
                judge.finish()
            }
            Err(error) => FileReport::unreadable(file, &error),
        })
        .collect();
    let mut report = TraceReport { files: files.len(), ..TraceReport::default() };
    for file in read {
        report.rows.extend(file.rows);
        report.notes.extend(file.notes);
    }
    report.rank_findings = ranks::differences(&report.rows);
    Ok(report)
}

/// The files of a folder, sorted by name; a file is itself.
fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !std::fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_trace = name.starts_with("dedicated_log_torch_trace")
            && (name.ends_with(".log") || name.ends_with(".log.gz"));
        if is_trace && entry.metadata()?.is_file() && entry.metadata()?.len() > 0 {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// The rank in a file's name: `dedicated_log_torch_trace_rank_3_ab12.log`.
fn rank_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    let (_, rest) = name.split_once("_rank_")?;
    rest.split(['_', '.']).next()?.parse().ok()
}

fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut input = BufReader::with_capacity(1 << 20, File::open(path)?);
    let is_gzip = input.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    // A line without an end would be held as a whole.
    let most = Limit::Text.most();
    Ok(match is_gzip {
        true => Box::new(BufReader::with_capacity(1 << 20, MultiGzDecoder::new(input).take(most << 8))),
        false => Box::new(input),
    })
}
