//! Cycles: the shortest one, told with the reason of every edge.
//!
//! # The idea
//!
//! Nodes that no cycle can pass are peeled off from both ends; what is left is split into strongly connected
//! components. Walking round a cycle, the list position must go down at least once, so every cycle enters some
//! node from a later one (or from itself). A breadth-first search from each such node, no deeper than the best
//! cycle so far, finds the shortest of all. In a list that is nearly sorted there are few such nodes.
//!
//! # What it does not do
//!
//! On a large component with a great many entries the searches stop after a bound of [`EDGE_BUDGET`] edge
//! visits; then the cycle is a real one, but maybe not the shortest, and says so.

use super::edges::{EdgeSource, Rows};
use super::origin::Origins;
use crate::graph::{Graph, NodeId};
use petgraph::graph::{DiGraph, NodeIndex};
use std::collections::VecDeque;

/// Edge visits after which no further search for a shorter cycle begins.
pub const EDGE_BUDGET: usize = 1 << 26;

/// A cycle of edges: each node comes before the next one, and the last before the first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cycle {
    /// The nodes along the cycle, from the one that stands first in the list.
    pub nodes: Vec<NodeId>,
    /// Whether no shorter cycle exists.
    pub shortest: bool,
}

impl Cycle {
    /// The edges of the cycle.
    pub fn edges(&self) -> impl Iterator<Item = (NodeId, NodeId)> {
        self.nodes.iter().copied().zip(self.nodes.iter().copied().cycle().skip(1))
    }

    /// The names along the cycle, back to the first: `a -> b -> a`.
    pub fn chain(&self, graph: &Graph) -> String {
        let names = self.nodes.iter().chain(self.nodes.first()).map(|&id| graph.name(id));
        names.collect::<Vec<_>>().join(" -> ")
    }

    /// One line for each edge: why its first node must come before its second.
    pub fn reasons(&self, graph: &Graph, origins: &impl Origins) -> Vec<String> {
        self.edges().map(|(before, after)| origins.reason(graph, before, after)).collect()
    }
}

/// The shortest cycle of `edges`; of several, the one whose entry stands first in the list. `None` where there
/// is no cycle. Linear in the edges times the number of entries (see the module).
pub fn shortest_cycle<G: EdgeSource>(edges: G) -> Option<Cycle> {
    let n = edges.node_count();
    // Of a list that is in order nothing need be built.
    if (0..n as u32).map(NodeId).all(|id| edges.after(id).all(|next| id < next)) {
        return None;
    }
    let mut pairs = Vec::new();
    for id in (0..n as u32).map(NodeId) {
        pairs.extend(edges.after(id).map(|next| (id, next)));
    }
    shortest_cycle_of(&Rows::build(n, &pairs))
}

/// [`shortest_cycle`] of a table of successors.
pub(super) fn shortest_cycle_of(after: &Rows) -> Option<Cycle> {
    let core = core(after);
    // Positions are kept: the compact nodes are in list order.
    let mut compact = vec![u32::MAX; after.len()];
    let mut graph = DiGraph::<NodeId, ()>::with_capacity(core.len(), core.len());
    for &id in &core {
        compact[id.index()] = graph.add_node(id).index() as u32;
    }
    for &id in &core {
        for &next in after.of(id) {
            if compact[next.index()] != u32::MAX {
                let ends = [id, next].map(|v| NodeIndex::new(compact[v.index()] as usize));
                graph.add_edge(ends[0], ends[1], ());
            }
        }
    }
    let mut component = vec![0u32; graph.node_count()];
    for (i, members) in petgraph::algo::kosaraju_scc(&graph).iter().enumerate() {
        members.iter().for_each(|v| component[v.index()] = i as u32);
    }
    let mut search = Search {
        graph: &graph,
        component: &component,
        from: vec![NodeIndex::end(); graph.node_count()],
        seen: vec![u32::MAX; graph.node_count()],
        visits: 0,
    };
    let mut best: Option<Vec<NodeIndex>> = None;
    let mut shortest = true;
    for entry in graph.node_indices() {
        let entered = graph
            .neighbors_directed(entry, petgraph::Direction::Incoming)
            .any(|from| from >= entry && component[from.index()] == component[entry.index()]);
        if !entered {
            continue;
        }
        if best.is_some() && search.visits > EDGE_BUDGET {
            shortest = false;
            break;
        }
        let limit = best.as_ref().map_or(usize::MAX, Vec::len);
        if let Some(found) = search.through(entry, limit) {
            best = Some(found);
        }
        if best.as_ref().is_some_and(|b| b.len() == 1) {
            break;
        }
    }
    let mut nodes: Vec<NodeId> = best?.iter().map(|&v| graph[v]).collect();
    let first = (0..nodes.len()).min_by_key(|&i| nodes[i])?;
    nodes.rotate_left(first);
    Some(Cycle { nodes, shortest })
}

