//! Rules of views: shape, strides and offset of the window. Sources: `aten/src/ATen/native/TensorShape.cpp`,
//! `aten/src/ATen/ExpandUtils.cpp`.

use super::call::{Call, Rule, Stop, fault};
use super::size::{Size, numel};
use super::{Inferred, MAX_PIECES, TensorMeta, layout, many, one};
use crate::graph::{Dtype, DtypeClass};
use crate::ops::View;

pub(super) fn infer(call: &Call, kind: View) -> Rule<Inferred> {
    let tensor = call.tensor(call.param(0))?;
    let from = tensor.dtype;
    let window = Window::of(tensor)?;
    let pieces = match kind {
        View::Split => window.split(call, call.int("split_size")?)?,
        View::Chunk => window.chunk(call, call.int("chunks")?)?,
        View::SplitWithSizes => {
            let dim = window.dim(call, "dim")?;
            window.split_with_sizes(call, dim, &call.sizes("split_sizes")?)?
        }
        View::Unbind => window.unbind(call)?,
        View::Dtype => return single_result(call, dtype(call, window, from)?),
        View::AsComplex => return single_result(call, as_complex(call, window, from)?),
        View::AsReal => return single_result(call, as_real(call, window, from)?),
        View::Conj if from.is_some_and(|d| d.class() != DtypeClass::Complex) => {
            return fault("conj of real numbers".to_string());
        }
        View::Sizes => return single_result(call, sizes(call, window, from)?),
        _ => return single_result(call, single(call, kind, window)?.tensor(from)),
    };
    finish(call, pieces.into_iter().map(|w| w.tensor(from)).collect())
}

/// The windows as results, or as fresh copies (`slice_copy` and its like).
fn finish(call: &Call, mut tensors: Vec<TensorMeta>) -> Rule<Inferred> {
    if is_list(call) {
        return many(tensors.into_iter().map(|tensor| made(call, tensor)));
    }
    tensors.pop().map_or(Err(Stop::Undecided), |tensor| one(made(call, tensor)))
}

/// The same for one window.
fn single_result(call: &Call, tensor: TensorMeta) -> Rule<Inferred> {
    let tensor = made(call, tensor);
    if is_list(call) { many([tensor]) } else { one(tensor) }
}

fn is_list(call: &Call) -> bool {
    call.schema.returns.first().is_some_and(|r| r.ty.ends_with("[]"))
}

fn made(call: &Call, window: TensorMeta) -> TensorMeta {
    match call.name().ends_with("_copy") {
        true => TensorMeta::fresh(window.shape, window.dtype),
        false => window,
    }
}

/// The pieces of `split_with_sizes` of a tensor along `dim`.
pub(super) fn split_with_sizes(
    call: &Call,
    tensor: &TensorMeta,
    dim: usize,
    of: &[Size],
) -> Rule<Vec<TensorMeta>> {
    let pieces = Window::of(tensor.clone())?.split_with_sizes(call, dim, of)?;
    Ok(pieces.into_iter().map(|w| w.tensor(tensor.dtype)).collect())
}

/// `narrow(dim, start, length)` of a tensor.
pub(super) fn narrow(
    call: &Call,
    tensor: &TensorMeta,
    dim: usize,
    start: Size,
    length: Size,
) -> Rule<TensorMeta> {
    Ok(Window::of(tensor.clone())?.narrow(call, dim, start, length)?.tensor(tensor.dtype))
}

/// What a view that is one window shows of a tensor.
pub(super) fn window(call: &Call, kind: View, tensor: &TensorMeta) -> Rule<TensorMeta> {
    Ok(single(call, kind, Window::of(tensor.clone())?)?.tensor(tensor.dtype))
}

/// A window on a storage. `stride` has as many elements as `shape`.
#[derive(Clone)]
struct Window {
    shape: Vec<Size>,
    stride: Vec<Size>,
    offset: Size,
}

fn single(call: &Call, kind: View, window: Window) -> Rule<Window> {
    let rank = window.shape.len();
    match kind {
        _ if kind.is_permutation() => {
            let given = call.schema.params.iter().skip(1).map(|param| call.ints(&param.name));
            let given = given.collect::<Rule<Vec<_>>>()?.concat();
            match kind.order(rank, &given) {
                Ok(order) => Ok(window.permuted(&order)),
                Err(why) => fault(why),
            }
        }
        View::Unsqueeze => {
            let dim = call.dim("dim", rank + 1)?;
            Ok(window.unsqueeze(dim))
        }
        View::Squeeze => window.squeeze(call),
        View::Expand => window.expand(call, &call.sizes("size")?),
        View::Slice => window.slice(call),
        View::Narrow => {
            let dim = window.dim(call, "dim")?;
            window.narrow(call, dim, call.size("start")?, call.size("length")?)
        }
        View::Select => {
            let dim = window.dim(call, "dim")?;
            window.select(call, dim, call.size("index")?)
        }
        View::AsStrided => window.restrided(call),
        View::Diagonal => window.diagonal(call),
        _ => Ok(window),
    }
}

