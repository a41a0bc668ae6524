//! Poison, races with communication, deadlocks and mismatches.

use super::*;

const AG: &str = "_c10d_functional.all_gather_into_tensor.default";
const AR: &str = "_c10d_functional.all_reduce.default";
const AR_: &str = "_c10d_functional.all_reduce_.default";

fn kinds(run: &Run) -> Vec<HazardKind> {
    let mut kinds: Vec<HazardKind> = run.hazards.iter().filter(|h| h.rank == 0).map(|h| h.kind).collect();
    kinds.dedup();
    kinds
}

/// K19 (a): a consumer is wired to the start instead of the wait.
#[test]
fn reading_what_is_in_flight() {
    let mut s = Sketch::new(2);
    let x = s.input("x", Dtype::F32, &[2]);
    let g = s.call(AR_, list![x, "sum", "dp"]);
    let y = s.call("aten.relu.default", list![g]);
    let w = s.wait(g);
    s.output(&[y, w]);
    let run = s.numbers();
    assert_eq!(kinds(&run), [HazardKind::ReadInFlight { collective: g }]);
    assert_eq!(run.hazards[0].node, y);
    assert!(values(&run, 0, 0).iter().all(|x| x.is_nan()));
    assert!(values(&run, 0, 1).iter().all(|x| !x.is_nan()));
    let told = run.hazards[0].describe(|id| s.graph.name(id));
    assert_eq!(told, "rank 0: n2 reads the result of n1 before any wait");
}

/// K19 (b): the input's storage is reused before the wait.
#[test]
fn overwriting_the_input_of_a_collective() {
    let build = |late: bool| {
        let mut s = Sketch::new(2);
        let x = s.input("x", Dtype::F32, &[4]);
        let half = s.call("aten.slice.Tensor", list![x, 0, 0, 2]);
        let g = s.call(AG, list![x, 2, "dp"]);
        let w = if late { None } else { Some(s.wait(g)) };
        let z = s.call("aten.zero_.default", list![half]);
        let w = w.unwrap_or_else(|| s.wait(g));
        s.output(&[w]);
        (s, g, z)
    };
    let (s, ..) = build(false);
    assert_eq!(s.numbers().hazards, []);
    let (s, g, z) = build(true);
    let run = s.numbers();
    assert_eq!(kinds(&run), [HazardKind::InputOverwritten { collective: g }]);
    assert_eq!(run.hazards[0].node, z);
    // Which of two values is gathered depends on timing; the other half does not. Rank 1 starts after rank 0 has
    // been blocked, so its result knows of both races.
    let nan: Vec<bool> = values(&run, 1, 0).iter().map(|x| x.is_nan()).collect();
    assert_eq!(nan, [true, true, false, false, true, true, false, false]);
}

/// A write that changes nothing is no race: the collective sends the same either way.
#[test]
fn writing_the_same_value_is_harmless() {
    let mut s = Sketch::new(2);
    let x = s.input("x", Dtype::F32, &[4]);
    let g = s.call(AG, list![x, 2, "dp"]);
    let copy = s.call("aten.clone.default", list![x]);
    s.call("aten.copy_.default", list![x, copy]);
    let w = s.wait(g);
    s.output(&[w]);
    assert_eq!(s.numbers().hazards, []);
}

#[test]
fn writing_where_a_collective_will_write() {
    let mut s = Sketch::new(2);
    let x = s.input("x", Dtype::F32, &[2]);
    let g = s.call(AG, list![x, 2, "dp"]);
    let part = s.call("aten.slice.Tensor", list![g, 0, 1, 3]);
    let z = s.call("aten.zero_.default", list![part]);
    let w = s.wait(g);
    s.output(&[w]);
    let run = s.numbers();
    assert_eq!(kinds(&run), [HazardKind::OutputOverwritten { collective: g }]);
    assert_eq!(run.hazards[0].node, z);
    let nan: Vec<bool> = values(&run, 0, 0).iter().map(|x| x.is_nan()).collect();
    assert_eq!(nan, [false, true, true, false]);
}

#[test]
fn a_collective_without_a_wait() {
    let mut s = Sketch::new(2);
    let x = s.input("x", Dtype::F32, &[2]);
    let g = s.call(AG, list![x, 2, "dp"]);
    s.output(&[x]);
    let run = s.numbers();
    assert_eq!(kinds(&run), [HazardKind::NeverWaited]);
    assert_eq!(run.hazards[0].node, g);
}

