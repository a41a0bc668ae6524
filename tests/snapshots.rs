//! What the references decide on the corpus, and how findings are told: read a difference before you accept it.
//! `INSTA_UPDATE=always cargo test snapshots` rewrites snapshots/.

use graph_oracle::candidates::{self, CandidateExt, Place, Reference, judging};
use graph_oracle::case::{Case, Expectation, Expected, PassConfig, Subject};
use graph_oracle::files;
use graph_oracle::format::text;
use graph_oracle::graph::{Graph, NodeId};
use graph_oracle::judge::{self, Options};
use graph_oracle::memory::{Devices, replay};
use graph_oracle::passes::schedule::{self, Config, Pass};
use graph_oracle::report::memory::MemoryReport;
use graph_oracle::rules::{AnalyzedGraph, Correspondence};
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.to_string_lossy().ends_with(ending)).collect();
    files.sort();
    files
}

fn stem(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().split('.').next().unwrap().to_string()
}

fn check(name: &str, contents: &str) {
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, contents));
}

/// The buckets that the reference chooses, and the order that it leaves.
fn decisions(graph: &Graph, pass: &PassConfig) -> String {
    let outcome = match Reference.rewrite(graph, pass, 0) {
        Ok(outcome) => outcome,
        Err(refusal) => return format!("refused: {}\n", refusal.reason),
    };
    let (before, after) = (AnalyzedGraph::new(graph), AnalyzedGraph::new(&outcome.repaired));
    let correspondence = Correspondence::new(&before, &after);
    let mut told = String::new();
    for merge in &correspondence.merges {
        let bucket = &after.collectives.calls[merge.launch];
        let name = |&m: &usize| graph.name(before.collectives.calls[m].node);
        let members: Vec<&str> = merge.members.iter().map(name).collect();
        let _ = writeln!(
            told,
            "bucket {} = {} of {}",
            outcome.repaired.name(bucket.node),
            bucket.kind.name(),
            members.join(", ")
        );
    }
    let _ = writeln!(told, "order:");
    for id in outcome.repaired.ids() {
        let _ = writeln!(told, "  {}", text::node_line(&outcome.repaired, id));
    }
    told
}

#[test]
fn decisions_on_the_corpus() {
    let cases = files("corpus", ".graph");
    assert!(cases.len() >= 12);
    for path in cases {
        let case = text::parse(std::fs::read(&path).unwrap()).unwrap();
        let pass = case.pass.clone().unwrap();
        check(&format!("decisions_{}", stem(&path)), &decisions(&case.graph, &pass));
    }
}

#[test]
fn decisions_on_captured_graphs() {
    let captured = files("corpus/real", ".json.gz");
    assert!(captured.len() >= 4);
    for path in captured {
        let graph = files::read_path(&path).unwrap().into_graph().unwrap();
        check(&format!("decisions_{}", stem(&path)), &decisions(&graph, &PassConfig::new("bucketing")));
    }
}

/// Captured joint graphs, and the inputs that were static there (oracle/references/passes/partition/tests/recorded.rs).
const JOINTS: [(&str, &str); 7] = [
    ("small_mlp", "1-99"),
    ("small_cnn", "1-99"),
    ("small_gpt", "0-28"),
    ("small_mutation", "none"),
    ("small_fsdp4", "none"),
    ("small_fsdp12", "none"),
    ("small_tp_allreduce", "1-99"),
];

