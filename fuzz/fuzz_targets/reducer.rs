//! Glue; the body is `fuzzing::reducer::check`.
#![no_main]

#[macro_use]
#[path = "../text_target.rs"]
mod text_target;

text_target!(reducer::check);
