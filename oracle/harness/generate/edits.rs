//! Random edits of a valid graph that leave it valid: neighbours of a real case.
//!
//! An edit is tried, results are recomputed by the shape rules, and what then is not valid, or touches memory of a
//! collective in flight where the graph before did not, is dropped.

use super::source::Source;
use crate::analysis::in_flight::in_flight;
use crate::analysis::propagate::propagate;
use crate::analysis::{Collectives, Edges, Storages, storages::Mode};
use crate::graph::{Dtype, DtypeClass, Editor, Graph, NodeId, Op, Out, Tensor, Value};
use crate::ops::{Fill, Kind, Ops};

/// Kinds of edits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edit {
    /// A node takes another value of the same type in place of one.
    OtherOperand,
    /// A node is written twice, and one of its users takes the second.
    Duplicate,
    /// An alias or a copy between a node and one of its users.
    View,
    /// A cast there and back between a node and one of its users.
    Cast,
    /// Another reduction of a collective.
    Reduction,
    /// Another group of a collective.
    Group,
    /// Another dtype of a graph input, and of what follows from it.
    Dtype,
}

impl Edit {
    /// All of them.
    pub const ALL: [Edit; 7] = [
        Edit::OtherOperand,
        Edit::Duplicate,
        Edit::View,
        Edit::Cast,
        Edit::Reduction,
        Edit::Group,
        Edit::Dtype,
    ];
}

/// Places that are tried for one edit.
const TRIES: u32 = 8;

/// `graph` after one random edit; `None` where the places tried allow none.
pub fn edit(source: &mut impl Source, graph: &Graph) -> Option<(Edit, Graph)> {
    if graph.ids().len() == 0 {
        return None;
    }
    let before = intrusions(graph);
    for _ in 0..TRIES {
        let edit = source.one_of(&Edit::ALL);
        let node = NodeId(source.below(graph.len() as u32));
        let Some(mut edited) = apply(source, graph, edit, node) else { continue };
        let mut keep = |sizes: &[i64]| Some(sizes.to_vec());
        let allowed = propagate(&mut edited, &mut keep).is_ok()
            && (edit != Edit::Dtype || products_agree(&edited))
            && intrusions(&edited) <= before;
        if allowed {
            return Some((edit, edited));
        }
    }
    None
}

/// Whether the operands of every matrix product have one dtype: products, unlike elementwise operators, promote none.
fn products_agree(graph: &Graph) -> bool {
    let ops = Ops::of(graph);
    graph.ids().all(|id| {
        let product = ops.call(graph, id).is_some_and(|info| matches!(info.kind, Kind::Matmul(_)));
        let inputs = if product { graph.inputs(id) } else { Vec::new() };
        let mut dtypes =
            inputs.into_iter().filter_map(|input| graph.tensor_of(input)).map(|tensor| tensor.dtype);
        let first = dtypes.next();
        dtypes.all(|dtype| Some(dtype) == first)
    })
}

/// How often something touches the memory of a collective in flight.
pub fn intrusions(graph: &Graph) -> usize {
    let (ops, edges) = (Ops::of(graph), Edges::new(graph));
    let collectives = Collectives::new(graph, &ops);
    let storages = Storages::new(graph, &ops, &edges, &collectives, Mode::Physical);
    in_flight(graph, &ops, &storages, &collectives).len()
}

fn apply(source: &mut impl Source, graph: &Graph, edit: Edit, node: NodeId) -> Option<Graph> {
    let ops = Ops::of(graph);
    let call = ops.call(graph, node);
    match edit {
        Edit::OtherOperand => other_operand(source, graph, &ops, node),
        Edit::Duplicate => duplicate(graph, &ops, node),
        Edit::View | Edit::Cast => between(source, graph, &ops, edit, node),
        Edit::Reduction => {
            let op = source.one_of(&["sum", "avg", "max", "min", "product"]);
            let integers = graph.tensor_of(node).is_none_or(|t| t.dtype.class() != DtypeClass::Float);
            if op == "avg" && integers {
                return None;
            }
            argument(graph, node, call?.schema.as_ref()?.param("reduce_op")?, |graph| {
                Value::Str(graph.intern(op))
            })
        }
        Edit::Group => {
            let schema = call?.schema.as_ref()?;
            let groups = &graph.world.groups;
            let group = groups.get(source.below(groups.len() as u32) as usize)?.clone();
            let name = schema.param("group_name")?;
            let edited = argument(graph, node, name, |graph| Value::Str(graph.intern(&group.name)))?;
            match schema.param("group_size") {
                Some(size) => argument(&edited, node, size, |_| Value::Int(group.size.into())),
                // Splits and roots count ranks too.
                None if schema.param("output_split_sizes").is_some() || schema.param("src").is_some() => None,
                None => Some(edited),
            }
        }
        Edit::Dtype => {
            if graph.node(node).op != Op::Placeholder {
                return None;
            }
            let old = *graph.tensor_of(node)?;
            let to = source.one_of(&[Dtype::F32, Dtype::BF16, Dtype::F16, Dtype::F64, Dtype::I32]);
            if to == old.dtype || old.dtype.class() != DtypeClass::Float || reaches_opaque(graph, &ops, node)
            {
                return None;
            }
            let mut edited = graph.clone();
            let new = edited.push_tensor(Tensor { dtype: to, storage: None, storage_bytes: None, ..old });
            edited.node_mut(node).out = Out::Tensor(new);
            Some(edited)
        }
    }
}

