//! What PyTorch made of recorded joint graphs.

use crate::format::json;
use crate::graph::Graph;
use crate::judge::partition::judge_partition;
use crate::judge::{Judgement, Options, Values, Verdict};
use crate::rules::Finding;
use crate::rules::partition::{Method, PartitionConfig};
use std::io::Read;
use std::path::Path;

/// A recorded graph; `None` where the folder is not there.
pub(super) fn recorded(name: &str) -> Option<Graph> {
    let shared = Path::new("/work/shared/graphs").join(format!("{name}.json.gz"));
    let bytes = std::fs::read(shared).ok()?;
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut text).ok()?;
    json::read(&text).ok()?.into_graph()
}

fn judged(base: &str, part: &str, method: Method, values: Values) -> Option<Judgement> {
    let joint = recorded(&format!("{base}_joint"))?;
    let (forward, backward) =
        (recorded(&format!("{base}_{part}_fw"))?, recorded(&format!("{base}_{part}_bw"))?);
    let options = Options { values, ..Options::default() };
    Some(judge_partition(&joint, &forward, &backward, &PartitionConfig::new(method), &options).unwrap())
}

#[test]
fn look() {
    let small = ["cnn", "cnn_keepmut", "fsdp4", "fsdp12", "gpt", "mlp", "mutation", "mutation_keepmut", "tp_allreduce"];
    let mut all: Vec<(String, &str, Method)> = Vec::new();
    for name in small {
        all.push((format!("small_{name}"), "default", Method::Default));
        all.push((format!("small_{name}"), "mincut", Method::MinCut));
    }
    let llama = "ap_llama_cpu_1d_w64_L2";
    all.push((format!("{llama}_s1"), "default", Method::Default));
    all.push((format!("{llama}_s1"), "mincut", Method::MinCut));
    all.push((format!("{llama}_s2"), "mincut", Method::MinCut));
    all.push((format!("{llama}_s2"), "replay", Method::Replay));
    for (base, part, method) in all {
        let start = std::time::Instant::now();
        let Some(judgement) = judged(&base, part, method, Values::Auto) else { println!("no {base}"); continue };
        println!("== {base} {part}: {:?}", start.elapsed());
        for note in &judgement.notes { println!("   {note}"); }
        match &judgement.verdict {
            Verdict::Violated(f) => for f in f.iter().flat_map(Finding::all) { println!("   !! {} {} | {:?} | {:?} | {:?}", f.rule, f.title, f.facts, f.then, f.however) },
            v => println!("   {v:?}"),
        }
    }
}
