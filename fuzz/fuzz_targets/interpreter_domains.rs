//! Glue; the body is `fuzzing::interpreter_domains::check`.
#![no_main]

#[macro_use]
#[path = "../text_target.rs"]
mod text_target;

text_target!(interpreter_domains::check);
