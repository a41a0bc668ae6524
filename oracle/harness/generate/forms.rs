//! What a graph says, said in another way: arguments by keyword, values that go through a second device, results of
//! several tensors taken whole, draws from generators that are inputs.
//!
//! # The idea
//!
//! A tracer gives the arguments of a collective by position, and a program keeps its tensors on one device, nearly
//! always. A pass that reads `args[2]`, or that takes the device of one node for that of all, is right until it is not.
//! So some calls of communication get arguments by keyword, some values go to the host and back between their node and
//! a user, some inputs come from the host, and the pieces of a split are joined as the one list that they are. What the
//! graph returned stays; such a join is returned besides. Some draws are handed a generator of their own, as the
//! partitioner does where backward draws again (`functionalize_rng_ops` in `torch/_functorch/partitioners.py`).
//!
//! # What it does not do
//!
//! Values that the graph writes in place stay where they are, and so do those in flight or not yet written.

use super::edits::{intrusions, is_settled};
use super::source::Source;
use crate::analysis::{Collectives, Edges, Storages, storages::Mode};
use crate::graph::{Editor, Graph, NodeId, Op, Out, Tensor, Value, contiguous_strides};
use crate::ops::{Kind, OpInfo, Ops, View};

/// The second device.
const HOST: &str = "cpu";
const COPY: &str = "aten._to_copy.default";
/// Draws from a generator that it is given.
const HANDED: &str = "higher_order.graphsafe_run_with_rng_state";
/// Values that are looked at to find one that may go through the host.
const TRIES: u32 = 8;

/// The same graph with some of its calls written otherwise.
pub fn vary<S: Source>(source: &mut S, graph: &Graph) -> Graph {
    let mut graph = graph.clone();
    source.step();
    if source.percent(60) {
        by_keyword(source, &mut graph);
    }
    if source.percent(30) {
        graph = taken_whole(source, &graph).unwrap_or(graph);
    }
    let count = source.below(3);
    for _ in 0..count {
        let moved = match source.percent(50) {
            true => through_host(source, &graph),
            false => from_host(source, &graph),
        };
        let before = intrusions(&graph);
        graph = moved.filter(|moved| intrusions(moved) <= before).unwrap_or(graph);
    }
    if source.percent(75) {
        graph = with_generators(source, &graph);
    }
    graph
}

/// Gives the last arguments of some calls of communication by keyword.
fn by_keyword<S: Source>(source: &mut S, graph: &mut Graph) {
    let ops = Ops::of(graph);
    let ids: Vec<NodeId> = graph.ids().collect();
    for id in ids {
        let Some(info) = ops.call(graph, id) else { continue };
        let Some(schema) =
            info.schema.as_ref().filter(|_| info.collective().is_some() || info.kind == Kind::Wait)
        else {
            continue;
        };
        let args = graph.args(id).to_vec();
        if args.is_empty() || args.len() > schema.params.len() || !source.percent(40) {
            continue;
        }
        let keep = source.below(args.len() as u32) as usize;
        let mut kwargs = Vec::new();
        for (param, &value) in schema.params.iter().zip(&args).skip(keep) {
            kwargs.extend([Value::Str(graph.intern(&param.name)), value]);
        }
        let own: Vec<(String, Value)> =
            graph.kwargs(id).map(|(key, value)| (key.to_string(), value)).collect();
        for (key, value) in own {
            kwargs.extend([Value::Str(graph.intern(&key)), value]);
        }
        let (args, kwargs) = (graph.push_values(&args[..keep]), graph.push_values(&kwargs));
        let node = graph.node_mut(id);
        (node.args, node.kwargs) = (args, kwargs);
    }
}

