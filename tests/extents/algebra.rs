//! Calls that are written differently: what commutes is the same, what may be the same is not convicted, and what depends on
//! other inputs is.

use super::support::{assert_convicted, assert_equal, judge};
use graph_oracle::semantics::extents::Comparison;

const HEAD: &str = "x = input: f32[4, 4]\ny = input: f32[4, 4]\nz = input: f32[4, 4]\nb = input: f32[4]\n";

fn judged(before: &str, after: &str) -> Comparison {
    judge(&format!("{HEAD}{before}"), &format!("{HEAD}{after}"))
}

#[track_caller]
fn assert_unknown(before: &str, after: &str) {
    for (one, other) in [(before, after), (after, before)] {
        let comparison = judged(one, other);
        assert!(matches!(comparison, Comparison::Unknown(_)), "{one}\n{other}\n{comparison:?}");
    }
}

#[track_caller]
fn assert_differ(before: &str, after: &str) {
    assert_convicted(&judged(before, after), &[]);
    assert_convicted(&judged(after, before), &[]);
}

#[test]
fn operands_of_sums_and_products_commute() {
    for op in ["add", "mul"] {
        let sum =
            |a: &str, b: &str| format!("s = {op}({a}, {b}): f32[4, 4]\nr = relu(s): f32[4, 4]\noutput r");
        assert_equal(&judged(&sum("x", "y"), &sum("y", "x")));
        assert_equal(&judged(&sum("x", "b"), &sum("b", "x")));
        for (a, b) in [("x", "z"), ("z", "y"), ("x", "x"), ("y", "y"), ("z", "z")] {
            assert_differ(&sum("x", "y"), &sum(a, b));
        }
    }
    let difference = |a: &str, b: &str| format!("s = sub({a}, {b}): f32[4, 4]\noutput s");
    assert_differ(&difference("x", "y"), &difference("y", "x"));
    let scaled = |a: &str, b: &str| format!("s = add({a}, {b}, alpha=2): f32[4, 4]\noutput s");
    assert_differ(&scaled("x", "y"), &scaled("y", "x"));
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
    assert!(!matches!(judged(&right, &sum(["y", "y"], ["x", "z"])), Comparison::Different(_)));
    assert!(!matches!(
        judged(&sum(["x", "y"], ["y", "x"]), &sum(["y", "x"], ["x", "y"])),
        Comparison::Different(_)
    ));
    assert_differ(&right, &sum(["x", "z"], ["y", "z"]));
}

/// What holds of numbers need not hold of floats: not proved, and not convicted.
#[test]
fn laws_of_numbers_are_not_known() {
    assert_unknown("s = mul(x, 1.0): f32[4, 4]\noutput s", "output x");
    assert_unknown(
        "m = mm(x, y): f32[4, 4]\ns = add(m, b): f32[4, 4]\noutput s",
        "s = addmm(b, x, y): f32[4, 4]\noutput s",
    );
    assert_unknown(
        "p = add(x, y): f32[4, 4]\ns = add(p, z): f32[4, 4]\noutput s",
        "p = add(y, z): f32[4, 4]\ns = add(x, p): f32[4, 4]\noutput s",
    );
    assert_unknown(
        "p = add(x, y): f32[4, 4]\ns = mul(p, z): f32[4, 4]\noutput s",
        "p = mul(x, z): f32[4, 4]\nq = mul(y, z): f32[4, 4]\ns = add(p, q): f32[4, 4]\noutput s",
    );
    assert_unknown(
        "m = mm(x, y): f32[4, 4]\nn = mul(m, 1.0): f32[4, 4]\ns = mm(n, z): f32[4, 4]\noutput s",
        "m = mm(x, y): f32[4, 4]\ns = mm(m, z): f32[4, 4]\noutput s",
    );
}

/// Functions with breaks, too, may leave a value as it is.
#[test]
fn what_may_be_an_identity_is_not_known() {
    let positive = "r = relu(x): f32[4, 4]\n";
    for wrapped in ["s = mul(r, 1.0)", "s = relu(r)", "s = abs(r)"] {
        assert_unknown(
            &format!("{positive}{wrapped}: f32[4, 4]\nm = mm(s, y): f32[4, 4]\noutput m"),
            &format!("{positive}m = mm(r, y): f32[4, 4]\noutput m"),
        );
    }
    let product = "m = mm(x, y): f32[4, 4]\n";
    assert_unknown(&format!("{product}s = relu(m): f32[4, 4]\noutput s"), &format!("{product}output m"));
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
    assert_differ(&chain("y", "z"), &chain("z", "y"));
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
    assert_differ(&chain("x", &["relu", "neg", "exp"]), &chain("y", &["exp", "neg"]));
    assert_differ(&chain("x", &["relu"]), "output y");
    // Elements that are made of the same input, be it that others are not.
    let cut = |from: &str| {
        format!(
            "c = cat([{from}], 0): f32[8, 4]\nr = relu(c): f32[8, 4]\nh = slice(r, 0, 0, 4): f32[4, 4]\nk = clone(h): f32[4, 4]\noutput k"
        )
    };
    assert!(!matches!(judged(&cut("x, y"), &cut("x, z")), Comparison::Different(_)));
    assert_differ(&cut("x, y"), &cut("z, y"));
}
