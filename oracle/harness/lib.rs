//! Generators, candidates, workers, the reducer and campaigns.
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod campaign;
pub mod candidates;
pub mod edits;
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

use ir::{analysis, case, format, graph, limits, ops};
use models::{config, memory, semantics, simulate};
use references::passes;
use verdicts::{judge, report, rules};
