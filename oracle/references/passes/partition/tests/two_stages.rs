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

/// Of the operators that AutoParallel's first partition has, its second joint graph has all but `reshape`, which
/// becomes `view`: there is nothing for a retrace to decompose.
#[test]
fn the_recorded_retrace_decomposes_reshapes_only() {
    let read = |part: &str| read(&format!("ap_llama_cpu_1d_w64_L2_{part}"));
    let (Some(forward), Some(backward), Some(second)) =
        (read("s1_default_fw"), read("s1_default_bw"), read("s2_joint"))
    else {
        println!("1 test skipped: no recorded graphs beside the project");
        return;
    };
    let targets = |graph: &Graph| -> BTreeSet<String> {
        let calls = graph.ids().filter(|&id| graph.node(id).op == Op::Call);
        calls.map(|id| graph.target(id).to_string()).collect()
    };
    let first: BTreeSet<String> = targets(&forward).union(&targets(&backward)).cloned().collect();
    let second = targets(&second);
    assert_eq!(first.difference(&second).collect::<Vec<_>>(), ["aten.reshape.default"]);
    assert_eq!(second.difference(&first).collect::<Vec<_>>(), ["aten.view.default"]);
}

/// Equal nodes with lists of saved items are merged with the lists of both: an empty one saves nothing, and none at all
/// saves every item.
#[test]
fn lists_of_saved_items_are_joined() {
    let tag = |list: Option<&str>| match list {
        None => "{\"ap_must_save\": true}".to_string(),
        Some(list) => format!("{{\"ap_must_save\": true, \"ap_must_save_getitem_indices\": {list}}}"),
    };
    let kept = |first: Option<Option<&str>>, second: Option<&str>| {
        let of = |list: Option<&str>| format!("{{custom: '{}'}}", tag(list));
        let first = first.map_or(String::new(), of);
        let second = of(second);
        let joint = graph(&format!(
            "
            primals_1 = input : f32[4]
            tangents_1 = input : f32[2]
            x = sin(primals_1) : f32[4]
            s = split(x, 2) : (f32[2], f32[2] offset 2) {first}
            a = getitem(s, 0) : f32[2] {first}
            r = split(x, 2) : (f32[2], f32[2] offset 2) {second}
            b = getitem(r, 1) : f32[2] {second}
            y = mul(a, b) : f32[2]
            g = mul(tangents_1, a) : f32[2]
            h = mul(g, b) : f32[2]
            output (y, h)"
        ));
        let partition = run(&joint, &config("method=replay num_fwd_outputs=1")).unwrap();
        saved(&partition).join(" ")
    };
    assert_eq!(kept(None, Some("[]")), "primals_1");
    assert_eq!(kept(Some(Some("[]")), Some("[1]")), "primals_1 b");
    assert_eq!(kept(Some(Some("[0]")), Some("[1]")), "a b");
    assert_eq!(kept(Some(Some("[0]")), Some("[]")), "primals_1 a");
    assert_eq!(kept(Some(None), Some("[]")), "a b");
    assert_eq!(kept(Some(Some("[]")), None), "a b");
}
