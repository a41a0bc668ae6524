//! Wrong edits of what is recorded about results: later passes and the allocator believe it.
//!
//! Only results of operators whose record follows from their operands are changed, and only where the graph before the
//! pass records the same.

use super::Places;
use super::reading::{Part, Reading};
use crate::graph::{Dim, Dtype, Graph, NodeId, Op, Out, StorageId, Tensor};
use crate::ops::{Fill, Kind};

/// Calls with a twin whose result is one tensor that follows from the operands.
fn recorded<'r>(reading: &'r Reading) -> impl Iterator<Item = (NodeId, Tensor)> + 'r {
    reading.calls().filter_map(|(id, info)| {
        let follows = !matches!(
            info.kind,
            Kind::Opaque | Kind::Unknown | Kind::Effect | Kind::Sync(_) | Kind::Random(_) | Kind::GetItem
        );
        let tensor = *reading.graph.tensor_of(id)?;
        (follows && reading.twins[id.index()].is_some() && reading.is_live(id)).then_some((id, tensor))
    })
}

fn change(
    places: &mut Places,
    graph: &Graph,
    id: NodeId,
    what: String,
    change: impl Fn(&mut Graph, &mut Tensor) + Send + Sync + 'static,
) {
    let what = format!("{}: {what}", graph.name(id));
    places.add(id, what, move |editor| {
        let Some(&old) = editor.graph().tensor_of(id) else { return };
        let mut tensor = old;
        change(editor.graph_mut(), &mut tensor);
        let new = editor.graph_mut().push_tensor(tensor);
        editor.graph_mut().node_mut(id).out = Out::Tensor(new);
    });
}

/// One size is larger by one.
pub(super) fn shape(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (id, tensor) in recorded(reading) {
        let Some(sizes) = graph.sizes(tensor.shape).filter(|sizes| !sizes.is_empty()) else { continue };
        change(
            &mut places,
            graph,
            id,
            format!("size {} for {}", sizes[0] + 1, sizes[0]),
            move |graph, tensor| {
                let mut dims = graph.dims(tensor.shape).to_vec();
                dims[0] = Dim::Static(sizes[0] + 1);
                tensor.shape = graph.intern_dims(&dims);
            },
        );
    }
    places
}

/// One stride is larger by one; in backward that of an input too.
pub(super) fn stride(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    let inputs = graph.ids().filter(|&id| {
        reading.part == Part::Backward && graph.node(id).op == Op::Placeholder && reading.is_live(id)
    });
    let inputs = inputs.filter_map(|id| Some((id, *graph.tensor_of(id)?)));
    for (id, tensor) in recorded(reading).chain(inputs) {
        let (Some(sizes), Some(strides)) = (graph.sizes(tensor.shape), graph.sizes(tensor.stride)) else {
            continue;
        };
        let Some(dim) = sizes.iter().position(|&size| size > 1) else { continue };
        if graph.numel(&tensor).is_none_or(|count| count == 0) || dim >= strides.len() {
            continue;
        }
        let what = format!("stride {} for {} of dimension {dim}", strides[dim] + 1, strides[dim]);
        change(&mut places, graph, id, what, move |graph, tensor| {
            let mut strides = strides.clone();
            strides[dim] += 1;
            tensor.stride = graph.intern_sizes(&strides);
        });
    }
    places
}

/// Another dtype.
pub(super) fn dtype(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (id, tensor) in recorded(reading) {
        let other = match tensor.dtype {
            Dtype::F32 => Dtype::BF16,
            Dtype::BF16 | Dtype::F16 | Dtype::F64 => Dtype::F32,
            Dtype::I64 => Dtype::I32,
            _ => continue,
        };
        let what = format!("{} for {}", other.name(), tensor.dtype.name());
        change(&mut places, graph, id, what, move |_, tensor| tensor.dtype = other);
    }
    places
}

/// A new tensor is recorded on the storage of another new tensor that lives at the same time.
pub(super) fn storage(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    let mut last: Option<(NodeId, StorageId)> = None;
    for (id, tensor) in recorded(reading) {
        let Some(storage) = reading.storages.storage_of(id) else { continue };
        let allocates = reading.storages.storage(storage).by == id;
        let plain = !reading.call(id).is_some_and(|info| info.kind == Kind::Fill(Fill::Empty));
        let (true, true, Some(own)) = (allocates, plain && reading.is_settled(id), tensor.storage) else {
            continue;
        };
        if let Some((other, theirs)) = last.filter(|&(_, theirs)| theirs != own) {
            // An operand of this very call is alive when its result is made.
            let what = format!("the storage of {}", graph.name(other));
            change(&mut places, graph, id, what, move |_, tensor| tensor.storage = Some(theirs));
        }
        last = Some((id, own));
    }
    places
}

/// A view is recorded one element further.
pub(super) fn offset(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (id, tensor) in recorded(reading).filter(|(_, tensor)| tensor.storage.is_some()) {
        if !reading.call(id).is_some_and(|info| info.is_view() && matches!(info.kind, Kind::View(_))) {
            continue;
        }
        let what = format!("offset {} for {}", tensor.offset + 1, tensor.offset);
        change(&mut places, graph, id, what, move |_, tensor| tensor.offset += 1);
    }
    places
}
