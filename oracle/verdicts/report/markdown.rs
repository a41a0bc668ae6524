//! The summary of a step of GitHub Actions, as markdown: verdict, counts, and a table of what was found.
//!
//! All texts of others stand in `<code>` with every ASCII mark written as a character reference. So they are neither
//! markup nor HTML, nor are they linked or taken for mentions.

use super::results::{Level, Outcome, Results};
use crate::words;
use std::fmt::Write;

/// Characters of one cell.
const LONGEST: usize = 400;

/// What is put at the end where the rest has no room.
const ROOM: usize = 200;

/// The summary, in at most `most` bytes; the most fundamental comes first.
pub fn markdown(results: &Results, most: usize) -> String {
    let [passed, failed, undecided, skipped] = results.counts();
    let mut text = format!("### graph-oracle {}\n\n", code(&results.command));
    let _ = writeln!(text, "{}\n", code(&results.headline));
    let _ =
        writeln!(text, "{passed} passed, {failed} failed, {undecided} undecided, {skipped} not checked.\n");
    let notices = results.notices();
    let found = notices.iter().map(|notice| {
        let level = match notice.level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "undecided",
        };
        let place = notice.located.place.as_ref().map_or(String::new(), |place| {
            let at = place.at.map_or(String::new(), |(line, _)| format!(":{line}"));
            code(&format!("{}{at}", place.file.display()))
        });
        format!("| {level} | {} | {} | {place} |\n", code(&notice.rule), code(&notice.title))
    });
    let skipped = results.tests.iter().filter_map(|test| match &test.outcome {
        Outcome::Skipped(why) => Some(format!("| {} | {} |\n", code(&test.name), code(why))),
        _ => None,
    });
    let is_whole = table(&mut text, "| | rule | what | where |\n|---|---|---|---|\n", found, most)
        && table(&mut text, "| not checked | why |\n|---|---|\n", skipped, most);
    if !is_whole {
        text += "\nThere is more, for which there is no room here: the log has all of it.\n";
    }
    if let Some(replay) = &results.replay {
        let line = format!("\nRepeat with {}\n", code(replay));
        if text.len() + line.len() <= most {
            text += &line;
        }
    }
    // Not even the beginning fits.
    if text.len() > most { String::new() } else { text + "\n" }
}

/// Adds a table, as far as there is room; whether all of it is there.
fn table(text: &mut String, head: &str, rows: impl Iterator<Item = String>, most: usize) -> bool {
    let mut head = Some(format!("\n{head}"));
    for row in rows {
        let begin = head.take().unwrap_or_default();
        if text.len() + begin.len() + row.len() + ROOM > most {
            return false;
        }
        *text += &begin;
        *text += &row;
    }
    true
}

/// A text of somebody else's, on one line.
fn code(of: &str) -> String {
    let mut text = String::from("<code>");
    for (at, c) in words::visible(of).chars().enumerate() {
        if at == LONGEST {
            text.push('…');
            break;
        }
        let _ = match c {
            '\n' | '\t' => write!(text, " "),
            c if c.is_ascii_punctuation() => write!(text, "&#{};", u32::from(c)),
            c => write!(text, "{c}"),
        };
    }
    text + "</code>"
}

#[cfg(test)]
mod tests {
    use super::super::results::{Notice, Place, Test};
    use super::*;

    #[test]
    fn texts_of_others_are_no_markup() {
        let shown = code("<b>|`@me`|\nhttp://x.y [a](b) \u{202e}");
        let inside = shown.strip_prefix("<code>").unwrap().strip_suffix("</code>").unwrap();
        let is_harmless = |c: char| !"<>|`@:.[](\n".contains(c);
        assert!(inside.chars().all(is_harmless), "{inside}");
        assert!(inside.ends_with("&#92;u202e"), "{inside}");
        assert_eq!(code(&"x".repeat(1000)).chars().count(), LONGEST + 1 + "<code></code>".len());
    }

    #[test]
    fn a_summary_has_an_end() {
        let mut notice = Notice::new("rewrite/values", Level::Error, "y differs");
        notice.located.place = Some(Place::line("a.graph", 3));
        let test = Test { notices: vec![notice; 10_000], ..Test::new("t", Outcome::Failed) };
        let skipped = Test::new("other", Outcome::Skipped("why".into()));
        let mut results =
            Results { command: "check bucketing".into(), tests: vec![test, skipped], ..Results::default() };
        let cut = markdown(&results, 100_000);
        assert!(cut.len() <= 100_000 && cut.contains("There is more"), "{} bytes", cut.len());
        results.tests[0].notices.truncate(1);
        let whole = markdown(&results, 100_000);
        assert!(
            whole.contains("| error | <code>rewrite&#47;values</code> | <code>y differs</code> |"),
            "{whole}"
        );
        assert!(whole.contains("| <code>other</code> | <code>why</code> |"), "{whole}");
        assert!(!whole.contains("There is more"));
        assert_eq!(markdown(&results, 10), "");
    }
}
