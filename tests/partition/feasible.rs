//! Which joint graphs can be cut, and that a plan is a partition.

use crate::common::scale::scaled;
use graph_oracle::candidates::{CandidateExt, Place, Reference, judging};
use graph_oracle::format::text;
use graph_oracle::generate::joint::{Config, case, naive};
use graph_oracle::generate::{Seeded, Source};
use graph_oracle::graph::{Graph, NodeId, Op};
use graph_oracle::judge::Verdict;
use graph_oracle::judge::partition::judge_partition;
use graph_oracle::rules::AnalyzedGraph;
use graph_oracle::rules::partition::{Feasible, PartitionConfig, Question, feasible};

fn asked(body: &str) -> Feasible {
    let text = format!(
        "graph small joint\npass partition num_fwd_outputs=1\nprimals_1 = input : f32[4]\n\
         tangents_1 = input : f32[4]\n{body}"
    );
    let case = text::parse(text.as_bytes()).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    let config = PartitionConfig::from_pass(case.pass.as_ref().unwrap()).unwrap();
    feasible(&AnalyzedGraph::new(&case.graph), &config)
}

const MUST: &str = "{recompute: MUST_RECOMPUTE}";

#[test]
fn what_contradicts_nothing_can_be_cut() {
    for body in [
        "y = sin(primals_1)\ng = mul(tangents_1, y)\noutput (y, g)\n".to_string(),
        // Computed again from an input.
        format!("y = sin(primals_1) {MUST}\ng = mul(tangents_1, y)\noutput (y, g)\n"),
        // A wish forbids nothing.
        "y = rand_like(primals_1) {recompute: PREFER_RECOMPUTE}\ng = mul(tangents_1, y)\noutput (y, g)\n".to_string(),
        // Nobody needs in backward what must be computed again and stands on an input that forward overwrites.
        format!(
            "n = add(primals_1, 1.0) {MUST}\ny = sin(n)\ng = mul(tangents_1, y)\n\
             c = copy_(primals_1, n) {{partitioner_tag: must_be_in_forward}}\noutput (y, g)\n"
        ),
        // An item of a draw that nobody asks to repeat is kept.
        format!(
            "d = native_dropout(primals_1, 0.5, True)\ny = d[0]\nm = d[1] {MUST}\ng = mul(tangents_1, m)\n\
             output (y, g)\n"
        ),
        // A later region begins behind it.
        "y = sin(primals_1) {recompute: MUST_RECOMPUTE, ac_graph_id: 0, partitioner_tag: must_be_in_forward}\n\
         z = cos(y) {recompute: MUST_RECOMPUTE, ac_graph_id: 1}\ng = mul(tangents_1, y)\noutput (z, g)\n"
            .to_string(),
        // A view that is to be saved, of what is to be computed again.
        format!(
            "n = sin(primals_1) {MUST}\nv = detach(n) {{recompute: MUST_SAVE}}\ny = cos(v)\n\
             g = mul(tangents_1, v)\noutput (y, g)\n"
        ),
        // Forward returns the input itself, which backward writes.
        "y = sin(tangents_1)\nc = copy_(primals_1, y) {partitioner_tag: must_be_in_backward}\noutput (c, y)\n"
            .to_string(),
    ] {
        assert_eq!(asked(&body), Feasible::Yes, "{body}");
    }
}

#[test]
fn what_contradicts_is_told() {
    let overwritten = format!(
        "n = add(primals_1, 1.0) {MUST}\ny = sin(n)\ng = mul(tangents_1, n)\n\
         z = zero_(primals_1) {{partitioner_tag: must_be_in_forward}}\noutput (y, g)\n"
    );
    for (body, lines) in [
        (
            // What must be computed again stands on what is gone.
            overwritten.replace("z = zero_", "s = sin(primals_1)\nh = mul(tangents_1, primals_1)\nz = zero_").replace("g)\n", "h)\n"),
            vec![
                "backward needs primals_1, which h reads; it is not saved, since z writes its memory before backward runs",
                "primals_1 is not computed again, since it is an input",
            ],
        ),
        (
            overwritten,
            vec![
                "backward needs n, which g reads; it is not saved, since it is tagged MUST_RECOMPUTE",
                "backward needs primals_1, which n reads; it is not saved, since z writes its memory before backward runs",
                "primals_1 is not computed again, since it is an input",
            ],
        ),
        (
            "y = sin(primals_1) {recompute: MUST_RECOMPUTE, partitioner_tag: must_be_in_forward}\n\
             g = mul(tangents_1, y)\noutput (y, g)\n"
                .to_string(),
            vec![
                "backward needs y, which g reads; it is not saved, since it is tagged MUST_RECOMPUTE",
                "y is not computed again, since it is tagged must_be_in_forward",
            ],
        ),
        (
            "y = sin(tangents_1)\ng = mul(tangents_1, y)\noutput (y, g)\n".to_string(),
            vec!["y is an output of forward", "y is computed in backward only"],
        ),
        (
            "y = sin(primals_1)\ng = mul(tangents_1, y) {partitioner_tag: must_be_in_forward}\noutput (y, g)\n"
                .to_string(),
            vec!["g is tagged must_be_in_forward", "g is computed in backward only"],
        ),
        (
            "y = sin(primals_1) {custom: '{\"_region_activation_memory_budget\": 0.5}'}\nz = cos(y)\n\
             g = mul(tangents_1, z)\noutput (z, g)\n"
                .to_string(),
            vec![
                "y is in a region with a memory budget of 0.5",
                "z is in none, and budget_needs_coverage=yes asks that all of forward is",
            ],
        ),
        (
            "y = sin(primals_1) {custom: '{\"_region_activation_memory_budget\": 0.5}'}\n\
             z = cos(y) {custom: '{\"_region_activation_memory_budget\": 0.25}'}\n\
             g = mul(tangents_1, z)\noutput (z, g)\n"
                .to_string(),
            vec![
                "y is in a region with a memory budget of 0.5",
                "z is in a region with a memory budget of 0.25",
            ],
        ),
    ] {
        assert_eq!(asked(&body), Feasible::No(lines.iter().map(ToString::to_string).collect()), "{body}");
    }
}

