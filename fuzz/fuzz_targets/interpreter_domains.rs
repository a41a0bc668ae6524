//! Glue; the body is `graph_oracle::fuzzing::interpreter_domains::check`.
#![no_main]

use graph_oracle::fuzzing::{interpreter_domains, mutate::mutate};

libfuzzer_sys::fuzz_target!(|data: &[u8]| interpreter_domains::check(data));

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    // Now and then bytes change, so that the parser sees nonsense too.
    if seed % 8 == 0 {
        return libfuzzer_sys::fuzzer_mutate(data, size, max_size);
    }
    let mutated = mutate(&data[..size], seed);
    let size = mutated.len().min(max_size);
    data[..size].copy_from_slice(&mutated[..size]);
    size
});
