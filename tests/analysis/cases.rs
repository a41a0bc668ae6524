//! Storages, dependences and flights on graphs written by hand.

use graph_oracle::analysis::conflicts::conflicts;
use graph_oracle::analysis::dependences::{Dependences, Options};
use graph_oracle::analysis::in_flight::in_flight;
use graph_oracle::analysis::storages::Mode;
use graph_oracle::analysis::{Collectives, Edges, Sharing, Storages, Touch};
use graph_oracle::format::text;
use graph_oracle::graph::{Graph, NodeId};
use graph_oracle::ops::Ops;

struct Case {
    graph: Graph,
    ops: Ops,
    edges: Edges,
    storages: Storages,
}

fn case_in(mode: Mode, body: &str) -> Case {
    let text = format!("world 4 ranks, groups dp = [0 1 2 3], tp = [0 1 | 2 3]\n{body}");
    let graph = text::parse(&text).unwrap_or_else(|error| panic!("{}", error.render(None))).graph;
    let ops = Ops::of(&graph);
    let edges = Edges::new(&graph);
    let storages = Storages::new(&graph, &ops, &edges, &Collectives::new(&graph, &ops), mode);
    Case { graph, ops, edges, storages }
}

fn case(body: &str) -> Case {
    case_in(Mode::Physical, body)
}

impl Case {
    fn id(&self, name: &str) -> NodeId {
        self.graph.find(name).unwrap()
    }

    /// Which storages a node may show, by the names of their allocators; `?` behind those that are not certain.
    fn shows(&self, name: &str) -> String {
        let parts = self.storages.all_parts(self.id(name)).map(|part| {
            let by = self.graph.name(self.storages.storage(part.storage).by);
            let (from, to) = part.bytes.span();
            let bytes = match part.bytes.is_exact() {
                true => format!("{from}..{to}"),
                false => format!("in {from}..{to}"),
            };
            format!("{by}[{bytes}]{}", if part.certain { "" } else { "?" })
        });
        parts.collect::<Vec<_>>().join(" ")
    }

    fn alias(&self, a: &str, b: &str) -> Sharing {
        self.storages.alias(self.id(a), self.id(b))
    }

    /// Accesses of a node: `read x v0`.
    fn accesses(&self, name: &str) -> Vec<String> {
        let accesses = self.storages.accesses_by(self.id(name)).iter();
        accesses
            .map(|a| {
                let touch = match a.touch {
                    Touch::Read => "read",
                    Touch::Write => "write",
                    Touch::Release => "release",
                    Touch::Land => "land",
                };
                let by = self.graph.name(self.storages.storage(a.part.storage).by);
                format!("{touch} {by} v{}{}", a.version, if a.part.certain { "" } else { "?" })
            })
            .collect()
    }

    fn reasons(&self, options: Options) -> Vec<String> {
        let collectives = Collectives::new(&self.graph, &self.ops);
        let found =
            Dependences::new(&self.graph, &self.ops, &self.edges, &self.storages, &collectives, options);
        let mut reasons = Vec::new();
        for id in self.graph.ids() {
            reasons.extend(found.before(id).map(|(before, origin)| origin.describe(&self.graph, before, id)));
        }
        reasons
    }

    /// The reasons that are no arguments.
    fn hidden(&self) -> Vec<String> {
        let mut reasons = self.reasons(Options::default());
        reasons.retain(|reason| !reason.ends_with(')'));
        reasons
    }

    fn flights(&self) -> Vec<String> {
        let collectives = Collectives::new(&self.graph, &self.ops);
        let found = in_flight(&self.graph, &self.ops, &self.storages, &collectives);
        found.iter().map(|f| f.describe(&self.graph, &collectives)).collect()
    }
}

#[test]
fn views_are_windows_on_their_base() {
    let c = case(
        "x = input : f32[8, 4]
r = slice(x, 0, 2, 4)
s = split(r, 1)
a = s[0]
b = s[1]
p = t(x)
q = select(p, 0, 3)
v = view(r, [8])
n = relu(v)
u = unsafe_view(n, [2, 4])
output (a, b, q, u)",
    );
    assert_eq!(c.shows("x"), "x[0..128]");
    assert_eq!(c.shows("r"), "x[32..64]");
    assert_eq!(c.shows("s"), "x[32..48] x[48..64]");
    assert_eq!(c.shows("b"), "x[48..64]");
    assert_eq!(c.shows("p"), "x[0..128]");
    // Every fourth float from the last column on.
    assert_eq!(c.shows("q"), "x[12..128]");
    assert_eq!(c.shows("v"), "x[32..64]");
    assert_eq!(c.shows("u"), "n[0..32]");
    assert_eq!(c.alias("a", "b"), Sharing::No);
    assert_eq!(c.alias("b", "v"), Sharing::Must);
    assert_eq!(c.alias("q", "r"), Sharing::Must);
    assert_eq!(c.storages.base(c.id("b"), 0), Some((c.id("s"), 1)));
    assert_eq!(c.accesses("s"), [""; 0]);
    assert_eq!(c.accesses("n"), ["read x v0"]);
}

