//! The rules of operators that move elements: views, pieces, concatenations, indices.

use super::call::{Call, New, dim_of};
use super::rules::NO_RULE;
use super::structure::{Fit, Leaf, Misfit};
use super::values::{Shape, Value};
use crate::graph::Value as Argument;
use crate::ops::{Move, View};

/// An end that means "to the end".
const END: i64 = i64::MAX;

fn one(axes: Vec<Leaf>, like: &Shape) -> Value {
    Value::Tensor(Shape { axes, count: like.count })
}

/// What a view shows.
pub fn view(call: &mut Call, view: View) -> Fit<Value> {
    let source = call.first()?;
    let rank = source.axes.len();
    match view {
        View::Alias | View::Conj => Ok(Value::Tensor(source)),
        View::Sizes => sizes(call, &source),
        View::Permute | View::Transpose | View::T => {
            let names = ["dims", "permutation", "dim0", "dim1"];
            let given: Vec<i64> = names.iter().flat_map(|name| call.ints(name).unwrap_or_default()).collect();
            let order = view.order(rank, &given).map_err(|_| NO_RULE)?;
            Ok(one(order.iter().map(|&dim| source.axes[dim]).collect(), &source))
        }
        View::Unsqueeze => {
            let at = dim_of(call.int("dim")?, rank + 1)?;
            let mut axes = source.axes.clone();
            axes.insert(at, call.structure().kept(1));
            Ok(one(axes, &source))
        }
        View::Squeeze => {
            let dims = match call.param("dim") {
                Ok(_) => {
                    call.ints("dim")?.into_iter().map(|dim| dim_of(dim, rank)).collect::<Fit<Vec<usize>>>()?
                }
                Err(_) => (0..rank).collect(),
            };
            let stays = |&(at, axis): &(usize, Leaf)| !dims.contains(&at) || call.size(axis) != 1;
            let axes = source.axes.iter().copied().enumerate().filter(stays).map(|(_, axis)| axis).collect();
            Ok(one(axes, &source))
        }
        View::Expand => expand(call, &source),
        View::Slice => {
            let (dim, part) = slice(call, &source)?;
            Ok(one(with(&source.axes, dim, part), &source))
        }
        View::Narrow => {
            let (dim, start) = (call.dim("dim", rank)?, call.int("start")?);
            let axis = source.axes[dim];
            let start = from_front(start, call.size(axis));
            let end = start.checked_add(call.int("length")?).ok_or(NO_RULE)?;
            let part = part(call, axis, start, end)?;
            call.edit("start", New::Position(axis, start))?;
            call.edit("length", New::Size(part))?;
            Ok(one(with(&source.axes, dim, part), &source))
        }
        View::Select => {
            let dim = select(call, &source)?;
            Ok(one(without(&source.axes, dim), &source))
        }
        View::Split | View::Chunk => even_pieces(call, &source, view == View::Split),
        View::SplitWithSizes => {
            let sizes = call.ints("split_sizes")?;
            pieces(call, &source, &sizes, "split_sizes")
        }
        // As many results as there are places.
        View::Unbind => {
            let dim = call.dim("dim", rank)?;
            let axis = source.axes[dim];
            call.structure().keep(axis);
            let count = call.recorded().len();
            Ok(Value::List(vec![one(without(&source.axes, dim), &source); count]))
        }
        View::AsComplex => {
            let (&pair, axes) = source.axes.split_last().ok_or(NO_RULE)?;
            if call.size(pair) == 2 { Ok(one(axes.to_vec(), &source)) } else { Err(NO_RULE) }
        }
        View::AsReal => {
            let pair = call.structure().kept(2);
            Ok(one([&source.axes[..], &[pair]].concat(), &source))
        }
        View::Dtype => {
            let same = call.recorded_one()?.iter().zip(&source.axes).all(|(&n, &axis)| call.size(axis) == n);
            if same { Ok(Value::Tensor(Shape::new(source.axes))) } else { Err(NO_RULE) }
        }
        // Of a square: both dimensions have one size, and so has the diagonal.
        View::Diagonal => {
            let (one, other) = (call.dim("dim1", rank)?, call.dim("dim2", rank)?);
            let axis = source.axes[one];
            if call.int("offset")? != 0 || one == other || call.size(axis) != call.size(source.axes[other]) {
                return Err(NO_RULE);
            }
            call.same(&[axis], &[source.axes[other]])?;
            let mut axes = without(&without(&source.axes, one.max(other)), one.min(other));
            axes.push(axis);
            Ok(Value::Tensor(Shape { axes, count: source.count }))
        }
        View::AsStrided | View::Unfold => Err(NO_RULE),
    }
}

