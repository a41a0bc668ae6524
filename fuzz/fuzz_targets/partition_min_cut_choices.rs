//! Glue; the body is `fuzzing::partition::check_min_cut_choices`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::partition::check_min_cut_choices(data));
