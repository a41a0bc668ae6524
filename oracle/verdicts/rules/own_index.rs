//! The graph of one rank that holds its own index, as the other ranks would hold it.
//!
//! A rank's index stands in its graph where it gathers into a buffer that holds its input: the slot of the input, cut out
//! of the buffer; and where an operator that packs a bucket is told which slot to fill. Where the graphs of the other ranks
//! were not given, they are taken to be this one, with the index of their own rank there. Then all ranks can be executed,
//! and what differs is a fault of this graph, unless a pass made something else for the others.
//!
//! What is equal so is no proof for the ranks that were not given.

use super::AnalyzedGraph;
use crate::analysis::CollectiveCall;
use crate::graph::{Editor, Graph, NodeId, Value, World};
use crate::ops::{Collective, Kind, Move};

/// The operator that cuts a slot out of a buffer.
const SLICE: &str = "aten.slice.Tensor";

/// An argument that follows from the own index: the index itself, or where its slot begins or ends.
struct Baked {
    node: NodeId,
    argument: usize,
    /// The group whose index it is.
    group: String,
    /// What it grows by with the index.
    step: i64,
    /// What it is where the index is 0.
    first: i64,
}

/// The graph on each rank of a world, by rank. `None` where it is not known which numbers follow from the own index, or what
/// index a rank has.
pub(super) fn on_each_rank(side: &AnalyzedGraph, world: &World) -> Option<Vec<Graph>> {
    let mut baked = Vec::new();
    for call in side.collectives.calls.iter().filter(|call| call.kind == Collective::AllGather) {
        if let (Some(buffer), Some(size)) = (call.out, call.group_size.filter(|&size| size > 1)) {
            slot(side, call, buffer, size, &mut baked)?;
        }
    }
    for id in side.graph.ids() {
        let Some(info) = side.ops.call(side.graph, id) else { continue };
        if matches!(info.kind, Kind::Move(Move::PreBucketAllGather | Move::AllGatherCopyIn)) {
            let params = &info.schema.as_ref()?.params;
            let argument = params.iter().position(|param| param.name == "rank")?;
            let mut later = side.collectives.calls.iter().filter(|call| call.node > id);
            let group = later.find(|call| call.kind == Collective::AllGather)?.group.to_string();
            baked.push(Baked { node: id, argument, group, step: 1, first: 0 });
        }
    }
    let graph_of = |rank: u32| {
        let mut editor = Editor::new(side.graph);
        for Baked { node, argument, group, step, first } in &baked {
            let (_, index) = world.group(group)?.instance_of(rank)?;
            let mut args = editor.graph().args(*node).to_vec();
            *args.get_mut(*argument)? = Value::Int(first + step * index as i64);
            editor.set_args(*node, &args);
        }
        Some(editor.finish())
    };
    (0..world.ranks?).map(graph_of).collect()
}

/// The ends of the slot of a gather into a buffer that holds its input, where it is one of as many as the group has ranks.
fn slot(
    side: &AnalyzedGraph,
    call: &CollectiveCall,
    buffer: NodeId,
    size: i64,
    baked: &mut Vec<Baked>,
) -> Option<()> {
    let (graph, storages) = (side.graph, side.storages());
    let len = graph.numel(graph.tensor_of(buffer)?)? / size;
    let storage = storages.storage_of(buffer)?;
    let is_slice = |id: &NodeId| graph.target(*id) == SLICE && storages.storage_of(*id) == Some(storage);
    for id in graph.ids().take_while(|id| *id < call.node).filter(is_slice) {
        let &[_, Value::Int(0), Value::Int(start), Value::Int(end)] = graph.args(id) else { continue };
        if len > 0 && end - start == len && start % len == 0 {
            let group = call.group.to_string();
            baked.push(Baked { node: id, argument: 2, group: group.clone(), step: len, first: 0 });
            baked.push(Baked { node: id, argument: 3, group, step: len, first: len });
        }
    }
    Some(())
}
