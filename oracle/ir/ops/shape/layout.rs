//! Strides of results, as far as they are known. Sources: `aten/src/ATen/TensorIterator.cpp` (`reorder_dimensions`),
//! `c10/core/Contiguity.h`.

use super::size::{Size, Sizes, contiguous, known, numel};
use crate::expression::spelled;
use crate::graph::layout::{is_dense_in, view_strides};

/// The strides of a fresh result of an elementwise operator, or of a copy that preserves its format: dense, with
/// the dimensions in the order that the operands' strides have. `operands` are (shape, strides) before
/// broadcasting to `shape`. `None` where eager and traced PyTorch differ (operands that disagree, or of several
/// dimensions that are broadcast into another order), and where it depends on a stride that is not known.
pub fn elementwise(shape: &[Size], operands: &[(&[Size], &[Size])]) -> Option<Sizes> {
    let all =
        |test: fn(&[Size], &[Size]) -> Option<bool>| operands.iter().all(|(of, s)| test(of, s) == Some(true));
    if all(is_contiguous) {
        let strides = contiguous(shape);
        return (!strides.contains(&Size::Unknown)).then_some(strides);
    }
    let sizes = known(shape)?;
    let (full, others): (Vec<_>, Vec<_>) = operands.iter().partition(|(of, _)| *of == shape);
    let orders =
        full.iter().map(|(_, strides)| order(&sizes, &known(strides)?)).collect::<Option<Vec<_>>>()?;
    let first = orders.first()?;
    let dense =
        |strides: &[Size]| known(strides).is_some_and(|s| is_dense_in(&sizes, &s, first.iter().copied()));
    let agree = full.len() == 1 || (orders.iter().all(|o| o == first) && full.iter().all(|(_, s)| dense(s)));
    if !agree || !others.iter().all(|(of, _)| of.is_empty()) || (!others.is_empty() && !dense(full[0].1)) {
        return None;
    }
    let mut result = Sizes::from_elem(Size::Unknown, sizes.len());
    let mut next = 1i64;
    for &dim in first {
        result[dim] = Size::Known(next);
        next = next.checked_mul(sizes[dim].max(1))?;
    }
    Some(result)
}

/// The dimensions from fast to slow, as `TensorIterator` sorts them for one operand: an insertion sort, since
/// strides of 0 make the comparison no total order.
fn order(sizes: &[i64], strides: &[i64]) -> Option<Vec<usize>> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    if sizes.len() != strides.len() {
        return None;
    }
    let compare = |a: usize, b: usize| match (strides[a], strides[b]) {
        (0, _) | (_, 0) => Equal,
        (x, y) if x == y && sizes[a] > sizes[b] => Greater,
        (x, y) => x.cmp(&y),
    };
    let mut order: Vec<usize> = (0..sizes.len()).rev().collect();
    for i in 1..order.len() {
        let mut moving = i;
        for earlier in (0..i).rev() {
            match compare(order[earlier], order[moving]) {
                Greater => {
                    order.swap(earlier, moving);
                    moving = earlier;
                }
                Less => break,
                Equal => {}
            }
        }
    }
    Some(order)
}

/// The strides under which `new` shows the elements of a tensor in row-major order without moving them:
/// `Some(None)` where there are none, `None` where that is not decided.
pub fn view(shape: &[Size], strides: &[Size], new: &[Size]) -> Option<Option<Sizes>> {
    let (Some(old), Some(of), Some(new_known)) = (known(shape), known(strides), known(new)) else {
        let is_contiguous = strides == &contiguous(shape)[..] && !strides.contains(&Size::Unknown);
        let result = contiguous(new);
        return (is_contiguous && !result.contains(&Size::Unknown)).then_some(Some(result));
    };
    if old.len() != of.len() {
        return None;
    }
    Some(view_strides(&old, &of, &new_known).map(|strides| strides.into_iter().map(Size::Known).collect()))
}

/// The strides under which `new` shows the elements of a tensor, all in normal form ([`spelled`], [`spelled_stride`]); `None`
/// where it is not known that there are some. Each run of dimensions that lie row by row among themselves holds as many
/// elements as some neighbouring sizes do. Source: `at::detail::computeStride`.
///
/// [`spelled_stride`]: crate::expression::spelled_stride
pub fn strides_of_symbolic_view(shape: &[String], strides: &[String], new: &[String]) -> Option<Vec<String>> {
    const ONE: &str = "1";
    let product = |a: &str, b: &str| spelled(&format!("({a})*({b})"));
    let mut found = vec![ONE.to_string(); new.len()];
    let mut asked = (0..new.len()).rev().filter(|&dim| new[dim] != ONE);
    let dims = shape.iter().zip(strides).rev();
    let mut dims = dims.filter(|(size, _)| *size != ONE).peekable();
    while let Some((size, stride)) = dims.next() {
        let (mut elements, mut next) = (size.clone(), product(stride, size));
        while let Some((size, _)) = dims.next_if(|(_, stride)| **stride == next) {
            (elements, next) = (product(&elements, size), product(&next, size));
        }
        let (mut shown, mut step) = (ONE.to_string(), stride.clone());
        while shown != elements {
            let dim = asked.next()?;
            found[dim].clone_from(&step);
            (shown, step) = (product(&shown, &new[dim]), product(&step, &new[dim]));
        }
    }
    asked.next().is_none().then_some(found)
}

/// Whether the elements lie row-major without gaps; `None` where that is not decided.
pub fn is_contiguous(shape: &[Size], strides: &[Size]) -> Option<bool> {
    if numel(shape) == Size::Known(0) {
        return Some(true);
    }
    let wanted = contiguous(shape);
    let mut all = Some(true);
    for ((&size, &stride), &want) in shape.iter().zip(strides).zip(&wanted) {
        match (size, stride.same(want)) {
            (Size::Known(1), _) | (_, Some(true)) => {}
            (_, Some(false)) => return Some(false),
            (_, None) => all = None,
        }
    }
    all
}
