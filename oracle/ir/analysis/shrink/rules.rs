//! The rule of each class of operator: which dimensions of its tensors are the same, and which arguments are sizes.
//!
//! A rule gives the dimensions of the results. Where it finds no way ([`Misfit`]) the call is kept as it is, like one that
//! has no rule. Movement of elements has its rules in [`moves`](super::moves).

use super::call::{Call, New};
use super::moves;
use super::positions::Law;
use super::structure::{Fit, Leaf, Misfit};
use super::values::{Shape, Value};
use crate::graph::{DtypeClass, Value as Argument};
use crate::ops::{Binary, Bound, Collective, Fill, Kind, Matmul, Random, Reduce};

/// There is no rule.
pub const NO_RULE: Misfit = Misfit("no rule");

/// What a call returns, by the rule of its operator.
pub fn apply(call: &mut Call) -> Fit<Value> {
    let value = match call.info.kind {
        Kind::View(view) => moves::view(call, view)?,
        Kind::Move(movement) => moves::movement(call, movement)?,
        Kind::Cast => one(call.first()?),
        Kind::Fill(fill) => self::fill(call, fill)?,
        Kind::Arange => arange(call)?,
        Kind::Random(random) => self::random(call, random)?,
        kind if kind.is_elementwise() => elementwise(call, kind)?,
        Kind::Reduce(kind) => reduce(call, kind)?,
        Kind::Cumsum => along(call, "self")?,
        Kind::Matmul(kind) => matmul(call, kind)?,
        Kind::Collective(kind) => collective(call, kind)?,
        Kind::Wait => each(call, |_, shape| Ok(shape))?,
        Kind::Assert | Kind::Sync(_) => Value::Other,
        Kind::Opaque => opaque(call)?,
        _ => return Err(NO_RULE),
    };
    written(call, &value)?;
    let returns = call.info.schema.as_ref().map_or(0, |schema| schema.returns.len());
    Ok(if returns == 0 { Value::Other } else { value })
}

fn one(shape: Shape) -> Value {
    Value::Tensor(shape)
}

fn dims(axes: Vec<Leaf>) -> Value {
    Value::Tensor(Shape::new(axes))
}

/// A result that is written into `out=` has its dimensions.
fn written(call: &mut Call, value: &Value) -> Fit<()> {
    let is_written = call
        .info
        .schema
        .iter()
        .flat_map(|schema| &schema.params)
        .any(|param| param.name == "out" && param.write);
    if !is_written {
        return Ok(());
    }
    let out = call.list("out").or_else(|_| Ok(vec![call.tensor("out")?]))?;
    let made = value.tensors();
    if made.len() != out.len() {
        return Err(Misfit("another number of results"));
    }
    for (made, out) in made.into_iter().zip(&out) {
        call.same(&made.axes, &out.axes)?;
        if let (Some(a), Some(b)) = (made.count, out.count) {
            call.state.counts.unify(&mut call.state.structure, a, b)?;
        }
    }
    Ok(())
}

/// A rule for the first tensor, or for each if the first parameter is a list.
fn each(call: &mut Call, mut rule: impl FnMut(&mut Call, Shape) -> Fit<Shape>) -> Fit<Value> {
    let first = call.info.schema.as_ref().and_then(|schema| schema.params.first()).ok_or(NO_RULE)?;
    if first.ty == "Tensor[]" {
        let shapes = call.list(&first.name)?;
        let all = shapes.into_iter().map(|shape| Ok(one(rule(call, shape)?)));
        return Ok(Value::List(all.collect::<Fit<Vec<Value>>>()?));
    }
    let shape = call.first()?;
    Ok(one(rule(call, shape)?))
}

fn elementwise(call: &mut Call, kind: Kind) -> Fit<Value> {
    let shapes = call.tensors();
    let axes: Vec<&[Leaf]> = shapes.iter().map(|shape| &shape.axes[..]).collect();
    let mut result = call.broadcast(&axes)?;
    // In place.
    if let Some(first) = call.info.schema.as_ref().and_then(|schema| schema.params.first())
        && first.write
    {
        result = call.first()?.axes;
    }
    let count = counted(call, kind, &shapes);
    Ok(one(Shape { axes: result, count }))
}

