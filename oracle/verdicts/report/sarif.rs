//! SARIF 2.1.0 (OASIS), which code scanning of GitHub and others takes.
//!
//! One run with the rules that it is about, and a result for each notice: soundness is an `error`, policy a `warning`,
//! what is undecided a `note`. Columns count code points (`columnKind`). Names of nodes are logical locations. What was
//! not checked and what the report says to people are notifications of the invocation.
//!
//! Texts of others are no markup: braces, which mark placeholders, are doubled (3.11.5), and what would be a link
//! (3.11.6) is taken apart.

use super::described::describe;
use super::results::{Level, Located, Notice, Outcome, Place, Results};
use crate::words;
use serde_json::{Map, Value, json};
use std::path::Path;

/// The tool, as a run names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tool<'a> {
    /// Its version.
    pub version: &'a str,
    /// The commit that it was built from; empty where that is not known.
    pub commit: &'a str,
    /// Where more is said of it; empty where the package names no place.
    pub uri: &'a str,
}

/// Related places of one result.
const RELATED: usize = 16;

/// The report as one SARIF log.
pub fn sarif(results: &Results, tool: Tool) -> Value {
    let notices = results.notices();
    let mut ids: Vec<&str> = Vec::new();
    let of_tests = results.tests.iter().filter_map(|test| test.rule.as_deref());
    for id in of_tests.chain(notices.iter().map(|notice| notice.rule.as_str())) {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let mut driver = Map::new();
    driver.insert("name".into(), json!("graph-oracle"));
    driver.insert("semanticVersion".into(), json!(tool.version));
    if !tool.commit.is_empty() {
        driver.insert("version".into(), json!(format!("{} ({})", tool.version, tool.commit)));
    }
    if !tool.uri.is_empty() {
        driver.insert("informationUri".into(), json!(tool.uri));
    }
    driver.insert("rules".into(), ids.iter().map(|id| rule(id)).collect());
    let found: Vec<Value> = notices.iter().map(|notice| result(notice, &ids)).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": driver },
            "columnKind": "unicodeCodePoints",
            "invocations": [invocation(results)],
            "results": found,
            "properties": { "command": results.command, "verdict": results.headline },
        }],
    })
}

fn rule(id: &str) -> Value {
    let described = describe(id);
    let (statement, reason) = (&described.statement, &described.reason);
    let or_id = |text: &str| if text.is_empty() { message(id) } else { message(text) };
    json!({
        "id": id,
        "shortDescription": or_id(statement),
        "fullDescription": or_id(&format!("{statement} {reason}")),
        "help": or_id(&format!("{statement}\n\nWhy: {reason}\n\nMore: graph-oracle rules, docs/rules.md")),
        "defaultConfiguration": { "level": word(described.level) },
    })
}

fn result(notice: &Notice, ids: &[&str]) -> Value {
    let Located { place, related } = &notice.located;
    let mut result = Map::new();
    result.insert("ruleId".into(), json!(notice.rule));
    if let Some(index) = ids.iter().position(|id| *id == notice.rule) {
        result.insert("ruleIndex".into(), json!(index));
    }
    result.insert("level".into(), json!(word(notice.level)));
    result.insert("message".into(), message(&notice.message()));
    let logical: Vec<Value> =
        notice.nodes.iter().take(RELATED).map(|name| json!({ "fullyQualifiedName": name })).collect();
    let mut location = Map::new();
    if let Some(place) = place {
        location.insert("physicalLocation".into(), physical(place));
    }
    if !logical.is_empty() {
        location.insert("logicalLocations".into(), json!(logical));
    }
    if !location.is_empty() {
        result.insert("locations".into(), json!([location]));
    }
    let related: Vec<Value> = related
        .iter()
        .take(RELATED)
        .map(|(place, words)| json!({ "physicalLocation": physical(place), "message": message(words) }))
        .collect();
    if !related.is_empty() {
        result.insert("relatedLocations".into(), json!(related));
    }
    result.insert("partialFingerprints".into(), json!({ "graphOracle/v1": notice.fingerprint() }));
    Value::Object(result)
}

fn invocation(results: &Results) -> Value {
    let mut invocation = Map::new();
    invocation.insert("executionSuccessful".into(), json!(true));
    if let Some(replay) = &results.replay {
        invocation.insert("commandLine".into(), json!(replay));
    }
    let skipped = results.tests.iter().filter_map(|test| match &test.outcome {
        Outcome::Skipped(why) => Some(format!("not checked: {}: {why}", test.name)),
        _ => None,
    });
    let lines = results.notes.iter().cloned().chain(skipped);
    let notes: Vec<Value> = lines.map(|line| json!({ "level": "note", "message": message(&line) })).collect();
    if !notes.is_empty() {
        invocation.insert("toolExecutionNotifications".into(), json!(notes));
    }
    Value::Object(invocation)
}

