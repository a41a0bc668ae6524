//! Rules of operators that move elements or convert them. Sources: `aten/src/ATen/native/TensorShape.cpp`,
//! `IndexingUtils.h`, `torch/_inductor/fx_passes/bucketing.py`, `torch/distributed/fsdp`.

use super::call::{Call, Rule, Stop, fault};
use super::layout::is_contiguous;
use super::packing::Packing;
use super::promote::ResultType;
use super::size::{Size, Sizes, numel};
use super::view::{window, windows};
use super::window::{Window, dimension};
use super::{Inferred, TensorMeta, many, one};
use crate::graph::Dtype;
use crate::ops::{Move, View};
use smallvec::smallvec;

pub(super) fn infer(call: &Call, kind: Move) -> Rule<Inferred> {
    match kind {
        Move::Clone => clone(call),
        Move::Cat => cat(call),
        Move::Stack => stack(call),
        Move::Copy => copy(call),
        Move::ForeachCopy => foreach_copy(call),
        Move::SliceScatter | Move::SelectScatter | Move::AsStridedScatter | Move::DiagonalScatter => {
            scatter(call, kind)
        }
        Move::Pad => pad(call),
        Move::Repeat => repeat(call),
        Move::Flip => {
            let tensor = call.tensor("self")?;
            call.distinct_dims(&call.ints("dims")?, tensor.shape.len())?;
            one(TensorMeta::like(std::slice::from_ref(&tensor), tensor.shape.clone(), tensor.dtype))
        }
        Move::Roll => {
            let tensor = call.tensor("self")?;
            let (shifts, dims) = (call.sizes("shifts")?, call.ints("dims")?);
            if shifts.is_empty() {
                return fault(format!("{} has no shifts", call.name()));
            }
            // Nothing else is asked of a tensor without elements.
            if numel(&tensor.shape).known().is_none_or(|n| n == 0) {
                return one(tensor.packed());
            }
            for &dim in &dims {
                call.shown(dimension(dim, tensor.shape.len()))?;
            }
            // Without dimensions, all elements are rolled as one row.
            if shifts.len() != dims.len().max(1) {
                return fault(format!("roll by {} along {dims:?}", call.text(&shifts)));
            }
            one(tensor.packed())
        }
        Move::Index => index(call),
        Move::IndexSelect => index_select(call),
        Move::IndexPut => {
            let tensor = call.tensor("self")?;
            let part = indexed(call, &tensor)?;
            let values = call.tensor("values")?;
            if let (Some(a), Some(b)) = (values.dtype, tensor.dtype)
                && a != b
            {
                return fault(format!("{} puts {} into {}", call.name(), a.name(), b.name()));
            }
            fits(call, "values", &values.shape, &part)?;
            one(tensor.packed())
        }
        Move::Gather => {
            let tensor = call.tensor("self")?;
            let index = indices(call, &tensor)?;
            one(TensorMeta::fresh(index.shape, tensor.dtype))
        }
        Move::Scatter | Move::ScatterAdd => {
            let tensor = call.tensor("self")?;
            let index = indices(call, &tensor)?;
            if call.schema.param("src").is_some() {
                scattered(call, &tensor, &index)?;
            }
            one(tensor.packed())
        }
        Move::Embedding => {
            let (weight, indices) = (call.tensor("weight")?, call.tensor("indices")?);
            let [_, width] = weight.shape[..] else {
                return fault(format!(
                    "the weight of embedding has 2 dimensions, got {}",
                    call.text(&weight.shape)
                ));
            };
            if let Some(dtype) = indices.dtype.filter(|dtype| !is_index(*dtype)) {
                return fault(format!("the indices of embedding are {}, not int64 or int32", dtype.name()));
            }
            let mut shape = indices.shape;
            shape.push(width);
            one(TensorMeta::fresh(shape, weight.dtype))
        }
        Move::ChunkCat => chunk_cat(call),
        Move::SplitWithSizesCopy => split_with_sizes_copy(call),
        Move::PreBucketAllGather => pre_bucket_all_gather(call),
        Move::PreBucketReduceScatter => pre_bucket_reduce_scatter(call),
        Move::AllGatherCopyIn => {
            let buffer = call.tensor("all_gather_output")?;
            let (length, rank) = (call.size("all_gather_input_numel")?, call.size("rank")?);
            let slot = buffer.clone().window()?.narrowed(0, length.times(rank), length);
            many([TensorMeta::shown(call.shown(slot)?, buffer.dtype), buffer])
        }
    }
}

