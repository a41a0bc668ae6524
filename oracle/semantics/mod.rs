//! What a graph means.

pub mod extents;
