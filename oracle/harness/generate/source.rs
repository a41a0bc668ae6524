//! Where choices come from.
//!
//! The generator asks one question, "a number below n?", and never looks further. Three sources answer it:
//! [`Seeded`] from a random number generator (campaigns), [`Bytes`] from a byte string (libFuzzer, proptest),
//! and [`Unstructured`](crate::generate::Unstructured) from `arbitrary` (feature `arbitrary`).
//!
//! # Small change of choices, small change of graph
//!
//! A byte string is read in *frames* of [`FRAME`] bytes, one per step of the generator. What a step does not use
//! of its frame is skipped; where it wants more, it gets zeros. So a changed byte changes one step, and inserting
//! or removing a frame inserts or removes a step. There is no count up front: the graph ends where the data ends,
//! and more data makes a larger graph.
//!
//! Zero is the plain choice everywhere: the first operator, the most recent operand, the feature left out.

use rand_core::Rng;
use rand_pcg::Lcg64Xsh32;

/// Answers the questions of the generator.
pub trait Source {
    /// A number in `0..n`; 0 for `n` of 0 or 1.
    fn below(&mut self, n: u32) -> u32;

    /// Begins a step: the swarm, the world, the keys, then each step of the graph. Whether there is anything left
    /// to make a step of.
    fn step(&mut self) -> bool;

    /// A length between `low` and `high`. A source that ends by itself says `high`, and ends when it ends.
    fn length(&mut self, low: u32, high: u32) -> u32;

    /// Whether something that happens in `percent` of 100 cases happens now.
    fn percent(&mut self, percent: u32) -> bool {
        percent > 0 && self.below(100) >= 100u32.saturating_sub(percent)
    }

    /// A number in `low..=high`.
    fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// One of several values, all equally likely.
    fn one_of<T: Copy>(&mut self, values: &[T]) -> T
    where
        Self: Sized,
    {
        values[self.below(values.len() as u32) as usize]
    }

    /// The index of one of several weights, as likely as its share; 0 where all are 0.
    fn weighted(&mut self, weights: &[u32]) -> usize {
        let total: u32 = weights.iter().sum();
        let mut at = self.below(total);
        for (i, &weight) in weights.iter().enumerate() {
            if at < weight {
                return i;
            }
            at -= weight;
        }
        0
    }
}

/// The same choices, with as many steps as there may be: for graphs of a size that is asked for.
#[derive(Clone, Debug)]
pub struct Longest<S>(pub S);

impl<S: Source> Source for Longest<S> {
    fn below(&mut self, n: u32) -> u32 {
        self.0.below(n)
    }

    fn step(&mut self) -> bool {
        true
    }

    fn length(&mut self, _low: u32, high: u32) -> u32 {
        high
    }
}

impl<S: Source + ?Sized> Source for &mut S {
    fn below(&mut self, n: u32) -> u32 {
        (**self).below(n)
    }

    fn step(&mut self) -> bool {
        (**self).step()
    }

    fn length(&mut self, low: u32, high: u32) -> u32 {
        (**self).length(low, high)
    }
}

/// Choices from a random number generator. The stream of a seed is the same on every machine and in every version
/// of this crate with the same [`VERSION`](crate::generate::VERSION).
#[derive(Clone, Debug)]
pub struct Seeded(Lcg64Xsh32);

impl Seeded {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Seeded {
        Seeded::case(seed, 0)
    }

    /// The stream of case number `index` of the campaign `seed`: independent of how cases are shared out.
    pub fn case(seed: u64, index: u64) -> Seeded {
        Seeded(Lcg64Xsh32::new(scramble(scramble(seed) ^ index), scramble(index)))
    }
}

/// Spreads neighbouring numbers over 64 bits (the finalizer of SplitMix64), so that neighbouring seeds have nothing
/// in common.
fn scramble(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

impl Source for Seeded {
    fn below(&mut self, n: u32) -> u32 {
        // The bias of at most n / 2^32 is of no concern here.
        ((u64::from(self.0.next_u32()) * u64::from(n)) >> 32) as u32
    }

    fn step(&mut self) -> bool {
        true
    }

    fn length(&mut self, low: u32, high: u32) -> u32 {
        self.between(low, high)
    }
}

/// Bytes per step. Most steps ask for fewer than this many choices of one byte.
pub const FRAME: usize = 16;

/// Choices from a byte string, frame by frame.
#[derive(Clone, Debug)]
pub struct Bytes<'a> {
    rest: &'a [u8],
    frame: &'a [u8],
}

