//! Partition, tag, retrace, partition again: the second partition saves what the first did.

use super::recorded::read;
use super::*;
use crate::graph::StorageId;
use retrace::{Retraced, retrace};
use std::collections::BTreeSet;
use tagging::tag_forward;

fn first_of(joint: &Graph, words: &str) -> (Partition, Retraced) {
    let first = run(joint, &config(words)).unwrap_or_else(|error| panic!("{error}"));
    let again = retrace(&tag_forward(&first.forward), &first.backward, first.num_forward_outputs).unwrap();
    (first, again)
}

/// The saved calls by name; in the second partition the names that they have in the first.
fn calls(partition: &Partition, again: Option<&Retraced>) -> BTreeSet<String> {
    let of =
        |name: &str| partition.joint.find(name).is_some_and(|id| partition.joint.node(id).op == Op::Call);
    let calls = partition.values.iter().map(|value| value.name.as_str()).filter(|name| of(name));
    calls
        .map(|name| {
            let origin = again.and_then(|again| again.origins[again.joint.find(name).unwrap().index()]);
            assert!(
                again.is_none() || origin.is_some_and(|(side, _)| side == retrace::Side::Forward),
                "{name}"
            );
            name.to_string()
        })
        .collect()
}

#[test]
fn the_second_partition_saves_what_the_first_did() {
    let mut checked = 0;
    for (name, words) in [
        ("ap_llama_cpu_1d_w64_L2_s1_joint", "suppressed_waits=yes"),
        ("ap_llama_cpu_1d_w64_L2_s1_joint", "method=min-cut"),
        ("small_fsdp12_joint", ""),
        ("small_fsdp12_joint", "method=min-cut"),
        ("small_tp_allreduce_joint", ""),
        ("small_mlp_joint", ""),
        ("small_gpt_joint", ""),
    ] {
        let Some(joint) = read(name) else { continue };
        let (first, again) = first_of(&joint, words);
        assert!(
            crate::analysis::validate::validate(&again.joint).iter().all(|fault| !fault.is_fatal()),
            "{name}"
        );
        let second =
            run(&again.joint, &config("method=replay")).unwrap_or_else(|error| panic!("{name}: {error}"));
        let must_recompute: BTreeSet<String> = tagged(&first.joint)
            .into_iter()
            .filter(|(_, tag)| *tag == "MUST_RECOMPUTE")
            .map(|(name, _)| name.to_string())
            .collect();
        let expected: BTreeSet<String> = calls(&first, None).difference(&must_recompute).cloned().collect();
        assert_eq!(calls(&second, Some(&again)), expected, "{name} {words}");
        // The third saves what the second did.
        let forward = tag_forward(&second.forward);
        let third = retrace(&forward, &second.backward, second.num_forward_outputs).unwrap();
        let third = run(&third.joint, &config("method=replay")).unwrap();
        assert_eq!(saved(&third), saved(&second), "{name} {words}");
        assert_eq!(names(&third.forward), names(&second.forward));
        checked += 1;
    }
    println!("{checked} of 7 pipelines checked");
    assert!(checked > 0);
}

/// Copies are new values: they share no storage with what they are copies of.
#[test]
fn copies_have_storages_of_their_own() {
    let Some(joint) = read("small_mlp_joint") else {
        println!("1 test skipped: no captured graph");
        return;
    };
    let (first, again) = first_of(&joint, "method=min-cut static_inputs=1-99");
    assert!(!first.recomputed.is_empty());
    let storage =
        |graph: &Graph, name: &str| -> Option<StorageId> { graph.tensor_of(graph.find(name)?)?.storage };
    for name in &first.recomputed {
        let copy = format!("{name}_again_1");
        let target = first.backward.find(name).map(|id| first.backward.inputs(id)).unwrap_or_default();
        let view = target.iter().any(|&input| {
            storage(&first.backward, first.backward.name(input)) == storage(&first.backward, name)
        });
        if !view {
            assert_ne!(storage(&again.joint, name), storage(&again.joint, &copy), "{name}");
        }
    }
}
