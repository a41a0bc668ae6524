//! Rules of views, slices and broadcasting against slow, obvious statements; and no input makes a rule panic.

use super::one_call;
use graph_oracle::graph::{Dim, Dtype, Graph, NodeId, Op, Out, Tensor, Value};
use graph_oracle::ops::shape::{self, Inferred, Output, Size, TensorMeta};
use graph_oracle::ops::{self, Ops};
use proptest::prelude::*;

/// Sizes and strides of a tensor, as a window on a large storage.
fn window() -> impl Strategy<Value = (Vec<i64>, Vec<i64>)> {
    (prop::collection::vec(1i64..5, 0..4), any::<u64>()).prop_map(|(sizes, seed)| {
        // Strides of a permuted tensor, some of them stretched.
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        if !order.is_empty() {
            let turn = seed as usize % order.len();
            if seed & 64 != 0 {
                order.rotate_left(turn);
            }
        }
        let mut strides = vec![0; sizes.len()];
        let mut next = if seed & 128 != 0 { 2 } else { 1 };
        for &dim in order.iter().rev() {
            strides[dim] = next;
            next *= sizes[dim] + i64::from(seed & (256 << dim) != 0 && seed & 32 != 0);
        }
        (sizes, strides)
    })
}

/// The storage positions of the elements, in row-major order.
fn positions(sizes: &[i64], strides: &[i64], offset: i64) -> Vec<i64> {
    let mut all = vec![offset];
    for (&size, &stride) in sizes.iter().zip(strides) {
        all = all.iter().flat_map(|&at| (0..size).map(move |i| at + i * stride)).collect();
    }
    all
}

fn known(sizes: &[Size]) -> Vec<i64> {
    sizes.iter().map(|s| s.known().unwrap()).collect()
}

fn tensor(inferred: &Inferred) -> &TensorMeta {
    match inferred {
        Inferred::One(Output::Tensor(tensor)) => tensor,
        other => panic!("{other:?}"),
    }
}

fn elements(tensor: &TensorMeta) -> Vec<i64> {
    let strides = known(tensor.stride.as_ref().unwrap());
    positions(&known(&tensor.shape), &strides, tensor.offset.known().unwrap())
}

/// Strides under which a shape shows the positions `all`, if there are any: each follows from one step along its
/// dimension.
fn strides_for(sizes: &[i64], all: &[i64]) -> Option<Vec<i64>> {
    let step = |dim: usize| sizes[dim + 1..].iter().product::<i64>() as usize;
    let strides: Vec<i64> =
        (0..sizes.len()).map(|d| if sizes[d] > 1 { all[step(d)] - all[0] } else { 0 }).collect();
    (positions(sizes, &strides, all[0]) == all).then_some(strides)
}

/// Ways to write `total` as sizes.
fn regrouped(total: i64, mut seed: u64) -> Vec<i64> {
    let (mut left, mut sizes) = (total, Vec::new());
    while left > 1 {
        let divisors: Vec<i64> = (2..=left).filter(|d| left % d == 0).collect();
        let size = divisors[seed as usize % divisors.len()];
        seed /= 3;
        sizes.push(size);
        left /= size;
        if seed.is_multiple_of(5) {
            sizes.push(1);
        }
    }
    sizes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_view_shows_the_same_elements_or_there_is_none((sizes, strides) in window(), seed in any::<u64>()) {
        let all = positions(&sizes, &strides, 3);
        let new = regrouped(all.len() as i64, seed);
        let (graph, id) = one_call("view", &[(&sizes, &strides, 3)], |graph, x| vec![x[0], graph.int_list(&new)]);
        match shape::infer(&graph, &Ops::of(&graph), id) {
            Ok(inferred) => prop_assert_eq!(elements(tensor(&inferred)), all),
            Err(_) => prop_assert_eq!(strides_for(&new, &all), None),
        }
    }

    #[test]
    fn a_slice_selects_what_python_selects(size in 0i64..7, start in -9i64..9, end in -9i64..9, step in 1i64..4) {
        let (graph, id) = one_call("slice", &[(&[size, 2], &[5, 1], 1)], |_, x| {
            vec![x[0], Value::Int(0), Value::Int(start), Value::Int(end), Value::Int(step)]
        });
        let inferred = shape::infer(&graph, &Ops::of(&graph), id).unwrap();
        let from = |i: i64| if i < 0 { i + size } else { i };
        let chosen = (0..size).filter(|&i| i >= from(start) && i < from(end));
        let chosen = chosen.filter(|&i| (i - from(start).max(0)) % step == 0);
        let rows: Vec<i64> = chosen.flat_map(|i| [1 + 5 * i, 2 + 5 * i]).collect();
        prop_assert_eq!(elements(tensor(&inferred)), rows);
    }

    #[test]
    fn pieces_of_a_split_are_the_whole(
        (sizes, strides) in window().prop_filter("has dimensions", |w| !w.0.is_empty()),
        piece in 1i64..6,
    ) {
        let (graph, id) = one_call("split", &[(&sizes, &strides, 0)], |_, x| vec![x[0], Value::Int(piece)]);
        let Ok(Inferred::Many(pieces)) = shape::infer(&graph, &Ops::of(&graph), id) else { panic!() };
        let mut together = Vec::new();
        for part in &pieces {
            let Output::Tensor(part) = part else { panic!() };
            prop_assert!(part.shape[0].known().unwrap() <= piece);
            together.extend(elements(part));
        }
        prop_assert_eq!(together, positions(&sizes, &strides, 0));
    }

    #[test]
    fn broadcasting_pairs_sizes_from_the_last(
        a in prop::collection::vec(1i64..4, 0..4),
        b in prop::collection::vec(1i64..4, 0..4),
    ) {
        let contiguous = graph_oracle::graph::contiguous_strides;
        let (of_a, of_b) = (contiguous(&a), contiguous(&b));
        let (graph, id) = one_call("add", &[(&a, &of_a, 0), (&b, &of_b, 0)], |_, x| x.to_vec());
        let at = |sizes: &[i64], i: usize| sizes.iter().rev().nth(i).copied().unwrap_or(1);
        let expected: Option<Vec<i64>> = (0..a.len().max(b.len()))
            .rev()
            .map(|i| match (at(&a, i), at(&b, i)) {
                (x, y) if x == y => Some(x),
                (1, n) | (n, 1) => Some(n),
                _ => None,
            })
            .collect();
        match (shape::infer(&graph, &Ops::of(&graph), id), expected) {
            (Ok(inferred), Some(expected)) => prop_assert_eq!(known(&tensor(&inferred).shape), expected),
            (Err(_), None) => {}
            (found, expected) => prop_assert!(false, "{:?}, expected {:?}", found, expected),
        }
    }
}

