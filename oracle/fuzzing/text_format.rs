//! Parsing is total, and printing is stable.

use crate::case::Case;
use crate::format::text;

/// Any bytes give a case or errors that name a place in the text; a case printed and parsed again prints alike.
pub fn check(data: &[u8]) {
    let case = match text::parse(data) {
        Ok(case) => case,
        Err(errors) => {
            assert!(!errors.render(Some("input.graph")).is_empty(), "an error says something");
            return;
        }
    };
    let printed = text::print(&case);
    let again = match text::parse(&printed) {
        Ok(again) => again,
        Err(errors) => panic!("what was printed does not parse: {}\n{printed}", errors.render(None)),
    };
    assert_eq!(printed, text::print(&again), "printing is stable");
    assert_eq!(case.graph.difference(&again.graph), None, "printing loses nothing\n{printed}");
    let ranks = |case: &Case| case.programs.iter().map(|program| program.ranks.clone()).collect::<Vec<_>>();
    assert_eq!(ranks(&case), ranks(&again), "every rank keeps its graph\n{printed}");
    assert!(case.claim == again.claim && case.pass == again.pass, "nothing is said otherwise\n{printed}");
}
