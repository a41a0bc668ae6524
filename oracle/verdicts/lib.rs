//! The rules, the judge that applies them, and what it reports.
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod judge;
pub mod report;
pub mod rules;
#[cfg(test)]
#[allow(dead_code)]
#[path = "../ir/analysis/testing.rs"]
mod testing;

use ir::{analysis, case, format, graph, limits, ops, threads};
use models::{config, lifecycle, memory, semantics, simulate};