fn with(axes: &[Leaf], dim: usize, new: Leaf) -> Vec<Leaf> {
    let mut axes = axes.to_vec();
    axes[dim] = new;
    axes
}

fn without(axes: &[Leaf], dim: usize) -> Vec<Leaf> {
    let mut axes = axes.to_vec();
    axes.remove(dim);
    axes
}

fn from_front(at: i64, size: i64) -> i64 {
    if at < 0 { at.saturating_add(size) } else { at }
}

/// The same elements in the same order under other sizes.
fn sizes(call: &mut Call, source: &Shape) -> Fit<Value> {
    let axes = call.fresh()?;
    call.regroup(&source.axes, &axes)?;
    let name = if call.param("size").is_ok() { "size" } else { "shape" };
    call.edit(name, New::Sizes(axes.clone()))?;
    Ok(one(axes, source))
}

/// A dimension that is widened is a new one.
fn expand(call: &mut Call, source: &Shape) -> Fit<Value> {
    let mut axes = call.fresh()?;
    let added = axes.len().checked_sub(source.axes.len()).ok_or(NO_RULE)?;
    for (axis, &given) in axes[added..].iter_mut().zip(&source.axes) {
        if call.size(*axis) == call.size(given) {
            *axis = given;
        } else if call.size(given) != 1 {
            return Err(NO_RULE);
        }
    }
    call.edit("size", New::Sizes(axes.clone()))?;
    Ok(one(axes, source))
}

/// A part of a dimension, with boundaries where it begins and ends.
fn part(call: &mut Call, axis: Leaf, start: i64, end: i64) -> Fit<Leaf> {
    if start < 0 || end < start || end > call.size(axis) {
        return Err(Misfit("outside of the dimension"));
    }
    call.structure().cut(axis, start)?;
    call.structure().cut(axis, end)?;
    call.structure().between(axis, start, end)
}

/// The dimension that a slice is taken of, and the part that it takes.
fn slice(call: &mut Call, source: &Shape) -> Fit<(usize, Leaf)> {
    let dim = call.dim("dim", source.axes.len())?;
    let axis = source.axes[dim];
    let (size, step) = (call.size(axis), call.int("step")?);
    let given = |name: &str| match call.bound.named(name) {
        None | Some(Argument::None) => Ok(None),
        Some(Argument::Int(n)) => Ok(Some(n)),
        Some(_) => Err(NO_RULE),
    };
    let (first, last) = (given("start")?, given("end")?);
    let start = from_front(first.unwrap_or(0), size).clamp(0, size);
    let end = from_front(last.unwrap_or(size), size).clamp(start, size);
    if last.is_some_and(|last| last != END) {
        call.edit("end", New::Position(axis, end))?;
    }
    if step != 1 {
        return Ok((dim, every(call, axis, start, end, step)?));
    }
    let part = part(call, axis, start, end)?;
    if first.is_some() {
        call.edit("start", New::Position(axis, start))?;
    }
    Ok((dim, part))
}

/// Every `step`-th place, of a dimension of whole steps.
fn every(call: &mut Call, axis: Leaf, start: i64, end: i64, step: i64) -> Fit<Leaf> {
    let size = call.size(axis);
    if step < 1 || size % step != 0 || end != size || start >= step {
        return Err(Misfit("a slice with a step"));
    }
    let (rows, step) = (call.structure().leaf(size / step), call.structure().kept(step));
    call.structure().unify_products(&[axis], &[rows, step])?;
    Ok(rows)
}

