//! The reducer on planted bugs, and its guards.

use super::{Budget, Guard, edits, reduce, violates};
use crate::candidates;
use crate::candidates::judging;
use crate::case::Case;
use crate::generate::{Config, case};
use crate::judge::{Verdict, judge};

/// Cases without repair.
fn bucketing() -> Config {
    Config { repair: 0, ..Config::default() }
}

/// The first cases on which `candidate` violates `rule`, reduced: node counts, sorted.
fn reduced(candidate: &str, rule: &'static str, wanted: usize) -> Vec<usize> {
    let (candidate, options) = (candidates::find(candidate).unwrap(), judging());
    let mut nodes = Vec::new();
    for index in 0..3000 {
        let case = case(&bucketing(), 7, index).into_case();
        let mut shows = |case: &Case| violates(case, &*candidate, &options, &rule.into());
        match reduce(&case, Budget::default(), &mut shows, &mut |_| {}) {
            Ok(reduced) => {
                assert!(violates(&reduced.case, &*candidate, &options, &rule.into()), "{}", reduced.case);
                nodes.push(reduced.case.graph.len());
            }
            Err(Guard::NotShown) => continue,
            Err(guard) => panic!("case {index}: {guard}"),
        }
        if nodes.len() == wanted {
            break;
        }
    }
    nodes.sort_unstable();
    assert_eq!(nodes.len(), wanted, "too few cases violate {rule}");
    nodes
}

/// x, two gathers with their waits, the output: nothing smaller has two dependent gathers.
#[test]
fn dependent_members_come_down_to_two_gathers() {
    let nodes = reduced("bucket-direct-dependence", "bucket/members-independent", 5);
    assert!(nodes[2] <= 8, "{nodes:?}");
    assert!(nodes[0] >= 6, "{nodes:?}");
}

#[test]
fn guards() {
    let valid = case(&bucketing(), 1, 1).into_case();
    let budget = Budget::default();
    assert_eq!(reduce(&valid, budget, &mut |_| false, &mut |_| {}).unwrap_err(), Guard::NotShown);
    assert_eq!(reduce(&valid, budget, &mut |_| true, &mut |_| {}).unwrap_err(), Guard::EmptyShows);
    let mut invalid = valid.clone();
    let last = invalid.graph.len() as u32 - 1;
    let dangling = invalid.graph.intern("nobody");
    let args = invalid.graph.push_values(&[crate::graph::Value::Dangling(dangling)]);
    invalid.graph.node_mut(crate::graph::NodeId(last)).args = args;
    let mut nodes = |case: &Case| !case.graph.is_empty();
    assert!(matches!(reduce(&invalid, budget, &mut nodes, &mut |_| {}).unwrap_err(), Guard::Invalid(_)));
}

/// What is tried stays valid: the reference is right on every smaller case.
#[test]
fn smaller_cases_are_cases() {
    for index in 0..6 {
        let case = case(&bucketing(), 3, index).into_case();
        let mut asked = 0;
        let mut shows = |case: &Case| {
            asked += 1;
            let judged = judge(case, &candidates::Reference, &judging());
            if let Ok(judgement) = judged {
                assert!(!matches!(judgement.verdict, Verdict::Violated(_)), "{case}");
            }
            asked % 7 != 0 && case.graph.len() > 8
        };
        let budget = Budget { questions: 150, ..Budget::default() };
        let reduced = reduce(&case, budget, &mut shows, &mut |_| {}).unwrap();
        assert!(reduced.case.graph.len() <= case.graph.len());
        assert!(reduced.questions <= 151);
    }
}

#[test]
fn a_budget_ends_it_with_the_best_so_far() {
    let case = case(&bucketing(), 3, 3).into_case();
    let mut best = case.graph.len();
    let mut progress = |case: &Case| best = case.graph.len();
    let budget = Budget { questions: 20, ..Budget::default() };
    let reduced = reduce(&case, budget, &mut |case| case.graph.len() > 3, &mut progress).unwrap();
    assert_eq!(reduced.case.graph.len(), best);
    assert!(!reduced.finished || reduced.questions <= 20);
}

/// A size of 0 divides nothing: each edit of a case with empty tensors gives a graph or none.
#[test]
fn edits_take_empty_tensors() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/reducer/empty_tensors.graph");
    let case = crate::format::text::parse(std::fs::read(path).unwrap()).unwrap();
    let edits = edits::FAMILIES.iter().map(|family| (0..).map_while(|n| family(&case.graph, n)).count());
    assert!(edits.sum::<usize>() > 100);
}
