//! Numbers in double precision, whatever float dtype a graph has: what roundings hide or make.
//!
//! # The idea
//!
//! Inputs are those of [`Concrete`], rounded to the dtypes of the graph. All floats that are computed of them are kept in
//! double precision, and a cast from one float dtype to another changes nothing.
//!
//! # What it does not do
//!
//! The bits of a float are those of its double, so views of another dtype give other numbers.

use super::super::domain::{Addend, Domain, Draw, MatmulSize, Operand, Outcome, Pointwise, RankReduce};
use super::super::number::Number;
use super::{Concrete, Scalar, decode, encode};
use crate::graph::{Dtype, DtypeClass};
use crate::ops::Reduce;

/// Numbers of a trial in double precision.
pub(in super::super) struct Wide(pub(in super::super) Concrete);

/// The dtype in which the elements of another one are kept.
pub(in super::super) fn wide(dtype: Dtype) -> Dtype {
    if dtype.class() == DtypeClass::Float { Dtype::F64 } else { dtype }
}

/// Elements of a dtype as they are kept.
fn widened(cells: Vec<u64>, dtype: Dtype) -> Vec<u64> {
    cells.into_iter().map(|cell| widen(cell, dtype)).collect()
}

fn widen(cell: u64, dtype: Dtype) -> u64 {
    match decode(cell, dtype) {
        Scalar::Float(x) if wide(dtype) == Dtype::F64 => encode(Scalar::Float(x), Dtype::F64),
        _ => cell,
    }
}

impl Domain for Wide {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn tells_dtypes_apart(&self) -> bool {
        true
    }

    fn split(&self, cell: u64, bytes: u8) -> (u64, u64) {
        self.0.split(cell, bytes)
    }

    fn join(&self, low: u64, high: u64, bytes: u8) -> u64 {
        self.0.join(low, high, bytes)
    }

    fn input(&self, key: u64, index: u64, dtype: Dtype) -> u64 {
        widen(self.0.input(key, index, dtype), dtype)
    }

    fn constant(&self, number: Number, dtype: Dtype) -> u64 {
        self.0.constant(number, wide(dtype))
    }

    fn cast(&self, cells: &[u64], from: Dtype, to: Dtype) -> Outcome<Vec<u64>> {
        self.0.cast(cells, wide(from), wide(to))
    }

    fn number(&self, cell: u64, dtype: Dtype) -> Number {
        self.0.number(cell, wide(dtype))
    }

    fn integers(&self, cells: &[u64], dtype: Dtype) -> Option<Vec<i64>> {
        self.0.integers(cells, dtype)
    }

    fn pointwise(
        &self,
        function: Pointwise,
        dtype: Dtype,
        operands: &[Operand],
        count: usize,
    ) -> Outcome<Vec<u64>> {
        let function = match function {
            Pointwise::Opaque(key, out) => Pointwise::Opaque(key, wide(out)),
            other => other,
        };
        self.0.pointwise(function, wide(dtype), operands, count)
    }

    fn reduce(&self, op: Reduce, dtype: Dtype, cells: &[u64], run: usize) -> Outcome<Vec<u64>> {
        self.0.reduce(op, wide(dtype), cells, run)
    }

    fn cumsum(&self, dtype: Dtype, cells: &[u64], run: usize) -> Outcome<Vec<u64>> {
        self.0.cumsum(wide(dtype), cells, run)
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
        self.0.matmul(size, wide(dtype), a, b, addend, wide(out))
    }

    fn across_ranks(&self, op: RankReduce, dtype: Dtype, parts: &[&[u64]]) -> Outcome<Vec<u64>> {
        self.0.across_ranks(op, wide(dtype), parts)
    }

    fn draw(&self, draw: Draw, key: u64, dtype: Dtype, count: usize) -> Outcome<Vec<u64>> {
        Ok(widened(self.0.draw(draw, key, dtype, count)?, dtype))
    }

    fn uninterpreted(
        &self,
        key: u64,
        output: u64,
        dtype: Dtype,
        count: usize,
        what: &str,
    ) -> Outcome<Vec<u64>> {
        Ok(widened(self.0.uninterpreted(key, output, dtype, count, what)?, dtype))
    }

    fn interprets_everything(&self) -> bool {
        self.0.interprets_everything()
    }
}
