//! Each collective against its definition, on groups that are not the whole world.

use super::*;
use proptest::prelude::*;

const AG: &str = "_c10d_functional.all_gather_into_tensor.default";
const RS: &str = "_c10d_functional.reduce_scatter_tensor.default";
const AR: &str = "_c10d_functional.all_reduce.default";

/// What input `x` holds on each rank, as numbers.
fn held(run: &Run, rank: usize, name: &str) -> Vec<f64> {
    let input = run.ranks[rank].inputs.iter().find(|i| i.name == name).unwrap();
    match &input.value {
        Leaf::Tensor(tensor) => floats(tensor),
        other => panic!("{other:?}"),
    }
}

/// One collective on x: f32[4, 3] over groups {0, 2} and {3, 1}, then its wait.
fn single(target: &str, args: &[Arg]) -> (Sketch, Run) {
    let mut s = Sketch::new(4);
    s.group("pair", &[&[0, 2], &[3, 1]]);
    let x = s.input("x", Dtype::F32, &[4, 3]);
    let args: Vec<Arg> = [x.into()].into_iter().chain(args.iter().cloned()).collect();
    let g = s.call(target, &args);
    let w = s.wait(g);
    s.output(&[w]);
    let run = s.numbers();
    assert_eq!(run.hazards, []);
    (s, run)
}

/// The other member and the own position.
const PEER: [(usize, usize); 4] = [(2, 0), (3, 1), (0, 1), (1, 0)];

#[test]
fn all_gather_is_concatenation() {
    let (_, run) = single(AG, list![2, "pair"]);
    for (rank, (peer, position)) in PEER.into_iter().enumerate() {
        let order = if position == 0 { [rank, peer] } else { [peer, rank] };
        assert_eq!(values(&run, rank, 0), order.map(|r| held(&run, r, "x")).concat());
        assert_eq!(*tensor(&run, rank, 0).shape, [8, 3]);
    }
}

#[test]
fn reductions_over_ranks() {
    type Reduction = fn(f64, f64) -> f64;
    let table: [(&str, Reduction); 5] = [
        ("sum", |a, b| a + b),
        ("avg", |a, b| (a + b) / 2.0),
        ("max", f64::max),
        ("min", f64::min),
        ("product", |a, b| a * b),
    ];
    for (op, f) in table {
        let (_, all) = single(AR, list![op, "pair"]);
        let (_, part) = single(RS, list![op, 2, "pair"]);
        for (rank, (peer, position)) in PEER.into_iter().enumerate() {
            let (a, b) = (held(&all, rank, "x"), held(&all, peer, "x"));
            let expected: Vec<f64> = a.iter().zip(&b).map(|(&a, &b)| f(a, b)).collect();
            assert_eq!(values(&all, rank, 0), expected, "{op}");
            assert_eq!(values(&part, rank, 0), expected[6 * position..6 * (position + 1)], "{op}");
            assert_eq!(*tensor(&part, rank, 0).shape, [2, 3]);
        }
    }
    // Bitwise ones, on integers.
    for (op, f) in
        [("band", (|a, b| a & b) as fn(i64, i64) -> i64), ("bor", |a, b| a | b), ("bxor", |a, b| a ^ b)]
    {
        let mut s = Sketch::new(2);
        let x = s.input("x", Dtype::I32, &[5]);
        let g = s.call(AR, list![x, op, "dp"]);
        let w = s.wait(g);
        s.output(&[w]);
        let run = s.numbers();
        let (a, b) = (held(&run, 0, "x"), held(&run, 1, "x"));
        let expected: Vec<f64> = a.iter().zip(&b).map(|(&a, &b)| f(a as i64, b as i64) as f64).collect();
        assert_eq!(values(&run, 1, 0), expected);
    }
}

/// Sums of 16-bit floats are rounded once.
#[test]
fn sums_over_ranks_round_once() {
    let mut s = Sketch::new(4);
    let x = s.input("x", Dtype::BF16, &[1]);
    let g = s.call(AR, list![x, "sum", "dp"]);
    let w = s.wait(g);
    s.output(&[w]);
    for (rank, value) in [256.0, 1.0, 1.0, 1.0].into_iter().enumerate() {
        s.give("x", rank as u32, Dtype::BF16, &[value]);
    }
    // 256 + 1 is a tie that rounds to 256: one by one the sum would stay there.
    assert_eq!(values(&s.numbers(), 0, 0), [260.0]);
}

