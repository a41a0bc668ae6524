//! What PyTorch made of recorded joint graphs.

use crate::common::recorded::graph as recorded;
use graph_oracle::candidates::judging;
use graph_oracle::graph::Graph;
use graph_oracle::judge::partition::{judge_partition, judge_partition_with};
use graph_oracle::judge::{Judgement, Options, Values, Verdict};
use graph_oracle::rules::partition::{Earlier, Further, Method, PartitionConfig};

/// Joint, forward and backward.
fn triple(base: &str, part: &str) -> Option<[Graph; 3]> {
    let joint = recorded(&format!("{base}_joint"))?;
    Some([joint, recorded(&format!("{base}_{part}_fw"))?, recorded(&format!("{base}_{part}_bw"))?])
}

fn judged([joint, forward, backward]: &[Graph; 3], method: Method, values: Values) -> Judgement {
    let options = Options { values, ..judging() };
    judge_partition(joint, forward, backward, &PartitionConfig::new(method), &options).unwrap()
}

const SMALL: [&str; 9] =
    ["cnn", "cnn_keepmut", "fsdp4", "fsdp12", "gpt", "mlp", "mutation", "mutation_keepmut", "tp_allreduce"];

const LLAMA: &str = "ap_llama_cpu_1d_w64_L2";

#[test]
fn recorded_partitions_are_sound() {
    let small = SMALL.iter().flat_map(|name| {
        let base = format!("small_{name}");
        [(base.clone(), "default", Method::Default), (base, "mincut", Method::MinCut)]
    });
    let llama = [
        (format!("{LLAMA}_s1"), "default", Method::Default),
        (format!("{LLAMA}_s1"), "mincut", Method::MinCut),
        (format!("{LLAMA}_s2"), "mincut", Method::MinCut),
        (format!("{LLAMA}_s2"), "replay", Method::Replay),
    ];
    for (base, part, method) in small.chain(llama) {
        let Some(triple) = triple(&base, part) else { continue };
        let judgement = judged(&triple, method, Values::Auto);
        assert_eq!(judgement.verdict, Verdict::Sound, "{base} {part}");
        let proved = |words: &str| judgement.notes.iter().any(|note| note.contains(words));
        assert!(proved("equal by structure") && proved("proved at full size"), "{base} {part}");
    }
}

#[test]
fn recorded_partitions_are_sound_without_values() {
    for name in SMALL {
        let Some(triple) = triple(&format!("small_{name}"), "default") else { continue };
        assert_eq!(judged(&triple, Method::Default, Values::Off).verdict, Verdict::Sound, "{name}");
    }
}

/// A minimum cut does not know of replay tags: it recomputes the attention that the first partition saved.
#[test]
fn a_minimum_cut_breaks_the_promise_of_a_replay() {
    let Some(triple) = triple(&format!("{LLAMA}_s2"), "mincut") else { return };
    let judgement = judged(&triple, Method::Replay, Values::Off);
    println!("{:#?}", judgement.violated_rules());
    assert!(judgement.violated_rules().contains(&"partition/replay-index-fidelity"));
}

#[test]
fn the_second_partition_repeats_the_first() {
    let (Some(first), Some(second)) =
        (triple(&format!("{LLAMA}_s1"), "default"), triple(&format!("{LLAMA}_s2"), "replay"))
    else {
        return;
    };
    let judge = |parts: &[Graph; 3]| {
        let earlier =
            Earlier { joint: &first[0], forward: &first[1], forward_outputs: 1, provenance: Vec::new() };
        let further = Further { earlier: Some(earlier), ..Further::default() };
        let config = PartitionConfig::new(Method::Replay);
        let options = Options { values: Values::Off, ..judging() };
        judge_partition_with(&parts[0], &parts[1], &parts[2], &config, further, &options).unwrap()
    };
    assert_eq!(judge(&second).verdict, Verdict::Sound);
    let other = triple(&format!("{LLAMA}_s2"), "mincut").unwrap();
    assert!(judge(&other).violated_rules().contains(&"partition/replay-saves-match"));
}

#[test]
fn swapped_parts_are_convicted() {
    for name in SMALL {
        let Some([joint, forward, backward]) = triple(&format!("small_{name}"), "default") else { continue };
        let judgement = judged(&[joint, backward, forward], Method::Default, Values::Auto);
        assert!(matches!(judgement.verdict, Verdict::Violated(_)), "{name}");
    }
}

/// The parts of one method with those of another do not fit.
#[test]
fn parts_of_two_partitions_do_not_fit() {
    let base = format!("{LLAMA}_s1");
    let (Some(a), Some(b)) = (triple(&base, "default"), triple(&base, "mincut")) else { return };
    let [joint, forward, _] = a;
    let [_, _, backward] = b;
    let judgement = judged(&[joint, forward, backward], Method::Default, Values::Off);
    assert!(matches!(judgement.verdict, Verdict::Violated(_)), "{:?}", judgement.verdict);
}
