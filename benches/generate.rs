//! How fast cases are made, by size, and what a survey of one costs.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use graph_oracle::generate::{Config, Layers, Seeded, case, generate};

/// Default cases: 30 to 60 nodes, 2 to 4 ranks, a swarm each.
fn cases(c: &mut Criterion) {
    let mut group = c.benchmark_group("generate");
    group.throughput(Throughput::Elements(1));
    let mut index = 0;
    group.bench_function("case", |b| {
        b.iter(|| {
            index += 1;
            case(&Config::default(), 1, index)
        });
    });
    group.bench_function("swarm", |b| {
        b.iter(|| {
            index += 1;
            Config::swarm(&mut Seeded::case(1, index))
        });
    });
    group.bench_function("survey", |b| {
        b.iter_batched(
            || {
                index += 1;
                case(&Config::default(), 1, index)
            },
            |generated| generated.survey(),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

/// Larger cases: the time per node must not grow.
fn sizes(c: &mut Criterion) {
    let mut group = c.benchmark_group("generate-nodes");
    group.sample_size(10);
    for nodes in graph_oracle_benches::sizes(&[50u32, 1_000, 10_000, 100_000]) {
        group.throughput(Throughput::Elements(nodes.into()));
        let config = Config { min_nodes: nodes, max_nodes: nodes, ..Config::default() };
        let mut index = 0;
        group.bench_function(nodes.to_string(), |b| {
            b.iter(|| {
                index += 1;
                generate(&mut Seeded::case(1, index), &config)
            });
        });
    }
    group.finish();
}

/// Layers: linear to a million nodes.
fn layers(c: &mut Criterion) {
    let mut group = c.benchmark_group("generate-layers");
    group.sample_size(10);
    for nodes in graph_oracle_benches::sizes(&[10_000usize, 100_000, 1_000_000]) {
        let spec = Layers { tensor: 2, ..Layers::default() }.with_nodes(nodes);
        group.throughput(Throughput::Elements(nodes as u64));
        group.bench_function(nodes.to_string(), |b| b.iter(|| spec.graph()));
    }
    group.finish();
}

criterion_group!(benches, cases, sizes, layers);
criterion_main!(benches);
