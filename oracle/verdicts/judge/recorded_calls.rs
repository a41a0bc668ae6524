//! What is recorded of calls that are compared as what they stand for: bodies and functional forms.
//!
//! Such calls are replaced before anything is asked of records. So what their records say is held here against what the
//! call gives: items against the list that they are taken of, results against what the body returns, inputs of a body
//! against what it is given, and written tensors against the ones that they are copies of. One body may be called with
//! several layouts, so of its inputs strides are not compared. A record that is not true convicts nobody here: which of
//! two records is wrong is not known.

use super::bodies::expansion;
use crate::graph::{Dtype, Graph, NodeId, Op, Out, TensorId, Value};
use rustc_hash::FxHashSet;

/// Dtype, sizes and strides, as far as these are numbers.
type Record = (Dtype, Option<Vec<i64>>, Option<Vec<i64>>);

fn record(graph: &Graph, tensor: TensorId) -> Record {
    let tensor = graph.tensor(tensor);
    (tensor.dtype, graph.sizes(tensor.shape), graph.sizes(tensor.stride))
}

/// Whether two records differ in what both know.
fn differ(one: &Record, other: &Record, with_strides: bool) -> bool {
    let apart = |a: &Option<Vec<i64>>, b: &Option<Vec<i64>>| matches!((a, b), (Some(a), Some(b)) if a != b);
    let sizes_differ = apart(&one.1, &other.1);
    one.0 != other.0 || sizes_differ || with_strides && apart(&one.2, &other.2)
}

fn of_out(graph: &Graph, out: Out) -> Option<Record> {
    match out {
        Out::Tensor(tensor) => Some(record(graph, tensor)),
        _ => None,
    }
}

fn of_node(graph: &Graph, id: NodeId) -> Option<Record> {
    of_out(graph, graph.node(id).out)
}

/// What a call is recorded to give, one by one.
fn results(graph: &Graph, id: NodeId) -> Vec<Option<Record>> {
    match graph.node(id).out {
        Out::Tuple(span) => graph.outs(span).iter().map(|&out| of_out(graph, out)).collect(),
        out => vec![of_out(graph, out)],
    }
}

/// What a call is recorded to give by this index or key.
fn entry(graph: &Graph, id: NodeId, key: Value) -> Option<Record> {
    match (graph.node(id).out, key) {
        (Out::Tuple(span), Value::Int(index)) => {
            of_out(graph, *graph.outs(span).get(usize::try_from(index).ok()?)?)
        }
        (Out::Dict(span), Value::Str(key)) => {
            of_out(graph, graph.outs(span).chunks_exact(2).find(|pair| pair[0] == Out::Key(key))?[1])
        }
        _ => None,
    }
}

/// The tensors that a functional form gives back written, in the order of its last results.
fn bases(graph: &Graph, id: NodeId) -> Vec<NodeId> {
    let Some(Value::List(span)) = graph.kwarg(id, "_all_bases") else { return Vec::new() };
    let node = |value: &Value| match value {
        Value::Node(node) => Some(*node),
        _ => None,
    };
    graph.values(span).iter().filter_map(node).collect()
}

/// The calls of which something is recorded that is not what they give, and that are not named in `known`.
pub(super) fn misrecorded(graph: &Graph, known: &[String]) -> Vec<String> {
    let is_one =
        |id: &NodeId| graph.node(*id).op == Op::Call && graph.target(*id).starts_with("higher_order.");
    let takes_another = |user: NodeId| match (graph.target(user), graph.args(user)) {
        ("operator.getitem", &[Value::Node(of), key]) if of.index() < graph.len() && is_one(&of) => {
            let pair = of_node(graph, user).zip(entry(graph, of, key));
            pair.is_some_and(|(one, other)| differ(&one, &other, true)).then_some(of)
        }
        _ => None,
    };
    let taken_otherwise: FxHashSet<NodeId> = graph.ids().filter_map(takes_another).collect();
    let is_wrong = |&id: &NodeId| {
        let given = results(graph, id);
        let bases = bases(graph, id);
        let mut written = given.iter().rev().zip(bases.iter().rev());
        let of_base = |(result, &base): (&Option<Record>, &NodeId)| {
            let pair = result.as_ref().zip(of_node(graph, base));
            pair.is_some_and(|(one, other)| differ(one, &other, true))
        };
        taken_otherwise.contains(&id)
            || written.any(of_base)
            || expansion(graph, id).is_some_and(|expansion| {
                let body = &expansion.body;
                let inputs = body.ids().filter(|&id| body.node(id).op == Op::Placeholder);
                let takes_another = |(inner, &outer): (NodeId, &NodeId)| {
                    let pair = of_node(body, inner).zip(of_node(graph, outer));
                    pair.is_some_and(|(one, other)| differ(&one, &other, false))
                };
                let gives_another = |(inner, result): (&Option<NodeId>, &Option<Record>)| {
                    let pair = inner.and_then(|inner| of_node(body, inner)).zip(result.as_ref());
                    pair.is_some_and(|(one, other)| differ(&one, other, true))
                };
                inputs.zip(&expansion.given).any(takes_another)
                    || expansion.returned.iter().zip(&given).any(gives_another)
            })
    };
    let names = graph.ids().filter(is_one).filter(is_wrong).map(|id| graph.name(id).to_string());
    names.filter(|name| !known.contains(name)).collect()
}
