//! How everything grows: `cargo bench --bench scale`.
//!
//! Graphs of 10,000, 100,000 and 1,000,000 nodes, a family of passes at a time:
//!
//! - `bucketing`: identical layers (FSDP, tensor and pipeline parallel), written, read, bucketed, judged; and, as
//!   `llama3_405b`, one of the parameters and ranks of a Llama-3 405B training (126 layers, 16,384 ranks);
//! - `partition`: joint graphs of one long training step, cut in three ways and judged;
//! - `schedule`: the layers in the orders of each scheduling pass, judged, and simulated on all ranks;
//! - `memory`: the layers counted and judged, and the memory orders on programs of the scheduler.
//!
//! Each family and size runs in a process of its own, so that its peak memory can be told. Printed for each part:
//! processor seconds of all threads, seconds, the most memory that the process has held until its end, and how many
//! times more processor time it took than at the size before, brought to ten times the nodes. Some parts are added up.
//!
//! Some of it only: `cargo bench --bench scale -- partition 20000 200000`. With `--test` each family at its smallest size.

#![allow(missing_docs)]

use graph_oracle::analysis::validate::validate;
use graph_oracle::candidates::{CandidateExt, Place, Reference, judging};
use graph_oracle::case::{Case, PassConfig};
use graph_oracle::format::{json, text};
use graph_oracle::generate::Layers;
use graph_oracle::graph::Graph;
use graph_oracle::judge::judge_memory;
use graph_oracle::judge::partition::judge_partition;
use graph_oracle::judge::schedule::{judge_schedule, promises};
use graph_oracle::judge::{self, Options, Values, Verdict};
use graph_oracle::memory::scheduler::orders::{bfs, dfs, lpmf};
use graph_oracle::memory::scheduler::{Planning, Timeline};
use graph_oracle::memory::{Devices, profile, replay};
use graph_oracle::passes::schedule::{self, Pass, schedule};
use graph_oracle::rules::memory::MemoryConfig;
use graph_oracle::rules::partition::PartitionConfig;
use graph_oracle::simulate::{Estimates, Programs, simulate};
use graph_oracle_benches::{joint, program};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Instant;

/// How a child process is told what to measure: a family and a size.
const MEASURE: &str = "GRAPH_ORACLE_MEASURE";

const FAMILIES: [&str; 4] = ["bucketing", "partition", "schedule", "memory"];
const LLAMA: &str = "llama3_405b";

/// Parts that are added up: what they are together, and their names.
const TOGETHER: [(&str, &[&str]); 2] = [
    ("reading, rules and proof", &["read JSON", "all rules and extents"]),
    ("generated, bucketed, judged", &["generate", "bucketing and repair", "all rules and proof"]),
];

fn main() {
    if let Ok(what) = std::env::var(MEASURE) {
        let (family, size) = what.split_once(' ').unwrap_or((&what, ""));
        measure(family, size);
        return;
    }
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let is_size = |a: &&String| a.parse::<usize>().is_ok() || **a == LLAMA;
    let (sizes, families): (Vec<&String>, Vec<&String>) = arguments.iter().partition(is_size);
    if let Some(unknown) = families.iter().find(|name| !FAMILIES.contains(&name.as_str())) {
        println!("{unknown:?} is no size and no family; there are: {}, {LLAMA}", FAMILIES.join(", "));
        std::process::exit(2);
    }
    let sizes: Vec<&str> = match sizes.is_empty() {
        true => graph_oracle_benches::sizes(&["10000", "100000", "1000000", LLAMA]),
        false => sizes.into_iter().map(String::as_str).collect(),
    };
    for family in FAMILIES {
        if !families.is_empty() && !families.iter().any(|name| *name == family) {
            continue;
        }
        let mut before = BTreeMap::new();
        for &size in &sizes {
            if family == FAMILIES[0] || size != LLAMA {
                println!("{family} {size}");
                before = print_figures(&run(&format!("{family} {size}")), &before, size != LLAMA);
                // As criterion does, for CI to count.
                if graph_oracle_benches::is_test() && !before.is_empty() {
                    println!("Success");
                }
            }
        }
    }
}

