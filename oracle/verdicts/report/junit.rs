//! JUnit's XML, in the dialect that Jenkins, GitLab and pytest share (`junit-10.xsd` of Jenkins).
//!
//! A suite for the command, a case for each test. A violation is a `failure`. What is undecided is an `error`: the test
//! came to no answer, and whoever counts green cases must not count it. What was not checked is `skipped`, with its
//! reason.

use super::results::{Notice, Outcome, Results, Test};
use crate::words;
use std::fmt::Write;

/// The report as one XML document.
pub fn junit(results: &Results) -> String {
    let [_, failed, undecided, skipped] = results.counts();
    let counts = format!(
        "tests=\"{}\" failures=\"{failed}\" errors=\"{undecided}\" skipped=\"{skipped}\"",
        results.tests.len()
    );
    let suite = attribute(&format!("graph-oracle {}", results.command));
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(xml, "<testsuites>\n  <testsuite name=\"{suite}\" {counts}>");
    let class = attribute(&format!("graph-oracle.{}", results.command.replace([' ', '/'], ".")));
    for test in &results.tests {
        case(&mut xml, test, &class);
    }
    let replay = results.replay.iter().map(|replay| format!("repeat with: {replay}"));
    let lines = std::iter::once(results.headline.clone()).chain(results.notes.iter().cloned()).chain(replay);
    let lines: Vec<String> = lines.map(|line| text(&line)).collect();
    let _ = writeln!(xml, "    <system-out>{}</system-out>", lines.join("\n"));
    xml + "  </testsuite>\n</testsuites>\n"
}

fn case(xml: &mut String, test: &Test, class: &str) {
    let time = test.seconds.map_or(String::new(), |seconds| format!(" time=\"{seconds:.3}\""));
    let _ = write!(xml, "    <testcase classname=\"{class}\" name=\"{}\"{time}", attribute(&test.name));
    let _ = match &test.outcome {
        Outcome::Passed => writeln!(xml, "/>"),
        Outcome::Skipped(why) => {
            writeln!(xml, ">\n      <skipped message=\"{}\"/>\n    </testcase>", attribute(why))
        }
        Outcome::Failed => writeln!(xml, ">\n{}    </testcase>", told("failure", &test.notices)),
        Outcome::Undecided => writeln!(xml, ">\n{}    </testcase>", told("error", &test.notices)),
    };
}

/// The notices of a test as one element: the first one's title, and all of them in full.
fn told(element: &str, notices: &[Notice]) -> String {
    let (kind, title) = notices.first().map_or(("", ""), |notice| (&notice.rule, &notice.title));
    let more = match notices.len() {
        0 | 1 => String::new(),
        n => format!(" (and {} more)", n - 1),
    };
    let bodies: Vec<String> = notices.iter().map(|notice| text(&in_full(notice))).collect();
    format!(
        "      <{element} type=\"{}\" message=\"{}\">{}</{element}>\n",
        attribute(kind),
        attribute(&(title.to_string() + &more)),
        bodies.join("\n\n")
    )
}

/// A notice with the rule that it is about and where it is.
fn in_full(notice: &Notice) -> String {
    let mut text = format!("{}: {}", notice.rule, notice.message());
    let place = notice.located.place.iter().map(|place| (place, ""));
    let related = notice.located.related.iter().map(|(place, words)| (place, words.as_str()));
    for (place, words) in place.chain(related) {
        let at = place.at.map_or(String::new(), |(line, column)| {
            format!(":{line}{}", column.map_or(String::new(), |column| format!(":{column}")))
        });
        let words = if words.is_empty() { String::new() } else { format!(" ({words})") };
        let _ = write!(text, "\nat {}{at}{words}", place.file.display());
    }
    text
}

/// Characters that XML 1.0 has no way to write, and those that hide or turn text, are shown as `\u001b`.
fn escaped(of: &str, in_attribute: bool) -> String {
    let text = words::visible(of).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let text = text.replace('"', "&quot;").replace('\'', "&apos;");
    if in_attribute { text.replace('\n', "&#10;").replace('\t', "&#9;") } else { text }
}

fn attribute(of: &str) -> String {
    escaped(of, true)
}

fn text(of: &str) -> String {
    escaped(of, false)
}

#[cfg(test)]
mod tests {
    use super::super::results::Level;
    use super::*;

    #[test]
    fn texts_of_others_are_no_markup() {
        assert_eq!(
            attribute("<a b=\"'&\n\t\u{1b}\r\u{0}\u{202e}\u{ffff}>"),
            "&lt;a b=&quot;&apos;&amp;&#10;&#9;\\u001b\\u000d\\u0000\\u202e\\uffff&gt;"
        );
        assert_eq!(text("]]>\n"), "]]&gt;\n");
    }

    #[test]
    fn each_outcome_has_its_element() {
        let notice = |level, title: &str| Notice::new("rewrite/values", level, title);
        let failed = Test {
            notices: vec![notice(Level::Error, "one"), notice(Level::Error, "two")],
            seconds: Some(0.25),
            ..Test::new("b", Outcome::Failed)
        };
        let undecided =
            Test { notices: vec![notice(Level::Note, "doubt")], ..Test::new("c", Outcome::Undecided) };
        let tests = vec![
            Test::new("a", Outcome::Passed),
            failed,
            undecided,
            Test::new("d", Outcome::Skipped("why".into())),
        ];
        let results = Results { command: "check bucketing".into(), tests, ..Results::default() };
        let xml = junit(&results);
        for words in [
            "<testsuite name=\"graph-oracle check bucketing\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\">",
            "<testcase classname=\"graph-oracle.check.bucketing\" name=\"a\"/>",
            "name=\"b\" time=\"0.250\">\n      <failure type=\"rewrite/values\" message=\"one (and 1 more)\">",
            "rewrite/values: one\n\nrewrite/values: two</failure>",
            "<error type=\"rewrite/values\" message=\"doubt\">",
            "<skipped message=\"why\"/>",
        ] {
            assert!(xml.contains(words), "expected {words} in {xml}");
        }
    }
}
