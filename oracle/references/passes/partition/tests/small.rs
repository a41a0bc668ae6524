//! The worked examples of the specification, and small graphs for one rule each.

use super::*;
use crate::passes::partition::{activation_checkpointing, extract::Piece, joint::Side};

/// exp and sin in forward, cos in backward; section 2 of the specification.
const EXAMPLE: &str = "
primals_1 = input : f32[8]
tangents_1 = input : f32[8]
a = exp(primals_1) : f32[8] {partitioner_tag: is_forward}
y = sin(a) : f32[8] {partitioner_tag: is_forward}
c = cos(a) : f32[8] {partitioner_tag: is_backward}
g = mul(tangents_1, c) : f32[8] {partitioner_tag: is_backward}
output (y, g)
";

#[test]
fn classes_of_the_example() {
    let config = config("num_fwd_outputs=1");
    let joint = Joint::new(graph(EXAMPLE), &config).unwrap();
    let classes = Classes::of(&joint, &config, &Reference).unwrap();
    let names = |set: &fixedbitset::FixedBitSet| -> Vec<&str> {
        set.ones().map(|index| joint.name(NodeId(index as u32))).collect()
    };
    assert_eq!(names(&classes.tangents_closure), ["tangents_1", "g", "output"]);
    assert_eq!(names(&classes.backward), ["tangents_1", "g", "output"]);
    assert_eq!(names(&classes.forward), ["primals_1", "a", "y"]);
    assert_eq!(classes.unclaimed.iter().map(|&id| joint.name(id)).collect::<Vec<_>>(), ["c"]);
    let distances = classes.distances(&joint);
    assert_eq!(distances, [2, 0, 1, classes::FAR, 0, 0, classes::FAR]);
}

#[test]
fn the_default_partitioner_saves_what_backward_reads() {
    let partition = run(&graph(EXAMPLE), &config("num_fwd_outputs=1")).unwrap();
    assert_eq!(saved(&partition), ["a"]);
    assert_eq!(returned(&partition.forward), ["y", "a"]);
    assert_eq!(names(&partition.backward), ["a", "tangents_1", "c", "g"]);
    assert_eq!((partition.bytes(), partition.storages()), (32, 1));
}

/// A view has its own size, and keeps its storage.
#[test]
fn storages_count_once() {
    let text = "
        primals_1 = input : f32[8]
        tangents_1 = input : f32[4]
        a = exp(primals_1) : f32[8] {partitioner_tag: is_forward}
        h = slice(a, 0, 0, 4) : f32[4] {partitioner_tag: is_forward}
        y = neg(h) : f32[4] {partitioner_tag: is_forward}
        s = sum(a, [0]) : f32[] {partitioner_tag: is_backward}
        g = mul(tangents_1, h) : f32[4] {partitioner_tag: is_backward}
        g2 = mul(g, s) : f32[4] {partitioner_tag: is_backward}
        output (y, g2)";
    let partition = run(&graph(text), &config("num_fwd_outputs=1")).unwrap();
    assert_eq!(saved(&partition), ["a", "h"]);
    assert_eq!((partition.bytes(), partition.storages(), partition.storage_bytes()), (48, 1, 32));
}

#[test]
fn the_minimum_cut_weighs() {
    let config = config("method=min-cut num_fwd_outputs=1");
    let partition = run(&graph(EXAMPLE), &config).unwrap();
    assert_eq!(saved(&partition), ["primals_1"]);
    assert_eq!(names(&partition.backward), ["primals_1", "tangents_1", "a", "c", "g"]);
    assert_eq!(partition.recomputed, ["a"]);
    assert_eq!(
        partition.proof.as_ref().map(|proof| proof.certificate),
        Some(Certificate { flow: 38, cut: 38 })
    );
    let joint = Joint::new(graph(EXAMPLE), &config).unwrap();
    let classes = Classes::of(&joint, &config, &Reference).unwrap();
    let hazards = Hazards::of(&joint, &Reference);
    let cx = min_cut::Context::new(&joint, &config, &classes, &Reference, &hazards);
    let weight =
        |name: &str| min_cut::context::weight(&cx, joint.graph.find(name).unwrap()).unwrap().capacity();
    assert_eq!(["primals_1", "a", "y", "c"].map(weight), [38, 70, 440_979, 70]);
}

#[test]
fn static_inputs_are_free() {
    let config = config("method=min-cut num_fwd_outputs=1 static_inputs=all");
    assert_eq!(
        run(&graph(EXAMPLE), &config).unwrap().proof.map(|proof| proof.certificate),
        Some(Certificate { flow: 0, cut: 0 })
    );
}

