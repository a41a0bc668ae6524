//! What is stated changes something, or is refused with the reason: every option of every pass, whether its result is
//! given, recorded or made.

use crate::common::{Scratch, program, text};
use std::collections::BTreeSet;

const GRAPH: &str = "corpus/real/small_fsdp12_joint.json.gz";
const JOINT: &str = "corpus/real/partition/small_gpt_joint.json.gz";
const ORDER: &str = "tests/cases/schedule/peak_within_budget.graph";

/// The status, and the report without the line that repeats the command.
fn said(arguments: &[&str]) -> (Option<i32>, String) {
    let output = program(arguments);
    let report = text(&output.stdout) + &text(&output.stderr);
    (output.status.code(), report.lines().filter(|line| !line.starts_with("repeat with")).collect())
}

/// The options that there are, of the pass and of its judge, by the message about one that there is not.
fn known(pass: &str) -> BTreeSet<String> {
    let (_, message) = said(&["check", pass, GRAPH, "--candidate", "reference", "--set", "nothing=1"]);
    assert!(message.contains("has no option"), "{message}");
    let output =
        text(&program(&["check", pass, GRAPH, "--candidate", "reference", "--set", "nothing=1"]).stderr);
    let mut found = BTreeSet::new();
    for line in output.lines() {
        let listed =
            line.split_once("; it has ").or(line.split_once("for the judge: ")).map(|(_, list)| list);
        match (line.strip_prefix("  ").and_then(|line| line.split_once(':')), listed) {
            (_, Some(list)) => found.extend(list.split(", ").map(str::to_string)),
            (Some((key, _)), None) => {
                found.insert(key.to_string());
            }
            _ => {}
        }
    }
    found
}

/// By pass: the result that is given, and settings of which each is stated alone beside those before the bar.
const SETTINGS: &[(&str, &[&str])] = &[
    (
        "bucketing",
        &[
            "kind=all_gather",
            "mode=custom_ops",
            "cap=64MiB",
            "cap=auto",
            "interconnect=pcie",
            "multiplier=2",
            "selection=autoparallel",
            "selection=autoparallel|cap=[1KiB, 64MiB]",
            "selection=autoparallel|max_topo_span=7",
            "selection=autoparallel|max_topo_span=none",
            "filter=fsdp",
            "groups=dp",
            "rank=1",
            "promises=[cap]",
            "peak_budget=1.5x",
            "exposed_budget=1x",
        ],
    ),
    ("repair", &["promises=[order]", "peak_budget=1x", "exposed_budget=1x"]),
    (
        "partition",
        &[
            "promises=[distinct]",
            "budget=0.5",
            "first=default",
            "needs_tangents=no",
            "impure_random=yes",
            "suppressed_waits=yes",
            "cse=no",
            "optimizes_collectives=yes",
            "bans=none",
            "aggressive=yes",
            "max_distance=3",
            "free_parameters=no",
            "recompute_views=yes",
            "solver=greedy",
            "runtime=testing",
            "budget_needs_coverage=no",
            "graph_safe_random=yes",
            "method=min-cut|bans=none",
            "method=min-cut|promises=[minimum_cut]",
        ],
    ),
    (
        "schedule",
        &[
            "method=raise_comms",
            "method=raise_comms|promises=[order]",
            "budget=0.1",
            "method=simple_overlap|budget=0.1",
            "method=sink_waits|budget=0.1",
            "method=sink_waits_iterative|budget=0.1",
            "runtime_mode=true",
            "promises=[peak]",
            "exposed_budget=1x",
            "exposed_gather_budget=1",
            "displacement_budget=1",
            "max_in_flight=9",
        ],
    ),
];

/// Options that a rule reads, and that change the report only where the graph has what they are about.
const READ: &[&str] = &[
    "mode=custom_ops_multidtype",
    "num_fwd_outputs",
    "static_inputs",
    "checkpoint",
    "method",
    "reshard_after_forward",
];

#[test]
fn each_option_beside_a_given_result_leaves_a_trace() {
    let scratch = Scratch::new("idle");
    let (after, parts) = (scratch.path("after.json"), scratch.path("parts"));
    assert!(program(&["run", "bucketing", GRAPH, "-o", &after]).status.success());
    assert!(program(&["run", "partition", JOINT, "-o", &parts, "--method", "min-cut"]).status.success());
    let (forward, backward) = (format!("{parts}/fw.json"), format!("{parts}/bw.json"));
    for (pass, settings) in SETTINGS {
        let given: Vec<&str> = match *pass {
            "bucketing" => vec!["check", pass, GRAPH, &after, "--values", "off", "--verbose"],
            "partition" => vec!["check", pass, JOINT, &forward, &backward, "--values", "off", "--verbose"],
            "schedule" => vec!["check", pass, GRAPH, GRAPH, "--verbose"],
            _ => vec!["check", pass, GRAPH, GRAPH, "--values", "off", "--verbose"],
        };
        let mut covered: BTreeSet<&str> = READ.iter().map(|read| read.split('=').next().unwrap()).collect();
        for setting in *settings {
            let with = |settings: &[&str]| {
                let set = settings.iter().flat_map(|setting| ["--set", setting]);
                said(&given.iter().copied().chain(set).collect::<Vec<_>>())
            };
            let all: Vec<&str> = setting.split('|').collect();
            covered.extend(all.iter().map(|setting| setting.split('=').next().unwrap()));
            let (status, report) = with(&all);
            if status == Some(2) {
                assert!(report.starts_with("graph-oracle: "), "{pass} {setting}: {report}");
                continue;
            }
            assert_ne!(report, with(&[]).1, "{pass} {setting} changes nothing");
        }
        let known = known(pass);
        let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
        assert!(known.is_subset(&covered), "{pass}: {:?} are not tried", known.difference(&covered));
    }
}

