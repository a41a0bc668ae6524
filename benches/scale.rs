//! How everything grows: `cargo bench --bench scale`.
//!
//! Graphs of identical layers (FSDP, tensor and pipeline parallel) of 10,000, 100,000 and 1,000,000 nodes, and one of
//! the parameters and ranks of a Llama-3 405B training; each in a process of its own, so that its peak memory can be
//! told. Printed for each part: seconds, the most memory that the process has held until its end, and how many times
//! longer it took than with a tenth of the nodes.
//!
//! Other sizes: `cargo bench --bench scale -- 20000 200000`.

#![allow(missing_docs)]

use graph_oracle::analysis::validate::validate;
use graph_oracle::candidates::{Candidate, Outcome, Reference};
use graph_oracle::case::{Case, PassConfig};
use graph_oracle::format::{json, text};
use graph_oracle::generate::Layers;
use graph_oracle::graph::Graph;
use graph_oracle::judge::{self, Options, Values, Verdict};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Instant;

/// How a child process is told what to measure.
const MEASURE: &str = "GRAPH_ORACLE_SCALE";

fn main() {
    if let Ok(what) = std::env::var(MEASURE) {
        measure(&what);
        return;
    }
    let sizes: Vec<String> = std::env::args().skip(1).filter(|a| a.parse::<usize>().is_ok()).collect();
    let all = ["10000", "100000", "1000000", "llama3_405b"].map(String::from);
    let sizes = if sizes.is_empty() { all.to_vec() } else { sizes };
    let mut before: BTreeMap<String, f64> = BTreeMap::new();
    for size in sizes {
        println!("{size}");
        let child = std::env::current_exe().and_then(|this| Command::new(this).env(MEASURE, &size).output());
        let output = match child {
            Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
            Ok(output) => {
                println!("  failed: {}", String::from_utf8_lossy(&output.stderr));
                std::process::exit(1);
            }
            Err(error) => {
                println!("  could not be started: {error}");
                std::process::exit(1);
            }
        };
        for line in output.lines() {
            let Some((part, figures)) = line.split_once('\t') else {
                println!("  {line}");
                continue;
            };
            let mut figures = figures.split('\t').filter_map(|n| n.parse::<f64>().ok());
            let (seconds, mebibytes) = (figures.next().unwrap_or(0.0), figures.next().unwrap_or(0.0));
            let ratio = before
                .insert(part.to_string(), seconds)
                .map_or(String::new(), |s| format!("{:.1}x", seconds / s));
            println!("  {part:<34} {seconds:>9.3} s {mebibytes:>8.0} MiB  {ratio}");
        }
    }
}

/// Runs `work`, and prints its time and the process's peak memory so far.
fn part<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    println!("{name}\t{}\t{}", start.elapsed().as_secs_f64(), peak_mebibytes());
    result
}

/// The most memory that this process has held; 0 where the system does not tell.
fn peak_mebibytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<f64>().ok());
    kibibytes.unwrap_or(0.0) / 1024.0
}

fn measure(what: &str) {
    let spec = match what.parse() {
        Ok(nodes) => Layers { tensor: 2, stages: 2, ..Layers::default() }.with_nodes(nodes),
        Err(_) => Layers::llama3_405b(),
    };
    let graph = part("generate", || spec.graph());
    println!("{} nodes, {} ranks", graph.len(), graph.world.ranks.unwrap_or(1));
    let mut bytes = Vec::new();
    part("write JSON", || json::write(&graph, &mut bytes)).expect("memory takes all bytes");
    println!("{:.1} MiB of JSON", bytes.len() as f64 / f64::from(1 << 20));
    drop(graph);
    let document = part("read JSON", || json::read(&bytes)).expect("what was written can be read");
    drop(bytes);
    let graph = document.into_graph().expect("a graph was written");
    println!("{:.0} bytes a node", graph.memory() as f64 / graph.len() as f64);
    let case = Case::of_graph(graph);
    let lines = part("write text", || text::print(&case));
    part("read text", || text::parse(&lines)).expect("what was written can be read");
    drop(lines);
    let graph = case.graph;
    part("validate", || assert!(validate(&graph).is_empty()));
    let config = PassConfig::new("bucketing");
    let outcome =
        part("bucketing and repair (reference)", || Reference.run(&graph, &config, 0)).expect("an outcome");
    let outcomes = [(None, outcome)];
    for (name, values) in [("all rules", Values::Off), ("all rules and extents", Values::Extents)] {
        let verdict = part(name, || judged(&graph, &config, &outcomes, values));
        assert!(matches!(verdict, Verdict::Sound), "{verdict:?}");
    }
}

fn judged(
    graph: &Graph,
    config: &PassConfig,
    outcomes: &[(Option<u32>, Outcome)],
    values: Values,
) -> Verdict {
    let options = Options { values, ..Options::default() };
    judge::judge_outcomes(graph, config, outcomes, &options).expect("a pass that exists").verdict
}
