//! The bodies of bucketed collectives, and the historic graph that reads before it writes.

use super::*;

const AG: &str = "_c10d_functional.all_gather_into_tensor.default";
const AG_OUT: &str = "_c10d_functional.all_gather_into_tensor_out.default";
const RS: &str = "_c10d_functional.reduce_scatter_tensor.default";

/// One gather each of x0 and x1.
fn gathers(ranks: u32) -> Sketch {
    let mut s = Sketch::new(ranks);
    let x0 = s.input("x0", Dtype::F32, &[2]);
    let x1 = s.input("x1", Dtype::F32, &[1, 3]);
    let g0 = s.call(AG, list![x0, i64::from(ranks), "dp"]);
    let w0 = s.wait(g0);
    let g1 = s.call(AG, list![x1, i64::from(ranks), "dp"]);
    let w1 = s.wait(g1);
    s.output(&[w0, w1]);
    s
}

/// The default merge body, as rank `r` has it.
fn bucketed(ranks: u32, r: i64) -> Sketch {
    let mut s = Sketch::new(ranks);
    let n = 5;
    let all = i64::from(ranks);
    let x0 = s.input("x0", Dtype::F32, &[2]);
    let x1 = s.input("x1", Dtype::F32, &[1, 3]);
    let buffer = s.call_with("aten.empty.memory_format", list![[n * all]], &[("dtype", Dtype::F32.into())]);
    let slot = s.call("aten.slice.Tensor", list![buffer, 0, r * n, (r + 1) * n]);
    let f0 = s.call("aten.view.default", list![x0, [-1]]);
    let f1 = s.call("aten.view.default", list![x1, [-1]]);
    let cat = s.call("aten.cat.default", list![[f0, f1]]);
    let filled = s.call("aten.copy_.default", list![slot, cat]);
    let g = s.call_with(AG_OUT, list![filled, all, "dp"], &[("out", buffer.into())]);
    let w = s.wait(g);
    let rows = s.call("aten.view.default", list![w, [all, -1]]);
    let split = s.call("aten.split_with_sizes.default", list![rows, [2, 3], 1]);
    let p0 = s.call("operator.getitem", list![split, 0]);
    let p1 = s.call("operator.getitem", list![split, 1]);
    let o0 = s.call("aten.reshape.default", list![p0, [2 * all]]);
    let o1 = s.call("aten.reshape.default", list![p1, [all, 3]]);
    s.output(&[o0, o1]);
    s
}

fn run_per_rank(sketches: &[Sketch], domain: &dyn Domain) -> Run {
    let ops: Vec<Ops> = sketches.iter().map(|s| Ops::of(&s.graph)).collect();
    let programs: Vec<Program> =
        sketches.iter().zip(&ops).map(|(s, ops)| Program::new(&s.graph, ops, &s.world).unwrap()).collect();
    let options = Options { given: sketches[0].given.clone(), ..Options::default() };
    run(&programs, &sketches[0].world, domain, &options).unwrap_or_else(|e| panic!("{e}"))
}

