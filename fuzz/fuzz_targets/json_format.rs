//! Glue; the body is `fuzzing::json_format::check`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::json_format::check(data));
