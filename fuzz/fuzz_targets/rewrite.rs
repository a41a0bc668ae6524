//! Glue; the body is `fuzzing::rewrite::check`.
#![no_main]

#[macro_use]
#[path = "../text_target.rs"]
mod text_target;

text_target!(rewrite::check);
