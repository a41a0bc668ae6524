//! What a folder holds for us: the records of each process.
//!
//! What a file is, its contents say: files are copied and renamed. TORCH_TRACE gives a file to each process. What
//! TORCH_LOGS writes may hold lines of several, and is read once for each of them.

use ir::format::torch_logs::{self, Process};
use ir::format::torch_trace::{self, Record, Source};
use ir::limits::Limit;
use ir::words::count;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// What was found.
pub(super) struct Sources {
    pub(super) processes: Vec<ProcessSource>,
    /// Files that hold records.
    pub(super) files: usize,
    /// What is to be said of the others.
    pub(super) notes: Vec<String>,
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
    pub(super) fn open(&self) -> io::Result<Records> {
        let input = open(&self.file)?;
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

/// Finds the files of a folder, sorted by name; a file is itself.
pub(super) fn find(path: &Path) -> io::Result<Sources> {
    let mut found = Sources { processes: Vec::new(), files: 0, notes: Vec::new() };
    let (mut traces, mut others) = (Vec::new(), 0);
    for file in files(path)? {
        match kind_of(&file) {
            Ok(Kind::Trace) => traces.push(file),
            Ok(Kind::Logs) => match open(&file).and_then(torch_logs::processes) {
                Ok(processes) => found.add_log(&file, &processes),
                Err(error) => found.notes.push(format!("{}: {error}", file.display())),
            },
            Ok(Kind::Short) => found.notes.push(format!("{}: {SHORT}", file.display())),
            Ok(Kind::Other) => others += 1,
            Err(error) => found.notes.push(format!("{}: {error}", file.display())),
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
    fn add_log(&mut self, file: &Path, processes: &[Process]) {
        self.files += 1;
        if processes.is_empty() {
            let hint = "TORCH_LOGS=+aot_graphs,+aot_joint_graph,+post_grad_graphs prints them";
            self.notes.push(format!("{}: a log without graphs: {hint}", file.display()));
        }
        let alone = (processes.len() == 1).then_some(0);
        self.processes.extend(processes.iter().map(|&process| ProcessSource {
            file: file.to_path_buf(),
            rank: process.rank.or(alone),
            process: Some(process),
        }));
    }
}

/// The files that may hold something.
pub(super) fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !std::fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        // A link may lead nowhere.
        let is_file = std::fs::metadata(&path).is_ok_and(|about| about.is_file() && about.len() > 0);
        files.extend(is_file.then_some(path));
    }
    files.sort();
    Ok(files)
}

fn kind_of(file: &Path) -> io::Result<Kind> {
    let mut start = Vec::new();
    match open(file)?.take(RECOGNISED).read_to_end(&mut start) {
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

/// Whether a file is one of TORCH_TRACE that may still grow: one that is not compressed.
pub(super) fn is_growing_trace(file: &Path) -> bool {
    let is_plain = file.extension().is_none_or(|extension| extension != "gz");
    is_plain && kind_of(file).is_ok_and(|kind| kind == Kind::Trace)
}

/// The rank in a file's name: `dedicated_log_torch_trace_rank_3_ab12.log`.
pub(super) fn rank_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    let (_, rest) = name.split_once("_rank_")?;
    rest.split(['_', '.']).next()?.parse().ok()
}

fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut input = BufReader::with_capacity(1 << 20, File::open(path)?);
    let is_gzip = input.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    // A few bytes of gzip may unpack to any number.
    let most = Limit::Text.most();
    Ok(match is_gzip {
        true => {
            let unpacked = flate2::read::MultiGzDecoder::new(input).take(most << 8);
            Box::new(BufReader::with_capacity(1 << 20, unpacked))
        }
        false => Box::new(input),
    })
}
