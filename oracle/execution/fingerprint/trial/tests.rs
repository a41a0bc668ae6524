//! Which laws are proved, which are refuted, and which stay open: pairs of short texts.

use super::super::super::bounds::Bounds;
use super::super::super::run::Options;
use super::*;

fn alike(level: Numerics, inputs: &str, before: &str, after: &str) -> Alike {
    let graph = |body: &str| {
        let text = format!("{inputs}\n{}\noutput (r)\n", body.replace("; ", "\n"));
        crate::format::text::parse(text.as_bytes()).unwrap().graph
    };
    let graphs = [graph(before), graph(after)];
    let ops = [Ops::of(&graphs[0]), Ops::of(&graphs[1])];
    let world = graphs[0].world.assume_mesh().unwrap();
    let [one, other] = [0, 1].map(|i| [Program::new(&graphs[i], &ops[i], &world).unwrap()]);
    let bounds = Bounds::of(&graphs[0], &ops[0], &|_| false);
    let options = Options { bounds, ..Options::default() };
    Pair { before: &one, after: &other, world: &world, options: &options }
        .likeness(level, true, f64::INFINITY)
        .unwrap_or_else(|| panic!("{before} / {after}"))
        .alike
}

const XYZ: &str = "x = input : f32[3,4]\ny = input : f32[3,4]\nz = input : f32[3,4]";

#[test]
fn right_laws_are_proved() {
    for (level, before, after) in [
        (
            Numerics::Exact,
            "r = clamp_min(x, -1.0)",
            "p = lt_scalar(x, -1.0); m = full([], -1.0) : f32[]; r = where(p, m, x)",
        ),
        (
            Numerics::Exact,
            "c = clamp_min(x, -1.0); r = clamp_max(c, 1.0)",
            "p = lt_scalar(x, -1.0); m = full([], -1.0) : f32[]; q = where(p, m, x); o = full([], 1.0) : f32[]; \
             t = gt_scalar(q, 1.0); r = where(t, o, q)",
        ),
        (
            Numerics::Exact,
            "c = gt(x, y); d = eq(x, y); e = logical_or(c, d); r = where(e, x, y)",
            "c = ge(x, y); r = where(c, x, y)",
        ),
        (Numerics::ZeroSign, "r = clamp_min(x, 0.5)", "h = full([], 0.5) : f32[]; r = maximum(x, h)"),
        (Numerics::Reassociation, "c = gt(x, y); r = where(c, x, y)", "r = maximum(x, y)"),
        (
            Numerics::Reassociation,
            "s = add(x, y); t = add(s, z); c = gt(t, y); r = where(c, t, y)",
            "s = add(y, z); t = add(x, s); r = maximum(t, y)",
        ),
        (Numerics::Reassociation, "r = abs(x)", "n = neg(x); c = lt_scalar(x, 0); r = where(c, n, x)"),
        (Numerics::Reassociation, "r = abs(x)", "s = sign(x); r = mul(s, x)"),
        (Numerics::Reassociation, "r = relu(x)", "c = gt_scalar(x, 0); r = mul(c, x)"),
        (
            Numerics::Reassociation,
            "c = gt_scalar(x, 0); m = mul(x, 0.01);  r = where(c, x, m)",
            "m = mul(x, 0.01); r = maximum(x, m)",
        ),
        // What decides is given the same bits.
        (
            Numerics::Reassociation,
            "c = gt(x, y); p = add(x, y); q = add(p, z); r = where(c, q, x)",
            "c = gt(x, y); p = add(y, z); q = add(x, p); r = where(c, q, x)",
        ),
        (Numerics::Reassociation, "n = add(x, y); r = add(n, z)", "n = add(y, z); r = add(x, n)"),
        (Numerics::Reassociation, "n = div(x, y); r = div(n, z)", "n = mul(y, z); r = div(x, n)"),
        (Numerics::Reassociation, "r = mean(x, [1])", "n = sum(x, [1]); r = div(n, 4)"),
        (Numerics::Contraction, "n = add(x, y); r = exp(n)", "p = exp(x); q = exp(y); r = mul(p, q)"),
        (Numerics::Contraction, "e = exp(x); r = log(e)", "r = clone(x)"),
        (
            Numerics::Contraction,
            "e = exp(x); s = add(e, 1.0); l = log(s); r = exp(l)",
            "e = exp(x); r = add(e, 1.0)",
        ),
        (Numerics::Contraction, "s = sigmoid(x); p = sqrt(s); r = mul(p, p)", "r = sigmoid(x)"),
        (
            Numerics::Contraction,
            "s = sigmoid(x); t = sigmoid(y); n = mul(s, t); r = sqrt(n)",
            "s = sigmoid(x); t = sigmoid(y); p = sqrt(s); q = sqrt(t); r = mul(p, q)",
        ),
        (Numerics::Contraction, "n = neg(x); r = sigmoid(n)", "s = sigmoid(x); r = rsub_scalar(s, 1.0)"),
        (Numerics::Contraction, "r = pow(x, 3)", "q = mul(x, x); r = mul(q, x)"),
        (Numerics::Contraction, "r = div(x, 3.0)", "r = mul(x, 0.3333333333333333)"),
        (Numerics::Contraction, "q = mul(x, x); r = sqrt(q)", "r = abs(x)"),
        (Numerics::Contraction, "p = relu(x); r = mul(p, 2.0)", "p = mul(x, 2.0); r = relu(p)"),
        (
            Numerics::Reassociation,
            "p = neg(x); q = neg(y); m = maximum(p, q); r = neg(m)",
            "r = minimum(x, y)",
        ),
        (Numerics::Reassociation, "p = maximum(x, y); q = minimum(x, y); r = add(p, q)", "r = add(x, y)"),
        (
            Numerics::Reassociation,
            "m = maximum(x, y); r = add(m, z)",
            "p = add(x, z); q = add(y, z); r = maximum(p, q)",
        ),
        (Numerics::Contraction, "m = maximum(x, y); r = exp(m)", "p = exp(x); q = exp(y); r = maximum(p, q)"),
        (
            Numerics::Contraction,
            "p = exp(x); q = exp(y); n = mul(p, q); r = exp(n)",
            "n = add(x, y); m = exp(n); r = exp(m)",
        ),
        (
            Numerics::Contraction,
            "n = clamp_min(x, 0.0); r = clamp_max(n, 6.0)",
            "m = relu(x); n = clamp_max(m, 6.0); r = relu(n)",
        ),
        (
            Numerics::Contraction,
            "c = cos(x); s = sin(x); p = mul(c, c); q = mul(s, s); r = add(p, q)",
            "r = full([3, 4], 1.0)",
        ),
        (
            Numerics::Contraction,
            "m = amax(x, [1], True); d = sub(x, m); e = exp(d); s = sum(e, [1], True); r = div(e, s)",
            "e = exp(x); s = sum(e, [1], True); r = div(e, s)",
        ),
        (
            Numerics::Contraction,
            "q = mul(x, x); m = mean(q, [1], True); e = add(m, 1e-05); s = rsqrt(e); r = mul(x, s)",
            "q = pow(x, 2); m = mean(q, [1], True); e = add(m, 1e-05); s = sqrt(e); r = div(x, s)",
        ),
    ] {
        assert_eq!(alike(level, XYZ, before, after), Alike::Same, "{before} / {after}");
    }
}