fn physical(place: &Place) -> Value {
    let mut physical = Map::new();
    physical.insert("artifactLocation".into(), json!({ "uri": uri(&place.file) }));
    match place.at {
        Some((line, Some(column))) => {
            physical.insert("region".into(), json!({ "startLine": line, "startColumn": column }));
        }
        Some((line, None)) => {
            physical.insert("region".into(), json!({ "startLine": line }));
        }
        None => {}
    }
    Value::Object(physical)
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "note",
    }
}

/// A text that is shown as it stands.
fn message(text: &str) -> Value {
    let mut shown = String::with_capacity(text.len());
    for c in words::visible(text).chars() {
        match c {
            '{' | '}' => shown.extend([c, c]),
            // `](` is what makes a link.
            '(' if shown.ends_with(']') => shown.push_str(" ("),
            c => shown.push(c),
        }
    }
    json!({ "text": shown })
}

/// A path as the reference of a URI: relative where the path is.
fn uri(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    let bytes = bytes.strip_prefix(b"./").unwrap_or(bytes);
    let mut uri = String::new();
    if path.is_absolute() {
        uri += if bytes.starts_with(b"/") { "file://" } else { "file:///" };
    }
    for &byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte))
            }
            b'\\' if cfg!(windows) => uri.push('/'),
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::super::results::Test;
    use super::*;

    #[test]
    fn texts_of_others_are_no_markup() {
        let text = |of: &str| message(of)["text"].as_str().unwrap().to_string();
        assert_eq!(text("{0} of [a](1)"), "{{0}} of [a] (1)");
        assert_eq!(text("a\u{202e}b\u{1b}[0m\nc"), "a\\u202eb\\u001b[0m\nc");
    }

    #[test]
    fn paths_are_references() {
        assert_eq!(uri(Path::new("./a b/é#1.graph")), "a%20b/%C3%A9%231.graph");
        assert_eq!(uri(Path::new("c:d?e")), "c%3Ad%3Fe");
        #[cfg(unix)]
        assert_eq!(uri(Path::new("/tmp/x%.json")), "file:///tmp/x%25.json");
    }

    #[test]
    fn a_log_has_a_result_for_each_notice() {
        let mut notice = Notice::new("rewrite/values", Level::Error, "y differs");
        notice.nodes = vec!["y".into()];
        notice.located.place = Some(Place { file: "a.graph".into(), at: Some((3, Some(5))) });
        notice.located.related = vec![(Place::line("train.py", 7), "train.py:7".into())];
        let doubt = Notice::new("values/rounding", Level::Note, "near");
        let test = Test { notices: vec![doubt, notice], ..Test::new("t", Outcome::Failed) };
        let skipped = Test::new("rewrite/aliases", Outcome::Skipped("no reason".into()));
        let results = Results {
            tests: vec![test, skipped],
            replay: Some("graph-oracle check".into()),
            ..Results::default()
        };
        let log = sarif(&results, Tool { version: "1.2.3", commit: "", uri: "" });
        let run = &log["runs"][0];
        assert_eq!(run["tool"]["driver"]["semanticVersion"], "1.2.3");
        assert_eq!(run["tool"]["driver"]["informationUri"], Value::Null);
        let levels: Vec<&Value> =
            run["results"].as_array().unwrap().iter().map(|result| &result["level"]).collect();
        assert_eq!(levels, ["error", "note"]);
        let first = &run["results"][0];
        assert_eq!(run["tool"]["driver"]["rules"][0]["id"], first["ruleId"]);
        assert_eq!(first["ruleIndex"], 0);
        let place = &first["locations"][0]["physicalLocation"];
        assert_eq!(place["region"], json!({ "startLine": 3, "startColumn": 5 }));
        assert_eq!(place["artifactLocation"]["uri"], "a.graph");
        assert_eq!(first["locations"][0]["logicalLocations"][0]["fullyQualifiedName"], "y");
        let related = &first["relatedLocations"][0]["physicalLocation"];
        assert_eq!(related["artifactLocation"]["uri"], "train.py");
        assert_eq!(related["region"], json!({ "startLine": 7 }));
        let said = &run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"];
        assert_eq!(said, "not checked: rewrite/aliases: no reason");
        assert_eq!(run["results"][1]["locations"], Value::Null);
    }
}
