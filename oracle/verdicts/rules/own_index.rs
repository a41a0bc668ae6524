//! The graph of one rank that holds its own index, as the other ranks would hold it.
//!
//! A rank's index stands in its graph where it gathers into a buffer that holds its input: the slot of the input, cut out
//! of the buffer; and where an operator that packs a bucket is told which slot to fill. Where the graphs of the other ranks
//! were not given, they are taken to be this one, with the index of their own rank there. Then all ranks can be executed,
//! and what differs on the own rank is a fault of this graph, unless a pass made something else for the others.
//!
//! Anything else that follows from the index would be wrong on the other ranks. So a graph is followed only where each
//! buffer has one slot, all that is written to the buffer before the gather is written through it, and one gather uses it.
//!
//! # What it does not do
//!
//! What is equal so is no proof for the ranks that were not given. Graphs before that hold an index are not followed.

use super::{AnalyzedGraph, Evidence};
use crate::analysis::{CollectiveCall, GroupName, storages::StorageIndex};
use crate::graph::{Editor, Graph, NodeId, Value, World};
use crate::ops::{Bound, Collective, Kind, Move};

/// The operator that cuts a slot out of a buffer.
const SLICE: &str = "aten.slice.Tensor";

/// A slot in a buffer that one gather fills.
struct Slot<'s> {
    group: &'s str,
    /// The call that cuts it out.
    slice: NodeId,
    /// Elements of a slot, and its number in the buffer: the own index.
    len: i64,
    index: i64,
    /// The call that packs the buffer and is told the index, with the place of that argument.
    pack: Option<(NodeId, usize)>,
}

/// Whether the graph after holds an index of the rank that it was made for: a slot in a gathered buffer, or a packing
/// operator that takes the rank.
pub(super) fn is_held(evidence: &Evidence) -> bool {
    let is_new = |call: &CollectiveCall| evidence.correspondence.before_of[call.node.index()].is_none();
    gathers_into(&evidence.after).any(is_new) || packs(&evidence.after).next().is_some()
}

/// The graph on each rank of a world, by rank, and the ranks whose graph it is. `None` where it is not known what in it
/// follows from the own index.
pub(super) fn on_each_rank(
    before: &AnalyzedGraph,
    side: &AnalyzedGraph,
    world: &World,
) -> Option<(Vec<Graph>, Vec<u32>)> {
    if gathers_into(before).next().is_some() || packs(before).next().is_some() {
        return None;
    }
    let slots = gathers_into(side).map(|call| slot(side, call)).collect::<Option<Vec<Slot>>>()?;
    if slots.is_empty()
        || !packs(side).all(|id| slots.iter().any(|slot| slot.pack.is_some_and(|of| of.0 == id)))
    {
        return None;
    }
    let index = |slot: &Slot, rank: u32| Some(world.group(slot.group)?.instance_of(rank)?.1 as i64);
    let graph_of = |rank: u32| {
        let mut editor = Editor::new(side.graph);
        for slot in &slots {
            let index = index(slot, rank)?;
            let mut args = editor.graph().args(slot.slice).to_vec();
            (args[2], args[3]) = (Value::Int(index * slot.len), Value::Int((index + 1) * slot.len));
            editor.set_args(slot.slice, &args);
            if let Some((node, argument)) = slot.pack {
                let mut args = editor.graph().args(node).to_vec();
                *args.get_mut(argument)? = Value::Int(index);
                editor.set_args(node, &args);
            }
        }
        Some(editor.finish())
    };
    let ranks = 0..world.ranks?;
    let is_own = |rank: &u32| slots.iter().all(|slot| index(slot, *rank) == Some(slot.index));
    let own: Vec<u32> = ranks.clone().filter(is_own).collect();
    let graphs = ranks.map(graph_of).collect::<Option<Vec<Graph>>>()?;
    (!own.is_empty()).then_some((graphs, own))
}

/// The gathers of several ranks into a buffer that is given.
fn gathers_into<'s>(side: &'s AnalyzedGraph) -> impl Iterator<Item = &'s CollectiveCall<'s>> {
    let calls = side.collectives.calls.iter();
    calls
        .filter(|call| call.kind == Collective::AllGather && call.out.is_some() && call.group_size != Some(1))
}

