//! Runs graphs on devices, in the host's memory or on a GPU, and compares what they give.
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod gpu;
#[cfg(test)]
#[path = "../../tests/common/scale.rs"]
mod scale;

use harness::candidates;
#[cfg(test)]
use harness::generate;
use ir::{analysis, case, format, graph, limits, ops};
use models::{lifecycle, memory, semantics};
use verdicts::rules;
