//! What the tests share.

use graph_oracle::files;
use graph_oracle::format::text;
use graph_oracle::graph::Graph;
use graph_oracle::ops::Ops;
use graph_oracle::semantics::symbolic::{
    Arena, Comparison, Evaluation, Limits, OutputValue, compare, evaluate,
};
use std::path::{Path, PathBuf};

/// The graph of a text case; lines are put under a world of two ranks where they name none.
pub fn graph(lines: &str) -> Graph {
    let world = if lines.contains("world") { "" } else { "world 2 ranks, groups g = [0 1] at 0\n" };
    text::parse(format!("{world}{lines}")).unwrap_or_else(|error| panic!("{error}")).graph
}

/// Evaluates two graphs in one arena.
pub fn compared(before: &Graph, after: &Graph) -> Comparison {
    let mut arena = Arena::new(&before.world, Limits::DEFAULT);
    let (old, new) = (Ops::of(before), Ops::of(after));
    let before = evaluate(&mut arena, before, &old);
    let after = evaluate(&mut arena, after, &new);
    compare(&mut arena, &before, &after)
}

/// Compares the graphs of two texts.
pub fn judge(before: &str, after: &str) -> Comparison {
    compared(&graph(before), &graph(after))
}

#[track_caller]
pub fn assert_equal(comparison: &Comparison) {
    assert!(matches!(comparison, Comparison::Equal(_)), "{comparison:#?}");
}

/// Why two graphs are not proved equal, in words; panics if they are.
#[track_caller]
pub fn open(comparison: &Comparison) -> String {
    match comparison {
        Comparison::Equal(_) => panic!("proved equal"),
        Comparison::Different(facts) => {
            facts.iter().map(|fact| fact.text.as_str()).collect::<Vec<_>>().join("\n")
        }
        Comparison::Open(why) => why.clone(),
    }
}

#[track_caller]
pub fn assert_open(comparison: &Comparison, with: &[&str]) {
    let words = open(comparison);
    for part in with {
        assert!(words.contains(part), "{part:?} is not in:\n{words}");
    }
}

/// The outputs of a graph in words, one for each.
pub fn outputs(graph: &Graph) -> Vec<String> {
    let mut arena = Arena::new(&graph.world, Limits::DEFAULT);
    let evaluation = evaluate(&mut arena, graph, &Ops::of(graph));
    assert_eq!(evaluation.broken, None);
    let words = |value: &OutputValue| match value {
        OutputValue::Tensor(tensor) => arena.describe(tensor.value),
        other => format!("{other:?}"),
    };
    evaluation.outputs.iter().map(|output| words(&output.value)).collect()
}

/// The hazards of a graph in words.
pub fn hazards(graph: &Graph) -> Vec<String> {
    let mut arena = Arena::new(&graph.world, Limits::DEFAULT);
    let evaluation: Evaluation<'_> = evaluate(&mut arena, graph, &Ops::of(graph));
    evaluation.hazards.iter().map(|hazard| hazard.tell(graph)).collect()
}

/// The folder of recorded graphs, beside the repository or one level up.
pub fn recorded() -> Option<PathBuf> {
    let project = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    project.ancestors().skip(1).take(2).map(|folder| folder.join("shared/graphs")).find(|p| p.is_dir())
}

pub fn read(path: &Path) -> Graph {
    files::read_path(path).unwrap().into_graph().unwrap()
}

/// Files of a folder with an ending, in order of their names.
pub fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect();
    files.sort();
    files
}
