//! A document that is read by several threads is the same, id for id, as one that is read from its first byte to the
//! last; and what cannot be read so is read, or refused, as ever.

use super::random_graphs::arbitrary_graph;
use super::{corpus, read, recorded, unpacked, written};
use fuzzing::json_format::check_blocks;
use graph_oracle::format::json::{self, Document};
use proptest::prelude::*;
use std::path::PathBuf;

/// Reads each file in about so many blocks.
fn same_in_blocks(files: &[PathBuf], numbers: impl Fn(usize) -> Vec<usize>) {
    for (index, path) in files.iter().enumerate() {
        let text = unpacked(path);
        for number in numbers(index) {
            assert!(check_blocks(&text, text.len() / number), "{}: not in {number} blocks", path.display());
        }
    }
}

#[test]
fn graphs_of_the_corpus() {
    let files = corpus();
    assert_eq!(files.len(), 6);
    same_in_blocks(&files, |_| vec![1, 2, 3, 7, 1000]);
}

#[test]
fn recorded_graphs() {
    same_in_blocks(&recorded(), |index| vec![[2, 3, 7][index % 3]]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn random_graphs(graph in arbitrary_graph()) {
        let text = written(&graph);
        for least in [1, 300, text.len() / 2] {
            prop_assert!(check_blocks(text.as_bytes(), least), "{}", text);
        }
    }
}

const HEAD: &str = r#"{
"schema_version":"graph-oracle/1",
"renames":[{"by":"b","of":"late"}],
"clusters":[{"name":"c","members":["late","b"]}],
"num_nodes":6,
"nodes":[
"#;

/// A name twice, references to earlier and later nodes, to a later node of a name that an earlier one has, to none.
const NODES: [&str; 6] = [
    r#"{"name":"a","op":"placeholder","target":"t","args":[]}"#,
    r#"{"name":"b","op":"call_function","target":"u","args":[{"ref":"a"},{"ref":"late"},[{"ref":"missing"}],[]]}"#,
    r#"{"name":"a","op":"call_function","target":"t","args":[[{"ref":"a"}],{"ref":"b"}],"after":["b","late"]}"#,
    r#"{"name":"c","op":"call_function","target":"v","args":[{"ref":"a"},"text",{"sym":"s0*2","hint":4}],"out":{"t":"tensor","shape":[{"sym":"s0","hint":2},3],"stride":[3,1],"dtype":"int8","device":"cpu","x":1}}"#,
    r#"{"name":"late","op":"call_function","target":"u","kwargs":{"a":{"ref":"late"},"b":{"ref":"c"}},"out":[null,{"t":"tensor","shape":[3],"stride":[1],"dtype":"int8","device":"cpu","y":2},{"t":"symint","sym":"s0*2","hint":4}],"tags":{"seq_nr":1},"after":["a"]}"#,
    r#"{"name":"output","op":"output","target":"output","args":[{"ref":"a"},{"ref":"late"}],"tags":{"seq_nr":1}}"#,
];
const TAIL: &str = "\n],\n\"more\":[1]\n}\n";

fn base() -> String {
    [HEAD, &NODES.join(",\n"), TAIL].concat()
}

#[test]
fn names_that_several_blocks_use() {
    for least in [1, 100, 150, 250, 400] {
        assert!(check_blocks(base().as_bytes(), least));
    }
}

/// A document that is not what its blocks make of it: it is not read in blocks, and the whole is read with this result.
fn as_a_whole(what: &str, text: &str, expected: Result<usize, &str>) {
    assert!(!check_blocks(text.as_bytes(), 1), "{what}: read in blocks");
    let found = json::read(text.as_bytes());
    match (found, expected) {
        (Ok(Document::Graph(graph)), Ok(nodes)) => assert_eq!(graph.len(), nodes, "{what}"),
        (Ok(Document::Outcome(outcome)), Ok(graphs)) => {
            assert_eq!(outcome.result.map(|ranks| ranks.len()), Ok(graphs), "{what}");
        }
        (Err(error), Err(message)) => assert_eq!(error.to_string(), message, "{what}"),
        (found, _) => panic!("{what}: {found:?}"),
    }
}

#[test]
fn what_cannot_be_read_in_blocks() {
    let base = base();
    let with = |old: &str, new: &str| {
        assert!(base.contains(old), "{old}");
        base.replacen(old, new, 1)
    };
    as_a_whole("on one line", &base.replace('\n', ""), Ok(6));
    as_a_whole("other line ends", &base.replace('\n', "\r\n"), Ok(6));
    as_a_whole("a space", &with("\"nodes\":[", "\"nodes\": ["), Ok(6));
    as_a_whole("an escaped key", &with("\"nodes\":[", "\"nod\\u0065s\":["), Ok(6));
    as_a_whole("what looks like the end", &with("[{\"ref\":\"a\"},", "[[{\"ref\":\"a\"}\n],"), Ok(6));
    as_a_whole("no nodes", "{\"schema_version\":\"fxjson/1\",\n\"nodes\":[\n\n]}", Ok(0));
    as_a_whole(
        "keys first",
        &with("\"num_nodes\"", "\"z\":{\"nodes\":[\n{\"name\":1}\n]},\n\"num_nodes\""),
        Ok(6),
    );
    let inner = "\"schema_version\":\"graph-oracle/1\",\"z\":{";
    let twice = with("\"more\"", "\"nodes\":[\n{}\n],\"more\"");
    as_a_whole("nodes twice", &twice, Err("14:7: key \"nodes\" twice"));
    let list = format!("{{{inner}\"nodes\":[\n{}\n]}}}}", NODES[0]);
    as_a_whole("only inside", &list, Err("3:3: a graph without nodes: the key \"nodes\" is missing"));
    let null = format!("{{{inner}\"nodes\":[\n{}\n]}},\"nodes\":null}}", NODES[0]);
    as_a_whole("null", &null, Err("3:15: invalid type: null, expected a list of nodes"));
}

#[test]
fn faults_are_told_as_ever() {
    let base = base();
    let with = |old: &str, new: &str| {
        assert!(base.contains(old), "{old}");
        base.replacen(old, new, 1)
    };
    let several = "10:201: node \"c\": shape has 2 dimensions, stride has 1";
    as_a_whole("in a node", &with("[3,1]", "[3]"), Err(several));
    as_a_whole(
        "no comma",
        &with("\"u\",\"args\"", "\"u\" \"args\""),
        Err("8:47: node \"b\": expected `,` or `}`"),
    );
    as_a_whole(
        "no comma after a node",
        &with("\"args\":[]},\n", "\"args\":[]}\n"),
        Err("8:1: expected `,` or `]`"),
    );
    as_a_whole("two commas", &with("\"args\":[]},\n", "\"args\":[]},,\n"), Err("7:56: expected value"));
    as_a_whole("a comma at the end", &with("}\n],", "},\n],"), Err("13:1: trailing comma"));
    as_a_whole(
        "no node on a line",
        &with("{\"name\":\"b\"", "1,\n{\"name\":\"b\""),
        Err("8:1: invalid type: integer `1`, expected a node (an object)"),
    );
    as_a_whole(
        "a bracket less",
        &with("],\n\"more\"", ",\n\"more\""),
        Err("14:6: invalid type: string \"more\", expected a node (an object)"),
    );
    as_a_whole("a bracket more", &with("}\n],", "}\n]],"), Err("13:2: expected `,` or `}`"));
    as_a_whole(
        "a list in a list",
        &with("[\n{", "[[\n{").replace("}\n]", "}\n]]"),
        Err("6:9: invalid type: sequence, expected a node (an object)"),
    );
    as_a_whole(
        "a bracket between",
        &with("\"args\":[]},\n", "\"args\":[]}],[\n"),
        Err("7:55: num_nodes is 6, but there are 1 nodes"),
    );
    as_a_whole("more text", &format!("{base}]"), Err("16:1: trailing characters"));
    as_a_whole(
        "the text ends",
        &base[..base.len() - 40],
        Err("12:82: node \"output\": args: EOF while parsing an object"),
    );
    as_a_whole("other number", &with(":6", ":5"), Err("13:1: num_nodes is 5, but there are 6 nodes"));
    as_a_whole(
        "after nothing",
        &with("\"after\":[\"a\"]", "\"after\":[\"z\"]"),
        Err("11:252: node \"late\": after names \"z\", but no node has that name"),
    );
    as_a_whole(
        "a rename of nothing",
        &with("\"of\":\"late\"", "\"of\":\"z\""),
        Err("3:28: renames: of names \"z\", but no node has that name"),
    );
    as_a_whole(
        "a raw line end in a string",
        &with("\"text\"", "\"},\n{\""),
        Err("11:1: node \"c\": args: control character (\\u0000-\\u001F) found while parsing a string"),
    );
}

#[test]
fn nesting_has_one_limit() {
    let nested = |depth: usize| {
        let list = ["[".repeat(depth), "]".repeat(depth)].concat();
        let node = format!("{{\"name\":\"n\",\"op\":\"output\",\"target\":\"t\",\"args\":{list}}}");
        format!("{{\"schema_version\":\"fxjson/1\",\"nodes\":[\n{node}\n]}}")
    };
    let deepest = (1..200).rev().find(|&depth| json::read(nested(depth).as_bytes()).is_ok()).unwrap();
    assert!(check_blocks(nested(deepest).as_bytes(), 1));
    assert!(!check_blocks(nested(deepest + 1).as_bytes(), 1));
}

#[test]
fn outcomes_are_read_as_a_whole() {
    let graph = base().replace("\"schema_version\":\"graph-oracle/1\",\n", "");
    let ranks =
        format!("\"ranks\":[{{\"rank\":0,\"repaired\":{graph}}},{{\"rank\":1,\"repaired\":{graph}}}]");
    let outcome =
        format!("{{\"schema_version\":\"graph-oracle/1\",\"kind\":\"outcome\",\"pass\":\"p\",{ranks}}}");
    as_a_whole("an outcome", &outcome, Ok(2));
    let kept =
        format!("{{\"schema_version\":\"graph-oracle/1\",\"kind\":\"outcome\",\"z\":{graph},\"ranks\":[]}}");
    as_a_whole("a graph that an outcome keeps as text", &kept, Ok(0));
}

/// A document of more than 1 MB, with another line instead of node `index`.
fn large(index: usize, line: &str) -> String {
    let node = |i: usize| {
        format!(
            r#"{{"name":"n{i}","op":"call_function","target":"aten.add.Tensor","args":[{{"ref":"n{}"}},{{"ref":"n{}"}}],"stack":"{}"}}"#,
            i / 2,
            (i * 7) % 5000,
            "s".repeat(150)
        )
    };
    let nodes: Vec<String> = (0..5000).map(|i| if i == index { line.to_string() } else { node(i) }).collect();
    format!("{{\"schema_version\":\"fxjson/1\",\n\"nodes\":[\n{}\n]}}", nodes.join(",\n"))
}

#[test]
fn large_documents_are_the_same_for_any_number_of_threads() {
    let output = r#"{"name":"output","op":"output","target":"output"}"#;
    let text = large(4999, output);
    assert!(text.len() > 1 << 20 && check_blocks(text.as_bytes(), 1 << 17));
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| read(&text))
    };
    let one = with(1);
    for threads in [2, 3, 8] {
        assert!(one.is_identical(&with(threads)), "{threads} threads");
    }
    assert_eq!(written(&one), written(&read(&text)));
    // The fault is in one of the last blocks.
    let error = json::read(large(4000, r#"{"name":"bad","op":"call"}"#).as_bytes()).unwrap_err();
    let message = r#"4003:25: node "bad": op: unknown kind of node "call""#;
    assert!(error.to_string().starts_with(message), "{error}");
}
