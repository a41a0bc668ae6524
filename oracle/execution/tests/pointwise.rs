//! Pointwise operators against arithmetic written down directly.

use super::*;
use half::{bf16, f16};
use proptest::prelude::*;

/// x op y for one dtype, elementwise on two rows of eight.
fn pair(target: &str, dtype: Dtype, x: &[f64], y: &[f64]) -> Result<Run, Failure> {
    let mut s = Sketch::new(1);
    let a = s.input("x", dtype, &[x.len() as i64]);
    let b = s.input("y", dtype, &[y.len() as i64]);
    s.give("x", 0, dtype, x);
    s.give("y", 0, dtype, y);
    let z = s.call(target, list![a, b]);
    s.output(&[z]);
    s.run(&Concrete::default())
}

/// A number rounded to a float dtype.
fn round(dtype: Dtype, x: f32) -> f64 {
    match dtype {
        Dtype::F16 => f16::from_f32(x).to_f64(),
        Dtype::BF16 => bf16::from_f32(x).to_f64(),
        _ => f64::from(x),
    }
}

fn ints() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((-200i32..200).prop_map(f64::from), 8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Low precision is computed in f32 and rounded once.
    #[test]
    fn floats_round_once(x in ints(), y in ints()) {
        type Operation = fn(f32, f32) -> f32;
        let table: [(&str, Operation); 6] = [
            ("aten.add.Tensor", |a, b| a + b),
            ("aten.sub.Tensor", |a, b| a - b),
            ("aten.mul.Tensor", |a, b| a * b),
            ("aten.div.Tensor", |a, b| a / b),
            ("aten.maximum.default", f32::max),
            ("aten.minimum.default", f32::min),
        ];
        for dtype in [Dtype::F32, Dtype::F16, Dtype::BF16] {
            for (target, f) in table {
                let run = pair(target, dtype, &x, &y).unwrap();
                let expected: Vec<f64> = x.iter().zip(&y).map(|(&a, &b)| {
                    round(dtype, f(round(dtype, a as f32) as f32, round(dtype, b as f32) as f32))
                }).collect();
                let same = values(&run, 0, 0).iter().zip(&expected).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()));
                prop_assert!(same, "{} {:?}: {:?} {:?}", target, dtype, values(&run, 0, 0), expected);
            }
        }
    }

    /// Integers wrap around at their width.
    #[test]
    fn integers_wrap(x in ints(), y in ints()) {
        let narrow = |v: &[f64]| -> Vec<f64> { v.iter().map(|&x| f64::from(x as i64 as i8)).collect() };
        let (a, b) = (narrow(&x), narrow(&y));
        type Operation = fn(i8, i8) -> i8;
        let table: [(&str, Operation); 4] = [
            ("aten.add.Tensor", i8::wrapping_add),
            ("aten.sub.Tensor", i8::wrapping_sub),
            ("aten.mul.Tensor", i8::wrapping_mul),
            ("aten.bitwise_xor.Tensor", |a, b| a ^ b),
        ];
        for (target, f) in table {
            let run = pair(target, Dtype::I8, &a, &b).unwrap();
            let expected: Vec<f64> = a.iter().zip(&b).map(|(&a, &b)| f64::from(f(a as i8, b as i8))).collect();
            prop_assert_eq!(values(&run, 0, 0), expected);
        }
    }

    /// Python's rounding of quotients and signs of remainders.
    #[test]
    fn division_of_integers(x in ints(), y in ints()) {
        for dtype in [Dtype::I32, Dtype::F64] {
            let floor = pair("aten.floor_divide.default", dtype, &x, &y).unwrap();
            let rest = pair("aten.remainder.Tensor", dtype, &x, &y).unwrap();
            let fmod = pair("aten.fmod.Tensor", dtype, &x, &y).unwrap();
            for i in (0..8).filter(|&i| y[i] != 0.0) {
                let quotient = (x[i] / y[i]).floor();
                prop_assert_eq!(values(&floor, 0, 0)[i], quotient);
                prop_assert_eq!(values(&rest, 0, 0)[i], x[i] - quotient * y[i]);
                prop_assert_eq!(values(&fmod, 0, 0)[i], x[i] - (x[i] / y[i]).trunc() * y[i]);
            }
        }
    }

    #[test]
    fn comparisons_give_bools(x in ints(), y in ints()) {
        type Test = fn(&f64, &f64) -> bool;
        let table: [(&str, Test); 6] =
            [("eq", f64::eq), ("ne", f64::ne), ("lt", f64::lt), ("le", f64::le), ("gt", f64::gt), ("ge", f64::ge)];
        for (name, f) in table {
            let run = pair(&format!("aten.{name}.Tensor"), Dtype::F32, &x, &y).unwrap();
            prop_assert_eq!(tensor(&run, 0, 0).dtype, Dtype::Bool);
            let expected: Vec<f64> = x.iter().zip(&y).map(|(a, b)| f64::from(u8::from(f(a, b)))).collect();
            prop_assert_eq!(values(&run, 0, 0), expected);
        }
    }

    /// Broadcasting and layout do not matter: f(x, y)[i, j] = f(x[i, j], y[j]).
    #[test]
    fn operands_are_broadcast(rows in 1i64..4, columns in 1i64..4, transposed in any::<bool>()) {
        let mut s = Sketch::new(1);
        let strides = if transposed { [1, rows] } else { [columns, 1] };
        let x = s.strided("x", Dtype::F32, &[rows, columns], &strides);
        let y = s.input("y", Dtype::F32, &[columns]);
        let z = s.call("aten.sub.Tensor", list![x, y]);
        let w = s.call("aten.mul.Tensor", list![y, x]);
        s.output(&[z, w, x, y]);
        let terms = Fingerprints::in_bits();
        for (run, sub) in [(s.numbers(), true), (s.run(&terms).unwrap(), false)] {
            let (z, w, x, y) = (tensor(&run, 0, 0), tensor(&run, 0, 1), tensor(&run, 0, 2), tensor(&run, 0, 3));
            prop_assert_eq!(&*z.shape, [rows, columns]);
            for i in 0..(rows * columns) as usize {
                let j = i % columns as usize;
                if sub {
                    prop_assert_eq!(floats(z)[i], floats(x)[i] - floats(y)[j]);
                    prop_assert_eq!(floats(w)[i], floats(x)[i] * floats(y)[j]);
                } else {
                    let f = |op, a: u64, b: u64| {
                        let function = Pointwise::Binary(op, Number::Int(1), Rounding::True);
                        let operands = [Operand::Cells(&[a]), Operand::Cells(&[b])];
                        terms.pointwise(function, Dtype::F32, &operands, 1).unwrap()[0]
                    };
                    prop_assert_eq!(z.cells[i], f(crate::ops::Binary::Sub, x.cells[i], y.cells[j]));
                    prop_assert_eq!(w.cells[i], f(crate::ops::Binary::Mul, y.cells[j], x.cells[i]));
                }
            }
        }
    }
}

