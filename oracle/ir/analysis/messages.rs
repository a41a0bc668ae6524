//! Messages: what one rank sends and another one receives.
//!
//! # The idea
//!
//! A message has two ends, a send on one rank and a receive on another. Which send meets which receive is decided by order
//! alone: of the members `a` and `b` of one instance of a process group, the `k`-th send from `a` to `b` meets the `k`-th
//! receive of `b` from `a`. What the two say of the message must agree: its dtype, its number of elements, and its tag.
//! (NCCL pairs messages by order and ignores tags, gloo pairs them by tag. Where both agree the backend does not matter.)
//!
//! So a message is no effect of a rank's graph but half of something: it is right where its other half is there and what
//! comes of it is. The order of messages matters between two members alone, and no further than it pairs them; whether
//! ranks wait for each other in a circle is a question to all of them together (the simulator).

use super::collectives::CollectiveCall;
use crate::graph::{Dtype, Graph, NodeId, Value};
use crate::ops::{Bound, Collective};

/// One end of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// Whether this rank sends; it receives otherwise.
    pub sends: bool,
    /// The other rank's index in the group.
    pub peer: i64,
    /// The tag.
    pub tag: i64,
    /// What is sent, or received into.
    pub tensor: NodeId,
}

impl Message {
    /// What both ends must agree on, as far as it is known.
    pub fn terms(&self, graph: &Graph) -> (i64, Option<Dtype>, Option<i64>) {
        let tensor = graph.tensor_of(self.tensor);
        (self.tag, tensor.map(|t| t.dtype), tensor.and_then(|t| graph.numel(t)))
    }
}

/// The messages that a call starts, in order; none of a collective. `None` where they are not known.
pub(super) fn of(graph: &Graph, bound: &Bound, call: &CollectiveCall) -> Option<Vec<Message>> {
    match call.kind {
        Collective::Send | Collective::Recv => {
            let sends = call.kind == Collective::Send;
            let (peer, tensor) = (call.peer?, *call.inputs.first()?);
            Some(vec![Message { sends, peer, tag: bound.int("tag").unwrap_or(0), tensor }])
        }
        Collective::PointToPoint => {
            let (kinds, peers) = (bound.list("op_list")?, bound.ints("peer_list")?);
            let tags = bound.ints("tag_list")?;
            if [kinds.len(), peers.len(), tags.len()] != [call.inputs.len(); 3] {
                return None;
            }
            let each = kinds.iter().zip(peers).zip(tags).zip(&call.inputs);
            each.map(|(((&kind, peer), tag), &tensor)| match kind {
                Value::Str(word) => {
                    let sends = Collective::message(graph.text(word))? == Collective::Send;
                    Some(Message { sends, peer, tag, tensor })
                }
                _ => None,
            })
            .collect()
        }
        _ => Some(Vec::new()),
    }
}
