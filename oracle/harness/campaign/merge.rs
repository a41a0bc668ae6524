//! One summary from the stores of several shards.

use super::header::Header;
use super::store::{FILE, StoreError, read};
use super::summary::Summary;
use crate::files::read_bytes;
use crate::limits::Limit;
use std::path::PathBuf;

/// Merges the stores in these folders, in whatever order they are given: every batch counts once, and findings are one
/// if rule and shape agree. Stores of different campaigns do not merge. The summary says which shards are missing.
pub fn merge(folders: &[PathBuf]) -> Result<Summary, StoreError> {
    let mut merged: Option<(Header, Summary)> = None;
    for folder in folders {
        let path = folder.join(FILE);
        let bytes = read_bytes(&path, Limit::Store.standard())
            .map_err(|error| StoreError::Io { path: path.clone(), error })?;
        let (header, batches, _) = read(&path, &bytes)?;
        // A campaign that was killed before its first line was whole has done nothing.
        let Some(header) = header else { continue };
        let (shard, shards) = header.shard;
        let whole = Header { shard: (0, 1), ..header };
        let (first, summary) = merged.get_or_insert_with(|| (whole.clone(), Summary::new(&whole)));
        if first.is_old != whole.is_old {
            return Err(StoreError::Old { path });
        }
        if *first != whole {
            return Err(StoreError::other(path, &whole, first));
        }
        summary.shards.entry(shards).or_default().insert(shard);
        batches.into_iter().for_each(|batch| summary.add(batch));
    }
    Ok(merged.map(|(_, summary)| summary).unwrap_or_default())
}
