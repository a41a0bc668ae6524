//! One graph read: what its inputs share with other graphs, then every call by the rule of its operator.

use super::call::{Call, Edit, State};
use super::positions::{Arithmetic, Law, settle};
use super::rules;
use super::structure::{Fit, Leaf, Misfit};
use super::values::{Shape, Value};
use crate::graph::{DtypeClass, Graph, NodeId, Op, Out, Value as Argument};
use crate::ops::{Bound, Kind, Ops};
use std::collections::BTreeMap;

/// A graph that has been read.
pub struct Read {
    /// What each node returns.
    pub values: Vec<Value>,
    /// The arguments that change.
    pub edits: Vec<Edit>,
    /// What it does to integers.
    pub arithmetic: Vec<Arithmetic>,
    /// Calls that are kept as they are.
    pub kept: Vec<NodeId>,
    /// Names of parameters by target.
    params: BTreeMap<u32, Vec<String>>,
    targets: Vec<u32>,
}

impl Read {
    /// The name of a parameter of a call.
    pub fn name(&self, node: NodeId, param: usize) -> String {
        let target = self.targets.get(node.index());
        let names = target.and_then(|target| self.params.get(target));
        names.and_then(|names| names.get(param)).cloned().unwrap_or_default()
    }

    /// Judges arithmetic on positions.
    pub fn settle(&mut self, state: &mut State, graph: &Graph) {
        let mut arithmetic = std::mem::take(&mut self.arithmetic);
        let edits = settle(state, graph, &mut arithmetic, &|node, param| self.name(node, param));
        self.arithmetic = arithmetic;
        self.edits.extend(edits);
    }
}

/// The inputs of graphs that have been read.
#[derive(Default)]
pub struct Inputs {
    by_name: BTreeMap<String, Value>,
    /// The placeholders of the first graph.
    places: Vec<Value>,
}

/// Reads a graph after others.
///
/// # Errors
/// Its sizes are symbolic, it has bodies, or a call takes what is made later.
pub fn read(
    state: &mut State,
    graph: &Graph,
    ops: &Ops,
    inputs: &mut Inputs,
    before: &[(&Graph, &Read)],
) -> Result<Read, String> {
    check(graph)?;
    let mut read = Read {
        values: Vec::with_capacity(graph.len()),
        edits: Vec::new(),
        arithmetic: Vec::new(),
        kept: Vec::new(),
        params: BTreeMap::new(),
        targets: graph.nodes().iter().map(|node| node.target.0).collect(),
    };
    let mut place = 0;
    for id in graph.ids() {
        let value = match graph.node(id).op {
            Op::Output => Value::Other,
            Op::Placeholder | Op::GetAttr => {
                let is_place = graph.node(id).op == Op::Placeholder;
                let value = given(state, graph, id, inputs, before, is_place.then_some(place));
                place += usize::from(is_place);
                value
            }
            Op::Call => {
                let mut is_later = false;
                graph.for_each_input(id, &mut |input| is_later |= input.index() >= id.index());
                if is_later {
                    return Err(format!("{} takes what is made later", graph.name(id)));
                }
                called(state, graph, ops, id, &mut read)
            }
        };
        read.values.push(value);
    }
    Ok(read)
}

fn check(graph: &Graph) -> Result<(), String> {
    if graph.has_expressions() {
        return Err(format!("sizes of {} are symbolic", graph.name));
    }
    if !graph.subgraphs.is_empty() {
        return Err(format!("{} has bodies of higher-order operators", graph.name));
    }
    let tensors = graph.ids().flat_map(|id| graph.tensors_of(graph.node(id).out));
    let mut sizes = tensors.flat_map(|tensor| graph.dims(graph.tensor(tensor).shape));
    if sizes.any(|size| size.known().is_none_or(|n| n < 0)) {
        return Err(format!("a size of {} is negative", graph.name));
    }
    Ok(())
}

/// An input: what an input or a node of the same name and shape is in another graph, else a new one.
fn given(
    state: &mut State,
    graph: &Graph,
    id: NodeId,
    inputs: &mut Inputs,
    before: &[(&Graph, &Read)],
    place: Option<usize>,
) -> Value {
    let name = graph.name(id).to_string();
    let mut known: Vec<Value> = inputs.by_name.get(&name).cloned().into_iter().collect();
    let is_first = before.is_empty();
    if let (Some(place), false) = (place, is_first) {
        known.extend(inputs.places.get(place).cloned());
    }
    for (other, read) in before {
        let value = other.find(&name).and_then(|node| read.values.get(node.index()));
        known.extend(value.cloned());
    }
    known.retain(|value| fits(state, graph, graph.node(id).out, value));
    let value = fresh(state, graph, graph.node(id).out);
    for other in &known {
        same_value(state, &value, other);
    }
    inputs.by_name.entry(name).or_insert_with(|| value.clone());
    if place.is_some() && is_first {
        inputs.places.push(value.clone());
    }
    value
}