impl Window {
    fn of(tensor: TensorMeta) -> Rule<Window> {
        tensor.strides()?;
        let TensorMeta { shape, stride, offset, .. } = tensor;
        Ok(Window { shape, stride: stride.ok_or(Stop::Undecided)?, offset })
    }

    fn tensor(self, dtype: Option<Dtype>) -> TensorMeta {
        TensorMeta { shape: self.shape, stride: Some(self.stride), offset: self.offset, dtype }
    }

    /// The argument `name` as a dimension of a tensor that must have one.
    fn dim(&self, call: &Call, name: &str) -> Rule<usize> {
        if self.shape.is_empty() {
            return fault(format!("{} of a tensor without dimensions", call.name()));
        }
        call.dim(name, self.shape.len())
    }

    fn permuted(self, order: &[usize]) -> Window {
        Window {
            shape: order.iter().map(|&d| self.shape[d]).collect(),
            stride: order.iter().map(|&d| self.stride[d]).collect(),
            offset: self.offset,
        }
    }

    fn unsqueeze(mut self, dim: usize) -> Window {
        let stride = match self.shape.get(dim) {
            Some(size) => size.times(self.stride[dim]),
            None => Size::Known(1),
        };
        self.shape.insert(dim, Size::Known(1));
        self.stride.insert(dim, stride);
        self
    }

    fn squeeze(self, call: &Call) -> Rule<Window> {
        let rank = self.shape.len();
        let dims = match call.value("dim") {
            None => (0..rank).collect(),
            Some(_) => call.distinct_dims(&call.ints("dim")?, rank)?,
        };
        let mut kept = Window { shape: Vec::new(), stride: Vec::new(), offset: self.offset };
        for (i, (&size, &stride)) in self.shape.iter().zip(&self.stride).enumerate() {
            if dims.contains(&i) {
                match size {
                    Size::Known(1) => continue,
                    Size::Known(_) => {}
                    _ => return Err(Stop::Undecided),
                }
            }
            kept.shape.push(size);
            kept.stride.push(stride);
        }
        Ok(kept)
    }

    fn expand(self, call: &Call, sizes: &[Size]) -> Rule<Window> {
        let refuse = || fault(format!("cannot expand {} to {}", call.text(&self.shape), call.text(sizes)));
        let Some(added) = sizes.len().checked_sub(self.shape.len()) else { return refuse() };
        let mut shape = vec![Size::Unknown; sizes.len()];
        let mut stride = vec![Size::Unknown; sizes.len()];
        for i in (0..sizes.len()).rev() {
            let old = i.checked_sub(added);
            let size = old.map_or(Size::Known(1), |d| self.shape[d]);
            let step = match old {
                Some(d) => self.stride[d],
                None if i + 1 < sizes.len() => shape[i + 1].times(stride[i + 1]),
                None => Size::Known(1),
            };
            (shape[i], stride[i]) = match (size, sizes[i]) {
                (_, Size::Known(-1)) if old.is_none() => return refuse(),
                (size, Size::Known(-1)) => (size, step),
                (_, Size::Known(n)) if n < 0 => return refuse(),
                (Size::Known(1), Size::Known(1)) => (size, step),
                (Size::Known(1), new) => (new, Size::Known(0)),
                (size, new) => match size.same(new) {
                    Some(true) => (size, step),
                    Some(false) => return refuse(),
                    None => (new, Size::Unknown),
                },
            };
        }
        Ok(Window { shape, stride, offset: self.offset })
    }

    fn slice(self, call: &Call) -> Rule<Window> {
        let dim = self.dim(call, "dim")?;
        let step = call.int("step")?;
        if step <= 0 {
            return fault(format!("slice has step {step}, which is not positive"));
        }
        let start = call.optional_size("start")?.unwrap_or(Size::Known(0));
        let end = call.optional_size("end")?.unwrap_or(Size::Known(i64::MAX));
        let (length, start) = slice_extent(self.shape[dim], start, end, step);
        let mut window = self;
        window.offset = window.offset.plus(start.times(window.stride[dim]));
        window.shape[dim] = length;
        window.stride[dim] = window.stride[dim].scaled(step);
        Ok(window)
    }

