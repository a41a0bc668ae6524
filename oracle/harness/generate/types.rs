//! Tensor types as the generator computes with them: fixed-size, known sizes, at most [`MAX_RANK`] dimensions.
//!
//! These are the generator's own shape rules, fast and for its own operators only. What they give is checked
//! against [`ops::shape`](crate::ops) by the tests.

use crate::graph::Dtype;
use crate::graph::layout::write_contiguous;

/// Dimensions at most.
pub(super) const MAX_RANK: usize = 4;

/// Shape, strides and dtype of a tensor, and its offset in its storage (in elements).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Type {
    pub dtype: Dtype,
    rank: u8,
    shape: [i64; MAX_RANK],
    stride: [i64; MAX_RANK],
    pub offset: i64,
}

impl Type {
    /// Row-major, from the start of its own storage. Dimensions past [`MAX_RANK`] are dropped.
    pub fn new(dtype: Dtype, sizes: &[i64]) -> Type {
        let rank = sizes.len().min(MAX_RANK);
        let mut shape = [1; MAX_RANK];
        shape[..rank].copy_from_slice(&sizes[..rank]);
        Type { dtype, rank: rank as u8, shape, stride: row_major(&shape, rank), offset: 0 }
    }

    pub fn rank(&self) -> usize {
        usize::from(self.rank)
    }

    pub fn shape(&self) -> &[i64] {
        &self.shape[..self.rank()]
    }

    pub fn stride(&self) -> &[i64] {
        &self.stride[..self.rank()]
    }

    pub fn numel(&self) -> i64 {
        self.shape().iter().product()
    }

    pub fn bytes(&self) -> i64 {
        self.numel() * i64::from(self.dtype.itemsize())
    }

    /// Whether the elements lie row-major without gaps. Dimensions of size 1 do not count.
    pub fn is_contiguous(&self) -> bool {
        let packed = row_major(&self.shape, self.rank());
        self.numel() == 0 || (0..self.rank()).all(|d| self.shape[d] == 1 || self.stride[d] == packed[d])
    }

    /// Whether two indices may show one element, so that writing is refused.
    pub fn overlaps(&self) -> bool {
        (0..self.rank()).any(|d| self.shape[d] > 1 && self.stride[d] == 0)
    }

    /// The same shape in a storage of its own, row-major.
    pub fn packed(&self, dtype: Dtype) -> Type {
        Type::new(dtype, self.shape())
    }

    /// The result of an elementwise operator or of a copy that keeps the format: dense, with the dimensions in the
    /// order that the operands' strides have. All operands have this shape or broadcast to it. Source:
    /// `aten/src/ATen/TensorIterator.cpp` (`reorder_dimensions`).
    pub fn elementwise(&self, others: &[Type], dtype: Dtype) -> Type {
        let plain = |t: &Type| {
            t.rank == 0 || (t.shape() == self.shape() && t.stride == row_major(&t.shape, t.rank()))
        };
        if plain(self) && others.iter().all(plain) {
            return self.packed(dtype);
        }
        let rank = self.rank();
        let mut order = [0usize; MAX_RANK];
        for (i, dim) in order[..rank].iter_mut().enumerate() {
            *dim = rank - 1 - i;
        }
        for i in 1..rank {
            let mut moving = i;
            for earlier in (0..i).rev() {
                match self.slower(others, order[earlier], order[moving]) {
                    Some(true) => {
                        order.swap(earlier, moving);
                        moving = earlier;
                    }
                    Some(false) => break,
                    None => {}
                }
            }
        }
        let mut result = self.packed(dtype);
        let mut next = 1;
        for &dim in &order[..rank] {
            result.stride[dim] = next;
            next *= result.shape[dim].max(1);
        }
        result
    }

    /// Whether dimension `a` is to come after `b` in an order from fast to slow; `None` where no operand decides.
    fn slower(&self, others: &[Type], a: usize, b: usize) -> Option<bool> {
        for operand in std::iter::once(self).chain(others) {
            let (of_a, of_b) = (operand.stride_in(self, a), operand.stride_in(self, b));
            if of_a == 0 || of_b == 0 {
                continue;
            }
            if of_a != of_b {
                return Some(of_a > of_b);
            }
            if self.shape[a] > self.shape[b] {
                return Some(true);
            }
        }
        None
    }

    /// The stride that this operand has along dimension `dim` of `whole`; 0 where it is broadcast.
    fn stride_in(&self, whole: &Type, dim: usize) -> i64 {
        match (dim + self.rank()).checked_sub(whole.rank()) {
            Some(own) if self.shape[own] != 1 || whole.shape[dim] == 1 => self.stride[own],
            _ => 0,
        }
    }