/// The dimension that an index is taken of.
fn select(call: &mut Call, source: &Shape) -> Fit<usize> {
    let dim = call.dim("dim", source.axes.len())?;
    let axis = source.axes[dim];
    let index = from_front(call.int("index")?, call.size(axis));
    part(call, axis, index, index.saturating_add(1))?;
    call.edit("index", New::Position(axis, index))?;
    Ok(dim)
}

/// Pieces of one size: the dimension is as many rows as pieces.
fn even_pieces(call: &mut Call, source: &Shape, is_sized: bool) -> Fit<Value> {
    let dim = call.dim("dim", source.axes.len())?;
    let (axis, count) = (source.axes[dim], call.recorded().len());
    let size = call.size(axis);
    if count == 0 || size % count as i64 != 0 || size == 0 {
        return Err(Misfit("uneven pieces"));
    }
    let (rows, each) = (call.structure().kept(count as i64), call.structure().leaf(size / count as i64));
    call.structure().unify_products(&[axis], &[rows, each])?;
    if is_sized {
        call.edit("split_size", New::Size(each))?;
    }
    Ok(Value::List(vec![one(with(&source.axes, dim, each), source); count]))
}

/// Pieces of given sizes.
fn pieces(call: &mut Call, source: &Shape, sizes: &[i64], name: &str) -> Fit<Value> {
    let dim = call.dim("dim", source.axes.len())?;
    let (axis, mut at) = (source.axes[dim], 0i64);
    let mut parts = Vec::with_capacity(sizes.len());
    for &size in sizes {
        let end = at.checked_add(size).ok_or(NO_RULE)?;
        call.structure().cut(axis, end)?;
        parts.push((at, end));
        at = end;
    }
    if at != call.size(axis) {
        return Err(Misfit("pieces that are not all"));
    }
    let parts = parts.into_iter().map(|(start, end)| part(call, axis, start, end));
    let parts = parts.collect::<Fit<Vec<Leaf>>>()?;
    call.edit(name, New::Sizes(parts.clone()))?;
    Ok(Value::List(parts.into_iter().map(|part| one(with(&source.axes, dim, part), source)).collect()))
}

/// What a movement gives.
pub fn movement(call: &mut Call, movement: Move) -> Fit<Value> {
    match movement {
        Move::Clone => Ok(Value::Tensor(call.first()?)),
        // Pieces stand in the other order.
        Move::Flip => {
            let mut source = call.first()?;
            for dim in call.ints("dims")? {
                let at = dim_of(dim, source.axes.len())?;
                let mut pieces = call.structure().pieces(source.axes[at])?;
                pieces.reverse();
                source.axes[at] = call.structure().sum(pieces)?;
            }
            Ok(Value::Tensor(source))
        }
        Move::Roll => roll(call),
        Move::Repeat => {
            let (source, times) = (call.first()?, call.ints("repeats")?);
            let added = times.len().checked_sub(source.axes.len()).ok_or(NO_RULE)?;
            let mut axes = Vec::with_capacity(times.len());
            for (at, &times) in times.iter().enumerate() {
                let mut digits = Vec::new();
                if times != 1 || at < added {
                    digits.push(call.structure().kept(times));
                }
                digits.extend(at.checked_sub(added).map(|at| source.axes[at]));
                axes.push(call.structure().product(digits)?);
            }
            Ok(one(axes, &source))
        }
        Move::Copy => copy(call),
        Move::Cat => cat(call),
        Move::Stack => stack(call),
        Move::SliceScatter => {
            let (source, from) = (call.tensor("self")?, call.tensor("src")?);
            let (dim, part) = slice(call, &source)?;
            call.same(&with(&source.axes, dim, part), &from.axes)?;
            mixed(call, &source, &from)
        }
        Move::SelectScatter => {
            let (source, from) = (call.tensor("self")?, call.tensor("src")?);
            let dim = select(call, &source)?;
            call.same(&without(&source.axes, dim), &from.axes)?;
            mixed(call, &source, &from)
        }
        Move::Pad => pad(call),
        Move::Embedding => {
            let (weight, index) = (call.tensor("weight")?, call.tensor("indices")?);
            let (&rows, rest) = weight.axes.split_first().ok_or(NO_RULE)?;
            call.index(&index, rows)?;
            if call.int("padding_idx")? >= 0 {
                call.structure().keep(rows);
            }
            Ok(one([&index.axes, rest].concat(), &weight))
        }
        Move::Index => {
            let source = call.tensor("self")?;
            let axes = indexed(call, &source)?;
            Ok(one(axes, &source))
        }
        Move::IndexPut => index_put(call),
        Move::IndexSelect => {
            let (source, index) = (call.tensor("self")?, call.tensor("index")?);
            let (dim, &[rows]) = (call.dim("dim", source.axes.len())?, &index.axes[..]) else {
                return Err(NO_RULE);
            };
            call.index(&index, source.axes[dim])?;
            Ok(one(with(&source.axes, dim, rows), &source))
        }
        Move::Gather => {
            let source = call.tensor("self")?;
            let index = along(call, &source)?;
            Ok(one(index.axes, &source))
        }
        Move::Scatter | Move::ScatterAdd => {
            let source = call.tensor("self")?;
            let index = along(call, &source)?;
            match call.optional("src") {
                Some(from) => {
                    call.same(&from.axes, &index.axes)?;
                    mixed(call, &source, &from)
                }
                None => {
                    let count = call.made(0);
                    Ok(Value::Tensor(Shape { axes: source.axes, count }))
                }
            }
        }
        Move::SplitWithSizesCopy => {
            let (source, name) = match call.param("self") {
                Ok(_) => (call.tensor("self")?, "split_sizes"),
                Err(_) => (call.tensor("all_gather_output")?, "all_gather_input_split_sizes"),
            };
            let sizes = call.ints(name)?;
            pieces(call, &source, &sizes, name)
        }
        Move::PreBucketAllGather => bucket(call, "ag_ins", false),
        Move::PreBucketReduceScatter => bucket(call, "rs_ins", true),
        _ => Err(NO_RULE),
    }
}

