//! Captured joint graphs: both sides are as PyTorch 2.15 and AutoParallel cut them: nodes, arguments, outputs and
//! `recompute` tags.
//!
//! The files do not record which inputs of the small graphs were static; those given here are the ones with
//! which PyTorch's own partitioners give the recorded results (spec/partition.md, section 10). The results of
//! AutoParallel follow without static inputs and with pure waits.

use super::super::*;
use super::listing::listing;
use crate::graph::Graph;

pub(super) use crate::recorded::graph as read;

fn compare(graph: &Graph, recorded: &Graph) -> Result<(), String> {
    let (ours, theirs) = (listing(graph), listing(recorded));
    let first = ours.iter().zip(&theirs).position(|(a, b)| a != b);
    match first {
        Some(i) => Err(format!("line {i}: {} instead of {}", ours[i], theirs[i])),
        None if ours.len() != theirs.len() => {
            Err(format!("{} lines instead of {}", ours.len(), theirs.len()))
        }
        None => Ok(()),
    }
}

/// Joint graph, static inputs, and the recorded results by method.
const RECORDED: &[(&str, &str, &[&str])] = &[
    ("small_mlp", "1-99", &["default", "mincut"]),
    ("small_cnn", "1-99", &["default", "mincut"]),
    ("small_cnn_keepmut", "1-99", &["default", "mincut"]),
    ("small_gpt", "gpt", &["default", "mincut"]),
    ("small_mutation", "none", &["default", "mincut"]),
    ("small_mutation_keepmut", "none", &["default", "mincut"]),
    ("small_fsdp4", "none", &["default", "mincut"]),
    ("small_fsdp12", "none", &["default", "mincut"]),
    ("small_tp_allreduce", "1-99", &["default", "mincut"]),
    ("ap_llama_cpu_1d_w64_L2_s1", "none", &["default", "mincut"]),
    ("ap_llama_cpu_1d_w64_L2_s2", "none", &["mincut", "replay"]),
];

#[test]
fn both_sides_are_as_recorded() {
    let (mut compared, mut skipped, mut faults) = (0, 0, Vec::new());
    for &(name, inputs, methods) in RECORDED {
        let Some(joint) = read(&format!("{name}_joint")) else {
            skipped += methods.len();
            continue;
        };
        let primals = joint.ids().filter(|&id| joint.name(id).starts_with("primals")).count();
        let inputs = match inputs {
            "gpt" => format!("0-{}", primals - 2),
            other => other.to_string(),
        };
        for method in methods {
            let sides =
                [format!("{name}_{method}_fw"), format!("{name}_{method}_bw")].map(|name| read(&name));
            let [Some(forward), Some(backward)] = sides else {
                skipped += 1;
                continue;
            };
            let method = method.replace("mincut", "min-cut");
            let mut options =
                vec![("method".to_string(), method.clone()), ("static_inputs".to_string(), inputs.clone())];
            if name.starts_with("ap_") {
                options.push(("suppressed_waits".to_string(), "yes".to_string()));
            }
            let config = PartitionConfig::from_options(&options).unwrap();
            match run(&joint, &config) {
                Err(error) => faults.push(format!("{name} {method}: {error}")),
                Ok(partition) => {
                    for (ours, theirs, side) in [
                        (&partition.forward, &forward, "forward"),
                        (&partition.backward, &backward, "backward"),
                    ] {
                        if let Err(fault) = compare(ours, theirs) {
                            faults.push(format!("{name} {method} {side}: {fault}"));
                        }
                    }
                    compared += 1;
                }
            }
        }
    }
    println!("{compared} recorded partitions compared, {skipped} skipped: their graphs are not here");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(compared > 0, "no recorded partition is here");
}
