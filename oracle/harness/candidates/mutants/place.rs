//! Mutants that put the merged nodes in the wrong place.

use crate::graph::{Graph, NodeId, OrderingEdge};
use crate::passes::bucketing::{Config, Context, Member, Reference, Selection, Strategy};
use crate::passes::repair::Cycle;

/// A node that something goes before, of a bucket.
type Anchor = fn(&Context, &[Member]) -> Option<NodeId>;

/// Puts the merged nodes, and the waits, before certain nodes, and leaves the list as it then is.
pub(super) struct Unsorted {
    anchor: Anchor,
    wait_anchor: Anchor,
}

/// In the place of the member that comes first in the list.
pub(super) const AT_FIRST_MEMBER: Unsorted = Unsorted {
    anchor: |cx, bucket| earliest(cx, bucket.iter().map(|member| member.start)),
    wait_anchor: |_, _| None,
};

/// In the place of the member that is packed first.
pub(super) const AT_FIRST_PACKED: Unsorted =
    Unsorted { anchor: |_, bucket| bucket.first().map(|member| member.start), wait_anchor: |_, _| None };

/// The waits in the place of the earliest old wait.
pub(super) const AT_EARLIEST_WAIT: Unsorted = Unsorted {
    anchor: |cx, bucket| Reference.anchor(cx, bucket),
    wait_anchor: |cx, bucket| earliest(cx, bucket.iter().map(|member| member.wait)),
};

impl Strategy for Unsorted {
    fn anchor(&self, cx: &Context, bucket: &[Member]) -> Option<NodeId> {
        (self.anchor)(cx, bucket)
    }

    fn wait_anchor(&self, cx: &Context, bucket: &[Member]) -> Option<NodeId> {
        (self.wait_anchor)(cx, bucket)
    }

    fn sorts_regions(&self) -> bool {
        false
    }

    fn final_order(&self, graph: &Graph, _: &[OrderingEdge]) -> Result<Vec<NodeId>, Cycle> {
        Ok(graph.ids().collect())
    }
}

/// The one of some nodes that comes first in the list.
fn earliest(cx: &Context, nodes: impl Iterator<Item = NodeId>) -> Option<NodeId> {
    let nodes: Vec<NodeId> = nodes.collect();
    cx.editor.list().into_iter().find(|id| nodes.contains(id))
}

/// No limit to how far the members of a bucket are apart.
pub(super) fn without_span(config: &mut Config) {
    config.selection = Selection::Spanning { max_topo_span: None };
}