/// The packing of PyTorch's bucketing: a slot for each rank with all members in it, flat. Members of a reduce-scatter have
/// the shards of all ranks.
fn bucket(call: &mut Call, name: &str, is_scattered: bool) -> Fit<Value> {
    let (members, ranks) = (call.list(name)?, call.int("group_size")?);
    let group = call.structure().kept(ranks);
    let mut parts = Vec::with_capacity(members.len());
    for member in members {
        if !is_scattered {
            parts.push(member.axes);
            continue;
        }
        let total = call.structure().total(&member.axes)?;
        if ranks < 1 || total % ranks != 0 {
            return Err(Misfit("uneven shards"));
        }
        let part = call.structure().leaf(total / ranks);
        call.structure().unify_products(&member.axes, &[group, part])?;
        parts.push(vec![part]);
    }
    let slot = call.structure().sum(parts)?;
    let axes = call.fresh()?;
    call.structure().unify_products(&axes, &[group, slot])?;
    Ok(Value::Tensor(Shape::new(axes)))
}

/// A tensor of elements of two others.
fn mixed(call: &mut Call, a: &Shape, b: &Shape) -> Fit<Value> {
    if let (Some(a), Some(b)) = (a.count, b.count) {
        call.state.counts.unify(&mut call.state.structure, a, b)?;
    }
    Ok(Value::Tensor(a.clone()))
}

fn copy(call: &mut Call) -> Fit<Value> {
    let (into, from) = match call.param("src") {
        Ok(_) => (call.tensor("self")?, call.tensor("src")?),
        Err(_) => (call.tensor("tensor")?, call.tensor("data")?),
    };
    call.broadcast(&[&into.axes, &from.axes])?;
    if call.info.schema.as_ref().is_some_and(|schema| schema.returns.is_empty()) {
        return Ok(Value::Other);
    }
    mixed(call, &into, &from)
}

fn cat(call: &mut Call) -> Fit<Value> {
    // A list of no elements in one dimension goes with anything.
    let mut shapes = call.list("tensors")?;
    shapes.retain(|shape| !matches!(shape.axes[..], [only] if call.size(only) == 0));
    let (first, others) = shapes.split_first().ok_or(NO_RULE)?;
    let dim = call.dim("dim", first.axes.len())?;
    let mut parts = vec![vec![first.axes[dim]]];
    for other in others {
        if other.axes.len() != first.axes.len() {
            return Err(NO_RULE);
        }
        call.same(&without(&first.axes, dim), &without(&other.axes, dim))?;
        mixed(call, first, other)?;
        parts.push(vec![other.axes[dim]]);
    }
    let whole = call.structure().sum(parts)?;
    Ok(one(with(&first.axes, dim, whole), first))
}