/// The worked example of the all-gather body.
#[test]
fn all_gather_example() {
    let mut sketches = [bucketed(2, 0), bucketed(2, 1)];
    sketches[0].give("x0", 0, Dtype::F32, &[1.0, 2.0]);
    sketches[0].give("x1", 0, Dtype::F32, &[10.0, 20.0, 30.0]);
    sketches[0].give("x0", 1, Dtype::F32, &[3.0, 4.0]);
    sketches[0].give("x1", 1, Dtype::F32, &[40.0, 50.0, 60.0]);
    let run = run_per_rank(&sketches, &Concrete::default());
    assert_eq!(run.hazards, []);
    for rank in 0..2 {
        assert_eq!(values(&run, rank, 0), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(values(&run, rank, 1), [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
        assert_eq!(*tensor(&run, rank, 1).shape, [2, 3]);
    }
}

/// The bucketed graph means what the original means, in both domains.
#[test]
fn bucketed_gathers_equal_the_originals() {
    for ranks in [1, 2, 4] {
        let after: Vec<Sketch> = (0..ranks).map(|r| bucketed(ranks, i64::from(r))).collect();
        let before = gathers(ranks);
        let (a, b) = (before.run(&Concrete::default()).unwrap(), run_per_rank(&after, &Concrete::default()));
        assert_eq!(compare(&a, &b), []);
        let (a, b) = (before.terms(), run_per_rank(&after, &Fingerprints::in_bits()));
        assert_eq!(compare(&a, &b), []);
    }
}

/// With the constant of another rank the slot lies where that rank's part is received.
#[test]
fn a_slot_of_another_rank_is_found() {
    let after = [bucketed(2, 1), bucketed(2, 0)];
    let run = run_per_rank(&after, &Fingerprints::in_bits());
    assert_eq!(compare(&gathers(2).terms(), &run).len(), 4);
    assert!(run.hazards.iter().all(|h| h.kind == HazardKind::InputUnderOutput));
    assert_eq!(run.hazards.len(), 2);
}

/// The worked example of the reduce-scatter body.
#[test]
fn reduce_scatter_example() {
    let mut s = Sketch::new(2);
    let x0 = s.input("x0", Dtype::F32, &[4]);
    let x1 = s.input("x1", Dtype::F32, &[2]);
    let v0 = s.call("aten.view.default", list![x0, [2, -1]]);
    let v1 = s.call("aten.view.default", list![x1, [2, -1]]);
    let cat = s.call("aten.cat.default", list![[v0, v1], 1]);
    let flat = s.call("aten.view.default", list![cat, [6]]);
    let g = s.call(RS, list![flat, "sum", 2, "dp"]);
    let w = s.wait(g);
    let split = s.call("aten.split_with_sizes.default", list![w, [2, 1]]);
    let o0 = s.call("operator.getitem", list![split, 0]);
    let o1 = s.call("operator.getitem", list![split, 1]);
    s.output(&[o0, o1, flat]);
    for (rank, scale) in [(0, 1.0), (1, 10.0)] {
        s.give("x0", rank, Dtype::F32, &[1.0, 2.0, 3.0, 4.0].map(|x| x * scale));
        s.give("x1", rank, Dtype::F32, &[5.0, 6.0].map(|x| x * scale));
    }
    let run = s.numbers();
    assert_eq!(values(&run, 0, 2), [1.0, 2.0, 5.0, 3.0, 4.0, 6.0]);
    assert_eq!(values(&run, 1, 2), [10.0, 20.0, 50.0, 30.0, 40.0, 60.0]);
    assert_eq!((values(&run, 0, 0), values(&run, 0, 1)), (vec![11.0, 22.0], vec![55.0]));
    assert_eq!((values(&run, 1, 0), values(&run, 1, 1)), (vec![33.0, 44.0], vec![66.0]));
}

/// The custom_ops body for several dtypes: f32 and bf16 in one bf16 bucket.
fn multidtype(ranks: u32, r: i64) -> Sketch {
    let mut s = Sketch::new(ranks);
    let all = i64::from(ranks);
    let x0 = s.input("x0", Dtype::F32, &[3]);
    let x1 = s.input("x1", Dtype::F32, &[2, 2]);
    // x1 is cast to bf16 on the way: 6 + 4 elements of bf16.
    let pre =
        s.call("bucketing._pre_bucket_all_gather.default", list![[x0, x1], all, Dtype::BF16, [16, 1], r]);
    let slot = s.call("aten.slice.Tensor", list![pre, 0, 10 * r, 10 * (r + 1)]);
    let g = s.call_with(AG_OUT, list![slot, all, "dp"], &[("out", pre.into())]);
    let w = s.wait(g);
    let rows = s.call("aten.view.default", list![w, [all, -1]]);
    let mut outs = Vec::new();
    let mut shown = Vec::new();
    for (dtype, n) in [(Dtype::F32, 3), (Dtype::BF16, 4)] {
        let empty = s.call_with("aten.empty.memory_format", list![[n * all]], &[("dtype", dtype.into())]);
        let view = s.call("aten.view.default", list![empty, [all, -1]]);
        let retyped = s.call("aten.view.dtype", list![view, Dtype::BF16]);
        shown.push(s.call("aten.alias.default", list![retyped]));
        outs.push(empty);
    }
    let out = Arg::Nodes(shown);
    s.call_with("aten.split_with_sizes_copy.out", list![rows, [6, 4], 1], &[("out", out)]);
    let o0 = s.call("aten.view.default", list![outs[0], [3 * all]]);
    let o1 = s.call("aten.view.default", list![outs[1], [2 * all, 2]]);
    s.output(&[o0, o1]);
    s
}

#[test]
fn buckets_of_several_dtypes_keep_every_bit() {
    let mut before = Sketch::new(4);
    let x0 = before.input("x0", Dtype::F32, &[3]);
    let x1 = before.input("x1", Dtype::F32, &[2, 2]);
    let cast = before.call("prims.convert_element_type.default", list![x1, Dtype::BF16]);
    let g0 = before.call(AG, list![x0, 4, "dp"]);
    let w0 = before.wait(g0);
    let g1 = before.call(AG, list![cast, 4, "dp"]);
    let w1 = before.wait(g1);
    before.output(&[w0, w1]);
    let after: Vec<Sketch> = (0..4).map(|r| multidtype(4, r)).collect();
    let run = run_per_rank(&after, &Concrete::default());
    assert_eq!(compare(&before.run(&Concrete::default()).unwrap(), &run), []);
    assert_eq!(compare(&before.terms(), &run_per_rank(&after, &Fingerprints::in_bits())), []);
    assert!(values(&run, 0, 1).iter().any(|x| x.abs() > 255.0), "some element has to be rounded");
}

/// H1 of the specification: the gather runs before its slot is filled.
fn historic(sorted: bool) -> Sketch {
    let mut s = Sketch::new(1);
    let p0 = s.input("p0", Dtype::F32, &[2]);
    let p1 = s.input("p1", Dtype::F32, &[2]);
    let in0 = s.call("aten.relu.default", list![p0]);
    let buffer = s.call("aten.empty.memory_format", list![[4]]);
    let slot = s.call("aten.slice.Tensor", list![buffer, 0, 0, 4]);
    let split = s.call("aten.split_with_sizes.default", list![slot, [2, 2]]);
    let v0 = s.call("operator.getitem", list![split, 0]);
    let v1 = s.call("operator.getitem", list![split, 1]);
    let fill = |s: &mut Sketch| {
        let in1 = s.call("aten.relu.default", list![p1]);
        s.call("aten._foreach_copy_.default", list![[v0, v1], [in0, in1]]);
    };
    if sorted {
        fill(&mut s);
    }
    let g = s.call_with(AG_OUT, list![slot, 1, "dp"], &[("out", buffer.into())]);
    let w = s.wait(g);
    if !sorted {
        fill(&mut s);
    }
    let out = s.call("aten.split_with_sizes.default", list![w, [2, 2]]);
    let o0 = s.call("operator.getitem", list![out, 0]);
    let o0 = s.call("aten.clone.default", list![o0]);
    s.output(&[o0]);
    s
}

#[test]
fn the_historic_body_reads_poison() {
    let good = historic(true).numbers();
    assert!(values(&good, 0, 0).iter().all(|x| !x.is_nan()));
    // The copies come after the gather; the clone after both reads what they left, not what was gathered.
    let mut bad = historic(false);
    let node = bad.graph.find("n8").unwrap();
    assert_eq!(bad.graph.target(node), AG_OUT);
    bad.options.trace = true;
    let run = bad.numbers();
    let wait = bad.graph.find("n9").unwrap();
    assert_eq!(run.ranks[0].trace[wait.index()].poisoned, 4);
}

/// On two ranks the poison of the other rank's slot is gathered, and no later copy mends that.
#[test]
fn poison_travels_to_other_ranks() {
    let build = |r: i64, late: bool| {
        let mut s = Sketch::new(2);
        let p = s.input("p", Dtype::F32, &[2]);
        let buffer = s.call("aten.empty.memory_format", list![[4]]);
        let slot = s.call("aten.slice.Tensor", list![buffer, 0, 2 * r, 2 * r + 2]);
        let alias = s.call("aten.alias.default", list![slot]);
        if !late {
            s.call("aten.copy_.default", list![alias, p]);
        }
        let g = s.call_with(AG_OUT, list![slot, 2, "dp"], &[("out", buffer.into())]);
        if late {
            s.call("aten.copy_.default", list![alias, p]);
        }
        let w = s.wait(g);
        s.output(&[w]);
        s
    };
    for late in [false, true] {
        let run = run_per_rank(&[build(0, late), build(1, late)], &Fingerprints::in_bits());
        for rank in 0..2 {
            let poison = &tensor(&run, rank, 0).poison;
            assert_eq!(poison.iter().filter(|&&p| p).count(), if late { 4 } else { 0 });
        }
        // Writing the slot while the gather is under way is a race as well.
        assert_eq!(run.hazards.len(), if late { 2 } else { 0 });
    }
}

/// Empty inputs are left out of a packed reduction, the first one too: the bucket has the dtype of what is left.
#[test]
fn an_empty_input_does_not_say_the_dtype_of_its_bucket() {
    let mut s = Sketch::new(2);
    let empty = s.input("empty", Dtype::F16, &[2, 0]);
    let x = s.input("x", Dtype::F32, &[2, 1]);
    let packed = s.call("bucketing._pre_bucket_reduce_scatter.default", list![vec![empty, x], 2]);
    let sum = s.call("_c10d_functional.reduce_scatter_tensor.default", list![packed, "sum", 2, "dp"]);
    let done = s.wait(sum);
    s.output(&[done]);
    let run = s.numbers();
    let Leaf::Tensor(result) = &run.ranks[0].outputs[0].1 else { panic!("{run:?}") };
    assert_eq!((result.dtype, &result.shape[..]), (Dtype::F32, &[1][..]));
}
