//! Parts of cells: what is read under a smaller element size.
//!
//! A cell is split by two invertible mixings, one for each half. Joining the two halves of one cell gives the cell back; any other
//! two halves give a hash of both.

use super::super::hash::{mix, text};

const LOW: u64 = 0x9FB2_1C65_1E98_DF25;
const HIGH: u64 = 0xA24B_AED4_963E_E407;

/// An invertible mixing: multiplication by an odd number between two shifts.
fn scramble(cell: u64, factor: u64, bytes: u8) -> u64 {
    let x =
        (cell ^ u64::from(bytes).wrapping_mul(0x5851_F42D_4C95_7F2D)).rotate_left(23).wrapping_mul(factor);
    x ^ (x >> 32)
}

fn unscramble(part: u64, factor: u64, bytes: u8) -> u64 {
    let x = part ^ (part >> 32);
    x.wrapping_mul(inverse(factor)).rotate_right(23) ^ u64::from(bytes).wrapping_mul(0x5851_F42D_4C95_7F2D)
}

/// The inverse of an odd number modulo 2^64, by Newton's iteration.
fn inverse(odd: u64) -> u64 {
    let mut x = odd;
    for _ in 0..6 {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
    }
    x
}

/// The two halves of a cell of so many bytes.
pub(super) fn split(cell: u64, bytes: u8) -> (u64, u64) {
    (scramble(cell, LOW, bytes), scramble(cell, HIGH, bytes))
}

/// The cell of so many bytes that has these halves.
pub(super) fn join(low: u64, high: u64, bytes: u8) -> u64 {
    let cell = unscramble(low, LOW, bytes);
    if scramble(cell, HIGH, bytes) == high { cell } else { mix(mix(text("joined"), low), high) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitting_is_undone_by_joining_and_by_nothing_else() {
        for i in 0..1000 {
            let cell = mix(1, i);
            for bytes in [2, 4, 8] {
                let (low, high) = split(cell, bytes);
                assert_eq!(join(low, high, bytes), cell);
                assert_ne!(join(high, low, bytes), cell);
                let (other_low, _) = split(mix(1, i + 1), bytes);
                let mixed = join(other_low, high, bytes);
                assert!(mixed != cell && mixed != mix(1, i + 1));
            }
            // Halves of an element of another size are other halves.
            assert_ne!(split(cell, 4), split(cell, 8));
        }
    }
}