/// Hands some draws a generator each, an input of the graph.
fn with_generators<S: Source>(source: &mut S, graph: &Graph) -> Graph {
    let ops = Ops::of(graph);
    let is_plain = |id: NodeId| {
        let info = ops.call(graph, id);
        ops.draws(graph, id) && info.is_some_and(|info| info.target.starts_with("aten.") && !info.writes())
    };
    let draws: Vec<NodeId> = graph.ids().filter(|&id| is_plain(id)).collect();
    let Some(first) = graph.ids().find(|&id| graph.node(id).op != Op::Placeholder) else {
        return graph.clone();
    };
    let mut editor = Editor::new(graph);
    for draw in draws {
        if !source.percent(50) {
            continue;
        }
        let own = editor.graph_mut();
        let of_type = Out::Other(own.intern("Generator"));
        let function = Value::Function(own.intern(graph.target(draw)));
        let name = "rng_state";
        let generator = editor.insert_before(Some(first), name, name, &[], &[], of_type);
        let name = editor.graph_mut().name(generator).to_string();
        let own = editor.graph_mut();
        let target = own.intern_target(&name);
        let input = own.node_mut(generator);
        (input.op, input.target) = (Op::Placeholder, target);
        let args: Vec<Value> = std::iter::once(function).chain(graph.args(draw).iter().copied()).collect();
        let mut kwargs: Vec<Value> = Vec::new();
        for (key, value) in graph.kwargs(draw) {
            kwargs.extend([Value::Str(own.intern(key)), value]);
        }
        kwargs.extend([Value::Str(own.intern("rng_state")), Value::Node(generator)]);
        let target = own.intern_target(HANDED);
        let (args, kwargs) = (own.push_values(&args), own.push_values(&kwargs));
        let node = own.node_mut(draw);
        (node.target, node.args, node.kwargs) = (target, args, kwargs);
    }
    editor.finish()
}

/// A copy of a tensor's record, row-major and on another device, in memory of its own.
fn on_device(graph: &mut Graph, of: &Tensor, device: &str) -> Out {
    let device = graph.intern(device);
    Out::Tensor(graph.push_tensor(Tensor { device, storage: None, storage_bytes: None, ..*of }))
}

/// A value at random that is a settled tensor with rows in order, and its record.
fn some_value<S: Source>(source: &mut S, graph: &Graph, ops: &Ops, op: Op) -> Option<(NodeId, Tensor)> {
    (0..TRIES).find_map(|_| {
        let id = NodeId(source.below(graph.len() as u32));
        let tensor = *graph.tensor_of(id)?;
        let (sizes, strides) = (graph.sizes(tensor.shape)?, graph.sizes(tensor.stride)?);
        let plain = tensor.offset == 0
            && graph.text(tensor.device) != HOST
            && crate::graph::layout::is_contiguous(&sizes, &strides);
        (graph.node(id).op == op && plain && is_settled(graph, ops, id)).then_some((id, tensor))
    })
}

/// A value goes to the host and back between its node and one of its users.
fn through_host<S: Source>(source: &mut S, graph: &Graph) -> Option<Graph> {
    let ops = Ops::of(graph);
    let (id, tensor) = some_value(source, graph, &ops, Op::Call)?;
    let mut editor = Editor::new(graph);
    let users = editor.users(id);
    let &user = users.get(source.below(users.len() as u32) as usize)?;
    // What writes to the value would write to the copy, and a wait would wait for it.
    let stays = |info: &OpInfo| info.writes() || info.kind == Kind::Wait;
    if ops.call(graph, user).is_none_or(stays) {
        return None;
    }
    let device = graph.text(tensor.device).to_string();
    let there = copy(&mut editor, user, id, &tensor, HOST);
    let back = copy(&mut editor, user, there, &tensor, &device);
    editor.replace_input(user, id, back);
    Some(editor.finish())
}

/// An input comes from the host: it is copied before its first user, and all take the copy.
fn from_host<S: Source>(source: &mut S, graph: &Graph) -> Option<Graph> {
    let ops = Ops::of(graph);
    let (id, tensor) = some_value(source, graph, &ops, Op::Placeholder)?;
    let (edges, collectives) = (Edges::new(graph), Collectives::new(graph, &ops));
    let storages = Storages::new(graph, &ops, &edges, &collectives, Mode::Physical);
    let storage = storages.storage_of(id)?;
    let first = edges.users(id).iter().copied().min()?;
    let is_kept = |user: &NodeId| graph.node(*user).op == Op::Output;
    if storages.accesses_of(storage).any(|access| access.touch.writes() || is_kept(&access.node)) {
        return None;
    }
    let mut editor = Editor::new(graph);
    let device = graph.text(tensor.device).to_string();
    let moved = copy(&mut editor, first, id, &tensor, &device);
    let out = on_device(editor.graph_mut(), &tensor, HOST);
    editor.graph_mut().node_mut(id).out = out;
    for user in edges.users(id) {
        editor.replace_input(*user, id, moved);
    }
    Some(editor.finish())
}

