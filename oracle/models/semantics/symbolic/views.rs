//! Views: other windows on the storage of the first argument.
//!
//! Which windows follows from the arguments and the window viewed, never from what is recorded about the result.
//! Where the schema says that the result is fresh (`_unsafe_view`, `*_copy`), the elements of the window are copied.

use super::arguments::Call;
use super::evaluation::{Produced, Tensor};
use super::key::Tag;
use super::layout;
use super::machine::{Machine, Reading, Stop};
use super::reason::Reason;
use super::source::Traits;
use crate::graph::{Dtype, Value, contiguous_strides};
use crate::limits::Limit;
use crate::ops::View;

/// A window, not yet stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Window {
    pub(super) offset: i64,
    pub(super) sizes: Vec<i64>,
    pub(super) strides: Vec<i64>,
    pub(super) dtype: Dtype,
}

/// A dimension number from `-rank` to `rank - 1`, as an index. A tensor without dimensions counts as having one.
pub(super) fn dimension(dim: i64, rank: usize) -> Result<usize, Reason> {
    let rank = rank.max(1) as i64;
    let index = if dim < 0 { dim.checked_add(rank) } else { Some(dim) };
    index
        .filter(|i| (0..rank).contains(i))
        .map(|i| i as usize)
        .ok_or_else(|| Reason::arguments(format!("no dimension {dim}")))
}

fn bad(text: &str) -> Stop {
    Stop::Unknown(Reason::arguments(text))
}

impl Window {
    pub(super) fn dim(&self, dim: i64) -> Result<usize, Stop> {
        Ok(dimension(dim, self.sizes.len())?)
    }

    fn size(&self, dim: usize) -> Result<i64, Stop> {
        self.sizes.get(dim).copied().ok_or_else(|| bad("no such dimension"))
    }

    /// The window on `len` elements of `dim` from `start` on, `step` apart.
    pub(super) fn cut(&self, dim: usize, start: i64, len: i64, step: i64) -> Result<Window, Stop> {
        let size = self.size(dim)?;
        let last = len.checked_sub(1).and_then(|n| n.checked_mul(step)).and_then(|n| n.checked_add(start));
        if start < 0 || len < 0 || step < 1 || start > size || (len > 0 && last.is_none_or(|l| l >= size)) {
            return Err(bad("a piece beyond the end of its dimension"));
        }
        let mut cut = self.clone();
        let stride = self.strides[dim];
        cut.sizes[dim] = len;
        cut.strides[dim] = stride.checked_mul(step).ok_or(Reason::Overflow)?;
        let shift = stride.checked_mul(start).ok_or(Reason::Overflow)?;
        cut.offset = self.offset.checked_add(shift).ok_or(Reason::Overflow)?;
        Ok(cut)
    }

    /// The window at one index of `dim`, without that dimension.
    pub(super) fn pick(&self, dim: usize, index: i64) -> Result<Window, Stop> {
        let size = self.size(dim)?;
        let index = if index < 0 { index.checked_add(size) } else { Some(index) };
        let Some(index) = index.filter(|i| (0..size).contains(i)) else { return Err(bad("no such index")) };
        let mut picked = self.cut(dim, index, 1, 1)?;
        picked.sizes.remove(dim);
        picked.strides.remove(dim);
        Ok(picked)
    }

    /// A slice as Python understands it.
    pub(super) fn sliced(&self, dim: usize, start: i64, end: i64, step: i64) -> Result<Window, Stop> {
        let size = self.size(dim)?;
        if step < 1 {
            return Err(bad("a step below 1"));
        }
        let clamp = |n: i64| if n < 0 { n.saturating_add(size).max(0) } else { n.min(size) };
        let start = clamp(start);
        let end = clamp(end).max(start);
        let covered = end - start;
        self.cut(dim, start, covered / step + i64::from(covered % step != 0), step)
    }

    fn pieces(&self, dim: usize, lens: impl Iterator<Item = i64>) -> Result<Vec<Window>, Stop> {
        let mut start = 0i64;
        let mut pieces = Vec::new();
        for len in lens {
            pieces.push(self.cut(dim, start, len, 1)?);
            start += len;
        }
        Ok(pieces)
    }

    fn permuted(&self, order: &[usize]) -> Window {
        let at = |of: &[i64]| order.iter().map(|&dim| of[dim]).collect();
        Window { sizes: at(&self.sizes), strides: at(&self.strides), ..*self }
    }

