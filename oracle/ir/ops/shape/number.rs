//! Rules of `getitem`, and of numbers read off tensors.

use super::call::{Call, Rule, Stop, fault};
use super::size::{Size, numel};
use super::{Inferred, Output};
use crate::graph::{Graph, NodeId, Out, Value};
use crate::ops::{Kind, Number};

pub(super) fn getitem(graph: &Graph, node: NodeId) -> Rule<Inferred> {
    let (Some(Value::Node(of)), Some(Value::Int(index))) = (graph.arg(node, 0), graph.arg(node, 1)) else {
        return Err(Stop::Undecided);
    };
    let Out::Tuple(span) = graph.node(of).out else { return Err(Stop::Undecided) };
    let outs = graph.outs(span);
    let at = if index < 0 { index.checked_add(outs.len() as i64) } else { Some(index) };
    let part = at.and_then(|i| usize::try_from(i).ok()).and_then(|i| outs.get(i));
    match part {
        Some(&out) => Ok(Inferred::One(Output::recorded(graph, out))),
        None => fault(format!("item {index} of {}, which has {} results", graph.name(of), outs.len())),
    }
}

/// Arithmetic on numbers. The same Python functions take tensors, of which nothing is said.
pub(super) fn computed(graph: &Graph, node: NodeId, op: Number) -> Inferred {
    let takes_no_tensor = graph.inputs(node).into_iter().all(|input| graph.tensor_of(input).is_none());
    if !takes_no_tensor {
        return Inferred::Undecided;
    }
    let number = |value: Value| match value {
        Value::Int(n) => Some(n),
        Value::Bool(b) => Some(i64::from(b)),
        Value::Node(node) => match graph.node(node).out {
            Out::Int(n) => Some(n),
            _ => None,
        },
        _ => None,
    };
    let given: Option<Vec<i64>> = match graph.args(node) {
        &[Value::List(span)] => graph.values(span).iter().map(|&value| number(value)).collect(),
        values => values.iter().map(|&value| number(value)).collect(),
    };
    Inferred::One(Output::Number(given.and_then(|given| op.compute(&given)).into()))
}

/// `sym_size`, `sym_numel`, `sym_stride`.
pub(super) fn of_tensor(call: &Call) -> Rule<Inferred> {
    let tensor = call.tensor("self")?;
    let size = match call.info.kind {
        Kind::SymNumel => numel(&tensor.shape),
        kind => {
            let dim = call.dim("dim", tensor.shape.len())?;
            let of = if kind == Kind::SymSize { &tensor.shape[..] } else { tensor.strides()? };
            match of.get(dim) {
                Some(&size) => size,
                None => return fault(format!("dimension {dim} of a tensor of 0 dimensions")),
            }
        }
    };
    // A symbol may be written differently where it comes out.
    Ok(Inferred::One(Output::Number(size.known().map_or(Size::Unknown, Size::Known))))
}
