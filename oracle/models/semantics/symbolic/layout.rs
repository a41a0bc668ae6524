//! Layouts: nests of (size, stride), outermost first, that say in which order a window shows the elements of flat
//! memory. Element `t` of a layout is `sum(digit_i(t) * stride_i)`, the digits of `t` being those of a row-major
//! count over the sizes.
//!
//! A layout in normal form has no dimension of size 1 and no two neighbours that count on without a break, so
//! different routes to the same order (a transpose of a transpose, a view of a view) give the same layout. Strides
//! are never negative: PyTorch has no such tensors.

pub(super) use crate::graph::layout::{is_contiguous, numel};

/// (size, stride), outermost first.
pub(super) type Dims = Vec<(i64, i64)>;

/// The normal form of a shape with strides. The shape holds at least one element.
pub(super) fn normal(sizes: &[i64], strides: &[i64]) -> Dims {
    let mut dims: Dims = Vec::with_capacity(sizes.len());
    for (&size, &stride) in sizes.iter().zip(strides) {
        push(&mut dims, size, stride);
    }
    dims
}

/// Appends an inner dimension and keeps the normal form.
fn push(dims: &mut Dims, size: i64, stride: i64) {
    if size == 1 {
        return;
    }
    match dims.last_mut() {
        Some(last) if size.checked_mul(stride) == Some(last.1) => {
            *last = (last.0.saturating_mul(size), stride);
        }
        _ => dims.push((size, stride)),
    }
}

/// The position of the last element, the first being at 0. `None` on a negative stride or overflow.
pub(super) fn extent(dims: &[(i64, i64)]) -> Option<i64> {
    dims.iter().try_fold(0i64, |sum, &(size, stride)| {
        if stride < 0 {
            return None;
        }
        sum.checked_add((size - 1).checked_mul(stride)?)
    })
}

/// The position of element `t`.
pub(super) fn position(dims: &[(i64, i64)], mut t: i64) -> i64 {
    let mut sum = 0i64;
    for &(size, stride) in dims.iter().rev() {
        let size = size.max(1);
        sum = sum.saturating_add((t % size).saturating_mul(stride));
        t /= size;
    }
    sum
}

/// How many stretches of consecutive or repeated elements a layout in normal form shows.
pub(super) fn blocks(dims: &[(i64, i64)]) -> i64 {
    let outer = match dims.last() {
        Some((_, 0 | 1)) => &dims[..dims.len() - 1],
        _ => dims,
    };
    outer.iter().fold(1i64, |n, &(size, _)| n.saturating_mul(size))
}

/// Calls `visit(position, length, step)` for each stretch of a layout in normal form, in order.
pub(super) fn for_each_block(dims: &[(i64, i64)], visit: &mut impl FnMut(i64, i64, i64)) {
    let (outer, inner) = match dims.split_last() {
        Some((&(size, stride @ (0 | 1)), outer)) => (outer, (size, stride)),
        _ => (dims, (1, 1)),
    };
    let mut digits = vec![0i64; outer.len()];
    let mut at = 0i64;
    loop {
        visit(at, inner.0, inner.1);
        let mut d = outer.len();
        loop {
            if d == 0 {
                return;
            }
            d -= 1;
            let (size, stride) = outer[d];
            digits[d] += 1;
            at += stride;
            if digits[d] < size {
                break;
            }
            at -= digits[d] * stride;
            digits[d] = 0;
        }
    }
}

/// The layout that `outer` shows of the sequence that `inner` shows, beginning at element `start` of it: the
/// position of the first element, and the layout from there. `None` where that is no layout, because a step of
/// `outer` carries from one dimension of `inner` into another.
pub(super) fn compose(outer: &[(i64, i64)], start: i64, inner: &[(i64, i64)]) -> Option<(i64, Dims)> {
    // weights[i]: how many elements of the sequence one step of dimension i passes.
    let mut weights = vec![1i64; inner.len()];
    for i in (1..inner.len()).rev() {
        weights[i - 1] = weights[i].checked_mul(inner[i].0)?;
    }
    // How far each digit gets at most: a sum above the size would carry.
    let mut reach = vec![0i64; inner.len()];
    let mut base = 0i64;
    for (i, &(size, stride)) in inner.iter().enumerate() {
        reach[i] = (start / weights[i]) % size;
        base = base.checked_add(reach[i].checked_mul(stride)?)?;
    }
    if let (Some(&weight), Some(&(size, _))) = (weights.first(), inner.first())
        && start / weight >= size
    {
        return None;
    }
    let mut dims = Vec::new();
    for &(size, stride) in outer {
        let mut parts = Vec::new();
        split(size, stride, inner, &weights, &mut reach, &mut parts)?;
        for &(size, stride) in parts.iter().rev() {
            push(&mut dims, size, stride);
        }
    }
    reach.iter().zip(inner).all(|(&reach, &(size, _))| reach < size).then_some((base, dims))
}

