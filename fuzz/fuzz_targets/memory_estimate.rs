//! Glue; the body is `fuzzing::memory_estimate::check`.
#![no_main]

#[macro_use]
#[path = "../text_target.rs"]
mod text_target;

text_target!(memory_estimate::check);
