//! Glue; the body is `graph_oracle::fuzzing::memory_orders::check_choices`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| graph_oracle::fuzzing::memory_orders::check_choices(data));