fn refuses(arguments: &[&str], words: &str) {
    let output = program(arguments);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}{}", text(&output.stdout));
    assert!(message.contains(words) && message.lines().count() == 1, "{arguments:?}: {message}");
}

#[test]
fn what_nobody_reads_is_refused_in_one_line() {
    let scratch = Scratch::new("idle-made");
    let out = scratch.path("out.json");
    for (arguments, words) in [
        (
            &["check", "bucketing", GRAPH, GRAPH, "--set", "kind=all_gather"][..],
            "no rule looks at this option",
        ),
        (&["check", "bucketing", GRAPH, GRAPH, "--set", "mode=custom_ops"], "judged by what they do"),
        (&["check", "schedule", GRAPH, GRAPH, "--method", "raise_comms"], "it promises nothing by itself"),
        (&["check", "memory", GRAPH, "--candidate", "reference", "--method", "lpmf"], "it is for a worker"),
        (
            &["check", "schedule", GRAPH, "--candidate", "reference", "--set", "budget=0.5"],
            "this method looks at no budget",
        ),
        (
            &["check", "schedule", GRAPH, "--candidate", "reference", "--set", "runtime_mode=true"],
            "weigh run times",
        ),
        (
            &["check", "bucketing", GRAPH, "--candidate", "reference", "--set", "multiplier=2"],
            "with cap=auto",
        ),
        (&["run", "bucketing", GRAPH, "-o", &out, "--set", "promises=[cap]"], "check takes it"),
        (&["run", "schedule", GRAPH, "-o", &out, "--set", "max_in_flight=1"], "check takes it"),
        (&["score", "--edits", GRAPH, GRAPH, "--set", "kind=all_gather"], "no rule looks at this option"),
        (&["reduce", ORDER, "--values", "off"], "no values are compared"),
        (
            &["check", "schedule", GRAPH, "--candidate", "reference", "--values", "off"],
            "no values are compared",
        ),
        (&["rules", "--limit", "text=5"], "looks at no such limit"),
    ] {
        refuses(arguments, words);
    }
}

/// An empty variable in the place of AFTER gives nothing to judge, which is not sound; the reference is named.
#[test]
fn nothing_given_is_not_judged() {
    let of_a_graph = ["rewrite", "bucketing", "repair", "schedule", "memory"].map(|pass| (pass, GRAPH));
    for (pass, graph) in of_a_graph.into_iter().chain([("partition", JOINT)]) {
        let output = program(&["check", pass, graph]);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{pass}: {}", text(&output.stdout));
        assert!(message.contains("nothing to judge: give ") && message.lines().count() == 1, "{message}");
        let (status, report) = said(&["check", pass, graph, "--candidate", "reference", "--values", "off"]);
        let has_values = !["schedule", "memory"].contains(&pass);
        assert!(!has_values || status == Some(0), "{pass}: {report}");
    }
    let (status, message) = said(&["check", "partition", "--replay", JOINT]);
    assert!(status == Some(2) && message.contains("nothing to judge"), "{message}");
}

/// Whoever names a candidate wants it to run, whatever the case records.
#[test]
fn a_candidate_that_is_named_is_run() {
    let case = std::fs::read_to_string("tests/cases/bucket/all_gather_pair.graph").unwrap();
    let (before, _) = case.split_once("--- after").unwrap();
    let scratch = Scratch::new("named");
    let recorded = format!("{before}--- after\nx = input : f32[4]\noutput x\n");
    let path = scratch.write("case.graph", recorded.as_bytes());
    let judged = |arguments: &[&str]| said(&[&["check", "bucketing", &path], arguments].concat());
    assert_eq!(judged(&[]).0, Some(1), "{}", judged(&[]).1);
    let (status, report) = judged(&["--candidate", "reference"]);
    assert!(status == Some(0) && report.contains("by reference"), "{report}");
}

/// The graph before the repair of another result says nothing about this one.
#[test]
fn a_graph_before_the_repair_of_another_result_is_undecided() {
    let scratch = Scratch::new("unrepaired");
    let case = "world 2 ranks, groups dp = [0 1]\nx = input : f32[4]\ny = input : f32[4]\n\
                g = all_gather(x, dp) : f32[8]\nw = wait(g) : f32[8]\nv = neg(y) : f32[4]\noutput (w, v)\n";
    let before = scratch.write("before.graph", case.as_bytes());
    let judged = |name: &str, text: String| {
        let unrepaired = scratch.write(name, text.as_bytes());
        said(&["check", "bucketing", &before, &before, "--unrepaired", &unrepaired])
    };
    let moved = case.replace("v = neg(y) : f32[4]\n", "").replace("g = all", "v = neg(y) : f32[4]\ng = all");
    assert_eq!(judged("moved.graph", moved).0, Some(0));
    for (name, other, words) in [
        ("another.graph", case.replace("neg(y)", "relu(y)"), "v is another call in the result"),
        ("argument.graph", case.replace("neg(y)", "neg(x)"), "v is another call in the result"),
        ("more.graph", case.replace("output", "u = neg(v) : f32[4]\noutput"), "u is not in the result"),
        (
            "less.graph",
            case.replace("v = neg(y) : f32[4]\n", "").replace("(w, v)", "(w, y)"),
            "is another call",
        ),
    ] {
        let (status, report) = judged(name, other);
        let why = "the graph before the repair is not that of this result";
        assert!(
            status == Some(3) && report.contains(why) && report.contains(words),
            "{name}: {status:?} {report}"
        );
    }
}