    fn squeezed(&self, dims: Option<&[i64]>) -> Result<Window, Stop> {
        let mut drop = vec![dims.is_none(); self.sizes.len()];
        for &dim in dims.unwrap_or(&[]) {
            let dim = self.dim(dim)?;
            if let Some(slot) = drop.get_mut(dim) {
                *slot = true;
            }
        }
        let mut squeezed = Window { sizes: Vec::new(), strides: Vec::new(), ..self.clone() };
        for (i, drop) in drop.into_iter().enumerate() {
            if !drop || self.sizes[i] != 1 {
                squeezed.sizes.push(self.sizes[i]);
                squeezed.strides.push(self.strides[i]);
            }
        }
        Ok(squeezed)
    }

    /// The window with new leading dimensions, and dimensions of size 1 repeated, to have these sizes; -1 keeps one.
    pub(super) fn expanded(&self, sizes: &[i64]) -> Result<Window, Stop> {
        let more = sizes.len().checked_sub(self.sizes.len()).ok_or_else(|| bad("fewer dimensions"))?;
        let mut expanded = Window { sizes: Vec::new(), strides: Vec::new(), ..self.clone() };
        for (i, &size) in sizes.iter().enumerate() {
            let (old, stride) = match i.checked_sub(more) {
                Some(k) => (self.sizes[k], self.strides[k]),
                None => (1, 0),
            };
            let kept = size == old || (size == -1 && i >= more);
            if !kept && (old != 1 || size < 0) {
                return Err(bad("sizes that the tensor cannot be expanded to"));
            }
            expanded.sizes.push(if kept { old } else { size });
            expanded.strides.push(if kept { stride } else { 0 });
        }
        Ok(expanded)
    }

    /// The same bytes as elements of another dtype.
    fn retyped(&self, dtype: Dtype) -> Result<Window, Stop> {
        let (old, new) = (i64::from(self.dtype.itemsize()), i64::from(dtype.itemsize()));
        let mut retyped = Window { dtype, ..self.clone() };
        if old == new {
            return Ok(retyped);
        }
        let last = self.sizes.len().checked_sub(1).ok_or_else(|| bad("no dimension to split or join"))?;
        if self.strides[last] != 1 && self.sizes[last] != 1 {
            return Err(bad("a last dimension that is not contiguous"));
        }
        let scale = |n: i64| {
            let bytes = n.checked_mul(old).ok_or(Reason::Overflow)?;
            if bytes % new == 0 {
                Ok(bytes / new)
            } else {
                Err(Reason::arguments("bytes that do not divide by the new element size"))
            }
        };
        retyped.sizes[last] = scale(self.sizes[last])?;
        retyped.offset = scale(self.offset)?;
        retyped.strides[last] = 1;
        for i in 0..last {
            retyped.strides[i] = if self.sizes[i] == 1 { 0 } else { scale(self.strides[i])? };
        }
        Ok(retyped)
    }
}

/// Whether so many pieces of one tensor are listed.
fn listable(count: i64) -> Result<(), Reason> {
    match u64::try_from(count) {
        Ok(pieces) if pieces <= Limit::Pieces.standard() => Ok(()),
        _ => Err(Reason::Pieces(count)),
    }
}

impl Machine<'_, '_> {
    /// The window of a tensor of known sizes.
    pub(super) fn window_of(&self, tensor: Tensor) -> Result<Window, Stop> {
        Ok(Window {
            offset: tensor.offset,
            sizes: self.sizes(tensor)?,
            strides: self.eval.strides(tensor).to_vec(),
            dtype: tensor.dtype,
        })
    }

    /// Stores a window on the storage of `base`.
    pub(super) fn on(&mut self, base: Tensor, window: &Window) -> Tensor {
        self.window(base.storage, window.offset, &window.sizes, &window.strides, window.dtype)
    }

    /// Executes a view.
    pub(super) fn view(&mut self, call: &Call<'_>, view: View) -> Result<Produced, Stop> {
        let base = self.tensor(call.node(0)?)?;
        let fresh = call.schema.returns.first().is_none_or(|r| r.alias.is_none());
        if view == View::Alias && !fresh {
            return Ok(self.done(base));
        }
        if view == View::Conj {
            return self.conjugated(base);
        }
        let window = self.window_of(base)?;
        if view == View::Sizes {
            return self.reshaped(call, base, &window, fresh);
        }
        let several = matches!(view, View::Split | View::SplitWithSizes | View::Chunk | View::Unbind);
        let windows = self.windows(call, view, &window)?;
        let mut items = Vec::with_capacity(windows.len());
        for (index, window) in windows.iter().enumerate() {
            let shown = self.on(base, window);
            let shown = if fresh {
                let value = self.read(shown, None, Reading::Moving)?;
                self.fresh_result(index, value, &window.sizes, window.dtype)?
            } else {
                shown
            };
            items.push(self.done(shown));
        }
        match items[..] {
            [one] if !several => Ok(one),
            _ => Ok(self.list(&items)),
        }
    }

