//! A sound partition, and one defect at a time: each is convicted by the rule that is about it.

use graph_oracle::candidates::judging;
use graph_oracle::format::text;
use graph_oracle::generate::joint::naive;
use graph_oracle::graph::Graph;
use graph_oracle::judge::Verdict;
use graph_oracle::judge::partition::judge_partition_with;
use graph_oracle::rules::Finding;
use graph_oracle::rules::partition::{
    BudgetUse, CutEdge, CutNetwork, Earlier, Further, Method, PartitionConfig,
};

const JOINT: &str = r#"
graph small joint
world 2 ranks, groups dp = [0 1]
primals_1 = input : f32[4, 4]
primals_2 = input : f32[4, 8]
primals_3 = input : f32[4]
tangents_1 = input : f32[4, 4]
g = all_gather(primals_1, dp) : f32[8, 4] {recompute: MUST_RECOMPUTE, partitioner_tag: is_forward}
w = wait(g) : f32[8, 4] {recompute: MUST_RECOMPUTE, partitioner_tag: is_forward}
p = permute(w, [1, 0]) : f32[4, 8] strides [1, 4] {recompute: MUST_RECOMPUTE, partitioner_tag: is_forward}
t = permute(p, [1, 0]) : f32[8, 4] {partitioner_tag: is_forward}
m = mm(primals_2, t) : f32[4, 4] {partitioner_tag: is_forward}
nd = native_dropout(m, 0.5, True) : (f32[4, 4], bool[4, 4]) {partitioner_tag: is_forward}
d = nd[0] : f32[4, 4] {partitioner_tag: is_forward}
mask = nd[1] : bool[4, 4] {partitioner_tag: is_forward}
e = exp(d) : f32[4, 4] {partitioner_tag: is_forward}
h = relu(e) : f32[4, 4] {partitioner_tag: is_forward}
s = split(e, 2) : (f32[2, 4], f32[2, 4] offset 8) {partitioner_tag: is_forward}
s0 = s[0] : f32[2, 4] {partitioner_tag: is_forward}
s1 = s[1] : f32[2, 4] offset 8 {partitioner_tag: is_forward}
c = cat([s1, s0]) : f32[4, 4] {partitioner_tag: is_forward}
sn = sin(primals_3) : f32[4] {partitioner_tag: is_forward}
y = mul(c, h) : f32[4, 4] {partitioner_tag: is_forward}
n = add(primals_3, 1.0) : f32[4] {partitioner_tag: is_forward}
gm = mul(tangents_1, c) : f32[4, 4] {partitioner_tag: is_backward}
ge = mul(gm, e) : f32[4, 4] {partitioner_tag: is_backward}
gh = mul(ge, h) : f32[4, 4] {partitioner_tag: is_backward}
gk = mul(gh, mask) : f32[4, 4] {partitioner_tag: is_backward}
pt = permute(primals_2, [1, 0]) : f32[8, 4] strides [1, 8] {partitioner_tag: is_backward}
gw = mm(pt, gk) : f32[8, 4] {partitioner_tag: is_backward}
rs = reduce_scatter(gw, "sum", dp) : f32[4, 4] {partitioner_tag: is_backward}
ws = wait(rs) : f32[4, 4] {partitioner_tag: is_backward}
tt = permute(t, [1, 0]) : f32[4, 8] strides [1, 4] {partitioner_tag: is_backward}
gx = mm(gk, tt) : f32[4, 8] {partitioner_tag: is_backward}
gs = sum(gk, [0]) : f32[4] {partitioner_tag: is_backward}
gb = mul(gs, sn) : f32[4] {partitioner_tag: is_backward}
up = copy_(primals_3, n) : f32[4] {partitioner_tag: must_be_in_forward}
output (y, ws, gx, gb)
"#;

/// Nodes that the sound partition computes again.
const AGAIN: [&str; 7] = ["g", "w", "p", "t", "tt", "pt", "h"];

fn graph(text: &str) -> Graph {
    text::parse(text).unwrap_or_else(|errors| panic!("{errors}")).graph
}

/// A graph as text, its columns not aligned.
fn printed(graph: &Graph) -> String {
    let line = |line: &str| {
        line.replace("):", ") :").split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    };
    text::print_graph(graph).lines().map(|text| line(text) + "\n").collect()
}

