//! Hash-consing of slices: equal slices get one id, so that equality of what they stand for is equality of ids.

use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

/// Distinct slices, numbered in order of first appearance.
#[derive(Clone, Debug)]
pub(super) struct Slices<T> {
    items: Vec<T>,
    /// End of each slice in `items`.
    ends: Vec<usize>,
    /// First slice with a hash.
    first: FxHashMap<u64, u32>,
    /// The next slice with the same hash; `NONE` where there is none.
    next: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl<T> Default for Slices<T> {
    fn default() -> Self {
        Slices { items: Vec::new(), ends: Vec::new(), first: FxHashMap::default(), next: Vec::new() }
    }
}

impl<T: Copy + Eq + Hash> Slices<T> {
    /// The id of `slice`, if it is stored.
    pub(super) fn find(&self, slice: &[T]) -> Option<u32> {
        let mut hasher = FxHasher::default();
        slice.hash(&mut hasher);
        let mut at = self.first.get(&hasher.finish()).copied()?;
        while at != NONE && self.get(at) != slice {
            at = self.next[at as usize];
        }
        (at != NONE).then_some(at)
    }

    /// The id of `slice`, which is stored if it is new.
    pub(super) fn intern(&mut self, slice: &[T]) -> u32 {
        let mut hasher = FxHasher::default();
        slice.hash(&mut hasher);
        let hash = hasher.finish();
        let mut at = self.first.get(&hash).copied().unwrap_or(NONE);
        let mut last = NONE;
        while at != NONE {
            if self.get(at) == slice {
                return at;
            }
            (last, at) = (at, self.next[at as usize]);
        }
        let id = self.ends.len() as u32;
        self.items.extend_from_slice(slice);
        self.ends.push(self.items.len());
        self.next.push(NONE);
        if last == NONE {
            self.first.insert(hash, id);
        } else {
            self.next[last as usize] = id;
        }
        id
    }

    /// The slice with an id; empty for an id that was never given.
    pub(super) fn get(&self, id: u32) -> &[T] {
        let index = id as usize;
        let start = index.checked_sub(1).and_then(|i| self.ends.get(i)).copied().unwrap_or(0);
        let end = self.ends.get(index).copied().unwrap_or(start);
        &self.items[start..end]
    }

    /// Items of all slices together.
    pub(super) fn items(&self) -> usize {
        self.items.len()
    }

    /// How many slices there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_slices_have_one_id() {
        let mut slices = Slices::<u64>::default();
        let texts: [&[u64]; 5] = [&[], &[1], &[1, 2], &[1], &[]];
        let ids = texts.map(|t| slices.intern(t));
        assert_eq!(ids, [0, 1, 2, 1, 0]);
        assert_eq!((slices.get(2), slices.len(), slices.items()), (&[1u64, 2][..], 3, 3));
        assert!(slices.get(9).is_empty());
    }
}
