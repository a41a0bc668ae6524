//! Windows on a storage, and what views make of them: shape, strides and offset.
//!
//! This is the one place that computes windows. Shape inference hands in what a graph records, where sizes may be
//! symbols; the evaluators hand in the numbers that they hold. All is arithmetic on [`Size`]: what is not known stays
//! unknown, and so does a number past 64 bits. Sources: `aten/src/ATen/native/TensorShape.cpp`,
//! `aten/src/ATen/ExpandUtils.cpp`.
//!
//! It knows no calls (`view.rs` says which window a call asks for) and no dtypes (`retype.rs`), and does not say
//! whether a window lies in its storage.

use super::layout;
use super::size::{Size, Sizes, ceil, contiguous, numel, text_by};
use crate::limits::Limit;
use smallvec::SmallVec;
use std::fmt;

/// Pieces of one tensor that are listed at most.
pub(super) const MAX_PIECES: i64 = Limit::Pieces.standard() as i64;

/// A window on a storage. It has as many strides as sizes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window {
    /// Sizes.
    pub shape: Sizes,
    /// Strides, in elements.
    pub strides: Sizes,
    /// Where it starts, in elements.
    pub offset: Size,
}

/// Who knows the numbers that a call gives.
pub trait Given {
    /// Why there is none.
    type Stop;

    /// The parameter at `index` as a number, a default included; `None` where it is absent or `None`.
    ///
    /// # Errors
    /// It is something else.
    fn number(&self, index: usize) -> Result<Option<Size>, Self::Stop>;

    /// The same as a list of numbers; a single one counts as a list.
    ///
    /// # Errors
    /// It is something else.
    fn numbers(&self, index: usize) -> Result<Option<Sizes>, Self::Stop>;

    /// Ends because there is no window.
    fn stop(&self, why: NoWindow) -> Self::Stop;
}

/// The windows that one view shows: most show one.
pub type Windows = SmallVec<[Window; 1]>;

/// Why there is no window.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoWindow {
    /// It depends on a size that is not known.
    Undecided,
    /// One tensor in more pieces than are listed.
    Pieces(i64),
    /// The view cannot be taken: a statement, and the sizes that stand in it for each `$`.
    Misfit(String, Vec<Sizes>),
}

/// What shows the elements of a tensor under other sizes, which are given without -1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Viewed {
    /// A window.
    Window(Window),
    /// Only a copy.
    Copy(Sizes),
    /// It depends on sizes or strides that are not known.
    Undecided(Sizes),
}

/// A window, or why there is none.
pub type Shown<T> = Result<T, NoWindow>;

pub(in crate::ops) fn misfit<T>(statement: impl Into<String>, sizes: &[&[Size]]) -> Shown<T> {
    Err(NoWindow::Misfit(statement.into(), sizes.iter().map(|&list| list.into()).collect()))
}

impl NoWindow {
    /// In words; `show` says how sizes are written.
    pub fn statement(&self, show: impl Fn(&[Size]) -> String) -> String {
        match self {
            NoWindow::Undecided => "depends on a size that is not known".to_string(),
            NoWindow::Pieces(n) => format!("{n} pieces of one tensor: at most {MAX_PIECES} are listed"),
            NoWindow::Misfit(words, sizes) => {
                let mut sizes = sizes.iter();
                let shown = |part: &str| match sizes.next() {
                    Some(list) => format!("{part}{}", show(list)),
                    None => part.to_string(),
                };
                words.split('$').map(shown).collect()
            }
        }
    }
}

impl fmt::Display for NoWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.statement(|sizes| text_by(sizes, |_| "?".to_string())))
    }
}

/// A dimension of a tensor of `rank` dimensions, counted from the front. A tensor without dimensions is spoken of as
/// if it had one.
pub fn dimension(dim: i64, rank: usize) -> Shown<usize> {
    let count = rank.max(1) as i64;
    if !(-count..count).contains(&dim) {
        return misfit(format!("dimension {dim} of a tensor of {rank} dimensions"), &[]);
    }
    Ok(dim.rem_euclid(count) as usize)
}

