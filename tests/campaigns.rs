//! Campaigns as a user runs them: what a signal leaves, what was not judged, what cannot be written.

#![cfg(unix)]
use crate::common::{Scratch, program, text};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A worker that gives every graph back as it is.
const NOTHING: &str = r#"IFS= read -r line
echo '{"type":"hello","protocol":"graph-oracle-worker/1","name":"nothing","version":"1","passes":{"bucketing":{}}}'
while IFS= read -r line; do
    id=${line#*\"id\":}; id=${id%%,*}; graph=${line#*\"graph\":}
    case $line in *'"bye"'*) exit 0 ;; esac
    printf '{"type":"outcome","id":%s,"repaired":%s\n' "$id" "$graph"
done"#;

#[test]
fn a_worker_that_does_nothing_is_not_sound() {
    let scratch = Scratch::new("nothing");
    let out = scratch.path("out");
    let fuzz = program(&["fuzz", "bucketing", "--worker", NOTHING, "--cases", "64", "--out", &out]);
    let summary = text(&fuzz.stdout);
    assert_eq!(fuzz.status.code(), Some(3), "{summary}{}", text(&fuzz.stderr));
    for words in
        ["64 sound", "nothing was judged of bucketing", "it did nothing where the reference did something"]
    {
        assert!(summary.contains(words), "expected {words:?} in {summary}");
    }
    let results = program(&["results", &out, "--format", "json"]);
    assert_eq!(results.status.code(), Some(3), "{}", text(&results.stdout));
    let json: serde_json::Value = serde_json::from_slice(&results.stdout).unwrap();
    assert_eq!(json[0]["nothing_judged_of"], serde_json::json!(["bucketing"]));
    let against = ["fuzz", "bucketing", "--worker", NOTHING, "--against", "reference", "--cases", "64"];
    let against = program(&against);
    assert_eq!(against.status.code(), Some(3), "{}", text(&against.stdout));
}

/// What was found until Ctrl-C or SIGTERM is printed and kept.
#[test]
fn a_signal_leaves_what_was_found() {
    let scratch = Scratch::new("signal");
    for (signal, status, kept) in [("-INT", 130, true), ("-TERM", 143, false)] {
        let out = scratch.path("out");
        let mut arguments =
            vec!["fuzz", "bucketing", "--candidate", "pr158663", "--cases", "100000000", "--jobs", "1"];
        if kept {
            arguments.extend(["--out", &out]);
        }
        let program_run = Command::new(env!("CARGO_BIN_EXE_graph-oracle"))
            .args(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_secs(2));
        let id = program_run.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        let output = program_run.wait_with_output().unwrap();
        let summary = text(&output.stdout);
        assert_eq!(output.status.code(), Some(status), "{summary}{}", text(&output.stderr));
        for words in ["stopped by signal", "violated", "1. "] {
            assert!(summary.contains(words), "expected {words:?} in {summary}");
        }
        if kept {
            let results = program(&["results", &out]);
            assert_eq!(results.status.code(), Some(1));
            let line =
                |summary: &str| summary.lines().find(|line| line.contains(" cases, ")).map(String::from);
            assert_eq!(line(&text(&results.stdout)), line(&summary));
        }
    }
}

#[test]
fn a_place_that_cannot_be_written_to_is_told_first() {
    let scratch = Scratch::new("unwritable");
    let file = scratch.path("file");
    std::fs::write(&file, "").unwrap();
    let inside = format!("{file}/repro");
    for option in ["--repro", "--out"] {
        let run = program(&[
            "fuzz",
            "bucketing",
            "--candidate",
            "bucket-direct-dependence",
            "--cases",
            "10000000",
            option,
            &inside,
        ]);
        assert_eq!(run.status.code(), Some(2), "{}", text(&run.stdout));
        assert!(text(&run.stderr).contains(&inside), "{}", text(&run.stderr));
    }
    // Of two candidates the first one's findings are told although the second one has no place.
    let out = scratch.path("out");
    std::fs::create_dir_all(&out).unwrap();
    std::fs::write(format!("{out}/bucket-no-key"), "").unwrap();
    let both = [
        "fuzz",
        "bucketing",
        "--candidate",
        "bucket-direct-dependence",
        "--candidate",
        "bucket-no-key",
        "--cases",
        "20",
        "--reduce-seconds",
        "1",
        "--out",
        &out,
    ];
    let both = program(&both);
    assert_eq!(both.status.code(), Some(2), "{}", text(&both.stdout));
    assert!(text(&both.stdout).contains("1. bucket/") && text(&both.stderr).contains("bucket-no-key"));
}

/// `--cluster` hands its arguments to the Python package as they are, and its exit status back. Python is stood in for; the
/// campaign itself is python/tests/test_campaign.py.
#[test]
fn a_cluster_is_asked_through_python() {
    use std::os::unix::fs::PermissionsExt;

    let scratch = Scratch::new("cluster");
    let (python, said) = (scratch.path("python"), scratch.path("said"));
    let run = |python: &str| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_graph-oracle"));
        program.args([
            "fuzz",
            "memory",
            "--cluster",
            "ray",
            "--shards",
            "3",
            "--worker",
            "a 'b'",
            "--out",
            "o",
        ]);
        program.env("GRAPH_ORACLE_PYTHON", python).env_remove("GRAPH_ORACLE").output().unwrap()
    };
    let one_line = |output: &std::process::Output, words: &str| {
        let told = text(&output.stderr);
        assert!(told.lines().count() == 1 && told.contains(words), "expected {words:?} in {told}");
        assert_eq!(output.status.code(), Some(2));
    };
    one_line(&run("/there is no python"), "there is no program");
    for (import, status, wanted) in
        [(1, 0, 2), (0, 0, 0), (0, 1, 1), (0, 2, 2), (0, 3, 3), (0, 130, 130), (0, 143, 143)]
    {
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = -c ] && {{ echo 'no module' >&2; exit {import}; }}\n\
             printf '<%s>' \"$@\" > '{said}'; echo \" $GRAPH_ORACLE\" >> '{said}'; exit {status}\n"
        );
        std::fs::write(&python, script).unwrap();
        std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
        let output = run(&python);
        assert_eq!(output.status.code(), Some(wanted), "{}", text(&output.stderr));
        if import == 1 {
            one_line(&output, "cannot import graph_oracle.campaign (no module): pip install");
            continue;
        }
        let given = "<-m><graph_oracle.campaign><fuzz><memory><--cluster><ray><--shards><3><--worker><a 'b'><--out><o> ";
        assert_eq!(
            std::fs::read_to_string(&said).unwrap(),
            format!("{given}{}\n", env!("CARGO_BIN_EXE_graph-oracle"))
        );
    }
    for (flags, words) in [
        (&["--cluster", "ray"][..], "--out <DIR>"),
        (&["--shards", "2", "--out", "o"], "--cluster <KIND>"),
        (&["--cluster", "ray", "--out", "o", "--shard", "0/2"], "cannot be used with"),
        (&["--cluster", "ray", "--out", "o", "--seconds", "2"], "cannot be used with"),
        (&["--cluster", "dask", "--out", "o"], "invalid value 'dask'"),
    ] {
        let refused = program(&[&["fuzz", "memory"], flags].concat());
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains(words), "{}", text(&refused.stderr));
    }
}
