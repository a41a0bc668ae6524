//! Shapes for new inputs, and operands for collectives: new inputs, values at hand, casts and strided views.

use super::builder::{Builder, Prefix};
use super::keys::{DTYPES, Key};
use super::pool::Var;
use super::source::Source;
use super::target::{Keyword, Target};
use super::types::{MAX_RANK, Type};
use crate::graph::{Dtype, Value};
use crate::ops::Collective;

/// Sizes of a shape to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    sizes: [i64; MAX_RANK],
    rank: usize,
}

impl Sizes {
    pub fn new(sizes: &[i64]) -> Sizes {
        let rank = sizes.len().min(MAX_RANK);
        let mut all = [1; MAX_RANK];
        all[..rank].copy_from_slice(&sizes[..rank]);
        Sizes { sizes: all, rank }
    }

    pub fn as_slice(&self) -> &[i64] {
        &self.sizes[..self.rank]
    }
}

impl<S: Source> Builder<'_, S> {
    /// Elements that a result may have.
    pub fn limit(&self) -> i64 {
        i64::from(self.config.elements) * self.keys.ranks
    }

    /// A shape whose first dimension is a multiple of `multiple`.
    pub fn shape(&mut self, multiple: i64) -> Sizes {
        let elements = i64::from(self.config.elements).max(multiple);
        if self.source.percent(self.config.odd_shape) {
            let rest = self.source.between(1, 3).into();
            return match self.source.below(if multiple == 1 { 4 } else { 3 }) {
                0 => Sizes::new(&[0]),
                1 => Sizes::new(&[0, rest]),
                2 => Sizes::new(&[multiple * rest, 0]),
                _ => Sizes::new(&[]),
            };
        }
        let rank = 1 + self.source.weighted(&[45, 40, 12, 3]);
        let mut sizes = [1i64; MAX_RANK];
        let mut left = (elements / multiple).max(1);
        for (d, size) in sizes[..rank].iter_mut().enumerate() {
            // As even as the dimensions still to come allow.
            let most = root(left, rank - d);
            *size = self.source.between(1, most.min(1 << 20) as u32).into();
            left /= *size;
        }
        sizes[0] *= multiple;
        Sizes::new(&sizes[..rank])
    }

    /// A new input of some shape.
    pub fn new_input(&mut self, dtype: Dtype, multiple: i64) -> Var {
        let shape = self.shape(multiple);
        self.input(Type::new(dtype, shape.as_slice()))
    }

    /// The input of a collective of this kind and key.
    pub fn payload(&mut self, kind: Collective, key: &Key) -> Var {
        let multiple = if kind == Collective::ReduceScatter { key.group.size } else { 1 };
        let most = match kind {
            Collective::AllGather => self.limit() / key.group.size,
            _ => self.limit(),
        };
        let scalars = kind == Collective::AllReduce;
        let fits = move |ty: &Type| {
            let rows = ty.shape().first();
            ty.numel() <= most && rows.map_or(scalars, |rows| rows % multiple == 0)
        };
        let cast = self.source.percent(self.config.folded_cast);
        let dtype = if cast { self.source.one_of(&DTYPES) } else { key.dtype };
        let at_hand = if self.source.percent(self.config.fresh_input) {
            None
        } else {
            self.pool.find(self.source, |held| held.ty.dtype == dtype && fits(&held.ty))
        };
        let mut var = match at_hand {
            Some(var) => var,
            None => self.new_input(dtype, multiple),
        };
        if kind == Collective::ReduceScatter && self.pool.ty(var).rank() == 0 {
            var = self.unsqueeze(var, 0);
        }
        if self.source.percent(self.config.strided) {
            var = self.strided(var, fits);
        }
        if cast { self.cast_for(var, key.dtype) } else { var }
    }

    /// A permuted or expanded view of `var` that `fits`, else `var`.
    fn strided(&mut self, var: Var, fits: impl Fn(&Type) -> bool) -> Var {
        let ty = self.pool.ty(var);
        let expands = self.source.percent(40);
        if expands && ty.rank() < MAX_RANK {
            let count = i64::from(self.source.between(2, 4));
            let wide = ty.unsqueezed(ty.rank()).expanded(ty.rank(), count);
            if fits(&wide) {
                let dim = ty.rank();
                let thin = self.unsqueeze(var, dim);
                return self.expand(thin, dim, count);
            }
        }
        let reversed: [usize; MAX_RANK] = std::array::from_fn(|i| ty.rank().wrapping_sub(i + 1));
        let order = &reversed[..ty.rank()];
        if ty.rank() >= 2 && fits(&ty.permuted(order)) { self.permute(var, order) } else { var }
    }

    /// `var` cast to `dtype`, as a pass may fold it into a gather; or a variant that it must not fold whole.
    fn cast_for(&mut self, var: Var, dtype: Dtype) -> Var {
        let variant = self.source.percent(self.config.cast_variant);
        let chained = variant && self.source.percent(50);
        let from = if chained {
            let between = self.source.one_of(&DTYPES);
            self.cast(var, between)
        } else {
            var
        };
        let cast = self.cast(from, dtype);
        if variant && !chained {
            // A second user.
            let value = self.take(cast);
            let ty = self.pool.ty(cast);
            self.fresh(Prefix::Temporary, Target::Clone, &[value], &[], ty.elementwise(&[], dtype));
        }
        cast
    }

    /// A cast by one of the two operators.
    pub fn cast(&mut self, var: Var, dtype: Dtype) -> Var {
        let ty = self.pool.ty(var).elementwise(&[], dtype);
        let value = self.take(var);
        if self.source.percent(40) {
            let kwargs = [(Keyword::Dtype, Value::Dtype(dtype))];
            self.fresh(Prefix::Temporary, Target::ToCopy, &[value], &kwargs, ty)
        } else {
            self.fresh(Prefix::Temporary, Target::Cast, &[value, Value::Dtype(dtype)], &[], ty)
        }
    }
}

/// The largest whole number whose `degree`-th power is at most `n`.
fn root(n: i64, degree: usize) -> i64 {
    let fits = |r: i64| (0..degree).try_fold(1i64, |power, _| power.checked_mul(r)).is_some_and(|p| p <= n);
    if degree <= 1 {
        return n.max(1);
    }
    let (mut low, mut high) = (1, n.max(1));
    while low < high {
        let middle = high - (high - low) / 2;
        if fits(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots() {
        assert_eq!([root(16, 1), root(16, 2), root(16, 3), root(16, 4)], [16, 4, 2, 2]);
        assert_eq!([root(1, 3), root(0, 2), root(i64::MAX, 2)], [1, 1, 3_037_000_499]);
    }
}
