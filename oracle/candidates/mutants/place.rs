//! Mutants that put the merged nodes in the wrong place.

use crate::graph::{Graph, NodeId, OrderingEdge};
use crate::passes::bucketing::{Config, Context, Member, Policy, Selection};
use crate::passes::repair::Cycle;

/// The list as it is.
fn unsorted(graph: &Graph) -> Vec<NodeId> {
    graph.ids().collect()
}

/// In the place of the member that comes first in the list.
pub(super) struct AtFirstMember;

impl Policy for AtFirstMember {
    fn anchor(&self, cx: &Context, bucket: &[Member]) -> Option<NodeId> {
        let place = |id: NodeId| cx.editor.list().iter().position(|&other| other == id);
        bucket.iter().map(|member| member.start).min_by_key(|&start| place(start))
    }

    fn sorts_regions(&self) -> bool {
        false
    }

    fn final_order(&self, graph: &Graph, _: &[OrderingEdge]) -> Result<Vec<NodeId>, Cycle> {
        Ok(unsorted(graph))
    }
}

/// In the place of the member that is packed first.
pub(super) struct AtFirstPacked;

impl Policy for AtFirstPacked {
    fn anchor(&self, _: &Context, bucket: &[Member]) -> Option<NodeId> {
        bucket.first().map(|member| member.start)
    }

    fn sorts_regions(&self) -> bool {
        false
    }

    fn final_order(&self, graph: &Graph, _: &[OrderingEdge]) -> Result<Vec<NodeId>, Cycle> {
        Ok(unsorted(graph))
    }
}

/// The waits in the place of the earliest old wait.
pub(super) struct AtEarliestWait;

impl Policy for AtEarliestWait {
    fn wait_anchor(&self, cx: &Context, bucket: &[Member]) -> Option<NodeId> {
        let place = |id: NodeId| cx.editor.list().iter().position(|&other| other == id);
        bucket.iter().map(|member| member.wait).min_by_key(|&wait| place(wait))
    }

    fn sorts_regions(&self) -> bool {
        false
    }

    fn final_order(&self, graph: &Graph, _: &[OrderingEdge]) -> Result<Vec<NodeId>, Cycle> {
        Ok(unsorted(graph))
    }
}

/// No limit to how far the members of a bucket are apart.
pub(super) fn without_span(config: &mut Config) {
    config.selection = Selection::Spanning { max_topo_span: None };
}