#[test]
fn wrong_laws_are_not() {
    for (before, after) in [
        ("q = mul(x, x); r = log(q)", "l = log(x); r = mul(l, 2.0)"),
        ("s = sqrt(x); r = mul(s, s)", "r = clone(x)"),
        ("q = div(x, y); r = log(q)", "p = log(x); q = log(y); r = sub(p, q)"),
        ("y0 = relu(x); q = mul(y0, y0); r = div(q, y0)", "r = relu(x)"),
        ("n = mul(x, y); r = div(n, y)", "r = clone(x)"),
        ("e = exp(x); f = exp(y); r = add(e, f)", "n = add(x, y); r = exp(n)"),
        ("r = gelu(x)", "r = gelu(x, approximate=\"tanh\")"),
        ("r = clamp(x, 0.0, 6.0)", "r = clamp(x, 0.0, 6.5)"),
        ("r = cos(x)", "n = neg(x); p = exp(x); q = exp(n); s = add(p, q); r = mul(s, 0.5)"),
        ("r = maximum(x, y)", "r = minimum(x, y)"),
        ("m = mean(x, [1]); r = mul(m, 1.0)", "s = sum(x, [1]); r = div(s, 3)"),
    ] {
        let found = alike(Numerics::Contraction, XYZ, before, after);
        assert_eq!(found, Alike::Apart, "{before} / {after}");
    }
}

#[test]
fn laws_of_bits() {
    let inputs = "x = input : f32[3,4]\ny = input : f32[3,4]\nz = input : f32[3,4]\ni = input : i64[4]\nj = input : i64[4]\n\
        a = input : bool[3,4]\nb = input : bool[3,4]\nc = input : bool[3,4]";
    for (before, after, holds) in [
        ("r = add(x, y)", "r = add(y, x)", true),
        ("r = sub(x, y)", "n = neg(y); r = add(x, n)", true),
        ("p = neg(x); q = neg(y); r = mul(p, q)", "r = mul(x, y)", true),
        ("r = div(x, 2.0)", "r = mul(x, 0.5)", true),
        ("r = div(x, 3.0)", "r = mul(x, 0.3333333333333333)", false),
        ("n = add(x, y); r = add(n, z)", "n = add(y, z); r = add(x, n)", false),
        ("r = add(x, 0.0)", "r = clone(x)", false),
        ("r = mul(x, 1.0)", "r = clone(x)", true),
        ("r = maximum(x, y)", "r = maximum(y, x)", false),
        ("n = add(i, j); r = sub(n, j)", "r = clone(i)", true),
        ("n = add(i, j); r = mul(n, 3)", "p = mul(i, 3); q = mul(j, 3); r = add(p, q)", true),
        ("r = bitwise_not(i)", "n = neg(i); r = sub_scalar(n, 1)", true),
        ("n = lt(i, j); r = logical_not(n)", "r = ge(i, j)", true),
        ("n = lt(x, y); r = logical_not(n)", "r = ge(x, y)", false),
        ("r = lt(x, y)", "r = gt(y, x)", true),
        ("n = logical_or(a, b); r = logical_and(a, n)", "r = clone(a)", true),
        (
            "n = logical_or(b, c); r = logical_and(a, n)",
            "p = logical_and(a, b); q = logical_and(a, c); r = logical_or(p, q)",
            true,
        ),
        ("r = logical_and(a, b)", "r = logical_or(a, b)", false),
        ("w = where(a, x, y); r = where(a, w, z)", "r = where(a, x, z)", true),
        ("w = where(b, x, y); r = where(a, w, y)", "n = logical_and(a, b); r = where(n, x, y)", true),
        ("w = where(a, x, y); r = exp(w)", "p = exp(x); q = exp(y); r = where(a, p, q)", true),
        ("w = where(a, x, y); r = add(w, z)", "p = add(x, z); q = add(y, z); r = where(a, p, q)", true),
        ("r = where(a, x, y)", "r = where(a, y, x)", false),
        (
            "r = aten.ceil.default(x) : f32[3,4]",
            "n = neg(x); f = aten.floor.default(n) : f32[3,4]; r = neg(f)",
            true,
        ),
        (
            "r = aten.ceil.default(x) : f32[3,4]",
            "f = aten.floor.default(x) : f32[3,4]; r = add_scalar(f, 1)",
            false,
        ),
        (
            "f = aten.ceil.default(x) : f32[3,4]; r = aten.floor.default(f) : f32[3,4]",
            "r = aten.ceil.default(x) : f32[3,4]",
            true,
        ),
        (
            "f = aten.ceil.default(x) : f32[3,4]; r = aten.floor.default(f) : f32[3,4]",
            "r = aten.floor.default(x) : f32[3,4]",
            false,
        ),
    ] {
        let found = alike(Numerics::Exact, inputs, before, after);
        assert_eq!(found == Alike::Same, holds, "{before} / {after}: {found:?}");
    }
    let found = alike(Numerics::ZeroSign, inputs, "r = maximum(x, y)", "r = maximum(y, x)");
    assert_eq!(found, Alike::Same);
}

