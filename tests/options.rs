//! Options of passes on the command line and in cases: unknown ones are refused everywhere, and a limit that is stated
//! is looked at.

use crate::common::{Scratch, program, text};

const GRAPH: &str = "corpus/real/small_fsdp12_joint.json.gz";
const JOINT: &str = "corpus/real/partition/small_gpt_joint.json.gz";

fn refuses(arguments: &[&str], words: &[&str]) {
    let output = program(arguments);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}{}", text(&output.stdout));
    for word in words {
        assert!(message.contains(word), "{arguments:?}: expected {word:?} in {message:?}");
    }
}

/// Whatever the pass, and whether the outcome is given, recorded or made.
#[test]
fn unknown_options_and_values_are_refused() {
    let scratch = Scratch::new("unknown-options");
    let parts = scratch.path("parts");
    assert!(program(&["run", "partition", JOINT, "-o", &parts]).status.success());
    let (forward, backward) = (scratch.path("parts/fw.json"), scratch.path("parts/bw.json"));
    let given = [
        vec!["check", "bucketing", GRAPH, GRAPH],
        vec!["check", "repair", GRAPH, GRAPH],
        vec!["check", "schedule", GRAPH, GRAPH],
        vec!["check", "partition", JOINT, &forward, &backward],
        vec!["check", "memory", GRAPH, "--candidate", "reference"],
        vec!["check", "bucketing", GRAPH, "--candidate", "reference"],
    ];
    for arguments in &given {
        let pass = arguments[1];
        for (set, words) in [
            ("kindd=x", format!("{pass} has no option \"kindd\"")),
            ("promise=cap", format!("{pass} has no option \"promise\"")),
            ("promises=[caps]", "promise".to_string()),
        ] {
            refuses(&[&arguments[..], &["--set", set]].concat(), &[&words]);
        }
    }
    // Those of the judge are listed with those of the pass.
    for (arguments, known) in
        given.iter().zip(["peak_budget", "peak_budget", "max_in_flight", "reshard_after_forward"])
    {
        refuses(&[&arguments[..], &["--set", "kindd=x"]].concat(), &["promises", known]);
    }
    refuses(&["check", "bucketing", GRAPH, GRAPH, "--set", "mode=fast"], &["it can be default, functional"]);
    refuses(&["check", "bucketing", GRAPH, GRAPH, "--set", "cap=much"], &["cap"]);
    refuses(
        &["check", "bucketing", GRAPH, GRAPH, "--set", "max_topo_span=3"],
        &["needs selection=autoparallel"],
    );
    refuses(
        &["check", "partition", JOINT, &forward, &backward, "--set", "solver=best"],
        &["it can be dp, greedy"],
    );
}

#[test]
fn unknown_options_in_a_case_are_refused() {
    let scratch = Scratch::new("unknown-in-case");
    let graph = "world 2 ranks, groups a = [0 1]\npass bucketing kindd=x\nx = input : f32[4]\n\
                 g = all_gather(x, 2, a) : f32[8]\nv = wait(g) : f32[8]\noutput v\n";
    let recorded = format!("{graph}--- after\n{}", &graph[graph.find("x = input").unwrap()..]);
    for case in [graph, &recorded] {
        let path = scratch.path("case.graph");
        std::fs::write(&path, case).unwrap();
        refuses(
            &["check", "bucketing", &path, "--candidate", "reference"],
            &["bucketing has no option \"kindd\"", "cap", "promises"],
        );
        refuses(&["check", "bucketing", &path, &path], &["bucketing has no option \"kindd\""]);
    }
}

/// Options that state a limit promise to keep it.
#[test]
fn a_limit_that_is_stated_is_looked_at() {
    let scratch = Scratch::new("limits");
    let after = scratch.path("after.json");
    assert!(program(&["run", "bucketing", GRAPH, "-o", &after, "--set", "kind=all_gather"]).status.success());
    let check = |set: &[&str]| {
        let mut arguments = vec!["check", "bucketing", GRAPH, &after, "--values", "off"];
        set.iter().for_each(|set| arguments.extend(["--set", set]));
        let output = program(&arguments);
        (output.status.code(), text(&output.stdout))
    };
    assert_eq!(check(&[]).0, Some(0));
    assert_eq!(check(&["cap=2GiB"]).0, Some(0));
    for (set, rule) in [
        (&["cap=1KiB"][..], "bucket/policy-cap"),
        (&["cap=[1KiB 2KiB]", "selection=autoparallel"], "bucket/policy-cap"),
        (&["max_topo_span=1", "selection=autoparallel"], "bucket/policy-topo-span"),
        (&["max_topo_span=1", "selection=spanning"], "bucket/policy-topo-span"),
        (&["peak_budget=1KiB"], "bucket/policy-peak-memory"),
        (&["exposed_budget=0"], "bucket/policy-exposed-time"),
    ] {
        let (status, report) = check(set);
        assert_eq!((status, report.contains(rule)), (Some(1), true), "{set:?}: {report}");
    }
}

