//! Views that show the same bytes under another dtype.

use super::super::block::whole;
use super::super::domain::{Domain, Outcome, raise, refuse};
use super::super::layout::Window;
use super::super::rank::Rank;
use crate::graph::Dtype;

impl<D: Domain> Rank<'_, D> {
    /// `view.dtype`: the last dimension grows or shrinks where the element sizes differ.
    pub(super) fn retyped(&mut self, x: &Window, dtype: Dtype) -> Outcome<Window> {
        if x.conj {
            return Err(raise!("a conjugated view cannot be retyped"));
        }
        let (old, new) = (i64::from(x.dtype.itemsize()), i64::from(dtype.itemsize()));
        let mut y = Window { dtype, ..*x };
        if old != new {
            let last = x.shape.len().checked_sub(1);
            let last =
                last.ok_or_else(|| raise!("a tensor without dimensions cannot change its element size"))?;
            let fail = || raise!("{:?} of {} cannot be shown as {}", x.shape, x.dtype.name(), dtype.name());
            if x.strides[last] != 1 {
                return Err(fail());
            }
            let (shape, strides) = (&x.shape, &x.strides);
            if old > new {
                let ratio = old / new;
                y.shape = shape.with(last, shape[last].saturating_mul(ratio));
                y.offset = x.offset.saturating_mul(ratio);
                for i in 0..last {
                    y.strides = y.strides.with(i, strides[i].saturating_mul(ratio));
                }
            } else {
                let ratio = new / old;
                let divides = shape[last] % ratio == 0
                    && x.offset % ratio == 0
                    && strides[..last].iter().all(|s| s % ratio == 0);
                if !divides {
                    return Err(fail());
                }
                y.shape = shape.with(last, shape[last] / ratio);
                y.offset = x.offset / ratio;
                for i in 0..last {
                    y.strides = y.strides.with(i, strides[i] / ratio);
                }
            }
        }
        self.memory.refine(self.domain, x.storage, whole(dtype));
        Ok(y)
    }

    /// `view_as_complex`: a last dimension of 2 becomes real and imaginary part.
    pub(super) fn as_complex(&self, x: &Window) -> Outcome<Window> {
        let dtype = match x.dtype {
            Dtype::F32 => Dtype::C64,
            Dtype::F64 => Dtype::C128,
            other => return Err(refuse!("complex numbers of {}", other.name())),
        };
        let last = x.shape.len().checked_sub(1).filter(|&i| x.shape[i] == 2 && x.strides[i] == 1);
        let last = last.ok_or_else(|| raise!("{:?} does not end in adjacent pairs", x.shape))?;
        if x.offset % 2 != 0 || x.strides[..last].iter().any(|s| s % 2 != 0) {
            return Err(raise!("strides {:?} or offset {} split pairs", x.strides, x.offset));
        }
        let mut y = Window { dtype, offset: x.offset / 2, shape: x.shape.without(last), ..*x };
        y.strides = x.strides.without(last);
        for i in 0..last {
            y.strides = y.strides.with(i, x.strides[i] / 2);
        }
        Ok(y)
    }

    /// `view_as_real`: the inverse.
    pub(super) fn as_real(&mut self, x: &Window) -> Outcome<Window> {
        let dtype = match x.dtype {
            Dtype::C64 => Dtype::F32,
            Dtype::C128 => Dtype::F64,
            other => return Err(raise!("{} has no imaginary part", other.name())),
        };
        if x.conj {
            return Err(raise!("a conjugated view cannot be shown as real numbers"));
        }
        let mut y = Window { dtype, offset: x.offset.saturating_mul(2), ..*x };
        for i in 0..x.strides.len() {
            y.strides = y.strides.with(i, x.strides[i].saturating_mul(2));
        }
        let longer = |dims: super::super::layout::Dims, last| {
            dims.with_pushed(last).ok_or_else(|| super::super::rank::too_many(x.shape.len() + 1))
        };
        (y.shape, y.strides) = (longer(x.shape, 2)?, longer(y.strides, 1)?);
        self.memory.refine(self.domain, x.storage, whole(dtype));
        Ok(y)
    }
}