#[test]
fn broadcast_takes_the_source() {
    let (_, run) = single("_c10d_functional.broadcast.default", list![1, "pair"]);
    for (rank, (peer, position)) in PEER.into_iter().enumerate() {
        let source = if position == 1 { rank } else { peer };
        assert_eq!(values(&run, rank, 0), held(&run, source, "x"));
    }
}

#[test]
fn all_to_all_with_uneven_splits() {
    // Rank 0 keeps 1 row and sends 2; rank 1 sends 3 and keeps 0.
    let mut sketches = Vec::new();
    for (received, sent) in [([1, 3], [1, 2]), ([2, 0], [3, 0])] {
        let mut s = Sketch::new(2);
        let x = s.input("x", Dtype::F32, &[3, 2]);
        let g = s.call("_c10d_functional.all_to_all_single.default", list![x, received, sent, "dp"]);
        let w = s.wait(g);
        s.output(&[w]);
        sketches.push(s);
    }
    let run = per_rank(&sketches).unwrap();
    let (a, b) = (held(&run, 0, "x"), held(&run, 1, "x"));
    assert_eq!(values(&run, 0, 0), [&a[..2], &b[..]].concat());
    assert_eq!(values(&run, 1, 0), a[2..]);
    // Splits that do not fit are told with both sides.
    let mut bad = sketches.clone();
    let target = bad[1].graph.find("n1").unwrap();
    let args = [(2, [1, 1]), (1, [3, 0])];
    for (at, splits) in args {
        let value = bad[1].value(&Arg::from(splits));
        let mut list = bad[1].graph.args(target).to_vec();
        list[at] = value;
        let span = bad[1].graph.push_values(&list);
        bad[1].graph.node_mut(target).args = span;
    }
    assert!(per_rank(&bad).is_err());
}

fn per_rank(sketches: &[Sketch]) -> Result<Run, Failure> {
    let ops: Vec<Ops> = sketches.iter().map(|s| Ops::of(&s.graph)).collect();
    let programs = sketches
        .iter()
        .zip(&ops)
        .map(|(s, ops)| Program::new(&s.graph, ops, &s.world))
        .collect::<Result<Vec<_>, _>>()?;
    run(
        &programs,
        &sketches[0].world,
        &Concrete { large_every: 0, ..Concrete::default() },
        &Options::default(),
    )
}

#[test]
fn coalesced_forms_have_a_wait_per_tensor() {
    let mut s = Sketch::new(2);
    let x = s.input("x", Dtype::F32, &[2]);
    let y = s.input("y", Dtype::BF16, &[2, 2]);
    let all = [
        s.call("_c10d_functional.all_gather_into_tensor_coalesced.default", list![[x, y], 2, "dp"]),
        s.call("_c10d_functional.reduce_scatter_tensor_coalesced.default", list![[x, y], "sum", 2, "dp"]),
        s.call("_c10d_functional.all_reduce_coalesced.default", list![[x, y], "sum", "dp"]),
    ];
    let mut outs = Vec::new();
    for list in all {
        for i in 0..2 {
            let part = s.call("operator.getitem", list![list, i]);
            outs.push(s.wait(part));
        }
    }
    // The same, all waited for at once.
    let again = s.call("_c10d_functional.all_reduce_coalesced.default", list![[x, y], "sum", "dp"]);
    let waited = s.call("_c10d_functional.wait_tensors.default", list![again]);
    for i in 0..2 {
        outs.push(s.call("operator.getitem", list![waited, i]));
    }
    s.output(&outs);
    let run = s.numbers();
    assert_eq!(run.hazards, []);
    let sum = |name| -> Vec<f64> {
        // Of y the sum is a bf16, which above 256 holds even numbers only.
        let rounded = |x: f64| if name == "y" { half::bf16::from_f64(x).to_f64() } else { x };
        held(&run, 0, name).iter().zip(held(&run, 1, name)).map(|(a, b)| rounded(a + b)).collect()
    };
    for rank in 0..2 {
        assert_eq!(values(&run, rank, 0), [held(&run, 0, "x"), held(&run, 1, "x")].concat());
        assert_eq!(values(&run, rank, 1), [held(&run, 0, "y"), held(&run, 1, "y")].concat());
        assert_eq!(values(&run, rank, 2), sum("x")[rank..rank + 1]);
        assert_eq!(values(&run, rank, 3), sum("y")[2 * rank..2 * rank + 2]);
        assert_eq!(values(&run, rank, 4), sum("x"));
        assert_eq!(values(&run, rank, 5), sum("y"));
        assert_eq!(values(&run, rank, 6), sum("x"));
        assert_eq!(values(&run, rank, 7), sum("y"));
    }
    // One launch each, not one per tensor.
    assert_eq!(run.ranks[0].launches.len(), 4);
}

