//! The ingredients of a partitioner that another algorithm would choose differently, one method each. The defaults
//! are the reference; whoever wants another algorithm, or a broken one, replaces a method.

use super::classes::Classes;
use super::common_subexpressions::{self, Distinct, Key};
use super::error::PartitionError;
use super::extract::Piece;
use super::joint::{Joint, Role};
use super::max_flow::CutSide;
use super::min_cut::budget::Choice;
use super::min_cut::context::Weight;
use super::min_cut::{Ban, Context, bans, budget, context};
use super::modules::Saved;
use super::replay::Decision;
use crate::config::partition::{Bans, Method, Solver};
use crate::graph::{NodeId, Tags};
use fixedbitset::FixedBitSet;

/// The choices of a partitioner.
pub trait Strategy {
    /// Whether `id` must run in forward.
    fn must_be_forward(&self, joint: &Joint, id: NodeId) -> bool {
        joint.must_be_forward(id)
    }

    /// Whether `id` must run in backward.
    fn must_be_backward(&self, joint: &Joint, id: NodeId) -> bool {
        joint.must_be_backward(id)
    }

    /// Whether a backward output must be available in backward; `closure` holds what depends on tangents.
    fn claims_output(&self, joint: &Joint, closure: &FixedBitSet, id: NodeId) -> bool {
        let _ = closure;
        joint.role(id) != Role::Output
    }

    /// Whether `id` may be merged with an equal node.
    fn mergeable(&self, joint: &Joint, distinct: &Distinct, id: NodeId) -> bool {
        common_subexpressions::mergeable(joint, distinct, id)
    }

    /// What a node is recognised by; `representative` gives what each earlier node was merged into.
    fn merge_key(&self, joint: &Joint, representative: &[NodeId], id: NodeId) -> Key {
        common_subexpressions::key(joint, representative, id)
    }

    /// Whether merging also asks if backward needs the value.
    fn separates_backward(&self, method: Method) -> bool {
        method == Method::MinCut
    }

    /// Whether the tags of a merged copy are joined to the node that stays.
    fn joins_tags(&self, method: Method) -> bool {
        method == Method::Replay
    }

    /// Why a node is never computed again, whatever the options.
    fn unrepeatable(&self, joint: &Joint, id: NodeId) -> Option<Ban> {
        super::hazards::unrepeatable(joint, id)
    }

    /// Whether values that forward overwrites after they were read are kept from being saved.
    fn minds_overwriting(&self) -> bool {
        true
    }

    /// Whether what communication gives is waited for before it is saved.
    fn waits_before_saving(&self) -> bool {
        true
    }

    /// Why a forward call is not computed again.
    fn should_ban(&self, cx: &Context, bans: Bans, id: NodeId) -> Result<Option<Ban>, PartitionError> {
        bans::should_ban(cx, bans, id)
    }

    /// What saving a value costs.
    fn weight(&self, cx: &Context, id: NodeId) -> Result<Weight, PartitionError> {
        context::weight(cx, id)
    }

    /// Which minimum cut is taken.
    fn cut_side(&self) -> CutSide {
        CutSide::Sink
    }

    /// What is saved under a budget of 0; `None`: what the other budgets give.
    fn without_memory(&self, cx: &Context) -> Result<Option<Choice>, PartitionError> {
        budget::without_memory(cx)
    }

    /// Whether a budget may take back the ban of `id`.
    fn may_unban(&self, cx: &Context, id: NodeId) -> bool {
        bans::may_unban(cx, id)
    }

    /// Which items are kept within the budget.
    fn keep_within(
        &self,
        solver: Solver,
        memories: &[f64],
        runtimes: &[f64],
        budget: f64,
    ) -> Result<Vec<bool>, PartitionError> {
        super::knapsack::solve(solver, memories, runtimes, budget)
    }

    /// Whether what is held is compared with the budget once it is chosen.
    fn keeps_budget(&self) -> bool {
        true
    }

    /// What a replay makes of a node.
    fn replayed(&self, joint: &Joint, id: NodeId) -> Decision {
        super::replay::decide(joint, id)
    }

    /// The last word on what is saved, before what backward does not read is dropped.
    fn adjust(&self, joint: &Joint, classes: &Classes, saved: Saved) -> Saved {
        let _ = (joint, classes);
        saved
    }

    /// Whether a saved value that backward does not read is dropped.
    fn drops_unread(&self, joint: &Joint, id: NodeId) -> bool {
        let _ = (joint, id);
        true
    }

    /// The symbol that a node gives its value to.
    fn bound_symbol<'a>(&self, joint: &'a Joint, id: NodeId) -> Option<&'a str> {
        super::modules::bound_symbol(joint, id)
    }

    /// Whether a backward node that stands before the first reader of a tangent is kept in front, read or not.
    fn hoists(&self, joint: &Joint, id: NodeId) -> bool {
        super::order::hoists(joint, id)
    }

    /// Whether draws that both sides make are paired.
    fn pairs_draws(&self) -> bool {
        true
    }

    /// The last word on a side, before its graph is built.
    fn finish(&self, joint: &Joint, piece: Piece) -> Piece {
        let _ = joint;
        piece
    }

    /// The node that must be computed again because `id`, of a gathered parameter, must.
    fn derived(&self, joint: &Joint, id: NodeId) -> Option<NodeId> {
        super::fsdp::derived(joint, id)
    }

    /// Which of the matrix products are saved by the activation-checkpointing pass.
    fn kept_products(&self, joint: &Joint, products: &[NodeId]) -> Vec<NodeId> {
        let _ = joint;
        super::activation_checkpointing::every_other(products)
    }

    /// Whether what the first partition saved is written on forward's nodes alone.
    fn tags_forward_only(&self) -> bool {
        true
    }

    /// The tags that a node gets when the operator that has `tags` is traced again.
    fn carried(&self, tags: &Tags) -> Tags {
        tags.clone()
    }
}

/// The reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reference;

impl Strategy for Reference {}
