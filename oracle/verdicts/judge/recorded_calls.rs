//! What is recorded of calls that are compared as what they stand for: bodies and functional forms.
//!
//! Such calls are replaced before anything is asked of records. So what their records say is held here against what the
//! call gives: items against the list that they are taken of, results against what the body returns, inputs of a body
//! against what it is given, and written tensors against the ones that they are copies of. One body may be called with
//! several layouts, so of its inputs strides are not compared. A record that is not true convicts nobody here: which of
//! two records is wrong is not known.

use super::bodies::expansion;
use crate::graph::{Dtype, Graph, NodeId, Op, Out, TensorId, Value};

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

fn of_node(graph: &Graph, id: NodeId) -> Option<Record> {
    match graph.node(id).out {
        Out::Tensor(tensor) => Some(record(graph, tensor)),
        _ => None,
    }
}

/// What a call is recorded to give, one by one.
fn results(graph: &Graph, id: NodeId) -> Vec<Option<Record>> {
    let of = |out: &Out| match *out {
        Out::Tensor(tensor) => Some(record(graph, tensor)),
        _ => None,
    };
    match graph.node(id).out {
        Out::Tuple(span) => graph.outs(span).iter().map(of).collect(),
        out => vec![of(&out)],
    }
}

/// What a call is recorded to give by this index or key.
fn entry(graph: &Graph, id: NodeId, key: Value) -> Option<Record> {
    let out = match (graph.node(id).out, key) {
        (Out::Tuple(span), Value::Int(index)) => *graph.outs(span).get(usize::try_from(index).ok()?)?,
        (Out::Dict(span), Value::Str(key)) => {
            graph.outs(span).chunks_exact(2).find(|pair| pair[0] == Out::Key(key))?[1]
        }
        _ => return None,
    };
    match out {
        Out::Tensor(tensor) => Some(record(graph, tensor)),
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
    let is_wrong = |&id: &NodeId| {
        let given = results(graph, id);
        let bases = bases(graph, id);
        let written = given.iter().rev().zip(bases.iter().rev());
        let of_bases = written.filter_map(|(result, &base)| Some((result.clone()?, of_node(graph, base)?)));
        let items = graph.ids().filter_map(|user| match (graph.target(user), graph.args(user)) {
            ("operator.getitem", &[Value::Node(of), key]) if of == id => {
                Some((of_node(graph, user)?, entry(graph, id, key)?))
            }
            _ => None,
        });
        let outer = of_bases.chain(items).any(|(one, other)| differ(&one, &other, true));
        outer
            || expansion(graph, id).is_some_and(|expansion| {
                let body = &expansion.body;
                let inputs = body.ids().filter(|&id| body.node(id).op == Op::Placeholder);
                let taken = inputs.zip(&expansion.given);
                let taken =
                    taken.filter_map(|(inner, &outer)| Some((of_node(body, inner)?, of_node(graph, outer)?)));
                let returned = expansion.returned.iter().zip(&given);
                let returned =
                    returned.filter_map(|(inner, result)| Some((of_node(body, (*inner)?)?, result.clone()?)));
                taken.into_iter().any(|(one, other)| differ(&one, &other, false))
                    || returned.into_iter().any(|(one, other)| differ(&one, &other, true))
            })
    };
    let names = graph.ids().filter(is_one).filter(is_wrong).map(|id| graph.name(id).to_string());
    names.filter(|name| !known.contains(name)).collect()
}
