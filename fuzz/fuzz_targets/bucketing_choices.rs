//! Glue; the body is `fuzzing::bucketing::check_choices`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::bucketing::check_choices(data));
