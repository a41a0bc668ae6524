//! Mutants of draws, writes and effects.

use crate::graph::NodeId;
use crate::passes::partition::joint::Role;
use crate::passes::partition::marks::Placement;
use crate::passes::partition::min_cut::Ban;
use crate::passes::partition::{Joint, Strategy, hazards};

/// Draws are like any other operator.
pub(super) struct RepeatsDraws;
impl Strategy for RepeatsDraws {
    fn unrepeatable(&self, joint: &Joint, id: NodeId) -> Option<Ban> {
        hazards::unrepeatable(joint, id).filter(|ban| *ban != Ban::Draw)
    }
}

/// The second draw starts from where the generator stands.
pub(super) struct UnpairedDraws;
impl Strategy for UnpairedDraws {
    fn pairs_draws(&self) -> bool {
        false
    }
}

/// Writes of forward do not matter.
pub(super) struct IgnoresWrites;
impl Strategy for IgnoresWrites {
    fn minds_overwriting(&self) -> bool {
        false
    }
}

/// A write belongs where its operands are.
pub(super) struct WritesByOperands;
impl WritesByOperands {
    fn has_forward_operands(joint: &Joint, id: NodeId) -> bool {
        let forward = |&input: &NodeId| match joint.role(input) {
            Role::Call => matches!(joint.tags(input).placement, Placement::Forward | Placement::Untagged),
            role => role != Role::Tangent,
        };
        joint.target(id).mutable
            && joint.tags(id).placement == Placement::Backward
            && joint.edges.inputs(id).iter().all(forward)
    }
}
impl Strategy for WritesByOperands {
    fn must_be_forward(&self, joint: &Joint, id: NodeId) -> bool {
        joint.must_be_forward(id) || WritesByOperands::has_forward_operands(joint, id)
    }

    fn must_be_backward(&self, joint: &Joint, id: NodeId) -> bool {
        joint.must_be_backward(id) && !WritesByOperands::has_forward_operands(joint, id)
    }
}

/// What no tangent leads to is lost from backward's order.
pub(super) struct TangentsOnly;
impl Strategy for TangentsOnly {
    fn hoists(&self, _: &Joint, _: NodeId) -> bool {
        false
    }
}
