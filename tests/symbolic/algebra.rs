//! Calls that are written differently: what commutes is the same; what may be the same, and what is not, is left open.

use super::support::{assert_equal, assert_open, judge};
use graph_oracle::semantics::symbolic::Comparison;

const HEAD: &str = "x = input: f32[4, 4]\ny = input: f32[4, 4]\nz = input: f32[4, 4]\nb = input: f32[4]\n";

fn judged(before: &str, after: &str) -> Comparison {
    judge(&format!("{HEAD}{before}"), &format!("{HEAD}{after}"))
}

/// Neither is proved to be the other.
#[track_caller]
fn assert_apart(before: &str, after: &str) {
    assert_open(&judged(before, after), &[]);
    assert_open(&judged(after, before), &[]);
}

#[test]
fn operands_of_sums_and_products_commute() {
    for op in ["add", "mul"] {
        let sum =
            |a: &str, b: &str| format!("s = {op}({a}, {b}): f32[4, 4]\nr = relu(s): f32[4, 4]\noutput r");
        assert_equal(&judged(&sum("x", "y"), &sum("y", "x")));
        assert_equal(&judged(&sum("x", "b"), &sum("b", "x")));
        for (a, b) in [("x", "z"), ("z", "y"), ("x", "x"), ("y", "y"), ("z", "z")] {
            assert_apart(&sum("x", "y"), &sum(a, b));
        }
    }
    let difference = |a: &str, b: &str| format!("s = sub({a}, {b}): f32[4, 4]\noutput s");
    assert_apart(&difference("x", "y"), &difference("y", "x"));
    // Both operands are others, and make up for one another.
    let negatives = "n = neg(y): f32[4, 4]\nm = neg(x): f32[4, 4]\n";
    assert_apart(&difference("x", "y"), &format!("{negatives}{}", difference("n", "m")));
    let scaled = |a: &str, b: &str| format!("s = add({a}, {b}, alpha=2): f32[4, 4]\noutput s");
    assert_apart(&scaled("x", "y"), &scaled("y", "x"));
}

/// Parts of the operands change places: element by element the sums are the same.
#[test]
fn operands_commute_element_by_element() {
    let sum = |a: [&str; 2], b: [&str; 2]| {
        format!(
            "p = cat([{}, {}], 0): f32[8, 4]\nq = cat([{}, {}], 0): f32[8, 4]\ns = add(p, q): f32[8, 4]\noutput s",
            a[0], a[1], b[0], b[1]
        )
    };
    let right = sum(["x", "y"], ["y", "z"]);
    assert_apart(&right, &sum(["y", "y"], ["x", "z"]));
    assert_equal(&judged(&sum(["x", "y"], ["y", "x"]), &sum(["y", "x"], ["x", "y"])));
    assert_apart(&right, &sum(["x", "z"], ["y", "z"]));
}