/// What a child process prints that measures `what`.
fn run(what: &str) -> String {
    let child = std::env::current_exe().and_then(|this| Command::new(this).env(MEASURE, what).output());
    match child {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        Ok(output) => {
            print!("{}", String::from_utf8_lossy(&output.stdout));
            println!("  failed: {}", String::from_utf8_lossy(&output.stderr));
            std::process::exit(1);
        }
        Err(error) => {
            println!("  could not be started: {error}");
            std::process::exit(1);
        }
    }
}

/// Prints the figures of a child process, and gives the processor seconds per node of each part.
fn print_figures(output: &str, before: &BTreeMap<String, f64>, compare: bool) -> BTreeMap<String, f64> {
    let mut per_node = BTreeMap::new();
    let mut figures: BTreeMap<&str, [f64; 3]> = BTreeMap::new();
    // Told when the graph has been made, which is a part too.
    let count = |line: &str| line.split_once(" nodes").and_then(|(n, _)| n.parse::<f64>().ok());
    let nodes = output.lines().find_map(count).unwrap_or(1.0);
    for line in output.lines() {
        let Some((part, rest)) = line.split_once('\t') else {
            println!("  {line}");
            continue;
        };
        let mut numbers = rest.split('\t').filter_map(|n| n.parse::<f64>().ok());
        let [processor, seconds, mebibytes] = [(); 3].map(|()| numbers.next().unwrap_or(0.0));
        let ratio = match before.get(part).filter(|_| compare) {
            Some(less) => format!("{:.1}x", 10.0 * processor / nodes / less),
            None => String::new(),
        };
        println!("  {part:<44} {processor:>9.3} s {seconds:>9.3} s {mebibytes:>8.0} MiB  {ratio}");
        per_node.insert(part.to_string(), processor / nodes);
        figures.insert(part, [processor, seconds, mebibytes]);
    }
    for (title, parts) in TOGETHER {
        let found: Vec<&[f64; 3]> = parts.iter().filter_map(|part| figures.get(part)).collect();
        if found.len() == parts.len() {
            let sum = |i: usize| found.iter().map(|part| part[i]).sum::<f64>();
            let most = found.iter().map(|part| part[2]).fold(0.0, f64::max);
            println!("  {title:<44} {:>9.3} s {:>9.3} s {most:>8.0} MiB  together", sum(0), sum(1));
        }
    }
    per_node
}

/// Runs `work`, and prints its time and the process's peak memory so far.
fn part<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let (start, processor) = (Instant::now(), processor_seconds());
    let result = work();
    let processor = processor_seconds() - processor;
    println!("{name}\t{processor}\t{}\t{}", start.elapsed().as_secs_f64(), peak_mebibytes());
    result
}

/// Processor time of all threads of this process.
fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The most memory that this process has held; 0 where the system does not tell.
fn peak_mebibytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<f64>().ok());
    kibibytes.unwrap_or(0.0) / 1024.0
}

fn measure(family: &str, size: &str) {
    let spec = match size.parse() {
        Ok(nodes) => Layers { tensor: 2, stages: 2, ..Layers::default() }.with_nodes(nodes),
        Err(_) => Layers::llama3_405b(),
    };
    match family {
        "partition" => partition(size.parse().unwrap_or(0)),
        "schedule" => schedules(&described(spec.graph())),
        "memory" => memory(&described(spec.graph())),
        _ => bucketing(&spec),
    }
}

fn described(graph: Graph) -> Graph {
    println!("{} nodes, {} ranks", graph.len(), graph.world.ranks.unwrap_or(1));
    graph
}

