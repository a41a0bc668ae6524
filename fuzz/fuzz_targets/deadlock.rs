//! Glue; the body is `fuzzing::deadlock::check`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::deadlock::check(data));
