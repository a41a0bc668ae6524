//! Glue; the body is `fuzzing::schedule::check_scored_choices`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::schedule::check_scored_choices(data));
