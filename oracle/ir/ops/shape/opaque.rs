//! Rules of operators that the oracle does not compute, where the shape is plain: by name, since each is of its
//! own kind. An operator that is not named here is undecided.

use super::call::{Call, Rule, Stop, fault};
use super::create::draws;
use super::moves::fits;
use super::pointwise::to_float;
use super::promote::part_of;
use super::reduce::{dims, without};
use super::size::{Size, Sizes, numel};
use super::view::window;
use super::window::{Given, Window, dimension};
use super::{Inferred, Output, TensorMeta, many, one};
use crate::graph::{Dtype, DtypeClass, Value};
use crate::ops::View;

pub(super) fn infer(call: &Call) -> Rule<Inferred> {
    if !matches!(call.schema.namespace.as_str(), "aten" | "prims") {
        return Err(Stop::Undecided);
    }
    dims_are_there(call)?;
    let name = call.name();
    match name.trim_end_matches('_') {
        "triu" | "tril" => {
            let tensor = call.tensor("self")?;
            if tensor.shape.len() < 2 {
                return fault(format!("{name} of {}", call.text(&tensor.shape)));
            }
            one(tensor.packed())
        }
        "uniform" | "normal" | "normal_functional" | "exponential" => {
            let tensor = call.tensor("self")?;
            draws(call, tensor.dtype)?;
            one(tensor.packed())
        }
        "index_copy" | "index_fill" => {
            let index = call.tensor("index")?;
            if index.shape.len() > 1 || index.dtype.is_some_and(|dtype| dtype != Dtype::I64) {
                return fault(format!("the index of {name} is no vector of int64"));
            }
            one(call.tensor("self")?.packed())
        }
        "index_add"
        | "_unsafe_index_put"
        | "_unsafe_masked_index_put_accumulate"
        | "scatter_reduce"
        | "random" => one(call.tensor("self")?.packed()),
        "_adaptive_avg_pool2d_backward" | "nll_loss_backward" => one(loose(&call.tensor("self")?)),
        "_softmax" | "_log_softmax" => softmax(call),
        "_softmax_backward_data" | "_log_softmax_backward_data" => {
            let grad = call.tensor("grad_output")?.packed();
            one(TensorMeta { dtype: call.dtype("input_dtype").or(grad.dtype), ..grad })
        }
        "max" | "min" | "argmax" | "argmin" | "var" | "var_mean" | "logsumexp" | "linalg_vector_norm" => {
            reduction(call)
        }
        "cumprod" => super::reduce::cumsum(call),
        "sort" => {
            let tensor = loose(&call.tensor("self")?);
            call.dim("dim", tensor.shape.len())?;
            let indices = TensorMeta { dtype: Some(Dtype::I64), ..tensor.clone() };
            many([tensor, indices])
        }
        "topk" => topk(call),
        "histc" => one(TensorMeta::fresh(vec![call.size("bins")?], call.tensor("self")?.dtype)),
        "native_layer_norm" => layer_norm(call),
        "native_layer_norm_backward" => masked(
            call,
            vec![like_argument(call, "input"), like_argument(call, "weight"), like_argument(call, "bias")],
        ),
        "convolution" => convolution(call),
        "convolution_backward" => {
            let bias = call.tensor("grad_output").map(|g| match g.shape.get(1) {
                Some(&channels) => Output::Tensor(TensorMeta::loose(vec![channels], g.dtype)),
                None => Output::Undecided,
            });
            masked(call, vec![like_argument(call, "input"), like_argument(call, "weight"), bias])
        }
        "_adaptive_avg_pool2d" => {
            let tensor = call.tensor("self")?;
            let mut shape = tensor.shape;
            shape.truncate(shape.len().saturating_sub(2));
            shape.extend(call.sizes("output_size")?);
            one(TensorMeta::loose(shape, tensor.dtype))
        }
        "nll_loss_forward" => nll_loss(call),
        "_native_batch_norm_legit_functional" => {
            let stats = [Output::Undecided, Output::Undecided];
            let running = [like_argument(call, "running_mean")?, like_argument(call, "running_var")?];
            let all = std::iter::once(like_argument(call, "input")?).chain(stats).chain(running);
            Ok(Inferred::Many(all.collect()))
        }
        "native_batch_norm_backward" => {
            let weight = || like_argument(call, "weight");
            masked(call, vec![like_argument(call, "input"), weight(), weight()])
        }
        "embedding_dense_backward" => {
            let grad = call.tensor("grad_output")?;
            let Some(&width) = grad.shape.last() else { return Err(Stop::Undecided) };
            if call.int("num_weights")? < 0 {
                return fault(format!("{name} of a negative number of weights"));
            }
            one(TensorMeta::fresh(vec![call.size("num_weights")?, width], grad.dtype))
        }
        "select_backward" | "slice_backward" => {
            let (sizes, kind) = (
                call.sizes("input_sizes")?,
                if name == "select_backward" { View::Select } else { View::Slice },
            );
            let part = window(kind, Window::contiguous(sizes.clone()), call, 2)?.shape;
            let grad = call.tensor("grad_output")?;
            fits(call, "grad_output", &grad.shape, &part)?;
            one(TensorMeta::fresh(sizes, grad.dtype))
        }
        "einsum" => einsum(call),
        "linear" => linear(call),
        "_grouped_mm" => grouped_mm(call),
        "randint" => {
            let low = if call.schema.param("low").is_some() { call.size("low")? } else { Size::Known(0) };
            if let (Size::Known(low), Size::Known(high)) = (low, call.size("high")?)
                && low >= high
            {
                return fault(format!("randint from {low} to {high}"));
            }
            one(TensorMeta::fresh(call.sizes("size")?, Some(call.dtype("dtype").unwrap_or(Dtype::I64))))
        }
        "randint_like" => {
            let tensor = call.tensor("self")?;
            let dtype = call.dtype("dtype").or(tensor.dtype);
            one(TensorMeta::like(std::slice::from_ref(&tensor), tensor.shape.clone(), dtype))
        }
        "randperm" => {
            one(TensorMeta::fresh(vec![call.size("n")?], Some(call.dtype("dtype").unwrap_or(Dtype::I64))))
        }
        "iota" => one(TensorMeta::fresh(vec![call.size("length")?], call.dtype("dtype"))),
        _ if name.starts_with("_foreach_") && name != "_foreach_norm" => {
            let lists = call.schema.params.iter().find(|param| param.ty.starts_with("Tensor"));
            many(call.tensors(lists.map_or("", |param| &param.name))?.iter().map(loose))
        }
        _ if name.starts_with("_scaled_dot_product_") => attention(call),
        _ => Err(Stop::Undecided),
    }
}