/// What the result of elementwise arithmetic counts.
fn counted(call: &mut Call, kind: Kind, shapes: &[Shape]) -> Option<super::values::Count> {
    let chosen = if kind == Kind::Where { shapes.get(1..).unwrap_or(&[]) } else { shapes };
    let sources: Vec<Option<super::values::Count>> = match kind {
        Kind::MaskedFill => shapes.iter().take(1).map(|shape| shape.count).collect(),
        _ => chosen.iter().map(|shape| shape.count).collect(),
    };
    if sources.iter().all(Option::is_none) {
        return call.made(0);
    }
    let is_rounded = || call.bound.text("rounding_mode") == Some("floor");
    let law = match kind {
        Kind::Binary(op) => match op {
            Binary::Add | Binary::Sub | Binary::Rsub if call.bound.int("alpha").unwrap_or(1) == 1 => {
                Law::Shift
            }
            Binary::Maximum | Binary::Minimum | Binary::ClampMin | Binary::ClampMax => Law::Choose,
            Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge => Law::Compare,
            Binary::FloorDivide => Law::Quotient,
            Binary::Div if is_rounded() => Law::Quotient,
            Binary::Remainder => Law::Remainder,
            _ => Law::Other,
        },
        Kind::Where | Kind::MaskedFill | Kind::Clamp => Law::Choose,
        _ => Law::Other,
    };
    let constants = constants(call);
    let result = call.computed(law, sources, constants, 0);
    let is_number = call.class(0).is_some_and(|class| class != DtypeClass::Bool);
    is_number.then_some(result)
}

/// The parameters that hold numbers other than -1, 0 and 1.
fn constants(call: &Call) -> Vec<usize> {
    let count = call.info.schema.as_ref().map_or(0, |schema| schema.params.len());
    let is_constant = |&param: &usize| match call.bound.given(param) {
        Some(Argument::Int(n)) => !(-1..=1).contains(&n),
        Some(Argument::Float(x)) => ![-1.0, 0.0, 1.0].contains(&x) && x.is_finite(),
        _ => false,
    };
    (0..count).filter(is_constant).collect()
}

fn fill(call: &mut Call, _: Fill) -> Fit<Value> {
    sized(call)
}

/// A new tensor: of the sizes that are given, else of those of the first argument.
fn sized(call: &mut Call) -> Fit<Value> {
    let count = call.made(0);
    if call.param("size").is_err() {
        let axes = if call.param("self").is_ok() { call.tensor("self")?.axes } else { Vec::new() };
        return Ok(one(Shape { axes, count }));
    }
    let axes = call.fresh()?;
    call.edit("size", New::Sizes(axes.clone()))?;
    if call.param("stride").is_ok() {
        call.edit("stride", New::Strides(axes.clone()))?;
    }
    Ok(one(Shape { axes, count }))
}

fn random(call: &mut Call, random: Random) -> Fit<Value> {
    match random {
        Random::Rand | Random::Randn => sized(call),
        Random::Bernoulli | Random::Like => {
            let axes = call.tensor("self")?.axes;
            if let Some(p) = call.optional("p") {
                call.broadcast(&[&axes, &p.axes])?;
            }
            let count = call.made(0);
            Ok(one(Shape { axes, count }))
        }
        Random::NativeDropout => {
            let shape = dims(call.first()?.axes);
            Ok(Value::List(vec![shape.clone(), shape]))
        }
        Random::Attention => attention(call),
        Random::Opaque => Err(NO_RULE),
    }
}

/// `0, 1, ..., n - 1` counts its own positions.
fn arange(call: &mut Call) -> Fit<Value> {
    let axes = call.fresh()?;
    let &[line] = &axes[..] else { return Err(NO_RULE) };
    let name = if call.name() == "iota" { "length" } else { "end" };
    let is_plain =
        |name: &str, plain: i64| call.bound.named(name).is_none_or(|given| given == Argument::Int(plain));
    if !is_plain("start", 0) || !is_plain("step", 1) || call.int(name)? != call.size(line) {
        return Err(NO_RULE);
    }
    call.edit(name, New::Size(line))?;
    let count = call.state.counts.fresh();
    call.state.counts.set(&mut call.state.structure, count, line)?;
    Ok(one(Shape { axes, count: Some(count) }))
}