#[test]
fn laws_of_integers() {
    let inputs = "i = input : i64[4]\nj = input : i64[4]\nk = input : i32[4]\nb = input : u8[4]\nc = input : i8[4]\n\
        a = input : bool[4,3]\nl = input : bool[4,12]";
    for (before, after, holds) in [
        ("r = remainder_scalar(i, 8)", "r = bitwise_and_scalar(i, 7)", true),
        ("r = remainder_scalar(k, 16)", "r = bitwise_and_scalar(k, 15)", true),
        ("r = remainder_scalar(i, 8)", "r = bitwise_and_scalar(i, 8)", false),
        ("r = remainder_scalar(i, 8)", "r = bitwise_and_scalar(i, 15)", false),
        ("r = remainder_scalar(i, 8)", "r = aten.fmod.Scalar(i, 8) : i64[4]", false),
        ("r = remainder_scalar(b, 8)", "r = aten.fmod.Scalar(b, 8) : u8[4]", true),
        (
            "p = floor_divide_scalar(i, 5); q = mul_scalar(p, 5); r = sub(i, q)",
            "r = remainder_scalar(i, 5)",
            true,
        ),
        (
            "p = floor_divide_scalar(i, 5); q = mul_scalar(p, 5); r = sub(i, q)",
            "r = remainder_scalar(i, 6)",
            false,
        ),
        (
            "p = floor_divide_scalar(i, 4); r = floor_divide_scalar(p, 2)",
            "r = floor_divide_scalar(i, 8)",
            true,
        ),
        (
            "p = floor_divide_scalar(i, 4); r = floor_divide_scalar(p, 2)",
            "r = floor_divide_scalar(i, 16)",
            false,
        ),
        ("p = remainder_scalar(i, 8); r = remainder_scalar(p, 4)", "r = remainder_scalar(i, 4)", true),
        (
            "p = add_scalar(i, 8); r = floor_divide_scalar(p, 8)",
            "q = floor_divide_scalar(i, 8); r = add_scalar(q, 1)",
            false,
        ),
        ("p = bitwise_xor(i, j); q = bitwise_and(i, j); r = add(p, q)", "r = bitwise_or(i, j)", true),
        ("p = bitwise_xor(i, j); q = bitwise_and(i, j); r = add(p, q)", "r = add(i, j)", false),
        (
            "p = bitwise_xor(i, j); q = bitwise_and(i, j); s = mul_scalar(q, 2); r = add(p, s)",
            "r = add(i, j)",
            true,
        ),
        (
            "p = bitwise_and(i, j); r = bitwise_not(p)",
            "p = bitwise_not(i); q = bitwise_not(j); r = bitwise_or(p, q)",
            true,
        ),
        (
            "p = bitwise_and(i, j); r = bitwise_not(p)",
            "p = bitwise_not(i); q = bitwise_not(j); r = bitwise_and(p, q)",
            false,
        ),
        ("r = bitwise_xor(i, i)", "r = sub(i, i)", true),
        (
            "p = bitwise_and_scalar(b, 15); q = floor_divide_scalar(b, 16); s = mul_scalar(q, 16); r = add(s, p)",
            "r = clone(b)",
            true,
        ),
        (
            "p = bitwise_and_scalar(b, 15); q = floor_divide_scalar(b, 8); s = mul_scalar(q, 16); r = add(s, p)",
            "r = clone(b)",
            false,
        ),
        (
            "p = bitwise_and_scalar(i, 12); q = bitwise_and_scalar(i, 3); r = bitwise_or(p, q)",
            "r = bitwise_and_scalar(i, 15)",
            true,
        ),
        (
            "r = floor_divide_scalar(b, 16)",
            "w = aten._to_copy.default(b, dtype=i64) : i64[4]; q = floor_divide_scalar(w, 16); r = aten._to_copy.default(q, dtype=u8) : u8[4]",
            true,
        ),
        (
            "r = floor_divide_scalar(c, 16)",
            "w = aten._to_copy.default(c, dtype=u8) : u8[4]; q = floor_divide_scalar(w, 16); r = aten._to_copy.default(q, dtype=i8) : i8[4]",
            false,
        ),
        ("r = abs(c)", "n = neg(c); r = maximum(c, n)", true),
        ("r = abs(c)", "n = neg(c); r = minimum(c, n)", false),
        ("r = any(a, 1)", "s = sum(a, [1]); r = gt_scalar(s, 0)", true),
        ("r = any(l, 1)", "s = sum(l, [1]); r = gt_scalar(s, 0)", true),
        ("r = any(l, 1)", "s = sum(l, [1]); r = gt_scalar(s, 1)", false),
        ("r = all(a, 1)", "s = sum(a, [1]); r = eq_scalar(s, 3)", true),
        ("r = all(a, 1)", "s = sum(a, [1]); r = ge_scalar(s, 2)", false),
        (
            "r = any(a, 1)",
            "s = aten._to_copy.default(a, dtype=u8) : u8[4,3]; m = amax(s, [1]); r = ne_scalar(m, 0)",
            true,
        ),
        (
            "r = any(a, 1)",
            "s = aten._to_copy.default(a, dtype=u8) : u8[4,3]; m = amin(s, [1]); r = ne_scalar(m, 0)",
            false,
        ),
        (
            "p = remainder_scalar(i, 7); f = aten._to_copy.default(p, dtype=f32) : f32[4]; r = aten._to_copy.default(f, dtype=i64) : i64[4]",
            "r = remainder_scalar(i, 7)",
            true,
        ),
        (
            "f = aten._to_copy.default(i, dtype=f32) : f32[4]; r = aten._to_copy.default(f, dtype=i64) : i64[4]",
            "r = clone(i)",
            false,
        ),
    ] {
        for level in [Numerics::Exact, Numerics::Contraction] {
            let found = alike(level, inputs, before, after);
            assert_eq!(found == Alike::Same, holds, "{level}: {before} / {after}: {found:?}");
        }
    }
}

