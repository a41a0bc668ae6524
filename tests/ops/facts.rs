//! Operators that the table does not know, from what a file says about them; and files that contradict the table.

use graph_oracle::graph::{Graph, Op};
use graph_oracle::ops::{Collective, FactsAbout, Kind, OpInfo, Ops, Random, facts_disagreements};

fn graph(target: &str, facts: &str) -> Graph {
    let mut graph = Graph::new("facts");
    graph.push("call", Op::Call, target);
    if !facts.is_empty() {
        graph.facts.push((target.to_string(), facts.to_string()));
    }
    graph
}

fn info(target: &str, facts: &str) -> OpInfo {
    let graph = graph(target, facts);
    Ops::of(&graph).get(&graph, graph.find("call").unwrap()).clone()
}

#[test]
fn without_facts_an_unknown_operator_has_an_effect() {
    for facts in ["", "{", "[]", r#"{"kind": "python", "schema": null}"#, r#"{"schema": "no schema"}"#] {
        let info = info("mylib.thing.default", facts);
        assert_eq!((info.kind, info.effect, info.schema), (Kind::Unknown, true, None), "{facts}");
    }
}

#[test]
fn a_pure_operator_has_no_effect() {
    let info =
        info("mylib.gelu2.default", r#"{"schema": "mylib::gelu2(Tensor x) -> Tensor", "is_mutable": false}"#);
    assert_eq!((info.kind, info.effect), (Kind::Opaque, false));
    assert_eq!(info.schema.unwrap().params[0].name, "x");
}

#[test]
fn facts_complete_what_the_schema_text_lacks() {
    let facts = r#"{"schema": "mylib::cut(Tensor x, Tensor y) -> (Tensor[], Tensor)",
        "args": [{"name": "x", "alias": {"before": ["a"], "after": ["*"], "write": false}}, {"name": "y"}],
        "returns": [{"elem_alias": ["a"]}, {}], "mutated_args": [1], "ret_aliases_arg": [[0, 0], [1, 1]]}"#;
    let info = info("mylib.cut.default", facts);
    let schema = info.schema.as_ref().unwrap();
    assert_eq!(schema.aliases().collect::<Vec<_>>(), [(0, 0), (1, 1)]);
    assert_eq!(info.mutated().collect::<Vec<_>>(), [1]);
    assert!(info.is_view() && !info.effect);
}

#[test]
fn one_result_may_share_storage_with_two_arguments() {
    let facts = r#"{"schema": "mylib::either(Tensor(a) x, Tensor(b) y) -> Tensor(a)", "ret_aliases_arg": [[0, 0], [0, 1]]}"#;
    let info = info("mylib.either.default", facts);
    assert_eq!(info.schema.unwrap().aliases().collect::<Vec<_>>(), [(0, 0), (0, 1)]);
}

#[test]
fn writes_that_are_not_named_and_empty_results_are_effects() {
    let mutable = r#"{"schema": "mylib::poke(Tensor x) -> Tensor", "is_mutable": true, "mutated_args": []}"#;
    let silent = r#"{"schema": "mylib::log(Tensor x) -> ()"}"#;
    let tagged = r#"{"schema": "mylib::f(Tensor x) -> Tensor", "tags": ["maybe_aliasing_or_mutating"]}"#;
    for facts in [mutable, silent, tagged] {
        assert!(info("mylib.x.default", facts).effect, "{facts}");
    }
    let named = r#"{"schema": "mylib::fill(Tensor(a!) x) -> ()", "is_mutable": true}"#;
    assert!(!info("mylib.x.default", named).effect);
}

#[test]
fn tags_and_group_arguments_say_what_it_does() {
    let random = r#"{"schema": "mylib::noise(Tensor x) -> Tensor", "tags": ["nondeterministic_seeded"]}"#;
    assert_eq!(info("mylib.noise.default", random).kind, Kind::Random(Random::Opaque));
    let shift = r#"{"schema": "mylib::ring_shift(Tensor x, str group_name) -> Tensor"}"#;
    assert_eq!(info("mylib.ring_shift.default", shift).kind, Kind::Collective(Collective::Other));
    let quantize = r#"{"schema": "mylib::quantize(Tensor x, int group_size, int groups) -> Tensor"}"#;
    assert_eq!(info("mylib.quantize.default", quantize).kind, Kind::Opaque);
}

#[test]
fn the_table_wins_and_a_contradiction_is_told() {
    let target = "aten.relu.default";
    let facts = r#"{"schema": "aten::relu(Tensor(a!) self) -> Tensor(a!)", "mutated_args": [0], "ret_aliases_arg": [[0, 0]]}"#;
    assert_eq!(info(target, facts).mutated().count(), 0);
    let found = facts_disagreements(&graph(target, facts));
    let written = FactsAbout::Written { table: vec![], file: vec![0] };
    let aliases = FactsAbout::Aliases { table: vec![], file: vec![(0, 0)] };
    assert_eq!(found.into_iter().map(|d| d.about).collect::<Vec<_>>(), [written, aliases]);

    let other = r#"{"schema": "aten::relu(Tensor x) -> Tensor"}"#;
    let found = facts_disagreements(&graph(target, other));
    assert!(matches!(found[0].about, FactsAbout::Params { .. }), "{found:?}");
    assert!(found[0].to_string().contains("aten.relu.default has the parameters (x)"), "{}", found[0]);

    let unreadable = facts_disagreements(&graph(target, r#"{"schema": 3}"#));
    assert!(matches!(unreadable[0].about, FactsAbout::Unreadable(_)));
    assert_eq!(facts_disagreements(&graph(target, r#"{"schema": "aten::relu(Tensor self) -> Tensor"}"#)), []);
}
