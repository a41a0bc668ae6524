//! Bytes to tokens, one at a time. Every byte sequence is a token sequence: what fits nothing is `Bad`.

use super::words;
use crate::words::held;
use std::borrow::Cow;

/// A token.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Token<'a> {
    /// `relu`, `aten.relu.default`.
    Word(&'a str),
    /// `-12`, `1.5e-3`, `-inf`.
    Number(&'a str),
    /// A quoted string, without its quotes and escapes.
    Text(Cow<'a, str>),
    /// One of `( ) [ ] { } , : = @ % | ?`.
    Mark(char),
    /// `---`.
    Dashes,
    /// What follows `#` on a line, without one leading space and trailing space.
    Comment(&'a str),
    /// The end of a line.
    Newline,
    /// The end of the text.
    End,
    /// A character that begins no token.
    Unknown(char),
    /// Something that is no token, and why.
    Bad(&'static str),
}

impl Token<'_> {
    /// The token in an error message.
    pub(super) fn describe(&self) -> String {
        match self {
            Token::Word(word) => format!("`{}`", short(word)),
            Token::Number(number) => format!("`{}`", short(number)),
            Token::Text(text) => format!("the string {}", short(&words::quote(text))),
            Token::Mark(mark) => format!("`{mark}`"),
            Token::Dashes => "`---`".to_string(),
            Token::Comment(_) => "a comment".to_string(),
            Token::Newline => "the end of the line".to_string(),
            Token::End => "the end of the file".to_string(),
            Token::Unknown(c) => format!("`{}`", c.escape_debug()),
            Token::Bad(why) => (*why).to_string(),
        }
    }
}

/// A text that fits a message.
fn short(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(40) {
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// A token with the bytes it covers.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Spanned<'a> {
    pub(super) token: Token<'a>,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The bytes of `text` from `at` on, as tokens.
#[derive(Clone, Debug)]
pub(super) struct Lexer<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
        // A byte order mark says nothing in UTF-8.
        Lexer { text, at: if text.starts_with('\u{feff}') { 3 } else { 0 } }
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn skip_space(&mut self) {
        while matches!(self.byte(0), b' ' | b'\t' | b'\r') {
            self.at += 1;
        }
    }

    /// The next token.
    pub(super) fn next(&mut self) -> Spanned<'a> {
        self.skip_space();
        let start = self.at;
        let token = self.token();
        Spanned { token, start, end: self.at }
    }

    /// The next raw word (see [`words::is_raw_byte`]) or quoted string; any other token is as from [`next`].
    ///
    /// [`next`]: Lexer::next
    pub(super) fn next_raw(&mut self) -> Spanned<'a> {
        self.skip_space();
        let start = self.at;
        let rest = &self.text.as_bytes()[start..];
        let mut length = rest.iter().take_while(|&&b| words::is_raw_byte(b)).count();
        // A colon behind the word is a mark: `{@cpu: 1}`.
        while length > 0 && rest[length - 1] == b':' {
            length -= 1;
        }
        if length == 0 {
            return self.next();
        }
        self.at += length;
        Spanned { token: Token::Word(&self.text[start..self.at]), start, end: self.at }
    }

    fn token(&mut self) -> Token<'a> {
        let start = self.at;
        if start >= self.text.len() {
            return Token::End;
        }
        let rest = &self.text.as_bytes()[start..];
        let word = words::word_length(rest);
        if word > 0 {
            self.at += word;
            return Token::Word(&self.text[start..self.at]);
        }
        match rest[0] {
            b'\n' => {
                self.at += 1;
                Token::Newline
            }
            b'#' => {
                let end = rest.iter().position(|&b| b == b'\n').map_or(self.text.len(), |n| start + n);
                self.at = end;
                let comment = &self.text[start + 1..end];
                Token::Comment(comment.strip_prefix(' ').unwrap_or(comment).trim_end())
            }
            b'-' if rest.starts_with(b"---") => {
                self.at += 3;
                Token::Dashes
            }
            b'-' if rest.starts_with(b"-inf") => {
                self.at += 4;
                self.finish_number(start)
            }
            b'-' | b'0'..=b'9' => self.number(start),
            quote @ (b'"' | b'\'') => self.string(quote),
            mark @ (b'(' | b')' | b'[' | b']' | b'{' | b'}' | b',' | b':' | b'=' | b'@' | b'%' | b'|'
            | b'?') => {
                self.at += 1;
                Token::Mark(char::from(mark))
            }
            _ => {
                let c = self.text[start..].chars().next().unwrap_or_default();
                self.at += c.len_utf8();
                Token::Unknown(c)
            }
        }
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.byte(0).is_ascii_digit() {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self, start: usize) -> Token<'a> {
        self.at += usize::from(self.byte(0) == b'-');
        if self.digits() == 0 {
            return Token::Bad("a `-` without a number");
        }
        if self.byte(0) == b'.' {
            self.at += 1;
            self.digits();
        }
        if matches!(self.byte(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.byte(1), b'+' | b'-'));
            if self.byte(1 + sign).is_ascii_digit() {
                self.at += 1 + sign;
                self.digits();
            }
        }
        self.finish_number(start)
    }

    /// A number must not run into a word.
    fn finish_number(&mut self, start: usize) -> Token<'a> {
        let end = self.at;
        while self.byte(0).is_ascii_alphanumeric() || matches!(self.byte(0), b'_' | b'.') {
            self.at += 1;
        }
        if self.at > end {
            return Token::Bad("a malformed number");
        }
        Token::Number(&self.text[start..end])
    }

    fn string(&mut self, quote: u8) -> Token<'a> {
        self.at += 1;
        let start = self.at;
        let mut owned: Option<String> = None;
        let mut plain = start;
        loop {
            let b = self.byte(0);
            if self.at >= self.text.len() || b == b'\n' {
                return Token::Bad("a string without its closing quote");
            }
            if b == quote {
                let tail = &self.text[plain..self.at];
                self.at += 1;
                return Token::Text(match owned {
                    Some(text) => Cow::Owned(held(&(text + tail)).into_owned()),
                    None => held(tail),
                });
            }
            if b == b'\\' {
                let text = owned.get_or_insert_default();
                text.push_str(&self.text[plain..self.at]);
                let Some(c) = self.escape() else {
                    // Go on behind the string, so that one bad escape is one error.
                    while self.at < self.text.len() && !matches!(self.byte(0), b'\n') {
                        self.at += 1;
                        if self.text.as_bytes()[self.at - 1] == quote {
                            break;
                        }
                    }
                    return Token::Bad("a string with an unknown escape");
                };
                if let Some(text) = &mut owned {
                    text.push(c);
                }
                plain = self.at;
            } else {
                self.at += 1;
            }
        }
    }

    /// The character of an escape sequence; steps over it.
    fn escape(&mut self) -> Option<char> {
        let c = match self.byte(1) {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'0' => '\0',
            c @ (b'\\' | b'"' | b'\'') => char::from(c),
            b'u' => {
                let rest = self.text.get(self.at + 2..)?.strip_prefix('{')?;
                let digits = &rest[..rest.find('}').filter(|&n| n <= 6)?];
                let c = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
                self.at += 4 + digits.len();
                return Some(c);
            }
            _ => return None,
        };
        self.at += 2;
        Some(c)
    }
}