/// The dimensions of `rank` that a reduction takes away: all, where it names none. (An empty list reduces none in some
/// operators; what they record is no result of this rule.)
pub fn reduced_dims(bound: &Bound, rank: usize) -> Option<Vec<usize>> {
    let given = match bound.named("dim") {
        Some(Argument::None) => Vec::new(),
        None => bound.ints("dim").unwrap_or_default(),
        Some(_) => bound.ints("dim")?,
    };
    match given.is_empty() {
        true => Some((0..rank).collect()),
        false => given.into_iter().map(|dim| super::call::dim_of(dim, rank).ok()).collect(),
    }
}

fn reduced(call: &Call, rank: usize) -> Fit<Vec<usize>> {
    reduced_dims(&call.bound, rank).ok_or(NO_RULE)
}

fn reduce(call: &mut Call, kind: Reduce) -> Fit<Value> {
    let source = call.tensor("self")?;
    let axes = without(call, &source.axes, kind == Reduce::Mean)?;
    let count = call.made(0);
    Ok(one(Shape { axes, count }))
}

/// The dimensions that a reduction leaves. What goes is remembered.
fn without(call: &mut Call, axes: &[Leaf], is_average: bool) -> Fit<Vec<Leaf>> {
    let dims = reduced(call, axes.len())?;
    let keeps = call.bound.bool("keepdim").unwrap_or(false);
    let gone: Vec<Leaf> = dims.iter().map(|&dim| axes[dim]).collect();
    if is_average {
        call.state.averaged.push(gone.clone());
    }
    call.state.reduced.push(gone);
    let mut left = Vec::with_capacity(axes.len());
    for (at, &axis) in axes.iter().enumerate() {
        match (dims.contains(&at), keeps) {
            (false, _) => left.push(axis),
            (true, true) => left.push(call.structure().kept(1)),
            (true, false) => {}
        }
    }
    Ok(left)
}

/// The same sizes as the argument `name`.
fn along(call: &mut Call, name: &str) -> Fit<Value> {
    let axes = call.tensor(name)?.axes;
    let count = call.made(0);
    Ok(one(Shape { axes, count }))
}

fn matmul(call: &mut Call, kind: Matmul) -> Fit<Value> {
    let names = match kind {
        Matmul::Addmm => ["mat1", "mat2"],
        Matmul::Baddbmm => ["batch1", "batch2"],
        Matmul::Mm | Matmul::Bmm => ["self", "mat2"],
        Matmul::Mv => ["self", "vec"],
        Matmul::Dot => ["self", "tensor"],
        Matmul::General => ["self", "other"],
    };
    let (a, b) = (call.tensor(names[0])?.axes, call.tensor(names[1])?.axes);
    let mut axes = product(call, &a, &b)?;
    if matches!(kind, Matmul::Addmm | Matmul::Baddbmm) {
        let bias = call.tensor("self")?.axes;
        axes = call.broadcast(&[&axes, &bias])?;
    }
    Ok(dims(axes))
}

/// The product of two tensors as `matmul` takes it.
fn product(call: &mut Call, a: &[Leaf], b: &[Leaf]) -> Fit<Vec<Leaf>> {
    let (rows, inner) = a.split_last().map(|(&inner, rows)| (rows, inner)).ok_or(NO_RULE)?;
    let (of_a, rows) = rows.split_at(rows.len().saturating_sub(1));
    let (of_b, columns, other) = match b {
        [] => return Err(NO_RULE),
        [other] => (&[][..], &[][..], *other),
        [batch @ .., other, column] => (batch, std::slice::from_ref(column), *other),
    };
    call.structure().unify(inner, other)?;
    call.state.reduced.push(vec![inner]);
    let batch = call.broadcast(&[of_a, of_b])?;
    Ok([&batch, rows, columns].concat())
}

