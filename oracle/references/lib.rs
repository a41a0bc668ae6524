//! The passes as they should be.
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
