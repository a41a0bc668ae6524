//! What the new nodes say about where they come from.
//!
//! Module, stack and custom tag are the first member's. The further ones are kept, as PyTorch does, under
//! `bucketing_<key>_sources`: what the members have, in bucket order, empty values left out, stack traces once
//! each. `from_node` names every member. Source: `_populate_node_meta` in
//! `torch._inductor.fx_passes.bucketing`; of the module stacks only the innermost path exists here.

use crate::graph::{Editor, Graph, NodeId, Str, Tags};
use serde_json::{Map, Value as Json, json};

/// Marks `nodes` as made from `members`.
pub fn mark(editor: &mut Editor, members: &[NodeId], nodes: &[NodeId]) {
    let Some(&first) = members.first() else { return };
    let graph = editor.graph();
    let node = *graph.node(first);
    let custom = graph.tags(first).and_then(|tags| tags.custom);
    let extra = sources(graph, members).to_string();
    let graph = editor.graph_mut();
    let extra = graph.intern(&extra);
    let tags = graph.intern_tags(Tags { custom, extra: Some(extra), ..Tags::default() });
    for &id in nodes {
        let new = graph.node_mut(id);
        (new.module, new.stack, new.tags) = (node.module, node.stack, tags);
    }
}

fn sources(graph: &Graph, members: &[NodeId]) -> Json {
    let text = |id: Option<Str>| id.map(|id| graph.text(id)).filter(|text| !text.is_empty());
    let modules: Vec<&str> = members.iter().filter_map(|&id| text(graph.node(id).module)).collect();
    let mut stacks: Vec<&str> = Vec::new();
    for stack in members.iter().filter_map(|&id| text(graph.node(id).stack)) {
        if !stacks.contains(&stack) {
            stacks.push(stack);
        }
    }
    let custom = |&id: &NodeId| -> Option<Json> { serde_json::from_str(text(graph.tags(id)?.custom)?).ok() };
    let custom: Vec<Json> = members.iter().filter_map(custom).collect();
    let mut sources = Map::new();
    let mut put = |key: &str, list: Json| {
        if list.as_array().is_some_and(|list| !list.is_empty()) {
            sources.insert(key.to_string(), list);
        }
    };
    put("bucketing_nn_module_stack_sources", json!(modules));
    put("bucketing_stack_trace_sources", json!(stacks));
    put("bucketing_custom_sources", json!(custom));
    put("from_node", json!(members.iter().map(|&id| graph.name(id)).collect::<Vec<_>>()));
    Json::Object(sources)
}