/// Refuses dimensions that what they count does not have.
fn dims_are_there(call: &Call) -> Rule<()> {
    let rank = match call.info.whole() {
        Some(whole) => call.numbers(whole)?.map(|sizes| sizes.len()),
        None => {
            let first = call.schema.params.first().filter(|param| param.ty == "Tensor");
            first.and_then(|param| call.tensor(&param.name).ok()).map(|tensor| tensor.shape.len())
        }
    };
    for index in (0..call.schema.params.len()).filter(|&index| call.info.counts_dims(index)) {
        let dims = call.numbers(index)?.unwrap_or_default();
        if let Some(rank) = rank {
            dims.iter()
                .filter_map(|dim| dim.known())
                .try_for_each(|dim| call.shown(dimension(dim, rank)).map(drop))?;
        }
    }
    Ok(())
}

/// The shape and dtype of a tensor, in strides of the operator's choice.
fn loose(tensor: &TensorMeta) -> TensorMeta {
    TensorMeta::loose(tensor.shape.clone(), tensor.dtype)
}

/// A result like an argument, `None` if that is absent.
fn like_argument(call: &Call, name: &str) -> Rule<Output> {
    Ok(match call.optional_tensor(name)? {
        Some(tensor) => Output::Tensor(loose(&tensor)),
        None => Output::Undecided,
    })
}

