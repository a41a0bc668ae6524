//! Strides of results. Sources: `aten/src/ATen/TensorIterator.cpp` (`reorder_dimensions`), `aten/src/ATen/
//! TensorUtils.cpp` (`computeStride`), `c10/core/Contiguity.h`.

use super::size::{Size, contiguous, known, numel};

/// The strides of a fresh result of an elementwise operator, or of a copy that preserves its format: dense, with
/// the dimensions in the order that the operands' strides have. `operands` are (shape, strides) before
/// broadcasting to `shape`. `None` where a stride that matters is not known.
pub fn elementwise(shape: &[Size], operands: &[(&[Size], &[Size])]) -> Option<Vec<Size>> {
    if let Some(strides) = plain(shape, operands) {
        return Some(strides);
    }
    let sizes = known(shape)?;
    let strides =
        operands.iter().map(|(of, strides)| broadcast(&sizes, of, strides)).collect::<Option<Vec<_>>>()?;
    let rank = sizes.len();
    // Fastest dimension first; an insertion sort, since ambiguous pairs make the comparison no total order.
    let mut order: Vec<usize> = (0..rank).rev().collect();
    for i in 1..rank {
        let mut moving = i;
        for earlier in (0..i).rev() {
            match compare(&sizes, &strides, order[earlier], order[moving]) {
                std::cmp::Ordering::Greater => {
                    order.swap(earlier, moving);
                    moving = earlier;
                }
                std::cmp::Ordering::Less => break,
                std::cmp::Ordering::Equal => {}
            }
        }
    }
    let mut result = vec![0i64; rank];
    let mut next = 1i64;
    for &dim in &order {
        result[dim] = next;
        next = next.checked_mul(sizes[dim].max(1))?;
    }
    Some(result.into_iter().map(Size::Known).collect())
}

/// The common case, which needs no sorting and no known sizes: every operand is contiguous in the result's shape.
fn plain(shape: &[Size], operands: &[(&[Size], &[Size])]) -> Option<Vec<Size>> {
    let strides = contiguous(shape);
    let all = operands.iter().filter(|(of, _)| !of.is_empty()).all(|(of, s)| *of == shape && *s == strides);
    (all && !strides.contains(&Size::Unknown)).then_some(strides)
}

/// The strides of an operand in the result's dimensions, 0 where it is broadcast.
fn broadcast(shape: &[i64], of: &[Size], strides: &[Size]) -> Option<Vec<i64>> {
    let missing = shape.len().checked_sub(of.len())?;
    let mut result = vec![0i64; shape.len()];
    for (i, (size, stride)) in of.iter().zip(strides).enumerate() {
        let size = size.known()?;
        if size != 1 || shape[missing + i] == 1 {
            result[missing + i] = stride.known()?;
        }
    }
    Some(result)
}

/// Whether dimension `a` should come after `b` in an order from fast to slow.
fn compare(sizes: &[i64], strides: &[Vec<i64>], a: usize, b: usize) -> std::cmp::Ordering {
    use std::cmp::Ordering::*;
    for operand in strides {
        let (of_a, of_b) = (operand[a], operand[b]);
        if of_a == 0 || of_b == 0 {
            continue;
        }
        match of_a.cmp(&of_b) {
            Equal if sizes[a] > sizes[b] => return Greater,
            Equal => {}
            different => return different,
        }
    }
    Equal
}

/// The strides under which `new` shows the elements of a tensor in row-major order without moving them:
/// `Some(None)` where there are none, `None` where that is not decided.
pub fn view(shape: &[Size], strides: &[Size], new: &[Size]) -> Option<Option<Vec<Size>>> {
    let (Some(old), Some(of), Some(new_known)) = (known(shape), known(strides), known(new)) else {
        let is_contiguous = strides == contiguous(shape) && !strides.contains(&Size::Unknown);
        let result = contiguous(new);
        return (is_contiguous && !result.contains(&Size::Unknown)).then_some(Some(result));
    };
    Some(view_known(&old, &of, &new_known).map(|s| s.into_iter().map(Size::Known).collect()))
}

fn view_known(shape: &[i64], strides: &[i64], new: &[i64]) -> Option<Vec<i64>> {
    if shape.contains(&0) {
        if shape == new {
            return Some(strides.to_vec());
        }
        return Some(crate::graph::contiguous_strides(new));
    }
    let mut result = vec![1i64; new.len()];
    let Some(&last) = strides.last() else { return Some(result) };
    // Runs of dimensions that one stride spans, from the last to the first; each must be a run of new dimensions.
    let (mut base, mut run, mut taken, mut at) = (last, 1i64, 1i64, new.len());
    for i in (0..shape.len()).rev() {
        run = run.checked_mul(shape[i])?;
        let ends = i == 0 || (shape[i - 1] != 1 && Some(strides[i - 1]) != run.checked_mul(base));
        if !ends {
            continue;
        }
        while at > 0 && (taken < run || new[at - 1] == 1) {
            at -= 1;
            result[at] = taken.checked_mul(base)?;
            taken = taken.checked_mul(new[at])?;
        }
        if taken != run {
            return None;
        }
        if i > 0 {
            (base, run, taken) = (strides[i - 1], 1, 1);
        }
    }
    (at == 0).then_some(result)
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
