//! Breadth first: of the nodes that could run, the one whose predecessors ran earliest.

use super::super::planning::Planning;
use super::super::program::NodeIndex;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A node that could run. Its key is the list of the places of its predecessors, in ascending order, then its index.
#[derive(PartialEq, Eq)]
struct Ready {
    /// The first three places, each one higher than it is, 0 where there is none; then the index. Where there are
    /// more places, the greatest number stands for it: a list comes after its own beginning.
    first: u128,
    /// The other places, and the index.
    rest: Option<Box<(Vec<u32>, NodeIndex)>>,
}

impl Ready {
    fn new(places: &[u32], node: NodeIndex) -> Ready {
        let first = (0..3).fold(0u128, |key, i| key << 32 | places.get(i).map_or(0, |&p| u128::from(p) + 1));
        match places.get(3..) {
            None | Some([]) => Ready { first: first << 32 | u128::from(node), rest: None },
            Some(rest) => Ready {
                first: first << 32 | u128::from(u32::MAX),
                rest: Some(Box::new((rest.to_vec(), node))),
            },
        }
    }

    fn node(&self) -> NodeIndex {
        self.rest.as_ref().map_or(self.first as u32, |rest| rest.1)
    }
}

impl Ord for Ready {
    fn cmp(&self, other: &Ready) -> Ordering {
        self.first.cmp(&other.first).then_with(|| self.rest.cmp(&other.rest))
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
    let mut heap: BinaryHeap<Reverse<Ready>> = BinaryHeap::new();
    let mut order: Vec<NodeIndex> = Vec::with_capacity(nodes);
    // Nothing comes before a node without predecessors.
    let mut sources = (0..nodes as u32).filter(|&n| planning.before.of(n).is_empty());
    while let Some(node) = sources.next().or_else(|| Some(heap.pop()?.0.node())) {
        place[node as usize] = order.len() as u32;
        order.push(node);
        for &after in planning.after.of(node) {
            blockers[after as usize] -= 1;
            if blockers[after as usize] == 0 {
                places.clear();
                places.extend(planning.before.of(after).iter().map(|&n| place[n as usize]));
                places.sort_unstable();
                heap.push(Reverse(Ready::new(&places, after)));
            }
        }
    }
    order
}
