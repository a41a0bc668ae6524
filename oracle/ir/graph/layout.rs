//! Layouts in numbers: how the elements of a tensor lie, by sizes and strides.
//!
//! All floors ask here; sizes that may be symbols are those of [`ops::shape`](crate::ops::shape). Two things that
//! PyTorch decides by strides can be seen in a graph: whether a tensor counts as contiguous, and whether a `view` is
//! possible ([`view_strides`], after `at::detail::computeStride`).

use smallvec::SmallVec;

/// A short list of sizes or strides.
pub type Numbers = SmallVec<[i64; 6]>;

/// The number of elements; `None` if a size is negative, or if they are too many to count.
pub fn numel(sizes: &[i64]) -> Option<i64> {
    if sizes.contains(&0) {
        return sizes.iter().all(|&n| n >= 0).then_some(0);
    }
    sizes.iter().try_fold(1i64, |product, &n| if n < 0 { None } else { product.checked_mul(n) })
}

/// Row-major strides of a shape, in elements. A size of 0 counts as 1, as in PyTorch.
pub fn contiguous_strides(sizes: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; sizes.len()];
    write_contiguous(sizes, &mut strides);
    strides
}

/// The same, written into a list of as many strides.
pub fn write_contiguous(sizes: &[i64], strides: &mut [i64]) {
    let mut step = 1i64;
    for (stride, &size) in strides.iter_mut().zip(sizes).rev() {
        *stride = step;
        step = step.saturating_mul(size.max(1));
    }
}

/// Whether the elements lie in row-major order without gaps. Dimensions of size 1 do not count, and no elements are
/// contiguous.
pub fn is_contiguous(sizes: &[i64], strides: &[i64]) -> bool {
    let row_major = (0..sizes.len()).rev();
    sizes.contains(&0) || is_dense_in(sizes, strides, row_major)
}

/// Whether the elements lie without gaps and without overlap in this order of dimensions, the innermost first.
pub fn is_dense_in(sizes: &[i64], strides: &[i64], order: impl IntoIterator<Item = usize>) -> bool {
    let mut expected = 1i64;
    order.into_iter().filter(|&dim| sizes[dim] != 1).all(|dim| {
        let fits = strides[dim] == expected;
        expected = expected.saturating_mul(sizes[dim].max(1));
        fits
    })
}

/// The memory format that a name asks for; `None` for the one that there is.
pub fn named_format(name: &str) -> Option<&str> {
    Some(name.strip_prefix("torch.").unwrap_or(name)).filter(|format| *format != "preserve_format")
}

/// The dimensions in the order of a memory format, the innermost first; `None` for a format that is not one of so many
/// dimensions.
fn order_in(format: &str, rank: usize) -> Option<&'static [usize]> {
    match (format, rank) {
        ("channels_last", 4) => Some(&[1, 3, 2, 0]),
        ("channels_last_3d", 5) => Some(&[1, 4, 3, 2, 0]),
        _ => None,
    }
}

/// Whether the elements lie in a memory format without gaps; `None` for a format that is not one of so many dimensions.
pub fn lies_in(format: &str, sizes: &[i64], strides: &[i64]) -> Option<bool> {
    match format {
        "contiguous_format" => Some(is_contiguous(sizes, strides)),
        _ => order_in(format, sizes.len()).map(|order| is_dense_in(sizes, strides, order.iter().copied())),
    }
}

/// The strides of a shape in a memory format; `None` for a format that is not one of so many dimensions.
pub fn strides_in(format: &str, sizes: &[i64]) -> Option<Numbers> {
    let mut strides = Numbers::from_elem(1, sizes.len());
    if format == "contiguous_format" {
        write_contiguous(sizes, &mut strides);
        return Some(strides);
    }
    let mut step = 1i64;
    for &dim in order_in(format, sizes.len())? {
        strides[dim] = step;
        step = step.saturating_mul(sizes[dim].max(1));
    }
    Some(strides)
}

/// The memory format that PyTorch takes a tensor for by its strides (`suggest_memory_format`, c10/core/MemoryFormat.h).
pub fn format_of(sizes: &[i64], strides: &[i64]) -> &'static str {
    let is_like = |format: &str| {
        let order = order_in(format, sizes.len()).filter(|_| strides[1] != 0)?;
        let mut least = 0i64;
        order
            .iter()
            .all(|&dim| {
                // Where all strides are the same, it is taken for contiguous.
                let is_ambiguous = dim == 0 && least == strides[1];
                let fits = sizes[dim] != 0 && strides[dim] >= least && !is_ambiguous;
                least = strides[dim].saturating_mul(sizes[dim].max(1));
                fits
            })
            .then_some(())
    };
    let formats = ["channels_last", "channels_last_3d"];
    formats.into_iter().find(|format| is_like(format).is_some()).unwrap_or("contiguous_format")
}

