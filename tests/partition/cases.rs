//! The text cases of partitions are judged as they expect, and their texts are those that the printer prints.

use graph_oracle::candidates;
use graph_oracle::candidates::judging;
use graph_oracle::case::{Case, Expectation, Expected, Subject};
use graph_oracle::format::text;
use graph_oracle::judge::partition::judge_recorded_parts;
use graph_oracle::judge::{Judgement, Options, Verdict, judge};
use graph_oracle::rules::RuleStatus;
use graph_oracle::rules::partition::CATALOGUE;
use std::collections::BTreeSet;
use std::path::PathBuf;

fn cases() -> Vec<(PathBuf, String, Case)> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/partition"));
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |path: PathBuf| {
        let words = std::fs::read_to_string(&path).unwrap();
        let case = text::parse(&words).unwrap_or_else(|errors| panic!("{}: {errors}", path.display()));
        (path, words, case)
    };
    files.into_iter().map(read).collect()
}

fn judged(case: &Case, of: &Subject) -> Judgement {
    let options = Options { run_again: true, ..judging() };
    let by = |name: &str| judge(case, candidates::find(name).unwrap().as_ref(), &options).unwrap();
    match of {
        Subject::Outcome => judge_recorded_parts(case, &options).unwrap(),
        Subject::Reference => by("reference"),
        Subject::Candidate(name) => by(name),
    }
}

/// Each case is judged as it expects; and each rule has a case that violates it, and one in which it was applied and
/// holds.
#[test]
fn every_rule_has_an_accepting_and_a_rejecting_case() {
    let (mut holds, mut rejected): (BTreeSet<&str>, BTreeSet<String>) = Default::default();
    let mut wrong = Vec::new();
    for (path, _, case) in cases() {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if case.expectations.is_empty() {
            wrong.push(format!("{name}: expects nothing"));
        }
        for expectation in &case.expectations {
            let Expectation::Verdict { of, is } = expectation else { panic!("{name}") };
            let judgement = judged(&case, of);
            let found = judgement.violated_rules();
            let right = match is {
                Expected::Sound => judgement.verdict == Verdict::Sound,
                Expected::Violates(expected) => {
                    rejected.extend(expected.clone());
                    expected.iter().all(|rule| found.contains(&rule.as_str()))
                }
                Expected::Refused => matches!(judgement.verdict, Verdict::Refused(_)),
                Expected::Undecided => matches!(judgement.verdict, Verdict::Undecided(_)),
            };
            if !right {
                wrong.push(format!("{name}: {of:?} is not {is:?}, but {:?} {found:?}", judgement.verdict));
            }
            let kept = judgement.rules.iter().filter(|(_, status)| *status == RuleStatus::Holds);
            holds.extend(kept.map(|(id, _)| *id));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let lacking = |has: &dyn Fn(&str) -> bool| -> Vec<&str> {
        CATALOGUE.iter().map(|rule| rule.id).filter(|id| !has(id)).collect()
    };
    assert_eq!(lacking(&|id| holds.contains(id)), [""; 0], "rules that no case accepts");
    assert_eq!(lacking(&|id| rejected.contains(id)), [""; 0], "rules that no case rejects");
}

#[test]
fn texts_are_as_printed() {
    for (path, words, case) in cases() {
        let printed = text::print(&case);
        if std::env::var("WRITE_CASES").is_ok() {
            std::fs::write(&path, &printed).unwrap();
        } else {
            assert_eq!(words, printed, "{}", path.display());
        }
        assert!(text::parse(&printed).unwrap() == case, "{}", path.display());
    }
}
