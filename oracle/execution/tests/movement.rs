//! Movement: each result element is the element of the input at an index that the operator's definition gives,
//! in every layout, every dtype and both domains.

use super::*;
use proptest::prelude::*;

/// A shape with dense or gapped strides in some order.
#[derive(Clone, Debug)]
struct Layout {
    shape: Vec<i64>,
    strides: Vec<i64>,
    dtype: Dtype,
}

fn layouts(dims: std::ops::Range<usize>) -> impl Strategy<Value = Layout> {
    let dtypes =
        prop::sample::select(vec![Dtype::F32, Dtype::BF16, Dtype::I64, Dtype::Bool, Dtype::C64, Dtype::C128]);
    (prop::collection::vec(1i64..4, dims), any::<u64>(), 1i64..3, dtypes).prop_map(
        |(shape, seed, gap, dtype)| {
            let mut order: Vec<usize> = (0..shape.len()).collect();
            (0..shape.len()).for_each(|i| order.swap(i, (seed >> (8 * i)) as usize % shape.len()));
            let mut strides = vec![0; shape.len()];
            let mut step = gap;
            for i in order {
                strides[i] = step;
                step *= shape[i];
            }
            Layout { shape, strides, dtype }
        },
    )
}

/// All indices of a shape in row-major order.
pub fn indices(shape: &[i64]) -> Vec<Vec<i64>> {
    shape.iter().fold(vec![Vec::new()], |all, &n| {
        all.iter().flat_map(|index| (0..n).map(move |i| [index.clone(), vec![i]].concat())).collect()
    })
}

/// The cells of an element.
fn element(tensor: &TensorValue, index: &[i64]) -> Vec<u64> {
    let flat = index.iter().zip(tensor.shape.iter()).fold(0, |flat, (&i, &n)| flat * n + i) as usize;
    let per = tensor.cells.len() / tensor.shape.iter().product::<i64>().max(1) as usize;
    tensor.cells[flat * per..(flat + 1) * per].to_vec()
}

/// Checks that `build` gives `shape`, with the element at each index that of x at `source(index)`, or where that is
/// `None`, that of the second input y at the same index.
fn check(
    x: &Layout,
    build: impl Fn(&mut Sketch, NodeId, NodeId) -> NodeId,
    shape: &[i64],
    source: impl Fn(&[i64]) -> Option<Vec<i64>>,
) -> Result<(), TestCaseError> {
    let mut s = Sketch::new(1);
    let a = s.strided("x", x.dtype, &x.shape, &x.strides);
    let b = s.input("y", x.dtype, shape);
    let y = build(&mut s, a, b);
    s.output(&[y, a, b]);
    for run in [s.numbers(), s.terms()] {
        let (y, a, b) = (tensor(&run, 0, 0), tensor(&run, 0, 1), tensor(&run, 0, 2));
        prop_assert_eq!(&*y.shape, shape);
        prop_assert!(y.poison.is_empty());
        for index in indices(shape) {
            let expected = match source(&index) {
                Some(from) => element(a, &from),
                None => element(b, &index),
            };
            prop_assert_eq!(element(y, &index), expected, "{} at {:?}", run.domain, index);
        }
    }
    Ok(())
}

/// The index of a row-major position.
fn unflatten(mut flat: i64, shape: &[i64]) -> Vec<i64> {
    let mut index: Vec<i64> = shape
        .iter()
        .rev()
        .map(|&n| {
            let i = flat % n;
            flat /= n;
            i
        })
        .collect();
    index.reverse();
    index
}

fn flatten(index: &[i64], shape: &[i64]) -> i64 {
    index.iter().zip(shape).fold(0, |flat, (&i, &n)| flat * n + i)
}

