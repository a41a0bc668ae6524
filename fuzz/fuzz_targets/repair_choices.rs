//! Glue; the body is `fuzzing::repair::check_choices`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::repair::check_choices(data));
