//! Glue; the body is `graph_oracle::fuzzing::partition::check_cse_choices`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| graph_oracle::fuzzing::partition::check_cse_choices(data));
