//! What cutting a joint graph and judging the parts cost: `cargo bench --bench partition`.
//!
//! The joint graphs are generated ones, of one long training step: parameters gathered for each product and tagged to
//! be gathered again, buffers, splits, dropouts. 5,000 nodes for each partitioner and for the judge (without values,
//! and with the symbolic proof), 100,000 for the minimum cut; and the cases of a campaign, which a core judges one
//! after the other. PyTorch 2.15 takes 4.0 s (default), 6.5 s (min-cut) and 9.0 s (replay) for 5,000 nodes (one noisy
//! run of another graph of that size).

#![allow(missing_docs)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use graph_oracle::candidates::{CandidateExt, Place, Reference, judging};
use graph_oracle::case::Case;
use graph_oracle::generate::joint::{self, Config};
use graph_oracle::judge::partition::judge_partition;
use graph_oracle::judge::{self, Options, Values};
use graph_oracle::rules::partition::PartitionConfig;
use graph_oracle_benches::joint::{long, replayed};
use std::hint::black_box;

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
    let (second, replay) = replayed(&joint, &pass);
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
        for (what, values) in [("rules", Values::Off), ("rules and proof", Values::Symbolic)] {
            let options = Options { values, ..judging() };
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
        let options = Options { values, ..judging() };
        group.bench_function(format!("generated cases, {what}"), |b| {
            b.iter(|| cases.iter().filter(|case| judge::judge(case, &Reference, &options).is_ok()).count());
        });
    }
    group.finish();
}

criterion_group!(benches, cut, judged);
criterion_main!(benches);