/// A number that arithmetic may trip over.
fn wild() -> impl Strategy<Value = i64> {
    prop_oneof![4 => -3i64..6, 1 => Just(i64::MAX), 1 => Just(i64::MIN), 1 => any::<i64>()]
}

fn wild_sizes() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(prop_oneof![3 => 0i64..5, 1 => wild()], 0..4)
}

type WildTensor = (Vec<i64>, Vec<i64>, i64, usize);

fn wild_tensor() -> impl Strategy<Value = WildTensor> {
    (wild_sizes(), wild_sizes(), wild(), 0..Dtype::ALL.len())
}

fn push_tensor(graph: &mut Graph, name: &str, (sizes, strides, offset, dtype): &WildTensor) -> NodeId {
    let id = graph.push(name, Op::Placeholder, name);
    let (shape, stride) = (graph.intern_sizes(sizes), graph.intern_sizes(strides));
    let device = graph.intern("cpu");
    let tensor = Tensor {
        shape,
        stride,
        dtype: Dtype::ALL[*dtype],
        requires_grad: None,
        device,
        storage: None,
        offset: *offset,
        storage_bytes: Some(Dim::Static(0)),
        is_guessed: false,
    };
    let tensor = graph.push_tensor(tensor);
    graph.node_mut(id).out = Out::Tensor(tensor);
    id
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_input_makes_a_rule_panic(
        row in 0..ops::rows().len(),
        tensors in prop::collection::vec(wild_tensor(), 3),
        numbers in prop::collection::vec(wild(), 8),
        sizes in wild_sizes(),
        fitting in any::<bool>(),
        choices in prop::collection::vec(0usize..12, 12),
    ) {
        let info = &ops::rows()[row];
        let mut graph = Graph::new("wild");
        let mut tensors = tensors;
        if fitting {
            // Tensors that agree reach further into the rules.
            for tensor in &mut tensors {
                tensor.1 = graph_oracle::graph::contiguous_strides(&tensor.0);
            }
            tensors[1] = tensors[0].clone();
        }
        let inputs: Vec<NodeId> =
            tensors.iter().enumerate().map(|(i, t)| push_tensor(&mut graph, &format!("x{i}"), t)).collect();
        let count = info.schema.as_ref().map_or(2, |s| s.params.len());
        let mut args = Vec::new();
        let mut kwargs = Vec::new();
        for i in 0..count {
            let param = info.schema.as_ref().map(|s| &s.params[i]);
            let number = numbers[i % numbers.len()];
            let choice = choices[i % choices.len()];
            let input = Value::Node(inputs[choice % inputs.len()]);
            let value = match (param.map_or("Tensor", |p| p.ty.as_str()), choice) {
                (_, 11) => Value::None,
                (_, 10) => Value::Float(0.5),
                ("Tensor" | "Tensor?", _) => input,
                ("Tensor[]" | "Tensor?[]", _) => {
                    let list: Vec<Value> = inputs.iter().take(choice % 4).map(|&n| Value::Node(n)).collect();
                    graph.list(&list)
                }
                (ty, _) if ty.contains('[') => graph.int_list(&sizes),
                ("ScalarType" | "ScalarType?", _) => Value::Dtype(Dtype::ALL[choice % Dtype::ALL.len()]),
                ("bool" | "bool?", _) => Value::Bool(choice % 2 == 0),
                ("str" | "str?" | "Any", _) => Value::Str(graph.intern("ij,jk->ik")),
                _ => Value::Int(number),
            };
            match param {
                Some(param) if param.keyword_only => {
                    let key = graph.intern(&param.name);
                    kwargs.extend([Value::Str(key), value]);
                }
                _ => args.push(value),
            }
        }
        let id = graph.push("call", Op::Call, &info.target);
        let (args, kwargs) = (graph.push_values(&args), graph.push_values(&kwargs));
        let out = graph.node(inputs[0]).out;
        let outs = graph.push_outs(&[out, Out::None]);
        let node = graph.node_mut(id);
        (node.args, node.kwargs) = (args, kwargs);
        node.out = if choices[0] % 2 == 0 { out } else { Out::Tuple(outs) };
        let ops = Ops::of(&graph);
        for fault in shape::check(&graph, &ops, id) {
            prop_assert!(!fault.to_string().is_empty());
        }
        ops.draws(&graph, id);
    }
}
