//! Least peak memory first: of the nodes that could run, one that stays below the peak so far and leaves the least
//! behind; where none stays below it, the one that allocates the least.
//!
//! The choice is the minimum of (size if it is larger than the gap to the peak else 0, size - to_free, index). Kept
//! sorted by size, the nodes below the gap are a stretch of places, so each choice takes logarithmic time.

use super::super::planning::Planning;
use super::super::program::{NodeIndex, Program, ProgramFault};
use super::least::{Key, Least};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The order. While every node that could run is larger than `size_threshold` (0: never), the one with the earliest
/// follower is taken instead.
pub fn lpmf(
    program: &Program,
    planning: &Planning,
    size_threshold: i64,
) -> Result<Vec<NodeIndex>, ProgramFault> {
    // Net bytes lie within all bytes, above and below zero. With the node they fit one word as a rule.
    let bits = u32::BITS - (program.nodes.len() as u32).leading_zeros();
    let frees = planning.sizes.iter().map(|size| size.free);
    let all = sum(planning.size.iter().copied().chain(frees)).unwrap_or(i64::MAX);
    match all.checked_shl(bits + 2).is_some_and(|shifted| shifted >> (bits + 2) == all) {
        true => order(
            program,
            planning,
            size_threshold,
            &|net, node| ((net + all) as u64) << bits | u64::from(node),
            &|key| (key & ((1 << bits) - 1)) as NodeIndex,
        ),
        false => order(
            program,
            planning,
            size_threshold,
            &|net, node| u128::from((net as u64) ^ (1 << 63)) << 32 | u128::from(node),
            &|key| key as NodeIndex,
        ),
    }
}

/// The order. `key` makes (net bytes, node) one number, in the same order; `node_of` takes the node from it.
fn order<K: Key>(
    program: &Program,
    planning: &Planning,
    size_threshold: i64,
    key: &impl Fn(i64, NodeIndex) -> K,
    node_of: &impl Fn(K) -> NodeIndex,
) -> Result<Vec<NodeIndex>, ProgramFault> {
    let nodes = program.nodes.len();
    let mut blockers: Vec<u32> = (0..nodes as u32).map(|n| planning.before.of(n).len() as u32).collect();
    let is_output = |b: u32| u32::from(planning.kept[b as usize]);
    let mut needed: Vec<u32> =
        (0..program.buffers.len() as u32).map(|b| planning.life.of(b).len() as u32 + is_output(b)).collect();
    let free = |b: u32| planning.sizes[b as usize].free;
    let mut to_free = Vec::with_capacity(nodes);
    for node in 0..nodes as u32 {
        let needs = planning.needs.of(node).iter().filter(|&&b| needed[b as usize] == 1);
        let own = program.nodes[node as usize].outputs.iter().filter(|&&b| needed[b as usize] == 0);
        to_free.push(sum(needs.chain(own).map(|&b| free(b)))?);
    }
    let mut live = sum(planning.freeable.iter().map(|&b| free(b)))?;
    let outputs = (0..program.buffers.len() as u32).filter(|&b| planning.kept[b as usize]);
    let mut most = live.max(sum(outputs.map(free))?);

    // Places by size, then index.
    let mut by_size: Vec<(i64, NodeIndex)> =
        (0..nodes as u32).map(|n| (planning.size[n as usize], n)).collect();
    by_size.sort_unstable();
    let mut place = vec![0u32; nodes];
    by_size.iter().enumerate().for_each(|(i, &(_, n))| place[n as usize] = i as u32);
    let sorted_sizes: Vec<i64> = by_size.iter().map(|&(size, _)| size).collect();

    let mut ready: Least<K> = Least::new(nodes);
    let mut by_follower = BinaryHeap::new();
    let mut arrivals = 0u32;
    let mut arrive = |n: NodeIndex, ready: &mut Least<K>, to_free: &[i64], by: &mut BinaryHeap<_>| {
        let net = planning.size[n as usize].saturating_sub(to_free[n as usize]);
        ready.set(place[n as usize] as usize, Some(key(net, n)));
        if size_threshold > 0 {
            let follower = planning.after.of(n).iter().copied().min().unwrap_or(nodes as u32);
            by.push(Reverse((follower, arrivals, n)));
            arrivals += 1;
        }
    };
    for n in (0..nodes as u32).filter(|&n| blockers[n as usize] == 0) {
        arrive(n, &mut ready, &to_free, &mut by_follower);
    }
    let mut order = Vec::with_capacity(nodes);
    loop {
        let gap = most - live;
        // The best of all is the best below the gap, if it is below it: nothing more to look for, as a rule.
        let best = match size_threshold > 0 {
            true => None,
            false => ready.least().map(node_of),
        };
        let chosen = match best.filter(|&n| planning.size[n as usize] <= gap) {
            Some(best) => Some(best),
            None => {
                let Some(first) = ready.first() else { break };
                if size_threshold > 0 && sorted_sizes[first] > size_threshold {
                    // What was taken otherwise meanwhile is still in the heap.
                    let ready = |n: &NodeIndex| !ready.is_empty(place[*n as usize] as usize);
                    std::iter::from_fn(|| by_follower.pop()).map(|Reverse((_, _, n))| n).find(ready)
                } else {
                    let (from, reach) = match sorted_sizes[first] > gap {
                        true => (first, sorted_sizes[first]),
                        false => (0, gap),
                    };
                    let to = sorted_sizes.partition_point(|&size| size <= reach);
                    ready.of(from, to).map(node_of)
                }
            }
        };
        let Some(chosen) = chosen else { break };
        ready.set(place[chosen as usize] as usize, None);
        order.push(chosen);
        live = live.checked_add(planning.size[chosen as usize]).ok_or_else(too_large)?;
        most = most.max(live);
        live -= to_free[chosen as usize];
        for &after in planning.after.of(chosen) {
            blockers[after as usize] -= 1;
            if blockers[after as usize] == 0 {
                arrive(after, &mut ready, &to_free, &mut by_follower);
            }
        }
        for &buffer in planning.needs.of(chosen) {
            needed[buffer as usize] -= 1;
            if needed[buffer as usize] != 1 || free(buffer) == 0 {
                continue;
            }
            for &n in planning.life.of(buffer) {
                let freed = &mut to_free[n as usize];
                *freed = freed.checked_add(free(buffer)).ok_or_else(too_large)?;
                let at = place[n as usize] as usize;
                if !ready.is_empty(at) {
                    let net = planning.size[n as usize].saturating_sub(*freed);
                    ready.set(at, Some(key(net, n)));
                }
            }
        }
    }
    match order.len() == nodes {
        true => Ok(order),
        false => Err(ProgramFault::NotAPermutation { expected: nodes, found: order.len() }),
    }
}

fn too_large() -> ProgramFault {
    ProgramFault::Bytes("the live buffers".to_string())
}

fn sum(mut of: impl Iterator<Item = i64>) -> Result<i64, ProgramFault> {
    of.try_fold(0i64, i64::checked_add).ok_or_else(too_large)
}
