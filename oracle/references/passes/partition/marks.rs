//! The tags of nodes, read once: what placement, recomputation policy and annotations they carry.
//!
//! Sources: `partitioner_tag`, `recompute`, `ac_graph_id` and `custom` are fields of their own in a file; all else
//! is looked for among the further tags: `has_backward_hook`, `saved_tensor_with_no_vc_check`,
//! `aot_runtime_epilogue_input_mutation`, `memory_budget`.

use crate::graph::{Graph, NodeId, Str, Tags};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value as Json};

/// Where a node was placed by whoever traced it (`partitioner_tag`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub enum Placement {
    #[default]
    Untagged,
    Forward,
    Backward,
    MustBeForward,
    MustBeBackward,
}

impl Placement {
    /// From the value of `partitioner_tag`; other values than PyTorch's count as none.
    pub fn parse(text: &str) -> Placement {
        match text {
            "is_forward" => Placement::Forward,
            "is_backward" => Placement::Backward,
            "must_be_in_forward" => Placement::MustBeForward,
            "must_be_in_backward" => Placement::MustBeBackward,
            _ => Placement::Untagged,
        }
    }

    /// The value of `partitioner_tag`.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Placement::Untagged => None,
            Placement::Forward => Some("is_forward"),
            Placement::Backward => Some("is_backward"),
            Placement::MustBeForward => Some("must_be_in_forward"),
            Placement::MustBeBackward => Some("must_be_in_backward"),
        }
    }
}

/// What is to become of a value between forward and backward (`recompute`,
/// `torch.utils.checkpoint.CheckpointPolicy`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Recompute {
    MustSave,
    PreferSave,
    MustRecompute,
    PreferRecompute,
}

impl Recompute {
    const ALL: [(Recompute, &'static str); 4] = [
        (Recompute::MustSave, "MUST_SAVE"),
        (Recompute::PreferSave, "PREFER_SAVE"),
        (Recompute::MustRecompute, "MUST_RECOMPUTE"),
        (Recompute::PreferRecompute, "PREFER_RECOMPUTE"),
    ];

    /// From the value of `recompute`.
    pub fn parse(text: &str) -> Option<Recompute> {
        Recompute::ALL.iter().find(|(_, name)| *name == text).map(|&(strategy, _)| strategy)
    }

    /// The value of `recompute`.
    pub fn name(self) -> &'static str {
        Recompute::ALL.iter().find(|(strategy, _)| *strategy == self).map_or("", |(_, name)| name)
    }
}

/// The annotations of `custom` that a partitioner reads.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Custom {
    /// `ap_must_save`: the first partition saved this value.
    pub must_save: bool,
    /// `ap_must_save_getitem_indices`; `None` where there is no list.
    pub indices: Option<Vec<i64>>,
    /// `stream`, 0 where absent.
    pub stream: i64,
    /// `mempool` and `mempool_device`.
    pub mempool: (Option<i64>, Option<i64>),
    /// The budget annotation of the region.
    pub budget: Option<f64>,
}

impl Custom {
    fn parse(text: &str) -> Custom {
        let Ok(Json::Object(map)) = serde_json::from_str(text) else { return Custom::default() };
        let int = |key: &str| map.get(key).and_then(Json::as_i64);
        let indices = map.get("ap_must_save_getitem_indices").and_then(Json::as_array);
        Custom {
            must_save: flag(&map, "ap_must_save"),
            indices: indices.map(|list| list.iter().filter_map(Json::as_i64).collect()),
            stream: int("stream").unwrap_or(0),
            mempool: (int("mempool"), int("mempool_device")),
            budget: map.get("_region_activation_memory_budget").and_then(Json::as_f64),
        }
    }
}

/// Further tags.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Further {
    hook: bool,
    unchecked: bool,
    replayed_mutation: bool,
    budget: Option<f64>,
}

impl Further {
    fn parse(text: &str) -> Further {
        let Ok(Json::Object(map)) = serde_json::from_str(text) else { return Further::default() };
        Further {
            hook: flag(&map, "has_backward_hook"),
            unchecked: flag(&map, "saved_tensor_with_no_vc_check"),
            replayed_mutation: flag(&map, "aot_runtime_epilogue_input_mutation"),
            budget: map.get("memory_budget").filter(|budget| budget.is_f64()).and_then(Json::as_f64),
        }
    }
}

fn flag(map: &Map<String, Json>, key: &str) -> bool {
    map.get(key).and_then(Json::as_bool).unwrap_or(false)
}

/// The tags of one node.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Marks {
    /// `partitioner_tag`.
    pub placement: Placement,
    /// `recompute`.
    pub recompute: Option<Recompute>,
    /// `ac_graph_id`: the activation-checkpointing region.
    pub region: Option<i64>,
    /// `has_backward_hook`.
    pub hook: bool,
    /// `saved_tensor_with_no_vc_check`: saved without a check of its version counter.
    pub unchecked: bool,
    /// `aot_runtime_epilogue_input_mutation`: an input that the runtime writes to after the forward graph.
    pub replayed_mutation: bool,
    /// `memory_budget`.
    pub budget: Option<f64>,
    custom: Option<u32>,
}

