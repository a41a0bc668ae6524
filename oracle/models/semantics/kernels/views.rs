//! Views: other windows on the storage of an argument.
//!
//! Where the schema says that the result is fresh (`*_copy`), the window is copied. `_unsafe_view` is a view all the
//! same: at run time it shares storage, whatever its schema says.

use super::super::domain::{Domain, Outcome, raise, refuse};
use super::super::hazard::HazardKind;
use super::super::layout::{self, Dims, Window};
use super::super::program::Step;
use super::super::rank::{Item, Rank, too_many};
use super::dim;
use crate::graph::{DtypeClass, NodeId, Value};
use crate::limits::Limit;
use crate::ops::View;

impl<D: Domain> Rank<'_, D> {
    pub(super) fn view(&mut self, node: NodeId, step: &Step, view: View) -> Outcome<Item> {
        let x = self.tensor(step.args[0])?;
        let list = matches!(view, View::Split | View::SplitWithSizes | View::Chunk | View::Unbind);
        let windows = if list {
            self.pieces(step, view, &x)?
        } else {
            vec![match view {
                View::Sizes => self.resized(node, step, &x)?,
                View::Dtype => self.retyped(&x, self.dtype(step.args[1]).unwrap_or(x.dtype))?,
                View::AsComplex => self.as_complex(&x)?,
                View::AsReal => self.as_real(&x)?,
                _ => self.window(step, view, &x)?,
            }]
        };
        if let Some(window) = windows.iter().find(|window| layout::numel(&window.shape).is_none()) {
            return Err(raise!("{:?} has more elements than can be counted", &window.shape[..]));
        }
        let schema = step.info.and_then(|info| info.schema.as_ref());
        let copies =
            schema.is_some_and(|s| s.name != "_unsafe_view" && s.returns.iter().all(|r| r.alias.is_none()));
        let mut items = Vec::with_capacity(windows.len());
        for (i, window) in windows.into_iter().enumerate() {
            items.push(Item::Tensor(if copies { self.copied(node, i, &window)? } else { window }));
        }
        match items.pop() {
            Some(item) if !list => Ok(item),
            last => {
                items.extend(last);
                Ok(Item::List(items))
            }
        }
    }

    /// A fresh row-major copy.
    pub(super) fn copied(&mut self, node: NodeId, output: usize, window: &Window) -> Outcome<Window> {
        self.room(&window.shape)?;
        let block = self.memory.cells(self.domain, window)?;
        Ok(self.fresh(node, output, window.shape, window.dtype, block))
    }

    /// `view`, `reshape`.
    fn resized(&mut self, node: NodeId, step: &Step, x: &Window) -> Outcome<Window> {
        let shape = resolve_sizes(self.dims(step.args[1])?, x.numel())?;
        if let Some(strides) = layout::view_strides(&x.shape, &x.strides, shape) {
            return Ok(Window { shape, strides, ..*x });
        }
        let copies = |name: &str| matches!(name, "reshape" | "view_copy");
        if !step.info.and_then(|i| i.schema.as_ref()).is_some_and(|s| copies(&s.name)) {
            self.memory.note(HazardKind::ViewNeedsCopy);
        }
        self.room(&shape)?;
        let block = self.memory.cells(self.domain, x)?;
        Ok(self.fresh(node, 0, shape, x.dtype, block))
    }

    /// The views that are one window of the same dtype.
    fn window(&self, step: &Step, view: View, x: &Window) -> Outcome<Window> {
        let [_, a, b, c, d, ..] = step.args;
        let dims = x.shape.len();
        let too_many = || too_many(dims + 1);
        let mut y = *x;
        match view {
            View::Alias => {}
            View::Conj if x.dtype.class() != DtypeClass::Complex => {
                return Err(raise!("conjugates {}", x.dtype.name()));
            }
            View::Conj => y.conj = !x.conj,
            _ if view.is_permutation() => {
                let given = [self.ints(a)?, self.ints(b)?].concat();
                let order = view.order(dims, &given).map_err(|why| raise!("{why}"))?;
                (y.shape, y.strides) = (x.shape.permuted(&order), x.strides.permuted(&order));
            }
            View::Unsqueeze => {
                let at = dim(self.int(a)?, dims + 1)?;
                let stride = if at < dims { x.shape[at].saturating_mul(x.strides[at]) } else { 1 };
                y.shape = x.shape.with_inserted(at, 1).ok_or_else(too_many)?;
                y.strides = x.strides.with_inserted(at, stride).ok_or_else(too_many)?;
            }
            View::Squeeze => {
                let chosen = match a {
                    Value::None => (0..dims).collect(),
                    _ => self.ints(a)?.into_iter().map(|d| dim(d, dims)).collect::<Outcome<Vec<_>>>()?,
                };
                let keep: Vec<usize> =
                    (0..dims).filter(|i| x.shape[*i] != 1 || !chosen.contains(i)).collect();
                y.shape = Dims::collect(keep.iter().map(|&i| x.shape[i])).ok_or_else(too_many)?;
                y.strides = Dims::collect(keep.iter().map(|&i| x.strides[i])).ok_or_else(too_many)?;
            }
            View::Expand => {
                let mut shape = self.dims(a)?;
                let extra = shape
                    .len()
                    .checked_sub(dims)
                    .ok_or_else(|| raise!("{shape:?} has fewer dimensions than {:?}", x.shape))?;
                for i in 0..shape.len() {
                    if shape[i] == -1 && i >= extra {
                        shape = shape.with(i, x.shape[i - extra]);
                    }
                }
                y.strides = layout::broadcast_strides(&x.shape, &x.strides, shape)
                    .ok_or_else(|| raise!("{:?} does not expand to {shape:?}", x.shape))?;
                y.shape = shape;
            }
            View::Slice => {
                let at = dim(self.int(a)?, dims)?;
                y = slice(x, at, self.maybe_int(b)?, self.maybe_int(c)?, self.maybe_int(d)?.unwrap_or(1))?;
            }
            View::Narrow => {
                let at = dim(self.int(a)?, dims)?;
                let (start, length) = (self.int(b)?, self.int(c)?);
                let size = *x.shape.get(at).ok_or_else(|| raise!("narrow of a tensor without dimensions"))?;
                let start = if start < 0 { start.saturating_add(size) } else { start };
                let end = start.checked_add(length).filter(|&end| start >= 0 && length >= 0 && end <= size);
                let end = end.ok_or_else(|| raise!("narrow from {start} by {length} of size {size}"))?;
                y = slice(x, at, Some(start), Some(end), 1)?;
            }
            View::Select => {
                let at = dim(self.int(a)?, dims)?;
                y = select(x, at, self.int(b)?)?;
            }
            View::AsStrided => {
                (y.shape, y.strides) = (self.dims(a)?, self.dims(b)?);
                y.offset = self.maybe_int(c)?.unwrap_or(x.offset);
                y = self.restrided(y)?;
            }
            View::Diagonal => {
                y = diagonal(x, self.int(a)?, dim(self.int(b)?, dims)?, dim(self.int(c)?, dims)?)?;
            }
            _ => return Err(refuse!("{view:?} has no kernel")),
        }
        Ok(y)
    }

    /// A window that lies in its storage.
    pub(super) fn restrided(&self, y: Window) -> Outcome<Window> {
        let fits = y.shape.len() == y.strides.len()
            && layout::numel(&y.shape).is_some()
            && y.extent().is_some_and(|(_, end)| end <= self.memory.capacity(y.storage, y.dtype));
        match fits {
            true => Ok(y),
            false => Err(raise!(
                "shape {:?}, strides {:?}, offset {} leave the storage",
                y.shape,
                y.strides,
                y.offset
            )),
        }
    }

    /// The views that are several windows.
    fn pieces(&self, step: &Step, view: View, x: &Window) -> Outcome<Vec<Window>> {
        let [_, a, b, ..] = step.args;
        let dims = x.shape.len();
        let at = dim(self.int(if view == View::Unbind { a } else { b })?, dims)?;
        let size = *x.shape.get(at).ok_or_else(|| raise!("a tensor without dimensions cannot be split"))?;
        let listable = |count: i64| match u64::try_from(count) {
            Ok(pieces) if pieces <= Limit::Pieces.standard() => Ok(()),
            _ => {
                Err(refuse!("{count} pieces of one tensor: at most {} are listed", Limit::Pieces.standard()))
            }
        };
        if view == View::Unbind {
            listable(size)?;
            return (0..size).map(|i| select(x, at, i)).collect();
        }
        let sizes: Vec<i64> = match view {
            View::SplitWithSizes => self.ints(a)?,
            _ => {
                let step = self.int(a)?;
                let step = match view {
                    View::Chunk if step <= 0 => return Err(raise!("{step} chunks")),
                    View::Chunk => size.saturating_add(step - 1) / step,
                    _ => step,
                };
                if step < 0 || (step == 0 && size != 0) {
                    return Err(raise!("pieces of size {step}"));
                }
                listable(if step == 0 { 1 } else { size / step + i64::from(size % step != 0) })?;
                split_sizes(size, step)
            }
        };
        split(x, at, &sizes)
    }
}

