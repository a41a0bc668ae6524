//! The program as a user runs it: exit statuses, and one clear line for each kind of bad input.

use crate::common::{Scratch, program, text};
use flate2::{Compression, write::GzEncoder};
use std::io::Write;
use std::path::Path;
use std::process::Output;

fn status(output: &Output) -> i32 {
    output.status.code().unwrap()
}

/// Exit status 2, nothing on standard output, and a message that names the file and contains `words`.
fn refuses(path: &str, words: &str) {
    for arguments in [vec!["check", "bucketing", path], vec!["show", path]] {
        let output = program(&arguments);
        let message = text(&output.stderr);
        assert_eq!(status(&output), 2, "{arguments:?}: {message}");
        assert!(output.stdout.is_empty(), "{arguments:?} printed {}", text(&output.stdout));
        assert!(message.contains(words), "{arguments:?}: expected {words:?} in {message:?}");
        assert!(message.len() < 2000, "{arguments:?}: {} bytes of message", message.len());
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A graph in exchange JSON with these node lines.
fn json(nodes: &[&str]) -> String {
    format!(
        "{{\"schema_version\":\"graph-oracle/1\",\"name\":\"t\",\"kind\":\"forward\",\"source\":\"test\",\"torch\":\"\",\n\
         \"groups\":{{\"0\":{{\"size\":2,\"rank\":0}}}},\"symbols\":{{}},\"num_nodes\":{},\"ops\":{{}},\"nodes\":[\n{}\n]}}\n",
        nodes.len(),
        nodes.join(",\n")
    )
}

const X: &str = r#"{"name":"x","op":"placeholder","target":"x","out":{"t":"tensor","shape":[4],"stride":[1],"dtype":"float32","device":"cpu"}}"#;
const OUTPUT: &str = r#"{"name":"output","op":"output","target":"output","args":[[{"ref":"x"}]]}"#;

fn relu(name: &str, of: &str) -> String {
    format!(
        r#"{{"name":"{name}","op":"call_function","target":"aten.relu.default","args":[{{"ref":"{of}"}}],"out":{{"t":"tensor","shape":[4],"stride":[1],"dtype":"float32","device":"cpu"}}}}"#
    )
}

#[test]
fn a_sound_reference_exits_with_0() {
    let output = program(&[
        "check",
        "bucketing",
        "corpus/real/small_fsdp12_joint.json.gz",
        "--candidate",
        "reference",
    ]);
    assert_eq!(status(&output), 0, "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).starts_with("SOUND"), "{}", text(&output.stdout));
}

#[test]
fn run_then_check_of_the_pair_is_sound() {
    let scratch = Scratch::new("pair");
    let after = scratch.path("after.json.gz");
    let before = "corpus/real/small_fsdp12_joint.json.gz";
    let run = program(&["run", "bucketing", before, "-o", &after]);
    assert_eq!(status(&run), 0, "{}", text(&run.stderr));
    let check = program(&["check", "bucketing", before, &after, "--format", "json"]);
    assert_eq!(status(&check), 0, "{}", text(&check.stdout));
    let report: serde_json::Value = serde_json::from_slice(&check.stdout).unwrap();
    assert_eq!(report["verdict"], "sound");
}

/// A reason has its code wherever it is printed.
#[test]
fn what_is_undecided_has_a_code() {
    let case = "tests/cases/trials/maximum_of_an_exponential.graph";
    let code = "values/trials-are-no-proof";
    let output = program(&["check", "bucketing", case, "--format", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["reasons"][0]["code"], code, "{report:#}");
    let mut rules = report["rules"].as_array().unwrap().iter();
    assert_eq!(rules.find(|rule| rule["id"] == "rewrite/values").unwrap()["code"], code);
    let output = program(&["check", "bucketing", case]);
    assert!(text(&output.stdout).contains(&format!(" [{code}]")), "{}", text(&output.stdout));
}

#[test]
fn the_historic_algorithm_is_convicted_with_exit_1() {
    let output =
        program(&["check", "bucketing", "corpus/dependent_gathers.graph", "--candidate", "pr158663"]);
    assert_eq!(status(&output), 1, "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("bucket/members-independent"), "{}", text(&output.stdout));
}

#[test]
fn unknown_names_list_what_exists() {
    let graph = "corpus/dependent_gathers.graph";
    for (arguments, words) in [
        (vec!["check", "bucketng", graph, "--candidate", "reference"], "bucketing, repair"),
        (vec!["check", "bucketing", graph, "--candidate", "nobody"], "pr158663"),
        (vec!["rules", "bucket/none"], "bucket/members-independent"),
        (vec!["check", "bucketing", graph, "--candidate", "reference", "--set", "kind=gather"], "all_gather"),
        (vec!["check", "bucketing", graph, "--candidate", "reference", "--set", "colour=red"], "cap"),
        (vec!["frobnicate"], "frobnicate"),
    ] {
        let output = program(&arguments);
        assert_eq!(status(&output), 2, "{arguments:?}: {}", text(&output.stdout));
        assert!(text(&output.stderr).contains(words), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_missing_file_is_named() {
    refuses("no/such/file.json", "no/such/file.json");
}

#[test]
fn an_empty_file() {
    let scratch = Scratch::new("empty");
    refuses(&scratch.write("empty.json", b""), "empty");
}

#[test]
fn a_truncated_gzip() {
    let scratch = Scratch::new("truncated");
    let whole = gzip(json(&[X, OUTPUT]).as_bytes());
    refuses(&scratch.write("t.json.gz", &whole[..whole.len() / 2]), "gzip");
}

#[test]
fn bytes_that_are_not_utf8() {
    let scratch = Scratch::new("utf8");
    refuses(&scratch.write("t.json", b"{\"name\":\"\xff\xfe\"}"), "UTF-8");
    refuses(&scratch.write("t.graph", b"x = \xff\xfe\n"), "UTF-8");
}

#[test]
fn nesting_of_100_000_levels() {
    let scratch = Scratch::new("deep");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    refuses(&scratch.write("t.json", deep.as_bytes()), "");
    let inside = json(&[&format!(r#"{{"name":"x","op":"call_function","target":"f","args":{deep}}}"#)]);
    refuses(&scratch.write("u.json", inside.as_bytes()), "");
    refuses(&scratch.write("t.graph", format!("x = relu({deep}): f32[1]\n").as_bytes()), "nest");
}

#[test]
fn a_line_of_10_megabytes() {
    let scratch = Scratch::new("long");
    let long = "x".repeat(10 << 20);
    refuses(&scratch.write("t.json", long.as_bytes()), "");
    refuses(&scratch.write("t.graph", format!("x = {long}(").as_bytes()), "");
}

#[test]
fn an_unknown_schema_version() {
    let scratch = Scratch::new("version");
    let other = json(&[X, OUTPUT]).replace("graph-oracle/1", "graph-oracle/99");
    refuses(&scratch.write("t.json", other.as_bytes()), "graph-oracle/99");
}

/// Faults of a graph that reads well: told when it is to be judged.
fn cannot_be_judged(name: &str, nodes: &[&str], words: &[&str]) {
    let scratch = Scratch::new(name);
    let path = scratch.write("t.json", json(nodes).as_bytes());
    let output = program(&["check", "bucketing", &path, "--candidate", "reference"]);
    let message = text(&output.stderr);
    assert_eq!(status(&output), 2, "{name}: {message}{}", text(&output.stdout));
    for word in words {
        assert!(message.contains(word), "{name}: expected {word:?} in {message:?}");
    }
}

#[test]
fn a_dangling_reference() {
    cannot_be_judged("dangling", &[X, &relu("r", "nobody"), OUTPUT], &["r", "nobody"]);
}

#[test]
fn a_forward_reference() {
    cannot_be_judged("forward", &[X, &relu("r", "s"), &relu("s", "x"), OUTPUT], &["r", "s"]);
}

#[test]
fn a_duplicate_name() {
    cannot_be_judged("duplicate", &[X, &relu("r", "x"), &relu("r", "x"), OUTPUT], &["r"]);
}

#[test]
fn a_cycle() {
    cannot_be_judged("cycle", &[X, &relu("r", "s"), &relu("s", "r"), OUTPUT], &["cycle", "r", "s"]);
}

#[test]
fn a_cycle_cannot_be_repaired_either() {
    let scratch = Scratch::new("cyclic-repair");
    let path = scratch.write("t.json", json(&[X, &relu("r", "s"), &relu("s", "r"), OUTPUT]).as_bytes());
    for arguments in
        [vec!["check", "repair", &path, "--candidate", "reference"], vec!["run", "repair", &path, "-o", "-"]]
    {
        let output = program(&arguments);
        assert_eq!(status(&output), 2, "{arguments:?}");
        assert!(text(&output.stderr).contains("cycle"), "{}", text(&output.stderr));
    }
}

#[test]
fn wrong_arity() {
    let call =
        r#"{"name":"r","op":"call_function","target":"aten.relu.default","args":[{"ref":"x"},{"ref":"x"}]}"#;
    cannot_be_judged("arity", &[X, call, OUTPUT], &["r", "1 positional"]);
}

#[test]
fn negative_and_overflowing_sizes() {
    let scratch = Scratch::new("sizes");
    let negative = json(&[&X.replace("[4]", "[-4]"), OUTPUT]);
    let huge = json(&[&X.replace("[4]", "[99999999999999999999]"), OUTPUT]);
    for file in
        [scratch.write("negative.json", negative.as_bytes()), scratch.write("huge.json", huge.as_bytes())]
    {
        let output = program(&["check", "bucketing", &file, "--candidate", "reference"]);
        assert_eq!(status(&output), 2, "{}", text(&output.stdout));
        assert!(text(&output.stderr).contains('x'), "{}", text(&output.stderr));
    }
    let product = X.replace("[4]", "[4611686018427387904,4]").replace("[1]", "[4,1]");
    cannot_be_judged("product", &[&product, OUTPUT], &["x"]);
}

#[test]
fn a_group_that_lists_a_rank_twice() {
    let scratch = Scratch::new("twice");
    let twice = json(&[X, OUTPUT]).replace(
        r#"{"0":{"size":2,"rank":0}}"#,
        r#"{"0":{"size":2,"rank":0,"ranks":[[1,1]]}},"world":{"ranks":2}"#,
    );
    let path = scratch.write("t.json", twice.as_bytes());
    let output = program(&["check", "bucketing", &path, "--candidate", "reference"]);
    assert_eq!(status(&output), 2, "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("rank 1 twice"), "{}", text(&output.stderr));
}

#[test]
fn a_world_of_too_many_ranks() {
    let scratch = Scratch::new("ranks");
    let groups = r#""groups":{"0":{"size":2,"rank":0}}"#;
    for world in [
        r#""groups":{},"world":{"ranks":4294967295}"#,
        r#""groups":{"0":{"size":2147483648,"rank":0}}"#,
        r#""groups":{"0":{"size":65536,"rank":0},"1":{"size":32768,"rank":0}}"#,
    ] {
        let graph = json(&[X, OUTPUT]).replace(groups, world);
        assert!(graph.contains(world));
        let path = scratch.write("t.json", graph.as_bytes());
        for command in [
            &["check", "bucketing", "--candidate", "reference"][..],
            &["check", "schedule", "--candidate", "reference"],
            &["check", "memory", "--candidate", "reference"],
            &["simulate"],
            &["fuzz", "bucketing", "--cases", "1", "--graph"],
        ] {
            let arguments = [command, &[&path]].concat();
            let output = program(&arguments);
            assert_eq!(status(&output), 2, "{arguments:?}: {}", text(&output.stdout));
            let told = text(&output.stderr);
            assert!(told.contains("at most 1048576") && told.lines().count() == 1, "{arguments:?}: {told}");
        }
    }
}

#[test]
fn a_shape_that_disagrees_with_its_operator_is_a_note_with_both_shapes() {
    let scratch = Scratch::new("shape");
    let wrong = relu("r", "x").replace("[4]", "[5]");
    let path = scratch.write("t.json", json(&[X, &wrong, OUTPUT]).as_bytes());
    let output = program(&["check", "bucketing", &path, "--candidate", "reference"]);
    let report = text(&output.stdout);
    assert_eq!(status(&output), 0, "{report}{}", text(&output.stderr));
    assert!(
        report.contains("input: its records contradict") && report.contains("[4]") && report.contains("[5]"),
        "{report}"
    );
}

#[test]
fn a_tensor_that_does_not_fit_its_storage_is_a_note() {
    let scratch = Scratch::new("storage");
    let small = X.replace(r#""stride":[1]"#, r#""stride":[1],"storage":0,"storage_bytes":8"#);
    assert_ne!(small, X);
    let path = scratch.write("t.json", json(&[&small, &relu("r", "x"), OUTPUT]).as_bytes());
    let output = program(&["check", "bucketing", &path, "--candidate", "reference"]);
    let report = text(&output.stdout);
    assert_eq!(status(&output), 0, "{report}{}", text(&output.stderr));
    assert!(report.contains("input: its records contradict") && report.contains("8 bytes"), "{report}");
}

#[test]
fn the_same_arguments_give_the_same_bytes() {
    let once = || {
        program(&[
            "check",
            "bucketing",
            "corpus/real/small_fsdp12_joint.json.gz",
            "--candidate",
            "reference",
            "--verbose",
        ])
        .stdout
    };
    assert_eq!(text(&once()), text(&once()));
}

#[test]
fn every_command_has_help() {
    for command in [
        "fuzz",
        "results",
        "score",
        "reduce",
        "keep",
        "check",
        "run",
        "simulate",
        "lifecycle",
        "show",
        "convert",
        "rules",
    ] {
        let output = program(&[command, "--help"]);
        assert_eq!(status(&output), 0);
        assert!(text(&output.stdout).contains("Usage"), "{command}");
    }
    assert!(Path::new(env!("CARGO_BIN_EXE_graph-oracle")).exists());
}

const JOINT: &str = "corpus/real/partition/small_gpt_joint.json.gz";

#[test]
fn a_joint_graph_is_cut_and_its_parts_are_sound() {
    for method in ["default", "min-cut"] {
        let scratch = Scratch::new(&format!("parts-{method}"));
        let (set, folder) = (format!("method={method}"), scratch.path("parts"));
        let run = program(&["run", "partition", JOINT, "-o", &folder, "--set", &set, "--format", "json"]);
        assert_eq!(status(&run), 0, "{}", text(&run.stderr));
        let saved: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        assert!(saved["bytes"].as_i64().unwrap() > 0 && saved["storages"].as_u64().unwrap() > 0, "{saved}");
        let in_short = ["run", "partition", "--method", method, JOINT, "-o", &folder, "--format", "json"];
        assert_eq!(text(&program(&in_short).stdout), text(&run.stdout));
        let unknown = program(&["run", "partition", "--method", "half", JOINT, "-o", &folder]);
        assert_eq!(status(&unknown), 2, "{}", text(&unknown.stdout));
        let (forward, backward) = (scratch.path("parts/fw.json"), scratch.path("parts/bw.json"));
        let check = program(&["check", "partition", JOINT, &forward, &backward, "--set", &set]);
        assert_eq!(status(&check), 0, "{}{}", text(&check.stdout), text(&check.stderr));
        // The parts the other way round are no partition.
        let check = program(&["check", "partition", JOINT, &backward, &forward, "--set", &set]);
        assert_eq!(status(&check), 1, "{}{}", text(&check.stdout), text(&check.stderr));
        let check = program(&["check", "partition", JOINT, &forward]);
        assert_eq!(status(&check), 2, "{}", text(&check.stdout));
        assert!(text(&check.stderr).contains("a forward and a backward graph"), "{}", text(&check.stderr));
    }
}

/// Two partitions, one after the other: judged by `check --replay`, made by `run` with `first=`.
#[test]
fn two_partitions_are_made_and_judged() {
    let check = program(&[
        "check",
        "partition",
        "--replay",
        JOINT,
        "--candidate",
        "reference",
        "--values",
        "symbolic",
    ]);
    assert_eq!(status(&check), 0, "{}{}", text(&check.stdout), text(&check.stderr));
    assert!(text(&check.stdout).contains("in the first partition"), "{}", text(&check.stdout));

    let scratch = Scratch::new("stages");
    let folder = scratch.path("parts");
    let run = program(&[
        "run",
        "partition",
        JOINT,
        "-o",
        &folder,
        "--set",
        "method=replay",
        "--set",
        "first=default",
    ]);
    assert_eq!(status(&run), 0, "{}", text(&run.stderr));
    for line in ["first partition: ", "second partition: ", " values saved, ", " storages"] {
        assert!(text(&run.stdout).contains(line), "{}", text(&run.stdout));
    }
    let stage = |names: [&str; 3]| names.map(|name| scratch.path(&format!("parts/{name}.json"))).join(",");
    let first =
        format!("{JOINT},{},{}", scratch.path("parts/first_fw.json"), scratch.path("parts/first_bw.json"));
    let second = stage(["joint", "fw", "bw"]);
    let check = program(&["check", "partition", "--replay", &first, &second, "--values", "symbolic"]);
    assert_eq!(status(&check), 0, "{}{}", text(&check.stdout), text(&check.stderr));
    // The second parts the other way round repeat nothing.
    let mixed = stage(["joint", "bw", "fw"]);
    let check = program(&["check", "partition", "--replay", &first, &mixed, "--values", "off"]);
    assert_eq!(status(&check), 1, "{}{}", text(&check.stdout), text(&check.stderr));
    let check = program(&["check", "partition", "--replay", "a,b", &second]);
    assert_eq!(status(&check), 2, "{}", text(&check.stdout));
    assert!(text(&check.stderr).contains("JOINT,FORWARD,BACKWARD"), "{}", text(&check.stderr));
    let check = program(&["check", "bucketing", "--replay", JOINT]);
    assert_eq!(status(&check), 2, "{}", text(&check.stdout));
}

/// A joint graph that cannot be cut is refused with the constraints involved, by origin.
#[test]
fn joint_graphs_that_cannot_be_cut() {
    let scratch = Scratch::new("uncut");
    let cut = |name: &str, lines: &str| {
        let joint = scratch.write(&format!("{name}.graph"), format!("graph joint joint\n{lines}").as_bytes());
        let set = ["--set", "method=min-cut", "--set", "num_fwd_outputs=1"];
        let run = program(&[&["run", "partition", &joint, "-o", &scratch.path("parts")][..], &set].concat());
        assert_eq!(status(&run), 2, "{name}: {}", text(&run.stdout));
        assert!(run.stdout.is_empty(), "{name}");
        text(&run.stderr)
    };
    let no_tangents = cut(
        "no_tangents",
        "primals_1 = input : f32[4]\ny = sin(primals_1) : f32[4]\ng = cos(primals_1) : f32[4]\noutput (y, g)\n",
    );
    assert!(no_tangents.contains("has no tangents"), "{no_tangents}");
    assert!(no_tangents.contains("data dependence:\n    g: is a backward output"), "{no_tangents}");
    let contradictory = cut(
        "contradictory",
        "primals_1 = input : f32[4]\ntangents_1 = input : f32[4]\ny = sin(primals_1) : f32[4]\n\
         g = mul(tangents_1, y) : f32[4] {partitioner_tag: must_be_in_forward}\noutput (y, g)\n",
    );
    let lines: Vec<&str> = contradictory.lines().map(str::trim).collect();
    assert!(lines[0].ends_with("g must be in forward and needs what only backward has"), "{lines:?}");
    assert_eq!(
        lines[1..],
        [
            "annotation:",
            "g: must be in forward, says its tag",
            "data dependence:",
            "g: depends on tangents_1",
            "tangents_1: is a tangent",
        ]
    );
    let neither = cut(
        "neither",
        "primals_1 = input : f32[4]\ntangents_1 = input : f32[4]\n\
         y = sin(primals_1) : f32[4] {recompute: MUST_RECOMPUTE}\nz = exp(y) : f32[4]\n\
         n = add(primals_1, 1.0) : f32[4]\ng = mul(tangents_1, y) : f32[4]\n\
         w = copy_(primals_1, n) : f32[4] {partitioner_tag: must_be_in_forward}\noutput (z, g)\n",
    );
    for words in [
        "backward needs primals_1, which can be neither saved nor computed again",
        "annotation:\n    y: must be computed again, says its tag",
        "data dependence:\n    primals_1: cannot be computed again: is an input",
        "primals_1: cannot be saved: is overwritten in forward after it was read",
    ] {
        assert!(neither.contains(words), "{words}: {neither}");
    }
}

#[test]
fn a_schedule_is_sound_until_a_node_moves_too_far() {
    let scratch = Scratch::new("schedule");
    let (before, after) = ("corpus/schedule_scored/00.graph", scratch.path("after.graph"));
    let run = program(&["run", "schedule", before, "-o", &after, "--set", "method=raise_comms"]);
    assert_eq!(status(&run), 0, "{}", text(&run.stderr));
    let check = program(&["check", "schedule", before, &after]);
    assert_eq!(status(&check), 0, "{}{}", text(&check.stdout), text(&check.stderr));
    // Two ranks' recordings of one graph: what each is called is no edit, and every rule is applied.
    let of_rank = |rank: u32| {
        let text = format!(
            "graph rank{rank} forward\nworld 2 ranks, groups dp = [0 1]\nx = input : f32[4]\n\
             g = all_gather(x, dp) : f32[8]\nw = wait(g) : f32[8]\noutput w\n"
        );
        scratch.write(&format!("rank{rank}.graph"), text.as_bytes())
    };
    let check = program(&["check", "schedule", &of_rank(0), &of_rank(1)]);
    assert_eq!(status(&check), 0, "{}{}", text(&check.stdout), text(&check.stderr));
    assert!(!text(&check.stdout).contains("no permutation"), "{}", text(&check.stdout));
    let turned = "world 2 ranks, groups dp = [0 1]\nx = input : f32[4]\na = relu(x) : f32[4]\nb = relu(a) : f32[4]\noutput b\n";
    let right = scratch.write("right.graph", turned.as_bytes());
    let wrong = turned
        .replace("a = relu(x) : f32[4]\nb = relu(a) : f32[4]", "b = relu(a) : f32[4]\na = relu(x) : f32[4]");
    let wrong = scratch.write("wrong.graph", wrong.as_bytes());
    let check = program(&["check", "schedule", &right, &wrong]);
    assert_eq!(status(&check), 1, "{}{}", text(&check.stdout), text(&check.stderr));
    assert!(text(&check.stdout).contains("order/producer-before-reader"), "{}", text(&check.stdout));
}

#[test]
fn ranks_that_wait_for_each_other_do_not_finish() {
    let scratch = Scratch::new("simulate");
    let graph = |first: &str, second: &str| {
        format!(
            "world 2 ranks, groups a = [0 1], b = [0 1]\nx = input : f32[4]\n\
             g = all_reduce(x, \"sum\", {first}) : f32[4]\nv = wait(g) : f32[4]\n\
             h = all_reduce(v, \"sum\", {second}) : f32[4]\nw = wait(h) : f32[4]\noutput w\n"
        )
    };
    let (one, other) = (graph("a", "b"), graph("b", "a"));
    let (one, other) =
        (scratch.write("one.graph", one.as_bytes()), scratch.write("other.graph", other.as_bytes()));
    let alike = program(&["simulate", &one]);
    assert_eq!(status(&alike), 0, "{}{}", text(&alike.stdout), text(&alike.stderr));
    let apart = program(&["simulate", &one, &other, "--format", "json"]);
    assert_eq!(status(&apart), 1, "{}{}", text(&apart.stdout), text(&apart.stderr));
    let report: serde_json::Value = serde_json::from_slice(&apart.stdout).unwrap();
    assert_eq!(report["finishes"], false);
    for (arguments, why) in [
        (&[&one[..], "--ranks", "0,1"][..], "one file says itself"),
        (&[&one, &other, "--ranks", "0,2"], "there is no graph 2"),
        (&[&one, &other, "--ranks", "0"], "1 graphs are named, and the world has 2 ranks"),
        (&[&one, &other, "--ranks", "0,1,0"], "3 graphs are named, and the world has 2 ranks"),
        (&[&one, &other, "--ranks", "0,0"], "other.graph: no rank runs it"),
        (&[&one, &other, &one], "one.graph: no rank runs it; the world has 2 ranks"),
        (&[&one, "tests/cases/schedule/pipeline.graph"], "it has graphs of ranks"),
    ] {
        let output = program(&[&["simulate"], arguments].concat());
        let said = text(&output.stderr);
        assert_eq!((status(&output), said.contains(why)), (2, true), "{arguments:?}: {said}");
    }
}

#[test]
fn what_is_given_twice_or_does_not_fit_is_refused() {
    let case = "tests/cases/bucket/all_gather_pair.graph";
    let joint = "corpus/real/small_tp_allreduce_joint.json.gz";
    let scratch = Scratch::new("refused");
    let mut longer = std::fs::read(joint).unwrap();
    longer.extend(b"more");
    let longer = scratch.write("longer.json.gz", &longer);
    for (arguments, why) in [
        (
            &[
                "check",
                "bucketing",
                case,
                "--candidate",
                "reference",
                "--set",
                "cap=1MiB",
                "--set",
                "cap=2MiB",
            ][..],
            "--set cap: given twice",
        ),
        (&["check", "bucketing", &longer, "--candidate", "reference"], "bytes follow its end"),
        (
            &[
                "check",
                "partition",
                joint,
                "--candidate",
                "reference",
                "--method",
                "replay",
                "--set",
                "promises=[minimum_cut]",
            ],
            "minimum_cut needs method=min-cut",
        ),
        (&["fuzz", "bucketing", "--set", "bogus=1", "--cases", "1"], "no option \"bogus\""),
        (&["fuzz", "all", "--set", "cap=1MiB", "--cases", "1"], "name one pass"),
    ] {
        let output = program(arguments);
        assert_eq!(status(&output), 2, "{}{}", text(&output.stdout), text(&output.stderr));
        assert!(text(&output.stderr).contains(why), "{}", text(&output.stderr));
    }
    let same = program(&[
        "check",
        "bucketing",
        case,
        "--candidate",
        "reference",
        "--set",
        "cap=1MiB",
        "--set",
        "cap=1MiB",
    ]);
    assert_eq!(status(&same), 0, "{}", text(&same.stderr));
}

#[test]
fn a_campaign_sets_an_option_of_every_case() {
    let scratch = Scratch::new("set");
    let store = scratch.path("store");
    let fuzz = |set: &[&str]| {
        let start = [
            "fuzz",
            "bucketing",
            "--candidate",
            "pr158663",
            "--cases",
            "20",
            "--jobs=1",
            "--reduce-seconds=0",
            "--show=examples",
        ];
        program(&[&start[..], &["--out", &store], set].concat())
    };
    let run = fuzz(&["--set", "mode=default", "--set", "cap=1MiB"]);
    let (told, cases) = (text(&run.stdout), "pass bucketing");
    assert!(told.contains("\nbucketing by pr158663 with cap=1MiB mode=default, seed 0"), "{told}");
    let passes: Vec<&str> = told.lines().filter(|line| line.trim().starts_with(cases)).collect();
    let has_both = |line: &&str| line.contains("cap=1MiB") && line.contains("mode=default");
    assert!(passes.iter().any(has_both), "{told}");
    let same = fuzz(&["--set", "cap=1MiB", "--set", "mode=default"]);
    assert_eq!(status(&same), status(&run), "{}", text(&same.stderr));
    let other = fuzz(&["--set", "cap=2MiB"]);
    assert_eq!(status(&other), 2);
    assert!(text(&other.stderr).contains("they differ in: set"), "{}", text(&other.stderr));
}

#[test]
fn time_and_threads_have_limits() {
    // A reduction ends with its time, also where that is over before the first judgement.
    let reduce = program(&["reduce", "corpus/schedule_scored/00.graph", "--seconds", "0"]);
    assert_eq!(status(&reduce), 2, "{}{}", text(&reduce.stdout), text(&reduce.stderr));
    assert!(text(&reduce.stderr).contains("not judged within 0 seconds"), "{}", text(&reduce.stderr));
    for (arguments, why) in [
        (["fuzz", "bucketing", "--jobs", "5000"], "at most 1024"),
        (["smoke", "--device=host", "--interleavings", "99999999999"], "100000"),
        (["smoke", "--device=host", "--interleavings", "0"], "0 is not in 1..=100000"),
    ] {
        let output = program(&arguments);
        assert_eq!(status(&output), 2, "{}{}", text(&output.stdout), text(&output.stderr));
        assert!(text(&output.stderr).contains(why), "{}", text(&output.stderr));
    }
}

#[test]
fn memory_is_counted_and_events_are_judged() {
    let scratch = Scratch::new("memory");
    let graph = "corpus/real/small_fsdp12_joint.json.gz";
    let check = program(&["check", "memory", graph, "--candidate", "reference", "--format", "json"]);
    assert_eq!(status(&check), 0, "{}{}", text(&check.stdout), text(&check.stderr));
    let report: serde_json::Value = serde_json::from_slice(&check.stdout).unwrap();
    assert!(report["memory"]["replay_peak_bytes"].as_i64().unwrap() > 0, "{report}");
    for format in ["svg", "json", "text"] {
        let shown = program(&["show", graph, "--timeline", "--format", format]);
        assert_eq!(status(&shown), 0, "{}", text(&shown.stderr));
        assert!(!shown.stdout.is_empty());
    }
    let events = program(&["lifecycle", "--graph", graph]);
    assert_eq!(status(&events), 0, "{}", text(&events.stderr));
    let own = scratch.write("own.jsonl", &events.stdout);
    let judged = program(&["lifecycle", &own, "--graph", graph]);
    assert_eq!(status(&judged), 0, "{}{}", text(&judged.stdout), text(&judged.stderr));
    let left_out = "reads, writes, launches and waits are not";
    assert!(text(&judged.stdout).contains(left_out), "{}", text(&judged.stdout));
    let twice = "{\"event\":\"alloc\",\"storage\":\"x\",\"bytes\":8}\n{\"event\":\"free\",\"storage\":\"x\"}\n\
                 {\"event\":\"free\",\"storage\":\"x\"}\n{\"event\":\"end\"}\n";
    let judged = program(&["lifecycle", &scratch.write("twice.jsonl", twice.as_bytes())]);
    assert_eq!(status(&judged), 1, "{}{}", text(&judged.stdout), text(&judged.stderr));
    assert!(text(&judged.stdout).contains("event 3"), "{}", text(&judged.stdout));
    // Recorded on a CPU: a is written while the gather reads it.
    let host = "world 2 ranks, groups dp = [0 1]\ndevice cpu\nx = input : f32[8]\na = relu(x)\n\
                g = all_gather(a, dp)\nw = wait(g)\noutput w\n";
    let host = scratch.write("host.graph", host.as_bytes());
    let events = program(&["lifecycle", "--graph", &host]);
    let written = text(&events.stdout)
        .replace("{\"event\":\"wait\"", "{\"event\":\"write\",\"storage\":\"a\"}\n{\"event\":\"wait\"");
    let judged = program(&["lifecycle", &scratch.write("host.jsonl", written.as_bytes()), "--graph", &host]);
    assert_eq!(status(&judged), 1, "{}{}", text(&judged.stdout), text(&judged.stderr));
    assert!(text(&judged.stdout).contains("a is written while g is reading it"), "{}", text(&judged.stdout));
    let torn = scratch.write("torn.jsonl", b"{\"event\":\"alloc\",\"storage\":");
    let judged = program(&["lifecycle", &torn]);
    assert_eq!(
        (status(&judged), text(&judged.stderr).contains("event 1")),
        (2, true),
        "{}",
        text(&judged.stderr)
    );
}

#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn campaigns_of_every_family_find_nothing_in_the_reference_and_mutants() {
    for (pass, candidate, expected) in [
        ("partition", "reference", 0),
        ("schedule", "reference", 0),
        ("memory", "reference", 0),
        ("schedule", "schedule-write-before-read", 1),
        ("memory", "memory-freed-with-base", 1),
    ] {
        let output = program(&["fuzz", pass, "--candidate", candidate, "--cases", "30", "--jobs", "1"]);
        assert_eq!(
            status(&output),
            expected,
            "{pass} {candidate}: {}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
    }
    for (pass, candidate) in [
        ("bucketing", "bucket-no-key"),
        ("bucketing", "bucket-lost-waits"),
        ("bucketing", "bucket-first-group-of-size"),
        ("partition", "reference"),
    ] {
        let agree = program(&["fuzz", pass, "--candidate", candidate, "--cases", "30", "--values", "agree"]);
        assert_eq!(status(&agree), 0, "{candidate}: {}{}", text(&agree.stdout), text(&agree.stderr));
    }
    let window = program(&["fuzz", "memory", "--graph", "corpus/real/small_mlp_joint.json.gz"]);
    assert_eq!((status(&window), text(&window.stderr).contains("cases are made of real graphs")), (2, true));
}

/// Exit status 2 and a line that contains `words`.
fn refuses_schedule(scratch: &Scratch, case: &str, words: &str) {
    let path = scratch.write("case.graph", case.as_bytes());
    let output = program(&["check", "schedule", &path, "--candidate", "reference"]);
    let message = text(&output.stderr);
    assert_eq!(status(&output), 2, "{case}\n{}{message}", text(&output.stdout));
    assert!(message.contains(words), "expected {words:?} in {message:?}");
}

#[test]
fn schedules_that_cannot_be_judged_are_told() {
    let scratch = Scratch::new("schedules");
    let head = "world 2 ranks, groups pp = [0 1]\npass schedule\n";
    let send = "x = input : f32[4]\ny = send(x, 1, 0, pp)\nz = wait(y)\noutput x\n";
    let other = "x = input : f32[4]\nb = relu(x)\noutput b\n";
    let no_peer = "rank 0 sends y to rank 1 on pp, which has no receive for it";
    refuses_schedule(&scratch, &format!("{head}{send}--- rank 1\n{other}"), no_peer);
    let outside = send.replace("(x, 1", "(x, 7");
    let told = "the peer of y on rank 0 is 7, but process group \"pp\" has 2 ranks";
    refuses_schedule(&scratch, &format!("{head}{outside}--- rank 1\n{other}"), told);
    let told = "there is no rank 9: the world has 2 ranks";
    refuses_schedule(&scratch, &format!("{head}{other}--- rank 9\n{other}"), told);
    let estimates = |line: &str| format!("{head}{line}\n{other}");
    refuses_schedule(&scratch, &estimates("estimates {b: nan}"), "the estimate for b is NaN seconds");
    refuses_schedule(&scratch, &estimates("estimates rank 1 {b: 1.0}"), "rank 0 has no estimates");
    refuses_schedule(&scratch, &estimates("estimates link=0"), "the estimated link is 0");
    let promise = estimates("").replace("pass schedule", "pass schedule promises=[speed]");
    refuses_schedule(&scratch, &promise, "unknown promise \"speed\"; there are: all, peak");
    let world = format!("world 2 ranks, groups pp = [0 5]\npass schedule\n{other}");
    refuses_schedule(&scratch, &world, "process group \"pp\" lists rank 5");
}

#[test]
fn a_schedule_is_told_with_what_it_is_worth() {
    let output =
        program(&["check", "schedule", "tests/cases/schedule/exposed_time_hidden.graph", "--format", "json"]);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["schedule"]["exposed_nanoseconds"], serde_json::json!({"before": 10000, "after": 0}));
    assert_eq!(report["schedule"]["moved_nodes"], 3);
    let output = program(&["simulate", "tests/cases/schedule/pipeline.graph"]);
    assert_eq!(status(&output), 0, "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).starts_with("all ranks finish"), "{}", text(&output.stdout));
}

/// A graph that fills slot `rank` of its buffer, and says so.
fn of_rank(rank: u32) -> String {
    let (from, to) = (8 * rank, 8 * rank + 8);
    format!(
        "groups \"0\" = 2 ranks at {rank}
x = input : f32[4]
z = input : f32[4]
e = aten.empty.memory_format([16], dtype=f32) : f32[16] storage 50
s = aten.slice.Tensor(e, 0, {from}, {to}) : f32[8] storage 50 offset {from} bytes 64
c = aten.cat.default([x, z]) : f32[8]
p = aten.copy_.default(s, c) : f32[8] storage 50 offset {from} bytes 64
go = _c10d_functional.all_gather_into_tensor_out.default(p, 2, \"0\", out=e) : f32[16] storage 50
wo = wait(go) : f32[16] storage 50
q = aten.view.default(wo, [2, 8]) : f32[2, 8] storage 50
a, b = split_with_sizes(q, [4, 4], 1)
w1 = aten.clone.default(a) : f32[2, 4]
v1 = aten.clone.default(b) : f32[2, 4]
w2 = aten.view.default(w1, [8]) : f32[8]
v2 = aten.view.default(v1, [8]) : f32[8]
output (w2, v2)
"
    )
}

#[test]
fn a_graph_in_the_place_of_another_rank_is_no_evidence() {
    let folder = Scratch::new("places");
    let file = |name: &str, text: String| folder.write(name, text.as_bytes());
    let before = "groups \"0\" = 2 ranks at 0\nx = input : f32[4]\nz = input : f32[4]\n\
                  g = all_gather(x, 2, \"0\") : f32[8]\nw = wait(g) : f32[8]\n\
                  h = all_gather(z, 2, \"0\") : f32[8]\nv = wait(h) : f32[8]\noutput (w, v)\n";
    let before = file("before.graph", before.to_string());
    let (first, second) = (file("r0.graph", of_rank(0)), file("r1.graph", of_rank(1)));
    let check = |afters: &[&str]| {
        let output = program(&[&["check", "bucketing", before.as_str()], afters].concat());
        (status(&output), text(&output.stderr))
    };
    let (status, message) = check(&[&first, &second]);
    assert_eq!(status, 0, "{message}");
    let (status, message) = check(&[&second, &first]);
    assert_eq!(status, 2, "{message}");
    assert!(message.contains("in the place of rank 0"), "{message}");
    let (status, message) = check(&[&first, &second, &first]);
    assert_eq!(status, 2, "{message}");
    assert!(message.contains("for rank 2, and the world has 2 ranks"), "{message}");
}

/// A page is not written over a graph, and a name with a line break cannot pass for a line of ours.
#[test]
fn what_would_do_harm_is_refused() {
    let scratch = Scratch::new("harm");
    let (case, page) = (scratch.path("case.graph"), scratch.path("page.html"));
    std::fs::copy("corpus/all_gather_pair.graph", &case).unwrap();
    let over = program(&["check", "bucketing", &case, "--candidate", "reference", "--html", &case]);
    assert_eq!(status(&over), 2, "{}", text(&over.stdout));
    assert!(text(&over.stderr).contains("--html would overwrite it"), "{}", text(&over.stderr));
    assert!(std::fs::read_to_string(&case).unwrap().starts_with("# Two gathers"), "the case is gone");
    for _ in 0..2 {
        let run = program(&["check", "bucketing", &case, "--candidate", "reference", "--html", &page]);
        assert_eq!(status(&run), 0, "{}", text(&run.stderr));
    }
    let named = program(&["check", "bucketing", "a\n::error::b", "--format", "github"]);
    assert_eq!(status(&named), 2);
    assert_eq!(text(&named.stderr).lines().count(), 1, "{}", text(&named.stderr));
}

/// A campaign that judged nothing does not say that nothing is there.
#[test]
fn a_page_says_what_was_not_judged() {
    let run = program(&["fuzz", "bucketing", "--cases", "0", "--html", "-"]);
    assert!(text(&run.stdout).contains("UNDECIDED") && !text(&run.stdout).contains("NOTHING FOUND"));
    let run = program(&["fuzz", "bucketing", "--cases", "30", "--jobs", "1", "--html", "-"]);
    assert!(text(&run.stdout).contains("NOTHING FOUND"));
}

/// Who may communicate is not said to finish.
#[test]
fn unknown_communication_is_not_decided() {
    let scratch = Scratch::new("unknown");
    let path = scratch.path("unknown.graph");
    for call in ["_c10d_functional.my_gather.default(x, 2, dp)", "my.unknown.default(x, 'dp')"] {
        let words =
            format!("world 2 ranks, groups dp = [0 1]\nx = input : f32[4]\ng = {call} : f32[8]\noutput g\n");
        std::fs::write(&path, words).unwrap();
        let run = program(&["simulate", &path]);
        assert_eq!(status(&run), 3, "{}", text(&run.stdout));
        assert!(text(&run.stdout).contains("not modelled: g may communicate"), "{}", text(&run.stdout));
    }
}

/// What is proved of one rank supposes that collectives meet: a report that denies it does not claim more.
#[test]
fn a_proof_says_what_it_supposes() {
    let scratch = Scratch::new("suppose");
    let path = scratch.path("mixed.graph");
    let launches = |first: &str, second: &str| {
        let launch = |x: &str, name: &str| {
            format!("{name} = all_reduce({x}, \"sum\", dp) : f32[4]\nw{name} = wait({name}) : f32[4]\n")
        };
        let of = |name: &str| launch(if name == "a" { "x" } else { "y" }, name);
        let ends = "c = neg(wa) : f32[4]\nd = neg(wb) : f32[4]\noutput (c, d)\n";
        format!("x = input : f32[4]\ny = input : f32[4]\n{}{}{ends}", of(first), of(second))
    };
    let (right, wrong) = (launches("a", "b"), launches("b", "a"));
    let case = format!(
        "world 2 ranks, groups dp = [0 1]\npass rewrite\n{right}--- after rank 0\n{right}--- after rank 1\n{wrong}"
    );
    std::fs::write(&path, case).unwrap();
    let run = program(&["check", "rewrite", &path]);
    assert_eq!(status(&run), 1, "{}{}", text(&run.stdout), text(&run.stderr));
    let told = text(&run.stdout);
    let proofs = told.lines().filter(|line| line.contains("proved at full size"));
    assert!(proofs.clone().all(|line| line.contains("this supposes")), "{told}");
    assert!(told.contains("rewrite/collectives"), "{told}");
}