/// A promise that cannot be looked at is neither kept nor broken.
#[test]
fn a_limit_on_what_is_not_known_is_undecided() {
    let scratch = Scratch::new("unknown-limits");
    let graph = "x = input: f32[8]\ny = my.unknown(x): ?\nz = relu(x): f32[8]\noutput (y, z)\n";
    let graph = scratch.write("unknown.graph", graph.as_bytes());
    let output = program(&["check", "bucketing", &graph, &graph, "--set", "peak_budget=0.01x"]);
    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{report}");
    assert!(report.contains("bucket/policy-peak-memory: before, the size of y is not known"), "{report}");
}

/// What was asked for of parts that are given is looked at, or it is undecided, or it is no option.
#[test]
fn what_is_stated_of_given_parts_leaves_a_trace() {
    let scratch = Scratch::new("stated-of-parts");
    let made = |name: &str, set: &[&str]| {
        let folder = scratch.path(name);
        let mut arguments = vec!["run", "partition", JOINT, "-o", &folder];
        set.iter().for_each(|set| arguments.extend(["--set", set]));
        assert!(program(&arguments).status.success(), "{set:?}");
        [format!("{folder}/fw.json"), format!("{folder}/bw.json")]
    };
    let check = |[forward, backward]: &[String; 2], set: &[&str]| {
        let mut arguments = vec!["check", "partition", JOINT, forward, backward, "--values", "off"];
        set.iter().for_each(|set| arguments.extend(["--set", set]));
        let output = program(&arguments);
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let (all, cut) = (made("all", &[]), made("cut", &["method=min-cut"]));
    let cases = [
        (&all, &["budget=0"][..], 3, "method=default has no budget"),
        (&all, &["promises=[minimum_cut]"], 2, "minimum_cut needs method=min-cut"),
        (&all, &["method=min-cut", "promises=[minimum_cut]"], 1, "partition/cut-certificate"),
        (&all, &["method=min-cut", "budget=0"], 1, "partition/budget-respected"),
        (&cut, &["method=min-cut", "promises=[minimum_cut]"], 0, ""),
        (&cut, &["method=min-cut", "budget=0.1"], 1, "partition/budget-respected"),
        (&cut, &["method=min-cut", "budget=1"], 0, ""),
    ];
    for (parts, set, status, words) in cases {
        let (found, report) = check(parts, set);
        assert_eq!((found, report.contains(words)), (Some(status), true), "{set:?}: {report}");
    }
}

/// A promise that the pass, or its selection, does not have.
#[test]
fn promises_that_cannot_be_meant_are_refused() {
    let given = ["check", "bucketing", GRAPH, GRAPH, "--set"];
    refuses(&[&given[..], &["promises=[order]"]].concat(), &["order needs the pass repair"]);
    refuses(&[&given[..], &["promises=[topo_span]"]].concat(), &["topo_span needs selection=autoparallel"]);
    let autoparallel = ["promises=[maximal]", "--set", "selection=autoparallel"];
    refuses(&[&given[..], &autoparallel].concat(), &["maximal needs a selection"]);
    let repair = ["check", "repair", GRAPH, GRAPH, "--set"];
    refuses(&[&repair[..], &["promises=[cap]"]].concat(), &["cap needs the pass bucketing"]);
    refuses(&[&repair[..], &["peak_budget=1x"]].concat(), &["peak_budget needs the pass bucketing"]);
}

/// A pass changes neither the ranks nor their groups.
#[test]
fn a_result_for_another_world_is_wrong() {
    let scratch = Scratch::new("other-worlds");
    let graph = |name: &str, world: &str| {
        let body = "x = input : f32[4]\ng = all_gather(x, dp) : f32[16]\nw = wait(g) : f32[16]\noutput (w)\n";
        scratch.write(name, format!("world {world}\n{body}").as_bytes())
    };
    let before = graph("before.graph", "4 ranks, groups dp = [0 1 2 3]");
    let others = [
        ("4 ranks, groups dp = [1 0 2 3]", 1),
        ("8 ranks, groups dp = [0 2 4 6 | 1 3 5 7]", 1),
        ("4 ranks, groups dp = [0 1 2 3], tp = [0 1 | 2 3]", 0),
    ];
    for (world, status) in others {
        let after = graph("after.graph", world);
        for pass in ["bucketing", "repair"] {
            let output = program(&["check", pass, &before, &after]);
            let report = text(&output.stdout) + &text(&output.stderr);
            assert_eq!(output.status.code(), Some(status), "{pass} {world}: {report}");
            assert_eq!(report.contains("rewrite/well-formed:"), status == 1, "{pass} {world}: {report}");
        }
    }
}

/// A contradiction between the evaluators is a rule that can be named.
#[test]
fn a_reduction_may_be_asked_to_keep_a_contradiction() {
    let arguments =
        ["reduce", "corpus/dependent_gathers.graph", "--pass", "bucketing", "--rule", "oracle/ways-agree"];
    refuses(&arguments, &["does not violate oracle/ways-agree on it"]);
}
