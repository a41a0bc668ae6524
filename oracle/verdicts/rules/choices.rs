//! A scatter of a number into a constant, and the choice by an index that it is: written in one way, exactly.
//!
//! # The idea
//!
//! `scatter(full(n), dim, index, v)` with one index along `dim` gives `v` where the place along `dim` is the index, and
//! `n` elsewhere: `where(index == iota, v, n)`. The gradient of every cross-entropy has the one, and Inductor makes the
//! other (`scatter_upon_const_tensor` in `torch/_inductor/fx_passes/post_grad.py` and `joint_graph.py`). Both are
//! written as the second, out of the same calls, so that the proof sees one.
//!
//! # What it does not do
//!
//! It does not know whether an index is out of range, which raises in the one and chooses nothing in the other. So a
//! scatter may become a choice, and not the other way.

use super::AnalyzedGraph;
use crate::graph::{Dtype, Editor, Graph, NodeId, Out, Tensor, Value};

const SCATTER: &str = "aten.scatter.value";

/// How many scatters of a number there are.
pub(super) fn scatters(graph: &Graph) -> usize {
    graph.ids().filter(|&id| graph.target(id) == SCATTER).count()
}

/// The graph with its choices by index written in one way, scatters among them where these are meant; `None` where it
/// has none.
pub(super) fn as_choices(side: &AnalyzedGraph, with_scatters: bool) -> Option<Graph> {
    let graph = side.graph;
    let is_candidate = |id: &NodeId| match graph.target(*id) {
        SCATTER => with_scatters,
        target => target == "aten.where.self",
    };
    let candidates: Vec<NodeId> = graph.ids().filter(is_candidate).collect();
    if candidates.is_empty() {
        return None;
    }
    let mut is_written = vec![false; graph.len()];
    for id in graph.ids() {
        for access in side.storages().accesses_by(id).iter().filter(|access| access.touch.writes()) {
            side.shown_by(access.part.storage).iter().for_each(|shows| is_written[shows.index()] = true);
        }
    }
    let reader = Reader { graph, is_written };
    let choices: Vec<(NodeId, Choice)> =
        candidates.into_iter().filter_map(|id| Some((id, reader.choice(id)?))).collect();
    if choices.is_empty() {
        return None;
    }
    let mut editor = Editor::new(graph);
    for (id, choice) in choices {
        choice.write(&mut editor, graph, id);
    }
    Some(editor.finish())
}

/// `chosen` where the place along `dim`, which has `length` places, is the one of `index`; `other` elsewhere.
struct Choice {
    index: NodeId,
    dim: usize,
    length: i64,
    chosen: Value,
    other: Value,
}

struct Reader<'g> {
    graph: &'g Graph,
    /// By node whether something writes to what it shows.
    is_written: Vec<bool>,
}

