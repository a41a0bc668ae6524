//! Matrix products.

use super::super::block::Block;
use super::super::domain::{Addend, MatmulSize, Outcome, raise};
use super::super::layout::{self, Dims, Window};
use super::super::number::Number;
use super::super::program::Step;
use super::super::rank::{Item, Rank, computed, too_many};
use crate::graph::{DtypeClass, NodeId, Value};
use crate::ops::Matmul;

impl Rank<'_> {
    pub(super) fn matmul(&mut self, node: NodeId, step: &Step, op: Matmul) -> Outcome<Item> {
        let [a, b, bias, beta, alpha, out, ..] = step.args;
        let (mut a, mut b) = (self.tensor(a)?, self.tensor(b)?);
        if a.dtype != b.dtype {
            return Err(raise!("a product of {} and {}", a.dtype.name(), b.dtype.name()));
        }
        let (wanted_a, wanted_b) = match op {
            Matmul::Mm | Matmul::Addmm => (2, 2),
            Matmul::Bmm | Matmul::Baddbmm => (3, 3),
            Matmul::Mv => (2, 1),
            Matmul::Dot => (1, 1),
            Matmul::General => (a.shape.len().max(1), b.shape.len().max(1)),
        };
        if (a.shape.len(), b.shape.len()) != (wanted_a, wanted_b) {
            return Err(raise!("{op:?} of shapes {:?} and {:?}", a.shape, b.shape));
        }
        // A vector on the left is one row, on the right one column; the result lacks that dimension.
        let (row, column) = (a.shape.len() == 1, b.shape.len() == 1);
        if row {
            a = insert(&a, 0)?;
        }
        if column {
            b = insert(&b, 1)?;
        }
        let (batch_a, m, k) = last_two(&a);
        let (batch_b, k2, n) = last_two(&b);
        if k != k2 {
            return Err(raise!("a product of shapes {:?} and {:?}", a.shape, b.shape));
        }
        let batch = match op {
            Matmul::General => layout::broadcast(batch_a, batch_b),
            _ => (batch_a == batch_b).then_some(batch_a),
        };
        let batch = batch.ok_or_else(|| raise!("batches {batch_a:?} and {batch_b:?}"))?;
        let full = |rows: i64, columns: i64| {
            batch
                .with_pushed(rows)
                .and_then(|d| d.with_pushed(columns))
                .ok_or_else(|| too_many(batch.len() + 2))
        };
        (a, b) = (shown(&a, full(m, k)?)?, shown(&b, full(k, n)?)?);
        let product = full(m, n)?;
        let count = self.room(&product)?;
        let size = MatmulSize {
            batch: layout::numel(&batch).unwrap_or(0),
            m: m as usize,
            k: k as usize,
            n: n as usize,
            of_vectors: row && column,
        };
        // The work, not only the result, has to stay within the limit.
        self.room(&[size.batch as i64, m, k]).and(self.room(&[count as i64, k.max(1) / 16 + 1]))?;
        let (dtype, out) = (a.dtype, self.dtype(out).unwrap_or(a.dtype));
        computed(out)?;
        if dtype.class() == DtypeClass::Bool {
            return Err(raise!("a product of bool matrices"));
        }
        let x = self.elements(&a)?;
        let (x, poison_a) = (x.cells.into_owned(), x.poison);
        let y = self.elements(&b)?;
        let (y, poison_b) = (y.cells.into_owned(), y.poison);
        let mut poison = product_poison(size, &poison_a, &poison_b);
        let mut bias_cells = Vec::new();
        let scalar = |rank: &Self, value: Value| match value {
            Value::None => Ok(Number::Int(1)),
            value => rank.number(value),
        };
        let (beta, alpha) = (scalar(self, beta)?, scalar(self, alpha)?);
        let adds = matches!(op, Matmul::Addmm | Matmul::Baddbmm);
        if adds {
            let bias = self.tensor(bias)?;
            if bias.dtype != dtype {
                return Err(raise!("a bias of {} for a product of {}", bias.dtype.name(), dtype.name()));
            }
            let bias = shown(&bias, product)?;
            let elements = self.elements(&bias)?;
            // With beta = 0 the bias does not count, NaN and poison included.
            if !elements.poison.is_empty() && !beta.is(0) {
                poison.resize(count, false);
                poison.iter_mut().zip(&elements.poison).for_each(|(bad, &p)| *bad |= p);
            }
            bias_cells = elements.cells.into_owned();
        }
        let addend = adds.then_some(Addend { bias: &bias_cells, beta, alpha });
        let cells = self.domain.matmul(size, dtype, &x, &y, addend, out)?;
        let mut shape = product;
        if column {
            shape = shape.without(shape.len() - 1);
        }
        if row {
            shape = shape.without(shape.len() - if column { 1 } else { 2 });
        }
        self.deliver(node, step, shape, None, out, Block::of_elements(cells, poison, out))
    }
}

fn insert(window: &Window, at: usize) -> Outcome<Window> {
    let wider = |dims: Dims, n| dims.with_inserted(at, n).ok_or_else(|| too_many(dims.len() + 1));
    Ok(Window { shape: wider(window.shape, 1)?, strides: wider(window.strides, 0)?, ..*window })
}

fn last_two(window: &Window) -> (Dims, i64, i64) {
    let n = window.shape.len();
    let batch = window.shape.without(n - 1).without(n - 2);
    (batch, window.shape[n - 2], window.shape[n - 1])
}

fn shown(window: &Window, shape: Dims) -> Outcome<Window> {
    let strides = layout::broadcast_strides(&window.shape, &window.strides, shape)
        .ok_or_else(|| raise!("shape {:?} does not broadcast to {shape:?}", window.shape))?;
    Ok(Window { shape, strides, ..*window })
}

/// An element of a product is poison if its row or its column holds poison.
fn product_poison(size: MatmulSize, a: &[bool], b: &[bool]) -> Vec<bool> {
    let MatmulSize { batch, m, k, n, .. } = size;
    if (a.is_empty() && b.is_empty()) || k == 0 {
        return Vec::new();
    }
    let mut poison = Vec::with_capacity(batch * m * n);
    for p in 0..batch {
        let row = |i: usize| (0..k).any(|l| a.get((p * m + i) * k + l) == Some(&true));
        let column = |j: usize| (0..k).any(|l| b.get((p * k + l) * n + j) == Some(&true));
        let columns: Vec<bool> = (0..n).map(column).collect();
        for i in 0..m {
            let bad = row(i);
            poison.extend(columns.iter().map(|&c| c || bad));
        }
    }
    poison
}
