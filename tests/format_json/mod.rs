//! The exchange JSON: what is read, what is written, and what is refused.
mod blocks;
mod errors;
mod own_version;
mod random;
mod random_graphs;
mod round_trip;

use graph_oracle::format::json;
use graph_oracle::graph::Graph;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The packed graphs of a folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(".json.gz"));
    files.sort();
    files
}

fn corpus() -> Vec<PathBuf> {
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/real"))
}

/// The recorded graphs beside the project, or beside the folder of its work trees; prints a line where there
/// are none.
fn recorded() -> Vec<PathBuf> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = project.ancestors().skip(1).take(2).map(|folder| folder.join("shared/graphs"));
    folders.map(|folder| files(&folder)).find(|files| !files.is_empty()).unwrap_or_else(|| {
        println!("skipped 1 test: no recorded graphs beside the project");
        Vec::new()
    })
}

fn unpacked(path: &Path) -> Vec<u8> {
    let mut text = Vec::new();
    let file = std::fs::File::open(path).unwrap();
    flate2::read::GzDecoder::new(file).read_to_end(&mut text).unwrap();
    text
}

fn read(text: impl AsRef<[u8]>) -> Graph {
    json::read(text.as_ref()).unwrap_or_else(|error| panic!("{error}")).into_graph().expect("a graph")
}

fn written(graph: &Graph) -> String {
    let mut text = Vec::new();
    json::write(graph, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}
