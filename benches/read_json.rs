//! How fast the exchange JSON is read and written, in bytes of JSON per second, and what a graph takes in
//! memory.
//!
//! `cargo bench --bench read_json`. It takes recorded graphs beside the project where there are any, else those
//! in corpus/real/.

#![allow(missing_docs)]

use criterion::{Criterion, Throughput};
use graph_oracle::format::json;
use graph_oracle_benches::project;
use std::hint::black_box;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The program's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const RECORDED: [&str; 3] = ["llama3_8b_bw_64_1d", "dsv3_fw_64", "ap_llama_cpu_1d_w64_L2_s2_joint"];
const CORPUS: [&str; 2] = ["small_fsdp12_joint", "small_ddp_step_functional"];

fn inputs() -> Vec<(&'static str, PathBuf)> {
    let project = project();
    let shared = project.ancestors().skip(1).take(2).map(|folder| folder.join("shared/graphs"));
    let find = |folder: &Path, names: &'static [&'static str]| -> Vec<(&'static str, PathBuf)> {
        let files = names.iter().map(|&name| (name, folder.join(format!("{name}.json.gz"))));
        files.filter(|(_, path)| path.exists()).collect()
    };
    let recorded = shared.map(|folder| find(&folder, &RECORDED)).find(|files| !files.is_empty());
    recorded.unwrap_or_else(|| find(&project.join("corpus/real"), &CORPUS))
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    for (name, path) in inputs() {
        let mut text = Vec::new();
        let packed = std::fs::File::open(path).expect("the file exists");
        flate2::read::GzDecoder::new(packed).read_to_end(&mut text).expect("gzip data");
        let graph = json::read(&text).expect("a document").into_graph().expect("a graph");
        println!(
            "{name}: {} nodes, {} bytes of JSON, {:.0} bytes of memory a node",
            graph.len(),
            text.len(),
            graph.memory() as f64 / graph.len() as f64
        );
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function("read", |b| b.iter(|| json::read(black_box(&text))));
        group.bench_function("write", |b| b.iter(|| json::write(black_box(&graph), std::io::sink())));
        group.finish();
    }
    criterion.final_summary();
}
