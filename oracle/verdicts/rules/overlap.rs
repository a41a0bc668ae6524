//! Writes over elements that share memory, or over part of an operand.
//!
//! # Those that PyTorch refuses
//!
//! Source: `aten/src/ATen/MemoryOverlap.cpp`, as `TensorIterator` asks it: `masked_fill_`, fills by a number and
//! reductions are let pass there too; memory that is not dense is not compared. What writes by index (`scatter_`,
//! `index_put_`, ...) refuses operands that share any memory with what it writes, the same window too.
//!
//! # Those that nobody refuses: `rewrite/overlapping-writes`
//!
//! PyTorch looks for strides of 0 alone, and not in every operator. Where elements share memory in another way
//! (windows of `as_strided` or `unfold`), which of two writes stays depends on the order in which a kernel writes.
//! Strides are those recorded. Fills, and copies of one number, write the same everywhere, and are let pass. Of
//! symbolic sizes only a stride of 0 is seen.
//!
//! Nor does PyTorch look, in most operators, whether what is written (`out=`, members of lists, what a custom operator
//! writes) is read as another argument. A product of matrices into one of its factors gives other numbers; what other
//! operators make of it is not known.

use super::{AnalyzedGraph, Checked, Code, Evidence, Stage};
use crate::analysis::storages::{Sharing, StorageIndex, Storages};
use crate::graph::{Dim, DimsId, Graph, NodeId, layout};
use crate::ops::{Bound, Fill, Kind, Matmul, Move, OpInfo, Ops, Random, Schema};
use rustc_hash::FxHashMap;

/// The calls that raise, in list order, and why. What has symbolic sizes, or lies no one knows where, is let pass.
pub(super) fn refused(graph: &Graph, ops: &Ops, storages: &Storages) -> Vec<(NodeId, String)> {
    let one = |id| Some((id, refusal(graph, ops.call(graph, id)?, storages, id)?));
    graph.ids().filter_map(one).collect()
}

/// Whether an operator looks for elements that share memory in what it writes.
fn looks_for_shared_elements(info: &OpInfo, schema: &Schema, bound: &Bound) -> bool {
    match info.kind {
        Kind::MaskedFill => false,
        Kind::Move(movement) => matches!(
            movement,
            Move::Copy
                | Move::ForeachCopy
                | Move::Clone
                | Move::Cat
                | Move::Stack
                | Move::IndexSelect
                | Move::Gather
                | Move::Scatter
                | Move::ScatterAdd
                | Move::SplitWithSizesCopy
        ),
        Kind::Fill(Fill::Full) => bound.node("value").is_some(),
        Kind::Random(random) => random != Random::Attention,
        Kind::Matmul(product) => matches!(product, Matmul::Mm | Matmul::Addmm),
        Kind::Opaque => {
            schema.namespace == "aten"
                && schema.name.starts_with("_foreach_")
                && schema.name != "_foreach_zero_"
        }
        kind => kind.is_elementwise() || kind == Kind::Cumsum,
    }
}

/// What may share no memory at all with the tensor that it writes by index.
const BY_INDEX: [&str; 8] = [
    "_index_put_impl_",
    "index_add_",
    "index_copy_",
    "index_fill_",
    "index_put_",
    "scatter_",
    "scatter_add_",
    "scatter_reduce_",
];