fn collective(call: &mut Call, kind: Collective) -> Fit<Value> {
    match kind {
        Collective::AllReduce | Collective::Broadcast => each(call, |_, shape| Ok(shape)),
        Collective::AllGather => {
            let group = call.group()?;
            each(call, |call, shape| {
                let (&rows, rest) = shape.axes.split_first().ok_or(NO_RULE)?;
                let rows = call.structure().product(vec![group, rows])?;
                Ok(Shape { axes: [&[rows], rest].concat(), count: shape.count })
            })
        }
        Collective::ReduceScatter => {
            let group = call.group()?;
            each(call, |call, shape| {
                let (&rows, rest) = shape.axes.split_first().ok_or(NO_RULE)?;
                let shard = shard(call, rows, group)?;
                Ok(Shape::new([&[shard], rest].concat()))
            })
        }
        Collective::ShardDimAllToAll => {
            let (shape, group) = (call.first()?, call.group()?);
            let mut axes = shape.axes;
            let (gather, at) = (call.dim("gather_dim", axes.len())?, call.dim("shard_dim", axes.len())?);
            axes[gather] = call.structure().product(vec![group, axes[gather]])?;
            axes[at] = shard(call, axes[at], group)?;
            Ok(one(Shape { axes, count: shape.count }))
        }
        Collective::AllToAll => all_to_all(call),
        _ => Err(NO_RULE),
    }
}

/// The part of a dimension that each rank of a group has.
fn shard(call: &mut Call, axis: Leaf, group: Leaf) -> Fit<Leaf> {
    let (size, ranks) = (call.size(axis), call.size(group));
    if ranks < 1 || size % ranks != 0 {
        return Err(Misfit("uneven shards"));
    }
    let shard = call.structure().leaf(size / ranks);
    call.structure().unify_products(&[axis], &[group, shard])?;
    Ok(shard)
}

/// Equal splits: each rank sends and receives as many rows from each.
fn all_to_all(call: &mut Call) -> Fit<Value> {
    let (shape, group) = (call.first()?, call.group()?);
    let &rows = shape.axes.first().ok_or(NO_RULE)?;
    let shard = shard(call, rows, group)?;
    let (ranks, each) = (call.size(group), call.size(shard));
    for name in ["output_split_sizes", "input_split_sizes"] {
        let sizes = call.ints(name).unwrap_or_default();
        if sizes.is_empty() {
            continue;
        }
        if sizes.len() as i64 != ranks || sizes.iter().any(|&size| size != each) {
            return Err(Misfit("unequal splits"));
        }
        call.edit(name, New::Repeat(shard, ranks))?;
    }
    Ok(one(shape))
}

/// Operators that the table gives no meaning, by name.
fn opaque(call: &mut Call) -> Fit<Value> {
    match call.name().trim_end_matches('_') {
        "_softmax" | "_log_softmax" | "cumprod" => along(call, "self"),
        name @ ("tril" | "triu") if is_order(name, call.int("diagonal")?) => {
            let source = call.tensor("self")?;
            if let [.., rows, columns] = source.axes[..]
                && call.size(rows) == call.size(columns)
            {
                call.structure().unify(rows, columns)?;
            }
            along(call, "self")
        }
        "eye" => {
            let axes = call.fresh()?;
            let [rows, columns] = axes[..] else { return Err(NO_RULE) };
            call.structure().unify(rows, columns)?;
            call.edit("n", New::Size(rows))?;
            if call.param("m").is_ok() {
                call.edit("m", New::Size(columns))?;
            }
            Ok(dims(axes))
        }
        "_softmax_backward_data" | "_log_softmax_backward_data" => {
            let (grad, output) = (call.tensor("grad_output")?.axes, call.tensor("output")?.axes);
            call.same(&grad, &output)?;
            Ok(dims(grad))
        }
        "var" | "linalg_vector_norm" | "logsumexp" => {
            let (source, is_average) = (call.tensor("self")?, call.name() == "var");
            Ok(dims(without(call, &source.axes, is_average)?))
        }
        "var_mean" => {
            let source = call.tensor("self")?;
            let axes = dims(without(call, &source.axes, true)?);
            Ok(Value::List(vec![axes.clone(), axes]))
        }
        "argmax" | "argmin" => ordered(call).map(|(_, indices)| indices),
        "max" | "min" => ordered(call).map(|(values, indices)| Value::List(vec![values, indices])),
        "sort" => {
            let source = call.tensor("self")?;
            let indices = positions(call, &source, source.axes.clone())?;
            Ok(Value::List(vec![one(source), indices]))
        }
        "topk" => topk(call),
        "native_layer_norm" | "_fused_rms_norm" => norm(call),
        "native_layer_norm_backward" | "_fused_rms_norm_backward" => norm_backward(call),
        "native_group_norm" => group_norm(call),
        "nll_loss_forward" => nll_loss(call),
        "nll_loss_backward" => {
            nll_loss(call)?;
            Ok(dims(call.tensor("self")?.axes))
        }
        "linear" => linear(call),
        "inductor_random" => sized(call),
        name if name.starts_with("_scaled_dot_product_") => attention_backward(call),
        "einsum" => einsum(call),
        "iota" => arange(call),
        "mse_loss_backward" => elementwise(call, Kind::Pointwise),
        _ => moves::opaque(call),
    }
}