/// Joint, forward and backward as texts.
fn triple() -> [String; 3] {
    let joint = graph(JOINT);
    let (forward, backward) = naive::partition(&joint, 1, &|id| AGAIN.contains(&joint.name(id)));
    [&joint, &forward, &backward].map(printed)
}

fn violated(texts: &[String; 3], method: Method, further: Further) -> Vec<&'static str> {
    let [joint, forward, backward] = texts.each_ref().map(|text| graph(text));
    let config = PartitionConfig { forward_outputs: Some(1), ..PartitionConfig::new(method) };
    let judgement = judge_partition_with(&joint, &forward, &backward, &config, further, &judging()).unwrap();
    match &judgement.verdict {
        Verdict::Sound => Vec::new(),
        Verdict::Violated(findings) => {
            let mut rules: Vec<&str> = findings.iter().flat_map(Finding::all).map(|f| f.rule).collect();
            rules.dedup();
            rules
        }
        other => panic!("{other:?}"),
    }
}

/// The line that defines a node.
fn line<'t>(text: &'t str, name: &str) -> &'t str {
    let start = format!("{name} ");
    text.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("no {name} in\n{text}"))
}

/// The text with the line of a node replaced.
fn with_line(text: &str, name: &str, new: &str) -> String {
    text.replace(&format!("{}\n", line(text, name)), new)
}

/// The text with a line inserted before that of a node.
fn before(text: &str, name: &str, new: &str) -> String {
    let old = line(text, name).to_string();
    text.replace(&old, &format!("{new}\n{old}"))
}

#[track_caller]
fn convicted(texts: &[String; 3], rule: &str) {
    let rules = violated(texts, Method::Default, Further::default());
    assert!(rules.contains(&rule), "{rules:?}\n{}\n{}", texts[1], texts[2]);
}

#[test]
fn the_partition_is_sound() {
    let texts = triple();
    assert_eq!(violated(&texts, Method::Default, Further::default()), [""; 0], "{}\n{}", texts[1], texts[2]);
}

#[test]
fn outputs_swapped() {
    let mut texts = triple();
    texts[2] = texts[2].replace("output (ws, gx, gb)", "output (gx, ws, gb)");
    convicted(&texts, "partition/outputs-preserved");
    convicted(&texts, "partition/semantics-equal");
}

#[test]
fn a_saved_value_is_dropped() {
    let mut texts = triple();
    texts[1] = texts[1].replace("mask, ", "").replace(", mask", "");
    convicted(&texts, "partition/bw-closed");
}

#[test]
fn a_reference_to_a_forward_value() {
    let mut texts = triple();
    texts[2] = with_line(&texts[2], "mask", "");
    convicted(&texts, "rewrite/well-formed");
}

#[test]
fn saved_values_in_another_order() {
    let mut texts = triple();
    let order = line(&texts[1], "output").to_string();
    assert!(order.contains("e, c, sn") || order.contains("mask, e"), "{order}");
    texts[1] = texts[1].replace("mask, e", "e, mask");
    convicted(&texts, "partition/signature-match");
}

#[test]
fn a_value_saved_that_nobody_takes() {
    let mut texts = triple();
    texts[1] = texts[1].replace("mask, e", "mask, d, e");
    convicted(&texts, "partition/signature-match");
}

#[test]
fn a_dead_save() {
    let mut texts = triple();
    texts[1] = texts[1].replace("mask, e", "mask, d, e");
    let input = "d = input : f32[4, 4]";
    texts[2] = before(&texts[2], "e", input);
    convicted(&texts, "partition/no-dead-saved");
}

#[test]
fn a_random_operator_runs_again() {
    let mut texts = triple();
    let joint = graph(JOINT);
    let again = |id| AGAIN.contains(&joint.name(id)) || ["nd", "mask", "m"].contains(&joint.name(id));
    let (forward, backward) = naive::partition(&joint, 1, &again);
    (texts[1], texts[2]) = (printed(&forward), printed(&backward));
    convicted(&texts, "partition/rng-paired");
    convicted(&texts, "partition/semantics-equal");
}

