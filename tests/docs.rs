//! What the documentation lists is what the program has. `INSTA_UPDATE=always cargo test docs` rewrites it.

use crate::common::is_blessing;
use graph_oracle::rules::{Code, PassKind, Severity, statements};
use std::path::PathBuf;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Holds the part of a document between two marks against what the program has; blesses it where that is asked for.
fn hold(name: &str, mark: &str, wanted: &str) {
    let path = file(name);
    let text = std::fs::read_to_string(&path).unwrap();
    let (begin, end) =
        (format!("<!-- the {mark}, written by tests/docs.rs -->\n"), format!("<!-- end of the {mark} -->\n"));
    let (head, rest) = text.split_once(&begin).expect("the beginning of what is written by this test");
    let (_, tail) = rest.split_once(&end).expect("the end of what is written by this test");
    let wanted = format!("{head}{begin}{wanted}{end}{tail}");
    match is_blessing() {
        true => std::fs::write(&path, &wanted).unwrap(),
        false => assert!(text == wanted, "{name} is out of date"),
    }
}

#[test]
fn the_catalogue_in_docs_is_the_catalogue() {
    let mut catalogue = String::from("\n");
    for rule in statements() {
        let severity = match rule.severity {
            Severity::Soundness => "soundness",
            Severity::Policy => "policy",
        };
        let passes: Vec<&str> = rule.passes.iter().map(|pass| pass.name()).collect();
        let (id, passes) = (rule.id, passes.join(", "));
        let entry = format!("**`{id}`** ({severity}; {passes}). {} *Why:* {}", rule.statement, rule.reason);
        catalogue += &wrapped(&entry);
        catalogue += "\n";
    }
    hold("docs/rules.md", "catalogue", &catalogue);
}

#[test]
fn the_codes_in_docs_are_the_codes() {
    let mut codes = String::from("\n| code | reason |\n|---|---|\n");
    for code in Code::ALL {
        codes += &format!("| `{code}` | {} |\n", code.statement());
    }
    hold("docs/report.md", "codes", &(codes + "\n"));
}

/// A paragraph in lines of at most 118 columns.
fn wrapped(text: &str) -> String {
    let (mut lines, mut column) = (String::new(), 0);
    for word in text.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > 118 {
            lines.push('\n');
            column = 0;
        }
        if column > 0 {
            lines.push(' ');
            column += 1;
        }
        lines += word;
        column += length;
    }
    lines.push('\n');
    lines
}

/// A rule has one id, and an id is one rule.
#[test]
fn ids_of_rules_are_unique() {
    let mut ids: Vec<&str> = statements().iter().map(|rule| rule.id).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
    let of = |id| graph_oracle::rules::statement(id).unwrap().passes;
    assert!(of("rewrite/well-formed").contains(&PassKind::Partition));
    assert!(of(graph_oracle::rules::WAYS_AGREE).contains(&PassKind::Bucketing));
}

