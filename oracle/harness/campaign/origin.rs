//! Who did what was found: what a folder of a finding or of a campaign says of it.
//!
//! A folder of a finding holds `finding.json`. The store of a campaign says in its first line what was run.

use super::{Distinct, store};
use crate::candidates::{Candidate, Origin, worker};
use crate::files::read_bytes;
use crate::limits::Limit;
use std::path::Path;

/// The file in a folder of a finding.
pub(super) const RECORD: &str = "finding.json";

/// Its version.
const VERSION: &str = "graph-oracle-finding/1";

/// The text of the file: what was found, and who did it.
pub(super) fn record(finding: &Distinct, candidate: &dyn Candidate) -> String {
    let (command, function) = match candidate.origin() {
        Origin::Here => (None, None),
        Origin::Command(command) => (Some(command), None),
        Origin::Function(function) => (None, Some(function)),
    };
    let record = serde_json::json!({
        "finding_version": VERSION,
        "rule": finding.rule,
        "kind": finding.kind,
        "case": finding.number,
        "candidate": candidate.name(),
        "worker": command,
        "python": function,
    });
    format!("{record:#}\n")
}

/// Who did what the cases in a folder show; `None` where the folder does not say.
///
/// # Errors
/// What is wrong with what it says.
pub fn origin_in(folder: &Path) -> Result<Option<Origin>, String> {
    let path = folder.join(RECORD);
    if path.exists() {
        let fails = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let bytes = read_bytes(&path, Limit::Text.standard()).map_err(|error| fails(&error))?;
        return of_record(&bytes).map(Some).map_err(|why| fails(&why));
    }
    let path = folder.join(store::FILE);
    if !path.exists() {
        return Ok(None);
    }
    let bytes =
        read_bytes(&path, Limit::Store.standard()).map_err(|error| format!("{}: {error}", path.display()))?;
    let (header, ..) = store::read(&path, &bytes).map_err(|error| error.to_string())?;
    Ok(header.map(|header| header.runs.as_deref().map_or(Origin::Here, worker::origin)))
}

fn of_record(bytes: &[u8]) -> Result<Origin, String> {
    let record: serde_json::Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if record.get("finding_version").and_then(|version| version.as_str()) != Some(VERSION) {
        return Err(format!("it is not of version {VERSION}"));
    }
    let word = |key: &str| record.get(key).and_then(|word| word.as_str()).map(String::from);
    Ok(match (word("worker"), word("python")) {
        (_, Some(function)) => Origin::Function(function),
        (Some(command), None) => Origin::Command(command),
        (None, None) => Origin::Here,
    })
}