/// The results that `output_mask` asks for.
fn masked(call: &Call, results: Vec<Rule<Output>>) -> Rule<Inferred> {
    let Some(Value::List(mask)) = call.value("output_mask") else { return Err(Stop::Undecided) };
    let wanted = call.graph.values(mask).iter().map(|v| *v != Value::Bool(false));
    let all = results
        .into_iter()
        .zip(wanted)
        .map(|(result, wanted)| if wanted { result } else { Ok(Output::None) });
    Ok(Inferred::Many(all.collect::<Rule<_>>()?))
}

fn softmax(call: &Call) -> Rule<Inferred> {
    let tensor = call.tensor("self")?;
    call.dim("dim", tensor.shape.len())?;
    let dtype = match tensor.dtype {
        dtype if !call.flag("half_to_float") => dtype,
        None | Some(Dtype::F16 | Dtype::BF16) => Some(Dtype::F32),
        Some(dtype) => return fault(format!("{} of {} as a half", call.name(), dtype.name())),
    };
    one(TensorMeta { dtype, ..tensor.packed() })
}

fn reduction(call: &Call) -> Rule<Inferred> {
    let tensor = call.tensor("self")?;
    let reduced = dims(call, &tensor.shape, false)?;
    let shape = without(&tensor.shape, &reduced, call.flag("keepdim"));
    let values = |dtype| TensorMeta::loose(shape.clone(), dtype);
    let name = call.name();
    if let Some(dtype) = tensor.dtype.filter(|dtype| dtype.class() < DtypeClass::Float)
        && matches!(name, "var" | "var_mean" | "linalg_vector_norm")
    {
        return fault(format!("{name} does not take {}", dtype.name()));
    }
    let ordered = matches!(name, "argmax" | "argmin" | "max" | "min");
    if ordered && tensor.dtype.is_some_and(|dtype| dtype.class() == DtypeClass::Complex) {
        return fault(format!("{name} does not take complex numbers"));
    }
    if ordered && reduced.iter().any(|&dim| tensor.shape.get(dim) == Some(&Size::Known(0))) {
        return fault(format!("{name} of {} over no elements", call.text(&tensor.shape)));
    }
    match name {
        "argmax" | "argmin" => one(values(Some(Dtype::I64))),
        "max" | "min" => many([values(tensor.dtype), values(Some(Dtype::I64))]),
        "var_mean" => many([values(tensor.dtype.map(|d| part_of(d).unwrap_or(d))), values(tensor.dtype)]),
        "logsumexp" => one(values(tensor.dtype.map(to_float))),
        _ => one(values(call.dtype("dtype").or(tensor.dtype.map(|d| part_of(d).unwrap_or(d))))),
    }
}

fn topk(call: &Call) -> Rule<Inferred> {
    let tensor = call.tensor("self")?;
    let (dim, k) = (call.dim("dim", tensor.shape.len())?, call.size("k")?);
    let mut shape = tensor.shape.clone();
    if shape.is_empty() && k.known().is_some_and(|k| !(0..=1).contains(&k)) {
        return fault("topk of a tensor without dimensions".to_string());
    }
    if let Some(size) = shape.get_mut(dim) {
        if let (Size::Known(n), Size::Known(k)) = (*size, k)
            && (k < 0 || k > n)
        {
            return fault(format!("topk of {k} of {} along dimension {dim}", call.text(&tensor.shape)));
        }
        *size = k;
    }
    let values = TensorMeta::loose(shape, tensor.dtype);
    let indices = TensorMeta { dtype: Some(Dtype::I64), ..values.clone() };
    many([values, indices])
}

/// The statistics have size 1 in the normalised dimensions; their dtype depends on the device.
fn layer_norm(call: &Call) -> Rule<Inferred> {
    let (input, over) = (call.tensor("input")?, call.sizes("normalized_shape")?);
    let refuse = || {
        let (a, b) = (call.text(&input.shape), call.text(&over));
        fault(format!("native_layer_norm of {a} over {b}"))
    };
    let Some(kept) = input.shape.len().checked_sub(over.len()) else { return refuse() };
    if input.shape[kept..].iter().zip(&over).any(|(&a, &b)| a.differs(b)) {
        return refuse();
    }
    for name in ["weight", "bias"] {
        if let Some(tensor) = call.optional_tensor(name)?
            && (tensor.shape.len() != over.len()
                || tensor.shape.iter().zip(&over).any(|(&a, &b)| a.differs(b)))
        {
            let (a, b) = (call.text(&tensor.shape), call.text(&over));
            return fault(format!("the {name} of native_layer_norm is {a}, not {b}"));
        }
    }
    let mut shape = input.shape[..kept].to_vec();
    shape.resize(input.shape.len(), Size::Known(1));
    let stats = TensorMeta::loose(shape, None);
    many([loose(&input), stats.clone(), stats])
}

