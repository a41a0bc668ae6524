//! Glue; the body is `fuzzing::schedule::check_fsdp_choices`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::schedule::check_fsdp_choices(data));
