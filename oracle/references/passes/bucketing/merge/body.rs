//! What a merged body is made from and what it gives back.

use super::emit::{Emitter, Piece};
use crate::graph::{Dtype, NodeId, Value};
use crate::passes::bucketing::Mode;

/// What goes into one merged collective. All lists are in bucket order.
#[derive(Clone, Debug)]
pub struct Parcel {
    /// What is packed: the members' inputs, or what casts and packing nodes in front of them were made from.
    pub inputs: Vec<Piece>,
    /// Shapes of the members' own inputs. They differ from those of `inputs` where padding was taken off.
    pub shapes: Vec<Vec<i64>>,
    /// Dtypes of the members' results.
    pub dtypes: Vec<Dtype>,
    /// Which `inputs` stand for a padded one.
    pub unpadded: Vec<usize>,
    /// Ranks in the group.
    pub group_size: i64,
    /// The group, as an argument.
    pub group: Value,
    /// How a reduction combines, as an argument.
    pub reduce_op: Value,
    /// This rank's index in the group.
    pub rank: i64,
    /// How to pack.
    pub mode: Mode,
}

impl Parcel {
    /// The number of elements of each input.
    pub fn numels(&self) -> Vec<i64> {
        self.inputs.iter().map(|x| x.layout.numel()).collect()
    }
}

/// What came out of one merged collective.
#[derive(Clone, Debug)]
pub struct Merged {
    /// The collective.
    pub start: NodeId,
    /// Its waits: one, or one per member.
    pub waits: Vec<NodeId>,
    /// The members' results.
    pub outs: Vec<Piece>,
    /// For each member the first node that takes its input.
    pub packers: Vec<NodeId>,
    /// A node that fills buffers which the results are views of, where no data edge leads from it to them.
    pub filler: Option<NodeId>,
}

impl Merged {
    /// The first node that takes a member's input.
    pub fn packer(&self, member: usize) -> NodeId {
        self.packers.get(member).copied().unwrap_or(self.start)
    }
}

/// A body that a strategy chooses. `None`: it cannot be written for these inputs.
pub type Body = fn(&mut Emitter, &Parcel) -> Option<Merged>;

/// A shape with its rows multiplied.
pub fn more_rows(shape: &[i64], factor: i64) -> Vec<i64> {
    let mut rows = shape.to_vec();
    if let Some(first) = rows.first_mut() {
        *first *= factor;
    }
    rows
}

/// A shape with its rows divided.
pub fn fewer_rows(shape: &[i64], divisor: i64) -> Vec<i64> {
    let mut rows = shape.to_vec();
    if let Some(first) = rows.first_mut() {
        *first /= divisor.max(1);
    }
    rows
}

/// The first node that takes each input: its reshape, which is one node or, with a copy, two.
pub(super) fn first_takers(emit: &Emitter, parcel: &Parcel, reshaped: &[Piece]) -> Vec<NodeId> {
    let graph = emit.editor().graph();
    let first = |(x, y): (&Piece, &Piece)| match graph.arg(y.id, 0) {
        Some(Value::Node(copy)) if copy != x.id => copy,
        _ => y.id,
    };
    parcel.inputs.iter().zip(reshaped).map(first).collect()
}