impl Reader<'_> {
    fn choice(&self, id: NodeId) -> Option<Choice> {
        let graph = self.graph;
        let out = *graph.tensor_of(id)?;
        let choice = match (graph.target(id), graph.args(id)) {
            (SCATTER, &[Value::Node(into), Value::Int(dim), Value::Node(index), chosen]) => {
                let rank = graph.dims(out.shape).len() as i64;
                let dim = usize::try_from(if dim < 0 { dim + rank } else { dim }).ok()?;
                let length = graph.dims(out.shape).get(dim)?.known()?;
                Choice { index, dim, length, chosen, other: self.number(into, out.dtype)? }
            }
            ("aten.where.self", &[Value::Node(condition), Value::Node(chosen), Value::Node(other)]) => {
                let (index, dim, length) = self.equality(condition, &out)?;
                let [chosen, other] = [chosen, other].map(|node| self.number(node, out.dtype));
                Choice { index, dim, length, chosen: chosen?, other: other? }
            }
            _ => return None,
        };
        let is_number = matches!(choice.chosen, Value::Int(_) | Value::Float(_) | Value::Bool(_));
        (is_number && self.is_index(&choice, &out)).then_some(choice)
    }

    /// The number that a tensor of this dtype holds everywhere.
    fn number(&self, node: NodeId, dtype: Dtype) -> Option<Value> {
        let graph = self.graph;
        let is_plain = graph.tensor_of(node)?.dtype == dtype && !self.is_written[node.index()];
        let value = match (graph.target(node), graph.args(node)) {
            ("aten.full.default", [_, value]) | ("aten.scalar_tensor.default", [value]) => *value,
            _ => return None,
        };
        (is_plain && matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_))).then_some(value)
    }

    /// The index that is compared with the places along a dimension, that dimension and how many places it has.
    fn equality(&self, condition: NodeId, out: &Tensor) -> Option<(NodeId, usize, i64)> {
        let graph = self.graph;
        let ("aten.eq.Tensor", &[Value::Node(one), Value::Node(two)]) =
            (graph.target(condition), graph.args(condition))
        else {
            return None;
        };
        let is_whole = graph.tensor_of(condition)?.shape == out.shape && !self.is_written[condition.index()];
        let (index, (dim, length)) = [(one, two), (two, one)]
            .into_iter()
            .find_map(|(index, places)| Some((index, self.places(places, out)?)))?;
        let index = match (graph.target(index), graph.arg(index, 0)) {
            ("aten.expand.default", Some(Value::Node(inner))) if !self.is_written[index.index()] => inner,
            _ => index,
        };
        is_whole.then_some((index, dim, length))
    }

    /// The dimension of the result along which a tensor counts its places from 0, and how many they are.
    fn places(&self, node: NodeId, out: &Tensor) -> Option<(usize, i64)> {
        let graph = self.graph;
        let sizes = graph.sizes(graph.tensor_of(node)?.shape)?;
        let outer = graph.dims(out.shape).len().checked_sub(sizes.len())?;
        let mut long = (0..sizes.len()).filter(|&at| sizes[at] != 1);
        let (Some(dim), None) = (long.next(), long.next()) else { return None };
        let mut counted = node;
        loop {
            if self.is_written[counted.index()] {
                return None;
            }
            counted = match (graph.target(counted), graph.arg(counted, 0)) {
                (
                    "aten.view.default" | "aten.reshape.default" | "aten.unsqueeze.default",
                    Some(Value::Node(of)),
                ) if of < counted => of,
                _ => break,
            };
        }
        let is = |name: &str, number: i64| graph.kwarg(counted, name) == Some(Value::Int(number));
        let counts = match (graph.target(counted), graph.args(counted)) {
            ("prims.iota.default", [Value::Int(length)]) => {
                *length == sizes[dim] && is("start", 0) && is("step", 1)
            }
            ("aten.arange.default", [Value::Int(length)]) => *length == sizes[dim],
            ("aten.arange.start_step", [Value::Int(0), Value::Int(length)]) => *length == sizes[dim],
            _ => false,
        };
        let is_integer = graph.tensor_of(counted)?.dtype == Dtype::I64;
        (counts && is_integer).then_some((outer + dim, sizes[dim]))
    }

    /// Whether the index has one element along the dimension, and along others as many as the result.
    fn is_index(&self, choice: &Choice, out: &Tensor) -> bool {
        let graph = self.graph;
        let Some(index) = graph.tensor_of(choice.index) else { return false };
        let (own, of) = (graph.dims(index.shape), graph.dims(out.shape));
        let fits = own.len() == of.len()
            && own.iter().zip(of).enumerate().all(|(at, (own, of))| match at == choice.dim {
                true => own.known() == Some(1) && of.known() == Some(choice.length),
                false => own == of,
            });
        fits && index.dtype == Dtype::I64 && !self.is_written[choice.index.index()]
    }
}

impl Choice {
    fn write(&self, editor: &mut Editor, graph: &Graph, id: NodeId) {
        let Some(&out) = graph.tensor_of(id) else { return };
        let rank = graph.dims(out.shape).len();
        let fresh = Tensor { storage: None, storage_bytes: None, offset: 0, ..out };
        let mut sizes = vec![1; rank];
        sizes[self.dim] = self.length;
        let of_sizes = |editor: &mut Editor, sizes: &[i64], dtype: Dtype| {
            let strides = crate::graph::contiguous_strides(sizes);
            let into = editor.graph_mut();
            let (shape, stride) = (into.intern_sizes(sizes), into.intern_sizes(&strides));
            Tensor { shape, stride, dtype, ..fresh }
        };
        let line = of_sizes(editor, &[self.length], Dtype::I64);
        let spread = of_sizes(editor, &sizes, Dtype::I64);
        let single = of_sizes(editor, &[], out.dtype);
        let counting = [
            ("start", Value::Int(0)),
            ("step", Value::Int(1)),
            ("dtype", Value::Dtype(Dtype::I64)),
            ("device", Value::Device(out.device)),
            ("requires_grad", Value::Bool(false)),
        ];
        let places = add(editor, id, "prims.iota.default", &[Value::Int(self.length)], &counting, line);
        let shape = editor.graph_mut().int_list(&sizes);
        let places = add(editor, id, "aten.view.default", &[places, shape], &[], spread);
        let index = Value::Node(self.index);
        let equal = Tensor { dtype: Dtype::Bool, ..fresh };
        let equal = add(editor, id, "aten.eq.Tensor", &[index, places], &[], equal);
        let numbers = [self.chosen, self.other].map(|number| {
            let nowhere = editor.graph_mut().int_list(&[]);
            let of_dtype = [("dtype", Value::Dtype(out.dtype)), ("device", Value::Device(out.device))];
            add(editor, id, "aten.full.default", &[nowhere, number], &of_dtype, single)
        });
        editor.set_args(id, &[equal, numbers[0], numbers[1]]);
        let into = editor.graph_mut();
        let target = into.intern_target("aten.where.self");
        let node = into.node_mut(id);
        (node.target, node.kwargs) = (target, Default::default());
    }
}

/// Inserts a call before a node.
fn add(
    editor: &mut Editor,
    before: NodeId,
    target: &str,
    args: &[Value],
    kwargs: &[(&str, Value)],
    tensor: Tensor,
) -> Value {
    let out = Out::Tensor(editor.graph_mut().push_tensor(tensor));
    Value::Node(editor.insert_before(Some(before), "choice", target, args, kwargs, out))
}