pub(super) fn cast(call: &Call) -> Rule<Inferred> {
    let tensor = call.tensor(call.param(0))?;
    let dtype = call.dtype("dtype").or(tensor.dtype);
    // `to` hands its argument back where there is nothing to convert.
    if call.schema.returns.first().is_some_and(|r| r.alias.is_some()) && dtype == tensor.dtype {
        return match call.flag("copy") {
            _ if is_formatted(call) => one(TensorMeta::loose(tensor.shape, tensor.dtype)),
            true => one(tensor.packed()),
            false => one(tensor),
        };
    }
    one(formatted(call, tensor, dtype))
}

/// Whether a call asks for another memory format than row by row, or for this one where it may keep what is there.
fn is_formatted(call: &Call) -> bool {
    match call.memory_format() {
        None => false,
        Some(format) => call.name() != "contiguous" || format != "contiguous_format",
    }
}

/// A copy in the memory format that the call asks for.
fn formatted(call: &Call, tensor: TensorMeta, dtype: Option<Dtype>) -> TensorMeta {
    let shape = tensor.shape.clone();
    match call.memory_format() {
        None => TensorMeta::like(&[tensor], shape, dtype),
        Some("contiguous_format") => TensorMeta::fresh(shape, dtype),
        Some(_) => TensorMeta::loose(shape, dtype),
    }
}

/// Refuses a source that does not broadcast to the shape of what it is written to.
pub(super) fn fits(call: &Call, name: &str, source: &[Size], target: &[Size]) -> Rule<()> {
    let together = call.broadcast(&[source, target]);
    let exact =
        together.is_ok_and(|t| t.len() == target.len() && !t.iter().zip(target).any(|(&a, &b)| a.differs(b)));
    if exact {
        Ok(())
    } else {
        fault(format!("{name} {} does not fit {}", call.text(source), call.text(target)))
    }
}

fn clone(call: &Call) -> Rule<Inferred> {
    let tensor = call.tensor(call.param(0))?;
    let contiguous = is_contiguous(&tensor.shape, tensor.strides()?);
    match call.name() {
        "resolve_conj" => one(tensor.packed()),
        "contiguous" if is_formatted(call) => one(TensorMeta::loose(tensor.shape, tensor.dtype)),
        "contiguous" => match contiguous {
            Some(true) => one(tensor),
            Some(false) => one(TensorMeta::fresh(tensor.shape, tensor.dtype)),
            None => one(TensorMeta::loose(tensor.shape, tensor.dtype)),
        },
        _ => {
            let dtype = tensor.dtype;
            one(formatted(call, tensor, dtype))
        }
    }
}

/// The dtype of several tensors together.
fn common_dtype(call: &Call, tensors: &[TensorMeta]) -> Rule<Option<Dtype>> {
    let mut result = ResultType::default();
    for tensor in tensors {
        let Some(dtype) = tensor.dtype else { return Ok(None) };
        result.tensor(dtype, tensor.shape.len());
    }
    match result.result() {
        Some(dtype) => Ok(Some(dtype)),
        None => fault(format!("the tensors of {} have no common dtype", call.name())),
    }
}

fn cat(call: &Call) -> Rule<Inferred> {
    let tensors = call.tensors(call.param(0))?;
    let dtype = common_dtype(call, &tensors)?;
    // A tensor of shape [0] joins any others, by tradition.
    let mut parts = tensors.iter().filter(|t| t.shape[..] != [Size::Known(0)]);
    let Some(first) = parts.next() else { return one(TensorMeta::fresh(vec![Size::Known(0)], dtype)) };
    let rank = first.shape.len();
    if rank == 0 || tensors.iter().any(|t| t.shape.is_empty()) {
        return fault("cat of tensors without dimensions".to_string());
    }
    let dim = call.dim("dim", rank)?;
    let mut shape = first.shape.clone();
    for part in parts {
        let agrees =
            part.shape.len() == rank && (0..rank).all(|d| d == dim || !part.shape[d].differs(shape[d]));
        if !agrees {
            let (a, b) = (call.text(&first.shape), call.text(&part.shape));
            return fault(format!("cat of {a} and {b} along dimension {dim}"));
        }
        for (d, (size, &other)) in shape.iter_mut().zip(&part.shape).enumerate() {
            if d == dim {
                *size = size.plus(other);
            } else if size.known().is_none() && other.known().is_some() {
                *size = other;
            }
        }
    }
    // Images may keep their channels last.
    let plain = !(4..=5).contains(&rank) || tensors.iter().all(|t| t.packed().stride.is_some());
    one(if plain { TensorMeta::fresh(shape, dtype) } else { TensorMeta::loose(shape, dtype) })
}