/// What is saved, with its bytes, and what both sides compute.
#[test]
fn partitions_of_captured_graphs() {
    for (name, inputs) in JOINTS {
        let folders = ["corpus/real/partition", "corpus/real"];
        let mut paths = folders.iter().map(|folder| root().join(format!("{folder}/{name}_joint.json.gz")));
        let path = paths.find(|path| path.exists()).unwrap();
        let joint = files::read_path(&path).unwrap().into_graph().unwrap();
        for method in ["default", "min-cut"] {
            let pass =
                PassConfig::new("partition").with("method", method).with("static_inputs", inputs.to_string());
            let (forward, backward) = Reference.partition(&joint, &pass, Place::default()).unwrap();
            let saved = graph_oracle::report::partition::saved(&joint, &forward, &backward, &pass).unwrap();
            let mut told = saved.text();
            for (side, graph) in [("forward", &forward), ("backward", &backward)] {
                let _ = writeln!(told, "{side}:");
                for id in graph.ids() {
                    let _ = writeln!(told, "  {}", text::node_line(graph, id));
                }
            }
            check(&format!("partition_{name}_{}", method.replace('-', "_")), &told);
        }
    }
}

#[test]
fn explanations() {
    let mut told = 0;
    for (folder, family) in [
        ("corpus", ""),
        ("tests/cases/bucket", ""),
        ("tests/cases/comm", ""),
        ("tests/cases/order", ""),
        ("tests/cases/memory", "memory_"),
        ("tests/cases/schedule", "schedule_"),
    ] {
        for path in files(folder, ".graph") {
            let case: Case = text::parse(std::fs::read(&path).unwrap()).unwrap();
            for expectation in &case.expectations {
                let Expectation::Verdict { of, is: Expected::Violates(_) } = expectation else { continue };
                let options = Options { run_again: true, ..judging() };
                let judgement = match of {
                    Subject::Outcome => judge::judge_recorded(&case, &options),
                    Subject::Reference => judge::judge(&case, &Reference, &options),
                    Subject::Candidate(name) => {
                        judge::judge(&case, candidates::find(name).unwrap().as_ref(), &options)
                    }
                };
                let report = graph_oracle::report::text(&judgement.unwrap(), &stem(&path), None, false);
                let of = match of {
                    Subject::Candidate(name) if !family.is_empty() => format!("_{name}"),
                    _ => String::new(),
                };
                check(&format!("explanation_{family}{}{of}", stem(&path)), &report);
                told += 1;
            }
        }
    }
    assert!(told >= 60, "only {told} explanations");
}

/// What is live step by step, counted in PyTorch's way and as it is.
#[test]
fn memory_of_captured_graphs() {
    for path in files("corpus/real", ".json.gz") {
        let graph = files::read_path(&path).unwrap().into_graph().unwrap();
        let report = MemoryReport::new(&graph).unwrap();
        let mut told = report.text();
        let replay =
            replay::replay(&graph, replay::Options { devices: Devices::All, ..Default::default() }).unwrap();
        let _ = writeln!(
            told,
            "live bytes, of all devices, after the allocations and after the frees of each step"
        );
        let _ = writeln!(told, "{:>12} {:>12}  before", "", replay.steps.before);
        for step in &replay.steps.steps {
            let _ = writeln!(told, "{:>12} {:>12}  {}", step.peak, step.after, graph.name(step.node));
        }
        check(&format!("memory_{}", stem(&path)), &told);
    }
}

/// Which nodes each pass moves, and where to.
#[test]
fn schedules_of_captured_graphs() {
    let mut moved = 0;
    for path in files("corpus/real", ".json.gz") {
        let graph = files::read_path(&path).unwrap().into_graph().unwrap();
        let mut told = String::new();
        for &pass in Pass::ALL {
            let _ = writeln!(told, "{}:", pass.name());
            match schedule::schedule(&graph, &Config::new(pass)) {
                Err(refusal) => drop(writeln!(told, "  refused: {refusal}")),
                Ok(scheduled) => {
                    let other = |(place, id): &(usize, NodeId)| id.index() != *place;
                    let places = scheduled.order.iter().copied().enumerate().filter(other);
                    for (place, id) in places {
                        moved += 1;
                        let _ = writeln!(told, "  {} from #{} to #{place}", graph.name(id), id.0);
                    }
                }
            }
        }
        check(&format!("schedules_{}", stem(&path)), &told);
    }
    assert!(moved > 10, "{moved}");
}