#[test]
fn a_replay_saves_what_is_tagged() {
    let tagged = EXAMPLE.replace(
        "a = exp(primals_1) : f32[8] {",
        "a = exp(primals_1) : f32[8] {custom: '{\"ap_must_save\": true}', ",
    );
    let partition = run(&graph(&tagged), &config("method=replay num_fwd_outputs=1")).unwrap();
    assert_eq!(saved(&partition), ["a"]);
    let partition = run(&graph(EXAMPLE), &config("method=replay num_fwd_outputs=1")).unwrap();
    assert_eq!(saved(&partition), ["primals_1"]);
}

/// Of a split with four results the first is saved; the third is tagged to be computed again.
const PIECES: &str = "
primals_1 = input : f32[8]
tangents_1 = input : f32[2]
s = split(primals_1, 2) : (f32[2], f32[2], f32[2], f32[2]) {TAGS}
p0 = getitem(s, 0) : f32[2] {TAGS}
p1 = getitem(s, 1) : f32[2] {TAGS}
p2 = getitem(s, 2) : f32[2] {recompute: MUST_RECOMPUTE}
y = sin(p0) : f32[2]
g0 = mul(tangents_1, p0) : f32[2]
g1 = mul(g0, p1) : f32[2]
g2 = mul(g1, p2) : f32[2]
output (y, g2)
";

#[test]
fn an_index_list_decides_alone() {
    let config = config("method=replay num_fwd_outputs=1");
    let saved_with = |tags: &str| {
        let partition = run(&graph(&PIECES.replace("TAGS", tags)), &config).unwrap();
        saved(&partition).join(" ")
    };
    let listed = |list: &str| format!("custom: '{{\"ap_must_save\": true{list}}}'");
    // Everything untagged or not listed is computed again from the input.
    assert_eq!(saved_with(&listed(", \"ap_must_save_getitem_indices\": [0]")), "primals_1 p0");
    assert_eq!(saved_with(&listed(", \"ap_must_save_getitem_indices\": []")), "primals_1");
    assert_eq!(saved_with(&listed(", \"ap_must_save_getitem_indices\": [-1, 2]")), "primals_1");
    assert_eq!(saved_with(&listed("")), "primals_1 p0 p1");
    assert_eq!(saved_with("recompute: MUST_SAVE"), "primals_1 p0 p1");
}

#[test]
fn the_autograd_order_moves_copies_down() {
    // What is written to: memory that nobody reads, then what a copy reads.
    for (written, order) in [("v", "d e b g1 a g2"), ("x", "a d e b g1 g2")] {
        let joint = graph(&COPIES.replace("WRITTEN", written));
        let joint = Joint::new(joint, &config("num_fwd_outputs=0")).unwrap();
        let find = |names: &str| -> Vec<NodeId> {
            names.split_whitespace().map(|name| joint.graph.find(name).unwrap()).collect()
        };
        let mut piece = Piece {
            side: Side::Backward,
            inputs: find("x w v tangents_1"),
            list: find("x w v tangents_1 a b d e g1 g2"),
            outputs: joint.backward_outputs.clone(),
        };
        order::mimic_autograd(&joint, &Reference, &mut piece);
        assert_eq!(piece.list, find(&format!("x w v tangents_1 {order}")));
    }
}

const COPIES: &str = "
        x = input : f32[8]
        w = input : f32[8]
        v = input : f32[8]
        tangents_1 = input : f32[8]
        a = exp(x) : f32[8]
        b = exp(w) : f32[8]
        d = neg(w) : f32[8]
        e = copy_(WRITTEN, d) : f32[8] {partitioner_tag: must_be_in_backward}
        g1 = mul(tangents_1, b) : f32[8]
        g2 = mul(g1, a) : f32[8]
        output (g1, g2)";

#[test]
fn getitems_stand_next_to_what_they_index() {
    let joint = graph(
        "
        x = input : f32[8]
        tangents_1 = input : f32[2]
        s = split(x, 2) : (f32[2], f32[2], f32[2], f32[2])
        a = exp(x) : f32[8]
        p1 = getitem(s, 1) : f32[2]
        b = exp(a) : f32[8]
        p0 = getitem(s, 0) : f32[2]
        output (b, p1, p0)",
    );
    let joint = Joint::new(joint, &config("num_fwd_outputs=3")).unwrap();
    let inputs = vec![joint.graph.find("x").unwrap()];
    let mut piece =
        extract::extract(&joint, &Reference, inputs, &joint.forward_outputs, Side::Forward).unwrap();
    order::raise_getitems(&joint, &mut piece);
    let names: Vec<&str> = piece.list.iter().map(|&id| joint.name(id)).collect();
    assert_eq!(names, ["x", "s", "p1", "p0", "a", "b"]);
}

