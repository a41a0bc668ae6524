//! Bad input: one clear line with file, line and column; never a panic.

use flate2::write::GzEncoder;
use graph_oracle::files;
use graph_oracle::format::json;
use std::io::Write;

const BASE: &str = r#"{
"schema_version":"graph-oracle/1",
"name":"base",
"kind":"forward",
"groups":{"dp":{"size":2,"rank":0}},
"symbols":{"s0":{"hint":4,"range":["2","int_oo"],"unbacked":false}},
"num_nodes":3,
"ops":{"aten.relu.default":{"kind":"op"}},
"nodes":[
{"name":"x","op":"placeholder","target":"x","out":{"t":"tensor","shape":[4,2],"dtype":"float32","device":"cpu","stride":[2,1],"storage":0,"storage_bytes":32}},
{"name":"mm_3","op":"call_function","target":"aten.relu.default","args":[{"ref":"x"}],"kwargs":{"k":1},"out":{"t":"tensor","shape":[4,2],"dtype":"float64","device":"cpu","stride":[2,1]},"tags":{"seq_nr":1},"after":["x"]},
{"name":"output","op":"output","target":"output","args":[[{"ref":"mm_3"}]]}
]
}"#;

/// The message for `text` as a file of that name; it must be one line of bounded length.
fn message(text: impl AsRef<[u8]>) -> String {
    let Err(error) = json::read(text.as_ref()) else {
        panic!("accepted: {:.200}", String::from_utf8_lossy(text.as_ref()));
    };
    let line = error.in_file("after.json").to_string();
    assert!(!line.contains('\n') && line.chars().count() < 400, "{line}");
    line
}

/// The message after replacing `old`, which must be there, by `new`.
fn with(old: &str, new: &str) -> String {
    assert!(BASE.contains(old), "{old}");
    message(BASE.replacen(old, new, 1))
}

#[test]
fn the_base_is_accepted() {
    assert!(json::read(BASE.as_bytes()).is_ok());
}

/// Line and column of the last byte of `marker`, which must be in `text` once.
fn end_of(text: &str, marker: &str) -> String {
    assert_eq!(text.matches(marker).count(), 1, "{marker} in {text}");
    let before = &text[..text.find(marker).unwrap() + marker.len()];
    let line = before.matches('\n').count() + 1;
    format!("{line}:{}", before.len() - before.rfind('\n').unwrap_or(0) - usize::from(line > 1))
}