    fn reshaped(
        &mut self,
        call: &Call<'_>,
        base: Tensor,
        window: &Window,
        fresh: bool,
    ) -> Result<Produced, Stop> {
        let wanted = self.ints(call, 1)?;
        let count = layout::numel(&window.sizes).ok_or(Reason::Overflow)?;
        let sizes = layout::resolve(&wanted, count).ok_or(Reason::NoSuchView)?;
        if !fresh {
            let strides = if count == 0 {
                Some(contiguous_strides(&sizes))
            } else {
                layout::view(&window.sizes, &window.strides, &sizes)
            };
            if let Some(strides) = strides {
                let shown = self.window(base.storage, base.offset, &sizes, &strides, base.dtype);
                return Ok(self.done(shown));
            }
            if call.schema.name != "reshape" {
                return Err(Reason::NoSuchView.into());
            }
        }
        let value = self.read(base, None, Reading::Moving)?;
        let copied = self.fresh(value, &sizes, None, base.dtype)?;
        Ok(self.done(copied))
    }

    /// A lazily conjugated view shows other values: they are not followed into the storage.
    fn conjugated(&mut self, base: Tensor) -> Result<Produced, Stop> {
        let value = self.read(base, None, Reading::Using)?;
        if self.is_symbolic(base) {
            return Err(Stop::NotFollowed);
        }
        let sizes = self.sizes(base)?;
        let target = self.target_symbol();
        self.words.0.clear();
        self.words.symbol(Tag::Target, target);
        self.words.tensor(value, base.dtype, &sizes);
        let key = self.take_key();
        let origin = self.name_symbol(self.node);
        let source = super::source::Source::Opaque { key, output: 0 };
        let source = self.arena.source_of(source, Some(origin), Traits::default());
        let count = self.arena.len(value);
        let value = self.arena.all_of(source, count);
        let strides = self.eval.strides(base).to_vec();
        let fresh = self.fresh(value, &sizes, Some(&strides), base.dtype)?;
        Ok(self.done(fresh))
    }

    /// The windows that a view shows.
    fn windows(&mut self, call: &Call<'_>, view: View, base: &Window) -> Result<Vec<Window>, Stop> {
        let rank = base.sizes.len();
        let one = |window: Window| Ok(vec![window]);
        if view.is_permutation() {
            let given = (1..call.schema.params.len()).map(|index| self.ints(call, index));
            let given = given.collect::<Result<Vec<_>, _>>()?.concat();
            let order = view.order(rank, &given).map_err(|why| Stop::Unknown(Reason::Arguments(why)))?;
            return one(base.permuted(&order));
        }
        match view {
            View::Sizes | View::Conj | View::Alias => one(base.clone()),
            View::Dtype => match call.bound.given(1) {
                Some(Value::Dtype(dtype)) => one(base.retyped(dtype)?),
                _ => Err(bad("no dtype")),
            },
            View::AsComplex => {
                let dtype = match base.dtype {
                    Dtype::F32 => Dtype::C64,
                    Dtype::F64 => Dtype::C128,
                    _ => return Err(bad("a dtype without a complex counterpart")),
                };
                let mut window = base.retyped(dtype)?;
                match (window.sizes.pop(), window.strides.pop()) {
                    (Some(1), _) => one(window),
                    _ => Err(bad("a last dimension of another size than 2")),
                }
            }
            View::AsReal => {
                let dtype = match base.dtype {
                    Dtype::C64 => Dtype::F32,
                    Dtype::C128 => Dtype::F64,
                    _ => return Err(bad("a dtype that is not complex")),
                };
                let mut window = base.clone();
                window.sizes.push(1);
                window.strides.push(1);
                one(window.retyped(dtype)?)
            }
            View::Unsqueeze => {
                let dim = dimension(self.int(call, 1)?, rank + 1)?;
                let mut window = base.clone();
                window.sizes.insert(dim, 1);
                window.strides.insert(dim, 1);
                one(window)
            }
            View::Squeeze => {
                let dims = if call.schema.params.len() > 1 { Some(self.ints(call, 1)?) } else { None };
                one(base.squeezed(dims.as_deref())?)
            }
            View::Expand => one(base.expanded(&self.ints(call, 1)?)?),
            View::Slice => one(self.slice_window(call, base, 1)?),
            View::Narrow => {
                let dim = base.dim(self.int(call, 1)?)?;
                let (start, len) = (self.int(call, 2)?, self.int(call, 3)?);
                let start = if start < 0 { start.saturating_add(base.size(dim)?) } else { start };
                one(base.cut(dim, start, len, 1)?)
            }
            View::Select => one(base.pick(base.dim(self.int(call, 1)?)?, self.int(call, 2)?)?),
            View::Split => {
                let (len, dim) = (self.int(call, 1)?, base.dim(self.int(call, 2)?)?);
                let size = base.size(dim)?;
                if len < 0 || (len == 0 && size != 0) {
                    return Err(bad("pieces without elements"));
                }
                let count = if size == 0 { 1 } else { size / len + i64::from(size % len != 0) };
                listable(count)?;
                base.pieces(dim, (0..count).map(|i| len.min(size - i * len)))
            }
            View::SplitWithSizes => {
                let (lens, dim) = (self.ints(call, 1)?, base.dim(self.int(call, 2)?)?);
                let sum = lens.iter().try_fold(0i64, |sum, &n| sum.checked_add(n));
                if sum != Some(base.size(dim)?) || lens.iter().any(|&n| n < 0) {
                    return Err(bad("pieces that do not add up to the dimension"));
                }
                base.pieces(dim, lens.into_iter())
            }
            View::Chunk => {
                let (chunks, dim) = (self.int(call, 1)?, base.dim(self.int(call, 2)?)?);
                let size = base.size(dim)?;
                if chunks < 1 {
                    return Err(bad("no pieces"));
                }
                // An empty dimension gives as many empty pieces as asked for.
                let len = size / chunks + i64::from(size % chunks != 0);
                let count = if len == 0 { chunks } else { size / len + i64::from(size % len != 0) };
                listable(count)?;
                base.pieces(dim, (0..count).map(|i| len.min(size - i * len)))
            }
            View::Unbind => {
                let dim = base.dim(self.int(call, 1)?)?;
                let size = base.size(dim)?;
                listable(size)?;
                (0..size).map(|i| base.pick(dim, i)).collect()
            }
            View::AsStrided => {
                let offset = self.optional_int(call, 3)?.unwrap_or(base.offset);
                one(restrided(self.ints(call, 1)?, self.ints(call, 2)?, offset, base.dtype)?)
            }
            View::Diagonal => {
                let shift = self.int(call, 1)?;
                let (a, b) = (base.dim(self.int(call, 2)?)?, base.dim(self.int(call, 3)?)?);
                one(diagonal(base, shift, a, b)?)
            }
            _ => Err(Stop::NotFollowed),
        }
    }

