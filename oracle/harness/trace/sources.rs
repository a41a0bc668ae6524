//! What a folder holds for us: the records of each process.
//!
//! What a file is, its contents say: files are copied and renamed. TORCH_TRACE gives a file to each process. What
//! TORCH_LOGS writes may hold lines of several, and is read once for each of them.

use super::first::EmptyLog;
use crate::files;
use ir::format::torch_logs::{self, Process};
use ir::format::torch_trace::{self, Record, Source};
use ir::words::{count, held};
use std::fs::Metadata;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// What was found.
pub(super) struct Sources {
    pub(super) processes: Vec<ProcessSource>,
    /// Files that hold records.
    pub(super) files: usize,
    /// What is to be said of the others.
    pub(super) notes: Vec<String>,
    /// Whether one could not be read that may hold records.
    pub(super) is_partial: bool,
    /// Logs of ranks without a record of a graph.
    pub(super) empty: Vec<EmptyLog>,
}

/// The records of one process.
pub(super) struct ProcessSource {
    pub(super) file: PathBuf,
    /// Its rank, as far as it is known without the records.
    pub(super) rank: Option<u32>,
    /// Whose lines they are, of a file of TORCH_LOGS.
    process: Option<Process>,
}

impl ProcessSource {
    /// Its records, of at most `most` bytes where the file is compressed.
    pub(super) fn open(&self, most: u64) -> io::Result<Records> {
        let input = open(&self.file, most)?;
        Ok(match self.process {
            None => Records::Trace(torch_trace::Records::new(input)),
            Some(process) => Records::Logs(torch_logs::Records::new(input, process)),
        })
    }
}

/// Records of either kind.
pub(super) enum Records {
    Trace(torch_trace::Records<Box<dyn BufRead>>),
    Logs(torch_logs::Records<Box<dyn BufRead>>),
}

impl Source for Records {
    fn next_record(&mut self) -> io::Result<Option<Record>> {
        match self {
            Records::Trace(records) => records.next_record(),
            Records::Logs(records) => records.next_record(),
        }
    }

    fn unreadable(&self) -> &[usize] {
        match self {
            Records::Trace(records) => records.unreadable(),
            Records::Logs(records) => records.unreadable(),
        }
    }
}

/// What a file holds.
#[derive(PartialEq, Eq)]
enum Kind {
    Trace,
    Logs,
    /// A log without the prefixes that tell messages apart.
    Short,
    Other,
}

/// Bytes at the beginning of a file by which it is recognised. A training script may print a lot before it compiles.
const RECOGNISED: u64 = 1 << 20;

/// Finds the files of a folder, sorted by name; a file is itself. `most`: bytes of one that is compressed.
pub(super) fn find(path: &Path, most: u64) -> io::Result<Sources> {
    let mut found =
        Sources { processes: Vec::new(), files: 0, notes: Vec::new(), is_partial: false, empty: Vec::new() };
    let (mut traces, mut others) = (Vec::new(), 0);
    for file in list(path)? {
        match kind_of(&file) {
            Ok(Kind::Trace) => traces.push(file),
            Ok(Kind::Logs) => match open(&file, most).and_then(torch_logs::processes) {
                Ok((with_graphs, without)) => found.add_log(&file, &with_graphs, &without),
                Err(error) => found.cannot_read(&file, &error),
            },
            Ok(Kind::Short) => found.notes.push(format!("{}: {SHORT}", held(&file.display().to_string()))),
            // A process that was ended early may not have written a record.
            Ok(Kind::Other) if is_named_trace(&file) => traces.push(file),
            Ok(Kind::Other) => others += 1,
            Err(error) => found.cannot_read(&file, &error),
        }
    }
    found.files += traces.len();
    // One process of unknown rank is rank 0; of several nobody knows.
    let alone = (traces.len() == 1).then_some(0);
    let process = |file: PathBuf| ProcessSource { rank: rank_of(&file).or(alone), file, process: None };
    found.processes.extend(traces.into_iter().map(process));
    if found.files == 0 {
        let nothing = "no file of TORCH_TRACE here, and none of TORCH_LOGS";
        let message = found.notes.first().map_or(nothing, |note| note.as_str());
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    }
    if others > 0 {
        found
            .notes
            .push(format!("{} passed over: neither TORCH_TRACE nor TORCH_LOGS", count(others, "other file")));
    }
    Ok(found)
}