#[test]
fn in_place_forms_change_their_input() {
    let mut s = Sketch::new(2);
    let x = s.input("x", Dtype::F32, &[3]);
    let y = s.input("y", Dtype::F32, &[3]);
    let g = s.call("_c10d_functional.all_reduce_.default", list![x, "max", "dp"]);
    let w = s.wait(g);
    let b = s.call("_c10d_functional.broadcast_.default", list![y, 1, "dp"]);
    s.wait(b);
    s.output(&[w, x, y]);
    s.give("x", 0, Dtype::F32, &[1.0, 5.0, 3.0]);
    s.give("x", 1, Dtype::F32, &[4.0, 2.0, 6.0]);
    s.give("y", 0, Dtype::F32, &[0.0, 0.0, 0.0]);
    s.give("y", 1, Dtype::F32, &[7.0, 8.0, 9.0]);
    let run = s.numbers();
    assert_eq!(run.hazards, []);
    for rank in 0..2 {
        assert_eq!(values(&run, rank, 0), [4.0, 5.0, 6.0]);
        assert_eq!(held(&run, rank, "x"), [4.0, 5.0, 6.0]);
        assert_eq!(held(&run, rank, "y"), [7.0, 8.0, 9.0]);
        assert!(run.ranks[rank].inputs.iter().all(|i| i.written));
        assert_eq!(tensor(&run, rank, 0).alias_of, Some(0));
    }
}

#[test]
fn gathers_and_scatters_into_buffers() {
    let mut s = Sketch::new(2);
    let x = s.input("x", Dtype::F32, &[2]);
    let y = s.input("y", Dtype::F32, &[6]);
    // The destination is a window in the middle of a buffer, under another shape.
    let part = s.call("aten.slice.Tensor", list![y, 0, 1, 5]);
    let g = s.call_with(
        "_c10d_functional.all_gather_into_tensor_out.default",
        list![x, 2, "dp"],
        &[("out", part.into())],
    );
    s.wait(g);
    let z = s.input("z", Dtype::F32, &[2, 1]);
    let last = s.call("aten.slice.Tensor", list![y, 0, 5, 6]);
    let r = s.call_with(
        "_c10d_functional.reduce_scatter_tensor_out.default",
        list![z, "sum", 2, "dp"],
        &[("out", last.into())],
    );
    s.wait(r);
    s.output(&[y]);
    let run = s.numbers();
    let before: Vec<f64> = {
        let ops = Ops::of(&s.graph);
        let program = Program::new(&s.graph, &ops, &s.world).unwrap();
        let all =
            inputs(&program, 1, &Concrete { large_every: 0, ..Concrete::default() }, &Options::default())
                .unwrap();
        match &all[1].value {
            Leaf::Tensor(tensor) => floats(tensor),
            _ => panic!(),
        }
    };
    let sum = held(&run, 0, "z")[1] + held(&run, 1, "z")[1];
    let expected = [vec![before[0]], held(&run, 0, "x"), held(&run, 1, "x"), vec![sum]].concat();
    assert_eq!(values(&run, 1, 0), expected);
}