#[test]
fn choices_that_differ_somewhere_are_not_the_same() {
    for (level, before, after) in [
        // What is no number is given on by a maximum alone.
        (Numerics::ZeroSign, "c = gt(x, y); r = where(c, x, y)", "r = maximum(x, y)"),
        (Numerics::Exact, "r = abs(x)", "n = neg(x); c = lt_scalar(x, 0); r = where(c, n, x)"),
        (Numerics::Exact, "c = gt(x, y); r = where(c, x, y)", "c = le(x, y); r = where(c, y, x)"),
        (Numerics::Reassociation, "c = gt(x, y); r = where(c, x, y)", "r = minimum(x, y)"),
        (Numerics::Reassociation, "c = gt(x, y); r = where(c, x, y)", "c = gt(x, z); r = where(c, x, y)"),
        (
            Numerics::Reassociation,
            "c = gt_scalar(x, 0); m = mul(x, 1.01);  r = where(c, x, m)",
            "m = mul(x, 1.01); r = maximum(x, m)",
        ),
        // A rounding may decide otherwise.
        (
            Numerics::Contraction,
            "p = add(x, y); q = add(p, z); c = gt_scalar(q, 0); r = where(c, x, y)",
            "p = add(y, z); q = add(x, p); c = gt_scalar(q, 0); r = where(c, x, y)",
        ),
        (
            Numerics::Contraction,
            "p = add(x, y); q = add(p, z); r = floor(q)",
            "p = add(y, z); q = add(x, p); r = floor(q)",
        ),
    ] {
        assert_ne!(alike(level, XYZ, before, after), Alike::Same, "{level}: {before} / {after}");
    }
}

#[test]
fn indices_choose_among_all_that_they_may_select() {
    let inputs = "x = input : f32[5,3]\ny = input : f32[5,3]\ni = input : i64[4]\nj = input : i64[4]";
    for (level, before, after) in [
        (Numerics::Exact, "r = index_select(x, 0, i)", "r = embedding(x, i)"),
        (Numerics::Exact, "r = index_select(x, 0, i)", "r = aten.index.Tensor(x, [i]) : f32[4,3]"),
        (
            Numerics::Exact,
            "r = index_select(x, 0, i)",
            "u = unsqueeze(i, 1); e = expand(u, [4, 3]); r = gather(x, 0, e)",
        ),
        (
            Numerics::Reassociation,
            "s = add(x, y); r = index_select(s, 0, i)",
            "p = index_select(x, 0, i); q = index_select(y, 0, i); r = add(p, q)",
        ),
        (
            Numerics::Reassociation,
            "p = index_select(x, 0, i); m = mul(p, 2.0); r = sum(m, [1])",
            "s = sum(x, [1]); t = index_select(s, 0, i); r = mul(t, 2.0)",
        ),
    ] {
        assert_eq!(alike(level, inputs, before, after), Alike::Same, "{level}: {before} / {after}");
    }
    for (before, after) in [
        ("r = index_select(x, 0, i)", "r = index_select(x, 0, j)"),
        ("r = index_select(x, 0, i)", "r = index_select(y, 0, i)"),
        ("r = aten.index.Tensor(x, [i]) : f32[4,3]", "r = index_select(x, 0, i)"),
        ("r = index_select(x, 0, i)", "k = clamp_max(i, 3); r = index_select(x, 0, k)"),
    ] {
        assert_ne!(alike(Numerics::Contraction, inputs, before, after), Alike::Same, "{before} / {after}");
    }
    let inputs = "x = input : f32[2]\ni = input : i64[3]";
    let chosen = "a = slice(x, 0, 0, 1); b = slice(x, 0, 1, 2); c = eq_scalar(i, 1); r = where(c, b, a)";
    let first = "a = slice(x, 0, 0, 1); b = slice(x, 0, 1, 2); c = eq_scalar(i, 0); r = where(c, a, b)";
    for (before, after) in [
        ("r = index_select(x, 0, i)", chosen),
        ("r = index_select(x, 0, i)", first),
        (
            "r = index_select(x, 0, i)",
            "y = cat([x, x]) : f32[4]; k = add_scalar(i, 2) : i64[3]; r = index_select(y, 0, k)",
        ),
    ] {
        assert_eq!(alike(Numerics::Exact, inputs, before, after), Alike::Same, "{before} / {after}");
    }
    // What is out of range raises in the one and chooses something in the other, and what is negative something else.
    for (before, after) in [
        (chosen, "r = index_select(x, 0, i)"),
        ("r = aten.index.Tensor(x, [i]) : f32[3]", chosen),
        (chosen, "r = aten.index.Tensor(x, [i]) : f32[3]"),
        (
            "y = cat([x, x]) : f32[4]; k = add_scalar(i, 2) : i64[3]; r = index_select(y, 0, k)",
            "r = index_select(x, 0, i)",
        ),
    ] {
        assert_ne!(alike(Numerics::Contraction, inputs, before, after), Alike::Same, "{before} / {after}");
    }
}

