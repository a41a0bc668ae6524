//! The table of operators and their shape rules, against graphs that PyTorch recorded and answers that it gave.

mod facts;
mod properties;
mod refusals;

use graph_oracle::files;
use graph_oracle::graph::{Dtype, Graph, NodeId, Op, Out, Value};
use graph_oracle::ops::shape::{self, ShapeFault};
use graph_oracle::ops::{self, Ops};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

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
    files::read_path(path).unwrap().into_graph().unwrap()
}

/// The recorded graphs with their file names, read once.
static RECORDED: LazyLock<Vec<(String, Graph)>> = LazyLock::new(|| {
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    recorded().iter().map(|path| (name(path), read(path))).collect()
});

/// A tensor: sizes, strides, offset.
type Window<'a> = (&'a [i64], &'a [i64], i64);

/// A graph of one call of the operator with the short name `short`, on f32 inputs.
fn one_call(
    short: &str,
    inputs: &[Window],
    args: impl FnOnce(&mut Graph, &[Value]) -> Vec<Value>,
) -> (Graph, NodeId) {
    let mut graph = Graph::new("one call");
    let device = graph.intern("cpu");
    let mut nodes = Vec::new();
    for (i, &(sizes, strides, offset)) in inputs.iter().enumerate() {
        let name = format!("x{i}");
        let id = graph.push(&name, Op::Placeholder, &name);
        let out = graph.contiguous(sizes, Dtype::F32, device);
        let Out::Tensor(tensor) = out else { unreachable!() };
        let stride = graph.intern_sizes(strides);
        let tensor = graph.tensor_mut(tensor);
        (tensor.stride, tensor.offset) = (stride, offset);
        graph.node_mut(id).out = out;
        nodes.push(Value::Node(id));
    }
    let id = graph.push("call", Op::Call, &ops::by_short_name(short).unwrap().target);
    let args = args(&mut graph, &nodes);
    let args = graph.push_values(&args);
    graph.node_mut(id).args = args;
    (graph, id)
}

fn calls(graph: &Graph) -> impl Iterator<Item = NodeId> {
    graph.ids().filter(|&id| graph.node(id).op == Op::Call)
}

#[test]
fn the_table_knows_every_target() {
    let mut targets = BTreeSet::new();
    for (_, graph) in RECORDED.iter() {
        targets.extend(calls(graph).map(|id| graph.target(id).to_string()));
    }
    let unknown: Vec<&String> = targets.iter().filter(|t| ops::by_target(t).is_none()).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    println!("{} targets in {} files", targets.len(), RECORDED.len());
}

#[test]
fn the_table_agrees_with_the_facts_of_every_file() {
    for (file, graph) in RECORDED.iter() {
        let found = ops::facts_disagreements(graph);
        assert!(found.is_empty(), "{file}: {}", found[0]);
    }
}

#[test]
fn every_recorded_result_is_what_its_rule_says() {
    let (mut nodes, mut decided, mut strides) = (0, 0, 0);
    let mut open: BTreeMap<String, usize> = BTreeMap::new();
    let mut faults = Vec::new();
    for (file, graph) in RECORDED.iter() {
        let ops = Ops::of(graph);
        for id in calls(graph) {
            nodes += 1;
            match shape::infer(graph, &ops, id) {
                Ok(shape::Inferred::Undecided) => *open.entry(graph.target(id).to_string()).or_default() += 1,
                Ok(shape::Inferred::One(shape::Output::Tensor(t))) => {
                    decided += 1;
                    strides += usize::from(t.stride.is_some());
                }
                _ => decided += 1,
            }
            // The sizes behind its data-dependent all-to-alls are hints that contradict each other.
            let contradicts = ["all_to_all_single", "slice_scatter", "index_put"];
            if file.starts_with("dsv3_bw_64")
                && contradicts.iter().any(|name| graph.target(id).contains(name))
            {
                continue;
            }
            for fault in shape::check(graph, &ops, id) {
                faults.push(format!("{file} {} {}: {fault}", graph.name(id), graph.target(id)));
            }
        }
    }
    println!("{nodes} calls, {decided} decided, {strides} with strides; undecided: {open:#?}");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Whatever is changed in what is recorded of a result, the rule finds it, where it decides.
#[test]
fn a_changed_result_is_found() {
    let mut found = [0; 3];
    for name in ["small_fsdp4_joint", "small_mlp_joint", "small_mutation_joint", "small_gpt_joint"] {
        let Some((_, graph)) = RECORDED.iter().find(|(file, _)| file.starts_with(name)) else { continue };
        let ops = Ops::of(graph);
        for id in calls(graph) {
            let Ok(shape::Inferred::One(shape::Output::Tensor(rule))) = shape::infer(graph, &ops, id) else {
                continue;
            };
            let Out::Tensor(tensor) = graph.node(id).out else { continue };
            let is_written = ops.get(graph, id).mutated().next().is_some();
            let recorded = *graph.tensor(tensor);
            let sizes = graph.sizes(recorded.shape).unwrap();
            let strides = graph.sizes(recorded.stride).unwrap();
            for dim in 0..sizes.len() {
                let mut changed = graph.clone();
                let mut other = sizes.clone();
                other[dim] += 1;
                changed.tensor_mut(tensor).shape = changed.intern_sizes(&other);
                let faults = shape::check(&changed, &ops, id);
                assert!(
                    faults.iter().any(|f| matches!(f, ShapeFault::Shape { .. })),
                    "{name} {}",
                    graph.name(id)
                );
                found[0] += 1;
                let mut changed = graph.clone();
                let mut other = strides.clone();
                other[dim] += 7;
                changed.tensor_mut(tensor).stride = changed.intern_sizes(&other);
                let matters = rule.stride.is_some() && sizes[dim] != 1 && !sizes.contains(&0);
                let faults = shape::check(&changed, &ops, id);
                let seen = faults.iter().any(|f| matches!(f, ShapeFault::Stride { .. }));
                assert_eq!(seen, matters, "{name} {}", graph.name(id));
                found[1] += usize::from(seen);
            }
            if rule.dtype.is_some() && !is_written {
                let mut changed = graph.clone();
                changed.tensor_mut(tensor).dtype = Dtype::U16;
                let faults = shape::check(&changed, &ops, id);
                assert!(
                    faults.iter().any(|f| matches!(f, ShapeFault::Dtype { .. })),
                    "{name} {}",
                    graph.name(id)
                );
                found[2] += 1;
            }
        }
    }
    println!("found {} shapes, {} strides, {} dtypes", found[0], found[1], found[2]);
    // The graphs in the repository alone have at least 41 of each.
    assert!(found.iter().all(|&n| n > 30), "{found:?}");
}

/// Small random calls, eager and fake, with PyTorch's answers: made by `tests/peer/shape_cases.py`.
#[test]
fn rules_answer_as_pytorch_does() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = std::env::var_os("SHAPE_CASES").map(PathBuf::from);
    answers_agree(&path.unwrap_or(project.join("tests/ops/shape_cases.json.gz")));
}

/// The same for calls with an argument that is spoilt.
#[test]
fn rules_refuse_what_pytorch_refuses() {
    answers_agree(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ops/slip_cases.json.gz"));
}

/// Windows at and past every edge.
#[test]
fn windows_are_those_of_pytorch() {
    answers_agree(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ops/view_cases.json.gz"));
}

fn answers_agree(path: &Path) {
    let graph = read(path);
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
