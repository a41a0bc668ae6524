//! What judging costs on a real graph, apart from starting the process: `cargo bench --bench check`.
//!
//! The real graphs are not part of the repository: they are read from ../shared/graphs, and where that folder is
//! absent a line says so and the captured graphs of corpus/real are measured alone.

#![allow(missing_docs)]

use criterion::{Criterion, criterion_group, criterion_main};
use graph_oracle::candidates::{CandidateExt, Outcome, Reference, judging};
use graph_oracle::case::PassConfig;
use graph_oracle::files;
use graph_oracle::graph::Graph;
use graph_oracle::judge::{self, Options, Values};
use graph_oracle_benches::project;
use std::hint::black_box;
use std::path::Path;

fn read(path: &Path) -> Option<Graph> {
    files::read_path(path).ok()?.into_graph()
}

fn pairs() -> Vec<(String, Graph, Outcome)> {
    let root = project();
    let mut pairs = Vec::new();
    let small = read(&root.join("corpus/real/small_fsdp12_joint.json.gz")).expect("a captured graph");
    let outcome = Reference.rewrite(&small, &PassConfig::new("bucketing"), 0).expect("an outcome");
    pairs.push(("small_fsdp12_joint".to_string(), small, outcome));
    let shared = root.join("../shared/graphs");
    for (before, after) in [
        ("llama3_8b_bw_64_1d", "llama3_8b_bw_64_1d_after_bucket_ag_rs"),
        ("llama3_8b_fw_64_1d", "llama3_8b_fw_64_1d_after_bucket_ag_rs"),
    ] {
        let file = |name: &str| shared.join(format!("{name}.json.gz"));
        match (read(&file(before)), read(&file(after))) {
            (Some(graph), Some(repaired)) => {
                pairs.push((before.to_string(), graph, Outcome { unrepaired: None, repaired }));
            }
            _ => println!("skipped {before}: {} is absent", file(before).display()),
        }
    }
    pairs
}

fn check(c: &mut Criterion) {
    let config = PassConfig::new("bucketing");
    for (name, before, outcome) in pairs() {
        let outcomes = [(None, outcome)];
        let mut group = c.benchmark_group(format!("check/{name}"));
        group.sample_size(20);
        for (what, values) in [("rules", Values::Off), ("rules and proof", Values::Symbolic)] {
            let options = Options { values, ..judging() };
            group.bench_function(what, |b| {
                b.iter(|| black_box(judge::judge_outcomes(&before, &config, &outcomes, &options)));
            });
        }
        group.bench_function("reference pass", |b| {
            b.iter(|| black_box(Reference.rewrite(&before, &config, 0).is_ok()));
        });
        group.finish();
    }
}

criterion_group!(benches, check);
criterion_main!(benches);
