//! Glue; the body is `fuzzing::schedule::check_iterative_choices`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::schedule::check_iterative_choices(data));
