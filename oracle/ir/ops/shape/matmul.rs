//! Rules of matrix products. Source: `aten/src/ATen/native/LinearAlgebra.cpp`.

use super::call::{Call, Rule, Stop, fault};
use super::size::{Size, numel};
use super::{Inferred, TensorMeta, one};
use crate::graph::Dtype;
use crate::ops::Matmul;

pub(super) fn infer(call: &Call, kind: Matmul) -> Rule<Inferred> {
    let first = match kind {
        Matmul::Addmm | Matmul::Baddbmm => 1,
        _ => 0,
    };
    let (a, b) = (call.tensor(call.param(first))?, call.tensor(call.param(first + 1))?);
    let refuse = || fault(format!("{} of {} and {}", call.name(), call.text(&a.shape), call.text(&b.shape)));
    let ranks = match kind {
        Matmul::Mm | Matmul::Addmm => Some((2, 2)),
        Matmul::Bmm | Matmul::Baddbmm => Some((3, 3)),
        Matmul::Mv => Some((2, 1)),
        Matmul::Dot => Some((1, 1)),
        Matmul::General => None,
    };
    if ranks.is_some_and(|r| r != (a.shape.len(), b.shape.len())) {
        return refuse();
    }
    if let (Some(x), Some(y)) = (a.dtype, b.dtype)
        && x != y
    {
        // Of no elements PyTorch asks it here and there only.
        if [&a.shape, &b.shape].iter().any(|shape| numel(shape) == Size::Known(0)) {
            return Err(Stop::Undecided);
        }
        return fault(format!("{} of {} and {}", call.name(), x.name(), y.name()));
    }
    if a.dtype == Some(Dtype::Bool) {
        return fault(format!("{} does not take bool", call.name()));
    }
    let Some((batch, rows, columns)) = product(&a.shape, &b.shape) else { return refuse() };
    let mut shape = match kind {
        Matmul::Bmm | Matmul::Baddbmm
            if batch.0.first().zip(batch.1.first()).is_some_and(|(x, y)| x.differs(*y)) =>
        {
            return refuse();
        }
        _ => match call.broadcast(&[batch.0, batch.1]) {
            Ok(shape) => shape,
            Err(_) => return refuse(),
        },
    };
    shape.extend(rows);
    shape.extend(columns);
    let dtype: Option<Dtype> = call.dtype("out_dtype").or(a.dtype);
    if first == 1 {
        let bias = call.tensor(call.param(0))?;
        if let (Some(x), Some(y)) = (bias.dtype, a.dtype)
            && x != y
        {
            return fault(format!("{} of {} and {}", call.name(), x.name(), y.name()));
        }
        let fits = call.broadcast(&[&bias.shape, &shape]).is_ok_and(|s| s.len() == shape.len());
        let grows = bias
            .shape
            .iter()
            .rev()
            .zip(shape.iter().rev())
            .any(|(&x, &y)| y == Size::Known(1) && x.differs(y));
        if !fits || grows {
            return fault(format!("{} does not broadcast to {}", call.text(&bias.shape), call.text(&shape)));
        }
    }
    // The result of `matmul` is folded from a product of fewer dimensions, in ways that differ.
    let fresh = kind != Matmul::General || shape.len() <= 2;
    one(if fresh { TensorMeta::fresh(shape, dtype) } else { TensorMeta::loose(shape, dtype) })
}

type Product<'a> = ((&'a [Size], &'a [Size]), Option<Size>, Option<Size>);

/// Batch dimensions of both, and the rows and columns of the product; `None` where the inner sizes differ or an
/// operand has no dimensions. A vector has no rows or columns of its own.
fn product<'a>(a: &'a [Size], b: &'a [Size]) -> Option<Product<'a>> {
    let (inner_a, a_rest) = a.split_last()?;
    let (inner_b, b_batch, columns) = match b {
        [] => return None,
        [inner] => (inner, &b[..0], None),
        [batch @ .., inner, columns] => (inner, batch, Some(*columns)),
    };
    let (rows, a_batch) = match a_rest.split_last() {
        Some((&rows, batch)) => (Some(rows), batch),
        None => (None, a_rest),
    };
    (!inner_a.differs(*inner_b)).then_some(((a_batch, b_batch), rows, columns))
}