fn with(list: &[i64], at: usize, value: i64) -> Vec<i64> {
    let mut list = list.to_vec();
    list[at] = value;
    list
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn permutations(x in layouts(1..4), seed in any::<u64>()) {
        let dims = x.shape.len();
        let mut order: Vec<usize> = (0..dims).collect();
        (0..dims).for_each(|i| order.swap(i, (seed >> (8 * i)) as usize % dims));
        let list: Vec<i64> = order.iter().map(|&d| d as i64).collect();
        let shape: Vec<i64> = order.iter().map(|&d| x.shape[d]).collect();
        check(&x, |s, a, _| s.call("aten.permute.default", list![a, list.clone()]), &shape, |index| {
            let mut from = vec![0; dims];
            order.iter().zip(index).for_each(|(&d, &i)| from[d] = i);
            Some(from)
        })?;
        let (i, j) = (0, dims - 1);
        let mut shape = x.shape.clone();
        shape.swap(i, j);
        check(&x, |s, a, _| s.call("aten.transpose.int", list![a, 0, -1]), &shape, |index| {
            let mut from = index.to_vec();
            from.swap(i, j);
            Some(from)
        })?;
    }

    #[test]
    fn windows(x in layouts(1..4), dim in 0usize..3, start in -4i64..4, end in -4i64..5, step in 1i64..3) {
        let dim = dim % x.shape.len();
        let size = x.shape[dim];
        let clamp = |i: i64| (if i < 0 { i + size } else { i }).clamp(0, size);
        let (from, to) = (clamp(start), clamp(end));
        let count = ((to - from).max(0) + step - 1) / step;
        let shape = with(&x.shape, dim, count);
        check(&x, |s, a, _| s.call("aten.slice.Tensor", list![a, dim as i64, start, end, step]), &shape, |index| {
            Some(with(index, dim, from + index[dim] * step))
        })?;
        // The same part overwritten with y, which here has the shape of x.
        check(&x, |s, a, b| {
            let part = s.call("aten.slice.Tensor", list![b, dim as i64, start, end, step]);
            s.call("aten.slice_scatter.default", list![a, part, dim as i64, start, end, step])
        }, &x.shape.clone(), |index| {
            let inside = index[dim] >= from && index[dim] < to && (index[dim] - from) % step == 0;
            (!inside).then(|| index.to_vec())
        })?;
    }

    #[test]
    fn single_slices(x in layouts(1..4), dim in 0usize..3, at in 0i64..3) {
        let dim = dim % x.shape.len();
        let at = at % x.shape[dim];
        let mut shape = x.shape.clone();
        shape.remove(dim);
        let back = |index: &[i64], at: i64| {
            let mut from = index.to_vec();
            from.insert(dim, at);
            Some(from)
        };
        check(&x, |s, a, _| s.call("aten.select.int", list![a, dim as i64, at - x.shape[dim]]), &shape, |index| back(index, at))?;
        check(&x, |s, a, _| {
            let all = s.call("aten.unbind.int", list![a, dim as i64]);
            s.call("operator.getitem", list![all, at])
        }, &shape, |index| back(index, at))?;
        check(&x, |s, a, b| {
            let part = s.call("aten.select.int", list![b, dim as i64, at]);
            s.call("aten.select_scatter.default", list![a, part, dim as i64, at])
        }, &x.shape.clone(), |index| (index[dim] != at).then(|| index.to_vec()))?;
        check(&x, |s, a, b| {
            let part = s.call("aten.select.int", list![b, dim as i64, at]);
            let rest = |list: &[i64]| { let mut list = list.to_vec(); list.remove(dim); list };
            let arguments = list![a, part, rest(&x.shape), rest(&x.strides), at * x.strides[dim]];
            s.call("aten.as_strided_scatter.default", arguments)
        }, &x.shape.clone(), |index| (index[dim] != at).then(|| index.to_vec()))?;
        let mut longer = x.shape.clone();
        longer.insert(dim, 1);
        let drop = |index: &[i64]| {
            let mut from = index.to_vec();
            from.remove(dim);
            Some(from)
        };
        check(&x, |s, a, _| s.call("aten.unsqueeze.default", list![a, dim as i64]), &longer, drop)?;
        check(&x, |s, a, _| {
            let y = s.call("aten.unsqueeze.default", list![a, dim as i64]);
            s.call("aten.squeeze.dim", list![y, dim as i64])
        }, &x.shape.clone(), |index| Some(index.to_vec()))?;
    }

    #[test]
    fn reshapes(x in layouts(1..4), cut in 1i64..4) {
        let n: i64 = x.shape.iter().product();
        prop_assume!(n % cut == 0);
        let shape = [cut, n / cut];
        let source = |index: &[i64]| Some(unflatten(flatten(index, &shape), &x.shape));
        check(&x, |s, a, _| s.call("aten.reshape.default", list![a, [cut, -1]]), &shape, source)?;
        check(&x, |s, a, _| {
            let y = s.call("aten.clone.default", list![a]);
            let y = s.call("aten.reshape.default", list![y, [-1]]);
            s.call("aten.view.default", list![y, [cut, n / cut]])
        }, &shape, source)?;
    }

    #[test]
    fn expansions(x in layouts(1..3), extra in 1i64..3, dim in 0usize..2) {
        let dim = dim % x.shape.len();
        let one = Layout { shape: with(&x.shape, dim, 1), ..x.clone() };
        let shape = [vec![extra], with(&x.shape, dim, 3)].concat();
        let mut sizes = shape.clone();
        sizes.iter_mut().skip(1).enumerate().for_each(|(i, n)| if i != dim { *n = -1 });
        let source = |index: &[i64]| Some(with(&index[1..], dim, 0));
        check(&one, |s, a, _| s.call("aten.expand.default", list![a, sizes.clone()]), &shape, source)?;
        let repeats = with(&vec![1; shape.len()], 0, extra);
        let repeats = with(&repeats, dim + 1, 3);
        check(&one, |s, a, _| s.call("aten.repeat.default", list![a, repeats.clone()]), &shape, source)?;
    }

    #[test]
    fn pieces_and_their_join(x in layouts(1..4), dim in 0usize..3, sizes in prop::collection::vec(0i64..3, 1..4)) {
        let dim = dim % x.shape.len();
        let total: i64 = sizes.iter().sum();
        let x = Layout { shape: with(&x.shape, dim, total), strides: x.strides.clone(), ..x };
        // Strides for the changed shape: row-major.
        let strides = contiguous(&x.shape);
        let x = Layout { strides, ..x };
        let mut start = 0;
        for (k, &n) in sizes.iter().enumerate() {
            let from = start;
            let shape = with(&x.shape, dim, n);
            check(&x, |s, a, _| {
                let all = s.call("aten.split_with_sizes.default", list![a, sizes.clone(), dim as i64]);
                s.call("operator.getitem", list![all, k as i64])
            }, &shape, |index| Some(with(index, dim, index[dim] + from)))?;
            start += n;
        }
        check(&x, |s, a, _| {
            let all = s.call("aten.split_with_sizes.default", list![a, sizes.clone(), dim as i64]);
            let parts: Vec<NodeId> =
                (0..sizes.len()).map(|k| s.call("operator.getitem", list![all, k as i64])).collect();
            s.call("aten.cat.default", list![parts, dim as i64])
        }, &x.shape.clone(), |index| Some(index.to_vec()))?;
    }

    #[test]
    fn stacking_padding_and_turning(x in layouts(1..4), dim in 0usize..3, before in 0i64..3, shift in -4i64..5) {
        let dims = x.shape.len();
        let dim = dim % dims;
        let mut stacked = x.shape.clone();
        stacked.insert(dim, 3);
        check(&x, |s, a, _| s.call("aten.stack.default", list![[a, a, a], dim as i64]), &stacked, |index| {
            let mut from = index.to_vec();
            from.remove(dim);
            Some(from)
        })?;
        // Padding: y holds the fill value where x does not reach.
        let size = x.shape[dim];
        let padded = with(&x.shape, dim, size + before + 1);
        let mut pad = vec![0; 2 * dims];
        (pad[2 * (dims - 1 - dim)], pad[2 * (dims - 1 - dim) + 1]) = (before, 1);
        check(&x, |s, a, b| {
            s.call("aten.zero_.default", list![b]);
            s.call("aten.constant_pad_nd.default", list![a, pad.clone()])
        }, &padded, |index| {
            let at = index[dim] - before;
            (0..size).contains(&at).then(|| with(index, dim, at))
        })?;
        check(&x, |s, a, _| s.call("aten.flip.default", list![a, [dim as i64]]), &x.shape.clone(), |index| {
            Some(with(index, dim, size - 1 - index[dim]))
        })?;
        check(&x, |s, a, _| s.call("aten.roll.default", list![a, [shift], [dim as i64]]), &x.shape.clone(), |index| {
            Some(with(index, dim, (index[dim] - shift).rem_euclid(size)))
        })?;
    }

    /// A write through one window is seen through every other, and nowhere else.
    #[test]
    fn writes_reach_every_alias(x in layouts(1..4), dim in 0usize..3, at in 0i64..3) {
        let dim = dim % x.shape.len();
        let at = at % x.shape[dim];
        check(&x, |s, a, b| {
            let copy = s.call("aten.clone.default", list![a]);
            let flat = s.call("aten.permute.default", list![copy, (0..x.shape.len() as i64).rev().collect::<Vec<_>>()]);
            let part = s.call("aten.select.int", list![copy, dim as i64, at]);
            let from = s.call("aten.select.int", list![b, dim as i64, at]);
            s.call("aten.copy_.default", list![part, from]);
            s.call("aten.permute.default", list![flat, (0..x.shape.len() as i64).rev().collect::<Vec<_>>()])
        }, &x.shape.clone(), |index| (index[dim] != at).then(|| index.to_vec()))?;
    }

    /// `_chunk_cat`: chunk k of the padded inputs, side by side.
    #[test]
    fn chunk_cat_pads_and_interleaves(rows in prop::collection::vec(1i64..5, 1..4), chunks in 1i64..4) {
        let mut s = Sketch::new(1);
        let xs: Vec<NodeId> =
            rows.iter().enumerate().map(|(i, &n)| s.input(&format!("x{i}"), Dtype::F32, &[n, 2])).collect();
        let y = s.call("aten._chunk_cat.default", list![xs.clone(), 0, chunks]);
        s.output(&[vec![y], xs].concat());
        let run = s.numbers();
        let mut expected = Vec::new();
        for k in 0..chunks {
            for (i, &n) in rows.iter().enumerate() {
                let each = (n + chunks - 1) / chunks;
                let x = values(&run, 0, i + 1);
                for row in k * each..(k + 1) * each {
                    let at = |c: i64| if row < n { x[(row * 2 + c) as usize] } else { 0.0 };
                    expected.extend([at(0), at(1)]);
                }
            }
        }
        prop_assert_eq!(values(&run, 0, 0), expected);
    }
}

