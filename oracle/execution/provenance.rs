//! Terms: a cell is a 64-bit hash of how its element came to be.
//!
//! # The idea
//!
//! Two elements are equal if the same operators with the same constants were applied to the same elements in the
//! same order, whatever tensors they lay in on the way. So movement is seen through, and everything else is a
//! free function: no arithmetic law holds but these, each of which the dtypes guarantee exactly:
//! - a cast to the own dtype, a reduction of one element (but for sums of floats, which turn -0 into 0), and a
//!   collective reduction over one rank change nothing;
//! - an implicit promotion is the explicit cast;
//! - a cast to a float of less than 32 bits is one to float32 and one from there, as PyTorch computes it;
//! - a call that gives back its elements (`x * 1`, see [`identity`](super::identity)) is none;
//! - conjugating or negating twice, and cutting a cell into parts that are put together again, change nothing.
//!
//! A reduction over ranks is a function of the ranks' elements in group order, and of nothing else: not of the
//! collective's kind, nor of the tensors that the elements travelled in.
//!
//! # Parts of cells
//!
//! A cell read under a smaller element size is split by two invertible mixings, one per half. Joining the two
//! halves of one cell gives the cell back; any other two halves give a hash of both.
//!
//! # What it does not do
//!
//! Equal terms are equal values, up to a collision of 64-bit hashes (one pair in 2^64). Different terms may still
//! be equal values. An index or a size that follows from data is not known, so operators that select by data are
//! uninterpreted, and sizes that depend on data are refused.

use super::concrete;
use super::domain::{Addend, Domain, Draw, MatmulSize, Operand, Outcome, Pointwise, RankReduce, Rounding};
use super::hash::{mix, words};
use super::identity::{NEUTRAL, is_neutral, written};
use super::number::Number;
use crate::graph::{Dtype, DtypeClass};
use crate::ops::{Binary, Reduce, Unary};

/// The domain of terms.
#[derive(Clone, Copy, Debug, Default)]
pub struct Provenance {
    /// Changes all inputs.
    pub seed: u64,
}

/// What a hash begins with, so that no two kinds of term are confused.
#[derive(Clone, Copy)]
enum Kind {
    Input = 1,
    Constant,
    Scalar,
    Cast,
    Unary,
    Binary,
    Fma,
    Where,
    Conj,
    Opaque,
    Reduce,
    Cumsum,
    Matmul,
    Line,
    Ranks,
    Draw,
    Joined,
    Item,
}

fn start(kind: Kind, what: u64) -> u64 {
    mix(mix(0x7465_726D, kind as u64), what)
}

const LOW: u64 = 0x9FB2_1C65_1E98_DF25;
const HIGH: u64 = 0xA24B_AED4_963E_E407;

/// An invertible mixing: multiplication by an odd number between two shifts.
fn scramble(cell: u64, factor: u64, bytes: u8) -> u64 {
    let x =
        (cell ^ u64::from(bytes).wrapping_mul(0x5851_F42D_4C95_7F2D)).rotate_left(23).wrapping_mul(factor);
    x ^ (x >> 32)
}

fn unscramble(part: u64, factor: u64, bytes: u8) -> u64 {
    let x = part ^ (part >> 32);
    x.wrapping_mul(inverse(factor)).rotate_right(23) ^ u64::from(bytes).wrapping_mul(0x5851_F42D_4C95_7F2D)
}

/// The inverse of an odd number modulo 2^64, by Newton's iteration.
fn inverse(odd: u64) -> u64 {
    let mut x = odd;
    for _ in 0..6 {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
    }
    x
}

/// What a number contributes to a term of this dtype.
fn scalar(number: Number, dtype: Dtype) -> u64 {
    // `2` and `2.0` are one operand; so are all numbers that the dtype computes with alike.
    mix(start(Kind::Scalar, dtype as u64), number.key())
}

impl Provenance {
    /// The elements of one operand, where the other one changes none of them: a number, or a constant in every element.
    fn kept(
        &self,
        (op, alpha, rounding): (Binary, Number, Rounding),
        dtype: Dtype,
        operands: [Operand; 2],
        count: usize,
    ) -> Option<Vec<u64>> {
        let is_neutral =
            |number: Number, first: bool| is_neutral(op, (number, first), alpha, rounding, dtype);
        [(operands[1], operands[0], false), (operands[0], operands[1], true)].into_iter().find_map(
            |(other, kept, first)| {
                let Operand::Cells(kept) = kept else { return None };
                let changes_nothing = match other {
                    Operand::Number(number) => is_neutral(number, first),
                    Operand::Cells(cells) => NEUTRAL.into_iter().any(|number| {
                        let constant = self.constant(number, dtype);
                        is_neutral(number, first) && cells.iter().take(count).all(|&cell| cell == constant)
                    }),
                };
                changes_nothing.then(|| kept.to_vec())
            },
        )
    }
}

