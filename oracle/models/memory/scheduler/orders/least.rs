//! The least of many values that change, over any stretch of them: a segment tree.
//!
//! Each inner place stands for eight below it, which lie side by side: a change looks at few places that are far apart,
//! and that is what it costs where the tree is larger than a cache.

/// A value, and what stands for none: a value larger than any other.
pub(super) trait Key: Copy + Ord {
    const NONE: Self;
}

impl Key for u64 {
    const NONE: u64 = u64::MAX;
}

impl Key for u128 {
    const NONE: u128 = u128::MAX;
}

/// Values in fixed places; a place may be empty.
pub(super) struct Least<K> {
    /// The values, then the least of each block, and so on up to one block.
    levels: Vec<Vec<Block<K>>>,
    /// The least of all.
    least: K,
}

/// Places that one place above stands for.
const WIDTH: usize = 8;
type Block<K> = [K; WIDTH];

impl<K: Key> Least<K> {
    /// Empty places.
    pub(super) fn new(places: usize) -> Least<K> {
        let mut levels = Vec::new();
        let mut blocks = places.max(1);
        while blocks > 1 || levels.is_empty() {
            blocks = blocks.div_ceil(WIDTH);
            levels.push(vec![[K::NONE; WIDTH]; blocks]);
        }
        Least { levels, least: K::NONE }
    }

    /// Puts a value into a place, or empties it. A block is looked through only where its least value goes.
    pub(super) fn set(&mut self, place: usize, value: Option<K>) {
        let (mut at, mut value) = (place, value.unwrap_or(K::NONE));
        let mut levels = self.levels.iter_mut();
        let mut level = levels.next();
        while let Some(blocks) = level {
            let block = &mut blocks[at / WIDTH];
            let was = std::mem::replace(&mut block[at % WIDTH], value);
            at /= WIDTH;
            level = levels.next();
            let least = level.as_ref().map_or(self.least, |above| above[at / WIDTH][at % WIDTH]);
            if value > least {
                if was != least {
                    return;
                }
                value = block.iter().copied().fold(K::NONE, K::min);
            }
            if value == least {
                return;
            }
        }
        self.least = value;
    }

    /// Whether a place is empty.
    pub(super) fn is_empty(&self, place: usize) -> bool {
        self.levels[0][place / WIDTH][place % WIDTH] == K::NONE
    }

    /// The least value of all.
    pub(super) fn least(&self) -> Option<K> {
        Some(self.least).filter(|&least| least != K::NONE)
    }

    /// The least value of the places `from..to`.
    pub(super) fn of(&self, from: usize, to: usize) -> Option<K> {
        let (mut from, mut to) = (from, to);
        let mut found = K::NONE;
        for level in &self.levels {
            if from >= to {
                break;
            }
            let level = level.as_flattened();
            // What no place above stands for, at either end.
            let up = from.next_multiple_of(WIDTH).min(to);
            let down = (to / WIDTH * WIDTH).max(up);
            found = level[from..up].iter().chain(&level[down..to]).copied().fold(found, K::min);
            (from, to) = (up.div_ceil(WIDTH), down / WIDTH);
        }
        if from < to {
            found = found.min(self.least);
        }
        Some(found).filter(|&found| found != K::NONE)
    }

    /// The first place that is not empty.
    pub(super) fn first(&self) -> Option<usize> {
        let mut at = 0;
        for level in self.levels.iter().rev() {
            at = at * WIDTH + level[at].iter().position(|&value| value != K::NONE)?;
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_plain_list() {
        let mut state = 7u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        for places in [1, 2, 3, 7, 8, 33] {
            let (mut tree, mut plain) = (Least::<u64>::new(places), vec![None; places]);
            for _ in 0..300 {
                let (place, value) = (draw(places), draw(20) as u64);
                let value = Some(value).filter(|&value| value > 6);
                tree.set(place, value);
                plain[place] = value;
                let (a, b) = (draw(places + 1), draw(places + 1));
                let (from, to) = (a.min(b), a.max(b));
                assert_eq!(tree.of(from, to), plain[from..to].iter().flatten().min().copied());
                assert_eq!(tree.least(), plain.iter().flatten().min().copied());
                assert_eq!(tree.first(), plain.iter().position(Option::is_some));
                assert_eq!(tree.is_empty(place), plain[place].is_none());
            }
        }
    }
}
