use super::*;
use crate::analysis::{Edges, check_contraction};
use crate::format::text;
use crate::graph::Value;
use crate::passes::repair::first_violation;

mod merging;

fn graph(lines: &str) -> Graph {
    match text::parse(lines) {
        Ok(case) => case.graph,
        Err(errors) => panic!("{errors}"),
    }
}

fn config(options: &str) -> Config {
    let options: Vec<(String, String)> = options
        .split_whitespace()
        .filter_map(|option| option.split_once('='))
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect();
    Config::from_options(&options).unwrap()
}

/// Runs the reference and checks what holds of every result.
fn run(before: &Graph, options: &str) -> Bucketed {
    let result = bucket(before, &config(options)).unwrap();
    assert_eq!(first_violation(&result.graph), None);
    let groups: Vec<Vec<NodeId>> = result
        .plan
        .iter()
        .map(|bucket| bucket.members.iter().map(|name| before.find(name).unwrap()).collect())
        .collect();
    assert!(check_contraction(&Edges::new(before), &groups).is_ok());
    assert!(groups.iter().all(|members| members.len() > 1));
    let mut all: Vec<NodeId> = groups.concat();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), groups.iter().map(Vec::len).sum::<usize>(), "a member of two buckets");
    result
}

fn members(result: &Bucketed) -> Vec<String> {
    result.plan.iter().map(|bucket| bucket.members.join(" ")).collect()
}

fn reasons(result: &Bucketed) -> Vec<String> {
    result.declined.iter().map(|d| format!("{}: {}", d.node, d.reason)).collect()
}

/// Targets without namespace and overload, in list order, placeholders and output left out.
fn operators(graph: &Graph) -> String {
    let calls = graph.ids().filter(|&id| graph.node(id).op == crate::graph::Op::Call);
    calls.map(|id| graph.target(id).split('.').nth(1).unwrap_or("?")).collect::<Vec<_>>().join(" ")
}

fn place(graph: &Graph, name: &str) -> u32 {
    graph.find(name).unwrap_or_else(|| panic!("no node {name}")).0
}

/// Independent gathers of f32 inputs with these numbers of elements on a group of 2.
fn gathers(numels: &[i64]) -> Graph {
    let mut lines = String::from("world 2 ranks, groups dp = [0 1]\n");
    for (i, n) in numels.iter().enumerate() {
        lines += &format!("x{i} = input: f32[{n}]\n");
    }
    for (i, n) in numels.iter().enumerate() {
        let m = 2 * n;
        lines += &format!("g{i} = all_gather(x{i}, dp): f32[{m}]\nw{i} = wait(g{i}): f32[{m}]\n");
    }
    let waits: Vec<String> = (0..numels.len()).map(|i| format!("w{i}")).collect();
    graph(&(lines + &format!("output ({})\n", waits.join(", "))))
}

/// Elements of an input whose gather on 2 ranks gives so many MB of f32.
fn mb(n: i64) -> i64 {
    n * (1 << 20) / 8
}

#[test]
fn one_limit_for_a_run_or_one_by_index() {
    let eight = gathers(&[mb(1); 8]);
    for cap in ["2", "2,100,1"] {
        let result = run(&eight, &format!("kind=all_gather cap={cap}"));
        assert_eq!(members(&result), ["g0 g1", "g2 g3", "g4 g5", "g6 g7"]);
        assert!(result.plan.iter().all(|bucket| bucket.bytes == 2 << 20));
    }
    let result = run(&eight, "kind=all_gather cap=2,3 selection=autoparallel");
    assert_eq!(members(&result), ["g0 g1", "g2 g3 g4", "g5 g6 g7"]);
}

