//! Calls of operators that have a definition, written out where the graphs are not sound without.
//!
//! Two calls of one operator with equal arguments are equal whatever it computes, so what an operator means is looked up
//! only where that does not settle it.

use super::candidate::Outcome;
use crate::definitions::written_out;
use crate::graph::Graph;

/// A graph and what came of it, with such calls written out; `None` where there are none. `rounds`: results may be rounded
/// otherwise.
pub(super) fn with_definitions(
    before: &Graph,
    outcomes: &[(Option<u32>, Outcome)],
    rounds: bool,
) -> Option<(Graph, Vec<(Option<u32>, Outcome)>)> {
    let afters = outcomes.iter().flat_map(|(_, of)| of.unrepaired.iter().chain([&of.repaired]));
    // A name in both graphs would say that two nodes are the same.
    let all: Vec<(&Graph, &str)> =
        std::iter::once((before, "")).chain(afters.map(|after| (after, "_after"))).collect();
    let mut written = written_out(&all, rounds)?.into_iter();
    let before = written.next()?;
    let mut next = || written.next();
    let outcome = |(rank, outcome): &(Option<u32>, Outcome)| {
        let unrepaired = if outcome.unrepaired.is_some() { next() } else { None };
        Some((*rank, Outcome { unrepaired, repaired: next()? }))
    };
    let outcomes: Option<Vec<_>> = outcomes.iter().map(outcome).collect();
    Some((before, outcomes?))
}
