//! What is not computed again, and why.

use super::super::classes::FAR;
use super::super::error::{Origin, PartitionError};
use super::super::joint::{Role, Sort};
use super::context::Context;
use crate::config::partition::Bans;
use crate::graph::{NodeId, Value};

/// Why a value is not computed again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ban {
    /// It is an input.
    Input,
    /// Its tag says so.
    MustSave,
    /// It draws random numbers that would be others.
    Draw,
    /// It has an effect that would happen twice.
    Effect,
    /// It was written to before it was read: computed again it would be what it was before.
    Rewritten,
    /// It is not on the list of cheap operators.
    NotCheap,
    /// It is on the list of expensive operators.
    Expensive,
    /// Backward needs it in memory.
    MaterializedBackward,
    /// It is far from backward.
    TooFar,
    /// It is much smaller than its inputs.
    Reduction,
    /// It is used both near and far.
    FarApart,
    /// It is in a long chain that would be fused.
    LongChain,
}

impl Ban {
    /// Where it comes from, and in words.
    pub fn reason(self) -> (Origin, &'static str) {
        match self {
            Ban::Input => (Origin::DataDependence, "is an input"),
            Ban::MustSave => (Origin::Annotation, "must be saved, not computed again (MUST_SAVE)"),
            Ban::Draw => (Origin::DataDependence, "draws random numbers, which would be others"),
            Ban::Effect => (Origin::DataDependence, "has an effect, which would happen twice"),
            Ban::Rewritten => (Origin::DataDependence, "is written to in forward before it is read"),
            Ban::NotCheap => (Origin::Heuristic, "is not on the list of operators that are computed again"),
            Ban::Expensive => (Origin::Heuristic, "is expensive to compute again"),
            Ban::MaterializedBackward => (Origin::Heuristic, "is needed in memory by backward"),
            Ban::TooFar => (Origin::Heuristic, "is too far from backward"),
            Ban::Reduction => (Origin::Heuristic, "is much smaller than its inputs"),
            Ban::FarApart => (Origin::Heuristic, "is used near and far"),
            Ban::LongChain => (Origin::Heuristic, "ends a long chain"),
        }
    }

    /// Whether no option and no budget lifts it.
    pub fn is_firm(self) -> bool {
        matches!(self, Ban::MustSave | Ban::Draw | Ban::Effect | Ban::Rewritten)
    }
}

/// The reference's reason not to compute a forward call again.
pub fn should_ban(cx: &Context, bans: Bans, id: NodeId) -> Result<Option<Ban>, PartitionError> {
    let joint = cx.joint;
    let target = joint.target(id);
    if cx.kept.contains(id.index()) {
        return Ok(Some(Ban::MustSave));
    }
    if joint.role(id) != Role::Call || target.getitem {
        return Ok(None);
    }
    if joint.tags(id).must_save() {
        return Ok(Some(Ban::MustSave));
    }
    if let Some(ban) = cx.hazards.unrepeatable(id) {
        return Ok(Some(ban));
    }
    if (cx.config.recompute_views && target.sets.view) || target.lift_fresh || joint.sort(id) == Sort::Device
    {
        return Ok(None);
    }
    if bans.not_in_allow_list {
        if !target.sets.recomputable {
            return Ok(Some(Ban::NotCheap));
        }
    } else if target.sets.random {
        return Ok(Some(Ban::Draw));
    } else if target.sets.compute_intensive {
        return Ok(Some(Ban::Expensive));
    }
    if bans.materialized_backward && materialized_backward(cx, id) {
        return Ok(Some(Ban::MaterializedBackward));
    }
    if (cx.config.max_distance + 1..1000).contains(&cx.distance(id)) {
        return Ok(Some(Ban::TooFar));
    }
    if bans.reductions {
        let mut inputs = 0i64;
        for value in joint.graph.args(id) {
            if let Value::Node(input) = value {
                inputs = inputs.saturating_add(joint.size(*input)?);
            }
        }
        if joint.size(id)?.saturating_mul(4) < inputs {
            return Ok(Some(Ban::Reduction));
        }
    }
    Ok(None)
}

/// Whether backward needs the value in memory: it, or a view of it, has a reader outside forward that it cannot
/// be fused with. Views themselves are not looked at.
fn materialized_backward(cx: &Context, id: NodeId) -> bool {
    let joint = cx.joint;
    if joint.target(id).sets.view {
        return false;
    }
    let mut stack = vec![id];
    while let Some(at) = stack.pop() {
        for &user in joint.users(at) {
            if !cx.classes.needs_forward(user) && !cx.fusion.fuses(joint, at, user) {
                return true;
            }
            if joint.target(user).sets.view {
                stack.push(user);
            }
        }
    }
    false
}

/// Whether a budget may take back the ban of `id`.
pub fn may_unban(cx: &Context, id: NodeId) -> bool {
    let protected = cx.joint.target(id).collective && !cx.config.optimizes_collectives;
    cx.distance(id) < FAR && !protected && !cx.must_keep(id) && cx.hazards.unrepeatable(id).is_none()
}