/// The pieces of a split are joined behind it, without being taken one by one, and returned.
fn taken_whole<S: Source>(source: &mut S, graph: &Graph) -> Option<Graph> {
    let ops = Ops::of(graph);
    let is_split = |id: &NodeId| {
        let split = [View::Split, View::SplitWithSizes, View::Chunk].map(Kind::View);
        ops.call(graph, *id).is_some_and(|info| split.contains(&info.kind))
    };
    let splits: Vec<NodeId> = graph.ids().filter(is_split).collect();
    let &split = splits.get(source.below(splits.len() as u32) as usize)?;
    let Some(Value::Node(whole)) = graph.arg(split, 0) else { return None };
    let tensor = *graph.tensor_of(whole)?;
    let sizes = graph.sizes(tensor.shape)?;
    let dim = graph.argument(split, 2, "dim").unwrap_or(Value::Int(0));
    let output = graph.ids().rfind(|&id| graph.node(id).op == Op::Output)?;
    let Some(Value::List(returned)) = graph.arg(output, 0) else { return None };
    let mut returned = graph.values(returned).to_vec();
    let mut editor = Editor::new(graph);
    let stride = editor.graph_mut().intern_sizes(&contiguous_strides(&sizes));
    let joined = Tensor { stride, offset: 0, storage: None, storage_bytes: None, ..tensor };
    let out = Out::Tensor(editor.graph_mut().push_tensor(joined));
    let next = editor.next(split);
    let args = [Value::Node(split), dim];
    let join = editor.insert_before(next, "joined", "aten.cat.default", &args, &[], out);
    returned.push(Value::Node(join));
    let list = editor.graph_mut().list(&returned);
    editor.set_args(output, &[list]);
    Some(editor.finish())
}

/// Inserts a copy of `value`, which is recorded as `tensor`, to a device before `anchor`.
fn copy(editor: &mut Editor, anchor: NodeId, value: NodeId, tensor: &Tensor, device: &str) -> NodeId {
    let out = on_device(editor.graph_mut(), tensor, device);
    let to = Value::Device(editor.graph_mut().intern(device));
    editor.insert_before(Some(anchor), "moved", COPY, &[Value::Node(value)], &[("device", to)], out)
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Seeded, case};
    use super::*;
    use crate::analysis::validate::validate;

    /// What is varied is valid, and each form occurs.
    #[test]
    fn forms_are_valid_and_occur() {
        let (mut keywords, mut there, mut inputs, mut wholes, mut handed) = (0, 0, 0, 0, 0);
        for number in 0..400 {
            let graph = case(&Config { repair: 0, ..Config::default() }, 5, number).graph;
            let varied = vary(&mut Seeded::case(9, number), &graph);
            assert_eq!(validate(&varied), validate(&graph), "case {number}");
            let ops = Ops::of(&varied);
            let named = |id: &NodeId| {
                ops.call(&varied, *id).is_some_and(|info| info.collective().is_some())
                    && varied.kwarg(*id, "group_name").is_some()
            };
            keywords += u32::from(varied.ids().any(|id| named(&id)));
            let on_host = |op: Op| {
                varied.ids().any(|id| {
                    varied.node(id).op == op
                        && varied.tensor_of(id).is_some_and(|tensor| varied.text(tensor.device) == HOST)
                })
            };
            there += u32::from(on_host(Op::Call));
            inputs += u32::from(on_host(Op::Placeholder));
            wholes += u32::from(varied.find("joined").is_some());
            handed += u32::from(varied.ids().any(|id| varied.target(id) == HANDED));
        }
        let counts = [keywords, there, inputs, wholes];
        assert!(counts.iter().all(|&count| count > 40), "{counts:?}");
        // Few graphs draw.
        assert!(handed > 20, "{handed}");
    }
}
