//! Views, and operators with several results.

use super::builder::{Builder, Prefix};
use super::pool::{StorageId, Var};
use super::source::Source;
use super::target::{Keyword, Target};
use super::types::{MAX_RANK, Type};
use crate::graph::{Dtype, DtypeClass, NodeId, Out, Value};

/// Results of one operator at most; more pieces are not cut.
const MAX_PIECES: usize = 8;

/// What an operator with several results gave.
pub(super) struct Pieces {
    node: NodeId,
    types: [Option<Type>; MAX_PIECES],
    storages: [StorageId; MAX_PIECES],
}

impl Pieces {
    pub fn count(&self) -> usize {
        self.types.iter().flatten().count()
    }
}

impl<S: Source> Builder<'_, S> {
    pub fn permute(&mut self, var: Var, order: &[usize]) -> Var {
        let ty = self.pool.ty(var).permuted(order);
        let value = self.take(var);
        let dims: [i64; MAX_RANK] = std::array::from_fn(|i| order.get(i).map_or(0, |&dim| dim as i64));
        let dims = self.graph.int_list(&dims[..order.len()]);
        self.alias(Prefix::View, Target::Permute, &[value, dims], &[], ty, var)
    }

    pub fn transpose(&mut self, var: Var) -> Var {
        let ty = self.pool.ty(var);
        let value = self.take(var);
        if ty.rank() == 2 && self.source.percent(50) {
            return self.alias(Prefix::View, Target::T, &[value], &[], ty.permuted(&[1, 0]), var);
        }
        let mut order: [usize; MAX_RANK] = std::array::from_fn(|i| i);
        let last = ty.rank() - 1;
        order.swap(0, last);
        let args = [value, Value::Int(0), Value::Int(last as i64)];
        self.alias(Prefix::View, Target::Transpose, &args, &[], ty.permuted(&order[..ty.rank()]), var)
    }

    pub fn unsqueeze(&mut self, var: Var, dim: usize) -> Var {
        let ty = self.pool.ty(var).unsqueezed(dim);
        let args = [self.take(var), Value::Int(dim as i64)];
        self.alias(Prefix::View, Target::Unsqueeze, &args, &[], ty, var)
    }

    /// Repeats dimension `dim`, of size 1.
    pub fn expand(&mut self, var: Var, dim: usize, count: i64) -> Var {
        let ty = self.pool.ty(var).expanded(dim, count);
        let value = self.take(var);
        let sizes = self.graph.int_list(ty.shape());
        self.alias(Prefix::View, Target::Expand, &[value, sizes], &[], ty, var)
    }

    pub fn slice(&mut self, var: Var, dim: usize, start: i64, end: i64, step: i64) -> Var {
        let ty = self.pool.ty(var).sliced(dim, start, end, step);
        let value = self.take(var);
        let args = [value, Value::Int(dim as i64), Value::Int(start), Value::Int(end), Value::Int(step)];
        let args = if step == 1 { &args[..4] } else { &args[..] };
        self.alias(Prefix::View, Target::Slice, args, &[], ty, var)
    }

    /// The elements of a contiguous tensor under another shape.
    pub fn reshape(&mut self, var: Var, sizes: &[i64]) -> Var {
        let ty = self.pool.ty(var).reshaped(sizes);
        let value = self.take(var);
        let sizes = self.graph.int_list(sizes);
        let target = if self.source.percent(25) { Target::Reshape } else { Target::View };
        self.alias(Prefix::View, target, &[value, sizes], &[], ty, var)
    }

    /// Some view of `var`.
    pub fn view_of(&mut self, var: Var) -> Var {
        let ty = self.pool.ty(var);
        let rank = ty.rank();
        let dim = self.source.below(rank as u32) as usize;
        let size = ty.shape().get(dim).copied().unwrap_or(1);
        match self.source.below(10) {
            0 if ty.is_contiguous() => self.reshape(var, &[ty.numel()]),
            1 if rank >= 2 => self.transpose(var),
            2 if rank >= 2 => {
                let by = 1 + self.source.below(rank as u32 - 1) as usize;
                let order: [usize; MAX_RANK] = std::array::from_fn(|i| (i + by) % rank);
                self.permute(var, &order[..rank])
            }
            3 if rank < MAX_RANK => {
                let dim = self.source.below(rank as u32 + 1) as usize;
                self.unsqueeze(var, dim)
            }
            4 if rank > 0 && size == 1 => {
                let args = [self.take(var), Value::Int(dim as i64)];
                self.alias(Prefix::View, Target::Squeeze, &args, &[], ty.selected(dim, 0), var)
            }
            5 if rank > 0 && size >= 2 => {
                let start = self.source.below(size as u32) as i64;
                let end = start + 1 + self.source.below((size - start) as u32) as i64;
                let step = if self.source.percent(25) { 2 } else { 1 };
                self.slice(var, dim, start, end, step)
            }
            6 if rank > 0 && size >= 1 => {
                let index = self.source.below(size as u32) as i64;
                let args = [self.take(var), Value::Int(dim as i64), Value::Int(index)];
                self.alias(Prefix::View, Target::Select, &args, &[], ty.selected(dim, index), var)
            }
            7 if rank >= 1 && ty.is_contiguous() && ty.shape()[0] % 2 == 0 && rank < MAX_RANK => {
                let mut sizes = [0; MAX_RANK];
                sizes[0] = 2;
                sizes[1] = ty.shape()[0] / 2;
                sizes[2..=rank].copy_from_slice(&ty.shape()[1..]);
                self.reshape(var, &sizes[..=rank])
            }
            8 => {
                let value = self.take(var);
                self.alias(Prefix::View, Target::Detach, &[value], &[], ty, var)
            }
            _ => {
                let value = self.take(var);
                self.alias(Prefix::View, Target::Alias, &[value], &[], ty, var)
            }
        }
    }

    pub fn step_view(&mut self) -> bool {
        match self.pool.find(self.source, |_| true) {
            Some(var) => {
                self.view_of(var);
                true
            }
            None => false,
        }
    }

    /// An operator with several results, each of them a tensor of `types`.
    fn several(&mut self, target: Target, args: &[Value], types: &[(Type, StorageId)]) -> Pieces {
        let mut pieces =
            Pieces { node: NodeId(0), types: [None; MAX_PIECES], storages: [StorageId(0); MAX_PIECES] };
        let mut outs = [Out::None; MAX_PIECES];
        for (i, (ty, storage)) in types.iter().take(MAX_PIECES).enumerate() {
            outs[i] = Out::Tensor(self.tensor(ty));
            (pieces.types[i], pieces.storages[i]) = (Some(*ty), *storage);
        }
        let outs = self.graph.push_outs(&outs[..types.len().min(MAX_PIECES)]);
        pieces.node = self.call(Prefix::Temporary, target, args, &[], Out::Tuple(outs));
        pieces
    }

    /// One result of an operator with several.
    pub fn item(&mut self, pieces: &Pieces, index: usize) -> Var {
        let (Some(ty), storage) = (pieces.types[index], pieces.storages[index]) else { return Var(0) };
        let out = Out::Tensor(self.tensor(&ty));
        let args = [Value::Node(pieces.node), Value::Int(index as i64)];
        let node = self.call(Prefix::View, Target::GetItem, &args, &[], out);
        self.hold(node, ty, storage)
    }

    /// Pieces of `size` rows along `dim`: at most [`MAX_PIECES`] of them must result.
    pub fn split(&mut self, var: Var, size: i64, dim: usize) -> Pieces {
        let types = self.cut(var, dim, |rest| rest.min(size));
        let mut args = vec![self.take(var), Value::Int(size)];
        if dim > 0 {
            args.push(Value::Int(dim as i64));
        }
        self.several(Target::Split, &args, &types)
    }

    /// Pieces of these sizes along `dim`.
    pub fn split_with_sizes(&mut self, var: Var, sizes: &[i64], dim: usize) -> Pieces {
        let mut next = sizes.iter().copied();
        let types = self.cut(var, dim, |rest| next.next().unwrap_or(rest));
        let value = self.take(var);
        let list = self.graph.int_list(sizes);
        self.several(Target::SplitWithSizes, &[value, list, Value::Int(dim as i64)], &types)
    }

    fn cut(&self, var: Var, dim: usize, mut size: impl FnMut(i64) -> i64) -> Vec<(Type, StorageId)> {
        let held = self.pool.get(var);
        let total = held.ty.shape()[dim];
        let mut types = Vec::with_capacity(4);
        let mut at = 0;
        while at < total || types.is_empty() {
            let length = size(total - at);
            types.push((held.ty.sliced(dim, at, at + length, 1), held.storage));
            at += length;
        }
        types
    }

    /// An operator with several results, of which only some are used.
    pub fn step_pieces(&mut self) -> bool {
        let most = MAX_PIECES as i64;
        let Some(var) = self.pool.find(self.source, |held| held.ty.rank() > 0 && held.ty.shape()[0] >= 1)
        else {
            return false;
        };
        let held = *self.pool.get(var);
        let (ty, rank) = (held.ty, held.ty.rank());
        let dim = self.source.below(rank as u32) as usize;
        let dim = if ty.shape()[dim] >= 1 { dim } else { 0 };
        let rows = ty.shape()[dim];
        let pieces = match self.source.below(5) {
            0 if rows <= most => {
                let types: Vec<_> = (0..rows).map(|i| (ty.selected(dim, i), held.storage)).collect();
                let args = [self.take(var), Value::Int(dim as i64)];
                self.several(Target::Unbind, &args, &types)
            }
            1 => {
                let chunks = rows.min(3);
                let size = (rows + chunks - 1) / chunks;
                let types = self.cut(var, dim, |rest| rest.min(size));
                let args = [self.take(var), Value::Int(chunks), Value::Int(dim as i64)];
                self.several(Target::Chunk, &args, &types)
            }
            2 if rows >= 2 => {
                let first = 1 + self.source.below(rows as u32 - 1) as i64;
                self.split_with_sizes(var, &[first, rows - first], dim)
            }
            3 if self.config.dropout > 0
                && super::keys::computes(ty.dtype)
                && ty.dtype.class() == DtypeClass::Float =>
            {
                self.dropout(var)
            }
            _ => {
                let size = (rows / 2).max(1).max((rows + most - 1) / most);
                self.split(var, size, dim)
            }
        };
        let count = pieces.count();
        let skip = self.source.below(count as u32) as usize;
        for i in (0..count).filter(|&i| i != skip).take(2) {
            self.item(&pieces, i);
        }
        if count == 1 {
            self.item(&pieces, 0);
        }
        true
    }

    /// Dropout: values and mask.
    pub fn dropout(&mut self, var: Var) -> Pieces {
        let ty = self.pool.ty(var);
        let args = [self.take(var), Value::Float(0.5), Value::Bool(true)];
        let (values, mask) = (self.pool.storage(), self.pool.storage());
        let types = [(ty.elementwise(&[], ty.dtype), values), (ty.elementwise(&[], Dtype::Bool), mask)];
        self.several(Target::Dropout, &args, &types)
    }

    /// A sum or maximum along one dimension, or over all.
    pub fn reduce(&mut self, var: Var) -> Var {
        let ty = self.pool.ty(var);
        let sums = |dtype: Dtype| {
            if dtype.class() < DtypeClass::Float { Dtype::I64 } else { dtype }
        };
        let value = self.take(var);
        if ty.rank() == 0 || self.source.percent(25) {
            return self.fresh(
                Prefix::Temporary,
                Target::SumAll,
                &[value],
                &[],
                Type::new(sums(ty.dtype), &[]),
            );
        }
        let dim = self.source.below(ty.rank() as u32) as usize;
        let keep = self.source.percent(40);
        let amax = ty.shape()[dim] > 0 && self.source.percent(40);
        let (target, dtype) = if amax { (Target::Amax, ty.dtype) } else { (Target::Sum, sums(ty.dtype)) };
        let shape = if keep { ty.resized(dim, 1) } else { ty.selected(dim, 0) };
        let dims = self.graph.int_list(&[dim as i64]);
        let kwargs: &[_] = match (keep, self.source.percent(self.config.keyword)) {
            (true, true) => &[(Keyword::Keepdim, Value::Bool(true))],
            _ => &[],
        };
        let args = [value, dims, Value::Bool(true)];
        let args = if keep && kwargs.is_empty() { &args[..] } else { &args[..2] };
        self.fresh(Prefix::Temporary, target, args, kwargs, shape.packed(dtype))
    }
}
