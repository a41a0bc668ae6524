//! One all-gather and one reduce-scatter of FSDP in flight.
//!
//! The copies before a gather and the gather are put together (A), and the wait with the copies after it (W); likewise
//! for reduce-scatters. Each A comes after the W before it, so that no two gathers are in flight. A group stands where
//! its first node stood, or as near behind it as is legal.
//!
//! Source: `enforce_comm_ordering_for_fsdp` of `torch/_inductor/comms.py`, PyTorch 2.6; absent from 2.15.

use super::steps::{Facts, Steps, is_real};
use super::strategy::Strategy;
use super::{Refusal, Scheduled};
use crate::analysis::origin::Origins;
use crate::graph::{NodeId, Op};
use crate::ops::{self, Collective, Move};
use crate::simulate::Estimates;

/// The groups around one collective: up to it, and from its wait on.
struct Block {
    start: Vec<NodeId>,
    end: Vec<NodeId>,
}

/// The order.
pub(super) fn order(
    facts: &Facts,
    estimates: &Estimates,
    strategy: &dyn Strategy,
) -> Result<Scheduled, Refusal> {
    let graph = facts.graph;
    let mut taken = vec![false; graph.len()];
    let (mut gathers, mut scatters) = (Vec::new(), Vec::new());
    for id in graph.ids().filter(|&id| graph.node(id).op == Op::Call) {
        if taken[id.index()] {
            continue;
        }
        if is_gather(facts, id) {
            gathers.extend(block(facts, gather_block(facts, id), &mut taken));
        } else if is_move(facts, id, Move::ChunkCat) {
            scatters.extend(block(facts, users(facts, id, &|id| follows_scatter(facts, id)), &mut taken));
        }
    }
    let mut edges = Vec::new();
    for blocks in [&gathers, &scatters] {
        for pair in blocks.windows(2) {
            let (Some(&last), Some(&first)) = (pair[0].end.last(), pair[1].start.first()) else { continue };
            edges.push((last, first));
        }
    }
    let groups: Vec<Vec<NodeId>> =
        gathers.into_iter().chain(scatters).flat_map(|block| [block.start, block.end]).collect();
    let steps = Steps::new(facts, estimates, strategy, &groups, &edges)?;
    let all: Vec<u32> = (0..steps.len() as u32).collect();
    let order = steps.unpacked(&all);
    Ok(Scheduled { graph: graph.clone().reordered(&order), order, groups, peak: None, swaps: 0 })
}

fn is_move(facts: &Facts, id: NodeId, wanted: Move) -> bool {
    facts.ops.call(facts.graph, id).is_some_and(|info| info.kind == ops::Kind::Move(wanted))
}

/// Whether a node gathers what `all_gather_copy_in` packed.
fn is_gather(facts: &Facts, id: NodeId) -> bool {
    let Some(launch) = facts.collectives.launch_at(id) else { return false };
    let call = &facts.collectives.calls[launch];
    call.kind == Collective::AllGather
        && call.out.is_some()
        && ancestors(facts, id).into_iter().any(|id| is_move(facts, id, Move::AllGatherCopyIn))
}

/// What a node needs, inputs of the graph aside; itself included.
fn ancestors(facts: &Facts, id: NodeId) -> Vec<NodeId> {
    closure(id, &|id| {
        let before =
            facts.dependences.before(id).filter(|(_, origin)| is_real(*origin)).map(|(before, _)| before);
        before.filter(|&before| matches!(facts.graph.node(before).op, Op::Call | Op::GetAttr)).collect()
    })
}

/// What follows from a node through nodes that `goes_on` names; itself included. Whoever reads a buffer that a node
/// fills follows from it.
fn users(facts: &Facts, id: NodeId, goes_on: &dyn Fn(NodeId) -> bool) -> Vec<NodeId> {
    closure(id, &|id| {
        let is_user =
            |after: &NodeId| goes_on(*after) && facts.dependences.origin(id, *after).is_some_and(is_real);
        facts.dependences.after(id).iter().copied().filter(is_user).collect()
    })
}

fn closure(from: NodeId, next: &dyn Fn(NodeId) -> Vec<NodeId>) -> Vec<NodeId> {
    let mut seen = rustc_hash::FxHashSet::default();
    let mut stack = vec![from];
    let mut found = Vec::new();
    seen.insert(from);
    while let Some(id) = stack.pop() {
        found.push(id);
        stack.extend(next(id).into_iter().filter(|&id| seen.insert(id)));
    }
    found.sort_unstable();
    found
}

/// Whether a node does nothing at run time.
fn is_free(facts: &Facts, id: NodeId) -> bool {
    let kind = facts.ops.call(facts.graph, id).map(|info| info.kind);
    matches!(kind, Some(ops::Kind::View(_) | ops::Kind::GetItem))
}

fn waits(facts: &Facts, id: NodeId) -> bool {
    facts.ops.call(facts.graph, id).is_some_and(|info| info.kind == ops::Kind::Wait)
}

fn follows_scatter(facts: &Facts, id: NodeId) -> bool {
    let launch = facts.collectives.launch_at(id).map(|launch| facts.collectives.calls[launch].kind);
    launch == Some(Collective::ReduceScatter) || waits(facts, id) || is_free(facts, id)
}

/// What is needed for a gather, and what follows up to the copies out of it.
fn gather_block(facts: &Facts, gather: NodeId) -> Vec<NodeId> {
    let follows =
        |id: NodeId| waits(facts, id) || is_free(facts, id) || is_move(facts, id, Move::SplitWithSizesCopy);
    let mut nodes = ancestors(facts, gather);
    nodes.extend(users(facts, gather, &follows));
    nodes.sort_unstable();
    nodes.dedup();
    // Where a layer is gathered again, what follows from the first gather is not part of the second.
    let mut copies =
        nodes.iter().enumerate().filter(|(_, id)| is_move(facts, **id, Move::SplitWithSizesCopy));
    if let Some((second, _)) = copies.nth(1) {
        nodes.truncate(second);
    }
    nodes
}

/// The nodes of a block that no other has, cut at the first wait.
fn block(facts: &Facts, nodes: Vec<NodeId>, taken: &mut [bool]) -> Option<Block> {
    let nodes: Vec<NodeId> = nodes.into_iter().filter(|id| !taken[id.index()]).collect();
    let cut = nodes.iter().position(|&id| waits(facts, id))?;
    nodes.iter().for_each(|id| taken[id.index()] = true);
    let (start, end) = nodes.split_at(cut);
    (!start.is_empty()).then(|| Block { start: start.to_vec(), end: end.to_vec() })
}