impl Marks {
    /// Whether the node is tagged to be computed again: `MUST_RECOMPUTE` or `PREFER_RECOMPUTE`.
    pub fn recomputes(&self) -> bool {
        matches!(self.recompute, Some(Recompute::MustRecompute | Recompute::PreferRecompute))
    }

    /// Whether the tag is `MUST_SAVE`.
    pub fn must_save(&self) -> bool {
        self.recompute == Some(Recompute::MustSave)
    }
}

/// The tags of all nodes of a graph.
#[derive(Clone, Debug, Default)]
pub struct MarkTable {
    marks: Vec<Marks>,
    customs: Vec<Custom>,
    none: Custom,
}

impl MarkTable {
    /// Reads the tags of `graph`.
    pub fn of(graph: &Graph) -> MarkTable {
        let mut table = MarkTable::default();
        let mut customs: FxHashMap<Str, u32> = FxHashMap::default();
        let mut further: FxHashMap<Str, Further> = FxHashMap::default();
        for id in graph.ids() {
            let mut marks = Marks::default();
            if let Some(tags) = graph.tags(id) {
                let text = |field: Option<Str>| field.map(|text| graph.text(text));
                marks.placement = text(tags.partitioner_tag).map_or(Placement::Untagged, Placement::parse);
                marks.recompute = text(tags.recompute).and_then(Recompute::parse);
                marks.region = tags.ac_graph_id;
                if let Some(extra) = tags.extra {
                    let extra = *further.entry(extra).or_insert_with(|| Further::parse(graph.text(extra)));
                    marks.hook = extra.hook;
                    marks.unchecked = extra.unchecked;
                    marks.replayed_mutation = extra.replayed_mutation;
                    marks.budget = extra.budget;
                }
                marks.custom = tags.custom.map(|custom| {
                    *customs.entry(custom).or_insert_with(|| {
                        table.customs.push(Custom::parse(graph.text(custom)));
                        table.customs.len() as u32 - 1
                    })
                });
            }
            table.marks.push(marks);
        }
        table
    }

    /// The tags of a node.
    pub fn get(&self, id: NodeId) -> &Marks {
        &self.marks[id.index()]
    }

    /// The tags of a node, to be changed.
    pub fn get_mut(&mut self, id: NodeId) -> &mut Marks {
        &mut self.marks[id.index()]
    }

    /// The annotations of a node.
    pub fn custom(&self, id: NodeId) -> &Custom {
        self.marks[id.index()].custom.map_or(&self.none, |index| &self.customs[index as usize])
    }
}

/// Changes the tags of a node of `graph`.
pub fn retag(graph: &mut Graph, id: NodeId, change: impl FnOnce(&mut Graph, &mut Tags)) {
    let mut tags = graph.tags(id).cloned().unwrap_or_default();
    change(graph, &mut tags);
    graph.node_mut(id).tags = graph.intern_tags(tags);
}

/// Sets `recompute` of a node of `graph`.
pub fn set_recompute(graph: &mut Graph, id: NodeId, strategy: Recompute) {
    retag(graph, id, |graph, tags| tags.recompute = Some(graph.intern(strategy.name())));
}

/// Marks a node of `graph` as one that the first partition saved: itself, or the result with an index.
pub fn set_must_save(graph: &mut Graph, id: NodeId, index: Option<i64>) {
    retag(graph, id, |graph, tags| {
        let text = tags.custom.map_or("{}", |custom| graph.text(custom));
        let mut map = match serde_json::from_str(text) {
            Ok(Json::Object(map)) => map,
            _ => Map::new(),
        };
        map.insert("ap_must_save".to_string(), Json::Bool(true));
        if let Some(index) = index {
            let list = map.entry("ap_must_save_getitem_indices").or_insert_with(|| Json::Array(Vec::new()));
            if !list.is_array() {
                *list = Json::Array(Vec::new());
            }
            if let Json::Array(list) = list
                && !list.contains(&Json::from(index))
            {
                list.push(Json::from(index));
            }
        }
        tags.custom = Some(graph.intern(&Json::Object(map).to_string()));
    });
}

/// Joins the mark of a copy to a node of `graph` that stays for both: marked results are those of either, all of them
/// where one of the marks lists none.
pub fn join_must_save(graph: &mut Graph, id: NodeId, copy: &Custom) {
    const LIST: &str = "ap_must_save_getitem_indices";
    retag(graph, id, |graph, tags| {
        let text = tags.custom.map_or("{}", |custom| graph.text(custom));
        let own = Custom::parse(text);
        let mut map = match serde_json::from_str(text) {
            Ok(Json::Object(map)) => map,
            _ => Map::new(),
        };
        let own = own.must_save.then_some(own.indices);
        match (own, &copy.indices) {
            (Some(None), _) | (_, None) => {
                map.remove(LIST);
            }
            (own, Some(more)) => {
                let mut indices = own.flatten().unwrap_or_default();
                for index in more {
                    if !indices.contains(index) {
                        indices.push(*index);
                    }
                }
                map.insert(LIST.to_string(), Json::from(indices));
            }
        }
        map.insert("ap_must_save".to_string(), Json::Bool(true));
        tags.custom = Some(graph.intern(&Json::Object(map).to_string()));
    });
}
