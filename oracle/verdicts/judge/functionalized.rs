//! Functional forms of operators that write, as the copies and the writes that they stand for.
//!
//! `auto_functionalized_v2` calls an operator that writes on copies of tensors (`_all_bases`), and returns its results
//! and then the copies; what the operator takes may be views of these. `triton_kernel_wrapper_functional` launches a
//! kernel on copies (`tensors_to_clone`), and returns them by name. Inductor turns both into copies and writes, and
//! leaves out the copies that nobody needs, so a graph before is written that way too. Source:
//! `torch._higher_order_ops.auto_functionalize`, `torch._higher_order_ops.triton_kernel_wrap`,
//! `torch._inductor.fx_passes.post_grad.decompose_auto_functionalized`.
//!
//! # What it does not do
//!
//! A call stays as it is where something takes its results as a whole, where what is copied has gaps between its
//! elements or does not begin its storage, or where an argument is a list of views.

use crate::graph::{Editor, Graph, NodeId, Op, Out, Tags, Tensor, Value, layout};

const OPERATOR: &str = "higher_order.auto_functionalized_v2";
const KERNEL: &str = "higher_order.triton_kernel_wrapper_functional";

/// The graph with such calls written out; `None` where there are none.
pub(super) fn written_out(graph: &Graph) -> Option<Graph> {
    let is_one =
        |id: &NodeId| graph.node(*id).op == Op::Call && [OPERATOR, KERNEL].contains(&graph.target(*id));
    let calls: Vec<NodeId> = graph.ids().filter(is_one).collect();
    if calls.is_empty() {
        return None;
    }
    let mut editor = Editor::new(graph);
    let mut is_changed = false;
    for id in calls {
        let first = editor.graph().len();
        let written = match graph.target(id) {
            OPERATOR => operator(&mut editor, id),
            _ => kernel(&mut editor, id),
        };
        // All of it runs on the stream of the call.
        let custom = graph.tags(id).and_then(|tags| tags.custom);
        let tags = editor.graph_mut().intern_tags(Tags { custom, ..Tags::default() });
        for new in (first..editor.graph().len()).map(|at| NodeId(at as u32)) {
            editor.graph_mut().node_mut(new).tags = tags;
        }
        is_changed |= written.is_some();
    }
    is_changed.then(|| editor.finish())
}

/// Who takes an item of a call, by what names the item; `None` where something takes it as a whole.
fn items(editor: &Editor, id: NodeId) -> Option<Vec<(NodeId, Value)>> {
    let item = |&user: &NodeId| match (editor.graph().target(user), editor.graph().args(user)) {
        ("operator.getitem", &[Value::Node(of), key]) if of == id => Some((user, key)),
        _ => None,
    };
    editor.users(id).iter().map(item).collect()
}

/// A copy of a tensor before `id`, with the strides of the tensor.
fn copy(editor: &mut Editor, tensor: NodeId, id: NodeId) -> Option<NodeId> {
    let graph = editor.graph_mut();
    // A copy begins its storage, and views of it are told from there.
    let known = *graph.tensor_of(tensor).filter(|tensor| tensor.offset == 0)?;
    let (sizes, strides) = (graph.sizes(known.shape)?, graph.sizes(known.stride)?);
    if sizes.len() != strides.len() || !layout::is_dense(&sizes, &strides) {
        return None;
    }
    let own = Tensor { storage: None, offset: 0, storage_bytes: None, ..known };
    let out = Out::Tensor(graph.push_tensor(own));
    Some(editor.insert_before(Some(id), "clone", "aten.clone.default", &[Value::Node(tensor)], &[], out))
}

/// The keyword arguments of a call, by name.
fn keywords(graph: &Graph, id: NodeId) -> Vec<(String, Value)> {
    graph.kwargs(id).map(|(name, value)| (name.to_string(), value)).collect()
}

/// The values of a list.
fn list(graph: &Graph, value: Value) -> Option<Vec<Value>> {
    match value {
        Value::List(span) => Some(graph.values(span).to_vec()),
        _ => None,
    }
}

