//! Calls that give back what one operand holds, at most cast (see [`is_neutral`](crate::semantics::is_neutral)).

use super::arguments::Call;
use super::evaluation::{Produced, Tensor};
use super::key::{Tag, payload, tag, tokens};
use super::machine::{Machine, Reading, Stop};
use super::moves::Moved;
use super::source::{Source, ValueId};
use crate::graph::{Dtype, DtypeClass, NodeId, Value};
use crate::ops::Binary;
use crate::semantics::{Number, Participant, Rounding, is_neutral, result_type};

/// An operand of a function of two elements.
#[derive(Clone, Copy)]
enum Operand {
    Tensor(Tensor, NodeId),
    Number(Number),
}

impl Machine<'_, '_> {
    /// The result of a call of `op` that leaves one operand as it is; `None` for any other call.
    pub(super) fn identity(&mut self, call: &Call<'_>, op: Binary) -> Result<Option<Produced>, Stop> {
        let (op, rounding) = match (op, call.bound.named("rounding_mode")) {
            (Binary::FloorDivide, _) => (Binary::Div, Rounding::Floor),
            (Binary::Rmul, _) => (Binary::Mul, Rounding::True),
            (_, None | Some(Value::None)) => (op, Rounding::True),
            // Of integers the quotient by 1 is the same, however it is rounded; of floats none is meant here.
            _ => (op, Rounding::Floor),
        };
        let (Some(a), Some(b)) = (self.operand(call, 0), self.operand(call, 1)) else { return Ok(None) };
        let alpha = match call.bound.named("alpha") {
            None => Number::Int(1),
            Some(value) => match plain(value) {
                Some(alpha) => alpha,
                None => return Ok(None),
            },
        };
        let Some(dtype) = self.dtype(op, rounding, [a, b]) else { return Ok(None) };
        // Another default dtype than float32, or a record that is not true.
        let recorded = self.metadata(0).map(|id| self.graph.tensor(id).dtype);
        if call.schema.mutated().next().is_none() && recorded.is_some_and(|recorded| recorded != dtype) {
            return Ok(None);
        }
        for (kept, other, first) in [(a, b, false), (b, a, true)] {
            let Operand::Tensor(kept, node) = kept else { continue };
            let number = match other {
                Operand::Number(number) => Some(number),
                Operand::Tensor(other, _) => self.everywhere(other, kept),
            };
            if number.is_some_and(|number| is_neutral(op, (number, first), alpha, rounding, dtype)) {
                return self.kept(call, (kept, node), dtype);
            }
        }
        Ok(None)
    }

    fn kept(
        &mut self,
        call: &Call<'_>,
        (kept, node): (Tensor, NodeId),
        dtype: Dtype,
    ) -> Result<Option<Produced>, Stop> {
        let symbolic = self.is_symbolic(kept);
        if symbolic && call.schema.mutated().next().is_some() {
            return Ok(None);
        }
        let value = self.read(kept, Some(node), Reading::Using)?;
        let value = self.arena.cast(value, kept.dtype, dtype);
        if symbolic {
            let fresh = self.fresh_symbolic(value, dtype);
            return Ok(Some(self.done(fresh)));
        }
        let sizes = self.sizes(kept)?;
        self.deliver(call, Moved { value, sizes, dtype }).map(Some)
    }

    fn operand(&self, call: &Call<'_>, index: usize) -> Option<Operand> {
        match call.bound.given(index)? {
            Value::Node(node) => match self.produced(node).ok()? {
                Produced::Tensor(tensor, _) => Some(Operand::Tensor(tensor, node)),
                Produced::Int(n) => Some(Operand::Number(Number::Int(n))),
                _ => None,
            },
            value => plain(value).map(Operand::Number),
        }
    }

    /// The dtype that is computed in, which is that of the result.
    fn dtype(&self, op: Binary, rounding: Rounding, operands: [Operand; 2]) -> Option<Dtype> {
        let participants = operands.map(|operand| match operand {
            Operand::Tensor(tensor, _) => Participant::Tensor(tensor.dtype, usize::from(tensor.rank)),
            Operand::Number(number) => Participant::Number(number),
        });
        // The rank of a symbolic tensor is not kept here: it would count as one without dimensions.
        let is_symbolic =
            |operand: &Operand| matches!(operand, Operand::Tensor(t, _) if self.is_symbolic(*t));
        if operands.iter().any(is_symbolic) && operands.iter().all(|o| matches!(o, Operand::Tensor(..))) {
            return None;
        }
        let dtype = result_type(&participants).ok()?;
        let is_quotient = op == Binary::Div && rounding == Rounding::True;
        Some(if is_quotient && dtype.class() < DtypeClass::Float { Dtype::F32 } else { dtype })
    }

    /// The number that a tensor holds in every element, if it has no more elements than `kept`, with which it is
    /// broadcast.
    fn everywhere(&mut self, tensor: Tensor, kept: Tensor) -> Option<Number> {
        if self.is_symbolic(tensor) || self.is_symbolic(kept) {
            return None;
        }
        let (own, sizes) = (self.eval.sizes(tensor), self.eval.sizes(kept));
        let mut outer = sizes.iter().rev();
        let fits = own.iter().rev().all(|size| outer.next().is_some_and(|other| *size == 1 || size == other));
        let value: ValueId = self.eval.shown(self.arena, tensor, self.content(tensor)).ok()?;
        let piece = self.arena.single(value).filter(|_| fits)?;
        let Source::Constant { key, .. } = self.arena.get(piece.source) else { return None };
        let (word, rest) = tokens(self.arena.words(key)).next()?;
        match (tag(word)?, rest) {
            (Tag::Int, &[n]) => Some(Number::Int(n as i64)),
            (Tag::Float, &[bits]) => Some(Number::Float(f64::from_bits(bits))),
            (Tag::Bool, _) => Some(Number::Int(i64::from(payload(word)))),
            _ => None,
        }
    }
}

/// A number as it is given.
fn plain(value: Value) -> Option<Number> {
    match value {
        Value::Int(n) => Some(Number::Int(n)),
        Value::Float(x) => Some(Number::Float(x)),
        Value::Bool(b) => Some(Number::Bool(b)),
        _ => None,
    }
}