impl Domain for Provenance {
    fn name(&self) -> &'static str {
        "provenance"
    }

    fn split(&self, cell: u64, bytes: u8) -> (u64, u64) {
        (scramble(cell, LOW, bytes), scramble(cell, HIGH, bytes))
    }

    fn join(&self, low: u64, high: u64, bytes: u8) -> u64 {
        let cell = unscramble(low, LOW, bytes);
        if scramble(cell, HIGH, bytes) == high { cell } else { words(start(Kind::Joined, low), [high]) }
    }

    fn input(&self, key: u64, index: u64, dtype: Dtype) -> u64 {
        words(start(Kind::Input, mix(self.seed, dtype as u64)), [key, index])
    }

    fn constant(&self, number: Number, dtype: Dtype) -> u64 {
        match number {
            Number::Term(term) => words(start(Kind::Item, dtype as u64), [term]),
            number => words(start(Kind::Constant, dtype as u64), [concrete::cell(number, dtype)]),
        }
    }

    fn cast(&self, cells: &[u64], from: Dtype, to: Dtype) -> Outcome<Vec<u64>> {
        if from == to {
            return Ok(cells.to_vec());
        }
        let step = |from: Dtype, to: Dtype| mix(start(Kind::Cast, from as u64), to as u64);
        // PyTorch makes the floats of less than 32 bits of a float32, whatever it casts.
        let small = matches!(to, Dtype::F16 | Dtype::BF16 | Dtype::F8E4M3 | Dtype::F8E5M2);
        if small && from != Dtype::F32 {
            let (first, second) = (step(from, Dtype::F32), step(Dtype::F32, to));
            return Ok(cells.iter().map(|&cell| mix(second, mix(first, cell))).collect());
        }
        let key = step(from, to);
        Ok(cells.iter().map(|&cell| mix(key, cell)).collect())
    }

    fn number(&self, cell: u64, dtype: Dtype) -> Number {
        Number::Term(words(start(Kind::Item, dtype as u64), [cell]))
    }

    fn integers(&self, _cells: &[u64], _dtype: Dtype) -> Option<Vec<i64>> {
        None
    }

    fn pointwise(
        &self,
        function: Pointwise,
        dtype: Dtype,
        operands: &[Operand],
        count: usize,
    ) -> Outcome<Vec<u64>> {
        if let (Pointwise::Conj, [Operand::Cells(cells)]) = (function, operands) {
            // Its own inverse: the sign of an imaginary part is one bit.
            return Ok(cells.iter().map(|&cell| cell ^ start(Kind::Conj, 0)).collect());
        }
        let (function, operands) = written(function, operands);
        if let (Pointwise::Unary(Unary::Neg, _), [Operand::Cells(cells)]) = (function, operands) {
            return Ok(cells.iter().map(|&cell| cell ^ start(Kind::Unary, Unary::Neg as u64)).collect());
        }
        if let (Pointwise::Binary(op, alpha, rounding), &[a, b]) = (function, operands)
            && let Some(kept) = self.kept((op, alpha, rounding), dtype, [a, b], count)
        {
            return Ok(kept);
        }
        let key = match function {
            Pointwise::Unary(op, tanh) => mix(start(Kind::Unary, op as u64), u64::from(tanh)),
            Pointwise::Binary(op, alpha, rounding) => {
                // Alpha counts where it changes something.
                let alpha = match op {
                    Binary::Add | Binary::Sub if alpha.is(1) => 0,
                    _ => alpha.key(),
                };
                words(start(Kind::Binary, op as u64), [alpha, rounding as u64])
            }
            Pointwise::Fma => start(Kind::Fma, 0),
            Pointwise::Where => start(Kind::Where, 0),
            Pointwise::Conj => start(Kind::Conj, 1),
            Pointwise::Opaque(key, _) => start(Kind::Opaque, key),
        };
        let key = mix(key, dtype as u64);
        let numbers: Vec<u64> = operands
            .iter()
            .map(|operand| match operand {
                Operand::Number(n) => scalar(*n, dtype),
                Operand::Cells(_) => 0,
            })
            .collect();
        Ok((0..count)
            .map(|i| {
                operands.iter().zip(&numbers).fold(key, |hash, (operand, &number)| match operand {
                    Operand::Cells(cells) => mix(hash, cells[i]),
                    Operand::Number(_) => mix(hash, number),
                })
            })
            .collect())
    }

    fn reduce(&self, op: Reduce, dtype: Dtype, cells: &[u64], run: usize) -> Outcome<Vec<u64>> {
        // A sum begins with 0, which a negative zero does not survive.
        let adds = matches!(op, Reduce::Sum | Reduce::Mean) && dtype.class() >= DtypeClass::Float;
        if run == 1 && !adds {
            return Ok(cells.to_vec());
        }
        let key = mix(start(Kind::Reduce, op as u64), dtype as u64);
        Ok(cells.chunks_exact(run.max(1)).map(|run| words(key, run.iter().copied())).collect())
    }

    fn cumsum(&self, dtype: Dtype, cells: &[u64], run: usize) -> Outcome<Vec<u64>> {
        let key = start(Kind::Cumsum, dtype as u64);
        let mut sums = Vec::with_capacity(cells.len());
        for run in cells.chunks(run.max(1)) {
            let mut sum = key;
            sums.extend(run.iter().map(|&cell| {
                sum = mix(sum, cell);
                sum
            }));
        }
        Ok(sums)
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
        let MatmulSize { batch, m, k, n } = size;
        let key = mix(start(Kind::Matmul, dtype as u64), out as u64);
        let line = start(Kind::Line, dtype as u64);
        let mut cells = Vec::with_capacity(batch * m * n);
        for p in 0..batch {
            let row = |i: usize| words(line, (0..k).map(|l| a[(p * m + i) * k + l]));
            let columns: Vec<u64> =
                (0..n).map(|j| words(line, (0..k).map(|l| b[(p * k + l) * n + j]))).collect();
            for i in 0..m {
                let row = row(i);
                cells.extend(columns.iter().map(|&column| words(key, [row, column])));
            }
        }
        if let Some(Addend { bias, beta, alpha }) = addend {
            for (cell, &bias) in cells.iter_mut().zip(bias) {
                let bias = if beta.is(0) { 0 } else { bias };
                *cell = words(*cell, [bias, beta.key(), alpha.key()]);
            }
        }
        Ok(cells)
    }

    fn across_ranks(&self, op: RankReduce, dtype: Dtype, parts: &[&[u64]]) -> Outcome<Vec<u64>> {
        let key = mix(start(Kind::Ranks, op as u64), dtype as u64);
        let count = parts.first().map_or(0, |part| part.len());
        Ok((0..count).map(|i| words(key, parts.iter().map(|part| part[i]))).collect())
    }

    fn draw(&self, draw: Draw, key: u64, dtype: Dtype, count: usize) -> Outcome<Vec<u64>> {
        let what = match draw {
            Draw::Uniform => 1,
            Draw::Normal => 2,
            Draw::Bernoulli(p) => mix(3, p.to_bits()),
            Draw::Opaque(key) => mix(4, key),
        };
        let key = words(start(Kind::Draw, what), [self.seed, key, dtype as u64]);
        Ok((0..count as u64).map(|i| mix(key, i)).collect())
    }

    fn uninterpreted(
        &self,
        key: u64,
        output: u64,
        _dtype: Dtype,
        count: usize,
        _what: &str,
    ) -> Outcome<Vec<u64>> {
        let key = mix(start(Kind::Opaque, key), output);
        Ok((0..count as u64).map(|i| mix(key, i)).collect())
    }

    fn interprets_everything(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitting_is_undone_by_joining_and_by_nothing_else() {
        let domain = Provenance::default();
        for i in 0..1000 {
            let cell = mix(1, i);
            for bytes in [2, 4, 8] {
                let (low, high) = domain.split(cell, bytes);
                assert_eq!(domain.join(low, high, bytes), cell);
                assert_ne!(domain.join(high, low, bytes), cell);
                let (other_low, _) = domain.split(mix(1, i + 1), bytes);
                let mixed = domain.join(other_low, high, bytes);
                assert!(mixed != cell && mixed != mix(1, i + 1));
            }
            // Halves of an element of another size are other halves.
            assert_ne!(domain.split(cell, 4), domain.split(cell, 8));
        }
    }

    #[test]
    fn terms_tell_operators_constants_and_order_apart() {
        use super::super::domain::Rounding;
        let domain = Provenance::default();
        let (a, b) = ([7u64], [9u64]);
        let (x, y) = (Operand::Cells(&a), Operand::Cells(&b));
        let binary = |op, alpha, operands: [Operand; 2]| {
            domain.pointwise(Pointwise::Binary(op, alpha, Rounding::True), Dtype::F32, &operands, 1).unwrap()
                [0]
        };
        let one = Number::Int(1);
        let all = [
            binary(Binary::Add, one, [x, y]),
            binary(Binary::Add, one, [y, x]),
            binary(Binary::Sub, one, [x, y]),
            binary(Binary::Add, Number::Float(0.5), [x, y]),
            binary(Binary::Add, one, [x, Operand::Number(Number::Int(9))]),
            binary(Binary::Add, one, [x, Operand::Number(Number::Int(8))]),
        ];
        for i in 0..all.len() {
            assert!(!all[i + 1..].contains(&all[i]), "{i}");
        }
        let two = |n| binary(Binary::Mul, one, [x, Operand::Number(n)]);
        assert_eq!(two(Number::Int(2)), two(Number::Float(2.0)));
    }
}
