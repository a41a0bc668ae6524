//! The table of operators and their shape rules, against graphs that PyTorch recorded.

use graph_oracle::format::json;
use graph_oracle::graph::{Graph, NodeId, Op, Value};
use graph_oracle::ops::{self, Ops, shape};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(".json.gz"));
    files.sort();
    files
}

/// The recorded graphs beside the project, or beside the folder of its work trees, and those in the repository.
/// Prints a line where the former are absent.
fn recorded() -> Vec<PathBuf> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = project.ancestors().skip(1).take(2).map(|folder| folder.join("shared/graphs"));
    let beside = folders.map(|folder| files(&folder)).find(|files| !files.is_empty());
    beside.unwrap_or_else(|| {
        println!("skipped 1 test in part: no recorded graphs beside the project");
        files(&project.join("corpus/real"))
    })
}

fn read(path: &Path) -> Graph {
    json::read_path(path).unwrap().into_graph().unwrap()
}

fn calls(graph: &Graph) -> impl Iterator<Item = NodeId> {
    graph.ids().filter(|&id| graph.node(id).op == Op::Call)
}

#[test]
fn the_table_knows_every_target() {
    let files = recorded();
    let mut targets = BTreeSet::new();
    for path in &files {
        let graph = read(path);
        targets.extend(calls(&graph).map(|id| graph.target(id).to_string()));
    }
    let unknown: Vec<&String> = targets.iter().filter(|t| ops::by_target(t).is_none()).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    println!("{} targets in {} files", targets.len(), files.len());
}

#[test]
fn the_table_agrees_with_the_facts_of_every_file() {
    for path in recorded() {
        let graph = read(&path);
        let found = ops::facts_disagreements(&graph);
        assert!(found.is_empty(), "{}: {}", path.display(), found[0]);
    }
}

#[test]
fn every_recorded_result_is_what_its_rule_says() {
    let (mut nodes, mut decided, mut strides) = (0, 0, 0);
    let mut open: BTreeMap<String, usize> = BTreeMap::new();
    let mut faults = Vec::new();
    for path in recorded() {
        let graph = read(&path);
        let ops = Ops::of(&graph);
        for id in calls(&graph) {
            nodes += 1;
            match shape::infer(&graph, &ops, id) {
                Ok(shape::Inferred::Undecided) => *open.entry(graph.target(id).to_string()).or_default() += 1,
                Ok(shape::Inferred::One(shape::Output::Tensor(t))) => {
                    decided += 1;
                    strides += usize::from(t.stride.is_some());
                }
                _ => decided += 1,
            }
            for fault in shape::check(&graph, &ops, id) {
                let file = path.file_name().unwrap().to_string_lossy();
                faults.push(format!("{file} {} {}: {fault}", graph.name(id), graph.target(id)));
            }
        }
    }
    println!("{nodes} calls, {decided} decided, {strides} with strides; undecided: {open:#?}");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Small random calls, eager and fake, with PyTorch's answers: made by `tests/peer/shape_cases.py`.
#[test]
fn rules_answer_as_pytorch_does() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = std::env::var_os("SHAPE_CASES").map_or(project.join("tests/ops/shape_cases.json.gz"), PathBuf::from);
    let graph = read(&path);
    let ops = Ops::of(&graph);
    let (mut answered, mut refused) = (0, 0);
    let mut open: BTreeMap<&str, usize> = BTreeMap::new();
    let mut faults = Vec::new();
    for id in calls(&graph) {
        let says = |what: String| {
            let inputs: Vec<String> = graph.inputs(id).iter().map(|&i| describe(&graph, i)).collect();
            let rest: Vec<_> = graph.args(id).iter().filter(|a| !matches!(a, Value::Node(_))).collect();
            format!("{} of {} {rest:?}: {what}", graph.name(id), inputs.join(", "))
        };
        let is_refused = graph.node(id).module.is_some_and(|m| graph.text(m) == "refused");
        match shape::infer(&graph, &ops, id) {
            Ok(shape::Inferred::Undecided) => *open.entry(graph.target(id)).or_default() += 1,
            Ok(_) if is_refused => faults.push(says("PyTorch refuses it, the rule does not".to_string())),
            Ok(_) => answered += 1,
            Err(_) if is_refused => refused += 1,
            Err(_) => {}
        }
        if !is_refused {
            faults.extend(shape::check(&graph, &ops, id).iter().map(|fault| says(fault.to_string())));
        }
    }
    println!("{answered} answered, {refused} refused, undecided: {open:?}");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

fn describe(graph: &Graph, id: NodeId) -> String {
    graph.tensor_of(id).map_or(String::new(), |t| {
        format!("{}{:?}/{:?}", t.dtype.short(), graph.sizes(t.shape).unwrap(), graph.sizes(t.stride).unwrap())
    })
}
