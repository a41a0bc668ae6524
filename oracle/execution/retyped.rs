//! Elements that are seen under another dtype.
//!
//! # The idea
//!
//! `view.dtype` shows the bytes of elements under another dtype. A domain that does not know bits knows an element by how
//! it was computed, and the laws of one dtype say nothing of what was computed in another one: the negative of a float seen
//! as an integer is no float. Here an element is known with the dtypes in which it was computed; seen under any other one
//! it is a function of element and dtype of which nothing is known. So that no element is one of two dtypes, casts and
//! constants are functions of the same kind.
//!
//! # What it does not do
//!
//! It knows no bits: no law leads through such a view.

use super::domain::{Addend, Domain, Draw, MatmulSize, Operand, Outcome, Pointwise, RankReduce};
use super::fingerprint::result;
use super::hash::{text, words};
use super::number::Number;
use super::program::Program;
use crate::graph::{Dtype, NodeId};
use crate::ops::Reduce;
use rustc_hash::FxHashSet;
use std::sync::{Mutex, PoisonError};

/// A domain that tells what was computed in one dtype from what is seen under another one.
pub(super) struct Retyped<'d> {
    inner: &'d dyn Domain,
    computed: Mutex<FxHashSet<(u64, Dtype)>>,
}

impl<'d> Retyped<'d> {
    pub(super) fn new(inner: &'d dyn Domain) -> Retyped<'d> {
        Retyped { inner, computed: Mutex::default() }
    }

    /// The domain in which programs are run: this one where one of them shows elements under another dtype, of which the
    /// inner domain does not know the bits; else that.
    pub(super) fn for_programs<'a>(
        &self,
        mut programs: impl Iterator<Item = &'a Program<'a>>,
    ) -> &dyn Domain {
        match !self.inner.tells_dtypes_apart() && programs.any(|program| program.retypes) {
            true => self,
            false => self.inner,
        }
    }

    /// A function of an element of which nothing is known.
    fn function(&self, what: &str, of: u64, dtype: Dtype) -> u64 {
        let key = words(text(what), [of, dtype as u64]);
        let drawn = self.inner.uninterpreted(key, 0, dtype, 1, what).ok();
        drawn.and_then(|cells| cells.first().copied()).unwrap_or(key)
    }

    fn is_computed(&self, key: u64, dtype: Dtype) -> bool {
        self.computed.lock().unwrap_or_else(PoisonError::into_inner).contains(&(key, dtype))
    }

    /// Elements as they are read in a dtype.
    fn seen(&self, cells: &[u64], dtype: Dtype) -> Vec<u64> {
        let seen = |&key: &u64| match self.is_computed(key, dtype) {
            true => key,
            false => self.function("view.dtype", key, dtype),
        };
        cells.iter().map(seen).collect()
    }

    /// Notes that elements were computed in a dtype.
    fn note(&self, cells: Vec<u64>, dtype: Dtype) -> Vec<u64> {
        let mut computed = self.computed.lock().unwrap_or_else(PoisonError::into_inner);
        computed.extend(cells.iter().map(|&key| (key, dtype)));
        cells
    }

    fn note_one(&self, cell: u64, dtype: Dtype) -> u64 {
        self.note(vec![cell], dtype);
        cell
    }
}

