//! Merged reduce-scatters. The rows of every input divide among the ranks; the results are views of one buffer,
//! or of one buffer each in the coalesced body.
//!
//! Source: `reduce_scatter_merge_fn_to_trace` and its two siblings in `torch._inductor.fx_passes.bucketing`.

use super::body::{Merged, Parcel, fewer_rows, first_takers};
use super::emit::{Emitter, Piece};
use super::layout::Layout;
use crate::graph::Value;

fn reduce(emit: &mut Emitter, parcel: &Parcel, packed: &Piece) -> (Piece, Piece) {
    let args = [Value::Node(packed.id), parcel.reduce_op, Value::Int(parcel.group_size), parcel.group];
    let layout = Layout::fresh(
        &fewer_rows(&packed.layout.shape, parcel.group_size),
        packed.layout.dtype,
        packed.layout.device,
    );
    let start = emit.call("_c10d_functional.reduce_scatter_tensor.default", &args, &[], layout);
    let wait = emit.wait(&start);
    (start, wait)
}

/// This rank's part of each member, cut out of the result.
fn unpack(emit: &mut Emitter, parcel: &Parcel, wait: &Piece) -> Vec<Piece> {
    let shapes: Vec<Vec<i64>> = parcel.shapes.iter().map(|s| fewer_rows(s, parcel.group_size)).collect();
    let sizes: Vec<i64> =
        parcel.shapes.iter().map(|s| s.iter().product::<i64>() / parcel.group_size.max(1)).collect();
    let pieces = emit.split(wait, &sizes, 0);
    pieces.iter().zip(shapes).map(|(piece, shape)| emit.reshape(piece, &shape)).collect()
}

/// The inputs interleaved by rank: rank 0's part of each member, then rank 1's, ...
pub fn default(emit: &mut Emitter, parcel: &Parcel) -> Option<Merged> {
    let ranks = parcel.group_size;
    let by_rank: Vec<Piece> = parcel.inputs.iter().map(|x| emit.reshape(x, &[ranks, -1])).collect();
    let dtype = by_rank.first()?.layout.dtype;
    let packed = emit.cat(&by_rank, 1, dtype);
    let numel = packed.layout.numel();
    let flat = emit.reshape(&packed, &[numel]);
    let (start, wait) = reduce(emit, parcel, &flat);
    let outs = unpack(emit, parcel, &wait);
    let packers = first_takers(emit, parcel, &by_rank);
    Some(Merged { start: start.id, waits: vec![wait.id], outs, packers, filler: None })
}

/// PyTorch's packing operator (`chunk_cat`). Where padding was taken off an input, the operator pads again.
pub fn custom(emit: &mut Emitter, parcel: &Parcel) -> Option<Merged> {
    let ranks = parcel.group_size;
    let first = &parcel.inputs.first()?.layout;
    let (dtype, device) = (first.dtype, first.device);
    let packed_size = |(i, x): (usize, &Piece)| {
        let shape = &x.layout.shape;
        match shape.split_first() {
            Some((&rows, rest)) if parcel.unpadded.contains(&i) => {
                (rows + ranks - 1) / ranks * ranks * rest.iter().product::<i64>()
            }
            _ => x.layout.numel(),
        }
    };
    let numel: i64 = parcel.inputs.iter().enumerate().map(packed_size).sum();
    let mut args = vec![emit.list(&parcel.inputs), Value::Int(ranks)];
    if !parcel.unpadded.is_empty() {
        let indices: Vec<i64> = parcel.unpadded.iter().map(|&i| i as i64).collect();
        args.push(emit.ints(&indices));
    }
    let layout = Layout::fresh(&[numel], dtype, device);
    let packed = emit.call("bucketing._pre_bucket_reduce_scatter.default", &args, &[], layout);
    let (start, wait) = reduce(emit, parcel, &packed);
    let outs = unpack(emit, parcel, &wait);
    let packers = vec![packed.id; parcel.inputs.len()];
    Some(Merged { start: start.id, waits: vec![wait.id], outs, packers, filler: None })
}

/// One launch of several tensors, with one wait each.
pub fn coalesced(emit: &mut Emitter, parcel: &Parcel) -> Option<Merged> {
    let ranks = parcel.group_size;
    let flat: Vec<Piece> = parcel.inputs.iter().map(|x| emit.reshape(x, &[-1])).collect();
    let layouts: Vec<Layout> = flat
        .iter()
        .map(|x| Layout::fresh(&fewer_rows(&x.layout.shape, ranks), x.layout.dtype, x.layout.device))
        .collect();
    let args = [emit.list(&flat), parcel.reduce_op, Value::Int(ranks), parcel.group];
    let start = emit.calls("_c10d_functional.reduce_scatter_tensor_coalesced.default", &args, &layouts);
    let pieces: Vec<Piece> =
        layouts.iter().enumerate().map(|(i, layout)| emit.getitem(start, i, layout)).collect();
    let waits: Vec<Piece> = pieces.iter().map(|piece| emit.wait(piece)).collect();
    let shapes = parcel.shapes.iter().map(|s| fewer_rows(s, ranks));
    let outs: Vec<Piece> = waits.iter().zip(shapes).map(|(wait, shape)| emit.reshape(wait, &shape)).collect();
    let packers = first_takers(emit, parcel, &flat);
    Some(Merged { start, waits: waits.iter().map(|w| w.id).collect(), outs, packers, filler: None })
}
