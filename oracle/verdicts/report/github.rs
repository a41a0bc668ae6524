//! Annotations of GitHub Actions: workflow commands, a line for each notice, and the verdict.
//!
//! A command is `::error file=F,line=L,col=C,title=T::MESSAGE`; `%`, line ends, and in properties `:` and `,` are written
//! as `%25` and so on. A line that is no command must not become one: the older syntax `##[error]` is looked for anywhere
//! in a line, so it is taken apart.
//!
//! GitHub shows ten annotations of each level for a step; the most fundamental come first. All of them are in the log.

use super::results::{Level, Notice, Results};
use crate::words;

/// The lines to print.
pub fn github(results: &Results) -> String {
    let mut text: String = results.notices().into_iter().map(command).collect();
    let [passed, failed, undecided, skipped] = results.counts();
    let counts = format!("{passed} passed, {failed} failed, {undecided} undecided, {skipped} not checked");
    let replay = results.replay.iter().map(|replay| format!("repeat with: {replay}"));
    for line in
        [results.headline.clone(), counts].into_iter().chain(results.notes.iter().cloned()).chain(replay)
    {
        text += &plain(&line);
        text.push('\n');
    }
    text
}

fn command(notice: &Notice) -> String {
    let name = match notice.level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "notice",
    };
    let mut properties = Vec::new();
    if let Some(place) = &notice.located.place {
        properties.push(format!("file={}", property(&place.file.to_string_lossy())));
        if let Some((line, column)) = place.at {
            properties.push(format!("line={line}"));
            properties.extend(column.map(|column| format!("col={column}")));
        }
    }
    properties.push(format!("title={}", property(&notice.rule)));
    let mut message = notice.message();
    words::cut(&mut message);
    format!("::{name} {}::{}\n", properties.join(","), data(&message))
}

/// A message.
fn data(text: &str) -> String {
    words::visible(text).replace('%', "%25").replace('\n', "%0A")
}

/// The value of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// A line that is no command, and one line.
fn plain(line: &str) -> String {
    let one: String = line.chars().map(|c| if matches!(c, '\n' | '\r') { ' ' } else { c }).collect();
    let shown = one.replace("##[", "## [");
    match shown.trim_start().starts_with("::") {
        true => format!("> {shown}"),
        false => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::super::results::{Outcome, Place, Test};
    use super::*;

    #[test]
    fn a_notice_is_one_command() {
        let mut notice = Notice::new("rewrite/values", Level::Error, "100 %: a,b\r\n::warning::x");
        notice.body = vec!["##[error]y".into()];
        notice.located.place = Some(Place { file: "a,b:c%.graph".into(), at: Some((3, Some(5))) });
        assert_eq!(
            command(&notice),
            "::error file=a%2Cb%3Ac%25.graph,line=3,col=5,title=rewrite/values::100 %25: a,b\\u000d%0A::warning::x%0A##[error]y\n"
        );
        let doubt = Notice::new("values/rounding", Level::Note, "near");
        assert_eq!(command(&doubt), "::notice title=values/rounding::near\n");
        let long = Notice::new("r", Level::Warning, "é".repeat(10_000));
        assert!(command(&long).len() < 5000);
    }

    #[test]
    fn what_is_no_command_does_not_become_one() {
        let results = Results {
            headline: "SOUND: a\n::error::b".into(),
            notes: vec!["  ::set-env name=X::y".into(), "see ##[command]z".into()],
            tests: vec![Test::new("t", Outcome::Passed)],
            ..Results::default()
        };
        let text = github(&results);
        assert_eq!(
            text,
            "SOUND: a ::error::b\n1 passed, 0 failed, 0 undecided, 0 not checked\n>   ::set-env name=X::y\nsee ## \
             [command]z\n"
        );
    }
}
