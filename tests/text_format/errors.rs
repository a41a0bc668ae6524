//! Error messages, as a person sees them, and inputs that are bad in size rather than in kind.

use super::snapshots;
use graph_oracle::format::text;

/// The rendered errors of `source`.
fn errors(source: &str) -> String {
    match text::parse(source) {
        Ok(case) => panic!("this parses:\n{case}"),
        Err(errors) => errors.render(Some("case.graph")),
    }
}

#[test]
fn messages() {
    let sources: &[(&str, &str)] = &[
        ("an empty file", ""),
        ("nothing but comments", "# to be written\n"),
        ("a bracket left open", "x = input : f32[4]\ny = relu(x : f32[4]\nz = relu(y) : f32[4]\n"),
        (
            "a bracket left open at the end of a line",
            "x = input : f32[4]\ny = relu(x\nz = relu(y) : f32[4]\n",
        ),
        ("several errors", "x = input\ny = rellu(x) : f32[4]\nz = relu(y) : float32[4]\nexpect sounds\n"),
        ("a misspelt statement", "wrld 4 ranks\n"),
        ("an unknown operator", "y = add_mul_sub(x) : f32[4]\n"),
        ("a nested call", "y = relu(wait(x)) : f32[4]\n"),
        ("an item inside arguments", "y = relu(x[0]) : f32[4]\n"),
        ("no type", "x = input\n"),
        ("no type, and an input that is not known yet", "y = relu(x)\nx = input : f32[4]\n"),
        ("no type, and arguments that do not fit", "x = input : f32[4]\ny = view(x, [3])\nz = relu(x, x)\n"),
        ("no type, and no rule", "x = input : f32[4]\ny = mylib.f.default(x)\n"),
        ("a string without end", "y = relu(\"abc) : f32[4]\n"),
        ("an unknown escape", "y = relu(\"a\\qc\") : f32[4]\n"),
        ("a malformed number", "x = input : f32[4x]\n"),
        ("a size beyond 64 bits", "x = input : f32[9223372036854775808]\n"),
        ("a float beyond its range", "y = relu(1e999) : f32[4]\n"),
        ("a positional argument behind a keyword", "y = relu(a=1, x) : f32[4]\n"),
        ("something behind the statement", "x = input : f32[4] f32\n"),
        ("strides of another rank", "x = input : f32[4, 4] strides [1]\n"),
        ("an undeclared symbol", "x = input : f32[s0]\n"),
        ("strides that depend on a symbol", "symbol s0 = 4\nx = input : f32[4, s0]\n"),
        ("an ordering edge to nowhere", "x = input : f32[4] after y\n"),
        ("names for another number of results", "x = input : f32[4]\na, b = relu(x) : (f32[4])\n"),
        ("names for one result", "x = input : f32[4]\na, b = relu(x) : f32[4]\n"),
        ("a world behind a node", "x = input : f32[4]\nworld 4 ranks\n"),
        ("two passes", "pass repair\npass repair\n"),
        ("an option twice", "pass bucketing cap=1 cap=2\n"),
        ("an empty range of ranks", "groups dp = [3 to 1]\n"),
        ("a negative rank", "groups dp = [0 -1]\n"),
        ("too many ranks", "groups dp = [0 to 4000000000]\n"),
        ("an unknown tag", "x = input : f32[4] {colour: red}\n"),
        ("facts that are not JSON", "facts a.b '{'\n"),
        ("an unknown section", "x = input : f32[4]\n--- later\n"),
        ("a section twice", "x = input : f32[4]\n--- after\n--- after\n"),
        ("an unrepaired graph alone", "x = input : f32[4]\n--- unrepaired rank 1\n"),
        ("sections with and without a rank", "x = input : f32[4]\n--- after\n--- after rank 1\n"),
        ("a tab and a wide character", "x =\tinput : ü32[4]\n"),
        ("an expectation without a verdict", "expect K1\n"),
        ("a body without an end", "x = input : f32[4]\nbody b\ny = input : f32[4]\n--- after\n"),
        ("an end without a body", "x = input : f32[4]\nend\n"),
        ("a body twice", "body b\nend\nbody b\nend\n"),
        ("a world in a body", "body b\nworld 4 ranks\nend\n"),
        ("no rule", "expect K1 violates\n"),
    ];
    let mut text = String::new();
    for (what, source) in sources {
        text.push_str(&format!("## {what}\n{}\n", errors(source)));
    }
    snapshots().bind(|| insta::assert_snapshot!("text_errors", text));
}

#[test]
fn a_byte_that_is_not_utf8() {
    let errors = text::parse(b"x = input : f32[4]\ny = relu(\xff)\n").unwrap_err();
    assert_eq!(errors.to_string(), "2:10: a byte that is not UTF-8");
}

#[test]
fn deep_nesting_is_an_error() {
    let source = format!("y = relu({}", "[".repeat(100_000));
    let errors = text::parse(&source).unwrap_err();
    assert_eq!(errors.errors[0].message, "brackets nested more than 256 deep");
    let source = format!("x = input : {}", "(".repeat(100_000));
    assert!(text::parse(&source).is_err());
    let source = format!("pass p a={}", "[".repeat(100_000));
    assert!(text::parse(&source).is_err());
    // Just below the limit all is well, printing included.
    let source = format!("y = relu({}{}) : f32[]\n", "[".repeat(255), "]".repeat(255));
    let case = text::parse(&source).unwrap();
    assert_eq!(text::parse(text::print(&case)).unwrap(), case);
}

#[test]
fn a_line_of_ten_megabytes() {
    let list = format!("\"{}\", ", "x".repeat(196)).repeat(50_000);
    let source = format!("x = input : f32[4]\ny = aten.cat.default([{list}]) : f32[4]\n");
    assert!(source.len() > 10_000_000 && source.lines().count() == 2);
    assert_eq!(text::parse(&source).unwrap().graph.len(), 2);
    // An error at its end is shown with its surroundings only.
    let source = format!("x = input : f32[4]\ny = aten.cat.default([{list} = ]) : f32[4]\n");
    let errors = text::parse(&source).unwrap_err();
    assert!(errors.render(None).len() < 1000, "{}", errors.render(None).len());
}

#[test]
fn what_is_wrong_with_a_graph_is_not_wrong_with_its_text() {
    for source in [
        "x = relu(y) : f32[4]\ny = input : f32[4]\n",
        "x = relu(nowhere) : f32[4]\n",
        "x = relu(x) : f32[4]\n",
        "x = input : f32[4]\nx = input : f32[4]\n",
        "x = input : f32[-4]\n",
        "world 2 ranks, groups dp = [0 0 7 | 1], dp = []\n",
        "x = input : f32[4]\ny = all_gather(x, 3, \"dp\", 1, 2, nothing=3) : f32[4]\n",
    ] {
        let case = text::parse(source).unwrap_or_else(|e| panic!("{}", e.render(None)));
        assert_eq!(text::parse(text::print(&case)).unwrap(), case, "{source}");
    }
}
