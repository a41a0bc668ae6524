//! Mutants whose merged bodies cut tensors in the wrong places.

use crate::graph::{Dtype, Value};
use crate::ops::Collective;
use crate::passes::bucketing::merge::{self, Body, Emitter, Merged, Parcel, Piece};
use crate::passes::bucketing::{Mode, Strategy};

/// What was padded is packed as it is.
pub(super) struct WithoutPadding;

impl Strategy for WithoutPadding {
    fn body(&self, kind: Collective, mode: Mode) -> Body {
        match kind {
            Collective::ReduceScatter if mode.is_custom() => unpadded,
            kind => merge::body(kind, mode),
        }
    }
}

fn unpadded(emit: &mut Emitter, parcel: &Parcel) -> Option<Merged> {
    let parcel = Parcel { unpadded: Vec::new(), ..parcel.clone() };
    merge::body(Collective::ReduceScatter, parcel.mode)(emit, &parcel)
}

/// Member *i* of a gather begins where it begins in one rank's slot.
pub(super) struct LocalOffsets;

impl Strategy for LocalOffsets {
    fn body(&self, kind: Collective, mode: Mode) -> Body {
        match (kind, mode) {
            (Collective::AllGather, Mode::Default) => gather,
            (kind, mode) => merge::body(kind, mode),
        }
    }

    fn packs_exactly(&self, _: Mode, _: &[Piece], _: Dtype) -> bool {
        false
    }
}

fn gather(emit: &mut Emitter, parcel: &Parcel) -> Option<Merged> {
    let flat: Vec<Piece> = parcel.inputs.iter().map(|input| emit.reshape(input, &[-1])).collect();
    let first = flat.first()?.layout.clone();
    let whole = emit.cat(&flat, 0, first.dtype);
    let mut layout = whole.layout.clone();
    layout.shape[0] *= parcel.group_size;
    let args = [Value::Node(whole.id), Value::Int(parcel.group_size), parcel.group];
    let start = emit.call("_c10d_functional.all_gather_into_tensor.default", &args, &[], layout);
    let wait = emit.wait(&start);
    let mut offset = 0;
    let mut outs = Vec::with_capacity(flat.len());
    for (input, numel) in parcel.inputs.iter().zip(parcel.numels()) {
        let piece = emit.slice(&wait, offset, numel * parcel.group_size);
        outs.push(emit.reshape(&piece, &merge::more_rows(&input.layout.shape, parcel.group_size)));
        offset += numel;
    }
    let packers = flat.iter().map(|piece| piece.id).collect();
    Some(Merged { start: start.id, waits: vec![wait.id], outs, packers, filler: None })
}
