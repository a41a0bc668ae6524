//! What a graph does: its values, its memory, and the ranks that meet in collectives.
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod config;
pub mod lifecycle;
pub mod memory;
#[cfg(test)]
#[path = "../../tests/common/recorded.rs"]
mod recorded;
pub mod semantics;
pub mod simulate;

#[cfg(test)]
use ir::format;
use ir::{analysis, case, graph, limits, ops};
