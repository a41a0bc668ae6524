//! Breadth first: of the nodes that could run, the one whose predecessors ran earliest.

use super::super::planning::Planning;
use super::super::program::NodeIndex;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A node that could run, with the places of its predecessors in ascending order.
#[derive(PartialEq, Eq)]
struct Ready {
    /// The first four of them, each one higher than it is, 0 where there is none: compared at once.
    first: u128,
    rest: Box<[u32]>,
    node: NodeIndex,
}

impl Ord for Ready {
    fn cmp(&self, other: &Ready) -> Ordering {
        let by_places = self.first.cmp(&other.first).then_with(|| self.rest.cmp(&other.rest));
        by_places.then(self.node.cmp(&other.node))
    }
}

impl PartialOrd for Ready {
    fn partial_cmp(&self, other: &Ready) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The order; shorter than the program only where it has a circle.
pub fn bfs(planning: &Planning) -> Vec<NodeIndex> {
    let nodes = planning.size.len();
    let mut place = vec![0u32; nodes];
    let mut blockers: Vec<u32> = (0..nodes as u32).map(|n| planning.before.of(n).len() as u32).collect();
    let mut places = Vec::new();
    let mut ready = |node: NodeIndex, place: &[u32]| {
        places.clear();
        places.extend(planning.before.of(node).iter().map(|&n| place[n as usize]));
        places.sort_unstable();
        let first = (0..4).fold(0u128, |key, i| key << 32 | places.get(i).map_or(0, |&p| u128::from(p) + 1));
        Reverse(Ready { first, rest: places.get(4..).unwrap_or(&[]).into(), node })
    };
    let sources = (0..nodes as u32).filter(|&n| blockers[n as usize] == 0);
    let mut heap: BinaryHeap<Reverse<Ready>> = sources.map(|n| ready(n, &place)).collect();
    let mut order = Vec::with_capacity(nodes);
    while let Some(Reverse(Ready { node, .. })) = heap.pop() {
        place[node as usize] = order.len() as u32;
        order.push(node);
        for &after in planning.after.of(node) {
            blockers[after as usize] -= 1;
            if blockers[after as usize] == 0 {
                heap.push(ready(after, &place));
            }
        }
    }
    order
}
