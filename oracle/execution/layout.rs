//! Shapes and strides: the geometry of a window on a storage.
//!
//! What needs nothing but numbers stands in [`graph::layout`](crate::graph::layout). Here are lists held in place, in
//! which order a fresh result lies in memory ([`pointwise_strides`], after `at::TensorIterator::reorder_dimensions`),
//! and the walk over the rows of a window.

use crate::graph::Dtype;
use crate::graph::layout::{self as numbers, is_contiguous};
pub use crate::graph::layout::{format_of, is_dense, lies_in, named_format, strides_in};
use std::fmt;
use std::ops::Deref;

/// The most dimensions that the interpreter handles.
pub const MAX_DIMS: usize = 8;

/// A short list of sizes or strides, held in place.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Dims {
    len: u8,
    at: [i64; MAX_DIMS],
}

impl Dims {
    /// The list, if it has at most [`MAX_DIMS`] entries.
    pub fn new(dims: &[i64]) -> Option<Dims> {
        let mut at = [0; MAX_DIMS];
        at.get_mut(..dims.len())?.copy_from_slice(dims);
        Some(Dims { len: dims.len() as u8, at })
    }

    /// Entries as they come, if they are at most [`MAX_DIMS`].
    pub fn collect(dims: impl IntoIterator<Item = i64>) -> Option<Dims> {
        let mut this = Dims::default();
        for dim in dims {
            this = this.with_pushed(dim)?;
        }
        Some(this)
    }

    /// The list with one more entry at the end.
    pub fn with_pushed(mut self, dim: i64) -> Option<Dims> {
        *self.at.get_mut(self.len as usize)? = dim;
        self.len += 1;
        Some(self)
    }

    /// The list with one more entry before position `at`.
    pub fn with_inserted(self, at: usize, dim: i64) -> Option<Dims> {
        Dims::collect(self[..at].iter().copied().chain([dim]).chain(self[at..].iter().copied()))
    }

    /// The list without the entry at position `at`.
    pub fn without(self, at: usize) -> Dims {
        let mut this = self;
        this.at.copy_within(at + 1.., at);
        this.at[MAX_DIMS - 1] = 0;
        this.len -= 1;
        this
    }

    /// The list with the entry at position `at` replaced.
    pub fn with(mut self, at: usize, dim: i64) -> Dims {
        self.at[at] = dim;
        self
    }

    /// The entries at the given positions.
    pub fn permuted(self, order: &[usize]) -> Dims {
        let mut this = self;
        for (i, &from) in order.iter().enumerate() {
            this.at[i] = self.at[from];
        }
        this
    }
}

impl Deref for Dims {
    type Target = [i64];

    fn deref(&self) -> &[i64] {
        &self.at[..self.len as usize]
    }
}

impl fmt::Debug for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// The number of elements of a shape, if no size is negative and it fits.
pub fn numel(shape: &[i64]) -> Option<usize> {
    usize::try_from(numbers::numel(shape)?).ok()
}

/// Row-major strides. A size of 0 counts as 1.
pub fn contiguous(shape: Dims) -> Dims {
    let mut strides = shape;
    numbers::write_contiguous(&shape, &mut strides.at[..shape.len()]);
    strides
}

/// The strides of dimensions that lie in memory in an order, the outermost first; `None` if that is none of them.
pub fn in_order(shape: Dims, order: &[i64]) -> Option<Dims> {
    let order = numbers::order_of(order, shape.len())?;
    let lying = contiguous(shape.permuted(&order));
    Some(order.iter().zip(lying.iter()).fold(shape, |strides, (&dim, &stride)| strides.with(dim, stride)))
}

/// Whether no two elements can lie in one place. Errs on the side of yes they can.
pub fn is_injective(shape: &[i64], strides: &[i64]) -> bool {
    let mut order: Vec<usize> = (0..shape.len()).filter(|&i| shape[i] > 1).collect();
    order.sort_by_key(|&i| strides[i]);
    let mut reach = 0i64;
    order.into_iter().all(|i| {
        let apart = strides[i] > reach;
        reach = reach.saturating_add(strides[i].saturating_mul(shape[i] - 1));
        apart
    })
}

