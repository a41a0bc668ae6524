//! What a pass is asked to do: the options of a case, read once, into types that references, rules and the judge share.
//!
//! Defaults are PyTorch's. An option that a pass does not have is an error that names those it has.

pub mod bucketing;
pub mod cap;
pub mod partition;
pub mod schedule;

use crate::words;

/// A message about an option that a pass does not have: which one may have been meant, and `all` that it has.
pub fn unknown_key<'n>(pass: &str, key: &str, all: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    match words::near(key, names) {
        Some(name) => format!("{pass} has no option {key:?}: did you mean {name:?}? It has{all}"),
        None => format!("{pass} has no option {key:?}; it has{all}"),
    }
}