/// Dimensions of a tensor of `rank` dimensions, none of them twice.
pub fn distinct_dimensions(given: &[i64], rank: usize) -> Shown<Vec<usize>> {
    let mut dims = Vec::with_capacity(given.len());
    for &dim in given {
        let dim = dimension(dim, rank)?;
        if dims.contains(&dim) {
            return misfit(format!("dimension {dim} appears twice in {given:?}"), &[]);
        }
        dims.push(dim);
    }
    Ok(dims)
}

impl Window {
    /// A window in numbers.
    pub fn known(shape: &[i64], strides: &[i64], offset: i64) -> Window {
        let sizes = |list: &[i64]| list.iter().map(|&n| Size::Known(n)).collect();
        Window { shape: sizes(shape), strides: sizes(strides), offset: Size::Known(offset) }
    }

    /// A whole storage in row-major order.
    pub fn contiguous(shape: Sizes) -> Window {
        Window { strides: contiguous(&shape), shape, offset: Size::Known(0) }
    }

    /// A dimension of a window that must have one, and its size.
    pub(super) fn dim(&self, dim: i64) -> Shown<(usize, Size)> {
        let at = dimension(dim, self.shape.len())?;
        match self.shape.get(at) {
            Some(&size) => Ok((at, size)),
            None => misfit(format!("dimension {dim} of a tensor without dimensions"), &[]),
        }
    }

    /// The same with a dimension whose size is known.
    pub(super) fn known_dim(&self, dim: i64) -> Shown<(usize, i64)> {
        let (dim, size) = self.dim(dim)?;
        Ok((dim, size.known().ok_or(NoWindow::Undecided)?))
    }

    /// The window that begins `by` elements of a dimension later.
    pub(super) fn moved(mut self, dim: usize, by: Size) -> Window {
        self.offset = self.offset.plus(by.times(self.strides[dim]));
        self
    }

    /// The dimensions in another order.
    pub fn permuted(&self, order: &[usize]) -> Window {
        let at = |list: &Sizes| order.iter().map(|&dim| list[dim]).collect();
        Window { shape: at(&self.shape), strides: at(&self.strides), offset: self.offset }
    }

    /// With a dimension of size 1 before `dim`.
    pub fn unsqueezed(mut self, dim: i64) -> Shown<Window> {
        let dim = dimension(dim, self.shape.len() + 1)?;
        let stride = match self.shape.get(dim) {
            Some(size) => size.times(self.strides[dim]),
            None => Size::Known(1),
        };
        self.shape.insert(dim, Size::Known(1));
        self.strides.insert(dim, stride);
        Ok(self)
    }

    /// Without those of the dimensions, or of all, whose size is 1.
    pub fn squeezed(mut self, dims: Option<&[i64]>) -> Shown<Window> {
        let mut dims = match dims {
            Some(dims) => distinct_dimensions(dims, self.shape.len())?,
            None => (0..self.shape.len()).collect(),
        };
        dims.sort_unstable();
        for dim in dims.into_iter().rev() {
            match self.shape.get(dim) {
                Some(Size::Known(1)) => {
                    self.shape.remove(dim);
                    self.strides.remove(dim);
                }
                Some(Size::Known(_)) | None => {}
                Some(_) => return Err(NoWindow::Undecided),
            }
        }
        Ok(self)
    }