#[test]
fn a_random_operator_is_replayed() {
    let mut texts = triple();
    let joint = graph(JOINT);
    let again = |id| AGAIN.contains(&joint.name(id)) || ["nd", "mask", "m"].contains(&joint.name(id));
    let (forward, backward) = naive::partition(&joint, 1, &again);
    let out = "(f32[4, 4], bool[4, 4])";
    let run = "fn(aten.native_dropout.default), m, 0.5, True";
    let forward = printed(&forward);
    let saving = format!(
        "kept = higher_order.run_and_save_rng_state({run}) : (u8[16], {out})\nstate = kept[0] : u8[16]\n\
         nd = kept[1] : {out}\n"
    );
    let facts = |name: &str| format!("facts higher_order.{name} '{{}}'\n");
    let head =
        |text: &str, name: &str| text.replacen("primals_1 =", &format!("{}primals_1 =", facts(name)), 1);
    texts[1] = head(&with_line(&forward, "nd", &saving), "run_and_save_rng_state");
    let output = line(&texts[1], "output").to_string();
    texts[1] = texts[1].replace(&output, &output.replace(')', ", state)"));
    let backward = printed(&backward);
    let replaying = format!("nd = higher_order.run_with_rng_state(rng_state_output_0, {run}) : {out}\n");
    let backward = head(&with_line(&backward, "nd", &replaying), "run_with_rng_state");
    texts[2] = before(&backward, "tangents_1", "rng_state_output_0 = input : u8[16]");
    let rules = violated(&texts, Method::Default, Further::default());
    assert_eq!(rules, [""; 0], "{}\n{}", texts[1], texts[2]);
    // Replayed on another input.
    let sound = texts[2].clone();
    texts[2] = texts[2].replace("fn(aten.native_dropout.default), m,", "fn(aten.native_dropout.default), e,");
    convicted(&texts, "partition/recompute-terms-equal");
    texts[2] = sound;
    texts[1] = texts[1].replace(", state)", ")");
    convicted(&texts, "partition/signature-match");
}

#[test]
fn a_gather_is_saved() {
    let joint = graph(JOINT);
    for saved in ["w", "p", "t", "tt"] {
        let again = |id| AGAIN.contains(&joint.name(id)) && joint.name(id) != saved;
        let (forward, backward) = naive::partition(&joint, 1, &again);
        let texts = [&joint, &forward, &backward].map(printed);
        let rules = violated(&texts, Method::Default, Further::default());
        assert_eq!(rules, ["partition/no-saved-gather-exposed"], "{saved}");
    }
}

#[test]
fn a_collective_in_flight_crosses() {
    let joint = graph(JOINT);
    let again = |id| AGAIN.contains(&joint.name(id)) && joint.name(id) != "g";
    let (forward, backward) = naive::partition(&joint, 1, &again);
    let texts = [&joint, &forward, &backward].map(printed);
    convicted(&texts, "comm/no-unwaited-crossing");
}

#[test]
fn a_recomputation_reads_what_was_written() {
    let joint = graph(JOINT);
    let again = |id| AGAIN.contains(&joint.name(id)) || joint.name(id) == "sn";
    let (forward, backward) = naive::partition(&joint, 1, &again);
    let texts = [&joint, &forward, &backward].map(printed);
    convicted(&texts, "partition/no-recompute-after-mutation");
    convicted(&texts, "partition/semantics-equal");
}

#[test]
fn a_write_is_moved_or_lost_or_doubled() {
    let sound = triple();
    // Before a read in forward.
    let mut texts = sound.clone();
    let write = line(&sound[1], "up").to_string();
    texts[1] = with_line(&sound[1], "up", "");
    texts[1] = before(&with_line(&texts[1], "n", ""), "sn", &format!("{}\n{write}", line(&sound[1], "n")));
    convicted(&texts, "partition/effects-once-in-order");
    convicted(&texts, "partition/semantics-equal");
    // Lost.
    texts[1] = with_line(&sound[1], "up", "");
    convicted(&texts, "partition/effects-once-in-order");
    // In backward.
    let inputs = "primals_3 = input : f32[4]\nn = input : f32[4]";
    texts[1] = texts[1].replace("sn)", "sn, primals_3, n)");
    texts[2] = before(&before(&sound[2], "tangents_1", inputs), "output", &write);
    convicted(&texts, "partition/effects-once-in-order");
    // In both.
    texts[1] = sound[1].replace("sn)", "sn, primals_3, n)");
    convicted(&texts, "partition/effects-once-in-order");
}

