//! Wrong edits of what a call computes: another number, fewer digits, another draw.

use super::Places;
use super::insert::{insert_cast, insert_copy};
use super::operands::set_argument;
use super::reading::Reading;
use crate::graph::{Dtype, DtypeClass, NodeId, Op, Value};
use crate::ops::{Binary, Kind, OpInfo};

/// A number that is added, multiplied, ... is another one.
pub(super) fn constant(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (id, info) in reading.calls() {
        let Kind::Binary(Binary::Add | Binary::Sub | Binary::Rsub | Binary::Mul | Binary::Div | Binary::Pow) =
            info.kind
        else {
            continue;
        };
        let other = match graph.arg(id, 1) {
            Some(Value::Float(x)) if x.is_finite() && x.abs() < 1e6 => Value::Float(x + 1.0),
            Some(Value::Int(n)) if n.abs() < 1 << 20 => Value::Int(n + 1),
            _ => continue,
        };
        // No division by zero, and no step from one even power to another of what may be constant.
        let plain = other != Value::Int(0) && other != Value::Float(0.0);
        let of_input = reading.operands(id).first().is_some_and(|&x| !reading.sources.certain(x).is_clear());
        if !reading.is_live(id) {
            continue;
        }
        if !plain || !of_input {
            places.left_out += 1;
            continue;
        }
        let number = match other {
            Value::Float(x) => x.to_string(),
            Value::Int(n) => n.to_string(),
            _ => continue,
        };
        places.add(id, format!("{}: {number} for its number", graph.name(id)), move |editor| {
            set_argument(editor, id, 1, other);
        });
    }
    places
}

/// A float32 operand of a product or sum goes through bfloat16. What casts become is left alone: it may be exact
/// already.
pub(super) fn rounded(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    let mut has_digits = vec![false; graph.len()];
    for id in graph.ids() {
        let computes = |info: &OpInfo| match info.kind {
            Kind::Unary(op) => !op.is_step(),
            kind => matches!(kind, Kind::Binary(Binary::Add | Binary::Mul | Binary::Div)),
        };
        has_digits[id.index()] = match reading.call(id) {
            Some(info) if computes(info) => reading.operands(id).iter().any(|x| has_digits[x.index()]),
            Some(info) => matches!(info.kind, Kind::Matmul(_)),
            None => graph.node(id).op == Op::Placeholder,
        };
    }
    for (id, info) in reading.calls() {
        let computes = matches!(
            info.kind,
            Kind::Matmul(_) | Kind::Binary(Binary::Mul | Binary::Add | Binary::Sub | Binary::Div)
        );
        if !computes || !reading.is_arithmetic(id) || !reading.is_live(id) {
            continue;
        }
        for operand in reading.operands(id) {
            let Some(&tensor) = graph.tensor_of(operand).filter(|tensor| tensor.dtype == Dtype::F32) else {
                continue;
            };
            let kept = graph.tensor_of(id).is_some_and(|result| result.dtype == Dtype::F32);
            if !has_digits[operand.index()]
                || !kept
                || !reading.is_settled(operand)
                || reading.sources.certain(operand).is_clear()
            {
                places.left_out += 1;
                continue;
            }
            let what = format!("{} takes {} rounded to bfloat16", graph.name(id), graph.name(operand));
            places.add(id, what, move |editor| {
                let narrow = insert_cast(editor, id, operand, tensor, Dtype::BF16);
                let back = insert_cast(editor, id, narrow, tensor, Dtype::F32);
                editor.replace_input(id, operand, back);
            });
        }
    }
    places
}

/// One of several readers of a draw takes a draw of its own.
pub(super) fn drawn_again(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (id, info) in reading.calls() {
        let users = reading.edges.users(id);
        let settled = !info.writes() && !info.effect;
        let floats =
            |id: NodeId| graph.tensor_at(id, 0).is_some_and(|t| t.dtype.class() == DtypeClass::Float);
        if !reading.ops.draws(graph, id) || !settled || !floats(id) {
            continue;
        }
        let live: Vec<NodeId> =
            users.iter().copied().filter(|&user| reading.is_live(user) && reading.is_pure(user)).collect();
        if live.len() < 2 {
            places.left_out += 1;
            continue;
        }
        for user in live {
            let what = format!("{} reads a second {}", graph.name(user), graph.name(id));
            places.add(user, what, move |editor| {
                let second = insert_copy(editor, id, user);
                editor.replace_input(user, id, second);
            });
        }
    }
    places
}
