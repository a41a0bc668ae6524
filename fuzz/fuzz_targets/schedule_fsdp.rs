//! Glue; the body is `fuzzing::schedule::check_fsdp`.
#![no_main]

#[macro_use]
#[path = "../text_target.rs"]
mod text_target;

text_target!(schedule::check_fsdp);
