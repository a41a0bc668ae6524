//! One wait per value: the first wait on a value is kept, the others and waits of waits are folded into it, but for those
//! that end what was launched into its memory since. A wait that records other sizes stays: one of the two records is not
//! true, and readers may rely on either.
//!
//! Source: `torch._inductor.fx_passes.bucketing.deduplicate_wait_tensors`.

use crate::analysis::Collectives;
use crate::graph::{Editor, Graph, NodeId, OrderingEdge};
use crate::ops::Ops;

/// The waits that are not needed, each with the wait that is kept in its place.
fn redundant(graph: &Graph) -> Vec<(NodeId, NodeId)> {
    let collectives = Collectives::new(graph, &Ops::of(graph));
    let with_first = graph.ids().map(|id| (id, collectives.first_wait(id)));
    with_first.filter(|&(wait, first)| wait != first && graph.same_sizes(wait, first)).collect()
}

/// Folds the waits of a sorted list. Returns how many went.
pub fn deduplicate(editor: &mut Editor) -> usize {
    let redundant = redundant(editor.graph());
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