fn convolution(call: &Call) -> Rule<Inferred> {
    let (input, weight) = (call.tensor("input")?, call.tensor("weight")?);
    if call.sizes("output_padding")?.iter().any(|n| n.known().is_some_and(|n| n < 0)) {
        return fault("convolution with a negative output_padding".to_string());
    }
    if call.flag("transposed") {
        return Err(Stop::Undecided);
    }
    let rank = input.shape.len();
    if rank < 3 || weight.shape.len() != rank {
        return fault(format!("convolution of {} by {}", call.text(&input.shape), call.text(&weight.shape)));
    }
    let per_dim = |name: &str| -> Rule<Vec<i64>> {
        let given = call.ints(name)?;
        Ok(if given.len() == 1 { vec![given[0]; rank - 2] } else { given })
    };
    let (stride, padding, dilation) = (per_dim("stride")?, per_dim("padding")?, per_dim("dilation")?);
    let mut shape = vec![input.shape[0], weight.shape[0]];
    for d in 0..rank - 2 {
        let (Some(&s), Some(&p), Some(&l)) = (stride.get(d), padding.get(d), dilation.get(d)) else {
            return fault("convolution lacks a stride, padding or dilation".to_string());
        };
        let (Some(n), Some(k)) = (input.shape[d + 2].known(), weight.shape[d + 2].known()) else {
            return Err(Stop::Undecided);
        };
        let reach = || k.checked_sub(1)?.checked_mul(l)?.checked_add(1);
        let room = || n.checked_add(p.checked_mul(2)?)?.checked_sub(reach()?);
        let Some(room) = room() else { return Err(Stop::Undecided) };
        if room < 0 || s < 1 {
            return fault(format!(
                "convolution of {} by {}",
                call.text(&input.shape),
                call.text(&weight.shape)
            ));
        }
        shape.push(Size::Known(room / s + 1));
    }
    one(TensorMeta::loose(shape, input.dtype))
}

/// With reduction 0 one loss per element, else one in all.
fn nll_loss(call: &Call) -> Rule<Inferred> {
    let (input, target) = (call.tensor("self")?, call.tensor("target")?);
    if let Some(dtype) = target.dtype.filter(|dtype| !matches!(dtype, Dtype::I64 | Dtype::U8)) {
        return fault(format!("the target of nll_loss_forward is {}, not int64", dtype.name()));
    }
    let fits = match input.shape[..] {
        [rows, _] => matches!(target.shape[..], [size] if !size.differs(rows)),
        [_] => matches!(target.shape[..], [] | [Size::Known(1) | Size::Symbol(_) | Size::Unknown]),
        _ => true,
    };
    if !fits {
        let (a, b) = (call.text(&input.shape), call.text(&target.shape));
        return fault(format!("nll_loss_forward of {a} with a target of {b}"));
    }
    let shape = if call.int("reduction")? == 0 { target.shape } else { Sizes::new() };
    many([TensorMeta::loose(shape, input.dtype), TensorMeta::loose(Vec::new(), input.dtype)])
}