#[test]
fn faults_name_the_place_and_the_node() {
    for (old, new, place, expected) in [
        (r#""float64""#, r#""float31""#, r#""float31""#, r#"node "mm_3": unknown dtype "float31""#),
        ("[4,2]", "[-4,2]", "[-4", r#"node "x": shape: -4 is not between 0 and 9223372036854775807"#),
        (
            "[4,2]",
            "[9223372036854775808]",
            "[9223372036854775808",
            r#"node "x": shape: 9223372036854775808 is not between 0 and 9223372036854775807"#,
        ),
        ("[2,1]", "[2]", r#""storage_bytes":32}"#, r#"node "x": shape has 2 dimensions, stride has 1"#),
        (
            "[4,2]",
            "[4611686018427387904,1]",
            r#""storage_bytes":32}"#,
            r#"node "x": shape has more than 9223372036854775807 bytes"#,
        ),
        (
            r#"[{"ref":"x"}]"#,
            r#"{"ref":"x"}"#,
            r#""aten.relu.default","args":"#,
            r#"node "mm_3": args: invalid type: map, expected a list of argument values"#,
        ),
        (
            r#"{"ref":"x"}"#,
            r#"{"reff":"x"}"#,
            r#""reff""#,
            r#"node "mm_3": args: unknown argument value {"reff": ...}"#,
        ),
        (
            r#""after":["x"]"#,
            r#""after":["x","q"]"#,
            r#""after":["x","q"#,
            r#"node "mm_3": after names "q", but no node has that name"#,
        ),
        (r#""num_nodes":3"#, r#""num_nodes":4"#, "]\n}", "num_nodes is 4, but there are 3 nodes"),
        (
            "graph-oracle/1",
            "fxjson/9",
            r#""fxjson/9""#,
            r#"schema_version: unknown version "fxjson/9" (known: fxjson/1, graph-oracle/1)"#,
        ),
    ] {
        let text = BASE.replacen(old, new, 1);
        assert_eq!(message(&text), format!("after.json:{}: {expected}", end_of(&text, place)));
    }
}

#[test]
fn wrong_types_anywhere() {
    for (old, new, expected) in [
        (r#""base""#, "7", "name: invalid type: integer `7`, expected a string"),
        (r#""forward""#, "null", "kind: invalid type: null, expected a string"),
        (r#"{"dp":{"size":2,"rank":0}}"#, "[]", "groups: invalid type: sequence, expected an object"),
        (
            r#"{"size":2,"rank":0}"#,
            "2",
            r#"process group "dp": invalid type: integer `2`, expected an object"#,
        ),
        (r#""size":2"#, r#""size":"2""#, r#"process group "dp": size: invalid type: string "2""#),
        (r#""rank":0"#, r#""rank":-1"#, r#"process group "dp": rank: -1 is not between 0 and 4294967295"#),
        (r#"["2","int_oo"]"#, "[2,3]", r#"symbol "s0": range: invalid type: integer `2`"#),
        (r#""hint":4"#, r#""hint":4.5"#, r#"symbol "s0": hint: invalid type: floating point `4.5`"#),
        (r#""unbacked":false"#, r#""unbacked":0"#, r#"symbol "s0": unbacked: invalid type: integer `0`"#),
        (r#""num_nodes":3"#, r#""num_nodes":-3"#, "num_nodes: -3 is not between 0"),
        (r#""num_nodes":3"#, r#""num_nodes":3.0"#, "num_nodes: invalid type: floating point `3.0`"),
        (r#"{"kind":"op"}"#, "[]", "ops: aten.relu.default: facts must be an object"),
        (r#"{"name":"x","op""#, r#"7,{"name":"x","op""#, "invalid type: integer `7`, expected a node"),
        (r#"{"name":"x","#, r#"{"name":1,"#, "node at index 0: name: invalid type: integer `1`"),
        (r#"{"name":"x","#, "{", r#"node at index 0: no "name""#),
        (
            r#""op":"placeholder""#,
            r#""op":"call_module""#,
            r#"op: unknown kind of node "call_module" (known: pl"#,
        ),
        (r#""op":"placeholder","#, "", r#"node "x": no "op""#),
        (r#""target":"x","#, "", r#"node "x": no "target""#),
        (r#""target":"x""#, r#""target":["x"]"#, r#"node "x": target: invalid type: sequence"#),
        (
            r#"{"k":1}"#,
            "[1]",
            r#"node "mm_3": kwargs: invalid type: sequence, expected an object of keyword"#,
        ),
        (r#"{"k":1}"#, r#"{"k":{"fn":1}}"#, r#"node "mm_3": kwargs: k: invalid type: integer `1`"#),
        (r#"{"seq_nr":1}"#, "[]", r#"node "mm_3": tags: invalid type: sequence"#),
        (
            r#"{"seq_nr":1}"#,
            r#"{"seq_nr":true}"#,
            r#"node "mm_3": tags: seq_nr: invalid type: boolean `true`"#,
        ),
        (r#""after":["x"]"#, r#""after":"x""#, r#"node "mm_3": after: invalid type: string "x""#),
        (r#""after":["x"]"#, r#""stack":3"#, r#"node "mm_3": stack: invalid type: integer `3`"#),
        (
            r#""t":"tensor""#,
            r#""t":"tensr""#,
            r#"node "x": t: unknown kind of result "tensr" (known: tensor"#,
        ),
        (r#""t":"tensor","#, "", r#"node "x": a result without "t""#),
        (r#""t":"tensor""#, r#""t":"int","value":3"#, r#"node "x": an int has no "shape""#),
        (r#""dtype":"float32","#, "", r#"node "x": a tensor without "dtype""#),
        (r#""storage":0"#, r#""storage":-1"#, r#"node "x": storage: -1 is not between 0 and 4294967295"#),
        (
            r#""storage_bytes":32"#,
            r#""storage_bytes":32.5"#,
            r#"node "x": storage_bytes: invalid type: floating"#,
        ),
        (r#""storage_bytes":32"#, r#""offset":-8"#, r#"node "x": offset: -8 is not between 0 and"#),
        (
            r#""shape":[4,2]"#,
            r#""shape":4"#,
            r#"node "x": shape: invalid type: integer `4`, expected a list of"#,
        ),
        (
            r#""shape":[4,2]"#,
            r#""shape":[{"hint":4},2]"#,
            r#"node "x": shape: a symbolic value without "sym""#,
        ),
        (r#""shape":[4,2]"#, r#""shape":[{"sym":"s0","x":4},2]"#, r#"unexpected key "x" beside "sym""#),
    ] {
        let message = with(old, new);
        assert!(message.contains(expected), "{message}\nlacks {expected}");
        assert!(message.starts_with("after.json:") && !message.starts_with("after.json: "), "{message}");
    }
}

#[test]
fn bad_argument_values() {
    for (value, expected) in [
        (r#"{"dtype":"int7"}"#, r#"unknown dtype "int7""#),
        (r#"{"float":"big"}"#, r#"unknown float "big" (known: inf, -inf, nan)"#),
        (r#"{"complex":[1]}"#, "a complex number is a list of two numbers"),
        (r#"{"complex":["a",1]}"#, "a complex number is a list of two numbers"),
        (r#"{"slice":[1,2]}"#, "a slice has 3 parts, got 2"),
        (r#"{"slice":3}"#, "invalid type: integer `3`"),
        (r#"{"dict":{"a":1}}"#, "invalid type: map, expected a list of [key, value] pairs"),
        (r#"{"dict":[[1,2,3]]}"#, "a [key, value] pair has 2 parts, got 3"),
        (r#"{"sym":"s0","hint":"4"}"#, r#"hint: invalid type: string "4""#),
        (r#"{"ref":"x","ref":"x"}"#, r#"key "ref" twice"#),
        (r#"{"ref":"x","hint":1}"#, r#"unexpected key "hint" beside "ref""#),
        (r#"{"sym":"s0","ref":"x"}"#, r#"unexpected key "ref" beside "sym""#),
        ("{}", "unknown argument value {}"),
        ("18446744073709551615", "18446744073709551615 is not between"),
        ("1e999", "number out of range"),
    ] {
        let message = with(r#"{"ref":"x"}"#, value);
        assert!(message.contains(&format!("node \"mm_3\": args: {expected}")), "{message}\nlacks {expected}");
    }
}

#[test]
fn duplicate_keys() {
    for (old, new, expected) in [
        (r#""name":"base""#, r#""name":"base","name":"base""#, r#"key "name" twice"#),
        (r#""name":"base""#, r#""torch":"1","torch":"2""#, r#"key "torch" twice"#),
        (r#"{"name":"x""#, r#"{"name":"x","name":"y""#, r#"node "x": key "name" twice"#),
        (r#"{"name":"x""#, r#"{"name":"x","u":1,"u":1"#, r#"node "x": key "u" twice"#),
        (r#"{"k":1}"#, r#"{"k":1,"k":1}"#, r#"node "mm_3": kwargs: key "k" twice"#),
        (r#"{"seq_nr":1}"#, r#"{"seq_nr":1,"seq_nr":1}"#, r#"tags: key "seq_nr" twice"#),
        (r#""t":"tensor""#, r#""t":"tensor","t":"tensor""#, r#"node "x": key "t" twice"#),
        (r#"{"dp":{"#, r#"{"dp":{"size":3},"dp":{"#, r#"process group "dp" twice"#),
        (r#""size":2"#, r#""size":2,"size":2"#, r#"process group "dp": key "size" twice"#),
        (r#"{"s0":{"#, r#"{"s0":{"hint":3},"s0":{"#, r#"symbol "s0" twice"#),
        (r#"{"aten.relu"#, r#"{"aten.relu.default":{},"aten.relu"#, r#"target "aten.relu.default" twice"#),
    ] {
        let message = with(old, new);
        assert!(message.contains(expected), "{message}\nlacks {expected}");
    }
}

#[test]
fn groups_of_no_or_too_many_ranks() {
    for (group, expected) in [
        (r#"{"size":0}"#, "size: 0 is not between 1 and 4294967295"),
        (r#"{"size":4294967296}"#, "size: 4294967296 is not between 1 and 4294967295"),
        (r#"{"ranks":[[]]}"#, r#"no "size", and its first instance has no ranks"#),
        (r#"{}"#, r#"neither "size" nor "ranks""#),
        (r#"{"ranks":[[4294967296]]}"#, "ranks: invalid value: integer `4294967296`, expected u32"),
        (r#"{"ranks":[0,1]}"#, "ranks: invalid type: integer `0`, expected a sequence"),
    ] {
        let message = with(r#"{"size":2,"rank":0}"#, group);
        assert!(
            message.contains(&format!("process group \"dp\": {expected}")),
            "{message}\nlacks {expected}"
        );
    }
    for (world, expected) in [
        (r#"{"ranks":-1}"#, "world: invalid value: integer `-1`, expected u32"),
        (r#"{}"#, "world: missing field `ranks`"),
        (r#"{"ranks":1,"size":1}"#, "world: unknown field `size`, expected `ranks`"),
    ] {
        let message = with(r#""num_nodes":3"#, &format!(r#""world":{world}"#));
        assert!(message.contains(expected), "{message}\nlacks {expected}");
    }
}

#[test]
fn names_that_no_node_has() {
    let rename = r#""renames":[{"by":"mm_3","of":"y"}]"#;
    assert_eq!(
        with(r#""num_nodes":3"#, rename),
        r#"after.json:7:31: renames: of names "y", but no node has that name"#
    );
    let cluster = r#""clusters":[{"name":"c","members":["x","\u0079"]}]"#;
    let message = with(r#""num_nodes":3"#, cluster);
    assert!(message.contains(r#"cluster "c" names "y", but no node has that name"#), "{message}");
}

#[test]
fn bad_outcomes() {
    let document =
        |rest: &str| message(format!(r#"{{"schema_version":"graph-oracle/1","kind":"outcome",{rest}}}"#));
    for (rest, expected) in [
        (r#""pass":"p""#, r#"an outcome has either "ranks" or "refused""#),
        (r#""ranks":[],"refused":"r""#, r#"an outcome has either "ranks" or "refused""#),
        (r#""refused":"r","nodes":[]"#, r#"an outcome has no "nodes""#),
        (r#""ranks":[{"rank":0}]"#, r#"ranks: 0: no "repaired""#),
        (r#""ranks":[{"repaired":{"nodes":[]}}]"#, r#"ranks: 0: no "rank""#),
        (r#""ranks":[{"rank":0,"repaired":{}}]"#, "ranks: 0: repaired: a graph without nodes"),
        (r#""ranks":[{"rank":0,"repaired":{"kind":"outcome"}}]"#, "repaired: an outcome inside an outcome"),
        (
            r#""ranks":[{"rank":0,"repaired":{"nodes":[]}},{"rank":0,"repaired":{"nodes":[]}}]"#,
            "ranks: rank 0 twice",
        ),
    ] {
        let message = document(rest);
        assert!(message.contains(expected), "{message}\nlacks {expected}");
    }
    let message = message(r#"{"schema_version":"graph-oracle/1","pass":"p","kind":"outcome","refused":"r"}"#);
    assert!(message.contains(r#""pass" of an outcome must come after "kind""#), "{message}");
}

#[test]
fn documents_that_are_none() {
    assert_eq!(message(""), "after.json: the file is empty");
    assert_eq!(message(" \n "), "after.json: the file is empty");
    assert_eq!(
        message("[]"),
        "after.json:1:1: invalid type: sequence, expected an object that holds a graph"
    );
    assert_eq!(message("{}"), "after.json:1:2: no schema_version (known: fxjson/1, graph-oracle/1)");
    let message_of_no_nodes = message(r#"{"schema_version":"fxjson/1"}"#);
    assert!(message_of_no_nodes.ends_with(r#"a graph without nodes: the key "nodes" is missing"#));
    assert!(
        message(&BASE[..BASE.len() - 2]).contains("EOF while parsing"),
        "{}",
        message(&BASE[..BASE.len() - 2])
    );
    assert!(message(format!("{BASE} x")).contains("trailing characters"));
    assert!(message(format!("\u{feff}{BASE}")).contains("expected value"));
}

#[test]
fn text_that_is_not_utf8() {
    let mut bytes = BASE.as_bytes().to_vec();
    let at = BASE.find("base").unwrap();
    bytes[at] = 0xff;
    assert_eq!(message(&bytes), "after.json:3:9: not UTF-8 text");
    assert_eq!(message([0xff, 0xfe, 0x00]), "after.json:1:1: not UTF-8 text");
}

#[test]
fn nesting_without_end() {
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
    let lists = deep("[", "]");
    for text in [
        lists.clone(),
        deep("{\"a\":", "}"),
        BASE.replace(r#"{"ref":"x"}"#, &lists),
        BASE.replace(r#""storage":0"#, &format!(r#""unknown":{lists}"#)),
        BASE.replace(r#"{"seq_nr":1}"#, &format!(r#"{{"custom":{lists}}}"#)),
        BASE.replace(r#"{"kind":"op"}"#, &deep("{\"a\":", "}")),
        BASE.replace(r#""name":"base""#, &format!(r#""unknown":{lists}"#)),
        BASE.replace(r#""shape":[4,2]"#, &format!(r#""shape":{lists}"#)),
        BASE.replace(r#"{"t":"tensor","shape""#, &format!(r#"{lists},"more":{{"shape""#)),
    ] {
        let message = message(&text);
        let clear = ["recursion limit exceeded", "invalid type: sequence"];
        assert!(clear.iter().any(|clear| message.contains(clear)), "{message}");
    }
}

#[test]
fn a_line_of_10_megabytes_is_fine() {
    let long = "x".repeat(10 << 20);
    let text = BASE.replace(r#""after":["x"]"#, &format!(r#""stack":"{long}""#)).replace('\n', "");
    let graph = super::read(&text);
    assert_eq!(graph.len(), 3);
    // And an error about it is short.
    message(BASE.replace("float64", &long));
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn damaged_gzip_data() {
    let bytes = packed(BASE.as_bytes());
    assert!(json::read(&bytes).is_ok());
    let truncated = "after.json: truncated gzip data: the file ends too early";
    for length in [2, 5, 11, 40, bytes.len() - 9, bytes.len() - 1] {
        assert_eq!(message(&bytes[..length]), truncated, "{length} bytes");
    }
    let mut wrong_sum = bytes.clone();
    let at = wrong_sum.len() - 6;
    wrong_sum[at] ^= 1;
    assert!(message(&wrong_sum).starts_with("after.json: bad gzip data: "), "{}", message(&wrong_sum));
    let mut wrong_method = bytes.clone();
    wrong_method[2] = 7;
    assert!(message(&wrong_method).starts_with("after.json: bad gzip data: "));
    // Faults of the text inside have a place.
    let text = BASE.replace("float64", "float31");
    assert_eq!(message(packed(text.as_bytes())), message(&text));
}

#[test]
fn files_that_cannot_be_read() {
    let error = files::read_path("no/such/file.json").unwrap_err().to_string();
    assert!(error.starts_with("no/such/file.json: No such file or directory"), "{error}");
}
