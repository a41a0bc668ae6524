//! Glue; the body is `fuzzing::text_format::check`.
#![no_main]

#[macro_use]
#[path = "../text_target.rs"]
mod text_target;

text_target!(text_format::check);