/// Equations with an arrow and without ellipsis.
fn einsum(call: &Call) -> Rule<Inferred> {
    let tensors = call.tensors("tensors")?;
    let equation = call.word("equation").ok_or(Stop::Undecided)?;
    let Some((left, right)) = equation.split_once("->").filter(|_| !equation.contains('.')) else {
        return Err(Stop::Undecided);
    };
    let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<Vec<char>>();
    let operands: Vec<Vec<char>> = left.split(',').map(letters).collect();
    let refuse = || {
        let shapes: Vec<String> = tensors.iter().map(|t| call.text(&t.shape)).collect();
        fault(format!("einsum {equation} of {}", shapes.join(" and ")))
    };
    if operands.len() != tensors.len() {
        return refuse();
    }
    let mut sizes: Vec<(char, Size)> = Vec::new();
    for (letters, tensor) in operands.iter().zip(&tensors) {
        if letters.len() != tensor.shape.len() {
            return refuse();
        }
        for (&letter, &size) in letters.iter().zip(&tensor.shape) {
            match sizes.iter_mut().find(|(l, _)| *l == letter) {
                None => sizes.push((letter, size)),
                Some((_, known)) if *known == Size::Known(1) => *known = size,
                Some((_, known)) if known.differs(size) && size != Size::Known(1) => return refuse(),
                Some(_) => {}
            }
        }
    }
    let find = |letter: &char| sizes.iter().find(|(l, _)| l == letter).map(|&(_, size)| size);
    match letters(right).iter().map(find).collect::<Option<Vec<Size>>>() {
        Some(shape) => one(TensorMeta::loose(shape, tensors.first().and_then(|t| t.dtype))),
        None => refuse(),
    }
}

fn linear(call: &Call) -> Rule<Inferred> {
    let (input, weight) = (call.tensor("input")?, call.tensor("weight")?);
    let (Some((inner, batch)), [columns, width]) = (input.shape.split_last(), &weight.shape[..]) else {
        return Err(Stop::Undecided);
    };
    if inner.differs(*width) {
        return fault(format!("linear of {} by {}", call.text(&input.shape), call.text(&weight.shape)));
    }
    if let (Some(a), Some(b)) = (input.dtype, weight.dtype)
        && a != b
        && numel(&input.shape).known().is_some_and(|n| n > 0)
    {
        return fault(format!("linear of {} and {}", a.name(), b.name()));
    }
    let shape: Vec<Size> = batch.iter().chain([columns]).copied().collect();
    if let Some(bias) = call.optional_tensor("bias")? {
        // The product by a vector is added to what the bias makes of it.
        if batch.is_empty() && bias.shape.len() > 1 {
            return Err(Stop::Undecided);
        }
        fits(call, "bias", &bias.shape, &shape)?;
    }
    one(TensorMeta::loose(shape, input.dtype))
}

/// Products of groups of rows or columns: a side of 2 dimensions is cut at `offs`, one of 3 has a matrix a group.
fn grouped_mm(call: &Call) -> Rule<Inferred> {
    let (a, b) = (call.tensor("self")?, call.tensor("mat2")?);
    let groups = call.optional_tensor("offs")?.map(|offs| numel(&offs.shape)).unwrap_or(Size::Unknown);
    let dtype = call.dtype("out_dtype").or(a.dtype);
    let shape = match (&a.shape[..], &b.shape[..]) {
        (&[rows, inner], &[_, other, columns]) if !inner.differs(other) => vec![rows, columns],
        (&[_, rows, inner], &[other, columns]) if !inner.differs(other) => vec![rows, columns],
        (&[batch, rows, inner], &[_, other, columns]) if !inner.differs(other) => vec![batch, rows, columns],
        (&[rows, inner], &[other, columns]) if !inner.differs(other) => vec![groups, rows, columns],
        _ => return fault(format!("_grouped_mm of {} and {}", call.text(&a.shape), call.text(&b.shape))),
    };
    one(TensorMeta::loose(shape, dtype))
}

/// The first result has the query's shape with the value's width; a backward's results are like the inputs.
fn attention(call: &Call) -> Rule<Inferred> {
    let count = call.schema.returns.len();
    let mut results = vec![Output::Undecided; count];
    if call.name().ends_with("_backward") {
        for (slot, name) in results.iter_mut().zip(["query", "key", "value"]) {
            *slot = like_argument(call, name)?;
        }
    } else {
        let (query, value) = (call.tensor("query")?, call.tensor("value")?);
        let mut shape = query.shape;
        if let (Some(width), Some(&of)) = (shape.last_mut(), value.shape.last()) {
            *width = of;
        }
        results[0] = Output::Tensor(TensorMeta::loose(shape, query.dtype));
    }
    Ok(Inferred::Many(results))
}
