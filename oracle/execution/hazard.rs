//! Hazards: accesses that race with communication, and other things that no value shows.
//!
//! A hazard does not stop a run. It says that what a value is depends on timing (so the interpreter makes it
//! poison), or that PyTorch would have refused what the interpreter could still do.

use crate::graph::NodeId;
use std::fmt;

/// What a node did that it must not do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HazardKind {
    /// It reads the result of a collective that has not been waited for.
    ReadInFlight {
        /// The collective.
        collective: NodeId,
    },
    /// It changes the input of a collective that has not been waited for.
    InputOverwritten {
        /// The collective.
        collective: NodeId,
    },
    /// It writes where a collective that has not been waited for will write.
    OutputOverwritten {
        /// The collective.
        collective: NodeId,
    },
    /// It starts a collective whose input lies in its output, but not in this rank's own part of it.
    InputUnderOutput,
    /// It starts a collective that is never waited for.
    NeverWaited,
    /// It views a tensor under a shape that its strides do not allow; the interpreter went on with a copy.
    ViewNeedsCopy,
}

/// A hazard of one rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hazard {
    /// The rank.
    pub rank: u32,
    /// The node that did it.
    pub node: NodeId,
    /// What it did.
    pub kind: HazardKind,
}

impl Hazard {
    /// The hazard in words; `name` gives the name of a node.
    pub fn describe<'a>(&self, name: impl Fn(NodeId) -> &'a str) -> String {
        let (rank, node) = (self.rank, name(self.node));
        match self.kind {
            HazardKind::ReadInFlight { collective } => {
                format!("rank {rank}: {node} reads the result of {} before any wait", name(collective))
            }
            HazardKind::InputOverwritten { collective } => {
                format!("rank {rank}: {node} changes the input of {} before its wait", name(collective))
            }
            HazardKind::OutputOverwritten { collective } => {
                format!("rank {rank}: {node} writes where {} is still to write", name(collective))
            }
            HazardKind::InputUnderOutput => {
                format!(
                    "rank {rank}: {node} overwrites its own input, which is not in this rank's part of the output"
                )
            }
            HazardKind::NeverWaited => format!("rank {rank}: {node} is never waited for"),
            HazardKind::ViewNeedsCopy => {
                format!("rank {rank}: {node} views a tensor whose strides do not allow it")
            }
        }
    }
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}, node {}: {:?}", self.rank, self.node.0, self.kind)
    }
}
