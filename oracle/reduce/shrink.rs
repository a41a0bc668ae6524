//! The reducer as the shrinking of proptest strategies (feature `proptest`).

use super::edits;
use super::search::{Validity, size};
use crate::generate::Generated;
use crate::generate::strategy::Shrink;

/// Proposes the reducer's edits to a failing case, those that remove most first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reducer;

impl Shrink for Reducer {
    fn smaller<'a>(&self, case: &'a Generated) -> Box<dyn Iterator<Item = Generated> + 'a> {
        let (validity, now) = (Validity::of(&case.graph), size(&case.graph));
        let graphs = edits::FAMILIES
            .iter()
            .flat_map(move |family| (0..).map_while(move |n| family(&case.graph, n)).flatten());
        let valid = graphs.filter(move |graph| size(graph) < now && validity.holds(graph));
        Box::new(valid.map(|graph| Generated { graph, ..case.clone() }))
    }
}
