//! The formats of other tools: SARIF, JUnit and GitHub's annotations, with places in files and names that do no harm.
//! That they are valid, tests/formats.py says.

use crate::common::{Scratch, program, text};
use serde_json::{Value, json};
use std::process::Command;

const GRAPH: &str = "corpus/dependent_gathers.graph";
const CONVICTED: &[&str] = &["check", "bucketing", GRAPH, "--candidate", "pr158663", "--format"];
const HOSTILE: &str = "<b a=\"'&]]>|`@u`%25\u{1b}[31m\u{7}\r\n::error::x\n##[error]y {0}[a](1) \u{202e}";

fn printed(arguments: &[&str], status: i32) -> String {
    let output = program(arguments);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn sarif(arguments: &[&str], status: i32) -> Value {
    serde_json::from_str(&printed(&[arguments, &["--format", "sarif"]].concat(), status)).unwrap()
}

/// A graph of an all-reduce, whose names end with `ending`.
fn graph(op: &str, ending: &str) -> String {
    let tensor = json!({"t": "tensor", "shape": [4], "stride": [1], "dtype": "float32", "device": "cpu"});
    let name = |name: &str| format!("{name}{ending}");
    let call = |is: &str, target: &str, arguments: Value| {
        json!({"name": name(is), "op": "call_function", "target": target, "args": arguments, "out": tensor,
               "stack": "train.py line 7, in step"})
    };
    let nodes = [
        json!({"name": name("x"), "op": "placeholder", "target": "x", "out": tensor}),
        call("r", "_c10d_functional.all_reduce.default", json!([{"ref": name("x")}, op, "dp"])),
        call("w", "_c10d_functional.wait_tensor.default", json!([{"ref": name("r")}])),
        json!({"name": "output", "op": "output", "target": "output", "args": [[{"ref": name("w")}]]}),
    ];
    let nodes: Vec<String> = nodes.iter().map(Value::to_string).collect();
    format!(
        "{{\"schema_version\":\"graph-oracle/1\",\"name\":\"g\",\"kind\":\"forward\",\"source\":\"test\",\"torch\":\"\",\n\
         \"groups\":{{\"dp\":{{\"size\":2,\"rank\":0}}}},\"symbols\":{{}},\"num_nodes\":4,\"ops\":{{}},\"nodes\":[\n{}\n]}}\n",
        nodes.join(",\n")
    )
}

#[test]
fn sarif_says_rule_level_and_place() {
    let log = sarif(&CONVICTED[..5], 1);
    assert_eq!((&log["version"], log["runs"].as_array().unwrap().len()), (&json!("2.1.0"), 1));
    let run = &log["runs"][0];
    let driver = &run["tool"]["driver"];
    assert_eq!(
        (&driver["name"], &driver["semanticVersion"]),
        (&json!("graph-oracle"), &json!(env!("CARGO_PKG_VERSION")))
    );
    assert_eq!(run["columnKind"], "unicodeCodePoints");
    let first = &run["results"][0];
    assert_eq!((&first["ruleId"], &first["level"]), (&json!("bucket/members-independent"), &json!("error")));
    let rule = &driver["rules"][first["ruleIndex"].as_u64().unwrap() as usize];
    assert_eq!(rule["id"], first["ruleId"]);
    assert_eq!(rule["defaultConfiguration"]["level"], "error");
    let stated = graph_oracle::rules::statement("bucket/members-independent").unwrap();
    assert_eq!(rule["shortDescription"]["text"], stated.statement);
    assert!(rule["help"]["text"].as_str().unwrap().contains(stated.reason));
    let message = first["message"]["text"].as_str().unwrap();
    for words in ["a and b share a bucket", "replaces a, b, c", "\nexpected: ", "\nobserved: "] {
        assert!(message.contains(words), "{message}");
    }
    let place = &first["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], GRAPH);
    let line = place["region"]["startLine"].as_u64().unwrap() as usize;
    let file =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/dependent_gathers.graph"))
            .unwrap();
    assert!(file.lines().nth(line - 1).unwrap().starts_with("a  = "), "line {line}");
    // Nothing hangs on the run.
    assert_eq!(log, sarif(&CONVICTED[..5], 1));
    let policy = "tests/cases/policy";
    let policies = std::fs::read_dir(format!("{}/{policy}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let mut levels: Vec<String> = Vec::new();
    for case in policies {
        let name = format!("{policy}/{}", case.unwrap().file_name().to_string_lossy());
        let output = program(&["check", "bucketing", &name, "--format", "sarif"]);
        if output.status.code() == Some(1) {
            let log: Value = serde_json::from_slice(&output.stdout).unwrap();
            let results = log["runs"][0]["results"].as_array().unwrap().clone();
            levels.extend(results.iter().map(|result| result["level"].as_str().unwrap().to_string()));
        }
    }
    assert!(levels.iter().any(|level| level == "warning"), "no policy is violated in {policy}: {levels:?}");
}

/// Exchange JSON, also compressed; and the line of the user's program.
#[test]
fn places_are_lines_of_files_and_of_the_program() {
    let scratch = Scratch::new("tools-places");
    let before = scratch.write("before.json", graph("sum", "").as_bytes());
    let after = scratch.write("after.json", graph("max", "").as_bytes());
    for ending in ["json", "json.gz"] {
        let after = match ending {
            "json" => after.clone(),
            _ => {
                let packed = scratch.path("after.json.gz");
                assert!(program(&["convert", &after, &packed]).status.success());
                packed
            }
        };
        let log = sarif(&["check", "rewrite", &before, &after], 1);
        let results = log["runs"][0]["results"].as_array().unwrap();
        let of_node = results.iter().find(|result| result["relatedLocations"].is_array()).unwrap();
        let place = &of_node["locations"][0]["physicalLocation"];
        assert!(
            place["artifactLocation"]["uri"].as_str().unwrap().ends_with(&format!("after.{ending}")),
            "{of_node:#}"
        );
        assert!(place["region"]["startLine"].as_u64().unwrap() > 1, "{of_node:#}");
        let related = of_node["relatedLocations"].as_array().unwrap();
        let own = related.iter().map(|one| &one["physicalLocation"]);
        let own: Vec<&Value> = own.filter(|place| place["artifactLocation"]["uri"] == "train.py").collect();
        assert_eq!(own.len(), 1, "{of_node:#}");
        assert_eq!(own[0]["region"], json!({"startLine": 7}));
    }
    let junit = printed(&["check", "rewrite", &before, &after, "--format", "junit"], 1);
    assert!(junit.contains("\nat train.py:7 ("), "{junit}");
    // A graph as PyTorch prints it, another in which a call is another one.
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/printed_graphs/graph.txt"))
            .unwrap();
    let line =
        text.lines().position(|line| line.contains("torch.ops.aten.") && line.contains(" = ")).unwrap();
    let name = text.lines().nth(line).unwrap().trim().split([':', ' ']).next().unwrap().to_string();
    let places = graph_oracle::format::Places::of(text);
    let at = places.find(&graph_oracle::format::Spot::Node(name)).unwrap();
    assert_eq!(at.line, line + 1);
}

/// Names of nodes and numbers in the title do not change it.
#[test]
fn fingerprints_outlive_names() {
    let scratch = Scratch::new("tools-fingerprints");
    let prints = |ending: &str| {
        let before = scratch.write(&format!("b{}.json", ending.len()), graph("sum", ending).as_bytes());
        let after = scratch.write(&format!("a{}.json", ending.len()), graph("max", ending).as_bytes());
        let log = sarif(&["check", "rewrite", &before, &after], 1);
        let results = log["runs"][0]["results"].as_array().unwrap().clone();
        let print =
            |result: &Value| result["partialFingerprints"]["graphOracle/v1"].as_str().unwrap().to_string();
        results.iter().map(print).collect::<Vec<_>>()
    };
    let one = prints("");
    assert!(!one.is_empty());
    assert_eq!(one, prints("_of_another_name"));
}

#[test]
fn junit_counts_what_is_in_it() {
    let xml = printed(&[CONVICTED, &["junit"]].concat(), 1);
    let head = xml.lines().find(|line| line.contains("<testsuite name=")).unwrap();
    let count = |of: &str| {
        let rest = head.split(&format!(" {of}=\"")).nth(1).unwrap();
        rest.split('"').next().unwrap().parse::<usize>().unwrap()
    };
    assert_eq!(count("tests"), xml.matches("<testcase ").count());
    assert_eq!(count("failures"), xml.matches("<failure ").count());
    assert_eq!(count("skipped"), xml.matches("<skipped ").count());
    assert!(count("failures") > 0 && count("skipped") > 0, "{head}");
    assert!(
        xml.contains("<testcase classname=\"graph-oracle.check.bucketing\" name=\"rewrite/values\">"),
        "{xml}"
    );
    // What is undecided is an error: it is not green, and nobody is convicted.
    let doubtful = "tests/cases/trials/maximum_of_an_exponential.graph";
    let xml = printed(&["check", "bucketing", doubtful, "--format", "junit"], 3);
    assert!(xml.contains(" failures=\"0\" errors=\"1\" "), "{xml}");
    assert!(xml.contains("<error type=\"rewrite/values\""), "{xml}");
    let log = sarif(&["check", "bucketing", doubtful], 3);
    assert_eq!(log["runs"][0]["results"][0]["level"], "note");
}

/// Runs the program with a file for the summary of a step.
fn with_summary(arguments: &[&str], summary: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_graph-oracle"));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).env("GITHUB_STEP_SUMMARY", summary);
    text(&command.output().unwrap().stdout)
}

#[test]
fn github_is_told_in_commands_and_a_summary() {
    let scratch = Scratch::new("tools-github");
    let summary = scratch.path("summary.md");
    let log = with_summary(&[CONVICTED, &["github"]].concat(), &summary);
    let first = log.lines().next().unwrap();
    let begin =
        format!("::error file={GRAPH},line=9,col=1,title=bucket/members-independent::a and b share a bucket");
    assert!(first.starts_with(&begin), "{first}");
    assert!(log.contains("\nVIOLATED bucket/members-independent"), "{log}");
    let told = std::fs::read_to_string(&summary).unwrap();
    assert!(told.contains("| error | <code>bucket&#47;members&#45;independent</code> |"), "{told}");
    // It is added to, never beyond what GitHub takes, and by this format only.
    with_summary(&[CONVICTED, &["github"]].concat(), &summary);
    assert_eq!(std::fs::read_to_string(&summary).unwrap(), told.repeat(2));
    std::fs::write(&summary, "x".repeat((1 << 20) - 1000)).unwrap();
    with_summary(&[CONVICTED, &["github"]].concat(), &summary);
    let size = std::fs::metadata(&summary).unwrap().len();
    assert!(size <= 1 << 20, "{size} bytes");
    let other = scratch.path("other.md");
    with_summary(&[CONVICTED, &["text"]].concat(), &other);
    assert!(!std::path::Path::new(&other).exists());
    let nowhere = scratch.path("no/such/folder.md");
    assert_eq!(with_summary(&[CONVICTED, &["github"]].concat(), &nowhere), "");
}

/// What somebody else named steers neither a terminal nor whoever reads these formats.
#[test]
#[cfg(unix)]
fn hostile_names_do_no_harm() {
    let scratch = Scratch::new("tools-hostile");
    let before = scratch.write("be,fo:re%::error::z.json", graph("sum", HOSTILE).as_bytes());
    let after = scratch.write("after.json", graph("max", HOSTILE).as_bytes());
    let summary = scratch.path("summary.md");
    for arguments in [
        vec!["check", "rewrite", &before, &after],
        vec!["check", "bucketing", &before, &after],
        vec!["simulate", &before, &after, "--ranks", "0,1"],
    ] {
        for format in ["sarif", "junit", "github"] {
            let all = [&arguments[..], &["--format", format]].concat();
            let said = with_summary(&all, &summary);
            let steers =
                |c: char| (c.is_control() && c != '\n' && c != '\t') || "\u{202e}\u{2066}".contains(c);
            assert!(!said.contains(steers), "{all:?}: {said:?}");
            match format {
                "junit" => assert!(!said.contains("<b a=") && !said.contains("&]"), "{said}"),
                "sarif" => {
                    let log: Value = serde_json::from_str(&said).unwrap();
                    let results = log["runs"][0]["results"].as_array().unwrap();
                    assert!(!results.is_empty(), "{said}");
                    for result in results {
                        let message = result["message"]["text"].as_str().unwrap();
                        assert!(!message.contains("](") && !message.contains(" {0}"), "{message}");
                    }
                }
                _ => {
                    for line in said.lines() {
                        let is_ours =
                            ["::error ", "::warning ", "::notice "].iter().any(|word| line.starts_with(word));
                        assert!(
                            is_ours || !(line.trim_start().starts_with("::") || line.contains("##[")),
                            "{line}"
                        );
                        assert!(!is_ours || line.matches("::").count() >= 2, "{line}");
                        let head = line.split("::").nth(1).unwrap_or("");
                        assert!(!is_ours || !head.contains("be,fo"), "{line}");
                    }
                }
            }
        }
    }
    let told = std::fs::read_to_string(&summary).unwrap();
    for markup in ["<b", "`", "@u", "[a]", "##[", "::error"] {
        assert!(!told.contains(markup), "{markup} in {told}");
    }
}

#[test]
fn other_commands_say_who_prints_a_format() {
    for (arguments, name) in [
        (&["rules"][..], "rules"),
        (&["smoke"], "smoke"),
        (&["run", "partition", GRAPH, "-o", "-"], "run"),
        (&["score", "--edits", GRAPH], "score"),
    ] {
        for format in ["sarif", "junit", "github"] {
            let output = program(&[arguments, &["--format", format]].concat());
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{said}");
            let words = format!("--format {format}: {name} prints text or json");
            assert!(
                said.contains(&words) && said.contains("check, trace, fuzz, results, lifecycle and simulate"),
                "{said}"
            );
        }
    }
}

#[test]
fn pairs_campaigns_and_events_are_tests() {
    let logs = "corpus/printed_graphs/logs.txt";
    let log: Value = serde_json::from_slice(&program(&["trace", logs, "--format", "json"]).stdout).unwrap();
    let xml = text(&program(&["trace", logs, "--format", "junit"]).stdout);
    assert_eq!(xml.matches("<testcase ").count(), log["pairs"].as_array().unwrap().len(), "{xml}");
    assert!(xml.contains(&format!("({logs}:")) || xml.contains("(logs.txt:"), "{xml}");

    let scratch = Scratch::new("tools-campaign");
    let out = scratch.path("out");
    let fuzz = [
        "fuzz",
        "bucketing",
        "--candidate",
        "pr158663",
        "--cases",
        "4",
        "--reduce-seconds",
        "1",
        "--out",
        &out,
    ];
    let found = sarif(&fuzz, 1);
    let result = &found["runs"][0]["results"][0];
    let uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].as_str().unwrap();
    assert!(std::path::Path::new(uri.strip_prefix("file://").unwrap()).is_file(), "{uri}");
    let again = sarif(&["results", &out], 1);
    assert_eq!(again["runs"][0]["results"], found["runs"][0]["results"]);

    let joint = "corpus/real/partition/small_gpt_joint.json.gz";
    let events = program(&["lifecycle", "--graph", joint]).stdout;
    let end = events.windows(14).position(|part| part == b"{\"event\":\"end\"").unwrap();
    let twice = scratch.write("events.jsonl", &[b"\n", &events[..end], &events[..]].concat());
    let log = sarif(&["lifecycle", &twice], 1);
    let result = &log["runs"][0]["results"][0];
    let line = result["locations"][0]["physicalLocation"]["region"]["startLine"].as_u64().unwrap();
    let message = result["message"]["text"].as_str().unwrap();
    // One line is empty, and no event.
    assert!(message.starts_with(&format!("event {} ", line - 1)), "{message} at line {line}");
}

/// Actions of others are pinned by commit: a tag can be moved.
#[test]
fn actions_are_pinned_by_commit() {
    let text = std::fs::read_to_string("action.yml").unwrap();
    let used: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_prefix("uses: ")).collect();
    assert!(!used.is_empty());
    for action in used {
        let commit = action.split(['@', ' ']).nth(1).unwrap_or("");
        let is_commit = commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(is_commit, "{action}");
    }
    let stated = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(stated.contains("it must not come from a pull request"), "{stated}");
}

/// CI runs every benchmark, and notices one that runs nothing. The compiler is stood in for.
#[test]
#[cfg(unix)]
fn every_benchmark_has_to_run() {
    use std::os::unix::fs::PermissionsExt;
    let manifest = std::fs::read_to_string("benches/Cargo.toml").unwrap();
    let benches: Vec<&str> =
        manifest.split("[[bench]]").skip(1).map(|bench| bench.split('"').nth(1).unwrap()).collect();
    assert!(benches.contains(&"scale"), "{benches:?}");
    let folder = std::env::temp_dir().join(format!("graph-oracle-{}-benches", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let cargo = folder.join("cargo");
    let script =
        "#!/bin/sh\ncase \"$*\" in *\"--bench $SILENT \"*) ;; *) echo Testing; echo Success ;; esac\n";
    std::fs::write(&cargo, script).unwrap();
    std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let run = |silent: &str| {
        let output = Command::new(".ci/benches").env("PATH", &path).env("SILENT", silent).output().unwrap();
        (output.status.success(), text(&output.stdout))
    };
    let (is_sound, said) = run("none");
    assert!(is_sound, "{said}");
    assert!(benches.iter().all(|bench| said.contains(&format!("{bench}: 1 ran once"))), "{said}");
    for bench in benches {
        let (is_sound, said) = run(bench);
        assert!(!is_sound && said.contains(&format!("{bench} ran nothing")), "{said}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(std::fs::read_to_string(".ci/run").unwrap().contains("\n.ci/benches\n"));
}

/// The bill of materials names every crate that is built, with what Cargo.lock says of it.
#[test]
fn the_bill_of_materials_has_every_crate() {
    let script = std::fs::read_to_string(".ci/sbom").unwrap();
    let output = Command::new("python3").args(["-c", "import sys, tomllib", "-"]).output();
    if !output.is_ok_and(|output| output.status.success()) {
        println!("skipped 1 test: there is no python3 with tomllib");
        return;
    }
    assert!(script.contains("--locked"));
    let output = Command::new("python3").arg(".ci/sbom").output().unwrap();
    let complaint = text(&output.stderr);
    if !output.status.success() && (complaint.contains("Could not resolve") || complaint.contains("download"))
    {
        println!("skipped 1 test: crates of other systems cannot be had here");
        return;
    }
    assert!(output.status.success(), "{complaint}");
    let bill: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&json!("CycloneDX"), &json!("1.5")));
    assert_eq!(bill["metadata"]["component"]["name"], "graph-oracle");
    let components = bill["components"].as_array().unwrap();
    let of = |name: &str| components.iter().find(|component| component["name"] == name);
    for name in ["serde_json", "rustix", "pyo3", "graph-oracle-ir"] {
        let component = of(name).unwrap_or_else(|| panic!("{name}"));
        assert!(component["licenses"][0]["expression"].is_string(), "{component}");
        assert_eq!(component["hashes"][0]["content"].is_string(), name != "graph-oracle-ir", "{component}");
    }
    assert!(of("criterion").is_none(), "what only benches need");
    let refs: Vec<&Value> = components.iter().map(|component| &component["bom-ref"]).collect();
    for dependency in bill["dependencies"].as_array().unwrap() {
        for needed in dependency["dependsOn"].as_array().unwrap() {
            assert!(
                refs.contains(&needed) || needed == &bill["metadata"]["component"]["bom-ref"],
                "{needed}"
            );
        }
    }
}