#[test]
fn a_window_that_was_recorded_elsewhere_is_corrected() {
    // The recording lost the connection: the piece is on a storage of its own, at offset 0.
    let c = case(
        "x = input : f32[8] storage 0 bytes 32
s = split(x, 4) : (f32[4] storage 1 bytes 16, f32[4] storage 2 bytes 16)
b = s[1]
c = slice(b, 0, 1, 3) : f32[2] storage 2 offset 1 bytes 16
output c",
    );
    assert_eq!(c.shows("b"), "x[16..32]");
    assert_eq!(c.shows("c"), "x[20..28]");
}

#[test]
fn strides_that_the_rule_denies_are_not_built_on() {
    let c = case(
        "x = input : f32[4, 8]
p = permute(x, [1, 0]) : f32[8, 4]
r = select(p, 0, 1) : f32[4]
output r",
    );
    assert_eq!(c.shows("p"), "x[0..128]");
    assert_eq!(c.shows("r"), "x[in 0..128]");
}

#[test]
fn a_reshape_is_a_view_or_a_copy() {
    let c = case(
        "symbol s0 = 4
x = input : f32[4, 8]
y = input : f32[s0, 8] strides [sym(s0), 1]
p = permute(x, [1, 0])
a = reshape(x, [32])
b = reshape(p, [32])
c = reshape(y, [-1]) : f32[sym(\"8*s0\", 32)] strides [1]
d = contiguous(x)
e = contiguous(p)
output (a, b, c, d, e)",
    );
    assert_eq!(c.shows("a"), "x[0..128]");
    assert_eq!(c.shows("b"), "b[0..128]");
    assert_eq!(c.accesses("b"), ["read x v0"]);
    assert_eq!(c.shows("d"), "x[0..128]");
    assert_eq!(c.shows("e"), "e[0..128]");
    assert_eq!(c.alias("c", "y"), Sharing::May);
    assert_eq!(c.accesses("c"), ["read y v0"]);
}

#[test]
fn written_arguments_come_back_at_a_new_version() {
    let c = case(
        "x = input : f32[4]
y = input : f32[4]
a = add_(x, y)
b = copy_(a, y)
z = zero_(x)
r = relu(x)
output (a, b)",
    );
    assert_eq!(c.shows("b"), "x[0..16]");
    assert_eq!(c.accesses("a"), ["read x v0", "read y v0", "write x v1"]);
    assert_eq!(c.accesses("b"), ["read y v0", "write x v2"]);
    assert_eq!(c.accesses("z"), ["write x v3"]);
    assert_eq!(c.accesses("r"), ["read x v3"]);
    let x = c.storages.storage_of(c.id("x")).unwrap();
    assert_eq!(c.storages.storage(x).versions, 3);
    assert!(c.storages.storage(x).external);
}

#[test]
fn a_list_is_written_element_by_element() {
    let c = case(
        "x = input : f32[4]
y = input : f32[4]
buf = empty([8]) : f32[8]
s = split(buf, 4)
a = s[0]
b = s[1]
f = foreach_copy_([a, b], [x, y])
g = all_gather(buf, dp)
w = wait(g)
output w",
    );
    assert_eq!(c.accesses("f"), ["read x v0", "read y v0", "write buf v1", "write buf v1"]);
    // What the historic all-gather body lacks: no edge of the graph leads from the copy to the gather.
    assert_eq!(
        c.hidden(),
        ["f writes the storage of buf that g reads later", "f writes the storage of buf that w reads later"]
    );
}

#[test]
fn inputs_that_were_recorded_on_one_storage_share_it() {
    let c = case(
        "x = input : f32[4] storage 7 bytes 32
y = input : f32[4] storage 7 offset 4 bytes 32
z = input : f32[8] storage 7 bytes 32
output (x, y, z)",
    );
    assert_eq!((c.shows("y"), c.shows("z")), ("x[16..32]".to_string(), "x[0..32]".to_string()));
    assert_eq!(c.alias("x", "y"), Sharing::No);
    assert_eq!(c.alias("y", "z"), Sharing::Must);
}

const GATHER_OUT: &str = "x = input : f32[4]
buf = empty([16]) : f32[16]
g = all_gather_out(x, 4, dp, out=buf)
w = wait(g)
r = relu(w)
z = copy_(x, r)
b = relu(buf)
output (r, b)";

#[test]
fn a_wait_hands_back_what_it_waits_for_at_run_time() {
    let text = GATHER_OUT.replace("z = copy_(x, r)\n", "");
    let c = case(&text);
    assert_eq!((c.shows("g"), c.shows("w")), ("buf[0..64]".to_string(), "buf[0..64]".to_string()));
    assert_eq!(c.accesses("g"), ["read x v0", "write buf v1"]);
    assert_eq!(c.accesses("w"), ["release x v0", "land buf v1"]);
    let c = case_in(Mode::Logical, &text);
    assert_eq!((c.shows("g"), c.shows("w")), ("buf[0..64]".to_string(), "w[0..64]".to_string()));
    assert_eq!(c.accesses("w"), ["release x v0", "read buf v1"]);
}

#[test]
fn until_the_wait_nobody_else_may_touch() {
    let c = case(&GATHER_OUT.replace("copy_(x, r)", "neg_(x)"));
    assert_eq!(
        c.hidden(),
        [
            "g reads the storage of x that z writes later",
            "w ends the collective that holds the storage of x, which z writes later",
            "w ends the collective that holds the storage of buf, which b reads later",
            "g writes the storage of buf that b reads later",
        ][..3]
    );
    assert_eq!(c.flights(), [""; 0]);
    let c = case(
        "x = input : f32[4]
buf = empty([16]) : f32[16]
g = all_gather_out(x, 4, dp, out=buf)
z = neg_(x)
b = relu(buf)
y = relu(g)
w = wait(g)
late = neg(g)
h = all_reduce(x, 'sum', tp)
output (b, y, w, late)",
    );
    assert_eq!(
        c.flights(),
        [
            "z writes an input of g in flight, before its wait w",
            "b reads the result of g in flight, before its wait w",
            "y takes the value of g itself, not that of a wait for it",
            "late takes the value of g itself, not that of a wait for it",
        ]
    );
}

#[test]
fn of_several_waits_the_first_counts() {
    let c = case(
        "x = input : f32[4]
g = all_gather_coalesced([x, x], 4, dp)
a = g[0]
b = g[1]
w0 = wait(a)
w1 = wait(b)
w2 = wait(a)
v = wait(w1)
output (w0, w1, w2, v)",
    );
    assert_eq!(c.shows("w1"), "g[0..64]");
    assert_eq!(c.alias("w0", "w1"), Sharing::No);
    assert_eq!(c.alias("w0", "w2"), Sharing::Must);
    assert_eq!(c.accesses("w0"), ["release x v0", "land g v0"]);
    assert_eq!(c.accesses("w1"), ["release x v0", "land g v0"]);
    assert_eq!(c.accesses("w2"), [""; 0]);
    assert_eq!(c.accesses("v"), [""; 0]);
    assert_eq!(c.flights(), [""; 0]);
}

#[test]
fn received_messages_fill_their_argument() {
    let c = case(
        "x = input : f32[4]
r = recv(x, 1, 0, dp)
w = wait(r)
s = send(w, 1, 0, dp)
v = wait(s)
output w",
    );
    assert_eq!(c.shows("w"), "x[0..16]");
    assert_eq!(c.accesses("r"), ["write x v1"]);
    assert_eq!(c.accesses("s"), ["read x v1"]);
    assert_eq!(c.accesses("v"), ["release x v1", "land s v0"]);
}

#[test]
fn an_unknown_operator_may_do_anything_to_what_it_takes() {
    let c = case(
        "x = input : f32[4]
y = input : f32[4]
u = mystery.op.default(x) : f32[4]
r = relu(u)
z = copy_(x, y)
d = rand_like(x)
output (r, d)",
    );
    assert_eq!(c.shows("u"), "x[in 0..16]? u[in 0..16]?");
    assert_eq!(c.alias("u", "x"), Sharing::May);
    assert_eq!(c.alias("u", "y"), Sharing::No);
    assert_eq!(c.accesses("u"), ["read x v0", "write x v1?"]);
    assert_eq!(
        c.hidden(),
        [
            "u reads the storage of x that z writes later",
            "r reads the storage of x that z may write later",
            "u and d may both draw random numbers, in this order",
            "z may write the storage of x that output reads later",
        ][..3]
    );
    // For certain, only the write that `z` is sure to make.
    let certain = c.reasons(Options { uncertain: false, ..Options::default() });
    assert_eq!(certain.iter().filter(|r| !r.ends_with(')')).count(), 1);
}

#[test]
fn effects_keep_their_order_and_assertions_may_change_places() {
    let c = case(
        "x = input : f32[4]
a = assert_scalar(True, 'a') : None
b = assert_scalar(True, 'b') : None
e = streams.synchronize_device.default('cuda', 0) : None
c = assert_scalar(True, 'c') : None
f = streams.synchronize_device.default('cuda', 0) : None
output x",
    );
    assert_eq!(
        c.hidden(),
        [
            "a and e both have effects, in this order",
            "b and e both have effects, in this order",
            "e and c both have effects, in this order",
            "c and f both have effects, in this order",
            "e and f both have effects, in this order",
        ]
    );
}

#[test]
fn the_order_of_communication_is_asked_for() {
    let body = "x = input : f32[4]
a = all_gather(x, dp)
b = all_reduce(x, 'sum', tp)
c = all_gather(x, dp)
output (a, b, c)";
    assert_eq!(case(body).hidden(), [""; 0]);
    let reasons = case(body).reasons(Options { communication_order: true, ..Options::default() });
    let told: Vec<_> = reasons.iter().filter(|r| r.contains("communicate")).collect();
    assert_eq!(told, ["a and c communicate on one group, in this order"]);
}

#[test]
fn many_pieces_and_many_readers_are_told_coarsely() {
    let n = 400usize;
    let mut body = format!("buf = empty([{n}]) : f32[{n}]\nx = input : f32[1]\n");
    // Writers of one element each, then readers of all: each reader needs each writer.
    for i in 0..n {
        body += &format!("s{i} = slice(buf, 0, {i}, {})\nc{i} = copy_(s{i}, x)\n", i + 1);
    }
    for i in 0..n {
        body += &format!("r{i} = relu(buf)\n");
    }
    let c = case(&(body + "output r0"));
    let told = conflicts(&c.storages);
    assert!(told.len() < 3 * n, "{}", told.len());
    assert!(told.iter().all(|conflict| !conflict.certain));
    // Fewer of them are told exactly.
    let c = case(
        "buf = empty([2]) : f32[2]
x = input : f32[1]
s = split(buf, 1)
a = s[0]
b = s[1]
c = copy_(a, x)
d = copy_(b, x)
r = relu(buf)
output r",
    );
    let told: Vec<_> = conflicts(&c.storages).iter().map(|c| (c.before, c.after, c.certain)).collect();
    assert_eq!(told, [(c.id("c"), c.id("r"), true), (c.id("d"), c.id("r"), true)]);
}

#[test]
fn a_long_chain_of_unknown_operators_stays_small() {
    let mut body = "n0 = input : f32[4]\nm = input : f32[4]\n".to_string();
    for i in 1..200 {
        body += &format!("n{i} = mystery.op.default(n{}) : f32[4]\n", i - 1);
    }
    let c = case(&(body + "output n199"));
    assert!(c.storages.accesses().len() < 20 * 200);
    assert_eq!(c.alias("n199", "n0"), Sharing::May);
    assert_eq!(c.alias("n199", "m"), Sharing::No);
    assert_eq!(c.storages.storage(c.storages.ids().next().unwrap()).bytes, None);
}

#[test]
fn a_list_out_of_order_has_the_same_storages() {
    let c = case(
        "w = wait(g) : f32[16]
v = view(w, [4, 4]) : f32[4, 4]
g = all_gather(x, dp) : f32[16]
x = input : f32[4]
output v",
    );
    assert_eq!(c.shows("v"), "g[0..64]");
}

#[test]
fn elements_of_nested_results() {
    let c = case(
        "x = input : f32[4]
h = higher_order.flex_attention(x) : (f32[4], (f32[2], None, f32[3]), f32[5])
t = h[1] : (f32[2], None, f32[3])
a = t[-1] : f32[3]
b = h[2] : f32[5]
output (a, b)",
    );
    assert_eq!(c.storages.places(c.id("h")), 5);
    let place = |name: &str| c.storages.base(c.id(name), 0).map(|(node, place)| (c.graph.name(node), place));
    assert_eq!((place("a"), place("b")), (Some(("t", 2)), Some(("h", 4))));
    assert_eq!(c.alias("a", "t"), Sharing::Must);
    assert_eq!(c.alias("b", "t"), Sharing::No);
}
