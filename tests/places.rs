//! What is said of a place in a file names the file, its line and its column.

use crate::common::{Scratch, program, text};

/// A case of which something is to be said on every line but the first and the fifth.
const REMARKED: &str = "world 2 ranks, groups dp = [0 1]
symbol s0 = 3 in 5 to 9
pass schedule method=sink_waits budget=0.5
estimates {nope: 1e-6}
x = input : f32[4]
  z = input : f32[sym(\"s0 ++ 1\", 4)]
y = relu(x) : f32[4] {recompute: NOPE}
";

fn said(arguments: &[&str]) -> (Option<i32>, String) {
    let output = program(arguments);
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn a_remark_says_where() {
    let scratch = Scratch::new("places");
    let path = scratch.write("case.graph", REMARKED.as_bytes());
    let (status, report) = said(&["check", "schedule", &path, "--candidate", "reference"]);
    assert_eq!(status, Some(0), "{report}");
    for words in [
        format!("{path}: the graph has no output"),
        format!("\"nope\" ({path}:4:1)"),
        format!("\"NOPE\" of y ({path}:7:1)"),
        format!("s0 was 3, outside 5 to 9 ({path}:2:1)"),
        format!("\"s0 ++ 1\" ({path}:6:23)"),
        format!("{path}:3:1: option budget=0.5 counts for nothing: this method looks at no budget"),
    ] {
        assert!(report.contains(&words), "expected {words:?} in {report}");
    }
    let json = scratch.path("case.json.gz");
    assert!(program(&["convert", &path, &json]).status.success());
    let (_, report) = said(&["check", "schedule", &json, "--candidate", "reference"]);
    for words in [format!("\"NOPE\" of y ({json}:"), format!("outside 5 to 9 ({json}:")] {
        assert!(report.contains(&words), "expected {words:?} in {report}");
    }
    // Nothing is said of a file in which there is nothing to say.
    let (_, report) = said(&["check", "schedule", "tests/cases/schedule/pipeline.graph"]);
    assert!(!report.contains("pipeline.graph:"), "{report}");
}

/// Whichever command refuses what a file holds.
#[test]
fn a_fault_says_where() {
    let scratch = Scratch::new("faults");
    let faulty = "symbol s0 = 3 in 9 to 1\nx = input : f32[4]\n  y = relu(nobody) : f32[4]\noutput y\n";
    let graph = scratch.write("faulty.graph", faulty.as_bytes());
    let json = scratch.path("faulty.json");
    assert!(program(&["convert", &graph, &json]).status.success());
    let written = std::fs::read_to_string(&json).unwrap();
    let line = written.lines().position(|line| line.contains("\"name\":\"y\"")).unwrap() + 1;
    let symbol = written.lines().position(|line| line.contains("\"s0\"")).unwrap() + 1;
    let out = scratch.path("out.json");
    for (path, node, symbol) in
        [(&graph, "3:3".to_string(), "1:1".to_string()), (&json, format!("{line}:1"), format!("{symbol}:"))]
    {
        for arguments in [
            &["check", "bucketing", path, "--candidate", "reference"][..],
            &["check", "bucketing", path, path],
            &["check", "memory", path, "--candidate", "reference"],
            &["run", "repair", path, "-o", &out],
            &["simulate", path],
            &["lifecycle", "--graph", path],
            &["reduce", path, "--pass", "bucketing"],
            &["fuzz", "bucketing", "--graph", path, "--cases", "1"],
        ] {
            let (status, message) = said(arguments);
            assert_eq!(status, Some(2), "{arguments:?}: {message}");
            assert!(
                message.contains(&format!("{path}:{node}: y (position 1): ")),
                "{arguments:?}: {message}"
            );
            let range = format!("{path}:{symbol}");
            assert!(
                message.lines().any(|line| line.contains(&range) && line.contains("range of the symbol s0")),
                "{arguments:?}: {message}"
            );
        }
    }
    let empty = scratch.write("empty.graph", b"world 2 ranks\n");
    let (status, message) = said(&["check", "bucketing", &empty]);
    assert!(status == Some(2) && message.contains(&format!("{empty}: ")), "{message}");
    let cycle = scratch.write(
        "cycle.graph",
        b"x = input : f32[4]\na = add(x, b) : f32[4]\nb = relu(a) : f32[4]\noutput b\n",
    );
    let (status, message) = said(&["check", "repair", &cycle, "--candidate", "reference"]);
    assert!(
        status == Some(2) && message.contains(&format!("{cycle}:2:1: the graph has a cycle")),
        "{message}"
    );
}

#[test]
fn a_line_of_known_findings_says_where() {
    let scratch = Scratch::new("known");
    for (line, words) in [
        (
            "{\"rule\":\"bucket/nope\",\"words\":[],\"link\":\"x\"}",
            ":2:10: no rule is called \"bucket/nope\"",
        ),
        ("{\"rule\":", ":2:8: EOF while parsing"),
    ] {
        let known = scratch.write("known.jsonl", format!("# what is known\n{line}\n").as_bytes());
        let (status, message) = said(&["fuzz", "bucketing", "--known", &known, "--cases", "1"]);
        assert!(status == Some(2) && message.contains(&format!("{known}{words}")), "{message}");
    }
}
