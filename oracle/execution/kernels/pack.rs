//! The packing operators of FSDP and of the bucketing passes.
//!
//! Sources: `at::native::_chunk_cat`, `torch._inductor.fx_passes.bucketing`,
//! `torch.distributed.fsdp._fully_shard._fsdp_collectives`.

use super::super::block::{Block, whole};
use super::super::comm::{cat, concat};
use super::super::domain::{Outcome, raise, refuse};
use super::super::layout::{self, Dims, Window};
use super::super::number::Number;
use super::super::program::Step;
use super::super::rank::{Item, Rank};
use super::dim;
use crate::graph::{Dtype, NodeId};
use crate::ops::shape::{Packing, Size};
use crate::ops::{Move, dtype_of_bucketing_id};

impl Rank<'_> {
    pub(super) fn pack(&mut self, node: NodeId, step: &Step, movement: Move) -> Outcome<Item> {
        match movement {
            Move::ChunkCat => {
                let windows = self.tensors(step.args[0])?;
                let (along, chunks) = (self.int(step.args[1])?, self.int(step.args[2])?);
                let (block, shape, dtype) = self.chunk_cat(&windows, along, chunks)?;
                let item = self.deliver(node, step, shape, None, dtype, block)?;
                let returns = step.info.and_then(|i| i.schema.as_ref()).is_none_or(|s| !s.returns.is_empty());
                Ok(if returns { item } else { Item::None })
            }
            Move::SplitWithSizesCopy => self.split_copy(node, step),
            Move::PreBucketAllGather => self.pre_bucket_all_gather(node, step),
            Move::PreBucketReduceScatter => {
                let windows = self.tensors(step.args[0])?;
                let ranks = self.int(step.args[1])?;
                let first = *windows.first().ok_or_else(|| raise!("an empty bucket"))?;
                let filled: Vec<Window> = windows.into_iter().filter(|w| w.numel() != 0).collect();
                // What is empty is left out, be it the first.
                let dtype = filled.first().unwrap_or(&first).dtype;
                let block = match filled.is_empty() {
                    true => Block { cells: Vec::new(), marks: Vec::new(), grain: whole(dtype) },
                    false => self.chunk_cat(&filled, 0, ranks)?.0,
                };
                let count = (block.cells.len() / block.per_element(dtype).max(1)) as i64;
                self.deliver(
                    node,
                    step,
                    Dims::default().with_pushed(count).unwrap_or_default(),
                    None,
                    dtype,
                    block,
                )
            }
            Move::AllGatherCopyIn => self.copy_in(step),
            _ => Err(refuse!("{movement:?} has no kernel")),
        }
    }

    /// Each tensor padded with zeros to a multiple of `chunks` along a dimension, cut into that many chunks, the
    /// k-th chunks of all tensors flattened side by side: (.., chunks, elements).
    fn chunk_cat(&mut self, windows: &[Window], along: i64, chunks: i64) -> Outcome<(Block, Dims, Dtype)> {
        let first = windows.first().ok_or_else(|| raise!("an empty list of tensors"))?;
        let dtype = first.dtype;
        let at = dim(along, first.shape.len())?;
        if chunks <= 0 {
            return Err(raise!("{chunks} chunks"));
        }
        let mut parts = Vec::with_capacity(windows.len());
        let mut width = 0i64;
        for window in windows {
            let fits = window.dtype == dtype
                && window.shape.len() > at
                && window.shape[..at] == first.shape[..at]
                && window.numel() > 0;
            if !fits {
                return Err(raise!("chunk_cat of {:?} and {:?}", first.shape, window.shape));
            }
            let size = window.shape[at];
            let padded = (size / chunks + i64::from(size % chunks != 0)).saturating_mul(chunks);
            let fill = window.shape.with(at, padded - size);
            let count = self.room(&window.shape.with(at, padded)).and_then(|_| self.room(&fill))?;
            let zeros = self.filled(Number::Int(0), dtype, count)?;
            let block = self.moved(window, dtype)?;
            let block = cat(self.domain, vec![(block, window.shape), (zeros, fill)], at, dtype);
            // Leading dimensions, chunk, everything else flattened.
            let rest = layout::numel(&window.shape[at + 1..]).unwrap_or(0) as i64;
            let each = (padded / chunks).saturating_mul(rest);
            width = width.saturating_add(each);
            let shape = Dims::collect(first.shape[..at].iter().copied().chain([chunks, each]));
            parts.push((block, shape.ok_or_else(|| super::super::rank::too_many(at + 2))?));
        }
        let block = cat(self.domain, parts, at + 1, dtype);
        let shape = Dims::collect(first.shape[..at].iter().copied().chain([chunks, width]));
        Ok((block, shape.unwrap_or_default(), dtype))
    }

    fn split_copy(&mut self, node: NodeId, step: &Step) -> Outcome<Item> {
        let x = self.tensor(step.args[0])?;
        let pieces = pieces(&x, self.int(step.args[2])?, &self.sizes(step.args[1])?)?;
        let Some(into) = step.into else {
            let copies = pieces.iter().enumerate().map(|(i, p)| Ok(Item::Tensor(self.copied(node, i, p)?)));
            return Ok(Item::List(copies.collect::<Outcome<_>>()?));
        };
        let targets = self.tensors(into)?;
        if targets.len() != pieces.len() {
            return Err(raise!("{} destinations for {} pieces", targets.len(), pieces.len()));
        }
        for (piece, target) in pieces.iter().zip(&targets) {
            let block = self.moved(piece, piece.dtype)?;
            self.store(target, piece.shape, piece.dtype, block)?;
        }
        Ok(Item::None)
    }

    /// An uninitialised buffer for all ranks whose own slot holds the inputs, each cast to its own dtype.
    fn pre_bucket_all_gather(&mut self, node: NodeId, step: &Step) -> Outcome<Item> {
        let [inputs, ranks, dtype, dtypes, rank, ..] = step.args;
        let inputs = self.tensors(inputs)?;
        let (ranks, rank) = (self.int(ranks)?, self.int(rank)?);
        let dtype = self.dtype(dtype).ok_or_else(|| raise!("the bucket needs a dtype"))?;
        let dtypes = self.ints(dtypes)?;
        if dtypes.len() != inputs.len() || rank < 0 || rank >= ranks {
            return Err(raise!(
                "{} dtypes for {} inputs, rank {rank} of {ranks}",
                dtypes.len(),
                inputs.len()
            ));
        }
        let mut blocks = Vec::with_capacity(inputs.len());
        let mut packing = Packing { pieces: Vec::with_capacity(inputs.len()), dtype };
        for (window, &position) in inputs.iter().zip(&dtypes) {
            let own = dtype_of_bucketing_id(position).ok_or_else(|| refuse!("dtype number {position}"))?;
            packing.pieces.push((window.numel() as i64, own));
            let bytes = window.numel() * own.itemsize() as usize;
            if !bytes.is_multiple_of(dtype.itemsize() as usize) {
                return Err(raise!("{bytes} bytes are no whole number of {}", dtype.name()));
            }
            let mut block = self.moved(window, own)?;
            block.refine(self.domain, whole(dtype));
            blocks.push(block);
        }
        if let Some(wrong) = packing.misplaced(rank) {
            return Err(raise!(
                "input {} begins at element {} of {}, which cannot be viewed there as {}",
                wrong.piece,
                wrong.element,
                dtype.name(),
                wrong.dtype.name()
            ));
        }
        let slot = concat(self.domain, blocks);
        let grain = slot.grain.min(whole(dtype));
        let per = dtype.itemsize() as usize / usize::from(grain.max(1));
        // Inputs of a smaller element size than the bucket's leave their own grain in the buffer.
        let count = slot.cells.len() / per.max(1);
        let shape = Dims::default().with_pushed((count as i64).saturating_mul(ranks)).unwrap_or_default();
        self.room(&shape)?;
        let buffer = self.fresh(node, 0, shape, dtype, Block::poison(count * ranks as usize * per, grain));
        let slot_shape = Dims::default().with_pushed(count as i64).unwrap_or_default();
        let window = Window { shape: slot_shape, offset: count as i64 * rank, ..buffer };
        self.memory.write(self.domain, &window, slot)?;
        Ok(Item::Tensor(buffer))
    }

    /// Copies the inputs into this rank's slot of the given buffer: (slot, buffer).
    fn copy_in(&mut self, step: &Step) -> Outcome<Item> {
        let [inputs, buffer, sizes, count, rank, ..] = step.args;
        let (inputs, buffer) = (self.tensors(inputs)?, self.tensor(buffer)?);
        let (count, rank) = (self.int(count)?, self.int(rank)?);
        let start = count.saturating_mul(rank);
        let slot = buffer.shown().narrowed(0, Size::Known(start), Size::Known(count))?;
        let slot = buffer.showing(&slot)?;
        let pieces = pieces(&slot, 0, &self.sizes(sizes)?)?;
        if pieces.len() != inputs.len() || start < 0 {
            return Err(raise!("{} sizes for {} inputs", pieces.len(), inputs.len()));
        }
        for (piece, input) in pieces.iter().zip(&inputs) {
            let block = self.moved_to(input, piece.shape, piece.dtype)?;
            self.memory.write(self.domain, piece, block)?;
        }
        Ok(Item::List(vec![Item::Tensor(slot), Item::Tensor(buffer)]))
    }
}

/// Pieces of a dimension side by side.
fn pieces(x: &Window, dim: i64, sizes: &[Size]) -> Outcome<Vec<Window>> {
    x.shown().split_with_sizes(dim, sizes)?.iter().map(|piece| x.showing(piece)).collect()
}
