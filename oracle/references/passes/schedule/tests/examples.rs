//! The worked examples, each small enough to be followed by hand.

use super::*;
use crate::simulate::Estimates;

/// The list of the scored passes: a and b compute, g gathers an input, c reads w, a and b.
const SCORED: &str = "world 2 ranks, groups dp = [0 1]
arg0 = input : f32[4]
arg1 = input : f32[4]
a = relu(arg0)
g = all_gather(arg1, dp)
w = wait(g)
b = relu(arg1)
c = cat([w, a, b], 0)
output c";

fn scored(pass: Pass) -> String {
    let estimates = vec![Estimates::table([("g", 5.0), ("a", 2.0), ("b", 2.0)])];
    order(&graph(SCORED), &Config { estimates, ..Config::new(pass) })
}

#[test]
fn scored_orders() {
    assert_eq!(scored(Pass::SinkWaits), "a g b w c");
    assert_eq!(scored(Pass::RaiseComms), "g a w b c");
    assert_eq!(scored(Pass::ReorderComputeForOverlap), "g a b w c");
}

/// The list of the iterative passes: a has 100 bytes, m 10, g 50 and c 5; c reads a, m and w.
const ITERATIVE: &str = "world 2 ranks, groups dp = [0 1]
arg0 = input : u8[100]
arg1 = input : u8[10]
arg2 = input : u8[25]
a = relu(arg0)
m = relu(arg1)
g = all_gather(arg2, dp)
w = wait(g)
c = mylib.mix(a, m, w) : u8[5]
output c";

#[test]
fn a_collective_passes_what_it_does_not_need() {
    let graph = graph(ITERATIVE);
    let config = Config::new(Pass::ReorderCommunicationPreservingPeakMemory);
    assert_eq!(order(&graph, &config), "g a m w c");
    let scheduled = schedule(&graph, &config).unwrap();
    assert_eq!((scheduled.peak, scheduled.swaps), (Some((165, 165)), 2));
    let buffers = buffers(&graph);
    let peaks: Vec<i64> = (4..=8)
        .map(|n| {
            // Live after the allocations of each step: the peak of the list up to it.
            buffers.peak_of_order(&scheduled.order[3..n]).bytes
        })
        .collect();
    assert_eq!(peaks, [50, 150, 160, 160, 165]);
    assert_eq!(order(&graph, &Config::new(Pass::SimpleOverlap)), "g a m w c");
    // The wait cannot pass its reader.
    assert_eq!(order(&graph, &Config::new(Pass::SinkWaitsIterative)), "a m g w c");
}

#[test]
fn a_budget_stops_a_move() {
    // Moving g up keeps its 50 bytes while big (1000) is live and gone again.
    let graph = graph(
        "world 2 ranks, groups dp = [0 1]
arg0 = input : u8[1000]
arg2 = input : u8[25]
big = relu(arg0)
small = amax(big, [0], True)
g = all_gather(arg2, dp)
w = wait(g)
c = cat([small, w], 0)
output c",
    );
    let pass = Pass::ReorderCommunicationPreservingPeakMemory;
    let tight = Config { budgets: vec![0.04], ..Config::new(pass) };
    let loose = Config { budgets: vec![0.06], ..Config::new(pass) };
    assert_eq!(order(&graph, &tight), "big small g w c");
    assert_eq!(order(&graph, &loose), "g big small w c");
    // Of several ranks' budgets the smallest decides.
    assert_eq!(order(&graph, &Config { budgets: vec![0.06, 0.04], ..Config::new(pass) }), "big small g w c");
}

#[test]
fn what_only_orders_stops_a_move_and_what_is_needed_comes_along() {
    let source = "world 2 ranks, groups dp = [0 1]
arg0 = input : f32[4]
arg1 = input : f32[4]
a = relu(arg0)
x = neg(arg1)
g = all_gather(x, dp)
w = wait(g)
output (a, w)";
    let pass = Pass::ReorderCommunicationPreservingPeakMemory;
    assert_eq!(order(&graph(source), &Config::new(pass)), "x g a w");
    let ordered = source.replace("x = neg(arg1)", "x = neg(arg1) : f32[4] after a");
    assert_eq!(order(&graph(&ordered), &Config::new(pass)), "a x g w");
    // A write in place stays behind the reader before it.
    let written = "world 2 ranks, groups dp = [0 1]
arg0 = input : f32[4]
y = neg(arg0)
a = relu(y)
x = relu_(y)
g = all_gather(x, dp)
w = wait(g)
output (a, w)";
    for pass in [pass, Pass::RaiseComms, Pass::ReorderComputeForOverlap, Pass::SimpleOverlap] {
        assert_eq!(order(&graph(written), &Config::new(pass)), "y a x g w", "{}", pass.name());
    }
}

