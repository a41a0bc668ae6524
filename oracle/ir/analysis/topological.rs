//! Topological orders, and what keeps a list from being one.
//!
//! A list is topological when every node comes after the nodes that it refers to and after what ordering edges
//! put before it, placeholders come first and the output comes last. [`violations`] names every place where a
//! list is not. [`TopologicalOrder`] is an order that analyses can sweep in, whatever the order of the list.

use super::cycle::{Cycle, shortest_cycle};
use super::edges::{EdgeKind, EdgeSource, Edges};
use crate::graph::{Graph, NodeId, Op};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A topological order: of all nodes that could come next, always the first of the list. On a list that is
/// topological it is the list itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopologicalOrder {
    order: Vec<NodeId>,
    position: Vec<u32>,
}

impl TopologicalOrder {
    /// An order that follows every edge of `edges`; the shortest cycle where there is none.
    pub fn new<G: EdgeSource>(edges: G) -> Result<TopologicalOrder, Cycle> {
        let n = edges.node_count();
        let ids = || (0..n as u32).map(NodeId);
        if ids().all(|id| edges.before(id).all(|input| input < id)) {
            return Ok(TopologicalOrder { order: ids().collect(), position: (0..n as u32).collect() });
        }
        let mut blockers: Vec<u32> = ids().map(|id| edges.before(id).count() as u32).collect();
        let mut ready: BinaryHeap<Reverse<NodeId>> =
            ids().filter(|id| blockers[id.index()] == 0).map(Reverse).collect();
        let mut order = Vec::with_capacity(n);
        let mut position = vec![u32::MAX; n];
        while let Some(Reverse(id)) = ready.pop() {
            position[id.index()] = order.len() as u32;
            order.push(id);
            for next in edges.after(id) {
                blockers[next.index()] -= 1;
                if blockers[next.index()] == 0 {
                    ready.push(Reverse(next));
                }
            }
        }
        if order.len() == n {
            return Ok(TopologicalOrder { order, position });
        }
        Err(shortest_cycle(edges).unwrap_or_default())
    }

    /// The order that follows every edge of `edges`, and the list where there is none: a cycle is a fault of the graph,
    /// which is told elsewhere.
    pub fn or_list<G: EdgeSource + Copy>(edges: G) -> TopologicalOrder {
        TopologicalOrder::new(edges).unwrap_or_else(|_| {
            let n = edges.node_count() as u32;
            TopologicalOrder { order: (0..n).map(NodeId).collect(), position: (0..n).collect() }
        })
    }

    /// The nodes in this order.
    pub fn order(&self) -> &[NodeId] {
        &self.order
    }

    /// Where `id` stands in this order.
    pub fn position(&self, id: NodeId) -> u32 {
        self.position[id.index()]
    }
}

/// A place where a list is not topological.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Violation {
    /// `node` stands before `needs` (or is it), which must come first.
    UseBeforeDefinition {
        /// What stands too early.
        node: NodeId,
        /// What it needs.
        needs: NodeId,
        /// Whether it needs the value or only the order.
        kind: EdgeKind,
    },
    /// A placeholder after a node that is none.
    LatePlaceholder {
        /// The placeholder.
        node: NodeId,
    },
    /// A node after the output.
    AfterOutput {
        /// The node.
        node: NodeId,
    },
}

impl Violation {
    /// The node that stands wrongly.
    pub fn node(self) -> NodeId {
        match self {
            Violation::UseBeforeDefinition { node, .. }
            | Violation::LatePlaceholder { node }
            | Violation::AfterOutput { node } => node,
        }
    }

