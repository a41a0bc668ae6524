//! Glue; the body is `fuzzing::memory_orders::check_choices`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::memory_orders::check_choices(data));
