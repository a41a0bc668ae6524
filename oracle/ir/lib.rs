//! The graph, its operators and tensors, what can be said of it without running it, and its text and JSON forms.
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod analysis;
pub mod case;
pub mod format;
pub mod graph;
pub mod limits;
pub mod ops;
pub mod threads;