/// Waits of waits, and a second wait of the same value, do nothing.
#[test]
fn repeated_waits() {
    let mut s = Sketch::new(2);
    let x = s.input("x", Dtype::F32, &[2]);
    let g = s.call(AG, list![x, 2, "dp"]);
    let w = s.wait(g);
    let again = s.wait(g);
    let of_wait = s.wait(w);
    let add = s.call("aten.add_.Tensor", list![w, w]);
    s.output(&[again, of_wait, add]);
    let run = s.numbers();
    assert_eq!(run.hazards, []);
    // All of them are one tensor.
    assert_eq!(values(&run, 0, 0), values(&run, 0, 2));
    assert_eq!(values(&run, 0, 1), values(&run, 0, 2));
}

/// A view of a result in flight is waited for by a wait on the storage, whatever the alias.
#[test]
fn a_wait_completes_the_whole_storage() {
    let mut s = Sketch::new(2);
    let x = s.input("x", Dtype::F32, &[2]);
    let g = s.call(AG, list![x, 2, "dp"]);
    let v = s.call("aten.view.default", list![g, [2, 2]]);
    let w = s.wait(v);
    s.output(&[w, g]);
    let run = s.numbers();
    assert_eq!(run.hazards, []);
    assert!(values(&run, 0, 1).iter().all(|x| !x.is_nan()));
}

#[test]
fn fresh_memory_is_poison_and_spreads() {
    let mut s = Sketch::new(1);
    let x = s.input("x", Dtype::F32, &[2, 2]);
    let e = s.call("aten.empty.memory_format", list![[2, 2]]);
    let row = s.call("aten.select.int", list![e, 0, 0]);
    let from = s.call("aten.select.int", list![x, 0, 0]);
    s.call("aten.copy_.default", list![row, from]);
    let sum = s.call("aten.add.Tensor", list![e, x]);
    let rows = s.call("aten.sum.dim_IntList", list![e, [1]]);
    let columns = s.call("aten.sum.dim_IntList", list![e, [0]]);
    let mm = s.call("aten.mm.default", list![x, e]);
    let c = s.call("aten.gt.Scalar", list![x, 1000]);
    let chosen = s.call("aten.where.self", list![c, e, x]);
    let sums = s.call("aten.cumsum.default", list![e, 0]);
    s.output(&[e, sum, rows, columns, mm, chosen, sums]);
    let run = s.numbers();
    let poison = |output| -> Vec<bool> { values(&run, 0, output).iter().map(|x| x.is_nan()).collect() };
    assert_eq!(poison(0), [false, false, true, true]);
    assert_eq!(poison(1), [false, false, true, true]);
    assert_eq!(poison(2), [false, true]);
    assert_eq!(poison(3), [true, true]);
    assert_eq!(poison(4), [true; 4]);
    assert_eq!(poison(5), [false; 4], "an element that is not chosen does not matter");
    assert_eq!(poison(6), [false, false, true, true]);
    // Terms know no condition, so both sides matter there.
    let terms = s.terms();
    assert_eq!(tensor(&terms, 0, 5).poison, [false, false, true, true]);
}

