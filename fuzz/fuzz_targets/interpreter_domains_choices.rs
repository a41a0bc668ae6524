//! Glue; the body is `fuzzing::interpreter_domains::check_choices`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::interpreter_domains::check_choices(data));
