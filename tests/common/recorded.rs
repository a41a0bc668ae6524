//! Recorded graphs for tests: those of corpus/real, and those beside the project that may not be copied into it.
//!
//! A module of each crate whose tests read them.

// Not every crate uses all of it.
#![allow(dead_code)]

use crate::format::json;
use crate::graph::Graph;
use std::path::{Path, PathBuf};

/// The folder of the project, whichever of its crates is tested.
pub(crate) fn project() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().find(|folder| folder.join("corpus").is_dir()).unwrap_or(package).to_path_buf()
}

/// The graphs in a folder, in the order of their names.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
    let mut files: Vec<_> = files.filter(|file| file.to_string_lossy().ends_with(".json.gz")).collect();
    files.sort();
    files
}

/// The recorded graphs beside the project, or beside the folder of its work trees. Prints a line where they are absent.
pub(crate) fn beside() -> Vec<PathBuf> {
    let project = project();
    let folders = project.ancestors().skip(1).take(2).map(|folder| files(&folder.join("shared/graphs")));
    folders.into_iter().find(|files| !files.is_empty()).unwrap_or_else(|| {
        println!("skipped 1 test in part: no recorded graphs beside the project");
        Vec::new()
    })
}

/// The graph in a file.
pub(crate) fn read(path: &Path) -> Graph {
    let read = json::read(&std::fs::read(path).unwrap()).ok().and_then(json::Document::into_graph);
    read.unwrap_or_else(|| panic!("{} cannot be read", path.display()))
}

/// The recorded graph with this name; where it is absent a line says that a part of a test is skipped.
pub fn graph(name: &str) -> Option<Graph> {
    let own = ["corpus/real", "corpus/real/partition"].map(|folder| project().join(folder));
    let own = own.map(|folder| folder.join(format!("{name}.json.gz")));
    let is_it = |path: &PathBuf| path.file_name().is_some_and(|file| file == &*format!("{name}.json.gz"));
    let path = own.into_iter().find(|path| path.exists()).or_else(|| beside().into_iter().find(is_it));
    if path.is_none() {
        println!("skipped 1 test in part: {name} is not recorded beside the project");
    }
    path.map(|path| read(&path))
}