fn refusal(graph: &Graph, info: &OpInfo, storages: &Storages, id: NodeId) -> Option<String> {
    let schema = info.schema.as_ref().filter(|schema| schema.mutated().next().is_some())?;
    let bound = Bound::new(graph, id, schema).ok()?;
    if schema.namespace == "_c10d_functional" && schema.name == "all_reduce_" {
        let into = bound.node("input").filter(|&into| has_gaps(graph, into))?;
        return Some(format!(
            "{} is reduced in place, and its elements do not lie side by side: NCCL refuses it, gloo reduces other bytes",
            graph.name(into)
        ));
    }
    let by_index = BY_INDEX.contains(&schema.name.as_str()) && schema.namespace == "aten";
    if !by_index && !looks_for_shared_elements(info, schema, &bound) {
        return None;
    }
    // PyTorch leaves a copy of a tensor onto itself out.
    let is_copy = matches!(info.kind, Kind::Move(Move::Copy | Move::ForeachCopy));
    let read = schema.params.iter().filter(|param| !param.write).flat_map(|param| bound.nodes(&param.name));
    let read: Vec<Window> = read.filter_map(|node| Window::of(graph, storages, node)).collect();
    let is_own = |window: &Window| {
        let is_same = |of: &Window| (of.storage, of.start) == (window.storage, window.start);
        is_copy && read.iter().any(is_same)
    };
    let written = schema.params.iter().filter(|param| param.write).flat_map(|param| bound.nodes(&param.name));
    for into in written {
        let Some(window) = Window::of(graph, storages, into) else { continue };
        let looks = looks_for_shared_elements(info, schema, &bound);
        if looks && !window.is_dense && window.repeats && !is_own(&window) {
            return Some(format!(
                "elements of {} share memory, and it is written in place",
                graph.name(into)
            ));
        }
    }
    if !(is_copy || by_index || info.kind.is_elementwise()) {
        return None;
    }
    // By a mask one number is filled in.
    let is_number = |node| graph.tensor_of(node).is_some_and(|tensor| graph.numel(tensor) == Some(1));
    schema.params.iter().filter(|param| param.write).find_map(|target| {
        let into = bound.node(&target.name)?;
        let window = Window::of(graph, storages, into)?;
        let is_let_pass = |of: &Window| of.is_whole(&window) && !by_index;
        let meets = |of: &Window| window.is_dense && of.is_dense && of.meets(&window) && !is_let_pass(of);
        let others = schema.params.iter().filter(|param| param.name != target.name);
        let (other, of) = others
            .flat_map(|param| bound.nodes(&param.name))
            .filter(|&node| !(by_index && is_number(node)))
            .filter_map(|node| Some((node, Window::of(graph, storages, node)?)))
            .find(|(_, of)| meets(of))?;
        let shares = if of.is_whole(&window) { "shares" } else { "partly shares" };
        Some(format!(
            "{} is written in place, and {shares} memory with {}",
            graph.name(into),
            graph.name(other)
        ))
    })
}

/// Sizes and strides of a tensor, as many of one as of the other.
fn layout_of(graph: &Graph, node: NodeId) -> Option<(Vec<i64>, Vec<i64>)> {
    let tensor = graph.tensor_of(node)?;
    let (sizes, strides) = graph.sizes(tensor.shape).zip(graph.sizes(tensor.stride))?;
    (sizes.len() == strides.len()).then_some((sizes, strides))
}

/// Whether a tensor leaves gaps between its elements, or has several of them in one place.
fn has_gaps(graph: &Graph, node: NodeId) -> bool {
    layout_of(graph, node).is_some_and(|(sizes, strides)| !layout::is_dense(&sizes, &strides))
}

/// The strides of the dimensions of several elements.
fn strides_of_many(sizes: &[i64], strides: &[i64]) -> Vec<i64> {
    strides.iter().zip(sizes).filter(|&(_, &size)| size > 1).map(|(&stride, _)| stride).collect()
}

/// The same, where the elements do not lie row by row.
pub(super) fn strides_in_memory(graph: &Graph, node: NodeId) -> Option<Vec<i64>> {
    let (sizes, strides) = layout_of(graph, node)?;
    (!layout::is_contiguous(&sizes, &strides)).then(|| strides_of_many(&sizes, &strides))
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
        let (sizes, strides) = layout_of(graph, node).filter(|(sizes, _)| !sizes.contains(&0))?;
        let count = layout::numel(&sizes)?;
        let is_dense = layout::is_dense(&sizes, &strides);
        let strides = strides_of_many(&sizes, &strides);
        let itemsize = tensor.dtype.itemsize() as i64;
        let start = tensor.offset.checked_mul(itemsize)?;
        let end = start.checked_add(count.checked_mul(itemsize)?)?;
        let repeats = strides.iter().min() == Some(&0);
        Some(Window { storage, start, end, strides, is_dense, repeats })
    }

    fn is_whole(&self, other: &Window) -> bool {
        let of = |window: &Window| (window.storage, window.start, window.end);
        of(self) == of(other) && self.strides == other.strides
    }

    fn meets(&self, other: &Window) -> bool {
        self.storage == other.storage && self.start < other.end && other.start < self.end
    }
}

/// Elements of a tensor that are looked at one by one, to see whether two share memory.
const ELEMENTS_LOOKED_AT: i64 = 1 << 16;

/// What is known of layouts (sizes and strides) of a graph: whether two elements share memory.
type Layouts = FxHashMap<(DimsId, DimsId), Option<bool>>;

