//! Glue; the body is `graph_oracle::fuzzing::dumps::check`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| graph_oracle::fuzzing::dumps::check(data));
