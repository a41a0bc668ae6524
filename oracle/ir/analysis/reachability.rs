//! Who reaches whom, along the edges of any [`EdgeSource`].
//!
//! # The idea
//!
//! Passes ask about a few hundred marked nodes (the collectives and their waits) of a graph that is much larger.
//! So each node gets a row of bits, one per mark, and one sweep in topological order fills them: a node's row is
//! the union of the rows of what comes before it, with their own marks. The sweep takes 256 marks at a time, so
//! that the rows of a million nodes stay small; only the rows of the marked nodes are kept.
//!
//! Where only the paths within small sets are asked for, [`within`] takes sets that lie near each other together and
//! sweeps over the part of the order between their first and their last node, so that a million nodes with sets
//! of neighbours everywhere are still one sweep in all.
//!
//! For a single question a search is cheaper: [`reaches`] and [`path`] look only at nodes that stand between
//! the two in the order.
//!
//! # What it does not do
//!
//! A row tells paths of at least one edge: no node reaches itself. A graph with a cycle has no order to sweep
//! in; then the answer is the cycle.

use super::cycle::Cycle;
use super::edges::EdgeSource;
use super::topological::TopologicalOrder;
use crate::graph::NodeId;
use fixedbitset::FixedBitSet;
use std::collections::VecDeque;

/// Words of a row in one sweep.
const WORDS: usize = 4;
/// Marks in one sweep.
const BLOCK: usize = 64 * WORDS;
const NONE: u32 = u32::MAX;

/// For a set of marked nodes: which of them reach which.
#[derive(Clone, Debug)]
pub struct Reachability {
    marks: Vec<NodeId>,
    index: Vec<u32>,
    /// For each mark the marks that reach it.
    ancestors: Vec<FixedBitSet>,
}

impl Reachability {
    /// Finds the paths between the nodes of `marks` (repeated ones count once). Time: edges times marks / 256,
    /// rounded up; memory: 36 bytes a node and a bit per pair of marks.
    pub fn new<G: EdgeSource>(edges: G, marks: &[NodeId]) -> Result<Reachability, Cycle> {
        let order = TopologicalOrder::new(edges)?;
        Ok(Reachability::in_order(edges, &order, marks))
    }

    /// [`Reachability::new`] for a known order of the same edges.
    pub fn in_order<G: EdgeSource>(edges: G, order: &TopologicalOrder, marks: &[NodeId]) -> Reachability {
        let n = edges.node_count();
        let mut index = vec![NONE; n];
        let mut distinct = Vec::with_capacity(marks.len());
        for &mark in marks {
            if index[mark.index()] == NONE {
                index[mark.index()] = distinct.len() as u32;
                distinct.push(mark);
            }
        }
        let mut ancestors = vec![FixedBitSet::with_capacity(distinct.len()); distinct.len()];
        let mut rows = vec![[0u64; WORDS]; n];
        for first in (0..distinct.len()).step_by(BLOCK) {
            for &id in order.order() {
                let mut row = [0u64; WORDS];
                for input in edges.before(id) {
                    for (word, more) in row.iter_mut().zip(rows[input.index()]) {
                        *word |= more;
                    }
                    let mark = (index[input.index()] as usize).wrapping_sub(first);
                    if mark < BLOCK {
                        row[mark / 64] |= 1 << (mark % 64);
                    }
                }
                rows[id.index()] = row;
            }
            for (&mark, set) in distinct.iter().zip(&mut ancestors) {
                for (word, mut bits) in rows[mark.index()].into_iter().enumerate() {
                    while bits != 0 {
                        set.insert(first + 64 * word + bits.trailing_zeros() as usize);
                        bits &= bits - 1;
                    }
                }
            }
        }
        Reachability { marks: distinct, index, ancestors }
    }

    /// The marked nodes, in the order given; bit `i` of a row is mark `i`.
    pub fn marks(&self) -> &[NodeId] {
        &self.marks
    }

    /// The number of a marked node.
    pub fn mark(&self, id: NodeId) -> Option<usize> {
        self.index.get(id.index()).filter(|&&i| i != NONE).map(|&i| i as usize)
    }

    /// The marks that reach mark `mark`, as bits; `None` for a number that no mark has.
    pub fn ancestors(&self, mark: usize) -> Option<&FixedBitSet> {
        self.ancestors.get(mark)
    }

    /// Whether a path of at least one edge leads from `from` to `to`; `None` unless both are marked.
    pub fn reaches(&self, from: NodeId, to: NodeId) -> Option<bool> {
        Some(self.ancestors[self.mark(to)?].contains(self.mark(from)?))
    }
}

