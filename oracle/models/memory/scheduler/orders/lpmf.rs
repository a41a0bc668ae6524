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

/// What is known of a node, side by side: it is looked up where the order goes, far from the node before.
#[derive(Clone, Copy)]
struct State {
    size: i64,
    to_free: i64,
    /// Its place among the nodes sorted by size, then index.
    place: u32,
    /// Nodes that must run before it and have not.
    blockers: u32,
}

/// What is known of a buffer.
#[derive(Clone, Copy)]
struct Held {
    free: i64,
    /// Who still needs it.
    needed: u32,
}

/// The order. `key` makes (net bytes, node) one number, in the same order; `node_of` takes the node from it.
fn order<K: Key>(
    program: &Program,
    planning: &Planning,
    size_threshold: i64,
    key: &impl Fn(i64, NodeIndex) -> K,
    node_of: &impl Fn(K) -> NodeIndex,
) -> Result<Vec<NodeIndex>, ProgramFault> {
    let count = program.nodes.len();
    let mut held: Vec<Held> = Vec::with_capacity(program.buffers.len());
    for (b, size) in (0u32..).zip(&planning.sizes) {
        let is_output = u32::from(planning.kept[b as usize]);
        held.push(Held { free: size.free, needed: planning.life.of(b).len() as u32 + is_output });
    }
    let free = |b: u32| planning.sizes[b as usize].free;
    let mut live = sum(planning.freeable.iter().map(|&b| free(b)))?;
    let outputs = (0..program.buffers.len() as u32).filter(|&b| planning.kept[b as usize]);
    let mut most = live.max(sum(outputs.map(free))?);

    let mut nodes: Vec<State> = Vec::with_capacity(count);
    for (n, node) in (0u32..).zip(&program.nodes) {
        let needs = planning.needs.of(n).iter().filter(|&&b| held[b as usize].needed == 1);
        let own = node.outputs.iter().filter(|&&b| held[b as usize].needed == 0);
        let to_free = sum(needs.chain(own).map(|&b| held[b as usize].free))?;
        let (size, blockers) = (planning.size[n as usize], planning.before.of(n).len() as u32);
        nodes.push(State { size, to_free, place: 0, blockers });
    }
    let ends = Ends::of(&mut nodes);

    let mut ready: Least<K> = Least::new(count);
    let mut by_follower = BinaryHeap::new();
    let mut arrivals = 0u32;
    let mut arrive = |n: NodeIndex, state: &State, ready: &mut Least<K>, by: &mut BinaryHeap<_>| {
        let net = state.size.saturating_sub(state.to_free);
        ready.set(state.place as usize, Some(key(net, n)));
        if size_threshold > 0 {
            let follower = planning.after.of(n).iter().copied().min().unwrap_or(count as u32);
            by.push(Reverse((follower, arrivals, n)));
            arrivals += 1;
        }
    };
    for (n, state) in (0..).zip(&nodes) {
        if state.blockers == 0 {
            arrive(n, state, &mut ready, &mut by_follower);
        }
    }
    let mut order = Vec::with_capacity(count);
    loop {
        let gap = most - live;
        // The best of all is the best below the gap, if it is below it: nothing more to look for, as a rule.
        let best = match size_threshold > 0 {
            true => None,
            false => ready.least().map(node_of),
        };
        let chosen = match best.filter(|&n| nodes[n as usize].size <= gap) {
            Some(best) => Some(best),
            None => {
                let Some(first) = ready.first() else { break };
                let least = ends.size(first);
                if size_threshold > 0 && least > size_threshold {
                    // What was taken otherwise meanwhile is still in the heap.
                    let ready = |n: &NodeIndex| !ready.is_empty(nodes[*n as usize].place as usize);
                    std::iter::from_fn(|| by_follower.pop()).map(|Reverse((_, _, n))| n).find(ready)
                } else {
                    let (from, reach) = if least > gap { (first, least) } else { (0, gap) };
                    ready.of(from, ends.end(reach)).map(node_of)
                }
            }
        };
        let Some(chosen) = chosen else { break };
        let State { size, to_free, place, .. } = nodes[chosen as usize];
        ready.set(place as usize, None);
        order.push(chosen);
        live = live.checked_add(size).ok_or_else(too_large)?;
        most = most.max(live);
        live -= to_free;
        for &after in planning.after.of(chosen) {
            let state = &mut nodes[after as usize];
            state.blockers -= 1;
            if state.blockers == 0 {
                arrive(after, state, &mut ready, &mut by_follower);
            }
        }
        for &buffer in planning.needs.of(chosen) {
            let Held { free, needed } = &mut held[buffer as usize];
            *needed -= 1;
            if *needed != 1 || *free == 0 {
                continue;
            }
            for &n in planning.life.of(buffer) {
                let state = &mut nodes[n as usize];
                state.to_free = state.to_free.checked_add(*free).ok_or_else(too_large)?;
                // Whoever has run is in no place any more.
                if state.blockers == 0 && !ready.is_empty(state.place as usize) {
                    let net = state.size.saturating_sub(state.to_free);
                    ready.set(state.place as usize, Some(key(net, n)));
                }
            }
        }
    }
    match order.len() == count {
        true => Ok(order),
        false => Err(ProgramFault::NotAPermutation { expected: count, found: order.len() }),
    }
}

/// The places of the nodes sorted by size: the distinct sizes in ascending order, and the place after the last node of
/// each.
struct Ends {
    sizes: Vec<i64>,
    ends: Vec<u32>,
}

impl Ends {
    /// Gives every node its place.
    fn of(nodes: &mut [State]) -> Ends {
        let mut by_size: Vec<(i64, NodeIndex)> = nodes.iter().map(|state| state.size).zip(0..).collect();
        // Stable, so that the index decides; and fast where few sizes are distinct.
        by_size.sort_by_key(|&(size, _)| size);
        let mut ends = Ends { sizes: Vec::new(), ends: Vec::new() };
        for (place, (size, n)) in (0..).zip(by_size) {
            nodes[n as usize].place = place;
            if ends.sizes.last() != Some(&size) {
                ends.sizes.push(size);
                ends.ends.push(place);
            }
            if let Some(end) = ends.ends.last_mut() {
                *end = place + 1;
            }
        }
        ends
    }

    /// The size of the node in a place.
    fn size(&self, place: usize) -> i64 {
        let at = self.ends.partition_point(|&end| end as usize <= place);
        self.sizes.get(at).copied().unwrap_or(i64::MAX)
    }

    /// How many nodes are no larger than `size`.
    fn end(&self, size: i64) -> usize {
        let sizes = self.sizes.partition_point(|&other| other <= size);
        sizes.checked_sub(1).and_then(|last| self.ends.get(last)).map_or(0, |&end| end as usize)
    }
}

fn too_large() -> ProgramFault {
    ProgramFault::Bytes("the live buffers".to_string())
}

fn sum(mut of: impl Iterator<Item = i64>) -> Result<i64, ProgramFault> {
    of.try_fold(0i64, i64::checked_add).ok_or_else(too_large)
}