/// Whether a triangle is that of the places where one dimension comes before the other, or where both are the same.
pub fn is_order(name: &str, diagonal: i64) -> bool {
    diagonal == 0 || diagonal == if name == "triu" { 1 } else { -1 }
}

/// Positions of the reduced dimension: of `max`, `argmax` and their like.
fn ordered(call: &mut Call) -> Fit<(Value, Value)> {
    let source = call.tensor("self")?;
    let gone = reduced(call, source.axes.len())?;
    let axes = without(call, &source.axes, false)?;
    let whole = gone.iter().map(|&dim| source.axes[dim]).collect();
    let whole = call.structure().product(whole)?;
    let count = call.state.counts.fresh();
    call.state.counts.set(&mut call.state.structure, count, whole)?;
    Ok((dims(axes.clone()), one(Shape { axes, count: Some(count) })))
}

/// A tensor of positions of the dimension `dim` of another one.
fn positions(call: &mut Call, source: &Shape, axes: Vec<Leaf>) -> Fit<Value> {
    let dim = call.dim("dim", source.axes.len())?;
    let count = call.state.counts.fresh();
    call.state.counts.set(&mut call.state.structure, count, source.axes[dim])?;
    Ok(one(Shape { axes, count: Some(count) }))
}

/// `k` is a boundary of the dimension, so that it stays within it.
fn topk(call: &mut Call) -> Fit<Value> {
    let source = call.tensor("self")?;
    let (dim, k) = (call.dim("dim", source.axes.len())?, call.int("k")?);
    let mut axes = source.axes.clone();
    call.structure().cut(axes[dim], k)?;
    axes[dim] = call.structure().between(axes[dim], 0, k)?;
    call.edit("k", New::Size(axes[dim]))?;
    let indices = positions(call, &source, axes.clone())?;
    Ok(Value::List(vec![one(Shape { axes, count: source.count }), indices]))
}

/// The dimensions that are normalised over, with what has their sizes.
fn normalised(call: &mut Call, name: &str) -> Fit<(Vec<Leaf>, usize)> {
    let axes = call.tensor(name)?.axes;
    let over = call.ints("normalized_shape")?.len();
    let kept = axes.len().checked_sub(over).ok_or(NO_RULE)?;
    for name in ["weight", "bias"] {
        if let Some(tensor) = call.optional(name) {
            call.same(&tensor.axes, &axes[kept..])?;
        }
    }
    call.edit("normalized_shape", New::Sizes(axes[kept..].to_vec()))?;
    Ok((axes, kept))
}

fn norm(call: &mut Call) -> Fit<Value> {
    let (axes, kept) = normalised(call, "input")?;
    let one = call.structure().kept(1);
    let mut stats = axes[..kept].to_vec();
    stats.resize(axes.len(), one);
    let mut results = vec![dims(axes)];
    let count = call.recorded().len();
    results.resize(count.max(1), dims(stats));
    Ok(Value::List(results))
}

