//! What only graph-oracle/1 has: worlds, ordering edges, outcomes, graphs without recorded storages; and the
//! examples of docs/format.md.

use super::{read, written};
use graph_oracle::format::json::{self, Document};
use graph_oracle::graph::{Dtype, Graph, NodeId, Op, OrderingEdge, Rename, Value};
use graph_oracle::ops;
use serde_json::{Value as Json, json};

/// The documents in the fences of docs/format.md.
fn examples() -> Vec<String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/format.md");
    let text = std::fs::read_to_string(path).unwrap();
    text.split("```json\n").skip(1).map(|part| part.split("```").next().unwrap().to_string()).collect()
}

fn outcome(text: &str) -> json::Outcome {
    json::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}")).into_outcome().expect("an outcome")
}

fn document_text(document: &Document) -> String {
    let mut text = Vec::new();
    json::write_document(document, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn the_documented_examples_are_read() {
    let examples = examples();
    assert_eq!(examples.len(), 3);

    let graph = read(&examples[0]);
    let group = graph.world.group("dp").unwrap();
    assert_eq!((graph.world.ranks, group.size, &group.instances), (Some(2), 2, &vec![vec![0, 1]]));
    assert_eq!(graph.world.faults(), []);
    let named = |name: &str| graph.find(name).unwrap();
    assert_eq!(graph.ordering, [OrderingEdge { before: named("w0"), after: named("g1") }]);
    assert_eq!(graph.clusters[0].members, [named("g0"), named("w0")]);

    let ranks = outcome(&examples[1]).result.unwrap();
    assert_eq!((ranks.len(), ranks[0].rank, ranks[0].repaired.len()), (1, 0, 2));
    assert_eq!(outcome(&examples[2]).result.unwrap_err(), "group dp has no instances");

    for example in examples {
        let once = document_text(&json::read(example.as_bytes()).unwrap());
        assert_eq!(document_text(&json::read(once.as_bytes()).unwrap()), once);
    }
}

#[test]
fn an_outcome_is_written_and_read() {
    let graph = |name: &str| {
        let mut graph = Graph::new(name);
        graph.push("x", Op::Placeholder, "x");
        graph
    };
    let rank = |rank, unrepaired| json::RankOutcome {
        rank,
        unrepaired,
        repaired: graph("after"),
        extra: vec![("seconds".to_string(), "0.5".to_string())],
    };
    let outcome = json::Outcome {
        name: "o".to_string(),
        pass: "bucketing".to_string(),
        result: Ok(vec![rank(3, Some(graph("between"))), rank(0, None)]),
        extra: vec![("torch".to_string(), "\"2.15\"".to_string())],
    };
    let text = document_text(&Document::Outcome(outcome.clone()));
    let again = json::read(text.as_bytes()).unwrap().into_outcome().unwrap();
    assert_eq!(document_text(&Document::Outcome(again.clone())), text);
    assert_eq!((again.name, again.pass, again.extra), (outcome.name, outcome.pass, outcome.extra));
    let ranks = again.result.unwrap();
    assert_eq!(
        ranks.iter().map(|r| (r.rank, r.unrepaired.is_some())).collect::<Vec<_>>(),
        [(3, true), (0, false)]
    );
    assert_eq!(ranks[0].unrepaired.as_ref().unwrap().name, "between");
    assert_eq!(ranks[1].extra, [("seconds".to_string(), "0.5".to_string())]);
}

/// A graph as a pass makes it: a new collective without recorded storages.
fn made_by_a_pass() -> Graph {
    let mut graph = Graph::new("made");
    let device = graph.intern("cpu");
    let x = graph.push("x", Op::Placeholder, "x");
    graph.node_mut(x).out = graph.contiguous(&[4], Dtype::F32, device);
    let gather = graph.push("g", Op::Call, "_c10d_functional.all_gather_into_tensor.default");
    let group = graph.intern("dp");
    graph.node_mut(gather).args = graph.push_values(&[Value::Node(x), Value::Int(2), Value::Str(group)]);
    graph.node_mut(gather).out = graph.contiguous(&[8], Dtype::F32, device);
    let wait = graph.push("w", Op::Call, "_c10d_functional.wait_tensor.default");
    graph.node_mut(wait).args = graph.push_values(&[Value::Node(gather)]);
    graph.node_mut(wait).out = graph.contiguous(&[8], Dtype::F32, device);
    let odd = graph.push("odd", Op::Call, "mine.odd.default");
    graph.node_mut(odd).args = graph.push_values(&[Value::Node(wait)]);
    graph
}

#[test]
fn a_graph_made_by_a_pass_is_complete_for_readers() {
    let graph = made_by_a_pass();
    let text = written(&graph);
    let again = read(&text);
    assert_eq!(graph.difference(&again), None);
    assert_eq!(written(&again), text);
    let parsed: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(parsed["schema_version"], "graph-oracle/1");
    let facts = parsed["ops"].as_object().unwrap();
    let targets: Vec<&str> = facts.keys().map(String::as_str).collect();
    assert_eq!(
        targets,
        ["_c10d_functional.all_gather_into_tensor.default", "_c10d_functional.wait_tensor.default"],
        "known targets that are called, not inputs and not unknown ones"
    );
    assert_eq!(
        facts["_c10d_functional.wait_tensor.default"],
        json!({
            "kind": "op",
            "namespace": "_c10d_functional",
            "schema": "_c10d_functional::wait_tensor(Tensor tensor) -> Tensor",
            "args": [{"name": "tensor", "type": "Tensor"}],
            "returns": [{"type": "Tensor"}],
            "is_mutable": false,
            "mutated_args": [],
            "ret_aliases_arg": [],
            "is_view": false
        })
    );
}

/// Facts made from the table say what the recorders say about the same operator.
#[test]
fn facts_of_the_table_are_those_of_the_recorded_graphs() {
    let mut recorded = std::collections::BTreeMap::new();
    for path in super::corpus().iter().chain(&super::recorded()) {
        for (target, facts) in &read(super::unpacked(path)).facts {
            recorded.insert(target.clone(), facts.clone());
        }
    }
    let mut compared = 0;
    for (target, facts) in &recorded {
        if ops::by_target(target).is_none() {
            continue;
        }
        let mut graph = Graph::new("one");
        graph.push("n", Op::Call, target);
        let made: Json = serde_json::from_str(&written(&graph)).unwrap();
        let mut made = made["ops"][target].clone();
        let mut facts: Json = serde_json::from_str(facts).unwrap();
        for key in ["tags", "torch_is_view"] {
            facts.as_object_mut().unwrap().remove(key);
        }
        // Names of results are not kept in the table; PyTorch's text has them.
        if let (Some(ours), Some(theirs)) = (made["schema"].as_str(), facts["schema"].as_str()) {
            let parse = |text: &str| ops::Schema::parse(text).unwrap();
            assert_eq!(parse(ours), parse(theirs), "{target}");
            made["schema"] = facts["schema"].clone();
        }
        assert_eq!(made, facts, "{target}");
        compared += 1;
    }
    println!("compared the facts of {compared} targets");
    // The graphs in the repository alone have 45.
    assert!(compared >= 40, "{compared}");
}

#[test]
fn the_version_is_the_lowest_that_holds_the_graph() {
    let recorded = read(super::unpacked(&super::corpus()[0]));
    let version = |graph: &Graph| {
        let parsed: Json = serde_json::from_str(&written(graph)).unwrap();
        assert_eq!(graph.difference(&read(written(graph))), None);
        parsed["schema_version"].as_str().unwrap().to_string()
    };
    assert_eq!(version(&recorded), "fxjson/1");
    let changes: [fn(&mut Graph); 6] = [
        |graph| graph.world.ranks = Some(16),
        |graph| graph.world.groups[0].instances = vec![(0..8).collect(), (8..16).collect()],
        |graph| graph.world.groups[0].recorded_rank = None,
        |graph| graph.ordering.push(OrderingEdge { before: NodeId(1), after: NodeId(9) }),
        |graph| graph.renames.push(Rename { by: NodeId(9), of: NodeId(1) }),
        |graph| graph.node_mut(NodeId(20)).out = made_by_a_pass_out(graph),
    ];
    for change in changes {
        let mut graph = recorded.clone();
        change(&mut graph);
        assert_eq!(version(&graph), "graph-oracle/1");
    }
}

fn made_by_a_pass_out(graph: &mut Graph) -> graph_oracle::graph::Out {
    let device = graph.intern("cpu");
    graph.contiguous(&[2, 3], Dtype::BF16, device)
}

#[test]
fn a_group_that_lists_its_ranks_needs_no_size() {
    let text = r#"{"schema_version":"graph-oracle/1","groups":{"tp":{"ranks":[[3,1],[0,2]]}},"nodes":[]}"#;
    let graph = read(text);
    assert_eq!((graph.world.groups[0].size, graph.world.groups[0].recorded_rank), (2, None));
    // A rank twice is a fault of the world, not of the text.
    let graph = read(text.replace("[3,1]", "[3,3]"));
    assert_eq!(graph.world.faults().len(), 1);
}
