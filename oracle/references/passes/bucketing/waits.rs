//! One wait per value: the first wait on a value is kept, the others and waits of waits are folded into it. A wait that
//! records other sizes stays: one of the two records is not true, and readers may rely on either.
//!
//! Source: `torch._inductor.fx_passes.bucketing.deduplicate_wait_tensors`.

use super::member::Targets;
use crate::graph::{Editor, NodeId, OrderingEdge, Value};
use rustc_hash::FxHashMap;

/// The waits of a list that are not needed, each with the wait that is kept in its place.
fn redundant(editor: &Editor, targets: &Targets) -> Vec<(NodeId, NodeId)> {
    let graph = editor.graph();
    // For each wait the wait that is kept for the same value; waits in list order, so the first one is kept.
    let mut kept: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    let mut first: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    let mut redundant = Vec::new();
    let mut next = editor.first();
    while let Some(wait) = next {
        next = editor.next(wait);
        if !Targets::calls(graph, wait, &[targets.wait]) {
            continue;
        }
        let Some(Value::Node(value)) = graph.argument(wait, 0, "tensor") else { continue };
        let elder = match kept.get(&value) {
            Some(&elder) => elder,
            None => *first.entry(value).or_insert(wait),
        };
        let keep = if graph.same_sizes(wait, elder) { elder } else { wait };
        kept.insert(wait, keep);
        if keep != wait {
            redundant.push((wait, keep));
        }
    }
    redundant
}

/// Folds the waits of a sorted list. Returns how many went.
pub fn deduplicate(editor: &mut Editor, targets: &Targets) -> usize {
    let redundant = redundant(editor, targets);
    move_ordering(editor, &redundant);
    for &(wait, keep) in &redundant {
        editor.replace_uses(wait, keep);
    }
    // A wait of a wait has become a wait of itself's elder; nothing uses it any more.
    let gone: Vec<NodeId> = redundant.iter().map(|&(wait, _)| wait).collect();
    editor.erase_all(&gone);
    gone.len()
}

/// Takes redundant waits out of the ordering edges. What came before such a wait comes before whatever followed it; the
/// wait that is kept stands earlier and must not be held up by it. What followed follows the kept wait.
fn move_ordering(editor: &mut Editor, redundant: &[(NodeId, NodeId)]) {
    for &(wait, keep) in redundant {
        let edges = std::mem::take(&mut editor.graph_mut().ordering);
        if edges.is_empty() {
            return;
        }
        let (mut before, mut after, mut moved) = (Vec::new(), Vec::new(), Vec::new());
        for edge in edges {
            match edge {
                edge if edge.after == wait => before.push(edge.before),
                edge if edge.before == wait => after.push(edge.after),
                edge => moved.push(edge),
            }
        }
        let users: Vec<NodeId> = editor.users(wait).to_vec();
        for &first in &before {
            let followers = after.iter().chain(&users);
            moved.extend(followers.map(|&second| OrderingEdge { before: first, after: second }));
        }
        moved.extend(
            after
                .iter()
                .filter(|&&second| second != keep)
                .map(|&second| OrderingEdge { before: keep, after: second }),
        );
        moved.sort_unstable();
        moved.dedup();
        editor.graph_mut().ordering = moved;
    }
}
