//! Calls of operators that have a definition, written out where the graphs are not sound without.
//!
//! Two calls of one operator with equal arguments are equal whatever it computes, so what an operator means is looked up
//! only where that does not settle it.

use super::candidate::Outcome;
use crate::definitions::{defined_calls, written_out};
use crate::graph::{DtypeClass, Graph, NodeId};
use crate::rules::tells;
use crate::semantics::Numerics;

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

/// Whether something is decided by what a term may round otherwise than its call.
pub(super) fn decides_by_roundings(graph: &Graph) -> bool {
    let rounded = defined_calls(graph).into_iter().filter(|(_, is_exact)| !is_exact);
    let rounded: Vec<NodeId> = rounded.map(|(id, _)| id).collect();
    tells(graph, &rounded, Numerics::Contraction, false)
}

/// Whether a call that is defined takes or gives floats of less than 32 bits.
pub(super) fn holds_small_floats(graph: &Graph) -> bool {
    let shown = |(id, _)| graph.inputs(id).into_iter().chain([id]);
    let tensors =
        defined_calls(graph).into_iter().flat_map(shown).flat_map(|id| graph.tensors_of(graph.node(id).out));
    let mut dtypes = tensors.map(|tensor| graph.tensor(tensor).dtype);
    dtypes.any(|dtype| dtype.class() == DtypeClass::Float && dtype.itemsize() < 4)
}
