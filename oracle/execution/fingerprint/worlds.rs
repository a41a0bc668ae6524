//! Real numbers beside the bits that decide.
//!
//! # The idea
//!
//! By the laws of real numbers `(x + y) - y` is `x`. A comparison does not know that: it is given what was rounded, and a
//! rounding may flip it. So each element is computed twice, once by the laws that are asked for and once bit for bit. What
//! decides (a comparison, a step, a cast to an integer, a function of which nothing is known) is given the bits, and what
//! is computed by that decision has the same condition in both.
//!
//! # The statement
//!
//! Two decisions are the same if the same function is given equal bits. Those that are made of equal real numbers, which
//! were rounded otherwise, are open.

use super::super::domain::{
    Addend, Domain, Draw, MatmulSize, Operand, Outcome, Pointwise, RankReduce, Rounding,
};
use super::super::hash::mix;
use super::super::number::Number;
use super::cases::{Remembered, with_cells};
use super::cell::{Cell, Table};
use super::{Fingerprints, Inputs, Laws, result, rounds};
use crate::graph::{Dtype, NodeId};
use crate::ops::{Binary, Reduce};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Fingerprints by some laws, and those of bits where they differ.
#[derive(Debug)]
pub(super) struct Worlds {
    own: Remembered,
    bits: Option<Remembered>,
    /// What an element is by the laws, and in bits, where that is not the same.
    both: Mutex<FxHashMap<u64, [u64; 2]>>,
}

/// Whether roundings of floats show in what a function gives.
fn decides(function: Pointwise, dtype: Dtype) -> bool {
    let is_step = match function {
        Pointwise::Unary(op, _) => op.is_step(),
        Pointwise::Binary(op, _, rounding) => {
            matches!(op, Binary::Remainder | Binary::Fmod | Binary::FloorDivide)
                || op == Binary::Div && rounding != Rounding::True
        }
        Pointwise::Opaque(..) => true,
        _ => false,
    };
    rounds(dtype) && (is_step || result(function, dtype) == Dtype::Bool)
}

impl Worlds {
    pub(super) fn new(own: Fingerprints) -> Worlds {
        let laws = Laws {
            reals: false,
            zeros: true,
            signs: false,
            quotients: false,
            functions: false,
            analysis: false,
            choices: true,
            casts: false,
            any_index: false,
            nans: false,
        };
        let of_bits = || Fingerprints {
            laws,
            field: own.field,
            numbers: own.numbers,
            inputs: own.inputs.clone(),
            table: Arc::clone(&own.table),
        };
        let bits = own.laws.reals.then(|| Remembered(of_bits()));
        Worlds { own: Remembered(own), bits, both: Mutex::default() }
    }

    /// Changes both.
    pub(super) fn each(&mut self, change: impl Fn(&mut Fingerprints)) {
        change(&mut self.own.0);
        self.bits.iter_mut().for_each(|bits| change(&mut bits.0));
    }

    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        self.own.0.table()
    }

    /// What inputs hold.
    pub(super) fn inputs(&self) -> &Inputs {
        &self.own.0.inputs
    }

    /// What an element is by the laws.
    pub(super) fn cell(&self, key: u64) -> Option<Cell> {
        let [own, _] = self.of(key);
        self.table().get(own)
    }

    /// Forgets which elements are one in bits and another one by the laws.
    pub(super) fn forget(&self) {
        self.both().clear();
    }

    /// Forgets the elements of a trial.
    pub(super) fn end_trial(&self, is_random: bool) {
        self.table().end_trial(is_random);
        self.forget();
    }

    fn both(&self) -> MutexGuard<'_, FxHashMap<u64, [u64; 2]>> {
        self.both.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What an element is by the laws, and in bits.
    pub(super) fn of(&self, key: u64) -> [u64; 2] {
        self.both().get(&key).copied().unwrap_or([key, key])
    }

    /// Computes by the laws and in bits.
    fn twice(
        &self,
        cells: &[&[u64]],
        compute: impl Fn(&Remembered, &[&[u64]]) -> Outcome<Vec<u64>>,
    ) -> Outcome<Vec<u64>> {
        let Some(bits) = &self.bits else { return compute(&self.own, cells) };
        let [own, bits] = [(0, &self.own), (1, bits)].map(|(world, domain)| {
            let cells: Vec<Vec<u64>> = cells.iter().map(|cells| self.world(world, cells)).collect();
            let cells: Vec<&[u64]> = cells.iter().map(Vec::as_slice).collect();
            compute(domain, &cells)
        });
        Ok(self.joined(own?, bits?))
    }

    fn world(&self, world: usize, cells: &[u64]) -> Vec<u64> {
        let both = self.both();
        cells.iter().map(|key| both.get(key).map_or(*key, |both| both[world])).collect()
    }

    fn joined(&self, own: Vec<u64>, bits: Vec<u64>) -> Vec<u64> {
        let (mut both, mut table) = (self.both(), self.table());
        let mut join = |(own, bits): (u64, u64)| {
            let key = if own == bits { own } else { mix(own, bits) };
            if own != bits {
                both.insert(key, [own, bits]);
                let without_answers = |key: u64| table.cases.as_ref().map_or(key, |cases| cases.own(key));
                let (own, bits) = (without_answers(own), without_answers(bits));
                table.own_of.entry(bits).or_insert(own);
            }
            key
        };
        own.into_iter().zip(bits).map(&mut join).collect()
    }
}

