//! Tags: what is to be repeated, what is to be kept, and what an earlier partition saved.

use super::Joint;
use crate::case::PassConfig;
use crate::generate::Source;
use crate::graph::{Graph, NodeId, Out, Tags, Value};
use crate::ops::Ops;
use std::collections::BTreeSet;

/// The region of checkpointing that FSDP's gathers are tagged with.
/// Source: `autoparallel.graph_passes.activation_checkpointing`.
const GATHER_REGION: i64 = 100_000;

/// Adds tags to the nodes of a finished joint graph.
pub(super) fn add<S: Source>(joint: &mut Joint<S>, config: &PassConfig) {
    let method = config.word("method").ok().flatten().unwrap_or_default().to_string();
    let gathers: BTreeSet<NodeId> =
        joint.weights.iter().flat_map(|weight| weight.nodes.iter().copied()).collect();
    joint.source.step();
    let from_tags = method == "replay" && ["first", "checkpoint"].iter().all(|key| config.get(key).is_none());
    tag_gathers(joint, from_tags);
    let fixed: BTreeSet<NodeId> = gathers.iter().chain(&joint.untaggable).copied().collect();
    let forward: Vec<NodeId> = joint.writer.calls.clone();
    let in_forward = |joint: &Joint<S>, id: NodeId| {
        let graph = &joint.writer.graph;
        let tag = graph.tags(id).and_then(|tags| tags.partitioner_tag);
        tag.is_some_and(|text| graph.text(text) == "is_forward")
    };
    let forward: Vec<NodeId> =
        forward.into_iter().filter(|&id| in_forward(joint, id) && !fixed.contains(&id)).collect();
    if joint.source.percent(joint.config.checkpoint) {
        checkpoint(joint, &forward);
    }
    for &id in &forward {
        if joint.source.percent(joint.config.loose_tag) {
            let policy =
                joint.source.one_of(&["MUST_SAVE", "PREFER_RECOMPUTE", "MUST_RECOMPUTE", "PREFER_SAVE"]);
            set(joint, id, policy, None);
        }
    }
    for &id in &forward {
        let tagged = joint.writer.graph.tags(id).is_some_and(|tags| tags.recompute.is_some());
        if tagged && joint.source.percent(joint.config.hook) {
            let text = "{\"has_backward_hook\": true}";
            joint.writer.retag(id, |graph, tags| tags.extra = Some(graph.intern(text)));
        }
    }
    // Communication is tagged as its wait is: saving what is in flight is no choice.
    for &wait in forward
        .iter()
        .filter(|id| joint.writer.graph.target(**id).contains("wait_tensor"))
        .collect::<Vec<_>>()
    {
        if let Some(Value::Node(started)) = joint.writer.graph.arg(wait, 0) {
            let tags = joint.writer.graph.node(wait).tags;
            joint.writer.graph.node_mut(started).tags = tags;
        }
    }
    // Items of a draw are kept or drawn again as the draw is.
    for &item in &forward {
        let graph = &joint.writer.graph;
        let parent = match (graph.target(item), graph.arg(item, 0)) {
            ("operator.getitem", Some(Value::Node(parent))) => parent,
            _ => continue,
        };
        if graph.target(parent) == "aten.native_dropout.default" {
            let tags = graph.node(parent).tags;
            joint.writer.graph.node_mut(item).tags = tags;
        }
    }
    if method == "replay" && config.get("first").is_none() {
        replayed(joint, &forward);
    }
}

/// Takes away what says which nodes are of forward and which of backward: a graph that was not traced through autograd
/// has no such tags, and partitioners then find out by themselves. Of what writes it is always said.
pub fn untag(graph: &mut Graph) {
    let ops = Ops::of(graph);
    let writes = |id| ops.call(graph, id).is_some_and(|info| info.writes());
    let ids: Vec<NodeId> = graph.ids().filter(|&id| !writes(id)).collect();
    for id in ids {
        if let Some(tags) = graph.tags(id).cloned() {
            let tags = graph.intern_tags(Tags { partitioner_tag: None, ..tags });
            graph.node_mut(id).tags = tags;
        }
    }
}

fn set<S: Source>(joint: &mut Joint<S>, id: NodeId, policy: &str, region: Option<i64>) {
    joint.writer.retag(id, |graph: &mut Graph, tags: &mut Tags| {
        tags.recompute = Some(graph.intern(policy));
        tags.ac_graph_id = region;
    });
}

/// Gathers that are to be repeated in backward, with what only views them. Tags that stop short are made for a
/// replay of given tags only: whatever else chooses saves what is not tagged, and with it the gather.
fn tag_gathers<S: Source>(joint: &mut Joint<S>, from_tags: bool) {
    if !joint.source.percent(joint.config.reshard) {
        return;
    }
    let short = from_tags && joint.source.percent(joint.config.short_tags);
    let policy = if joint.source.percent(80) { "MUST_RECOMPUTE" } else { "PREFER_RECOMPUTE" };
    for weight in joint.weights.clone() {
        let nodes = if short { &weight.communication } else { &weight.nodes };
        for &id in nodes {
            set(joint, id, policy, Some(GATHER_REGION));
        }
    }
}

/// One to three stretches of the forward region, with increasing ids and maybe gaps between them.
fn checkpoint<S: Source>(joint: &mut Joint<S>, forward: &[NodeId]) {
    let regions = joint.source.between(1, 3) as usize;
    let length = forward.len().div_ceil(regions).max(1);
    for (region, nodes) in forward.chunks(length).enumerate() {
        let policy = joint.source.one_of(&["PREFER_RECOMPUTE", "MUST_RECOMPUTE"]);
        let end = nodes.len() - if joint.source.percent(40) { nodes.len() / 3 } else { 0 };
        for &id in &nodes[..end] {
            let own = if joint.source.percent(8) { "MUST_SAVE" } else { policy };
            set(joint, id, own, Some(region as i64));
        }
    }
}

/// Tags of an earlier partition: single results, and items of tuples by index.
fn replayed<S: Source>(joint: &mut Joint<S>, forward: &[NodeId]) {
    for &id in forward {
        let parent = match joint.writer.graph.target(id) {
            "operator.getitem" => joint.writer.graph.arg(id, 0),
            _ => None,
        };
        // An item carries what its parent carries.
        if let Some(Value::Node(parent)) = parent {
            let custom = joint.writer.graph.tags(parent).and_then(|tags| tags.custom);
            joint.writer.retag(id, |_, tags| tags.custom = custom);
            continue;
        }
        if !joint.source.percent(35) {
            continue;
        }
        let items = match joint.writer.graph.node(id).out {
            Out::Tuple(span) => {
                let chosen: Vec<String> =
                    (0..span.len()).filter(|_| joint.source.percent(50)).map(|i| i.to_string()).collect();
                format!(", \"ap_must_save_getitem_indices\": [{}]", chosen.join(", "))
            }
            Out::Tensor(_) => String::new(),
            _ => continue,
        };
        let text = format!("{{\"ap_must_save\": true{items}}}");
        joint.writer.retag(id, |graph, tags| tags.custom = Some(graph.intern(&text)));
    }
}
