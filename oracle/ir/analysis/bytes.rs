//! Which bytes of a storage a tensor shows.
//!
//! # The idea
//!
//! A strided window touches runs of bytes. One run, or runs of one length at one step (a column block of a
//! matrix), are kept exactly: that covers slices, splits along any one dimension, and whatever is contiguous.
//! Everything else is kept as runs that *include* the touched bytes, and says that it is not exact: two columns of a
//! padded matrix are still told apart.

/// A set of bytes, counted from the start of a storage: runs `[start + i * step, start + i * step + len)` for `i` in
/// `0..count`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ByteSet {
    start: i64,
    len: i64,
    /// Distance of the runs; 0 where there is only one.
    step: i64,
    count: i64,
    /// Whether every byte of the runs is in the set.
    exact: bool,
}

/// Whether two sets share a byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overlap {
    /// They do not.
    No,
    /// They may: at least one of them is not known exactly.
    Maybe,
    /// They do.
    Yes,
}

/// Runs that are compared one by one when two sets have different steps.
const RUNS_COMPARED: i64 = 64;

/// Runs that are joined at most, to see what they cover together.
pub const RUNS_JOINED: usize = 1 << 16;

impl ByteSet {
    /// No byte.
    pub const EMPTY: ByteSet = ByteSet { start: 0, len: 0, step: 0, count: 1, exact: true };
    /// Every byte of a storage, whatever its size.
    pub const ALL: ByteSet = ByteSet { start: 0, len: i64::MAX, step: 0, count: 1, exact: true };

    /// The bytes from `start` to before `end`.
    pub fn range(start: i64, end: i64) -> ByteSet {
        let start = start.max(0);
        if end <= start {
            return ByteSet::EMPTY;
        }
        ByteSet { start, len: end - start, step: 0, count: 1, exact: true }
    }

    /// The bytes of a window that begins at byte `start`; strides in elements of `itemsize` bytes. Not exact past
    /// 64 bits and for windows of more than two levels.
    pub fn of_window(start: i64, sizes: &[i64], strides: &[i64], itemsize: i64) -> ByteSet {
        if sizes.contains(&0) {
            return ByteSet::EMPTY;
        }
        if start < 0 {
            return ByteSet::ALL.inexact();
        }
        if let Some(set) = ByteSet::contiguous(start, sizes, strides, itemsize) {
            return set;
        }
        ByteSet::strided(start, sizes, strides, itemsize).unwrap_or(ByteSet::ALL.inexact())
    }

    /// The common case, without sorting: row-major without gaps.
    fn contiguous(start: i64, sizes: &[i64], strides: &[i64], itemsize: i64) -> Option<ByteSet> {
        let mut numel = 1i64;
        for (&size, &stride) in sizes.iter().zip(strides).rev() {
            if size != 1 {
                if stride != numel || size < 0 {
                    return None;
                }
                numel = numel.checked_mul(size)?;
            }
        }
        Some(ByteSet::range(start, start.checked_add(numel.checked_mul(itemsize)?)?))
    }

    fn strided(start: i64, sizes: &[i64], strides: &[i64], itemsize: i64) -> Option<ByteSet> {
        let mut dims = Vec::with_capacity(sizes.len());
        for (&size, &stride) in sizes.iter().zip(strides) {
            if stride < 0 || size < 0 {
                return None;
            }
            if size > 1 && stride > 0 {
                dims.push((stride.checked_mul(itemsize)?, size));
            }
        }
        dims.sort_unstable();
        let mut set = ByteSet { start, len: itemsize, step: 0, count: 1, exact: true };
        for (stride, size) in dims {
            if set.count > 1 {
                let (between, step) = ((set.count - 1).checked_mul(set.step)?, gcd(set.step, stride));
                set.exact &= step == set.step && stride <= between.checked_add(step)?;
                if step > set.len {
                    // All runs of the grid that both levels are on count as touched.
                    set.count = (size - 1).checked_mul(stride)?.checked_add(between)? / step + 1;
                    set.step = step;
                    continue;
                }
                // Without gaps between the runs of a grid, those of this level count as touched.
                set.len = between.checked_add(set.len)?;
            }
            if stride <= set.len {
                (set.step, set.count) = (0, 1);
                set.len = (size - 1).checked_mul(stride)?.checked_add(set.len)?;
            } else {
                (set.step, set.count) = (stride, size);
            }
        }
        // The end must be a number, too.
        set.span().1.checked_sub(start)?;
        (set.count - 1).checked_mul(set.step)?.checked_add(set.len)?.checked_add(start)?;
        Some(set)
    }