/// `x * 1` and its like are `x`, wherever it is read and however the 1 is written.
#[test]
fn what_gives_back_its_operand_is_no_call() {
    let ones = "o = full([4, 4], 1.0, dtype=f32): f32[4, 4]\n";
    for call in [
        "mul(m, 1.0)",
        "mul(m, 1)",
        "mul(m, o)",
        "mul(o, m)",
        "div(m, 1)",
        "div(m, o)",
        "sub(m, 0)",
        "sub(m, 0.0, alpha=1)",
        "add(m, -0.0)",
        "pow(m, 1)",
    ] {
        for reader in ["relu(k)", "mul(k, y)", "mm(k, y)", "add(k, m)"] {
            let right = reader.replace('k', "m");
            assert_equal(&judged(
                &format!("{ones}m = mul(x, z): f32[4, 4]\nr = {right}: f32[4, 4]\noutput r"),
                &format!(
                    "{ones}m = mul(x, z): f32[4, 4]\nk = {call}: f32[4, 4]\nr = {reader}: f32[4, 4]\noutput r"
                ),
            ));
        }
    }
    let whole = |lines: &str| format!("n = input: i64[4]\nh = input: bf16[4]\n{lines}");
    for (one, other) in [
        ("k = add(n, 0): i64[4]\noutput k", "output n"),
        ("k = add(n, 0, alpha=3): i64[4]\noutput k", "output n"),
        ("k = mul(n, 1.0): f32[4]\noutput k", "k = cast(n, f32): f32[4]\noutput k"),
        ("k = div(n, 1): f32[4]\noutput k", "k = cast(n, f32): f32[4]\noutput k"),
        ("k = mul(h, 1.0): bf16[4]\noutput k", "output h"),
        ("k = mul_(h, 1): bf16[4]\noutput k", "k = mul_(h, 1.0): bf16[4]\noutput k"),
        ("k = mul(h, 3.0): bf16[4]\noutput k", "k = mul(h, 3): bf16[4]\noutput k"),
    ] {
        assert_equal(&judge(&whole(one), &whole(other)));
    }
    // Another dtype, and numbers that change something.
    for wrong in ["mul(x, 1.5)", "div(1, x)", "sub(0, x)", "add(x, 1)"] {
        let comparison = judged("output x", &format!("k = {wrong}: f32[4, 4]\noutput k"));
        assert!(!matches!(comparison, Comparison::Equal(_)), "{wrong}");
    }
    let comparison = judge(&whole("output n"), &whole("k = mul(n, 1.0): f32[4]\noutput k"));
    assert_open(&comparison, &["dtype float32"]);
}

/// More inputs than fit a few words of bits.
#[test]
fn any_number_of_inputs_is_told_apart() {
    let mut lines: String = (0..1500).map(|i| format!("x{i} = input: f32[2]\n")).collect();
    lines += "a = exp(x1400): f32[2]\nb = sin(x1450): f32[2]\n";
    let with = |rest: &str| {
        judge(&format!("{lines}{}", "s = sub(a, b): f32[2]\noutput s"), &format!("{lines}{rest}"))
    };
    assert_open(&with("s = sub(b, a): f32[2]\noutput s"), &[]);
    assert_equal(&with("s = sub(a, b): f32[2]\noutput s"));
}

/// What an operator selects by data is not known; but on what it is not given it does not depend.
#[test]
fn what_is_selected_by_data_depends_on_nothing_else() {
    let head = "w = input: f32[8, 4]\ni = input: i64[4]\nx = input: f32[4, 4]\nj = input: i64[4]\n";
    let with = |rest: &str| format!("{head}e = embedding(w, i): f32[4, 4]\ns = add(e, x): f32[4, 4]\n{rest}");
    assert_open(&judge(&with("output (e, s)"), &with("output (s, e)")), &[]);
    // Selected by another index it may be the same.
    let other = with("o = embedding(w, j): f32[4, 4]\noutput o");
    assert_open(&judge(&with("output e"), &other), &[]);
}

/// A sum over ranks is no average; of what all ranks share, the largest and the average are one.
#[test]
fn other_reductions_are_other_values() {
    let reduced = |op: &str| {
        format!("x = input: f32[4]\nr = all_reduce(x, \"{op}\", g): f32[4]\nw = wait(r): f32[4]\noutput w")
    };
    for (one, other) in [("sum", "avg"), ("sum", "max"), ("max", "avg"), ("min", "max")] {
        assert_open(&judge(&reduced(one), &reduced(other)), &[]);
    }
    let again = |op: &str| {
        let first = "x = input: f32[4]\nr = all_reduce(x, \"sum\", g): f32[4]\nw = wait(r): f32[4]\n";
        format!("{first}q = all_reduce(w, \"{op}\", g): f32[4]\nv = wait(q): f32[4]\noutput v")
    };
    assert_open(&judge(&again("sum"), &again("avg")), &[]);
}

