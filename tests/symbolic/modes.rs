//! Every packing mode of the bucketing reference, on graphs with what makes packing hard: uneven and empty sizes,
//! permuted inputs, casts, mixed dtypes, groups of one rank.

use super::support::{assert_equal, compared, graph, outputs};
use graph_oracle::generate::Layers;
use graph_oracle::graph::Graph;
use graph_oracle::passes::bucketing::{Config, Mode, bucket};

fn bucketed(before: &Graph, kind: &str, mode: &str) -> Graph {
    let option = |key: &str, value: &str| (key.to_string(), value.to_string());
    let config = Config::from_options(&[option("kind", kind), option("mode", mode)]).unwrap();
    bucket(before, &config).unwrap_or_else(|refusal| panic!("{kind} {mode}: {refusal:?}")).graph
}

fn launches(graph: &Graph) -> usize {
    graph
        .ids()
        .filter(|&id| graph.target(id).starts_with("_c10d_functional.") && !graph.target(id).contains("wait"))
        .count()
}

/// The gathers of spec/bucketing.md 3.2 with more members; `R` ranks at index `r`.
fn gathers(ranks: i64, at: i64) -> Graph {
    let list: Vec<String> = (0..ranks).map(|r| r.to_string()).collect();
    let mut lines = format!("world {ranks} ranks, groups g = [{}] at {at}\n", list.join(" "));
    let inputs = [
        ("f32", "[2]", "f32", vec![2]),
        ("f32", "[1, 3]", "f32", vec![1, 3]),
        ("bf16", "[4, 2]", "f32", vec![4, 2]),
        ("f32", "[0, 3]", "f32", vec![0, 3]),
        ("f32", "[2, 5] strides [1, 2]", "f32", vec![2, 5]),
    ];
    let shape =
        |sizes: &[i64]| format!("[{}]", sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(", "));
    for (i, (dtype, sizes, _, _)) in inputs.iter().enumerate() {
        lines += &format!("x{i} = input: {dtype}{sizes}\n");
    }
    for (i, (dtype, _, to, sizes)) in inputs.iter().enumerate() {
        let mut input = format!("x{i}");
        if dtype != to {
            lines += &format!("c{i} = cast(x{i}, {to}): {to}{}\n", shape(sizes));
            input = format!("c{i}");
        }
        let mut out = sizes.clone();
        out[0] *= ranks;
        let out = shape(&out);
        lines += &format!("g{i} = all_gather({input}, g): {to}{out}\nw{i} = wait(g{i}): {to}{out}\n");
        lines += &format!("y{i} = relu(w{i}): {to}{out}\n");
    }
    graph(&(lines + "output (y0, y1, y2, y3, y4, w2)"))
}

#[test]
fn gathers_in_every_mode() {
    for (ranks, at) in [(1, 0), (2, 0), (2, 1), (4, 2)] {
        let before = gathers(ranks, at);
        for (mode, _) in Mode::ALL {
            let after = bucketed(&before, "all_gather", mode);
            assert!(launches(&after) < launches(&before), "{mode}: nothing was bucketed");
            let comparison = compared(&before, &after);
            assert!(
                matches!(comparison, graph_oracle::semantics::symbolic::Comparison::Equal(_)),
                "{ranks} {mode}: {comparison:#?}"
            );
        }
    }
}

/// Members of different dtypes in one bucket: pieces are retyped on the way in and out.
#[test]
fn gathers_of_mixed_dtypes() {
    let before = graph(
        "world 2 ranks, groups g = [0 1] at 1
         x0 = input: f32[2, 2]\nx1 = input: bf16[4]\nx2 = input: f32[6]
         g0 = all_gather(x0, g): f32[4, 2]\nw0 = wait(g0): f32[4, 2]
         g1 = all_gather(x1, g): bf16[8]\nw1 = wait(g1): bf16[8]
         c2 = cast(x2, bf16): bf16[6]
         g2 = all_gather(c2, g): bf16[12]\nw2 = wait(g2): bf16[12]
         output (w0, w1, w2)",
    );
    let after = bucketed(&before, "all_gather", "custom_ops_multidtype");
    assert_eq!(launches(&after), 1);
    assert_equal(&compared(&before, &after));
}

fn reductions(ranks: i64) -> Graph {
    let list: Vec<String> = (0..ranks).map(|r| r.to_string()).collect();
    let mut lines = format!("world {ranks} ranks, groups g = [{}] at 0\n", list.join(" "));
    let n = ranks;
    lines += &format!("x0 = input: f32[{}]\nx1 = input: f32[{n}]\nx2 = input: f32[{}, 3]\n", 2 * n, 3 * n);
    lines += &format!("x3 = input: f32[{}, 4] strides [1, {}]\n", 2 * n, 2 * n);
    for (i, out) in ["[2]", "[1]", "[3, 3]", "[2, 4]"].iter().enumerate() {
        lines += &format!("r{i} = reduce_scatter(x{i}, \"sum\", g): f32{out}\nw{i} = wait(r{i}): f32{out}\n");
    }
    graph(&(lines + "y = neg(w2): f32[3, 3]\noutput (w0, w1, y, w3)"))
}