/// A call with another positional argument.
fn argument(
    graph: &Graph,
    node: NodeId,
    index: usize,
    value: impl FnOnce(&mut Graph) -> Value,
) -> Option<Graph> {
    let mut edited = graph.clone();
    let mut args = edited.args(node).to_vec();
    let value = value(&mut edited);
    let slot = args.get_mut(index)?;
    if *slot == value {
        return None;
    }
    *slot = value;
    let args = edited.push_values(&args);
    edited.node_mut(node).args = args;
    Some(edited)
}

/// Whether an operator that the oracle does not compute depends on `node`: such a one may refuse another dtype.
fn reaches_opaque(graph: &Graph, ops: &Ops, node: NodeId) -> bool {
    let mut reached = vec![false; graph.len()];
    reached[node.index()] = true;
    for id in graph.ids() {
        let mut reaches = reached[id.index()];
        graph.for_each_input(id, &mut |input: NodeId| reaches |= reached[input.index()]);
        reached[id.index()] = reaches;
    }
    graph
        .ids()
        .any(|id| reached[id.index()] && ops.call(graph, id).is_some_and(|info| info.kind == Kind::Opaque))
}

/// Whether a value may be taken by any node: it is a tensor, no collective is to write it still, and it is no new
/// memory or view of such, which something else is to write.
pub(super) fn is_settled(graph: &Graph, ops: &Ops, node: NodeId) -> bool {
    let mut base = node;
    while ops.call(graph, base).is_some_and(|info| info.is_view() || info.kind == Kind::GetItem) {
        match graph.inputs(base).first() {
            Some(&before) if before < base => base = before,
            _ => break,
        }
    }
    let blank = ops.call(graph, base).is_some_and(|info| info.kind == Kind::Fill(Fill::Empty));
    let launch = ops.call(graph, node).is_some_and(|info| info.collective().is_some());
    graph.tensor_of(node).is_some() && !launch && !blank
}

fn other_operand(source: &mut impl Source, graph: &Graph, ops: &Ops, node: NodeId) -> Option<Graph> {
    let info = ops.call(graph, node)?;
    if matches!(info.kind, Kind::Wait | Kind::GetItem) {
        return None;
    }
    let inputs: Vec<NodeId> =
        graph.inputs(node).into_iter().filter(|&input| is_settled(graph, ops, input)).collect();
    let &old = inputs.get(source.below(inputs.len() as u32) as usize)?;
    let wanted = graph.tensor_of(old)?;
    let start = source.below(node.0);
    let like = |&other: &NodeId| {
        other != old
            && is_settled(graph, ops, other)
            && graph.tensor_of(other).is_some_and(|t| {
                t.shape == wanted.shape && t.stride == wanted.stride && t.dtype == wanted.dtype
            })
    };
    let other = (0..node.0).map(|i| NodeId((start + i) % node.0)).find(like)?;
    let mut editor = Editor::new(graph);
    editor.replace_input(node, old, other);
    Some(editor.finish())
}

fn duplicate(graph: &Graph, ops: &Ops, node: NodeId) -> Option<Graph> {
    let info = ops.call(graph, node)?;
    let plain = !info.effect && !info.is_random() && !info.writes();
    if !plain || info.collective().is_some() || !is_settled(graph, ops, node) {
        return None;
    }
    let mut editor = Editor::new(graph);
    let &user = editor.users(node).first()?;
    let (args, kwargs) = (graph.args(node).to_vec(), graph.kwargs(node).collect::<Vec<_>>());
    let next = editor.next(node);
    let twin = editor.insert_before(
        next,
        graph.name(node),
        graph.target(node),
        &args,
        &kwargs,
        graph.node(node).out,
    );
    editor.replace_input(user, node, twin);
    Some(editor.finish())
}

/// Puts an alias, a copy, or casts between a node and its first user.
fn between(source: &mut impl Source, graph: &Graph, ops: &Ops, edit: Edit, node: NodeId) -> Option<Graph> {
    if !is_settled(graph, ops, node) {
        return None;
    }
    let mut editor = Editor::new(graph);
    let users = editor.users(node);
    let &user = users.get(source.below(users.len() as u32) as usize)?;
    // An operator that writes to the value would write to the copy.
    if graph.node(user).op == Op::Output || ops.call(graph, user).is_some_and(|i| i.writes()) {
        return None;
    }
    let (out, dtype) = (graph.node(node).out, graph.tensor_of(node)?.dtype);
    let new = match edit {
        Edit::View => {
            let target = source.one_of(&["aten.alias.default", "aten.clone.default", "aten.detach.default"]);
            editor.insert_before(Some(user), "edited", target, &[Value::Node(node)], &[], out)
        }
        _ => {
            let to = source.one_of(&[Dtype::F64, Dtype::F32, Dtype::BF16, Dtype::I32]);
            let target = "prims.convert_element_type.default";
            let args = [Value::Node(node), Value::Dtype(to)];
            let there = editor.insert_before(Some(user), "edited", target, &args, &[], out);
            let args = [Value::Node(there), Value::Dtype(dtype)];
            editor.insert_before(Some(user), "edited", target, &args, &[], out)
        }
    };
    editor.replace_input(user, node, new);
    Some(editor.finish())
}
