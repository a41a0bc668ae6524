//! One summary from the stores of several shards.

use super::store::{StoreError, read};
use super::summary::Summary;
use std::path::PathBuf;

/// Merges the stores in these folders: every batch counts once, and findings are one if rule and shape agree. Stores
/// of different campaigns do not merge.
pub fn merge(folders: &[PathBuf]) -> Result<Summary, StoreError> {
    let mut merged: Option<Summary> = None;
    let mut batches = Vec::new();
    for folder in folders {
        let path = folder.join("campaign.jsonl");
        let text =
            std::fs::read_to_string(&path).map_err(|error| StoreError::Io { path: path.clone(), error })?;
        let (header, found, _) = read(&path, &text)?;
        let whole = header.map(|header| super::Header { shard: (0, 1), ..header });
        let Some(whole) = whole else { continue };
        match &merged {
            None => merged = Some(Summary::new(&whole)),
            Some(summary) if summary.title == whole.title() => {}
            Some(summary) => {
                let (found, wanted) = (whole.title(), summary.title.clone());
                return Err(StoreError::Other { path, found, wanted });
            }
        }
        batches.extend(found);
    }
    batches.sort_by_key(|batch| batch.number);
    let mut merged = merged.unwrap_or_default();
    batches.into_iter().for_each(|batch| merged.add(batch));
    Ok(merged)
}