/// Every document that the program prints names a version, and docs/report.md knows it with its keys.
#[test]
fn the_documents_of_the_program_are_explained() {
    let docs = std::fs::read_to_string(file("docs/report.md")).unwrap();
    let graph = "corpus/dependent_gathers.graph";
    let joint = "corpus/real/partition/small_gpt_joint.json.gz";
    let folder = std::env::temp_dir().join(format!("graph-oracle-{}-documents", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (parts, events) = (folder.join("parts"), folder.join("events.jsonl"));
    let (parts, events) = (parts.to_str().unwrap(), events.to_str().unwrap());
    let json = |arguments: &[&str]| {
        let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_graph-oracle"));
        let output = program.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        output.stdout
    };
    std::fs::write(events, json(&["lifecycle", "--graph", joint])).unwrap();
    for (arguments, version) in [
        (&["check", "bucketing", graph, "--candidate", "reference"][..], "graph-oracle-report/2"),
        (&["check", "memory", joint, "--candidate", "reference"], "graph-oracle-report/2"),
        (&["check", "schedule", "tests/cases/schedule/exposed_time_hidden.graph"], "graph-oracle-report/2"),
        (&["check", "bucketing", graph, "--candidate", "pr158663"], "graph-oracle-report/2"),
        (&["fuzz", "bucketing", "--cases", "20"], "graph-oracle-summary/1"),
        (&["fuzz", "bucketing", "--cases", "20", "--against", "reference"], "graph-oracle-diff/1"),
        (&["simulate", graph], "graph-oracle-simulation/1"),
        (&["lifecycle", events], "graph-oracle-lifecycle/1"),
        (&["smoke", graph], "graph-oracle-smoke/1"),
        (&["run", "partition", joint, "-o", parts], "graph-oracle-saved/1"),
        (&["rules"], "graph-oracle-catalogue/1"),
    ] {
        let printed = json(&[arguments, &["--format", "json"]].concat());
        let document: serde_json::Value = serde_json::from_slice(&printed).unwrap();
        let document = if document.is_array() { &document[0] } else { &document };
        let keys: Vec<&String> = document.as_object().unwrap().keys().collect();
        assert!(keys.iter().any(|key| document[key.as_str()] == version), "{arguments:?}: {keys:?}");
        for word in keys.into_iter().map(String::as_str).chain([version]) {
            assert!(
                docs.contains(&format!("`{word}`")),
                "docs/report.md does not know {word} ({arguments:?})"
            );
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Folders that a documented cargo fuzz command names are there after a clone, or made by the command.
#[test]
fn the_commands_of_fuzz_targets_find_their_folders() {
    let mut commands = 0;
    for name in ["README.md", "docs/fuzzing.md"] {
        let text = std::fs::read_to_string(file(name)).unwrap();
        let mut made: Vec<&str> = Vec::new();
        for line in text.lines() {
            let (make, run) = line.split_once(" && ").unwrap_or((line, line));
            made.extend(make.strip_prefix("mkdir -p "));
            let is_command = run.starts_with("cargo") && run.contains(" fuzz run ");
            for folder in run.split(' ').filter(|word| is_command && word.contains("corpus/")) {
                assert!(
                    made.contains(&folder) || file(folder).is_dir() && !folder.starts_with("fuzz/"),
                    "{name}: {folder}"
                );
            }
            commands += usize::from(is_command);
        }
    }
    assert_eq!(commands, 3);
}

/// The document lists every fuzz target that CI runs.
#[test]
fn every_fuzz_target_is_described() {
    let [text, runs] =
        ["docs/fuzzing.md", "fuzz/runs"].map(|name| std::fs::read_to_string(file(name)).unwrap());
    for target in runs.lines().filter_map(|line| line.split(' ').next()) {
        assert!(text.contains(&format!("`{target}`")), "docs/fuzzing.md does not list {target}");
    }
}

/// What the map lists is there.
#[test]
fn the_map_is_of_this_place() {
    let text = std::fs::read_to_string(file("docs/architecture.md")).unwrap();
    let map = text.split("```").nth(1).unwrap();
    let mut found = 0;
    let mut floor = "";
    for line in map.lines().filter(|line| !line.trim().is_empty()) {
        let name = line.split_whitespace().next().unwrap();
        let folder = match line.len() - line.trim_start().len() {
            0 => String::new(),
            2 => {
                floor = name;
                "oracle/".to_string()
            }
            _ => format!("oracle/{floor}"),
        };
        assert!(file(&format!("{folder}{name}")).exists(), "docs/architecture.md names {folder}{name}");
        found += 1;
    }
    assert!(found > 20, "{found} lines");
}

#[test]
fn every_dependency_is_explained() {
    let docs = std::fs::read_to_string(file("docs/dependencies.md")).unwrap();
    let mut explained = 0;
    for floor in [
        "",
        "oracle/ir/",
        "oracle/execution/",
        "oracle/models/",
        "oracle/references/",
        "oracle/verdicts/",
        "oracle/harness/",
        "oracle/smoke/",
    ] {
        let manifest = std::fs::read_to_string(file(&format!("{floor}Cargo.toml"))).unwrap();
        let mut inside = false;
        for line in manifest.lines() {
            if line.starts_with('[') {
                inside = line.contains("dependencies]");
            } else if inside
                && let Some((name, rest)) = line.split_once(['.', ' '])
                && name != "#"
                && !rest.contains("package =")
                && !file(&format!("oracle/{name}/Cargo.toml")).exists()
            {
                assert!(docs.contains(name), "docs/dependencies.md does not explain {name}");
                explained += 1;
            }
        }
    }
    assert!(explained > 40, "{explained} dependencies were seen");
}

#[test]
fn the_files_that_the_readme_names_exist() {
    let readme = std::fs::read_to_string(file("README.md")).unwrap();
    let named = readme.split(|c: char| c.is_whitespace() || "(),`".contains(c));
    let mut found = 0;
    for name in named.filter(|w| w.starts_with("docs/") || w.starts_with("corpus/")) {
        let name = name.trim_end_matches(['.', ';', ',']);
        assert!(file(name).exists(), "README.md names {name}");
        found += 1;
    }
    assert!(found >= 8, "found {found} names");
}

/// The book has every document, and what documents link to is there.
#[test]
fn the_book_is_whole() {
    let folder = file("docs");
    let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
    let summary = read(&folder.join("SUMMARY.md"));
    let mut links = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.ends_with(".md") {
            continue;
        }
        assert!(name == "SUMMARY.md" || summary.contains(&format!("({name})")), "SUMMARY.md lacks {name}");
        for target in read(&path).split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = target.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.contains(' ') {
                continue;
            }
            assert!(folder.join(target).exists(), "{name} links to {target}");
            links += 1;
        }
    }
    assert!(links >= 40, "{links} links");
}
