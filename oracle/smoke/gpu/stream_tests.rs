//! Graphs on several streams: the clocks of a plan, which knows bytes and commands, against those of `order/streams`,
//! which knows neither.

use super::passes::{Case, Options, inspect, smoke, with_plan};
use super::report::{Kind, Report};
use crate::analysis::storages::Mode;
use crate::analysis::streams::{Named, Streams, has_device};
use crate::analysis::{Collectives, Edges, Storages};
use crate::generate::{self, Config, Seeded};
use crate::graph::{Editor, Graph, NodeId};
use crate::ops::Ops;

/// A generated graph on several streams.
fn generated(config: &Config, number: u64) -> Graph {
    let graph = generate::case(config, 11, number).into_case().graph;
    generate::spread(&mut Seeded::case(12, number), &graph)
}

/// What has no elements is read by nobody, and the rule takes it for read.
fn with_communication() -> Config {
    Config { max_nodes: 50, uninterpreted: 0, repair: 0, odd_shape: 0, ..Config::default() }
}

fn without_communication() -> Config {
    let few =
        Config { gather: 0, scatter: 0, reduce: 0, wait: 0, burst: 0, chain: 0, ..with_communication() };
    let none = Config { barrier: 0, buffer: 0, through_memory: 0, second_wait: 0, neighbour: 0, ..few };
    Config { layers: 0, padded: 0, min_ranks: 1, max_ranks: 1, ..none }
}

fn case(graph: &Graph) -> Case {
    Case { name: "case".into(), file: None, graphs: vec![graph.clone()] }
}

/// What nothing orders, and what is freed early, as the rule sees it.
fn by_rule(graph: &Graph) -> Vec<String> {
    let (ops, edges) = (Ops::of(graph), Edges::new(graph));
    let collectives = Collectives::new(graph, &ops);
    let storages = Storages::new(graph, &ops, &edges, &collectives, Mode::Physical);
    let named = Named::new(graph, &ops);
    let streams =
        named.and_then(|named| Streams::new(graph, &ops, &storages, &collectives, named, has_device(graph)));
    let streams = streams.unwrap_or_else(|unclear| panic!("{unclear:?}"));
    let name = |id| graph.name(id);
    let races = streams.races(graph, &storages).into_iter();
    let races = races.map(|race| format!("{} and {}", name(race.first), name(race.second)));
    let freed = streams.freed_early().iter();
    let freed = freed.map(|&(of, by)| format!("{} under {}", name(storages.storage(of).by), name(by)));
    races.chain(freed).collect()
}

/// The same as the plan shows it; `None` where the interpreter refuses the graph.
fn by_plan(graph: &Graph) -> Option<Vec<String>> {
    let findings = with_plan(&case(graph), &Options::default(), |plan, _| inspect(&plan)).ok()?;
    let unordered = findings.iter().filter(|finding| matches!(finding.kind, Kind::Race | Kind::UseAfterFree));
    Some(unordered.map(|finding| format!("{finding:?}")).collect())
}

/// The calls that order streams.
fn orders(graph: &Graph) -> Vec<NodeId> {
    let ops = Ops::of(graph);
    graph.ids().filter(|&id| ops.call(graph, id).is_some_and(|info| info.sync().is_some())).collect()
}

/// Of graphs as they stand, and without each of the calls that order their streams: how many are faulty for both, for
/// neither, for the rule alone. None may be so for the plan alone.
fn compared(config: &Config, graphs: u64) -> [u64; 3] {
    let mut counts = [0; 3];
    for number in 0..graphs {
        let graph = generated(config, number);
        let told = crate::format::text::print(&crate::case::Case::of_graph(graph.clone()));
        assert_eq!((by_rule(&graph), by_plan(&graph)), (Vec::new(), Some(Vec::new())), "{number}\n{told}");
        for id in orders(&graph) {
            let mut editor = Editor::new(&graph);
            editor.erase(id);
            let without = editor.finish();
            let (rule, plan) = (by_rule(&without), by_plan(&without).unwrap_or_default());
            let name = graph.name(id);
            let count = match (rule.is_empty(), plan.is_empty()) {
                (false, false) => 0,
                (true, true) => 1,
                (false, true) => 2,
                (true, false) => panic!("{number} without {name}: {plan:#?}\n{told}"),
            };
            counts[count] += 1;
        }
    }
    println!(
        "{graphs} graphs; of the calls that order their streams {counts:?} are needed, not, for the rule alone"
    );
    counts
}

#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn the_plan_and_the_rule_see_the_same_races() {
    let [faulty, harmless, rule_alone] = compared(&without_communication(), crate::scale::scaled(40));
    assert!(faulty > 100 && harmless > 100 && rule_alone == 0, "{faulty}, {harmless}, {rule_alone}");
}

/// A plan holds what a collective copies until its wait, and knows that a barrier reads nothing: there the rule has
/// more.
#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn the_rule_sees_all_races_of_a_plan_that_communicates() {
    let [faulty, harmless, rule_alone] = compared(&with_communication(), crate::scale::scaled(40));
    assert!(faulty > 100 && harmless > 100 && rule_alone * 20 < faulty, "{faulty}, {harmless}, {rule_alone}");
}

/// All passes, communication too.
#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn no_false_alarm_on_several_streams() {
    let (mut clean, mut refused) = (0, 0);
    for number in 0..crate::scale::scaled(40) {
        let graph = generated(&Config { odd_shape: 12, ..with_communication() }, number);
        let options = Options { interleavings: 4, repetitions: 2, ..Options::default() };
        let report =
            smoke(&case(&graph), &options, None).unwrap_or_else(|trouble| panic!("{number}: {trouble}"));
        if report.refused.is_some() {
            refused += 1;
            continue;
        }
        let told = crate::format::text::print(&crate::case::Case::of_graph(graph));
        let violated = report.is_violated();
        let text = Report { cases: vec![report], ..Report::default() }.text(true);
        assert!(!violated, "{number}\n{text}\n{told}");
        clean += 1;
    }
    println!("{clean} clean plans, {refused} refused");
    assert!(clean > refused, "{clean} clean, {refused} refused");
}