/// Rows that are turned are followed element by element.
#[test]
fn rolls_are_followed() {
    let rolled = |call: &str| format!("r = {call}: f32[4, 4]\noutput r");
    let cut = "p = slice(x, 0, 3, 4): f32[1, 4] offset 12\nq = slice(x, 0, 0, 3): f32[3, 4]\n";
    assert_equal(&judged(
        &rolled("roll(x, [1], [0])"),
        &format!("{cut}c = cat([p, q], 0): f32[4, 4]\noutput c"),
    ));
    assert_equal(&judged(&rolled("roll(x, [-3], [0])"), &rolled("roll(x, [1], [0])")));
    assert_equal(&judged(&rolled("roll(x, [1, 4], [0, 1])"), &rolled("roll(x, [5, 0], [0, 1])")));
    assert_equal(&judged(&rolled("roll(x, [4], [])"), &rolled("roll(x, [1], [0])")));
    assert_apart(&rolled("roll(x, [1], [0])"), &rolled("roll(x, [1], [1])"));
    assert_apart(&rolled("roll(x, [1], [0])"), "output x");
}

/// What holds of numbers need not hold of floats: not proved, and not convicted.
#[test]
fn laws_of_numbers_are_not_known() {
    assert_apart("s = mul(x, 3.0): f32[4, 4]\noutput s", "output x");
    // -0.0 + 0.0 is 0.0.
    assert_apart("s = add(x, 0.0): f32[4, 4]\noutput s", "output x");
    assert_apart(
        "p = mul(x, 2.0): f32[4, 4]\ns = mul(p, 3.0): f32[4, 4]\noutput s",
        "s = mul(x, 6.0): f32[4, 4]\noutput s",
    );
    assert_apart(
        "p = mul(x, y): f32[4, 4]\ns = mul(p, 3.0): f32[4, 4]\noutput s",
        "p = mul(x, 3.0): f32[4, 4]\ns = mul(p, y): f32[4, 4]\noutput s",
    );
    assert_apart(
        "m = mm(x, y): f32[4, 4]\ns = add(m, b): f32[4, 4]\noutput s",
        "s = addmm(b, x, y): f32[4, 4]\noutput s",
    );
    assert_apart(
        "p = add(x, y): f32[4, 4]\ns = add(p, z): f32[4, 4]\noutput s",
        "p = add(y, z): f32[4, 4]\ns = add(x, p): f32[4, 4]\noutput s",
    );
    assert_apart(
        "p = add(x, y): f32[4, 4]\ns = mul(p, z): f32[4, 4]\noutput s",
        "p = mul(x, z): f32[4, 4]\nq = mul(y, z): f32[4, 4]\ns = add(p, q): f32[4, 4]\noutput s",
    );
    assert_apart(
        "m = mm(x, y): f32[4, 4]\nn = mul(m, 3.0): f32[4, 4]\ns = mm(n, z): f32[4, 4]\noutput s",
        "m = mm(x, y): f32[4, 4]\ns = mm(m, z): f32[4, 4]\noutput s",
    );
}

/// Functions with breaks, too, may leave a value as it is.
#[test]
fn what_may_be_an_identity_is_not_known() {
    let positive = "r = relu(x): f32[4, 4]\n";
    for wrapped in ["s = mul(r, 3.0)", "s = relu(r)", "s = abs(r)"] {
        assert_apart(
            &format!("{positive}{wrapped}: f32[4, 4]\nm = mm(s, y): f32[4, 4]\noutput m"),
            &format!("{positive}m = mm(r, y): f32[4, 4]\noutput m"),
        );
    }
    let product = "m = mm(x, y): f32[4, 4]\n";
    assert_apart(&format!("{product}s = relu(m): f32[4, 4]\noutput s"), &format!("{product}output m"));
}

