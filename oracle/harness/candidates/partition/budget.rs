//! Mutants of the memory budget: what is saved without memory, what may be computed again, what is kept within it.

use crate::graph::NodeId;
use crate::passes::partition::classes::FAR;
use crate::passes::partition::min_cut::budget::Choice;
use crate::passes::partition::min_cut::{Ban, Context};
use crate::passes::partition::{PartitionError, Solver, Strategy, knapsack};

/// A rank with half the memory.
pub(super) struct HalfBudget;
impl Strategy for HalfBudget {
    fn keep_within(
        &self,
        solver: Solver,
        memories: &[f64],
        runtimes: &[f64],
        budget: f64,
    ) -> Result<Vec<bool>, PartitionError> {
        knapsack::solve(solver, memories, runtimes, budget / 2.0)
    }
}

/// Without memory the inputs, whatever cannot be repeated.
pub(super) struct InputsOnly;
impl Strategy for InputsOnly {
    fn without_memory(&self, cx: &Context) -> Result<Option<Choice>, PartitionError> {
        Ok(Some(Choice { saved: cx.classes.inputs.clone(), proof: None }))
    }

    fn keeps_budget(&self) -> bool {
        false
    }
}

/// The budget takes back bans of draws.
pub(super) struct UnbansDraws;
impl Strategy for UnbansDraws {
    fn may_unban(&self, cx: &Context, id: NodeId) -> bool {
        cx.distance(id) < FAR && !cx.joint.target(id).collective && !cx.joint.tags(id).must_save()
    }
}

/// Without memory the inputs and what is tagged, tuples among it.
pub(super) struct InputsAndTagged;
impl Strategy for InputsAndTagged {
    fn without_memory(&self, cx: &Context) -> Result<Option<Choice>, PartitionError> {
        let tagged = cx.classes.in_order.iter().filter(|id| cx.joint.tags(**id).must_save());
        let saved = cx.classes.inputs.iter().chain(tagged).copied().collect();
        Ok(Some(Choice { saved, proof: None }))
    }
}

/// The budget takes back bans of what must be saved.
pub(super) struct UnbansTagged;
impl Strategy for UnbansTagged {
    fn may_unban(&self, cx: &Context, id: NodeId) -> bool {
        let protected = cx.joint.target(id).collective && !cx.config.optimizes_collectives;
        cx.distance(id) < FAR
            && !protected
            && cx.hazards.unrepeatable(id).is_none_or(|ban| ban == Ban::MustSave)
    }
}

/// Each half of the items gets all of the budget.
pub(super) struct SplitBudget;
impl Strategy for SplitBudget {
    fn keep_within(
        &self,
        solver: Solver,
        memories: &[f64],
        runtimes: &[f64],
        budget: f64,
    ) -> Result<Vec<bool>, PartitionError> {
        let middle = memories.len() / 2;
        let ((a, b), (c, d)) = (memories.split_at(middle), runtimes.split_at(middle));
        let mut kept = knapsack::solve(solver, a, c, budget)?;
        kept.extend(knapsack::solve(solver, b, d, budget)?);
        Ok(kept)
    }

    fn keeps_budget(&self) -> bool {
        false
    }
}

/// An item counts twice if the one before it is large.
pub(super) struct CountsTwice;
impl Strategy for CountsTwice {
    fn keep_within(
        &self,
        solver: Solver,
        memories: &[f64],
        runtimes: &[f64],
        budget: f64,
    ) -> Result<Vec<bool>, PartitionError> {
        let before = std::iter::once(&0.0).chain(memories);
        let doubled: Vec<f64> = memories
            .iter()
            .zip(before)
            .map(
                |(memory, before)| if *before > 0.0 && *before <= budget { memory + before } else { *memory },
            )
            .collect();
        knapsack::solve(solver, &doubled, runtimes, budget)
    }
}
