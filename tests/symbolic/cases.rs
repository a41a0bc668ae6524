//! The text cases under tests/cases/: what is sound is proved equal, what violates a rule about values is not.

use super::support::{compared, files};
use graph_oracle::case::{Expectation, Expected, Subject};
use graph_oracle::format::text;
use graph_oracle::ops::shape::complete;
use graph_oracle::semantics::symbolic::Comparison;
use std::path::Path;

/// Rules whose violation shows in the values of the case.
const ABOUT_VALUES: [&str; 2] = ["rewrite/values", "bucket/users-rewired"];

#[test]
fn cases_are_judged_as_they_expect() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut judged = (0, 0);
    for family in ["bucket", "comm", "order"] {
        for path in files(&folder.join(family), ".graph") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let case = text::parse(std::fs::read(&path).unwrap()).unwrap();
            assert!(!matches!(compared(&case.graph, &case.graph), Comparison::Different(_)), "{name}");
            let Some(outcome) = &case.outcome else { continue };
            let entries = outcome.entries();
            let [(_, graphs)] = entries[..] else { continue };
            // As the judge does: what a pass did not record is inferred first.
            let completed = complete(&graphs.repaired);
            let comparison = compared(&case.graph, completed.as_ref().unwrap_or(&graphs.repaired));
            for expectation in &case.expectations {
                let Expectation::Verdict { of: Subject::Outcome, is } = expectation else { continue };
                match is {
                    Expected::Sound => {
                        assert!(matches!(comparison, Comparison::Equal(_)), "{name}: {comparison:#?}");
                        judged.0 += 1;
                    }
                    Expected::Violates(rules) if rules.iter().any(|r| ABOUT_VALUES.contains(&r.as_str())) => {
                        assert!(!matches!(comparison, Comparison::Equal(_)), "{name}: proved equal");
                        judged.1 += 1;
                    }
                    _ => {}
                }
            }
        }
    }
    println!("{} sound outcomes proved equal, {} unsound ones not", judged.0, judged.1);
    assert!(judged.0 >= 2 && judged.1 >= 3, "{judged:?}");
}
