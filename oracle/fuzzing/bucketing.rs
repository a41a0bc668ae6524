//! The reference of bucketing is right on every case.

use super::{case_of_choices, case_of_text, judging, reference_is_right};
use crate::rules::PassKind;

/// On a case in text.
pub fn check(data: &[u8]) {
    if let Some(case) =
        case_of_text(data, PassKind::Bucketing).filter(|case| super::is_race_free(&case.graph))
    {
        reference_is_right(&case, PassKind::Bucketing, &judging(data));
    }
}

/// On a case made from choices.
pub fn check_choices(data: &[u8]) {
    reference_is_right(&case_of_choices(data, 0), PassKind::Bucketing, &judging(data));
}