    /// The window of a slice whose `dim`, `start`, `end` and `step` begin at parameter `first`.
    pub(super) fn slice_window(
        &mut self,
        call: &Call<'_>,
        base: &Window,
        first: usize,
    ) -> Result<Window, Stop> {
        let dim = base.dim(self.int(call, first)?)?;
        let start = self.optional_int(call, first + 1)?.unwrap_or(0);
        let end = self.optional_int(call, first + 2)?.unwrap_or(i64::MAX);
        let step = self.int(call, first + 3)?;
        base.sliced(dim, start, end, step)
    }
}

/// A window by its sizes and strides.
pub(super) fn restrided(
    sizes: Vec<i64>,
    strides: Vec<i64>,
    offset: i64,
    dtype: Dtype,
) -> Result<Window, Stop> {
    if sizes.len() != strides.len() || strides.iter().any(|&s| s < 0) {
        return Err(bad("sizes and strides that do not fit"));
    }
    layout::numel(&sizes).ok_or(Reason::Overflow)?;
    Ok(Window { offset, sizes, strides, dtype })
}

pub(super) fn diagonal(base: &Window, shift: i64, a: usize, b: usize) -> Result<Window, Stop> {
    if a == b || base.sizes.len() < 2 {
        return Err(bad("a diagonal of one dimension"));
    }
    let (rows, columns) = (base.sizes[a], base.sizes[b]);
    let (down, right) = if shift < 0 { (shift.saturating_neg(), 0) } else { (0, shift) };
    let len = rows.saturating_sub(down).min(columns.saturating_sub(right)).max(0);
    let mut window = base.clone();
    if len > 0 {
        let start = (down.checked_mul(base.strides[a]))
            .zip(right.checked_mul(base.strides[b]))
            .and_then(|(d, r)| d.checked_add(r)?.checked_add(base.offset));
        window.offset = start.ok_or(Reason::Overflow)?;
    }
    let stride = base.strides[a].checked_add(base.strides[b]).ok_or(Reason::Overflow)?;
    for dim in [a.max(b), a.min(b)] {
        window.sizes.remove(dim);
        window.strides.remove(dim);
    }
    window.sizes.push(len);
    window.strides.push(stride);
    Ok(window)
}