/// The strides of a window when it is shown under a larger shape: 0 where a dimension is repeated. `None` if the
/// shapes do not broadcast.
pub fn broadcast_strides(shape: &[i64], strides: &[i64], into: Dims) -> Option<Dims> {
    let extra = into.len().checked_sub(shape.len())?;
    let mut result = into;
    for (i, stride) in result.at[..into.len()].iter_mut().enumerate() {
        *stride = match i.checked_sub(extra) {
            Some(k) if shape[k] == into[i] => strides[k],
            Some(k) if shape[k] != 1 => return None,
            _ => 0,
        };
    }
    Some(result)
}

/// The shape that two shapes broadcast to.
pub fn broadcast(a: Dims, b: Dims) -> Option<Dims> {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let extra = long.len() - short.len();
    let mut result = long;
    for (size, &other) in result.at[extra..long.len()].iter_mut().zip(&short[..]) {
        *size = match (*size, other) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            _ => return None,
        };
    }
    Some(result)
}

/// The strides of a fresh elementwise result: dense, in the order in which the operands (given with their own
/// shapes and strides) lie in memory.
pub fn pointwise_strides(shape: Dims, operands: &[(Dims, Dims)]) -> Dims {
    if operands.iter().all(|(s, t)| *s == shape && is_contiguous(s, t)) {
        return contiguous(shape);
    }
    let shown: Vec<Dims> = operands.iter().filter_map(|(s, t)| broadcast_strides(s, t, shape)).collect();
    // Positive where dimension `a` has to lie outside `b`, negative the other way round, else undecided.
    let outside = |a: usize, b: usize| -> i32 {
        for strides in &shown {
            match (strides[a], strides[b]) {
                (0, _) | (_, 0) => {}
                (x, y) if x < y => return -1,
                (x, y) if x > y => return 1,
                _ if shape[a] > shape[b] => return 1,
                _ => {}
            }
        }
        0
    };
    // Innermost first.
    let mut order: Vec<usize> = (0..shape.len()).rev().collect();
    for i in 1..order.len() {
        let mut moving = i;
        for other in (0..i).rev() {
            match outside(order[other], order[moving]) {
                1 => {
                    order.swap(other, moving);
                    moving = other;
                }
                -1 => break,
                _ => {}
            }
        }
    }
    let mut strides = shape;
    let mut step = 1i64;
    for i in order {
        strides.at[i] = step;
        step = step.saturating_mul(shape[i].max(1));
    }
    strides
}

/// Calls `visit(start, count, stride)` for each innermost row of a window, in row-major order. Positions and
/// strides are in elements. The window must lie in its storage.
pub fn for_each_row(shape: &[i64], strides: &[i64], offset: i64, mut visit: impl FnMut(usize, usize, isize)) {
    // Neighbouring dimensions that one stride steps through are one dimension.
    let mut sizes = [0i64; MAX_DIMS];
    let mut steps = [0i64; MAX_DIMS];
    let mut n = 0;
    if shape.contains(&0) {
        return;
    }
    for (&size, &stride) in shape.iter().zip(strides) {
        if size == 1 {
            continue;
        }
        if n > 0 && stride.checked_mul(size) == Some(steps[n - 1]) {
            sizes[n - 1] *= size;
            steps[n - 1] = stride;
        } else {
            (sizes[n], steps[n]) = (size, stride);
            n += 1;
        }
    }
    let Some(last) = n.checked_sub(1) else {
        return visit(offset as usize, 1, 1);
    };
    let mut index = [0i64; MAX_DIMS];
    let mut start = offset;
    loop {
        visit(start as usize, sizes[last] as usize, steps[last] as isize);
        let mut i = last;
        loop {
            let Some(outer) = i.checked_sub(1) else { return };
            i = outer;
            index[i] += 1;
            start += steps[i];
            if index[i] < sizes[i] {
                break;
            }
            start -= steps[i] * sizes[i];
            index[i] = 0;
        }
    }
}

