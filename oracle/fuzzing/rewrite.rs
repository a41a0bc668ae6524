//! Composed right edits are sound, and edits that need something to be allowed are never called wrong where it is.

use super::{case_of_choices, case_of_text, is_race_free, judging, reference_is_right};
use crate::candidates::rewrite;
use crate::case::{Case, PassConfig};
use crate::judge::{Options, Values, Verdict, judge};
use crate::rules::PassKind;

/// On a case in text.
pub fn check(data: &[u8]) {
    if let Some(case) = case_of_text(data, PassKind::Rewrite).filter(|case| is_race_free(&case.graph)) {
        is_right(&case, &judging(data));
    }
}

/// On a case made from choices.
pub fn check_choices(data: &[u8]) {
    is_right(&case_of_choices(data, 0), &judging(data));
}

fn is_right(case: &Case, options: &Options) {
    reference_is_right(case, PassKind::Rewrite, options);
    let pass = Some(PassConfig::new("rewrite"));
    let case = Case { pass, outcome: None, ..case.clone() };
    let options = Options { values: Values::ProofFirst, ..options.clone() };
    for candidate in rewrite::loose() {
        let Ok(judgement) = judge(&case, &candidate, &options) else { continue };
        if let Verdict::Violated(_) = judgement.verdict {
            panic!("{}", crate::report::text(&judgement, &format!("\n{case}"), None, false));
        }
    }
}
