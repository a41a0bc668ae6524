//! Who is judged, and on what: generators, candidates, workers, edits, the reducer and campaigns.
//!
//! [`generate`] makes cases from choices; [`candidates`] are the references, mutants of them, and workers in other
//! processes; [`edits`] changes right outcomes a little, wrongly or rightly; [`reduce`] finds the smallest case that
//! shows the same; [`campaign`] does all that many times, and keeps what it finds.
//!
//! # What it does not do
//!
//! It decides nothing: verdicts come from the judge.
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod campaign;
pub mod candidates;
pub mod edits;
pub mod family;
pub mod files;
pub mod generate;
#[cfg(test)]
#[path = "../../tests/common/recorded.rs"]
mod recorded;
pub mod reduce;
#[cfg(test)]
#[path = "../../tests/common/scale.rs"]
mod scale;
pub mod stop;
pub mod threads;
pub mod trace;

use ir::{analysis, case, format, graph, limits, ops, words};
use models::{config, memory, semantics, simulate};
use references::passes;
use verdicts::{judge, report, rules};