fn fits(state: &State, graph: &Graph, out: Out, value: &Value) -> bool {
    let (Out::Tensor(tensor), Value::Tensor(shape)) = (out, value) else { return false };
    graph.sizes(graph.tensor(tensor).shape).is_some_and(|sizes| {
        sizes.len() == shape.axes.len()
            && sizes.iter().zip(&shape.axes).all(|(&n, &axis)| state.structure.size(axis) == n)
    })
}

/// Makes two tensors of one shape the same, integers in them included. What does not fit is kept.
fn same_value(state: &mut State, a: &Value, b: &Value) {
    let (Value::Tensor(a), Value::Tensor(b)) = (a, b) else { return };
    same_shape(state, a, b);
    if let (Some(a), Some(b)) = (a.count, b.count)
        && state.counts.unify(&mut state.structure, a, b).is_err()
    {
        for leaf in [state.counts.leaf(a), state.counts.leaf(b)].into_iter().flatten() {
            state.structure.keep(leaf);
        }
    }
}

/// Makes the dimensions of two tensors of one shape the same. What does not fit is kept.
pub fn same_shape(state: &mut State, a: &Shape, b: &Shape) {
    let sizes =
        |shape: &Shape| shape.axes.iter().map(|&axis| state.structure.size(axis)).collect::<Vec<i64>>();
    if sizes(a) != sizes(b) {
        return;
    }
    for (&a, &b) in a.axes.iter().zip(&b.axes) {
        if state.structure.unify(a, b).is_err() {
            state.structure.keep(a);
            state.structure.keep(b);
        }
    }
}

/// New dimensions of recorded sizes.
fn fresh(state: &mut State, graph: &Graph, out: Out) -> Value {
    match out {
        Out::Tensor(id) => {
            let tensor = graph.tensor(id);
            let sizes = graph.sizes(tensor.shape).unwrap_or_default();
            let axes = sizes.into_iter().map(|size| state.structure.leaf(size)).collect();
            let count = (tensor.dtype.class() == DtypeClass::Int).then(|| state.counts.fresh());
            Value::Tensor(Shape { axes, count })
        }
        Out::Tuple(span) => {
            let parts = graph.outs(span).to_vec();
            Value::List(parts.into_iter().map(|part| fresh(state, graph, part)).collect())
        }
        _ => Value::Other,
    }
}

/// What a call returns.
fn called(state: &mut State, graph: &Graph, ops: &Ops, id: NodeId, read: &mut Read) -> Value {
    let info = ops.get(graph, id);
    if let Some(schema) = &info.schema {
        let names = || schema.params.iter().map(|param| param.name.clone()).collect();
        read.params.entry(graph.node(id).target.0).or_insert_with(names);
    }
    match info.kind {
        Kind::GetItem => {
            if let Some(part) = item(graph, id, &read.values) {
                return part;
            }
        }
        Kind::Number(_) | Kind::Item => return Value::Other,
        // Sizes as numbers are constants of the recorded ones.
        Kind::SymSize | Kind::SymNumel | Kind::SymStride => {
            return keep(state, graph, id, read);
        }
        Kind::Effect if !has_numbers(graph, id) => return Value::Other,
        _ => {}
    }
    let ruled = ruled(state, graph, ops, id, read);
    match ruled {
        Ok(value) => value,
        Err(_) => {
            if is_wide(graph, id, &read.values, state) {
                read.kept.push(id);
            }
            keep(state, graph, id, read)
        }
    }
}

fn item(graph: &Graph, id: NodeId, values: &[Value]) -> Option<Value> {
    let (Argument::Node(of), Argument::Int(index)) = (graph.arg(id, 0)?, graph.arg(id, 1)?) else {
        return None;
    };
    let Value::List(parts) = values.get(of.index())? else { return None };
    let index = if index < 0 { index.checked_add(parts.len() as i64)? } else { index };
    parts.get(usize::try_from(index).ok()?).cloned()
}

/// Whether an argument is a number or a list.
fn has_numbers(graph: &Graph, id: NodeId) -> bool {
    let is_number = |value: Argument| matches!(value, Argument::Int(_) | Argument::List(_));
    graph.args(id).iter().any(|&value| is_number(value))
        || graph.kwargs(id).any(|(_, value)| is_number(value))
}

