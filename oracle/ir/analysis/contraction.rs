//! Contracting groups of nodes: does an order remain in which each group is one step?
//!
//! A bucket puts several collectives in the place of one. Whether that is legal is a question about the graph in
//! which *all* buckets are contracted at once: the starts of a bucket to one node, its waits to another. Members
//! of each bucket may be independent and the whole still have a cycle, from one bucket to another and back.
//!
//! Formally: let `c` map each node to its group, or to itself. The contracted graph has an edge from `c(u)` to
//! `c(v)` for each edge from `u` to `v`. It must have no cycle; an edge inside a group is a cycle of one.
//! Linear, apart from the search for the shortest cycle, which happens only where there is one.

use super::cycle::{Cycle, shortest_cycle_of};
use super::edges::{EdgeSource, Rows};
use super::origin::Origins;
use crate::graph::{Graph, NodeId};
use petgraph::unionfind::UnionFind;

/// A cycle of the contracted graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContractedCycle {
    /// The edges along the cycle. Each one ends in the contracted node in which the next one begins, and the
    /// last one where the first one begins: at one node, or at two nodes of one group.
    pub steps: Vec<Step>,
    /// Whether no shorter cycle exists.
    pub shortest: bool,
}

/// An edge along a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Comes first.
    pub from: NodeId,
    /// Comes later.
    pub to: NodeId,
    /// The group of `to`: its place in the list of groups.
    pub group: Option<usize>,
}

/// Whether an order exists in which the nodes of each group come together; the shortest cycle where none does.
/// Groups that share a node count as one.
pub fn check_contraction<G: EdgeSource>(edges: G, groups: &[Vec<NodeId>]) -> Result<(), ContractedCycle> {
    check_contraction_besides(edges, groups, |_, _| false)
}

/// [`check_contraction`], where an edge within a group does not count if it `is_kept` by the nodes coming together.
pub fn check_contraction_besides<G: EdgeSource>(
    edges: G,
    groups: &[Vec<NodeId>],
    is_kept: impl Fn(NodeId, NodeId) -> bool,
) -> Result<(), ContractedCycle> {
    let n = edges.node_count();
    let mut joined = UnionFind::<u32>::new(n);
    let mut group_of = vec![u32::MAX; n];
    for (i, group) in groups.iter().enumerate() {
        for &member in group {
            joined.union(group[0].0, member.0);
            group_of[member.index()] = group_of[member.index()].min(i as u32);
        }
    }
    // Contracted nodes in list order of their first members, so that only edges into groups can go back.
    let mut contracted = vec![u32::MAX; n];
    let mut of = vec![NodeId(0); n];
    let mut count = 0u32;
    for id in (0..n as u32).map(NodeId) {
        let root = joined.find(id.0) as usize;
        if contracted[root] == u32::MAX {
            contracted[root] = count;
            count += 1;
        }
        of[id.index()] = NodeId(contracted[root]);
    }
    let counts = |id: NodeId, next: &NodeId| of[id.index()] != of[next.index()] || !is_kept(id, *next);
    let mut blockers = vec![0u32; count as usize];
    let mut pairs = Vec::with_capacity(2 * n);
    for id in (0..n as u32).map(NodeId) {
        for next in edges.after(id).filter(|next| counts(id, next)) {
            blockers[of[next.index()].index()] += 1;
            pairs.push((of[id.index()], of[next.index()]));
        }
    }
    let rows = Rows::build(count as usize, &pairs);
    drop(pairs);
    let mut ready: Vec<NodeId> = (0..count).map(NodeId).filter(|id| blockers[id.index()] == 0).collect();
    let mut done = 0;
    while let Some(id) = ready.pop() {
        done += 1;
        for next in rows.of(id) {
            blockers[next.index()] -= 1;
            if blockers[next.index()] == 0 {
                ready.push(*next);
            }
        }
    }
    if done == count {
        return Ok(());
    }
    let Cycle { nodes, shortest } = shortest_cycle_of(&rows).unwrap_or_default();
    // The first edge of the graph behind each edge of the cycle.
    let mut after = vec![NodeId(u32::MAX); count as usize];
    for (i, &node) in nodes.iter().enumerate() {
        after[node.index()] = nodes[(i + 1) % nodes.len()];
    }
    let mut edge_from: Vec<Option<Step>> = vec![None; count as usize];
    for id in (0..n as u32).map(NodeId) {
        let here = of[id.index()];
        if after[here.index()] == NodeId(u32::MAX) || edge_from[here.index()].is_some() {
            continue;
        }
        let is_next = |to: &NodeId| of[to.index()] == after[here.index()] && counts(id, to);
        if let Some(to) = edges.after(id).find(is_next) {
            let group = group_of[to.index()];
            let group = (group != u32::MAX).then_some(group as usize);
            edge_from[here.index()] = Some(Step { from: id, to, group });
        }
    }
    let steps = nodes.iter().filter_map(|node| edge_from[node.index()]).collect();
    Err(ContractedCycle { steps, shortest })
}

