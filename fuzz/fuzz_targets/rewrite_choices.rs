//! Glue; the body is `graph_oracle::fuzzing::rewrite::check_choices`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| graph_oracle::fuzzing::rewrite::check_choices(data));