impl Domain for Worlds {
    fn name(&self) -> &'static str {
        self.own.name()
    }

    fn enter(&self, node: NodeId) {
        self.own.enter(node);
    }

    fn split(&self, cell: u64, bytes: u8) -> (u64, u64) {
        self.own.split(cell, bytes)
    }

    fn join(&self, low: u64, high: u64, bytes: u8) -> u64 {
        self.own.join(low, high, bytes)
    }

    fn input(&self, key: u64, index: u64, dtype: Dtype) -> u64 {
        self.own.input(key, index, dtype)
    }

    fn constant(&self, number: Number, dtype: Dtype) -> u64 {
        let constant = |domain: &Remembered, _: &[&[u64]]| Ok(vec![domain.constant(number, dtype)]);
        self.twice(&[], constant).ok().and_then(|cells| cells.first().copied()).unwrap_or_default()
    }

    fn cast(&self, cells: &[u64], from: Dtype, to: Dtype) -> Outcome<Vec<u64>> {
        match &self.bits {
            Some(bits) if rounds(from) && !rounds(to) => bits.cast(&self.world(1, cells), from, to),
            _ => self.twice(&[cells], |domain, cells| domain.cast(cells[0], from, to)),
        }
    }

    fn number(&self, cell: u64, dtype: Dtype) -> Number {
        self.own.number(cell, dtype)
    }

    fn integers(&self, cells: &[u64], dtype: Dtype) -> Option<Vec<i64>> {
        self.own.integers(&self.world(0, cells), dtype)
    }

    fn indices(&self, cells: &[u64], dtype: Dtype) -> Option<Vec<(i64, bool)>> {
        self.own.indices(&self.world(0, cells), dtype)
    }

    fn by_index(&self, index: u64, from_end: bool, dtype: Dtype, of: &[u64]) -> u64 {
        let chosen = |domain: &Remembered, cells: &[&[u64]]| {
            Ok(vec![domain.by_index(cells[0][0], from_end, dtype, cells[1])])
        };
        self.twice(&[&[index], of], chosen).ok().and_then(|cells| cells.first().copied()).unwrap_or_default()
    }

    fn pointwise(
        &self,
        function: Pointwise,
        dtype: Dtype,
        operands: &[Operand],
        count: usize,
    ) -> Outcome<Vec<u64>> {
        if let (Pointwise::Binary(Binary::ThresholdBackward, bound, _), [gradient, of]) = (function, operands)
        {
            let at_most = Pointwise::Binary(Binary::Le, Number::Int(1), Rounding::True);
            let at_most = self.pointwise(at_most, dtype, &[*of, Operand::Number(bound)], count)?;
            let chosen = [Operand::Cells(&at_most), Operand::Number(Number::Int(0)), *gradient];
            return self.pointwise(Pointwise::Where, dtype, &chosen, count);
        }
        let cells: Vec<&[u64]> = (operands.iter())
            .filter_map(|operand| match operand {
                Operand::Cells(cells) => Some(*cells),
                Operand::Number(_) => None,
            })
            .collect();
        match &self.bits {
            Some(bits) if decides(function, dtype) => {
                let cells: Vec<Vec<u64>> = cells.iter().map(|cells| self.world(1, cells)).collect();
                let cells: Vec<&[u64]> = cells.iter().map(Vec::as_slice).collect();
                bits.pointwise(function, dtype, &with_cells(operands, &cells), count)
            }
            _ => self.twice(&cells, |domain, cells| {
                domain.pointwise(function, dtype, &with_cells(operands, cells), count)
            }),
        }
    }

    fn reduce(&self, op: Reduce, dtype: Dtype, cells: &[u64], run: usize) -> Outcome<Vec<u64>> {
        self.twice(&[cells], |domain, cells| domain.reduce(op, dtype, cells[0], run))
    }

    fn cumsum(&self, dtype: Dtype, cells: &[u64], run: usize) -> Outcome<Vec<u64>> {
        self.twice(&[cells], |domain, cells| domain.cumsum(dtype, cells[0], run))
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
        let bias = addend.map_or(&[][..], |addend| addend.bias);
        self.twice(&[a, b, bias], |domain, cells| {
            let addend = addend.map(|addend| Addend { bias: cells[2], ..addend });
            domain.matmul(size, dtype, cells[0], cells[1], addend, out)
        })
    }

    fn across_ranks(&self, op: RankReduce, dtype: Dtype, parts: &[&[u64]]) -> Outcome<Vec<u64>> {
        self.twice(parts, |domain, parts| domain.across_ranks(op, dtype, parts))
    }

    fn draw(&self, draw: Draw, key: u64, dtype: Dtype, count: usize) -> Outcome<Vec<u64>> {
        self.own.draw(draw, key, dtype, count)
    }

    fn uninterpreted(
        &self,
        key: u64,
        output: u64,
        dtype: Dtype,
        count: usize,
        what: &str,
    ) -> Outcome<Vec<u64>> {
        self.own.uninterpreted(key, output, dtype, count, what)
    }

    fn interprets_everything(&self) -> bool {
        true
    }
}
