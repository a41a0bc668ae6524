//! Findings in other implementations: each is complete, and the table in docs/findings lists them.
//! `INSTA_UPDATE=always cargo test findings` rewrites the table.

use crate::common::is_blessing;
use graph_oracle::campaign::KnownList;
use graph_oracle::format::text;
use graph_oracle::rules::{PassKind, statement};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const KEYS: [&str; 11] =
    ["title", "torch", "pass", "harm", "rule", "reach", "fault", "lack", "first_seen", "upstream", "status"];
/// The first and the last version that show it, where that was tried (docs/findings/versions.py).
const VERSIONS: [&str; 2] = ["first", "last"];
const HARMS: [&str; 4] = ["wrong values", "crash on a valid graph", "broken promise", "hang"];
const BEGIN: &str = "<!-- the table, written by tests/findings.rs -->\n";
const BEGIN_COUNT: &str = "<!-- findings, counted by tests/findings.rs -->\n";
const END_COUNT: &str = "<!-- end of the count -->\n";
const END: &str = "<!-- end of the table -->\n";

/// Reads lines `key = "text"`, the part of TOML that findings use.
fn read(file: &str) -> Result<BTreeMap<String, String>, String> {
    let mut keys = BTreeMap::new();
    for line in file.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let pair = line.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        let (key, value) = pair.ok_or_else(|| format!("{line}: expected key = \"text\""))?;
        let text: String = serde_json::from_str(value).map_err(|error| format!("{key}: {error}"))?;
        if !KEYS.contains(&key) && !VERSIONS.contains(&key) {
            return Err(format!("{key}: no such key"));
        }
        if keys.insert(key.to_string(), text).is_some() {
            return Err(format!("{key}: given twice"));
        }
    }
    for key in KEYS {
        match keys.get(key) {
            None => return Err(format!("{key} is missing")),
            Some(text) if text.is_empty() && key != "upstream" => return Err(format!("{key} is empty")),
            Some(text) if text.contains(['|', '\n']) => {
                return Err(format!("{key}: does not fit into a table"));
            }
            _ => {}
        }
    }
    let is_status =
        |s: &str| ["confirmed", "reported", "intended"].contains(&s) || s.starts_with("fixed in ");
    // How torch.compile comes to it.
    let is_reach =
        |s: &str| ["by default", "not through torch.compile"].contains(&s) || s.starts_with("with ");
    let is_version = |s: &str| s.split('.').count() == 3 && s.split('.').all(|n| n.parse::<u32>().is_ok());
    let known = [
        ("pass", PassKind::parse(&keys["pass"]).is_some()),
        ("harm", HARMS.contains(&keys["harm"].as_str())),
        ("rule", statement(&keys["rule"]).is_some()),
        ("first_seen", keys["first_seen"].len() == 10 && keys["first_seen"].split('-').count() == 3),
        ("upstream", keys["upstream"].is_empty() || keys["upstream"].starts_with("https://")),
        ("status", is_status(&keys["status"])),
        ("reach", is_reach(&keys["reach"])),
        ("first", keys.get("first").is_none_or(|s| is_version(s))),
        ("last", keys.get("last").is_none_or(|s| is_version(s))),
    ];
    match known.into_iter().find(|(_, known)| !known) {
        Some((key, _)) => Err(format!("{key}: {:?} is none that is known", keys[key])),
        None => Ok(keys),
    }
}

/// What is in a folder of a finding.
fn finding(folder: &Path) -> Result<BTreeMap<String, String>, String> {
    let file =
        |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| format!("{name}: {error}"));
    let keys = read(&file("finding.toml")?)?;
    let case = text::parse(file("case.graph")?.as_bytes()).map_err(|error| format!("case.graph: {error}"))?;
    if case.pass.as_ref().map(|pass| pass.name.as_str()) != Some(keys["pass"].as_str()) {
        return Err("case.graph: names another pass".into());
    }
    let repro = file("repro.py")?;
    if repro.contains("graph_oracle") {
        return Err("repro.py: must do without graph-oracle".into());
    }
    if repro.lines().count() > 60 {
        return Err("repro.py: has more than 60 lines".into());
    }
    Ok(keys)
}

fn table(findings: &[(String, BTreeMap<String, String>)]) -> String {
    let mut table = String::from(
        "\n| finding | torch | pass | harm | reached | rule | status |\n|---|---|---|---|---|---|---|\n",
    );
    for (folder, keys) in findings {
        let versions = match (keys.get("first"), keys.get("last")) {
            (Some(first), Some(last)) => format!("{first} to {last}"),
            _ => keys["torch"].clone(),
        };
        let status = match keys["upstream"].as_str() {
            "" => keys["status"].clone(),
            link => format!("[{}]({link})", keys["status"]),
        };
        table += &format!(
            "| [{}]({folder}/) | {versions} | {} | {} | {} | `{}` | {status} |\n",
            keys["title"], keys["pass"], keys["harm"], keys["reach"], keys["rule"]
        );
    }
    table += &format!("\n{} findings.\n\n", findings.len());
    table
}

