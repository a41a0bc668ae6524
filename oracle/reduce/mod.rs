//! The reducer: the smallest case that still shows the same thing.
//!
//! # The idea
//!
//! A case is made smaller by edits of its graph, never of the bytes that it was generated from: nodes go together
//! with their uses, or are replaced by an operand; sizes, ranks and groups shrink; operators become simpler; features
//! and options are dropped. Each edit that leaves a valid graph is put to the caller's question ("is the same rule
//! still violated?"); what passes is kept, and the edits go on from there. Large edits come first, so that the number
//! of questions grows with the logarithm of what can go rather than with its size.
//!
//! Where ranks have graphs of their own, one of these for all ranks is tried first, then the same edit of all graphs, then
//! edits of each by itself.
//!
//! Guards come before work: the case must be valid and must show the thing, and the empty graph must not (a question
//! that everything answers with yes reduces everything to nothing).
//!
//! It ends when no edit is left, or when the budget of time or questions is used up; the best case so far is the
//! result, and `progress` is told of each.
//!
//! # What it does not do
//!
//! It promises no global minimum, and it does not touch a recorded outcome: what is reduced is what a candidate is
//! run on.

mod edits;
mod search;
#[cfg(test)]
mod tests;

#[cfg(any(test, feature = "proptest"))]
mod shrink;

pub use search::{Budget, Guard, Reduced, reduce};
#[cfg(any(test, feature = "proptest"))]
pub use shrink::{Reducer, cases};

use crate::candidates::{Candidate, Reference};
use crate::case::Case;
use crate::judge::{self, Options, Verdict};

/// The question that pins a reduction to a rule: does `candidate` violate `rule` on the case, and is the reference
/// right on it? The second half keeps the case one that a correct implementation masters.
pub fn violates(case: &Case, candidate: &dyn Candidate, options: &Options, rule: &str) -> bool {
    let judged = judge::judge(case, candidate, options);
    let violated = judged.is_ok_and(|judgement| judgement.violated_rules().contains(&rule));
    let is_reference = candidate.name() == Reference.name();
    violated
        && (is_reference
            || judge::judge(case, &Reference, options)
                .is_ok_and(|j| !matches!(j.verdict, Verdict::Violated(_))))
}
