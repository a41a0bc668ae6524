//! Comments: what a text says of where nodes come from, and their tags.
//!
//! A comment holds for all nodes until the next one:
//! `autograd_backward: True, seq_nr: 12 # Annotation: {...} recompute: MUST_SAVE Backward of forward node: File: ...`.
//! All parts are optional. A node of backward without a stack does not say that it is one, so that its absence says
//! nothing.

use super::python::{Py, Reader};
use crate::graph::{Graph, Str, Tags, TagsId};

/// What a comment says.
#[derive(Clone, Copy, Default)]
pub(super) struct Said {
    pub(super) tags: Option<TagsId>,
    pub(super) stack: Option<Str>,
}

/// Reads a comment, without its `#`.
pub(super) fn read(graph: &mut Graph, text: &str) -> Said {
    let mut tags = Tags::default();
    let rest = keys(&mut tags, text);
    let rest = annotation(graph, &mut tags, rest);
    let rest = recompute(graph, &mut tags, rest);
    let rest = match rest.strip_prefix("Backward of forward node: ") {
        Some(rest) => {
            tags.autograd_backward = Some(true);
            rest
        }
        None => rest,
    };
    let stack = rest.strip_prefix("File: ").map(|place| graph.intern(place));
    Said { tags: graph.intern_tags(tags), stack }
}

/// `KEY: VALUE, ... # `, which TorchTitan prints first.
fn keys<'t>(tags: &mut Tags, text: &'t str) -> &'t str {
    let Some((keys, rest)) = text.split_once(" # ") else { return text };
    let pairs: Option<Vec<(&str, &str)>> = keys.split(", ").map(|pair| pair.split_once(": ")).collect();
    // Code may hold all of these marks, and blanks.
    let is_word = |text: &str| text.bytes().all(|b| b == b'_' || b == b'-' || b.is_ascii_alphanumeric());
    let are_words =
        |pairs: &Vec<(&str, &str)>| pairs.iter().all(|(key, value)| is_word(key) && is_word(value));
    let Some(pairs) = pairs.filter(are_words) else { return text };
    for (key, value) in pairs {
        match key {
            "autograd_backward" => tags.autograd_backward = (value == "True").then_some(true),
            "seq_nr" => tags.seq_nr = value.parse().ok(),
            _ => {}
        }
    }
    rest
}

/// `Annotation: {...}`, whose values are cut after some characters.
fn annotation<'t>(graph: &mut Graph, tags: &mut Tags, text: &'t str) -> &'t str {
    let Some(rest) = text.strip_prefix("Annotation: ") else { return text };
    let mut reader = Reader::new(rest);
    let Ok(Py::Dict(pairs)) = reader.expression() else { return text };
    let value = |value: &Py<'_>| match value {
        Py::Str(text) => serde_json::Value::from(text.as_str()),
        Py::Int(n) => serde_json::Value::from(*n),
        Py::Bool(b) => serde_json::Value::from(*b),
        other => serde_json::Value::from(format!("{other:?}")),
    };
    let fields = pairs.iter().filter_map(|(key, of)| match key {
        Py::Str(key) => Some((key.clone(), value(of))),
        _ => None,
    });
    let custom: serde_json::Map<String, serde_json::Value> = fields.collect();
    tags.custom = Some(graph.intern(&serde_json::Value::Object(custom).to_string()));
    rest[reader.at..].trim_start()
}

/// `ac_graph_id: 5 - PREFER_RECOMPUTE`, `recompute: MUST_SAVE`, or `ac_graph_id: 5`.
fn recompute<'t>(graph: &mut Graph, tags: &mut Tags, text: &'t str) -> &'t str {
    let word = |text: &'t str| {
        let end = text.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(text.len());
        (&text[..end], text[end..].trim_start())
    };
    if let Some(rest) = text.strip_prefix("recompute: ") {
        let (policy, rest) = word(rest);
        tags.recompute = Some(graph.intern(policy));
        return rest;
    }
    let Some(rest) = text.strip_prefix("ac_graph_id: ") else { return text };
    let (id, rest) = word(rest);
    tags.ac_graph_id = id.parse().ok();
    match rest.strip_prefix("- ") {
        Some(rest) => {
            let (policy, rest) = word(rest);
            tags.recompute = Some(graph.intern(policy));
            rest
        }
        None => rest,
    }
}
