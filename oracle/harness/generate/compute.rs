//! Operators that compute, join or make tensors.

use super::builder::{Builder, Prefix};
use super::keys::computes;
use super::pool::Var;
use super::source::Source;
use super::target::{Keyword, Target};
use super::types::Type;
use crate::graph::{Dtype, DtypeClass, Value};

/// Operators of two tensors, or of a tensor and a number.
const BINARY: [Target; 5] = [Target::Add, Target::Mul, Target::Sub, Target::Maximum, Target::Minimum];

impl<S: Source> Builder<'_, S> {
    /// A value that operators compute with, small enough to go on with.
    pub fn operand(&mut self) -> Var {
        let limit = self.limit();
        match self.pool.find(self.source, |held| computes(held.ty.dtype) && held.ty.numel() <= limit) {
            Some(var) => var,
            None => {
                let dtype = self.keys.arithmetic(self.source, self.config);
                self.new_input(dtype, 1)
            }
        }
    }

    /// Another value like `var`, else `var` itself.
    pub fn partner(&mut self, var: Var) -> Var {
        let ty = self.pool.ty(var);
        let like = |held: &super::pool::Held| {
            held.ty.dtype == ty.dtype && held.ty.shape() == ty.shape() && held.node != self.pool.get(var).node
        };
        self.pool.find(self.source, like).unwrap_or(var)
    }

    /// One operator of two tensors of one dtype; the shape of `b` broadcasts to that of `a`.
    pub fn binary(&mut self, target: Target, a: Var, b: Var) -> Var {
        let (left, right) = (self.pool.ty(a), self.pool.ty(b));
        let ty = left.elementwise(&[right], left.dtype);
        let (a, b) = (self.take(a), self.take(b));
        // Maximum and minimum name their second parameter alike.
        if self.source.percent(self.config.keyword) {
            return self.fresh(Prefix::Temporary, target, &[a], &[(Keyword::Other, b)], ty);
        }
        self.fresh(Prefix::Temporary, target, &[a, b], &[], ty)
    }

    /// An elementwise operator.
    pub fn step_pointwise(&mut self) {
        let var = self.operand();
        let ty = self.pool.ty(var);
        match self.source.below(8) {
            0 | 1 => {
                let target = self.source.one_of(&[Target::Relu, Target::Neg, Target::Abs, Target::Sign]);
                let value = self.take(var);
                self.fresh(Prefix::Temporary, target, &[value], &[], ty.elementwise(&[], ty.dtype));
            }
            2 => {
                let target = self.source.one_of(&[Target::Add, Target::Mul, Target::Sub]);
                let number = i64::from(self.source.between(1, 3));
                let value = self.take(var);
                let args = [value, Value::Int(number)];
                self.fresh(Prefix::Temporary, target, &args, &[], ty.elementwise(&[], ty.dtype));
            }
            3 => {
                let other = self.partner(var);
                let right = self.pool.ty(other);
                let (a, b) = (self.take(var), self.take(other));
                let kwargs = [(Keyword::Alpha, Value::Int(2))];
                let result = ty.elementwise(&[right], ty.dtype);
                self.fresh(Prefix::Temporary, Target::Add, &[a, b], &kwargs, result);
            }
            4 => {
                let mask = [self.take(var), Value::Int(0)];
                let bools = ty.elementwise(&[], Dtype::Bool);
                let mask = self.fresh(Prefix::Temporary, Target::Gt, &mask, &[], bools);
                let other = self.partner(var);
                let right = self.pool.ty(other);
                let args = [self.take(mask), self.take(var), self.take(other)];
                let result = bools.elementwise(&[ty, right], ty.dtype);
                self.fresh(Prefix::Temporary, Target::Where, &args, &[], result);
            }
            5 => {
                let value = self.take(var);
                self.fresh(Prefix::Temporary, Target::Clone, &[value], &[], ty.elementwise(&[], ty.dtype));
            }
            6 if ty.rank() > 0 => {
                // A row, broadcast to all others.
                let last = ty.shape()[ty.rank() - 1];
                let row = self.input(Type::new(ty.dtype, &[last]));
                let target = self.source.one_of(&BINARY);
                self.binary(target, var, row);
            }
            _ => {
                let other = self.partner(var);
                let target = self.source.one_of(&BINARY);
                self.binary(target, var, other);
            }
        }
    }

    /// An operator on a list.
    pub fn step_join(&mut self) -> bool {
        let limit = self.limit();
        let Some(first) = self.pool.find(self.source, |held| held.ty.rank() > 0 && held.ty.numel() <= limit)
        else {
            return false;
        };
        let ty = self.pool.ty(first);
        let stacks = ty.rank() < super::types::MAX_RANK && self.source.percent(30);
        let mut parts = vec![first];
        for _ in 0..self.source.between(1, 2) {
            let other = if stacks {
                self.partner(first)
            } else {
                // The same but for the number of rows.
                let rest = |t: &Type| t.rank() == ty.rank() && t.shape()[1..] == ty.shape()[1..];
                let fits = |held: &super::pool::Held| held.ty.dtype == ty.dtype && rest(&held.ty);
                self.pool.find(self.source, fits).unwrap_or(first)
            };
            parts.push(other);
        }
        if self.source.percent(50) {
            parts.reverse();
        }
        let list = self.take_list(&parts);
        if stacks {
            let stacked = ty.unsqueezed(0).resized(0, parts.len() as i64);
            self.fresh(Prefix::Temporary, Target::Stack, &[list], &[], stacked);
            return true;
        }
        let rows = parts.iter().map(|&part| self.pool.ty(part).shape()[0]).sum();
        self.fresh(Prefix::Temporary, Target::Cat, &[list], &[], ty.resized(0, rows));
        true
    }

    /// A cast of some value to some dtype.
    pub fn step_cast(&mut self) -> bool {
        let Some(var) = self.pool.find(self.source, |_| true) else { return false };
        let dtype = self.dtype();
        self.cast(var, dtype);
        true
    }

    /// A matrix product or a reduction.
    pub fn step_product(&mut self) {
        if self.source.percent(50) {
            let var = self.operand();
            self.reduce(var);
            return;
        }
        let limit = self.limit();
        let matrix = |held: &super::pool::Held| {
            held.ty.rank() == 2 && held.ty.dtype.class() == DtypeClass::Float && computes(held.ty.dtype)
        };
        let left = match self.pool.find(self.source, |held| matrix(held) && held.ty.numel() <= limit) {
            Some(var) => var,
            None => {
                let dtype = self.keys.float(self.source, self.config);
                let (rows, inner) = (self.source.between(1, 4).into(), self.source.between(1, 4).into());
                self.input(Type::new(dtype, &[rows, inner]))
            }
        };
        let ty = self.pool.ty(left);
        let inner = ty.shape()[1];
        let right = self.pool.find(self.source, |held| {
            matrix(held)
                && held.ty.dtype == ty.dtype
                && held.ty.shape()[0] == inner
                && held.ty.numel() <= limit
        });
        let right = match right {
            Some(var) => var,
            None => {
                let columns = self.source.between(1, 3).into();
                self.input(Type::new(ty.dtype, &[inner, columns]))
            }
        };
        self.product(left, right);
    }

    /// The matrix product of two values.
    pub fn product(&mut self, left: Var, right: Var) -> Var {
        let (a, b) = (self.pool.ty(left), self.pool.ty(right));
        let ty = Type::new(a.dtype, &[a.shape()[0], b.shape()[1]]);
        let args = [self.take(left), self.take(right)];
        self.fresh(Prefix::Temporary, Target::Mm, &args, &[], ty)
    }

    /// A new tensor of one value.
    pub fn filled(&mut self, ty: &Type) -> Var {
        match self.source.below(3) {
            0 => self.new_buffer(Target::Zeros, ty),
            1 => self.new_buffer(Target::Ones, ty),
            _ => {
                let sizes = self.graph.int_list(ty.shape());
                let device = self.device();
                let kwargs = [(Keyword::Dtype, Value::Dtype(ty.dtype)), (Keyword::Device, device)];
                let args = [sizes, Value::Int(1)];
                self.fresh(Prefix::Buffer, Target::Full, &args, &kwargs, *ty)
            }
        }
    }

    /// Nodes whose results nothing uses.
    pub fn step_dead(&mut self) {
        let var = self.operand();
        let ty = self.pool.ty(var);
        let value = self.take(var);
        let dead = self.fresh(Prefix::Temporary, Target::Neg, &[value], &[], ty.elementwise(&[], ty.dtype));
        self.pool.get_mut(dead).output = (false, false);
        if self.source.percent(40) {
            let value = self.take(dead);
            let next =
                self.fresh(Prefix::Temporary, Target::Relu, &[value], &[], ty.elementwise(&[], ty.dtype));
            self.pool.get_mut(next).output = (false, false);
        }
    }

    /// An operator that the oracle does not compute.
    pub fn step_uninterpreted(&mut self) {
        let float = |held: &super::pool::Held| {
            held.ty.dtype.class() == DtypeClass::Float
                && computes(held.ty.dtype)
                && held.ty.rank() > 0
                && held.ty.is_contiguous()
        };
        let var = match self.pool.find(self.source, float) {
            Some(var) => var,
            None => {
                let dtype = self.keys.float(self.source, self.config);
                self.input(Type::new(dtype, &[4]))
            }
        };
        let ty = self.pool.ty(var);
        let value = self.take(var);
        if self.source.percent(50) {
            let args = [value, Value::Int(0), Value::Bool(false)];
            self.fresh(Prefix::Temporary, Target::Softmax, &args, &[], ty.packed(ty.dtype));
        } else {
            self.fresh(Prefix::Temporary, Target::Cumprod, &[value, Value::Int(0)], &[], ty.packed(ty.dtype));
        }
    }
}
