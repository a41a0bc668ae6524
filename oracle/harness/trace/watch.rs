//! A folder of TORCH_TRACE that still grows: rows as soon as the graphs after them are written.
//!
//! A record is complete when the next one has begun, since its payload ends there, or when its payload has the MD5 that
//! its head states. What is complete is handed to the judge of its file. New files are taken up as they appear.
//!
//! # Which file it is
//!
//! A file is followed by its device and inode, so that it may be renamed; a path is only where it was found. What was
//! read of it is remembered by its length, its last bytes and a digest. At each look the last bytes are compared, and
//! everything where the file was written to and did not grow, and once more before the end. A file that no longer
//! begins with what was read has been rewritten, and is read again from its beginning. What was judged before stays in
//! the report; ranks are compared by what the files hold in the end.

use super::pairs::{FileJudge, FileReport};
use super::{Cache, Options, Row, TraceReport, ranks, sources};
use crate::files;
use crate::stop::Stop;
use ir::format::torch_trace::{Records, Source, last_head};
use ir::limits::Limit;
use md5::{Digest, Md5};
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The most that is read of a file at one look.
const CHUNK: u64 = 64 << 20;

/// Bytes before the place that was read up to, which are compared at each look.
const END: usize = 64 << 10;

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

/// The device and the inode of a file.
type Identity = (u64, u64);

fn identity(about: &Metadata) -> Identity {
    (about.dev(), about.ino())
}

/// What has been read of a file.
#[derive(Default)]
struct ReadPart {
    length: u64,
    digest: Md5,
    /// Its last bytes.
    end: Vec<u8>,
    /// When the file was written to last, in seconds and nanoseconds, as of the last look.
    changed: (i64, i64),
}

impl ReadPart {
    fn add(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        self.digest.update(bytes);
        self.end.extend_from_slice(&bytes[bytes.len().saturating_sub(END)..]);
        self.end.drain(..self.end.len().saturating_sub(END));
    }

    /// Whether a file begins with it: by its last bytes, and by all where the file did not grow or `in_full` says so.
    fn begins(&mut self, file: &File, in_full: bool) -> io::Result<bool> {
        let about = file.metadata()?;
        let changed = (about.ctime(), about.ctime_nsec());
        let was_written = std::mem::replace(&mut self.changed, changed) != changed;
        if about.len() < self.length {
            return Ok(false);
        }
        let mut end = vec![0; self.end.len()];
        let start = self.length - end.len() as u64;
        file.read_exact_at(&mut end, start)?;
        if end != self.end {
            return Ok(false);
        }
        Ok(!(in_full || was_written && about.len() == self.length) || self.is_digest_of(file)?)
    }

    fn is_digest_of(&self, mut file: &File) -> io::Result<bool> {
        let (mut digest, mut buffer) = (Md5::new(), vec![0; 1 << 20]);
        let mut left = self.length;
        file.seek(SeekFrom::Start(0))?;
        while left > 0 {
            let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let read = file.read(&mut buffer[..most])?;
            if read == 0 {
                return Ok(false);
            }
            digest.update(&buffer[..read]);
            left -= read as u64;
        }
        Ok(digest.finalize() == self.digest.clone().finalize())
    }
}

/// A file that is followed.
struct Followed<'o> {
    /// Where it was found last.
    path: PathBuf,
    identity: Identity,
    /// Whether it is no longer found.
    is_gone: bool,
    judge: FileJudge<'o>,
    read: ReadPart,
    /// The lines of what has been judged.
    lines: usize,
    /// What has been read and is not complete.
    pending: Vec<u8>,
    /// Its rows in the report.
    rows: Vec<usize>,
    error: Option<io::Error>,
}