/// A tensor: a window on a storage of its rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Which storage.
    pub storage: StorageRef,
    /// Element type.
    pub dtype: Dtype,
    /// Whether elements are shown conjugated (`aten._conj`).
    pub conj: bool,
    /// Where it starts, in elements.
    pub offset: i64,
    /// Sizes, in elements.
    pub shape: Dims,
    /// Strides, in elements.
    pub strides: Dims,
}

/// A storage of one rank.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct StorageRef(pub u32);

impl StorageRef {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Window {
    /// The number of elements.
    pub fn numel(&self) -> usize {
        numel(&self.shape).unwrap_or(usize::MAX)
    }

    /// Whether its elements lie in row-major order without gaps.
    pub fn is_contiguous(&self) -> bool {
        is_contiguous(&self.shape, &self.strides)
    }

    /// Where an element lies in the storage; elements are counted in row-major order.
    pub fn place(&self, element: usize) -> i64 {
        let (mut left, mut place) = (element as i64, self.offset);
        for (&size, &stride) in self.shape.iter().zip(&self.strides[..]).rev() {
            place += left % size.max(1) * stride;
            left /= size.max(1);
        }
        place
    }

    /// The elements it can touch: from the first to one past the last; `None` if a bound does not fit or is
    /// negative.
    pub fn extent(&self) -> Option<(i64, i64)> {
        let start = self.offset;
        if self.shape.contains(&0) {
            return (start >= 0).then_some((start, start));
        }
        let mut last = start;
        for (&size, &stride) in self.shape.iter().zip(&self.strides[..]) {
            if stride < 0 {
                return None;
            }
            last = last.checked_add(stride.checked_mul(size.saturating_sub(1))?)?;
        }
        (start >= 0).then_some((start, last.checked_add(1)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn dims(list: &[i64]) -> Dims {
        Dims::new(list).unwrap()
    }

    /// Positions of all elements in row-major order, from the definition of strides.
    fn positions(shape: &[i64], strides: &[i64], offset: i64) -> Vec<i64> {
        let mut all = vec![offset];
        for (&size, &stride) in shape.iter().zip(strides) {
            all = all.iter().flat_map(|&p| (0..size).map(move |i| p + i * stride)).collect();
        }
        all
    }

    fn windows() -> impl Strategy<Value = (Vec<i64>, Vec<i64>)> {
        prop::collection::vec((0i64..4, 0i64..7), 0..4).prop_map(|d| d.into_iter().unzip())
    }

    proptest! {
        #[test]
        fn rows_visit_every_element_in_order((shape, strides) in windows()) {
            let mut seen = Vec::new();
            for_each_row(&shape, &strides, 5, |start, count, stride| {
                seen.extend((0..count).map(|i| start as i64 + i as i64 * stride as i64));
            });
            prop_assert_eq!(seen, positions(&shape, &strides, 5));
        }

        #[test]
        fn fresh_results_are_dense((shape, strides) in windows()) {
            let (shape, strides) = (dims(&shape), dims(&strides));
            let fresh = pointwise_strides(shape, &[(shape, strides)]);
            prop_assert!(is_dense(&shape, &fresh));
            if is_dense(&shape, &strides) && !shape.contains(&0) && !shape.contains(&1) {
                prop_assert_eq!(fresh, strides);
            }
        }
    }

    #[test]
    fn density_ignores_order_and_emptiness() {
        assert!(is_dense(&[2, 3], &[1, 2]));
        assert!(!is_dense(&[2, 3], &[0, 1]));
        assert_eq!(*contiguous(dims(&[2, 0, 3])), [3, 3, 1]);
    }

    #[test]
    fn broadcasting() {
        assert_eq!(broadcast(dims(&[3, 1]), dims(&[2, 1, 4])), Some(dims(&[2, 3, 4])));
        assert_eq!(broadcast(dims(&[3]), dims(&[2])), None);
        assert_eq!(broadcast_strides(&[3, 1], &[1, 1], dims(&[2, 3, 4])), Some(dims(&[0, 1, 0])));
    }
}