/// Why a log of another format is refused.
const SHORT: &str =
    "lines of TORCH_LOGS_FORMAT=short: without their usual prefix messages cannot be told apart";

impl Sources {
    fn cannot_read(&mut self, file: &Path, error: &io::Error) {
        self.notes.push(format!("{}: {error}", held(&file.display().to_string())));
        self.is_partial = true;
    }

    fn add_log(&mut self, file: &Path, processes: &[Process], without: &[u32]) {
        self.files += 1;
        let name = held(&file.file_name().unwrap_or_default().to_string_lossy()).into_owned();
        self.empty.extend(without.iter().map(|&rank| EmptyLog { rank, file: name.clone() }));
        if processes.is_empty() {
            let hint = "TORCH_LOGS=+aot_graphs,+aot_joint_graph,+post_grad_graphs prints them";
            self.notes.push(format!("{}: a log without graphs: {hint}", held(&file.display().to_string())));
        }
        let alone = (processes.len() == 1).then_some(0);
        self.processes.extend(processes.iter().map(|&process| ProcessSource {
            file: file.to_path_buf(),
            rank: process.rank.or(alone),
            process: Some(process),
        }));
    }
}

/// The files that may hold something; of what is no regular file, what has the name of a log.
pub(super) fn list(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !std::fs::metadata(path)?.is_dir() {
        return files::open(path).map(|_| vec![path.to_path_buf()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        // A link may lead nowhere. What has the name of a log is opened, and then said to be none.
        let is_file = |about: Metadata| about.is_file() && about.len() > 0;
        let is_wanted = is_named_trace(&path) || std::fs::metadata(&path).is_ok_and(is_file);
        files.extend(is_wanted.then_some(path));
    }
    files.sort();
    Ok(files)
}

fn kind_of(file: &Path) -> io::Result<Kind> {
    let mut start = Vec::new();
    match open(file, RECOGNISED)?.take(RECOGNISED).read_to_end(&mut start) {
        Ok(_) => {}
        // An archive that is cut off still has a beginning.
        Err(_) if !start.is_empty() => {}
        Err(_) => return Ok(Kind::Other),
    }
    Ok(match () {
        () if torch_trace::is_trace(&start) => Kind::Trace,
        () if torch_logs::is_log(&start) => Kind::Logs,
        () if torch_logs::is_short(&start) => Kind::Short,
        () => Kind::Other,
    })
}

/// Whether a file is one of TORCH_TRACE that may still grow: one that is not compressed. One that cannot be read is,
/// where its name says so.
pub(super) fn is_growing_trace(file: &Path) -> bool {
    let mut start = [0; 2];
    let read = files::open(file).and_then(|mut file| file.read(&mut start));
    let is_trace = || read.is_ok() && kind_of(file).is_ok_and(|kind| kind == Kind::Trace);
    start != GZIP && (is_named_trace(file) || is_trace())
}

/// Whether a file has the name that PyTorch gives the log of a rank.
fn is_named_trace(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("dedicated_log_torch_trace_") && rank_of(path).is_some()
}

/// The rank in a file's name: `dedicated_log_torch_trace_rank_3_ab12.log`.
pub(super) fn rank_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    let (_, rest) = name.split_once("_rank_")?;
    rest.split(['_', '.']).next()?.parse().ok()
}

/// The first bytes of gzip data.
const GZIP: [u8; 2] = [0x1f, 0x8b];

fn open(path: &Path, most: u64) -> io::Result<Box<dyn BufRead>> {
    let mut input = BufReader::with_capacity(1 << 20, files::open(path)?);
    let is_gzip = input.fill_buf()?.starts_with(&GZIP);
    Ok(match is_gzip {
        true => {
            let unpacked = Bounded { input: flate2::read::MultiGzDecoder::new(input), left: most, most };
            Box::new(BufReader::with_capacity(1 << 20, unpacked))
        }
        false => Box::new(input),
    })
}

/// What compressed data hold, up to a number of bytes: a few bytes of gzip may unpack to any number.
struct Bounded<R> {
    input: R,
    left: u64,
    most: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => {
                self.left = left;
                Ok(read)
            }
            // What is within the limit is read; the next reading fails.
            None if self.left > 0 => Ok(std::mem::take(&mut self.left) as usize),
            None => {
                let most = self.most;
                Err(io::Error::other(format!("holds more than {most} bytes when it is decompressed")))
            }
        }
    }
}
