//! Rules of operators that make tensors of one value, sequences and random draws.

use super::call::{Call, Operand, Rule, Stop, fault};
use super::promote::DEFAULT_FLOAT;
use super::size::{Size, Sizes, contiguous, numel};
use super::{Inferred, Output, TensorMeta, many, one};
use crate::graph::layout::order_of;
use crate::graph::{Dtype, DtypeClass, Out, Value};
use crate::ops::{Fill, Kind, Random};

pub(super) fn fill(call: &Call, kind: Fill) -> Rule<Inferred> {
    let name = call.name();
    if name == "scalar_tensor" {
        return one(TensorMeta::fresh(Sizes::new(), Some(call.dtype("dtype").unwrap_or(DEFAULT_FLOAT))));
    }
    if name.trim_end_matches('_') == "fill" || name.trim_end_matches('_') == "zero" {
        if let Operand::Tensor(value) = call.operand("value")?
            && !value.shape.is_empty()
        {
            return fault(format!("the value of fill has no dimensions, got {}", call.text(&value.shape)));
        }
        return one(call.tensor("self")?.packed());
    }
    let default = match kind {
        Fill::Full => full_dtype(call)?,
        _ => Some(DEFAULT_FLOAT),
    };
    sized(call, default)
}

pub(super) fn random(call: &Call, kind: Random) -> Rule<Inferred> {
    match kind {
        Random::Bernoulli => {
            let tensor = call.tensor("self")?;
            if call.schema.param("p").is_none() {
                draws(call, tensor.dtype)?;
            }
            probable(call)?;
            one(tensor.packed())
        }
        Random::NativeDropout => {
            let input = call.tensor("input")?;
            if call.value("train") != Some(Value::Bool(false)) {
                draws(call, input.dtype)?;
                if numel(&input.shape).known().is_some_and(|n| n > 0) {
                    probable(call)?;
                }
            }
            // Of a tensor without elements, the mask is a copy.
            let dtype = if numel(&input.shape) == Size::Known(0) { None } else { Some(Dtype::Bool) };
            let mask = TensorMeta::like(std::slice::from_ref(&input), input.shape.clone(), dtype);
            many([TensorMeta::like(std::slice::from_ref(&input), input.shape.clone(), input.dtype), mask])
        }
        _ => {
            let inferred = sized(call, Some(DEFAULT_FLOAT))?;
            if let Inferred::One(Output::Tensor(tensor)) = &inferred {
                draws(call, tensor.dtype)?;
            }
            Ok(inferred)
        }
    }
}

/// Refuses a number that is no probability.
fn probable(call: &Call) -> Rule<()> {
    let p = match call.value("p") {
        Some(Value::Float(p)) => p,
        Some(Value::Int(p)) => p as f64,
        _ => return Ok(()),
    };
    if (0.0..=1.0).contains(&p) {
        return Ok(());
    }
    fault(format!("{} takes a probability, got {p}", call.name()))
}

/// Refuses to draw real numbers as integers or bools.
pub(super) fn draws(call: &Call, dtype: Option<Dtype>) -> Rule<()> {
    match dtype.filter(|dtype| dtype.class() < DtypeClass::Float) {
        Some(dtype) => fault(format!("{} does not take {}", call.name(), dtype.name())),
        None => Ok(()),
    }
}

/// Refuses memory that PyTorch does not give: a memory format that it lacks or that wants another number of dimensions,
/// a layout without strides where `recorded` has them, pinned memory elsewhere than on the host. Sources:
/// `c10/core/TensorImpl.h` (`empty_tensor_restride`), `aten/src/ATen/EmptyTensor.cpp`. A cast does not read
/// `pin_memory`, and the device `meta` takes it.
pub(super) fn placed(call: &Call, recorded: Out, result: &Inferred) -> Rule<()> {
    let named = |name: &str| call.word(name).map(|word| word.strip_prefix("torch.").unwrap_or(word));
    let wanted = match named("memory_format") {
        Some("preserve_format") if call.name() == "empty" => {
            return fault("empty does not take the memory format preserve_format".to_string());
        }
        None | Some("contiguous_format" | "preserve_format") => None,
        Some("channels_last") => Some(("channels_last", 4)),
        Some("channels_last_3d") => Some(("channels_last_3d", 5)),
        Some(other) => return fault(format!("there is no memory format {other}")),
    };
    if let (Some((format, rank)), Inferred::One(Output::Tensor(tensor))) = (wanted, result)
        && tensor.shape.len() != rank
    {
        let shape = call.text(&tensor.shape);
        return fault(format!("the memory format {format} is for {rank} dimensions, not for {shape}"));
    }
    let Out::Tensor(tensor) = recorded else { return Ok(()) };
    if let Some(layout) = named("layout").filter(|layout| *layout != "strided") {
        return fault(format!("the layout {layout} gives no tensor with strides"));
    }
    let device = call.graph.text(call.graph.tensor(tensor).device);
    let on_host = matches!(device.split(':').next(), Some("cpu" | "meta"));
    if !on_host && call.info.kind != Kind::Cast && call.value("pin_memory") == Some(Value::Bool(true)) {
        return fault(format!("{} does not pin memory of {device}", call.name()));
    }
    Ok(())
}

