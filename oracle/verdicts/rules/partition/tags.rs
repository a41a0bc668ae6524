//! What the tags of a joint graph's node say to a partitioner.

use crate::graph::{Graph, NodeId};

/// `meta["recompute"]`. Source: `torch.utils.checkpoint.CheckpointPolicy`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recompute {
    /// Keep it.
    MustSave,
    /// A wish that no partitioner looks at.
    PreferSave,
    /// Do not keep it.
    MustRecompute,
    /// Rather do not keep it.
    PreferRecompute,
}

/// `meta["partitioner_tag"]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Region {
    /// Traced in the forward pass.
    Forward,
    /// Traced in the backward pass.
    Backward,
    /// Has to run in the forward graph.
    MustForward,
    /// Has to run in the backward graph.
    MustBackward,
}

/// The tags of one node.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NodeTags {
    /// Saving or recomputing.
    pub recompute: Option<Recompute>,
    /// Where it belongs.
    pub region: Option<Region>,
    /// Its region of activation checkpointing.
    pub region_id: Option<i64>,
    /// `custom["ap_must_save"]`: an earlier partition saved it.
    pub replayed: bool,
    /// `custom["ap_must_save_getitem_indices"]`: which of its items an earlier partition saved; `None` means all.
    pub replayed_items: Option<Vec<i64>>,
    /// `aot_runtime_epilogue_input_mutation`: the runtime writes this input after the forward graph.
    pub written_by_runtime: bool,
    /// `saved_tensor_with_no_vc_check`: saved without a check of its version.
    pub unchecked_version: bool,
    /// `has_backward_hook`: something is called with its gradient.
    pub hook: bool,
    /// `custom["_region_activation_memory_budget"]`: the budget of the region that it was traced in.
    pub budget: Option<f64>,
}

/// What the tag `recompute` may say.
pub const RECOMPUTE_TAGS: [&str; 4] = ["MUST_SAVE", "PREFER_SAVE", "MUST_RECOMPUTE", "PREFER_RECOMPUTE"];

impl NodeTags {
    /// The tags of a node.
    pub fn of(graph: &Graph, node: NodeId) -> NodeTags {
        let Some(tags) = graph.tags(node) else { return NodeTags::default() };
        let recompute = match tags.recompute.map(|text| graph.text(text)) {
            Some("MUST_SAVE") => Some(Recompute::MustSave),
            Some("PREFER_SAVE") => Some(Recompute::PreferSave),
            Some("MUST_RECOMPUTE") => Some(Recompute::MustRecompute),
            Some("PREFER_RECOMPUTE") => Some(Recompute::PreferRecompute),
            _ => None,
        };
        let region = match tags.partitioner_tag.map(|text| graph.text(text)) {
            Some("is_forward") => Some(Region::Forward),
            Some("is_backward") => Some(Region::Backward),
            Some("must_be_in_forward") => Some(Region::MustForward),
            Some("must_be_in_backward") => Some(Region::MustBackward),
            _ => None,
        };
        let mut this = NodeTags { recompute, region, region_id: tags.ac_graph_id, ..NodeTags::default() };
        let object = |text: Option<crate::graph::Str>| -> Option<serde_json::Value> {
            serde_json::from_str(graph.text(text?)).ok()
        };
        if let Some(custom) = object(tags.custom) {
            this.replayed = custom.get("ap_must_save").and_then(serde_json::Value::as_bool) == Some(true);
            let items = custom.get("ap_must_save_getitem_indices").and_then(serde_json::Value::as_array);
            this.budget = custom.get("_region_activation_memory_budget").and_then(serde_json::Value::as_f64);
            this.replayed_items =
                items.map(|items| items.iter().filter_map(serde_json::Value::as_i64).collect());
        }
        if let Some(extra) = object(tags.extra) {
            let is_set = |key: &str| extra.get(key).and_then(serde_json::Value::as_bool) == Some(true);
            this.written_by_runtime = is_set("aot_runtime_epilogue_input_mutation");
            this.unchecked_version = is_set("saved_tensor_with_no_vc_check");
            this.hook = is_set("has_backward_hook");
        }
        this
    }

    /// Whether the value must be computed again.
    pub fn must_be_recomputed(&self) -> bool {
        self.recompute == Some(Recompute::MustRecompute)
    }

    /// Whether recomputing is asked for, as the default and the min-cut partition read tags.
    pub fn asks_to_recompute(&self) -> bool {
        matches!(self.recompute, Some(Recompute::MustRecompute | Recompute::PreferRecompute))
    }
}