#[test]
fn runtime_mode_hides_no_more_than_is_needed() {
    let source = "world 2 ranks, groups dp = [0 1]
arg0 = input : f32[4]
a = relu(arg0)
b = relu(a)
c = relu(b)
g = all_gather(arg0, dp)
w = wait(g)
output (c, w)";
    let estimates = vec![Estimates::table([("a", 2.0), ("b", 2.0), ("c", 2.0), ("g", 1.0)])];
    let config = Config {
        estimates,
        runtime_mode: true,
        budgets: vec![10.0],
        ..Config::new(Pass::ReorderCommunicationPreservingPeakMemory)
    };
    // g counts 2; c hides 2 of it, b 2 more: then it is hidden by more than half of its time again.
    assert_eq!(order(&graph(source), &config), "a g b c w");
    assert_eq!(order(&graph(source), &Config { runtime_mode: false, ..config }), "g a b c w");
}

/// Three layers, all gathered before the first is waited for.
const LAYERS: &str = "world 2 ranks, groups dp = [0 1]
arg0 = input : f32[4]
arg1 = input : f32[4]
arg2 = input : f32[4]
b0 = empty([8], dtype=f32, device=@cuda:0, pin_memory=False)
c0 = all_gather_copy_in([arg0], b0, [4], 4, 0)
i0 = c0[0]
o0 = c0[1]
g0 = all_gather_out(i0, dp, out=o0)
b1 = empty([8], dtype=f32, device=@cuda:0, pin_memory=False)
c1 = all_gather_copy_in([arg1], b1, [4], 4, 0)
i1 = c1[0]
o1 = c1[1]
g1 = all_gather_out(i1, dp, out=o1)
w0 = wait(g0)
x0 = relu(w0)
b2 = empty([8], dtype=f32, device=@cuda:0, pin_memory=False)
c2 = all_gather_copy_in([arg2], b2, [4], 4, 0)
i2 = c2[0]
o2 = c2[1]
g2 = all_gather_out(i2, dp, out=o2)
w1 = wait(g1)
x1 = relu(w1)
w2 = wait(g2)
x2 = relu(w2)
output (x0, x1, x2)";

#[test]
fn one_gather_of_fsdp_is_in_flight() {
    let graph = graph(LAYERS);
    assert_eq!(
        order(&graph, &Config::new(Pass::Fsdp)),
        "b0 c0 i0 o0 g0 w0 b1 c1 i1 o1 g1 x0 w1 b2 c2 i2 o2 g2 x1 w2 x2"
    );
    let groups = schedule(&graph, &Config::new(Pass::Fsdp)).unwrap().groups;
    let sizes: Vec<usize> = groups.iter().map(Vec::len).collect();
    assert_eq!(sizes, [5, 1, 5, 1, 5, 1]);
}

#[test]
fn clusters_move_as_one_or_are_refused() {
    let source = "world 2 ranks, groups dp = [0 1]
arg0 = input : f32[4]
arg1 = input : f32[4]
a = relu(arg0)
b = relu(arg1)
g = all_gather(b, dp)
w = wait(g)
c = relu(a)
output (w, c)
cluster pair = [b, g]";
    assert_eq!(order(&graph(source), &Config::new(Pass::RaiseComms)), "b g a w c");
    let split = source.replace("cluster pair = [b, g]", "cluster pair = [b, w]");
    let refusal = schedule(&graph(&split), &Config::new(Pass::RaiseComms)).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "cluster pair is not convex: g must come after its member b and before its member w (w reads g (args[0]))"
    );
    let shared = format!("{source}\ncluster other = [g]");
    let refusal = schedule(&graph(&shared), &Config::new(Pass::RaiseComms)).unwrap_err();
    assert_eq!(refusal.to_string(), "g is in the clusters pair and other");
}

#[test]
fn bad_input_is_refused() {
    let mut graph = graph(SCORED);
    let config = Config::new(Pass::RaiseComms);
    let bad = Config { budgets: vec![f64::NAN], ..config.clone() };
    assert_eq!(
        schedule(&graph, &bad).unwrap_err().to_string(),
        "the memory budget is NaN: a share is finite and not negative"
    );
    let none = Config { estimates: Vec::new(), ..config.clone() };
    assert_eq!(schedule(&graph, &none).unwrap_err().to_string(), "there is no estimate table");
    graph.ordering.push(crate::graph::OrderingEdge { before: NodeId(2), after: NodeId(99) });
    let refusal = schedule(&graph, &config).unwrap_err().to_string();
    assert_eq!(refusal, "an ordering edge leads from node 2 to node 99, but there are 8 nodes");
}
