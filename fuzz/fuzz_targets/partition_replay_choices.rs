//! Glue; the body is `fuzzing::partition::check_replay_choices`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::partition::check_replay_choices(data));