impl ContractedCycle {
    /// The cycle in one line, groups told by their members under the name `what`:
    /// `bucket {a1, b1} -> wa1 -> a2 in bucket {a2, b2} -> wb2 -> b1 in bucket {a1, b1}`. It begins with the
    /// group entered last.
    pub fn chain(&self, graph: &Graph, groups: &[Vec<NodeId>], what: &str) -> String {
        let describe = |group: Option<usize>| {
            let names = group.and_then(|i| groups.get(i)).into_iter().flatten().map(|&id| graph.name(id));
            format!("{what} {{{}}}", names.collect::<Vec<_>>().join(", "))
        };
        let steps = self.rotated();
        let Some(last) = steps.last() else { return String::new() };
        let mut chain = match last.group {
            Some(_) => describe(last.group),
            None => graph.name(last.to).to_string(),
        };
        for step in &steps {
            chain += " -> ";
            chain += graph.name(step.to);
            if step.group.is_some() {
                chain += &format!(" in {}", describe(step.group));
            }
        }
        chain
    }

    /// One line for each edge of the cycle, in the order of [`ContractedCycle::chain`].
    pub fn reasons(&self, graph: &Graph, origins: &impl Origins) -> Vec<String> {
        self.rotated().iter().map(|step| origins.reason(graph, step.from, step.to)).collect()
    }

