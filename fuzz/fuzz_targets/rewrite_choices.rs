//! Glue; the body is `fuzzing::rewrite::check_choices`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::rewrite::check_choices(data));
