//! What PyTorch writes, against exact exports of the same graphs (../shared/traces, which its README describes).

use crate::common::recorded::project;
use graph_oracle::expression::normal_form;
use graph_oracle::format::{fx, json, torch_trace};
use graph_oracle::graph::{Dim, Graph, NodeId, Op, Out, Value};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The samples; empty, and a line says so, where they are absent.
fn samples() -> Vec<PathBuf> {
    let project = project();
    let folders = project.ancestors().skip(1).take(2).map(|folder| folder.join("shared/traces"));
    let Some(folder) = folders.into_iter().find(|folder| folder.is_dir()) else {
        println!("skipped 1 test: no traces beside the project (shared/traces)");
        return Vec::new();
    };
    let mut samples: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()).collect();
    samples.retain(|path| path.join("truth/index.tsv").is_file());
    samples.sort();
    samples
}

fn unzipped(path: &Path) -> String {
    let mut text = String::new();
    let bytes = std::fs::read(path).unwrap();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    text
}

/// A graph of a sample: its text, what is known of it besides, and the export.
struct Sample {
    place: String,
    text: String,
    truth: Graph,
    /// The graph before, whose text says more, where this is one of overlap scheduling.
    like: Option<String>,
}

fn all() -> Vec<Sample> {
    let mut all = Vec::new();
    for folder in samples() {
        let index = std::fs::read_to_string(folder.join("truth/index.tsv")).unwrap();
        for row in index.lines().skip(1) {
            let columns: Vec<&str> = row.split('\t').collect();
            let [file, number, _, artifact, _, digest, truth] = columns[..] else { panic!("{row}") };
            let trace = unzipped(&folder.join(file));
            let records = torch_trace::Records::new(&trace).filter(torch_trace::Record::is_graph);
            let mut records: Vec<_> = records.take(number.parse::<usize>().unwrap() + 1).collect();
            let record = records.pop().unwrap();
            let before = records.iter().rfind(|record| record.name() == "before_post_grad_graph");
            let like = before.filter(|_| artifact.starts_with("overlap")).and_then(|record| record.payload());
            assert_eq!((record.name(), record.digest()), (artifact, Some(digest)), "{file}");
            let bytes = std::fs::read(folder.join(truth)).unwrap();
            let truth_graph = json::read(&bytes).unwrap().into_graph().unwrap();
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            let place = format!("{name}/{truth}");
            all.push(Sample { place, text: record.payload().unwrap(), truth: truth_graph, like });
        }
    }
    all
}

fn known(sample: &Sample) -> fx::Known {
    let truth = &sample.truth;
    let (symbols, world) = (truth.symbols.clone(), truth.world.clone());
    let plain = fx::Known { name: truth.name.clone(), kind: truth.kind.clone(), symbols, world, like: None };
    let like = sample.like.as_ref().map(|text| fx::read(text, &plain).unwrap().graph);
    fx::Known { like, ..plain }
}

/// A value in words, so that graphs with other numbers of things can be compared.
fn words(graph: &Graph, value: Value) -> String {
    let all = |values: &[Value]| values.iter().map(|&v| words(graph, v)).collect::<Vec<_>>().join(", ");
    match value {
        Value::Node(id) => graph.name(id).to_string(),
        Value::Str(s) => format!("{:?}", graph.text(s)),
        Value::List(span) => format!("[{}]", all(graph.values(span))),
        Value::Slice(span) => format!("slice({})", all(graph.values(span))),
        Value::Dict(span) => format!("{{{}}}", all(graph.values(span))),
        Value::Complex(span) => format!("complex({})", all(graph.values(span))),
        Value::Device(s) | Value::MemoryFormat(s) | Value::Layout(s) | Value::Function(s) => {
            graph.text(s).to_string()
        }
        Value::Dangling(s) => format!("dangling {}", graph.text(s)),
        Value::Symbolic(expr) => graph.text(graph.expr(expr).text).to_string(),
        other => format!("{other:?}"),
    }
}

fn dims(graph: &Graph, dims: &[Dim]) -> Vec<String> {
    let dim = |dim: &Dim| match *dim {
        Dim::Static(n) => n.to_string(),
        Dim::Symbolic(expr) => form(graph.text(graph.expr(expr).text)),
    };
    dims.iter().map(dim).collect()
}

fn form(text: &str) -> String {
    normal_form(text).unwrap_or_else(|| text.to_string())
}

