//! Rules of reductions. Source: `aten/src/ATen/native/ReduceOps.cpp`.

use super::call::{Call, Rule, fault};
use super::size::{Size, Sizes};
use super::{Inferred, TensorMeta, one};
use crate::graph::{Dtype, DtypeClass, Value};
use crate::ops::Reduce;

pub(super) fn infer(call: &Call, kind: Reduce) -> Rule<Inferred> {
    let tensor = call.tensor("self")?;
    let reduced = dims(call, &tensor.shape, matches!(kind, Reduce::Any | Reduce::All))?;
    let given = call.dtype("dtype");
    let dtype = match (kind, given, tensor.dtype) {
        (_, Some(dtype), _) => Some(dtype),
        (_, None, None) => None,
        (Reduce::Sum | Reduce::Prod, _, Some(d)) if d.class() < DtypeClass::Float => Some(Dtype::I64),
        (Reduce::Mean, _, Some(d)) if d.class() < DtypeClass::Float => {
            return fault(format!("mean does not take {} without a dtype", d.name()));
        }
        (Reduce::Amax | Reduce::Amin, _, Some(d)) if d.class() == DtypeClass::Complex => {
            return fault(format!("{} does not take {}", call.name(), d.name()));
        }
        (Reduce::Any | Reduce::All, _, Some(Dtype::U8)) => Some(Dtype::U8),
        (Reduce::Any | Reduce::All, _, Some(_)) => Some(Dtype::Bool),
        (_, _, dtype) => dtype,
    };
    if matches!(kind, Reduce::Amax | Reduce::Amin)
        && reduced.iter().any(|&d| tensor.shape.get(d) == Some(&Size::Known(0)))
    {
        return fault(format!("{} of {} over no elements", call.name(), call.text(&tensor.shape)));
    }
    if reduced.is_empty() {
        return one(TensorMeta { dtype, ..tensor.packed() });
    }
    one(TensorMeta::fresh(without(&tensor.shape, &reduced, call.flag("keepdim")), dtype))
}

/// `shape` without the dimensions `reduced`, or with size 1 there.
pub(super) fn without(shape: &[Size], reduced: &[usize], keepdim: bool) -> Sizes {
    let keep = |(i, &size): (usize, &Size)| match (reduced.contains(&i), keepdim) {
        (false, _) => Some(size),
        (true, true) => Some(Size::Known(1)),
        (true, false) => None,
    };
    shape.iter().enumerate().filter_map(keep).collect()
}

/// The dimensions that the argument `dim` names: all of them where it is absent, `None` or (unless `empty_is_none`)
/// empty.
pub(super) fn dims(call: &Call, shape: &[Size], empty_is_none: bool) -> Rule<Vec<usize>> {
    let rank = shape.len();
    let all = || Ok((0..rank).collect());
    if call.schema.param("dim").is_none() || matches!(call.value("dim"), Some(Value::None)) {
        return all();
    }
    if !call.has("dim") && call.ints("dim").is_err() {
        return all();
    }
    let given = call.ints("dim")?;
    if given.is_empty() && !empty_is_none {
        return all();
    }
    call.distinct_dims(&given, rank)
}

pub(super) fn cumsum(call: &Call) -> Rule<Inferred> {
    let tensor = call.tensor("self")?;
    call.dim("dim", tensor.shape.len())?;
    let whole = |d: Dtype| if d.class() < DtypeClass::Float { Dtype::I64 } else { d };
    // In place, the result keeps the dtype.
    let own = if call.name().ends_with('_') { tensor.dtype } else { tensor.dtype.map(whole) };
    let dtype = call.dtype("dtype").or(own);
    one(TensorMeta { dtype, ..tensor.packed() })
}
