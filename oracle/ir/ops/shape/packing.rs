//! Where `bucketing._pre_bucket_all_gather` puts its inputs, and whether each can lie there.
//!
//! The operator cuts each rank's slot of a buffer into one piece for each input, shows a piece as the dtype that the
//! input is converted to, and copies. The buffer's elements are the smallest ones of the bucket; a piece of larger ones
//! can be shown only where its offset in the buffer is a multiple of its own element, on every rank:
//! `Tensor.view(dtype)` raises otherwise, while the operator's fake implementation does not look.
//!
//! Source: `torch._inductor.fx_passes.bucketing._pre_bucket_all_gather`; `aten/src/ATen/native/TensorConversions.cpp`,
//! `view_dtype`.

use super::super::{Kind, Move, Ops, dtype_of_bucketing_id};
use super::call::{Call, Rule, Stop, fault};
use super::size::numel;
use crate::graph::{Dtype, Graph, NodeId};

/// What one call packs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packing {
    /// The number of elements of each input and the dtype that it is converted to, in the order of the slot.
    pub pieces: Vec<(i64, Dtype)>,
    /// The dtype of the buffer.
    pub dtype: Dtype,
}

/// A piece that cannot be shown as its dtype.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Misplaced {
    /// Which piece.
    pub piece: usize,
    /// The element of the buffer where it begins.
    pub element: i64,
    /// Its dtype.
    pub dtype: Dtype,
    /// The rank, by its place in the group.
    pub rank: i64,
}

impl Packing {
    /// What a node packs; `None` if it is no such call, or sizes are not known.
    pub fn of(graph: &Graph, ops: &Ops, node: NodeId) -> Option<Packing> {
        let info = ops.call(graph, node)?;
        if info.kind != Kind::Move(Move::PreBucketAllGather) {
            return None;
        }
        let call = Call::new(graph, node, info, info.schema.as_ref()?).ok()?;
        Packing::of_call(&call).ok()
    }

    pub(super) fn of_call(call: &Call) -> Rule<Packing> {
        let inputs = call.tensors("ag_ins")?;
        let ids = call.ints("out_dtype_ints")?;
        let Some(dtype) = call.dtype("dtype") else { return Err(Stop::Undecided) };
        if ids.len() != inputs.len() {
            return fault(format!("{} inputs, but {} dtypes", inputs.len(), ids.len()));
        }
        let piece = |(input, &id): (&super::TensorMeta, &i64)| {
            let of = dtype_of_bucketing_id(id).ok_or(Stop::Undecided)?;
            Ok((numel(&input.shape).known().ok_or(Stop::Undecided)?, of))
        };
        let pieces = inputs.iter().zip(&ids).map(piece).collect::<Rule<Vec<_>>>()?;
        Ok(Packing { pieces, dtype })
    }

    /// Elements of the buffer that each piece takes; `None` where they are too many to count.
    fn lengths(&self) -> impl Iterator<Item = Option<i64>> {
        let unit = i64::from(self.dtype.itemsize()).max(1);
        self.pieces
            .iter()
            .map(move |(count, dtype)| Some(count.checked_mul(i64::from(dtype.itemsize()))? / unit))
    }

    /// Elements of the buffer that one rank's slot takes; `None` where they are too many to count.
    pub fn slot(&self) -> Option<i64> {
        self.lengths().try_fold(0i64, |sum, len| sum.checked_add(len?))
    }

    /// The first piece that cannot be shown as its dtype on a rank, given by its place in the group.
    pub fn misplaced(&self, rank: i64) -> Option<Misplaced> {
        let mut element = self.slot()?.checked_mul(rank)?;
        for (piece, (&(_, dtype), len)) in self.pieces.iter().zip(self.lengths()).enumerate() {
            let ratio = i64::from(dtype.itemsize() / self.dtype.itemsize().max(1)).max(1);
            if element % ratio != 0 {
                return Some(Misplaced { piece, element, dtype, rank });
            }
            element = element.checked_add(len?)?;
        }
        None
    }

    /// The first piece that cannot be shown as its dtype on some rank of a group of `ranks`. The offsets are linear in
    /// the rank, so two ranks tell for all.
    pub fn misplaced_anywhere(&self, ranks: i64) -> Option<Misplaced> {
        (0..ranks.min(2)).find_map(|rank| self.misplaced(rank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packing(pieces: &[(i64, Dtype)]) -> Packing {
        Packing { pieces: pieces.to_vec(), dtype: Dtype::BF16 }
    }

    /// As PyTorch 2.15 does it: `torch.empty(2 * n, dtype=torch.bfloat16)`, narrowed, split and viewed.
    #[test]
    fn a_piece_lies_at_multiples_of_its_element_on_every_rank() {
        let (half, single) = (Dtype::BF16, Dtype::F32);
        let first = |pieces: &[(i64, Dtype)], rank| {
            packing(pieces).misplaced(rank).map(|wrong| (wrong.piece, wrong.element))
        };
        assert_eq!(first(&[(3, half), (1, single)], 0), Some((1, 3)));
        assert_eq!(first(&[(1, single), (3, half)], 0), None);
        // The slot has five elements, so that of the second rank begins at the fifth.
        assert_eq!(first(&[(1, single), (3, half)], 1), Some((0, 5)));
        assert_eq!(first(&[(1, single), (3, half)], 2), None);
        assert_eq!(first(&[(1, single), (4, half)], 1), None);
        // No element, and it is viewed all the same.
        assert_eq!(first(&[(3, half), (0, single)], 0), Some((1, 3)));
        assert_eq!(packing(&[(1, single), (3, half)]).misplaced_anywhere(1), None);
        assert_eq!(packing(&[(1, single), (3, half)]).misplaced_anywhere(8).map(|wrong| wrong.rank), Some(1));
    }

    #[test]
    fn what_cannot_be_counted_is_not_judged() {
        let pieces = vec![(i64::MAX, Dtype::F32), (3, Dtype::BF16), (1, Dtype::F32)];
        let packing = Packing { pieces, dtype: Dtype::BF16 };
        assert_eq!((packing.slot(), packing.misplaced(0)), (None, None));
    }
}
