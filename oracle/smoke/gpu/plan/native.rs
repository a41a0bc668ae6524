//! Which operators have kernels of their own: those whose arithmetic is exactly defined on every device.
//!
//! The rest runs through the interpreter, on the host only; the plan names them.

use super::kernel::{Arithmetic, Function, Kernel};
use super::view::{Part, View};
use crate::graph::{Dtype, Graph, NodeId, Value};
use crate::ops::{Binary, Fill, Kind, Matmul, Move, Unary};
use crate::semantics::observe::Content;

/// A launch without its rank and node.
pub(super) struct Piece {
    pub kernel: Kernel,
    pub reads: Vec<Part>,
    pub writes: Vec<Part>,
}

/// A window that a node writes, with what it leaves there.
pub(super) struct Written<'a> {
    pub part: Part,
    pub after: &'a Content,
}

/// The kernels of a node that reads and writes these windows, in the order in which it does; `None` where it has none.
pub(super) fn pieces(
    graph: &Graph,
    node: NodeId,
    kind: Kind,
    reads: &[Part],
    writes: &[Written],
) -> Option<Vec<Piece>> {
    let one = |kernel, reads: Vec<Part>, to: Part| Some(vec![Piece { kernel, reads, writes: vec![to] }]);
    match (kind, reads, writes) {
        (Kind::View(_) | Kind::Move(Move::Clone | Move::Copy), [from], [to]) => {
            let from = match from.view.count() == to.part.view.count() {
                true => *from,
                false => Part { view: from.view.broadcast(to.part.view.shape)?, ..*from },
            };
            copy(&from, &to.part).map(|piece| vec![piece])
        }
        (Kind::Move(Move::ForeachCopy), ..) if reads.len() == writes.len() => {
            reads.iter().zip(writes).map(|(from, to)| copy(from, &to.part)).collect()
        }
        (Kind::Move(Move::SplitWithSizesCopy), [whole], writes) => {
            let dim = dimension(graph, node, 2, whole.view.shape.len())?;
            along(whole.view, dim, writes.iter().map(|w| w.part.view), |part, i| {
                copy(&Part { view: part, ..*whole }, &writes[i].part)
            })
        }
        (Kind::Move(Move::Cat), reads, [to]) if !reads.is_empty() => {
            let dim = dimension(graph, node, 1, to.part.view.shape.len())?;
            let parts: Vec<&Part> = reads.iter().filter(|part| part.view.count() > 0).collect();
            along(to.part.view, dim, parts.iter().map(|part| part.view), |view, i| {
                copy(parts[i], &Part { view, ..to.part })
            })
        }
        (Kind::Cast, [from], [to]) => {
            let dtypes = (from.view.dtype, to.part.view.dtype);
            if dtypes.0 == dtypes.1 {
                return copy(from, &to.part).map(|piece| vec![piece]);
            }
            use Dtype::{BF16, F32, F64, I32, I64};
            let known = matches!(dtypes, (F32, BF16 | F64) | (BF16, F32) | (F64, F32) | (I64 | I32, F32));
            let fits = from.view.count() == to.part.view.count();
            (known && fits).then(|| one(Kernel::Cast(dtypes.0, dtypes.1), vec![*from], to.part)).flatten()
        }
        (Kind::Fill(Fill::Zeros | Fill::Ones | Fill::Full), [], [to]) => {
            let size = to.part.view.size();
            let mut each = to.after.bytes.chunks_exact(size);
            let first = each.next().filter(|_| size <= 8)?;
            let mut word = [0; 8];
            word[..size].copy_from_slice(first);
            each.all(|other| other == first)
                .then(|| one(Kernel::Fill(u64::from_le_bytes(word)), Vec::new(), to.part))
                .flatten()
        }
        (Kind::Unary(op @ (Unary::Relu | Unary::Neg)), [from], [to]) => {
            let function = if op == Unary::Relu { Function::Relu } else { Function::Neg };
            let dtype = to.part.view.dtype;
            let computed = matches!(dtype, Dtype::F32 | Dtype::F64 | Dtype::BF16);
            let same = from.view.dtype == dtype && from.view.count() == to.part.view.count();
            let apart = from.buffer != to.part.buffer || from.view == to.part.view;
            (computed && same && apart)
                .then(|| one(Kernel::Unary(function, dtype), vec![*from], to.part))
                .flatten()
        }
        (Kind::Binary(op), [a, b], [to]) => {
            let op = match op {
                Binary::Add => Arithmetic::Add,
                Binary::Sub => Arithmetic::Sub,
                Binary::Mul => Arithmetic::Mul,
                _ => return None,
            };
            let plain = graph.args(node).iter().filter(|arg| matches!(arg, Value::Node(_))).count() == 2
                && graph.args(node).len() == 2
                && graph.kwargs(node).len() == 0;
            let dtype = to.part.view.dtype;
            let computed = matches!(dtype, Dtype::F32 | Dtype::F64 | Dtype::BF16 | Dtype::I32 | Dtype::I64);
            if !plain || !computed || a.view.dtype != dtype || b.view.dtype != dtype {
                return None;
            }
            let shown = |part: &Part| {
                let view = part.view.broadcast(to.part.view.shape)?;
                // Element by element it may write what it reads; anything else that overlaps may not.
                (part.buffer != to.part.buffer || view == to.part.view).then_some(Part { view, ..*part })
            };
            one(Kernel::Binary(op, dtype), vec![shown(a)?, shown(b)?], to.part)
        }
        (Kind::Matmul(Matmul::Mm), [a, b], [to]) => {
            let dtype = to.part.view.dtype;
            let computed = matches!(dtype, Dtype::F32 | Dtype::F64 | Dtype::BF16);
            let same = a.view.dtype == dtype && b.view.dtype == dtype;
            let flat = [&a.view, &b.view, &to.part.view].iter().all(|view| view.shape.len() == 2);
            let apart = a.buffer != to.part.buffer && b.buffer != to.part.buffer;
            (computed && same && flat && apart)
                .then(|| one(Kernel::Matmul(dtype), vec![*a, *b], to.part))
                .flatten()
        }
        _ => None,
    }
}