impl<'a> Bytes<'a> {
    /// Reads `bytes` from the start; the first [`Source::step`] opens the first frame.
    pub fn new(bytes: &'a [u8]) -> Bytes<'a> {
        Bytes { rest: bytes, frame: &[] }
    }

    /// Inside one frame.
    #[cfg(any(test, feature = "arbitrary"))]
    fn frame(bytes: &'a [u8]) -> Bytes<'a> {
        Bytes { rest: &[], frame: bytes }
    }

    fn byte(&mut self) -> u32 {
        match self.frame.split_first() {
            Some((&byte, rest)) => {
                self.frame = rest;
                u32::from(byte)
            }
            None => 0,
        }
    }
}

impl Source for Bytes<'_> {
    fn below(&mut self, n: u32) -> u32 {
        match n {
            0 | 1 => 0,
            2..=0x100 => (self.byte() * n) >> 8,
            0x101..=0x1_0000 => ((u64::from((self.byte() << 8) | self.byte()) * u64::from(n)) >> 16) as u32,
            _ => {
                let word = (0..4).fold(0u64, |word, _| (word << 8) | u64::from(self.byte()));
                ((word * u64::from(n)) >> 32) as u32
            }
        }
    }

    fn step(&mut self) -> bool {
        let more = !self.rest.is_empty();
        (self.frame, self.rest) = self.rest.split_at(self.rest.len().min(FRAME));
        more
    }

    fn length(&mut self, _low: u32, high: u32) -> u32 {
        high
    }
}

/// Choices from `arbitrary`'s unstructured data, in frames as [`Bytes`].
#[cfg(feature = "arbitrary")]
#[derive(Debug)]
pub struct Unstructured<'a, 'b> {
    data: &'a mut arbitrary::Unstructured<'b>,
    frame: Bytes<'b>,
}

#[cfg(feature = "arbitrary")]
impl<'a, 'b> Unstructured<'a, 'b> {
    /// Takes choices from `data`, until it is used up.
    pub fn new(data: &'a mut arbitrary::Unstructured<'b>) -> Unstructured<'a, 'b> {
        Unstructured { data, frame: Bytes::new(&[]) }
    }
}

#[cfg(feature = "arbitrary")]
impl Source for Unstructured<'_, '_> {
    fn below(&mut self, n: u32) -> u32 {
        self.frame.below(n)
    }

    fn step(&mut self) -> bool {
        let length = self.data.len().min(FRAME);
        // Cannot fail: no more is asked for than there is.
        self.frame = Bytes::frame(self.data.bytes(length).unwrap_or(&[]));
        length > 0
    }

    fn length(&mut self, _low: u32, high: u32) -> u32 {
        high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_of_a_seed_is_fixed() {
        let mut source = Seeded::case(7, 42);
        let drawn: Vec<u32> = (0..8).map(|_| source.below(1000)).collect();
        assert_eq!(drawn, [464, 607, 9, 57, 235, 892, 971, 461]);
    }

    #[test]
    fn neighbouring_cases_have_nothing_in_common() {
        let first = |index| Seeded::case(1, index).below(1 << 16);
        let drawn: std::collections::BTreeSet<u32> = (0..1000).map(first).collect();
        assert!(drawn.len() > 980, "{}", drawn.len());
    }

    #[test]
    fn choices_stay_below_their_bound() {
        for n in [0, 1, 2, 3, 255, 256, 257, 70_000, u32::MAX] {
            let mut source = Bytes::frame(&[0xff; 8]);
            assert_eq!(source.below(n), n.saturating_sub(1));
            assert!(Seeded::new(3).below(n) < n.max(1));
        }
    }

    #[test]
    fn percentages_and_weights() {
        let mut source = Seeded::new(5);
        assert!((0..1000).all(|_| !source.percent(0)));
        assert!((0..1000).all(|_| source.percent(100)));
        let hits = (0..10_000).filter(|_| source.percent(20)).count();
        assert!((1800..2200).contains(&hits), "{hits}");
        let mut counts = [0; 3];
        for _ in 0..10_000 {
            counts[source.weighted(&[1, 0, 3])] += 1;
        }
        assert!(counts[1] == 0 && (2300..2700).contains(&counts[0]), "{counts:?}");
        assert_eq!(source.weighted(&[0, 0]), 0);
        // Without data nothing happens that need not.
        assert!(!Bytes::new(&[]).percent(99));
    }

    #[test]
    fn a_frame_is_one_step() {
        let data: Vec<u8> = (0..40).collect();
        let mut source = Bytes::new(&data);
        let mut starts = Vec::new();
        while source.step() {
            starts.push(source.below(256));
        }
        assert_eq!(starts, [0, 16, 32]);
        assert_eq!((source.below(256), source.step()), (0, false));
    }
}
