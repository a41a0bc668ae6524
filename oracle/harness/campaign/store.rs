//! The store of a campaign: a folder with `campaign.jsonl`, to which a line is appended after each batch, and the
//! reduced cases as `.graph` files.
//!
//! # The idea
//!
//! The first line says what the campaign is, by the contents of what it judges; a store of another one, or of another
//! version, is refused. Each further line holds what a batch gave and a digest of it. A batch that was cut short, by a
//! limit on cases or by a stop, has fewer cases than others; when the campaign goes on, it is judged again as a whole,
//! and the longer line counts. A line that was cut off by a kill or a full disk is dropped. A corrupt line elsewhere is
//! refused, with its number. While a campaign runs it holds a lock on the file.
//!
//! A store of the version before is shown, and neither goes on nor merges with others.
//!
//! Reduced cases that have gone are written again from the lines. A file that is not ours is never overwritten.

use super::header::Header;
use super::summary::{Batch, Summary};
use super::{Distinct, digest};
use crate::files::{self, read_bytes};
use crate::limits::Limit;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The file of the store, in its folder.
pub(super) const FILE: &str = "campaign.jsonl";

/// The version of the store.
const VERSION: &str = "graph-oracle-campaign/3";

/// The version before, which can still be read: it counts refusals and undecided cases by their words.
const OLD_VERSION: &str = "graph-oracle-campaign/2";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FirstLine {
    version: String,
    campaign: Header,
}

/// One line: a batch, and the digest of it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    batch: Batch,
    digest: String,
}

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Reading or writing failed.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Another process has it.
    #[error("{path}: in use by another campaign")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// A line is not what it should be.
    #[error("{path}:{line}: {reason}")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why.
        reason: String,
    },
    /// It belongs to another campaign.
    #[error("{path}: holds another campaign ({found}); this one is {wanted}; they differ in: {differences}")]
    Other {
        /// The file.
        path: PathBuf,
        /// What it holds.
        found: String,
        /// What was asked for.
        wanted: String,
        /// What differs.
        differences: String,
    },
    /// It is of the version before.
    #[error(
        "{path}: counts refusals and undecided cases by their words ({OLD_VERSION}), not by code: `results` shows it by \
         itself, and a campaign begins anew in another folder"
    )]
    Old {
        /// The file.
        path: PathBuf,
    },
    /// It is no store at all.
    #[error("{path}: is not the store of a campaign, and is left alone")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
}

impl StoreError {
    /// A store that belongs to another campaign.
    pub(super) fn other(path: PathBuf, found: &Header, wanted: &Header) -> StoreError {
        let fields = |header: &Header| serde_json::to_value(header).unwrap_or_default();
        let (one, two) = (fields(found), fields(wanted));
        let keys = [&one, &two].into_iter().filter_map(|fields| fields.as_object()).flat_map(|o| o.keys());
        let keys: BTreeSet<&String> = keys.filter(|&key| one.get(key) != two.get(key)).collect();
        let differences = keys.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        StoreError::Other { path, found: found.title(), wanted: wanted.title(), differences }
    }
}

/// An open store.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    path: PathBuf,
    file: File,
}

impl Store {
    /// Opens the store in a folder, which is made if needed, and reads what is done.
    pub(super) fn open(folder: &Path, header: &Header) -> Result<(Store, Summary), StoreError> {
        let path = folder.join(FILE);
        let io = |error| StoreError::Io { path: path.clone(), error };
        std::fs::create_dir_all(folder)
            .map_err(|error| StoreError::Io { path: folder.to_path_buf(), error })?;
        let mut file = files::append(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::InUse { path: path.clone() }),
            // A file system without locks.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        let bytes = read_bytes(&path, Limit::Store.standard()).map_err(io)?;
        let (found, batches, whole) = read(&path, &bytes)?;
        let first = FirstLine { version: VERSION.to_string(), campaign: header.clone() };
        match found {
            Some(found) if found.is_old => return Err(StoreError::Old { path }),
            Some(found) if found != *header => return Err(StoreError::other(path, &found, header)),
            // What a kill cut off is removed, so that the next line starts on its own.
            Some(_) => file.set_len(whole as u64).map_err(io)?,
            None if line_of(&first).map_err(io)?.as_bytes().starts_with(&bytes) => {
                file.set_len(0).map_err(io)?;
                write_line(&mut file, &first).map_err(io)?;
            }
            None => return Err(StoreError::Foreign { path }),
        }
        let mut summary = Summary::new(header);
        batches.into_iter().for_each(|batch| summary.add(batch));
        let store = Store { folder: folder.to_path_buf(), path, file };
        for finding in &summary.total.found {
            store.keep(finding)?;
        }
        Ok((store, summary))
    }