/// The dtype of `full` where none is given: that of its value.
fn full_dtype(call: &Call) -> Rule<Option<Dtype>> {
    Ok(match call.operand("fill_value")? {
        Operand::Number(DtypeClass::Bool) => Some(Dtype::Bool),
        Operand::Number(DtypeClass::Int) => Some(Dtype::I64),
        Operand::Number(DtypeClass::Float) => Some(DEFAULT_FLOAT),
        Operand::Number(DtypeClass::Complex) => Some(Dtype::C64),
        Operand::Tensor(value) => value.dtype,
        Operand::Absent => None,
    })
}

/// A fresh tensor of the shape that `size` says, else of that of `self`; `self` gives the dtype, else `default`.
fn sized(call: &Call, default: Option<Dtype>) -> Rule<Inferred> {
    let model = if call.schema.param("self").is_some() { Some(call.tensor("self")?) } else { None };
    let dtype = call.dtype("dtype").or(match &model {
        Some(tensor) => tensor.dtype,
        None => default,
    });
    let formatted = call.memory_format().is_some_and(|format| format != "contiguous_format");
    if call.schema.param("size").is_some() {
        let shape = call.sizes("size")?;
        if shape.iter().any(|s| s.known().is_some_and(|n| n < 0)) {
            return fault(format!("{} of {}", call.name(), call.text(&shape)));
        }
        if call.schema.param("stride").is_some() {
            let stride = call.sizes("stride")?;
            if stride.len() != shape.len() || stride.iter().any(|s| s.known().is_some_and(|n| n < 0)) {
                return fault(format!(
                    "{} of {} with strides {}",
                    call.name(),
                    call.text(&shape),
                    call.text(&stride)
                ));
            }
            return one(TensorMeta { shape, stride: Some(stride), offset: Size::Known(0), dtype });
        }
        if call.schema.param("physical_layout").is_some() {
            let order = call.ints("physical_layout")?;
            let Some(stride) = strides_in(&shape, &order) else {
                return fault(format!("{} of {} in the order {order:?}", call.name(), call.text(&shape)));
            };
            return one(TensorMeta { shape, stride: Some(stride), offset: Size::Known(0), dtype });
        }
        return one(if formatted {
            TensorMeta::loose(shape, dtype)
        } else {
            TensorMeta::fresh(shape, dtype)
        });
    }
    let Some(model) = model else { return Err(Stop::Undecided) };
    let shape = model.shape.clone();
    one(match call.memory_format() {
        Some("contiguous_format") => TensorMeta::fresh(shape, dtype),
        _ if formatted => TensorMeta::loose(shape, dtype),
        _ => TensorMeta::like(&[model], shape, dtype),
    })
}

/// The strides of dimensions that lie in memory in an order, the outermost first; `None` if that is none of them.
fn strides_in(shape: &[Size], order: &[i64]) -> Option<Sizes> {
    let order = order_of(order, shape.len())?;
    let lying: Sizes = order.iter().map(|&dim| shape[dim]).collect();
    let mut strides = Sizes::from_elem(Size::Known(1), shape.len());
    order.iter().zip(contiguous(&lying)).for_each(|(&dim, stride)| strides[dim] = stride);
    Some(strides)
}

pub(super) fn arange(call: &Call) -> Rule<Inferred> {
    let names = ["start", "end", "step"].map(|name| call.schema.param(name).map(|_| name));
    let mut float = false;
    let mut parts = [Some(0i64), None, Some(1i64)];
    let mut reals = [Some(0.0), None, Some(1.0)];
    for (name, (part, real)) in names.into_iter().zip(parts.iter_mut().zip(&mut reals)) {
        let Some(name) = name else { continue };
        match call.value(name) {
            Some(Value::Float(x)) => {
                float = true;
                (*part, *real) = (None, Some(x));
            }
            Some(_) => {
                *part = call.size(name)?.known();
                *real = part.map(|n| n as f64);
            }
            None => {}
        }
    }
    if let [Some(start), Some(end), Some(step)] = reals
        && (step == 0.0 || (end - start) * step.signum() < 0.0)
    {
        return fault(format!("arange from {start} to {end} by {step}"));
    }
    let dtype = call.dtype("dtype").unwrap_or(if float { DEFAULT_FLOAT } else { Dtype::I64 });
    let [Some(start), Some(end), Some(step)] = parts else {
        return one(TensorMeta::fresh(vec![Size::Unknown], Some(dtype)));
    };
    let span = end.checked_sub(start);
    let count = span.and_then(|s| {
        let whole = s.checked_div(step)?;
        Some(whole + i64::from(whole.checked_mul(step)? != s))
    });
    one(TensorMeta::fresh(vec![count.into()], Some(dtype)))
}
