//! The tests of the program as a whole, in one binary: each that is linked costs as much as many tests.

#![allow(missing_docs)]

mod analysis;
mod bucketing;
mod campaigns;
mod cases;
mod cli;
mod clusterfuzzlite;
mod common;
mod corpus;
mod docs;
mod extents;
mod findings;
mod format_json;
mod idle;
mod limits;
mod ops;
mod options;
mod places;
mod rearranged;
mod renaming;
mod rewrites;
#[cfg(feature = "cuda")]
mod smoke_cuda;
mod snapshots;
mod sweep;
mod terminal;
mod text_format;
mod worker;
