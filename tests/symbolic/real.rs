//! The recorded graphs, where they are: every graph equals itself, and PyTorch's bucketed graphs equal what they were.

use super::support::{compared, files, read, recorded};
use graph_oracle::ops::Ops;
use graph_oracle::passes::bucketing::{Config, Mode, bucket};
use graph_oracle::semantics::symbolic::{Arena, Comparison, Limits, compare, evaluate, payload_members};
use std::path::Path;

#[test]
fn pytorch_buckets_llama_right() {
    let Some(folder) = recorded() else {
        println!("skipped: 6 recorded pairs are not here (shared/graphs)");
        return;
    };
    for direction in ["fw", "bw"] {
        let name = format!("llama3_8b_{direction}_64_1d");
        let before = read(&folder.join(format!("{name}.json.gz")));
        let old = Ops::of(&before);
        for which in ["all_gather", "reduce_scatter", "ag_rs"] {
            let after = read(&folder.join(format!("{name}_after_bucket_{which}.json.gz")));
            let new = Ops::of(&after);
            let mut arena = Arena::new(&before.world, Limits::DEFAULT);
            let one = evaluate(&mut arena, &before, &old);
            let other = evaluate(&mut arena, &after, &new);
            assert_eq!((one.unknowns().count(), other.unknowns().count()), (0, 0));
            assert_eq!((&one.hazards[..], &other.hazards[..]), (&[][..], &[][..]));
            let comparison = compare(&mut arena, &one, &other);
            let Comparison::Equal(counts) = comparison else { panic!("{name} {which}: {comparison:#?}") };
            println!("{name} {which}: {counts:?}");
            assert_eq!(counts.outputs, one.outputs.len());
            // Every collective is carried exactly once, and the buckets carry nothing else.
            let payloads = payload_members(&mut arena, &one, &other);
            assert_eq!(payloads.not_once().count(), 0);
            assert_eq!(payloads.extra, []);
            assert_eq!(payloads.members.iter().flatten().count(), one.launches.len());
        }
    }
}

/// The other packing modes, by the reference.
#[test]
fn the_reference_buckets_llama_right() {
    let Some(folder) = recorded() else {
        println!("skipped: 1 recorded graph is not here (shared/graphs)");
        return;
    };
    let before = read(&folder.join("llama3_8b_fw_64_1d.json.gz"));
    for (mode, _) in Mode::ALL {
        let config =
            Config::from_options(&[("mode".into(), mode.to_string()), ("kind".into(), "all_gather".into())]);
        let after = bucket(&before, &config.unwrap()).unwrap().graph;
        let comparison = compared(&before, &after);
        assert!(matches!(comparison, Comparison::Equal(_)), "{mode}: {comparison:#?}");
    }
}

fn check_identity(path: &Path) {
    let graph = read(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let ops = Ops::of(&graph);
    let mut arena = Arena::new(&graph.world, Limits::DEFAULT);
    let one = evaluate(&mut arena, &graph, &ops);
    let other = evaluate(&mut arena, &graph, &ops);
    let unknown: Vec<String> =
        one.unknowns().map(|(node, reason)| format!("{}: {reason}", graph.name(node))).collect();
    assert!(unknown.is_empty(), "{name}: {unknown:?}");
    let comparison = compare(&mut arena, &one, &other);
    let Comparison::Equal(counts) = comparison else { panic!("{name}: {comparison:#?}") };
    assert_eq!(counts.outputs, one.outputs.len());
    assert_eq!(one.hazards, other.hazards);
}

#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn every_graph_equals_itself() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/real");
    let mut graphs = files(&corpus, ".json.gz");
    assert!(!graphs.is_empty());
    match recorded() {
        Some(folder) => graphs.extend(files(&folder, ".json.gz")),
        None => println!("skipped: the recorded graphs are not here (shared/graphs)"),
    }
    graphs.iter().for_each(|path| check_identity(path));
    println!("{} graphs equal themselves", graphs.len());
}