fn stack(call: &mut Call) -> Fit<Value> {
    let shapes = call.list("tensors")?;
    let (first, others) = shapes.split_first().ok_or(NO_RULE)?;
    for other in others {
        call.same(&first.axes, &other.axes)?;
        mixed(call, first, other)?;
    }
    let at = dim_of(call.int("dim")?, first.axes.len() + 1)?;
    let mut axes = first.axes.clone();
    axes.insert(at, call.structure().kept(shapes.len() as i64));
    Ok(one(axes, first))
}

fn roll(call: &mut Call) -> Fit<Value> {
    let (mut source, shifts, dims) = (call.first()?, call.ints("shifts")?, call.ints("dims")?);
    if shifts.len() != dims.len() {
        return Err(NO_RULE);
    }
    let mut news = Vec::with_capacity(shifts.len());
    for (shift, dim) in shifts.into_iter().zip(dims) {
        let at = dim_of(dim, source.axes.len())?;
        let (axis, size) = (source.axes[at], call.size(source.axes[at]));
        if shift == 0 {
            news.push(New::Int(0));
            continue;
        }
        if shift.unsigned_abs() >= size.unsigned_abs() {
            return Err(NO_RULE);
        }
        let end = if shift > 0 { size - shift } else { -shift };
        let (low, high) = (part(call, axis, 0, end)?, part(call, axis, end, size)?);
        news.push(if shift > 0 { New::Size(high) } else { New::Minus(low) });
        source.axes[at] = call.structure().sum(vec![vec![high], vec![low]])?;
    }
    call.edit("shifts", New::List(news))?;
    Ok(Value::Tensor(source))
}

/// Negative padding cuts off.
fn pad(call: &mut Call) -> Fit<Value> {
    let (source, pads) = (call.tensor("self")?, call.ints("pad")?);
    let (mut axes, mut news) = (source.axes.clone(), Vec::with_capacity(pads.len()));
    for (place, pair) in pads.chunks(2).enumerate() {
        let (&[low, high], Some(dim)) = (pair, axes.len().checked_sub(place + 1)) else {
            return Err(NO_RULE);
        };
        let (axis, size) = (axes[dim], call.size(axes[dim]));
        let (start, end) = (low.min(0).saturating_neg(), size.saturating_add(high.min(0)));
        let inner = part(call, axis, start, end)?;
        let mut parts = vec![vec![inner]];
        for (pad, gone) in [(low, (0, start)), (high, (end, size))] {
            if pad > 0 {
                let more = call.structure().leaf(pad);
                parts.insert(if news.len() % 2 == 0 { 0 } else { parts.len() }, vec![more]);
                news.push(New::Size(more));
            } else if pad < 0 {
                let gone = call.structure().between(axis, gone.0, gone.1)?;
                news.push(New::Minus(gone));
            } else {
                news.push(New::Int(0));
            }
        }
        axes[dim] = call.structure().sum(parts)?;
    }
    call.edit("pad", New::List(news))?;
    let count = call.made(0);
    Ok(Value::Tensor(Shape { axes, count }))
}