/// To fill memory in place once more may be right or not.
#[test]
fn what_is_hard_is_not_known() {
    let found = asked(&format!(
        "n = sin(primals_1) {MUST}\nw = add_(n, primals_1)\ny = cos(n)\ng = mul(tangents_1, n)\noutput (y, g)\n"
    ));
    assert!(matches!(found, Feasible::Unknown(_)), "{found:?}");
}

/// A joint graph with a few tags of recomputation on its forward nodes that nobody thought of.
fn tagged(graph: &Graph, source: &mut Seeded) -> Graph {
    let mut graph = graph.clone();
    let is_forward = |id: &NodeId| {
        let tag = graph.tags(*id).and_then(|tags| tags.partitioner_tag);
        graph.node(*id).op == Op::Call && tag.is_some_and(|tag| graph.text(tag) == "is_forward")
    };
    let calls: Vec<NodeId> = graph.ids().filter(is_forward).collect();
    for _ in 0..1 + source.below(4) {
        let Some(&id) = calls.get(source.below(calls.len().max(1) as u32) as usize) else { continue };
        let mut tags = graph.tags(id).cloned().unwrap_or_default();
        let tag = if source.below(3) == 0 { "MUST_SAVE" } else { "MUST_RECOMPUTE" };
        tags.recompute = Some(graph.intern(tag));
        graph.node_mut(id).tags = graph.intern_tags(tags);
    }
    graph
}

/// Where a plan was found, the partition that it describes is sound; and of what cannot be cut there is no sound
/// partition.
#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn a_plan_is_a_partition() {
    let (mut plans, mut contradictions) = (0, 0);
    for index in 0..scaled(600) {
        let case = case(&Config { replay: 0, ..Config::default() }, 11, index);
        let pass = case.pass.as_ref().unwrap();
        let config = PartitionConfig::from_pass(pass).unwrap();
        let generated = feasible(&AnalyzedGraph::new(&case.graph), &config);
        assert_eq!(generated, Feasible::Yes, "case {index}\n{case}");
        let graph = tagged(&case.graph, &mut Seeded::case(3, index));
        let side = AnalyzedGraph::new(&graph);
        let parts = match feasible(&side, &config) {
            Feasible::Unknown(_) => continue,
            Feasible::No(_) => {
                contradictions += 1;
                Reference.partition(&graph, pass, Place::default()).ok()
            }
            Feasible::Yes => {
                let question = Question::new(&side);
                let again = |id: NodeId| question.is_made(id);
                // The naive partition does not pair draws.
                if graph.ids().any(|id| again(id) && side.ops.draws(&graph, id)) {
                    continue;
                }
                plans += 1;
                let outputs = config.clone().or_from_file(&graph).forward_outputs.unwrap();
                let parts = naive::partition(&graph, outputs, &again);
                // Nor does it keep a budget.
                let config = PartitionConfig { budget: None, ..config };
                let judgement = judge_partition(&graph, &parts.0, &parts.1, &config, &judging()).unwrap();
                assert_eq!(judgement.verdict, Verdict::Sound, "case {index}\n{}", text::print_graph(&graph));
                continue;
            }
        };
        if let Some((forward, backward)) = parts {
            let judgement = judge_partition(&graph, &forward, &backward, &config, &judging()).unwrap();
            assert_ne!(judgement.verdict, Verdict::Sound, "case {index}\n{}", text::print_graph(&graph));
        }
    }
    assert!(plans > 300 && contradictions > 5, "{plans} plans, {contradictions} contradictions");
}
