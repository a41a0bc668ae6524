//! What a pass is asked to do: the options of a case, read once, into types that references, rules and the judge share.
//!
//! Defaults are PyTorch's. An option that a pass does not have is an error that names those it has.

pub mod bucketing;
pub mod cap;
pub mod partition;
pub mod schedule;
