//! Calls of operators that have a definition, written out where the graphs are not sound without.
//!
//! Two calls of one operator with equal arguments are equal whatever it computes, so what an operator means is looked up
//! only where that does not settle it.

use super::candidate::Outcome;
use super::{CannotJudge, Judgement, Verdict};
use crate::definitions::{Rounded, defined_calls, written_out};
use crate::graph::{DtypeClass, Graph};
use crate::rules::{Code, Finding, Reason, rounded};
use crate::semantics::Numerics;

/// Rules about what calls are given and what is recorded of them: they are asked of the graphs as they were given.
const OF_CALLS: [&str; 3] = ["rewrite/well-formed", "rewrite/metadata", "partition/metadata-true"];

/// The judgement that counts, of graphs that are not sound as they were given: that one, or that of the graphs with calls
/// written out. `level`: how floats may be rounded otherwise; `judged` judges graphs.
pub(super) fn by_definitions(
    judgement: Judgement,
    before: &Graph,
    outcomes: &[(Option<u32>, Outcome)],
    level: Numerics,
    judged: impl Fn(&Graph, &[(Option<u32>, Outcome)]) -> Result<Judgement, CannotJudge>,
) -> Result<Judgement, CannotJudge> {
    let graphs = || std::iter::once(before).chain(outcomes.iter().map(|(_, outcome)| &outcome.repaired));
    let most = rounded(level, graphs());
    let rounds = most > Rounded::Alike;
    let Some((defined_before, defined_outcomes)) = with_definitions(before, outcomes, most) else {
        return Ok(judgement);
    };
    let defined = judged(&defined_before, &defined_outcomes)?;
    // What is wrong whatever an operator means stays wrong, unless the numbers that it gives come near one another. What is
    // found either way is said of the graphs as they were given. Terms that round elsewhere than kernels do, visibly, convict
    // nobody.
    let come_near = |reasons: &[Reason]| rounds && reasons.iter().any(|reason| reason.code == Code::Rounding);
    let is_wrong = matches!(judgement.verdict, Verdict::Violated(_));
    // A definition takes arguments that the operator does not, and has records of its own.
    let is_of_calls = match &judgement.verdict {
        Verdict::Violated(found) => {
            found.iter().flat_map(Finding::all).any(|one| OF_CALLS.contains(&one.rule))
        }
        Verdict::Undecided(reasons) if !matches!(defined.verdict, Verdict::Violated(_)) => {
            reasons.iter().any(|reason| reason.code == Code::MayRaise)
        }
        _ => false,
    };
    let stays = match &defined.verdict {
        _ if is_of_calls => true,
        Verdict::Violated(_) => is_wrong || rounds && graphs().any(holds_small_floats),
        Verdict::Undecided(reasons) => is_wrong && !come_near(reasons),
        _ => false,
    };
    Ok(if stays { judgement } else { defined })
}

/// A graph and what came of it, with such calls written out; `None` where there are none. `most`: how terms may be rounded.
fn with_definitions(
    before: &Graph,
    outcomes: &[(Option<u32>, Outcome)],
    most: Rounded,
) -> Option<(Graph, Vec<(Option<u32>, Outcome)>)> {
    let afters = outcomes.iter().flat_map(|(_, of)| of.unrepaired.iter().chain([&of.repaired]));
    // A name in both graphs would say that two nodes are the same.
    let all: Vec<(&Graph, &str)> =
        std::iter::once((before, "")).chain(afters.map(|after| (after, "_after"))).collect();
    let mut written = written_out(&all, most)?.into_iter();
    let before = written.next()?;
    let mut next = || written.next();
    let outcome = |(rank, outcome): &(Option<u32>, Outcome)| {
        let unrepaired = if outcome.unrepaired.is_some() { next() } else { None };
        Some((*rank, Outcome { unrepaired, repaired: next()? }))
    };
    let outcomes: Option<Vec<_>> = outcomes.iter().map(outcome).collect();
    Some((before, outcomes?))
}

/// Whether a call that is defined takes or gives floats of less than 32 bits.
fn holds_small_floats(graph: &Graph) -> bool {
    let shown = |(id, _)| graph.inputs(id).into_iter().chain([id]);
    let tensors =
        defined_calls(graph).into_iter().flat_map(shown).flat_map(|id| graph.tensors_of(graph.node(id).out));
    let mut dtypes = tensors.map(|tensor| graph.tensor(tensor).dtype);
    dtypes.any(|dtype| dtype.class() == DtypeClass::Float && dtype.itemsize() < 4)
}
