//! Whether nothing in a graph tells roundings apart, so that what is equal as real numbers differs by roundings alone.
//!
//! A comparison, a `sort` or an index does: a rounding flips it, and what follows is another value. A sum of integers
//! may wrap, and a constant that is not finite is no real number. Each call is asked of alone; what flows where is not.

use crate::graph::{DtypeClass, Graph, NodeId, Op, Out, Value};
use crate::ops::{Binary, Collective, Kind, OpInfo, Ops};
use std::collections::BTreeMap;

/// The views without a rule, of which the record alone says which window they are, in the same way; those of tensors
/// alone (`expand_as`) say nothing that could be another thing.
pub(super) fn views_by_record(graph: &Graph) -> BTreeMap<String, usize> {
    let mut views =
        calls(graph, |info| info.is_view() && matches!(info.kind, Kind::Opaque | Kind::Pointwise));
    views.retain(|words, _| words.split(' ').skip(1).any(|word| word != "tensor"));
    views
}

/// Calls by what they say besides their tensors, and how often each is made.
fn calls(graph: &Graph, is_meant: impl Fn(&OpInfo) -> bool) -> BTreeMap<String, usize> {
    let ops = Ops::of(graph);
    let mut all = BTreeMap::new();
    for id in graph.ids().filter(|&id| graph.node(id).op == Op::Call) {
        if !ops.call(graph, id).is_some_and(&is_meant) {
            continue;
        }
        let mut words = vec![graph.target(id).to_string()];
        words.extend(graph.args(id).iter().map(|&value| word(graph, value)));
        words.extend(graph.kwargs(id).map(|(key, value)| format!("{key}={}", word(graph, value))));
        *all.entry(words.join(" ")).or_default() += 1;
    }
    all
}

/// A value in words; all tensors in one.
fn word(graph: &Graph, value: Value) -> String {
    match value {
        Value::Node(_) => "tensor".to_string(),
        Value::List(span) | Value::Slice(span) => {
            let items: Vec<String> = graph.values(span).iter().map(|&item| word(graph, item)).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Str(text) | Value::Function(text) | Value::MemoryFormat(text) => graph.text(text).to_string(),
        Value::Symbolic(expr) => graph.text(graph.expr(expr).text).to_string(),
        // Where something is computed changes nothing.
        Value::Device(_) => "device".to_string(),
        value => format!("{value:?}"),
    }
}

/// Whether a call tells roundings of floats apart, or takes or makes what is no real number.
pub fn tells_roundings_apart(graph: &Graph, id: NodeId, info: &OpInfo) -> bool {
    !is_smooth_call(graph, id, info)
}

/// Operators without a kernel whose results jump somewhere, by the names of their schemas.
const JUMPS: &[&str] = &[
    "angle",
    "atan2",
    "bernoulli",
    "copysign",
    "hardshrink",
    "heaviside",
    "isneginf",
    "isposinf",
    "nextafter",
    "sgn",
    "signbit",
    "threshold",
];

/// Whether what a call gives jumps: a step, what is left of a quotient that is one, or the bits of its operand.
fn is_step(graph: &Graph, id: NodeId, info: &OpInfo) -> bool {
    let rounds_down =
        || graph.kwargs(id).any(|(key, value)| key == "rounding_mode" && matches!(value, Value::Str(_)));
    match info.kind {
        Kind::Unary(op) => op.is_step(),
        Kind::Binary(Binary::FloorDivide | Binary::Remainder | Binary::Fmod) => true,
        Kind::Binary(Binary::Div) => rounds_down(),
        Kind::View(_) => graph.target(id).ends_with(".dtype"),
        _ => info.schema.as_ref().is_some_and(|schema| {
            let name = schema.name.trim_start_matches("_foreach_").trim_end_matches('_');
            JUMPS.contains(&name) || schema.overload == "decimals"
        }),
    }
}

fn is_smooth_call(graph: &Graph, id: NodeId, info: &OpInfo) -> bool {
    let is_finite = |value: Value| !matches!(value, Value::Float(x) if !x.is_finite());
    let mut constants = graph.args(id).iter().copied().chain(graph.kwargs(id).map(|(_, value)| value));
    let takes_floats = graph.inputs(id).into_iter().any(|input| classes(graph, input).any(is_float));
    let gives_other = classes(graph, id).any(|class| !is_float(class));
    constants.all(is_finite)
        && !is_step(graph, id, info)
        && !(gives_other && (takes_floats || computes(info.kind)))
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

/// The classes of the dtypes of all tensors with elements that a node gives.
fn classes(graph: &Graph, id: NodeId) -> impl Iterator<Item = DtypeClass> {
    let of = |out: &Out| match *out {
        Out::Tensor(tensor) if graph.numel(graph.tensor(tensor)) != Some(0) => {
            Some(graph.tensor(tensor).dtype.class())
        }
        _ => None,
    };
    let out = &graph.node(id).out;
    let several = match *out {
        Out::Tuple(span) => graph.outs(span),
        _ => std::slice::from_ref(out),
    };
    several.iter().filter_map(of)
}