    /// Writes down a batch: first the reduced cases, then the line that makes it count. Those of the shorter batch that
    /// it takes the place of go.
    pub(super) fn append(&mut self, batch: &Batch, shorter: Option<&Batch>) -> Result<(), StoreError> {
        let kept = |case: &str| batch.found.iter().any(|finding| finding.case == case);
        for finding in shorter.iter().flat_map(|batch| &batch.found).filter(|finding| !kept(&finding.case)) {
            let path = self.folder.join(finding.file_name());
            if files::holds(&path, &finding.case) {
                std::fs::remove_file(&path).map_err(|error| StoreError::Io { path, error })?;
            }
        }
        for finding in &batch.found {
            self.keep(finding)?;
        }
        let io = |error| StoreError::Io { path: self.path.clone(), error };
        let digest = digest::of_value(batch).map_err(|error| io(error.into()))?;
        write_line(&mut self.file, &Line { batch: batch.clone(), digest }).map_err(io)
    }

    /// Writes a reduced case beside the store, unless it is there.
    fn keep(&self, finding: &Distinct) -> Result<(), StoreError> {
        let name = free(&self.folder, &finding.file_name(), |path| files::holds(path, &finding.case));
        let path = self.folder.join(&name);
        match path.exists() {
            true => Ok(()),
            false => files::write_inside(&self.folder, &name, &finding.case)
                .map_err(|error| StoreError::Io { path, error }),
        }
    }
}

/// A name in a folder like `name`: one that is free or `is_ours`. Files of others and symbolic links are passed over, by
/// a number before the ending.
pub(super) fn free(folder: &Path, name: &str, is_ours: impl Fn(&Path) -> bool) -> String {
    let (stem, ending) = match name.rsplit_once('.') {
        Some((stem, ending)) => (stem, format!(".{ending}")),
        None => (name, String::new()),
    };
    let is_usable = |name: &str| match folder.join(name).symlink_metadata() {
        Ok(about) => !about.is_symlink() && is_ours(&folder.join(name)),
        Err(_) => true,
    };
    let mut numbered = name.to_string();
    let mut number = 2u64;
    while !is_usable(&numbered) {
        numbered = format!("{stem}-{number}{ending}");
        number += 1;
    }
    numbered
}

fn line_of(line: &impl Serialize) -> io::Result<String> {
    Ok(serde_json::to_string(line)? + "\n")
}

/// Appends a line. One that cannot be written to its end is removed again.
fn write_line(file: &mut File, line: &impl Serialize) -> io::Result<()> {
    let whole = file.metadata()?.len();
    file.write_all(line_of(line)?.as_bytes()).and_then(|()| file.sync_data()).inspect_err(|_| {
        let _ = file.set_len(whole);
    })
}

/// What a store's bytes hold: the campaign, its batches, and how many bytes are whole lines.
pub(super) fn read(path: &Path, bytes: &[u8]) -> Result<(Option<Header>, Vec<Batch>, usize), StoreError> {
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let corrupt = |line: usize, reason: String| StoreError::Corrupt {
        path: path.to_path_buf(),
        line: line + 1,
        reason,
    };
    let text = |number: usize, line| -> Result<&str, StoreError> {
        std::str::from_utf8(line).map_err(|error| corrupt(number, format!("it is not UTF-8: {error}")))
    };
    let mut lines = bytes[..whole].split_inclusive(|&byte| byte == b'\n').enumerate();
    let Some((_, first)) = lines.next() else { return Ok((None, Vec::new(), 0)) };
    let first = text(0, first)?;
    let version: serde_json::Value =
        serde_json::from_str(first).map_err(|error| corrupt(0, error.to_string()))?;
    match version.get("version").and_then(|version| version.as_str()) {
        Some(VERSION | OLD_VERSION) => {}
        found => {
            let found = found.unwrap_or("none");
            return Err(corrupt(0, format!("version {found}; this program writes {VERSION}")));
        }
    }
    let first: FirstLine = serde_json::from_str(first).map_err(|error| corrupt(0, error.to_string()))?;
    let mut batches = Vec::new();
    for (number, line) in lines {
        let line: Line =
            serde_json::from_str(text(number, line)?).map_err(|error| corrupt(number, error.to_string()))?;
        let digest = digest::of_value(&line.batch).map_err(|error| corrupt(number, error.to_string()))?;
        if digest != line.digest {
            let why = "the batch is not the one that was written: its digest is another".to_string();
            return Err(corrupt(number, why));
        }
        line.batch.consistent(&first.campaign).map_err(|why| corrupt(number, why))?;
        batches.push(line.batch);
    }
    let is_old = first.version == OLD_VERSION;
    Ok((Some(Header { is_old, ..first.campaign }), batches, whole))
}