/// The sizes of the pieces that `split` gives: all of `step`, the last one of what is left.
fn split_sizes(size: i64, step: i64) -> Vec<i64> {
    let mut sizes = Vec::new();
    let mut left = size;
    while left > step && step > 0 {
        sizes.push(step);
        left -= step;
    }
    sizes.push(left);
    sizes
}

/// Adjacent pieces of these sizes along a dimension.
pub(super) fn split(x: &Window, at: usize, sizes: &[i64]) -> Outcome<Vec<Window>> {
    let size = x.shape.get(at).copied().unwrap_or(0);
    let sum = sizes.iter().try_fold(0i64, |sum, &n| sum.checked_add(n).filter(|_| n >= 0));
    if sum != Some(size) {
        return Err(raise!("pieces of {sizes:?} of a dimension of size {size}"));
    }
    let mut start = 0;
    sizes
        .iter()
        .map(|&length| {
            let piece = slice(x, at, Some(start), Some(start + length), 1);
            start += length;
            piece
        })
        .collect()
}

/// `x[..., start:end:step, ...]`.
pub(super) fn slice(
    x: &Window,
    at: usize,
    start: Option<i64>,
    end: Option<i64>,
    step: i64,
) -> Outcome<Window> {
    let size = *x.shape.get(at).ok_or_else(|| raise!("a tensor without dimensions cannot be sliced"))?;
    if step <= 0 {
        return Err(raise!("a step of {step}"));
    }
    let clamp = |i: i64| if i < 0 { i.saturating_add(size).max(0) } else { i.min(size) };
    let (start, end) = (clamp(start.unwrap_or(0)), clamp(end.unwrap_or(i64::MAX)));
    let length = (end - start).max(0);
    let count = length / step + i64::from(length % step != 0);
    let mut y = *x;
    y.shape = x.shape.with(at, count);
    if count > 0 {
        y.offset += start * x.strides[at];
    }
    y.strides = x.strides.with(at, x.strides[at].saturating_mul(step));
    Ok(y)
}