/// Writes one dimension of an outer layout as steps along single dimensions of the inner one, innermost first.
fn split(
    mut size: i64,
    mut stride: i64,
    inner: &[(i64, i64)],
    weights: &[i64],
    reach: &mut [i64],
    parts: &mut Dims,
) -> Option<()> {
    if stride == 0 {
        parts.push((size, 0));
        return Some(());
    }
    while size > 1 {
        // The outermost dimension whose step is not longer than ours.
        let i = weights.iter().position(|&weight| weight <= stride)?;
        if stride % weights[i] != 0 {
            return None;
        }
        let step = stride / weights[i];
        let here = if (size - 1).checked_mul(step)? < inner[i].0 {
            size
        } else {
            // The steps wrap around: they must do so exactly, and the rest goes on in the next dimension.
            if inner[i].0 % step != 0 || i == 0 {
                return None;
            }
            let fits = inner[i].0 / step;
            if size % fits != 0 {
                return None;
            }
            fits
        };
        reach[i] = reach[i].checked_add((here - 1).checked_mul(step)?)?;
        parts.push((here, step.checked_mul(inner[i].1)?));
        if here == size {
            break;
        }
        size /= here;
        stride = weights[i - 1];
    }
    Some(())
}

/// For a layout that shows each of the elements `0 .. n` exactly once: the layout that puts them back, so that
/// showing the one through the other is the identity. `None` for any other layout.
pub(super) fn inverse(dims: &[(i64, i64)]) -> Option<Dims> {
    let mut by_stride: Vec<(i64, i64, i64)> = Vec::with_capacity(dims.len());
    let mut weight = 1i64;
    for &(size, stride) in dims.iter().rev() {
        by_stride.push((stride, size, weight));
        weight = weight.checked_mul(size)?;
    }
    by_stride.sort_unstable();
    let mut expected = 1i64;
    for &(stride, size, _) in &by_stride {
        if stride != expected {
            return None;
        }
        expected = expected.checked_mul(size)?;
    }
    let mut result = Dims::new();
    for &(_, size, weight) in by_stride.iter().rev() {
        push(&mut result, size, weight);
    }
    Some(result)
}