/// What a node returns, in words. Storages are left out: a text has none.
fn out(graph: &Graph, out: Out) -> String {
    match out {
        Out::Tensor(id) => {
            let tensor = graph.tensor(id);
            let (shape, stride) =
                (dims(graph, graph.dims(tensor.shape)), dims(graph, graph.dims(tensor.stride)));
            let (dtype, device) = (tensor.dtype.name(), graph.text(tensor.device));
            format!("{dtype}{shape:?}{stride:?}{device}+{}", tensor.offset)
        }
        Out::Tuple(span) => {
            let parts: Vec<String> = graph.outs(span).iter().map(|&part| self::out(graph, part)).collect();
            format!("({})", parts.join("; "))
        }
        Out::SymInt(expr) => format!("int {}", form(graph.text(graph.expr(expr).text))),
        Out::SymBool(expr) => format!("bool {}", graph.text(graph.expr(expr).text)),
        Out::Other(_) => "other".to_string(),
        // A call that returns nothing: the export leaves it out.
        Out::None => "Absent".to_string(),
        other => format!("{other:?}"),
    }
}

/// What an export says of the results of a node in words, without those that nobody takes and nothing is said of.
fn expected(read: &Graph, id: NodeId, truth: &Graph, twin: NodeId) -> String {
    let (Out::Tuple(read_parts), Out::Tuple(parts)) = (read.node(id).out, truth.node(twin).out) else {
        return out(truth, truth.node(twin).out);
    };
    let is_taken = |index: usize| {
        let takes = |user: NodeId| read.args(user) == [Value::Node(id), Value::Int(index as i64)];
        read.ids().any(|user| read.target(user) == "operator.getitem" && takes(user))
    };
    let said = |index: usize| read.outs(read_parts).get(index).is_some_and(|&part| part != Out::Absent);
    let words =
        truth.outs(parts).iter().enumerate().map(|(index, &part)| match said(index) || is_taken(index) {
            true => out(truth, part),
            false => out(truth, Out::Absent),
        });
    format!("({})", words.collect::<Vec<_>>().join("; "))
}

fn after(graph: &Graph, id: NodeId) -> Vec<&str> {
    let mut names: Vec<&str> =
        graph.ordering.iter().filter(|edge| edge.after == id).map(|edge| graph.name(edge.before)).collect();
    names.sort_unstable();
    names
}

/// The differences between a graph that was read and its export.
fn differences(read: &Graph, truth: &Graph) -> Vec<String> {
    let mut all = Vec::new();
    if read.len() != truth.len() {
        all.push(format!("{} nodes, expected {}", read.len(), truth.len()));
    }
    for (id, twin) in read.ids().zip(truth.ids()) {
        let mut differ = |what: &str, a: String, b: String| {
            if a != b {
                all.push(format!("{}: {what} {a}, expected {b}", truth.name(twin)));
            }
        };
        let text = |graph: &Graph, id: NodeId| {
            let args: Vec<String> = graph.args(id).iter().map(|&value| words(graph, value)).collect();
            let kwargs = graph.kwargs(id).map(|(key, value)| format!("{key}={}", words(graph, value)));
            let kwargs: Vec<String> = kwargs.collect();
            format!("{} {:?} {} {args:?} {kwargs:?}", graph.name(id), graph.node(id).op, graph.target(id))
        };
        differ("call", text(read, id), text(truth, twin));
        differ("result", out(read, read.node(id).out), expected(read, id, truth, twin));
        differ("after", format!("{:?}", after(read, id)), format!("{:?}", after(truth, twin)));
        let recompute = |graph: &Graph, id: NodeId| {
            let policy = graph.tags(id).and_then(|tags| tags.recompute);
            policy.map(|policy| graph.text(policy).to_string())
        };
        // Comments hold for no inputs.
        let is_input = read.node(id).op == Op::Placeholder;
        if !is_input {
            differ(
                "recompute",
                format!("{:?}", recompute(read, id)),
                format!("{:?}", recompute(truth, twin)),
            );
        }
        if is_input && read.node(id).desc.is_some() {
            let desc = |graph: &Graph, id: NodeId| graph.node(id).desc.map(|d| graph.text(d).to_string());
            differ("descriptor", format!("{:?}", desc(read, id)), format!("{:?}", desc(truth, twin)));
        }
    }
    all
}

#[test]
fn printed_graphs_are_their_exports() {
    let mut wrong = Vec::new();
    let samples = all();
    for sample in &samples {
        match fx::read(&sample.text, &known(sample)) {
            Ok(printed) => {
                let all = differences(&printed.graph, &sample.truth);
                if !all.is_empty() {
                    wrong.push(format!(
                        "{}: {} differences\n  {}",
                        sample.place,
                        all.len(),
                        all[..all.len().min(6)].join("\n  ")
                    ));
                }
            }
            Err(error) => wrong.push(format!("{}: {error}", sample.place)),
        }
    }
    println!("{} graphs", samples.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), samples.len(), wrong.join("\n"));
}
