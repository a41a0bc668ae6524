//! A target that reads `.graph` text: its body, and the mutator that knows graphs.

/// `text_target!(name::check)`: the target whose body is `fuzzing::name::check`.
macro_rules! text_target {
    ($module:ident::$body:ident) => {
        libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::$module::$body(data));

        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            // Now and then bytes change, so that the parser sees nonsense too.
            if seed % 8 == 0 {
                return libfuzzer_sys::fuzzer_mutate(data, size, max_size);
            }
            let mutated = fuzzing::mutate::mutate(&data[..size], seed);
            let size = mutated.len().min(max_size);
            data[..size].copy_from_slice(&mutated[..size]);
            size
        });
    };
}
