//! Reading and writing real graphs loses nothing.

use graph_oracle::format::json;
use graph_oracle::graph::Graph;
use std::path::PathBuf;

pub fn read(text: &[u8]) -> Graph {
    json::read(text).unwrap_or_else(|error| panic!("{error}")).into_graph().expect("a graph")
}

pub fn written(graph: &Graph) -> Vec<u8> {
    let mut text = Vec::new();
    json::write(graph, &mut text).unwrap();
    text
}

fn nothing_is_lost(files: &[PathBuf]) {
    let (mut identical, mut nodes) = (0, 0);
    for path in files {
        let text = super::unpacked(path);
        let graph = read(&text);
        let again = written(&graph);
        let before: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let after: serde_json::Value = serde_json::from_slice(&again).unwrap();
        assert_eq!(before, after, "{}", path.display());
        assert_eq!(written(&read(&again)), again, "{}", path.display());
        identical += usize::from(text == again);
        nodes += graph.len();
    }
    println!("{} graphs, {nodes} nodes; {identical} files come back byte for byte", files.len());
}

#[test]
fn of_the_corpus() {
    let files = super::corpus();
    assert_eq!(files.len(), 6);
    nothing_is_lost(&files);
}

#[test]
fn of_the_recorded_graphs() {
    nothing_is_lost(&super::recorded());
}
