//! Printing and parsing undo each other, on random cases that use every form of the text.

use super::cases::{arbitrary_case, arbitrary_mutation};
use graph_oracle::case::Case;
use graph_oracle::format::text;
use proptest::prelude::*;

fn reparse(printed: &str) -> Case {
    text::parse(printed).unwrap_or_else(|e| panic!("{}\nof\n{printed}", e.render(None)))
}

/// Where two cases differ, for the message of a failed test.
fn difference(a: &Case, b: &Case) -> String {
    let graph = a.graph.difference(&b.graph).unwrap_or_default();
    format!(
        "graph: {graph}\npass: {:?} {:?}\nexpectations: {:?} {:?}\ncomments: {:?} {:?}",
        a.pass, b.pass, a.expectations, b.expectations, a.comments, b.comments
    )
}

/// Few cases, so that debug builds stay fast; `PROPTEST_CASES` asks for more. What fails goes into the corpus as
/// text, not into a file of seeds.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if default.cases == 256 { 64 } else { default.cases };
    ProptestConfig { cases, failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn parsing_what_was_printed_gives_the_case(case in arbitrary_case()) {
        let printed = text::print(&case);
        let parsed = reparse(&printed);
        prop_assert!(parsed == case, "{}\n{printed}", difference(&case, &parsed));
        prop_assert_eq!(text::print(&parsed), printed);
    }

    /// Whatever parses has a canonical text, and that text says the same.
    #[test]
    fn damaged_text_is_a_case_or_an_error(case in arbitrary_case(), edits in arbitrary_mutation()) {
        let mut bytes = text::print(&case).into_bytes();
        edits.apply(&mut bytes);
        match text::parse(&bytes) {
            Ok(parsed) => {
                let printed = text::print(&parsed);
                prop_assert!(reparse(&printed) == parsed, "{printed}");
                prop_assert_eq!(text::print(&reparse(&printed)), printed);
            }
            Err(errors) => check_errors(&bytes, &errors),
        }
    }

    #[test]
    fn any_bytes_are_a_case_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Err(errors) = text::parse(&bytes) {
            check_errors(&bytes, &errors);
        }
    }

    /// Tokens in any order reach further into the parser than bytes do.
    #[test]
    fn any_tokens_are_a_case_or_an_error(
        tokens in prop::collection::vec(prop::sample::select(TOKENS.to_vec()), 0..60),
    ) {
        let source = tokens.concat();
        match text::parse(&source) {
            Ok(parsed) => {
                let printed = text::print(&parsed);
                prop_assert!(reparse(&printed) == parsed, "{printed}");
            }
            Err(errors) => check_errors(source.as_bytes(), &errors),
        }
    }
}

const TOKENS: [&str; 62] = [
    "\n",
    "\n",
    "\n",
    "\n",
    "x",
    "y",
    "%x",
    " = ",
    " = ",
    "relu",
    "(",
    ")",
    "(x)",
    ",",
    ", ",
    "[",
    "]",
    "{",
    "}",
    ":",
    " : ",
    "f32[4]",
    "f32[4]",
    "f32",
    "input",
    "attr",
    "output",
    " output ",
    "graph g",
    "world 2 ranks",
    "groups dp = [0 1]",
    "dp",
    "device cpu",
    "symbol s0 = 4",
    "s0",
    "symbol none",
    "pass p",
    " a=1",
    "expect ",
    "sound",
    " violates ",
    "a/b",
    "fault",
    "--- after",
    "--- unrepaired",
    " rank 0",
    "---",
    "cluster c = [x]",
    " after ",
    " renames ",
    "# c",
    "\"s\"",
    "'",
    "1",
    "-1.5",
    "@cpu",
    "getitem",
    "all_gather",
    "strides",
    "{seq_nr: 1}",
    "sym",
    "?",
];

/// Errors point into the text, and their rendering has the carets under it.
fn check_errors(bytes: &[u8], errors: &text::ParseErrors) {
    assert!(!errors.errors.is_empty());
    let lines = bytes.iter().filter(|&&b| b == b'\n').count() + 1;
    for error in &errors.errors {
        assert!((1..=lines).contains(&error.line), "{error}");
        assert!(!error.message.contains('\n'), "{error}");
        assert_eq!(error.render(None).lines().filter(|l| l.contains('^')).count().min(1), 1);
    }
}

/// Names that are given twice are told by `validate`; a comment beside one of them is not printed beside each.
#[test]
fn comments_of_lines_with_one_name_stay_one() {
    let text = "x = input: f32[2]\noutput x  # a\n# above\noutput (x)  # b\n";
    let printed = text::print(&reparse(text));
    assert_eq!(printed, "x = input: f32[2]\n# above\noutput x  # a b\noutput (x)\n");
    assert_eq!(text::print(&reparse(&printed)), printed);
}
