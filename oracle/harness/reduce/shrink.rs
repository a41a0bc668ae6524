//! The reducer as what shrinks failing cases in property tests: in proptest (feature `proptest`) and in Hypothesis.

use super::edits;
use super::search::{Validity, size};
use crate::case::Case;
use crate::generate::Shrink;
#[cfg(any(test, feature = "proptest"))]
use crate::generate::{Config, strategy};

/// Generated cases that shrink by the reducer's edits.
#[cfg(any(test, feature = "proptest"))]
pub fn cases(config: Config) -> strategy::Cases<Reducer> {
    strategy::cases(config).shrunk_by(Reducer)
}

/// Proposes the reducer's edits to a failing case, those that remove most first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reducer;

impl Shrink for Reducer {
    /// Family and number of the next edit.
    type Place = (usize, usize);

    fn smaller(&self, case: &Case, (family, number): &mut (usize, usize)) -> Option<Case> {
        let (validity, now) = (Validity::of(&case.graph), size(&case.graph));
        while let Some(edit) = edits::FAMILIES.get(*family) {
            let Some(edited) = edit(&case.graph, *number) else {
                (*family, *number) = (*family + 1, 0);
                continue;
            };
            *number += 1;
            let smaller = edited.filter(|graph| size(graph) < now && validity.holds(graph));
            if let Some(graph) = smaller {
                return Some(Case { graph, ..case.clone() });
            }
        }
        None
    }
}
