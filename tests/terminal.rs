//! What others wrote never steers the terminal: names of nodes, reasons, names of files, a worker's words.

#![cfg(unix)]
use crate::common::{Scratch, program};

/// ESC, BEL, CR, CSI of C1, and what turns the direction of writing.
const HOSTILE: &str = "\u{1b}[31m\u{7}\r\u{9b}1m\u{202e}\u{200b}\u{feff}";

/// Runs the program and looks at every character that it prints.
fn is_clean(arguments: &[&str]) -> String {
    let output = program(arguments);
    let mut all = String::new();
    for bytes in [output.stdout, output.stderr] {
        let text = String::from_utf8(bytes).expect("UTF-8");
        let steers = |c: char| (c.is_control() && c != '\n' && c != '\t') || "\u{202e}\u{2066}".contains(c);
        assert!(!text.contains(steers), "{arguments:?}: {text:?}");
        all += &text;
    }
    assert!(!all.is_empty(), "{arguments:?} printed nothing");
    all
}

/// An exchange JSON graph whose names are hostile; the reduction of its collective is `op`.
fn graph(op: &str) -> String {
    let name = |name: &str| serde_json::to_string(&format!("{name}{HOSTILE}")).unwrap();
    let tensor = r#"{"t":"tensor","shape":[4],"stride":[1],"dtype":"float32","device":"cpu"}"#;
    let call = |is: &str, target: &str, arguments: &str| {
        format!(
            r#"{{"name":{},"op":"call_function","target":"{target}","args":[{arguments}],"out":{tensor}}}"#,
            name(is)
        )
    };
    let group = name("dp");
    let reduced = format!(r#"{{"ref":{}}},"{op}",{group}"#, name("x"));
    let waited = format!(r#"{{"ref":{}}}"#, name("r"));
    format!(
        "{{\"schema_version\":\"graph-oracle/1\",\"name\":{},\"kind\":\"forward\",\"source\":\"test\",\"torch\":\"\",\n\
         \"groups\":{{{group}:{{\"size\":2,\"rank\":0}}}},\"symbols\":{{}},\"num_nodes\":4,\"ops\":{{}},\"nodes\":[\n\
         {{\"name\":{},\"op\":\"placeholder\",\"target\":\"x\",\"out\":{tensor}}},\n{},\n{},\n\
         {{\"name\":\"output\",\"op\":\"output\",\"target\":\"output\",\"args\":[[{{\"ref\":{}}}]]}}\n]}}\n",
        name("g"),
        name("x"),
        call("r", "_c10d_functional.all_reduce.default", &reduced),
        call("w", "_c10d_functional.wait_tensor.default", &waited),
        name("w"),
    )
}

#[test]
fn names_in_graphs_are_escaped_in_every_command() {
    let scratch = Scratch::new("names");
    let before = scratch.write("before.json", graph("sum").as_bytes());
    let after = scratch.write("after.json", graph("max").as_bytes());
    let case = scratch.0.join("case.graph").display().to_string();
    assert!(program(&["convert", &before, &case]).status.success());
    let events = program(&["lifecycle", "--graph", &before]).stdout;
    let events = scratch.write("events.jsonl", &[&events[..], &events[..]].concat());
    for arguments in [
        &["check", "memory", &before][..],
        &["check", "bucketing", &before],
        &["check", "bucketing", &before, &after],
        &["check", "bucketing", &before, &after, "--format", "json"],
        &["check", "schedule", &before, &after],
        &["check", "partition", &before],
        &["check", "repair", &before, &after, "--verbose"],
        &["run", "bucketing", &before, "-o", "-"],
        &["show", &before],
        &["show", &case],
        &["show", &before, "--format", "json"],
        &["show", &before, "--format", "dot"],
        &["show", &before, "--format", "svg"],
        &["show", &before, "--timeline"],
        &["show", &before, "--timeline", "--format", "json"],
        &["show", &before, "--timeline", "--format", "svg"],
        &["show", &before, "--around", HOSTILE],
        &["simulate", &before, &after, "--ranks", "0,1"],
        &["smoke", &before, "--table"],
        &["smoke", &before, "--format", "json"],
        &["lifecycle", "--graph", &before],
        &["lifecycle", &events, "--graph", &before],
        &["lifecycle", &events],
        &["reduce", &case, "--pass", "bucketing"],
    ] {
        is_clean(arguments);
    }
    // What is for machines is still what it was.
    let shown: serde_json::Value =
        serde_json::from_str(&is_clean(&["show", &before, "--format", "json"])).unwrap();
    assert_eq!(shown["nodes"][0]["name"], format!("x{HOSTILE}"));
    let text = scratch.write("again.graph", is_clean(&["show", &before]).as_bytes());
    let again: serde_json::Value =
        serde_json::from_str(&is_clean(&["show", &text, "--format", "json"])).unwrap();
    assert_eq!(again["nodes"], shown["nodes"]);
}

#[test]
fn names_of_files_and_arguments_are_escaped() {
    let scratch = Scratch::new("files");
    let missing = format!("missing{HOSTILE}");
    let named = scratch.write(&format!("g{HOSTILE}.json"), graph("sum").as_bytes());
    for arguments in [
        &["check", "bucketing", &missing][..],
        &["check", "bucketing", &named],
        &["check", "bucketing", &named, &named],
        &["simulate", &named],
        &["rules", HOSTILE],
        &["fuzz", HOSTILE],
        &["fuzz", "bucketing", "--candidate", HOSTILE],
        &[HOSTILE],
        &["check", "bucketing", &named, "--set", &format!("cap={HOSTILE}")],
        &["check", "bucketing", &named, "--set", &format!("{HOSTILE}=1")],
        &["results", &missing],
    ] {
        is_clean(arguments);
    }
}

#[test]
fn the_words_of_workers_are_escaped() {
    let words = serde_json::to_string(HOSTILE).unwrap();
    let worker = |hello: &str, answer: &str| {
        format!(
            "IFS= read -r line\nprintf '%s\\n' '{hello}'\nprintf 'oh \\033[31m' >&2\nwhile IFS= read -r line; do\n\
             ID=${{line#*\\\"id\\\":}}; ID=${{ID%%,*}}\nprintf '%s\\n' '{answer}' | sed \"s/ID/$ID/\"\ndone"
        )
    };
    let hello = format!(
        r#"{{"type":"hello","protocol":"graph-oracle-worker/1","name":{words},"version":{words},"passes":{{"bucketing":{{}}}}}}"#
    );
    for answer in [
        format!(r#"{{"type":"refused","id":ID,"reason":{words}}}"#),
        format!(r#"{{"type":"error","id":ID,"error":{words},"message":{words},"traceback":{words}}}"#),
        format!(r#"{{"type":{words},"id":ID}}"#),
    ] {
        let command = worker(&hello, &answer);
        is_clean(&["check", "bucketing", "corpus/dependent_gathers.graph", "--worker", &command]);
        is_clean(&["fuzz", "bucketing", "--cases", "3", "--worker", &command]);
        is_clean(&["worker-test", &command, "--worker-seconds", "1"]);
    }
    is_clean(&[
        "fuzz",
        "bucketing",
        "--cases",
        "3",
        "--worker",
        &worker(&hello.replace("/1", "/\\u001b"), ""),
    ]);
}
