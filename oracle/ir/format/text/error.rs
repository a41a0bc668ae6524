//! Errors of a case file: where, what, and the line with carets under it.

use std::fmt;

/// Everything wrong with a text; at least one error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseErrors {
    /// The errors in file order.
    pub errors: Vec<ParseError>,
}

/// One error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong, in one line.
    pub message: String,
    /// What to do about it, if there is something to say.
    pub help: Option<String>,
    /// The line, or the part of a long line around the error.
    excerpt: String,
    /// Characters of the excerpt before the carets.
    indent: usize,
    /// Number of carets.
    width: usize,
}

/// Characters of a long line that are shown before and after the error.
const BEFORE: usize = 60;
const AFTER: usize = 40;
/// Characters of a message.
const MESSAGE: usize = 300;

impl ParseError {
    /// An error at bytes `start..end` of `text`.
    pub(super) fn new(
        text: &str,
        start: usize,
        end: usize,
        message: String,
        help: Option<String>,
    ) -> ParseError {
        // A message may quote what stands there, which may be megabytes.
        let message = match message.char_indices().nth(MESSAGE) {
            Some((end, _)) => format!("{}...", &message[..end]),
            None => message,
        };
        let start = floor(text, start);
        let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |i| start + i);
        let end = floor(text, end.min(line_end)).max(start);
        let before = &text[line_start..start];
        let column = before.chars().count() + 1;
        let shown_before: Vec<char> = before.chars().rev().take(BEFORE).collect();
        let after = &text[start..line_end];
        let cut_before = column - 1 > BEFORE;
        let mut excerpt = String::from(if cut_before { "..." } else { "" });
        excerpt.extend(shown_before.iter().rev().map(|&c| printable(c)));
        let indent = excerpt.chars().count();
        let mut rest = after.trim_end_matches('\r').chars();
        excerpt.extend(rest.by_ref().take(AFTER).map(printable));
        if rest.next().is_some() {
            excerpt.push_str("...");
        }
        let width = text[start..end].chars().take(AFTER).count().max(1);
        let line = text[..line_start].matches('\n').count() + 1;
        ParseError { line, column, message, help, excerpt, indent, width }
    }

    /// The error with the line it is in, as compilers show it. `file` is named if given.
    pub fn render(&self, file: Option<&str>) -> String {
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        let file = file.map(|f| format!("{f}:")).unwrap_or_default();
        let mut text = format!(
            "error: {}\n{margin}--> {file}{}:{}\n{margin} |\n{}\n{margin} | {}{}\n",
            self.message,
            self.line,
            self.column,
            format!("{number} | {}", self.excerpt).trim_end(),
            " ".repeat(self.indent),
            "^".repeat(self.width),
        );
        if let Some(help) = &self.help {
            text.push_str(&format!("{margin} = help: {help}\n"));
        }
        text
    }
}

/// The largest character boundary up to `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0)
}

/// A tab keeps its column, another control character is made visible.
fn printable(c: char) -> char {
    match c {
        '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}

impl ParseErrors {
    /// All errors with the lines they are in.
    pub fn render(&self, file: Option<&str>) -> String {
        self.errors.iter().map(|e| e.render(file)).collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Display for ParseErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.errors.as_slice() {
            [] => write!(f, "no error"),
            [one] => write!(f, "{one}"),
            [first, rest @ ..] => write!(f, "{first} (and {} more)", rest.len()),
        }
    }
}

impl std::error::Error for ParseErrors {}
