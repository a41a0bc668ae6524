//! The program as a user runs it: exit statuses, and one clear line for each kind of bad input.

use flate2::{Compression, write::GzEncoder};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn program(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_graph-oracle"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap()
}

fn status(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file in a folder of its own, removed with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let folder = std::env::temp_dir().join(format!("graph-oracle-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
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
    let output = program(&["check", "bucketing", "corpus/real/small_fsdp12_joint.json.gz"]);
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

#[test]
fn the_historic_algorithm_is_convicted_with_exit_1() {
    let output =
        program(&["check", "bucketing", "corpus/two_dependent_gathers.graph", "--candidate", "pr158663"]);
    assert_eq!(status(&output), 1, "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("bucket/members-independent"), "{}", text(&output.stdout));
}

#[test]
fn unknown_names_list_what_exists() {
    let graph = "corpus/two_dependent_gathers.graph";
    for (arguments, words) in [
        (vec!["check", "bucketng", graph], "bucketing, repair"),
        (vec!["check", "bucketing", graph, "--candidate", "nobody"], "reference, pr158663"),
        (vec!["rules", "bucket/none"], "bucket/members-independent"),
        (vec!["check", "bucketing", graph, "--set", "kind=gather"], "all_gather"),
        (vec!["check", "bucketing", graph, "--set", "colour=red"], "cap"),
        (vec!["frobnicate"], "check"),
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
    let output = program(&["check", "bucketing", &path]);
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
    for arguments in [vec!["check", "repair", &path], vec!["run", "repair", &path, "-o", "-"]] {
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
        let output = program(&["check", "bucketing", &file]);
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
    let output = program(&["check", "bucketing", &path]);
    assert_eq!(status(&output), 2, "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("rank 1 twice"), "{}", text(&output.stderr));
}

#[test]
fn a_shape_that_disagrees_with_its_operator_is_a_finding_with_both_shapes() {
    let scratch = Scratch::new("shape");
    let wrong = relu("r", "x").replace("[4]", "[5]");
    let path = scratch.write("t.json", json(&[X, &wrong, OUTPUT]).as_bytes());
    let output = program(&["check", "bucketing", &path]);
    let report = text(&output.stdout);
    assert_eq!(status(&output), 1, "{report}{}", text(&output.stderr));
    assert!(
        report.contains("graph/input-shapes") && report.contains("[4]") && report.contains("[5]"),
        "{report}"
    );
}

#[test]
fn the_same_arguments_give_the_same_bytes() {
    let once =
        || program(&["check", "bucketing", "corpus/real/small_fsdp12_joint.json.gz", "--verbose"]).stdout;
    assert_eq!(text(&once()), text(&once()));
}

#[test]
fn every_command_has_help() {
    for command in ["check", "run", "show", "convert", "rules"] {
        let output = program(&[command, "--help"]);
        assert_eq!(status(&output), 0);
        assert!(text(&output.stdout).contains("Usage"), "{command}");
    }
    assert!(Path::new(env!("CARGO_BIN_EXE_graph-oracle")).exists());
}
