//! The reducer as what shrinks failing cases in property tests: in proptest (feature `proptest`) and in Hypothesis.

use super::edits;
use super::search::{Validity, size};
use crate::case::Case;
use crate::generate::Shrink;
#[cfg(any(test, feature = "proptest"))]
use crate::generate::{Config, strategy};
use crate::graph::Graph;

/// Generated cases that shrink by the reducer's edits.
#[cfg(any(test, feature = "proptest"))]
pub fn cases(config: Config) -> strategy::Cases<Reducer> {
    strategy::cases(config).shrunk_by(Reducer)
}

/// Proposes the reducer's edits to a failing case, those that remove most first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reducer;

/// Family and number of the next edit.
pub type Place = (usize, usize);

impl Reducer {
    /// The next edit from `place` on, which is moved past it, whether or not what it leaves is a case; `None` when there
    /// is none left. Asking costs little: nothing is checked.
    pub fn edited(&self, graph: &Graph, (family, number): &mut Place) -> Option<Option<Graph>> {
        while let Some(edit) = edits::FAMILIES.get(*family) {
            match edit(graph, *number) {
                Some(edited) => {
                    *number += 1;
                    return Some(edited);
                }
                None => (*family, *number) = (*family + 1, 0),
            }
        }
        None
    }

    /// Whether an edited graph is smaller than it was, and as valid.
    pub fn allows(&self, graph: &Graph, edited: &Graph) -> bool {
        size(edited) < size(graph) && Validity::of(graph).holds(edited)
    }
}

impl Shrink for Reducer {
    type Place = Place;

    fn smaller(&self, case: &Case, place: &mut Place) -> Option<Case> {
        let (validity, now) = (Validity::of(&case.graph), size(&case.graph));
        while let Some(edited) = self.edited(&case.graph, place) {
            let smaller = edited.filter(|graph| size(graph) < now && validity.holds(graph));
            if let Some(graph) = smaller {
                return Some(Case { graph, ..case.clone() });
            }
        }
        None
    }
}
