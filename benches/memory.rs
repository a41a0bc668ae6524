//! What the memory passes cost: `cargo bench --bench memory`.
//!
//! The orders of the scheduler on programs like those of the peer that PyTorch was timed on: nodes of one output that
//! read at most three others within a distance of 60. PyTorch 2.15 takes 132 ms for lpmf, 51 ms for bfs and 72 ms for
//! dfs at 5,000 nodes. The larger programs show how the costs grow. The profile and the replay on layers of 10,000
//! nodes, for which PyTorch's profile takes 0.65 s.

#![allow(missing_docs)]

use criterion::{Criterion, criterion_group, criterion_main};
use graph_oracle::generate::Layers;
use graph_oracle::memory::profile::{not_placeholder, recorded_ledger};
use graph_oracle::memory::replay::{Options, replay};
use graph_oracle::memory::scheduler::orders::{bfs, dfs, lpmf};
use graph_oracle::memory::scheduler::{Planning, Timeline};
use graph_oracle::memory::{Devices, profile};
use graph_oracle_benches::program;
use program::program;
use std::hint::black_box;
use std::time::Duration;

fn orders(criterion: &mut Criterion) {
    for nodes in graph_oracle_benches::sizes(&[5_000, 100_000, 1_000_000]) {
        let program = program(nodes);
        let planning = Planning::new(&program).expect("a plan");
        let mut group = criterion.benchmark_group(format!("orders of {nodes} nodes"));
        group.sample_size(10).measurement_time(Duration::from_secs(if nodes > 500_000 { 15 } else { 3 }));
        group.bench_function("lpmf", |b| b.iter(|| lpmf(black_box(&program), &planning, 0)));
        group.bench_function("bfs", |b| b.iter(|| bfs(black_box(&planning))));
        group.bench_function("dfs", |b| b.iter(|| dfs(black_box(&planning))));
        if nodes <= 100_000 {
            let order: Vec<u32> = (0..nodes).collect();
            group.bench_function("planning", |b| b.iter(|| Planning::new(black_box(&program))));
            group.bench_function("timeline and peak", |b| {
                b.iter(|| Timeline::new(black_box(&program), &planning, &order).map(|t| t.estimate()))
            });
        }
        group.finish();
    }
}

fn counts(criterion: &mut Criterion) {
    let graph = Layers { tensor: 2, ..Layers::default() }.with_nodes(10_000).graph();
    let mut group = criterion.benchmark_group(format!("memory of {} nodes", graph.len()));
    group.bench_function("profile", |b| {
        b.iter(|| {
            let ledger = recorded_ledger(black_box(&graph));
            profile::profile_of(&graph, &ledger, Devices::All, &not_placeholder).map(|p| p.steps.peak())
        })
    });
    let options = || Options { devices: Devices::All, ..Options::default() };
    group.bench_function("replay", |b| {
        b.iter(|| replay(black_box(&graph), options()).map(|r| r.steps.peak()))
    });
    group.finish();
}

criterion_group!(benches, orders, counts);
criterion_main!(benches);
