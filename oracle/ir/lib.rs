//! The graph, its operators and tensors, what can be said of it without running it, and its text and JSON forms.
//!
//! The lowest floor of graph-oracle (docs/architecture.md). Everything above is a function of what stands here: a
//! [`case`] is a [`graph`] with its world, a pass and maybe an outcome; [`ops`] says of each operator what it may touch
//! and which shape it gives; [`analysis`] derives edges, storages and dependences; [`mod@format`] reads and writes.
//! Sizes are held against [`limits`] before anything is allocated.
//!
//! # What it does not do
//!
//! It computes no values and judges nothing. It uses no threads, files, processes or clock of its own; with the feature
//! `threads`, [`threads`] hands out work to rayon.
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod analysis;
pub mod case;
pub mod definitions;
pub mod expression;
pub mod format;
pub mod graph;
pub mod limits;
pub mod ops;
pub mod quantity;
pub mod threads;
pub mod words;