    /// With dimension `dim` of another size, in a storage of its own, row-major.
    pub fn resized(&self, dim: usize, size: i64) -> Type {
        let mut shape = self.shape;
        shape[dim] = size;
        Type::new(self.dtype, &shape[..self.rank()])
    }

    /// The dimensions in another order: a view.
    pub fn permuted(&self, order: &[usize]) -> Type {
        let mut result = *self;
        for (i, &dim) in order.iter().enumerate() {
            (result.shape[i], result.stride[i]) = (self.shape[dim], self.stride[dim]);
        }
        result
    }

    /// Elements `start`, `start + step`, ... below `end` of dimension `dim`: a view.
    pub fn sliced(&self, dim: usize, start: i64, end: i64, step: i64) -> Type {
        let mut result = *self;
        result.offset += start * self.stride[dim];
        result.shape[dim] = (end - start + step - 1) / step;
        result.stride[dim] *= step;
        result
    }

    /// Without dimension `dim`, at `index` of it: a view.
    pub fn selected(&self, dim: usize, index: i64) -> Type {
        let mut result = *self;
        result.offset += index * self.stride[dim];
        result.shape.copy_within(dim + 1.., dim);
        result.stride.copy_within(dim + 1.., dim);
        (result.shape[MAX_RANK - 1], result.stride[MAX_RANK - 1]) = (1, 1);
        result.rank -= 1;
        result
    }

    /// With a dimension of size 1 before dimension `dim`: a view.
    pub fn unsqueezed(&self, dim: usize) -> Type {
        let mut result = *self;
        result.shape.copy_within(dim..MAX_RANK - 1, dim + 1);
        result.stride.copy_within(dim..MAX_RANK - 1, dim + 1);
        result.shape[dim] = 1;
        result.stride[dim] = if dim < self.rank() { self.shape[dim] * self.stride[dim] } else { 1 };
        result.rank += 1;
        result
    }

    /// With dimension `dim` of size 1 repeated `count` times: a view that overlaps itself.
    pub fn expanded(&self, dim: usize, count: i64) -> Type {
        let mut result = *self;
        result.shape[dim] = count;
        if count != 1 {
            result.stride[dim] = 0;
        }
        result
    }

    /// The elements of a contiguous tensor under another shape: a view.
    pub fn reshaped(&self, sizes: &[i64]) -> Type {
        Type { offset: self.offset, ..Type::new(self.dtype, sizes) }
    }
}

fn row_major(shape: &[i64; MAX_RANK], rank: usize) -> [i64; MAX_RANK] {
    let mut stride = [1; MAX_RANK];
    write_contiguous(&shape[..rank], &mut stride[..rank]);
    stride
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views() {
        let t = Type::new(Dtype::F32, &[2, 3, 4]);
        assert_eq!(t.stride(), [12, 4, 1]);
        assert_eq!(
            (t.permuted(&[2, 0, 1]).shape(), t.permuted(&[2, 0, 1]).stride()),
            (&[4, 2, 3][..], &[1, 12, 4][..])
        );
        let s = t.sliced(1, 1, 3, 2);
        assert_eq!((s.shape(), s.stride(), s.offset), (&[2, 1, 4][..], &[12, 8, 1][..], 4));
        let s = t.selected(0, 1);
        assert_eq!((s.shape(), s.stride(), s.offset), (&[3, 4][..], &[4, 1][..], 12));
        let u = s.unsqueezed(1);
        assert_eq!((u.shape(), u.stride()), (&[3, 1, 4][..], &[4, 4, 1][..]));
        let e = u.expanded(1, 5);
        assert!(e.overlaps() && !u.overlaps());
        assert_eq!(e.stride(), [4, 0, 1]);
    }

    #[test]
    fn results_follow_the_strides_of_operands() {
        let t = Type::new(Dtype::F32, &[2, 3]).permuted(&[1, 0]);
        assert!(!t.is_contiguous());
        assert_eq!(t.elementwise(&[], Dtype::F16).stride(), [1, 3]);
        // The first operand that decides wins.
        let row = Type::new(Dtype::F32, &[3, 2]);
        assert_eq!(t.elementwise(&[row], Dtype::F32).stride(), [1, 3]);
        assert_eq!(row.elementwise(&[t], Dtype::F32).stride(), [2, 1]);
        // Expanded dimensions decide nothing.
        let e = Type::new(Dtype::F32, &[1, 3]).expanded(0, 4);
        assert_eq!(e.elementwise(&[], Dtype::F32).stride(), [3, 1]);
        assert!(Type::new(Dtype::I8, &[0, 3]).permuted(&[1, 0]).is_contiguous());
    }
}