/// For each set, the pairs of positions in it of which the first reaches the second, in ascending order. Time: for
/// every 256 nodes of sets that begin near each other, the edges between the first and the last of them.
pub fn within<G: EdgeSource>(
    edges: G,
    order: &TopologicalOrder,
    sets: &[Vec<NodeId>],
) -> Vec<Vec<(usize, usize)>> {
    let mut found = vec![Vec::new(); sets.len()];
    let mut bits = vec![NONE; edges.node_count()];
    let mut rows = Vec::new();
    let first = |&set: &usize| sets[set].iter().map(|&id| order.position(id)).min();
    let mut waiting: Vec<usize> = (0..sets.len()).filter(|&set| sets[set].len() > 1).collect();
    waiting.sort_by_key(first);
    let mut waiting = waiting.into_iter().peekable();
    while let Some(set) = waiting.next() {
        let mut together = vec![set];
        let mut marks = sets[set].clone();
        while let Some(next) = waiting.next_if(|&next| marks.len() + sets[next].len() <= BLOCK) {
            marks.extend(&sets[next]);
            together.push(next);
        }
        marks.sort_unstable();
        marks.dedup();
        for sources in marks.chunks(BLOCK) {
            sources.iter().enumerate().for_each(|(bit, id)| bits[id.index()] = bit as u32);
            let start = sweep_between(edges, order, &marks, &bits, &mut rows);
            for &set in &together {
                let bit = |id: &NodeId| bits[id.index()] as usize;
                let members = sets[set].iter().map(bit).enumerate();
                let sources: Vec<(usize, usize)> = members.filter(|&(_, bit)| bit < BLOCK).collect();
                for (to, &target) in sets[set].iter().enumerate() {
                    let row: [u64; WORDS] = rows[(order.position(target) - start) as usize];
                    // Nothing leads to most members.
                    if row == [0; WORDS] {
                        continue;
                    }
                    let reach = sources.iter().filter(|(_, bit)| row[bit / 64] >> (bit % 64) & 1 == 1);
                    found[set].extend(reach.map(|&(from, _)| (from, to)));
                }
            }
            sources.iter().for_each(|id| bits[id.index()] = NONE);
        }
    }
    found.iter_mut().for_each(|pairs| pairs.sort_unstable());
    found
}

/// Fills the rows of all nodes from the first to the last of `marks`, for the nodes that have a bit; gives the position
/// of the first.
fn sweep_between<G: EdgeSource>(
    edges: G,
    order: &TopologicalOrder,
    marks: &[NodeId],
    bits: &[u32],
    rows: &mut Vec<[u64; WORDS]>,
) -> u32 {
    let positions = marks.iter().map(|&id| order.position(id));
    let (start, end) = positions.fold((NONE, 0), |(low, high), at| (low.min(at), high.max(at)));
    rows.clear();
    for &id in &order.order()[start as usize..=end as usize] {
        let mut row = [0u64; WORDS];
        for input in edges.before(id) {
            let Some(at) = order.position(input).checked_sub(start) else { continue };
            for (word, more) in row.iter_mut().zip(rows[at as usize]) {
                *word |= more;
            }
            let bit = bits[input.index()] as usize;
            if bit < BLOCK {
                row[bit / 64] |= 1 << (bit % 64);
            }
        }
        rows.push(row);
    }
    start
}

/// Whether a path of at least one edge leads from `from` to `to`. Searches backward, over nodes that come after
/// `from` in `order`.
pub fn reaches<G: EdgeSource>(edges: G, order: &TopologicalOrder, from: NodeId, to: NodeId) -> bool {
    path(edges, order, from, to).is_some()
}