/// Whether two elements of a layout share memory; `None` where that is not known.
fn elements_share(graph: &Graph, (shape, stride): (DimsId, DimsId)) -> Option<bool> {
    let (sizes, strides) = (graph.sizes(shape), graph.sizes(stride));
    let (Some(sizes), Some(strides)) = (sizes, strides) else {
        let dims = graph.dims(shape).iter().zip(graph.dims(stride));
        let mut repeated = dims.filter(|(_, stride)| **stride == Dim::Static(0));
        return repeated.all(|(size, _)| *size == Dim::Static(1)).then_some(false);
    };
    if sizes.contains(&0) {
        return Some(false);
    }
    let mut dims: Vec<(i64, i64)> = strides.into_iter().zip(sizes).filter(|&(_, size)| size > 1).collect();
    dims.sort_unstable();
    // Each dimension steps over all that the ones inside it reach.
    let mut reach = Some(0i64);
    let is_apart = dims.iter().all(|&(stride, size)| {
        let apart = reach.is_some_and(|reach| stride > reach);
        reach = (size - 1).checked_mul(stride).and_then(|own| reach?.checked_add(own));
        apart
    });
    if is_apart || dims.first().is_some_and(|&(stride, _)| stride <= 0) {
        return Some(!is_apart);
    }
    let count = dims.iter().try_fold(1i64, |count, &(_, size)| count.checked_mul(size));
    count.filter(|&count| count <= ELEMENTS_LOOKED_AT)?;
    let mut places = vec![0i64];
    for (stride, size) in dims {
        places = places
            .iter()
            .flat_map(|&at| (0..size).map(move |i| at.saturating_add(i.saturating_mul(stride))))
            .collect();
    }
    let elements = places.len();
    places.sort_unstable();
    places.dedup();
    Some(places.len() < elements)
}

/// What a call writes through tensors whose elements share memory: the tensor, and whether they certainly do.
fn written_over(side: &AnalyzedGraph, id: NodeId, known: &mut Layouts) -> Vec<(NodeId, bool)> {
    let Some(info) = side.ops.call(side.graph, id) else { return Vec::new() };
    let Some(schema) = info.schema.as_ref().filter(|schema| schema.mutated().next().is_some()) else {
        return Vec::new();
    };
    let Ok(bound) = Bound::new(side.graph, id, schema) else { return Vec::new() };
    // What writes one number everywhere leaves the same, whichever write comes last.
    let is_number = |name: &str| {
        let node = bound.node(name);
        node.and_then(|node| side.graph.tensor_of(node)).is_some_and(|of| side.graph.numel(of) == Some(1))
    };
    let is_one = match info.kind {
        Kind::Fill(_) => true,
        Kind::Move(Move::Copy) => is_number("src"),
        _ => schema.name == "_foreach_zero_",
    };
    if is_one {
        return Vec::new();
    }
    let written = schema.params.iter().filter(|param| param.write).flat_map(|param| bound.nodes(&param.name));
    let share = |node: NodeId| {
        let layout = side.graph.tensor_of(node).map(|tensor| (tensor.shape, tensor.stride))?;
        match known.entry(layout).or_insert_with(|| elements_share(side.graph, layout)) {
            Some(false) => None,
            share => Some((node, share.is_some())),
        }
    };
    written.filter_map(share).collect()
}