#[test]
fn stages_of_a_checkpointed_chain() {
    let gib = graph(
        "
        primals_1 = input : f32[268435456]
        tangents_1 = input : f32[268435456]
        a = exp(primals_1) : f32[268435456]
        b = exp(a) : f32[268435456]
        c = exp(b) : f32[268435456]
        d = exp(c) : f32[268435456]
        g = mul(tangents_1, d) : f32[268435456] {partitioner_tag: is_backward}
        output (g)",
    );
    let marked = activation_checkpointing::checkpoint(&gib, Stage::Gib(2.0)).unwrap();
    let prefer = "PREFER_RECOMPUTE";
    assert_eq!(tagged(&marked), [("a", "MUST_SAVE"), ("b", prefer), ("c", prefer), ("d", prefer)]);
    let none = activation_checkpointing::checkpoint(&gib, Stage::None).unwrap();
    assert!(tagged(&none).is_empty());
}

#[test]
fn equal_nodes_are_merged() {
    let text = "
        primals_1 = input : f32[8]
        primals_2 = input : i64[8]
        tangents_1 = input : f32[8]
        a = add(primals_1, 1) : f32[8]
        b = add(primals_1, 1) : f32[8]
        c = add(primals_1, 1.0) : f32[8]
        r1 = rand_like(a) : f32[8]
        r2 = rand_like(b) : f32[8]
        e1 = mul(a, r1) : f32[8]
        e2 = mul(b, r2) : f32[8]
        y0 = mul(e1, e2) : f32[8]
        y = mul(y0, c) : f32[8]
        g1 = mul(tangents_1, a) : f32[8]
        g2 = mul(g1, b) : f32[8]
        g3 = mul(g2, c) : f32[8]
        o1 = neg(g3) : f32[8]
        o2 = neg(g3) : f32[8]
        output (y, o1, o2)";
    let partition = run(&graph(text), &config("method=min-cut num_fwd_outputs=1")).unwrap();
    // b is a; c is not, for its number is a float; draws and outputs stay apart.
    let expected = "primals_1 primals_2 tangents_1 a c r1 r2 e1 e2 y0 y g1 g2 g3 o1 o2";
    assert_eq!(names(&partition.joint).join(" "), expected);
    let apart = run(&graph(text), &config("method=min-cut num_fwd_outputs=1 cse=no")).unwrap();
    assert_eq!(names(&apart.joint).len(), 17);
}

#[test]
fn a_value_of_forward_is_not_merged_with_one_of_backward() {
    let text = "
        primals_1 = input : f32[8]
        tangents_1 = input : f32[8]
        a = sin(primals_1) : f32[8]
        y = neg(a) : f32[8]
        b = sin(primals_1) : f32[8]
        g = mul(tangents_1, b) : f32[8]
        output (y, g)";
    let partition = run(&graph(text), &config("method=min-cut num_fwd_outputs=1")).unwrap();
    assert!(partition.joint.find("b").is_some());
    let partition = run(&graph(text), &config("method=replay num_fwd_outputs=1")).unwrap();
    assert!(partition.joint.find("b").is_none());
}

#[test]
fn a_replay_joins_the_tags_of_merged_copies() {
    let text = "
        primals_1 = input : f32[8]
        tangents_1 = input : f32[8]
        a = sin(primals_1) : f32[8] {custom: '{\"ap_must_save\": true}'}
        y = neg(a) : f32[8]
        b = sin(primals_1) : f32[8] {recompute: MUST_RECOMPUTE, ac_graph_id: 3}
        g = mul(tangents_1, b) : f32[8]
        output (y, g)";
    let partition = run(&graph(text), &config("method=replay num_fwd_outputs=1")).unwrap();
    assert_eq!(saved(&partition), ["primals_1"]);
    assert_eq!(tagged(&partition.joint), [("a", "MUST_RECOMPUTE")]);
    // What a later copy must save is saved, whatever the first one prefers.
    let saves = text
        .replace("{custom: '{\"ap_must_save\": true}'}", "{recompute: PREFER_RECOMPUTE, ac_graph_id: 3}")
        .replace("MUST_RECOMPUTE, ac", "MUST_SAVE, ac");
    let partition = run(&graph(&saves), &config("method=replay num_fwd_outputs=1")).unwrap();
    assert_eq!(saved(&partition), ["a"]);
    assert_eq!(tagged(&partition.joint), [("a", "MUST_SAVE")]);
}