fn stack(call: &Call) -> Rule<Inferred> {
    let tensors = call.tensors(call.param(0))?;
    let dtype = common_dtype(call, &tensors)?;
    let Some(first) = tensors.first() else { return fault("stack of no tensors".to_string()) };
    for other in &tensors {
        let same = other.shape.len() == first.shape.len()
            && !other.shape.iter().zip(&first.shape).any(|(&a, &b)| a.differs(b));
        if !same {
            return fault(format!("stack of {} and {}", call.text(&first.shape), call.text(&other.shape)));
        }
    }
    let dim = call.dim("dim", first.shape.len() + 1)?;
    let mut shape = first.shape.clone();
    shape.insert(dim, Size::Known(tensors.len() as i64));
    one(TensorMeta::fresh(shape, dtype))
}

fn copy(call: &Call) -> Rule<Inferred> {
    let (into, from) = (call.tensor(call.param(0))?, call.tensor(call.param(1))?);
    fits(call, "the source", &from.shape, &into.shape)?;
    one(into.packed())
}

fn foreach_copy(call: &Call) -> Rule<Inferred> {
    let (into, from) = (call.tensors("self")?, call.tensors("src")?);
    if into.len() != from.len() {
        return fault(format!("_foreach_copy of {} tensors into {}", from.len(), into.len()));
    }
    for (into, from) in into.iter().zip(&from) {
        fits(call, "the source", &from.shape, &into.shape)?;
    }
    many(into.iter().map(TensorMeta::packed))
}

/// Checks that `src` has the shape of the part that it replaces.
fn replaces(call: &Call, part: &[Size]) -> Rule<()> {
    let src = call.tensor("src")?.shape;
    if src.len() != part.len() || src.iter().zip(part).any(|(&a, &b)| a.differs(b)) {
        return fault(format!("src is {}, but the part is {}", call.text(&src), call.text(part)));
    }
    Ok(())
}

/// A copy of a tensor with what one of its views shows overwritten.
fn scatter(call: &Call, kind: Move) -> Rule<Inferred> {
    let tensor = call.tensor("self")?;
    let view = kind.scatters().ok_or(Stop::Undecided)?;
    let part = window(view, Window::contiguous(tensor.shape.clone()), call, 2)?;
    replaces(call, &part.shape)?;
    // Elements that share memory have each its own in the copy: then it is made as `clone` makes it.
    let repeats =
        |(&size, &stride): (&Size, &Size)| size.known().is_some_and(|n| n > 1) && stride == Size::Known(0);
    let is_repeated = tensor.strides().is_ok_and(|strides| tensor.shape.iter().zip(strides).any(repeats));
    if is_repeated {
        let (shape, dtype) = (tensor.shape.clone(), tensor.dtype);
        return one(TensorMeta::like(&[tensor], shape, dtype));
    }
    let copy = tensor.packed();
    one(match view {
        // It lies where the tensor lies in its storage.
        View::AsStrided | View::Diagonal => TensorMeta { offset: Size::Unknown, ..copy },
        _ => copy,
    })
}

