//! The graphs at small sizes: other shapes, other arguments that are sizes or positions, and the proof that they fit.

use super::call::{Edit, New};
use super::read::Read;
use super::sizes::Sizes;
use super::structure::Structure;
use super::values::Value;
use crate::analysis::propagate::{Refusal, propagate};
use crate::analysis::resize::strides;
use crate::graph::{Graph, NodeId, Op, Out, Tensor, TensorId, Value as Argument};

/// A number in the place of another one.
pub struct Scalar {
    /// The call.
    pub node: NodeId,
    /// The parameter.
    pub param: usize,
    /// The number.
    pub value: Argument,
}

/// A graph at small sizes, and with other numbers.
///
/// # Errors
/// A size that was assigned is not the one that the operator's shape rule gives, or a call refuses its arguments.
pub fn rebuilt(
    graph: &Graph,
    read: &Read,
    structure: &Structure,
    sizes: &Sizes,
    scalars: &[Scalar],
) -> Result<Graph, String> {
    let mut small = graph.clone();
    for (id, value) in graph.ids().zip(&read.values) {
        let out = out(&mut small, graph.node(id).out, value, structure, sizes)?;
        small.node_mut(id).out = out;
    }
    for edit in &read.edits {
        let value = argument(&mut small, edit, structure, sizes)?;
        set(&mut small, edit.node, edit.param, &read.name(edit.node, edit.param), value);
    }
    for scalar in scalars {
        set(&mut small, scalar.node, scalar.param, &read.name(scalar.node, scalar.param), scalar.value);
    }
    validated(small)
}

fn out(
    graph: &mut Graph,
    old: Out,
    value: &Value,
    structure: &Structure,
    sizes: &Sizes,
) -> Result<Out, String> {
    match (old, value) {
        (Out::Tensor(id), Value::Tensor(shape)) => {
            let new: Result<Vec<i64>, String> =
                shape.axes.iter().map(|&axis| sizes.size(structure, axis)).collect();
            Ok(Out::Tensor(tensor(graph, id, &new?)?))
        }
        (Out::Tuple(span), Value::List(parts)) => {
            let outs = graph.outs(span).to_vec();
            if outs.len() != parts.len() {
                return Ok(old);
            }
            let outs: Result<Vec<Out>, String> = outs
                .into_iter()
                .zip(parts)
                .map(|(old, part)| out(graph, old, part, structure, sizes))
                .collect();
            let span = graph.push_outs(&outs?);
            Ok(Out::Tuple(span))
        }
        (Out::Int(_), &Value::Size(leaf)) => Ok(Out::Int(sizes.size(structure, leaf)?)),
        (old, _) => Ok(old),
    }
}

fn tensor(graph: &mut Graph, id: TensorId, new: &[i64]) -> Result<TensorId, String> {
    let old = *graph.tensor(id);
    let unknown = || "a size is symbolic".to_string();
    let shape = graph.sizes(old.shape).ok_or_else(unknown)?;
    let stride = graph.sizes(old.stride).ok_or_else(unknown)?;
    if shape.len() != new.len() || stride.len() != new.len() {
        return Err("a tensor has another number of dimensions than its rule says".to_string());
    }
    let is_same = shape == new;
    let stride = if is_same { stride } else { strides(&shape, &stride, new) };
    let (shape, stride) = (graph.intern_sizes(new), graph.intern_sizes(&stride));
    let offset = if is_same { old.offset } else { 0 };
    Ok(graph.push_tensor(Tensor { shape, stride, offset, storage: None, storage_bytes: None, ..old }))
}

/// Sets an argument where it is given.
fn set(graph: &mut Graph, node: NodeId, param: usize, name: &str, value: Argument) {
    let mut args = graph.args(node).to_vec();
    if let Some(place) = args.get_mut(param) {
        *place = value;
        graph.node_mut(node).args = graph.push_values(&args);
        return;
    }
    let pairs: Vec<(String, Argument)> =
        graph.kwargs(node).map(|(key, old)| (key.to_string(), old)).collect();
    let mut kwargs = Vec::with_capacity(2 * pairs.len());
    for (key, old) in pairs {
        let new = if key == name { value } else { old };
        kwargs.extend([Argument::Str(graph.intern(&key)), new]);
    }
    graph.node_mut(node).kwargs = graph.push_values(&kwargs);
}

fn argument(
    graph: &mut Graph,
    edit: &Edit,
    structure: &Structure,
    sizes: &Sizes,
) -> Result<Argument, String> {
    if let New::Strides(axes) = &edit.new {
        let new: Result<Vec<i64>, String> = axes.iter().map(|&axis| sizes.size(structure, axis)).collect();
        let old: Vec<i64> = axes.iter().map(|&axis| structure.size(axis)).collect();
        let given: Vec<i64> = match graph.args(edit.node).get(edit.param) {
            Some(&Argument::List(span)) => graph.values(span).iter().filter_map(number).collect(),
            _ => Vec::new(),
        };
        if given.len() != old.len() {
            return Err(format!("{} has strides that are not known", graph.name(edit.node)));
        }
        return Ok(graph.int_list(&strides(&old, &given, &new?)));
    }
    let numbers = numbers(&edit.new, structure, sizes)?;
    let is_list = matches!(edit.new, New::Sizes(_) | New::List(_) | New::Repeat(..));
    match numbers[..] {
        [only] if !is_list => Ok(Argument::Int(only)),
        _ => Ok(graph.int_list(&numbers)),
    }
}

fn number(value: &Argument) -> Option<i64> {
    match value {
        Argument::Int(n) => Some(*n),
        _ => None,
    }
}

fn numbers(new: &New, structure: &Structure, sizes: &Sizes) -> Result<Vec<i64>, String> {
    Ok(match new {
        New::Size(leaf) => vec![sizes.size(structure, *leaf)?],
        New::Minus(leaf) => vec![-sizes.size(structure, *leaf)?],
        New::Product(leaves) => vec![sizes.product(structure, leaves)?],
        New::Position(leaf, at) => vec![sizes.position(structure, *leaf, *at)?],
        New::Int(n) => vec![*n],
        New::Repeat(leaf, count) => {
            let count = usize::try_from(*count).map_err(|_| "a negative count".to_string())?;
            vec![sizes.size(structure, *leaf)?; count]
        }
        New::Sizes(leaves) | New::Strides(leaves) => {
            leaves.iter().map(|&leaf| sizes.size(structure, leaf)).collect::<Result<_, _>>()?
        }
        New::List(news) => {
            let each: Result<Vec<Vec<i64>>, String> =
                news.iter().map(|new| numbers(new, structure, sizes)).collect();
            each?.concat()
        }
    })
}

/// The graph with strides by the operators' rules. Shapes by the rules must be those that are assigned.
fn validated(small: Graph) -> Result<Graph, String> {
    let mut computed = small.clone();
    let same = &mut |sizes: &[i64]| Some(sizes.to_vec());
    propagate(&mut computed, same).map_err(|refusal| match refusal {
        Refusal::Refused(node, why) => format!("{} refuses its small arguments: {why}", small.name(node)),
        Refusal::Undecided(node) => format!("{} has no small result", small.name(node)),
    })?;
    for id in small.ids().filter(|&id| small.node(id).op == Op::Call) {
        let (want, have) = (small.shapes_of(id), computed.shapes_of(id));
        if want != have {
            let name = small.name(id);
            return Err(format!("{name} should be {want:?} and is {have:?} at small sizes"));
        }
    }
    Ok(computed)
}