fn bucketing(spec: &Layers) {
    let graph = described(part("generate", || spec.graph()));
    let mut bytes = Vec::new();
    part("write JSON", || json::write(&graph, &mut bytes)).expect("memory takes all bytes");
    println!("{:.1} MiB of JSON", bytes.len() as f64 / f64::from(1 << 20));
    drop(graph);
    let document = part("read JSON", || json::read(&bytes)).expect("what was written can be read");
    drop(bytes);
    let graph = document.into_graph().expect("a graph was written");
    println!("{:.0} bytes a node", graph.memory() as f64 / graph.len() as f64);
    part("validate", || assert!(validate(&graph).is_empty()));
    let config = PassConfig::new("bucketing");
    let outcome = part("bucketing and repair", || Reference.rewrite(&graph, &config, 0)).expect("an outcome");
    let outcomes = [(None, outcome)];
    for (name, values) in [("all rules", Values::Off), ("all rules and proof", Values::Symbolic)] {
        let options = Options { values, ..judging() };
        let judged = part(name, || judge::judge_outcomes(&graph, &config, &outcomes, &options));
        assert_sound(judged.expect("a pass that exists").verdict);
    }
    drop(outcomes);
    let case = Case::of_graph(graph);
    let lines = part("write text", || text::print(&case));
    part("read text", || text::parse(&lines)).expect("what was written can be read");
}

fn assert_sound(verdict: Verdict) {
    assert!(matches!(verdict, Verdict::Sound), "{verdict:?}");
}

fn partition(nodes: usize) {
    let (joint, pass) = part("generate", || joint::long(nodes));
    let joint = described(joint);
    for method in ["default", "min-cut"] {
        let pass = pass.clone().with("method", method);
        cut(method, &joint, &pass);
    }
    let (second, replay) = part("trace again", || joint::replayed(&joint, &pass));
    println!("{} nodes in the second joint graph", second.len());
    cut("replay", &second, &replay);
}

fn cut(method: &str, joint: &Graph, pass: &PassConfig) {
    let parts = part(method, || Reference.partition(joint, pass, Place::default()));
    let (forward, backward) = parts.unwrap_or_else(|refusal| panic!("{method}: {}", refusal.reason));
    let config = PartitionConfig::from_pass(pass).expect("options of the generator");
    for (what, values) in [("all rules", Values::Off), ("all rules and proof", Values::Symbolic)] {
        let options = Options { values, ..judging() };
        let judged = part(&format!("{method}: {what}"), || {
            judge_partition(joint, &forward, &backward, &config, &options)
        });
        assert_sound(judged.expect("a joint graph").verdict);
    }
}

fn schedules(graph: &Graph) {
    let programs = part("lower all ranks", || Programs::spmd(graph, &Estimates::default()));
    let report = part("simulate", || simulate(&programs, Default::default()));
    assert_eq!(report.finishes(), Some(true), "{report}");
    drop((programs, report));
    for &pass in Pass::ALL {
        let config = schedule::Config::new(pass);
        let scheduled = part(pass.name(), || schedule(graph, &config)).expect("a sorted list");
        let promised = promises(&config, true);
        let name = format!("{}: all rules", pass.name());
        let judged = part(&name, || judge_schedule(graph, &[(None, &scheduled.graph)], promised));
        assert_sound(judged.expect("the list is in order").verdict);
    }
}

fn memory(graph: &Graph) {
    let options = || replay::Options { devices: Devices::All, ..Default::default() };
    part("replay", || replay(graph, options())).expect("sizes are known");
    part("profile", || {
        let ledger = profile::recorded_ledger(graph);
        profile::profile_of(graph, &ledger, Devices::All, &profile::not_placeholder).map(|p| p.steps.peak())
    })
    .expect("sizes are known");
    let claim = part("claim", || Reference.claim(graph, &PassConfig::new("memory"))).expect("a claim");
    let judged = part("claim: all rules", || judge_memory(graph, &claim, &MemoryConfig::default()));
    assert_sound(judged.expect("the graph is valid").verdict);
    drop(claim);
    let program = part("program of the scheduler", || program::program(graph.len() as u32));
    let planning = part("planning", || Planning::new(&program)).expect("a plan");
    let order = part("lpmf", || lpmf(&program, &planning, 0)).expect("an order");
    part("bfs", || bfs(&planning));
    part("dfs", || dfs(&planning));
    part("timeline and peak", || Timeline::new(&program, &planning, &order).map(|t| t.estimate()))
        .expect("an order");
}