#[test]
fn promotion() {
    let mut s = Sketch::new(1);
    let i = s.input("i", Dtype::I32, &[2]);
    let h = s.input("h", Dtype::BF16, &[2]);
    let f = s.input("f", Dtype::F32, &[]);
    let b = s.input("b", Dtype::Bool, &[2]);
    let outs = [
        (s.call("aten.add.Tensor", list![i, h]), Dtype::BF16),
        (s.call("aten.add.Tensor", list![h, f]), Dtype::BF16),
        (s.call("aten.div.Tensor", list![i, i]), Dtype::F32),
        (s.call("aten.mul.Scalar", list![i, 2.5]), Dtype::F32),
        (s.call("aten.mul.Scalar", list![h, 2.5]), Dtype::BF16),
        (s.call("aten.add.Scalar", list![b, 1]), Dtype::I64),
        (s.call("aten.add.Tensor", list![b, b]), Dtype::Bool),
        (s.call("aten.exp.default", list![i]), Dtype::F32),
        (s.call("aten.relu.default", list![i]), Dtype::I32),
        (s.call("aten.pow.Tensor_Scalar", list![b, 2]), Dtype::I64),
    ];
    s.output(&outs.map(|(node, _)| node));
    let run = s.numbers();
    for (k, (_, dtype)) in outs.into_iter().enumerate() {
        assert_eq!(tensor(&run, 0, k).dtype, dtype, "{k}");
    }
}

/// An implicit promotion is the explicit cast, in both domains.
#[test]
fn promotion_is_a_cast() {
    let build = |explicit: bool| {
        let mut s = Sketch::new(1);
        let mut x = s.input("x", Dtype::BF16, &[4]);
        let y = s.input("y", Dtype::F32, &[4]);
        if explicit {
            x = s.call("prims.convert_element_type.default", list![x, Dtype::F32]);
        }
        let z = s.call("aten.mul.Tensor", list![x, y]);
        s.output(&[z]);
        s
    };
    assert_eq!(compare(&build(false).numbers(), &build(true).numbers()), []);
    assert_eq!(compare(&build(false).terms(), &build(true).terms()), []);
}