#[test]
fn dependent_gathers_are_left_out_for_good() {
    // b and c do not depend on each other, but both are left out while the bucket of a is open.
    let before = graph(
        "world 2 ranks, groups dp = [0 1]
         x = input: f32[2]
         a = all_gather(x, dp): f32[4]
         wa = wait(a): f32[4]
         y = relu(wa): f32[4]
         b = all_gather(y, dp): f32[8]
         wb = wait(b): f32[8]
         c = all_gather(wa, dp): f32[8]
         wc = wait(c): f32[8]
         output (wb, wc)",
    );
    let result = run(&before, "");
    assert_eq!(members(&result), [""; 0]);
    assert_eq!(
        reasons(&result),
        [
            "b: a path connects it with a of the open bucket",
            "c: a path connects it with a of the open bucket"
        ]
    );
}

#[test]
fn runs_end_where_the_key_changes() {
    let before = graph(
        "world 2 ranks, groups dp = [0 1], tp = [0 1]
         x = input: f32[2]
         g0 = all_gather(x, dp): f32[4]
         g1 = all_gather(x, dp): f32[4]
         g2 = all_gather(x, tp): f32[4]
         g3 = all_gather(x, dp): f32[4]
         w0 = wait(g0): f32[4]
         w1 = wait(g1): f32[4]
         w2 = wait(g2): f32[4]
         w3 = wait(g3): f32[4]
         output (w0, w1, w2, w3)",
    );
    assert_eq!(members(&run(&before, "")), ["g0 g1"]);
    assert_eq!(members(&run(&before, "selection=autoparallel")), ["g0 g1 g3"]);
    assert_eq!(members(&run(&before, "selection=autoparallel max_topo_span=2")), ["g0 g1"]);
    // A filtered candidate does not end a run.
    assert_eq!(members(&run(&before, "groups=dp")), ["g0 g1 g3"]);
}

#[test]
fn sizes_at_the_limit() {
    let before = gathers(&[mb(3), mb(3), mb(10), mb(1), mb(1)]);
    assert_eq!(members(&run(&before, "cap=6")), ["g0 g1", "g3 g4"]);
    // One byte less, and the first two do not fit together.
    assert_eq!(members(&run(&before, "cap=6291455B")), ["g3 g4"]);
}

