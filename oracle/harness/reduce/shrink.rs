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

impl Reducer {
    /// How many families of edits there are.
    pub const FAMILIES: usize = edits::FAMILIES.len();

    /// How many edits of a family a graph has, at the cost of making a few of them: numbers from 0 on have one, up to the
    /// last.
    pub fn count(&self, graph: &Graph, family: usize) -> usize {
        let Some(edit) = edits::FAMILIES.get(family) else { return 0 };
        let has = |number: usize| edit(graph, number).is_some();
        let (mut low, mut high) = (0, 1);
        while has(high - 1) {
            (low, high) = (high, high * 2);
        }
        while low < high - 1 {
            let middle = low + (high - low) / 2;
            if has(middle - 1) {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The graph after an edit, where it leaves one that is smaller and as valid.
    pub fn edited(&self, graph: &Graph, family: usize, number: usize) -> Option<Graph> {
        let edited = edits::FAMILIES.get(family)?(graph, number)??;
        (size(&edited) < size(graph) && Validity::of(graph).holds(&edited)).then_some(edited)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// What is counted by making a few edits is what is counted one by one.
    #[test]
    fn edits_are_counted() {
        for number in 0..20 {
            let graph = crate::generate::case(&Config::default(), 7, number).graph;
            for (family, edit) in edits::FAMILIES.iter().enumerate() {
                let one_by_one = (0..).take_while(|&number| edit(&graph, number).is_some()).count();
                assert_eq!(Reducer.count(&graph, family), one_by_one, "family {family} of case {number}");
            }
            assert_eq!(Reducer.count(&graph, Reducer::FAMILIES), 0);
        }
    }
}
