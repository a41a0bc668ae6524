//! The store of a campaign: a folder with `campaign.jsonl`, to which a line is appended after each batch, and the
//! reduced cases as `.graph` files.
//!
//! The first line says what the campaign is; a store of another one, or of another version, is refused. A line
//! that was cut off by a kill or a full disk is dropped: its batch is run again. A corrupt line elsewhere is refused,
//! with its number. While a campaign runs it holds a lock on the file.

use super::summary::{Batch, Summary};
use super::{BATCH, RankPlan};
use crate::rules::PassKind;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The version of the store.
const VERSION: &str = "graph-oracle-campaign/1";

/// What a campaign is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The pass.
    pub pass: String,
    /// The candidate.
    pub candidate: String,
    /// The seed.
    pub seed: u64,
    /// Which shard of how many.
    pub shard: (u64, u64),
    /// How values are compared.
    pub values: String,
    /// The version of the generator.
    pub generator: u32,
    /// The real graphs that cases are windows or grafts of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub graphs: Vec<String>,
    /// As which ranks the candidate ran.
    #[serde(default)]
    pub ranks: RankPlan,
    /// Cases in a batch.
    #[serde(default = "batch")]
    pub batch: u64,
    /// What the candidate does not take, and is not generated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
}

fn batch() -> u64 {
    BATCH
}

impl Header {
    /// In words.
    pub(super) fn title(&self) -> String {
        let shard = match self.shard {
            (_, 1) => String::new(),
            (i, n) => format!(", shard {i}/{n}"),
        };
        let graphs = match &self.graphs[..] {
            [] => String::new(),
            graphs => {
                let what = if self.pass == PassKind::Partition.name() { "grafts" } else { "windows" };
                format!(", {what} of {}", graphs.join(" and "))
            }
        };
        let ranks = match self.ranks {
            RankPlan::All => String::new(),
            plan => format!(", {}", plan.title()),
        };
        let Header { pass, candidate, seed, values, generator, .. } = self;
        format!(
            "{pass} by {candidate}{graphs}, seed {seed}, values {values}, generator {generator}{ranks}{shard}"
        )
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FirstLine {
    version: String,
    campaign: Header,
}

/// One line: a batch.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    batch: Batch,
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
    #[error("{path}: holds another campaign ({found}); this one is {wanted}")]
    Other {
        /// The file.
        path: PathBuf,
        /// What it holds.
        found: String,
        /// What was asked for.
        wanted: String,
    },
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
        let path = folder.join("campaign.jsonl");
        let io = |error| StoreError::Io { path: path.clone(), error };
        std::fs::create_dir_all(folder)
            .map_err(|error| StoreError::Io { path: folder.to_path_buf(), error })?;
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::InUse { path: path.clone() }),
            // A file system without locks.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        let text = io::read_to_string(&file).map_err(io)?;
        let (found, batches, whole) = read(&path, &text)?;
        match found {
            Some(found) if found != *header => {
                return Err(StoreError::Other { path, found: found.title(), wanted: header.title() });
            }
            // What a kill cut off is removed, so that the next line starts on its own.
            Some(_) => file.set_len(whole as u64).map_err(io)?,
            None => {
                file.set_len(0).map_err(io)?;
                let first = FirstLine { version: VERSION.to_string(), campaign: header.clone() };
                write_line(&mut file, &first).map_err(io)?;
            }
        }
        let mut summary = Summary::new(header);
        batches.into_iter().for_each(|batch| summary.add(batch));
        Ok((Store { folder: folder.to_path_buf(), path, file }, summary))
    }

    /// Writes down a batch: first the reduced cases, then the line that makes it count.
    pub(super) fn append(&mut self, batch: &Batch) -> Result<(), StoreError> {
        for finding in &batch.found {
            let path = self.folder.join(finding.file_name());
            std::fs::write(&path, &finding.case).map_err(|error| StoreError::Io { path, error })?;
        }
        let line = Line { batch: batch.clone() };
        write_line(&mut self.file, &line).map_err(|error| StoreError::Io { path: self.path.clone(), error })
    }
}

fn write_line(file: &mut File, line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    file.write_all(text.as_bytes())?;
    file.sync_data()
}

/// What a store's text holds: the campaign, its batches, and how many bytes are whole lines.
pub(super) fn read(path: &Path, text: &str) -> Result<(Option<Header>, Vec<Batch>, usize), StoreError> {
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let corrupt = |line: usize, reason: String| StoreError::Corrupt {
        path: path.to_path_buf(),
        line: line + 1,
        reason,
    };
    let mut lines = text[..whole].lines().enumerate();
    let Some((_, first)) = lines.next() else { return Ok((None, Vec::new(), 0)) };
    let version: serde_json::Value =
        serde_json::from_str(first).map_err(|error| corrupt(0, error.to_string()))?;
    match version.get("version").and_then(|version| version.as_str()) {
        Some(VERSION) => {}
        found => {
            let found = found.unwrap_or("none");
            return Err(corrupt(0, format!("version {found}; this program writes {VERSION}")));
        }
    }
    let first: FirstLine = serde_json::from_str(first).map_err(|error| corrupt(0, error.to_string()))?;
    let mut batches = Vec::new();
    for (number, line) in lines {
        let line: Line = serde_json::from_str(line).map_err(|error| corrupt(number, error.to_string()))?;
        batches.push(line.batch);
    }
    Ok((Some(first.campaign), batches, whole))
}