    /// A set that is known to lie within this one.
    pub fn inexact(self) -> ByteSet {
        ByteSet { exact: self.is_empty(), ..self }
    }

    /// Whether it has no byte.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Whether exactly the bytes of the runs are in the set.
    pub fn is_exact(self) -> bool {
        self.exact
    }

    /// First byte, and one past the last byte, that may be in the set.
    pub fn span(self) -> (i64, i64) {
        let length = (self.count - 1).saturating_mul(self.step).saturating_add(self.len);
        (self.start, self.start.saturating_add(length))
    }

    /// Whether the two sets share a byte.
    pub fn overlap(self, other: ByteSet) -> Overlap {
        if self.is_empty() || other.is_empty() || !self.runs_meet(other).unwrap_or(true) {
            Overlap::No
        } else if self.exact && other.exact && self.runs_meet(other).is_some() {
            Overlap::Yes
        } else {
            Overlap::Maybe
        }
    }

    /// Whether a run of the one meets a run of the other; `None` where that is not decided.
    fn runs_meet(self, other: ByteSet) -> Option<bool> {
        let (a, b) = (self.span(), other.span());
        if a.1 <= b.0 || b.1 <= a.0 {
            return Some(false);
        }
        if self.count == 1 && other.count == 1 {
            return Some(true);
        }
        if self.step == other.step || self.count == 1 || other.count == 1 {
            return self.meets_at_step(other, self.step.max(other.step));
        }
        let (few, many) = if self.count <= other.count { (self, other) } else { (other, self) };
        if few.count > RUNS_COMPARED {
            return None;
        }
        for i in 0..few.count {
            let run = ByteSet { start: few.start + i * few.step, step: 0, count: 1, ..few };
            if run.meets_at_step(many, many.step)? {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Runs of both at one step: whether for some `i`, `j` run `i` of the one meets run `j` of the other.
    fn meets_at_step(self, other: ByteSet, step: i64) -> Option<bool> {
        // With d the distance of the starts and k = i - j: k * step < d + other.len and k * step > d - self.len.
        let distance = other.start.checked_sub(self.start)?;
        let above = distance.checked_sub(self.len)?.div_euclid(step) + 1;
        let below = (distance.checked_add(other.len)? - 1).div_euclid(step);
        Some(above.max(1 - other.count) <= below.min(self.count - 1))
    }

    /// Whether every byte that may be in `other` may be in this set.
    pub fn may_cover(self, other: ByteSet) -> bool {
        ByteSet { exact: true, ..self }.covers(other)
    }

    /// Whether every byte that may be in this set may be in one of `others`, gaps that are not known included; `None`
    /// where they have more than [`RUNS_JOINED`] runs.
    pub fn may_be_covered(self, others: impl IntoIterator<Item = ByteSet>) -> Option<bool> {
        let mut runs: Vec<(i64, i64)> = Vec::new();
        for other in others.into_iter().filter(|other| !other.is_empty()) {
            runs.extend(other.runs(RUNS_JOINED.checked_sub(runs.len())?)?);
        }
        runs.sort_unstable();
        // Runs that touch are one.
        let mut joined: Vec<(i64, i64)> = Vec::new();
        for (start, end) in runs {
            match joined.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => joined.push((start, end)),
            }
        }
        let is_inside = |&(start, end): &(i64, i64)| {
            let after = joined.partition_point(|run| run.0 <= start);
            after.checked_sub(1).is_some_and(|index| end <= joined[index].1)
        };
        Some(self.is_empty() || self.runs(RUNS_JOINED)?.iter().all(is_inside))
    }

    /// Its runs, start and end of each, if there are at most so many.
    fn runs(self, most: usize) -> Option<Vec<(i64, i64)>> {
        let count = usize::try_from(self.count).ok().filter(|&count| count <= most)?;
        let run = |i| {
            let start = self.start.saturating_add(self.step.saturating_mul(i));
            (start, start.saturating_add(self.len))
        };
        let mut runs = Vec::with_capacity(count);
        runs.extend((0..self.count).map(run));
        Some(runs)
    }

    /// Whether the set is one run, exactly.
    pub fn is_interval(self) -> bool {
        self.exact && self.count == 1
    }

    /// Whether every byte of `other` is certainly in this set.
    pub fn covers(self, other: ByteSet) -> bool {
        if other.is_empty() || (self == other && self.exact) {
            return true;
        }
        if !self.exact {
            return false;
        }
        let (a, b) = (self.span(), other.span());
        if self.count == 1 {
            return a.0 <= b.0 && b.1 <= a.1;
        }
        let fits = other.count == 1 || other.step == self.step;
        let (first, shift) = (
            (other.start - self.start).div_euclid(self.step),
            (other.start - self.start).rem_euclid(self.step),
        );
        fits && shift.saturating_add(other.len) <= self.len && first >= 0 && first + other.count <= self.count
    }
}

/// Calls `each` with the indices of pairs of sets, until it gives `None`: every pair that shares a byte is among them,
/// some more than once, and others that are close. Where all runs repeat at one step, sets are compared by where they lie
/// within the step, so that columns beside each other are no pairs; else by their ends.
pub fn meeting(sets: &[ByteSet], each: &mut dyn FnMut(usize, usize) -> Option<()>) -> Option<()> {
    let filled: Vec<(usize, ByteSet)> =
        sets.iter().copied().enumerate().filter(|(_, set)| !set.is_empty()).collect();
    let spans = |of: &[(usize, ByteSet)]| {
        of.iter().map(|&(index, set)| (set.span().0, set.span().1, index)).collect::<Vec<_>>()
    };
    let (repeated, single): (Vec<_>, Vec<_>) = filled.iter().partition(|(_, set)| set.step != 0);
    let step = repeated.first().map_or(0, |(_, set)| set.step);
    if step == 0 || repeated.iter().any(|(_, set)| set.step != step) {
        return sweep(spans(&filled), Vec::new(), each);
    }
    let within = |of: &[(usize, ByteSet)]| {
        let mut places = Vec::with_capacity(of.len());
        for &(index, set) in of {
            let (start, len) = (set.start.rem_euclid(step), set.len.min(step));
            // What reaches past the end of the step goes on at its beginning.
            let rest = (len - (step - start)).max(0);
            places.extend([(start, start + (len - rest), index), (0, rest, index)]);
        }
        places.retain(|(start, end, _)| start < end);
        places
    };
    sweep(spans(&single), Vec::new(), each)?;
    sweep(within(&repeated), within(&single), each)
}

/// Calls `each` for the pairs of intervals `(start, end, index)` that meet, but for those of two `others`.
fn sweep(
    intervals: Vec<(i64, i64, usize)>,
    others: Vec<(i64, i64, usize)>,
    each: &mut dyn FnMut(usize, usize) -> Option<()>,
) -> Option<()> {
    let marked = |intervals: Vec<_>, is_other| intervals.into_iter().map(move |of| (of, is_other));
    let mut sorted: Vec<_> = marked(intervals, false).chain(marked(others, true)).collect();
    sorted.sort_unstable();
    // The ends and indices of what may reach up to here.
    let mut open: [Vec<(i64, usize)>; 2] = Default::default();
    for ((start, end, index), is_other) in sorted {
        let [own, other] = &mut open;
        for list in [Some(&mut *own), (!is_other).then_some(&mut *other)].into_iter().flatten() {
            list.retain(|&(until, _)| until > start);
            list.iter().filter(|&&(_, met)| met != index).try_for_each(|&(_, met)| each(met, index))?;
        }
        if is_other { other } else { own }.push((end, index));
    }
    Some(())
}

fn gcd(a: i64, b: i64) -> i64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn slices_and_columns_are_exact() {
        // Rows 2..4 of a contiguous [8, 16] of f32.
        let rows = ByteSet::of_window(128, &[2, 16], &[16, 1], 4);
        assert_eq!(rows, ByteSet::range(128, 256));
        // Columns 0..4, 4..16 of it.
        let left = ByteSet::of_window(0, &[8, 4], &[16, 1], 4);
        let right = ByteSet::of_window(16, &[8, 12], &[16, 1], 4);
        assert!(left.is_exact() && right.is_exact());
        assert_eq!(left.overlap(right), Overlap::No);
        assert_eq!(left.overlap(rows), Overlap::Yes);
        assert!(!left.covers(rows) && ByteSet::range(0, 512).covers(left));
        // Two columns of a matrix with padding behind every second row.
        let [one, other] = [0, 4].map(|start| ByteSet::of_window(start, &[2, 2], &[24, 3], 4));
        assert_eq!((one.overlap(other), one.overlap(one)), (Overlap::No, Overlap::Maybe));
        // Transposed, expanded and of size one: the same bytes.
        assert_eq!(ByteSet::of_window(0, &[4, 1, 8, 3], &[1, 7, 16, 0], 4), left);
    }

    #[test]
    fn sizes_past_64_bits_are_everything() {
        let huge = ByteSet::of_window(0, &[i64::MAX, i64::MAX], &[i64::MAX, 1], 4);
        assert_eq!(huge, ByteSet::ALL.inexact());
        assert_eq!(huge.overlap(ByteSet::range(5, 6)), Overlap::Maybe);
        assert_eq!(ByteSet::of_window(i64::MAX - 8, &[2], &[1], 8), ByteSet::ALL.inexact());
        assert_eq!(ByteSet::of_window(0, &[3, 0], &[0, 1], 4), ByteSet::EMPTY);
    }

    fn pairs(sets: &[ByteSet]) -> BTreeSet<(usize, usize)> {
        let mut pairs = BTreeSet::new();
        let whole = meeting(sets, &mut |i, j| {
            pairs.insert((i.min(j), i.max(j)));
            Some(())
        });
        assert_eq!(whole, Some(()));
        pairs
    }

    #[test]
    fn columns_and_slices_of_one_storage_are_no_pairs() {
        let columns: Vec<ByteSet> =
            (0..2000).map(|i| ByteSet::of_window(4 * i, &[8, 1], &[2000, 1], 4)).collect();
        let slices: Vec<ByteSet> = (0..2000).map(|i| ByteSet::range(4 * i, 4 * i + 4)).collect();
        assert_eq!((pairs(&columns).len(), pairs(&slices).len()), (0, 0));
        // Each slice of the first row is within the place of one column.
        assert_eq!(pairs(&[columns, slices].concat()).len(), 2000);
        // All of one place, until nobody wants to know.
        let mut left = 10;
        let stopped = meeting(&vec![ByteSet::ALL; 2000], &mut |_, _| {
            left -= 1;
            (left > 0).then_some(())
        });
        assert_eq!((stopped, left), (None, 0));
    }

    type Window = (i64, Vec<i64>, Vec<i64>);

    fn window() -> impl Strategy<Value = Window> {
        (0i64..12, prop::collection::vec((0i64..5, 0i64..14), 0..4)).prop_map(|(offset, dims)| {
            (offset, dims.iter().map(|d| d.0).collect(), dims.iter().map(|d| d.1).collect())
        })
    }

    fn bytes((offset, sizes, strides): &Window) -> BTreeSet<i64> {
        let mut starts = BTreeSet::from([*offset]);
        for (&size, &stride) in sizes.iter().zip(strides) {
            starts = starts.iter().flat_map(|&s| (0..size).map(move |i| s + i * stride)).collect();
        }
        starts.iter().flat_map(|s| [2 * s, 2 * s + 1]).collect()
    }

    fn runs(set: ByteSet) -> BTreeSet<i64> {
        (0..set.count).flat_map(|i| (0..set.len).map(move |b| set.start + i * set.step + b)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn all_that_share_a_byte_are_pairs(windows in prop::collection::vec(window(), 0..8), step in 1i64..9) {
            let any: Vec<ByteSet> = windows.iter().map(|w| ByteSet::of_window(2 * w.0, &w.1, &w.2, 2)).collect();
            // The same rows at one step.
            let columns: Vec<ByteSet> =
                windows.iter().map(|w| ByteSet::of_window(w.0, &[1 + w.0 % 4, 1 + w.0 % 3], &[step, 1], 1)).collect();
            for sets in [any, columns] {
                let found = pairs(&sets);
                for (i, j) in (0..sets.len()).flat_map(|j| (0..j).map(move |i| (i, j))) {
                    let meet = sets[i].overlap(sets[j]) != Overlap::No;
                    prop_assert!(!meet || found.contains(&(i, j)), "{:?} {:?}", sets[i], sets[j]);
                }
            }
        }

        #[test]
        fn sets_are_what_windows_touch(a in window(), b in window()) {
            let [x, y] = [&a, &b].map(|w| ByteSet::of_window(2 * w.0, &w.1, &w.2, 2));
            let [touched, other] = [&a, &b].map(bytes);
            prop_assert!(touched.is_subset(&runs(x)));
            prop_assert_eq!(x.is_exact(), touched == runs(x) , "{:?}", x);
            let shared = !touched.is_disjoint(&other);
            match x.overlap(y) {
                Overlap::No => prop_assert!(!shared),
                Overlap::Yes => prop_assert!(shared),
                Overlap::Maybe => prop_assert!(!(x.is_exact() && y.is_exact())),
            }
            let halves = (0..x.count).map(|i| ByteSet { start: x.start + i * x.step, step: 0, count: 1, ..x });
            prop_assert_eq!(y.may_be_covered(halves), Some(runs(y).is_subset(&runs(x))));
            if x.covers(y) {
                prop_assert!(other.is_subset(&touched));
            } else if x.is_exact() && y.is_exact() && x.count == 1 {
                prop_assert!(!other.is_subset(&touched));
            }
        }
    }
}