fn pad(call: &Call) -> Rule<Inferred> {
    let tensor = call.tensor("self")?;
    let pad = call.sizes("pad")?;
    let mut shape = tensor.shape.clone();
    if pad.len() % 2 != 0 || pad.len() / 2 > shape.len() {
        return fault(format!("cannot pad {} by {}", call.text(&shape), call.text(&pad)));
    }
    let rank = shape.len();
    for (i, pair) in pad.chunks_exact(2).enumerate() {
        let dim = rank - 1 - i;
        // What is cut off is cut off first.
        let cut = pair.iter().fold(shape[dim], |n, &p| n.plus(p.known().map(|p| p.min(0)).into()));
        shape[dim] = shape[dim].plus(pair[0]).plus(pair[1]);
        if cut.known().is_some_and(|n| n < 0) {
            return fault(format!("cannot pad {} by {}", call.text(&tensor.shape), call.text(&pad)));
        }
    }
    let dtype = tensor.dtype;
    one(match tensor.packed().stride {
        Some(_) => TensorMeta::fresh(shape, dtype),
        None => TensorMeta::loose(shape, dtype),
    })
}

fn repeat(call: &Call) -> Rule<Inferred> {
    let tensor = call.tensor("self")?;
    let repeats = call.sizes("repeats")?;
    let Some(added) = repeats.len().checked_sub(tensor.shape.len()) else {
        return fault(format!("cannot repeat {} by {}", call.text(&tensor.shape), call.text(&repeats)));
    };
    if repeats.iter().any(|n| n.known().is_some_and(|n| n < 0)) {
        return fault(format!("cannot repeat {} by {}", call.text(&tensor.shape), call.text(&repeats)));
    }
    let old = std::iter::repeat_n(Size::Known(1), added).chain(tensor.shape.iter().copied());
    let shape: Sizes = old.zip(&repeats).map(|(size, &by)| size.times(by)).collect();
    one(TensorMeta::fresh(shape, tensor.dtype))
}

/// The shape that `tensor[indices]` has. Tensors of indices are broadcast together; their dimensions stand where
/// the indexed ones stood, or in front where these are not adjacent. A mask stands for the indices of its true
/// elements, whose number is not known.
fn indexed(call: &Call, tensor: &TensorMeta) -> Rule<Sizes> {
    let mut taken: Vec<(usize, Sizes)> = Vec::new();
    let mut dim = 0;
    let indices = call.optional_tensors("indices")?;
    if indices.iter().all(Option::is_none) {
        return fault(format!("{} has no index", call.name()));
    }
    for index in indices {
        let Some(index) = index else {
            dim += 1;
            continue;
        };
        match index.dtype {
            Some(Dtype::Bool | Dtype::U8) => {
                for &size in &index.shape {
                    if tensor.shape.get(dim).is_some_and(|of| of.differs(size)) {
                        let (a, b) = (call.text(&index.shape), call.text(&tensor.shape));
                        return fault(format!("a mask of {a} does not fit {b} at dimension {dim}"));
                    }
                    taken.push((dim, smallvec![Size::Unknown]));
                    dim += 1;
                }
                if index.shape.is_empty() {
                    return Err(Stop::Undecided);
                }
            }
            Some(dtype) if is_index(dtype) => {
                taken.push((dim, index.shape));
                dim += 1;
            }
            Some(dtype) => return fault(format!("indices are integers or masks, not {}", dtype.name())),
            None => return Err(Stop::Undecided),
        }
    }
    let rank = tensor.shape.len();
    if dim > rank {
        return fault(format!("{dim} indices for {}", call.text(&tensor.shape)));
    }
    let shapes: Vec<&[Size]> = taken.iter().map(|(_, shape)| shape.as_slice()).collect();
    let broadcast = call.broadcast(&shapes)?;
    let (Some(first), Some(last)) = (taken.first(), taken.last()) else { return Ok(tensor.shape.clone()) };
    let adjacent = last.0 - first.0 + 1 == taken.len();
    let mut shape: Sizes =
        (0..rank).filter(|d| !taken.iter().any(|(t, _)| t == d)).map(|d| tensor.shape[d]).collect();
    let at = if adjacent { first.0 } else { 0 };
    shape.insert_many(at, broadcast);
    Ok(shape)
}

fn index(call: &Call) -> Rule<Inferred> {
    let tensor = call.tensor("self")?;
    let shape = indexed(call, &tensor)?;
    one(TensorMeta::loose(shape, tensor.dtype))
}

/// Whether tensors of a dtype may count elements.
fn is_index(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::I64 | Dtype::I32)
}

