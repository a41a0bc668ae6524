//! Glue; the body is `fuzzing::partition::check_min_cut`.
#![no_main]

#[macro_use]
#[path = "../text_target.rs"]
mod text_target;

text_target!(partition::check_min_cut);