/// An operator without kernel that reads poison gives poison.
#[test]
fn opaque_operators_spread_poison() {
    let mut s = Sketch::new(1);
    let e = s.call("aten.empty.memory_format", list![[2, 2]]);
    let y = s.call("aten._softmax.default", list![e, 0, false]);
    s.record(y, Dtype::F32, &[2, 2]);
    let x = s.input("x", Dtype::F32, &[2, 2]);
    let z = s.call("aten._softmax.default", list![x, 0, false]);
    s.record(z, Dtype::F32, &[2, 2]);
    s.output(&[y, z]);
    let run = s.terms();
    assert_eq!(tensor(&run, 0, 0).poison, [true; 4]);
    assert!(tensor(&run, 0, 1).poison.is_empty());
    match s.run(&Concrete::default()) {
        Err(Failure::Refused { node, reason, .. }) => {
            assert_eq!(node, y);
            assert!(reason.contains("aten._softmax.default"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}

/// Two ranks that wait for each other: each starts its first collective on another group.
#[test]
fn a_deadlock_names_the_ranks() {
    let build = |first: &'static str, second: &'static str| {
        let mut s = Sketch::new(2);
        s.group("tp", &[&[0, 1]]);
        let x = s.input("x", Dtype::F32, &[2]);
        let a = s.call(AR, list![x, "sum", first]);
        let wa = s.wait(a);
        let b = s.call(AR, list![wa, "sum", second]);
        let wb = s.wait(b);
        s.output(&[wb]);
        s
    };
    let sketches = [build("dp", "tp"), build("tp", "dp")];
    let ops: Vec<Ops> = sketches.iter().map(|s| Ops::of(&s.graph)).collect();
    let programs: Vec<Program> =
        sketches.iter().zip(&ops).map(|(s, o)| Program::new(&s.graph, o, &s.world).unwrap()).collect();
    let failure =
        run(&programs, &sketches[0].world, &Fingerprints::in_bits(), &Options::default()).unwrap_err();
    assert_eq!(
        failure.to_string(),
        "ranks do not meet: ranks [0, 1] wait for collectives that others have not started"
    );
}

/// A rank that has finished is missed by those who wait for it.
#[test]
fn a_rank_that_never_comes() {
    let build = |joins: bool| {
        let mut s = Sketch::new(2);
        let x = s.input("x", Dtype::F32, &[2]);
        if joins {
            let g = s.call(AG, list![x, 2, "dp"]);
            s.wait(g);
        }
        s.output(&[x]);
        s
    };
    let sketches = [build(true), build(false)];
    let ops: Vec<Ops> = sketches.iter().map(|s| Ops::of(&s.graph)).collect();
    let programs: Vec<Program> =
        sketches.iter().zip(&ops).map(|(s, o)| Program::new(&s.graph, o, &s.world).unwrap()).collect();
    let failure =
        run(&programs, &sketches[0].world, &Fingerprints::in_bits(), &Options::default()).unwrap_err();
    assert_eq!(
        failure.to_string(),
        "ranks do not meet: ranks [0] wait for collectives that others have not started"
    );
}

#[test]
fn members_that_disagree() {
    let build = |what: usize| {
        let mut s = Sketch::new(2);
        let dtype = if what == 1 { Dtype::BF16 } else { Dtype::F32 };
        let x = s.input("x", dtype, &[if what == 2 { 4 } else { 2 }]);
        let g = match what {
            3 => s.call(AR, list![x, "max", "dp"]),
            4 => s.call(AG, list![x, 2, "dp"]),
            _ => s.call(AR, list![x, "sum", "dp"]),
        };
        s.wait(g);
        s.output(&[x]);
        s
    };
    for (what, theirs) in [
        (1, "all_reduce sum of bf16[2]"),
        (2, "all_reduce sum of f32[4]"),
        (3, "all_reduce max of f32[2]"),
        (4, "all_gather of f32[2]"),
    ] {
        let sketches = [build(0), build(what)];
        let ops: Vec<Ops> = sketches.iter().map(|s| Ops::of(&s.graph)).collect();
        let programs: Vec<Program> =
            sketches.iter().zip(&ops).map(|(s, o)| Program::new(&s.graph, o, &s.world).unwrap()).collect();
        let failure =
            run(&programs, &sketches[0].world, &Fingerprints::in_bits(), &Options::default()).unwrap_err();
        let own = "ranks do not meet: number 0 on dp is all_reduce sum of f32[2] on rank 0, and";
        assert_eq!(failure.to_string(), format!("{own} {theirs} on rank 1"));
    }
}

/// A stale alias of freed storage reads poison, and nothing else changes.
#[test]
fn freeing_after_the_last_use_changes_no_result() {
    let mut s = Sketch::new(2);
    let x = s.input("x", Dtype::F32, &[4]);
    let a = s.call("aten.mul.Scalar", list![x, 3]);
    let v = s.call("aten.view.default", list![a, [2, 2]]);
    let g = s.call(AG, list![v, 2, "dp"]);
    let t = s.call("aten.t.default", list![v]);
    let w = s.wait(g);
    let b = s.call("aten.clone.default", list![t]);
    s.output(&[b, w, x]);
    let kept = s.numbers();
    s.options.free_after_last_use = true;
    let freed = s.numbers();
    assert_eq!(compare(&kept, &freed), []);
    assert_eq!(freed.hazards, []);
}
