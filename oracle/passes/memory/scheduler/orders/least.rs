//! The least of many values that change, over any stretch of them: a segment tree.

/// Values in fixed places; a place may be empty.
pub(super) struct Least {
    leaves: usize,
    /// The least value below each inner place, then the values; [`NONE`] where there is none.
    tree: Vec<u128>,
}

const NONE: u128 = u128::MAX;

impl Least {
    /// Empty places.
    pub(super) fn new(places: usize) -> Least {
        let leaves = places.next_power_of_two();
        Least { leaves, tree: vec![NONE; 2 * leaves] }
    }

    /// Puts a value into a place, or empties it.
    pub(super) fn set(&mut self, place: usize, value: Option<u128>) {
        let mut at = self.leaves + place;
        self.tree[at] = value.unwrap_or(NONE);
        while at > 1 {
            at /= 2;
            let least = self.tree[2 * at].min(self.tree[2 * at + 1]);
            if self.tree[at] == least {
                break;
            }
            self.tree[at] = least;
        }
    }

    /// Whether a place is empty.
    pub(super) fn is_empty(&self, place: usize) -> bool {
        self.tree[self.leaves + place] == NONE
    }

    /// The least value of all.
    pub(super) fn least(&self) -> Option<u128> {
        Some(self.tree[1]).filter(|&least| least != NONE)
    }

    /// The least value of the places `from..to`.
    pub(super) fn of(&self, from: usize, to: usize) -> Option<u128> {
        let (mut from, mut to) = (from + self.leaves, to + self.leaves);
        let mut found = NONE;
        while from < to {
            if from % 2 == 1 {
                found = found.min(self.tree[from]);
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                found = found.min(self.tree[to]);
            }
            from /= 2;
            to /= 2;
        }
        Some(found).filter(|&found| found != NONE)
    }

    /// The first place that is not empty.
    pub(super) fn first(&self) -> Option<usize> {
        if self.tree[1] == NONE {
            return None;
        }
        let mut at = 1;
        while at < self.leaves {
            at = 2 * at + usize::from(self.tree[2 * at] == NONE);
        }
        Some(at - self.leaves)
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
            let (mut tree, mut plain) = (Least::new(places), vec![None; places]);
            for _ in 0..300 {
                let (place, value) = (draw(places), draw(20) as u128);
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
