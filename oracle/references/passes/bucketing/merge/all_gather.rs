//! Merged all-gathers.
//!
//! Required of every body: result *i* is the concatenation over ranks, on dimension 0, of input *i* cast to
//! its member's dtype. Flattening is logical (row-major), so the inputs need not be contiguous. The rank is a
//! constant of the merged graph, so the graphs of different ranks differ in it.
//!
//! Source: `all_gather_merge_fn_to_trace` and its two siblings in `torch._inductor.fx_passes.bucketing`.

use super::body::{Merged, Parcel, first_takers, more_rows};
use super::cast::promoted;
use super::emit::{Emitter, Piece};
use super::layout::Layout;
use crate::graph::{Dtype, NodeId, Out, Str, Value};
use crate::passes::bucketing::Mode;

/// The element type of the shared buffer: the members' narrowest, the first of several.
fn container(parcel: &Parcel) -> Dtype {
    let dtypes = parcel.dtypes.iter().copied();
    dtypes.min_by_key(|dtype| dtype.itemsize()).unwrap_or(Dtype::F32)
}

fn device(parcel: &Parcel) -> Option<Str> {
    parcel.inputs.first().map(|x| x.layout.device)
}

/// The gather into a buffer, its wait, and the buffer seen as one row per rank.
fn gather(emit: &mut Emitter, parcel: &Parcel, slot: &Piece, buffer: &Piece) -> (NodeId, NodeId, Piece) {
    let args = [Value::Node(slot.id), Value::Int(parcel.group_size), parcel.group];
    let out = [("out", Value::Node(buffer.id))];
    let target = "_c10d_functional.all_gather_into_tensor_out.default";
    let start = emit.call(target, &args, &out, buffer.layout.clone());
    let wait = emit.wait(&start);
    let rows = emit.reshape(&wait, &[parcel.group_size, -1]);
    (start.id, wait.id, rows)
}

/// Columns of the gathered rows, each copied to its member's shape.
fn unpack(emit: &mut Emitter, parcel: &Parcel, rows: &Piece) -> Vec<Piece> {
    let columns = emit.split(rows, &parcel.numels(), 1);
    let shapes = parcel.inputs.iter().map(|x| more_rows(&x.layout.shape, parcel.group_size));
    columns.iter().zip(shapes).map(|(column, shape)| emit.reshape(column, &shape)).collect()
}

fn flattened(emit: &mut Emitter, parcel: &Parcel) -> Vec<Piece> {
    parcel.inputs.iter().map(|x| emit.reshape(x, &[-1])).collect()
}

/// A buffer for the whole group; this rank's slot in it filled from a concatenation; a gather in place.
pub fn default(emit: &mut Emitter, parcel: &Parcel) -> Option<Merged> {
    let numel: i64 = parcel.numels().iter().sum();
    let buffer = emit.empty(&[numel * parcel.group_size], container(parcel), device(parcel)?);
    let slot = emit.slice(&buffer, parcel.rank * numel, numel);
    let flat = flattened(emit, parcel);
    let whole = emit.cat(&flat, 0, promoted(flat.iter().map(|x| x.layout.dtype))?);
    let args = [Value::Node(slot.id), Value::Node(whole.id)];
    let filled = emit.call("aten.copy_.default", &args, &[], slot.layout);
    let (start, wait, rows) = gather(emit, parcel, &filled, &buffer);
    let outs = unpack(emit, parcel, &rows);
    let packers = first_takers(emit, parcel, &flat);
    Some(Merged { start, waits: vec![wait], outs, packers, filler: None })
}

/// No write in place but the gather's own: the slot is the concatenation, or comes from
/// `fsdp.all_gather_copy_in`.
pub fn functional(emit: &mut Emitter, parcel: &Parcel) -> Option<Merged> {
    let numels = parcel.numels();
    let numel: i64 = numels.iter().sum();
    let empty = emit.empty(&[numel * parcel.group_size], container(parcel), device(parcel)?);
    let flat = flattened(emit, parcel);
    let (slot, buffer) = match parcel.mode {
        Mode::Functional { copy_in: true } => {
            let args = [
                emit.list(&flat),
                Value::Node(empty.id),
                emit.ints(&numels),
                Value::Int(numel),
                Value::Int(parcel.rank),
            ];
            let slot = empty.layout.narrowed(0, parcel.rank * numel, numel);
            let buffer = empty.layout.clone();
            let copied =
                emit.calls("fsdp.all_gather_copy_in.default", &args, &[slot.clone(), buffer.clone()]);
            (emit.getitem(copied, 0, &slot), emit.getitem(copied, 1, &buffer))
        }
        _ => (emit.cat(&flat, 0, promoted(flat.iter().map(|x| x.layout.dtype))?), empty),
    };
    let (start, wait, rows) = gather(emit, parcel, &slot, &buffer);
    let outs = unpack(emit, parcel, &rows);
    let packers = first_takers(emit, parcel, &flat);
    Some(Merged { start, waits: vec![wait], outs, packers, filler: None })
}

