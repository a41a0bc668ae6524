//! Runs graphs on devices, in the host's memory or on a GPU, and compares what they give.
//!
//! # What it does not do
//!
//! It measures no speed, and judges no pass: it says whether a schedule, as it is executed, gives the values and the
//! memory that the interpreter foresees. CUDA is loaded when the program runs, with the feature `cuda`.
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
use verdicts::{family, rules};