fn contiguous(shape: &[i64]) -> Vec<i64> {
    (0..shape.len()).map(|i| shape[i + 1..].iter().map(|&n| n.max(1)).product()).collect()
}

/// Selection by indices, against nested loops.
#[test]
fn selection_by_indices() {
    let mut s = Sketch::new(1);
    let x = s.input("x", Dtype::F32, &[3, 4]);
    let i = s.input("i", Dtype::I64, &[2, 1]);
    let j = s.input("j", Dtype::I64, &[3]);
    s.give("i", 0, Dtype::I64, &[2.0, 0.0]);
    s.give("j", 0, Dtype::I64, &[1.0, -1.0, 3.0]);
    let pairs = s.call("aten.index.Tensor", list![x, vec![Arg::from(i), j.into()]]);
    let rows = s.call("aten.index_select.default", list![x, 1, j]);
    // An index past the end counts modulo the size.
    let k = s.input("k", Dtype::I64, &[2]);
    s.give("k", 0, Dtype::I64, &[7.0, 1.0]);
    let table = s.call("aten.embedding.default", list![x, k]);
    let v = s.input("v", Dtype::F32, &[3]);
    let put = s.call("aten.index_put.default", list![x, vec![Arg::from(i), j.into()], v]);
    s.output(&[pairs, rows, table, put, x, v]);
    let run = s.numbers();
    let (x, v) = (values(&run, 0, 4), values(&run, 0, 5));
    let at = |r: usize, c: usize| x[4 * r + c];
    assert_eq!(values(&run, 0, 0), [at(2, 1), at(2, 3), at(2, 3), at(0, 1), at(0, 3), at(0, 3)]);
    let expected: Vec<f64> = (0..3).flat_map(|r| [at(r, 1), at(r, 3), at(r, 3)]).collect();
    assert_eq!(values(&run, 0, 1), expected);
    assert_eq!(values(&run, 0, 2), [&x[4..8], &x[4..8]].concat());
    let mut expected = x.clone();
    for (r, row) in [2usize, 0].into_iter().enumerate() {
        let _ = r;
        for (c, &column) in [1usize, 3, 3].iter().enumerate() {
            expected[4 * row + column] = v[c];
        }
    }
    assert_eq!(values(&run, 0, 3), expected);
}

/// With terms an index is not known: the result is a function of everything, so equal only for equal inputs.
#[test]
fn selection_by_unknown_indices_is_uninterpreted() {
    let build = |other: bool| {
        let mut s = Sketch::new(1);
        let x = s.input("x", Dtype::F32, &[3, 4]);
        let i = s.input("i", Dtype::I64, &[2]);
        let j = s.input("j", Dtype::I64, &[2]);
        let y = s.call("aten.index_select.default", list![x, 0, if other { j } else { i }]);
        s.record(y, Dtype::F32, &[2, 4]);
        s.output(&[y]);
        s.terms()
    };
    assert_eq!(compare(&build(false), &build(false)), []);
    assert_eq!(compare(&build(false), &build(true)).len(), 1);
}
