//! What the analyses cost on a real graph, each by itself and together: `cargo bench --bench analysis`.
//!
//! The real graphs are not part of the repository: they are read from ../shared/graphs, and where that folder is
//! absent a line says so and a captured graph of corpus/real is measured alone. A chain of a million nodes shows
//! how the costs grow.

#![allow(missing_docs)]

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use graph_oracle::analysis::conflicts::conflicts;
use graph_oracle::analysis::dependences::Options;
use graph_oracle::analysis::storages::Mode;
use graph_oracle::analysis::validate::validate;
use graph_oracle::analysis::{
    Collectives, Dependences, Edges, Reachability, Sequences, Storages, TopologicalOrder, check_contraction,
};
use graph_oracle::files;
use graph_oracle::graph::{Dtype, Graph, Group, NodeId, Op, Value, World};
use graph_oracle::ops::Ops;
use graph_oracle_benches::project;
use std::hint::black_box;
use std::path::Path;

fn read(path: &Path) -> Option<Graph> {
    files::read_path(path).ok()?.into_graph()
}

fn graphs() -> Vec<(String, Graph)> {
    let root = project();
    let small = read(&root.join("corpus/real/small_fsdp12_joint.json.gz")).expect("a captured graph");
    let mut graphs = vec![("small_fsdp12_joint".to_string(), small)];
    for name in ["llama3_8b_bw_64_1d", "llama3_8b_bw_64_1d_after_bucket_ag_rs"] {
        let folders = [root.join("../shared/graphs"), root.join("../../shared/graphs")];
        match folders.iter().find_map(|folder| read(&folder.join(format!("{name}.json.gz")))) {
            Some(graph) => graphs.push((name.to_string(), graph)),
            None => println!("skipped {name}: no recorded graphs beside the project"),
        }
    }
    graphs
}

/// A gather, its wait, a view, a write into a buffer and three sums, over and over.
fn long(nodes: usize) -> Graph {
    let mut graph = Graph::with_capacity(nodes);
    let device = graph.intern("cuda:0");
    let group = Value::Str(graph.intern("dp"));
    let dp =
        Group { name: "dp".to_string(), size: 4, recorded_rank: None, instances: vec![vec![0, 1, 2, 3]] };
    graph.world = World { ranks: Some(4), groups: vec![dp] };
    let x = graph.push("x", Op::Placeholder, "x");
    graph.node_mut(x).out = graph.contiguous(&[64], Dtype::F32, device);
    let buffer = graph.push("buffer", Op::Placeholder, "buffer");
    graph.node_mut(buffer).out = graph.contiguous(&[16], Dtype::F32, device);
    let mut last = x;
    let call = |graph: &mut Graph, target: &str, args: &[Value], size: i64| {
        let id = graph.push(&format!("n{}", graph.len()), Op::Call, target);
        let args = graph.push_values(args);
        let out = graph.contiguous(&[size], Dtype::F32, device);
        let node = graph.node_mut(id);
        (node.args, node.out) = (args, out);
        id
    };
    while graph.len() + 8 < nodes {
        let slice = [Value::Node(last), Value::Int(0), Value::Int(16), Value::Int(32)];
        let part = call(&mut graph, "aten.slice.Tensor", &slice, 16);
        call(&mut graph, "aten.copy_.default", &[Value::Node(buffer), Value::Node(part)], 16);
        let gather = [Value::Node(buffer), Value::Int(4), group];
        let gather = call(&mut graph, "_c10d_functional.all_gather_into_tensor.default", &gather, 64);
        let mut sum = call(&mut graph, "_c10d_functional.wait_tensor.default", &[Value::Node(gather)], 64);
        for _ in 0..3 {
            sum = call(&mut graph, "aten.add.Tensor", &[Value::Node(sum), Value::Node(last)], 64);
        }
        last = sum;
    }
    let output = graph.push("output", Op::Output, "output");
    graph.node_mut(output).args = graph.push_values(&[Value::Node(last)]);
    graph
}

/// The launches and their waits.
fn marks(collectives: &Collectives) -> Vec<NodeId> {
    collectives.calls.iter().map(|call| call.node).collect()
}

