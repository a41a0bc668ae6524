//! `--python FILE.py:FUNCTION`: a function of the user's own as the implementation that is judged.
//!
//! It is served by the Python package, `python -m graph_oracle.pytorch worker --function`, so that all that holds of
//! workers holds of it. Here stands which Python that is, and what to tell where it does not do.

use super::CouldNotRun;
use crate::candidates::worker::{Limits, StartError, Worker};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Names the Python to use.
const NAMED: &str = "GRAPH_ORACLE_PYTHON";

/// What is looked for in PATH otherwise.
const NAMES: [&str; 2] = ["python3", "python"];

/// The passes that a function can be.
const PASSES: [&str; 5] = ["rewrite", "bucketing", "repair", "partition", "schedule"];

/// FILE.py:FUNCTION, the file with its whole path; or MODULE:FUNCTION.
pub(super) fn function(text: &str) -> Result<String, String> {
    match text.rsplit_once(':') {
        Some((place, name)) if !place.is_empty() && !name.is_empty() => match is_file(place) {
            true => Ok(format!("{}:{name}", absolute(place))),
            false => Ok(text.to_string()),
        },
        _ => Err("expected FILE.py:FUNCTION or MODULE:FUNCTION".to_string()),
    }
}

/// Whether what stands before the colon is a file, and no module.
pub(super) fn is_file(place: &str) -> bool {
    place.ends_with(".py") || place.contains('/')
}

fn absolute(place: &str) -> String {
    std::path::absolute(place).map_or(place.to_string(), |path| path.to_string_lossy().into_owned())
}

/// Starts the worker that serves a function for a pass.
pub(super) fn start(function: &str, pass: &str, limits: Limits) -> Result<Worker, CouldNotRun> {
    let fails = |why: String| CouldNotRun::new(format_args!("--python {function}: {why}"));
    if !PASSES.contains(&pass) {
        return Err(fails(format!("a function is one pass: {}; not {pass}", PASSES.join(", "))));
    }
    let python = python().map_err(fails)?;
    // As -P, which Python 3.10 does not know: what lies in the working directory is not taken for the package.
    let command = format!(
        "PYTHONSAFEPATH=1 {} -m graph_oracle.pytorch worker --function {} --only {pass}",
        quoted(&python.to_string_lossy()),
        quoted(function)
    );
    Worker::of_function(function, &command, limits).map_err(|error| fails(why(&python, &error)))
}

/// Which Python serves functions.
fn python() -> Result<PathBuf, String> {
    let set = std::env::var_os(NAMED).filter(|name| !name.is_empty());
    let folders = std::env::var_os("PATH").unwrap_or_default();
    match set {
        Some(name) => found(&name, &folders).ok_or_else(|| {
            format!("there is no program {}, which {NAMED} names", Path::new(&name).display())
        }),
        None => NAMES.iter().find_map(|name| found(&name.into(), &folders)).ok_or_else(|| {
            format!("there is no Python: neither {} is in PATH, and {NAMED} is not set", NAMES.join(" nor "))
        }),
    }
}

/// A program: a path, or a name that is looked for in folders.
fn found(name: &OsString, folders: &OsString) -> Option<PathBuf> {
    let path = Path::new(name);
    match path.components().count() {
        1 => std::env::split_paths(folders).map(|folder| folder.join(path)).find(|path| path.is_file()),
        _ => Some(path.to_path_buf()).filter(|path| path.is_file()),
    }
}

/// Why the worker did not start: what it says itself, or what its Python lacks.
fn why(python: &Path, error: &StartError) -> String {
    let Some(last) = error.last_words() else { return error.to_string() };
    if let Some(said) = last.strip_prefix("graph-oracle: ") {
        return said.to_string();
    }
    if last.contains("No module named") && last.contains("graph_oracle") {
        return format!(
            "{} has no package graph-oracle: install it there (pip install graph-oracle), or name another Python in \
             {NAMED}",
            python.display()
        );
    }
    error.to_string()
}

/// A word for `sh`.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_named_by_file_or_module() {
        let file = function("/a b/mypass.py:f");
        assert_eq!(file.as_deref(), Ok("/a b/mypass.py:f"));
        assert!(
            function("mypass.py:f").is_ok_and(|spec| spec.starts_with('/') && spec.ends_with("/mypass.py:f"))
        );
        assert_eq!(function("my.passes:f.g").as_deref(), Ok("my.passes:f.g"));
        for wrong in ["mypass.py", "mypass.py:", ":f", ""] {
            assert!(function(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_shell_reads_a_word_as_it_is() {
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }
}