/// The nodes that are left when nodes without predecessor and nodes without successor are taken away for as
/// long as there are any, in list order.
fn core(after: &Rows) -> Vec<NodeId> {
    let n = after.len();
    let ids = || (0..n as u32).map(NodeId);
    let mut pairs = Vec::new();
    for id in ids() {
        pairs.extend(after.of(id).iter().map(|&next| (next, id)));
    }
    let before = Rows::build(n, &pairs);
    let mut gone = vec![false; n];
    for (here, there) in [(&before, after), (after, &before)] {
        let mut degree: Vec<usize> =
            ids().map(|id| here.of(id).iter().filter(|v| !gone[v.index()]).count()).collect();
        let mut free: Vec<NodeId> = ids().filter(|id| degree[id.index()] == 0 && !gone[id.index()]).collect();
        while let Some(id) = free.pop() {
            gone[id.index()] = true;
            for next in there.of(id) {
                if !gone[next.index()] {
                    degree[next.index()] -= 1;
                    if degree[next.index()] == 0 {
                        free.push(*next);
                    }
                }
            }
        }
    }
    ids().filter(|id| !gone[id.index()]).collect()
}

struct Search<'a> {
    graph: &'a DiGraph<NodeId, ()>,
    component: &'a [u32],
    from: Vec<NodeIndex>,
    seen: Vec<u32>,
    visits: usize,
}

impl Search<'_> {
    /// The shortest cycle through `entry`, if it has fewer than `limit` nodes.
    fn through(&mut self, entry: NodeIndex, limit: usize) -> Option<Vec<NodeIndex>> {
        let stamp = entry.index() as u32;
        let mut queue = VecDeque::from([(entry, 1usize)]);
        while let Some((at, depth)) = queue.pop_front() {
            if depth >= limit {
                return None;
            }
            // petgraph lists the newest edge first; ties must not depend on that.
            let mut next: Vec<NodeIndex> = self.graph.neighbors(at).collect();
            next.reverse();
            self.visits += next.len();
            for to in next {
                if to == entry {
                    let mut nodes = vec![at];
                    while nodes[nodes.len() - 1] != entry {
                        nodes.push(self.from[nodes[nodes.len() - 1].index()]);
                    }
                    nodes.reverse();
                    return Some(nodes);
                }
                if self.seen[to.index()] != stamp && self.component[to.index()] == self.component[at.index()]
                {
                    self.seen[to.index()] = stamp;
                    self.from[to.index()] = at;
                    queue.push_back((to, depth + 1));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::edges::Edges;
    use super::super::testing::graph_of;
    use super::*;
    use crate::graph::OrderingEdge;
    use proptest::prelude::*;

    #[test]
    fn the_shortest_cycle_is_told_with_its_reasons() {
        let mut g = graph_of(6, &[(0, 1), (1, 2), (2, 3), (3, 1), (3, 4)]);
        g.ordering.push(OrderingEdge { before: NodeId(4), after: NodeId(3) });
        let edges = Edges::new(&g);
        let cycle = shortest_cycle(&edges).unwrap();
        assert!(cycle.shortest);
        assert_eq!(cycle.chain(&g), "n3 -> n4 -> n3");
        assert_eq!(
            cycle.reasons(&g, &edges),
            ["n4 reads n3 (args[0])", "an ordering edge puts n4 before n3"]
        );
    }

    #[test]
    fn a_node_that_needs_itself_is_a_cycle_of_one() {
        let g = graph_of(3, &[(0, 1), (1, 0), (2, 2)]);
        assert_eq!(shortest_cycle(&Edges::new(&g)).unwrap().chain(&g), "n2 -> n2");
    }

    #[test]
    fn a_long_ring_costs_one_search() {
        let n = 200_000u32;
        let pairs: Vec<_> = (0..n).map(|i| (NodeId(i), NodeId((i + 1) % n))).collect();
        let cycle = shortest_cycle_of(&Rows::build(n as usize, &pairs)).unwrap();
        assert_eq!(cycle.nodes.len(), n as usize);
        assert!(cycle.shortest);
    }

    /// The length of the shortest cycle by breadth-first search from every node.
    fn slow(n: usize, pairs: &[(u32, u32)]) -> Option<usize> {
        let mut best: Option<usize> = None;
        for start in 0..n as u32 {
            let mut distance = vec![None; n];
            let mut queue = VecDeque::from([(start, 0usize)]);
            while let Some((at, d)) = queue.pop_front() {
                for &(_, to) in pairs.iter().filter(|p| p.0 == at) {
                    if to == start {
                        best = Some(best.map_or(d + 1, |b| b.min(d + 1)));
                    }
                    if distance[to as usize].is_none() {
                        distance[to as usize] = Some(d + 1);
                        queue.push_back((to, d + 1));
                    }
                }
            }
        }
        best
    }

    proptest! {
        #[test]
        fn as_long_as_the_shortest_found_from_every_node(
            n in 1usize..12,
            raw in prop::collection::vec((0u32..12, 0u32..12), 0..24),
        ) {
            let pairs: Vec<(u32, u32)> =
                raw.iter().map(|&(a, b)| (a % n as u32, b % n as u32)).collect();
            let edges = Edges::new(&graph_of(n, &pairs));
            let cycle = shortest_cycle(&edges);
            prop_assert_eq!(cycle.as_ref().map(|c| c.nodes.len()), slow(n, &pairs));
            if let Some(cycle) = cycle {
                for (a, b) in cycle.edges() {
                    prop_assert!(pairs.contains(&(a.0, b.0)));
                }
            }
        }
    }
}
