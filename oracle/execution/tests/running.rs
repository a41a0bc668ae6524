//! Running as such: undefined values, inputs, effects, randomness, repetition, limits, comparison.

use super::*;

#[test]
fn a_value_that_does_not_exist_yet() {
    let mut s = Sketch::new(1);
    let x = s.input("x", Dtype::F32, &[2]);
    let later = NodeId(2);
    let y = s.call("aten.relu.default", list![later]);
    let z = s.call("aten.relu.default", list![x]);
    s.output(&[y, z]);
    let failure = s.run(&Concrete::default()).unwrap_err();
    assert_eq!(failure, Failure::Undefined { rank: 0, node: y, input: Some(later) });
}

#[test]
fn arguments_that_do_not_fit() {
    for (args, reason) in [
        (list![][..].to_vec(), "lacks a value for parameter \"self\""),
        (list![1, 2].to_vec(), "takes 1 positional arguments, got 2"),
        (list![1].to_vec(), "expects a tensor, got a number"),
    ] {
        let mut s = Sketch::new(1);
        let y = s.call("aten.relu.default", &args);
        s.output(&[y]);
        match s.run(&Fingerprints::in_bits()).unwrap_err() {
            Failure::Raises { node, reason: found, .. } => assert_eq!((node, found.as_str()), (y, reason)),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn inputs_differ_by_rank_name_and_element_and_reach_past_rounding() {
    let mut s = Sketch::new(2);
    for (name, dtype) in
        [("a", Dtype::F32), ("b", Dtype::F32), ("c", Dtype::BF16), ("d", Dtype::I64), ("e", Dtype::F16)]
    {
        s.input(name, dtype, &[4096]);
    }
    s.output(&[NodeId(0), NodeId(1), NodeId(2), NodeId(3), NodeId(4)]);
    let run = s.run(&Concrete::default()).unwrap();
    let different = |a: &[f64], b: &[f64]| a.iter().zip(b).filter(|(a, b)| a != b).count();
    assert!(different(&values(&run, 0, 0), &values(&run, 1, 0)) > 4000);
    assert!(different(&values(&run, 0, 0), &values(&run, 0, 1)) > 4000);
    let all = values(&run, 0, 0);
    assert!(all.iter().all(|x| x.fract() == 0.0 && *x != 0.0));
    let past = |limit: f64| all.iter().filter(|x| x.abs() > limit).count();
    assert!(past(16777216.0) > 40 && past(2048.0) > past(16777216.0) + 40 && past(256.0) > past(2048.0) + 40);
    // Few enough that most elements are small.
    assert!(past(255.0) < 4096 / 8);
    // Odd numbers that a narrower dtype cannot hold; in f16 and bf16, numbers past the next narrower mantissa.
    assert!(values(&run, 0, 3).iter().any(|x| x.abs() > 16777216.0 && x % 2.0 != 0.0));
    assert!(values(&run, 0, 2).iter().any(|x| x.abs() > 256.0));
    assert!(values(&run, 0, 4).iter().any(|x| x.abs() > 2048.0));
    // Small ones alone, on request.
    assert!(values(&s.numbers(), 0, 0).iter().all(|x| x.abs() <= 255.0));
}

/// Inputs that the file says share a storage do.
#[test]
fn inputs_that_share_a_storage() {
    let mut s = Sketch::new(1);
    let x = s.input("x", Dtype::F32, &[2, 3]);
    let y = s.input("y", Dtype::F32, &[3]);
    for id in [x, y] {
        if let Out::Tensor(tensor) = s.graph.node(id).out {
            s.graph.tensor_mut(tensor).storage = Some(crate::graph::StorageId(9));
            s.graph.tensor_mut(tensor).offset = if id == y { 3 } else { 0 };
        }
    }
    s.call("aten.zero_.default", list![y]);
    s.output(&[x]);
    let run = s.numbers();
    assert_eq!(values(&run, 0, 0)[3..], [0.0, 0.0, 0.0]);
    assert!(values(&run, 0, 0)[..3].iter().all(|&x| x != 0.0));
    assert!(run.ranks[0].inputs.iter().all(|i| i.written));
}

#[test]
fn attributes_are_one_storage_per_name() {
    let mut s = Sketch::new(1);
    let get = |s: &mut Sketch, name: &str| {
        let id = s.graph.push(name, Op::GetAttr, "buffer");
        let device = s.graph.intern("cpu");
        let out = s.graph.contiguous(&[2], Dtype::F32, device);
        s.graph.node_mut(id).out = out;
        id
    };
    let a = get(&mut s, "a");
    s.call("aten.zero_.default", list![a]);
    let b = get(&mut s, "b");
    s.output(&[b]);
    let run = s.numbers();
    assert_eq!(values(&run, 0, 0), [0.0, 0.0]);
    let input = &run.ranks[0].inputs[0];
    assert!(input.attribute && input.written && input.name == "buffer");
}

#[test]
fn random_operators_draw_afresh() {
    let build = |swap: bool| {
        let mut s = Sketch::new(2);
        let x = s.input("x", Dtype::F32, &[64]);
        let draw = |s: &mut Sketch| s.call("aten.rand_like.default", list![x]);
        let (a, b) = (draw(&mut s), draw(&mut s));
        let drop = s.call("aten.native_dropout.default", list![x, 0.5, true]);
        let kept = s.call("operator.getitem", list![drop, 0]);
        let mask = s.call("operator.getitem", list![drop, 1]);
        s.output(&if swap { [b, a, kept, mask] } else { [a, b, kept, mask] });
        s
    };
    let run = build(false).numbers();
    assert_ne!(values(&run, 0, 0), values(&run, 0, 1), "two draws are two");
    assert_ne!(values(&run, 0, 0), values(&run, 1, 0), "ranks draw apart");
    assert_eq!(compare(&run, &build(false).numbers()), []);
    assert_eq!(compare(&run, &build(true).numbers()).len(), 4);
    let (kept, mask) = (values(&run, 0, 2), values(&run, 0, 3));
    let x = values_of_input(&run, 0, "x");
    for i in 0..64 {
        assert_eq!(kept[i], if mask[i] == 1.0 { 2.0 * x[i] } else { 0.0 });
    }
    assert!((8..56).contains(&mask.iter().filter(|&&m| m == 1.0).count()));
    assert_eq!(compare(&build(false).terms(), &build(true).terms()).len(), 4);
}

fn values_of_input(run: &Run, rank: usize, name: &str) -> Vec<f64> {
    match &run.ranks[rank].inputs.iter().find(|i| i.name == name).unwrap().value {
        Leaf::Tensor(tensor) => floats(tensor),
        _ => panic!(),
    }
}

#[test]
fn effects_are_kept_in_order() {
    let build = |swap: bool| {
        let mut s = Sketch::new(1);
        let x = s.input("x", Dtype::I64, &[]);
        let n = s.call("aten._local_scalar_dense.default", list![x]);
        let ge = s.call("operator.ge", list![n, 0]);
        let lt = s.call("operator.lt", list![n, 100]);
        let (first, second) = if swap { (lt, ge) } else { (ge, lt) };
        s.call("aten._assert_scalar.default", list![first, "first"]);
        s.call("aten._assert_scalar.default", list![second, "second"]);
        s.output(&[x]);
        s.give("x", 0, Dtype::I64, &[-7.0]);
        s
    };
    let run = build(false).numbers();
    let asserted: Vec<Option<Number>> = run.ranks[0].effects.iter().map(|e| e.asserted).collect();
    assert_eq!(asserted, [Some(Number::Bool(false)), Some(Number::Bool(true))]);
    let found = compare(&run, &build(true).numbers());
    assert_eq!(
        found.iter().map(|d| d.place.clone()).collect::<Vec<_>>(),
        [Place::Effect(0), Place::Effect(1)]
    );
    assert_eq!(compare(&build(false).terms(), &build(true).terms()).len(), 2);
}

/// Operators of which nothing is known share unknown state: their order counts, and so does their number.
#[test]
fn unknown_operators_are_effects() {
    let build = |order: [usize; 2]| {
        let mut s = Sketch::new(1);
        let x = s.input("x", Dtype::F32, &[2]);
        let mut outs = [x; 2];
        for k in order {
            outs[k] = s.call("my.thing.default", list![x, k as i64]);
            s.record(outs[k], Dtype::F32, &[2]);
        }
        s.output(&outs);
        s
    };
    let run = build([0, 1]).terms();
    assert_eq!(run.ranks[0].effects.len(), 2);
    assert_eq!(compare(&run, &build([0, 1]).terms()), []);
    assert_eq!(compare(&run, &build([1, 0]).terms()).len(), 4);
    assert!(matches!(build([0, 1]).run(&Concrete::default()), Err(Failure::Refused { .. })));
}

/// An operator without kernel that writes its argument gives it a value of its own.
#[test]
fn opaque_writes_are_seen_through_aliases() {
    let build = |write: bool| {
        let mut s = Sketch::new(1);
        let x = s.input("x", Dtype::F32, &[4]);
        let y = s.input("y", Dtype::F32, &[2]);
        let part = s.call("aten.slice.Tensor", list![x, 0, 0, 2]);
        if write {
            s.call("aten._foreach_add_.List", list![[part], [y]]);
        }
        let z = s.call("aten.clone.default", list![x]);
        s.output(&[z]);
        s
    };
    let (without, with) = (build(false).terms(), build(true).terms());
    let found = compare(&without, &with);
    assert_eq!(found.len(), 2, "the clone and the input");
    let (a, b) = (tensor(&without, 0, 0), tensor(&with, 0, 0));
    assert!(a.cells[0] != b.cells[0] && a.cells[1] != b.cells[1] && a.cells[2..] == b.cells[2..]);
}

/// K31: what a buffer holds is seen in the second step.
#[test]
fn repeated_execution_keeps_what_was_written() {
    let mut s = Sketch::new(1);
    let x = s.input("x", Dtype::F32, &[2]);
    let y = s.call("aten.add_.Scalar", list![x, 1]);
    s.output(&[y]);
    s.give("x", 0, Dtype::F32, &[5.0, 6.0]);
    s.options.repeats = 3;
    assert_eq!(values(&s.numbers(), 0, 0), [8.0, 9.0]);
}

#[test]
fn too_large_is_refused_before_anything_is_allocated() {
    let mut s = Sketch::new(4);
    let x = s.input("x", Dtype::F32, &[1 << 20, 1 << 12]);
    s.output(&[x]);
    let failure = s.run(&Concrete::default()).unwrap_err();
    assert_eq!(failure.to_string(), "refused: the graph needs 17179869184 elements, the limit is 16777216");
    // Sizes that only the run knows are caught on the way.
    let mut s = Sketch::new(1);
    let e = s.call("aten.empty.memory_format", list![[1i64 << 40]]);
    s.output(&[e]);
    assert!(matches!(s.run(&Concrete::default()), Err(Failure::Refused { .. })));
    let mut s = Sketch::new(1);
    let e = s.call("aten.full.default", list![[1], 1]);
    let big = s.call("aten.expand.default", list![e, [1i64 << 40]]);
    let sum = s.call("aten.sum.default", list![big]);
    s.output(&[sum]);
    assert!(matches!(s.run(&Concrete::default()), Err(Failure::Refused { .. })));
}

#[test]
fn worlds_that_do_not_fit() {
    let mut s = Sketch::new(2);
    let x = s.input("x", Dtype::F32, &[2]);
    s.output(&[x]);
    s.world.groups[0].instances.clear();
    let failure = s.run(&Concrete::default()).unwrap_err();
    assert_eq!(failure.to_string(), "refused: process group \"dp\" does not list its ranks");
    s.world.groups[0].instances = vec![vec![0, 0]];
    assert!(matches!(s.run(&Concrete::default()), Err(Failure::World { .. })));
    // A collective on a group that this rank is not in.
    let mut s = Sketch::new(3);
    s.group("pair", &[&[0, 1]]);
    let x = s.input("x", Dtype::F32, &[2]);
    let g = s.call("_c10d_functional.all_gather_into_tensor.default", list![x, 2, "pair"]);
    s.wait(g);
    s.output(&[x]);
    match s.run(&Concrete::default()).unwrap_err() {
        Failure::Raises { rank, reason, .. } => {
            assert_eq!((rank, reason.as_str()), (Some(2), "rank 2 is not in process group \"pair\""));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn sizes_follow_from_the_inputs() {
    let mut s = Sketch::new(1);
    let x = s.input("x", Dtype::F32, &[3, 4]);
    let n = s.call("aten.sym_size.int", list![x, 1]);
    let half = s.call("operator.floordiv", list![n, 2]);
    let view = s.call("aten.view.default", list![x, vec![Arg::Int(-1), half.into()]]);
    let sum = s.call("torch.sym_sum", list![vec![Arg::from(n), half.into(), Arg::Int(1)]]);
    s.output(&[view, sum]);
    let run = s.terms();
    assert_eq!(*tensor(&run, 0, 0).shape, [6, 2]);
    assert_eq!(run.ranks[0].outputs[1].1, Leaf::Number(Number::Int(7)));
    // A size out of data is known to Numbers alone.
    let mut s = Sketch::new(1);
    let x = s.input("x", Dtype::I64, &[]);
    let n = s.call("aten.item.default", list![x]);
    let e = s.call("aten.full.default", list![vec![Arg::from(n)], 1]);
    s.output(&[e]);
    s.give("x", 0, Dtype::I64, &[3.0]);
    assert_eq!(values(&s.numbers(), 0, 0), [1.0; 3]);
    match s.run(&Fingerprints::in_bits()).unwrap_err() {
        Failure::Refused { reason, .. } => assert_eq!(reason, "a size or index depends on data"),
        other => panic!("{other}"),
    }
}

#[test]
fn differences_are_told_with_both_sides() {
    let build = |kind: usize| {
        let mut s = Sketch::new(1);
        let x = s.input("x", Dtype::F32, &[2, 2]);
        let y = match kind {
            0 => s.call("aten.mul.Scalar", list![x, 2]),
            1 => s.call("aten.mul.Scalar", list![x, 3]),
            2 => s.call("aten.view.default", list![x, [4]]),
            3 => s.call("prims.convert_element_type.default", list![x, Dtype::BF16]),
            4 => s.call("aten.empty_like.default", list![x]),
            5 => s.call("aten.mul_.Scalar", list![x, 2]),
            _ => s.call("aten.sym_size.int", list![x, 0]),
        };
        if kind == 7 {
            s.output(&[])
        } else {
            s.output(&[y])
        }
        s.give("x", 0, Dtype::F32, &[0.0, 1.0, 2.0, 3.0]);
        s.numbers()
    };
    let told = |kind| compare(&build(0), &build(kind)).iter().map(Difference::to_string).collect::<Vec<_>>();
    assert_eq!(told(0), [""; 0]);
    assert_eq!(told(1), ["rank 0: output 0, element [0, 1]: 2 before, 3 after (3 elements differ)"]);
    assert_eq!(told(2), ["rank 0: output 0: shape [2, 2] before, [4] after"]);
    assert_eq!(told(3), ["rank 0: output 0: float32 before, bfloat16 after"]);
    assert_eq!(
        told(4),
        ["rank 0: output 0, element [0, 0]: 0 before, an uninitialised value after (4 elements differ)"]
    );
    assert_eq!(
        told(5),
        ["rank 0: the final contents of input x, element [0, 1]: 1 before, 2 after (3 elements differ)"]
    );
    assert_eq!(told(6), ["rank 0: output 0: f32[2, 2] before, 2 after"]);
    assert_eq!(told(7), ["rank 0: output 0: f32[2, 2] before, nothing after"]);
}

#[test]
fn the_first_divergent_node_is_found() {
    let build = |factor: i64| {
        let mut s = Sketch::new(2);
        let x = s.input("x", Dtype::F32, &[2]);
        let a = s.call("aten.relu.default", list![x]);
        let b = s.call("aten.mul.Scalar", list![a, factor]);
        let c = s.call("aten.neg.default", list![b]);
        s.output(&[c]);
        s.options.trace = true;
        s
    };
    let (before, after) = (build(2), build(3));
    let (p, q) = (before.terms(), after.terms());
    let (before, after) = ((&before.graph, &p.ranks[0]), (&after.graph, &q.ranks[0]));
    let found = first_divergence(before, after, &|_| false);
    assert_eq!(found, Some(Divergence { before: NodeId(2), after: NodeId(2), read: None }));
    assert_eq!(first_divergence(before, before, &|_| false), None);
}
