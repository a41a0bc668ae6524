//! The ingredients of a partitioner that another algorithm would choose differently, one method each. The defaults
//! are the reference; whoever wants another algorithm, or a broken one, replaces a method.

use super::joint::{Joint, Role};
use crate::graph::NodeId;
use fixedbitset::FixedBitSet;

/// The choices of a partitioner.
pub trait Policy {
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
}

/// The reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reference;

impl Policy for Reference {}
