//! The two heuristics that ban forward values by what would become of fusion.
//!
//! The first looks, for each value, at what lies between its first and its last reader, up to the first node
//! that cannot be fused: short in models, where products and reductions stand close together.

use super::bans::Ban;
use super::context::Context;
use super::network::Banned;
use crate::graph::NodeId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Steps that a chain may have.
const LONG: u32 = 100;

/// A value used both near and, behind something that cannot be fused, far away: its far readers are not
/// computed again, since they could not be fused with the near ones.
pub fn ban_far_apart(cx: &Context, banned: &mut Banned) {
    let classes = cx.classes;
    let order = |id: NodeId| classes.order[id.index()];
    // Which entries are in the heap, by the node it was searched from.
    let mut queued = vec![u32::MAX; 2 * classes.in_order.len()];
    let mut heap: BinaryHeap<Reverse<(u32, bool)>> = BinaryHeap::new();
    for (stamp, &used) in (0..).zip(&classes.in_order) {
        let readers = || cx.joint.users(used).iter().copied().filter(|&user| classes.needs_forward(user));
        let Some(range) = readers().map(order).max() else { continue };
        if readers().nth(1).is_none() {
            // The only reader is not behind itself.
            continue;
        }
        heap.clear();
        for reader in readers() {
            queued[2 * order(reader) as usize + 1] = stamp;
            heap.push(Reverse((order(reader), true)));
        }
        let mut first = range;
        while let Some(Reverse((rank, fusible))) = heap.pop() {
            if !fusible {
                first = rank;
                break;
            }
            let node = classes.in_order[rank as usize];
            for &user in cx.joint.users(node).iter().filter(|&&user| classes.needs_forward(user)) {
                if order(user) > range {
                    continue;
                }
                let fuses = cx.fusion.fuses(cx.joint, node, user);
                let slot = &mut queued[2 * order(user) as usize + usize::from(fuses)];
                if *slot != stamp {
                    *slot = stamp;
                    heap.push(Reverse((order(user), fuses)));
                }
            }
        }
        for reader in readers() {
            if order(reader) > first && cx.fusion.fuses(cx.joint, used, reader) && !banned.contains(reader) {
                banned.ban(reader, Ban::FarApart);
            }
        }
    }
}

/// A chain of what could all be fused is not computed again from its beginning: it is cut about every hundred
/// nodes, where it is one value wide.
pub fn ban_long_chains(cx: &Context, banned: &mut Banned) {
    let classes = cx.classes;
    let mut visited = vec![false; classes.in_order.len()];
    let mut heap: BinaryHeap<Reverse<u32>> = BinaryHeap::new();
    for start in 0..classes.in_order.len() as u32 {
        heap.clear();
        heap.push(Reverse(start));
        while let Some(Reverse(rank)) = heap.pop() {
            if std::mem::replace(&mut visited[rank as usize], true) {
                continue;
            }
            let node = classes.in_order[rank as usize];
            if rank > start + LONG && heap.is_empty() {
                banned.ban(node, Ban::LongChain);
                break;
            }
            for &user in cx.joint.users(node) {
                if classes.needs_forward(user)
                    && cx.fusion.fuses(cx.joint, node, user)
                    && !banned.contains(user)
                {
                    heap.push(Reverse(classes.order[user.index()]));
                }
            }
        }
    }
}