/// What a call writes while it reads it as another argument, and whether that certainly changes what comes out. Whoever
/// takes corresponding elements may write where it reads; `refused` says which of these PyTorch refuses.
fn written_while_read(side: &AnalyzedGraph, id: NodeId) -> Option<(NodeId, NodeId, bool)> {
    let (graph, storages) = (side.graph, side.storages());
    let info = side.ops.call(graph, id)?;
    let schema = info.schema.as_ref().filter(|schema| schema.mutated().next().is_some())?;
    let is_left_out = match info.kind {
        // A gather in place sends what lies in the slot that it fills.
        Kind::Collective(_) | Kind::Wait | Kind::Resize | Kind::Sync(_) | Kind::Effect => true,
        Kind::Fill(_) | Kind::MaskedFill | Kind::Move(Move::Copy | Move::Clone) => true,
        kind => kind.is_elementwise() || BY_INDEX.contains(&schema.name.as_str()),
    };
    if is_left_out {
        return None;
    }
    let bound = Bound::new(graph, id, schema).ok()?;
    let is_foreach = schema.namespace == "aten" && schema.name.starts_with("_foreach_");
    let is_certain = is_foreach
        || match info.kind {
            Kind::Matmul(_) => true,
            Kind::Move(movement) => matches!(
                movement,
                Move::Cat
                    | Move::Stack
                    | Move::IndexSelect
                    | Move::Gather
                    | Move::ChunkCat
                    | Move::SplitWithSizesCopy
            ),
            _ => false,
        };
    // A member goes with the member in its place, a bias is added element by element, and sums run over what was given.
    let are_elements = |param: usize, (into, read): (usize, usize)| match info.kind {
        _ if is_foreach => into == read,
        Kind::Matmul(_) => param == 0 && schema.name.contains("add"),
        kind => kind == Kind::Cumsum,
    };
    let is_same = |a, b| {
        let windows = Window::of(graph, storages, a).zip(Window::of(graph, storages, b));
        windows.is_some_and(|(a, b)| a.is_whole(&b))
    };
    let mut doubt = None;
    for written in schema.params.iter().filter(|param| param.write) {
        for (at, into) in bound.nodes(&written.name).into_iter().enumerate() {
            for (index, param) in schema.params.iter().enumerate().filter(|(_, param)| !param.write) {
                for (place, read) in bound.nodes(&param.name).into_iter().enumerate() {
                    let sharing = storages.alias(into, read);
                    if sharing == Sharing::No || are_elements(index, (at, place)) && is_same(into, read) {
                        continue;
                    }
                    // Members come one after the other, or beside each other on a GPU.
                    let is_later = !is_foreach || place >= at;
                    if is_certain && sharing == Sharing::Must && is_later {
                        return Some((into, read, true));
                    }
                    doubt.get_or_insert((into, read, false));
                }
            }
        }
    }
    doubt
}

/// No call writes through a tensor whose elements share memory, nor into what it reads, where it did not before.
pub(super) fn written_apart(evidence: &Evidence) -> Checked {
    let (before, after) = (&evidence.before, &evidence.after);
    let (mut findings, mut doubt) = (Vec::new(), None);
    let (mut of_before, mut of_after) = (Layouts::default(), Layouts::default());
    for id in after.graph.ids() {
        let twin = evidence.correspondence.before_of[id.index()];
        let was_read = |certain: bool| {
            let was = twin.and_then(|twin| written_while_read(before, twin));
            was.is_some_and(|(_, _, was_certain)| was_certain || !certain)
        };
        if let Some((into, read, certain)) = written_while_read(after, id).filter(|found| !was_read(found.2))
        {
            let [name, into_name, read_name] = [id, into, read].map(|id| after.graph.name(id));
            if certain {
                let title = format!("{name} writes into {into_name} while it reads {read_name}");
                let finding = evidence.finding("rewrite/overlapping-writes", Stage::After, title);
                findings.push(
                    finding
                        .after_nodes(evidence, [id, into, read])
                        .expected("what a call writes shares no memory with what else it is given")
                        .observed(format!("{into_name} and {read_name} share memory")),
                );
                continue;
            }
            let why = format!(
                "{name} writes into {into_name} and reads {read_name}, which may be the same memory: what it gives then is \
                 not known"
            );
            doubt.get_or_insert(Code::MayShareMemory.because(why));
        }
        let over = written_over(after, id, &mut of_after);
        if over.is_empty() {
            continue;
        }
        if twin.is_some_and(|twin| !written_over(before, twin, &mut of_before).is_empty()) {
            continue;
        }
        let name = |id: NodeId| after.graph.name(id);
        let Some(&(into, _)) = over.iter().find(|(_, certain)| *certain) else {
            let why =
                format!("{} writes through {}, whose elements may share memory", name(id), name(over[0].0));
            doubt.get_or_insert(Code::MayShareMemory.because(why));
            continue;
        };
        let tensor = after.graph.tensor_of(into);
        let layout = tensor
            .and_then(|tensor| Some((after.graph.sizes(tensor.shape)?, after.graph.sizes(tensor.stride)?)));
        let layout = layout.map_or(String::new(), |(sizes, strides)| {
            format!("sizes {sizes:?}, strides {strides:?}: two elements lie in one place")
        });
        findings.push(
            evidence
                .finding(
                    "rewrite/overlapping-writes",
                    Stage::After,
                    format!("{} writes through {}, whose elements share memory", name(id), name(into)),
                )
                .after_nodes(evidence, [id, into])
                .expected("each element that is written has memory of its own")
                .observed(layout),
        );
    }
    Checked::found(findings, doubt)
}
