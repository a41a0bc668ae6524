//! Placement in an arena: no two buffers that live at the same time may share a byte.
//!
//! A life is closed at both ends: a buffer that ends in a step and one that begins in it are there together, for the
//! step reads the one while it writes the other. A buffer without a use lives in the step that makes it. The one
//! exception is an exact in-place slice: a buffer that says whose memory it takes over, begins in the step in which
//! that one ends, and lies within its bytes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A buffer with its place.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Placement {
    /// Its name.
    pub name: String,
    /// Its first byte in the arena.
    pub offset: i64,
    /// How many bytes.
    pub bytes: i64,
    /// The step that makes it.
    pub start: u32,
    /// The last step that needs it.
    pub end: u32,
    /// The buffer whose memory it takes over: an index.
    pub in_place_of: Option<usize>,
}

/// What is wrong with a placement.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ArenaFault {
    /// It makes no sense by itself.
    #[error("{name}: {why}")]
    Nonsense {
        /// The buffer.
        name: String,
        /// Why.
        why: &'static str,
    },
    /// Two buffers share bytes while both live.
    #[error(
        "{later} [{}, {}) is made in step {step} on bytes of {earlier} [{}, {}), which lives until step {until}",
        .later_bytes.0, .later_bytes.1, .earlier_bytes.0, .earlier_bytes.1
    )]
    Overlap {
        /// The buffer that begins first.
        earlier: String,
        /// Its bytes.
        earlier_bytes: (i64, i64),
        /// The last step that needs it.
        until: u32,
        /// The other one.
        later: String,
        /// Its bytes.
        later_bytes: (i64, i64),
        /// The step that makes it.
        step: u32,
    },
}

/// All placements that make no sense, then all overlaps in order of the step that makes the later buffer. A buffer that
/// overlaps another is left out of the comparison with those that come after it. n log n.
pub fn check_arena(placements: &[Placement], size: Option<i64>) -> Vec<ArenaFault> {
    let mut faults = Vec::new();
    let mut order: Vec<usize> = Vec::with_capacity(placements.len());
    for (i, p) in placements.iter().enumerate() {
        let end = p.offset.checked_add(p.bytes);
        let base = p.in_place_of.map(|of| placements.get(of).filter(|_| of != i));
        let why = match (end, base) {
            _ if p.offset < 0 || p.bytes < 0 => "its offset or size is negative",
            (None, _) => "its end does not fit 64 bits",
            (Some(end), _) if size.is_some_and(|size| end > size) => "it reaches past the end of the arena",
            _ if p.end < p.start => "it ends before it begins",
            (_, Some(None)) => "it takes over the memory of a buffer that does not exist",
            _ => {
                if p.bytes > 0 {
                    order.push(i);
                }
                continue;
            }
        };
        faults.push(ArenaFault::Nonsense { name: p.name.clone(), why });
    }
    order.sort_by_key(|&i| (placements[i].start, placements[i].offset, i));
    let bytes = |i: usize| (placements[i].offset, placements[i].offset + placements[i].bytes);
    // The bytes in use, apart from each other: first byte to buffer.
    let mut used: BTreeMap<i64, usize> = BTreeMap::new();
    let mut ends: BinaryHeap<Reverse<(u32, usize)>> = BinaryHeap::new();
    // Who takes over a buffer's memory once it is gone.
    let mut heirs: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for i in order {
        let p = &placements[i];
        while let Some(&Reverse((end, gone))) = ends.peek().filter(|Reverse((end, _))| *end < p.start) {
            ends.pop();
            used.remove(&placements[gone].offset);
            for heir in heirs.remove(&gone).into_iter().flatten() {
                // It may be gone as well, or itself have been taken over in its only step.
                used.insert(placements[heir].offset, heir);
                ends.push(Reverse((placements[heir].end.max(end), heir)));
            }
        }
        let (from, to) = bytes(i);
        let before = used.range(..=from).next_back().filter(|&(_, &other)| bytes(other).1 > from);
        let inside = used.range(from + 1..).next().filter(|&(&start, _)| start < to);
        let Some((_, &other)) = before.or(inside) else {
            used.insert(from, i);
            ends.push(Reverse((p.end, i)));
            continue;
        };
        let takes_over = p.in_place_of == Some(other)
            && placements[other].end == p.start
            && bytes(other).0 <= from
            && to <= bytes(other).1;
        let taken = heirs.get(&other).into_iter().flatten().copied();
        let rival = taken.clone().find(|&heir| bytes(heir).0 < to && from < bytes(heir).1);
        if takes_over && rival.is_none() {
            heirs.entry(other).or_default().push(i);
            continue;
        }
        let earlier = rival.filter(|_| takes_over).unwrap_or(other);
        faults.push(ArenaFault::Overlap {
            earlier: placements[earlier].name.clone(),
            earlier_bytes: bytes(earlier),
            until: placements[earlier].end,
            later: p.name.clone(),
            later_bytes: (from, to),
            step: p.start,
        });
    }
    faults
}