#[test]
fn other_kinds_do_not_end_a_run() {
    let before = graph(
        "world 2 ranks, groups dp = [0 1]
         x = input: f32[2]
         g0 = all_gather(x, dp): f32[4]
         w0 = wait(g0): f32[4]
         a = all_reduce(x, \"sum\", dp): f32[2]
         wa = wait(a): f32[2]
         g1 = all_gather(x, dp): f32[4]
         w1 = wait(g1): f32[4]
         output (w0, wa, w1)",
    );
    let result = run(&before, "");
    assert_eq!(members(&result), ["g0 g1"]);
    assert!(place(&result.graph, "a") < place(&result.graph, &result.plan[0].collective));
}

#[test]
fn a_cycle_through_two_buckets_is_refused_its_second_bucket() {
    // The example of section 6, H4: keys that alternate on one group.
    let before = graph(
        "world 2 ranks, groups dp = [0 1]
         p0 = input: bf16[2]
         p1 = input: f32[2]
         a1 = all_gather(p0, dp): bf16[4]
         wa1 = wait(a1): bf16[4]
         c = cast(wa1, f32): f32[4]
         a2 = all_gather(c, dp): f32[8]
         wa2 = wait(a2): f32[8]
         b2 = all_gather(p1, dp): f32[4]
         wb2 = wait(b2): f32[4]
         d = cast(wb2, bf16): bf16[4]
         b1 = all_gather(d, dp): bf16[8]
         wb1 = wait(b1): bf16[8]
         output (wa2, wb1)",
    );
    let result = run(&before, "selection=autoparallel");
    assert_eq!(members(&result), ["a1 b1"]);
    assert_eq!(reasons(&result), ["b2: a path connects it with a2 of the open bucket"]);
}

#[test]
fn dependences_across_kinds_count_in_the_current_graph() {
    // The reduce-scatter bucket {r0, r1} makes a path from g0 to g1: g0 -> r0 | r1 -> g1.
    let before = graph(
        "world 2 ranks, groups dp = [0 1]
         x = input: f32[4]
         g0 = all_gather(x, dp): f32[8]
         w0 = wait(g0): f32[8]
         r0 = reduce_scatter(w0, \"sum\", dp): f32[4]
         v0 = wait(r0): f32[4]
         r1 = reduce_scatter(x, \"sum\", dp): f32[2]
         v1 = wait(r1): f32[2]
         g1 = all_gather(v1, dp): f32[4]
         w1 = wait(g1): f32[4]
         output (v0, w1)",
    );
    let result = run(&before, "kind=reduce_scatter,all_gather");
    assert_eq!(members(&result), ["r0 r1"]);
    assert_eq!(reasons(&result), ["g1: a path connects it with g0 of the open bucket"]);
    assert_eq!(members(&run(&before, "kind=all_gather,reduce_scatter")), ["g0 g1"]);
}

#[test]
fn ordering_edges_connect_and_are_moved() {
    let lines = "world 2 ranks, groups dp = [0 1]
         x = input: f32[2]
         e = relu(x): f32[2]
         g0 = all_gather(x, dp): f32[4] after e
         w0 = wait(g0): f32[4]
         u = relu(w0): f32[4] after g0
         g1 = all_gather(x, dp): f32[4] EDGE
         w1 = wait(g1): f32[4]
         output (u, w1)";
    let result = run(&graph(&lines.replace("EDGE", "after u")), "");
    assert_eq!(reasons(&result), ["g1: a path connects it with g0 of the open bucket"]);
    let result = run(&graph(&lines.replace("EDGE", "")), "");
    assert_eq!(members(&result), ["g0 g1"]);
    let names =
        |edge: &OrderingEdge| format!("{} {}", result.graph.name(edge.before), result.graph.name(edge.after));
    let start = &result.plan[0].collective;
    let edges: Vec<String> = result.graph.ordering.iter().map(names).collect();
    // What g0 sent is read by the first node that packs it.
    let packs = |id: &NodeId| result.graph.target(*id) == "aten.view.default";
    let packer = result.graph.ids().find(packs).map_or("", |id| result.graph.name(id));
    assert_eq!(edges, [format!("e {packer}"), format!("{start} u")]);
}

#[test]
fn reads_do_not_cross_writes() {
    // The first gather reads x before it is overwritten, and would be issued after that.
    let lines = "world 2 ranks, groups dp = [0 1]
         x = input: f32[2]
         y = input: f32[2]
         g0 = all_gather(x, dp): f32[4]
         w0 = wait(g0): f32[4]
         c = copy_(x, y): f32[2]
         g1 = all_gather(INPUT, dp): f32[4]
         w1 = wait(g1): f32[4]
         output (w0, w1)";
    let result = run(&graph(&lines.replace("INPUT", "y")), "");
    assert_eq!(members(&result), ["g0 g1"]);
    let after = &result.graph;
    assert!(place(&result.unrepaired, "c") < place(&result.unrepaired, &result.plan[0].collective));
    assert!(place(after, &result.plan[0].collective) < place(after, "c"), "the gather still reads the old x");
    // The second gather reads what was written: the first cannot wait for it.
    let result = run(&graph(&lines.replace("INPUT", "c")), "");
    assert_eq!(reasons(&result), ["g1: a path connects it with g0 of the open bucket"]);
    let result = run(&graph(&lines.replace("INPUT", "x")), "");
    assert_eq!(reasons(&result), ["g1: a path connects it with g0 of the open bucket"]);
}

#[test]
fn pieces_of_mixed_dtypes_are_aligned() {
    let gathers = |first: i64| {
        graph(&format!(
            "world 2 ranks, groups dp = [0 1]
             x0 = input: bf16[{first}]
             x1 = input: f32[2]
             g0 = all_gather(x0, dp): bf16[{}]
             g1 = all_gather(x1, dp): f32[4]
             w0 = wait(g0): bf16[{}]
             w1 = wait(g1): f32[4]
             output (w0, w1)",
            2 * first,
            2 * first
        ))
    };
    let options = "kind=all_gather mode=custom_ops_multidtype";
    assert_eq!(members(&run(&gathers(2), options)), ["g0 g1"]);
    assert_eq!(members(&run(&gathers(2), "kind=all_gather mode=custom_ops")), [""; 0]);
    let result = run(&gathers(3), options);
    assert_eq!(result.declined[0].reason, Reason::Misaligned);
}

#[test]
fn buffers_that_are_read_elsewhere_are_left_alone() {
    let lines = "world 2 ranks, groups dp = [0 1]
         x = input: f32[2]
         b = empty([4], dtype=f32, device=@cuda:0): f32[4]
         v = view(b, [2, 2]): f32[2, 2]
         g0 = all_gather_out(x, dp, out=b): f32[4]
         w0 = wait(g0): f32[4]
         g1 = all_gather(x, dp): f32[4]
         w1 = wait(g1): f32[4]
         READ
         output (w0, w1)";
    assert_eq!(members(&run(&graph(&lines.replace("READ", "")), "")), ["g0 g1"]);
    let read = graph(&lines.replace("READ", "r = relu(v): f32[2, 2]").replace("w1)", "w1, r)"));
    assert_eq!(
        reasons(&run(&read, ""))[0],
        "g0: its out= buffer is read by r, and the merged collective would not write it"
    );
    // Reading it before, or only the gather's own result, is no obstacle.
    let own = graph(&lines.replace("READ", "r = relu(w0): f32[4]").replace("w1)", "w1, r)"));
    assert_eq!(members(&run(&own, "")), ["g0 g1"]);
}

#[test]
fn what_cannot_be_merged_is_declined() {
    let before = graph(
        "world 4 ranks, groups dp = [0 1 2 3]
         symbol s0 = 4
         x = input: f32[4]
         p = input: f32[]
         y = input: f32[s0]
         z = input: f32[6]
         g0 = all_gather(x, dp): f32[16]
         w0 = wait(g0): f32[16]
         g1 = all_gather(p, dp): f32[4]
         w1 = wait(g1): f32[4]
         g2 = all_gather(y, dp): f32[sym(\"4*s0\", 16)]
         w2 = wait(g2): f32[sym(\"4*s0\", 16)]
         g3 = all_gather(x, dp): f32[16]
         u3 = relu(g3): f32[16]
         w3 = wait(g3): f32[16]
         g4 = all_gather(x, 2, \"dp\"): f32[8]
         w4 = wait(g4): f32[8]
         r0 = reduce_scatter(x, \"sum\", dp): f32[1]
         v0 = wait(r0): f32[1]
         r1 = reduce_scatter(z, \"sum\", dp): f32[1]
         v1 = wait(r1): f32[1]
         output (w0, w1, w2, u3, w3, w4, v0, v1)",
    );
    assert_eq!(
        reasons(&run(&before, "")),
        [
            "r1: 6 rows do not divide among 4 ranks",
            "g1: its input has no dimensions",
            "g2: a size is symbolic",
            "g3: its value is used by something other than its one wait",
            "g4: its group has another size than that of the open bucket",
        ]
    );
}

#[test]
fn refusals() {
    let two = gathers(&[1, 1]);
    let refuse = |graph: &Graph, options: &str| bucket(graph, &config(options)).unwrap_err().to_string();
    assert_eq!(
        refuse(&two, "mode=custom_ops_multidtype"),
        "reduce-scatters cannot be bucketed in mode custom_ops_multidtype"
    );
    assert_eq!(refuse(&two, "rank=2"), "rank 2 is outside process group \"dp\" of size 2");
    let unsorted = two.clone().reordered(&[0, 1, 3, 2, 4, 5, 6].map(NodeId));
    assert_eq!(refuse(&unsorted, ""), "the input list is not sorted: w0 reads g0 (args[0])");
    let op = two.find("g0").unwrap();
    let mut odd = two.clone();
    let args = odd.push_values(&[Value::Node(NodeId(0))]);
    odd.node_mut(op).args = args;
    assert_eq!(refuse(&odd, ""), "g0 has another number of arguments than its operator takes");
}

#[test]
fn groups_given_by_nodes() {
    let before = graph(
        "groups dp = 2 ranks
         x = input: f32[2]
         pg = \"mesh_get_process_group\"(x): other(\"ProcessGroup\")
         qg = \"mesh_get_process_group\"(x): other(\"ProcessGroup\")
         g0 = all_gather(x, 2, pg): f32[4]
         g1 = all_gather(x, 2, pg): f32[4]
         g2 = all_gather(x, 2, qg): f32[4]
         w0 = wait(g0): f32[4]
         w1 = wait(g1): f32[4]
         w2 = wait(g2): f32[4]
         output (w0, w1, w2)",
    );
    let result = run(&before, "");
    assert_eq!(members(&result), ["g0 g1"]);
    let start = result.graph.find(&result.plan[0].collective).unwrap();
    assert_eq!(result.graph.arg(start, 2), Some(Value::Node(result.graph.find("pg").unwrap())));
}

#[test]
fn fsdp_collectives_are_found_by_their_surroundings() {
    let before = graph(
        "world 2 ranks, groups dp = [0 1], tp = [0 1]
         p0 = input: f32[2]
         p1 = input: f32[2]
         a0 = relu(p0): f32[2]
         a1 = add(a0, p0): f32[2]
         g0 = all_gather(a1, dp): f32[4]
         w0 = wait(g0): f32[4]
         m = add(p0, p1): f32[2]
         g1 = all_gather(m, dp): f32[4]
         w1 = wait(g1): f32[4]
         g2 = all_gather(p1, dp): f32[4]
         w2 = wait(g2): f32[4]
         r0 = reduce_scatter(p0, \"sum\", dp): f32[1]
         v0 = wait(r0): f32[1]
         t0 = neg(v0): f32[1]
         r1 = reduce_scatter(p0, \"sum\", dp): f32[1]
         v1 = wait(r1): f32[1]
         t1 = add(v1, p0): f32[2]
         r2 = reduce_scatter(p1, \"sum\", dp): f32[1]
         v2 = wait(r2): f32[1]
         s0 = all_reduce(p0, \"sum\", dp): f32[2]
         s1 = all_reduce(p0, \"sum\", tp): f32[2]
         s2 = all_reduce(p1, \"sum\", dp): f32[2]
         x0 = wait(s0): f32[2]
         x1 = wait(s1): f32[2]
         x2 = wait(s2): f32[2]
         output (w0, w1, w2, t0, t1, v2, x0, x1, x2)",
    );
    let result = run(&before, "filter=fsdp");
    // g1 has two parameters, r1 is added to something, s1 is on another group.
    assert_eq!(members(&result), ["g0 g2", "r0 r2", "s0 s2"]);
    // The all-reduce pass on its own takes every group, and runs end where the group changes.
    assert_eq!(members(&run(&before, "filter=fsdp kind=all_reduce")), [""; 0]);
    // Nothing is gathered: nothing is done.
    let scatters = graph(
        "world 2 ranks, groups dp = [0 1]
         p = input: f32[2]
         r0 = reduce_scatter(p, \"sum\", dp): f32[1]
         r1 = reduce_scatter(p, \"sum\", dp): f32[1]
         v0 = wait(r0): f32[1]
         v1 = wait(r1): f32[1]
         output (v0, v1)",
    );
    assert_eq!(members(&run(&scatters, "filter=fsdp")), [""; 0]);
    assert_eq!(members(&run(&scatters, "filter=fsdp kind=reduce_scatter")), ["r0 r1"]);
}

#[test]
fn a_bucketed_graph_can_be_bucketed_again() {
    let before = gathers(&[1, 1, 1, 1]);
    let once = run(&before, "cap=16B");
    assert_eq!(members(&once).len(), 2);
    let twice = run(&once.graph, "");
    assert_eq!(twice.plan.len(), 1);
    assert_eq!(operators(&twice.graph).matches("all_gather_into_tensor_out").count(), 1);
}
