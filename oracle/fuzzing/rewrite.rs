//! Composed right edits are sound, and edits that need something to be allowed are never called wrong where it is.

use super::{MOST_ELEMENTS, case_of_choices, case_of_text, is_race_free, reference_is_right};
use crate::candidates::{judging, rewrite};
use crate::case::{Case, PassConfig};
use crate::judge::{Options, Values, Verdict, judge};
use crate::rules::PassKind;

/// On a case in text.
pub fn check(data: &[u8]) {
    if let Some(case) = case_of_text(data, PassKind::Rewrite).filter(|case| is_race_free(&case.graph)) {
        is_right(&case);
    }
}

/// On a case made from choices.
pub fn check_choices(data: &[u8]) {
    is_right(&case_of_choices(data, 0));
}

fn is_right(case: &Case) {
    reference_is_right(case, PassKind::Rewrite);
    let pass = Some(PassConfig::new("rewrite"));
    let case = Case { pass, outcome: None, ..case.clone() };
    let options = Options { element_limit: MOST_ELEMENTS, values: Values::ProofFirst, ..judging() };
    for candidate in rewrite::loose() {
        let Ok(judgement) = judge(&case, &candidate, &options) else { continue };
        if let Verdict::Violated(_) = judgement.verdict {
            panic!("{}", crate::report::text(&judgement, &format!("\n{case}"), None, false));
        }
    }
}
