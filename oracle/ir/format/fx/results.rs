//! Results: what is recorded of each node.
//!
//! # The idea
//!
//! The text says of most results dtype, sizes, strides and device. What it leaves out follows from the operators: where
//! a view begins in its storage, what a call with several results returns, strides and devices where the user did not
//! ask for them. A text wins over a rule: a rule says only what follows, and where the two differ, checking the graph
//! says so.
//!
//! # What it does not do
//!
//! It numbers no storages: which tensors share memory follows from the schemas. Where neither text nor rule has
//! strides, they are taken to be row-major, and [`Completed::guessed`] names the node.

use super::DEVICE;
use super::annotation::Annotation;
use super::build::{Built, tensor};
use super::layout::{row_major, twin};
use super::symbols::Hints;
use crate::graph::{Dim, Graph, NodeId, Op, Out, Value};
use crate::limits::Limit;
use crate::ops::shape::{Inferred, Output, Size, TensorMeta, infer};
use crate::ops::{Kind, Ops};
use rustc_hash::FxHashMap;

/// A graph with its results.
pub(super) struct Completed {
    pub(super) graph: Graph,
    /// Nodes whose strides are taken to be row-major.
    pub(super) guessed: Vec<NodeId>,
    /// Inputs of which it is not known where they begin in their storage.
    pub(super) unplaced: Vec<NodeId>,
    /// Whether inputs that may have been symbols are numbers.
    pub(super) has_fixed_numbers: bool,
    /// Nodes of which nothing is known.
    pub(super) unknown: Vec<NodeId>,
}

/// Records what nodes return. What the text does not say of strides and devices is taken from nodes of `like` that have
/// the name, the dtype and the sizes, before it is guessed.
pub(super) fn complete(built: Built<'_, '_>, like: Option<&Graph>) -> Completed {
    let Built { graph, annotations, returned, guessed, unplaced, has_fixed_numbers, hints, bodies: _ } =
        built;
    let ops = Ops::of(&graph);
    let items = items(&graph, &ops);
    let mut this =
        Completing { graph, annotations, returned, like, ops, items, hints, guessed, unknown: Vec::new() };
    for id in this.graph.ids() {
        match this.graph.node(id).op {
            Op::Call => this.call(id),
            Op::GetAttr => this.constant(id),
            Op::Placeholder | Op::Output => {}
        }
    }
    let Completing { graph, guessed, unknown, .. } = this;
    Completed { graph, guessed, unplaced, has_fixed_numbers, unknown }
}

/// By node the nodes that take its results apart, with the index that each takes.
fn items(graph: &Graph, ops: &Ops) -> FxHashMap<NodeId, Vec<(usize, NodeId)>> {
    let mut items: FxHashMap<NodeId, Vec<(usize, NodeId)>> = FxHashMap::default();
    for id in graph.ids() {
        if ops.call(graph, id).is_some_and(|info| info.kind == Kind::GetItem)
            && let [Value::Node(of), Value::Int(index)] = *graph.args(id)
            && (0..Limit::Inferred.standard() as i64).contains(&index)
        {
            items.entry(of).or_default().push((index as usize, id));
        }
    }
    items
}

struct Completing<'l> {
    graph: Graph,
    annotations: Vec<Option<Annotation>>,
    returned: FxHashMap<NodeId, Vec<Option<Annotation>>>,
    like: Option<&'l Graph>,
    ops: Ops,
    items: FxHashMap<NodeId, Vec<(usize, NodeId)>>,
    hints: Hints,
    guessed: Vec<NodeId>,
    unknown: Vec<NodeId>,
}