fn norm_backward(call: &mut Call) -> Fit<Value> {
    let (axes, kept) = normalised(call, "input")?;
    let grad = call.tensor("grad_out")?.axes;
    call.same(&grad, &axes)?;
    for name in ["mean", "rstd"] {
        if let Some(stats) = call.optional(name) {
            call.broadcast(&[&stats.axes, &axes])?;
        }
    }
    let over = dims(axes[kept..].to_vec());
    let results = call.recorded().into_iter().enumerate().map(|(at, recorded)| match (recorded, at) {
        (None, _) => Value::Other,
        (Some(_), 0) => dims(axes.clone()),
        (Some(_), _) => over.clone(),
    });
    Ok(Value::List(results.collect()))
}

fn group_norm(call: &mut Call) -> Fit<Value> {
    let axes = call.tensor("input")?.axes;
    let [batch, channels, rest @ ..] = &axes[..] else { return Err(NO_RULE) };
    let (groups, size) = (call.int("group")?, call.size(*channels));
    if groups < 1 || size % groups != 0 {
        return Err(NO_RULE);
    }
    let (groups, each) = (call.structure().kept(groups), call.structure().leaf(size / groups));
    call.structure().unify_products(&[*channels], &[groups, each])?;
    for name in ["weight", "bias"] {
        if let Some(tensor) = call.optional(name) {
            call.same(&tensor.axes, &[*channels])?;
        }
    }
    call.edit("N", New::Size(*batch))?;
    call.edit("C", New::Size(*channels))?;
    call.edit("HxW", New::Product(rest.to_vec()))?;
    let stats = dims(vec![*batch, groups]);
    Ok(Value::List(vec![dims(axes.clone()), stats.clone(), stats]))
}

fn nll_loss(call: &mut Call) -> Fit<Value> {
    let (source, target) = (call.tensor("self")?, call.tensor("target")?);
    let [rows, classes] = source.axes[..] else { return Err(NO_RULE) };
    call.same(&[rows], &target.axes)?;
    call.index(&target, classes)?;
    if call.int("ignore_index")? >= 0 {
        call.structure().keep(classes);
    }
    if let Some(weight) = call.optional("weight") {
        call.same(&weight.axes, &[classes])?;
    }
    let has_all = call.int("reduction")? != 0;
    if call.int("reduction")? == 1 {
        call.state.averaged.push(vec![rows]);
    }
    call.state.reduced.push(vec![rows]);
    let loss = dims(if has_all { Vec::new() } else { vec![rows] });
    if let Some(grad) = call.optional("grad_output") {
        call.same(&grad.axes, if has_all { &[] } else { std::slice::from_ref(&rows) })?;
    }
    Ok(Value::List(vec![loss, dims(Vec::new())]))
}

/// Query, key and value: batch, heads, sequence and width. Heads that share keys are kept.
fn heads(call: &mut Call) -> Fit<[Vec<Leaf>; 3]> {
    let [q, k, v] = ["query", "key", "value"].map(|name| call.tensor(name).map(|shape| shape.axes));
    let (q, k, v) = (q?, k?, v?);
    if [&q, &k, &v].iter().any(|axes| axes.len() != 4) {
        return Err(NO_RULE);
    }
    call.same(&k[..3], &v[..3])?;
    call.same(&[q[0], q[3]], &[k[0], k[3]])?;
    if call.size(q[1]) == call.size(k[1]) {
        call.structure().unify(q[1], k[1])?;
    } else {
        call.structure().keep(q[1]);
        call.structure().keep(k[1]);
    }
    for name in ["attn_mask", "attn_bias"] {
        if let Some(mask) = call.optional(name) {
            call.broadcast(&[&mask.axes, &[q[0], q[1], q[2], k[2]]])?;
        }
    }
    call.state.reduced.push(vec![q[3]]);
    Ok([q, k, v])
}

