//! Rules of communication. Source: `torch/distributed/_functional_collectives.py` (the meta functions),
//! `torch/csrc/distributed/c10d/Functional.cpp`.

use super::call::{Call, Rule, Stop, fault};
use super::size::{Size, Sizes};
use super::{Inferred, TensorMeta, many, one};
use crate::graph::Value;
use crate::ops::Collective;

pub(super) fn infer(call: &Call, kind: Collective) -> Rule<Inferred> {
    match kind {
        Collective::AllGather => {
            let group = group_size(call)?;
            each(call, |t| Ok(gathered(t, group)))
        }
        Collective::ReduceScatter => {
            let group = group_size(call)?;
            each(call, |t| scattered(call, t, group))
        }
        Collective::AllReduce if is_coalesced(call) => each(call, |t| Ok(t.packed())),
        Collective::AllReduce => each(call, |t| Ok(TensorMeta::fresh(t.shape, t.dtype))),
        Collective::Broadcast => each(call, |t| Ok(t.packed())),
        Collective::AllToAll => all_to_all(call),
        Collective::ShardDimAllToAll => shard_dim(call),
        Collective::Send => each(call, |t| Ok(TensorMeta::fresh(vec![Size::Known(0)], t.dtype))),
        Collective::Recv => each(call, |t| Ok(t.packed())),
        Collective::PointToPoint => point_to_point(call),
        Collective::Barrier | Collective::Other => Err(Stop::Undecided),
    }
}

/// A wait hands its argument on; traced graphs record a fresh tensor like it.
pub(super) fn wait(call: &Call) -> Rule<Inferred> {
    each(call, |t| Ok(TensorMeta { offset: Size::Unknown, ..packed_or_same(t) }))
}

fn packed_or_same(tensor: TensorMeta) -> TensorMeta {
    let stride = tensor.packed().stride;
    TensorMeta { stride, ..tensor }
}

fn is_coalesced(call: &Call) -> bool {
    call.schema.params.first().is_some_and(|p| p.ty == "Tensor[]")
}

/// Applies a rule to the first parameter, or to every element if it is a list.
fn each(call: &Call, rule: impl Fn(TensorMeta) -> Rule<TensorMeta>) -> Rule<Inferred> {
    let name = call.param(0);
    if is_coalesced(call) {
        return many(call.tensors(name)?.into_iter().map(rule).collect::<Rule<Vec<_>>>()?);
    }
    one(rule(call.tensor(name)?)?)
}

fn group_size(call: &Call) -> Rule<i64> {
    // Collectives over shared memory name the group alone.
    let size = match call.schema.param("group_size") {
        Some(_) => call.int("group_size")?,
        None => {
            let name = call.word("group_name").ok_or(Stop::Undecided)?;
            call.graph.world.group(name).map(|group| i64::from(group.size)).ok_or(Stop::Undecided)?
        }
    };
    if size < 1 {
        return fault(format!("{} over a group of {size}", call.name()));
    }
    Ok(size)
}

fn gathered(tensor: TensorMeta, group: i64) -> TensorMeta {
    let mut shape = tensor.shape;
    match shape.first_mut() {
        Some(rows) => *rows = rows.scaled(group),
        None => shape.push(Size::Known(group)),
    }
    TensorMeta::fresh(shape, tensor.dtype)
}

fn scattered(call: &Call, tensor: TensorMeta, group: i64) -> Rule<TensorMeta> {
    let mut shape = tensor.shape;
    let rows = match shape.first() {
        Some(Size::Known(n)) if n % group == 0 => Size::Known(n / group),
        Some(Size::Known(_)) | None => {
            return fault(format!(
                "cannot scatter {} over {group} ranks along dimension 0",
                call.text(&shape)
            ));
        }
        Some(_) if group == 1 => shape[0],
        Some(_) => Size::Unknown,
    };
    shape[0] = rows;
    Ok(TensorMeta::fresh(shape, tensor.dtype))
}

fn all_to_all(call: &Call) -> Rule<Inferred> {
    let tensor = call.tensor(call.param(0))?;
    let mut shape = tensor.shape;
    let Some(&rows) = shape.first() else {
        return fault("all_to_all of a tensor without dimensions".to_string());
    };
    let total = |sizes: &[Size]| sizes.iter().fold(Size::Known(0), |sum, &s| sum.plus(s));
    let splits = |name: &str| if call.has(name) { call.sizes(name) } else { Ok(Sizes::new()) };
    let (output, input) = (splits("output_split_sizes")?, splits("input_split_sizes")?);
    // No sizes: even ones.
    if !input.is_empty() && total(&input).differs(rows) {
        return fault(format!("input splits {} do not add up to {}", call.text(&input), call.text(&[rows])));
    }
    if output.iter().chain(&input).any(|s| s.known().is_some_and(|n| n < 0)) {
        return fault(format!("splits {} and {}", call.text(&output), call.text(&input)));
    }
    if call.has("output_split_sizes") {
        shape[0] = total(&output);
    }
    one(TensorMeta::fresh(shape, tensor.dtype))
}

fn shard_dim(call: &Call) -> Rule<Inferred> {
    let tensor = call.tensor(call.param(0))?;
    let rank = tensor.shape.len();
    let (gather, shard) = (call.dim("gather_dim", rank)?, call.dim("shard_dim", rank)?);
    let Some(Value::Str(name)) = call.value("group_name") else { return Err(Stop::Undecided) };
    let group = call.graph.world.group(call.graph.text(name)).map(|g| i64::from(g.size)).filter(|&n| n > 0);
    let Some(group) = group else { return Err(Stop::Undecided) };
    let mut shape = tensor.shape.clone();
    let Some(gathered) = shape.get_mut(gather) else {
        return fault("shard_dim_alltoall of a tensor without dimensions".to_string());
    };
    *gathered = gathered.scaled(group);
    shape[shard] = match shape[shard] {
        Size::Known(n) if n % group == 0 => Size::Known(n / group),
        Size::Known(_) => {
            let text = call.text(&tensor.shape);
            return fault(format!("cannot shard dimension {shard} of {text} over {group} ranks"));
        }
        _ => Size::Unknown,
    };
    one(TensorMeta::fresh(shape, tensor.dtype))
}

/// A receive hands back the tensor that it fills; a send hands back an empty one.
fn point_to_point(call: &Call) -> Rule<Inferred> {
    let Some(Value::List(ops)) = call.value("op_list") else { return Err(Stop::Undecided) };
    let tensors = call.tensors("tensors")?;
    let ops = call.graph.values(ops);
    if ops.len() != tensors.len() {
        return fault(format!("{} operations on {} tensors", ops.len(), tensors.len()));
    }
    let result = ops.iter().zip(tensors).map(|(op, tensor)| match op {
        Value::Str(op) if Collective::message(call.graph.text(*op)) == Some(Collective::Recv) => {
            tensor.packed()
        }
        _ => TensorMeta::fresh(vec![Size::Known(0)], tensor.dtype),
    });
    many(result)
}