/// Pointwise operators commute with movement, opaque ones included.
#[test]
fn pointwise_operators_commute_with_movement() {
    for target in
        ["aten.relu.default", "aten.exp.default", "aten.erf.default", "prims.convert_element_type.default"]
    {
        let build = |first: bool| {
            let mut s = Sketch::new(1);
            let x = s.input("x", Dtype::F32, &[2, 3]);
            let f = |s: &mut Sketch, x: NodeId| match target.starts_with("prims") {
                true => s.call(target, list![x, Dtype::BF16]),
                false => s.call(target, list![x]),
            };
            let y = if first {
                let y = f(&mut s, x);
                s.call("aten.t.default", list![y])
            } else {
                let t = s.call("aten.t.default", list![x]);
                f(&mut s, t)
            };
            s.output(&[y]);
            s.terms()
        };
        assert_eq!(compare(&build(true), &build(false)), [], "{target}");
    }
}

#[test]
fn in_place_results_take_the_dtype_of_their_destination() {
    let mut s = Sketch::new(1);
    let x = s.input("x", Dtype::BF16, &[2]);
    let y = s.input("y", Dtype::F32, &[2]);
    s.give("x", 0, Dtype::BF16, &[256.0, 1.0]);
    s.give("y", 0, Dtype::F32, &[1.0, 0.5]);
    let z = s.call("aten.add_.Tensor", list![x, y]);
    s.output(&[z]);
    let run = s.numbers();
    assert_eq!(tensor(&run, 0, 0).dtype, Dtype::BF16);
    assert_eq!(values(&run, 0, 0), [256.0, 1.5]);
    // A float result has no place in an integer.
    let mut s = Sketch::new(1);
    let x = s.input("x", Dtype::I32, &[2]);
    let y = s.input("y", Dtype::F32, &[2]);
    let z = s.call("aten.add_.Tensor", list![x, y]);
    s.output(&[z]);
    assert!(matches!(s.run(&Concrete::default()), Err(Failure::Raises { .. })));
}

/// A number keeps its precision in a product and is rounded in a sum, as on PyTorch's CPU.
#[test]
fn numbers_meet_low_precision() {
    let scalar = |target: &str| {
        let mut s = Sketch::new(1);
        let x = s.input("x", Dtype::BF16, &[1]);
        s.give("x", 0, Dtype::BF16, &[3.0]);
        let y = s.call(target, list![x, 10.3]);
        s.output(&[y]);
        values(&s.numbers(), 0, 0)[0]
    };
    let rounded = bf16::from_f32(10.3).to_f32();
    assert_ne!(f64::from(rounded), 10.3);
    assert_eq!(scalar("aten.mul.Scalar"), round(Dtype::BF16, 3.0 * 10.3));
    assert_eq!(scalar("aten.add.Scalar"), round(Dtype::BF16, 3.0 + rounded));
}

#[test]
fn casts_between_all_dtypes_keep_small_integers() {
    let list: Vec<f64> = (0..=8).map(f64::from).collect();
    for &from in Dtype::ALL {
        for &to in Dtype::ALL {
            if [from, to].contains(&Dtype::C128) || [from, to].contains(&Dtype::Bool) {
                continue;
            }
            let mut s = Sketch::new(1);
            let x = s.input("x", from, &[9]);
            s.give("x", 0, from, &list);
            let y = s.call("prims.convert_element_type.default", list![x, to]);
            s.output(&[y]);
            assert_eq!(values(&s.numbers(), 0, 0), list, "{from:?} {to:?}");
        }
    }
}

#[test]
fn complex_numbers() {
    let mut s = Sketch::new(1);
    let x = s.input("x", Dtype::F32, &[2, 2]);
    s.give("x", 0, Dtype::F32, &[1.0, 2.0, 3.0, -1.0]);
    let z = s.call("aten.view_as_complex.default", list![x]);
    let c = s.call("aten._conj.default", list![z]);
    let product = s.call("aten.mul.Tensor", list![z, c]);
    let parts = s.call("aten.view_as_real.default", list![product]);
    let moved = s.call("aten.clone.default", list![c]);
    let back = s.call("aten.view_as_real.default", list![moved]);
    s.output(&[parts, back]);
    let run = s.numbers();
    assert_eq!(values(&run, 0, 0), [5.0, 0.0, 10.0, 0.0]);
    assert_eq!(values(&run, 0, 1), [1.0, -2.0, 3.0, 1.0]);
}