    /// In words.
    pub fn describe(self, graph: &Graph) -> String {
        let name = |id: NodeId| graph.name(id);
        match self {
            Violation::UseBeforeDefinition { node, needs, .. } if node == needs => {
                format!("{} needs itself", name(node))
            }
            Violation::UseBeforeDefinition { node, needs, kind: EdgeKind::Data } => format!(
                "{} (position {}) uses {} (position {}) before it is defined",
                name(node),
                node.0,
                name(needs),
                needs.0
            ),
            Violation::UseBeforeDefinition { node, needs, kind: EdgeKind::Ordering } => format!(
                "{} (position {}) stands before {} (position {}), which an ordering edge puts first",
                name(node),
                node.0,
                name(needs),
                needs.0
            ),
            Violation::LatePlaceholder { node } => {
                format!("placeholder {} (position {}) stands after a node that is none", name(node), node.0)
            }
            Violation::AfterOutput { node } => {
                format!("{} (position {}) stands after the output", name(node), node.0)
            }
        }
    }
}

/// All places where the list of `graph` is not topological, in list order. Linear.
pub fn violations(graph: &Graph, edges: &Edges) -> Vec<Violation> {
    let mut found = Vec::new();
    let (mut calls, mut output) = (false, false);
    for id in graph.ids() {
        let op = graph.node(id).op;
        if output {
            found.push(Violation::AfterOutput { node: id });
        }
        if op == Op::Placeholder && calls {
            found.push(Violation::LatePlaceholder { node: id });
        }
        for (row, kind) in
            [(edges.inputs(id), EdgeKind::Data), (edges.ordered_before(id), EdgeKind::Ordering)]
        {
            let late = row.iter().filter(|&&needs| needs >= id);
            found.extend(late.map(|&needs| Violation::UseBeforeDefinition { node: id, needs, kind }));
        }
        // Constants may stand among the inputs.
        calls |= !matches!(op, Op::Placeholder | Op::GetAttr);
        output |= op == Op::Output;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::testing::{dag_pairs, graph_of};
    use super::*;
    use crate::graph::{OrderingEdge, Value};
    use proptest::prelude::*;

    #[test]
    fn every_fault_of_the_order_is_told() {
        let mut g = Graph::new("unsorted");
        let w = g.push("w", Op::Call, "f");
        let x = g.push("x", Op::Placeholder, "x");
        let out = g.push("output", Op::Output, "output");
        let z = g.push("z", Op::Call, "f");
        g.node_mut(w).args = g.push_values(&[Value::Node(x)]);
        g.node_mut(z).args = g.push_values(&[Value::Node(z)]);
        g.ordering.push(OrderingEdge { before: out, after: x });
        let told: Vec<String> = violations(&g, &Edges::new(&g)).iter().map(|v| v.describe(&g)).collect();
        assert_eq!(
            told,
            [
                "w (position 0) uses x (position 1) before it is defined",
                "placeholder x (position 1) stands after a node that is none",
                "x (position 1) stands before output (position 2), which an ordering edge puts first",
                "z (position 3) stands after the output",
                "z needs itself",
            ]
        );
    }

    #[test]
    fn ties_go_to_the_earlier_node() {
        // The list A, B, C, D with A using D, B using D, C using A.
        let g = graph_of(4, &[(3, 0), (3, 1), (0, 2)]);
        let order = TopologicalOrder::new(&Edges::new(&g)).unwrap();
        assert_eq!(order.order(), [3, 0, 1, 2].map(NodeId));
        assert_eq!(order.position(NodeId(0)), 1);
    }

    proptest! {
        #[test]
        fn an_order_follows_every_edge((n, pairs) in dag_pairs(24, 60), shuffle in any::<u64>()) {
            let place = super::super::testing::permutation(n, shuffle);
            let moved: Vec<(u32, u32)> =
                pairs.iter().map(|&(a, b)| (place[a as usize], place[b as usize])).collect();
            let edges = Edges::new(&graph_of(n, &moved));
            let order = TopologicalOrder::new(&edges).unwrap();
            prop_assert_eq!(order.order().len(), n);
            for &(a, b) in &moved {
                prop_assert!(order.position(NodeId(a)) < order.position(NodeId(b)));
            }
        }
    }
}
