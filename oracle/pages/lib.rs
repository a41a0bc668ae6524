//! Verdicts, graphs and timelines as pages: one file of HTML each, which needs nothing but itself.
//!
//! # The idea
//!
//! Data in, text out. What does not change with the reader is HTML made here (`maud` escapes it); graphs are a compact
//! table in the page, of which the script draws what is in sight, so that ten thousand nodes open at once. Style and
//! script are one file each, and every page carries them.
//!
//! Names, messages and sources of others stand on these pages. Whatever they hold is shown as text: markup is escaped,
//! and characters that hide or turn the direction of writing are written out ([`words`]).
//!
//! # What it does not do
//!
//! It reads and writes no files, has no threads and no clock, and judges nothing: the same data give the same bytes.
#![deny(unsafe_code)]
#![warn(missing_docs)]

mod call;
pub mod campaign;
pub mod check;
mod figures;
mod finding;
mod lanes;
pub mod memory;
mod page;
pub mod score;
pub mod serve;
pub mod show;
pub mod simulate;
mod timelines;
pub mod trace;
mod verdict;
mod view;
pub mod words;

pub use figures::change;
pub use view::{Shown, View};

use ir::{analysis, graph, ops};
use models::simulate as simulation;
use verdicts::{judge, report, rules};
