//! What several benchmarks use.

pub mod joint;
pub mod program;

use std::path::PathBuf;

/// The folder of the project.
pub fn project() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .canonicalize()
        .expect("the folder of this crate")
}
