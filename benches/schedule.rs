//! What scheduling and the simulator cost: `cargo bench --bench schedule`.
//!
//! Each pass on layers of 10,000 nodes (FSDP over 64 ranks), the simulator on the same for all ranks at once, and on
//! eight distinct programs of 10,000 nodes.

#![allow(missing_docs)]

use criterion::{Criterion, criterion_group, criterion_main};
use graph_oracle::generate::Layers;
use graph_oracle::graph::Graph;
use graph_oracle::passes::schedule::{Config, Pass, schedule};
use graph_oracle::simulate::{Estimates, Options, Programs, Step, simulate};
use std::hint::black_box;

fn layers() -> Graph {
    Layers::default().with_nodes(10_000).graph()
}

fn passes(criterion: &mut Criterion) {
    let graph = layers();
    let mut group = criterion.benchmark_group(format!("schedules of {} nodes", graph.len()));
    group.sample_size(10);
    for &pass in Pass::ALL {
        let config = Config::new(pass);
        group.bench_function(pass.name(), |b| b.iter(|| schedule(black_box(&graph), &config)));
        if pass.keeps_peak() && pass != Pass::SimpleOverlap {
            let config = Config { runtime_mode: true, ..config };
            let name = format!("{} in runtime mode", pass.name());
            group.bench_function(name, |b| b.iter(|| schedule(black_box(&graph), &config)));
        }
    }
    group.finish();
}

fn simulator(criterion: &mut Criterion) {
    let graph = layers();
    let estimates = Estimates::default();
    let ranks = graph.world.assume_mesh().and_then(|world| world.ranks).unwrap_or(1);
    let mut group = criterion.benchmark_group(format!("simulation of {} nodes", graph.len()));
    group.sample_size(10);
    group.bench_function(format!("{ranks} ranks, one program, lowered and run"), |b| {
        b.iter(|| simulate(&Programs::spmd(black_box(&graph), &estimates), Options::default()))
    });
    // Eight programs that differ in what they compute.
    let mut programs = Programs::spmd(&graph, &estimates);
    let one = programs.programs[0].clone();
    programs.programs = (0..8)
        .map(|number| {
            let mut program = one.clone();
            program.steps.push(Step::Compute { name: "more".to_string(), nanoseconds: number });
            program
        })
        .collect();
    programs.of_rank = (0..programs.of_rank.len()).map(|rank| rank % 8).collect();
    group.bench_function("8 programs", |b| b.iter(|| simulate(black_box(&programs), Options::default())));
    group.finish();
}

criterion_group!(benches, passes, simulator);
criterion_main!(benches);
