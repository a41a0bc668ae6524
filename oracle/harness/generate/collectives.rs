//! Collectives that a pass may bucket, and the waits for them.

use super::builder::{Builder, Candidate, Prefix};
use super::keys::Key;
use super::pool::Var;
use super::source::Source;
use super::target::{Keyword, Target};
use super::types::Type;
use crate::graph::{Dtype, Out, Value};
use crate::ops::Collective;

impl<S: Source> Builder<'_, S> {
    /// Starts a collective of this key with `input`.
    pub fn start(&mut self, kind: Collective, key: &Key, input: Var) {
        let ty = self.pool.ty(input);
        let result = result(kind, key, &ty);
        let value = self.take(input);
        let (size, group) = (Value::Int(key.group.size), Value::Str(key.group.name));
        let out = Out::Tensor(self.tensor(&result));
        let node = match kind {
            Collective::ReduceScatter => {
                self.call(Prefix::Scatter, Target::ReduceScatter, &[value, key.reduce, size, group], &[], out)
            }
            Collective::AllReduce => {
                self.call(Prefix::Reduce, Target::AllReduce, &[value, key.reduce, group], &[], out)
            }
            _ => self.call(Prefix::Gather, Target::AllGather, &[value, size, group], &[], out),
        };
        let storage = self.pool.storage();
        let launch = self.launch(&[input], 1);
        let candidate = Candidate { kind, bytes: result.bytes().max(ty.bytes()) };
        self.fly(node, result, storage, launch, Some(candidate));
    }

    /// Starts a collective of some key with some input.
    pub fn start_some(&mut self, kind: Collective) {
        let key = self.keys.key(self.source, self.config, kind);
        let input = self.payload(kind, &key);
        self.start(kind, &key, input);
    }

    /// Starts a collective and waits for it now or later.
    pub fn step_collective(&mut self, kind: Collective) {
        self.start_some(kind);
        if !self.source.percent(self.config.late_wait) {
            self.land_last();
        }
    }

    /// Starts a collective and waits for it.
    pub fn communicate(&mut self, kind: Collective, key: &Key, input: Var) -> Var {
        self.start(kind, key, input);
        self.land_last()
    }

    /// Waits for the flight that was started last.
    fn land_last(&mut self) -> Var {
        self.land(self.flights.len() - 1)
    }

    /// Waits for a flight, early ones rather than late ones.
    pub fn step_wait(&mut self) -> bool {
        let count = self.flights.len() as u32;
        if count == 0 {
            return false;
        }
        let index = self.source.below(count).min(self.source.below(count));
        self.land(index as usize);
        true
    }

    /// Several collectives of one key; their waits in order of issue, reversed, or between later issues. Where
    /// values are used at once, users of an early wait stand before the inputs of late members.
    pub fn step_burst(&mut self) {
        let kinds = [Collective::AllGather, Collective::ReduceScatter, Collective::AllReduce];
        let weights = [3, self.config.scatter.min(2), self.config.reduce.min(2)];
        let kind = match self.focus {
            Some(kind) if self.source.percent(60) => kind,
            _ => kinds[self.source.weighted(&weights)],
        };
        let key = self.keys.key(self.source, self.config, kind);
        let count = self.source.between(2, 4);
        let (at_once, reversed, used) =
            (self.source.percent(40), self.source.percent(30), self.source.percent(40));
        let first = self.flights.len();
        for _ in 0..count {
            let input = self.payload(kind, &key);
            let input = if used { self.touched(input) } else { input };
            self.start(kind, &key, input);
            if at_once {
                let value = self.land_last();
                if used {
                    self.touched(value);
                }
            }
        }
        while self.flights.len() > first {
            let index = if reversed { self.flights.len() - 1 } else { first };
            self.land(index);
        }
    }

    /// A computed value from `var`, in its dtype.
    fn touched(&mut self, var: Var) -> Var {
        let ty = self.pool.ty(var);
        let value = self.take(var);
        let target = match ty.dtype {
            dtype if !super::keys::computes(dtype) => Target::Clone,
            _ => self.source.one_of(&[Target::Relu, Target::Neg, Target::Abs]),
        };
        self.fresh(Prefix::Temporary, target, &[value], &[], ty.elementwise(&[], ty.dtype))
    }

    /// Gather, compute, gather again: collectives that depend on each other through some path.
    pub fn step_chain(&mut self) {
        let kind = Collective::AllGather;
        let key = self.keys.key(self.source, self.config, kind);
        let input = self.payload(kind, &key);
        let mut value = self.communicate(kind, &key, input);
        let length = self.source.between(1, 2);
        for _ in 0..length {
            let (next, key) = if self.source.percent(25) && super::keys::computes(key.dtype) {
                let kind = self.source.one_of(&[Collective::AllReduce, Collective::ReduceScatter]);
                (kind, self.keys.sum(key.group, key.dtype))
            } else {
                (kind, key)
            };
            let back = self.narrowed(value, key.group.size);
            let back = match self.source.below(4) {
                0 => back,
                1 => self.touched(back),
                2 => {
                    let touched = self.touched(back);
                    self.view_of(touched)
                }
                _ => self.joined_with(back),
            };
            let back = self.divisible(back, next, key.group.size);
            value = self.communicate(next, &key, back);
        }
    }

    /// A part of `var` that may be gathered again: its first rows.
    fn narrowed(&mut self, var: Var, group: i64) -> Var {
        let ty = self.pool.ty(var);
        let Some(&rows) = ty.shape().first() else { return var };
        if ty.numel() * group <= self.limit() {
            return var;
        }
        let keep = (rows / group).max(1).min(rows);
        self.slice(var, 0, 0, keep, 1)
    }

    /// `var` if it can be the input of a collective of this kind, else a new input that can.
    fn divisible(&mut self, var: Var, kind: Collective, group: i64) -> Var {
        let ty = self.pool.ty(var);
        let rows = ty.shape().first().copied();
        let fits = match kind {
            Collective::ReduceScatter => rows.is_some_and(|rows| rows % group == 0),
            Collective::AllGather => rows.is_some() && ty.numel() * group <= self.limit(),
            _ => true,
        };
        // Rows to scatter there must be, even on a group of one.
        let multiple = if kind == Collective::ReduceScatter { group.max(2) } else { group };
        if fits { var } else { self.new_input(ty.dtype, multiple) }
    }

    /// A list operator with `var` in it.
    fn joined_with(&mut self, var: Var) -> Var {
        let ty = self.pool.ty(var);
        if ty.rank() == 0 {
            return var;
        }
        let other = self.input(ty.packed(ty.dtype));
        let list = self.take_list(&[other, var]);
        let joined = ty.resized(0, 2 * ty.shape()[0]);
        self.fresh(Prefix::Temporary, Target::Cat, &[list], &[], joined)
    }

    /// A gather that writes its result into a buffer given as `out=`; other aliases of the buffer may be read later.
    pub fn step_buffer(&mut self) {
        let kind = Collective::AllGather;
        let key = self.keys.key(self.source, self.config, kind);
        let input = self.payload(kind, &key);
        let ty = self.pool.ty(input);
        if ty.rank() == 0 {
            return;
        }
        let wanted = result(kind, &key, &ty);
        let existing = self.source.percent(30);
        let existing = if existing {
            let own = self.pool.get(input).storage;
            self.pool.find_writable(self.source, |held| {
                held.ty.dtype == wanted.dtype
                    && held.ty.shape() == wanted.shape()
                    && held.ty.is_contiguous()
                    && held.storage != own
            })
        } else {
            None
        };
        let buffer = match existing {
            Some(buffer) => buffer,
            None => self.new_buffer(Target::Empty, &wanted),
        };
        let before = self.source.percent(60).then(|| self.view_of(buffer));
        let (value, out_value) = (self.take(input), self.take(buffer));
        let buffer_type = self.pool.ty(buffer);
        let args = [value, Value::Int(key.group.size), Value::Str(key.group.name)];
        let out = Out::Tensor(self.tensor(&buffer_type));
        let node = self.call(Prefix::Gather, Target::AllGatherOut, &args, &[(Keyword::Out, out_value)], out);
        let storage = self.pool.get(buffer).storage;
        let launch = self.launch(&[input], 1);
        let candidate = Candidate { kind, bytes: wanted.bytes().max(ty.bytes()) };
        self.fly(node, buffer_type, storage, launch, Some(candidate));
        if self.source.percent(self.config.late_wait) {
            return;
        }
        self.land_last();
        if let Some(alias) = before {
            self.touched(alias);
        }
    }

    /// A new buffer of this type; nothing has written it where `target` is `empty`.
    pub fn new_buffer(&mut self, target: Target, ty: &Type) -> Var {
        let sizes = self.graph.int_list(ty.shape());
        let device = self.device();
        let kwargs = [
            (Keyword::Dtype, Value::Dtype(ty.dtype)),
            (Keyword::Device, device),
            (Keyword::PinMemory, Value::Bool(false)),
        ];
        let buffer = self.fresh(Prefix::Buffer, target, &[sizes], &kwargs, *ty);
        let storage = self.pool.get(buffer).storage;
        self.pool.set_fresh(storage, target == Target::Empty && ty.numel() > 0);
        buffer
    }

    /// A second wait for one collective, or a wait for what a wait gave.
    pub fn step_second_wait(&mut self) -> bool {
        let reach = self.landed.len().min(8) as u32;
        if reach == 0 {
            return false;
        }
        let index = self.landed.len() - 1 - self.source.below(reach) as usize;
        let (value, wait) = self.landed[index];
        if !self.pool.is_readable(self.pool.get(wait).storage) {
            return false;
        }
        let of = if self.source.percent(40) { self.take(wait) } else { Value::Node(value) };
        let ty = self.pool.ty(wait);
        self.alias(Prefix::Wait, Target::Wait, &[of], &[], ty, wait);
        true
    }

    /// A reduce-scatter whose input is a tensor cut into blocks, padded to equal size; or nearly so.
    pub fn step_padded(&mut self) {
        let key = self.keys.key(self.source, self.config, Collective::ReduceScatter);
        let group = key.group.size;
        let rows = i64::from(self.source.between(1, (2 * group) as u32));
        let columns = i64::from(self.source.between(1, 2));
        let shape: &[i64] = if columns == 1 { &[rows] } else { &[rows, columns] };
        let ty = Type::new(key.dtype, shape);
        let nearly = self.source.percent(30);
        let source = self.input(ty);
        let source = self.touched(source);
        let block = (rows + group - 1) / group;
        let pieces = self.split(source, block, 0);
        let padding = |short: i64| -> Vec<i64> {
            let mut padding = vec![0; 2 * (shape.len() - 1)];
            padding.extend([0, short]);
            padding
        };
        let mut blocks = Vec::with_capacity(group as usize);
        let first = self.item(&pieces, 0);
        for i in 0..group {
            let piece = match pieces.count() {
                _ if i == 0 => first,
                count if i < count as i64 => self.item(&pieces, i as usize),
                _ => {
                    let mut sizes = shape.to_vec();
                    sizes[0] = 0;
                    let value = self.take(first);
                    let sizes_value = self.graph.int_list(&sizes);
                    let zeros = Type::new(key.dtype, &sizes);
                    self.fresh(Prefix::Temporary, Target::NewZeros, &[value, sizes_value], &[], zeros)
                }
            };
            let have = self.pool.ty(piece).shape()[0];
            if have == block {
                blocks.push(piece);
                continue;
            }
            let pad = self.graph.int_list(&padding(block - have));
            let value = self.take(piece);
            let filler = if nearly { pad_value(key.dtype) } else { Value::Int(0) };
            let whole = ty.resized(0, block);
            blocks.push(self.fresh(Prefix::Temporary, Target::Pad, &[value, pad, filler], &[], whole));
        }
        let list = self.take_list(&blocks);
        let joined = self.fresh(Prefix::Temporary, Target::Cat, &[list], &[], ty.resized(0, block * group));
        self.communicate(Collective::ReduceScatter, &key, joined);
    }
}

/// A padding that is not zero.
fn pad_value(dtype: Dtype) -> Value {
    if dtype.class() == crate::graph::DtypeClass::Float { Value::Float(1.0) } else { Value::Int(1) }
}

/// What a collective gives for an input of this type.
pub(super) fn result(kind: Collective, key: &Key, ty: &Type) -> Type {
    match (kind, ty.shape().first()) {
        (Collective::AllGather, Some(&rows)) => ty.resized(0, rows * key.group.size),
        (Collective::AllGather, None) => Type::new(ty.dtype, &[key.group.size]),
        (Collective::ReduceScatter, Some(&rows)) => ty.resized(0, rows / key.group.size),
        _ => ty.packed(ty.dtype),
    }
}
