//! Glue; the body is `graph_oracle::fuzzing::interpreter_domains::check_choices`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| graph_oracle::fuzzing::interpreter_domains::check_choices(data));
