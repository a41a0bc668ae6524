//! Glue; the body is `graph_oracle::fuzzing::json_format::check`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| graph_oracle::fuzzing::json_format::check(data));
