//! The order within one side: backward as the autograd engine would run it, and getitems next to what they index.
//!
//! Sources: `torch._functorch.partitioners.reordering_to_mimic_autograd_engine`,
//! `torch._functorch.compile_utils.raise_getitems` of PyTorch 2.15.

use super::extract::Piece;
use super::joint::{Joint, Role};
use super::strategy::Strategy;
use crate::analysis::storages::Mode;
use crate::analysis::{Collectives, StorageIndex, Storages};
use crate::graph::{NodeId, Value};
use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;

/// Moves what backward computes again down to just before its first reader. Placeholders stay in front; then
/// come the writes that stood before the first reader of a tangent, with what they need; then everything from
/// that reader on, each after what it needs. What read memory before a write still does. Without a reader of a
/// tangent nothing changes. Nodes that nothing needs are lost. (PyTorch moves a reader past a write.)
pub fn mimic_autograd(joint: &Joint, strategy: &dyn Strategy, piece: &mut Piece) {
    let computed = piece.computed(joint);
    let reads_tangent =
        |id: NodeId| joint.edges.inputs(id).iter().any(|&input| joint.role(input) == Role::Tangent);
    let body: Vec<NodeId> = piece.list.iter().copied().filter(|id| computed.contains(id.index())).collect();
    let start = body.iter().position(|&id| reads_tangent(id));
    let Some(start) = start.or(returns_tangent(joint, piece).then_some(body.len())) else { return };
    let mut placed = FixedBitSet::with_capacity(joint.graph.len());
    let mut order = piece.inputs.clone();
    order.iter().for_each(|id| placed.insert(id.index()));
    let (before, after) = body.split_at(start);
    let outputs: Vec<NodeId> = super::joint::nodes_of(&piece.outputs).collect();
    let hoisted: Vec<NodeId> = before.iter().copied().filter(|&id| strategy.hoists(joint, id)).collect();
    let mut needed = FixedBitSet::with_capacity(joint.graph.len());
    after.iter().chain(&hoisted).chain(&outputs).for_each(|id| needed.insert(id.index()));
    for &id in body.iter().rev() {
        if needed.contains(id.index()) {
            joint.edges.inputs(id).iter().for_each(|input| needed.insert(input.index()));
        }
    }
    let kept: Vec<NodeId> = body.iter().copied().filter(|id| needed.contains(id.index())).collect();
    let readers = readers_before_writes(joint, &kept);
    let (mut stack, mut missing) = (Vec::new(), Vec::new());
    let mut place = |roots: &[NodeId], order: &mut Vec<NodeId>| {
        stack.extend_from_slice(roots);
        while let Some(id) = stack.pop() {
            if !placed.put(id.index()) {
                missing.push(id);
                stack.extend_from_slice(joint.edges.inputs(id));
                stack.extend(readers.get(&id).into_iter().flatten());
            }
        }
        // List order is the order of ids here.
        missing.sort_unstable();
        order.append(&mut missing);
    };
    for &id in &hoisted {
        place(&[id], &mut order);
    }
    for &id in after {
        place(&[id], &mut order);
    }
    place(&outputs, &mut order);
    piece.list = order;
}

/// For each node of `body` that writes: the earlier ones that read what it writes to and that no other write comes
/// between. Writes keep their order anyway, so what reads after a write does.
fn readers_before_writes(joint: &Joint, body: &[NodeId]) -> FxHashMap<NodeId, Vec<NodeId>> {
    let mut readers = FxHashMap::default();
    if !body.iter().any(|&id| joint.target(id).mutable) {
        return readers;
    }
    let collectives = Collectives::new(&joint.graph, &joint.ops);
    let storages = Storages::new(&joint.graph, &joint.ops, &joint.edges, &collectives, Mode::Physical);
    let mut since: FxHashMap<StorageIndex, Vec<NodeId>> = FxHashMap::default();
    for &id in body {
        let accesses = storages.accesses_by(id);
        let writes = joint.target(id).mutable;
        for access in accesses.iter().filter(|access| writes && access.touch.writes()) {
            let read = since.remove(&access.part.storage).unwrap_or_default();
            readers.entry(id).or_insert_with(Vec::new).extend(read);
        }
        for access in accesses.iter().filter(|access| !(writes && access.touch.writes())) {
            since.entry(access.part.storage).or_default().push(id);
        }
    }
    readers
}

/// Whether a node that stands before the first reader of a tangent keeps its place in front: what writes, what has
/// another effect, and draws that stay although nobody reads them. A wait is none of these: it is kept by its
/// readers. (PyTorch keeps `copy_` only, which is all that its joint graphs hold.)
pub fn hoists(joint: &Joint, id: NodeId) -> bool {
    let drawn = joint.users(id).is_empty() && joint.survives(id);
    !joint.target(id).wait && (joint.impure(id, false) || drawn)
}

/// Whether the output itself reads a tangent.
fn returns_tangent(joint: &Joint, piece: &Piece) -> bool {
    super::joint::nodes_of(&piece.outputs).any(|id| joint.role(id) == Role::Tangent)
}

/// Moves each getitem to directly after what it indexes; those of one node keep their order.
pub fn raise_getitems(joint: &Joint, piece: &mut Piece) {
    let inputs = piece.input_set(joint);
    let parent = |id: NodeId| match joint.graph.arg(id, 0) {
        Some(Value::Node(parent)) if joint.target(id).getitem && !inputs.contains(id.index()) => Some(parent),
        _ => None,
    };
    // A linked list, so that a move costs nothing.
    const END: u32 = u32::MAX;
    let mut next = vec![END; joint.graph.len()];
    let mut before = vec![END; joint.graph.len()];
    for pair in piece.list.windows(2) {
        next[pair[0].index()] = pair[1].0;
        before[pair[1].index()] = pair[0].0;
    }
    for &id in piece.list.iter().rev() {
        let Some(parent) = parent(id) else { continue };
        if before[id.index()] == parent.0 {
            continue;
        }
        let (left, right) = (before[id.index()], next[id.index()]);
        if left != END {
            next[left as usize] = right;
        }
        if right != END {
            before[right as usize] = left;
        }
        let follower = next[parent.index()];
        next[parent.index()] = id.0;
        before[id.index()] = parent.0;
        next[id.index()] = follower;
        if follower != END {
            before[follower as usize] = id.0;
        }
    }
    let Some(&first) = piece.list.first() else { return };
    let step = |id: &NodeId| (next[id.index()] != END).then(|| NodeId(next[id.index()]));
    piece.list = std::iter::successors(Some(first), step).collect();
}