#[test]
fn what_is_chosen_is_the_same_case_by_case() {
    use Numerics::{Contraction, Exact, Reassociation, ZeroSign};
    let inputs = format!(
        "{XYZ}\na = input : bool[3,4]\nb = input : bool[3,4]\ni = input : i64[3,4]\nj = input : i64[3,4]"
    );
    for (level, before, after, holds) in [
        (Exact, "n = neg(x); r = abs(n)", "r = abs(x)", true),
        (Exact, "p = abs(x); q = abs(y); r = mul(p, q)", "p = mul(x, y); r = abs(p)", true),
        (Exact, "p = abs(x); q = abs(y); r = mul(p, q)", "r = mul(x, y)", false),
        (Exact, "p = abs(x); q = abs(y); r = add(p, q)", "p = add(x, y); r = abs(p)", false),
        (Exact, "n = sub(x, y); r = abs(n)", "n = sub(y, x); r = abs(n)", true),
        (Exact, "r = abs(x)", "n = neg(x); r = maximum(x, n)", false),
        (ZeroSign, "r = abs(x)", "n = neg(x); r = maximum(x, n)", true),
        (Exact, "n = clamp(x, -2.0, 2.0); r = clamp(n, -1.0, 1.0)", "r = clamp(x, -1.0, 1.0)", true),
        (Exact, "n = clamp(x, -2.0, 0.5); r = clamp(n, -1.0, 1.0)", "r = clamp(x, -1.0, 1.0)", false),
        (Exact, "p = mul(x, 3.0); r = relu(p)", "p = relu(x); r = mul(p, 3.0)", true),
        // What is too small is rounded to a zero of either sign.
        (Exact, "p = mul(x, 0.3); r = relu(p)", "p = relu(x); r = mul(p, 0.3)", false),
        (Exact, "p = mul(x, -3.0); r = relu(p)", "p = relu(x); r = mul(p, -3.0)", false),
        (Exact, "w = where(a, x, y); r = abs(w)", "p = abs(x); q = abs(y); r = where(a, p, q)", true),
        (Exact, "w = where(a, x, y); r = abs(w)", "p = abs(x); q = abs(y); r = where(b, p, q)", false),
        (Exact, "p = neg(x); q = neg(y); r = lt(p, q)", "r = gt(x, y)", true),
        (Exact, "p = neg(x); q = neg(y); r = lt(p, q)", "r = ge(x, y)", false),
        (Exact, "r = lt(x, y)", "p = ge(x, y); r = logical_not(p)", false),
        // Twice as much may be infinite.
        (Exact, "p = mul(x, 2.0); q = mul(y, 2.0); r = lt(p, q)", "r = lt(x, y)", false),
        (
            Exact,
            "p = any(a, 1); q = any(b, 1); r = logical_or(p, q)",
            "o = logical_or(a, b); r = any(o, 1)",
            true,
        ),
        (
            Exact,
            "p = any(a, 1); q = any(b, 1); r = logical_or(p, q)",
            "o = logical_and(a, b); r = any(o, 1)",
            false,
        ),
        (Exact, "n = neg(i); r = abs(n)", "r = abs(i)", true),
        (Exact, "m = minimum(i, j); r = maximum(i, m)", "r = clone(i)", true),
        (Exact, "m = minimum(i, j); r = maximum(i, m)", "r = clone(j)", false),
        (
            Exact,
            "k = add_scalar(j, 0); m = minimum(j, k); r = maximum(i, m)",
            "p = maximum(i, j); q = maximum(i, j); r = minimum(p, q)",
            true,
        ),
        (Exact, "p = minimum(i, j); q = maximum(i, j); r = add(p, q)", "r = add(i, j)", true),
        (Exact, "p = add_scalar(i, 1); r = gt(p, i)", "r = ge(i, i)", false),
        (
            Exact,
            "c = full([3, 4], 9007199254740993) : i64[3,4]; d = full([3, 4], 9007199254740992) : i64[3,4]; e = eq(c, d); r = where(e, i, j)",
            "r = clone(i)",
            false,
        ),
        (
            Exact,
            "c = ge_scalar(i, 0); d = ge_scalar(j, 0); p = aten._to_copy.default(c, dtype=i64) : i64[3,4]; q = aten._to_copy.default(d, dtype=i64) : i64[3,4]; s = add(p, q); r = floor_divide_scalar(s, 2)",
            "c = ge_scalar(i, 0); d = ge_scalar(j, 0); e = logical_and(c, d); r = aten._to_copy.default(e, dtype=i64) : i64[3,4]",
            true,
        ),
        (
            Exact,
            "c = ge_scalar(i, 0); d = ge_scalar(j, 0); p = aten._to_copy.default(c, dtype=i64) : i64[3,4]; q = aten._to_copy.default(d, dtype=i64) : i64[3,4]; s = add(p, q); r = floor_divide_scalar(s, 2)",
            "r = full([3, 4], 0) : i64[3,4]",
            false,
        ),
        (Exact, "t = sign(i); u = add_scalar(t, 1); r = gt_scalar(u, 0)", "r = ge_scalar(i, 0)", true),
        (Exact, "t = sign(i); u = add_scalar(t, 1); r = gt_scalar(u, 0)", "r = ge_scalar(j, 0)", false),
        (ZeroSign, "p = minimum(x, y); q = maximum(x, y); r = add(p, q)", "r = add(x, y)", true),
        (ZeroSign, "p = minimum(x, y); q = maximum(x, y); r = sub(p, q)", "r = sub(x, y)", false),
        (ZeroSign, "p = relu(x); n = neg(x); q = relu(n); r = add(p, q)", "r = abs(x)", true),
        (ZeroSign, "p = relu(x); n = neg(x); q = relu(n); r = add(p, q)", "r = clone(x)", false),
        (ZeroSign, "s = sign(x); m = abs(x); r = mul(s, m)", "r = clone(x)", true),
        // What is no number is given on by a maximum alone.
        (ZeroSign, "m = maximum(x, y); r = minimum(x, m)", "r = clone(x)", false),
        (Reassociation, "m = maximum(x, y); r = minimum(x, m)", "r = clone(x)", true),
        (
            ZeroSign,
            "m = mul(x, 0.1); r = maximum(x, m)",
            "c = gt_scalar(x, 0.0); m = mul(x, 0.1); r = where(c, x, m)",
            true,
        ),
        (
            ZeroSign,
            "m = mul(x, 1.1); r = maximum(x, m)",
            "c = gt_scalar(x, 0.0); m = mul(x, 1.1); r = where(c, x, m)",
            false,
        ),
        (
            ZeroSign,
            "m = minimum(y, z); r = maximum(x, m)",
            "p = maximum(x, y); q = maximum(x, z); r = minimum(p, q)",
            true,
        ),
        (
            ZeroSign,
            "m = minimum(y, z); r = maximum(x, m)",
            "p = maximum(x, y); q = maximum(x, z); r = maximum(p, q)",
            false,
        ),
        // Where two values are equal, and what is computed of them there.
        (
            Contraction,
            "c = eq(x, y); p = mul(x, x); q = mul(x, y); r = where(c, p, q)",
            "r = mul(x, y)",
            true,
        ),
        (
            Contraction,
            "c = eq(x, y); p = mul(x, x); q = mul(x, z); r = where(c, p, q)",
            "r = mul(x, z)",
            false,
        ),
        (
            Contraction,
            "c = eq_scalar(x, 0.0); e = exp(x); o = mul(e, 0.0); p = add(o, 1.0); r = where(c, p, e)",
            "r = exp(x)",
            true,
        ),
        (
            Contraction,
            "c = eq_scalar(x, 0.0); e = exp(x); o = mul(e, 0.0); r = where(c, o, e)",
            "r = exp(x)",
            false,
        ),
        (
            Contraction,
            "c = gt_scalar(x, 0.0); e = expm1(x); r = where(c, x, e)",
            "p = relu(x); m = clamp_max(x, 0.0); e = expm1(m); r = add(p, e)",
            true,
        ),
        (
            Contraction,
            "c = gt_scalar(x, 0.5); e = expm1(x); r = where(c, x, e)",
            "p = relu(x); m = clamp_max(x, 0.0); e = expm1(m); r = add(p, e)",
            false,
        ),
        // What is not defined is no number.
        (Contraction, "p = mul(x, x); r = log(p)", "m = abs(x); l = log(m); r = mul(l, 2.0)", true),
        (Contraction, "p = mul(x, x); r = log(p)", "l = log(x); r = mul(l, 2.0)", false),
        (
            Contraction,
            "d = div(x, y); c = gt_scalar(d, 0.0); r = where(c, x, y)",
            "d = div(x, y); c = le_scalar(d, 0.0); r = where(c, y, x)",
            false,
        ),
        (
            Contraction,
            "d = div(x, y); r = relu(d)",
            "d = div(x, y); c = gt_scalar(d, 0.0); z0 = full([], 0.0) : f32[]; r = where(c, d, z0)",
            false,
        ),
        (
            Contraction,
            "d = div(x, y); m = abs(d); r = log(m)",
            "p = abs(x); q = abs(y); s = log(p); t = log(q); r = sub(s, t)",
            false,
        ),
        (
            Contraction,
            "n = neg(x); p = aten.atan.default(n) : f32[3,4]; r = neg(p)",
            "r = aten.atan.default(x) : f32[3,4]",
            true,
        ),
        (
            Contraction,
            "d = sub(x, y); m = abs(d); l = aten.lgamma.default(m) : f32[3,4]; p = mul(l, 0.0); c = eq(x, y); r = where(c, p, z)",
            "c = eq(x, y); z0 = full([], 0.0) : f32[]; r = where(c, z0, z)",
            false,
        ),
        // What is masked with an infinity.
        (
            Exact,
            "k = full([3, 4], -inf) : f32[3,4]; r = where(a, x, k)",
            "k = full([3, 4], -inf) : f32[3,4]; r = where(b, y, k)",
            false,
        ),
        (
            Contraction,
            "k = full([3, 4], -inf) : f32[3,4]; r = where(a, x, k)",
            "k = full([3, 4], -inf) : f32[3,4]; r = where(b, y, k)",
            false,
        ),
        (
            Exact,
            "k = full([3, 4], nan) : f32[3,4]; r = where(a, x, k)",
            "k = full([3, 4], nan) : f32[3,4]; r = where(b, y, k)",
            false,
        ),
        (
            Contraction,
            "k = full([3, 4], -inf) : f32[3,4]; w = where(a, x, k); e = exp(w); r = sum(e, [1])",
            "e = exp(x); z0 = full([], 0.0) : f32[]; w = where(a, e, z0); r = sum(w, [1])",
            true,
        ),
        (
            Contraction,
            "k = full([3, 4], -inf) : f32[3,4]; w = where(a, x, k); e = exp(w); r = sum(e, [1])",
            "e = exp(x); z0 = full([], 0.0) : f32[]; w = where(b, e, z0); r = sum(w, [1])",
            false,
        ),
        (
            Contraction,
            "k = full([3, 4], -inf) : f32[3,4]; w = where(a, x, k); m = amax(w, [1], True); s = sub(w, m); e = exp(s); t = sum(e, [1], True); r = div(e, t)",
            "k = full([3, 4], -inf) : f32[3,4]; n = logical_not(a); w = where(n, k, x); m = amax(w, [1], True); s = sub(w, m); e = exp(s); t = sum(e, [1], True); q = reciprocal(t); r = mul(e, q)",
            true,
        ),
        // Three values of which two pairs are equal, where the third pair is not compared.
        (
            Exact,
            "c = eq(x, y); d = eq(y, z); e = logical_and(c, d); q = sub(x, z); m = abs(q); p = mul(m, 5.0); p1 = add(p, 1.0); p2 = add(p, 2.0); r = where(e, p1, p2)",
            "c = eq(x, y); d = eq(y, z); e = logical_and(c, d); q = sub(x, z); m = abs(q); p = mul(m, 5.0); p1 = add(p, 3.0); p2 = add(p, 2.0); r = where(e, p1, p2)",
            false,
        ),
        (
            Exact,
            "m = clamp_min(i, 0); c = lt_scalar(i, 1); d = gt_scalar(i, -1); e = logical_and(c, d); p = add_scalar(m, 5); q = add_scalar(m, 6); r = where(e, p, q)",
            "m = clamp_min(i, 0); c = lt_scalar(i, 1); d = gt_scalar(i, -1); e = logical_and(c, d); p = add_scalar(m, 7); q = add_scalar(m, 6); r = where(e, p, q)",
            false,
        ),
        (Exact, "d = div(x, x); r = isnan(d)", "r = isnan(x)", false),
        (Exact, "d = sub(x, x); r = isnan(d)", "r = isnan(x)", false),
        (Exact, "d = add(x, 1.0); r = isnan(d)", "r = isnan(x)", true),
        (
            Contraction,
            "d = sub(x, y); m = abs(d); l = log(m); p = mul(l, 0.0); r = add(p, y)",
            "r = clone(y)",
            false,
        ),
        (
            Reassociation,
            "d = sub(x, y); m = abs(d); l = log(m); r = mul(l, d)",
            "d = sub(x, y); m = abs(d); l = log(m); p = mul(l, d); c = eq(x, y); z0 = full([], 0.0) : f32[]; r = where(c, z0, p)",
            false,
        ),
        (
            Contraction,
            "d = mul(x, 0.01); e = add(d, 2.0); l = log(e); k = full([3, 4], inf) : f32[3,4]; r = maximum(l, k)",
            "r = full([3, 4], inf) : f32[3,4]",
            false,
        ),
        (
            Contraction,
            "f = mul(x, 0.01); t = aten.acosh.default(f) : f32[3,4]; g = mul(t, 0.0); r = add(g, y)",
            "r = clone(y)",
            false,
        ),
        (
            Contraction,
            "c = eq_scalar(x, 0.0); q = div(y, x); r = where(c, q, z)",
            "c = eq_scalar(x, 0.0); q = div(z, x); r = where(c, q, z)",
            false,
        ),
        (
            Contraction,
            "d = sub(x, y); q = div(z, d); g = tanh(q); c = eq(x, y); r = where(c, g, z)",
            "d = sub(x, y); q = div(x, d); g = tanh(q); c = eq(x, y); r = where(c, g, z)",
            false,
        ),
        (
            Exact,
            "p = mul(x, 3.0); e = eq_scalar(p, 0.0); m = abs(x); p1 = add(m, 1.0); p2 = add(m, 2.0); r = where(e, p1, p2)",
            "p = mul(x, 3.0); e = eq_scalar(p, 0.0); m = abs(x); p1 = add(m, 3.0); p2 = add(m, 2.0); r = where(e, p1, p2)",
            false,
        ),
        (
            Exact,
            "o = full([3, 4], 5.0) : f32[3,4]; q = div(o, y); e = eq_scalar(q, 0.0); g = gt_scalar(y, 0.0); h = logical_and(e, g); r = where(h, x, z)",
            "r = clone(z)",
            false,
        ),
        (
            Exact,
            "o = full([3, 4], 1.0) : f32[3,4]; q = div(o, x); e = gt_scalar(q, 0.0); r = where(e, y, z)",
            "c = gt_scalar(x, 0.0); r = where(c, y, z)",
            false,
        ),
        (
            ZeroSign,
            "c = eq(x, y); p = reciprocal(x); r = where(c, p, z)",
            "c = eq(x, y); p = reciprocal(y); r = where(c, p, z)",
            false,
        ),
        (
            ZeroSign,
            "c = eq_scalar(x, 0.0); p = reciprocal(x); r = where(c, p, y)",
            "c = eq_scalar(x, 0.0); p = full([3, 4], inf) : f32[3,4]; r = where(c, p, y)",
            false,
        ),
        (Exact, "m = abs(x); c = eq(m, x); r = where(c, x, m)", "r = abs(x)", false),
        (
            Exact,
            "m = mul(x, 0.0); n = abs(m); g = gt_scalar(x, 0.0); c = eq(y, z); d = logical_and(c, g); p = add(n, 5.0); q = add(n, 6.0); r = where(d, p, q)",
            "m = mul(x, 0.0); n = abs(m); g = gt_scalar(x, 0.0); c = eq(y, z); d = logical_and(c, g); p = add(n, 7.0); q = add(n, 6.0); r = where(d, p, q)",
            false,
        ),
        (
            Exact,
            "c = gt_scalar(x, 0.0); f = aten._to_copy.default(c, dtype=f32) : f32[3,4]; m = mul(x, f); k = clamp_min(m, 1.0); r = abs(k)",
            "m = relu(x); k = clamp_min(m, 1.0); r = abs(k)",
            false,
        ),
        (ZeroSign, "s = sign(x); m = maximum(s, x); r = minimum(s, m)", "r = sign(x)", false),
        (
            Contraction,
            "k = full([3, 4], -1.0) : f32[3,4]; l = sqrt(k); c = ge(l, y); d = eq(y, z); e = logical_and(c, d); r = where(e, x, y)",
            "k = full([3, 4], -1.0) : f32[3,4]; l = sqrt(k); g = lt(l, y); c = logical_not(g); d = eq(y, z); e = logical_and(c, d); r = where(e, x, y)",
            false,
        ),
        // A sum of numbers is rounded, so its parts are not tried apart.
        (
            Exact,
            "n = full([3, 4], 0.0) : f32[3,4]; k = full([3, 4], 16777216.0) : f32[3,4]; h = full([3, 4], 3.0) : f32[3,4]; p = where(a, k, n); q = where(b, h, n); s = add(p, q); r = mul(s, 3.0)",
            "n = full([3, 4], 0.0) : f32[3,4]; k = full([3, 4], 16777216.0) : f32[3,4]; h = full([3, 4], 3.0) : f32[3,4]; p = where(a, k, n); q = where(b, h, n); p3 = mul(p, 3.0); q3 = mul(q, 3.0); r = add(p3, q3)",
            false,
        ),
        // What is no number is none for most functions.
        (
            Exact,
            "d = sub(x, y); p = aten.pow.Tensor_Scalar(d, 0.0) : f32[3,4]; c = isnan(d); r = where(c, p, x)",
            "d = sub(x, y); c = isnan(d); r = where(c, d, x)",
            false,
        ),
        (
            Exact,
            "d = sub(x, y); p = sign(d); c = isnan(d); r = where(c, p, x)",
            "d = sub(x, y); c = isnan(d); r = where(c, d, x)",
            false,
        ),
        (
            Exact,
            "d = sub(x, y); p = exp(d); c = isnan(d); r = where(c, p, x)",
            "d = sub(x, y); c = isnan(d); r = where(c, d, x)",
            true,
        ),
        (
            Contraction,
            "d = mul(x, 0.01); e = add(d, 2.0); t = aten.acosh.default(d) : f32[3,4]; m = maximum(t, y); r = minimum(y, m)",
            "r = clone(y)",
            false,
        ),
        (Reassociation, "l = log(x); m = maximum(l, y); r = minimum(y, m)", "r = clone(y)", false),
        (
            Contraction,
            "m = abs(x); d = div(y, x); e = sub(d, d); r = add(m, e)",
            "n = neg(x); r = abs(n)",
            false,
        ),
        (
            Contraction,
            "m = abs(x); d = div(y, x); r = mul(m, d)",
            "n = neg(x); m = abs(n); d = reciprocal(x); e = mul(y, d); r = mul(m, e)",
            true,
        ),
        (Exact, "n = floor(x); r = round(n)", "r = floor(x)", true),
        (Exact, "n = sub(x, y); p = neg(n); q = trunc(p); r = neg(q)", "n = sub(x, y); r = trunc(n)", true),
        (Exact, "n = sub(x, y); q = trunc(n); r = neg(q)", "n = sub(x, y); r = trunc(n)", false),
        (Exact, "n = sub(y, x); q = trunc(n); r = neg(q)", "n = sub(x, y); r = trunc(n)", false),
        (
            Exact,
            "p = neg(x); q = aten.fmod.Scalar(p, 3.0) : f32[3,4]; r = neg(q)",
            "r = aten.fmod.Scalar(x, 3.0) : f32[3,4]",
            true,
        ),
        (
            Exact,
            "p = neg(x); r = aten.fmod.Scalar(p, 3.0) : f32[3,4]",
            "r = aten.fmod.Scalar(x, 3.0) : f32[3,4]",
            false,
        ),
        (ZeroSign, "s = slice(x, 1, 0, 1); r = sum(s, [1], True)", "r = slice(x, 1, 0, 1)", true),
        (Exact, "s = slice(x, 1, 0, 1); r = sum(s, [1], True)", "r = slice(x, 1, 0, 1)", false),
        (Exact, "n = round(x); r = floor(n)", "r = floor(x)", false),
        (
            Contraction,
            "l = log(x); c = gt_scalar(l, 0.0); r = where(c, y, z)",
            "c = gt_scalar(x, 1.0); r = where(c, y, z)",
            false,
        ),
        (
            Contraction,
            "l = log(x); c = gt_scalar(l, 0.0); r = where(c, y, z)",
            "l = log(x); c = le_scalar(l, 0.0); r = where(c, z, y)",
            false,
        ),
    ] {
        let found = alike(level, &inputs, before, after);
        assert_eq!(found == Alike::Same, holds, "{level}: {before} / {after}: {found:?}");
    }
}