/// The values that are attended to, statistics of each row of scores, and what belongs to the device.
fn attention(call: &mut Call) -> Fit<Value> {
    let [q, k, v] = heads(call)?;
    let rows: Vec<i64> = q[..3].iter().map(|&axis| call.size(axis)).collect();
    let names: Vec<String> = call
        .info
        .schema
        .iter()
        .flat_map(|schema| schema.returns.iter().map(|result| result.ty.clone()))
        .collect();
    let recorded = call.recorded();
    let mut results = vec![dims([&q[..3], &v[3..]].concat())];
    let mut ends = [q[2], k[2]].into_iter();
    for (recorded, ty) in recorded.into_iter().zip(names).skip(1) {
        results.push(match recorded {
            None if ty == "SymInt" => ends.next().map_or(Value::Other, Value::Size),
            None => Value::Other,
            Some(sizes) if sizes.len() >= 3 && sizes[..3] == rows && sizes[3..].iter().all(|&n| n == 1) => {
                let more = sizes[3..].iter().map(|_| call.structure().kept(1));
                let more: Vec<Leaf> = more.collect();
                dims([&q[..3], &more].concat())
            }
            Some(sizes) => dims(sizes.into_iter().map(|size| call.structure().kept(size)).collect()),
        });
    }
    Ok(Value::List(results))
}

fn attention_backward(call: &mut Call) -> Fit<Value> {
    let [q, k, v] = heads(call)?;
    let grad = call.tensor("grad_out").or_else(|_| call.tensor("grad_out_"))?.axes;
    let out = call.tensor("out")?.axes;
    call.same(&grad, &[&q[..3], &v[3..]].concat())?;
    call.same(&out, &grad)?;
    let stats = call.tensor("logsumexp")?.axes;
    call.same(stats.get(..3).ok_or(NO_RULE)?, &q[..3])?;
    for (name, axis) in [("max_q", q[2]), ("max_k", k[2])] {
        if call.param(name).is_ok() && call.int(name).is_ok_and(|n| n == call.size(axis)) {
            call.edit(name, New::Size(axis))?;
        }
    }
    let recorded = call.recorded();
    let mut results: Vec<Value> = [q, k, v].into_iter().map(dims).collect();
    results.resize(recorded.len(), Value::Other);
    for (result, recorded) in results.iter_mut().zip(recorded) {
        if recorded.is_none() {
            *result = Value::Other;
        }
    }
    Ok(Value::List(results))
}

fn linear(call: &mut Call) -> Fit<Value> {
    let (input, weight) = (call.tensor("input")?.axes, call.tensor("weight")?.axes);
    let ([rows @ .., inner], [column, other]) = (&input[..], &weight[..]) else { return Err(NO_RULE) };
    call.structure().unify(*inner, *other)?;
    call.state.reduced.push(vec![*inner]);
    if let Some(bias) = call.optional("bias") {
        call.same(&bias.axes, &[*column])?;
    }
    Ok(dims([rows, &[*column]].concat()))
}

/// Equations with an arrow and without ellipsis.
fn einsum(call: &mut Call) -> Fit<Value> {
    let equation: String =
        call.bound.text("equation").ok_or(NO_RULE)?.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = equation.split_once("->").filter(|_| !equation.contains('.')).ok_or(NO_RULE)?;
    let tensors = call.list("tensors")?;
    let mut known: std::collections::BTreeMap<char, Leaf> = std::collections::BTreeMap::new();
    let operands: Vec<&str> = left.split(',').collect();
    if operands.len() != tensors.len() {
        return Err(NO_RULE);
    }
    for (letters, tensor) in operands.iter().zip(&tensors) {
        if letters.chars().count() != tensor.axes.len() {
            return Err(NO_RULE);
        }
        for (letter, &axis) in letters.chars().zip(&tensor.axes) {
            let &mut first = known.entry(letter).or_insert(axis);
            call.structure().unify(first, axis)?;
        }
    }
    let axes: Option<Vec<Leaf>> = right.chars().map(|letter| known.get(&letter).copied()).collect();
    let gone: Vec<Leaf> =
        known.iter().filter(|(letter, _)| !right.contains(**letter)).map(|(_, &axis)| axis).collect();
    call.state.reduced.push(gone);
    Ok(dims(axes.ok_or(NO_RULE)?))
}