#[test]
fn symbols_are_bound_first() {
    let text = "
        symbol s0 = 8
        primals_1 = input : symint(s0)
        primals_2 = input : f32[s0]
        tangents_1 = input : f32[s0]
        a = exp(primals_2) : f32[s0]
        y = neg(a) : f32[s0]
        g = mul(tangents_1, a) : f32[s0]
        output (y, g)";
    let text = text.replace(
        "a = exp(primals_2) : f32[s0]",
        "a = exp(primals_2) : f32[s0] {partitioner_tag: is_forward}",
    );
    for method in ["default", "min-cut", "replay"] {
        let config = config(&format!("method={method} num_fwd_outputs=1"));
        let partition = run(&graph(&text), &config).unwrap_or_else(|error| panic!("{method}: {error}"));
        let value = if method == "default" { "a" } else { "primals_2" };
        // Backward's node reads no symbol, but its inputs' sizes speak of one.
        assert_eq!(saved(&partition), [value, "primals_1"], "{method}");
        assert_eq!(names(&partition.backward)[..3], ["primals_1", value, "tangents_1"], "{method}");
        assert_eq!(returned(&partition.forward), ["y", value, "primals_1"], "{method}");
    }
}

/// What one solve bans beyond the inputs, by name.
fn banned(text: &str, words: &str) -> Vec<String> {
    let config = config(words);
    let joint = Joint::new(graph(text), &config).unwrap();
    let classes = Classes::of(&joint, &config, &Reference).unwrap();
    let hazards = Hazards::of(&joint, &Reference);
    let cx = min_cut::Context::new(&joint, &config, &classes, &Reference, &hazards);
    let cut = min_cut::solve(&cx, config.bans(), &fixedbitset::FixedBitSet::new()).unwrap();
    let calls = cut.banned.into_iter().filter(|&id| joint.role(id) == joint::Role::Call);
    calls.map(|id| joint.name(id).to_string()).collect()
}

#[test]
fn long_chains_are_cut() {
    let mut text = String::from("primals_1 = input : f32[8]\ntangents_1 = input : f32[8]\n");
    let mut at = "primals_1".to_string();
    for i in 1..=250 {
        text += &format!("s{i} = sin({at}) : f32[8]\n");
        at = format!("s{i}");
    }
    text += &format!("g = mul(tangents_1, {at}) : f32[8]\noutput ({at}, g)\n");
    let words = "method=min-cut num_fwd_outputs=1 bans=long_chains";
    // More than 100 steps from where the chain starts, which is the input or just after the last cut. The input
    // cannot be fused, so the chain starts with the first function.
    assert_eq!(banned(&text, words), ["s102", "s204"]);
}

#[test]
fn what_is_four_times_smaller_than_its_inputs_is_kept() {
    let text = |rows: usize| {
        format!(
            "primals_1 = input : f32[{rows}, 4]
            tangents_1 = input : f32[1, 4]
            s = sum(primals_1, [0], True) : f32[1, 4]
            y = neg(s) : f32[1, 4]
            g = mul(tangents_1, s) : f32[1, 4]
            output (y, g)"
        )
    };
    let words = "method=min-cut num_fwd_outputs=1 bans=reductions";
    assert!(banned(&text(4), words).is_empty());
    assert_eq!(banned(&text(5), words), ["s"]);
}

/// The default partitioner hands a checkpointed graph that writes on to the minimum cut.
#[test]
fn a_checkpointed_graph_that_writes_is_cut() {
    let text = "
        primals_1 = input : f32[8]
        tangents_1 = input : f32[8]
        a = sin(primals_1) : f32[8] {partitioner_tag: is_forward, recompute: PREFER_RECOMPUTE}
        z = neg(a) : f32[8] {partitioner_tag: is_forward}
        y = add_(z, 1) : f32[8] {partitioner_tag: is_forward}
        g = mul(tangents_1, a) : f32[8] {partitioner_tag: is_backward}
        output (y, g)";
    let config = config("num_fwd_outputs=1");
    let partition = run(&graph(text), &config).unwrap();
    assert_eq!((partition.method, saved(&partition)), (Method::MinCut, vec!["primals_1"]));
    let functional = run(&graph(&text.replace("add_(z, 1)", "add(z, 1)")), &config).unwrap();
    assert_eq!((functional.method, saved(&functional)), (Method::Default, vec!["primals_1"]));
    assert_eq!(tagged(&functional.joint), [("primals_1", "MUST_SAVE"), ("a", "PREFER_RECOMPUTE")]);
}
