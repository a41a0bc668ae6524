//! Views: other windows on the storage of the first argument.
//!
//! Which windows follows from the arguments and the window viewed, never from what is recorded about the result:
//! `ops::shape` says it, from the numbers that are known here. Where the schema says that the result is fresh
//! (`_unsafe_view`, `*_copy`), the elements of the window are copied.

use super::arguments::Call;
use super::evaluation::{Produced, Tensor};
use super::key::Tag;
use super::layout;
use super::machine::{Machine, Reading, Stop};
use super::reason::Reason;
use crate::graph::Value;
use crate::ops::View;
use crate::ops::shape::{self, Given, NoWindow, Size, Sizes, Viewed, Window};
use smallvec::{SmallVec, smallvec};

/// A dimension number from `-rank` to `rank - 1`, as an index. A tensor without dimensions counts as having one.
pub(super) fn dimension(dim: i64, rank: usize) -> Result<usize, Reason> {
    Ok(shape::dimension(dim, rank)?)
}

/// The numbers that a call gives, as the machine knows them.
pub(super) struct Numbers<'n, 'm, 'g, 'c> {
    pub(super) machine: &'n Machine<'m, 'g>,
    pub(super) call: &'n Call<'c>,
}

impl Given for Numbers<'_, '_, '_, '_> {
    type Stop = Stop;

    fn number(&self, index: usize) -> Result<Option<Size>, Stop> {
        Ok(self.machine.optional_int(self.call, index)?.map(Size::Known))
    }

    fn numbers(&self, index: usize) -> Result<Option<Sizes>, Stop> {
        match self.call.bound.given(index) {
            Some(Value::List(span)) => {
                let known = |&value: &Value| self.machine.int_value(value).map(Size::Known);
                self.machine.graph.values(span).iter().map(known).collect::<Result<_, _>>().map(Some)
            }
            _ => Ok(self.number(index)?.map(|number| smallvec![number])),
        }
    }

    fn stop(&self, why: NoWindow) -> Stop {
        why.into()
    }
}

impl From<NoWindow> for Reason {
    fn from(why: NoWindow) -> Reason {
        match why {
            NoWindow::Pieces(count) => Reason::Pieces(count),
            why => Reason::Arguments(why.to_string()),
        }
    }
}

impl From<NoWindow> for Stop {
    fn from(why: NoWindow) -> Stop {
        Stop::Unknown(why.into())
    }
}

impl Machine<'_, '_> {
    /// The window of a tensor of known sizes.
    pub(super) fn window_of(&self, tensor: Tensor) -> Result<Window, Stop> {
        if self.is_symbolic(tensor) {
            return Err(Stop::NotFollowed);
        }
        Ok(Window::known(self.eval.sizes(tensor), self.eval.strides(tensor), tensor.offset))
    }

    /// Stores a window on the storage of `base`.
    pub(super) fn on(&mut self, base: Tensor, window: &Window) -> Result<Tensor, Reason> {
        let offset = window.offset.known().ok_or(Reason::Overflow)?;
        if window.shape.iter().any(|size| size.known().is_none()) {
            return Err(Reason::Overflow);
        }
        let (at, rank) = (self.eval.pool.len() as u32, window.shape.len() as u16);
        // A stride past 64 bits is never stepped.
        let numbers = window.shape.iter().chain(&window.strides);
        self.eval.pool.extend(numbers.map(|number| number.known().unwrap_or(i64::MAX)));
        let shown = Tensor { storage: base.storage, offset, at, rank, dtype: base.dtype, path: None };
        layout::numel(self.eval.sizes(shown)).ok_or(Reason::Overflow)?;
        Ok(shown)
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
        let (windows, dtype) = match view {
            View::Sizes => return self.reshaped(call, base, &window, fresh),
            View::Dtype | View::AsComplex | View::AsReal => {
                let to = match call.bound.given(1) {
                    Some(Value::Dtype(dtype)) => Some(dtype),
                    _ => None,
                };
                let (window, dtype) = window.retyped(view, base.dtype, to)?;
                (smallvec![window], dtype)
            }
            _ => (shape::windows(view, window, &Numbers { machine: self, call }, 1)?, base.dtype),
        };
        let mut items: SmallVec<[Produced; 1]> = SmallVec::with_capacity(windows.len());
        for (index, window) in windows.iter().enumerate() {
            let mut shown = self.on(Tensor { dtype, ..base }, window)?;
            if fresh {
                shown = self.copied(index, shown)?;
            }
            items.push(self.done(shown));
        }
        match items[..] {
            [one] if !view.is_list() => Ok(one),
            _ => Ok(self.list(&items)),
        }
    }

    /// A copy of a tensor, as the `index`-th result of the current node.
    pub(super) fn copied(&mut self, index: usize, tensor: Tensor) -> Result<Tensor, Stop> {
        let sizes = self.sizes(tensor)?;
        let value = self.read(tensor, None, Reading::Moving)?;
        Ok(self.fresh_result(index, value, &sizes, tensor.dtype)?)
    }

    fn reshaped(
        &mut self,
        call: &Call<'_>,
        base: Tensor,
        window: &Window,
        fresh: bool,
    ) -> Result<Produced, Stop> {
        let given = Numbers { machine: self, call }.numbers(1)?.unwrap_or_default();
        let sizes = match window.viewed(&given)? {
            Viewed::Window(window) if !fresh => {
                let shown = self.on(base, &window)?;
                return Ok(self.done(shown));
            }
            Viewed::Window(Window { shape, .. }) | Viewed::Copy(shape) | Viewed::Undecided(shape) => shape,
        };
        if !fresh && call.schema.name != "reshape" {
            return Err(Reason::NoSuchView.into());
        }
        let value = self.read(base, None, Reading::Moving)?;
        let sizes = shape::known(&sizes).ok_or(Reason::Overflow)?;
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
        let source = self.arena.source_of(source, origin);
        let count = self.arena.len(value);
        let value = self.arena.all_of(source, count);
        let strides = self.eval.strides(base).to_vec();
        let fresh = self.fresh(value, &sizes, Some(&strides), base.dtype)?;
        Ok(self.done(fresh))
    }
}
