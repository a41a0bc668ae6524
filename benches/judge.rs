//! How many generated cases a core judges in a second, and what a pair of real files costs from disk to verdict:
//! `cargo bench --bench judge`.
//!
//! The cases are those of a campaign (30 to 60 nodes, 2 to 4 ranks, a swarm each), made ahead. Judging one includes
//! running the reference on it, on every rank where values are asked for. The real files are not part of the
//! repository: where they are absent, a line says so.

#![allow(missing_docs)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use graph_oracle::candidates::{Outcome, Reference, judging};
use graph_oracle::case::{Case, PassConfig};
use graph_oracle::files;
use graph_oracle::generate::{Config, case};
use graph_oracle::judge::{self, Options, Values};
use graph_oracle_benches::{is_test, project};
use std::hint::black_box;
use std::path::Path;

/// Cases, and how many where benchmarks are only run once.
const CASES: [u64; 2] = [20, 1000];

fn generated(c: &mut Criterion) {
    let cases: Vec<Case> = (0..CASES[usize::from(!is_test())])
        .map(|index| case(&Config::default(), 1, index).into_case())
        .collect();
    let bucketing = |case: &Case| case.pass.as_ref().is_some_and(|pass| pass.name == "bucketing");
    let (bucketing, repair): (Vec<Case>, Vec<Case>) = cases.into_iter().partition(bucketing);
    let mut group = c.benchmark_group("judge");
    group.sample_size(10);
    for (pass, cases) in [("bucketing", &bucketing), ("repair", &repair)] {
        group.throughput(Throughput::Elements(cases.len() as u64));
        for (what, values) in [
            ("rules", Values::Off),
            ("rules and values", Values::Auto),
            ("rules and execution with numbers and terms", Values::Execute),
            ("rules and proof", Values::Symbolic),
        ] {
            let options = Options { values, ..judging() };
            group.bench_function(format!("{pass}, {what}"), |b| {
                b.iter(|| {
                    cases.iter().filter(|case| judge::judge(case, &Reference, &options).is_ok()).count()
                });
            });
        }
    }
    group.finish();
}

/// What `check bucketing BEFORE AFTER` does after its arguments are parsed.
fn files(c: &mut Criterion) {
    let folder = project();
    let folders = folder.ancestors().skip(1).take(2).map(|folder| folder.join("shared/graphs"));
    let Some(folder) = folders.into_iter().find(|folder| folder.exists()) else {
        println!("skipped: there are no recorded graphs beside the project");
        return;
    };
    let mut group = c.benchmark_group("files");
    group.sample_size(20);
    for name in ["llama3_8b_bw_64_1d", "llama3_8b_fw_64_1d"] {
        let before = folder.join(format!("{name}.json.gz"));
        let after = folder.join(format!("{name}_after_bucket_ag_rs.json.gz"));
        group.bench_function(format!("{name}, rules"), |b| b.iter(|| check(&before, &after)));
    }
    group.finish();
}

fn check(before: &Path, after: &Path) -> bool {
    let read = |path: &Path| files::read_path(path).ok()?.into_graph();
    let (before, after) = std::thread::scope(|scope| {
        let after = scope.spawn(|| read(after));
        (read(before), after.join().ok().flatten())
    });
    let (Some(before), Some(repaired)) = (before, after) else { return false };
    let options = Options { values: Values::Off, ..judging() };
    let outcomes = [(None, Outcome { unrepaired: None, repaired })];
    black_box(judge::judge_outcomes(&before, &PassConfig::new("bucketing"), &outcomes, &options)).is_ok()
}

criterion_group!(benches, generated, files);
criterion_main!(benches);
