//! Every joint graph is valid, and there is enough of everything.

use super::*;
use crate::analysis::in_flight::in_flight;
use crate::analysis::storages::Mode;
use crate::analysis::validate::validate;
use crate::analysis::{Collectives, Edges, Storages};
use crate::candidates::judging;
use crate::judge::partition::judge_partition;
use crate::judge::{Options, Values, Verdict};
use crate::ops::{Kind, Ops, shape};
use crate::rules::partition::PartitionConfig;
use crate::scale::scaled;
use crate::semantics::{self, Fingerprints, Program};

fn faults(graph: &Graph) -> Vec<String> {
    let (ops, edges) = (Ops::of(graph), Edges::new(graph));
    let mut faults: Vec<String> = validate(graph).iter().map(ToString::to_string).collect();
    for id in graph.ids() {
        faults.extend(shape::check(graph, &ops, id).iter().map(|f| format!("{}: {f}", graph.name(id))));
    }
    let collectives = Collectives::new(graph, &ops);
    for (call, waits) in collectives.calls.iter().zip(&collectives.waits) {
        if waits.is_empty() {
            faults.push(format!("{} is never waited for", graph.name(call.node)));
        }
    }
    let storages = Storages::new(graph, &ops, &edges, &collectives, Mode::Physical);
    let intrusions = in_flight(graph, &ops, &storages, &collectives);
    faults.extend(intrusions.iter().map(|intrusion| intrusion.describe(graph, &collectives)));
    faults
}

#[test]
fn cases_are_valid_and_run() {
    for index in 0..400 {
        let case = case(&Config::default(), 1, index);
        let faults = faults(&case.graph);
        assert!(faults.is_empty(), "case {index}: {}\n{case}", faults.join("\n"));
        let ops = Ops::of(&case.graph);
        let program = Program::new(&case.graph, &ops, &case.graph.world).unwrap();
        let options = semantics::Options::default();
        let run = semantics::run(&[program], &case.graph.world, &Fingerprints::in_bits(), &options);
        let run = run.unwrap_or_else(|failure| panic!("case {index}: {failure}\n{case}"));
        assert!(run.hazards.is_empty(), "case {index}: {:?}\n{case}", run.hazards);
        PartitionConfig::from_pass(case.pass.as_ref().unwrap()).unwrap();
    }
}

#[test]
fn cases_survive_their_text() {
    for index in 0..100 {
        let case = case(&Config::default(), 2, index);
        let text = crate::format::text::print(&case);
        let read = crate::format::text::parse(&text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        assert!(read == case, "case {index}:\n{text}");
    }
}

/// Whether the naive partition recomputes a node: it is tagged so, or shows a gather that is.
fn again(case: &Case) -> impl Fn(NodeId) -> bool {
    let graph = case.graph.clone();
    let ops = Ops::of(&graph);
    let mut shows = vec![false; graph.len()];
    for id in graph.ids() {
        let tag = graph.tags(id).and_then(|tags| tags.recompute).map_or("", |text| graph.text(text));
        let is_view = ops.call(&graph, id).is_some_and(|info| {
            info.is_view() || matches!(info.kind, Kind::GetItem | Kind::Wait | Kind::Cast | Kind::Move(_))
        });
        let inputs = graph.inputs(id);
        let all_show = !inputs.is_empty() && inputs.iter().all(|input| shows[input.index()]);
        shows[id.index()] = (tag == "MUST_RECOMPUTE" && !ops.draws(&graph, id))
            || (is_view && all_show && tag != "MUST_SAVE");
        // Items of a draw are kept.
        let of_draw = inputs.iter().any(|&input| ops.draws(&graph, input)) && is_view;
        shows[id.index()] &= !of_draw;
    }
    move |id| shows[id.index()]
}

#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn a_naive_partition_is_sound() {
    let (mut sound, mut equal) = (0, 0);
    let cases = scaled(400);
    for index in 0..cases {
        let mut case = case(&Config { replay: 0, ..Config::default() }, 3, index);
        // A draw that has to be recomputed needs its state saved, which the naive partition cannot.
        strip_random_tags(&mut case.graph);
        let nf = forward_outputs(&case).unwrap();
        let (forward, backward) = naive::partition(&case.graph, nf, &again(&case));
        // Nor does it keep a budget.
        let config = PartitionConfig::from_pass(case.pass.as_ref().unwrap()).unwrap();
        let config = PartitionConfig { budget: None, ..config };
        let options =
            Options { values: if index % 4 == 0 { Values::Execute } else { Values::Auto }, ..judging() };
        let judgement = judge_partition(&case.graph, &forward, &backward, &config, &options).unwrap();
        match &judgement.verdict {
            Verdict::Sound => sound += 1,
            other => panic!(
                "case {index}: {other:?}\n{case}\n{}\n{}",
                crate::format::text::print_graph(&forward),
                crate::format::text::print_graph(&backward)
            ),
        }
        equal += u64::from(judgement.notes.iter().any(|note| note.contains("equal by structure")));
    }
    assert_eq!((sound, equal), (cases, cases));
}

