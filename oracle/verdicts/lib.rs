//! The rules, the judge that applies them, and what it reports.
//!
//! [`rules`] are statements with stable ids about what a pass did; [`judge`] gathers the evidence that they see, from
//! graphs alone, and makes a verdict of what they find; [`report`] words it for people and for machines.
//!
//! # What it does not do
//!
//! It runs no pass: a [`Candidate`](judge::candidate::Candidate) is handed in, and so are the
//! [`References`](judge::References). It uses no threads, files, processes or clock of its own.
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod family;
pub mod judge;
pub mod report;
pub mod rules;
#[cfg(test)]
#[allow(dead_code)]
#[path = "../ir/analysis/testing.rs"]
mod testing;

use ir::{analysis, case, definitions, expression, format, graph, limits, ops, threads, words};
use models::{config, lifecycle, memory, semantics, simulate};