    fn narrow(mut self, call: &Call, dim: usize, start: Size, length: Size) -> Rule<Window> {
        let Some(&size) = self.shape.get(dim) else {
            return fault(format!("dimension {dim} of a tensor of {} dimensions", self.shape.len()));
        };
        let mut start = start;
        if let (Size::Known(n), Size::Known(from)) = (size, start) {
            let wrapped = if from < 0 { from.saturating_add(n) } else { from };
            let fits = length.known().is_none_or(|l| l >= 0 && l <= n.saturating_sub(wrapped));
            if wrapped < 0 || wrapped > n || !fits {
                return fault(format!(
                    "cannot narrow dimension {dim} of {} to {} elements from {from}",
                    call.text(&self.shape),
                    call.text(&[length]).trim_matches(['[', ']'])
                ));
            }
            start = Size::Known(wrapped);
        }
        let known_start = start.known().is_some_and(|n| n >= 0);
        let moved = if known_start { start.times(self.stride[dim]) } else { Size::Unknown };
        self.offset = self.offset.plus(moved);
        self.shape[dim] = length;
        Ok(self)
    }

    fn select(mut self, call: &Call, dim: usize, index: Size) -> Rule<Window> {
        let mut at = index;
        if let (Size::Known(n), Size::Known(i)) = (self.shape[dim], index) {
            let wrapped = if i < 0 { i.saturating_add(n) } else { i };
            if wrapped < 0 || wrapped >= n {
                return fault(format!("index {i} of dimension {dim} of {}", call.text(&self.shape)));
            }
            at = Size::Known(wrapped);
        }
        let moved =
            if at.known().is_some_and(|n| n >= 0) { at.times(self.stride[dim]) } else { Size::Unknown };
        self.offset = self.offset.plus(moved);
        self.shape.remove(dim);
        self.stride.remove(dim);
        Ok(self)
    }

    /// The piece of `dim` from `start`, `length` long, both within the window.
    fn piece(&self, dim: usize, start: Size, length: Size) -> Window {
        let mut piece = self.clone();
        piece.offset = piece.offset.plus(start.times(piece.stride[dim]));
        piece.shape[dim] = length;
        piece
    }

    fn split(&self, call: &Call, size: i64) -> Rule<Vec<Window>> {
        let dim = self.dim(call, "dim")?;
        let total = self.shape[dim].known().ok_or(Stop::Undecided)?;
        if size < 0 || (size == 0 && total != 0) {
            return fault(format!(
                "cannot split dimension {dim} of {} in pieces of {size}",
                call.text(&self.shape)
            ));
        }
        let count = if size == 0 { 1 } else { ceil(total, size).max(1) };
        self.even_pieces(dim, total, size, count)
    }

    fn chunk(&self, call: &Call, chunks: i64) -> Rule<Vec<Window>> {
        let dim = self.dim(call, "dim")?;
        let total = self.shape[dim].known().ok_or(Stop::Undecided)?;
        if chunks <= 0 {
            return fault(format!("cannot cut {} in {chunks} chunks", call.text(&self.shape)));
        }
        if total <= 0 {
            return self.even_pieces(dim, 0, 0, chunks);
        }
        let size = ceil(total, chunks);
        self.even_pieces(dim, total, size, ceil(total, size))
    }

    /// `count` pieces of `size`, the last one being what is left.
    fn even_pieces(&self, dim: usize, total: i64, size: i64, count: i64) -> Rule<Vec<Window>> {
        if count > MAX_PIECES {
            return Err(Stop::Undecided);
        }
        let piece = |i: i64| {
            let start = i.saturating_mul(size);
            self.piece(dim, Size::Known(start), Size::Known(size.min(total - start)))
        };
        Ok((0..count).map(piece).collect())
    }

    fn split_with_sizes(&self, call: &Call, dim: usize, sizes: &[Size]) -> Rule<Vec<Window>> {
        let Some(&of) = self.shape.get(dim) else {
            return fault(format!("{} of a tensor without dimensions", call.name()));
        };
        let total = sizes.iter().fold(Size::Known(0), |sum, &s| sum.plus(s));
        if total.differs(of) || sizes.iter().any(|s| s.known().is_some_and(|n| n < 0)) {
            return fault(format!(
                "cannot split dimension {dim} of {} in pieces {}",
                call.text(&self.shape),
                call.text(sizes)
            ));
        }
        let mut start = Size::Known(0);
        let mut pieces = Vec::with_capacity(sizes.len());
        for &size in sizes {
            pieces.push(self.piece(dim, start, size));
            start = start.plus(size);
        }
        Ok(pieces)
    }