#[test]
fn what_is_not_covered_is_open() {
    let (before, after) = ("r = aten.erf.default(x) : f32[3,4]", "r = aten.lgamma.default(x) : f32[3,4]");
    let found = alike(Numerics::Contraction, XYZ, before, after);
    assert!(matches!(found, Alike::Open(_)), "{before} / {after}: {found:?}");
}

#[test]
fn roundings_are_seen() {
    let small = "x = input : bf16[4]\ny = input : bf16[4]\nz = input : bf16[4]";
    let sums =
        alike(Numerics::Reassociation, small, "n = add(x, y); r = add(n, z)", "n = add(y, z); r = add(x, n)");
    assert_eq!(sums, Alike::Same);
    let wider = "p = aten._to_copy.default(x, dtype=f32) : f32[4]; q = aten._to_copy.default(y, dtype=f32) : f32[4]; n = add(p, q); r = aten._to_copy.default(n, dtype=bf16) : bf16[4]";
    let cast = alike(Numerics::Contraction, small, "n = add(x, y); r = mul(n, 1.0)", wider);
    assert!(matches!(cast, Alike::Open(_)), "{cast:?}");
    // A sum of small integers wraps before it is cast.
    let bytes = "x = input : i8[4]\ny = input : i8[4]";
    let found = alike(
        Numerics::Contraction,
        bytes,
        "n = add(x, y); r = aten._to_copy.default(n, dtype=f32) : f32[4]",
        "p = aten._to_copy.default(x, dtype=f32) : f32[4]; q = aten._to_copy.default(y, dtype=f32) : f32[4]; r = add(p, q)",
    );
    assert_ne!(found, Alike::Same);
}
