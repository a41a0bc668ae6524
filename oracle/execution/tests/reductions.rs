//! Reductions, running sums and matrix products against loops.

use super::movement::indices;
use super::*;
use half::bf16;
use proptest::prelude::*;

fn at(tensor: &[f64], shape: &[i64], index: &[i64]) -> f64 {
    tensor[index.iter().zip(shape).fold(0, |flat, (&i, &n)| flat * n + i) as usize]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn reductions_fold_what_they_cover(
        shape in prop::collection::vec(1i64..4, 1..4),
        mask in prop::collection::vec(any::<bool>(), 3),
        keep in any::<bool>(),
        transposed in any::<bool>(),
    ) {
        let dims: Vec<i64> = (0..shape.len()).filter(|&i| mask[i]).map(|i| i as i64).collect();
        let reduced = |i: usize| dims.is_empty() || dims.contains(&(i as i64));
        let mut strides: Vec<i64> = (0..shape.len()).map(|i| shape[i + 1..].iter().product()).collect();
        if transposed {
            strides = (0..shape.len()).map(|i| shape[..i].iter().product()).collect();
        }
        let mut s = Sketch::new(1);
        let x = s.strided("x", Dtype::F32, &shape, &strides);
        let outs = [
            s.call("aten.sum.dim_IntList", list![x, dims.clone(), keep]),
            s.call("aten.amax.default", list![x, dims.clone(), keep]),
            s.call("aten.amin.default", list![x, dims.clone(), keep]),
            s.call("aten.mean.dim", list![x, dims.clone(), keep]),
        ];
        s.output(&[outs[0], outs[1], outs[2], outs[3], x]);
        let run = s.numbers();
        let x = values(&run, 0, 4);
        let kept: Vec<usize> = (0..shape.len()).filter(|&i| !reduced(i)).collect();
        let outer: Vec<i64> = kept.iter().map(|&i| shape[i]).collect();
        let expected_shape: Vec<i64> = match keep {
            true => (0..shape.len()).map(|i| if reduced(i) { 1 } else { shape[i] }).collect(),
            false => outer.clone(),
        };
        type Fold = fn(&[f64]) -> f64;
        let folds: [Fold; 4] = [
            |v| v.iter().sum(),
            |v| v.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            |v| v.iter().copied().fold(f64::INFINITY, f64::min),
            |v| f64::from((v.iter().sum::<f64>() as f32) / v.len() as f32),
        ];
        for (k, fold) in folds.into_iter().enumerate() {
            prop_assert_eq!(&*tensor(&run, 0, k).shape, expected_shape.as_slice());
            let expected: Vec<f64> = indices(&outer).iter().map(|group| {
                let covered: Vec<f64> = indices(&shape).iter()
                    .filter(|index| kept.iter().zip(group).all(|(&i, g)| index[i] == *g))
                    .map(|index| at(&x, &shape, index))
                    .collect();
                fold(&covered)
            }).collect();
            prop_assert_eq!(values(&run, 0, k), expected);
        }
    }

    #[test]
    fn running_sums(rows in 1i64..4, columns in 1i64..4, dim in 0usize..2) {
        let mut s = Sketch::new(1);
        let x = s.strided("x", Dtype::I32, &[rows, columns], &[1, rows]);
        let y = s.call("aten.cumsum.default", list![x, dim as i64]);
        s.output(&[y, x]);
        let run = s.numbers();
        prop_assert_eq!(tensor(&run, 0, 0).dtype, Dtype::I64);
        let x = values(&run, 0, 1);
        let shape = [rows, columns];
        for index in indices(&shape) {
            let sum: f64 = (0..=index[dim]).map(|i| {
                let mut from = index.clone();
                from[dim] = i;
                at(&x, &shape, &from)
            }).sum();
            prop_assert_eq!(at(&values(&run, 0, 0), &shape, &index), sum);
        }
    }

    #[test]
    fn products_of_matrices(m in 0i64..4, k in 0i64..4, n in 1i64..4, batch in 1i64..3, transposed in any::<bool>()) {
        let mut s = Sketch::new(1);
        let x = s.input("x", Dtype::F32, &[batch, m, k]);
        let y = match transposed {
            false => s.input("y", Dtype::F32, &[k, n]),
            true => s.strided("y", Dtype::F32, &[k, n], &[1, k.max(1)]),
        };
        let z = s.call("aten.matmul.default", list![x, y]);
        s.output(&[z, x, y]);
        let run = s.numbers();
        let (x, y) = (values(&run, 0, 1), values(&run, 0, 2));
        let expected: Vec<f64> = indices(&[batch, m, n]).iter().map(|i| {
            (0..k).map(|l| at(&x, &[batch, m, k], &[i[0], i[1], l]) * at(&y, &[k, n], &[l, i[2]])).sum()
        }).collect();
        prop_assert_eq!(values(&run, 0, 0), expected);
    }
}