/// Moves one view to another of as many elements of one dtype.
fn copy(from: &Part, to: &Part) -> Option<Piece> {
    let count = to.view.count();
    let fits = from.view.dtype == to.view.dtype && from.view.count() == count && from.view.size() <= 8;
    let apart = from.buffer != to.buffer || from.view == to.view || {
        let (a, b) = (from.view.ranges(), to.view.ranges());
        a.iter().all(|a| b.iter().all(|b| a.end <= b.start || b.end <= a.start))
    };
    let kernel = Kernel::Copy { from: 0, to: 0, count: count as u64 };
    (fits && apart).then(|| Piece { kernel, reads: vec![*from], writes: vec![*to] })
}

/// Cuts `whole` along a dimension into parts as large as `parts`, and makes a piece of each.
fn along(
    whole: View,
    dim: usize,
    parts: impl Iterator<Item = View>,
    piece: impl Fn(View, usize) -> Option<Piece>,
) -> Option<Vec<Piece>> {
    let mut at = 0;
    let mut pieces = Vec::new();
    for (i, part) in parts.enumerate() {
        let length = *part.shape.get(dim).filter(|_| part.shape.len() == whole.shape.len())?;
        pieces.push(piece(whole.narrow(dim, at, length), i)?);
        at += length;
    }
    (whole.shape.get(dim) == Some(&at)).then_some(pieces)
}

/// The dimension that argument `at` names; absent it is 0.
fn dimension(graph: &Graph, node: NodeId, at: usize, dims: usize) -> Option<usize> {
    let given = graph.argument(node, at, "dim");
    let dim = match given {
        None => 0,
        Some(Value::Int(dim)) => dim,
        Some(_) => return None,
    };
    let dim = if dim < 0 { dim + dims as i64 } else { dim };
    usize::try_from(dim).ok().filter(|&dim| dim < dims)
}