#[test]
fn sends_meet_receives() {
    // A ring of three: each sends to the next and receives from the one before, in one batch; then 0 sends to 2.
    let mut sketches = Vec::new();
    for r in 0..3i64 {
        let mut s = Sketch::new(3);
        let x = s.input("x", Dtype::F32, &[2]);
        let buffer = s.call("aten.empty.memory_format", list![[2]]);
        let names = vec![Arg::Text("isend"), Arg::Text("irecv")];
        let peers = [(r + 1) % 3, (r + 2) % 3];
        let batch =
            s.call("_c10d_functional.batch_p2p_ops.default", list![names, peers, [0, 0], [x, buffer], "dp"]);
        let sent = s.call("operator.getitem", list![batch, 0]);
        let received = s.call("operator.getitem", list![batch, 1]);
        s.wait(sent);
        let w = s.wait(received);
        if r == 0 {
            let send = s.call("_c10d_functional.isend.default", list![w, 2, 0, "dp"]);
            s.wait(send);
        }
        if r == 2 {
            let more = s.call("_c10d_functional.irecv.default", list![x, 0, 0, "dp"]);
            s.wait(more);
        }
        s.output(&[buffer, x]);
        sketches.push(s);
    }
    let run = per_rank(&sketches).unwrap();
    assert_eq!(run.hazards, []);
    for r in 0..3 {
        if r != 0 {
            let from = values(&run, (r + 2) % 3, 1);
            // Rank 2's x has been received over since; rank 0's and 1's are as they were.
            assert_eq!(values(&run, r, 0), from);
        }
    }
    assert_eq!(values(&run, 2, 1), values(&run, 0, 0));
}

