//! Why a document cannot be read, in one line for people.

use std::fmt;

/// The longest message. Longer ones quote the file at length; their middle is left out.
const LONGEST: usize = 300;

/// Why a document cannot be read. Prints as `FILE:LINE:COLUMN: MESSAGE`, on one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadError {
    /// The file, where there is one.
    pub file: Option<String>,
    /// Where in the text the fault was noticed; `None` if it is not in the text (no such file, bad gzip data).
    pub at: Option<Position>,
    /// What is wrong.
    pub message: String,
}

/// A place in a text. Both count from 1; a column is a byte of its line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl Position {
    /// The place of the byte at `offset` (of the last byte, if the text ends before).
    pub(super) fn of(text: &[u8], offset: usize) -> Position {
        let before = &text[..offset.min(text.len())];
        let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|&&b| b != b'\n').count() + 1;
        Position { line, column }
    }
}

impl ReadError {
    /// An error that has no place in the text.
    pub fn new(message: impl fmt::Display) -> ReadError {
        ReadError { file: None, at: None, message: shortened(&message.to_string()) }
    }

    /// What serde_json reports: its message carries the place as a suffix.
    pub(super) fn from_json(error: &serde_json::Error) -> ReadError {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let message = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
        let at = (line > 0).then_some(Position { line, column: column.max(1) });
        ReadError { file: None, at, message: shortened(message) }
    }

    /// The same error with the file's name.
    pub fn in_file(mut self, file: impl Into<String>) -> ReadError {
        self.file = Some(file.into());
        self
    }
}

/// One line of at most [`LONGEST`] characters.
fn shortened(message: &str) -> String {
    let line: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let length = line.chars().count();
    if length <= LONGEST {
        return line;
    }
    let head: String = line.chars().take(LONGEST - 100).collect();
    let tail: String = line.chars().skip(length - 95).collect();
    format!("{head} ... {tail}")
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}:")?;
        }
        if let Some(Position { line, column }) = self.at {
            write!(f, "{line}:{column}:")?;
        }
        let space = if self.file.is_some() || self.at.is_some() { " " } else { "" };
        write!(f, "{space}{}", self.message)
    }
}

impl std::error::Error for ReadError {}
