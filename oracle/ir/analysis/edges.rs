//! The edges of a graph, both ways, in compressed rows.
//!
//! A data edge runs from a node to each distinct node that refers to it, at any depth of its arguments. An
//! ordering edge runs as the graph lists it. The two kinds are kept apart: an ordering edge orders, it does not
//! pass a value and keeps no storage alive.
//!
//! [`Edges`] implements petgraph's `visit` traits over both kinds, so petgraph's algorithms run on it without a
//! copy.

use crate::graph::{Graph, NodeId};
use petgraph::visit;

/// Which edges a walk follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EdgeKind {
    /// A value passes.
    Data,
    /// Order only.
    Ordering,
}

/// Edges that an analysis can walk both ways. The nodes are `NodeId(0)` to `NodeId(node_count - 1)`, and both
/// directions tell the same edges. Every type with these traits of petgraph is one: `&`[`Edges`],
/// `&`[`Dependences`](super::Dependences), petgraph's own adaptors.
pub trait EdgeSource: visit::NodeCount + visit::IntoNeighborsDirected<NodeId = NodeId> {
    /// The nodes that come after `id`.
    fn after(self, id: NodeId) -> Self::NeighborsDirected {
        self.neighbors_directed(id, petgraph::Direction::Outgoing)
    }

    /// The nodes that come before `id`.
    fn before(self, id: NodeId) -> Self::NeighborsDirected {
        self.neighbors_directed(id, petgraph::Direction::Incoming)
    }
}

impl<G: visit::NodeCount + visit::IntoNeighborsDirected<NodeId = NodeId>> EdgeSource for G {}

/// A table of rows of different lengths, in one array.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    start: Vec<u32>,
    node: Vec<NodeId>,
}

impl Rows {
    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.start.len().saturating_sub(1)
    }

    /// A row.
    pub(super) fn of(&self, id: NodeId) -> &[NodeId] {
        &self.node[self.range(id)]
    }

    /// The places of a row in the array of all entries.
    pub(super) fn range(&self, id: NodeId) -> std::ops::Range<usize> {
        self.start[id.index()] as usize..self.start[id.index() + 1] as usize
    }

    /// The places of `pairs` in an order by row; pairs of one row keep their order.
    pub(super) fn sort<T>(n: usize, pairs: &[(NodeId, T)]) -> Vec<u32> {
        let mut at = vec![0u32; n + 1];
        for (row, _) in pairs {
            at[row.index() + 1] += 1;
        }
        for i in 0..n {
            at[i + 1] += at[i];
        }
        let mut sorted = vec![0u32; pairs.len()];
        for (i, (row, _)) in pairs.iter().enumerate() {
            sorted[at[row.index()] as usize] = i as u32;
            at[row.index()] += 1;
        }
        sorted
    }

    /// Rows from (row, entry) pairs; entries keep the order of the pairs.
    pub(super) fn build(n: usize, pairs: &[(NodeId, NodeId)]) -> Rows {
        if pairs.is_empty() {
            return Rows { start: vec![0; n + 1], node: Vec::new() };
        }
        let mut start = vec![0u32; n + 1];
        for (row, _) in pairs {
            start[row.index()] += 1;
        }
        for i in 0..n {
            start[i + 1] += start[i];
        }
        // Each start stands at the end of its row, and goes back as the row is filled from its end.
        let mut node = vec![NodeId(0); pairs.len()];
        for &(row, entry) in pairs.iter().rev() {
            start[row.index()] -= 1;
            node[start[row.index()] as usize] = entry;
        }
        Rows { start, node }
    }

    /// The rows the other way round, of as many nodes: for each entry the rows that it is in, in order.
    pub(super) fn turned(&self) -> Rows {
        let n = self.len();
        let mut start = vec![0u32; n + 1];
        for entry in &self.node {
            start[entry.index()] += 1;
        }
        for i in 0..n {
            start[i + 1] += start[i];
        }
        let mut node = vec![NodeId(0); self.node.len()];
        for row in (0..n as u32).rev().map(NodeId) {
            for entry in self.of(row) {
                start[entry.index()] -= 1;
                node[start[entry.index()] as usize] = row;
            }
        }
        Rows { start, node }
    }
}

/// The edges of one graph. Successors and predecessors are data edges first, then ordering edges.
#[derive(Clone, Debug, Default)]
pub struct Edges {
    inputs: Rows,
    users: Rows,
    ordered_after: Rows,
    ordered_before: Rows,
}

