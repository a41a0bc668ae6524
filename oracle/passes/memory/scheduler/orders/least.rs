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
    /// The values, then the least of every eight of them, and so on up to one.
    levels: Vec<Vec<K>>,
}

/// Places that one place above stands for.
const WIDTH: usize = 8;

impl<K: Key> Least<K> {
    /// Empty places.
    pub(super) fn new(places: usize) -> Least<K> {
        let mut levels = vec![vec![K::NONE; places.max(1).next_multiple_of(WIDTH)]];
        while let Some(last) = levels.last().filter(|last| last.len() > 1) {
            let above = match last.len() / WIDTH {
                1 => 1,
                blocks => blocks.next_multiple_of(WIDTH),
            };
            levels.push(vec![K::NONE; above]);
        }
        Least { levels }
    }

    /// Puts a value into a place, or empties it.
    pub(super) fn set(&mut self, place: usize, value: Option<K>) {
        let (mut at, mut least) = (place, value.unwrap_or(K::NONE));
        for level in &mut self.levels {
            if std::mem::replace(&mut level[at], least) == least {
                return;
            }
            at /= WIDTH;
            let block = level.get(at * WIDTH..(at + 1) * WIDTH).unwrap_or(level);
            least = block.iter().copied().fold(K::NONE, K::min);
        }
    }

    /// Whether a place is empty.
    pub(super) fn is_empty(&self, place: usize) -> bool {
        self.levels[0][place] == K::NONE
    }

    /// The least value of all.
    pub(super) fn least(&self) -> Option<K> {
        self.levels.last().map(|top| top[0]).filter(|&least| least != K::NONE)
    }

    /// The least value of the places `from..to`.
    pub(super) fn of(&self, from: usize, to: usize) -> Option<K> {
        let (mut from, mut to) = (from, to);
        let mut found = K::NONE;
        for level in &self.levels {
            if from >= to {
                break;
            }
            // What no place above stands for, at either end.
            let up = from.next_multiple_of(WIDTH).min(to);
            let down = (to / WIDTH * WIDTH).max(up);
            found = level[from..up].iter().chain(&level[down..to]).copied().fold(found, K::min);
            (from, to) = (up.div_ceil(WIDTH), down / WIDTH);
        }
        Some(found).filter(|&found| found != K::NONE)
    }

    /// The first place that is not empty.
    pub(super) fn first(&self) -> Option<usize> {
        let mut at = 0;
        for level in self.levels.iter().rev() {
            let block = level.iter().skip(at).take(WIDTH);
            at = (at + block.take_while(|&&value| value == K::NONE).count()) * WIDTH;
        }
        // Where everything is empty the top says so.
        self.least().map(|_| at / WIDTH)
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
