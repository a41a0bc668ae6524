//! The exchange JSON: what is read, what is written, and what is refused.

mod round_trip;

use std::path::{Path, PathBuf};

/// Files of a folder of the repository, in order.
pub fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(ending));
    files.sort();
    files
}

pub fn corpus() -> Vec<PathBuf> {
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/real"), ".json.gz")
}

/// The recorded graphs beside the project, or beside the folder of its work trees; prints a line where there
/// are none.
pub fn recorded() -> Vec<PathBuf> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = project.ancestors().skip(1).take(2).map(|folder| folder.join("shared/graphs"));
    let found = folders.map(|folder| files(&folder, ".json.gz")).find(|files| !files.is_empty());
    found.unwrap_or_else(|| {
        println!("skipped 1 test: no recorded graphs beside the project");
        Vec::new()
    })
}

pub fn unpacked(path: &Path) -> Vec<u8> {
    let mut text = Vec::new();
    let file = std::fs::File::open(path).unwrap();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(file), &mut text).unwrap();
    text
}