#[test]
fn the_table_lists_the_findings() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/findings");
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    let mut findings = Vec::new();
    let mut faults = Vec::new();
    for folder in &folders {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        match finding(folder) {
            Ok(keys) => findings.push((name, keys)),
            Err(why) => faults.push(format!("docs/findings/{name}: {why}")),
        }
    }
    assert_eq!(faults, Vec::<String>::new());
    hold(&root.join("README.md"), BEGIN, END, &table(&findings));
    hold(&root.join("../../README.md"), BEGIN_COUNT, END_COUNT, &count(&findings));
}

/// The part of a document between two marks is what it should be.
fn hold(path: &Path, begin: &str, end: &str, part: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    let (head, rest) = text.split_once(begin).expect("the first mark");
    let (_, tail) = rest.split_once(end).expect("the last mark");
    let wanted = format!("{head}{begin}{part}{end}{tail}");
    if is_blessing() {
        std::fs::write(path, &wanted).unwrap();
    }
    assert!(text == wanted || is_blessing(), "{} is out of date", path.display());
}

/// How many findings there are, by what they do, for the front page.
fn count(findings: &[(String, BTreeMap<String, String>)]) -> String {
    let harm = |harm: &str| findings.iter().filter(|(_, keys)| keys["harm"] == harm).count();
    // `torchtitan 0.3.0, torch 2.15.0` is of torchtitan.
    let name = |text: &str| match text.split_once(' ') {
        Some((framework, _)) => framework.to_string(),
        None => format!("PyTorch {text}"),
    };
    let whose: BTreeSet<String> = findings.iter().map(|(_, keys)| name(&keys["torch"])).collect();
    let counted = HARMS.iter().map(|name| (harm(name), name)).filter(|(n, _)| *n > 0);
    let counted: Vec<String> = counted.map(|(n, name)| format!("{name} ({n})")).collect();
    format!(
        "**{} defects found in {}**:\n{}.\n[Each comes with a script](docs/findings) that shows it without graph-oracle.\n",
        findings.len(),
        whose.into_iter().collect::<Vec<_>>().join(", "),
        counted.join(", "),
    )
}

#[test]
fn what_is_incomplete_is_refused() {
    let good = "# a comment\ntitle = \"a \\\"b\\\"\"\ntorch = \"2.15.0\"\npass = \"bucketing\"\nharm = \"hang\"\nrule = \"worker/hang\"\n\
                first_seen = \"2026-11-21\"\nupstream = \"\"\nstatus = \"fixed in 2.16\"\nfirst = \"2.9.0\"\nlast = \"2.14.1\"\n\
                reach = \"by default\"\nfault = \"torch/a.py, f\"\nlack = \"No test has two.\"\n";
    let keys = read(good).unwrap();
    assert_eq!(keys["title"], "a \"b\"");
    assert!(
        table(&[("slug".into(), keys)]).contains(
            "| [a \"b\"](slug/) | 2.9.0 to 2.14.1 | bucketing | hang | by default | `worker/hang` |"
        )
    );
    for (from, to, why) in [
        ("torch", "version", "version: no such key"),
        ("torch = \"2.15.0\"\n", "", "torch is missing"),
        ("\"2.15.0\"", "\"\"", "torch is empty"),
        ("\"2.15.0\"", "2.15", "torch: invalid type"),
        ("a \\\"b\\\"", "a | b", "title: does not fit"),
        ("\"hang\"", "\"bad\"", "harm: \"bad\" is none"),
        ("worker/hang", "worker/dance", "rule: \"worker/dance\" is none"),
        ("\"bucketing\"", "\"packing\"", "pass: \"packing\" is none"),
        ("2026-11-21", "yesterday", "first_seen"),
        ("upstream = \"\"", "upstream = \"#12\"", "upstream"),
        ("fixed in 2.16", "open", "status"),
        ("by default", "often", "reach: \"often\" is none"),
        ("2.14.1", "2.14", "last: \"2.14\" is none"),
        ("status", "title", "title: given twice"),
    ] {
        let error = read(&good.replace(from, to)).unwrap_err();
        assert!(error.starts_with(why), "{to}: {error}");
    }
}

/// A line of the lists for `--known` that names only a rule would hide what else breaks it, and a link that leads
/// nowhere explains nothing.
#[test]
fn what_is_known_is_told_from_what_is_not() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut lines = 0;
    for name in ["known.jsonl", "open.jsonl"] {
        let list = std::fs::read_to_string(root.join("docs/findings").join(name)).unwrap();
        KnownList::parse(&list).unwrap_or_else(|error| panic!("{name}: {error}"));
        for line in list.lines().filter(|line| !line.starts_with('#')) {
            let known: serde_json::Value = serde_json::from_str(line).unwrap();
            let link = known["link"].as_str().unwrap();
            let narrow = ["kind", "method", "words", "shape"].iter().any(|key| known.get(key).is_some());
            let rules = known.get("brings").and_then(|rules| rules.as_array()).into_iter().flatten();
            let strange =
                rules.chain([&known["rule"]]).find(|rule| statement(rule.as_str().unwrap()).is_none());
            assert!(narrow, "{name}: knows all of a rule: {line}");
            assert!(strange.is_none(), "{name}: there is no rule {strange:?}: {line}");
            assert!(root.join(link).exists(), "{name}: leads nowhere: {link}");
            lines += 1;
        }
    }
    assert!(lines > 10);
}