/// What `scatter` writes: of the tensor's dtype, and at least as large as the index.
fn scattered(call: &Call, tensor: &TensorMeta, index: &TensorMeta) -> Rule<()> {
    let src = call.tensor("src")?;
    if let (Some(a), Some(b)) = (src.dtype, tensor.dtype)
        && a != b
    {
        return fault(format!("{} of {} into {}", call.name(), a.name(), b.name()));
    }
    // A tensor without dimensions counts as one of one element.
    let single = [Size::Known(1)];
    let of = if src.shape.is_empty() { &single[..] } else { &src.shape };
    let small =
        of.len() != index.shape.len().max(1) || index.shape.iter().zip(of).any(|(&n, &of)| larger(n, of));
    if small && numel(&index.shape).known().is_some_and(|n| n > 0) {
        let (a, b) = (call.text(&src.shape), call.text(&index.shape));
        return fault(format!("{} from {a} with an index of {b}", call.name()));
    }
    Ok(())
}

fn larger(a: Size, b: Size) -> bool {
    matches!((a, b), (Size::Known(a), Size::Known(b)) if a > b)
}

/// The index tensor of `gather` and `scatter`: as many dimensions as the tensor, no larger but along `dim`, and of
/// integers.
fn indices(call: &Call, tensor: &TensorMeta) -> Rule<TensorMeta> {
    let index = call.tensor("index")?;
    let dim = call.dim("dim", tensor.shape.len())?;
    if let Some(dtype) = index.dtype.filter(|dtype| !is_index(*dtype)) {
        return fault(format!("the index of {} is {}, not int64 or int32", call.name(), dtype.name()));
    }
    let mut sizes = index.shape.iter().zip(&tensor.shape).enumerate();
    let fits = index.shape.len().max(1) == tensor.shape.len().max(1)
        && !sizes.any(|(d, (&n, &of))| d != dim && larger(n, of));
    if !fits && numel(&index.shape).known().is_some_and(|n| n > 0) {
        let (a, b) = (call.text(&tensor.shape), call.text(&index.shape));
        return fault(format!("{} of {a} with an index of {b}", call.name()));
    }
    Ok(index)
}

fn index_select(call: &Call) -> Rule<Inferred> {
    let (tensor, index) = (call.tensor("self")?, call.tensor("index")?);
    let dim = call.dim("dim", tensor.shape.len())?;
    if let Some(dtype) = index.dtype.filter(|dtype| !is_index(*dtype)) {
        return fault(format!("the index of index_select is {}, not int64 or int32", dtype.name()));
    }
    if index.shape.len() > 1 {
        return fault(format!(
            "the index of index_select has at most 1 dimension, got {}",
            call.text(&index.shape)
        ));
    }
    let count = numel(&index.shape);
    let mut shape = tensor.shape.clone();
    match shape.get_mut(dim) {
        Some(slot) => *slot = count,
        None if count.differs(Size::Known(1)) => {
            return fault(format!(
                "index_select by {} of a tensor without dimensions",
                call.text(&index.shape)
            ));
        }
        None => {}
    }
    one(match tensor.packed().stride {
        Some(_) => TensorMeta::fresh(shape, tensor.dtype),
        None => TensorMeta::loose(shape, tensor.dtype),
    })
}

/// Each tensor is padded along `dim` to a multiple of the number of chunks; the chunks' elements are joined.
fn chunk_cat(call: &Call) -> Rule<Inferred> {
    let tensors = call.tensors("tensors")?;
    let Some(first) = tensors.first() else { return fault(format!("{} of no tensors", call.name())) };
    let (dim, chunks) = (call.dim("dim", first.shape.len())?, call.int("num_chunks")?);
    if chunks < 1 {
        return fault(format!("{} in {chunks} chunks", call.name()));
    }
    if call.int("dim")? < 0 && tensors.iter().any(|tensor| tensor.shape.len() != first.shape.len()) {
        return fault(format!("{} of tensors of several ranks along a negative dimension", call.name()));
    }
    let mut width = Size::Known(0);
    for tensor in &tensors {
        if tensor.dtype.zip(first.dtype).is_some_and(|(a, b)| a != b) {
            return fault(format!("the tensors of {} have several dtypes", call.name()));
        }
        let leading = tensor.shape.len() > dim && tensor.shape[..dim] == first.shape[..dim];
        if !leading {
            let (a, b) = (call.text(&first.shape), call.text(&tensor.shape));
            return fault(format!("{} of {a} and {b} along dimension {dim}", call.name()));
        }
        let per_chunk = match tensor.shape[dim] {
            Size::Known(n) => n.checked_add(chunks - 1).map(|n| n / chunks).into(),
            _ => Size::Unknown,
        };
        width = width.plus(per_chunk.times(numel(&tensor.shape[dim + 1..])));
    }
    let mut shape = first.shape[..dim].to_vec();
    shape.extend([Size::Known(chunks), width]);
    let plain = tensors.iter().all(|t| t.packed().stride.is_some());
    one(if plain { TensorMeta::fresh(shape, first.dtype) } else { TensorMeta::loose(shape, first.dtype) })
}