fn operator(editor: &mut Editor, id: NodeId) -> Option<()> {
    let graph = editor.graph();
    let name_of_call = graph.name(id).to_string();
    let &[Value::Function(target)] = graph.args(id) else { return None };
    let target = graph.text(target).to_string();
    let given = keywords(graph, id);
    let named = |name: &str| given.iter().find(|(other, _)| other == name).map(|(_, value)| *value);
    let bases = list(graph, named("_all_bases")?)?;
    let Out::Tuple(outs) = graph.node(id).out else { return None };
    let outs = graph.outs(outs).to_vec();
    let results = outs.len().checked_sub(bases.len())?;
    let taken = items(editor, id)?;
    let indices: Option<Vec<usize>> = taken.iter().map(|(_, key)| index(*key)).collect();
    // How each argument is made of a base: its index, and what was said of the view.
    let is_said = |name: &str| name.starts_with('_') && name != "_all_bases";
    let arguments: Vec<&str> =
        given.iter().filter_map(|(name, _)| name.strip_prefix('_')?.strip_suffix("_base_index")).collect();
    let of_argument = |name: &str| {
        arguments.iter().any(|argument| {
            name.strip_prefix('_').and_then(|rest| rest.strip_prefix(argument)).is_some_and(|rest| {
                ["_base_index", "_alias", "_size", "_stride", "_storage_offset"].contains(&rest)
                    || rest.starts_with("_slice_")
            })
        })
    };
    if given.iter().any(|(name, _)| is_said(name) && !of_argument(name)) {
        return None;
    }
    let copies = bases.iter().map(|base| match base {
        Value::Node(base) => copy(editor, *base, id),
        _ => None,
    });
    let copies: Vec<NodeId> = copies.collect::<Option<_>>()?;
    let plain = given.iter().filter(|(name, _)| !name.starts_with('_'));
    let mut handed: Vec<(&str, Value)> = plain.map(|(name, value)| (name.as_str(), *value)).collect();
    for argument in arguments {
        let said = |what: &str| named(&format!("_{argument}_{what}"));
        let value = match said("base_index")? {
            Value::None => Value::None,
            place => {
                let base = *copies.get(index(place)?)?;
                Value::Node(view_of(editor, base, id, &said)?)
            }
        };
        handed.push((argument, value));
    }
    let out = match results {
        0 => return None,
        1 => outs[0],
        _ => Out::Tuple(editor.graph_mut().push_outs(&outs[..results])),
    };
    let call = editor.insert_before(Some(id), &name_of_call, &target, &[], &handed, out);
    for ((user, _), place) in taken.into_iter().zip(indices?) {
        match place.checked_sub(results) {
            Some(base) => editor.replace_uses(user, *copies.get(base)?),
            None if results == 1 => editor.replace_uses(user, call),
            None => {
                editor.replace_input(user, id, call);
                continue;
            }
        }
        editor.erase(user);
    }
    editor.erase(id);
    Some(())
}

fn index(value: Value) -> Option<usize> {
    match value {
        Value::Int(place) => usize::try_from(place).ok(),
        _ => None,
    }
}

/// What an argument is of a base: the base, or a view before `id`.
fn view_of(
    editor: &mut Editor,
    base: NodeId,
    id: NodeId,
    said: &dyn Fn(&str) -> Option<Value>,
) -> Option<NodeId> {
    let mut view = |target: &str, more: &[Value]| {
        let args: Vec<Value> = std::iter::once(Value::Node(base)).chain(more.iter().copied()).collect();
        editor.insert_before(Some(id), "view", target, &args, &[], Out::Absent)
    };
    if said("alias") == Some(Value::Bool(true)) {
        return Some(view("aten.alias.default", &[]));
    }
    if let Some(dim) = said("slice_dim") {
        return Some(view("aten.slice.Tensor", &[dim, said("slice_start")?, said("slice_end")?]));
    }
    match said("size") {
        Some(size) => {
            Some(view("aten.as_strided.default", &[size, said("stride")?, said("storage_offset")?]))
        }
        None => Some(base),
    }
}

fn kernel(editor: &mut Editor, id: NodeId) -> Option<()> {
    let graph = editor.graph();
    let (name_of_call, args) = (graph.name(id).to_string(), graph.args(id).to_vec());
    let given = keywords(graph, id);
    let named = |name: &str| given.iter().find(|(other, _)| other == name).map(|(_, value)| *value);
    let cloned = list(graph, named("tensors_to_clone")?)?;
    let Some(Value::Dict(tensors)) = named("kwargs") else { return None };
    let taken = items(editor, id)?;
    // Strings of one graph are equal if their numbers are.
    let mut handed: Vec<Value> = graph.values(tensors).to_vec();
    let mut copies: Vec<(Value, NodeId)> = Vec::new();
    for pair in handed.chunks_exact_mut(2).filter(|pair| cloned.contains(&pair[0])) {
        let Value::Node(tensor) = pair[1] else { return None };
        let copy = copy(editor, tensor, id)?;
        copies.push((pair[0], copy));
        pair[1] = Value::Node(copy);
    }
    let copy_of = |key: Value| copies.iter().find(|(name, _)| *name == key).map(|found| found.1);
    let replaced: Option<Vec<(NodeId, NodeId)>> =
        taken.into_iter().map(|(user, key)| Some((user, copy_of(key)?))).collect();
    let replaced = replaced?;
    let handed = Value::Dict(editor.graph_mut().push_values(&handed));
    let kept = given.iter().filter(|(name, _)| name != "tensors_to_clone");
    let kwargs: Vec<(&str, Value)> =
        kept.map(|(name, value)| (name.as_str(), if name == "kwargs" { handed } else { *value })).collect();
    let target = "higher_order.triton_kernel_wrapper_mutation";
    editor.insert_before(Some(id), &name_of_call, target, &args, &kwargs, Out::None);
    for (user, copy) in replaced {
        editor.replace_uses(user, copy);
        editor.erase(user);
    }
    editor.erase(id);
    Some(())
}
