//! Movement of elements: copies, concatenations, padding, and writes into a part of a tensor.

use super::super::block::{Block, Mark};
use super::super::comm::cat;
use super::super::domain::{Outcome, raise, refuse};
use super::super::layout::{self, Dims, Window};
use super::super::number::Number;
use super::super::program::Step;
use super::super::rank::{Item, Rank, too_many};
use super::dim;
use super::views::Numbers;
use crate::graph::{Dtype, NodeId, Value};
use crate::ops::shape::{self, Size};
use crate::ops::{Move, View};

impl Rank<'_> {
    pub(super) fn movement(&mut self, node: NodeId, step: &Step, movement: Move) -> Outcome<Item> {
        match movement {
            Move::Clone => self.cloned(node, step),
            Move::Cat | Move::Stack => self.joined(node, step, movement == Move::Stack),
            Move::Copy => self.copy(node, step),
            Move::ForeachCopy => self.foreach_copy(node, step),
            Move::SliceScatter | Move::SelectScatter | Move::AsStridedScatter | Move::DiagonalScatter => {
                self.scatter_window(node, step, movement)
            }
            Move::Pad => self.pad(node, step),
            Move::Repeat => self.repeat(node, step),
            Move::Flip | Move::Roll => self.rotate(node, step, movement),
            _ => Err(refuse!("{movement:?} has no kernel")),
        }
    }

    /// The cells of a tensor as `dtype`, in row-major order.
    pub(super) fn moved(&mut self, window: &Window, dtype: Dtype) -> Outcome<Block> {
        let block = self.memory.cells(self.domain, window)?;
        self.cast_block(block, window.dtype, dtype)
    }

    /// The cells of a tensor broadcast to `shape`, as `dtype`.
    pub(super) fn moved_to(&mut self, window: &Window, shape: Dims, dtype: Dtype) -> Outcome<Block> {
        let strides = layout::broadcast_strides(&window.shape, &window.strides, shape)
            .ok_or_else(|| raise!("shape {:?} does not broadcast to {shape:?}", window.shape))?;
        self.moved(&Window { shape, strides, ..*window }, dtype)
    }

    /// A copy of a tensor that keeps even the gaps of its layout (`at::clone_preserve_strides`).
    fn duplicate(&mut self, window: &Window) -> Outcome<Window> {
        let block = self.moved(window, window.dtype)?;
        self.gapped(window, block)
    }

    /// A fresh tensor of the layout of another, gaps included, unless its elements overlap.
    fn gapped(&mut self, like: &Window, block: Block) -> Outcome<Window> {
        if layout::is_injective(&like.shape, &like.strides) {
            let fresh = self.empty(like.shape, Some(like.strides), like.dtype)?;
            self.memory.write(self.domain, &fresh, block)?;
            return Ok(fresh);
        }
        let strides = self.preserved_strides(like, Value::None);
        Ok(self.memory.fresh(like.shape, strides, like.dtype, block))
    }

    fn cloned(&mut self, node: NodeId, step: &Step) -> Outcome<Item> {
        let x = self.tensor(step.args[0])?;
        let may_alias = step
            .info
            .and_then(|i| i.schema.as_ref())
            .is_some_and(|s| s.returns.iter().any(|r| r.alias.is_some()));
        let strides = self.preserved_strides(&x, step.args[1]);
        // `contiguous` and `resolve_conj` return a tensor that already is what they ask for.
        let is_as_asked = match self.format(step.args[1]) {
            Some(format) => layout::lies_in(format, &x.shape, &x.strides)
                .ok_or_else(|| raise!("no such memory format"))?,
            None => !x.conj,
        };
        if may_alias && is_as_asked {
            return Ok(Item::Tensor(x));
        }
        let block = self.moved(&x, x.dtype)?;
        self.deliver(node, step, x.shape, Some(strides), x.dtype, block)
    }

    fn joined(&mut self, node: NodeId, step: &Step, stack: bool) -> Outcome<Item> {
        let mut windows = self.tensors(step.args[0])?;
        let dtype = self.promoted(&windows)?;
        if stack {
            let dims = windows[0].shape.len();
            let at = dim(self.int(step.args[1])?, dims + 1)?;
            for window in &mut windows {
                let insert = |list: Dims, n| list.with_inserted(at, n).ok_or_else(|| too_many(dims + 1));
                if window.shape.len() != dims {
                    return Err(raise!("stack of tensors of different shapes"));
                }
                (window.shape, window.strides) = (insert(window.shape, 1)?, insert(window.strides, 1)?);
            }
        } else {
            // An empty vector may stand among tensors of any shape.
            let filled: Vec<Window> = windows.iter().copied().filter(|w| *w.shape != [0]).collect();
            if !filled.is_empty() {
                windows = filled;
            }
        }
        let first = windows[0].shape;
        let at = dim(self.int(step.args[1])?, first.len())?;
        if first.is_empty() {
            return Err(raise!("cat of tensors without dimensions"));
        }
        let mut size = 0i64;
        for window in &windows {
            let fits = window.shape.len() == first.len()
                && window.shape.iter().zip(&first[..]).enumerate().all(|(i, (a, b))| i == at || a == b);
            if !fits {
                return Err(raise!("cat of {first:?} and {:?} along dimension {at}", window.shape));
            }
            size = size.saturating_add(window.shape[at]);
        }
        let shape = first.with(at, size);
        self.room(&shape)?;
        let parts = windows
            .iter()
            .map(|w| Ok((self.moved(w, dtype)?, w.shape)))
            .collect::<Outcome<Vec<(Block, Dims)>>>()?;
        let block = cat(self.domain, parts, at, dtype);
        self.deliver(node, step, shape, None, dtype, block)
    }

    /// `copy`, `copy_`: the source under the shape, dtype and layout of the first argument.
    fn copy(&mut self, node: NodeId, step: &Step) -> Outcome<Item> {
        let (x, source) = (self.tensor(step.args[0])?, self.tensor(step.args[1])?);
        self.room(&x.shape)?;
        let block = self.moved_to(&source, x.shape, x.dtype)?;
        if step.into.is_none() {
            return Ok(Item::Tensor(self.gapped(&x, block)?));
        }
        self.deliver(node, step, x.shape, None, x.dtype, block)
    }

    fn foreach_copy(&mut self, node: NodeId, step: &Step) -> Outcome<Item> {
        let (targets, sources) = (self.tensors(step.args[0])?, self.tensors(step.args[1])?);
        if targets.len() != sources.len() {
            return Err(raise!("{} destinations for {} sources", targets.len(), sources.len()));
        }
        let in_place = step.into.is_some();
        let mut items = Vec::new();
        for (i, (target, source)) in targets.iter().zip(&sources).enumerate() {
            let block = self.moved_to(source, target.shape, target.dtype)?;
            if in_place {
                self.memory.write(self.domain, target, block)?;
            } else {
                items.push(Item::Tensor(self.fresh(node, i, target.shape, target.dtype, block)));
            }
        }
        Ok(if in_place { Item::None } else { Item::List(items) })
    }

    /// `slice_scatter`, `select_scatter`, `as_strided_scatter`, `diagonal_scatter`: a copy of the first argument with a
    /// part of it overwritten.
    fn scatter_window(&mut self, node: NodeId, step: &Step, movement: Move) -> Outcome<Item> {
        let (base, source) = (self.tensor(step.args[0])?, self.tensor(step.args[1])?);
        let copy = self.duplicate(&base)?;
        let view = movement.scatters().ok_or_else(|| refuse!("{movement:?} has no kernel"))?;
        if view == View::AsStrided && copy.strides != base.strides {
            return Err(refuse!("as_strided_scatter of elements that overlap"));
        }
        // Offsets are those of the tensor's storage; the copy begins where the tensor does.
        let all = Window { offset: base.offset, ..copy }.shown();
        let part = copy.showing(&shape::window(view, all, &Numbers { rank: self, step }, 2)?)?;
        let offset = part.offset.saturating_sub(base.offset).saturating_add(copy.offset);
        let part = self.within(Window { offset, ..part })?;
        if !layout::is_injective(&part.shape, &part.strides) {
            return Err(refuse!("a scatter into elements that overlap"));
        }
        if part.shape != source.shape {
            return Err(raise!("the part has shape {:?}, the source {:?}", part.shape, source.shape));
        }
        let block = self.moved(&source, base.dtype)?;
        self.memory.write(self.domain, &part, block)?;
        if step.into.is_none() {
            return Ok(Item::Tensor(copy));
        }
        let block = self.moved(&copy, copy.dtype)?;
        self.deliver(node, step, copy.shape, None, copy.dtype, block)
    }

    fn pad(&mut self, node: NodeId, step: &Step) -> Outcome<Item> {
        let x = self.tensor(step.args[0])?;
        let pad = self.ints(step.args[1])?;
        let value = match step.args[2] {
            Value::None => Number::Int(0),
            value => self.number(value)?,
        };
        let dims = x.shape.len();
        if pad.len() % 2 != 0 || pad.len() > 2 * dims {
            return Err(raise!("padding {pad:?} of a tensor with {dims} dimensions"));
        }
        // Pairs run from the last dimension to the first. Negative padding cuts.
        let (mut shape, mut source) = (x.shape, x);
        let mut start = [0i64; layout::MAX_DIMS];
        for (k, pair) in pad.chunks_exact(2).enumerate() {
            let at = dims - 1 - k;
            let (before, after) = (pair[0], pair[1]);
            let size = x.shape[at];
            let total = size.checked_add(before).and_then(|n| n.checked_add(after)).filter(|&n| n >= 0);
            shape = shape.with(at, total.ok_or_else(|| raise!("padding {pair:?} of size {size}"))?);
            let (cut, end) = (before.saturating_neg().max(0), size.saturating_add(after.min(0)));
            let cut = Size::Known(cut.min(size));
            let kept = source.shown().sliced(at as i64, Some(cut), Some(Size::Known(end.max(0))), 1)?;
            source = source.showing(&kept)?;
            start[at] = before.max(0);
        }
        let count = self.room(&shape)?;
        let block = self.filled(value, x.dtype, count)?;
        let y = self.fresh(node, 0, shape, x.dtype, block);
        let mut part = Window { shape: source.shape, ..y };
        for i in 0..dims {
            part.offset += start[i] * y.strides[i];
        }
        let block = self.moved(&source, x.dtype)?;
        self.memory.write(self.domain, &part, block)?;
        Ok(Item::Tensor(y))
    }

    fn repeat(&mut self, node: NodeId, step: &Step) -> Outcome<Item> {
        let x = self.tensor(step.args[0])?;
        let repeats = self.dims(step.args[1])?;
        let extra = repeats.len().checked_sub(x.shape.len());
        let extra = extra.ok_or_else(|| raise!("{repeats:?} repeats of {:?}", x.shape))?;
        let (mut shape, mut strides) = (repeats, repeats);
        for i in 0..repeats.len() {
            let (size, stride) = if i < extra { (1, 0) } else { (x.shape[i - extra], x.strides[i - extra]) };
            let total = size.checked_mul(repeats[i]).filter(|_| repeats[i] >= 0);
            shape = shape.with(i, total.ok_or_else(|| raise!("{} repeats", repeats[i]))?);
            strides = strides.with(i, stride);
        }
        self.gathered(node, step, &x, shape, |index| {
            (0..index.len() - extra).map(|i| index[i + extra] % x.shape[i]).collect()
        })
    }

    fn rotate(&mut self, node: NodeId, step: &Step, movement: Move) -> Outcome<Item> {
        let x = self.tensor(step.args[0])?;
        let dims = x.shape.len();
        if movement == Move::Flip {
            let flipped =
                self.ints(step.args[1])?.into_iter().map(|d| dim(d, dims)).collect::<Outcome<Vec<_>>>()?;
            return self.gathered(node, step, &x, x.shape, |index| {
                let turn = |i: usize| if flipped.contains(&i) { x.shape[i] - 1 - index[i] } else { index[i] };
                (0..dims).map(turn).collect()
            });
        }
        let (shifts, along) = (self.ints(step.args[1])?, self.ints(step.args[2])?);
        if along.is_empty() {
            // Without dimensions, the flattened tensor rolls.
            let &[shift] = &shifts[..] else {
                return Err(raise!("{} shifts without dimensions", shifts.len()));
            };
            let strides = layout::contiguous(x.shape);
            let count = x.numel().max(1) as i64;
            return self.gathered(node, step, &x, x.shape, |index| {
                let flat: i64 = index.iter().zip(&strides[..]).map(|(i, s)| i * s).sum();
                let from = (i128::from(flat) - i128::from(shift)).rem_euclid(i128::from(count)) as i64;
                (0..dims).map(|i| from / strides[i] % x.shape[i]).collect()
            });
        }
        if along.len() != shifts.len() {
            return Err(raise!("{} shifts for {} dimensions", shifts.len(), along.len()));
        }
        let along = along.into_iter().map(|d| dim(d, dims)).collect::<Outcome<Vec<_>>>()?;
        self.gathered(node, step, &x, x.shape, |index| {
            let mut from: Vec<i64> = index.to_vec();
            for (&at, &shift) in along.iter().zip(&shifts) {
                let moved = i128::from(from[at]) - i128::from(shift);
                from[at] = moved.rem_euclid(i128::from(x.shape[at])) as i64;
            }
            from
        })
    }

    /// A fresh tensor whose element at an index is the element of `x` at the index that `source` gives.
    fn gathered(
        &mut self,
        node: NodeId,
        step: &Step,
        x: &Window,
        shape: Dims,
        source: impl Fn(&[i64]) -> Vec<i64>,
    ) -> Outcome<Item> {
        let count = self.room(&shape)?;
        let strides = layout::contiguous(x.shape);
        let mut positions = Vec::with_capacity(count);
        let mut index = vec![0i64; shape.len()];
        for _ in 0..count {
            let from = source(&index);
            positions.push(from.iter().zip(&strides[..]).map(|(i, s)| i * s).sum::<i64>() as usize);
            for i in (0..index.len()).rev() {
                index[i] += 1;
                if index[i] < shape[i] {
                    break;
                }
                index[i] = 0;
            }
        }
        let block = self.moved(x, x.dtype)?;
        let block = pick(&block, block.per_element(x.dtype), &positions);
        self.deliver(node, step, shape, None, x.dtype, block)
    }
}

/// The elements at the given positions.
pub(super) fn pick(block: &Block, per: usize, positions: &[usize]) -> Block {
    let mut picked =
        Block { cells: Vec::with_capacity(positions.len() * per), marks: Vec::new(), grain: block.grain };
    for &position in positions {
        let range = position * per..(position + 1) * per;
        picked.cells.extend_from_slice(&block.cells[range.clone()]);
        if !block.marks.is_empty() {
            picked.marks.extend_from_slice(&block.marks[range]);
        }
    }
    if picked.marks.iter().all(|&m| m == Mark::Known) {
        picked.marks.clear();
    }
    picked
}
