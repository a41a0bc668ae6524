//! What a rule says of a node's results, as the record that a graph keeps of them.

use super::{Inferred, Output, ShapeError, Size, infer};
use crate::graph::{Dim, Graph, NodeId, Op, Out, Str, Tensor, Value, contiguous_strides};
use crate::limits::Limit;
use crate::ops::Ops;

/// A copy of `graph` in which each call without a recorded result, or without one of several, has the one that its
/// operator's rule gives. `None` if that adds nothing.
pub fn complete(graph: &Graph) -> Option<Graph> {
    // A reference past the end of the list has no result to go by.
    let is_whole = |id: NodeId| graph.inputs(id).iter().all(|input| input.index() < graph.len());
    let open: Vec<NodeId> = graph.ids().filter(|&id| lacks_record(graph, id) && is_whole(id)).collect();
    if open.is_empty() {
        return None;
    }
    let ops = Ops::of(graph);
    let mut completed = graph.clone();
    let mut added = false;
    for id in open {
        if let Ok(Some(out)) = record(&mut completed, &ops, id, None)
            && out != Out::None
        {
            let recorded = completed.node(id).out;
            let out = filled(&mut completed, recorded, out);
            added |= out != recorded;
            completed.node_mut(id).out = out;
        }
    }
    added.then_some(completed)
}

fn lacks_record(graph: &Graph, id: NodeId) -> bool {
    graph.node(id).op == Op::Call
        && match graph.node(id).out {
            Out::Tuple(span) => graph.outs(span).contains(&Out::Absent),
            out => out == Out::Absent,
        }
}

/// By node of `graph`: whether its strides in the completed copy are only taken to be row-major, or follow from such
/// strides.
pub fn guessed_strides(graph: &Graph, completed: &Graph) -> Vec<bool> {
    let ops = Ops::of(completed);
    let is_open = |output: &Output| matches!(output, Output::Tensor(rule) if rule.stride.is_none());
    let mut guessed = vec![false; graph.len()];
    for id in graph.ids().filter(|&id| lacks_record(graph, id)) {
        let by_rule = || match infer(completed, &ops, id) {
            Ok(Inferred::One(output)) => is_open(&output),
            Ok(Inferred::Many(outputs)) => outputs.iter().any(is_open),
            _ => false,
        };
        let inputs = graph.inputs(id);
        let inherited = inputs.iter().any(|input| guessed.get(input.index()) == Some(&true));
        guessed[id.index()] = inherited || by_rule();
    }
    guessed
}

/// What is recorded, with what a rule says in the places where nothing is.
fn filled(graph: &mut Graph, recorded: Out, rule: Out) -> Out {
    match (recorded, rule) {
        (Out::Absent, rule) => rule,
        (Out::Tuple(old), Out::Tuple(new)) if old.len() == new.len() => {
            let pairs = graph.outs(old).iter().zip(graph.outs(new));
            let outs: Vec<Out> = pairs.map(|(&a, &b)| if a == Out::Absent { b } else { a }).collect();
            Out::Tuple(graph.push_outs(&outs))
        }
        (recorded, _) => recorded,
    }
}

/// The record of a call by its operator's rule. `None` where the rule leaves a size, a dtype or a number open, where it
/// gives more results than [`Limit::Inferred`], and where nothing says on which `device` they are.
///
/// # Errors
/// The operator does not take the call's arguments.
pub fn record(
    graph: &mut Graph,
    ops: &Ops,
    id: NodeId,
    device: Option<Str>,
) -> Result<Option<Out>, ShapeError> {
    let outputs = match infer(graph, ops, id)? {
        Inferred::Undecided => return Ok(None),
        Inferred::Nothing => return Ok(Some(Out::None)),
        Inferred::One(output) => return Ok(one(graph, id, &output, device)),
        Inferred::Many(outputs) => outputs,
    };
    if outputs.len() as u64 > Limit::Inferred.standard() {
        return Ok(None);
    }
    let outs: Option<Vec<Out>> = outputs.iter().map(|output| one(graph, id, output, device)).collect();
    Ok(outs.map(|outs| Out::Tuple(graph.push_outs(&outs))))
}

fn one(graph: &mut Graph, id: NodeId, output: &Output, device: Option<Str>) -> Option<Out> {
    let rule = match output {
        Output::None => return Some(Out::None),
        Output::Number(Size::Known(n)) => return Some(Out::Int(*n)),
        Output::Number(Size::Symbol(expr)) => return Some(Out::SymInt(*expr)),
        Output::Number(Size::Unknown) | Output::Undecided => return None,
        Output::Tensor(rule) => rule,
    };
    let shape = dims(&rule.shape)?;
    // Strides that the rule leaves open are row-major, as those of a written type are.
    let stride = match &rule.stride {
        Some(stride) => dims(stride)?,
        None => row_major_strides(&shape)?,
    };
    let tensor = Tensor {
        shape: graph.intern_dims(&shape),
        stride: graph.intern_dims(&stride),
        dtype: rule.dtype?,
        requires_grad: None,
        device: device_of(graph, id).or(device)?,
        storage: None,
        offset: rule.offset.known().unwrap_or(0),
        storage_bytes: None,
    };
    Some(Out::Tensor(graph.push_tensor(tensor)))
}

fn dims(sizes: &[Size]) -> Option<Vec<Dim>> {
    let dim = |size: &Size| match *size {
        Size::Known(n) => Some(Dim::Static(n)),
        Size::Symbol(expr) => Some(Dim::Symbolic(expr)),
        Size::Unknown => None,
    };
    sizes.iter().map(dim).collect()
}

/// The strides of a contiguous tensor. `None` where they depend on a symbol.
pub fn row_major_strides(shape: &[Dim]) -> Option<Vec<Dim>> {
    // The first size does not count.
    let known = |(i, dim): (usize, &Dim)| if i == 0 { Some(1) } else { dim.known() };
    let sizes: Vec<i64> = shape.iter().enumerate().map(known).collect::<Option<_>>()?;
    Some(contiguous_strides(&sizes).into_iter().map(Dim::Static).collect())
}

/// The device that a call names, else that of its first tensor.
fn device_of(graph: &Graph, id: NodeId) -> Option<Str> {
    if let Some(Value::Device(device)) = graph.kwarg(id, "device") {
        return Some(device);
    }
    graph.inputs(id).into_iter().find_map(|input| graph.tensor_at(input, 0)).map(|tensor| tensor.device)
}
