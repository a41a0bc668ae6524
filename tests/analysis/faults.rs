//! Faults of graphs, each with the words that a person reads.

use graph_oracle::analysis::validate::{Severity, validate};
use graph_oracle::format::text;
use graph_oracle::graph::{Cluster, Graph, NodeId, Op, OrderingEdge, Rename, Value};

fn graph(body: &str) -> Graph {
    text::parse(body).unwrap_or_else(|error| panic!("{}", error.render(None))).graph
}

/// The faults of a graph as lines: `!` for fatal ones, kind, words.
fn told(graph: &Graph) -> Vec<String> {
    let mark = |severity| if severity == Severity::Fatal { "!" } else { "" };
    validate(graph).iter().map(|f| format!("{}{}: {f}", mark(f.severity()), f.kind.name())).collect()
}

#[track_caller]
fn check(body: &str, expected: &[&str]) {
    assert_eq!(told(&graph(body)), expected);
}

#[test]
fn a_graph_without_faults() {
    check(
        "world 4 ranks, groups dp = [0 1 2 3]
x = input : f32[4]
g = all_gather(x, dp)
w = wait(g)
v = wait(w)
s = split(v, 8)
a = s[0]
c = s[1]
b = copy_(a, c)
output (a, b)",
        &[],
    );
}

#[test]
fn names_and_references() {
    check(
        "x = input : f32[4]
y = relu(x)
y = relu(z) : f32[4]
n = neg(nobody) : f32[4]
z = relu(n) : f32[4] after q
q = relu(q) : f32[4]
output (y, [q, missing])",
        &[
            "!duplicate-name: y (position 2): the node at position 1 has the same name",
            "!forward-reference: y (position 2): takes the value of z, which comes later (position 4)",
            "!dangling-reference: n (position 3): refers to nobody, which no node is called",
            "!forward-reference: z (position 4): an ordering edge puts it after q, which comes later (position 5)",
            "!self-reference: q (position 5): takes its own value",
            "!dangling-reference: output (position 6): refers to missing, which no node is called",
        ],
    );
}

#[test]
fn the_shortest_cycle_with_its_reasons() {
    check(
        "x = input : f32[4]
a = add(x, d) : f32[4]
b = relu(a) : f32[4]
c = relu(b) : f32[4]
d = relu(c) : f32[4] after e
e = add(b, d) : f32[4]
output e",
        &[
            "!forward-reference: a (position 1): takes the value of d, which comes later (position 4)",
            "!forward-reference: d (position 4): an ordering edge puts it after e, which comes later (position 5)",
            "!cycle: d (position 4): the shortest cycle is d -> e -> d: e reads d (args[1]); an ordering edge puts e \
             before d",
        ],
    );
}

#[test]
fn what_stands_at_the_wrong_place() {
    check(
        "x = input : f32[4]
y = relu(x)
z = input : f32[4]
output y
w = relu(z)
o = output(w)",
        &[
            "!outputs: the graph has 2 outputs",
            "!position: z (position 2): a placeholder that stands after a node that is none",
            "!position: w (position 4): stands after the output",
            "!position: o (position 5): stands after the output",
        ],
    );
    check("x = input : f32[4]", &["outputs: the graph has no output"]);
}

