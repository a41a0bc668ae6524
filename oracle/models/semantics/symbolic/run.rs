//! Runs: a sequence of elements, written as few stretches.
//!
//! # The idea
//!
//! Element `t` of a run that begins at element `b` is element `offset + (t - b) * step` of the run's source, on the
//! rank that the run's place selects, where `step` is 1, or 0 for one element repeated.
//!
//! # Canonical form
//!
//! Two equal sequences of elements are written as equal lists of runs: a list is built from the left, and each run
//! takes the next element for as long as it can. A run of one element may go on either way; a run of one element
//! that does not go on has step 1. [`RunList::push`] keeps this form whatever pieces a sequence is put together
//! from, which the property test checks against one element at a time.

use super::place::PlaceId;
use super::source::SourceId;

const REPEATED: u32 = 1 << 31;

/// A stretch of elements. In a list, `end` is the position after its last element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Run {
    /// Position in the list after the last element.
    pub(super) end: i64,
    /// First element in the source.
    pub(super) offset: i64,
    /// Where the elements come from.
    pub(super) source: SourceId,
    /// The place, and in the highest bit whether one element is repeated.
    place: u32,
}

impl Run {
    /// The place.
    pub(super) fn place(&self) -> PlaceId {
        PlaceId(self.place & !REPEATED)
    }

    /// 1, or 0 for a repeated element.
    pub(super) fn step(&self) -> i64 {
        if self.place & REPEATED == 0 { 1 } else { 0 }
    }
}

/// A stretch of elements on its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Piece {
    /// Number of elements.
    pub(super) len: i64,
    /// First element in the source.
    pub(super) offset: i64,
    /// Where the elements come from.
    pub(super) source: SourceId,
    /// On which rank, and how the offset depends on it.
    pub(super) place: PlaceId,
    /// 1, or 0 for a repeated element.
    pub(super) step: i64,
}

impl Piece {
    fn run(self, end: i64) -> Run {
        let repeated = if self.step == 0 && self.len > 1 { REPEATED } else { 0 };
        Run { end, offset: self.offset, source: self.source, place: self.place.0 | repeated }
    }
}

/// A list of runs under construction, in canonical form at all times.
#[derive(Clone, Debug, Default)]
pub(super) struct RunList {
    runs: Vec<Run>,
}

impl RunList {
    /// The runs so far.
    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Number of elements so far.
    pub(super) fn len(&self) -> i64 {
        self.runs.last().map_or(0, |run| run.end)
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.runs.clear();
    }

    /// Appends elements. The caller has made sure that the sum of lengths fits 64 bits.
    pub(super) fn push(&mut self, mut piece: Piece) {
        if piece.len <= 0 {
            return;
        }
        let end = self.len().saturating_add(piece.len);
        let start = match self.runs.len() {
            0 | 1 => 0,
            n => self.runs[n - 2].end,
        };
        if let Some(last) = self.runs.last_mut()
            && last.source == piece.source
            && last.place() == piece.place
        {
            let len = last.end - start;
            let step = if len > 1 {
                last.step()
            } else if piece.offset == last.offset.wrapping_add(1) {
                1
            } else {
                0
            };
            let next = if step == 0 { last.offset } else { last.offset.wrapping_add(len) };
            if piece.offset == next {
                if step == 0 {
                    last.place |= REPEATED;
                }
                if piece.len == 1 || piece.step == step {
                    last.end = end;
                    return;
                }
                // The first element goes on with the last run, the others go another way.
                last.end += 1;
                piece.len -= 1;
                piece.offset = piece.offset.wrapping_add(piece.step);
            }
        }
        self.runs.push(piece.run(end));
    }
}

/// The pieces of `runs` that lie in the elements `start .. start + len`, in order.
pub(super) fn pieces(runs: &[Run], start: i64, len: i64) -> impl Iterator<Item = Piece> + '_ {
    let first = if start == 0 { 0 } else { runs.partition_point(|run| run.end <= start) };
    let end = start.saturating_add(len);
    let mut from = if first == 0 { 0 } else { runs[first - 1].end };
    runs[first..]
        .iter()
        .map(move |run| {
            let begin = std::mem::replace(&mut from, run.end);
            let (low, high) = (begin.max(start), run.end.min(end));
            Piece {
                len: high - low,
                offset: run.offset + (low - begin) * run.step(),
                source: run.source,
                place: run.place(),
                step: run.step(),
            }
        })
        .take_while(|piece| piece.len > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn piece(len: i64, offset: i64, source: u32, place: u32, step: i64) -> Piece {
        Piece { len, offset, source: SourceId(source), place: PlaceId(place), step }
    }

    fn elements(list: &RunList) -> Vec<(u32, u32, i64)> {
        pieces(list.runs(), 0, list.len())
            .flat_map(|p| (0..p.len).map(move |i| (p.source.0, p.place.0, p.offset + i * p.step)))
            .collect()
    }

    fn any_piece() -> impl Strategy<Value = Piece> {
        (1i64..5, 0i64..6, 0u32..2, 0u32..2, 0i64..2).prop_map(|(l, o, s, p, t)| piece(l, o, s, p, t))
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// However a sequence is cut into pieces, its list is that of its single elements.
        #[test]
        fn the_list_depends_on_the_elements_only(given in prop::collection::vec(any_piece(), 0..12)) {
            let mut by_piece = RunList::default();
            let mut by_element = RunList::default();
            let mut expected = Vec::new();
            for p in given {
                by_piece.push(p);
                for i in 0..p.len {
                    let offset = p.offset + i * p.step;
                    by_element.push(piece(1, offset, p.source.0, p.place.0, 1));
                    expected.push((p.source.0, p.place.0, offset));
                }
            }
            prop_assert_eq!(by_piece.runs(), by_element.runs());
            prop_assert_eq!(elements(&by_piece), expected);
        }

        /// A slice has the list of its elements, and two slices put together that of the whole.
        #[test]
        fn slices_are_canonical(
            given in prop::collection::vec(any_piece(), 1..12), a in 0i64..40, b in 0i64..40
        ) {
            let mut whole = RunList::default();
            given.iter().for_each(|&p| whole.push(p));
            let (a, b) = (a.min(whole.len()), b.min(whole.len()));
            let (a, b) = (a.min(b), a.max(b));
            let mut slice = RunList::default();
            pieces(whole.runs(), a, b - a).for_each(|p| slice.push(p));
            prop_assert_eq!(&elements(&slice)[..], &elements(&whole)[a as usize..b as usize]);
            let mut joined = RunList::default();
            pieces(whole.runs(), 0, a).for_each(|p| joined.push(p));
            pieces(whole.runs(), a, whole.len() - a).for_each(|p| joined.push(p));
            prop_assert_eq!(joined.runs(), whole.runs());
        }
    }

    #[test]
    fn a_run_of_one_element_goes_on_either_way() {
        let mut list = RunList::default();
        for offset in [5, 5, 6, 7, 7] {
            list.push(piece(1, offset, 0, 0, 1));
        }
        let seen: Vec<_> = list.runs().iter().map(|r| (r.end, r.offset, r.step())).collect();
        assert_eq!(seen, [(2, 5, 0), (4, 6, 1), (5, 7, 1)]);
    }
}
