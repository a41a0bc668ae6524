//! 64-bit hashing of small things, the same on every machine and in every run.
//!
//! Each step multiplies to 128 bits and folds the halves, which mixes every input bit into every output bit. It
//! guards against accidents, not against an adversary.

/// A hash from a hash and one more word. Order counts.
pub fn mix(state: u64, word: u64) -> u64 {
    let product =
        u128::from(state ^ 0x9E37_79B9_7F4A_7C15) * u128::from(word.rotate_left(32) ^ 0xD6E8_FEB8_6659_FD93);
    let folded = (product as u64) ^ ((product >> 64) as u64);
    folded.wrapping_add(state.rotate_left(17)).wrapping_mul(0xC2B2_AE3D_27D4_EB4F) ^ word
}

/// The hash of a text.
pub fn text(text: &str) -> u64 {
    text.as_bytes().chunks(8).fold(mix(0x7478, text.len() as u64), |state, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(state, u64::from_le_bytes(word))
    })
}

/// The hash of a list of words.
pub fn words(state: u64, words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().fold(state, mix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn order_counts_and_small_inputs_do_not_collide() {
        let mut seen = BTreeSet::new();
        for a in 0..200 {
            for b in 0..200 {
                assert!(seen.insert(mix(mix(0, a), b)), "{a} {b}");
            }
        }
        assert_ne!(mix(mix(0, 1), 2), mix(mix(0, 2), 1));
        assert_ne!(text("ab"), text("ba"));
        assert_ne!(text(""), text("\0"));
    }

    /// Flipping one input bit flips about half of the output bits.
    #[test]
    fn every_input_bit_reaches_the_output() {
        for bit in 0..64 {
            let mut flipped = 0;
            for i in 0..64u64 {
                let word = mix(5, i);
                flipped += (mix(mix(1, word), 9) ^ mix(mix(1, word ^ (1 << bit)), 9)).count_ones();
                flipped += (mix(word, 3) ^ mix(word ^ (1 << bit), 3)).count_ones();
            }
            assert!((48 * 64..80 * 64).contains(&flipped), "bit {bit}: {}", flipped / 64);
        }
    }
}