#[test]
fn reduce_scatters_in_every_mode() {
    for ranks in [1, 2, 4] {
        let before = reductions(ranks);
        for mode in ["default", "custom_ops", "coalesced"] {
            let after = bucketed(&before, "reduce_scatter", mode);
            assert!(launches(&after) < launches(&before), "{mode}: nothing was bucketed");
            assert_equal(&compared(&before, &after));
        }
    }
}

/// The numbers of the worked example of 3.3, symbolically: rank 0 receives the first halves, rank 1 the second.
#[test]
fn the_worked_reduce_scatter() {
    let before = graph(
        "x0 = input: f32[4]\nx1 = input: f32[2]
         r0 = reduce_scatter(x0, \"sum\", g): f32[2]\nw0 = wait(r0): f32[2]
         r1 = reduce_scatter(x1, \"sum\", g): f32[1]\nw1 = wait(r1): f32[1]\noutput (w0, w1)",
    );
    let expected = [
        "elements 0..2 from sum over group g of x0 (2 further for each rank of group g), from its element 0 on",
        "element 0 from sum over group g of x1 (1 further for each rank of group g), from its element 0 on",
    ];
    assert_eq!(outputs(&before), expected);
    for mode in ["default", "custom_ops", "coalesced"] {
        assert_eq!(outputs(&bucketed(&before, "reduce_scatter", mode)), expected, "{mode}");
    }
}

/// Reduce-scatters of padded inputs: the packing nodes are replaced by the source.
#[test]
fn padded_packing() {
    let before = graph(
        "x0 = input: f32[3, 2]\nx1 = input: f32[4, 2]
         s = split(x0, 2): (f32[2, 2], f32[1, 2] offset 4)
         a = getitem(s, 0): f32[2, 2]\nb = getitem(s, 1): f32[1, 2] offset 4
         p = pad(b, [0, 0, 0, 1], 0): f32[2, 2]
         c = cat([a, p]): f32[4, 2]
         r0 = reduce_scatter(c, \"avg\", g): f32[2, 2]\nw0 = wait(r0): f32[2, 2]
         r1 = reduce_scatter(x1, \"avg\", g): f32[2, 2]\nw1 = wait(r1): f32[2, 2]\noutput (w0, w1)",
    );
    let after = bucketed(&before, "reduce_scatter", "custom_ops");
    assert!(after.find("c").is_none(), "the packing was not recognised");
    assert_equal(&compared(&before, &after));
}

#[test]
fn all_reduces() {
    let before = graph(
        "x0 = input: f32[4]\nx1 = input: f32[]\nx2 = input: f32[2, 3] strides [1, 2]
         a0 = all_reduce(x0, \"sum\", g): f32[4]\nw0 = wait(a0): f32[4]
         a1 = all_reduce(x1, \"sum\", g): f32[]\nw1 = wait(a1): f32[]
         a2 = all_reduce(x2, \"sum\", g): f32[2, 3]\nw2 = wait(a2): f32[2, 3]\noutput (w0, w1, w2)",
    );
    let after = bucketed(&before, "all_reduce", "default");
    assert_eq!(launches(&after), 1);
    assert_equal(&compared(&before, &after));
}

/// Gathers over one axis of what was reduced over the other, in both orders.
#[test]
fn two_axes() {
    let make = |first: &str, second: &str| {
        graph(&format!(
            "world 4 ranks, groups dp = [0 2 | 1 3] at 0, tp = [0 1 | 2 3] at 0
             x = input: f32[4]\nr = reduce_scatter(x, \"sum\", dp): f32[2]\nw = wait(r): f32[2]
             g = all_gather(w, {first}): f32[4]\nu = wait(g): f32[4]
             h = all_gather(u, {second}): f32[8]\nv = wait(h): f32[8]\noutput v"
        ))
    };
    assert_eq!(
        outputs(&make("dp", "tp")),
        ["elements 0..4 from sum over group dp of x of rank 0 of group tp, from its element 0 on; \
          elements 4..8 from sum over group dp of x of rank 1 of group tp, from its element 0 on"]
    );
    assert_equal(&compared(&make("tp", "dp"), &make("tp", "dp")));
    assert!(!matches!(
        compared(&make("tp", "dp"), &make("dp", "tp")),
        graph_oracle::semantics::symbolic::Comparison::Equal(_)
    ));
}

/// The sizes of a large training, two layers of it: of some weights a rank has a single row.
#[test]
fn layers_of_llama3_405b() {
    let before = Layers { layers: 2, ..Layers::llama3_405b() }.graph();
    let after = bucketed(&before, "all", "default");
    assert!(launches(&after) < launches(&before));
    assert_equal(&compared(&before, &after));
}
