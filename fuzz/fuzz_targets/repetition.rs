//! Glue; the body is `graph_oracle::fuzzing::repetition::check`.
#![no_main]

#[macro_use]
#[path = "../text_target.rs"]
mod text_target;

text_target!(repetition::check);
