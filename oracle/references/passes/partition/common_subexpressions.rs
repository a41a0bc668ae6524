//! Merging of equal nodes: the first one in graph order stays, later ones are rewired to it.
//!
//! Two nodes are equal if target, arguments (after merging) with their structure and types, context (stream, memory
//! pool), region between writes, recorded sizes and dtypes, and a key of the caller agree. (Of equal calls with other sizes
//! one record is not true, and readers may rely on either.) Floats are compared by their bits. Never merged are
//! nodes with effects, draws of random numbers, uninitialised memory (`aten.empty`), values that share storage with an
//! output, values that are written in place, buffers that a functionalized kernel writes to, and numbers that only
//! running gives (unbacked symbols).
//!
//! PyTorch 2.15 merges three of these (tests/peer/merging.py runs it): draws that an earlier partition wrapped, since
//! the operator `run_and_save_rng_state` is not random to it; of two equal values, one that is written in place after
//! both were computed; and unbacked numbers, since it looks for a bare symbol where a `SymInt` is recorded.
//!
//! Source: `torch._functorch.compile_utils.fx_graph_cse` of PyTorch 2.15. There the tags of dropped nodes are
//! lost. Here what stays is saved if a dropped copy must be and it need not be computed again. Where a first partition
//! is replayed, tags are statements about the value, not the copy: the node that stays must be computed again if any
//! copy must, and must be saved if any copy must. Copies of which one must be saved and the other computed again are not
//! merged, unless they communicate: then it is computed again.

use super::joint::{Joint, Role, nodes_of};
use super::marks::{Recompute, join_must_save, retag};
use super::min_cut::fusion::written;
use super::strategy::Strategy;
use crate::graph::{Dim, Graph, NodeId, Op, Out, Span, Value};
use fixedbitset::FixedBitSet;
use rustc_hash::{FxHashMap, FxHashSet};

/// What no node is merged with: found once for a graph.
pub struct Distinct(FixedBitSet);

impl Distinct {
    /// Finds the nodes of `joint` that keep their own value.
    pub fn of(joint: &Joint) -> Distinct {
        let mut distinct = FixedBitSet::with_capacity(joint.graph.len());
        let storages = super::storage::storages(joint);
        let outputs = nodes_of(&joint.forward_outputs).chain(nodes_of(&joint.backward_outputs));
        let mut kept: Vec<u32> = outputs.filter_map(|id| storages[id.index()]).collect();
        let of_inputs: FxHashSet<u32> = joint
            .ids()
            .filter(|&id| joint.graph.node(id).op == Op::Placeholder)
            .filter_map(|id| storages[id.index()])
            .collect();
        let written_to =
            joint.ids().filter(|&id| joint.target(id).mutable).filter_map(|id| storages[id.index()]);
        kept.extend(written_to.filter(|storage| !of_inputs.contains(storage)));
        kept.sort_unstable();
        for id in joint.ids() {
            if storages[id.index()].is_some_and(|storage| kept.binary_search(&storage).is_ok()) {
                distinct.insert(id.index());
            }
            if joint.target(id).wrapper.is_some() {
                written(joint, id).iter().for_each(|base| distinct.insert(base.index()));
            }
        }
        Distinct(distinct)
    }

    /// Whether `id` keeps its own value.
    pub fn contains(&self, id: NodeId) -> bool {
        self.0.contains(id.index())
    }
}

/// Whether the reference may merge `id` with an equal node.
pub fn mergeable(joint: &Joint, distinct: &Distinct, id: NodeId) -> bool {
    let unbacked = match joint.graph.node(id).out {
        Out::SymInt(expr) | Out::SymBool(expr) => {
            joint.symbol(joint.graph.expr(expr).text).is_some_and(|symbol| symbol.unbacked)
        }
        _ => false,
    };
    joint.role(id) == Role::Call
        && !joint.impure(id, true)
        && !joint.draws(id)
        && !joint.target(id).sets.never_merged
        && !distinct.contains(id)
        && !unbacked
}

/// What a node is recognised by: words that are equal for equal nodes.
pub type Key = Vec<u64>;

/// The reference's key of a node; `representative` gives the node that each input was merged into.
pub fn key(joint: &Joint, representative: &[NodeId], id: NodeId) -> Key {
    let graph = &joint.graph;
    let node = graph.node(id);
    let custom = joint.marks.custom(id);
    let mut key = vec![u64::from(node.target.0), custom.stream as u64];
    for part in [custom.mempool.0, custom.mempool.1] {
        key.extend([u64::from(part.is_some()), part.unwrap_or(0) as u64]);
    }
    for span in [node.args, node.kwargs] {
        push_values(graph, representative, span, &mut key);
    }
    push_sizes(graph, node.out, &mut key);
    key
}

