//! Glue; the body is `fuzzing::schedule::check_iterative`.
#![no_main]

#[macro_use]
#[path = "../text_target.rs"]
mod text_target;

text_target!(schedule::check_iterative);