/// Positions of dtypes in the alphabetical list of all names of dtypes in the `torch` module, the first name
/// of each. Source: `_ALL_DTYPES` there.
pub fn dtype_id(dtype: Dtype) -> i64 {
    match dtype {
        Dtype::BF16 => 1,
        Dtype::Bool => 8,
        Dtype::C128 => 9,
        Dtype::C64 => 10,
        Dtype::F64 => 15,
        Dtype::F32 => 16,
        Dtype::F16 => 17,
        Dtype::F8E4M3 => 21,
        Dtype::F8E5M2 => 23,
        Dtype::I32 => 27,
        Dtype::I16 => 29,
        Dtype::I64 => 36,
        Dtype::I8 => 38,
        Dtype::U16 => 47,
        Dtype::U32 => 50,
        Dtype::U64 => 54,
        Dtype::U8 => 56,
    }
}

/// Inputs that one fused copy can take, by (dtype, result dtype, contiguous), separated by -1; `None` where one
/// group holds all. Source: `_compute_foreach_groups` there.
fn copy_groups(parcel: &Parcel) -> Option<Vec<i64>> {
    let mut groups: Vec<((Dtype, Dtype, bool), Vec<i64>)> = Vec::new();
    for (i, (x, &dtype)) in parcel.inputs.iter().zip(&parcel.dtypes).enumerate() {
        let key = (x.layout.dtype, dtype, x.layout.is_contiguous());
        match groups.iter_mut().find(|(k, _)| *k == key) {
            Some((_, members)) => members.push(i as i64),
            None => groups.push((key, vec![i as i64])),
        }
    }
    if groups.len() < 2 {
        return None;
    }
    let lists: Vec<Vec<i64>> = groups.into_iter().map(|(_, members)| members).collect();
    Some(lists.join(&-1))
}

/// PyTorch's packing operator; each piece is cast on its own, so dtypes may differ. Pieces are counted in
/// elements of the narrowest dtype.
pub fn custom(emit: &mut Emitter, parcel: &Parcel) -> Option<Merged> {
    let (inner, device) = (container(parcel), device(parcel)?);
    let numels = parcel.numels();
    let bytes = numels.iter().zip(&parcel.dtypes).map(|(n, dtype)| n * i64::from(dtype.itemsize()));
    let sizes: Vec<i64> = bytes.map(|bytes| bytes / i64::from(inner.itemsize())).collect();
    let total: i64 = sizes.iter().sum();
    let ids: Vec<i64> = parcel.dtypes.iter().map(|&dtype| dtype_id(dtype)).collect();
    let mut args = vec![
        emit.list(&parcel.inputs),
        Value::Int(parcel.group_size),
        Value::Dtype(inner),
        emit.ints(&ids),
        Value::Int(parcel.rank),
    ];
    if let Some(groups) = copy_groups(parcel) {
        args.push(emit.ints(&groups));
    }
    let layout = Layout::fresh(&[total * parcel.group_size], inner, device);
    let buffer = emit.call("bucketing._pre_bucket_all_gather.default", &args, &[], layout);
    let packers = vec![buffer.id; parcel.inputs.len()];
    let slot = emit.slice(&buffer, parcel.rank * total, total);
    let (start, wait, rows) = gather(emit, parcel, &slot, &buffer);
    let (outs, filler) = unpack_custom(emit, parcel, &rows, &sizes, device)?;
    Some(Merged { start, waits: vec![wait], outs, packers, filler })
}

/// The results, and the node that fills them where no data edge says so.
fn unpack_custom(
    emit: &mut Emitter,
    parcel: &Parcel,
    rows: &Piece,
    sizes: &[i64],
    device: Str,
) -> Option<(Vec<Piece>, Option<NodeId>)> {
    let ranks = parcel.group_size;
    let shapes: Vec<Vec<i64>> = parcel.inputs.iter().map(|x| more_rows(&x.layout.shape, ranks)).collect();
    let members = || shapes.iter().zip(&parcel.dtypes);
    if sizes.iter().all(|&size| size == 0) {
        return Some((members().map(|(shape, &dtype)| emit.empty(shape, dtype, device)).collect(), None));
    }
    if ranks == 1 || sizes.len() == 1 {
        let columns = emit.split(rows, sizes, 1);
        let mut outs = Vec::with_capacity(columns.len());
        for (column, (shape, &dtype)) in columns.iter().zip(members()) {
            let typed = emit.retype(column, dtype)?;
            outs.push(emit.reshape(&typed, shape));
        }
        return Some((outs, None));
    }
    let numels = parcel.numels();
    let fresh: Vec<Piece> = numels
        .iter()
        .zip(&parcel.dtypes)
        .map(|(n, &dtype)| emit.empty(&[n * ranks], dtype, device))
        .collect();
    let mut typed = Vec::with_capacity(fresh.len());
    for x in &fresh {
        let by_rank = emit.reshape(x, &[ranks, -1]);
        typed.push(emit.retype(&by_rank, rows.layout.dtype)?);
    }
    let args = [Value::Node(rows.id), emit.ints(sizes), Value::Int(1)];
    let out = emit.list(&typed);
    let copy = emit.node("aten.split_with_sizes_copy.out", &args, &[("out", out)], Out::Absent);
    let outs = fresh.iter().zip(&shapes).map(|(x, shape)| emit.reshape(x, shape)).collect();
    Some((outs, Some(copy)))
}
