//! Whether nothing in a graph tells roundings apart, so that what is equal as real numbers differs by roundings alone.
//!
//! A comparison, a `sort` or an index does: a rounding flips it, and what follows is another value. A sum of integers may
//! wrap, and a constant that is not finite is no real number. Each call is asked of alone; what flows where is not.

use crate::graph::{DtypeClass, Graph, NodeId, Op, Out, Value};
use crate::ops::{Collective, Kind, OpInfo, Ops, Unary};

/// Whether no call of a graph tells roundings of floats apart, no integers are computed that may wrap, and all constants
/// are finite.
pub(super) fn is_smooth(graph: &Graph) -> bool {
    let ops = Ops::of(graph);
    let mut calls = graph.ids().filter(|&id| graph.node(id).op == Op::Call);
    calls.all(|id| ops.call(graph, id).is_some_and(|info| is_smooth_call(graph, id, info)))
}

/// Whether a call tells roundings of floats apart, or takes or makes what is no real number.
pub fn tells_roundings_apart(graph: &Graph, id: NodeId, info: &OpInfo) -> bool {
    !is_smooth_call(graph, id, info)
}

fn is_smooth_call(graph: &Graph, id: NodeId, info: &OpInfo) -> bool {
    let is_finite = |value: Value| !matches!(value, Value::Float(x) if !x.is_finite());
    let mut constants = graph.args(id).iter().copied().chain(graph.kwargs(id).map(|(_, value)| value));
    let steps = matches!(
        info.kind,
        Kind::Unary(Unary::Sign | Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc)
    );
    let takes_floats = graph.inputs(id).into_iter().any(|input| classes(graph, input).any(is_float));
    let gives_other = classes(graph, id).any(|class| !is_float(class));
    constants.all(is_finite) && !steps && !(gives_other && (takes_floats || computes(info.kind)))
}

fn is_float(class: DtypeClass) -> bool {
    class >= DtypeClass::Float
}

/// Whether an operator makes new numbers, so that integers may wrap.
fn computes(kind: Kind) -> bool {
    match kind {
        Kind::Collective(Collective::AllReduce | Collective::ReduceScatter | Collective::Other) => true,
        Kind::Reduce(_) | Kind::Matmul(_) | Kind::Cumsum => true,
        _ => kind.is_elementwise(),
    }
}

/// The classes of the dtypes of all tensors that a node gives.
fn classes(graph: &Graph, id: NodeId) -> impl Iterator<Item = DtypeClass> {
    let of = |out: &Out| match *out {
        Out::Tensor(tensor) => Some(graph.tensor(tensor).dtype.class()),
        _ => None,
    };
    let out = &graph.node(id).out;
    let several = match *out {
        Out::Tuple(span) => graph.outs(span),
        _ => std::slice::from_ref(out),
    };
    several.iter().filter_map(of)
}
