//! Parts of buffers: strided windows, and the bytes that they cover.

use crate::graph::Dtype;
use crate::semantics::{Dims, Window, for_each_row};
use std::ops::Range;

/// A strided window. Offset and strides are in elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct View {
    /// Element type.
    pub dtype: Dtype,
    /// The first element.
    pub offset: i64,
    /// Sizes.
    pub shape: Dims,
    /// Strides; 0 where elements are repeated.
    pub strides: Dims,
}

impl View {
    /// The same as a window of the interpreter shows, up to conjugation.
    pub fn of(window: &Window) -> View {
        View { dtype: window.dtype, offset: window.offset, shape: window.shape, strides: window.strides }
    }

    /// Bytes per element.
    pub fn size(&self) -> usize {
        self.dtype.itemsize() as usize
    }

    /// How many elements it shows.
    pub fn count(&self) -> usize {
        self.shape.iter().map(|&n| n.max(0) as usize).product()
    }

    /// A part along one dimension.
    pub fn narrow(&self, dim: usize, start: i64, length: i64) -> View {
        let (Some(&stride), true) = (self.strides.get(dim), dim < self.shape.len()) else { return *self };
        View { offset: self.offset + start * stride, shape: self.shape.with(dim, length), ..*self }
    }

    /// The same elements repeated to a larger shape. `None` where the shapes do not fit.
    pub fn broadcast(&self, shape: Dims) -> Option<View> {
        let extra = shape.len().checked_sub(self.shape.len())?;
        let strides = (0..shape.len()).map(|i| match i.checked_sub(extra) {
            Some(k) if self.shape[k] == shape[i] => Some(self.strides[k]),
            Some(k) if self.shape[k] != 1 => None,
            _ => Some(0),
        });
        let strides: Option<Vec<i64>> = strides.collect();
        Some(View { shape, strides: Dims::new(&strides?)?, ..*self })
    }

    /// The byte of each element, in row-major order.
    pub fn places(&self) -> Vec<usize> {
        let mut places = Vec::with_capacity(self.count());
        let size = self.size();
        for_each_row(&self.shape, &self.strides, self.offset, |start, count, stride| {
            places.extend((0..count).map(|i| start.wrapping_add_signed(i as isize * stride) * size));
        });
        places
    }

    /// Runs of bytes, ascending and apart from each other.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        let size = self.size() as u64;
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let mut sorted = true;
        let mut add = |range: Range<u64>| match ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            last => {
                sorted &= last.is_none_or(|last| last.end <= range.start);
                ranges.push(range);
            }
        };
        for_each_row(&self.shape, &self.strides, self.offset, |start, count, stride| match stride {
            1 => add(start as u64 * size..(start + count) as u64 * size),
            0 => add(start as u64 * size..(start as u64 + 1) * size),
            _ => (0..count).for_each(|i| {
                let at = start.wrapping_add_signed(i as isize * stride) as u64;
                add(at * size..(at + 1) * size);
            }),
        });
        if !sorted {
            ranges.sort_by_key(|range| range.start);
            let mut merged: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
            for range in ranges {
                match merged.last_mut() {
                    Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                    _ => merged.push(range),
                }
            }
            return merged;
        }
        ranges
    }

    /// One past the last byte that it reaches.
    pub fn end(&self) -> u64 {
        if self.shape.contains(&0) {
            return 0;
        }
        let reach = |(&n, &s): (&i64, &i64)| (n - 1) * s.max(0);
        let last = self.offset + self.shape.iter().zip(&*self.strides).map(reach).sum::<i64>();
        (last.max(0) as u64 + 1) * self.size() as u64
    }
}

/// A part of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// The buffer.
    pub buffer: u32,
    /// Which of its bytes.
    pub view: View,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(offset: i64, shape: &[i64], strides: &[i64]) -> View {
        let dims = |list: &[i64]| Dims::new(list).unwrap_or_default();
        View { dtype: Dtype::F32, offset, shape: dims(shape), strides: dims(strides) }
    }

    #[test]
    fn ranges_are_the_bytes_of_the_elements() {
        let views = [
            view(0, &[6], &[1]),
            view(1, &[2, 3], &[4, 1]),
            view(0, &[3, 2], &[1, 3]),
            view(2, &[2, 2], &[0, 5]),
            view(3, &[], &[]),
            view(0, &[2, 0], &[1, 1]),
            view(0, &[2, 3], &[3, 1]),
        ];
        for view in views {
            let mut bytes: Vec<u64> = view.places().iter().flat_map(|&at| at as u64..at as u64 + 4).collect();
            bytes.sort_unstable();
            bytes.dedup();
            let ranges = view.ranges();
            assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start), "{view:?}: {ranges:?}");
            assert_eq!(ranges.into_iter().flatten().collect::<Vec<_>>(), bytes, "{view:?}");
            assert_eq!(view.end(), bytes.last().map_or(0, |last| last + 1), "{view:?}");
        }
    }

    #[test]
    fn parts_and_repetitions() {
        let whole = view(0, &[2, 3], &[3, 1]);
        assert_eq!(whole.narrow(1, 1, 2).places(), [4, 8, 16, 20]);
        let wide = view(0, &[3], &[1]).broadcast(whole.shape);
        assert_eq!(wide.map(|w| w.places()), Some(vec![0, 4, 8, 0, 4, 8]));
        assert_eq!(view(0, &[2], &[1]).broadcast(whole.shape), None);
    }
}
