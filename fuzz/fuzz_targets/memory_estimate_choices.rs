//! Glue; the body is `fuzzing::memory_estimate::check_choices`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::memory_estimate::check_choices(data));
