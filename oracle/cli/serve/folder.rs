//! The folder that is served: what is in it, and nothing outside of it.

use super::CouldNotRun;
use super::form::encoded;
use crate::cli::files::in_file;
use crate::limits::Limit;
use pages::serve::Entry;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder by its real path.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(path: &Path) -> Result<Folder, CouldNotRun> {
        let root = path.canonicalize().map_err(|error| in_file(path, &error))?;
        match root.is_dir() {
            true => Ok(Folder(root)),
            false => Err(in_file(path, &"is no folder")),
        }
    }

    /// A file or folder below it. What a link leads out of it to is not there.
    pub(super) fn find(&self, path: &str) -> Result<PathBuf, CouldNotRun> {
        let none = || CouldNotRun::new(format_args!("{path}: there is no such file or folder"));
        let place = self.0.join(path.trim_matches('/')).canonicalize().map_err(|_| none())?;
        match place.starts_with(&self.0) {
            true => Ok(place),
            false => Err(none()),
        }
    }

    /// A folder below it as its page shows it.
    pub(super) fn shown(&self, path: &str) -> Result<pages::serve::Folder, CouldNotRun> {
        let path = path.trim_matches('/');
        let above = match path.rsplit_once('/') {
            Some((above, _)) => Some(format!("/in/{}", encoded(above, true))),
            None if path.is_empty() => None,
            None => Some("/".to_string()),
        };
        Ok(pages::serve::Folder { path: path.to_string(), above, entries: self.entries(path)? })
    }

    /// What is in a folder below it, by name; folders first.
    fn entries(&self, path: &str) -> Result<Vec<Entry>, CouldNotRun> {
        let folder = self.find(path)?;
        let read = fs::read_dir(&folder).map_err(|error| in_file(&folder, &error))?;
        let mut names: Vec<(bool, String)> = read
            .filter_map(Result::ok)
            // A name that is no text has no address.
            .filter_map(|entry| Some((!entry.path().is_dir(), entry.file_name().into_string().ok()?)))
            .filter(|(_, name)| !name.starts_with('.'))
            .collect();
        names.sort();
        names.truncate(Limit::Listed.standard() as usize);
        Ok(names.into_iter().map(|(is_file, name)| entry(&folder, path, name, is_file)).collect())
    }
}

/// An entry, and as what it can be shown.
fn entry(folder: &Path, path: &str, name: String, is_file: bool) -> Entry {
    let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
    let link = format!("/in/{}", encoded(&path, true));
    let has = |ending: &str| name.ends_with(ending);
    let is_graph = is_file && [".graph", ".json", ".json.gz", ".txt", ".py"].iter().any(|ending| has(ending));
    let is_log = is_file && [".log", ".log.gz"].iter().any(|ending| has(ending));
    let mut ways: Vec<&'static str> = Vec::new();
    if is_graph {
        ways.extend(["graph", "check", "memory", "simulate"]);
    }
    if is_log || (!is_file && holds_logs(&folder.join(&name))) {
        ways.push("trace");
    }
    if !is_file && folder.join(&name).join("campaign.jsonl").exists() {
        ways.push("results");
    }
    Entry { name, path, link, ways, is_folder: !is_file, is_graph }
}

/// Whether some file of a folder is called as PyTorch calls those of TORCH_TRACE.
fn holds_logs(folder: &Path) -> bool {
    let is_log = |name: &str| name.ends_with(".log") || name.ends_with(".log.gz");
    let mut entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.any(|entry| entry.file_name().to_str().is_some_and(is_log))
}
