//! The bytes of one storage that collectives in flight use.
//!
//! A range is kept at the midpoint that it contains: the one byte offset in it that is divisible by the highest power
//! of two. A range that meets a query either has its midpoint inside the query, or its midpoint lies on the way from
//! one end of the query to the root of the binary tree of all midpoints. There are 63 of those, whatever is in flight,
//! so a question takes a logarithm of time, however many ranges there are and however they are nested.

use super::event::Range;
use std::collections::{BTreeMap, BTreeSet};

/// Byte offsets have this many bits.
const BITS: u32 = i64::BITS - 1;

/// Ranges of bytes, each with the number of the flight that uses it.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    by_midpoint: BTreeMap<i64, Ends>,
}

/// The ranges that contain one midpoint, by either end.
#[derive(Debug, Default)]
struct Ends {
    by_start: BTreeSet<(i64, i64, u64)>,
    by_end: BTreeSet<(i64, i64, u64)>,
}

/// The bytes that a range stands for: all of them where it is not known; `None` where there are none.
fn bytes(range: Option<Range>) -> Option<(i64, i64)> {
    let (start, end) = range.map_or((0, i64::MAX), |range| (range.start.max(0), range.end));
    (start < end).then_some((start, end))
}

fn midpoint(start: i64, end: i64) -> i64 {
    let last = end - 1;
    match (start ^ last).checked_ilog2() {
        Some(bit) => last >> bit << bit,
        None => start,
    }
}

impl Ranges {
    /// Adds a range of a flight.
    pub(super) fn insert(&mut self, range: Option<Range>, flight: u64) {
        let Some((start, end)) = bytes(range) else { return };
        let at = self.by_midpoint.entry(midpoint(start, end)).or_default();
        at.by_start.insert((start, end, flight));
        at.by_end.insert((end, start, flight));
    }

    /// Takes a range of a flight away.
    pub(super) fn remove(&mut self, range: Option<Range>, flight: u64) {
        let Some((start, end)) = bytes(range) else { return };
        let middle = midpoint(start, end);
        let Some(at) = self.by_midpoint.get_mut(&middle) else { return };
        at.by_start.remove(&(start, end, flight));
        at.by_end.remove(&(end, start, flight));
        if at.by_start.is_empty() {
            self.by_midpoint.remove(&middle);
        }
    }

    /// A flight that uses one of these bytes.
    pub(super) fn meets(&self, range: Option<Range>) -> Option<u64> {
        let (start, end) = bytes(range)?;
        let inside = self.by_midpoint.range(start..end).next();
        if let Some(&(_, _, flight)) = inside.and_then(|(_, ends)| ends.by_start.first()) {
            return Some(flight);
        }
        let on_the_way = |to: i64| (0..BITS).map(move |bit| (to >> bit | 1) << bit);
        let before = on_the_way(start).filter(|&middle| middle < start).find_map(|middle| {
            let &(until, _, flight) = self.by_midpoint.get(&middle)?.by_end.last()?;
            (until > start).then_some(flight)
        });
        before.or_else(|| {
            on_the_way(end - 1).filter(|&middle| middle >= end).find_map(|middle| {
                let &(from, _, flight) = self.by_midpoint.get(&middle)?.by_start.first()?;
                (from < end).then_some(flight)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_meets_is_what_a_look_at_all_ranges_finds() {
        // A simple generator: the same numbers on each run.
        let mut state = 7u64;
        let mut draw = |below: i64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((state >> 33) as i64) % below
        };
        let (mut ranges, mut all) = (Ranges::default(), Vec::new());
        for flight in 0..4000 {
            let start = draw(64);
            let range = match draw(20) {
                0 => None,
                _ => Some(Range { start, end: start + draw(9) - 1 }),
            };
            let expected = |all: &[(Option<Range>, u64)], flight: u64| {
                let met = all.iter().find(|known| known.1 == flight)?;
                let (a, b) = (bytes(met.0)?, bytes(range)?);
                Some(a.0 < b.1 && b.0 < a.1)
            };
            let any = all.iter().any(|&(_, flight)| expected(&all, flight) == Some(true));
            match ranges.meets(range) {
                None => assert!(!any, "{range:?} meets one of {all:?}"),
                Some(found) => {
                    assert_eq!(expected(&all, found), Some(true), "{range:?} and {found}: {all:?}")
                }
            }
            ranges.insert(range, flight);
            all.push((range, flight));
            while all.len() > draw(12) as usize {
                let (range, flight) = all.swap_remove(draw(all.len() as i64) as usize);
                ranges.remove(range, flight);
            }
        }
        all.drain(..).for_each(|(range, flight)| ranges.remove(range, flight));
        assert!(ranges.by_midpoint.is_empty());
    }
}
