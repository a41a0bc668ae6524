//! Recorded graphs for tests: those of corpus/real, and those beside the project that may not be copied into it.

use crate::format::json;
use crate::graph::Graph;
use std::path::{Path, PathBuf};

fn path(name: &str) -> Option<PathBuf> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let beside = project.ancestors().skip(1).take(2).map(|folder| folder.join("shared/graphs"));
    ["corpus/real", "corpus/real/partition"]
        .map(|folder| project.join(folder))
        .into_iter()
        .chain(beside)
        .map(|folder| folder.join(format!("{name}.json.gz")))
        .find(|path| path.exists())
}

/// The recorded graph with this name; where it is absent a line says that a part of a test is skipped.
pub(crate) fn graph(name: &str) -> Option<Graph> {
    let Some(path) = path(name) else {
        println!("skipped 1 test in part: {name} is not recorded beside the project");
        return None;
    };
    let read = json::read_path(&path).ok().and_then(json::Document::into_graph);
    assert!(read.is_some(), "{} cannot be read", path.display());
    read
}