/// A shortest path from `from` to `to`, both included, of at least one edge; of several, the one through the
/// inputs that `to` names first.
pub fn path<G: EdgeSource>(
    edges: G,
    order: &TopologicalOrder,
    from: NodeId,
    to: NodeId,
) -> Option<Vec<NodeId>> {
    let start = order.position(from);
    if start >= order.position(to) {
        return None;
    }
    let mut next = rustc_hash::FxHashMap::default();
    let mut queue = VecDeque::from([to]);
    while let Some(at) = queue.pop_front() {
        for input in edges.before(at) {
            if input == from {
                let mut nodes = vec![from, at];
                while let Some(&after) = next.get(&nodes[nodes.len() - 1]) {
                    nodes.push(after);
                }
                return Some(nodes);
            }
            if order.position(input) > start && input != to && !next.contains_key(&input) {
                next.insert(input, at);
                queue.push_back(input);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::edges::Edges;
    use super::super::testing::{dag_pairs, graph_of, permutation};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cycle_is_the_answer_where_there_is_one() {
        let graph = graph_of(4, &[(0, 1), (1, 2), (2, 1)]);
        let cycle = Reachability::new(&Edges::new(&graph), &[NodeId(0)]).unwrap_err();
        assert_eq!(cycle.nodes, [NodeId(1), NodeId(2)]);
    }

    #[test]
    fn more_marks_than_one_sweep_takes() {
        let n = 3 * BLOCK as u32 + 7;
        let pairs: Vec<(u32, u32)> = (0..n - 1).map(|i| (i, i + 1)).collect();
        let edges = Edges::new(&graph_of(n as usize, &pairs));
        let marks: Vec<NodeId> = (0..n).rev().map(NodeId).collect();
        let found = Reachability::new(&edges, &marks).unwrap();
        for (i, j) in [(0, 0), (0, 1), (1, 0), (5, n - 1), (BLOCK as u32, n - 2), (n - 1, 3)] {
            assert_eq!(found.reaches(NodeId(i), NodeId(j)), Some(i < j), "{i} {j}");
        }
        assert_eq!(found.reaches(NodeId(0), NodeId(0)), Some(false));
    }

    #[test]
    fn a_set_of_more_than_one_sweep() {
        let n = BLOCK as u32 + 50;
        let pairs: Vec<(u32, u32)> = (0..n - 1).map(|i| (i, i + 1)).collect();
        let edges = Edges::new(&graph_of(n as usize, &pairs));
        let order = TopologicalOrder::new(&edges).unwrap();
        let all: Vec<NodeId> = (0..n).map(NodeId).collect();
        let small = vec![NodeId(7), NodeId(3)];
        let found = within(&edges, &order, &[all, small]);
        assert_eq!(found[0].len(), (n * (n - 1) / 2) as usize);
        assert_eq!(found[1], [(1, 0)]);
    }

    fn slow(pairs: &[(u32, u32)], from: u32, to: u32) -> bool {
        pairs.iter().any(|&(a, b)| a == from && (b == to || slow(pairs, b, to)))
    }

    proptest! {
        #[test]
        fn the_same_as_a_walk_for_each_pair((n, pairs) in dag_pairs(12, 24), shuffle in any::<u64>()) {
            let place = permutation(n, shuffle);
            let moved: Vec<(u32, u32)> =
                pairs.iter().map(|&(a, b)| (place[a as usize], place[b as usize])).collect();
            let edges = Edges::new(&graph_of(n, &moved));
            let order = TopologicalOrder::new(&edges).unwrap();
            let marks: Vec<NodeId> = (0..n as u32).filter(|i| i % 3 != 1).map(NodeId).collect();
            let found = Reachability::new(&edges, &marks).unwrap();
            for a in (0..n as u32).map(NodeId) {
                for b in (0..n as u32).map(NodeId) {
                    let expected = slow(&moved, a.0, b.0);
                    prop_assert_eq!(reaches(&edges, &order, a, b), expected);
                    if marks.contains(&a) && marks.contains(&b) {
                        prop_assert_eq!(found.reaches(a, b), Some(expected));
                    } else {
                        prop_assert_eq!(found.reaches(a, b), None);
                    }
                }
            }
        }

        #[test]
        fn within_sets_as_for_each_pair(
            (n, pairs) in dag_pairs(12, 24),
            shuffle in any::<u64>(),
            sets in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..5), 0..6),
        ) {
            let place = permutation(n, shuffle);
            let moved: Vec<(u32, u32)> =
                pairs.iter().map(|&(a, b)| (place[a as usize], place[b as usize])).collect();
            let edges = Edges::new(&graph_of(n, &moved));
            let order = TopologicalOrder::new(&edges).unwrap();
            let sets: Vec<Vec<NodeId>> =
                sets.iter().map(|set| set.iter().map(|i| NodeId(i.index(n) as u32)).collect()).collect();
            for (set, found) in sets.iter().zip(within(&edges, &order, &sets)) {
                let all = (0..set.len()).flat_map(|a| (0..set.len()).map(move |b| (a, b)));
                let expected: Vec<(usize, usize)> =
                    all.filter(|&(a, b)| slow(&moved, set[a].0, set[b].0)).collect();
                prop_assert_eq!(found, expected);
            }
        }

        #[test]
        fn a_path_is_real_and_shortest((n, pairs) in dag_pairs(14, 40)) {
            let edges = Edges::new(&graph_of(n, &pairs));
            let order = TopologicalOrder::new(&edges).unwrap();
            // Shortest distances by as many rounds as there are nodes.
            let mut distance = vec![vec![usize::MAX; n]; n];
            for round in 1..=n {
                for &(a, b) in &pairs {
                    for row in 0..n {
                        let here = if row == a as usize { 0 } else { distance[row][a as usize] };
                        if here == round - 1 {
                            distance[row][b as usize] = distance[row][b as usize].min(round);
                        }
                    }
                }
            }
            for a in 0..n {
                for b in 0..n {
                    let found = path(&edges, &order, NodeId(a as u32), NodeId(b as u32));
                    prop_assert_eq!(found.as_ref().map_or(usize::MAX, |p| p.len() - 1), distance[a][b]);
                    for step in found.iter().flat_map(|p| p.windows(2)) {
                        prop_assert!(pairs.contains(&(step[0].0, step[1].0)));
                    }
                }
            }
        }
    }
}
