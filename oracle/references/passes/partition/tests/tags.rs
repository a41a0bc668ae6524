//! The passes that set tags, on captured graphs and small ones.

use super::recorded::read;
use super::*;
use crate::passes::partition::Stage;
use crate::passes::partition::activation_checkpointing::checkpoint;

/// Names, `recompute` tags and regions.
fn policies(graph: &Graph) -> Vec<(&str, Option<&str>, Option<i64>)> {
    let tags =
        |id| graph.tags(id).map_or((None, None), |t| (t.recompute.map(|tag| graph.text(tag)), t.ac_graph_id));
    graph.ids().map(|id| (graph.name(id), tags(id).0, tags(id).1)).collect()
}

#[test]
fn the_tags_of_autoparallel_are_as_recorded() {
    let (Some(marked), Some(checkpointed)) =
        (read("ap_llama_cpu_1d_w64_L2_s1_joint_pre_ac"), read("ap_llama_cpu_1d_w64_L2_s1_joint"))
    else {
        println!("1 test skipped: no recorded graphs beside the project");
        return;
    };
    let mut bare = marked.clone();
    for id in marked.ids() {
        marks::retag(&mut bare, id, |_, tags| (tags.recompute, tags.ac_graph_id) = (None, None));
    }
    assert!(tagged(&bare).is_empty());
    let ours = fsdp::mark(&bare, true).unwrap();
    assert_eq!(policies(&ours), policies(&marked));
    for stage in [Stage::Auto, Stage::Gib(2.0)] {
        assert_eq!(policies(&checkpoint(&ours, stage).unwrap()), policies(&checkpointed), "{stage:?}");
    }
}

/// A gathered parameter, through a cast, a view and a transpose, into a product.
const GATHERED: &str = "
world 2 ranks, groups dp = [0 1]
primals_1 = input : f32[4, 8]
primals_2 = input : bf16[8, 8]
tangents_1 = input : bf16[8, 8]
cast = cast(primals_1, bf16) : bf16[4, 8]
ag = all_gather(cast, dp) : bf16[8, 8]
w = wait(ag) : bf16[8, 8]
v = view(w, [8, 8]) : bf16[8, 8]
t = permute(v, [1, 0]) : bf16[8, 8]
y = mm(primals_2, t) : bf16[8, 8]
g = mm(tangents_1, t) : bf16[8, 8]
output (y, g)
";

#[test]
fn a_gathered_parameter_is_gathered_again_or_kept() {
    let single = GATHERED.replace("g = mm(tangents_1, t)", "g = mm(tangents_1, primals_2)");
    let again = fsdp::mark(&graph(&single), true).unwrap();
    let recompute = |names: [&'static str; 5]| names.map(|name| (name, "MUST_RECOMPUTE"));
    assert_eq!(tagged(&again), recompute(["cast", "ag", "w", "v", "t"]));
    assert_eq!(tagged(&fsdp::mark(&graph(&single), false).unwrap()), [("w", "MUST_SAVE")]);
    // Two readers of t: the walk ends there, with t.
    assert_eq!(
        tagged(&fsdp::mark(&graph(GATHERED), true).unwrap()),
        recompute(["cast", "ag", "w", "v", "t"])
    );
    // Resharded, nothing gathered is handed over, by any method.
    for method in ["default", "min-cut", "replay"] {
        let config = config(&format!("method={method} num_fwd_outputs=1"));
        let partition = run(&fsdp::mark(&graph(GATHERED), true).unwrap(), &config).unwrap();
        assert_eq!(saved(&partition), ["primals_1"], "{method}");
    }
}

#[test]
fn a_parameter_that_is_put_together_from_pieces_is_kept_whole() {
    let text = "
        world 2 ranks, groups dp = [0 1]
        primals_1 = input : f32[4, 8]
        primals_2 = input : f32[4, 4]
        tangents_1 = input : f32[4, 16]
        ag = all_gather(primals_1, dp) : f32[8, 8]
        w = wait(ag) : f32[8, 8]
        s = split(w, 4) : (f32[4, 8], f32[4, 8])
        p0 = getitem(s, 0) : f32[4, 8]
        p1 = getitem(s, 1) : f32[4, 8]
        c = cat([p0, p1], 1) : f32[4, 16]
        v = view(c, [4, 16]) : f32[4, 16]
        y = mm(primals_2, v) : f32[4, 16]
        g = mul(tangents_1, v) : f32[4, 16]
        output (y, g)";
    assert_eq!(tagged(&fsdp::mark(&graph(text), false).unwrap()), [("c", "MUST_SAVE")]);
    assert_eq!(tagged(&fsdp::mark(&graph(text), true).unwrap()).len(), 3);
}

#[test]
fn borders_of_regions_are_saved() {
    let text = "
        primals_1 = input : f32[8]
        tangents_1 = input : f32[8]
        i = neg(primals_1) : f32[8] {partitioner_tag: is_forward}
        a = sin(i) : f32[8] {recompute: PREFER_RECOMPUTE, ac_graph_id: 1, partitioner_tag: is_forward}
        b = sin(a) : f32[8] {recompute: PREFER_RECOMPUTE, ac_graph_id: 2, partitioner_tag: is_forward}
        h = sin(b) : f32[8] {recompute: MUST_RECOMPUTE, ac_graph_id: 2, partitioner_tag: is_forward, extra: '{\"has_backward_hook\": true}'}
        y = neg(h) : f32[8] {partitioner_tag: is_forward}
        g1 = mul(tangents_1, h) : f32[8] {partitioner_tag: is_backward}
        g2 = mul(g1, b) : f32[8] {partitioner_tag: is_backward}
        g3 = mul(g2, a) : f32[8] {partitioner_tag: is_backward}
        output (y, g3)";
    let partition = run(&graph(text), &config("num_fwd_outputs=1")).unwrap();
    let expected = [("i", "MUST_SAVE"), ("a", "MUST_SAVE"), ("b", "PREFER_RECOMPUTE"), ("h", "MUST_SAVE")];
    assert_eq!(tagged(&partition.joint), expected);
    assert_eq!(saved(&partition), ["a", "h"]);
    assert_eq!(partition.recomputed, ["b"]);
    let partition = run(&graph(text), &config("num_fwd_outputs=1 method=min-cut")).unwrap();
    assert_eq!(tagged(&partition.joint), expected[1..]);
}

#[test]
fn what_forward_returns_is_tagged() {
    let forward = graph(
        "
        primals_1 = input : f32[8]
        s = split(primals_1, 2) : (f32[2], f32[2], f32[2], f32[2])
        p1 = getitem(s, 1) : f32[2]
        p3 = getitem(s, 3) : f32[2]
        y = sin(p1) : f32[2]
        output (y, primals_1, p3, p1, p3, None)",
    );
    let tagged = tagging::tag_forward(&forward);
    let custom = |name: &str| {
        let tags = tagged.tags(tagged.find(name).unwrap());
        tags.and_then(|tags| tags.custom).map(|text| tagged.text(text).replace(' ', ""))
    };
    assert_eq!(custom("y").as_deref(), Some("{\"ap_must_save\":true}"));
    assert_eq!(
        custom("s").as_deref(),
        Some("{\"ap_must_save\":true,\"ap_must_save_getitem_indices\":[3,1]}")
    );
    assert_eq!((custom("p1"), custom("primals_1")), (None, None));
    assert!(forward.difference(&tagged).is_some());
}
