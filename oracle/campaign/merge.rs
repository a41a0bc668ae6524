//! One summary from the stores of several shards.

use super::store::{StoreError, read};
use super::summary::Summary;
use std::path::PathBuf;

/// Merges the stores in these folders: batches count once, findings are one if rule and shape agree.
pub fn merge(folders: &[PathBuf]) -> Result<Summary, StoreError> {
    let mut merged = Summary::default();
    for folder in folders {
        let path = folder.join("campaign.jsonl");
        let text =
            std::fs::read_to_string(&path).map_err(|error| StoreError::Io { path: path.clone(), error })?;
        let (summary, _) = read(&path, &text, None)?;
        if merged.title.is_empty() {
            merged.title = summary.title.split(", shard").next().unwrap_or("").to_string();
        }
        let batches = summary.batches.clone();
        let fresh = batches.is_disjoint(&merged.batches);
        if fresh {
            let mut total = summary.total.clone();
            // The sums of a shard are added under one of its batches; the others are only marked as done.
            total.number = batches.iter().next().copied().unwrap_or(0);
            merged.add(&total);
            merged.batches.extend(batches);
        }
        for finding in summary.findings {
            merged.insert(finding);
        }
    }
    merged.findings.sort_by_key(|finding| finding.number);
    Ok(merged)
}
