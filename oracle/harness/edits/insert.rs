//! Calls that edits put into a graph.

use crate::graph::{Dtype, Editor, Graph, NodeId, Out, Tensor, Value};

/// A second call like `id`, in front of `reader`.
pub(super) fn insert_copy(editor: &mut Editor, id: NodeId, reader: NodeId) -> NodeId {
    insert_copy_at(editor, id, Some(reader))
}

/// A second call like `id`, in front of `anchor`. Its result is a new tensor, on a storage that is not recorded.
pub(super) fn insert_copy_at(editor: &mut Editor, id: NodeId, anchor: Option<NodeId>) -> NodeId {
    let graph = editor.graph();
    let (target, args) = (graph.target(id).to_string(), graph.args(id).to_vec());
    let kwargs: Vec<(String, Value)> =
        graph.kwargs(id).map(|(key, value)| (key.to_string(), value)).collect();
    let kwargs: Vec<(&str, Value)> = kwargs.iter().map(|(key, value)| (key.as_str(), *value)).collect();
    let (name, tags) = (graph.name(id).to_string(), graph.node(id).tags);
    let out = unrecorded(editor.graph_mut(), id);
    let copy = editor.insert_before(anchor, &name, &target, &args, &kwargs, out);
    editor.graph_mut().node_mut(copy).tags = tags;
    copy
}

/// The call that casts `of`, of a result like `like`, to a dtype.
pub(super) fn insert_cast(
    editor: &mut Editor,
    before: NodeId,
    of: NodeId,
    like: Tensor,
    dtype: Dtype,
) -> NodeId {
    let tensor = Tensor { dtype, storage: None, storage_bytes: None, offset: 0, ..like };
    let out = Out::Tensor(editor.graph_mut().push_tensor(tensor));
    let args = [Value::Node(of), Value::Dtype(dtype)];
    editor.insert_before(Some(before), "edited_cast", "prims.convert_element_type.default", &args, &[], out)
}

/// A call of `target` on the result of `id` and further arguments, right behind it. The readers of `id` take its result.
pub(super) fn insert_after(editor: &mut Editor, id: NodeId, target: &str, further: &[Value]) {
    let (anchor, out) = (editor.next(id), unrecorded(editor.graph_mut(), id));
    let args: Vec<Value> = std::iter::once(Value::Node(id)).chain(further.iter().copied()).collect();
    let call = editor.insert_before(anchor, "edited", target, &args, &[], out);
    editor.replace_uses(id, call);
    editor.set_args(call, &args);
}

/// What `id` returns, on another storage.
fn unrecorded(graph: &mut Graph, id: NodeId) -> Out {
    match graph.node(id).out {
        Out::Tensor(tensor) => {
            let tensor = Tensor { storage: None, storage_bytes: None, ..*graph.tensor(tensor) };
            Out::Tensor(graph.push_tensor(tensor))
        }
        Out::Tuple(span) => {
            let outs = graph.outs(span).to_vec().into_iter().map(|out| match out {
                Out::Tensor(tensor) => {
                    let tensor = Tensor { storage: None, storage_bytes: None, ..*graph.tensor(tensor) };
                    Out::Tensor(graph.push_tensor(tensor))
                }
                other => other,
            });
            let outs: Vec<Out> = outs.collect();
            Out::Tuple(graph.push_outs(&outs))
        }
        other => other,
    }
}
