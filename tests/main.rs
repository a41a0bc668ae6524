//! The tests of the program as a whole, in one binary: each that is linked costs as much as many tests.

#![allow(missing_docs)]

// What the modules that are shared with the crates below name so.
use graph_oracle::{format, graph};

mod analysis;
mod bodies;
mod bucketing;
mod campaigns;
mod cases;
mod cli;
mod clusterfuzzlite;
mod common;
mod deadlock;
mod docs;
mod dumps;
mod findings;
mod floors;
mod format_json;
mod functions;
mod hostile;
mod idle;
mod limits;
mod meant;
mod memory;
mod ops;
mod options;
mod pages;
mod partition;
mod places;
mod rearranged;
mod renaming;
mod rewrites;
mod schedule;
mod schemas;
mod shell;
#[cfg(feature = "cuda")]
mod smoke_cuda;
mod snapshots;
mod sweep;
mod symbolic;
mod terminal;
mod text_format;
mod texts;
mod tools;
mod traces;
mod tutorials;
mod worker;
