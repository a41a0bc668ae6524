//! Reductions over dimensions, and running sums.

use super::super::block::Block;
use super::super::domain::{Outcome, raise};
use super::super::layout::{self, Dims, Window};
use super::super::program::Step;
use super::super::rank::{Item, Rank, computed};
use super::dim;
use crate::graph::{Dtype, DtypeClass, NodeId, Value};
use crate::ops::Reduce;

impl Rank<'_> {
    pub(super) fn reduce(&mut self, node: NodeId, step: &Step, op: Reduce) -> Outcome<Item> {
        let x = self.tensor(step.args[0])?;
        let dims = x.shape.len();
        let mut chosen = [false; layout::MAX_DIMS];
        let listed = self.ints(step.args[1])?;
        for &d in &listed {
            let at = dim(d, dims)?;
            if std::mem::replace(&mut chosen[at], true) {
                return Err(raise!("dimension {d} is listed twice"));
            }
        }
        // Of `any` and `all` an empty list reduces nothing.
        let none = step.args[1] != Value::None && matches!(op, Reduce::Any | Reduce::All);
        if listed.is_empty() && !none {
            chosen = [true; layout::MAX_DIMS];
        }
        let keep = self.flag(step.args[2])?;
        let asked = self.dtype(step.args[3]);
        let class = x.dtype.class();
        let (dtype, out) = match op {
            // uint8 is the one dtype that any and all return as they get it.
            Reduce::Any | Reduce::All => {
                (Dtype::Bool, if x.dtype == Dtype::U8 { Dtype::U8 } else { Dtype::Bool })
            }
            Reduce::Amax | Reduce::Amin => (x.dtype, x.dtype),
            Reduce::Mean => {
                let dtype = asked.unwrap_or(x.dtype);
                if dtype.class() < DtypeClass::Float {
                    return Err(raise!("mean of {}", dtype.name()));
                }
                (dtype, dtype)
            }
            Reduce::Sum | Reduce::Prod => {
                let natural = if class < DtypeClass::Float { Dtype::I64 } else { x.dtype };
                (asked.unwrap_or(natural), asked.unwrap_or(natural))
            }
        };
        computed(dtype)?;
        let inside: Vec<usize> = (0..dims).filter(|&i| chosen[i]).collect();
        let run = inside.iter().try_fold(1usize, |n, &i| n.checked_mul(usize::try_from(x.shape[i]).ok()?));
        let run = run.ok_or_else(|| raise!("impossible shape {:?}", x.shape))?;
        let shape = Dims::collect(
            (0..dims).filter(|&i| keep || !chosen[i]).map(|i| if chosen[i] { 1 } else { x.shape[i] }),
        )
        .unwrap_or_default();
        let count = self.room(&shape)?;
        if run == 0 && count > 0 && matches!(op, Reduce::Amax | Reduce::Amin) {
            return Err(raise!("{op:?} over no elements"));
        }
        // The reduced dimensions go last, so that what is reduced is adjacent.
        let order: Vec<usize> = (0..dims).filter(|&i| !chosen[i]).chain(inside).collect();
        let shown = Window { shape: x.shape.permuted(&order), strides: x.strides.permuted(&order), ..x };
        let domain = self.domain;
        let elements = self.elements(&shown)?;
        let poison = runs_with(&elements.poison, run, count);
        let cast;
        let cells: &[u64] = if x.dtype == dtype {
            &elements.cells
        } else {
            cast = domain.cast(&elements.cells, x.dtype, dtype)?;
            &cast
        };
        let result = if run == 0 {
            vec![domain.constant(neutral(op), dtype); count]
        } else {
            domain.reduce(op, dtype, cells, run)?
        };
        let result = if dtype == out { result } else { domain.cast(&result, dtype, out)? };
        self.deliver(node, step, shape, None, out, Block::of_elements(result, poison, out))
    }

    pub(super) fn cumsum(&mut self, node: NodeId, step: &Step) -> Outcome<Item> {
        let x = self.tensor(step.args[0])?;
        let dims = x.shape.len();
        let at = dim(self.int(step.args[1])?, dims)?;
        let natural = if x.dtype.class() < DtypeClass::Float { Dtype::I64 } else { x.dtype };
        let dtype = self.dtype(step.args[2]).unwrap_or(natural);
        computed(dtype)?;
        let order: Vec<usize> = (0..dims).filter(|&i| i != at).chain((dims > 0).then_some(at)).collect();
        let shown = Window { shape: x.shape.permuted(&order), strides: x.strides.permuted(&order), ..x };
        let run = x.shape.get(at).map_or(1, |&n| n as usize);
        let domain = self.domain;
        let elements = self.elements(&shown)?;
        let mut poison = elements.poison;
        for run in poison.chunks_mut(run.max(1)) {
            let mut seen = false;
            for bad in run {
                seen |= *bad;
                *bad = seen;
            }
        }
        let cells = match x.dtype == dtype {
            true => elements.cells.into_owned(),
            false => domain.cast(&elements.cells, x.dtype, dtype)?,
        };
        let sums = if run == 0 { Vec::new() } else { domain.cumsum(dtype, &cells, run)? };
        // Back to the order of the input: a fresh tensor in the shown order, read through the inverse permutation.
        let block = Block::of_elements(sums, poison, dtype);
        let moved = self.memory.fresh(shown.shape, layout::contiguous(shown.shape), dtype, block);
        let mut inverse = vec![0; dims];
        order.iter().enumerate().for_each(|(i, &from)| inverse[from] = i);
        let back = Window { shape: x.shape, strides: moved.strides.permuted(&inverse), ..moved };
        let block = self.moved(&back, dtype)?;
        self.deliver(node, step, x.shape, None, dtype, block)
    }
}

/// Which runs of `run` elements hold a poison one.
fn runs_with(poison: &[bool], run: usize, count: usize) -> Vec<bool> {
    if !poison.contains(&true) || run == 0 {
        return Vec::new();
    }
    let mut runs: Vec<bool> = poison.chunks(run).map(|run| run.contains(&true)).collect();
    runs.truncate(count);
    runs
}

/// What a reduction over nothing gives.
fn neutral(op: Reduce) -> super::super::number::Number {
    use super::super::number::Number;
    match op {
        Reduce::Prod => Number::Int(1),
        Reduce::All => Number::Bool(true),
        Reduce::Mean => Number::Float(f64::NAN),
        _ => Number::Int(0),
    }
}