impl Domain for Retyped<'_> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn tells_dtypes_apart(&self) -> bool {
        true
    }

    fn enter(&self, node: NodeId) {
        self.inner.enter(node);
    }

    fn split(&self, cell: u64, bytes: u8) -> (u64, u64) {
        self.inner.split(cell, bytes)
    }

    fn join(&self, low: u64, high: u64, bytes: u8) -> u64 {
        self.inner.join(low, high, bytes)
    }

    fn input(&self, key: u64, index: u64, dtype: Dtype) -> u64 {
        self.note_one(self.inner.input(key, index, dtype), dtype)
    }

    fn constant(&self, number: Number, dtype: Dtype) -> u64 {
        let constant = match number {
            Number::Term(_) => self.inner.constant(number, dtype),
            number => self.function("constant", number.key(), dtype),
        };
        self.note_one(constant, dtype)
    }

    fn cast(&self, cells: &[u64], from: Dtype, to: Dtype) -> Outcome<Vec<u64>> {
        let cells = self.seen(cells, from);
        if from == to {
            return Ok(cells);
        }
        let cast = self.inner.cast(&cells, from, to)?;
        let apart = |(&of, key): (&u64, u64)| if of == key { self.function("cast", of, to) } else { key };
        Ok(self.note(cells.iter().zip(cast).map(apart).collect(), to))
    }

    fn number(&self, cell: u64, dtype: Dtype) -> Number {
        self.inner.number(self.seen(&[cell], dtype)[0], dtype)
    }

    fn integers(&self, cells: &[u64], dtype: Dtype) -> Option<Vec<i64>> {
        self.inner.integers(&self.seen(cells, dtype), dtype)
    }

    fn indices(&self, cells: &[u64], dtype: Dtype) -> Option<Vec<(i64, bool)>> {
        self.inner.indices(&self.seen(cells, dtype), dtype)
    }

    fn by_index(&self, index: u64, from_end: bool, dtype: Dtype, of: &[u64]) -> u64 {
        self.note_one(self.inner.by_index(index, from_end, dtype, &self.seen(of, dtype)), dtype)
    }

    fn pointwise(
        &self,
        function: Pointwise,
        dtype: Dtype,
        operands: &[Operand],
        count: usize,
    ) -> Outcome<Vec<u64>> {
        let dtype_of = |at: usize| if at == 0 && function == Pointwise::Where { Dtype::Bool } else { dtype };
        let seen: Vec<Vec<u64>> = (operands.iter().enumerate())
            .map(|(at, operand)| match operand {
                Operand::Cells(cells) => self.seen(cells, dtype_of(at)),
                Operand::Number(_) => Vec::new(),
            })
            .collect();
        let operands: Vec<Operand> = (operands.iter().zip(&seen))
            .map(|(operand, seen)| match operand {
                Operand::Cells(_) => Operand::Cells(seen),
                Operand::Number(number) => Operand::Number(*number),
            })
            .collect();
        Ok(self.note(self.inner.pointwise(function, dtype, &operands, count)?, result(function, dtype)))
    }

    fn reduce(&self, op: Reduce, dtype: Dtype, cells: &[u64], run: usize) -> Outcome<Vec<u64>> {
        let dtype_of = if matches!(op, Reduce::Any | Reduce::All) { Dtype::Bool } else { dtype };
        Ok(self.note(self.inner.reduce(op, dtype, &self.seen(cells, dtype_of), run)?, dtype_of))
    }

    fn cumsum(&self, dtype: Dtype, cells: &[u64], run: usize) -> Outcome<Vec<u64>> {
        Ok(self.note(self.inner.cumsum(dtype, &self.seen(cells, dtype), run)?, dtype))
    }

    fn matmul(
        &self,
        size: MatmulSize,
        dtype: Dtype,
        a: &[u64],
        b: &[u64],
        addend: Option<Addend>,
        out: Dtype,
    ) -> Outcome<Vec<u64>> {
        let (a, b) = (self.seen(a, dtype), self.seen(b, dtype));
        let bias = addend.map(|addend| self.seen(addend.bias, dtype));
        let addend = addend.zip(bias.as_deref()).map(|(addend, bias)| Addend { bias, ..addend });
        Ok(self.note(self.inner.matmul(size, dtype, &a, &b, addend, out)?, out))
    }

    fn across_ranks(&self, op: RankReduce, dtype: Dtype, parts: &[&[u64]]) -> Outcome<Vec<u64>> {
        let seen: Vec<Vec<u64>> = parts.iter().map(|part| self.seen(part, dtype)).collect();
        let parts: Vec<&[u64]> = seen.iter().map(Vec::as_slice).collect();
        Ok(self.note(self.inner.across_ranks(op, dtype, &parts)?, dtype))
    }

    fn draw(&self, draw: Draw, key: u64, dtype: Dtype, count: usize) -> Outcome<Vec<u64>> {
        Ok(self.note(self.inner.draw(draw, key, dtype, count)?, dtype))
    }

    fn uninterpreted(
        &self,
        key: u64,
        output: u64,
        dtype: Dtype,
        count: usize,
        what: &str,
    ) -> Outcome<Vec<u64>> {
        Ok(self.note(self.inner.uninterpreted(key, output, dtype, count, what)?, dtype))
    }

    fn interprets_everything(&self) -> bool {
        self.inner.interprets_everything()
    }
}
