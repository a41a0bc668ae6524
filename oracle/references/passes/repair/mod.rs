//! Topological repair: a list of nodes put back into an order in which every node follows what it uses.
//!
//! # The idea
//!
//! The list is walked once. A node whose dependencies have all been placed is placed; any other node waits for
//! the *last* of its dependencies that is missing, and is looked at again right after that one is placed. So a
//! sorted list comes out as it went in, and a node is only ever moved later, to right behind what it waited
//! for. This is not Kahn's algorithm with a queue ordered by original position; the two differ on about one
//! shuffled graph in twelve.
//!
//! # Formal statement
//!
//! State: `pending`, a stack with the first node of the list on top; `ready`; `waiting`, lists of nodes by what
//! they wait for. Pop *n*; if some dependency of *n* is not ready, append *n* to the list of the last such one;
//! otherwise *n* is ready and next in the result, and the nodes waiting for it go back on the stack so that
//! they pop in the order in which they came to wait. If the stack runs empty while nodes wait, these nodes
//! hold a cycle.
//!
//! Three variants, with the dependencies of a node in this order:
//!
//! - [`stable_order`]: every reference, positional arguments before keyword arguments, as often as it occurs;
//!   then ordering edges. Source: `torch._inductor.pattern_matcher.stable_topological_sort`.
//! - [`stable_order_with`]: the distinct nodes referred to, in order of first appearance; then ordering edges;
//!   then the extra edges given. Output nodes are not ordered and stay last. Source:
//!   `torch._dynamo.graph_deduplication._stable_topological_sort`.
//! - [`sort_region`]: as the second, without ordering and extra edges, on a slice of the list; what lies outside
//!   counts as placed. Source: `_stable_topological_sort_region` there.
//!
//! Ordering edges do not exist in PyTorch's graphs; on a graph without them the order is PyTorch's exactly.
//!
//! # What it does not do
//!
//! Mutation, aliasing, randomness and other effects are invisible here unless somebody states them as ordering
//! or extra edges. References to names that no node has are ignored.

mod cycle;
mod sort;

pub use cycle::{Cycle, CycleEdge, Origin};
pub use sort::Sorter;

use crate::graph::{Editor, Graph, NodeId, Op, OrderingEdge};

/// The order of 4.2: data edges, then ordering edges.
pub fn stable_order(graph: &Graph) -> Result<Vec<NodeId>, Cycle> {
    let list: Vec<NodeId> = graph.ids().collect();
    let ordering = Predecessors::new(graph.len(), &graph.ordering);
    let deps = |id: NodeId, deps: &mut Vec<NodeId>| {
        graph.for_each_input(id, &mut |input| deps.push(input));
        deps.extend(ordering.of(id));
    };
    Sorter::default().order(&list, deps).map_err(|_| Cycle::shortest(graph, &[]))
}

/// [`stable_order`] along data edges only, as if the graph had no ordering edges.
pub fn stable_data_order(graph: &Graph) -> Result<Vec<NodeId>, Cycle> {
    let list: Vec<NodeId> = graph.ids().collect();
    let deps = |id: NodeId, deps: &mut Vec<NodeId>| graph.for_each_input(id, &mut |input| deps.push(input));
    Sorter::default().order(&list, deps).map_err(|_| Cycle::shortest(graph, &[]))
}

/// `graph` in [`stable_order`]. A cycle is reported as the shortest one.
pub fn stable_topological_sort(graph: &Graph) -> Result<Graph, Cycle> {
    let order = stable_order(graph)?;
    Ok(graph.clone().reordered(&order))
}

/// The order with extra edges: distinct inputs, ordering edges, extra edges; output nodes last.
pub fn stable_order_with(graph: &Graph, extra: &[OrderingEdge]) -> Result<Vec<NodeId>, Cycle> {
    let (outputs, list): (Vec<NodeId>, Vec<NodeId>) =
        graph.ids().partition(|&id| graph.node(id).op == Op::Output);
    let ordering = Predecessors::new(graph.len(), &graph.ordering);
    let extras = Predecessors::new(graph.len(), extra);
    let deps = |id: NodeId, deps: &mut Vec<NodeId>| {
        distinct_inputs(graph, id, deps);
        deps.extend(ordering.of(id));
        deps.extend(extras.of(id));
    };
    let mut order = Sorter::default().order(&list, deps).map_err(|_| Cycle::shortest(graph, extra))?;
    order.extend(outputs);
    Ok(order)
}

/// `graph` in [`stable_order_with`] the extra edges.
pub fn stable_topological_sort_with(graph: &Graph, extra: &[OrderingEdge]) -> Result<Graph, Cycle> {
    let order = stable_order_with(graph, extra)?;
    Ok(graph.clone().reordered(&order))
}

/// Sorts a contiguous slice of an editor's list in place; what lies outside counts as placed. The cost depends on
/// the slice, not on the graph. On a cycle nothing is moved, and the nodes that could not be placed come back.
pub fn sort_region(editor: &mut Editor, sorter: &mut Sorter, region: &[NodeId]) -> Result<(), Vec<NodeId>> {
    let graph = editor.graph();
    let order = sorter.order(region, |id, deps| distinct_inputs(graph, id, deps))?;
    let Some(&last) = region.last() else { return Ok(()) };
    let anchor = editor.next(last);
    // From the first displaced node on, every node goes to the end of the slice in turn.
    let sorted = region.iter().zip(&order).take_while(|(was, is)| was == is).count();
    for &id in &order[sorted..] {
        editor.move_before(anchor, id);
    }
    Ok(())
}

/// The first edge that a list order breaks: a node and the earliest of its dependencies that comes after it
/// (or is the node itself). Data edges are looked at before ordering edges.
pub fn first_violation(graph: &Graph) -> Option<CycleEdge> {
    for id in graph.ids() {
        let mut late: Option<NodeId> = None;
        graph.for_each_input(id, &mut |input| {
            if input >= id && late.is_none_or(|l| input < l) {
                late = Some(input);
            }
        });
        if let Some(input) = late {
            return Some(CycleEdge::of(graph, input, id));
        }
    }
    let edge = graph.ordering.iter().find(|e| e.before >= e.after)?;
    Some(CycleEdge::of(graph, edge.before, edge.after))
}

fn distinct_inputs(graph: &Graph, id: NodeId, deps: &mut Vec<NodeId>) {
    let start = deps.len();
    graph.for_each_input(id, &mut |input| deps.push(input));
    sort::keep_first(deps, start);
}

/// What must precede each node, by edges given as a list.
struct Predecessors {
    start: Vec<u32>,
    before: Vec<NodeId>,
}

impl Predecessors {
    fn new(nodes: usize, edges: &[OrderingEdge]) -> Predecessors {
        if edges.is_empty() {
            return Predecessors { start: Vec::new(), before: Vec::new() };
        }
        let mut start = vec![0u32; nodes + 1];
        for edge in edges {
            start[edge.after.index() + 1] += 1;
        }
        for i in 0..nodes {
            start[i + 1] += start[i];
        }
        let mut at = start.clone();
        let mut before = vec![NodeId(0); edges.len()];
        for edge in edges {
            before[at[edge.after.index()] as usize] = edge.before;
            at[edge.after.index()] += 1;
        }
        Predecessors { start, before }
    }

    fn of(&self, id: NodeId) -> &[NodeId] {
        match self.start.get(id.index()..=id.index() + 1) {
            Some(&[from, to]) => &self.before[from as usize..to as usize],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests;
