//! Glue; the body is `fuzzing::reducer::check_choices`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::reducer::check_choices(data));
