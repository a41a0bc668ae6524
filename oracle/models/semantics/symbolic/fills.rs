//! Tensors of one value, and unwritten ones.

use super::arguments::Call;
use super::evaluation::Produced;
use super::key::Tag;
use super::layout;
use super::machine::{Machine, Reading, Stop};
use super::moves::Moved;
use super::place::HERE;
use super::reason::Reason;
use super::run::Piece;
use super::source::{Source, SourceId, ValueId};
use crate::graph::{Dtype, Value};
use crate::ops::Fill;

impl Machine<'_, '_> {
    /// Executes an operator that makes or fills a tensor.
    pub(super) fn fill(&mut self, call: &Call<'_>, fill: Fill) -> Result<Produced, Stop> {
        let (sizes, dtype) = match call.schema.mutated().next() {
            Some(param) => {
                let target = self.tensor(call.node(param)?)?;
                (self.sizes(target)?, target.dtype)
            }
            None => {
                let id = self.metadata(0).ok_or(Reason::NoMetadata)?;
                let tensor = *self.graph.tensor(id);
                match self.graph.sizes(tensor.shape) {
                    Some(sizes) => (sizes, tensor.dtype),
                    // Unwritten memory is the same whatever its size.
                    None if fill == Fill::Empty => {
                        let value = self.arena.poison(1);
                        let fresh = self.fresh_symbolic(value, tensor.dtype);
                        return Ok(self.done(fresh));
                    }
                    None => return Err(Stop::NotFollowed),
                }
            }
        };
        let count = layout::numel(&sizes).ok_or(Reason::Overflow)?;
        let value = match fill {
            Fill::Empty => self.arena.poison(count),
            Fill::Zeros => self.constant(dtype, Value::Int(0), count)?,
            Fill::Ones => self.constant(dtype, Value::Int(1), count)?,
            Fill::Full => {
                let named = ["fill_value", "value", "s"].iter().find_map(|name| call.bound.named(name));
                self.constant(dtype, named.ok_or_else(|| Reason::arguments("no value to fill with"))?, count)?
            }
        };
        self.deliver(call, Moved { value, sizes, dtype })
    }

    /// Executes an operator that gives a storage another number of bytes: those past it hold nothing any more. Where that
    /// is not known, what the storage holds is not.
    pub(super) fn resize(&mut self, call: &Call<'_>) -> Result<Produced, Stop> {
        let tensor = self.tensor(call.node(0)?)?;
        let bytes = match call.bound.given(1) {
            Some(Value::Int(bytes)) => Some(bytes),
            _ => None,
        };
        let (content, dtype) = {
            let storage = &mut self.eval.storages[tensor.storage as usize];
            storage.room = bytes.map(|bytes| bytes.max(0));
            (storage.content, storage.dtype)
        };
        let len = self.arena.len(content);
        let kept = bytes.map(|bytes| bytes.max(0) / i64::from(dtype.itemsize().max(1)));
        match kept {
            Some(0) => {
                let nothing = self.arena.poison(len);
                self.eval.storages[tensor.storage as usize].content = nothing;
            }
            Some(kept) if !self.is_symbolic(tensor) => {
                if kept < len {
                    let rest = self.window(tensor.storage, kept, &[len - kept], &[1], dtype);
                    let nothing = self.arena.poison(len - kept);
                    self.write(rest, nothing)?;
                }
            }
            _ => {
                self.words.0.clear();
                let name = self.arena.symbol("resized");
                self.words.symbol(Tag::Target, name);
                self.words.tensor(content, dtype, &[]);
                if let Some(bytes) = call.bound.given(1) {
                    self.encode(bytes)?;
                }
                self.eval.storages[tensor.storage as usize].content = self.assumed(len);
            }
        }
        Ok(Produced::Nothing)
    }

    /// `count` times one number, or the one element of a tensor.
    pub(super) fn constant(&mut self, dtype: Dtype, number: Value, count: i64) -> Result<ValueId, Stop> {
        if let Value::Node(node) = number
            && let Produced::Tensor(tensor, _) = self.produced(node)?
        {
            let value = self.read(tensor, Some(node), Reading::Moving)?;
            if self.is_symbolic(tensor) || self.arena.len(value) != 1 {
                return Err(Reason::arguments("a value to fill with that is no single element").into());
            }
            let value = self.arena.cast(value, tensor.dtype, dtype);
            return Ok(self.arena.read(value, 0, &layout::normal(&[count], &[0]), count)?);
        }
        if let Value::Node(_) | Value::Symbolic(_) = number
            && self.int_value(number) == Err(Stop::NotFollowed)
        {
            return Ok(self.unknown_number(dtype, number, count)?);
        }
        let source = self.constant_source(dtype, number)?;
        Ok(self.arena.all_of(source, count))
    }

    /// A number that the graph computes, repeated. It need not be the same on all ranks.
    fn unknown_number(&mut self, dtype: Dtype, number: Value, count: i64) -> Result<ValueId, Reason> {
        self.words.0.clear();
        let name = self.arena.symbol("full");
        self.words.symbol(Tag::Target, name);
        self.words.dtype(dtype);
        self.encode(number)?;
        let key = self.take_key();
        let source = self.arena.source(Source::Opaque { key, output: 0 });
        Ok(self.arena.piece(Piece { len: count, offset: 0, source, place: HERE, step: 0 }))
    }

    /// The source of one number. Numbers that are equal in value are one: 0, 0.0 and False in a float tensor.
    pub(super) fn constant_source(&mut self, dtype: Dtype, number: Value) -> Result<SourceId, Stop> {
        self.words.0.clear();
        match number {
            Value::Float(x) if x.fract() == 0.0 && x.abs() < 9e15 && (x != 0.0 || x.is_sign_positive()) => {
                self.words.int(x as i64);
            }
            Value::Bool(b) => self.words.int(i64::from(b)),
            Value::Node(_) => self.words.int(self.int_value(number)?),
            number => self.encode(number)?,
        }
        let key = self.take_key();
        Ok(self.arena.source(Source::Constant { dtype, key }))
    }
}