/// `x[..., index, ...]`.
pub(super) fn select(x: &Window, at: usize, index: i64) -> Outcome<Window> {
    let size = *x.shape.get(at).ok_or_else(|| raise!("a tensor without dimensions cannot be indexed"))?;
    let wrapped = if index < 0 { index.saturating_add(size) } else { index };
    if wrapped < 0 || wrapped >= size {
        return Err(raise!("index {index} of a dimension of size {size}"));
    }
    let mut y = *x;
    if x.numel() > 0 {
        y.offset += wrapped * x.strides[at];
    }
    (y.shape, y.strides) = (x.shape.without(at), x.strides.without(at));
    Ok(y)
}

/// The diagonal of dimensions `i` and `j` that begins `offset` to the right.
pub(super) fn diagonal(x: &Window, offset: i64, i: usize, j: usize) -> Outcome<Window> {
    if i == j || x.shape.len() < 2 {
        return Err(raise!("the diagonal of one dimension"));
    }
    let (rows, columns) = (x.shape[i], x.shape[j]);
    let (down, right) = (offset.saturating_neg().max(0), offset.max(0));
    let length = rows.saturating_sub(down).min(columns.saturating_sub(right)).max(0);
    let mut y = *x;
    if length > 0 {
        y.offset += down * x.strides[i] + right * x.strides[j];
    }
    let rest = |list: &[i64]| -> Vec<i64> {
        list.iter().enumerate().filter(|(k, _)| *k != i && *k != j).map(|(_, &n)| n).collect()
    };
    let too_many = || too_many(x.shape.len());
    let stride = x.strides[i].saturating_add(x.strides[j]);
    y.shape = Dims::collect(rest(&x.shape).into_iter().chain([length])).ok_or_else(too_many)?;
    y.strides = Dims::collect(rest(&x.strides).into_iter().chain([stride])).ok_or_else(too_many)?;
    Ok(y)
}

/// Sizes with -1 replaced by what is left of `numel` elements.
pub(super) fn resolve_sizes(shape: Dims, numel: usize) -> Outcome<Dims> {
    let fail = || raise!("{numel} elements under shape {shape:?}");
    let open: Vec<usize> = (0..shape.len()).filter(|&i| shape[i] == -1).collect();
    let resolved = match open[..] {
        [] => shape,
        [at] => {
            let rest = layout::numel(&shape.with(at, 1)).ok_or_else(fail)?;
            if rest == 0 || !numel.is_multiple_of(rest) {
                return Err(fail());
            }
            shape.with(at, (numel / rest) as i64)
        }
        _ => return Err(fail()),
    };
    if layout::numel(&resolved) != Some(numel) { Err(fail()) } else { Ok(resolved) }
}