#[test]
fn worlds_and_groups() {
    check(
        "world 4 ranks, groups dp = [0 1 1 7], tp = [0 1] of 3
x = input : f32[4]
a = all_gather(x, 4, \"dp\") : f32[16]
b = all_gather(x, 2, \"dp\") : f32[8]
c = all_reduce(x, \"sum\", \"pp\") : f32[4]
w = wait(x)
v = wait(r) : f32[4]
r = relu(c) : f32[4]
output (a, b, w, v)",
        &[
            "!world: process group \"dp\" lists rank 1 twice",
            "!world: process group \"dp\" lists rank 7, but the world has ranks 0 to 3",
            "!world: process group \"tp\" has instances of 3 and of 2 ranks",
            "!group-size: b (position 2): states that group \"dp\" has 2 ranks, but it has 4",
            "!unknown-group: c (position 3): communicates on group \"pp\", which the world does not have",
            "idle-wait: w (position 4): waits for x, which no collective of this graph gives",
            "!forward-reference: v (position 5): takes the value of r, which comes later (position 6)",
            "idle-wait: v (position 5): waits for r, which no collective of this graph gives",
        ],
    );
}

#[test]
fn sizes() {
    check(
        "x = input : f32[-4]
y = input : f32[4, 4] strides [4, -1]
big = input : f32[4611686018427387904]
huge = input : f32[4611686018427387904, 0]
part = input : f32[4, 4] storage 0 offset 4 bytes 64
output x",
        &[
            "!negative-size: x (position 0): size -4 is negative",
            "!negative-size: y (position 1): stride -1 is negative",
            "!too-large: big (position 2): float32[4611686018427387904] holds, or is recorded to reach over, more than 1125899906842624 bytes",
            // It has no elements, but sizes of it are multiplied all the same.
            "!too-large: huge (position 3): float32[4611686018427387904, 0] holds, or is recorded to reach over, more than 1125899906842624 bytes",
            "outside-storage: part (position 4): reaches to byte 80 of a storage of 64 bytes",
        ],
    );
}

#[test]
fn operators_and_their_results() {
    check(
        "x = input : f32[4, 3]
a = relu(x, x) : f32[4, 3]
b = view(x, [5, 2]) : f32[5, 2]
c = relu(x) : f32[3, 4]
output (a, b, c)",
        &[
            "!arguments: a (position 1): takes 1 positional arguments, got 2",
            "shape: b (position 2): cannot view [4, 3] as [5, 2]",
            "shape: c (position 3): recorded as [3, 4], but the operator returns [4, 3]",
        ],
    );
}

#[test]
fn symbols() {
    check(
        "symbol s0 = 4
x = input : f32[s0, sym(\"Max(1, s1 // 2)\", 8)] strides [sym(\"Max(1, s1 // 2)\", 8), 1]
y = relu(x) : f32[s0, sym(\"Max(1, s1 // 2)\", 8)] strides [sym(\"Max(1, s1 // 2)\", 8), 1]
output y",
        &["undeclared-symbol: x (position 0): uses the symbol s1, which the graph does not declare"],
    );
}

#[test]
fn states_that_only_a_program_can_make() {
    let mut g = graph("x = input : f32[4]\ny = relu(x)\noutput y");
    g.ordering.push(OrderingEdge { before: NodeId(1), after: NodeId(1) });
    g.ordering.push(OrderingEdge { before: NodeId(9), after: NodeId(1) });
    g.renames.push(Rename { by: NodeId(1), of: NodeId(1) });
    g.renames.push(Rename { by: NodeId(1), of: NodeId(8) });
    let cluster = |name: &str, members: &[u32]| Cluster {
        name: name.to_string(),
        members: members.iter().map(|&m| NodeId(m)).collect(),
    };
    g.clusters = vec![cluster("a", &[1, 1]), cluster("b", &[1, 7])];
    assert_eq!(
        told(&g),
        [
            "!member: an ordering edge names position 9, past the end of the list",
            "!member: a rename names position 8, past the end of the list",
            "!member: cluster b names position 7, past the end of the list",
            "!ordered-after-itself: y (position 1): an ordering edge puts it after itself",
            "!member: y (position 1): renames its own buffer",
            "!member: y (position 1): stands twice in cluster a",
            "!member: y (position 1): stands in the clusters a and b",
        ]
    );
    let mut g = Graph::new("outside");
    let y = g.push("y", Op::Call, "aten.relu.default");
    g.node_mut(y).args = g.push_values(&[Value::Node(NodeId(5))]);
    assert_eq!(
        told(&g),
        [
            "outputs: the graph has no output",
            "!outside-reference: y (position 0): refers to position 5, past the end of the list",
        ]
    );
}

#[test]
fn an_empty_graph_has_no_nodes() {
    assert_eq!(told(&Graph::new("empty")), ["!empty: the graph has no nodes"]);
}
