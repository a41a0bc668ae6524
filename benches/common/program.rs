//! Programs of the scheduler of a chosen length.

use graph_oracle::memory::scheduler::{Buffer, Dependency, Kind, Node, Program};

/// A program of so many nodes, the same each time: nodes of one output that read at most three others within a distance
/// of 60.
pub fn program(nodes: u32) -> Program {
    let mut state = 7u64;
    let mut below = |n: u32| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 33) as u32) % n.max(1)
    };
    let (mut list, mut buffers) = (Vec::new(), Vec::new());
    for i in 0..nodes {
        let mut unmet: Vec<u32> = (0..below(4).min(i)).map(|_| i - 1 - below(i.min(60))).collect();
        unmet.sort_unstable();
        unmet.dedup();
        let unmet = unmet.into_iter().map(|buffer| Dependency { buffer, kind: Kind::Real }).collect();
        list.push(Node { name: format!("op{i}"), outputs: vec![i], unmet, ..Node::default() });
        let bytes = i64::from(below(100) + 1) * 10;
        let output = i + 1 == nodes;
        buffers.push(Buffer { name: format!("buf{i}"), bytes, by: Some(i), output, ..Buffer::default() });
    }
    Program::from_dependencies(list, buffers, Vec::new()).expect("a program")
}