#[test]
fn shard_dim_alltoall_moves_the_sharding() {
    // As gloo gives it in PyTorch 2.15: gather along 0, split along 1.
    let mut s = Sketch::new(2);
    let x = s.input("x", Dtype::F32, &[2, 4]);
    let y = s.call("_dtensor.shard_dim_alltoall.default", list![x, 0, 1, "dp"]);
    let z = s.call("_dtensor.shard_dim_alltoall.default", list![y, 1, 0, "dp"]);
    s.output(&[y, z]);
    s.give("x", 0, Dtype::F32, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    s.give("x", 1, Dtype::F32, &[100.0, 101.0, 102.0, 103.0, 104.0, 105.0, 106.0, 107.0]);
    let run = s.numbers();
    assert_eq!(values(&run, 0, 0), [0.0, 1.0, 4.0, 5.0, 100.0, 101.0, 104.0, 105.0]);
    assert_eq!(values(&run, 1, 0), [2.0, 3.0, 6.0, 7.0, 102.0, 103.0, 106.0, 107.0]);
    assert_eq!(*tensor(&run, 0, 0).shape, [4, 2]);
    // And back.
    assert_eq!(values(&run, 0, 1), held(&run, 0, "x"));
    let terms = s.terms();
    let original = |rank: usize| terms.ranks[rank].inputs[0].value.clone();
    for rank in 0..2 {
        match original(rank) {
            Leaf::Tensor(x) => assert_eq!(tensor(&terms, rank, 1).cells, x.cells),
            _ => panic!(),
        }
    }
}

#[test]
fn a_group_may_be_a_value_of_the_graph() {
    let mut s = Sketch::new(2);
    let x = s.input("x", Dtype::F32, &[2]);
    let group = s.graph.push("pg", Op::Placeholder, "pg");
    let script = s.graph.intern("FakeScriptObject");
    s.graph.node_mut(group).out = Out::Other(script);
    let g = s.call(AG, list![x, 2, group]);
    let w = s.wait(g);
    s.output(&[w]);
    assert_eq!(values(&s.numbers(), 0, 0).len(), 4);
    // With several groups nothing says which one it is.
    s.group("other", &[&[0, 1]]);
    assert!(matches!(s.run(&Concrete::default()), Err(Failure::Refused { .. })));
    // Unless the value has the group's name.
    s.group("pg", &[&[1, 0]]);
    let run = s.numbers();
    assert_eq!(values(&run, 0, 0), [held(&run, 1, "x"), held(&run, 0, "x")].concat());
}

/// A legacy collective names its ranks.
#[test]
fn the_legacy_namespace() {
    let mut s = Sketch::new(4);
    s.group("pair", &[&[0, 2], &[3, 1]]);
    let x = s.input("x", Dtype::F32, &[2]);
    let g = s.call("c10d_functional.all_reduce.default", list![x, "sum", "", [0, 2, 3, 1], 2]);
    let w = s.wait(g);
    s.output(&[w]);
    let run = s.numbers();
    let expected: Vec<f64> = held(&run, 0, "x").iter().zip(held(&run, 2, "x")).map(|(a, b)| a + b).collect();
    assert_eq!(values(&run, 2, 0), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A bucketed reduction is the separate ones, in both domains: the same elements meet.
    #[test]
    fn reductions_commute_with_packing(
        sizes in prop::collection::vec(1i64..4, 1..4),
        ranks in 1u32..4,
        scatter in any::<bool>(),
        op in prop::sample::select(vec!["sum", "max", "product"]),
    ) {
        let r = i64::from(ranks);
        let build = |bucketed: bool| {
            let mut s = Sketch::new(ranks);
            let xs: Vec<NodeId> =
                sizes.iter().enumerate().map(|(i, &n)| s.input(&format!("x{i}"), Dtype::BF16, &[n * r, 2])).collect();
            let reduce = |s: &mut Sketch, x: NodeId| {
                let g = if scatter { s.call(RS, list![x, op, r, "dp"]) } else { s.call(AR, list![x, op, "dp"]) };
                s.wait(g)
            };
            let outs: Vec<NodeId> = if bucketed {
                let rows: Vec<NodeId> =
                    xs.iter().map(|&x| s.call("aten.view.default", list![x, [r, -1]])).collect();
                let cat = s.call("aten.cat.default", list![rows, 1]);
                let flat = s.call("aten.view.default", list![cat, [-1]]);
                let sum = reduce(&mut s, flat);
                let shaped = if scatter { sum } else { s.call("aten.view.default", list![sum, [r, -1]]) };
                let widths: Vec<i64> = sizes.iter().map(|n| n * 2).collect();
                let dim = i64::from(!scatter);
                let split = s.call("aten.split_with_sizes.default", list![shaped, widths, dim]);
                sizes.iter().enumerate().map(|(i, &n)| {
                    let part = s.call("operator.getitem", list![split, i as i64]);
                    let rows = if scatter { n } else { n * r };
                    s.call("aten.reshape.default", list![part, [rows, 2]])
                }).collect()
            } else {
                xs.iter().map(|&x| reduce(&mut s, x)).collect()
            };
            s.output(&outs);
            s
        };
        let (before, after) = (build(false), build(true));
        let numbers = Concrete::default();
        prop_assert_eq!(compare(&before.run(&numbers).unwrap(), &after.run(&numbers).unwrap()), []);
        prop_assert_eq!(compare(&before.terms(), &after.terms()), []);
    }
}

/// PyTorch and gloo add what there is, and nothing else: the sum of two negative zeros is one.
#[test]
fn negative_zeros_stay_negative() {
    let zero = u64::from((-0.0f32).to_bits());
    for op in [RankReduce::Sum, RankReduce::Avg, RankReduce::Max, RankReduce::Min] {
        let all = Concrete::default().across_ranks(op, Dtype::F32, &[&[zero], &[zero]]);
        assert_eq!(all, Ok(vec![zero]), "{op:?}");
    }
}

/// A barrier is an effect: nothing in the graph says that it took place.
#[test]
fn barriers_are_effects() {
    let build = |barrier: bool| {
        let mut s = Sketch::new(1);
        let x = s.input("x", Dtype::F32, &[1]);
        if barrier {
            s.call("c10d.barrier.default", list![x, "dp", vec![0]]);
        }
        s.output(&[x]);
        s.numbers()
    };
    let before = build(true);
    assert_eq!(compare(&before, &build(true)), []);
    let places: Vec<Place> =
        compare(&before, &build(false)).into_iter().map(|difference| difference.place).collect();
    assert_eq!(places, [Place::Effect(0)]);
}

/// What a draw takes only the shape of does not matter, be it unwritten memory.
#[test]
fn draws_without_a_kernel_do_not_read_what_they_overwrite() {
    let build = |zero: bool| {
        let mut s = Sketch::new(1);
        let x = s.input("x", Dtype::F32, &[2]);
        let y = if zero { s.call("aten.zero_.default", list![x]) } else { x };
        let z = s.call("aten.uniform_.default", list![y]);
        s.record(z, Dtype::F32, &[2]);
        s.output(&[z]);
        s.terms()
    };
    assert_eq!(compare(&build(false), &build(true)), []);
}