#[test]
fn an_alias_of_what_is_written_is_saved() {
    let with_read = JOINT.replace("gb = mul(gs, sn)", "gb = mul(gs, primals_3)");
    let joint = graph(&with_read);
    let (forward, backward) = naive::partition(&joint, 1, &|id| AGAIN.contains(&joint.name(id)));
    let texts = [&joint, &forward, &backward].map(printed);
    convicted(&texts, "partition/saved-alias-is-current");
    convicted(&texts, "partition/semantics-equal");
}

#[test]
fn a_tangent_in_forward() {
    let mut texts = triple();
    let moved = line(&texts[2], "gm").to_string();
    texts[1] = before(&texts[1], "g", "tangents_1 = input : f32[4, 4]");
    texts[1] = before(&texts[1], "output", &moved).replace("mask, e", "mask, gm, e");
    texts[2] = before(&with_line(&texts[2], "gm", ""), "e", "gm = input : f32[4, 4]");
    convicted(&texts, "partition/no-tangent-in-forward");
}

#[test]
fn a_lost_gradient() {
    let mut texts = triple();
    texts[2] = with_line(&texts[2], "gh", "").replace("mul(gh, mask)", "mul(ge, mask)");
    convicted(&texts, "partition/no-tangent-in-forward");
    convicted(&texts, "partition/semantics-equal");
}

#[test]
fn items_confused() {
    let mut texts = triple();
    texts[1] =
        texts[1].replace("s1 = s[1]", "s1 = s[0]").replace("f32[2, 4] offset 8 {part", "f32[2, 4] {part");
    convicted(&texts, "partition/semantics-equal");
}

#[test]
fn tuples_and_other_things_are_saved() {
    let mut texts = triple();
    texts[1] = texts[1].replace("mask, e", "mask, s, e");
    let input = "s = input : (f32[2, 4], f32[2, 4] offset 8)";
    texts[2] = before(&texts[2], "e", input);
    convicted(&texts, "partition/saved-kinds");
}

#[test]
fn a_recomputation_on_other_inputs() {
    let mut texts = triple();
    texts[2] = texts[2].replace("h = relu(e)", "h = relu(c)");
    convicted(&texts, "partition/recompute-terms-equal");
    convicted(&texts, "partition/semantics-equal");
}

#[test]
fn a_tag_says_save_and_backward_recomputes() {
    let mut texts = triple();
    texts[0] = texts[0]
        .replace("h = relu(e) : f32[4, 4] {part", "h = relu(e) : f32[4, 4] {recompute: MUST_SAVE, part");
    convicted(&texts, "partition/must-save-honoured");
}

#[test]
fn a_list_out_of_order() {
    let mut texts = triple();
    let late = line(&texts[2], "gm").to_string();
    texts[2] = before(&with_line(&texts[2], "gm", ""), "gk", &late);
    convicted(&texts, "order/bw-order-valid");
}

const REPLAY: &str = r#"
graph again joint
primals_1 = input : f32[4, 4]
tangents_1 = input : f32[4, 4]
a = exp(primals_1) : f32[4, 4] {custom: '{"ap_must_save": true}'}
b = sin(a) : f32[4, 4]
s = split(b, 2) : (f32[2, 4], f32[2, 4] offset 8) {custom: '{"ap_must_save": true, "ap_must_save_getitem_indices": [1]}'}
s0 = s[0] : f32[2, 4]
s1 = s[1] : f32[2, 4] offset 8
c = cat([s1, s0]) : f32[4, 4]
y = mul(c, b) : f32[4, 4]
k = cat([s0, s1]) : f32[4, 4] {partitioner_tag: is_backward}
ga = mul(tangents_1, a) : f32[4, 4] {partitioner_tag: is_backward}
gk = mul(ga, k) : f32[4, 4] {partitioner_tag: is_backward}
output (y, gk)
"#;

fn replay(again: &[&str], earlier: Option<Earlier>) -> Vec<&'static str> {
    let joint = graph(REPLAY);
    let (forward, backward) = naive::partition(&joint, 1, &|id| again.contains(&joint.name(id)));
    let texts = [&joint, &forward, &backward].map(printed);
    violated(&texts, Method::Replay, Further { earlier, ..Further::default() })
}

