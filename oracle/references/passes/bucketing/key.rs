//! What the members of a bucket have in common.

use super::member::{Group, Member};
use crate::config::bucketing::Mode;
use crate::graph::{Dtype, Graph, Str};
use crate::ops::Collective;

/// The key of a candidate: (group, dtype) of a gather, without the dtype in a multidtype mode; (group,
/// reduce_op, dtype) of a reduction. The kind is part of it. Group size and device are in no key: they are
/// compared when a member joins a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    /// What the collectives do.
    pub kind: Collective,
    /// Where.
    pub group: Group,
    /// How a reduction combines.
    pub reduce_op: Option<Str>,
    /// The dtype of their results.
    pub dtype: Option<Dtype>,
}

impl Key {
    /// The key under a mode. The mode of the key is always the mode of the merge. (PyTorch 2.15's FSDP passes
    /// group by the default mode whatever they merge by, so they never mix dtypes.)
    pub fn of(member: &Member, mode: Mode) -> Key {
        let mixed = mode == Mode::CustomOpsMultidtype && member.kind == Collective::AllGather;
        Key {
            kind: member.kind,
            group: member.group,
            reduce_op: member.reduce_op,
            dtype: (!mixed).then_some(member.dtype),
        }
    }

    /// In words: `reduce_scatter dp avg float32`.
    pub fn describe(&self, graph: &Graph) -> String {
        let mut words = vec![self.kind.name(), self.group.name(graph)];
        words.extend(self.reduce_op.map(|op| graph.text(op)));
        words.extend(self.dtype.map(|dtype| dtype.name()));
        words.join(" ")
    }
}