impl<'o> Followed<'o> {
    fn new(path: PathBuf, identity: Identity, options: &'o Options, cache: &'o Cache) -> Followed<'o> {
        Followed {
            judge: FileJudge::new(&path, sources::rank_of(&path), options, cache),
            path,
            identity,
            is_gone: false,
            read: ReadPart::default(),
            lines: 0,
            pending: Vec::new(),
            rows: Vec::new(),
            error: None,
        }
    }

    /// Whether the file no longer begins with what was read of it.
    fn is_rewritten(&mut self, in_full: bool) -> bool {
        let found =
            self.open().and_then(|file| file.map_or(Ok(true), |file| self.read.begins(&file, in_full)));
        !found.unwrap_or_else(|error| {
            self.error.get_or_insert(error);
            true
        })
    }

    /// Opens it; `None` where another file has taken its place, or none.
    fn open(&self) -> io::Result<Option<File>> {
        if self.is_gone {
            return Ok(None);
        }
        let file = files::open(&self.path)?;
        Ok(Some(file).filter(|file| file.metadata().is_ok_and(|about| identity(&about) == self.identity)))
    }

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
        let is_complete =
            is_whole(&self.pending[last..]) || self.pending.len() as u64 > Limit::Text.standard();
        let complete = if is_complete { self.pending.len() } else { last };
        let rest = self.pending.split_off(complete);
        let complete = std::mem::replace(&mut self.pending, rest);
        if !complete.is_empty() {
            self.judge.read(&mut Records::from_line(&complete[..], self.lines));
            self.lines += complete.iter().filter(|&&byte| byte == b'\n').count();
        }
        grown
    }

    fn read_on(&mut self) -> io::Result<usize> {
        let Some(mut file) = self.open()? else { return Ok(0) };
        file.seek(SeekFrom::Start(self.read.length))?;
        let before = self.pending.len();
        let length = file.take(CHUNK).read_to_end(&mut self.pending)?;
        self.read.add(&self.pending[before..]);
        Ok(length)
    }

    /// What is left when nothing more is read: a last record may be cut off.
    fn finish(mut self) -> FileReport {
        let rest = std::mem::take(&mut self.pending);
        self.judge.read(&mut Records::from_line(&rest[..], self.lines));
        let mut report = self.judge.finish();
        if let Some(error) = self.error {
            report.notes.extend(FileReport::unreadable(&self.path, &error).notes);
            report.is_partial = true;
        }
        if self.is_gone {
            report.notes.push(format!(
                "{}: removed or replaced while it was followed; what was read before counts",
                self.path.display()
            ));
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
    let cache = Cache::new(options.world.ranks);
    let mut followed: Vec<Followed> = Vec::new();
    let mut report = TraceReport::default();
    let mut last_growth = Instant::now();
    let mut is_checked = false;
    loop {
        let paths = match sources::list(path) {
            // It may be removed for a moment.
            Err(_) if !followed.is_empty() => Vec::new(),
            paths => paths?,
        };
        take_up(&mut followed, paths, options, &cache);
        let mut grown = false;
        for file in &mut followed {
            if file.is_rewritten(false) {
                begin_again(file, options, &cache, &mut report, show)?;
            }
            grown |= file.look();
            take(file.judge.new_rows(), &mut file.rows, &mut report, show)?;
        }
        if grown {
            last_growth = Instant::now();
        }
        let is_idle = follow.until_idle.is_some_and(|idle| last_growth.elapsed() >= idle);
        if follow.stop.is_requested() || is_idle {
            let mut is_rewritten = false;
            for file in &mut followed {
                if file.is_rewritten(true) {
                    begin_again(file, options, &cache, &mut report, show)?;
                    is_rewritten = true;
                }
            }
            if !is_rewritten || is_checked {
                break;
            }
            // A stop is not put off by a file that is written to again and again.
            is_checked = follow.stop.is_requested();
            last_growth = Instant::now();
        } else if !grown {
            std::thread::sleep(follow.every);
        }
    }
    followed.sort_by(|a, b| a.path.cmp(&b.path));
    let paths: Vec<PathBuf> =
        followed.iter().filter(|file| !file.is_gone).map(|file| file.path.clone()).collect();
    let mut last_rows = Vec::new();
    for mut file in followed {
        let is_replaced = file.is_gone && paths.contains(&file.path);
        report.files += usize::from(!is_replaced);
        let mut rows = std::mem::take(&mut file.rows);
        let mut of_file = file.finish();
        if !is_replaced {
            report.graphs.append(&mut of_file.graphs);
            report.empty.extend(of_file.empty.take());
        }
        add(of_file, &mut rows, &mut report, show)?;
        if !is_replaced {
            last_rows.extend(rows);
        }
    }
    report.compare_programs(path, options);
    let differences = ranks::differences(last_rows.iter().map(|&row| &report.rows[row]));
    report.rank_findings.extend(differences);
    Ok(report)
}

type Show<'s> = dyn FnMut(&Row) -> io::Result<()> + 's;

/// Takes up new files among those of a folder, and notices where known ones are now.
fn take_up<'o>(
    followed: &mut Vec<Followed<'o>>,
    paths: Vec<PathBuf>,
    options: &'o Options,
    cache: &'o Cache,
) {
    followed.iter_mut().for_each(|file| file.is_gone = true);
    for path in paths {
        let Ok(identity) = std::fs::metadata(&path).map(|about| identity(&about)) else { continue };
        match followed.iter_mut().find(|file| file.identity == identity) {
            Some(file) => (file.path, file.is_gone) = (path, false),
            None if sources::is_growing_trace(&path) => {
                followed.push(Followed::new(path, identity, options, cache));
            }
            None => {}
        }
    }
}

/// Forgets what was read of a file, but for its rows.
fn begin_again<'o>(
    file: &mut Followed<'o>,
    options: &'o Options,
    cache: &'o Cache,
    report: &mut TraceReport,
    show: &mut Show,
) -> io::Result<()> {
    let anew = Followed::new(file.path.clone(), file.identity, options, cache);
    let before = std::mem::replace(file, anew);
    report.notes.push(format!(
        "{}: rewritten while it was followed; read again from its beginning",
        file.path.display()
    ));
    add(before.finish(), &mut Vec::new(), report, show)
}

/// Adds what a file came to.
fn add(of: FileReport, rows: &mut Vec<usize>, report: &mut TraceReport, show: &mut Show) -> io::Result<()> {
    take(of.rows, rows, report, show)?;
    report.notes.extend(of.notes);
    report.is_partial |= of.is_partial;
    Ok(())
}

/// Shows rows and adds them to the report; `places` gets where they are there.
fn take(new: Vec<Row>, places: &mut Vec<usize>, report: &mut TraceReport, show: &mut Show) -> io::Result<()> {
    for row in new {
        show(&row)?;
        places.push(report.rows.len());
        report.rows.push(row);
    }
    Ok(())
}