    /// The steps, so that the last one enters a group where there is one.
    fn rotated(&self) -> Vec<Step> {
        let mut steps = self.steps.clone();
        if let Some(last) = steps.iter().rposition(|step| step.group.is_some()) {
            steps.rotate_left(last + 1);
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::super::edges::Edges;
    use super::super::testing::{dag_pairs, graph_of};
    use super::*;
    use crate::graph::{Op, Value};
    use petgraph::graph::{DiGraph, NodeIndex};
    use proptest::prelude::*;

    fn ids(list: &[u32]) -> Vec<NodeId> {
        list.iter().map(|&i| NodeId(i)).collect()
    }

    /// a1 -> wa1 -> a2 and b2 -> wb2 -> b1, as in the example of the historic grouping by key.
    #[test]
    fn buckets_that_need_each_other_are_told() {
        let mut g = Graph::new("crossed");
        for name in ["a1", "wa1", "a2", "wa2", "b2", "wb2", "b1", "wb1"] {
            g.push(name, Op::Call, "f");
        }
        for (from, to) in [(0u32, 1), (1, 2), (2, 3), (4, 5), (5, 6), (6, 7)] {
            g.node_mut(NodeId(to)).args = g.push_values(&[Value::Node(NodeId(from))]);
        }
        let edges = Edges::new(&g);
        let buckets = [ids(&[0, 6]), ids(&[2, 4])];
        for bucket in &buckets {
            assert_eq!(check_contraction(&edges, std::slice::from_ref(bucket)), Ok(()));
        }
        let cycle = check_contraction(&edges, &buckets).unwrap_err();
        assert_eq!(
            cycle.chain(&g, &buckets, "bucket"),
            "bucket {a1, b1} -> wa1 -> a2 in bucket {a2, b2} -> wb2 -> b1 in bucket {a1, b1}"
        );
        assert_eq!(
            cycle.reasons(&g, &edges),
            [
                "wa1 reads a1 (args[0])",
                "a2 reads wa1 (args[0])",
                "wb2 reads b2 (args[0])",
                "b1 reads wb2 (args[0])"
            ]
        );
    }

    /// Three gathers, neighbours independent, the first before the last: mutant K1b compares only neighbours.
    #[test]
    fn a_member_behind_another_is_a_cycle() {
        // g0 -> w0 -> x -> g2; g1 apart.
        let g = graph_of(6, &[(0, 1), (1, 2), (2, 4), (3, 5)]);
        let cycle = check_contraction(&Edges::new(&g), &[ids(&[0, 3, 4])]).unwrap_err();
        assert_eq!(
            cycle.chain(&g, &[ids(&[0, 3, 4])], "bucket"),
            "bucket {n0, n3, n4} -> n1 -> n2 -> n4 in bucket {n0, n3, n4}"
        );
    }

    #[test]
    fn an_edge_inside_a_group_is_a_cycle_of_one() {
        let g = graph_of(3, &[(0, 1), (1, 2)]);
        let cycle = check_contraction(&Edges::new(&g), &[ids(&[1, 2])]).unwrap_err();
        assert_eq!(cycle.steps, [Step { from: NodeId(1), to: NodeId(2), group: Some(0) }]);
    }

    #[test]
    fn groups_that_share_a_node_are_one() {
        let g = graph_of(4, &[(0, 1), (1, 3)]);
        let edges = Edges::new(&g);
        assert_eq!(check_contraction(&edges, &[ids(&[0, 2]), ids(&[3])]), Ok(()));
        assert!(check_contraction(&edges, &[ids(&[0, 2]), ids(&[2, 3])]).is_err());
    }

    fn contracted(n: usize, pairs: &[(u32, u32)], group: &[Option<usize>]) -> DiGraph<(), ()> {
        let groups = group.iter().flatten().max().map_or(0, |m| m + 1);
        let of = |i: u32| NodeIndex::new(group[i as usize].unwrap_or(groups + i as usize));
        let mut graph = DiGraph::new();
        (0..groups + n).for_each(|_| {
            graph.add_node(());
        });
        pairs.iter().for_each(|&(a, b)| {
            graph.add_edge(of(a), of(b), ());
        });
        graph
    }

    proptest! {
        #[test]
        fn the_same_as_petgraph_on_the_contracted_graph(
            (n, pairs) in dag_pairs(14, 24),
            choice in prop::collection::vec(prop::option::of(0usize..3), 14),
        ) {
            let group = &choice[..n];
            let groups: Vec<Vec<NodeId>> = (0..3)
                .map(|i| (0..n).filter(|&v| group[v] == Some(i)).map(|v| NodeId(v as u32)).collect())
                .collect();
            let found = check_contraction(&Edges::new(&graph_of(n, &pairs)), &groups);
            let cyclic = petgraph::algo::is_cyclic_directed(&contracted(n, &pairs, group));
            prop_assert_eq!(found.is_err(), cyclic);
            if let Err(cycle) = found {
                let of = |v: NodeId| group[v.index()].map_or(100 + v.index(), |g| g);
                prop_assert!(cycle.shortest && !cycle.steps.is_empty());
                for (i, step) in cycle.steps.iter().enumerate() {
                    prop_assert!(pairs.contains(&(step.from.0, step.to.0)));
                    let next = cycle.steps[(i + 1) % cycle.steps.len()];
                    prop_assert_eq!(of(step.to), of(next.from));
                    prop_assert_eq!(step.group, group[step.to.index()]);
                }
            }
        }
    }
}