fn split_with_sizes_copy(call: &Call) -> Rule<Inferred> {
    let tensor = call.tensor(call.param(0))?;
    let dtype = tensor.dtype;
    let pieces = windows(View::SplitWithSizes, tensor.window()?, call, 1)?;
    if call.has("out") {
        let out = call.tensors("out")?;
        if out.len() != pieces.len() {
            return fault(format!("{} pieces into {} tensors", pieces.len(), out.len()));
        }
        for (piece, into) in pieces.iter().zip(&out) {
            // Some callers pass flat buffers of the same number of elements.
            if numel(&piece.shape).differs(numel(&into.shape)) {
                let (a, b) = (call.text(&piece.shape), call.text(&into.shape));
                return fault(format!("a piece is {a}, but its out is {b}"));
            }
        }
    }
    many(pieces.into_iter().map(|piece| TensorMeta::fresh(piece.shape, dtype)))
}

/// A flat buffer of `group_size` times the inputs, each in the dtype that it is converted to, in units of `dtype`.
fn pre_bucket_all_gather(call: &Call) -> Rule<Inferred> {
    let ranks = call.size("group_size")?;
    let packing = match Packing::of_call(call) {
        // Sizes that are not known.
        Err(Stop::Undecided) => return one(TensorMeta::fresh(vec![Size::Unknown], call.dtype("dtype"))),
        known => known?,
    };
    if let Some(wrong) = call.size("rank")?.known().and_then(|rank| packing.misplaced(rank)) {
        return fault(format!(
            "input {} begins at element {} of a buffer of {}, which cannot be viewed there as {}",
            wrong.piece,
            wrong.element,
            packing.dtype.name(),
            wrong.dtype.name()
        ));
    }
    one(TensorMeta::fresh(vec![Size::from(packing.slot()).times(ranks)], Some(packing.dtype)))
}

/// A flat buffer of all inputs; those that lost their padding are padded to a multiple of the group size.
fn pre_bucket_reduce_scatter(call: &Call) -> Rule<Inferred> {
    let inputs = call.tensors("rs_ins")?;
    let group = call.int("group_size")?;
    let unpadded =
        if call.has("unpadded_input_indices") { call.ints("unpadded_input_indices")? } else { Vec::new() };
    let Some(first) = inputs.first() else { return fault(format!("{} of no tensors", call.name())) };
    if group < 1 {
        return fault(format!("{} over a group of {group}", call.name()));
    }
    // Those without elements are left out when it runs, and the first one says what is recorded.
    if let Some(other) = inputs.iter().find(|input| input.dtype.zip(first.dtype).is_some_and(|(a, b)| a != b))
    {
        let name = |tensor: &TensorMeta| tensor.dtype.map_or("?", Dtype::name);
        return fault(format!("{} of {} and {}", call.name(), name(first), name(other)));
    }
    let mut total = Size::Known(0);
    for (i, input) in inputs.iter().enumerate() {
        let padded = match input.shape.split_first() {
            Some((&Size::Known(rows), rest)) if unpadded.contains(&(i as i64)) => {
                let rows = rows.checked_add(group - 1).and_then(|n| (n / group).checked_mul(group));
                Size::from(rows).times(numel(rest))
            }
            _ => numel(&input.shape),
        };
        total = total.plus(padded);
    }
    one(TensorMeta::fresh(vec![total], first.dtype))
}
