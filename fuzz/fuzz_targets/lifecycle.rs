//! Glue; the body is `fuzzing::lifecycle::check`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::lifecycle::check(data));
