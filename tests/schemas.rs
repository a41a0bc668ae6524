//! The schemas of our documents: each is explained, and what the program prints has the keys that they require.
//!
//! A reader of a few words of JSON Schema, those that say which keys there are. All of a schema is checked by
//! tests/formats.py, which needs Python.

use crate::common::{Scratch, program, text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The schemas by the versions that they are of, such as `graph-oracle-report/2`.
fn schemas() -> BTreeMap<String, Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schemas");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let (name, version) = name.strip_suffix(".schema.json").unwrap().rsplit_once('-').unwrap();
        let schema: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(schema["$id"], format!("urn:graph-oracle:{name}:{version}"));
        (format!("graph-oracle-{name}/{version}"), schema)
    };
    files.map(read).collect()
}

/// The places at which a document lacks a key that is required, or has another constant.
fn faults(root: &Value, schema: &Value, document: &Value, at: &str, found: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        return faults(root, &root["$defs"][name.rsplit('/').next().unwrap()], document, at, found);
    }
    if let Some(wanted) = schema.get("const").filter(|wanted| *wanted != document) {
        found.push(format!("{at}: not {wanted}"));
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let each = any.iter().map(|one| {
            let mut found = Vec::new();
            faults(root, one, document, at, &mut found);
            found
        });
        found.extend(each.min_by_key(Vec::len).unwrap_or_default());
    }
    if let (Some("object"), false) = (schema["type"].as_str(), document.is_object()) {
        found.push(format!("{at}: no object"));
    }
    for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if document.get(key).is_none() {
            found.push(format!("{at}: lacks {key}"));
        }
    }
    for (key, below) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(value) = document.get(key) {
            faults(root, below, value, &format!("{at}.{key}"), found);
        }
    }
    for (i, item) in document.as_array().into_iter().flatten().enumerate() {
        if let Some(below) = schema.get("items") {
            faults(root, below, item, &format!("{at}[{i}]"), found);
        }
    }
}

#[test]
fn what_is_printed_has_the_keys_of_its_schema() {
    let schemas = schemas();
    let scratch = Scratch::new("schemas");
    let graph = "corpus/dependent_gathers.graph";
    let joint = "corpus/real/partition/small_gpt_joint.json.gz";
    let events = scratch.write("events.jsonl", &program(&["lifecycle", "--graph", joint]).stdout);
    let dump = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/dumps/flight.json")).unwrap();
    let dump = scratch.write("fr_0.json", &dump);
    let parts = scratch.path("parts");
    let fuzz = [
        "fuzz",
        "bucketing",
        "--candidate",
        "pr158663",
        "--cases",
        "2",
        "--jobs",
        "1",
        "--reduce-seconds",
        "0",
    ];
    let mut seen: Vec<&str> = Vec::new();
    for (arguments, version) in [
        (&["check", "bucketing", graph, "--candidate", "reference"][..], "graph-oracle-report/2"),
        (&["check", "bucketing", graph, "--candidate", "pr158663"], "graph-oracle-report/2"),
        (&["check", "memory", joint, "--candidate", "reference"], "graph-oracle-report/2"),
        (&["check", "schedule", "tests/cases/schedule/exposed_time_hidden.graph"], "graph-oracle-report/2"),
        (&fuzz, "graph-oracle-summary/1"),
        (&[&fuzz[..], &["--against", "reference"]].concat(), "graph-oracle-diff/1"),
        (&["simulate", graph], "graph-oracle-simulation/1"),
        (&["simulate", graph, "--flight", &dump], "graph-oracle-flight/1"),
        (&["trace", "corpus/printed_graphs/logs.txt"], "graph-oracle-trace/1"),
        (&["lifecycle", &events], "graph-oracle-lifecycle/1"),
        (&["lifecycle", "corpus/dumps/snapshot.json"], "graph-oracle-snapshot/1"),
        (&["smoke", graph], "graph-oracle-smoke/1"),
        (&["run", "partition", joint, "-o", &parts], "graph-oracle-saved/1"),
        (&["rules"], "graph-oracle-catalogue/1"),
    ] {
        let output = program(&[arguments, &["--format", "json"]].concat());
        let document: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr)));
        let schema = &schemas[version];
        let mut found = Vec::new();
        faults(schema, schema, &document, "$", &mut found);
        assert!(found.is_empty(), "{arguments:?}: {found:?}");
        // And it does require something.
        let empty = if document.is_array() { serde_json::json!([{}]) } else { serde_json::json!({}) };
        faults(schema, schema, &empty, "$", &mut found);
        assert!(found.len() > 1, "{version} requires nothing");
        seen.push(version);
    }
    let unseen: Vec<&String> = schemas.keys().filter(|version| !seen.contains(&version.as_str())).collect();
    assert!(unseen.is_empty(), "nothing was held against {unseen:?}");
}

/// docs/report.md lists the documents, and those that it lists have a schema.
#[test]
fn every_document_has_a_schema() {
    let docs = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/report.md")).unwrap();
    let rows = docs.lines().filter_map(|line| line.strip_prefix("| `graph-oracle-"));
    let listed: Vec<String> =
        rows.map(|row| format!("graph-oracle-{}", row.split('`').next().unwrap())).collect();
    let mut known: Vec<String> = schemas().into_keys().collect();
    let mut sorted = listed.clone();
    sorted.sort();
    known.sort();
    assert_eq!(sorted, known);
}
