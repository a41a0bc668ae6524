//! Graphs on several streams: the clocks of a plan, which knows bytes and commands, against those of `order/streams`, which
//! knows neither.

use super::passes::{Case, Options, inspect, smoke, with_plan};
use super::report::{Kind, Report};
use crate::analysis::storages::Mode;
use crate::analysis::streams::{Streams, has_device};
use crate::analysis::{Collectives, Edges, Storages};
use crate::generate::{self, Config, Seeded};
use crate::graph::{Editor, Graph, NodeId};
use crate::ops::Ops;

/// A generated graph on several streams.
fn generated(config: &Config, number: u64) -> Graph {
    let graph = generate::case(config, 11, number).into_case().graph;
    generate::spread(&mut Seeded::case(12, number), &graph)
}

/// Graphs that only compute: collectives run in order on a stream of their own in a plan, and beside all streams for the
/// rule, which has more to convict there. What has no elements is read by nobody, and the rule takes it for read.
fn without_communication() -> Config {
    let ranks =
        Config { min_ranks: 1, max_ranks: 1, max_nodes: 50, repair: 0, odd_shape: 0, ..Config::default() };
    let few = Config { gather: 0, scatter: 0, reduce: 0, wait: 0, burst: 0, chain: 0, barrier: 0, ..ranks };
    let none =
        Config { buffer: 0, through_memory: 0, second_wait: 0, neighbour: 0, layers: 0, padded: 0, ..few };
    Config { uninterpreted: 0, ..none }
}

fn case(graph: &Graph) -> Case {
    Case { name: "case".into(), file: None, graphs: vec![graph.clone()] }
}

/// What nothing orders, and what is freed early, as the rule sees it.
fn by_rule(graph: &Graph) -> Vec<String> {
    let (ops, edges) = (Ops::of(graph), Edges::new(graph));
    let collectives = Collectives::new(graph, &ops);
    let storages = Storages::new(graph, &ops, &edges, &collectives, Mode::Physical);
    let streams = Streams::new(graph, &ops, &storages, &collectives, has_device(graph));
    let streams = streams.unwrap_or_else(|unclear| panic!("{unclear:?}"));
    let name = |id| graph.name(id);
    let races = streams.races(graph, &ops, &storages).into_iter();
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

/// Of each graph as it stands, and without each of the calls that order its streams.
#[test]
fn the_plan_and_the_rule_see_the_same_races() {
    let (mut clean, mut harmless, mut faulty) = (0, 0, 0);
    for number in 0..crate::scale::scaled(40) {
        let graph = generated(&without_communication(), number);
        let told = crate::format::text::print(&crate::case::Case::of_graph(graph.clone()));
        assert_eq!((by_rule(&graph), by_plan(&graph)), (Vec::new(), Some(Vec::new())), "{number}\n{told}");
        clean += 1;
        for id in orders(&graph) {
            let mut editor = Editor::new(&graph);
            editor.erase(id);
            let without = editor.finish();
            let (rule, plan) = (by_rule(&without), by_plan(&without).unwrap_or_default());
            let name = graph.name(id);
            assert_eq!(
                rule.is_empty(),
                plan.is_empty(),
                "{number} without {name}: {rule:?} {plan:#?}\n{told}"
            );
            match rule.is_empty() {
                true => harmless += 1,
                false => faulty += 1,
            }
        }
    }
    println!("{clean} graphs; {faulty} calls without which they race, {harmless} others");
    assert!(faulty > clean && harmless > clean, "{clean}, {faulty}, {harmless}");
}

/// All passes, communication too.
#[test]
fn no_false_alarm_on_several_streams() {
    let (mut clean, mut refused) = (0, 0);
    for number in 0..crate::scale::scaled(40) {
        let config = Config { max_nodes: 50, uninterpreted: 0, repair: 0, ..Config::default() };
        let graph = generated(&config, number);
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
