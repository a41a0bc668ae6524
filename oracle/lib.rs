//! graph-oracle: says whether a distributed-training graph pass did its job, and why not.
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod analysis;
pub mod campaign;
pub mod candidates;
pub mod case;
pub mod cli;
pub mod config;
pub mod edits;
pub mod format;
pub mod fuzzing;
pub mod generate;
pub mod gpu;
pub mod graph;
pub mod judge;
pub mod lifecycle;
pub mod limits;
pub mod memory;
pub mod ops;
pub mod passes;
#[cfg(test)]
mod recorded;
pub mod reduce;
pub mod report;
pub mod rules;
pub mod semantics;
pub mod simulate;
pub mod stop;