/// Whether a call takes or gives a dimension that could shrink.
fn is_wide(graph: &Graph, id: NodeId, values: &[Value], state: &State) -> bool {
    let mut is_wide = false;
    let wide = |size: i64| size > super::sizes::STAYS;
    graph.for_each_input(id, &mut |input| {
        let shapes = values.get(input.index()).map(Value::tensors).unwrap_or_default();
        is_wide |= shapes.iter().flat_map(|shape| &shape.axes).any(|&axis| wide(state.structure.size(axis)));
    });
    let tensors = graph.tensors_of(graph.node(id).out).into_iter();
    let mut sizes = tensors.filter_map(|tensor| graph.sizes(graph.tensor(tensor).shape)).flatten();
    is_wide || sizes.any(wide)
}

/// What a call returns by its rule. Its sizes are the recorded ones.
fn ruled(state: &mut State, graph: &Graph, ops: &Ops, id: NodeId, read: &mut Read) -> Fit<Value> {
    let info = ops.get(graph, id);
    let schema = info.schema.as_ref().ok_or(rules::NO_RULE)?;
    let bound = Bound::new(graph, id, schema).map_err(|_| rules::NO_RULE)?;
    let values = &read.values[..];
    let mut call = Call { graph, id, info, bound, values, state, edits: Vec::new(), arithmetic: Vec::new() };
    let value = rules::apply(&mut call)?;
    let (edits, arithmetic) = (call.edits, call.arithmetic);
    agrees(state, graph, graph.node(id).out, &value)?;
    read.edits.extend(edits);
    read.arithmetic.extend(arithmetic);
    Ok(value)
}

/// Whether the sizes of a value are the recorded ones: otherwise the rule does not describe this call.
fn agrees(state: &State, graph: &Graph, out: Out, value: &Value) -> Fit<()> {
    const OTHER: Misfit = Misfit("the recorded result is another one");
    match (out, value) {
        (Out::Tensor(_), value) if fits(state, graph, out, value) => Ok(()),
        (Out::Tensor(_), _) => Err(OTHER),
        (Out::Tuple(span), Value::List(parts)) => {
            let outs = graph.outs(span);
            if outs.len() != parts.len() {
                return Err(OTHER);
            }
            outs.iter().zip(parts).try_for_each(|(&out, part)| agrees(state, graph, out, part))
        }
        (Out::Int(n), &Value::Size(leaf)) if state.structure.size(leaf) == n => Ok(()),
        (_, Value::Size(_)) | (Out::Tuple(_), Value::Other) | (_, Value::Tensor(_) | Value::List(_)) => {
            Err(OTHER)
        }
        _ => Ok(()),
    }
}

/// A call that is kept as it is: its dimensions, those whose positions it takes, and those whose positions it may give.
fn keep(state: &mut State, graph: &Graph, id: NodeId, read: &mut Read) -> Value {
    let value = fresh(state, graph, graph.node(id).out);
    let mut inputs = Vec::new();
    graph.for_each_input(id, &mut |input| inputs.extend(read.values.get(input.index())));
    let taken: Vec<&Shape> = inputs.into_iter().flat_map(Value::tensors).collect();
    let axes: Vec<Leaf> = taken.iter().chain(&value.tensors()).flat_map(|shape| shape.axes.clone()).collect();
    axes.into_iter().for_each(|axis| state.structure.keep(axis));
    let sources: Vec<_> = taken.iter().map(|shape| shape.count).filter(Option::is_some).collect();
    let note = |result, sources| Arithmetic {
        node: id,
        law: Law::Other,
        sources,
        constants: Vec::new(),
        result,
        is_integer: true,
        is_done: false,
    };
    let results: Vec<_> = value.tensors().iter().filter_map(|shape| shape.count).collect();
    read.arithmetic.extend(results.into_iter().map(|result| note(result, Vec::new())));
    if !sources.is_empty() {
        let result = state.counts.fresh();
        read.arithmetic.push(note(result, sources));
    }
    value
}

/// The tensors that the output of a graph lists.
pub fn outputs(graph: &Graph, read: &Read) -> Vec<Option<Value>> {
    fn walk(graph: &Graph, read: &Read, values: &[Argument], found: &mut Vec<Option<Value>>) {
        for &value in values {
            match value {
                Argument::Node(node) => found.push(read.values.get(node.index()).cloned()),
                Argument::List(span) => walk(graph, read, graph.values(span), found),
                _ => found.push(None),
            }
        }
    }
    let mut found = Vec::new();
    if let Some(output) = graph.output() {
        walk(graph, read, graph.args(output), &mut found);
    }
    found
}
