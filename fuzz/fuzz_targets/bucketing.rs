//! Glue; the body is `fuzzing::bucketing::check`.
#![no_main]

#[macro_use]
#[path = "../text_target.rs"]
mod text_target;

text_target!(bucketing::check);