#[test]
fn a_replay_repeats_the_first_choice() {
    let sound: [&str; 4] = ["k", "s0", "s", "b"];
    assert_eq!(replay(&sound, None), [""; 0]);
    assert_eq!(replay(&["k", "s0", "s", "b", "a"], None), ["partition/replay-saves-match"]);
    assert_eq!(replay(&["k", "s0", "s"], None), ["partition/replay-saves-match"]);
    assert_eq!(replay(&["k", "s1", "s", "b"], None), ["partition/replay-index-fidelity"]);
    assert_eq!(replay(&["k"], None), ["partition/replay-index-fidelity"]);
    // The first partition, as it was: it saved a and item 1.
    let joint = graph(REPLAY);
    let (first, _) = naive::partition(&joint, 1, &|id| sound.contains(&joint.name(id)));
    let earlier =
        || Some(Earlier { joint: &joint, forward: &first, forward_outputs: 1, provenance: Vec::new() });
    assert_eq!(replay(&sound, earlier()), [""; 0]);
    assert!(replay(&["k", "s0", "s", "b", "a"], earlier()).contains(&"partition/replay-saves-match"));
}

#[test]
fn ranks_decide_alike() {
    let texts = triple();
    let joint = graph(JOINT);
    let own = texts.each_ref().map(|text| graph(text));
    let other = naive::partition(&joint, 1, &|id| AGAIN.contains(&joint.name(id)) && joint.name(id) != "h");
    let same = Further { ranks: vec![(1, &own[1], &own[2])], ..Further::default() };
    assert_eq!(violated(&texts, Method::Default, same), [""; 0]);
    let differs = Further { ranks: vec![(1, &other.0, &other.1)], ..Further::default() };
    assert_eq!(violated(&texts, Method::Default, differs), ["comm/spmd-same-decision"]);
}

/// Two gathers of one size: only what they send tells them apart.
#[test]
fn ranks_gather_in_one_order() {
    let text = |lines: &str, outputs: &str| {
        graph(&format!(
            "world 2 ranks, groups dp = [0 1]\nprimals_1 = input : f32[4]\nprimals_2 = input : f32[4]\n{lines}output ({outputs})\n"
        ))
    };
    let tangent = "tangents_1 = input : f32[8]\n";
    let (one, other) =
        ("g = all_gather(primals_1, dp)\nw = wait(g)\n", "h = all_gather(primals_2, dp)\nv = wait(h)\n");
    let product = "y = mul(w, v)\n";
    let gradients = "p = mul(tangents_1, v)\nq = mul(tangents_1, w)\n";
    let joint = text(&format!("{tangent}{one}{other}{product}{gradients}"), "y, p, q");
    let forward = text(&format!("{one}{other}{product}"), "y, w, v");
    let exchanged = text(&format!("{other}{one}{product}"), "y, w, v");
    let backward =
        graph(&format!("w = input : f32[8]\nv = input : f32[8]\n{tangent}{gradients}output (p, q)\n"));
    let in_another_order = text(&format!("{one}{other}{product}"), "y, v, w");
    let takes_it_so =
        graph(&format!("v = input : f32[8]\nw = input : f32[8]\n{tangent}{gradients}output (p, q)\n"));
    let violated = |of_rank_1: (&Graph, &Graph)| {
        let config = PartitionConfig { forward_outputs: Some(1), ..PartitionConfig::new(Method::Default) };
        let further = Further { ranks: vec![(1, of_rank_1.0, of_rank_1.1)], ..Further::default() };
        let options = judging();
        judge_partition_with(&joint, &forward, &backward, &config, further, &options)
            .unwrap()
            .violated_rules()
    };
    assert_eq!(violated((&forward, &backward)), [""; 0]);
    assert_eq!(violated((&exchanged, &backward)), ["comm/spmd-same-decision"]);
    assert_eq!(violated((&in_another_order, &takes_it_so)), [""; 0]);
}