    fn unbind(self, call: &Call) -> Rule<Vec<Window>> {
        let dim = self.dim(call, "dim")?;
        let count = self.shape[dim].known().filter(|&n| n <= MAX_PIECES).ok_or(Stop::Undecided)?;
        (0..count).map(|i| self.clone().select(call, dim, Size::Known(i))).collect()
    }

    fn restrided(self, call: &Call) -> Rule<Window> {
        let (shape, stride) = (call.sizes("size")?, call.sizes("stride")?);
        let negative = |sizes: &[Size]| sizes.iter().any(|s| s.known().is_some_and(|n| n < 0));
        if shape.len() != stride.len() || negative(&shape) || negative(&stride) {
            return fault(format!("as_strided to {} with strides {}", call.text(&shape), call.text(&stride)));
        }
        let offset = call.optional_size("storage_offset")?.unwrap_or(self.offset);
        if let Some(offset) = offset.known().filter(|&offset| offset < 0) {
            return fault(format!("as_strided from element {offset}"));
        }
        Ok(Window { shape, stride, offset })
    }

    fn diagonal(mut self, call: &Call) -> Rule<Window> {
        let rank = self.shape.len();
        let (a, b, shift) = (call.dim("dim1", rank)?, call.dim("dim2", rank)?, call.int("offset")?);
        if a == b || rank < 2 {
            return fault(format!("diagonal of {} needs two different dimensions", call.text(&self.shape)));
        }
        let (rows, columns) = match (self.shape[a], self.shape[b]) {
            (Size::Known(rows), Size::Known(columns)) => (rows, columns),
            _ => return Err(Stop::Undecided),
        };
        let length = if shift >= 0 {
            rows.min(columns.saturating_sub(shift))
        } else {
            rows.saturating_add(shift).min(columns)
        };
        if length > 0 {
            let along = if shift >= 0 { self.stride[b] } else { self.stride[a] };
            self.offset = self.offset.plus(along.times(shift.checked_abs().into()));
        }
        let step = self.stride[a].plus(self.stride[b]);
        let (first, second) = (a.min(b), a.max(b));
        for list in [&mut self.shape, &mut self.stride] {
            list.remove(second);
            list.remove(first);
        }
        self.shape.push(Size::Known(length.max(0)));
        self.stride.push(step);
        Ok(self)
    }
}

/// a / b rounded up, for b > 0.
fn ceil(a: i64, b: i64) -> i64 {
    a / b + i64::from(a % b > 0)
}

/// How many elements `start..end` by `step` selects of `size`, and where it starts: negative positions count from
/// the end, positions past an end are moved to it.
pub(super) fn slice_extent(size: Size, start: Size, end: Size, step: i64) -> (Size, Size) {
    match (size, start, end) {
        (size, Size::Known(0), Size::Known(i64::MAX)) if step == 1 => (size, Size::Known(0)),
        (Size::Known(size), Size::Known(start), Size::Known(end)) => {
            let size = size.max(0);
            let place = |i: i64, low: i64| (if i < 0 { i.saturating_add(size) } else { i }).clamp(low, size);
            let start = place(start, 0);
            let end = place(end, 0).max(start);
            (Size::Known(ceil(end - start, step)), Size::Known(start))
        }
        (_, Size::Known(0), _) => (Size::Unknown, Size::Known(0)),
        _ => (Size::Unknown, Size::Unknown),
    }
}

/// The sizes of a view with its -1 replaced.
pub(super) fn resolve(call: &Call, shape: &[Size], sizes: &[Size]) -> Rule<Vec<Size>> {
    let refuse = || fault(format!("cannot view {} as {}", call.text(shape), call.text(sizes)));
    let open: Vec<usize> = (0..sizes.len()).filter(|&i| sizes[i] == Size::Known(-1)).collect();
    if open.len() > 1 || sizes.iter().any(|s| s.known().is_some_and(|n| n < -1)) {
        return refuse();
    }
    let total = numel(shape);
    let mut result = sizes.to_vec();
    let Some(&at) = open.first() else {
        return if numel(sizes).differs(total) { refuse() } else { Ok(result) };
    };
    result.remove(at);
    let others = numel(&result);
    let inferred = match (total, others) {
        (Size::Known(_), Size::Known(0)) => return refuse(),
        (Size::Known(n), Size::Known(k)) if n % k != 0 => return refuse(),
        (Size::Known(n), Size::Known(k)) => Size::Known(n / k),
        _ => Size::Unknown,
    };
    result.insert(at, inferred);
    Ok(result)
}