/// The calls that pack a buffer and are told the own index.
fn packs(side: &AnalyzedGraph) -> impl Iterator<Item = NodeId> {
    side.graph.ids().filter(|id| is_pack(side, id))
}

fn is_pack(side: &AnalyzedGraph, id: &NodeId) -> bool {
    let kind = side.ops.call(side.graph, *id).map(|info| info.kind);
    matches!(kind, Some(Kind::Move(Move::PreBucketAllGather | Move::AllGatherCopyIn)))
}

/// The slot of a gather.
fn slot<'s>(side: &'s AnalyzedGraph, call: &'s CollectiveCall) -> Option<Slot<'s>> {
    let (graph, storages) = (side.graph, side.storages());
    let (GroupName::Text(group), [input], buffer) = (call.group, &call.inputs[..], call.out?) else {
        return None;
    };
    let size = call.group_size?;
    let whole = graph.tensor_of(buffer)?;
    let storage = storages.storage_of(buffer)?;
    let is_alone = gathers_into(side).filter(|other| uses(side, other, storage)).count() == 1;
    if !is_alone || graph.dims(whole.shape).len() != 1 || whole.offset != 0 || size < 2 {
        return None;
    }
    let len = graph.numel(whole)? / size;
    let is_slice = |id: &NodeId| graph.target(*id) == SLICE && storages.storage_of(*id) == Some(storage);
    let mut slices = graph.ids().take_while(|id| *id < call.node).filter(is_slice).filter(|id| {
        matches!(graph.args(*id), [Value::Node(of), ..] if graph.tensor_of(*of).is_some_and(|of| of.shape == whole.shape))
    });
    let (Some(slice), None) = (slices.next(), slices.next()) else { return None };
    let &[_, Value::Int(0), Value::Int(start), Value::Int(end)] = graph.args(slice) else { return None };
    if len < 1 || end - start != len || start % len != 0 || !is_through(side, *input, slice) {
        return None;
    }
    let mut pack = None;
    for write in storages.writes_of(storage, None).filter(|write| write.node < call.node) {
        let info = side.ops.call(graph, write.node)?;
        if is_pack(side, &write.node) {
            return None;
        }
        let schema = info.schema.as_ref()?;
        let bound = Bound::new(graph, write.node, schema).ok()?;
        let named = info.written(graph, write.node).filter_map(|param| schema.params.get(param));
        let mut written = named.flat_map(|param| bound.nodes(&param.name));
        if !written.all(|of| storages.storage_of(of) != Some(storage) || is_through(side, of, slice)) {
            return None;
        }
    }
    for id in packs(side).filter(|id| storages.storage_of(*id) == Some(storage)) {
        let params = &side.ops.call(graph, id)?.schema.as_ref()?.params;
        let argument = params.iter().position(|param| param.name == "rank")?;
        if graph.arg(id, argument) != Some(Value::Int(start / len)) {
            return None;
        }
        pack = Some((id, argument));
    }
    Some(Slot { group, slice, len, index: start / len, pack })
}

/// Whether a gather reads or fills a storage.
fn uses(side: &AnalyzedGraph, call: &CollectiveCall, storage: StorageIndex) -> bool {
    let mut all = call.inputs.iter().chain(&call.out);
    all.any(|&node| side.storages().storage_of(node) == Some(storage))
}

/// Whether a node shows memory through another one.
fn is_through(side: &AnalyzedGraph, mut node: NodeId, through: NodeId) -> bool {
    while node > through {
        match side.graph.inputs(node).first() {
            Some(&of)
                if side.storages().storage_of(of) == side.storages().storage_of(node)
                    || is_item(side, node) =>
            {
                node = of;
            }
            _ => return false,
        }
    }
    node == through
}

fn is_item(side: &AnalyzedGraph, node: NodeId) -> bool {
    side.ops.call(side.graph, node).is_some_and(|info| info.kind == Kind::GetItem)
}