#[test]
fn the_parts_of_each_rank_are_judged() {
    let texts = triple();
    let [_, forward, backward] = texts.each_ref().map(|text| graph(text));
    let wrong = graph(&texts[2].replace("gm = mul(tangents_1, c)", "gm = mul(tangents_1, e)"));
    let ranks = vec![(1, &forward, &backward), (2, &forward, &wrong), (3, &forward, &wrong)];
    let config = PartitionConfig { forward_outputs: Some(1), ..PartitionConfig::new(Method::Default) };
    let judgement = judge_partition_with(
        &graph(&texts[0]),
        &forward,
        &backward,
        &config,
        Further { ranks, ..Further::default() },
        &judging(),
    )
    .unwrap();
    let Verdict::Violated(findings) = &judgement.verdict else { panic!("{:?}", judgement.verdict) };
    assert!(findings.iter().flat_map(Finding::all).all(|finding| finding.ranks == [2, 3]), "{findings:?}");
    assert!(judgement.violated_rules().contains(&"partition/semantics-equal"));
    assert!(judgement.notes.iter().any(|note| note.starts_with("on ranks 2 and 3: values by")));
}

#[test]
fn certificates_of_cuts() {
    // Either mask or h is to be saved, and mask is.
    let edge = |from, to, capacity, saves: &str| CutEdge {
        from,
        to,
        capacity,
        saves: (!saves.is_empty()).then(|| saves.to_string()),
    };
    let network = |first, second| CutNetwork {
        vertices: 4,
        source: 0,
        sink: 3,
        edges: vec![edge(0, 1, None, ""), edge(1, 2, Some(first), "mask"), edge(2, 3, Some(second), "h")],
    };
    let texts = triple();
    let judged = |first, second| {
        violated(
            &texts,
            Method::MinCut,
            Further { network: Some(network(first, second)), ..Further::default() },
        )
    };
    assert_eq!(judged(5, 7), [""; 0]);
    assert!(judged(7, 5).contains(&"partition/cut-certificate"));
    assert_eq!(judged(5, 5), ["partition/cut-sink-closest"]);
}

#[test]
fn budgets_variants_and_refusals() {
    let texts = triple();
    let judged = |further| violated(&texts, Method::MinCut, further);
    let budgets = |a, b| {
        let budgets = BudgetUse { budgets: vec![(0.5, a), (1.0, b)], range: None };
        Further { budgets, ..Further::default() }
    };
    assert_eq!(judged(budgets(10, 20)), [""; 0]);
    assert_eq!(judged(budgets(20, 10)), ["partition/budget-respected"]);
    let variant = |names: &[&str]| {
        let names = names.iter().map(|name| name.to_string()).collect();
        Further { variants: vec![("other names".to_string(), names)], ..Further::default() }
    };
    assert_eq!(judged(variant(&["mask"])), ["partition/metamorphic-stable"]);
    let refused = Further { refused: Some("no".to_string()), ..Further::default() };
    assert_eq!(judged(refused), ["partition/total"]);
}

/// Every line of a part may be missing, stand twice or stand elsewhere: nothing panics, and what others need is
/// missed.
#[test]
fn every_line_matters_or_is_needless() {
    let sound = triple();
    let needless = ["pt", "tt", "d", "p"];
    for part in [1, 2] {
        let lines: Vec<&str> = sound[part].lines().collect();
        for i in 2..lines.len() {
            let name = lines[i].split(' ').next().unwrap_or_default();
            let without: Vec<&str> =
                lines.iter().enumerate().filter(|(k, _)| *k != i).map(|(_, l)| *l).collect();
            let mut swapped = lines.clone();
            swapped.swap(i, (i * 7 + 3) % (lines.len() - 2) + 2);
            let mut doubled = lines.clone();
            doubled.insert(i, lines[i]);
            for (what, lines) in [("without", without), ("swapped", swapped), ("doubled", doubled)] {
                let mut texts = sound.clone();
                texts[part] = lines.join("\n") + "\n";
                let parsed = texts.each_ref().map(|text| text::parse(text).ok().map(|case| case.graph));
                let [Some(joint), Some(forward), Some(backward)] = parsed else { continue };
                let config = PartitionConfig { forward_outputs: Some(1), ..PartitionConfig::default() };
                let judgement = judge_partition_with(
                    &joint,
                    &forward,
                    &backward,
                    &config,
                    Further::default(),
                    &judging(),
                )
                .unwrap();
                let unread = part == 1 && needless[..2].contains(&name);
                if what == "without" && !unread {
                    assert!(matches!(judgement.verdict, Verdict::Violated(_)), "part {part} without {name}");
                }
            }
        }
    }
}
