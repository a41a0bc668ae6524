//! What the new nodes say about where they come from.
//!
//! Module, stack and custom tag are the first member's. The further ones are kept, as PyTorch does, under
//! `bucketing_<key>_sources`: what the members have, in bucket order, empty values left out, stack traces once
//! each. `from_node` names every member. Source: `_populate_node_meta` in
//! `torch._inductor.fx_passes.bucketing`; of the module stacks only the innermost path exists here.
//!
//! PyTorch gives these lists to every new node: n members and n nodes make n * n names. Here the bucket's collective
//! has them, and the other new nodes name the collective in `from_node`.

use crate::graph::{Editor, Graph, NodeId, Str, Tags};
use rustc_hash::FxHashSet;
use serde::Serialize;
use serde_json::Value as Json;

/// Marks `nodes` as made from `members`; `collective` is the one of them that says what all members say.
pub fn mark(editor: &mut Editor, members: &[NodeId], nodes: &[NodeId], collective: NodeId) {
    let Some(&first) = members.first() else { return };
    let graph = editor.graph();
    let node = *graph.node(first);
    let custom = graph.tags(first).and_then(|tags| tags.custom);
    // Texts, and what was read as JSON, can be written.
    let texts =
        [sources(graph, members), Sources { from_node: vec![graph.name(collective)], ..Sources::default() }]
            .map(|sources| serde_json::to_string(&sources).ok());
    let graph = editor.graph_mut();
    let [all, other] = texts.map(|extra| {
        let extra = extra.map(|extra| graph.intern(&extra));
        graph.intern_tags(Tags { custom, extra, ..Tags::default() })
    });
    for &id in nodes {
        let new = graph.node_mut(id);
        let tags = if id == collective { all } else { other };
        (new.module, new.stack, new.tags) = (node.module, node.stack, tags);
    }
}

/// What the members say; the keys in the order of their names.
#[derive(Default, Serialize)]
struct Sources<'a> {
    #[serde(rename = "bucketing_custom_sources", skip_serializing_if = "Vec::is_empty")]
    custom: Vec<Json>,
    #[serde(rename = "bucketing_nn_module_stack_sources", skip_serializing_if = "Vec::is_empty")]
    modules: Vec<&'a str>,
    #[serde(rename = "bucketing_stack_trace_sources", skip_serializing_if = "Vec::is_empty")]
    stacks: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    from_node: Vec<&'a str>,
}

fn sources<'a>(graph: &'a Graph, members: &[NodeId]) -> Sources<'a> {
    let text = |id: Option<Str>| id.map(|id| graph.text(id)).filter(|text| !text.is_empty());
    let mut seen = FxHashSet::default();
    let stacks = members.iter().filter_map(|&id| text(graph.node(id).stack));
    let stacks = stacks.filter(|&stack| seen.insert(stack)).collect();
    let custom = |&id: &NodeId| -> Option<Json> { serde_json::from_str(text(graph.tags(id)?.custom)?).ok() };
    Sources {
        custom: members.iter().filter_map(custom).collect(),
        modules: members.iter().filter_map(|&id| text(graph.node(id).module)).collect(),
        stacks,
        from_node: members.iter().map(|&id| graph.name(id)).collect(),
    }
}
