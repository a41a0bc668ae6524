//! How graphs are written down.

pub mod json;
