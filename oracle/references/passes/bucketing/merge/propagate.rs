//! Metadata of nodes behind a value that was replaced by an equal one with another layout.
//!
//! From the users of the replaced value on, breadth first, each node's shape rule is applied again; where the
//! result differs from what is recorded, it is recorded anew and the node's users follow. A node whose rule
//! decides nothing, or cannot take the new layout, keeps its metadata, and so does one whose record contradicts its
//! operator: that is opaque to everybody, and a view moves with what it is a view of. Source:
//! `_recompute_changed_user_metadata` in `torch._inductor.fx_passes.bucketing`.
//!
//! Recorded storages are forgotten along the way, for as long as they are the replaced value's: that storage is
//! gone.

use super::layout::Layout;
use crate::analysis::contradictions::contradiction;
use crate::graph::{Dim, Editor, Graph, NodeId, Out, StorageId, Tensor, Value};
use crate::ops::shape::{Inferred, Output, Size, infer};
use crate::ops::{Bound, Kind, Ops};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// A value that was replaced: its recorded result, and the node that stands for it now.
pub struct Replaced {
    /// What was recorded of the old value.
    pub old: Tensor,
    /// The new value.
    pub new: NodeId,
}

/// How often one node is looked at again.
const MOST_VISITS: u32 = 100;

/// Brings the metadata behind replaced values up to date. Returns whether some node cannot take a new layout, or might
/// give a copy now where it gave a view.
pub fn propagate(editor: &mut Editor, ops: &mut Ops, replaced: &[Replaced]) -> bool {
    for one in replaced {
        if let Some(storage) = one.old.storage {
            forget(editor, one.new, storage);
        }
    }
    let changed = |one: &&Replaced| {
        let graph = editor.graph();
        graph.tensor_of(one.new).is_some_and(|new| {
            (new.shape, new.stride, new.offset, new.dtype, new.device)
                != (one.old.shape, one.old.stride, one.old.offset, one.old.dtype, one.old.device)
        })
    };
    let roots: Vec<NodeId> = replaced.iter().filter(changed).map(|one| one.new).collect();
    if roots.is_empty() {
        return false;
    }
    // What was recorded of what lies otherwise now.
    let mut before: FxHashMap<NodeId, Tensor> =
        replaced.iter().filter(changed).map(|one| (one.new, one.old)).collect();
    let mut refused = false;
    ops.update(editor.graph());
    let mut queue: VecDeque<NodeId> = VecDeque::new();
    let mut queued: FxHashSet<NodeId> = FxHashSet::default();
    let mut visits: FxHashMap<NodeId, u32> = FxHashMap::default();
    let push = |queue: &mut VecDeque<NodeId>, queued: &mut FxHashSet<NodeId>, users: &[NodeId]| {
        queue.extend(users.iter().filter(|&&user| queued.insert(user)));
    };
    for &root in &roots {
        push(&mut queue, &mut queued, editor.users(root));
    }
    while let Some(id) = queue.pop_front() {
        queued.remove(&id);
        // A strategy may have made a cycle, along which offsets would grow for ever.
        let count = visits.entry(id).or_default();
        *count += 1;
        if *count > MOST_VISITS {
            continue;
        }
        refused |= may_copy(editor.graph(), id) || writes_gapped(editor.graph(), ops, id);
        let Ok(inferred) = infer(editor.graph(), ops, id) else {
            refused = true;
            continue;
        };
        let old = editor.graph().tensor_of(id).copied();
        let out = match contradiction(editor.graph(), ops, id) {
            Some(_) => {
                let out = moved(editor.graph_mut(), ops, id, &before);
                refused |= out.is_err();
                out.unwrap_or(None)
            }
            None => renewed(editor.graph_mut(), id, &inferred),
        };
        if let Some(out) = out {
            if let Some(old) = old {
                before.entry(id).or_insert(old);
            }
            editor.graph_mut().node_mut(id).out = out;
            push(&mut queue, &mut queued, editor.users(id));
        }
    }
    refused
}

/// Whether a node gives a view of a contiguous tensor and a copy of others, or is recorded so, and its input is another.
/// A wait hands back what it is given; what is recorded of it is what `empty_like` gives.
fn may_copy(graph: &Graph, id: NodeId) -> bool {
    const EITHER: [&str; 5] = [
        "aten.reshape.",
        "aten.reshape_as.",
        "aten.flatten.",
        "aten.contiguous.",
        "_c10d_functional.wait_tensor.",
    ];
    if !EITHER.iter().any(|name| graph.target(id).starts_with(name)) {
        return false;
    }
    is_gapped(graph, graph.arg(id, 0))
}

