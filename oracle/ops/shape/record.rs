//! What a rule says of a node's results, as the record that a graph keeps of them.

use super::{Inferred, Output, Size, infer};
use crate::graph::{Dim, DimsId, Graph, NodeId, Op, Out, Str, Tensor, Value, contiguous_strides};
use crate::ops::Ops;

/// A copy of `graph` in which each call without a recorded result has the one that its operator's rule gives. `None` if
/// that adds nothing.
pub fn complete(graph: &Graph) -> Option<Graph> {
    let lacks_record = |id: NodeId| graph.node(id).op == Op::Call && graph.node(id).out == Out::Absent;
    // A reference past the end of the list has no result to go by.
    let is_whole = |id: NodeId| graph.inputs(id).iter().all(|input| input.index() < graph.len());
    let open: Vec<NodeId> = graph.ids().filter(|&id| lacks_record(id) && is_whole(id)).collect();
    if open.is_empty() {
        return None;
    }
    let ops = Ops::of(graph);
    let mut completed = graph.clone();
    let mut added = false;
    for id in open {
        if let Some(out) = record(&mut completed, &ops, id) {
            completed.node_mut(id).out = out;
            added = true;
        }
    }
    added.then_some(completed)
}

/// The record of a call by its operator's rule. `None` where the rule leaves a size, a dtype or a number open, and
/// where the call returns nothing.
fn record(graph: &mut Graph, ops: &Ops, id: NodeId) -> Option<Out> {
    match infer(graph, ops, id).ok()? {
        Inferred::Undecided | Inferred::Nothing => None,
        Inferred::One(output) => one(graph, id, &output),
        Inferred::Many(outputs) => {
            let outs: Option<Vec<Out>> = outputs.iter().map(|output| one(graph, id, output)).collect();
            Some(Out::Tuple(graph.push_outs(&outs?)))
        }
    }
}

fn one(graph: &mut Graph, id: NodeId, output: &Output) -> Option<Out> {
    let rule = match output {
        Output::None => return Some(Out::None),
        Output::Number(Size::Known(n)) => return Some(Out::Int(*n)),
        Output::Number(Size::Symbol(expr)) => return Some(Out::SymInt(*expr)),
        Output::Number(Size::Unknown) | Output::Undecided => return None,
        Output::Tensor(rule) => rule,
    };
    let shape = dims(graph, &rule.shape)?;
    let stride = match &rule.stride {
        Some(stride) => dims(graph, stride)?,
        None => {
            let sizes = graph.sizes(shape)?;
            graph.intern_sizes(&contiguous_strides(&sizes))
        }
    };
    let tensor = Tensor {
        shape,
        stride,
        dtype: rule.dtype?,
        requires_grad: None,
        device: device(graph, id)?,
        storage: None,
        offset: rule.offset.known().unwrap_or(0),
        storage_bytes: None,
    };
    Some(Out::Tensor(graph.push_tensor(tensor)))
}

fn dims(graph: &mut Graph, sizes: &[Size]) -> Option<DimsId> {
    let dim = |size: &Size| match *size {
        Size::Known(n) => Some(Dim::Static(n)),
        Size::Symbol(expr) => Some(Dim::Symbolic(expr)),
        Size::Unknown => None,
    };
    let dims: Option<Vec<Dim>> = sizes.iter().map(dim).collect();
    Some(graph.intern_dims(&dims?))
}

/// The device that a call names, else that of its first tensor.
fn device(graph: &Graph, id: NodeId) -> Option<Str> {
    if let Some(Value::Device(device)) = graph.kwarg(id, "device") {
        return Some(device);
    }
    graph.inputs(id).into_iter().find_map(|input| graph.tensor_at(input, 0)).map(|tensor| tensor.device)
}
