//! Lines of a stream that may be of any length.
//!
//! A line is held as a whole, so one without an end could take all memory. Of a line beyond [`Limit::Line`] the
//! beginning is kept, the rest is passed over, and who reads it is told so.

use crate::limits::Limit;
use std::io::{self, BufRead};

/// A line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Line {
    /// Its number in the stream, from 1.
    pub(super) number: usize,
    /// Its bytes, with the line feed where it has one.
    pub(super) bytes: Vec<u8>,
    /// Whether it is longer than what is kept of it.
    pub(super) is_cut: bool,
}

/// The lines of a stream.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    number: usize,
    /// A line that was read and is not looked at yet.
    ahead: Option<Line>,
    most: usize,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Lines<R> {
        Lines::within(input, Limit::Line.standard() as usize)
    }

    /// The lines of what stands in a file behind so many others.
    pub(super) fn behind(input: R, lines: usize) -> Lines<R> {
        Lines { number: lines, ..Lines::new(input) }
    }

    /// Lines of which no more than `most` bytes are kept.
    fn within(input: R, most: usize) -> Lines<R> {
        Lines { input, number: 0, ahead: None, most }
    }

    /// The next line; `None` behind the last.
    pub(super) fn next_line(&mut self) -> io::Result<Option<Line>> {
        if let Some(line) = self.ahead.take() {
            return Ok(Some(line));
        }
        let (mut bytes, mut length) = (Vec::new(), 0usize);
        loop {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let (end, is_whole) = match memchr::memchr(b'\n', buffer) {
                Some(at) => (at + 1, true),
                None => (buffer.len(), buffer.is_empty()),
            };
            bytes.extend_from_slice(&buffer[..end.min(self.most - bytes.len())]);
            length = length.saturating_add(end);
            self.input.consume(end);
            if is_whole {
                break;
            }
        }
        if length == 0 {
            return Ok(None);
        }
        self.number += 1;
        let is_cut = length > bytes.len();
        Ok(Some(Line { number: self.number, bytes, is_cut }))
    }

    /// Passes over lines for which `is_skipped` holds, as far as they are in the buffer. None of them is copied.
    pub(super) fn skip(&mut self, is_skipped: impl Fn(&[u8]) -> bool) -> io::Result<()> {
        while self.ahead.is_none() {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let mut passed = 0;
            while let Some(length) = memchr::memchr(b'\n', &buffer[passed..])
                && is_skipped(&buffer[passed..passed + length])
            {
                passed += length + 1;
                self.number += 1;
            }
            self.input.consume(passed);
            if passed == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Puts a line back: it comes next.
    pub(super) fn put_back(&mut self, line: Line) {
        self.ahead = Some(line);
    }
}

/// Adds a line to a text unless the text gets longer than the limit; whether it was added.
pub(super) fn append(text: &mut Vec<u8>, line: &[u8]) -> bool {
    let fits = (text.len() + line.len()) as u64 <= Limit::Text.standard();
    if fits {
        text.extend_from_slice(line);
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_and_the_next_ones_are_whole() {
        let mut lines = Lines::within(io::BufReader::with_capacity(3, &b"ab\n12345678\n\nend"[..]), 4);
        let mut next = || lines.next_line().unwrap().map(|line| (line.number, line.bytes, line.is_cut));
        assert_eq!(next(), Some((1, b"ab\n".to_vec(), false)));
        assert_eq!(next(), Some((2, b"1234".to_vec(), true)));
        assert_eq!(next(), Some((3, b"\n".to_vec(), false)));
        assert_eq!(next(), Some((4, b"end".to_vec(), false)));
        assert_eq!(next(), None);
    }
}