fn strip_random_tags(graph: &mut Graph) {
    let ops = Ops::of(graph);
    for id in graph.ids() {
        let drawn = |id: NodeId| ops.draws(graph, id);
        if drawn(id) || graph.inputs(id).into_iter().any(drawn) {
            graph.node_mut(id).tags = None;
        }
    }
}

#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn there_is_enough_of_everything() {
    const CASES: usize = 4000;
    let mut counts: BTreeMap<Feature, usize> = BTreeMap::new();
    let (mut useless, mut nodes) = (0, 0);
    for index in 0..CASES as u64 {
        let case = case(&Config::default(), 4, index);
        for feature in Feature::of(&case) {
            *counts.entry(feature).or_default() += 1;
        }
        nodes += case.graph.len();
        // Nothing that forward computes is read by backward: there is nothing to choose.
        let nf = forward_outputs(&case).unwrap();
        let (_, backward) = naive::partition(&case.graph, nf, &|_| false);
        let chosen = backward.ids().any(|id| {
            let name = backward.name(id);
            backward.node(id).op == crate::graph::Op::Placeholder
                && !name.starts_with("primals")
                && !name.starts_with("tangents")
        });
        useless += usize::from(!chosen);
    }
    let rare: Vec<_> =
        Feature::ALL.iter().filter(|f| counts.get(f).copied().unwrap_or(0) * 100 < CASES).collect();
    assert!(rare.is_empty(), "rare: {rare:?}\n{counts:?}");
    assert!(useless * 10 < CASES, "{useless} useless");
    println!("{} nodes on average, {useless} useless of {CASES}\n{counts:?}", nodes / CASES);
}

#[test]
fn the_same_choices_give_the_same_case() {
    let print = |index| crate::format::text::print(&case(&Config::default(), 5, index));
    assert!((0..20).all(|index| print(index) == print(index)));
    // Bytes make cases too, the empty string included.
    for bytes in [&[][..], &[7; 64], &[255; 400]] {
        let case = generate(&mut crate::generate::Bytes::new(bytes), &Config::default());
        assert_eq!(faults(&case.graph), Vec::<String>::new());
    }
}

#[test]
fn grafts_of_real_graphs_are_valid() {
    use crate::recorded::graph as recorded;
    let mut kept = 0;
    for name in [
        "small_mlp",
        "small_gpt",
        "small_fsdp4",
        "small_mutation",
        "small_mutation_keepmut",
        "small_cnn",
        "small_tp_allreduce",
    ] {
        let Some(joint) = recorded(&format!("{name}_joint")) else { continue };
        let before = faults(&joint);
        let config = PartitionConfig::default().or_from_file(&joint);
        let nf = config.forward_outputs.unwrap();
        for index in 0..8 {
            let Some(graph) = graft(&mut Seeded::case(8, index), &joint, nf) else { continue };
            kept += 1;
            let new: Vec<String> =
                faults(&graph).into_iter().filter(|fault| !before.contains(fault)).collect();
            assert!(new.is_empty(), "{name} {index}: {}", new.join("\n"));
            let case = Case::of_graph(graph);
            let (forward, backward) = naive::partition(&case.graph, nf, &again(&case));
            let options = Options { values: Values::Symbolic, ..judging() };
            let judgement = judge_partition(&case.graph, &forward, &backward, &config, &options).unwrap();
            assert_eq!(judgement.verdict, Verdict::Sound, "{name} {index}\n{case}");
        }
    }
    assert!(kept > 40, "{kept}");
}

#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn grafts_are_valid() {
    let mut kept = 0;
    for index in 0..300 {
        let case = case(&Config::default(), 6, index);
        let nf = forward_outputs(&case).unwrap();
        let Some(graph) = graft(&mut Seeded::case(6, index), &case.graph, nf) else { continue };
        kept += 1;
        let faults = faults(&graph);
        assert!(faults.is_empty(), "graft {index}: {}", faults.join("\n"));
        let mut graph = graph;
        strip_random_tags(&mut graph);
        let case = Case { pass: case.pass, ..Case::of_graph(graph) };
        let (forward, backward) = naive::partition(&case.graph, nf, &again(&case));
        let config = PartitionConfig { forward_outputs: Some(nf), ..PartitionConfig::default() };
        let judgement = judge_partition(&case.graph, &forward, &backward, &config, &judging()).unwrap();
        assert_eq!(judgement.verdict, Verdict::Sound, "graft {index}\n{case}");
    }
    assert!(kept > 150, "{kept}");
}
