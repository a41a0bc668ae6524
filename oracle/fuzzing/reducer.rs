//! The reducer keeps what it is asked to keep, stays valid, never grows a case, and comes to an end.

use super::{case_of_choices, case_of_text};
use crate::case::Case;
use crate::judge::input_faults;
use crate::reduce::{Budget, Guard, reduce};
use crate::rules::PassKind;
use std::time::Duration;

/// On a case in text.
pub fn check(data: &[u8]) {
    if let Some(case) = case_of_text(data, PassKind::Repair) {
        check_case(&case, data.len());
    }
}

/// On a case made from choices.
pub fn check_choices(data: &[u8]) {
    check_case(&case_of_choices(data, 10), data.len());
}

fn check_case(case: &Case, seed: usize) {
    // Something that is there: the operator of one node.
    let calls: Vec<_> =
        case.graph.ids().filter(|&id| case.graph.node(id).op == crate::graph::Op::Call).collect();
    let Some(&kept) = calls.get(seed.checked_rem(calls.len()).unwrap_or(0)) else { return };
    let target = case.graph.target(kept).to_string();
    let shows_it = |case: &Case| case.graph.ids().any(|id| case.graph.target(id) == target);
    let mut largest = case.graph.len();
    let mut progress = |best: &Case| {
        assert!(best.graph.len() <= largest, "it grew\n{best}");
        largest = best.graph.len();
    };
    let budget = Budget { questions: 60, time: Duration::from_secs(60) };
    match reduce(case, budget, &mut |case| shows_it(case), &mut progress) {
        Ok(reduced) => {
            assert!(shows_it(&reduced.case), "{target} is gone\n{}", reduced.case);
            let faults = input_faults(&reduced.case.graph, PassKind::Repair);
            assert!(faults.is_empty(), "{faults:?}\n{}", reduced.case);
        }
        Err(Guard::Invalid(_)) => {}
        Err(guard) => panic!("{guard}\n{case}"),
    }
}
