//! The text cases of partitions are judged as they expect, and their texts are those that the printer prints.

use crate::case::{Case, Expectation, Expected};
use crate::format::text;
use crate::judge::partition::judge_recorded_parts;
use crate::judge::{Options, Verdict};
use crate::rules::partition::CATALOGUE;
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

#[test]
fn every_case_is_judged_as_it_expects() {
    let mut rules: Vec<String> = Vec::new();
    for (path, _, case) in cases() {
        let judgement = judge_recorded_parts(&case, &Options::default()).unwrap();
        let found = judgement.violated_rules();
        assert!(!case.expectations.is_empty(), "{}: expects nothing", path.display());
        for expectation in &case.expectations {
            let Expectation::Verdict { is, .. } = expectation else { panic!("{}", path.display()) };
            match is {
                Expected::Sound => assert_eq!(judgement.verdict, Verdict::Sound, "{}", path.display()),
                Expected::Violates(expected) => {
                    rules.extend(expected.clone());
                    let all = expected.iter().all(|rule| found.contains(&rule.as_str()));
                    assert!(all, "{}: {found:?}", path.display());
                }
                other => panic!("{}: {other:?}", path.display()),
            }
        }
    }
    rules.sort();
    rules.dedup();
    assert!(rules.len() >= 18, "{rules:?}");
    assert!(rules.iter().all(|rule| CATALOGUE.iter().any(|known| known.id == rule)), "{rules:?}");
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
