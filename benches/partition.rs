//! What cutting a joint graph and judging the parts cost: `cargo bench --bench partition`.
//!
//! The joint graphs are generated ones, of one long training step: parameters gathered for each product and tagged to be
//! gathered again, buffers, splits, dropouts. 5,000 nodes for each partitioner and for the judge (without values, and
//! with the symbolic proof), 100,000 for the minimum cut; and the cases of a campaign, which a core judges one after the
//! other. PyTorch 2.15 takes 4.0 s (default), 6.5 s (min-cut) and 9.0 s (replay) for 5,000 nodes (one noisy run of
//! another graph of that size).

#![allow(missing_docs)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use graph_oracle::candidates::{Candidate, Place, Reference};
use graph_oracle::case::{Case, PassConfig};
use graph_oracle::generate::joint::{self, Config};
use graph_oracle::generate::{Seeded, Source};
use graph_oracle::graph::Graph;
use graph_oracle::judge::partition::{judge_partition, stages};
use graph_oracle::judge::{self, Options, Values};
use graph_oracle::rules::partition::PartitionConfig;
use std::hint::black_box;

/// A source that makes as many steps as it may.
struct Full(Seeded);

impl Source for Full {
    fn below(&mut self, n: u32) -> u32 {
        self.0.below(n)
    }

    fn step(&mut self) -> bool {
        true
    }

    fn length(&mut self, _low: u32, high: u32) -> u32 {
        high
    }
}

/// A joint graph of so many nodes at least, and its pass without a method.
fn long(nodes: usize) -> (Graph, PassConfig) {
    // A step makes three nodes, more or less.
    let mut steps = nodes as u32 / 4;
    loop {
        let (graph, pass) = of_steps(steps);
        if graph.len() >= nodes {
            return (graph, pass);
        }
        steps += steps / 8 + 1;
    }
}

fn of_steps(steps: u32) -> (Graph, PassConfig) {
    // Tags of checkpointing and stray tags would be another graph's; the gathers are tagged.
    let config = Config {
        steps,
        reshard: 100,
        replay: 0,
        checkpoint: 0,
        checkpoint_pass: 0,
        loose_tag: 0,
        long_chain: 0,
        symbolic: 0,
        no_tangent: 0,
        ..Config::default()
    };
    let Case { graph, pass, .. } = joint::generate(&mut Full(Seeded::case(1, 1)), &config);
    let mut pass = pass.unwrap_or_else(|| PassConfig::new("partition"));
    pass.options.retain(|(key, _)| !["method", "budget"].contains(&key.as_str()));
    (graph, pass)
}

/// A second joint graph of so many nodes at least, and its pass.
fn replayed(nodes: usize) -> (Graph, PassConfig) {
    let mut first = nodes;
    loop {
        let (joint, pass) = long(first);
        let (second, pass) = second(&joint, &pass);
        if second.len() >= nodes {
            return (second, pass);
        }
        first += first / 8;
    }
}

fn second(joint: &Graph, pass: &PassConfig) -> (Graph, PassConfig) {
    let two = pass.clone().with("method", "replay").with("first", "default");
    let (first, second) = stages(&two).unwrap().unwrap();
    let (forward, backward) = Reference.partition(joint, &first, Place::default()).unwrap();
    let outputs = PartitionConfig::from_pass(pass).unwrap().forward_outputs.unwrap();
    (Reference.trace_again(joint, &forward, &backward, outputs).unwrap().second, second)
}

fn cut(c: &mut Criterion) {
    let mut group = c.benchmark_group("partition");
    group.sample_size(10);
    let (joint, pass) = long(5_000);
    for method in ["default", "min-cut"] {
        let pass = pass.clone().with("method", method);
        group.bench_function(format!("{method}, {} nodes", joint.len()), |b| {
            b.iter(|| black_box(Reference.partition(&joint, &pass, Place::default()).unwrap()));
        });
    }
    let (second, replay) = replayed(5_000);
    group.bench_function(format!("replay, {} nodes", second.len()), |b| {
        b.iter(|| black_box(Reference.partition(&second, &replay, Place::default()).unwrap()));
    });
    let (large, pass) = long(100_000);
    let pass = pass.with("method", "min-cut");
    group.bench_function(format!("min-cut, {} nodes", large.len()), |b| {
        b.iter(|| black_box(Reference.partition(&large, &pass, Place::default()).unwrap()));
    });
    group.finish();
}

fn judged(c: &mut Criterion) {
    let mut group = c.benchmark_group("judge");
    group.sample_size(10);
    let (joint, pass) = long(5_000);
    for method in ["default", "min-cut"] {
        let pass = pass.clone().with("method", method);
        let (forward, backward) = Reference.partition(&joint, &pass, Place::default()).unwrap();
        let config = PartitionConfig::from_pass(&pass).unwrap();
        for (what, values) in [("rules", Values::Off), ("rules and proof", Values::Extents)] {
            let options = Options { values, ..Options::default() };
            group.bench_function(format!("{method}, {} nodes, {what}", joint.len()), |b| {
                b.iter(|| {
                    black_box(judge_partition(&joint, &forward, &backward, &config, &options).unwrap())
                });
            });
        }
    }
    const CASES: u64 = 1000;
    let cases: Vec<Case> = (0..CASES).map(|index| joint::case(&Config::default(), 1, index)).collect();
    group.throughput(Throughput::Elements(CASES));
    for (what, values) in [("rules", Values::Off), ("rules and values", Values::Auto)] {
        let options = Options { values, ..Options::default() };
        group.bench_function(format!("generated cases, {what}"), |b| {
            b.iter(|| cases.iter().filter(|case| judge::judge(case, &Reference, &options).is_ok()).count());
        });
    }
    group.finish();
}

criterion_group!(benches, cut, judged);
criterion_main!(benches);
