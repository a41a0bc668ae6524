//! Mutants of tags: what is saved for them, and where they get lost.

use crate::graph::{Graph, NodeId, Tags};
use crate::passes::partition::classes::Classes;
use crate::passes::partition::fsdp::{self, REGION, mark_with};
use crate::passes::partition::joint::{Role, Sort};
use crate::passes::partition::marks::{Placement, Recompute, retag};
use crate::passes::partition::modules::Saved;
use crate::passes::partition::replay::{Decision, decide};
use crate::passes::partition::{Joint, Method, PartitionError, Reference, Strategy};

/// What is tagged is saved, whether or not backward reads it.
pub(super) struct SavesTagged;
impl Strategy for SavesTagged {
    fn adjust(&self, joint: &Joint, classes: &Classes, mut saved: Saved) -> Saved {
        let tagged = |id: &NodeId| {
            joint.tags(*id).must_save() && joint.sort(*id) == Sort::Tensor && joint.role(*id) == Role::Call
        };
        saved.values.extend(classes.in_order.iter().copied().filter(tagged));
        saved.deduplicate();
        saved
    }

    fn drops_unread(&self, joint: &Joint, id: NodeId) -> bool {
        !joint.tags(id).must_save()
    }
}

/// The tag of the first partition holds on what backward computes from forward values.
pub(super) struct SavesBackward;
impl Strategy for SavesBackward {
    fn replayed(&self, joint: &Joint, id: NodeId) -> Decision {
        match joint.tags(id).placement {
            Placement::Backward if joint.role(id) == Role::Call && joint.sort(id) == Sort::Tensor => {
                Decision::Save
            }
            _ => decide(joint, id),
        }
    }
}

/// The chain from the wait goes through slices only.
pub(super) struct SlicesOnly;
impl Strategy for SlicesOnly {
    fn derived(&self, joint: &Joint, id: NodeId) -> Option<NodeId> {
        fsdp::derived(joint, id).filter(|&next| joint.graph.target(next).starts_with("aten.slice"))
    }
}

/// There is no chain.
pub(super) struct WaitOnly;
impl Strategy for WaitOnly {
    fn derived(&self, _: &Joint, _: NodeId) -> Option<NodeId> {
        None
    }
}

/// Annotations are lost.
pub(super) struct LosesCustom;
impl Strategy for LosesCustom {
    fn carried(&self, tags: &Tags) -> Tags {
        Tags { custom: None, ..tags.clone() }
    }
}

/// The tags of activation checkpointing are lost.
pub(super) struct LosesRecompute;
impl Strategy for LosesRecompute {
    fn carried(&self, tags: &Tags) -> Tags {
        Tags { recompute: None, ac_graph_id: None, ..tags.clone() }
    }
}

/// The tag of the side is lost.
pub(super) struct LosesPlacement;
impl Strategy for LosesPlacement {
    fn carried(&self, tags: &Tags) -> Tags {
        Tags { partitioner_tag: None, ..tags.clone() }
    }
}

/// The tags of merged copies are lost.
pub(super) struct LosesMerged;
impl Strategy for LosesMerged {
    fn joins_tags(&self, _: Method) -> bool {
        false
    }
}

/// Tags belong to the value, whichever graph it is in.
pub(super) struct SharesTags;
impl Strategy for SharesTags {
    fn tags_forward_only(&self) -> bool {
        false
    }
}

/// The joint graph with tags of gathers taken away where the pass of the reference would set them and that of
/// `strategy` would not.
pub(super) fn marked(joint: &Graph, strategy: &dyn Strategy) -> Result<Graph, PartitionError> {
    let mut bare = joint.clone();
    let of_gathers = |id: &NodeId| {
        joint.tags(*id).is_some_and(|tags| tags.ac_graph_id == Some(REGION) && tags.recompute.is_some())
    };
    let tagged: Vec<NodeId> = joint.ids().filter(of_gathers).collect();
    let untag = |graph: &mut Graph, id: NodeId| {
        retag(graph, id, |_, tags| {
            tags.recompute = None;
            tags.ac_graph_id = None;
        })
    };
    tagged.iter().for_each(|&id| untag(&mut bare, id));
    let (whole, short) = (mark_with(&bare, true, &Reference)?, mark_with(&bare, true, strategy)?);
    let is_set = |graph: &Graph, id: NodeId| {
        let tag = graph.tags(id).and_then(|tags| tags.recompute);
        tag.is_some_and(|tag| graph.text(tag) == Recompute::MustRecompute.name())
    };
    let mut graph = joint.clone();
    for id in tagged.into_iter().filter(|&id| is_set(&whole, id) && !is_set(&short, id)) {
        untag(&mut graph, id);
    }
    Ok(graph)
}

/// The joint graph with the tags that `strategy` carries.
pub(super) fn carried(joint: &Graph, strategy: &dyn Strategy) -> Graph {
    let mut graph = joint.clone();
    for id in joint.ids() {
        retag(&mut graph, id, |_, tags| *tags = strategy.carried(tags));
    }
    graph
}
