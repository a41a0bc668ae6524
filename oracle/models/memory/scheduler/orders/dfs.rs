//! Depth first: nodes that touch little memory come early, each with what it depends on before it.

use super::super::planning::Planning;
use super::super::program::NodeIndex;

/// The order.
pub fn dfs(planning: &Planning) -> Vec<NodeIndex> {
    let nodes = planning.size.len() as u32;
    let touched = |n: NodeIndex| {
        let reads = planning.needs.of(n).iter().map(|&b| planning.sizes[b as usize].free);
        reads.fold(planning.size[n as usize], i64::saturating_add)
    };
    let mut by_key: Vec<(i64, NodeIndex)> = (0..nodes).map(|n| (touched(n), n)).collect();
    // Stable, so that the index decides; and fast where few keys are distinct.
    by_key.sort_by_key(|&(key, _)| key);
    let mut rank = vec![0u32; nodes as usize];
    by_key.iter().enumerate().for_each(|(i, &(_, n))| rank[n as usize] = i as u32);

    let mut seen = vec![false; nodes as usize];
    let mut order = Vec::with_capacity(nodes as usize);
    // What is to be visited, the next one last; a node that comes up a second time is done.
    let mut stack: Vec<(NodeIndex, bool)> = Vec::new();
    let mut producers: Vec<u32> = Vec::new();
    for &(_, root) in &by_key {
        stack.push((root, false));
        while let Some((node, done)) = stack.pop() {
            if done {
                order.push(node);
                continue;
            }
            if std::mem::replace(&mut seen[node as usize], true) {
                continue;
            }
            stack.push((node, true));
            producers.clear();
            let unseen = planning.producers.of(node).iter().filter(|&&n| !seen[n as usize]);
            producers.extend(unseen.map(|&n| rank[n as usize]));
            producers.sort_unstable();
            stack.extend(producers.iter().rev().map(|&rank| (by_key[rank as usize].1, false)));
        }
    }
    order
}
