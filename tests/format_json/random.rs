//! Random graphs come back as they were; damaged files are refused or read, never a panic.

use super::random_graphs::arbitrary_graph;
use super::{read, unpacked, written};
use fuzzing::json_format::check_blocks;
use graph_oracle::format::json;
use graph_oracle::graph::{Graph, NodeId, Out, Value};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Few cases, so that debug builds stay fast; `PROPTEST_CASES` asks for more.
fn config(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if default.cases == 256 { cases } else { default.cases };
    ProptestConfig { cases, failure_persistence: None, ..default }
}

/// A real graph, small.
static REAL: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let path = super::corpus().into_iter().find(|path| path.to_string_lossy().contains("small_tp_allreduce"));
    unpacked(&path.expect("a file of corpus/real"))
});

/// What [`Graph::difference`] does not compare: where nodes come from, and what the file carries along.
fn carried(graph: &Graph) -> Vec<(Option<&str>, Option<&str>)> {
    let text = |text: Option<_>| text.map(|text| graph.text(text));
    graph.nodes().iter().map(|node| (text(node.stack), text(node.extra))).collect()
}

/// The names of the variants in a graph, by way of Debug.
fn variants(graph: &Graph, found: &mut BTreeSet<String>) {
    fn name(value: &impl std::fmt::Debug) -> String {
        format!("{value:?}").split(['(', ' ']).next().unwrap_or_default().to_string()
    }
    fn values(graph: &Graph, list: &[Value], found: &mut BTreeSet<String>) {
        for value in list {
            found.insert(format!("Value::{}", name(value)));
            if let Value::List(span) | Value::Dict(span) | Value::Slice(span) | Value::Complex(span) = value {
                values(graph, graph.values(*span), found);
            }
        }
    }
    fn outs(graph: &Graph, out: Out, found: &mut BTreeSet<String>) {
        found.insert(format!("Out::{}", name(&out)));
        if let Out::Tuple(span) | Out::Dict(span) = out {
            graph.outs(span).iter().for_each(|&part| outs(graph, part, found));
        }
    }
    for id in graph.ids() {
        values(graph, graph.args(id), found);
        values(graph, graph.values(graph.node(id).kwargs), found);
        outs(graph, graph.node(id).out, found);
        if let Some(tags) = graph.tags(id) {
            let set = [
                ("recompute", tags.recompute.is_some()),
                ("partitioner_tag", tags.partitioner_tag.is_some()),
                ("custom", tags.custom.is_some()),
                ("extra", tags.extra.is_some()),
                ("ac_graph_id", tags.ac_graph_id.is_some()),
                ("seq_nr", tags.seq_nr.is_some()),
                ("autograd_backward", tags.autograd_backward.is_some()),
                ("is_gradient_acc", tags.is_gradient_acc.is_some()),
            ];
            found.extend(set.iter().filter(|(_, set)| *set).map(|(tag, _)| format!("Tags::{tag}")));
        }
    }
}

#[test]
fn random_graphs_use_every_variant() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut found = BTreeSet::new();
    for _ in 0..60 {
        variants(&arbitrary_graph().new_tree(&mut runner).unwrap().current(), &mut found);
    }
    let count = |kind: &str| found.iter().filter(|name| name.starts_with(kind)).count();
    assert_eq!((count("Value::"), count("Out::"), count("Tags::")), (17, 10, 8), "{found:?}");
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn what_is_written_is_read(graph in arbitrary_graph()) {
        let text = written(&graph);
        let again = read(&text);
        prop_assert_eq!(graph.difference(&again), None, "{}", text);
        prop_assert_eq!(&graph.extra, &again.extra);
        prop_assert_eq!(carried(&graph), carried(&again));
        let facts = &again.facts[..graph.facts.len()];
        prop_assert_eq!(&graph.facts[..], facts);
        prop_assert_eq!(written(&again), text);
    }

    /// One node per line: a text tool can compare two graphs.
    #[test]
    fn nodes_stand_on_lines_of_their_own(graph in arbitrary_graph()) {
        let text = written(&graph);
        let lines: Vec<&str> = text.lines().skip_while(|line| *line != "\"nodes\":[").skip(1).collect();
        for id in graph.ids() {
            let line = lines[id.index()].trim_end_matches(',');
            let parsed: serde_json::Value = serde_json::from_str(line).unwrap();
            let name = graph_oracle::words::released(graph.name(NodeId(id.0)));
            prop_assert_eq!(parsed["name"].as_str(), Some(&*name));
        }
    }
}

/// A change to a text: at a place (per mille), drop some bytes and put others.
fn edits() -> impl Strategy<Value = Vec<(usize, usize, Vec<u8>)>> {
    let pieces =
        ["\"", "{", "}", "[", "]", ",", ":", "null", "-1", "1e5", "99999999999999999999", "\\u12", "\u{e9}"];
    let piece = prop_oneof![
        prop::sample::select(pieces.to_vec()).prop_map(|piece| piece.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..4),
        Just(br#"{"ref":"mm"}"#.to_vec()),
    ];
    prop::collection::vec((0usize..1000, 0usize..6, piece), 1..4)
}

fn edited(text: &[u8], edits: &[(usize, usize, Vec<u8>)]) -> Vec<u8> {
    let mut text = text.to_vec();
    for (place, drop, piece) in edits {
        let at = text.len() * place / 1000;
        let end = (at + drop).min(text.len());
        text.splice(at..end, piece.iter().copied());
    }
    text
}

/// A document, which is then written and read as the same, or an error in one short line.
fn read_or_refused(bytes: &[u8]) -> Result<(), TestCaseError> {
    check_blocks(bytes, 1);
    match json::read(bytes) {
        Ok(json::Document::Graph(graph)) => {
            let text = written(&graph);
            let again = read(&text);
            prop_assert_eq!(graph.difference(&again), None);
            prop_assert_eq!(written(&again), text);
        }
        Ok(json::Document::Outcome(_)) => {}
        Err(error) => {
            let line = error.to_string();
            prop_assert!(!line.contains('\n') && line.chars().count() < 400, "{}", line);
            if let Some(at) = error.at {
                let lines = bytes.iter().filter(|&&b| b == b'\n').count() + 1;
                prop_assert!((1..=lines).contains(&at.line) && at.column > 0, "{}", line);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn damaged_text(edits in edits()) {
        read_or_refused(&edited(&REAL, &edits))?;
    }

    #[test]
    fn truncated_text(length in 0usize..1000) {
        let text = &REAL[..REAL.len() * length / 1000];
        read_or_refused(text)?;
    }
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn damaged_gzip(edits in edits()) {
        let packed = std::fs::read(&super::corpus()[0]).unwrap();
        let damaged = edited(&packed, &edits);
        // Only errors of the gzip layer have no place in the text; either way there is no panic.
        let _ = json::read(&damaged);
    }
}
