//! Functions of the user's own: `--python`, with a stand-in for Python, and `keep`.

#![cfg(unix)]
use crate::common::{Scratch, text};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_graph-oracle");

const CASE: &str = "world 2 ranks, groups dp = [0 1]\npass bucketing kind=all_gather\nx = input : f32[4]\n\
                    g0 = all_gather(x, dp) : f32[8]\nw0 = wait(g0)\noutput w0\n\
                    expect someone violates worker/error\n";

/// A campaign that finds something at once.
const BRIEFLY: &[&str] = &["--seed", "3", "--cases", "4", "--values", "off", "--reduce-seconds", "2"];

/// A script in the place of Python.
fn stand_in(folder: &Scratch, script: &str) -> String {
    let path = folder.write("python3", format!("#!/bin/sh\n{script}\n").as_bytes());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Runs the program in a folder, with this for GRAPH_ORACLE_PYTHON.
fn run(folder: &Scratch, python: &str, arguments: &[&str]) -> Output {
    Command::new(PROGRAM)
        .args(arguments)
        .current_dir(&folder.0)
        .env("GRAPH_ORACLE_PYTHON", python)
        .output()
        .unwrap()
}

/// The one line with which it could not run.
fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let complaint = text(&output.stderr);
    assert_eq!(complaint.trim_end().lines().count(), 1, "{complaint}");
    complaint
}