/// 16-bit floats accumulate in f32: a running bf16 sum would stay at 256.
#[test]
fn low_precision_accumulates_in_f32() {
    let mut s = Sketch::new(1);
    let x = s.input("x", Dtype::BF16, &[257]);
    let ones = [vec![256.0], vec![1.0; 256]].concat();
    s.give("x", 0, Dtype::BF16, &ones);
    let sum = s.call("aten.sum.default", list![x]);
    let row = s.call("aten.unsqueeze.default", list![x, 0]);
    let unit = s.call_with("aten.ones.default", list![[257, 1]], &[("dtype", Dtype::BF16.into())]);
    let product = s.call("aten.mm.default", list![row, unit]);
    let sums = s.call("aten.cumsum.default", list![x, 0]);
    let mean = s.call("aten.mean.default", list![x]);
    s.output(&[sum, product, sums, mean]);
    let run = s.numbers();
    assert_eq!(values(&run, 0, 0), [512.0]);
    assert_eq!(values(&run, 0, 1), [512.0]);
    assert_eq!(values(&run, 0, 2)[256], 512.0);
    assert_eq!(values(&run, 0, 2)[3], 260.0);
    assert_eq!(values(&run, 0, 3), [bf16::from_f32(512.0 / 257.0).to_f64()]);
}

#[test]
fn integers_sum_to_int64_and_bools_count() {
    let mut s = Sketch::new(1);
    let x = s.input("x", Dtype::I8, &[4]);
    let b = s.input("b", Dtype::Bool, &[4]);
    s.give("x", 0, Dtype::I8, &[127.0; 4]);
    s.give("b", 0, Dtype::Bool, &[1.0, 0.0, 1.0, 1.0]);
    let outs = [
        s.call("aten.sum.default", list![x]),
        s.call("aten.prod.default", list![x]),
        s.call("aten.sum.default", list![b]),
        s.call("aten.any.default", list![b]),
        s.call("aten.all.default", list![b]),
    ];
    s.output(&outs);
    let run = s.numbers();
    let all: Vec<f64> = (0..5).map(|k| values(&run, 0, k)[0]).collect();
    assert_eq!(all, [508.0, 260144641.0, 3.0, 1.0, 0.0]);
    assert_eq!(tensor(&run, 0, 0).dtype, Dtype::I64);
    assert_eq!(tensor(&run, 0, 3).dtype, Dtype::Bool);
}

#[test]
fn a_bias_is_scaled_and_ignored_with_beta_zero() {
    let mut s = Sketch::new(1);
    let empty = s.call("aten.empty.memory_format", list![[2]]);
    let bias = s.input("bias", Dtype::F32, &[2]);
    let x = s.input("x", Dtype::F32, &[1, 1]);
    let y = s.input("y", Dtype::F32, &[1, 2]);
    s.give("bias", 0, Dtype::F32, &[1.0, 2.0]);
    s.give("x", 0, Dtype::F32, &[3.0]);
    s.give("y", 0, Dtype::F32, &[10.0, 20.0]);
    let a = s.call_with("aten.addmm.default", list![bias, x, y], &[("beta", 2.into()), ("alpha", 3.into())]);
    let b = s.call_with("aten.addmm.default", list![empty, x, y], &[("beta", 0.into())]);
    s.output(&[a, b]);
    let run = s.numbers();
    assert_eq!(values(&run, 0, 0), [92.0, 184.0]);
    assert_eq!(values(&run, 0, 1), [30.0, 60.0]);
}

/// A term of a reduction depends on exactly the elements it covers, in order.
#[test]
fn reduced_terms_depend_on_what_they_cover() {
    let sums = |change: Option<usize>| {
        let mut s = Sketch::new(1);
        let x = s.input("x", Dtype::F32, &[2, 3]);
        if let Some(at) = change {
            let row = s.call("aten.select.int", list![x, 0, (at / 3) as i64]);
            let cell = s.call("aten.select.int", list![row, 0, (at % 3) as i64]);
            s.call("aten.zero_.default", list![cell]);
        }
        let y = s.call("aten.sum.dim_IntList", list![x, [1]]);
        let turned = s.call("aten.t.default", list![x]);
        let z = s.call("aten.mm.default", list![x, turned]);
        s.output(&[y, z]);
        let run = s.terms();
        (tensor(&run, 0, 0).cells.clone(), tensor(&run, 0, 1).cells.clone())
    };
    let (rows, products) = sums(None);
    for at in 0..6 {
        let (changed, mixed) = sums(Some(at));
        for row in 0..2 {
            assert_eq!(changed[row] != rows[row], row == at / 3, "{at}");
        }
        // Of x times its transpose the opposite corner alone stays.
        let stays = if at / 3 == 0 { 3 } else { 0 };
        for (i, (a, b)) in mixed.iter().zip(&products).enumerate() {
            assert_eq!(a == b, i == stays, "{at} {i}");
        }
    }
}