fn sizes(call: &Call, window: Window, dtype: Option<Dtype>) -> Rule<TensorMeta> {
    let shape = resolve(call, &window.shape, &call.sizes(call.param(1))?)?;
    match layout::view(&window.shape, &window.stride, &shape) {
        Some(Some(stride)) => Ok(Window { shape, stride, offset: window.offset }.tensor(dtype)),
        // Then these copy.
        Some(None) if matches!(call.name(), "reshape" | "view_copy") => Ok(TensorMeta::fresh(shape, dtype)),
        Some(None) => fault(format!(
            "cannot view {} with strides {} as {}",
            call.text(&window.shape),
            call.text(&window.stride),
            call.text(&shape)
        )),
        None => Ok(TensorMeta::loose(shape, dtype)),
    }
}

/// `view.dtype`: the last dimension takes up the change of size.
fn dtype(call: &Call, mut window: Window, from: Option<Dtype>) -> Rule<TensorMeta> {
    let (Some(from), Some(to)) = (from, call.dtype("dtype")) else { return Err(Stop::Undecided) };
    let (old, new) = (i64::from(from.itemsize()), i64::from(to.itemsize()));
    if old == new {
        return Ok(window.tensor(Some(to)));
    }
    let refuse = |window: &Window| {
        let (shape, stride) = (call.text(&window.shape), call.text(&window.stride));
        fault(format!("cannot view {} {shape} with strides {stride} as {}", from.name(), to.name()))
    };
    let Some(last) = window.shape.len().checked_sub(1) else { return refuse(&window) };
    if window.stride[last].differs(Size::Known(1)) {
        return refuse(&window);
    }
    if old > new {
        let ratio = old / new;
        window.shape[last] = window.shape[last].scaled(ratio);
        for stride in &mut window.stride[..last] {
            *stride = stride.scaled(ratio);
        }
        window.offset = window.offset.scaled(ratio);
        return Ok(window.tensor(Some(to)));
    }
    let ratio = new / old;
    let over = |size: Size| match size {
        Size::Known(n) if n % ratio != 0 => None,
        Size::Known(n) => Some(Size::Known(n / ratio)),
        _ => Some(Size::Unknown),
    };
    let strides: Option<Vec<Size>> = window.stride[..last].iter().map(|&s| over(s)).collect();
    let (Some(length), Some(mut stride), Some(offset)) =
        (over(window.shape[last]), strides, over(window.offset))
    else {
        return refuse(&window);
    };
    stride.push(window.stride[last]);
    window.shape[last] = length;
    Ok(Window { shape: window.shape, stride, offset }.tensor(Some(to)))
}

fn as_complex(call: &Call, mut window: Window, from: Option<Dtype>) -> Rule<TensorMeta> {
    let to = match from {
        Some(Dtype::F64) => Dtype::C128,
        Some(Dtype::F32) => Dtype::C64,
        Some(dtype) if dtype.class() != DtypeClass::Float => {
            return fault(format!("view_as_complex does not take {}", dtype.name()));
        }
        _ => return Err(Stop::Undecided),
    };
    let half = |size: Size| size.known().filter(|n| n % 2 == 0).map(|n| n / 2);
    let last = (window.shape.pop(), window.stride.pop());
    let odd = |size: &Size| size.known().is_some_and(|n| n % 2 != 0);
    let fits = match last {
        (Some(size), Some(stride)) => !size.differs(Size::Known(2)) && !stride.differs(Size::Known(1)),
        _ => false,
    };
    let sized = window.shape.iter().zip(&window.stride).filter(|(size, _)| **size != Size::Known(1));
    if !fits || sized.map(|(_, stride)| stride).any(odd) || odd(&window.offset) {
        let mut shape = window.shape;
        shape.extend(last.0);
        return fault(format!("cannot view {} as complex numbers", call.text(&shape)));
    }
    let stride = window.stride.iter().map(|s| s.known().map(|n| n / 2).into()).collect();
    Ok(Window { shape: window.shape, stride, offset: half(window.offset).into() }.tensor(Some(to)))
}

fn as_real(call: &Call, mut window: Window, from: Option<Dtype>) -> Rule<TensorMeta> {
    let to = match from {
        Some(Dtype::C128) => Dtype::F64,
        Some(Dtype::C64) => Dtype::F32,
        Some(dtype) => return fault(format!("{} does not take {}", call.name(), dtype.name())),
        None => return Err(Stop::Undecided),
    };
    for stride in &mut window.stride {
        *stride = stride.scaled(2);
    }
    window.shape.push(Size::Known(2));
    window.stride.push(Size::Known(1));
    window.offset = window.offset.scaled(2);
    Ok(window.tensor(Some(to)))
}
