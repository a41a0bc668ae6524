//! Views: other windows on the storage of an argument.
//!
//! Which windows, `ops::shape` says; here are the numbers that a call gives, and the copies. Where the schema says that
//! the result is fresh (`*_copy`), the window is copied. `_unsafe_view` is a view all the same: at run time it shares
//! storage, whatever its schema says.

use super::super::block::whole;
use super::super::domain::{Outcome, Trouble, raise, refuse};
use super::super::hazard::HazardKind;
use super::super::layout::{self, Dims, Window};
use super::super::program::Step;
use super::super::rank::{Item, Rank, too_many};
use crate::graph::{DtypeClass, NodeId, Value};
use crate::ops::View;
use crate::ops::shape::{self, Given, NoWindow, Size, Sizes, Viewed};
use smallvec::{SmallVec, smallvec};

/// The numbers that a step gives, as its rank holds them.
pub(super) struct Numbers<'r, 'g> {
    pub rank: &'r Rank<'g>,
    pub step: &'r Step<'g>,
}

impl Given for Numbers<'_, '_> {
    type Stop = Trouble;

    fn number(&self, index: usize) -> Outcome<Option<Size>> {
        let value = self.step.args.get(index).copied().unwrap_or(Value::None);
        Ok(self.rank.maybe_int(value)?.map(Size::Known))
    }

    fn numbers(&self, index: usize) -> Outcome<Option<Sizes>> {
        match self.step.args.get(index) {
            None | Some(Value::None) => Ok(None),
            Some(&value) => self.rank.sizes(value).map(Some),
        }
    }

    fn stop(&self, why: NoWindow) -> Trouble {
        why.into()
    }
}

impl From<NoWindow> for Trouble {
    fn from(why: NoWindow) -> Trouble {
        match why {
            NoWindow::Misfit(..) => raise!("{why}"),
            _ => refuse!("{why}"),
        }
    }
}

impl Window {
    /// Its shape, strides and offset.
    pub(super) fn shown(&self) -> shape::Window {
        shape::Window::known(&self.shape, &self.strides, self.offset)
    }

    /// Another window on the same storage.
    pub(super) fn showing(&self, shown: &shape::Window) -> Outcome<Window> {
        let rank = shown.shape.len();
        if rank > layout::MAX_DIMS {
            return Err(too_many(rank));
        }
        let overflow = || raise!("a size that does not fit 64 bits");
        let (mut shape, mut strides) = (Dims::default(), Dims::default());
        for (size, stride) in shown.shape.iter().zip(&shown.strides) {
            shape = shape.with_pushed(size.known().ok_or_else(overflow)?).ok_or_else(|| too_many(rank))?;
            // A stride past 64 bits is never stepped.
            strides =
                strides.with_pushed(stride.known().unwrap_or(i64::MAX)).ok_or_else(|| too_many(rank))?;
        }
        if layout::numel(&shape).is_none() {
            return Err(raise!("{shape:?} has more elements than can be counted"));
        }
        Ok(Window { offset: shown.offset.known().ok_or_else(overflow)?, shape, strides, ..*self })
    }
}

impl Rank<'_> {
    pub(super) fn view(&mut self, node: NodeId, step: &Step, view: View) -> Outcome<Item> {
        let x = self.tensor(step.args[0])?;
        let windows: SmallVec<[Window; 1]> = match view {
            View::Sizes => smallvec![self.resized(node, step, &x)?],
            View::Dtype | View::AsComplex | View::AsReal => smallvec![self.retyped(&x, step, view)?],
            _ => {
                let shown = shape::windows(view, x.shown(), &Numbers { rank: self, step }, 1)?;
                shown.iter().map(|window| x.showing(window)).collect::<Outcome<_>>()?
            }
        };
        let schema = step.info.and_then(|info| info.schema.as_ref());
        let copies =
            schema.is_some_and(|s| s.name != "_unsafe_view" && s.returns.iter().all(|r| r.alias.is_none()));
        let mut items: SmallVec<[Item; 1]> = SmallVec::with_capacity(windows.len());
        for (i, window) in windows.into_iter().enumerate() {
            let window = match view {
                View::Conj => conjugated(window)?,
                View::AsStrided => self.within(window)?,
                _ => window,
            };
            items.push(Item::Tensor(if copies { self.copied(node, i, &window)? } else { window }));
        }
        match items.pop() {
            Some(item) if !view.is_list() => Ok(item),
            last => {
                items.extend(last);
                Ok(Item::List(items.into_vec()))
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
        let copy = match x.shown().viewed(&self.sizes(step.args[1])?)? {
            Viewed::Window(window) => return x.showing(&window),
            Viewed::Copy(sizes) | Viewed::Undecided(sizes) => shape::Window::contiguous(sizes),
        };
        let copies = |name: &str| matches!(name, "reshape" | "view_copy");
        if !step.info.and_then(|i| i.schema.as_ref()).is_some_and(|s| copies(&s.name)) {
            self.memory.note(HazardKind::ViewNeedsCopy);
        }
        self.copied_as(node, x, &copy)
    }

    /// The same elements under other sizes: a view where strides allow it, and where they lie row by row if it has to be
    /// `contiguous`; else a copy.
    pub(super) fn viewed_or_copied(
        &mut self,
        node: NodeId,
        x: &Window,
        sizes: &[Size],
        contiguous: bool,
    ) -> Outcome<Window> {
        match x.shown().viewed(sizes)? {
            Viewed::Window(window) if !contiguous || x.is_contiguous() => x.showing(&window),
            Viewed::Window(shape::Window { shape, .. }) | Viewed::Copy(shape) | Viewed::Undecided(shape) => {
                self.copied_as(node, x, &shape::Window::contiguous(shape))
            }
        }
    }

    fn copied_as(&mut self, node: NodeId, x: &Window, copy: &shape::Window) -> Outcome<Window> {
        let shape = x.showing(copy)?.shape;
        self.room(&shape)?;
        let block = self.memory.cells(self.domain, x)?;
        Ok(self.fresh(node, 0, shape, x.dtype, block))
    }

    /// The same bytes under another dtype.
    fn retyped(&mut self, x: &Window, step: &Step, view: View) -> Outcome<Window> {
        if x.conj && view != View::AsComplex {
            return Err(raise!("a conjugated view cannot be shown under another dtype"));
        }
        let to = self.dtype(step.args[1]).unwrap_or(x.dtype);
        let (shown, dtype) = x.shown().retyped(view, x.dtype, Some(to))?;
        if view != View::AsComplex {
            self.memory.refine(self.domain, x.storage, whole(dtype));
        }
        Ok(Window { dtype, ..x.showing(&shown)? })
    }

    /// A window that lies in its storage.
    pub(super) fn within(&self, y: Window) -> Outcome<Window> {
        let reaches = |(_, end): (i64, i64)| end <= self.memory.capacity(y.storage, y.dtype);
        match y.numel() == 0 || y.extent().is_some_and(reaches) {
            true => Ok(y),
            false => Err(raise!(
                "shape {:?}, strides {:?}, offset {} leave the storage",
                y.shape,
                y.strides,
                y.offset
            )),
        }
    }
}

/// The same elements, conjugated.
fn conjugated(x: Window) -> Outcome<Window> {
    match x.dtype.class() {
        DtypeClass::Complex => Ok(Window { conj: !x.conj, ..x }),
        _ => Err(raise!("conjugates {}", x.dtype.name())),
    }
}
