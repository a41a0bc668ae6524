//! Which windows a view shows: its arguments decoded, once for shape inference and for the evaluators; and the shape
//! rule of views.
//!
//! A call says dimensions, positions and sizes. Who knows them is [`Given`]: shape inference as far as they are
//! recorded, an evaluator from the values that it holds. [`windows`] asks for what a view needs, and hands it to
//! [`Window`], which computes. So a new kind of window is a method there and a line here.
//!
//! Views of another dtype are [`Window::retyped`]; `view` and `reshape`, which may copy, are [`Window::viewed`].

use super::call::{Call, Rule, Stop, fault};
use super::size::{Size, Sizes, known};
use super::window::{Given, NoWindow, Viewed, Window, Windows};
use super::{Inferred, TensorMeta, many, one};
use crate::graph::layout::Numbers;
use crate::graph::{Dtype, DtypeClass};
use crate::ops::View;
use smallvec::smallvec;

/// The arguments of a view, in the order of its schema.
struct Arguments<'n, G> {
    given: &'n G,
    /// The parameter of the first one.
    first: usize,
}

impl<G: Given> Arguments<'_, G> {
    fn absent(&self, at: usize) -> G::Stop {
        let words = format!("argument {} is not given", self.first + at);
        self.given.stop(NoWindow::Misfit(words, Vec::new()))
    }

    fn optional(&self, at: usize) -> Result<Option<Size>, G::Stop> {
        self.given.number(self.first + at)
    }

    fn size(&self, at: usize) -> Result<Size, G::Stop> {
        self.optional(at)?.ok_or_else(|| self.absent(at))
    }

    /// A number that must be known.
    fn int(&self, at: usize) -> Result<i64, G::Stop> {
        self.size(at)?.known().ok_or_else(|| self.given.stop(NoWindow::Undecided))
    }

    fn sizes(&self, at: usize) -> Result<Sizes, G::Stop> {
        self.given.numbers(self.first + at)?.ok_or_else(|| self.absent(at))
    }

    /// Numbers that must be known, if they are given.
    fn ints(&self, at: usize) -> Result<Option<Numbers>, G::Stop> {
        let Some(list) = self.given.numbers(self.first + at)? else { return Ok(None) };
        known(&list).map(Some).ok_or_else(|| self.given.stop(NoWindow::Undecided))
    }
}

/// The windows that a view shows of another one. Its arguments begin at parameter `first`.
///
/// # Errors
/// An argument is not known, or does not fit.
pub fn windows<G: Given>(view: View, of: Window, given: &G, first: usize) -> Result<Windows, G::Stop> {
    let args = Arguments { given, first };
    let shown = match view {
        View::Split => of.split(args.int(1)?, args.int(0)?),
        View::Chunk => of.chunked(args.int(1)?, args.int(0)?),
        View::SplitWithSizes => of.split_with_sizes(args.int(1)?, &args.sizes(0)?),
        View::Unbind => of.unbound(args.int(0)?),
        _ => return Ok(smallvec![window(view, of, given, first)?]),
    };
    shown.map_err(|why| given.stop(why))
}

/// The same of a view that shows one window.
///
/// # Errors
/// An argument is not known, or does not fit.
pub fn window<G: Given>(view: View, of: Window, given: &G, first: usize) -> Result<Window, G::Stop> {
    let args = Arguments { given, first };
    let shown = match view {
        View::Permute | View::Transpose | View::T => {
            let mut dims = args.ints(0)?.unwrap_or_default();
            dims.extend(args.ints(1)?.unwrap_or_default());
            view.order(of.shape.len(), &dims).map(|order| of.permuted(&order))
        }
        View::Unsqueeze => of.unsqueezed(args.int(0)?),
        View::Squeeze => of.squeezed(args.ints(0)?.as_deref()),
        View::Expand => of.expanded(&args.sizes(0)?),
        View::Slice => of.sliced(args.int(0)?, args.optional(1)?, args.optional(2)?, args.int(3)?),
        View::Narrow => of.narrowed(args.int(0)?, args.size(1)?, args.size(2)?),
        View::Select => of.selected(args.int(0)?, args.size(1)?),
        View::AsStrided => of.restrided(args.sizes(0)?, args.sizes(1)?, args.optional(2)?),
        View::Diagonal => of.diagonal(args.int(0)?, args.int(1)?, args.int(2)?),
        View::Unfold => of.unfolded(args.int(0)?, args.int(1)?, args.int(2)?),
        View::Alias | View::Conj => Ok(of),
        _ => Err(NoWindow::Undecided),
    };
    shown.map_err(|why| given.stop(why))
}

/// The shape rule of views. Where the name says so, the windows are copied.
pub(super) fn infer(call: &Call, kind: View) -> Rule<Inferred> {
    let tensor = call.tensor(call.param(0))?;
    let from = tensor.dtype;
    let of = tensor.window()?;
    let made = |shown: TensorMeta| match call.name().ends_with("_copy") {
        true => TensorMeta::fresh(shown.shape, shown.dtype),
        false => shown,
    };
    match kind {
        View::Conj if from.is_some_and(|d| d.class() != DtypeClass::Complex) => {
            fault("conj of real numbers".to_string())
        }
        View::Sizes => one(made(sizes(call, &of, from)?)),
        View::Dtype | View::AsComplex | View::AsReal => {
            let from = from.ok_or(Stop::Undecided)?;
            let (window, to) = call.shown(of.retyped(kind, from, call.dtype("dtype")))?;
            one(made(TensorMeta::shown(window, Some(to))))
        }
        _ if kind.is_list() => {
            let pieces = windows(kind, of, call, 1)?;
            many(pieces.into_iter().map(|piece| made(TensorMeta::shown(piece, from))))
        }
        _ => one(made(TensorMeta::shown(window(kind, of, call, 1)?, from))),
    }
}