/// The recorded sizes and dtypes of a result.
fn push_sizes(graph: &Graph, out: Out, key: &mut Key) {
    match out {
        Out::Tensor(tensor) => {
            let tensor = graph.tensor(tensor);
            let dims = graph.dims(tensor.shape);
            key.extend([1, tensor.dtype as u64, dims.len() as u64]);
            key.extend(dims.iter().flat_map(|dim| match dim {
                Dim::Static(size) => [0, *size as u64],
                Dim::Symbolic(expr) => [1, graph.expr(*expr).text.index() as u64],
            }));
        }
        Out::Tuple(items) | Out::Dict(items) => {
            let items = graph.outs(items);
            key.extend([2, items.len() as u64]);
            items.iter().for_each(|&item| push_sizes(graph, item, key));
        }
        _ => key.push(0),
    }
}

fn push_values(graph: &Graph, representative: &[NodeId], span: Span, key: &mut Key) {
    key.push(span.len() as u64);
    for &value in graph.values(span) {
        let (kind, content) = match value {
            Value::None => (0, 0),
            Value::Bool(value) => (1, u64::from(value)),
            Value::Int(value) => (2, value as u64),
            Value::Float(value) => (3, value.to_bits()),
            Value::Str(text) => (4, text.index() as u64),
            Value::Node(id) => (5, u64::from(representative[id.index()].0)),
            Value::Dangling(text) => (6, text.index() as u64),
            Value::Dtype(dtype) => (7, dtype as u64),
            Value::Device(text) => (8, text.index() as u64),
            Value::MemoryFormat(text) => (9, text.index() as u64),
            Value::Layout(text) => (10, text.index() as u64),
            Value::Symbolic(expr) => (11, u64::from(expr.0)),
            Value::Function(text) => (12, text.index() as u64),
            Value::List(_) => (13, 0),
            Value::Complex(_) => (14, 0),
            Value::Slice(_) => (15, 0),
            Value::Dict(_) => (16, 0),
        };
        key.extend([kind, content]);
        if let Value::List(inner) | Value::Complex(inner) | Value::Slice(inner) | Value::Dict(inner) = value {
            push_values(graph, representative, inner, key);
        }
    }
}

/// The joint graph with equal nodes merged; `None` if there are none. `extra` is the caller's key; `joins`: whether
/// tags of dropped copies are joined to what stays.
pub fn merge(
    joint: &Joint,
    strategy: &dyn Strategy,
    extra: impl Fn(NodeId) -> bool,
    joins: bool,
) -> Option<Graph> {
    let distinct = Distinct::of(joint);
    let mut representative: Vec<NodeId> = joint.ids().collect();
    let mut first: FxHashMap<(Key, bool), (u32, NodeId)> = FxHashMap::default();
    let mut recompute: Vec<Option<Recompute>> = joint.ids().map(|id| joint.tags(id).recompute).collect();
    let mut region = 0;
    for id in joint.ids() {
        region += u32::from(joint.target(id).mutable);
        if !strategy.mergeable(joint, &distinct, id) {
            continue;
        }
        let slot =
            first.entry((strategy.merge_key(joint, &representative, id), extra(id))).or_insert((region, id));
        if slot.0 == region {
            let (kept, own) = (&mut recompute[slot.1.index()], joint.tags(id).recompute);
            let contrary = matches!(
                (*kept, own),
                (Some(Recompute::MustSave), Some(Recompute::MustRecompute))
                    | (Some(Recompute::MustRecompute), Some(Recompute::MustSave))
            );
            if joins && contrary && !joint.target(id).collective {
                continue;
            }
            match own {
                Some(Recompute::MustRecompute) if joins => *kept = own,
                Some(Recompute::MustSave) if *kept != Some(Recompute::MustRecompute) => *kept = own,
                _ => {}
            }
            representative[id.index()] = slot.1;
        } else {
            *slot = (region, id);
        }
    }
    let stays: Vec<NodeId> = joint.ids().filter(|id| representative[id.index()] == *id).collect();
    if stays.len() == joint.graph.len() {
        return None;
    }
    let mut graph = joint.graph.clone();
    for id in joint.ids().filter(|id| representative[id.index()] != *id) {
        let stays = representative[id.index()];
        if joins {
            join_tags(joint, &mut graph, id, stays);
        }
        if recompute[stays.index()] == Some(Recompute::MustSave) {
            retag(&mut graph, stays, |graph, tags| {
                tags.recompute = Some(graph.intern(Recompute::MustSave.name()));
            });
        }
    }
    graph.map_references(|id| representative.get(id.index()).copied().unwrap_or(id));
    Some(graph.reordered(&stays))
}

/// Joins the tags of a dropped copy to those of the node that stays.
fn join_tags(joint: &Joint, graph: &mut Graph, copy: NodeId, stays: NodeId) {
    if joint.tags(copy).recompute == Some(Recompute::MustRecompute) {
        let region = joint.tags(copy).region;
        retag(graph, stays, |graph, tags| {
            tags.recompute = Some(graph.intern(Recompute::MustRecompute.name()));
            tags.ac_graph_id = tags.ac_graph_id.or(region);
        });
    }
    let custom = joint.marks.custom(copy);
    if custom.must_save {
        join_must_save(graph, stays, custom);
    }
}
