//! Merged all-reduces: one over the concatenation of the flattened inputs. The mode does not matter. The results
//! are views of one buffer.
//!
//! Source: `all_reduce_merge_fn_to_trace` in `torch._inductor.fx_passes.bucketing`.

use super::body::{Merged, Parcel, first_takers};
use super::emit::{Emitter, Piece};
use crate::graph::Value;

/// The one body there is.
pub fn default(emit: &mut Emitter, parcel: &Parcel) -> Option<Merged> {
    let flat: Vec<Piece> = parcel.inputs.iter().map(|x| emit.reshape(x, &[-1])).collect();
    let dtype = flat.first()?.layout.dtype;
    let whole = emit.cat(&flat, 0, dtype);
    let args = [Value::Node(whole.id), parcel.reduce_op, parcel.group];
    let start = emit.call("_c10d_functional.all_reduce.default", &args, &[], whole.layout);
    let wait = emit.wait(&start);
    let pieces = emit.split(&wait, &parcel.numels(), 0);
    let outs = pieces.iter().zip(&parcel.inputs).map(|(y, x)| emit.reshape(y, &x.layout.shape)).collect();
    let packers = first_takers(emit, parcel, &flat);
    Some(Merged { start: start.id, waits: vec![wait.id], outs, packers, filler: None })
}
