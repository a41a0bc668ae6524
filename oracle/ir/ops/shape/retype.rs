//! Views that show the same bytes under another dtype. Sources: `aten/src/ATen/native/TensorConversions.cpp`
//! (`view_dtype`), `aten/src/ATen/native/ComplexHelper.h`.

use super::size::{Size, Sizes};
use super::window::{NoWindow, Shown, Window, misfit};
use crate::graph::{Dtype, DtypeClass};
use crate::ops::View;

impl Window {
    /// What a view that changes the dtype shows, and the new dtype. `to` is what it is given as such.
    pub fn retyped(self, view: View, from: Dtype, to: Option<Dtype>) -> Shown<(Window, Dtype)> {
        match view {
            View::AsComplex => self.paired(from),
            View::AsReal => self.unpaired(from),
            _ => {
                let to = to.ok_or(NoWindow::Undecided)?;
                Ok((self.resized(from, to)?, to))
            }
        }
    }

    /// `view.dtype`: the last dimension takes up the change of size.
    fn resized(mut self, from: Dtype, to: Dtype) -> Shown<Window> {
        let (old, new) = (i64::from(from.itemsize()), i64::from(to.itemsize()));
        if old == new {
            return Ok(self);
        }
        let refuse = |window: &Window| {
            let words = format!("cannot view {} $ with strides $ as {}", from.name(), to.name());
            misfit(words, &[&window.shape, &window.strides])
        };
        let last = match self.shape.len().checked_sub(1) {
            Some(last) if !self.strides[last].differs(Size::Known(1)) => last,
            _ => return refuse(&self),
        };
        if old > new {
            let ratio = old / new;
            self.shape[last] = self.shape[last].scaled(ratio);
            self.strides[..last].iter_mut().for_each(|stride| *stride = stride.scaled(ratio));
            self.offset = self.offset.scaled(ratio);
            return Ok(self);
        }
        let over = |size: Size| divided(size, new / old);
        let strides: Option<Sizes> = self.strides[..last].iter().map(|&s| over(s)).collect();
        let (Some(length), Some(mut strides), Some(offset)) =
            (over(self.shape[last]), strides, over(self.offset))
        else {
            return refuse(&self);
        };
        strides.push(self.strides[last]);
        self.shape[last] = length;
        Ok(Window { shape: self.shape, strides, offset })
    }

    /// Pairs of floats, adjacent in the last dimension, as complex numbers.
    fn paired(mut self, from: Dtype) -> Shown<(Window, Dtype)> {
        let to = match from {
            Dtype::F64 => Dtype::C128,
            Dtype::F32 => Dtype::C64,
            _ if from.class() != DtypeClass::Float => {
                return misfit(format!("view_as_complex does not take {}", from.name()), &[]);
            }
            _ => return Err(NoWindow::Undecided),
        };
        let shape = self.shape.clone();
        let refuse = || misfit("cannot view $ as complex numbers", &[&shape]);
        let fits = match (self.shape.pop(), self.strides.pop()) {
            (Some(size), Some(stride)) => !size.differs(Size::Known(2)) && !stride.differs(Size::Known(1)),
            _ => false,
        };
        let Some(offset) = divided(self.offset, 2).filter(|_| fits) else { return refuse() };
        for (size, stride) in self.shape.iter().zip(&mut self.strides) {
            // A stride that is never stepped may be odd.
            *stride = match divided(*stride, 2) {
                Some(half) => half,
                None if *size == Size::Known(1) => stride.known().map(|n| n / 2).into(),
                None => return refuse(),
            };
        }
        Ok((Window { offset, ..self }, to))
    }

    /// Complex numbers as pairs of floats, in a new last dimension.
    fn unpaired(mut self, from: Dtype) -> Shown<(Window, Dtype)> {
        let to = match from {
            Dtype::C128 => Dtype::F64,
            Dtype::C64 => Dtype::F32,
            _ => return misfit(format!("view_as_real does not take {}", from.name()), &[]),
        };
        self.strides.iter_mut().for_each(|stride| *stride = stride.scaled(2));
        self.shape.push(Size::Known(2));
        self.strides.push(Size::Known(1));
        Ok((Window { offset: self.offset.scaled(2), ..self }, to))
    }
}

/// A size over a ratio; `None` where it does not divide.
fn divided(size: Size, by: i64) -> Option<Size> {
    match size {
        Size::Known(n) => (n % by == 0).then_some(Size::Known(n / by)),
        _ => Some(Size::Unknown),
    }
}
