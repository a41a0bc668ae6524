//! Glue; the body is `fuzzing::printed_graphs::check`.
#![no_main]

#[macro_use]
#[path = "../text_target.rs"]
mod text_target;

text_target!(printed_graphs::check);
