//! Glue; the body is `fuzzing::huge_numbers::check`. libFuzzer itself limits memory (`-rss_limit_mb`, 2
//! GiB).
#![no_main]

use fuzzing::huge_numbers;

libfuzzer_sys::fuzz_target!(|data: &[u8]| huge_numbers::check(data));

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    // Every other time bytes change, so that texts of another form are made too.
    if seed % 2 == 0 {
        return libfuzzer_sys::fuzzer_mutate(data, size, max_size);
    }
    let mutated = huge_numbers::mutate(&data[..size], seed);
    let size = mutated.len().min(max_size);
    data[..size].copy_from_slice(&mutated[..size]);
    size
});