impl Edges {
    /// Collects the edges of `graph`. Linear in its size.
    pub fn new(graph: &Graph) -> Edges {
        let n = graph.len();
        let mut seen = vec![u32::MAX; n];
        let mut inputs = Rows { start: Vec::with_capacity(n + 1), node: Vec::with_capacity(2 * n) };
        for id in graph.ids() {
            inputs.start.push(inputs.node.len() as u32);
            graph.for_each_input(id, &mut |input: NodeId| {
                // A reference outside the graph is a fault that the validator reports, not an edge.
                if seen.get(input.index()).is_some_and(|&last| last != id.0) {
                    seen[input.index()] = id.0;
                    inputs.node.push(input);
                }
            });
        }
        inputs.start.push(inputs.node.len() as u32);
        let mut ordering = graph.ordering.clone();
        ordering.retain(|e| e.before.index() < n && e.after.index() < n);
        ordering.sort();
        ordering.dedup();
        let before: Vec<_> = ordering.iter().map(|e| (e.after, e.before)).collect();
        let ordered_before = Rows::build(n, &before);
        Edges { users: inputs.turned(), ordered_after: ordered_before.turned(), inputs, ordered_before }
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The distinct nodes whose value `id` takes, in order of first appearance.
    pub fn inputs(&self, id: NodeId) -> &[NodeId] {
        self.inputs.of(id)
    }

    /// The distinct nodes that take the value of `id`, in list order.
    pub fn users(&self, id: NodeId) -> &[NodeId] {
        self.users.of(id)
    }

    /// The nodes that an ordering edge puts before `id`.
    pub fn ordered_before(&self, id: NodeId) -> &[NodeId] {
        self.ordered_before.of(id)
    }

    /// The nodes that an ordering edge puts after `id`.
    pub fn ordered_after(&self, id: NodeId) -> &[NodeId] {
        self.ordered_after.of(id)
    }

    /// Whether an ordering edge leads from one node to another. It looks at the one with fewer of them.
    pub fn is_ordered(&self, from: NodeId, to: NodeId) -> bool {
        meet((self.ordered_before(to), from), (self.ordered_after(from), to))
    }

    /// Everything that must come before `id`: its inputs, then what ordering edges put before it.
    pub fn predecessors(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        self.inputs(id).iter().chain(self.ordered_before(id)).copied()
    }

    /// Everything that must come after `id`: its users, then what ordering edges put after it.
    pub fn successors(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        self.users(id).iter().chain(self.ordered_after(id)).copied()
    }

    /// The kind of the edge from `from` to `to`; a data edge where there are both.
    pub fn kind(&self, from: NodeId, to: NodeId) -> Option<EdgeKind> {
        if meet((self.inputs(to), from), (self.users(from), to)) {
            Some(EdgeKind::Data)
        } else if self.is_ordered(from, to) {
            Some(EdgeKind::Ordering)
        } else {
            None
        }
    }
}

/// Whether two nodes are in the rows of each other. It looks into the shorter row.
fn meet(one: (&[NodeId], NodeId), other: (&[NodeId], NodeId)) -> bool {
    let (row, node) = if one.0.len() <= other.0.len() { one } else { other };
    row.contains(&node)
}

/// The data edges alone, of [`Edges::data`].
#[derive(Clone, Copy, Debug)]
pub struct DataEdges<'a>(&'a Edges);

impl Edges {
    /// The data edges alone, as an [`EdgeSource`].
    pub fn data(&self) -> DataEdges<'_> {
        DataEdges(self)
    }
}

impl visit::GraphBase for DataEdges<'_> {
    type NodeId = NodeId;
    type EdgeId = (NodeId, NodeId);
}

impl visit::GraphRef for DataEdges<'_> {}

impl visit::NodeCount for DataEdges<'_> {
    fn node_count(&self) -> usize {
        self.0.len()
    }
}

impl<'a> visit::IntoNeighbors for DataEdges<'a> {
    type Neighbors = std::iter::Copied<std::slice::Iter<'a, NodeId>>;

    fn neighbors(self, id: NodeId) -> Self::Neighbors {
        self.0.users(id).iter().copied()
    }
}

impl<'a> visit::IntoNeighborsDirected for DataEdges<'a> {
    type NeighborsDirected = std::iter::Copied<std::slice::Iter<'a, NodeId>>;

    fn neighbors_directed(self, id: NodeId, direction: petgraph::Direction) -> Self::NeighborsDirected {
        match direction {
            petgraph::Direction::Outgoing => self.0.users(id).iter().copied(),
            petgraph::Direction::Incoming => self.0.inputs(id).iter().copied(),
        }
    }
}

impl visit::GraphBase for Edges {
    type NodeId = NodeId;
    type EdgeId = (NodeId, NodeId);
}

impl visit::NodeCount for Edges {
    fn node_count(&self) -> usize {
        self.len()
    }
}