fn real(c: &mut Criterion) {
    for (name, graph) in &graphs() {
        let ops = Ops::of(graph);
        let edges = Edges::new(graph);
        let collectives = Collectives::new(graph, &ops);
        let storages = Storages::new(graph, &ops, &edges, &collectives, Mode::Physical);
        let dependences = Dependences::new(graph, &ops, &edges, &storages, &collectives, Options::default());
        let marks = marks(&collectives);
        let pairs: Vec<Vec<NodeId>> = collectives.waits.iter().map(|waits| waits.to_vec()).collect();
        println!(
            "{name}: {} nodes, {} launches, {} storages, {} accesses, {} dependences",
            graph.len(),
            marks.len(),
            storages.len(),
            storages.accesses().len(),
            dependences.count()
        );
        let mut group = c.benchmark_group(name);
        group.sample_size(30);
        group.bench_function("edges", |b| b.iter(|| Edges::new(black_box(graph))));
        group.bench_function("collectives", |b| b.iter(|| Collectives::new(black_box(graph), &ops)));
        group.bench_function("validate", |b| b.iter(|| validate(black_box(graph))));
        group.bench_function("storages", |b| {
            b.iter(|| Storages::new(black_box(graph), &ops, &edges, &collectives, Mode::Physical));
        });
        group.bench_function("conflicts", |b| b.iter(|| conflicts(black_box(&storages))));
        group.bench_function("dependences", |b| {
            b.iter(|| {
                let graph = black_box(graph);
                Dependences::new(graph, &ops, &edges, &storages, &collectives, Options::default())
            });
        });
        group.bench_function("order", |b| b.iter(|| TopologicalOrder::new(black_box(&dependences))));
        group.bench_function("reachability of launches", |b| {
            b.iter(|| Reachability::new(black_box(&dependences), &marks));
        });
        group
            .bench_function("contraction", |b| b.iter(|| check_contraction(black_box(&dependences), &pairs)));
        group.bench_function("sequences", |b| b.iter(|| Sequences::new(black_box(graph), &collectives)));
        group.bench_function("all together", |b| {
            b.iter(|| {
                let graph = black_box(graph);
                let faults = validate(graph);
                let (ops, edges) = (Ops::of(graph), Edges::new(graph));
                let collectives = Collectives::new(graph, &ops);
                let storages = Storages::new(graph, &ops, &edges, &collectives, Mode::Physical);
                let dependences =
                    Dependences::new(graph, &ops, &edges, &storages, &collectives, Options::default());
                let reachability = Reachability::new(&dependences, &marks);
                (faults, reachability.is_ok())
            });
        });
        group.finish();
    }
}

fn growth(c: &mut Criterion) {
    for nodes in graph_oracle_benches::sizes(&[100_000, 1_000_000]) {
        let graph = long(nodes);
        let ops = Ops::of(&graph);
        let edges = Edges::new(&graph);
        let collectives = Collectives::new(&graph, &ops);
        let storages = Storages::new(&graph, &ops, &edges, &collectives, Mode::Physical);
        let dependences = Dependences::new(&graph, &ops, &edges, &storages, &collectives, Options::default());
        let every = collectives.calls.len() / 512;
        let marks: Vec<NodeId> = marks(&collectives).into_iter().step_by(every.max(1)).take(512).collect();
        let mut group = c.benchmark_group(format!("{nodes} nodes"));
        group.sample_size(10);
        group.bench_function("edges", |b| b.iter(|| Edges::new(&graph)));
        group.bench_function("validate", |b| b.iter(|| validate(&graph)));
        group.bench_function("storages", |b| {
            b.iter(|| Storages::new(&graph, &ops, &edges, &collectives, Mode::Physical));
        });
        group.bench_function("dependences", |b| {
            b.iter(|| Dependences::new(&graph, &ops, &edges, &storages, &collectives, Options::default()));
        });
        group.bench_function("reachability of 512 launches", |b| {
            b.iter_batched(|| (), |()| Reachability::new(&dependences, &marks), BatchSize::PerIteration);
        });
        group.finish();
    }
}

criterion_group!(benches, real, growth);
criterion_main!(benches);
