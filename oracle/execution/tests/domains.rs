//! The laws of a domain, and what the two domains have to say about each other.

use super::*;
use crate::hash::mix;
use proptest::prelude::*;

#[test]
fn splitting_and_joining_are_inverse() {
    let numbers = Concrete::default();
    for i in 0..1000 {
        let cell = mix(3, i);
        for bytes in [2u8, 4, 8] {
            let cell = if bytes == 8 { cell } else { cell & ((1 << (8 * bytes)) - 1) };
            let (low, high) = numbers.split(cell, bytes);
            assert_eq!(numbers.join(low, high, bytes), cell);
            assert_eq!(low | high << (4 * bytes), cell, "little-endian");
        }
    }
}

/// Bytes that are moved under a smaller dtype and put together again are the same number; mixed up, they are not.
#[test]
fn retyping_to_and_fro() {
    for (wide, narrow) in [
        (Dtype::F32, Dtype::BF16),
        (Dtype::I64, Dtype::U8),
        (Dtype::C64, Dtype::F32),
        (Dtype::F64, Dtype::F16),
    ] {
        let ratio = i64::from(wide.itemsize() / narrow.itemsize());
        let build = |mixed: bool| {
            let mut s = Sketch::new(1);
            let x = s.input("x", wide, &[4]);
            let y = s.call("aten.view.dtype", list![x, narrow]);
            // Two halves moved apart and together again.
            let parts = s.call("aten.split.Tensor", list![y, 2 * ratio]);
            let a = s.call("operator.getitem", list![parts, 0]);
            let b = s.call("operator.getitem", list![parts, 1]);
            let mut z = s.call("aten.cat.default", list![[a, b]]);
            if mixed {
                z = s.call("aten.flip.default", list![z, [0]]);
            }
            let back = s.call("aten.view.dtype", list![z, wide]);
            s.output(&[back, x]);
            s
        };
        for run in [build(false).numbers(), build(false).terms()] {
            assert_eq!(
                tensor(&run, 0, 0).cells,
                tensor(&run, 0, 1).cells,
                "{wide:?} {narrow:?} {}",
                run.domain
            );
        }
        let mixed = build(true).terms();
        let (back, x) = (tensor(&mixed, 0, 0), tensor(&mixed, 0, 1));
        assert!(back.cells.iter().all(|cell| !x.cells.contains(cell)));
    }
}

/// Parts that never were one element keep their own terms through a wider dtype.
#[test]
fn joined_parts_can_be_taken_apart() {
    let mut s = Sketch::new(1);
    let x = s.input("x", Dtype::BF16, &[8]);
    let wide = s.call("aten.view.dtype", list![x, Dtype::F32]);
    let moved = s.call("aten.roll.default", list![wide, [1]]);
    let back = s.call("aten.view.dtype", list![moved, Dtype::BF16]);
    let expected = s.call("aten.roll.default", list![x, [2]]);
    s.output(&[back, expected]);
    for run in [s.numbers(), s.terms()] {
        assert_eq!(tensor(&run, 0, 0).cells, tensor(&run, 0, 1).cells, "{}", run.domain);
    }
}

/// Memory that is refined while a window of the old size is alive still reads the same through it.
#[test]
fn refining_is_invisible() {
    let mut s = Sketch::new(1);
    let x = s.input("x", Dtype::F32, &[4]);
    let before = s.call("aten.clone.default", list![x]);
    let bytes = s.call("aten.view.dtype", list![x, Dtype::U8]);
    let half = s.call("aten.slice.Tensor", list![bytes, 0, 0, 4]);
    s.call("aten.zero_.default", list![half]);
    s.output(&[x, before]);
    let run = s.numbers();
    assert_eq!(values(&run, 0, 0)[0], 0.0);
    assert_eq!(values(&run, 0, 0)[1..], values(&run, 0, 1)[1..]);
    let terms = s.terms();
    assert_eq!(tensor(&terms, 0, 0).cells[1..], tensor(&terms, 0, 1).cells[1..]);
    assert_ne!(tensor(&terms, 0, 0).cells[0], tensor(&terms, 0, 1).cells[0]);
}

/// A collective over one rank, a maximum of one element and a cast to the own dtype change nothing.
#[test]
fn what_changes_nothing() {
    let mut s = Sketch::new(1);
    let x = s.input("x", Dtype::F32, &[3, 1]);
    let g = s.call("_c10d_functional.all_reduce.default", list![x, "avg", "dp"]);
    let w = s.wait(g);
    let most = s.call("aten.amax.default", list![w, [1], true]);
    let cast = s.call("prims.convert_element_type.default", list![most, Dtype::F32]);
    s.output(&[cast, x]);
    for run in [s.numbers(), s.terms()] {
        assert_eq!(tensor(&run, 0, 0).cells, tensor(&run, 0, 1).cells);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Elements with equal terms have equal numbers, in random programs with views, writes and arithmetic.
    #[test]
    fn equal_terms_are_equal_numbers(seed in any::<u64>()) {
        let mut s = Sketch::new(2);
        let mut state = seed;
        let mut below = |n: usize| {
            state = mix(state, 11);
            (state >> 33) as usize % n
        };
        let x = s.input("x", Dtype::F32, &[4, 4]);
        let y = s.input("y", Dtype::F32, &[4, 4]);
        let mut all = vec![x, y];
        for _ in 0..12 {
            let (a, b) = (all[below(all.len())], all[below(all.len())]);
            let next = match below(10) {
                0 => s.call("aten.t.default", list![a]),
                1 => s.call("aten.flip.default", list![a, [0]]),
                2 => s.call("aten.add.Tensor", list![a, b]),
                3 => s.call("aten.relu.default", list![a]),
                4 => s.call("aten.clone.default", list![a]),
                5 => {
                    let copy = s.call("aten.clone.default", list![b]);
                    s.call("aten.copy_.default", list![a, copy])
                }
                6 => s.call("aten.mul_.Scalar", list![a, 2]),
                7 => {
                    let g = s.call("_c10d_functional.all_reduce.default", list![a, "sum", "dp"]);
                    s.wait(g)
                }
                8 => {
                    let g = s.call("_c10d_functional.all_gather_into_tensor.default", list![a, 2, "dp"]);
                    let w = s.wait(g);
                    s.call("aten.slice.Tensor", list![w, 0, 2, 6])
                }
                _ => {
                    let bytes = s.call("aten.clone.default", list![a]);
                    let flat = s.call("aten.reshape.default", list![bytes, [-1]]);
                    let bytes = s.call("aten.view.dtype", list![flat, Dtype::BF16]);
                    let back = s.call("aten.view.dtype", list![bytes, Dtype::F32]);
                    s.call("aten.view.default", list![back, [4, 4]])
                }
            };
            all.push(next);
        }
        s.output(&all);
        let (numbers, terms) = (s.run(&Concrete::default()).unwrap(), s.terms());
        prop_assert_eq!(&numbers.hazards, &terms.hazards);
        let mut seen = std::collections::BTreeMap::new();
        for rank in 0..2 {
            for k in 0..all.len() {
                let (n, t) = (tensor(&numbers, rank, k), tensor(&terms, rank, k));
                prop_assert_eq!(&n.poison, &t.poison);
                for (&number, &term) in n.cells.iter().zip(&t.cells) {
                    let known = *seen.entry(term).or_insert(number);
                    prop_assert_eq!(known, number, "term {:x}", term);
                }
            }
        }
    }
}