/// Whether a collective writes into a tensor that is not contiguous. It needs one that is, and returns it.
fn writes_gapped(graph: &Graph, ops: &Ops, id: NodeId) -> bool {
    let Some(info) = ops.call(graph, id).filter(|info| matches!(info.kind, Kind::Collective(_))) else {
        return false;
    };
    let Some(bound) =
        info.schema.as_ref().and_then(|schema| Some((schema, Bound::new(graph, id, schema).ok()?)))
    else {
        return false;
    };
    let (schema, bound) = bound;
    (0..schema.params.len()).filter(|&i| schema.params[i].write).any(|i| match bound.given(i) {
        Some(Value::List(span)) => graph.values(span).iter().any(|&value| is_gapped(graph, Some(value))),
        value => is_gapped(graph, value),
    })
}

/// Whether an argument is a tensor that is not contiguous.
fn is_gapped(graph: &Graph, value: Option<Value>) -> bool {
    match value {
        Some(Value::Node(input)) => !Layout::of(graph, input).is_some_and(|layout| layout.is_contiguous()),
        _ => false,
    }
}

/// The strides of what a view shows are others, so that it is not known what it shows now.
struct Reshaped;

/// What is recorded of a view that contradicts its operator, moved with what it is a view of.
fn moved(
    graph: &mut Graph,
    ops: &Ops,
    id: NodeId,
    before: &FxHashMap<NodeId, Tensor>,
) -> Result<Option<Out>, Reshaped> {
    let is_view = ops.call(graph, id).is_some_and(|info| matches!(info.kind, Kind::View(_)));
    let base = graph.inputs(id).first().copied().filter(|_| is_view);
    let bases = base.and_then(|base| Some((before.get(&base)?, *graph.tensor_of(base)?)));
    let (Some((old, new)), Some(&tensor)) = (bases, graph.tensor_of(id)) else { return Ok(None) };
    if old.stride != new.stride {
        return Err(Reshaped);
    }
    let own = before.get(&id).map_or(tensor.offset, |tensor| tensor.offset);
    let offset = new.offset.checked_sub(old.offset).and_then(|by| own.checked_add(by)).ok_or(Reshaped)?;
    if offset == tensor.offset {
        return Ok(None);
    }
    let moved = Tensor { offset, storage: None, storage_bytes: None, ..tensor };
    Ok(Some(Out::Tensor(graph.push_tensor(moved))))
}

/// What a node returns now, where that differs from what is recorded.
fn renewed(graph: &mut Graph, id: NodeId, inferred: &Inferred) -> Option<Out> {
    match (graph.node(id).out, inferred) {
        (out @ Out::Tensor(_), Inferred::One(output)) => renew(graph, out, output),
        (Out::Tuple(span), Inferred::Many(outputs)) if span.len() == outputs.len() => {
            let mut outs = graph.outs(span).to_vec();
            let mut changed = false;
            for (out, output) in outs.iter_mut().zip(outputs) {
                if let Some(new) = renew(graph, *out, output) {
                    (*out, changed) = (new, true);
                }
            }
            changed.then(|| Out::Tuple(graph.push_outs(&outs)))
        }
        _ => None,
    }
}

fn renew(graph: &mut Graph, out: Out, output: &Output) -> Option<Out> {
    let (Out::Tensor(id), Output::Tensor(meta)) = (out, output) else { return None };
    let mut tensor = *graph.tensor(id);
    let stride = meta.stride.as_deref().and_then(dims);
    let same_stride = stride.as_deref().is_none_or(|stride| same_strides(graph, &tensor, stride));
    let offset = meta.offset.known().unwrap_or(tensor.offset);
    if same_stride && offset == tensor.offset {
        return None;
    }
    if let Some(stride) = stride.filter(|_| !same_stride) {
        tensor.stride = graph.intern_dims(&stride);
    }
    tensor.offset = offset;
    (tensor.storage, tensor.storage_bytes) = (None, None);
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

/// Strides of dimensions of size 1 mean nothing, nor do any without elements.
fn same_strides(graph: &Graph, tensor: &Tensor, stride: &[Dim]) -> bool {
    let shape = graph.dims(tensor.shape);
    let matter = |dim: &Dim| *dim != Dim::Static(1);
    shape.contains(&Dim::Static(0))
        || graph.dims(tensor.stride).len() == stride.len()
            && shape
                .iter()
                .zip(graph.dims(tensor.stride).iter().zip(stride))
                .all(|(size, (old, new))| !matter(size) || old == new)
}

/// Drops a recorded storage from the nodes behind `root` that share it.
fn forget(editor: &mut Editor, root: NodeId, storage: StorageId) {
    let mut stack = editor.users(root).to_vec();
    while let Some(id) = stack.pop() {
        let graph = editor.graph_mut();
        let outs = match graph.node(id).out {
            out @ Out::Tensor(_) => vec![out],
            Out::Tuple(span) => graph.outs(span).to_vec(),
            _ => continue,
        };
        let mut found = false;
        for out in outs {
            if let Out::Tensor(tensor) = out
                && graph.tensor(tensor).storage == Some(storage)
            {
                let tensor = graph.tensor_mut(tensor);
                (tensor.storage, tensor.storage_bytes) = (None, None);
                found = true;
            }
        }
        if found {
            stack.extend_from_slice(editor.users(id));
        }
    }
}