impl visit::NodeIndexable for Edges {
    fn node_bound(&self) -> usize {
        self.len()
    }

    fn to_index(&self, id: NodeId) -> usize {
        id.index()
    }

    fn from_index(&self, index: usize) -> NodeId {
        NodeId(index as u32)
    }
}

impl visit::NodeCompactIndexable for Edges {}

/// A set of nodes: petgraph's map of visited nodes.
#[derive(Clone, Debug, Default)]
pub struct NodeMarks(fixedbitset::FixedBitSet);

impl visit::VisitMap<NodeId> for NodeMarks {
    fn visit(&mut self, id: NodeId) -> bool {
        !self.0.put(id.index())
    }

    fn is_visited(&self, id: &NodeId) -> bool {
        self.0.contains(id.index())
    }

    fn unvisit(&mut self, id: NodeId) -> bool {
        let was = self.0.contains(id.index());
        self.0.set(id.index(), false);
        was
    }
}

impl visit::Visitable for Edges {
    type Map = NodeMarks;

    fn visit_map(&self) -> NodeMarks {
        NodeMarks(fixedbitset::FixedBitSet::with_capacity(self.len()))
    }

    fn reset_map(&self, map: &mut NodeMarks) {
        map.0.clear();
        map.0.grow(self.len());
    }
}

type Chain<'a> =
    std::iter::Copied<std::iter::Chain<std::slice::Iter<'a, NodeId>, std::slice::Iter<'a, NodeId>>>;

impl<'a> visit::IntoNeighbors for &'a Edges {
    type Neighbors = Chain<'a>;

    fn neighbors(self, id: NodeId) -> Chain<'a> {
        self.users(id).iter().chain(self.ordered_after(id)).copied()
    }
}

impl<'a> visit::IntoNeighborsDirected for &'a Edges {
    type NeighborsDirected = Chain<'a>;

    fn neighbors_directed(self, id: NodeId, direction: petgraph::Direction) -> Chain<'a> {
        match direction {
            petgraph::Direction::Outgoing => self.users(id).iter().chain(self.ordered_after(id)).copied(),
            petgraph::Direction::Incoming => self.inputs(id).iter().chain(self.ordered_before(id)).copied(),
        }
    }
}

impl visit::IntoNodeIdentifiers for &Edges {
    type NodeIdentifiers = std::iter::Map<std::ops::Range<u32>, fn(u32) -> NodeId>;

    fn node_identifiers(self) -> Self::NodeIdentifiers {
        (0..self.len() as u32).map(NodeId)
    }
}

impl visit::GraphProp for Edges {
    type EdgeType = petgraph::Directed;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Op, OrderingEdge, Value};

    /// a -> b -> d, a -> c -> d in nested lists and keywords, and an ordering edge b ..> c.
    fn diamond() -> Graph {
        let mut g = Graph::new("diamond");
        let a = g.push("a", Op::Placeholder, "a");
        let b = g.push("b", Op::Call, "f");
        let c = g.push("c", Op::Call, "f");
        let d = g.push("d", Op::Call, "f");
        g.node_mut(b).args = g.push_values(&[Value::Node(a), Value::Node(a)]);
        let key = g.intern("other");
        g.node_mut(c).kwargs = g.push_values(&[Value::Str(key), Value::Node(a)]);
        let inner = g.list(&[Value::Node(c), Value::Node(b)]);
        let outer = g.list(&[inner, Value::Node(c)]);
        g.node_mut(d).args = g.push_values(&[outer]);
        g.ordering.push(OrderingEdge { before: b, after: c });
        g
    }

    #[test]
    fn rows_hold_each_edge_once_and_apart() {
        let graph = diamond();
        let edges = Edges::new(&graph);
        let [a, b, c, d] = [0, 1, 2, 3].map(NodeId);
        assert_eq!(edges.inputs(b), [a]);
        assert_eq!(edges.inputs(d), [c, b]);
        assert_eq!(edges.users(a), [b, c]);
        assert_eq!(edges.ordered_before(c), [b]);
        assert_eq!(edges.kind(a, c), Some(EdgeKind::Data));
        assert_eq!(edges.kind(b, c), Some(EdgeKind::Ordering));
        assert_eq!(edges.kind(d, c), None);
    }

    #[test]
    fn petgraph_runs_on_the_view() {
        let edges = Edges::new(&diamond());
        let order = petgraph::algo::toposort(&edges, None).unwrap();
        assert_eq!(order, [0, 1, 2, 3].map(NodeId));
        assert!(petgraph::algo::has_path_connecting(&edges, NodeId(1), NodeId(2), None));
        assert_eq!(petgraph::algo::tarjan_scc(&edges).len(), 4);
    }
}
