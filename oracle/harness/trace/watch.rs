//! A folder of TORCH_TRACE that still grows: rows as soon as the graphs after them are written.
//!
//! A record is complete when the next one has begun, since its payload ends there, or when its payload has the MD5 that
//! its head states. What is complete is handed to the judge of its file, and never read again. New files are taken up
//! as they appear.

use super::pairs::{FileJudge, FileReport};
use super::{Cache, Options, Row, TraceReport, ranks, sources};
use crate::stop::Stop;
use ir::format::torch_trace::{Records, Source, last_head};
use md5::{Digest, Md5};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The most that is read of a file at one look.
const CHUNK: u64 = 64 << 20;

/// How a folder is followed.
#[derive(Clone, Debug)]
pub struct Follow {
    /// Between two looks.
    pub every: Duration,
    /// It ends when nothing has been written for so long; `None`: only when it is stopped.
    pub until_idle: Option<Duration>,
    /// When it is to end.
    pub stop: Stop,
}

/// A file that is followed.
struct Followed<'o> {
    path: PathBuf,
    judge: FileJudge<'o>,
    /// How much of it has been read.
    read: u64,
    /// The lines of what has been judged.
    lines: usize,
    /// What has been read and is not complete.
    pending: Vec<u8>,
    error: Option<io::Error>,
}

impl Followed<'_> {
    /// Reads on, and judges what is complete. Whether the file has grown.
    fn look(&mut self) -> bool {
        let grown = match self.read_on() {
            Ok(length) => length > 0,
            Err(error) => {
                self.error.get_or_insert(error);
                false
            }
        };
        let last = last_head(&self.pending);
        let complete = if is_whole(&self.pending[last..]) { self.pending.len() } else { last };
        let rest = self.pending.split_off(complete);
        let complete = std::mem::replace(&mut self.pending, rest);
        if !complete.is_empty() {
            self.judge.read(&mut Records::from_line(&complete[..], self.lines));
            self.lines += complete.iter().filter(|&&byte| byte == b'\n').count();
        }
        grown
    }

    fn read_on(&mut self) -> io::Result<usize> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.read))?;
        let length = file.take(CHUNK).read_to_end(&mut self.pending)?;
        self.read += length as u64;
        Ok(length)
    }

    /// What is left when nobody looks any more: a last record may be cut off.
    fn finish(mut self) -> FileReport {
        let rest = std::mem::take(&mut self.pending);
        self.judge.read(&mut Records::from_line(&rest[..], self.lines));
        let mut report = self.judge.finish();
        if let Some(error) = self.error {
            report.notes.extend(FileReport::unreadable(&self.path, &error).notes);
        }
        report
    }
}

/// Whether a text is one record with all of its payload.
fn is_whole(text: &[u8]) -> bool {
    if text.last() != Some(&b'\n') {
        return false;
    }
    let Ok(Some(record)) = Records::new(text).next_record() else { return false };
    let Some(stated) = record.digest() else { return false };
    let digest = Md5::digest(record.payload.as_deref().unwrap_or(""));
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    stated == digest
}

/// Follows a folder, or one file, until it is stopped or nothing is written any more. `show` is given each row as soon
/// as it is judged.
///
/// # Errors
/// The folder cannot be read.
pub fn watch_folder(
    path: &Path,
    options: &Options,
    follow: &Follow,
    show: &mut dyn FnMut(&Row) -> io::Result<()>,
) -> io::Result<TraceReport> {
    let cache = Cache::default();
    let mut followed: Vec<Followed> = Vec::new();
    let mut report = TraceReport::default();
    let mut last_growth = Instant::now();
    let mut take = |rows: Vec<Row>, report: &mut TraceReport| -> io::Result<()> {
        for row in rows {
            show(&row)?;
            report.rows.push(row);
        }
        Ok(())
    };
    loop {
        for file in sources::files(path)? {
            let is_new = !followed.iter().any(|known| known.path == file);
            if is_new && sources::is_growing_trace(&file) {
                let judge = FileJudge::new(&file, sources::rank_of(&file), options, &cache);
                followed.push(Followed {
                    path: file,
                    judge,
                    read: 0,
                    lines: 0,
                    pending: Vec::new(),
                    error: None,
                });
            }
        }
        let mut grown = false;
        for file in &mut followed {
            grown |= file.look();
            take(file.judge.new_rows(), &mut report)?;
        }
        if grown {
            last_growth = Instant::now();
        }
        let is_idle = follow.until_idle.is_some_and(|idle| last_growth.elapsed() >= idle);
        if follow.stop.is_requested() || is_idle {
            break;
        }
        if !grown {
            std::thread::sleep(follow.every);
        }
    }
    report.files = followed.len();
    followed.sort_by(|a, b| a.path.cmp(&b.path));
    for file in followed {
        let FileReport { rows, notes, graphs, .. } = file.finish();
        take(rows, &mut report)?;
        report.notes.extend(notes);
        report.graphs.extend(graphs);
    }
    report.compare_programs(options);
    report.rank_findings.extend(ranks::differences(&report.rows));
    Ok(report)
}
