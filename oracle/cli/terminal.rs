//! The one door to standard output and standard error: what could steer a terminal, or hide in it, is written as
//! `\u001b`.
//!
//! Names of nodes, reasons, file names and a worker's words are somebody else's text. Line feeds and tabs pass, for
//! they are our layout; every other control character (ESC, BEL, CR, those above 0x7f) and what turns the direction of
//! writing does not. The escape is that of JSON, so a document for machines stays what it is.
//!
//! On a terminal the word that a line begins with is coloured where it is a verdict: here, where text is clean already,
//! so that nobody else's text can be taken for our colours.

use crate::words::escape;
use std::borrow::Cow;
use std::io::{self, Write};

/// Words of verdicts that begin a line, and their colours (SGR).
const COLOURED: &[(&str, &str)] = &[
    ("SOUND", "1;32"),
    ("VIOLATED", "1;31"),
    ("UNDECIDED", "1;33"),
    ("REFUSED", "1;33"),
    ("warning:", "1;33"),
    ("graph-oracle:", "1;31"),
];

/// A writer that escapes.
pub(super) struct Terminal<'w> {
    to: &'w mut dyn Write,
    coloured: bool,
    /// Whether the next character begins a line.
    at_start: bool,
    /// The beginning of a character whose end is still to come.
    begun: Vec<u8>,
}

impl<'w> Terminal<'w> {
    pub fn new(to: &'w mut dyn Write, coloured: bool) -> Terminal<'w> {
        Terminal { to, coloured, at_start: true, begun: Vec::new() }
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        if !self.coloured {
            return self.escaped(text);
        }
        for line in text.split_inclusive('\n') {
            let word = |(word, _): &&(&str, &str)| self.at_start && line.starts_with(word);
            match COLOURED.iter().find(word) {
                Some((word, colour)) => {
                    write!(self.to, "\x1b[{colour}m{word}\x1b[0m")?;
                    self.escaped(&line[word.len()..])?;
                }
                None => self.escaped(line)?,
            }
            self.at_start = line.ends_with('\n');
        }
        Ok(())
    }

    fn escaped(&mut self, text: &str) -> io::Result<()> {
        let mut plain = 0;
        for (at, c) in text.char_indices() {
            let Some(escaped) = escape(c) else { continue };
            self.to.write_all(&text.as_bytes()[plain..at])?;
            self.to.write_all(escaped.as_bytes())?;
            plain = at + c.len_utf8();
        }
        self.to.write_all(&text.as_bytes()[plain..])
    }
}

impl Write for Terminal<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let all = match self.begun.is_empty() {
            true => Cow::Borrowed(bytes),
            false => Cow::Owned([&std::mem::take(&mut self.begun)[..], bytes].concat()),
        };
        let mut rest = &all[..];
        loop {
            let error = match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.text(text)?;
                    return Ok(bytes.len());
                }
                Err(error) => error,
            };
            let (text, after) = rest.split_at(error.valid_up_to());
            self.text(&String::from_utf8_lossy(text))?;
            let Some(wrong) = error.error_len() else {
                self.begun = after.to_vec();
                return Ok(bytes.len());
            };
            self.to.write_all("\u{fffd}".as_bytes())?;
            rest = &after[wrong..];
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[&[u8]]) -> String {
        let mut to = Vec::new();
        let mut terminal = Terminal::new(&mut to, false);
        pieces.iter().for_each(|piece| terminal.write_all(piece).unwrap());
        String::from_utf8(to).unwrap()
    }

    #[test]
    fn what_steers_a_terminal_is_escaped() {
        assert_eq!(shown(&[b"a\tb\n\x1b[31mred\x07\r\x7f"]), "a\tb\n\\u001b[31mred\\u0007\\u000d\\u007f");
        assert_eq!(
            shown(&["\u{9b}x\u{202e}y\u{2066}é\u{200f}".as_bytes()]),
            "\\u009bx\\u202ey\\u2066é\\u200f"
        );
    }

    /// Verdicts are coloured, and only where they begin a line.
    #[test]
    fn colours_are_ours_alone() {
        let mut to = Vec::new();
        let mut terminal = Terminal::new(&mut to, true);
        terminal.write_all(b"SOUND: a SOUND \x1b[31m\nVIO").unwrap();
        terminal.write_all(b"LATED\nVIOLATED x\n").unwrap();
        let text = String::from_utf8(to).unwrap();
        assert_eq!(
            text,
            "\x1b[1;32mSOUND\x1b[0m: a SOUND \\u001b[31m\nVIOLATED\n\x1b[1;31mVIOLATED\x1b[0m x\n"
        );
    }

    /// Characters may come in pieces, and bytes may be none.
    #[test]
    fn any_bytes_in_any_pieces() {
        let text = "é\u{9b}→\u{202e}\u{1f600}".as_bytes();
        let whole = shown(&[text]);
        for cut in 0..text.len() {
            assert_eq!(shown(&[&text[..cut], &text[cut..]]), whole);
        }
        let single: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(shown(&single), whole);
        assert_eq!(shown(&[b"a\xff\x9bb"]), "a\u{fffd}\u{fffd}b");
    }
}