/// What is not computed may give back what it takes: views without a rule, reductions over a dimension of size 1, and
/// the larger of a value and itself. Of other inputs it is another value.
#[test]
fn what_may_give_back_its_operand_is_not_known() {
    let plain = "v = add(x, 0.5): f32[4, 4]
f = mul(v, y): f32[4, 4]
m = mm(f, y): f32[4, 4]
output m";
    for kept in [
        "k = aten.flatten.using_ints(f, 0, 0): f32[4, 4]",
        "k = aten.expand_as.default(f, f): f32[4, 4]",
        "u = unsqueeze(f, 0): f32[1, 4, 4]\nk = amax(u, [0]): f32[4, 4]",
        "u = unsqueeze(f, 0): f32[1, 4, 4]\nk = sum(u, [0]): f32[4, 4]",
        "k = aten.tril.default(f, 10): f32[4, 4]",
        "k = maximum(f, f): f32[4, 4]",
    ] {
        assert_apart(plain, &plain.replace("m = mm(f", &format!("{kept}\nm = mm(k")));
        let other = kept.replace("(f", "(z").replace(", f)", ", z)");
        assert_apart(plain, &plain.replace("m = mm(f", &format!("{other}\nm = mm(k")));
    }
    // What is negated in two ways is what it was.
    let product = "a = mul(x, 3.0): f32[4, 4]\nf = mul(x, y): f32[4, 4]\nm = mul(a, f): f32[4, 4]\noutput m";
    let twice = "n = neg(f): f32[4, 4]\nk = mul(n, -1.0): f32[4, 4]\nm = mul(a, k)";
    assert_equal(&judged(product, &product.replace("m = mul(a, f)", twice)));
    // Negated twice it is what it was.
    let undone = twice.replace("mul(n, -1.0)", "neg(n)");
    assert_equal(&judged(product, &product.replace("m = mul(a, f)", &undone)));
}

/// A dimension counted from the last one is the same dimension.
#[test]
fn dimensions_are_counted_from_both_ends() {
    for (call, other, wrong) in [
        ("sum(x, [1])", "sum(x, [-1])", "sum(x, [-2])"),
        ("amax(x, [0])", "amax(x, [-2])", "amax(x, [-1])"),
        ("mean(x, [1])", "mean(x, [-1])", "mean(x, [0])"),
    ] {
        let text = |call: &str| format!("s = {call}: f32[4]\noutput s");
        assert_equal(&judged(&text(call), &text(other)));
        assert_apart(&text(call), &text(wrong));
    }
    let text = |dim: i64| format!("s = aten._softmax.default(x, {dim}, False): f32[4, 4]\noutput s");
    assert_equal(&judged(&text(1), &text(-1)));
    assert_apart(&text(1), &text(0));
}

/// Long chains of sums, of which one product has another operand.
#[test]
fn sums_of_many_are_compared_term_by_term() {
    let chain = |first: &str, second: &str| {
        let mut lines = format!("m0 = mm(x, {first}): f32[4, 4]\ns0 = add(x, m0): f32[4, 4]\n");
        for i in 1..12 {
            let with = if i == 6 { second } else { "y" };
            lines += &format!("m{i} = mm(s{}, {with}): f32[4, 4]\n", i - 1);
            lines += &format!("s{i} = add(s{}, m{i}): f32[4, 4]\n", i - 1);
        }
        lines + "output s11"
    };
    assert_apart(&chain("y", "z"), &chain("z", "y"));
    assert_equal(&judged(&chain("y", "z"), &chain("y", "z")));
}

/// A value that is made of another input is another one, whatever was done to it.
#[test]
fn other_inputs_are_other_values() {
    let chain = |from: &str, calls: &[&str]| {
        let mut lines = String::new();
        let mut last = from.to_string();
        for (i, call) in calls.iter().enumerate() {
            lines += &format!("c{i} = {call}({last}): f32[4, 4]\n");
            last = format!("c{i}");
        }
        lines + &format!("output {last}")
    };
    assert_apart(&chain("x", &["relu", "neg", "exp"]), &chain("y", &["exp", "neg"]));
    assert_apart(&chain("x", &["relu"]), "output y");
    // Elements that are made of the same input, be it that others are not.
    let cut = |from: &str| {
        format!(
            "c = cat([{from}], 0): f32[8, 4]\nr = relu(c): f32[8, 4]\nh = slice(r, 0, 0, 4): f32[4, 4]\nk = clone(h): f32[4, 4]\noutput k"
        )
    };
    assert_apart(&cut("x, y"), &cut("z, y"));
}