impl Completing<'_> {
    fn call(&mut self, id: NodeId) {
        if matches!(self.annotations[id.index()], Some(Annotation::Other(_))) {
            return;
        }
        // A call that does not fit its operator is found by whoever checks the graph.
        let inferred = infer(&self.graph, &self.ops, id).unwrap_or(Inferred::Undecided);
        let out = match inferred {
            Inferred::Nothing => Out::None,
            Inferred::Many(outputs) => self.several(id, &outputs),
            Inferred::One(output) => self.one(id, id, self.annotations[id.index()].clone(), Some(&output)),
            Inferred::Undecided if self.annotations[id.index()].is_some() => {
                self.one(id, id, self.annotations[id.index()].clone(), None)
            }
            Inferred::Undecided if self.items.contains_key(&id) || self.returned.contains_key(&id) => {
                self.several(id, &[])
            }
            Inferred::Undecided => Out::Absent,
        };
        if out == Out::Absent {
            self.unknown.push(id);
        }
        self.graph.node_mut(id).out = out;
    }

    fn constant(&mut self, id: NodeId) {
        if self.annotations[id.index()].is_some() {
            self.graph.node_mut(id).out = self.one(id, id, self.annotations[id.index()].clone(), None);
        }
    }

    /// The results of a call that returns several: those that a rule or a schema lists, or that are taken out of it.
    fn several(&mut self, id: NodeId, rules: &[Output]) -> Out {
        let items = self.items.get(&id).cloned().unwrap_or_default();
        let schema = self.ops.get(&self.graph, id).schema.as_ref();
        let returns =
            schema.map_or(0, |schema| if schema.returns.len() > 1 { schema.returns.len() } else { 0 });
        let taken = items.iter().map(|&(index, _)| index + 1).max().unwrap_or(0);
        let returned = self.returned.get(&id).cloned().unwrap_or_default();
        let outs: Vec<Out> = (0..rules.len().max(returns).max(taken).max(returned.len()))
            .map(|index| {
                let item = items.iter().find(|&&(at, _)| at == index).map(|&(_, item)| item);
                let annotation = item.and_then(|item| self.annotations[item.index()].clone());
                let annotation = annotation.or_else(|| returned.get(index).cloned().flatten());
                self.one(id, item.unwrap_or(id), annotation, rules.get(index))
            })
            .collect();
        Out::Tuple(self.graph.push_outs(&outs))
    }

    /// A result by what the text says of it, and by its rule. `named` is the node whose result it is alone.
    fn one(
        &mut self,
        id: NodeId,
        named: NodeId,
        annotation: Option<Annotation>,
        rule: Option<&Output>,
    ) -> Out {
        match (annotation, rule) {
            (Some(Annotation::Other(out)), _) => out,
            (Some(Annotation::Tensor { dtype, shape, stride, device }), rule) => {
                let rule = match rule {
                    Some(Output::Tensor(rule)) => Some(rule),
                    _ => None,
                };
                let twin = match self.like.filter(|_| stride.is_none()) {
                    Some(like) => twin(&mut self.graph, &self.hints, like, named, dtype, &shape),
                    None => None,
                };
                let (stride, device) = match twin {
                    Some((stride, of)) => (Some(stride), device.or(Some(of))),
                    None => (stride, device),
                };
                let stride = stride.or_else(|| rule.and_then(|rule| known(rule.stride.as_ref()?)));
                let stride = match stride.filter(|stride| stride.len() == shape.len()) {
                    Some(stride) => stride,
                    None => match row_major(&mut self.graph, &self.hints, &shape) {
                        Some(stride) => {
                            self.guessed.push(id);
                            stride
                        }
                        None => return Out::Absent,
                    },
                };
                let device = device.unwrap_or_else(|| self.device(id));
                tensor(&mut self.graph, dtype, &shape, &stride, &device, offset(rule))
            }
            (None, Some(Output::Tensor(rule))) => {
                let shape = known(&rule.shape);
                let Some((shape, dtype)) = shape.zip(rule.dtype) else { return Out::Absent };
                let stride = rule.stride.as_ref().and_then(|stride| known(stride));
                let stride = match stride {
                    Some(stride) => stride,
                    None => match row_major(&mut self.graph, &self.hints, &shape) {
                        Some(stride) => {
                            self.guessed.extend((shape.len() > 1).then_some(id));
                            stride
                        }
                        None => return Out::Absent,
                    },
                };
                let device = self.device(id);
                tensor(&mut self.graph, dtype, &shape, &stride, &device, offset(Some(rule)))
            }
            (None, Some(Output::None)) => Out::None,
            (None, Some(Output::Number(Size::Known(n)))) => Out::Int(*n),
            (None, Some(Output::Number(Size::Symbol(expr)))) => Out::SymInt(*expr),
            (None, Some(Output::Number(Size::Unknown) | Output::Undecided) | None) => Out::Absent,
        }
    }

    /// The device that a call names, else that of its first tensor.
    fn device(&self, id: NodeId) -> String {
        if let Some(Value::Device(device)) = self.graph.kwarg(id, "device") {
            return self.graph.text(device).to_string();
        }
        let of = self.graph.inputs(id).into_iter().find_map(|input| self.graph.tensor_at(input, 0));
        of.map_or(DEVICE, |tensor| self.graph.text(tensor.device)).to_string()
    }
}

fn known(sizes: &[Size]) -> Option<Vec<Dim>> {
    let dim = |size: &Size| match *size {
        Size::Known(n) => Some(Dim::Static(n)),
        Size::Symbol(expr) => Some(Dim::Symbolic(expr)),
        Size::Unknown => None,
    };
    sizes.iter().map(dim).collect()
}

fn offset(rule: Option<&TensorMeta>) -> i64 {
    rule.and_then(|rule| rule.offset.known()).unwrap_or(0)
}
