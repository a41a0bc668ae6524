//! The passes as they should be: bucketing, repair, partitioning and scheduling.
//!
//! Each follows PyTorch's, or AutoParallel's, to the last tie; the module of each names its source. What a mutant
//! replaces is a method of a `Strategy`.
//!
//! # What it does not do
//!
//! It judges nothing, and the judge does not know it: what verdicts ask of a reference is handed to them as a trait
//! (docs/architecture.md lists it). It uses no threads, files, processes or clock.
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod passes;
#[cfg(test)]
#[path = "../../tests/common/recorded.rs"]
mod recorded;

#[cfg(test)]
use ir::format;
use ir::{analysis, case, graph, ops};
#[cfg(test)]
use models::semantics;
use models::{config, simulate};
