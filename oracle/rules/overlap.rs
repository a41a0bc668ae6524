//! Writes in place that PyTorch refuses because of where they lie: over elements that share memory, or over part of an
//! operand. Source: `aten/src/ATen/MemoryOverlap.cpp`, as `TensorIterator` asks it.
//!
//! `masked_fill_`, and fills by a number, are let pass there too; memory that is not dense is not compared.

use crate::analysis::storages::{StorageIndex, Storages};
use crate::graph::{Dim, Graph, NodeId, Value};
use crate::ops::{Bound, Kind, Move, OpInfo, Ops};

/// The calls that raise, in list order, and why. What has symbolic sizes, or lies no one knows where, is let pass.
pub(super) fn refused(graph: &Graph, ops: &Ops, storages: &Storages) -> Vec<(NodeId, String)> {
    let one = |id| Some((id, refusal(graph, ops.call(graph, id)?, storages, id)?));
    graph.ids().filter_map(one).collect()
}

fn refusal(graph: &Graph, info: &OpInfo, storages: &Storages, id: NodeId) -> Option<String> {
    let is_copy = info.kind == Kind::Move(Move::Copy);
    if !(is_copy || info.kind.is_elementwise()) || info.kind == Kind::MaskedFill {
        return None;
    }
    let schema = info.schema.as_ref()?;
    let target = schema.params.iter().position(|param| param.write && !param.keyword_only)?;
    let bound = Bound::new(graph, id, schema).ok()?;
    let node = |index| match bound.given(index) {
        Some(Value::Node(node)) => Some(node),
        _ => None,
    };
    let into = node(target)?;
    let window = Window::of(graph, storages, into)?;
    let others: Vec<(NodeId, Window)> = (0..schema.params.len())
        .filter(|&index| index != target)
        .filter_map(|index| Some((node(index)?, Window::of(graph, storages, node(index)?)?)))
        .filter(|(_, of)| of.storage == window.storage)
        .collect();
    // PyTorch leaves a copy of a tensor onto itself out.
    let is_own = is_copy && others.iter().any(|(_, of)| of.start == window.start);
    let name = graph.name(into);
    if !window.is_dense && window.repeats && !is_own {
        return Some(format!("elements of {name} share memory, and it is written in place"));
    }
    let partly = |of: &Window| {
        let is_whole = (of.start, of.end, &of.strides) == (window.start, window.end, &window.strides);
        window.is_dense && of.is_dense && of.start < window.end && window.start < of.end && !is_whole
    };
    let (other, _) = others.iter().find(|(_, of)| partly(of))?;
    Some(format!("{name} is written in place, and partly shares memory with {}", graph.name(*other)))
}

/// Where a tensor with elements lies: bytes of a storage.
struct Window {
    storage: StorageIndex,
    start: i64,
    /// The end of as many bytes as it has elements for.
    end: i64,
    /// Those of dimensions of several elements.
    strides: Vec<i64>,
    /// Whether its elements lie without gaps, in any order of dimensions.
    is_dense: bool,
    /// Whether a dimension of several elements has stride 0.
    repeats: bool,
}

impl Window {
    fn of(graph: &Graph, storages: &Storages, node: NodeId) -> Option<Window> {
        let storage = storages.storage_of(node)?;
        let tensor = graph.tensor_of(node)?;
        let known = |dims: &[Dim]| {
            let sizes = dims.iter().map(|dim| match dim {
                Dim::Static(n) => Some(*n),
                Dim::Symbolic(_) => None,
            });
            sizes.collect::<Option<Vec<i64>>>()
        };
        let (sizes, strides) = (known(graph.dims(tensor.shape))?, known(graph.dims(tensor.stride))?);
        if sizes.contains(&0) || sizes.len() != strides.len() {
            return None;
        }
        let mut large: Vec<(i64, i64)> = strides.into_iter().zip(sizes).filter(|&(_, n)| n > 1).collect();
        let strides = large.iter().map(|&(stride, _)| stride).collect();
        large.sort_unstable();
        let mut count = 1i64;
        let mut is_dense = true;
        for &(stride, size) in &large {
            is_dense &= stride == count;
            count = count.checked_mul(size)?;
        }
        let itemsize = tensor.dtype.itemsize() as i64;
        let start = tensor.offset.checked_mul(itemsize)?;
        let end = start.checked_add(count.checked_mul(itemsize)?)?;
        let repeats = large.first().is_some_and(|&(stride, _)| stride == 0);
        Some(Window { storage, start, end, strides, is_dense, repeats })
    }
}
