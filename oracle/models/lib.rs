//! What a graph does: its values, its memory, and the ranks that meet in collectives.
//!
//! [`semantics`] says what a value is, in three ways that are held against each other; [`simulate`] lets all ranks run
//! against each other; [`memory`] and [`lifecycle`] say what is live when; [`config`] is what a pass is asked to do, as
//! types beneath passes and rules alike.
//!
//! # What it does not do
//!
//! It knows no pass and no rule. It uses no threads, files, processes or clock.
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

use ir::{analysis, case, expression, format, graph, limits, ops, quantity, words};
