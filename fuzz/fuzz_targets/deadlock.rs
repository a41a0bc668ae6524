//! Glue; the body is `graph_oracle::fuzzing::deadlock::check`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| graph_oracle::fuzzing::deadlock::check(data));