#[test]
fn a_function_is_served_by_python() {
    let folder = Scratch::new("function");
    // Says what it was called with, and then is a worker.
    let script = format!(
        "echo \"$PYTHONSAFEPATH $*\" > called; exec '{PROGRAM}' worker --candidate bucket-direct-dependence"
    );
    let python = stand_in(&folder, &script);
    let fuzz = ["fuzz", "bucketing", "--python", "it's mine.py:f", "--repro", "found", "--jobs", "1"];
    let output = run(&folder, &python, &[&fuzz[..], BRIEFLY].concat());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let whole = folder.path("it's mine.py");
    let called = std::fs::read_to_string(folder.path("called")).unwrap();
    let expected = format!("1 -m graph_oracle.pytorch worker --function {whole}:f --only bucketing\n");
    assert_eq!(called, expected);
    // Each finding says who did it, and becomes a test of that function.
    let found = std::fs::read_dir(folder.path("found")).unwrap().next().unwrap().unwrap();
    let record = std::fs::read_to_string(found.path().join("finding.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    assert_eq!(
        (&record["python"], &record["worker"]),
        (&format!("{whole}:f").into(), &serde_json::Value::Null)
    );
    let found = found.path().display().to_string();
    let output = run(&folder, "", &["keep", &found, "kept", "--name", "Mine!"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let test = std::fs::read_to_string(folder.path("kept/test_mine.py")).unwrap();
    let call = "check_case(HERE / \"mine.graph\", str(HERE / \"../it's mine.py\") + \":f\")";
    assert!(test.contains(call) && test.contains("def test_mine() -> None:"), "{test}");
}

#[test]
fn what_keeps_a_function_from_running_is_one_line() {
    let folder = Scratch::new("no-function");
    let fuzz = |python: &str, function: &str| {
        refused(&run(&folder, python, &["fuzz", "bucketing", "--python", function, "--cases", "1"]))
    };
    assert!(
        fuzz("/nowhere/python", "m:f")
            .contains("no program /nowhere/python, which GRAPH_ORACLE_PYTHON names")
    );
    let lacks = stand_in(&folder, "echo \"python3: No module named graph_oracle\" >&2; exit 1");
    assert!(fuzz(&lacks, "m:f").contains("has no package graph-oracle"));
    let no_torch = stand_in(&folder, "echo 'graph-oracle: there is no torch in this Python' >&2; exit 2");
    assert_eq!(fuzz(&no_torch, "m:f"), "graph-oracle: --python m:f: there is no torch in this Python\n");
    let none = Command::new(PROGRAM)
        .args(["fuzz", "bucketing", "--python", "m:f"])
        .env("PATH", "/nowhere")
        .env_remove("GRAPH_ORACLE_PYTHON")
        .output()
        .unwrap();
    assert!(refused(&none).contains("there is no Python"), "{none:?}");
    let memory = run(&folder, "", &["fuzz", "memory", "--python", "m:f"]);
    assert!(refused(&memory).contains("a function is one pass: rewrite, bucketing"), "{memory:?}");
    for wrong in ["mypass.py", ":f", "mypass.py:"] {
        let output = run(&folder, "", &["fuzz", "bucketing", "--python", wrong]);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("expected FILE.py:FUNCTION or MODULE:FUNCTION"), "{output:?}");
    }
}

#[test]
fn a_finding_is_kept_once_and_overwrites_nothing() {
    let folder = Scratch::new("keep");
    std::fs::create_dir_all(folder.path("rule-7")).unwrap();
    folder.write("rule-7/case.graph", CASE.as_bytes());
    let record = r#"{"finding_version":"graph-oracle-finding/1","worker":"say \"hi\"\n--all","python":null}"#;
    folder.write("rule-7/finding.json", record.as_bytes());
    let keep = || run(&folder, "", &["keep", "rule-7", "kept"]);
    assert_eq!(keep().status.code(), Some(0));
    let read = |name: &str| std::fs::read_to_string(folder.path(name)).unwrap();
    let (case, test) = (read("kept/rule_7.graph"), read("kept/test_rule_7.py"));
    assert!(case.contains("pass bucketing kind=all_gather") && !case.contains("expect"), "{case}");
    assert!(
        test.contains("worker/error") && test.contains(r#"worker="say \"hi\"\U0000000a--all""#),
        "{test}"
    );
    let again = keep();
    assert_eq!((again.status.code(), text(&again.stdout).matches("is there already").count()), (Some(0), 2));
    // What is somebody else's stays, and nothing is written beside it.
    std::fs::remove_file(folder.path("kept/rule_7.graph")).unwrap();
    folder.write("kept/test_rule_7.py", b"mine");
    assert!(refused(&keep()).contains("test_rule_7.py: is there already, and is left alone"));
    assert!(!folder.0.join("kept/rule_7.graph").exists());
}

#[test]
fn who_broke_the_rule_must_be_known() {
    let folder = Scratch::new("keep-who");
    folder.write("case.graph", CASE.as_bytes());
    let keep = |more: &[&str]| run(&folder, "", &[&["keep", "case.graph", "kept"], more].concat());
    assert!(refused(&keep(&[])).contains("give --python FILE.py:FUNCTION or --worker CMD"));
    assert_eq!(keep(&["--python", "my.passes:f", "--name", "one"]).status.code(), Some(0));
    let test = std::fs::read_to_string(folder.path("kept/test_one.py")).unwrap();
    assert!(test.contains(r#"check_case(HERE / "one.graph", "my.passes:f")"#), "{test}");
    // Of a campaign, its store says it.
    let fuzz = ["fuzz", "bucketing", "--candidate", "bucket-direct-dependence", "--out", "out"];
    assert_eq!(run(&folder, "", &[&fuzz[..], BRIEFLY].concat()).status.code(), Some(1));
    let mut cases = std::fs::read_dir(folder.path("out")).unwrap().map(|entry| entry.unwrap().path());
    let case = cases.find(|path| path.extension().is_some_and(|ending| ending == "graph")).unwrap();
    let output = run(&folder, "", &["keep", &case.display().to_string(), "mutants"]);
    assert!(text(&output.stdout).contains("there is nothing to keep but the case"), "{output:?}");
    assert_eq!(std::fs::read_dir(folder.path("mutants")).unwrap().count(), 1);
    folder.write("finding.json", b"{}");
    assert!(refused(&keep(&["--name", "two"])).contains("finding.json: it is not of version"));
}
