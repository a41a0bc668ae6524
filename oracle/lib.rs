//! graph-oracle: says whether a distributed-training graph pass did its job, and why not.
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod analysis;
pub mod case;
pub mod format;
pub mod generate;
pub mod graph;
pub mod ops;
