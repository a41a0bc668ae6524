//! Names and numbers on the command line: what is near is suggested, and `10k` is understood everywhere.

use crate::common::{program, text};

const GRAPH: &str = "corpus/dependent_gathers.graph";

/// What the program says where it cannot run.
fn refused(arguments: &[&str]) -> String {
    let output = program(arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}{said}", text(&output.stdout));
    said
}

#[test]
fn what_was_meant_is_suggested() {
    for (arguments, meant) in [
        (&["rules", "bucket/member-independent"][..], "\"bucket/members-independent\""),
        (&["rules", "members-independent"], "\"bucket/members-independent\""),
        (&["reduce", GRAPH, "--candidate", "pr158663", "--rule", "rewrite/value"], "\"rewrite/values\""),
        (&["check", "bucketing", GRAPH, "--candidate", "pr15866"], "\"pr158663\""),
        (&["check", "buckteing", GRAPH, "--candidate", "reference"], "\"bucketing\""),
        (&["fuzz", "buckting"], "\"bucketing\""),
        (&["check", "bucketing", GRAPH, "--candidate", "reference", "--set", "caps=10"], "\"cap\""),
        (&["check", "bucketing", GRAPH, "--candidate", "reference", "--set", "promise=cap"], "\"promises\""),
        (&["check", "bucketing", GRAPH, "--candidate", "reference", "--set", "promises=[caps]"], "\"cap\""),
        (&["check", "repair", GRAPH, "--candidate", "reference", "--set", "promise=[order]"], "\"promises\""),
        (&["check", "schedule", GRAPH, "--candidate", "reference", "--set", "methd=x"], "\"method\""),
        (&["check", "schedule", GRAPH, "--candidate", "reference", "--set", "promises=[peek]"], "\"peak\""),
        (&["check", "partition", GRAPH, "--candidate", "reference", "--set", "budgt=1"], "\"budget\""),
        (
            &["check", "partition", GRAPH, "--candidate", "reference", "--set", "promises=[minimum-cut]"],
            "\"minimum_cut\"",
        ),
        (&["check", "memory", GRAPH, "--candidate", "reference", "--set", "metod=x"], "\"method\""),
        (&["check", "rewrite", GRAPH, "--candidate", "reference", "--allow", "precison"], "\"precision\""),
        (&["check", "rewrite", GRAPH, "--candidate", "reference", "--demand", "stride"], "\"strides\""),
        (&["trace", "corpus/printed_graphs/logs.txt", "--demand", "name"], "\"names\""),
        (&["score", "--edits", GRAPH, "--edit", "swap"], ""),
        (&["check", "bucketing", GRAPH, "--candidate", "reference", "--limit", "elments=5"], "\"elements\""),
        (&["smoke", "--inject", "missing-wat"], "\"missing-wait\""),
        (&["chek", "bucketing", GRAPH], "'check'"),
    ] {
        let said = refused(arguments);
        if !meant.is_empty() {
            assert!(said.contains(meant), "{arguments:?}: expected {meant} in {said}");
            let is_asked = said.contains(&format!("did you mean {meant}?")) || said.contains("similar");
            assert!(is_asked, "{arguments:?}: {said}");
        }
    }
}

/// What is near nothing is answered with the list alone.
#[test]
fn nothing_far_is_suggested() {
    for arguments in [
        &["rules", "nothing/like-it"][..],
        &["check", "bucketing", GRAPH, "--candidate", "nobody"],
        &["check", "bucketing", GRAPH, "--candidate", "reference", "--set", "colour=red"],
        &["check", "rewrite", GRAPH, "--candidate", "reference", "--allow", "everything"],
        &["check", "bucketing", GRAPH, "--candidate", "reference", "--limit", "zzz=5"],
    ] {
        let said = refused(arguments);
        assert!(!said.contains("did you mean"), "{arguments:?}: {said}");
        assert!(["there are: ", "it has", "can be set"].iter().any(|words| said.contains(words)), "{said}");
    }
}

#[test]
fn counts_and_sizes_have_units() {
    for arguments in [
        &["fuzz", "bucketing", "--cases", "0.02k", "--jobs", "2"][..],
        &["check", "bucketing", GRAPH, "--candidate", "reference", "--element-limit", "1M"],
        &[
            "check",
            "bucketing",
            GRAPH,
            "--candidate",
            "reference",
            "--limit",
            "text=1.5GiB",
            "--limit",
            "elements=10M",
        ],
        &["check", "bucketing", GRAPH, "--candidate", "reference", "--set", "cap=1.5GiB"],
        &["check", "bucketing", GRAPH, "--candidate", "reference", "--set", "cap=[64MiB,10k]"],
        &["smoke", GRAPH, "--interleavings", "0.001k", "--max-elements", "1M"],
    ] {
        let output = program(arguments);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}");
    }
    let counts = "a number such as 10000, 10k, 1.5M or 2G";
    let sizes = "a number such as 10000, 10k or 1.5M, or a size such as 64MiB or 1.5GiB";
    for (arguments, words) in [
        (&["fuzz", "bucketing", "--cases", "many"][..], counts),
        (&["fuzz", "bucketing", "--cases", "64MiB"], "has a unit of bytes"),
        (&["fuzz", "bucketing", "--jobs", "2k"], "at most 1024"),
        (&["score", "--seeds", "2M"], "at most 1000000"),
        (&["check", "bucketing", GRAPH, "--candidate", "reference", "--element-limit", "1.5"], counts),
        (&["check", "bucketing", GRAPH, "--candidate", "reference", "--limit", "text=1Q"], sizes),
        (&["check", "bucketing", GRAPH, "--worker", "true", "--worker-memory", "lots"], sizes),
        (
            &["check", "bucketing", GRAPH, "--candidate", "reference", "--set", "cap=12Q"],
            "64MiB, 1.5GiB or 10k",
        ),
    ] {
        let said = refused(arguments);
        assert!(said.contains(words), "{arguments:?}: expected {words:?} in {said}");
    }
}
