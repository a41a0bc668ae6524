//! What a rule says of a node's results, as the record that a graph keeps of them.

use super::{Inferred, Output, ShapeError, Size, infer};
use crate::graph::{
    Dim, Graph, NodeId, Op, Out, StorageId, Str, Tensor, TensorId, Transcriber, Value, contiguous_strides,
};
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

/// A copy of `after` in which inputs without a record have that of the input of `before` in their place, where both have
/// as many. `None` if that adds nothing: a pass keeps the inputs, and may leave their metadata behind.
pub fn complete_inputs(after: &Graph, before: &Graph) -> Option<Graph> {
    let inputs = |graph: &Graph| -> Vec<NodeId> {
        graph.ids().filter(|&id| graph.node(id).op == Op::Placeholder).collect()
    };
    let (theirs, ours) = (inputs(before), inputs(after));
    let is_open = |&(&our, &their): &(&NodeId, &NodeId)| {
        after.node(our).out == Out::Absent && before.node(their).out != Out::Absent
    };
    let open: Vec<(&NodeId, &NodeId)> = ours.iter().zip(&theirs).filter(is_open).collect();
    if open.is_empty() || ours.len() != theirs.len() {
        return None;
    }
    let mut completed = after.clone();
    let recorded = completed.tensor_count() as u32;
    let storages = |graph: &Graph, id: u32| graph.tensor(TensorId(id)).storage;
    let fresh =
        (0..recorded).filter_map(|id| storages(after, id)).max().map_or(0, |last| last.0.saturating_add(1));
    for (&our, &their) in open {
        let mut transcriber = Transcriber { from: before, to: &mut completed, map: &mut [] };
        let out = transcriber.out(before.node(their).out, true);
        completed.node_mut(our).out = out;
    }
    // The numbers of storages in two graphs have nothing to do with each other: those of inputs say which inputs share
    // memory, and are told apart from all that stand in `after`.
    for id in recorded..completed.tensor_count() as u32 {
        let storage = &mut completed.tensor_mut(TensorId(id)).storage;
        *storage = storage.map(|storage| StorageId(storage.0.saturating_add(fresh)));
    }
    // What shows an input's memory was recorded under the number that is gone.
    for id in (0..recorded).filter(|_| ours.iter().all(|&our| after.node(our).out == Out::Absent)) {
        completed.tensor_mut(TensorId(id)).storage = None;
    }
    Some(completed)
}

fn lacks_record(graph: &Graph, id: NodeId) -> bool {
    graph.node(id).op == Op::Call
        && match graph.node(id).out {
            Out::Tuple(span) => graph.outs(span).contains(&Out::Absent),
            out => out == Out::Absent,
        }
}

/// Whether no rule tells the strides of what a call gives.
pub fn leaves_strides_open(graph: &Graph, ops: &Ops, id: NodeId) -> bool {
    let is_open = |output: &Output| matches!(output, Output::Tensor(rule) if rule.stride.is_none());
    match infer(graph, ops, id) {
        Ok(Inferred::One(output)) => is_open(&output),
        Ok(Inferred::Many(outputs)) => outputs.iter().any(is_open),
        Ok(Inferred::Nothing) => false,
        Ok(Inferred::Undecided) | Err(_) => true,
    }
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
/// gives more results than [`Limit::Inferred`], and where nothing says on which `device` they are. Strides are a
/// [guess](Graph::is_guessed) where the rule leaves them open or goes by a guess.
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
    // Strides that the rule leaves open are row-major, as those of a written type are, but nobody promised them.
    let is_guessed = rule.stride.is_none() || graph.inputs(id).iter().any(|&input| graph.is_guessed(input));
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
        is_guessed,
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