/// The sizes of `tensor[indices]`. Tensors of indices are broadcast together; their dimensions stand where the indexed ones
/// stood, or in front where these are not adjacent.
fn indexed(call: &mut Call, source: &Shape) -> Fit<Vec<Leaf>> {
    let list = call.bound.list("indices").ok_or(NO_RULE)?;
    let mut used: Vec<(usize, Shape)> = Vec::new();
    for (dim, &given) in list.iter().enumerate() {
        match given {
            Argument::None => {}
            Argument::Node(node) => {
                let shape = call.values.get(node.index()).and_then(Value::tensor).ok_or(NO_RULE)?;
                used.push((dim, shape.clone()));
            }
            _ => return Err(NO_RULE),
        }
    }
    for (dim, index) in &used {
        let &axis = source.axes.get(*dim).ok_or(NO_RULE)?;
        call.index(index, axis)?;
    }
    let shapes: Vec<&[Leaf]> = used.iter().map(|(_, index)| &index.axes[..]).collect();
    let taken = call.broadcast(&shapes)?;
    let is_used = |dim: usize| used.iter().any(|&(at, _)| at == dim);
    let rest: Vec<Leaf> =
        source.axes.iter().enumerate().filter(|&(at, _)| !is_used(at)).map(|(_, &axis)| axis).collect();
    let first = used.first().ok_or(NO_RULE)?.0;
    let is_adjacent = used.iter().enumerate().all(|(place, &(dim, _))| dim == first + place);
    let at = if is_adjacent { first.min(rest.len()) } else { 0 };
    Ok([&rest[..at], &taken, &rest[at..]].concat())
}

fn index_put(call: &mut Call) -> Fit<Value> {
    let (source, values) = (call.tensor("self")?, call.tensor("values")?);
    let axes = indexed(call, &source)?;
    call.broadcast(&[&axes, &values.axes])?;
    mixed(call, &source, &values)
}

/// The index of a gather or scatter: as many places as the tensor in every dimension but one.
fn along(call: &mut Call, source: &Shape) -> Fit<Shape> {
    let index = call.tensor("index")?;
    let dim = call.dim("dim", source.axes.len())?;
    call.index(&index, source.axes[dim])?;
    call.same(&without(&source.axes, dim), &without_checked(&index.axes, dim)?)?;
    Ok(index)
}

fn without_checked(axes: &[Leaf], dim: usize) -> Fit<Vec<Leaf>> {
    if dim < axes.len() { Ok(without(axes, dim)) } else { Err(NO_RULE) }
}

/// Operators without kernel that move.
pub fn opaque(call: &mut Call) -> Fit<Value> {
    match call.name() {
        "flatten" | "unflatten" | "view_as" => {
            let source = call.tensor("self")?;
            let axes = call.fresh()?;
            call.regroup(&source.axes, &axes)?;
            if let Some(other) = call.optional("other") {
                call.same(&axes, &other.axes)?;
            }
            if call.param("sizes").is_ok() {
                let dim = call.dim("dim", source.axes.len())?;
                let count = call.ints("sizes")?.len();
                let parts = axes.get(dim..dim + count).ok_or(NO_RULE)?.to_vec();
                call.edit("sizes", New::Sizes(parts))?;
            }
            Ok(one(axes, &source))
        }
        "_unsafe_index" => {
            let source = call.tensor("self")?;
            let axes = indexed(call, &source)?;
            Ok(one(axes, &source))
        }
        "_unsafe_masked_index" => {
            let (source, mask) = (call.tensor("self")?, call.tensor("mask")?);
            let axes = indexed(call, &source)?;
            call.broadcast(&[&axes, &mask.axes])?;
            Ok(one(axes, &source))
        }
        "_unsafe_index_put" | "_unsafe_masked_index_put_accumulate" => {
            if let Some(mask) = call.optional("mask") {
                let values = call.tensor("values")?;
                call.broadcast(&[&values.axes, &mask.axes])?;
            }
            index_put(call)
        }
        "expand_as" => {
            let (source, other) = (call.tensor("self")?, call.tensor("other")?);
            let axes = call.broadcast(&[&source.axes, &other.axes])?;
            Ok(one(axes, &source))
        }
        "embedding_dense_backward" => {
            let (grad, index) = (call.tensor("grad_output")?, call.tensor("indices")?);
            let (&width, rows) = grad.axes.split_last().ok_or(NO_RULE)?;
            call.same(rows, &index.axes)?;
            let weights = call.int("num_weights")?;
            let weights = call.structure().leaf(weights);
            call.index(&index, weights)?;
            if call.int("padding_idx")? >= 0 {
                call.structure().keep(weights);
            }
            call.edit("num_weights", New::Size(weights))?;
            Ok(Value::Tensor(Shape::new(vec![weights, width])))
        }
        _ => Err(NO_RULE),
    }
}
