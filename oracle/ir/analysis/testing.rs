//! Small graphs for the tests of this folder.

use crate::graph::{Graph, NodeId, Op, Value};
use proptest::prelude::*;

/// A graph of `n` nodes `n0`, `n1`, ... with a data edge from `a` to `b` for each pair.
pub fn graph_of(n: usize, pairs: &[(u32, u32)]) -> Graph {
    let mut graph = Graph::new("test");
    for i in 0..n {
        graph.push(&format!("n{i}"), Op::Call, "test.f");
    }
    for i in 0..n as u32 {
        let args: Vec<Value> = pairs.iter().filter(|p| p.1 == i).map(|p| Value::Node(NodeId(p.0))).collect();
        graph.node_mut(NodeId(i)).args = graph.push_values(&args);
    }
    graph
}

/// A number of nodes and edges from lower to higher ones.
pub fn dag_pairs(nodes: usize, edges: usize) -> impl Strategy<Value = (usize, Vec<(u32, u32)>)> {
    (2..nodes).prop_flat_map(move |n| {
        let edge = (0..n as u32 - 1, 0..n as u32).prop_map(move |(a, b)| {
            let (low, high) = (a.min(b), a.max(b));
            (low, if low == high { high + 1 } else { high })
        });
        (Just(n), prop::collection::vec(edge, 0..edges))
    })
}

/// A permutation of `0..n`.
pub fn permutation(n: usize, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n as u32).collect();
    let mut state = seed;
    for i in (1..n).rev() {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        order.swap(i, (state >> 33) as usize % (i + 1));
    }
    order
}
