//! The bucketing reference: on a recorded Llama-3 8B backward graph, on generated FSDP graphs up to a million
//! nodes, and the final sort alone.
//!
//! PyTorch 2.15 takes 2.8 s of CPU time for the gathers, the reduce-scatters and the sort on the recorded graph
//! (one noisy run).

#![allow(missing_docs)]

use criterion::{Criterion, criterion_group, criterion_main};
use graph_oracle::files;
use graph_oracle::graph::{Dtype, Graph, Group, NodeId, Op, Out, Value};
use graph_oracle::passes::bucketing::{Config, bucket};
use graph_oracle::passes::repair::stable_topological_sort;
use graph_oracle_benches::project;
use std::cell::LazyCell;
use std::path::PathBuf;

/// A training step of `layers` sharded layers on `ranks` ranks: per layer `weights` parameters, each cast, gathered
/// and used forward, and their gradients reduced backward; chains of elementwise nodes stand for the compute.
fn fsdp(layers: usize, weights: usize, chain: usize, ranks: i64) -> Graph {
    let mut graph = Graph::new("fsdp");
    let size = u32::try_from(ranks).unwrap_or(1);
    graph.world.groups.push(Group { name: "dp".into(), size, recorded_rank: Some(0), instances: Vec::new() });
    let device = graph.intern("cuda:0");
    let group = Value::Str(graph.intern("dp"));
    let sum = Value::Str(graph.intern("sum"));
    let (shard, whole) = ([1024i64], [1024 * ranks]);
    let mut count = 0;
    let mut node = |graph: &mut Graph, op, target: &str, args: &[Value], sizes: &[i64], dtype| -> NodeId {
        count += 1;
        let name = format!("n{count}");
        let target = if op == Op::Placeholder { &name } else { target };
        let args = graph.push_values(args);
        let out = graph.contiguous(sizes, dtype, device);
        let id = graph.push(&name, op, target);
        (graph.node_mut(id).args, graph.node_mut(id).out) = (args, out);
        id
    };
    let parameters: Vec<NodeId> = (0..layers * weights)
        .map(|_| node(&mut graph, Op::Placeholder, "", &[], &shard, Dtype::F32))
        .collect();
    let mut x = node(&mut graph, Op::Placeholder, "", &[], &whole, Dtype::BF16);
    let mut call = |graph: &mut Graph, target, args: &[Value], sizes: &[i64], dtype| {
        node(graph, Op::Call, target, args, sizes, dtype)
    };
    let mut outputs = Vec::new();
    for layer in parameters.chunks(weights.max(1)) {
        let mut gathered = Vec::new();
        for &parameter in layer {
            let args = [Value::Node(parameter), Value::Dtype(Dtype::BF16)];
            let cast = call(&mut graph, "prims.convert_element_type.default", &args, &shard, Dtype::BF16);
            let args = [Value::Node(cast), Value::Int(ranks), group];
            let target = "_c10d_functional.all_gather_into_tensor.default";
            let start = call(&mut graph, target, &args, &whole, Dtype::BF16);
            let target = "_c10d_functional.wait_tensor.default";
            gathered.push(call(&mut graph, target, &[Value::Node(start)], &whole, Dtype::BF16));
        }
        for &weight in &gathered {
            let args = [Value::Node(x), Value::Node(weight)];
            x = call(&mut graph, "aten.mul.Tensor", &args, &whole, Dtype::BF16);
            for _ in 0..chain {
                x = call(&mut graph, "aten.relu.default", &[Value::Node(x)], &whole, Dtype::BF16);
            }
            let args = [Value::Node(x), Value::Node(weight)];
            let gradient = call(&mut graph, "aten.mul.Tensor", &args, &whole, Dtype::BF16);
            let args = [Value::Node(gradient), Value::Dtype(Dtype::F32)];
            let cast = call(&mut graph, "prims.convert_element_type.default", &args, &whole, Dtype::F32);
            let args = [Value::Node(cast), sum, Value::Int(ranks), group];
            let target = "_c10d_functional.reduce_scatter_tensor.default";
            let start = call(&mut graph, target, &args, &shard, Dtype::F32);
            let target = "_c10d_functional.wait_tensor.default";
            outputs.push(Value::Node(call(&mut graph, target, &[Value::Node(start)], &shard, Dtype::F32)));
        }
    }
    let list = graph.list(&outputs);
    let args = graph.push_values(&[list]);
    let output = graph.push("output", Op::Output, "output");
    (graph.node_mut(output).args, graph.node_mut(output).out) = (args, Out::Absent);
    graph
}

/// The recorded graph, beside the repository or beside the folder of its work trees.
fn recorded() -> Option<Graph> {
    let project = project();
    let file = "shared/graphs/llama3_8b_bw_64_1d.json.gz";
    let path: PathBuf =
        project.ancestors().skip(1).take(2).map(|folder| folder.join(file)).find(|p| p.is_file())?;
    files::read_path(&path).ok()?.into_graph()
}

fn with(options: &[(&str, &str)]) -> Config {
    let options: Vec<(String, String)> =
        options.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    Config::from_options(&options).unwrap_or_default()
}

/// A graph is made only if its benchmark is asked for.
type Make<'a> = &'a LazyCell<Graph, Box<dyn FnOnce() -> Graph>>;

fn run(c: &mut Criterion, name: &str, graph: Make, config: &Config) {
    let mut group = c.benchmark_group("bucketing");
    group.sample_size(10).bench_function(name, |b| b.iter(|| bucket(graph, config)));
    group.finish();
}

fn made(layers: usize) -> LazyCell<Graph, Box<dyn FnOnce() -> Graph>> {
    LazyCell::new(Box::new(move || fsdp(layers, 10, 20, 64)))
}

fn benches(c: &mut Criterion) {
    match recorded() {
        Some(graph) => {
            let graph: LazyCell<Graph, Box<dyn FnOnce() -> Graph>> = LazyCell::new(Box::new(|| graph));
            run(c, "llama3_8b_bw_64_1d", &graph, &Config::default());
            run(c, "llama3_8b_bw_64_1d/custom_ops", &graph, &with(&[("mode", "custom_ops")]));
        }
        None => println!("skipped 2 benchmarks: llama3_8b_bw_64_1d is not here (shared/graphs)"),
    }
    // 29 layers: 8,701 nodes and 580 collectives, comparable to the recorded graph.
    for (name, layers) in graph_oracle_benches::sizes(&[("8k", 29), ("100k", 343), ("1M", 3430)]) {
        let graph = made(layers);
        run(c, &format!("fsdp/{name}"), &graph, &with(&[("cap", "1MB")]));
        let mut group = c.benchmark_group("repair");
        group.sample_size(10).bench_function(name, |b| b.iter(|| stable_topological_sort(&graph)));
        group.finish();
    }
}

criterion_group!(bucketing, benches);
criterion_main!(bucketing);