/// A layout in two steps: the elements that it shows in the order of memory, and the order in which it shows these,
/// side by side. `None` where elements lie on each other.
pub(super) fn packed(dims: &[(i64, i64)]) -> Option<(Dims, Dims)> {
    let mut outermost_first: Vec<usize> = (0..dims.len()).collect();
    outermost_first.sort_unstable_by_key(|&i| std::cmp::Reverse(dims[i].1));
    let mut weights = vec![1i64; dims.len()];
    // Elements so far, and the memory from the first of them to the last.
    let (mut weight, mut reach) = (1i64, 1i64);
    for &i in outermost_first.iter().rev() {
        let (size, stride) = dims[i];
        if stride < reach {
            return None;
        }
        weights[i] = weight;
        weight = weight.checked_mul(size)?;
        reach = reach.checked_add((size - 1).checked_mul(stride)?)?;
    }
    let (mut in_memory, mut shown) = (Dims::new(), Dims::new());
    outermost_first.iter().for_each(|&i| push(&mut in_memory, dims[i].0, dims[i].1));
    dims.iter().zip(weights).for_each(|(&(size, _), weight)| push(&mut shown, size, weight));
    Some((in_memory, shown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(dims: &[(i64, i64)]) -> Vec<i64> {
        let count = dims.iter().map(|d| d.0).product();
        (0..count).map(|t| position(dims, t)).collect()
    }

    fn any_dims() -> impl Strategy<Value = Dims> {
        prop::collection::vec((1i64..5, 0i64..7), 0..4)
    }

    /// A permuted, contiguous shape: sizes and strides.
    fn any_permuted() -> impl Strategy<Value = (Vec<i64>, Vec<i64>)> {
        prop::collection::vec(1i64..5, 0..4)
            .prop_flat_map(|sizes| {
                let order: Vec<usize> = (0..sizes.len()).collect();
                (Just(sizes), Just(order).prop_shuffle())
            })
            .prop_map(|(sizes, order)| {
                let strides = crate::graph::contiguous_strides(&sizes);
                let pick = |of: &[i64]| order.iter().map(|&i| of[i]).collect();
                (pick(&sizes), pick(&strides))
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_normal_form_shows_the_same(dims in any_dims()) {
            let (sizes, strides): (Vec<i64>, Vec<i64>) = dims.iter().copied().unzip();
            let normal = normal(&sizes, &strides);
            prop_assert_eq!(all(&normal), all(&dims));
            prop_assert_eq!(extent(&normal), all(&dims).into_iter().max());
            let mut flat = Vec::new();
            for_each_block(&normal, &mut |at, len, step| flat.extend((0..len).map(|i| at + i * step)));
            prop_assert_eq!(flat, all(&dims));
        }

        #[test]
        fn a_composition_shows_what_is_shown(outer in any_dims(), inner in any_dims(), start in 0i64..20) {
            let inner_all = all(&inner);
            let outer_all: Vec<i64> = all(&outer).into_iter().map(|t| t + start).collect();
            if outer_all.iter().all(|&t| t < inner_all.len() as i64)
                && let Some((base, dims)) = compose(&outer, start, &inner)
            {
                let shown: Vec<i64> = outer_all.iter().map(|&t| inner_all[t as usize]).collect();
                let composed: Vec<i64> = all(&dims).into_iter().map(|p| base + p).collect();
                prop_assert_eq!(composed, shown);
            }
        }

        #[test]
        fn what_is_packed_shows_the_same(dims in any_dims()) {
            let (sizes, strides): (Vec<i64>, Vec<i64>) = dims.iter().copied().unzip();
            let dims = normal(&sizes, &strides);
            let mut nested = dims.clone();
            nested.sort_by_key(|&(_, stride)| std::cmp::Reverse(stride));
            match packed(&dims) {
                Some((in_memory, shown)) => {
                    prop_assert_eq!(all(&in_memory), all(&nested));
                    prop_assert_eq!(extent(&shown), Some(all(&dims).len() as i64 - 1));
                    let memory = all(&in_memory);
                    let through: Vec<i64> = all(&shown).iter().map(|&t| memory[t as usize]).collect();
                    prop_assert_eq!(through, all(&dims));
                }
                None => prop_assert!(all(&nested).windows(2).any(|pair| pair[0] >= pair[1])),
            }
        }

        #[test]
        fn permutations_compose_and_undo(dims in any_permuted()) {
            let dims = normal(&dims.0, &dims.1);
            let back = inverse(&dims).unwrap();
            let count: i64 = dims.iter().map(|d| d.0).product();
            let identity = if count == 1 { vec![] } else { vec![(count, 1)] };
            prop_assert_eq!(compose(&back, 0, &dims), Some((0, identity.clone())));
            prop_assert_eq!(compose(&dims, 0, &back), Some((0, identity)));
        }
    }

    #[test]
    fn an_extent_that_does_not_fit_is_none() {
        assert_eq!(extent(&[(1 << 40, 1 << 40)]), None);
    }

    #[test]
    fn blocks_are_counted() {
        assert_eq!((blocks(&[]), blocks(&[(5, 1)]), blocks(&[(5, 0)])), (1, 1, 1));
        assert_eq!((blocks(&[(3, 10), (5, 1)]), blocks(&[(3, 10), (5, 2)])), (3, 15));
        assert_eq!(inverse(&[(3, 10), (5, 1)]), None);
        assert_eq!(inverse(&[]), Some(vec![]));
    }
}
