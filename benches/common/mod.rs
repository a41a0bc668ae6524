//! What several benchmarks use.

pub mod joint;
pub mod program;

use std::path::PathBuf;

/// Whether benchmarks are only to be run once, as criterion's `--test` says: CI asks whether they still work.
pub fn is_test() -> bool {
    std::env::args().any(|argument| argument == "--test")
}

/// The sizes to measure, smallest first: all, or the smallest one where benchmarks are only run once.
pub fn sizes<T: Copy>(all: &[T]) -> Vec<T> {
    all.iter().copied().take(if is_test() { 1 } else { all.len() }).collect()
}

/// The folder of the project.
pub fn project() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .canonicalize()
        .expect("the folder of this crate")
}
