//! The reference of the topological repair is right on every list, sorted or not.

use super::{case_of_choices, case_of_text, judging, reference_is_right};
use crate::rules::PassKind;

/// On a case in text.
pub fn check(data: &[u8]) {
    if let Some(case) = case_of_text(data, PassKind::Repair) {
        reference_is_right(&case, PassKind::Repair, &judging(data));
    }
}

/// On a case made from choices.
pub fn check_choices(data: &[u8]) {
    reference_is_right(&case_of_choices(data, 100), PassKind::Repair, &judging(data));
}