/// Whether the elements lie in some order without gaps and without overlap. No elements do.
pub fn is_dense(sizes: &[i64], strides: &[i64]) -> bool {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&dim| strides[dim]);
    sizes.contains(&0) || is_dense_in(sizes, strides, order)
}

/// An order of all of `rank` dimensions as positions; `None` if it leaves one out or names another.
pub fn order_of(order: &[i64], rank: usize) -> Option<Vec<usize>> {
    let order: Vec<usize> = order.iter().map(|&dim| usize::try_from(dim).ok()).collect::<Option<_>>()?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    sorted.into_iter().eq(0..rank).then_some(order)
}

/// The strides under which the elements of a tensor appear, in row-major order, in another shape of as many elements;
/// `None` where they would have to be copied.
pub fn view_strides(sizes: &[i64], strides: &[i64], new: &[i64]) -> Option<Numbers> {
    let mut result = Numbers::from_elem(1, new.len());
    if sizes.contains(&0) {
        if sizes == new {
            return Some(Numbers::from_slice(strides));
        }
        write_contiguous(new, &mut result);
        return Some(result);
    }
    let Some(&last) = strides.last() else { return Some(result) };
    // Runs of dimensions that one stride spans, from the last to the first; each must be a run of new dimensions.
    let (mut base, mut run, mut taken, mut at) = (last, 1i64, 1i64, new.len());
    for i in (0..sizes.len()).rev() {
        run = run.checked_mul(sizes[i])?;
        let ends = i == 0 || (sizes[i - 1] != 1 && Some(strides[i - 1]) != run.checked_mul(base));
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Positions of all elements in row-major order, from the definition of strides.
    fn positions(sizes: &[i64], strides: &[i64]) -> Vec<i64> {
        let mut all = vec![0];
        for (&size, &stride) in sizes.iter().zip(strides) {
            all = all.iter().flat_map(|&p| (0..size).map(move |i| p + i * stride)).collect();
        }
        all
    }

    fn windows() -> impl Strategy<Value = (Vec<i64>, Vec<i64>)> {
        prop::collection::vec((0i64..4, 0i64..7), 0..4).prop_map(|d| d.into_iter().unzip())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// A view shows the same positions in the same order, and is found whenever there is one.
        #[test]
        fn views_keep_positions((sizes, strides) in windows(), cut in prop::collection::vec(1i64..5, 0..4)) {
            let n: i64 = sizes.iter().product();
            let rest: i64 = cut.iter().product();
            prop_assume!(n > 0 && n % rest == 0);
            let into: Vec<i64> = cut.iter().copied().chain([n / rest]).collect();
            let wanted = positions(&sizes, &strides);
            match view_strides(&sizes, &strides, &into) {
                Some(found) => prop_assert_eq!(positions(&into, &found), wanted),
                None => {
                    // Strides that show `wanted` in this shape would have to be these.
                    let steps = contiguous_strides(&into);
                    let stride = |(&size, &step): (&i64, &i64)| if size > 1 { wanted[step as usize] } else { 1 };
                    let forced: Vec<i64> = into.iter().zip(&steps).map(stride).collect();
                    prop_assert_ne!(positions(&into, &forced), wanted);
                }
            }
        }

        #[test]
        fn contiguous_elements_lie_side_by_side((sizes, strides) in windows()) {
            let all = positions(&sizes, &strides);
            let rows: Vec<i64> = (0..all.len() as i64).collect();
            prop_assert_eq!(is_contiguous(&sizes, &strides), all == rows);
            prop_assert_eq!(positions(&sizes, &contiguous_strides(&sizes)), rows);
            prop_assert_eq!(numel(&sizes), Some(all.len() as i64));
        }
    }

    #[test]
    fn ones_and_emptiness_do_not_count() {
        assert!(is_contiguous(&[2, 1, 3], &[3, 99, 1]));
        assert!(!is_contiguous(&[2, 3], &[1, 2]));
        assert!(is_contiguous(&[0, 3], &[1, 2]));
        assert_eq!(contiguous_strides(&[2, 0, 3]), [3, 3, 1]);
        assert_eq!(view_strides(&[0, 3], &[7, 1], &[0, 3]).as_deref(), Some(&[7, 1][..]));
        assert_eq!(view_strides(&[0, 3], &[7, 1], &[3, 0]).as_deref(), Some(&[1, 1][..]));
        assert_eq!(view_strides(&[], &[], &[1, 1]).as_deref(), Some(&[1, 1][..]));
    }

    #[test]
    fn sizes_that_do_not_fit_are_not_counted() {
        assert_eq!(numel(&[1 << 40, 1 << 40]), None);
        assert_eq!(numel(&[1 << 40, 0, 1 << 40]), Some(0));
        assert_eq!(numel(&[2, -3]), None);
        assert_eq!(numel(&[0, -3]), None);
    }
}