    /// With new dimensions in front, and dimensions of size 1 repeated, to have these sizes; -1 keeps one.
    pub fn expanded(&self, sizes: &[Size]) -> Shown<Window> {
        let refuse = || misfit("cannot expand $ to $", &[&self.shape, sizes]);
        let Some(added) = sizes.len().checked_sub(self.shape.len()) else { return refuse() };
        let mut shape = Sizes::from_slice(sizes);
        let mut strides = Sizes::from_elem(Size::Unknown, sizes.len());
        for i in (0..sizes.len()).rev() {
            let old = i.checked_sub(added);
            let size = old.map_or(Size::Known(1), |d| self.shape[d]);
            let step = match old {
                Some(d) => self.strides[d],
                None if i + 1 < sizes.len() => shape[i + 1].times(strides[i + 1]),
                None => Size::Known(1),
            };
            (shape[i], strides[i]) = match (size, sizes[i]) {
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
        Ok(Window { shape, strides, offset: self.offset })
    }

    /// `x[..., start:end:step, ...]`.
    pub fn sliced(self, dim: i64, start: Option<Size>, end: Option<Size>, step: i64) -> Shown<Window> {
        let (dim, size) = self.dim(dim)?;
        if step <= 0 {
            return misfit(format!("slice has step {step}, which is not positive"), &[]);
        }
        let (start, end) = (start.unwrap_or(Size::Known(0)), end.unwrap_or(Size::Known(i64::MAX)));
        let (length, start) = slice_extent(size, start, end, step);
        let mut window = self.moved(dim, start);
        window.shape[dim] = length;
        window.strides[dim] = window.strides[dim].scaled(step);
        Ok(window)
    }

    /// `length` elements of a dimension, from `start` on.
    pub fn narrowed(self, dim: i64, start: Size, length: Size) -> Shown<Window> {
        let (dim, size) = self.dim(dim)?;
        let mut at = from_the_front(start);
        if let (Size::Known(n), Size::Known(from)) = (size, start) {
            let wrapped = if from < 0 { from.saturating_add(n) } else { from };
            let fits = length.known().is_none_or(|l| l >= 0 && l <= n.saturating_sub(wrapped));
            if wrapped < 0 || wrapped > n || !fits {
                let length = length.known().map_or("?".to_string(), |length| length.to_string());
                let words = format!("cannot narrow dimension {dim} of $ to {length} elements from {from}");
                return misfit(words, &[&self.shape]);
            }
            at = Size::Known(wrapped);
        }
        let mut window = self.moved(dim, at);
        window.shape[dim] = length;
        Ok(window)
    }

    /// `x[..., index, ...]`.
    pub fn selected(self, dim: i64, index: Size) -> Shown<Window> {
        let (dim, size) = self.dim(dim)?;
        let mut at = from_the_front(index);
        if let (Size::Known(n), Size::Known(i)) = (size, index) {
            let wrapped = if i < 0 { i.saturating_add(n) } else { i };
            if wrapped < 0 || wrapped >= n {
                return misfit(format!("index {i} of dimension {dim} of $"), &[&self.shape]);
            }
            at = Size::Known(wrapped);
        }
        let mut window = self.moved(dim, at);
        window.shape.remove(dim);
        window.strides.remove(dim);
        Ok(window)
    }

    /// Another window on the same storage; where no offset is given, from the same element on.
    pub fn restrided(&self, shape: Sizes, strides: Sizes, offset: Option<Size>) -> Shown<Window> {
        if shape.len() != strides.len() || has_negative(&shape) || has_negative(&strides) {
            return misfit("as_strided to $ with strides $", &[&shape, &strides]);
        }
        let offset = offset.unwrap_or(self.offset);
        if let Some(offset) = offset.known().filter(|&offset| offset < 0) {
            return misfit(format!("as_strided from element {offset}"), &[]);
        }
        Ok(Window { shape, strides, offset })
    }

    /// The diagonal of two dimensions that begins `shift` to the right, as the last dimension.
    pub fn diagonal(self, shift: i64, rows: i64, columns: i64) -> Shown<Window> {
        let rank = self.shape.len();
        let (a, b) = (dimension(rows, rank)?, dimension(columns, rank)?);
        if a == b || rank < 2 {
            return misfit("diagonal of $ needs two different dimensions", &[&self.shape]);
        }
        let (Size::Known(rows), Size::Known(columns)) = (self.shape[a], self.shape[b]) else {
            return Err(NoWindow::Undecided);
        };
        let (down, right) = (shift.saturating_neg().max(0), shift.max(0));
        let length = rows.saturating_sub(down).min(columns.saturating_sub(right)).max(0);
        let step = self.strides[a].plus(self.strides[b]);
        let mut window = match length {
            0 => self,
            _ if shift < 0 => self.moved(a, Size::Known(down)),
            _ => self.moved(b, Size::Known(right)),
        };
        for list in [&mut window.shape, &mut window.strides] {
            list.remove(a.max(b));
            list.remove(a.min(b));
        }
        window.shape.push(Size::Known(length));
        window.strides.push(step);
        Ok(window)
    }

    /// Pieces of `size` elements of a dimension, each `step` after the one before, in a new last dimension.
    pub fn unfolded(mut self, dim: i64, size: i64, step: i64) -> Shown<Window> {
        let dim = dimension(dim, self.shape.len())?;
        // A tensor without dimensions has one element.
        let one = Size::Known(1);
        let (of, stride) = self.shape.get(dim).map_or((one, one), |&of| (of, self.strides[dim]));
        if size < 0 || step <= 0 || of.known().is_some_and(|n| n < size) {
            return misfit(format!("cannot unfold dimension {dim} of $ to {size} by {step}"), &[&self.shape]);
        }
        if let (Some(count), Some(apart)) = (self.shape.get_mut(dim), self.strides.get_mut(dim)) {
            *count = of.known().map(|n| (n - size) / step + 1).into();
            *apart = stride.scaled(step);
        }
        self.shape.push(Size::Known(size));
        self.strides.push(stride);
        Ok(self)
    }

    /// The same elements in row-major order under other sizes, one of which may be -1.
    pub fn viewed(&self, sizes: &[Size]) -> Shown<Viewed> {
        let shape = self.resolved(sizes)?;
        Ok(match layout::view(&self.shape, &self.strides, &shape) {
            Some(Some(strides)) => Viewed::Window(Window { shape, strides, offset: self.offset }),
            Some(None) => Viewed::Copy(shape),
            None => Viewed::Undecided(shape),
        })
    }

    /// The sizes of a view with its -1 replaced.
    fn resolved(&self, sizes: &[Size]) -> Shown<Sizes> {
        let refuse = || misfit("cannot view $ as $", &[&self.shape, sizes]);
        let mut open = (0..sizes.len()).filter(|&i| sizes[i] == Size::Known(-1));
        let (at, second) = (open.next(), open.next());
        if second.is_some() || sizes.iter().any(|s| s.known().is_some_and(|n| n < -1)) {
            return refuse();
        }
        let total = numel(&self.shape);
        let mut result = Sizes::from_slice(sizes);
        let Some(at) = at else {
            return if numel(sizes).differs(total) { refuse() } else { Ok(result) };
        };
        result[at] = Size::Known(1);
        result[at] = match (total, numel(&result)) {
            (Size::Known(_), Size::Known(0)) => return refuse(),
            (Size::Known(n), Size::Known(k)) if n % k != 0 => return refuse(),
            (Size::Known(n), Size::Known(k)) => Size::Known(n / k),
            _ => Size::Unknown,
        };
        Ok(result)
    }
}

/// A position, as far as it is known to count from the front.
fn from_the_front(at: Size) -> Size {
    at.known().filter(|&n| n >= 0).into()
}

pub(super) fn has_negative(sizes: &[Size]) -> bool {
    sizes.iter().any(|s| s.known().is_some_and(|n| n < 0))
}

/// How many elements `start..end` by `step` selects of `size`, and where it starts: negative positions count from
/// the end, positions past an end are moved to it.
fn slice_extent(size: Size, start: Size, end: Size, step: i64) -> (Size, Size) {
    match (size, start, end) {
        (size, Size::Known(0), Size::Known(i64::MAX)) if step == 1 => (size, Size::Known(0)),
        (Size::Symbol(_), Size::Known(0), end) if step == 1 && end == size => (size, Size::Known(0)),
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
