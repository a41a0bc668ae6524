//! Glue; the body is `fuzzing::dumps::check`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::dumps::check(data));
