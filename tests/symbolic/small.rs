//! Hand-built graphs: what each kind of operator does to runs, and what is noticed on the way.

use super::support::{assert_equal, assert_open, compared, graph, hazards, judge, open, outputs};
use graph_oracle::semantics::symbolic::Comparison;

/// The worked example of spec/bucketing.md 3.2: two gathers on two ranks.
#[test]
fn gathers_select_ranks() {
    let g = graph(
        "x0 = input: f32[2]\nx1 = input: f32[1, 3]
         g0 = all_gather(x0, g): f32[4]\nw0 = wait(g0): f32[4]
         g1 = all_gather(x1, g): f32[2, 3]\nw1 = wait(g1): f32[2, 3]
         output (w0, w1)",
    );
    assert_eq!(
        outputs(&g),
        [
            "elements 0..2 from x0 of rank 0 of group g, from its element 0 on; \
             elements 2..4 from x0 of rank 1 of group g, from its element 0 on",
            "elements 0..3 from x1 of rank 0 of group g, from its element 0 on; \
             elements 3..6 from x1 of rank 1 of group g, from its element 0 on",
        ]
    );
}

/// The worked example of 3.3: the own part of a sum depends on the own rank.
#[test]
fn reductions_scatter_by_the_own_rank() {
    let g = graph(
        "x0 = input: f32[4]
         r0 = reduce_scatter(x0, \"sum\", g): f32[2]\nw0 = wait(r0): f32[2]
         output w0",
    );
    assert_eq!(
        outputs(&g),
        [
            "elements 0..2 from sum over group g of x0 (2 further for each rank of group g), from its element 0 on"
        ]
    );
}

const TWO_GATHERS: &str = "x0 = input: f32[2]\nx1 = input: f32[1, 3]
    g0 = all_gather(x0, g): f32[4]\nw0 = wait(g0): f32[4]
    g1 = all_gather(x1, g): f32[2, 3]\nw1 = wait(g1): f32[2, 3]
    y0 = relu(w0): f32[4]\ny1 = neg(w1): f32[2, 3]
    output (y0, y1)";

/// The default body of a bucket of gathers, with holes: where the own slot begins and ends, what fills it, and the
/// lines between the slot and the gather.
fn bucket(slot: &str, filled: &str, first: &str, second: &str) -> String {
    format!(
        "x0 = input: f32[2]\nx1 = input: f32[1, 3]
         buf = empty([10], dtype=f32, device=\"cuda:0\"): f32[10]
         slot = slice(buf, 0, {slot}): f32[5]
         f0 = view(x0, [-1]): f32[2]\nf1 = view(x1, [-1]): f32[3]
         {filled}
         gather = all_gather_out(slot, 2, g, out=buf): f32[10]
         w = wait(gather): f32[10]
         v = view(w, [2, -1]): f32[2, 5]
         s = split_with_sizes(v, [2, 3], 1): (f32[2, 2] strides [5, 1], f32[2, 3] strides [5, 1] offset 2)
         p0 = getitem(s, 0): f32[2, 2] strides [5, 1]
         p1 = getitem(s, 1): f32[2, 3] strides [5, 1] offset 2
         c0 = clone({first}): f32[2, 2]
         o0 = unsafe_view(c0, [4]): f32[4]
         c1 = clone({second}): f32[2, 3]
         o1 = unsafe_view(c1, [2, 3]): f32[2, 3]
         y0 = relu(o0): f32[4]\ny1 = neg(o1): f32[2, 3]
         output (y0, y1)"
    )
}

const FILL: &str = "c = cat([f0, f1]): f32[5]\n m = copy_(slot, c): f32[5]";

#[test]
fn the_default_bucket_is_proved() {
    let Comparison::Equal(counts) = judge(TWO_GATHERS, &bucket("0, 5", FILL, "p0", "p1")) else {
        panic!("not proved")
    };
    assert_eq!((counts.outputs, counts.mutations, counts.effects), (2, 2, 0));
}

#[test]
fn a_bucket_with_a_fault_is_open() {
    // Nothing is copied before the gather.
    let late = bucket("0, 5", "c = cat([f0, f1]): f32[5]", "p0", "p1");
    let comparison = judge(TWO_GATHERS, &late);
    assert_open(&comparison, &["unwritten memory", "expected x0 of rank 0 of group g"]);
    // One input twice, and the other one not at all.
    let twice = bucket(
        "0, 5",
        "c = cat([f0, f0, f0]): f32[6]\n d = slice(c, 0, 0, 5): f32[5]\n m = copy_(slot, d): f32[5]",
        "p0",
        "p1",
    );
    assert_open(&judge(TWO_GATHERS, &twice), &["come from x0 of rank 0 of group g, expected x1 of rank 0"]);
    // Inputs in the other order.
    let swapped = bucket("0, 5", "c = cat([f1, f0]): f32[5]\n m = copy_(slot, c): f32[5]", "p0", "p1");
    assert_open(
        &judge(TWO_GATHERS, &swapped),
        &[
            "elements 0..2 of o0, which y0 reads, come from x1 of rank 0 of group g, expected x0 of rank 0 of group g",
        ],
    );
    // The slot of another rank.
    let wrong = bucket("5, 10", FILL, "p0", "p1");
    assert_open(
        &judge(TWO_GATHERS, &wrong),
        &["gather gathers in place from element 5 of its buffer, but the own rank's slot begins at 0"],
    );
    // A slot that is no rank's.
    let wrong = bucket("3, 8", FILL, "p0", "p1");
    assert_open(&judge(TWO_GATHERS, &wrong), &["from element 3 of its buffer"]);
}

#[test]
fn a_race_is_open() {
    let before = "x = input: f32[2]\ny = input: f32[2]
        a = reduce_scatter(x, \"sum\", g): f32[1]\nw = wait(a): f32[1]\nm = copy_(x, y): f32[2]\noutput w";
    let after = "x = input: f32[2]\ny = input: f32[2]
        a = reduce_scatter(x, \"sum\", g): f32[1]\nm = copy_(x, y): f32[2]\nw = wait(a): f32[1]\noutput w";
    assert_equal(&judge(before, before));
    assert_open(&judge(before, after), &["the input of a has changed by the time w waits for it"]);
    let early = "x = input: f32[2]\ny = input: f32[2]
        a = all_reduce(x, \"sum\", g): f32[2]\nm = copy_(x, y): f32[2]\nw = wait(a): f32[2]\noutput a";
    assert_equal(&judge(early, early));
    let early = "x = input: f32[2]\ny = input: f32[2]
        a = all_reduce(x, \"sum\", g): f32[2]\nr = relu(a): f32[2]\nw = wait(a): f32[2]\noutput r";
    assert_eq!(hazards(&graph(early)), ["r reads elements of a that a is still writing"]);
    let into = "x = input: f32[2]\ny = input: f32[2]
        a = all_reduce(x, \"sum\", g): f32[2]\nm = copy_(a, y): f32[2]\nw = wait(a): f32[2]\noutput w";
    assert_eq!(hazards(&graph(into)), ["m writes memory that a is still writing"]);
}

#[test]
fn a_wrong_group_or_operator_is_open() {
    let make = |op: &str, group: &str| {
        format!(
            "world 4 ranks, groups g = [0 1 | 2 3] at 0, h = [0 2 | 1 3] at 0\nx = input: f32[4]
             a = reduce_scatter(x, {op}, 2, {group}): f32[2]\nw = wait(a): f32[2]\noutput w"
        )
    };
    assert_equal(&judge(&make("\"sum\"", "g"), &make("\"sum\"", "g")));
    let words =
        ["output 0 (w): elements 0..2 come from sum over group h of x", "expected sum over group g of x"];
    assert_open(&judge(&make("\"sum\"", "g"), &make("\"sum\"", "h")), &words);
    assert_open(&judge(&make("\"sum\"", "g"), &make("\"max\"", "g")), &["max over group g", "expected sum"]);
}

#[test]
fn a_dropped_cast_is_open() {
    let before = "x = input: f32[4]\nc = cast(x, bf16): bf16[4]\nd = cast(c, f32): f32[4]\noutput d";
    let after = "x = input: f32[4]\noutput x";
    assert_open(&judge(before, after), &["come from x, expected float32 cast of bfloat16 cast of x"]);
    // What widens and narrows again is the identity.
    let before = "x = input: bf16[4]\nc = cast(x, f32): f32[4]\nd = cast(c, bf16): bf16[4]\noutput d";
    assert_equal(&judge(before, "x = input: bf16[4]\noutput x"));
}

/// Different routes to the same elements.
#[test]
fn movement_is_followed() {
    let same = [
        (
            "t = permute(x, [1, 0]): f32[6, 4] strides [1, 6]\nu = permute(t, [1, 0]): f32[4, 6]\ny = clone(u): f32[4, 6]",
            "y = clone(x): f32[4, 6]",
        ),
        (
            "t = permute(x, [1, 0]): f32[6, 4] strides [1, 6]\nu = clone(t): f32[6, 4]\ny = permute(u, [1, 0]): f32[4, 6] strides [1, 4]",
            "y = clone(x): f32[4, 6]",
        ),
        (
            "s = split(x, 2, 1): (f32[4, 2] strides [6, 1], f32[4, 2] strides [6, 1] offset 2, f32[4, 2] strides [6, 1] offset 4)\na = getitem(s, 0): f32[4, 2] strides [6, 1]\nb = getitem(s, 1): f32[4, 2] strides [6, 1] offset 2\nc = getitem(s, 2): f32[4, 2] strides [6, 1] offset 4\ny = cat([a, b, c], 1): f32[4, 6]",
            "y = clone(x): f32[4, 6]",
        ),
        (
            "a = select(x, 0, 1): f32[6] offset 6\nb = select(x, 0, -1): f32[6] offset 18\ny = stack([a, b]): f32[2, 6]",
            "y = slice(x, 0, 1, 9223372036854775807, 2): f32[2, 6] strides [12, 1] offset 6",
        ),
        ("y = repeat(x, [2, 1]): f32[8, 6]", "y = cat([x, x]): f32[8, 6]"),
        (
            "u = unsqueeze(x, 0): f32[1, 4, 6]\ne = expand(u, [2, 4, 6]): f32[2, 4, 6] strides [0, 6, 1]\ny = clone(e): f32[2, 4, 6]",
            "y = stack([x, x]): f32[2, 4, 6]",
        ),
        (
            "v = view_dtype(x, bf16): bf16[4, 12]\na = clone(v): bf16[4, 12]\ny = view_dtype(a, f32): f32[4, 6]",
            "y = clone(x): f32[4, 6]",
        ),
        (
            "v = view(x, [4, 3, 2]): f32[4, 3, 2]\nc = view_as_complex(v): c64[4, 3]\nd = clone(c): c64[4, 3]\nq = view_as_real(d): f32[4, 3, 2]\ny = view(q, [4, 6]): f32[4, 6]",
            "y = clone(x): f32[4, 6]",
        ),
    ];
    for (left, right) in same {
        let make = |body: &str| {
            graph(&format!("x = input: f32[4, 6]\n{body}\nr = relu(y): f32[4, 6]\noutput (y, r)"))
        };
        let (left_graph, right_graph) = (make(left), make(right));
        let comparison = compared(&left_graph, &right_graph);
        assert_equal(&comparison);
    }
}

#[test]
fn pads_are_zeros() {
    let pad = "x = input: f32[4, 6]\ny = pad(x, [1, 2, 1, 0]): f32[5, 9]\noutput y";
    let built = "x = input: f32[4, 6]\nz = zeros([5, 9], dtype=f32, device=\"cuda:0\"): f32[5, 9]
        a = slice(z, 0, 1): f32[4, 9] offset 9\nb = slice(a, 1, 1, 7): f32[4, 6] strides [9, 1] offset 10
        m = copy_(b, x): f32[4, 6] strides [9, 1] offset 10\noutput z";
    assert_equal(&judge(pad, built));
}

#[test]
fn writes_are_seen_through_aliases() {
    let before = "x = input: f32[2, 3]\nz = empty([2, 3], dtype=f32, device=\"cuda:0\"): f32[2, 3]
        t = permute(z, [1, 0]): f32[3, 2] strides [1, 3]\nu = permute(x, [1, 0]): f32[3, 2] strides [1, 3]
        m = copy_(t, u): f32[3, 2] strides [1, 3]\nr = relu(z): f32[2, 3]\noutput r";
    assert_equal(&judge(before, "x = input: f32[2, 3]\nr = relu(x): f32[2, 3]\noutput r"));
    let late = before.replace(
        "m = copy_(t, u): f32[3, 2] strides [1, 3]\nr = relu(z): f32[2, 3]",
        "r = relu(z): f32[2, 3]\nm = copy_(t, u): f32[3, 2] strides [1, 3]",
    );
    assert_open(
        &judge(before, &late),
        &["elements 0..6 of z, which r reads, come from unwritten memory, expected x"],
    );
    assert_eq!(hazards(&graph(&late)), ["r reads elements 0..6 of z, which nothing has been written to"]);
}

#[test]
fn mutations_of_inputs_are_compared() {
    let before =
        "x = input: f32[4]\ny = input: f32[4]\nr = relu(y): f32[4]\nm = copy_(x, r): f32[4]\noutput ()";
    assert_equal(&judge(before, before));
    assert_open(&judge(before, &before.replace("relu(y)", "neg(y)")), &[]);
    let after = before.replace("relu(y)", "relu(x)");
    assert_open(&judge(before, &after), &["elements 0..4 of x, which r reads, come from x, expected y"]);
    let half = before.replace(
        "m = copy_(x, r): f32[4]",
        "h = slice(x, 0, 0, 2): f32[2]\n q = slice(r, 0, 0, 2): f32[2]\n m = copy_(h, q): f32[2]",
    );
    assert_open(&judge(before, &half), &["elements 2..4 come from x, expected r (aten.relu.default)"]);
}

#[test]
fn draws_and_effects_keep_their_order() {
    let before = "x = input: f32[4]\na = rand_like(x): f32[4]\nb = rand_like(x): f32[4]\noutput (a, b)";
    assert_equal(&judge(before, before));
    let swapped = "x = input: f32[4]\nb = rand_like(x): f32[4]\na = rand_like(x): f32[4]\noutput (a, b)";
    assert_open(&judge(before, swapped), &[]);
}

/// Nothing is claimed where a size is symbolic or an operator unknown.
#[test]
fn what_is_not_known_is_not_claimed() {
    // An unknown operator on other values is another effect; its result alone would prove nothing.
    let before = "x = input: f32[4]\ny = input: f32[4]\nu = test.unknown(x): f32[4]\noutput u";
    assert_equal(&judge(before, before));
    let after = before.replace("test.unknown(x)", "test.unknown(y)");
    assert_open(
        &judge(before, &after),
        &["u (test.unknown) is the first node whose value is not known to be the same"],
    );
    // An unknown operator may write its argument: a read behind it is not the read before it.
    let behind = "x = input: f32[4]\nu = test.unknown(x): f32[4]\nr = relu(x): f32[4]\noutput (r, u)";
    let front = "x = input: f32[4]\nr = relu(x): f32[4]\nu = test.unknown(x): f32[4]\noutput (r, u)";
    assert!(!matches!(judge(front, behind), Comparison::Equal(_)));
    // Which rows an index takes is not followed.
    let rows = "x = input: f32[4, 2]\ny = input: f32[4, 2]\ni = input: i64[1]\nr = index_select(x, 0, i): f32[1, 2]\noutput r";
    let other = rows.replace("index_select(x", "index_select(y");
    assert_equal(&judge(rows, rows));
    assert_open(&judge(rows, &other), &[]);
}

#[test]
fn sizes_that_do_not_fit_are_a_reason() {
    let big = "x = input: f32[3037000500, 3037000500]\ny = relu(x): f32[3037000500, 3037000500]\noutput y";
    let reason = open(&judge(big, big));
    assert!(reason.contains("is not known") || reason.contains("does not fit"), "{reason}");
    let gathers = "world 2 ranks, groups g = 4294967295 ranks\nx = input: f32[9000000000]
        a = all_gather(x, 4294967295, g): f32[9000000000]\nw = wait(a): f32[9000000000]\noutput w";
    assert_open(&judge(gathers, gathers), &[]);
    // A gather over no ranks contradicts itself: it is opaque, and so the same where it takes the same, else not known.
    let none = "world 2 ranks, groups g = 0 ranks\nx = input: f32[4]\ny = input: f32[4]
        a = all_gather(x, 0, g): f32[4]\nw = wait(a): f32[4]\noutput w";
    assert_equal(&judge(none, none));
    assert_open(&judge(none, &none.replace("(x, 0", "(y, 0")), &[]);
}

/// PyTorch warns of a collective that nobody awaits, and its memory may be gone before it is done.
#[test]
fn a_wait_that_is_gone_is_open() {
    let before = "x = input: f32[2]\na = all_reduce(x, \"sum\", g): f32[2]\nw = wait(a): f32[2]\noutput x";
    let after = "x = input: f32[2]\na = all_reduce(x, \"sum\", g): f32[2]\noutput x";
    assert_open(&judge(before, after), &["a is never waited for"]);
    // Nobody waited before either.
    assert_equal(&judge(after, after));
    assert_equal(&judge(after, before));
}

/// What is awaited is a storage, as in PyTorch: the wait for one part of a buffer is one for all of it.
#[test]
fn a_wait_is_for_all_of_a_storage() {
    let before = "x = input: f32[2]\ny = input: f32[2]
        a = all_reduce(x, \"sum\", g): f32[2]\nv = wait(a): f32[2]
        b = all_reduce(y, \"sum\", g): f32[2]\nw = wait(b): f32[2]\noutput (v, w)";
    let after = "x = input: f32[2]\ny = input: f32[2]
        z = cat([x, y]): f32[4]\np = slice(z, 0, 0, 2): f32[2]\nq = slice(z, 0, 2, 4): f32[2] offset 2
        a = all_reduce_(p, \"sum\", g): f32[2]\nb = all_reduce_(q, \"sum\", g): f32[2] offset 2
        v = wait(a): f32[2]\nw = alias(b): f32[2] offset 2\noutput (v, w)";
    assert_equal(&judge(before, after));
}

#[test]
fn a_value_taken_before_it_exists_is_convicted_even_if_nobody_reads_what_comes_of_it() {
    let before = "x = input: f32[2]\na = relu(x): f32[2]\nb = relu(a): f32[2]\noutput x";
    let after = "x = input: f32[2]\nb = relu(a): f32[2]\na = relu(x): f32[2]\noutput x";
    assert_open(&judge(before, after), &["b takes a before it exists"]);
}

/// What a draw overwrites, or only takes the shape of, does not matter.
#[test]
fn draws_do_not_read_what_they_overwrite() {
    let drawn = |read: &str, draw: &str| {
        format!("x = input: f32[2]\ny = input: f32[2]\na = relu({read}): f32[2]\n{draw}\noutput m")
    };
    for draw in [
        "m = bernoulli_(a, 0.5): f32[2]",
        "m = bernoulli_p(a, 0.5): f32[2]",
        "m = uniform_(a): f32[2]",
        "m = rand_like(a): f32[2]",
        "d = native_dropout(a, 0.5, True): (f32[2], bool[2])\nm = d[1]: bool[2]",
    ] {
        assert_equal(&judge(&drawn("x", draw), &drawn("y", draw)));
    }
    for draw in [
        "m = bernoulli(a): f32[2]",
        "m = bernoulli_tensor_(x, a): f32[2]",
        "d = native_dropout(a, 0.5, True): (f32[2], bool[2])\nm = d[0]: f32[2]",
    ] {
        open(&judge(&drawn("x", draw), &drawn("y", draw)));
    }
    // Outside training nothing is drawn, so that a later draw is the same one.
    let skipped = |train: &str, first: &str, second: &str| {
        format!(
            "x = input: f32[2]\n{first}d = native_dropout(x, 0.5, {train}): (f32[2], bool[2])\n{second}output m"
        )
    };
    let m = "m = rand_like(x): f32[2]\n";
    assert_equal(&judge(&skipped("False", m, ""), &skipped("False", "", m)));
    open(&judge(&skipped("True", m, ""), &skipped("True", "", m)));
}

/// The size of what a collective gives is known before the wait, and is the same behind it.
#[test]
fn a_size_is_the_same_before_and_behind_a_wait() {
    let head = "symbol u0 unbacked\nx = input: f32[u0, 4] strides [4, 1]\n\
                a = all_reduce(x, \"sum\", g): f32[u0, 4] strides [4, 1]\n";
    let wait = "w = wait(a): f32[u0, 4] strides [4, 1]\n";
    let size = "n = sym_size(a, 0): symint(u0)\n";
    let end = "m = sym_add(n, 1): symint(\"u0 + 1\")\noutput (w, m)";
    assert_equal(&judge(&format!("{head}{size}{wait}{end}"), &format!("{head}{wait}{size}{end}")));
}