/// The rule of `view` and `reshape`.
fn sizes(call: &Call, of: &Window, dtype: Option<Dtype>) -> Rule<TensorMeta> {
    match call.shown(of.viewed(&call.sizes(call.param(1))?))? {
        Viewed::Window(window) => Ok(TensorMeta::shown(window, dtype)),
        // Then these copy.
        Viewed::Copy(shape) if matches!(call.name(), "reshape" | "view_copy") => {
            Ok(TensorMeta::fresh(shape, dtype))
        }
        Viewed::Copy(shape) => fault(format!(
            "cannot view {} with strides {} as {}",
            call.text(&of.shape),
            call.text(&of.strides),
            call.text(&shape)
        )),
        Viewed::Undecided(shape) => Ok(TensorMeta::loose(shape, dtype)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists of numbers, by parameter.
    struct Lists(Vec<Vec<Size>>);

    impl Given for Lists {
        type Stop = NoWindow;

        fn number(&self, index: usize) -> Result<Option<Size>, NoWindow> {
            Ok(self.0.get(index).and_then(|list| list.first().copied()))
        }

        fn numbers(&self, index: usize) -> Result<Option<Sizes>, NoWindow> {
            Ok(self.0.get(index).map(|list| Sizes::from_slice(list)))
        }

        fn stop(&self, why: NoWindow) -> NoWindow {
            why
        }
    }

    fn of(sizes: &[Size]) -> Window {
        Window::contiguous(Sizes::from_slice(sizes))
    }

    const N: fn(i64) -> Size = Size::Known;

    #[test]
    fn what_is_not_known_stays_unknown() {
        let (rows, all) = (of(&[Size::Unknown, N(4)]), [Size::Unknown]);
        let at = |view, numbers: &[Size]| {
            window(view, rows.clone(), &Lists(numbers.iter().map(|&n| vec![n]).collect()), 0).unwrap()
        };
        let kept = |shape: &[Size], strides: &[i64], offset| {
            let strides = strides.iter().map(|&n| N(n)).collect();
            Window { shape: Sizes::from_slice(shape), strides, offset }
        };
        assert_eq!(at(View::Narrow, &[N(0), N(2), N(3)]), kept(&[N(3), N(4)], &[4, 1], N(8)));
        assert_eq!(at(View::Narrow, &[N(0), N(-2), N(1)]), kept(&[N(1), N(4)], &[4, 1], Size::Unknown));
        assert_eq!(at(View::Select, &[N(0), N(-1)]), kept(&[N(4)], &[1], Size::Unknown));
        assert_eq!(at(View::Select, &[N(1), N(3)]), kept(&all, &[4], N(3)));
        assert_eq!(at(View::Slice, &[N(0), N(0), N(9), N(2)]), kept(&[Size::Unknown, N(4)], &[8, 1], N(0)));
        assert_eq!(
            at(View::Unfold, &[N(0), N(2), N(2)]),
            kept(&[Size::Unknown, N(4), N(2)], &[8, 1, 4], N(0))
        );
        let squeezed = window(View::Squeeze, rows.clone(), &Lists(Vec::new()), 0);
        assert_eq!(squeezed, Err(NoWindow::Undecided));
        let undecided = windows(View::Unbind, rows.clone(), &Lists(vec![vec![N(0)]]), 0);
        assert_eq!(undecided, Err(NoWindow::Undecided));
    }

    #[test]
    fn a_number_past_64_bits_is_not_known() {
        let wide = of(&[N(2), N(1 << 40)]);
        let numbers = Lists(vec![vec![N(0)], vec![N(1)], vec![N(2)], vec![N(1 << 40)]]);
        let shown = window(View::Slice, wide, &numbers, 0).unwrap();
        assert_eq!(shown.strides[..], [Size::Unknown, N(1)]);
        assert_eq!(shown.offset, N(1 << 40));
    }

    #[test]
    fn arguments_begin_where_they_are_said_to() {
        let numbers = Lists(vec![vec![], vec![], vec![N(1)], vec![N(-1)]]);
        let shown = window(View::Select, of(&[N(3), N(4)]), &numbers, 2).unwrap();
        assert_eq!((&shown.shape[..], shown.offset), (&[N(3)][..], N(3)));
        let absent = window(View::Select, of(&[N(3), N(4)]), &numbers, 3).unwrap_err();
        assert_eq!(absent.to_string(), "argument 4 is not given");
    }

    #[test]
    fn a_misfit_names_the_sizes() {
        let numbers = Lists(vec![vec![N(2), Size::Unknown]]);
        let why = window(View::Expand, of(&[N(3), N(4)]), &numbers, 0).unwrap_err();
        assert_eq!(why.to_string(), "cannot expand [3, 4] to [2, ?]");
        let many = windows(View::Split, of(&[N(i64::MAX)]), &Lists(vec![vec![N(1)], vec![N(0)]]), 0);
        assert_eq!(many, Err(NoWindow::Pieces(i64::MAX)));
    }
}
