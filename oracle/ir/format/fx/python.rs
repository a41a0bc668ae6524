//! Python expressions, as far as FX prints them.
//!
//! A reader on the text of a whole graph: it stands at a byte, and errors name line and column. Inside brackets line
//! ends and comments count as blanks, as in Python.

use super::FxError;
use crate::limits::Limit;

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Py<'t> {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Complex(f64, f64),
    Str(String),
    /// A name, dotted or not: `x`, `torch.float32`.
    Name(&'t str),
    /// A list or a tuple.
    List(Vec<Py<'t>>),
    Dict(Vec<(Py<'t>, Py<'t>)>),
    /// A call of something with a name.
    Call(Box<Call<'t>>),
    /// `x[i]`.
    Item(Box<(Py<'t>, Py<'t>)>),
    /// An operator, by its name in the module `operator`.
    Operator(&'static str, Vec<Py<'t>>),
    /// Anything else that begins with such an expression, by its text: `f(x).g`.
    Text(&'t str),
}

/// A call.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Call<'t> {
    pub(super) function: &'t str,
    /// All of it.
    pub(super) text: &'t str,
    pub(super) args: Vec<Py<'t>>,
    pub(super) kwargs: Vec<(&'t str, Py<'t>)>,
}

impl<'t> Call<'t> {
    /// A named argument.
    pub(super) fn kwarg(&self, key: &str) -> Option<&Py<'t>> {
        self.kwargs.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// The name of the device that `device(type='cuda', index=0)` makes.
    pub(super) fn device(&self) -> Option<String> {
        let Some(Py::Str(kind)) = self.kwarg("type") else { return None };
        Some(match self.kwarg("index") {
            Some(Py::Int(index)) => format!("{kind}:{index}"),
            _ => kind.clone(),
        })
    }
}

/// Operators with two operands: how they are written, how tightly they bind, and their name. Longer ones first.
const BINARY: &[(&str, u8, &str)] = &[
    ("**", 9, "pow"),
    ("//", 7, "floordiv"),
    ("<<", 5, "lshift"),
    (">>", 5, "rshift"),
    ("==", 1, "eq"),
    ("!=", 1, "ne"),
    ("<=", 1, "le"),
    (">=", 1, "ge"),
    ("<", 1, "lt"),
    (">", 1, "gt"),
    ("|", 2, "or_"),
    ("^", 3, "xor"),
    ("&", 4, "and_"),
    ("+", 6, "add"),
    ("-", 6, "sub"),
    ("*", 7, "mul"),
    ("/", 7, "truediv"),
    ("%", 7, "mod"),
    ("@", 7, "matmul"),
];

/// How tightly a sign binds: less than a power, more than a product.
const SIGN: u8 = 8;

/// Brackets inside others.
const DEEPEST: u32 = Limit::Brackets.standard() as u32;

/// Where a text is read.
#[derive(Clone)]
pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    /// The byte that comes next.
    pub(super) at: usize,
    /// Open brackets.
    depth: u32,
    /// The last comment inside brackets that was passed over, and where it stands.
    comment: Option<(usize, &'t str)>,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Reader<'t> {
        Reader { text, at: 0, depth: 0, comment: None }
    }

    /// An error at the byte that comes next.
    pub(super) fn error(&self, message: impl Into<String>) -> FxError {
        FxError::at(self.text, self.at, message)
    }

    fn rest(&self) -> &'t [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// Whether all is read.
    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Passes over blanks, inside brackets also over line ends and comments.
    pub(super) fn blanks(&mut self) {
        while let Some(&byte) = self.rest().first() {
            match byte {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\n' if self.depth > 0 => self.at += 1,
                b'#' if self.depth > 0 => {
                    let from = self.at;
                    let text = self.line();
                    self.comment = Some((from, text.trim_start_matches('#').trim()));
                }
                _ => break,
            }
        }
    }

    /// The rest of the line, which is passed over; the line end is not.
    pub(super) fn line(&mut self) -> &'t str {
        let length = self.rest().iter().position(|&byte| byte == b'\n').unwrap_or(self.text.len() - self.at);
        let line = &self.text[self.at..self.at + length];
        self.at += length;
        line
    }

    /// The comment that was passed over since the byte `from`.
    pub(super) fn comment_since(&mut self, from: usize) -> Option<&'t str> {
        self.comment.take().filter(|&(at, _)| at >= from).map(|(_, text)| text)
    }

    /// Passes over `mark` if it comes next, behind blanks.
    pub(super) fn takes(&mut self, mark: &str) -> bool {
        self.blanks();
        let found = self.rest().starts_with(mark.as_bytes());
        if found {
            self.at += mark.len();
        }
        found
    }

    pub(super) fn expect(&mut self, mark: &str) -> Result<(), FxError> {
        match self.takes(mark) {
            true => Ok(()),
            false => Err(self.error(format!("expected {mark:?}"))),
        }
    }

    /// Opens a bracket that was passed over.
    pub(super) fn open(&mut self) -> Result<(), FxError> {
        self.depth += 1;
        match self.depth > DEEPEST {
            true => Err(self.error(format!("brackets inside more than {DEEPEST} others"))),
            false => Ok(()),
        }
    }

    /// Passes over a bracket that closes.
    pub(super) fn close(&mut self, bracket: &str) -> Result<(), FxError> {
        self.expect(bracket)?;
        self.depth -= 1;
        Ok(())
    }

    /// A name without dots; empty where there is none.
    pub(super) fn word(&mut self) -> &'t str {
        self.blanks();
        let rest = &self.text[self.at..];
        let is_first = |c: char| c == '_' || c.is_alphabetic();
        let length = match rest.chars().next().is_some_and(is_first) {
            true => rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len()),
            false => 0,
        };
        self.at += length;
        &rest[..length]
    }

    /// A name with dots. `<lambda>` and the like are parts of names that Python makes up.
    fn dotted(&mut self) -> &'t str {
        let from = self.at;
        loop {
            self.word();
            let rest = self.rest();
            if rest.first() != Some(&b'.')
                || !rest.get(1).is_some_and(|&b| b == b'_' || !b.is_ascii_punctuation())
            {
                return &self.text[from..self.at];
            }
            self.at += 1;
        }
    }

    /// An expression.
    pub(super) fn expression(&mut self) -> Result<Py<'t>, FxError> {
        self.operation(0)
    }

    /// An expression whose operators bind at least as tightly as `least`.
    fn operation(&mut self, least: u8) -> Result<Py<'t>, FxError> {
        self.blanks();
        let mut left = match self.rest().first() {
            Some(sign @ (b'-' | b'+' | b'~')) => {
                self.at += 1;
                self.open()?;
                let operand = self.operation(SIGN)?;
                self.depth -= 1;
                signed(*sign, operand)
            }
            _ => self.operand()?,
        };
        loop {
            self.blanks();
            let rest = self.rest();
            let Some(&(mark, binding, name)) =
                BINARY.iter().find(|(mark, ..)| rest.starts_with(mark.as_bytes()))
            else {
                return Ok(left);
            };
            if binding < least {
                return Ok(left);
            }
            self.at += mark.len();
            // A power binds to the right.
            let right = self.operation(if name == "pow" { SIGN } else { binding + 1 })?;
            left = combined(name, left, right);
        }
    }

    fn operand(&mut self) -> Result<Py<'t>, FxError> {
        let from = self.at;
        let Some(&first) = self.rest().first() else { return Err(self.error("an expression is cut off")) };
        let mut value = match first {
            b'\'' | b'"' => Py::Str(self.string()?),
            b'[' => Py::List(self.items("[", "]")?.0),
            b'{' => self.dict()?,
            b'(' => {
                let (mut items, has_comma) = self.items("(", ")")?;
                match (items.len(), has_comma) {
                    (1, false) => items.swap_remove(0),
                    _ => Py::List(items),
                }
            }
            b'0'..=b'9' | b'.' => self.number()?,
            _ => match self.dotted() {
                "" => return Err(self.error("expected an expression")),
                "None" => Py::None,
                "True" => Py::Bool(true),
                "False" => Py::Bool(false),
                name => Py::Name(name),
            },
        };
        loop {
            match (self.rest().first(), &value) {
                (Some(b'('), Py::Name(function)) => value = self.call(from, function)?,
                (Some(b'('), Py::Call(_) | Py::Text(_) | Py::Item(_)) => {
                    self.call(from, "")?;
                    value = Py::Text(&self.text[from..self.at]);
                }
                (Some(b'['), Py::Name(_) | Py::Call(_) | Py::Item(_) | Py::Text(_)) => {
                    let (mut items, _) = self.items("[", "]")?;
                    let item = if items.len() == 1 { items.swap_remove(0) } else { Py::List(items) };
                    value = Py::Item(Box::new((value, item)));
                }
                (Some(b'.'), Py::Call(_) | Py::Item(_) | Py::Text(_)) => {
                    self.at += 1;
                    self.dotted();
                    value = Py::Text(&self.text[from..self.at]);
                }
                _ => return Ok(value),
            }
        }
    }

    /// What stands between brackets, and whether a comma does.
    fn items(&mut self, opening: &str, closing: &str) -> Result<(Vec<Py<'t>>, bool), FxError> {
        self.expect(opening)?;
        self.open()?;
        let (mut items, mut has_comma) = (Vec::new(), false);
        loop {
            self.blanks();
            if self.rest().starts_with(closing.as_bytes()) {
                break;
            }
            items.push(self.expression()?);
            if !self.takes(",") {
                break;
            }
            has_comma = true;
        }
        self.close(closing)?;
        Ok((items, has_comma))
    }

    fn dict(&mut self) -> Result<Py<'t>, FxError> {
        self.expect("{")?;
        self.open()?;
        let mut pairs = Vec::new();
        loop {
            self.blanks();
            if self.rest().first() == Some(&b'}') {
                break;
            }
            let key = self.expression()?;
            // A set has no values.
            let value = if self.takes(":") { self.expression()? } else { Py::None };
            pairs.push((key, value));
            if !self.takes(",") {
                break;
            }
        }
        self.close("}")?;
        Ok(Py::Dict(pairs))
    }

    fn call(&mut self, from: usize, function: &'t str) -> Result<Py<'t>, FxError> {
        self.expect("(")?;
        self.open()?;
        let (mut args, mut kwargs) = (Vec::new(), Vec::new());
        loop {
            self.blanks();
            if self.rest().first() == Some(&b')') {
                break;
            }
            let before = self.clone();
            let word = self.word();
            self.blanks();
            let is_keyword =
                !word.is_empty() && self.rest().first() == Some(&b'=') && self.rest().get(1) != Some(&b'=');
            if is_keyword {
                self.at += 1;
                kwargs.push((word, self.expression()?));
            } else {
                *self = before;
                args.push(self.expression()?);
            }
            if !self.takes(",") {
                break;
            }
        }
        self.close(")")?;
        Ok(Py::Call(Box::new(Call { function, text: &self.text[from..self.at], args, kwargs })))
    }

    fn number(&mut self) -> Result<Py<'t>, FxError> {
        let rest = self.rest();
        let is_part = |i: usize| match rest[i] {
            b'0'..=b'9' | b'.' | b'e' | b'E' | b'_' => true,
            b'+' | b'-' => i > 0 && matches!(rest[i - 1], b'e' | b'E'),
            _ => false,
        };
        let length = (0..rest.len()).find(|&i| !is_part(i)).unwrap_or(rest.len());
        let text = &self.text[self.at..self.at + length];
        let float = || text.parse::<f64>().ok();
        let value = match text.parse::<i64>() {
            Ok(number) => Some(Py::Int(number)),
            Err(_) => float().map(Py::Float),
        };
        let Some(value) = value else { return Err(self.error(format!("{text:?} is no number"))) };
        self.at += length;
        if self.rest().first() == Some(&b'j') {
            self.at += 1;
            return Ok(Py::Complex(0.0, number(&value).unwrap_or(0.0)));
        }
        Ok(value)
    }

    fn string(&mut self) -> Result<String, FxError> {
        let quote = self.rest()[0];
        let mut text = String::new();
        let mut from = self.at + 1;
        let mut at = from;
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(at) {
                None | Some(b'\n') => return Err(self.error("a string that does not end")),
                Some(&byte) if byte == quote => break,
                Some(b'\\') => {
                    text.push_str(&self.text[from..at]);
                    let (char, length) = self.escape(at)?;
                    text += &crate::words::held(char.encode_utf8(&mut [0; 4]));
                    at += length;
                    from = at;
                }
                Some(_) => at += 1,
            }
        }
        text.push_str(&self.text[from..at]);
        self.at = at + 1;
        Ok(text)
    }

    /// The character of the escape at a byte, and how many bytes it takes.
    fn escape(&self, at: usize) -> Result<(char, usize), FxError> {
        let wrong = || FxError::at(self.text, at, "an escape that Python does not print");
        let of_code = |digits: usize| {
            let code = self.text.get(at + 2..at + 2 + digits).ok_or_else(wrong)?;
            let code = u32::from_str_radix(code, 16).map_err(|_| wrong())?;
            // Python has strings that hold halves of characters.
            Ok((char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 2 + digits))
        };
        match self.text.as_bytes().get(at + 1).ok_or_else(wrong)? {
            b'n' => Ok(('\n', 2)),
            b't' => Ok(('\t', 2)),
            b'r' => Ok(('\r', 2)),
            b'0' => Ok(('\0', 2)),
            &c @ (b'\\' | b'\'' | b'"') => Ok((char::from(c), 2)),
            b'x' => of_code(2),
            b'u' => of_code(4),
            b'U' => of_code(8),
            _ => Err(wrong()),
        }
    }
}

fn number(value: &Py<'_>) -> Option<f64> {
    match *value {
        Py::Int(n) => Some(n as f64),
        Py::Float(x) => Some(x),
        _ => None,
    }
}

/// A sign before an operand; before a number it belongs to it.
fn signed<'t>(sign: u8, operand: Py<'t>) -> Py<'t> {
    match (sign, operand) {
        (b'-', Py::Int(n)) => n.checked_neg().map_or(Py::Float(-(n as f64)), Py::Int),
        // One below zero more than above fits 64 bits.
        (b'-', Py::Float(x)) if x == -(i64::MIN as f64) => Py::Int(i64::MIN),
        (b'-', Py::Float(x)) => Py::Float(-x),
        (b'-', Py::Complex(re, im)) => Py::Complex(-re, -im),
        (b'-', Py::Name("inf")) => Py::Float(f64::NEG_INFINITY),
        (b'+', number @ (Py::Int(_) | Py::Float(_) | Py::Complex(..))) => number,
        (b'-', operand) => Py::Operator("neg", vec![operand]),
        (b'+', operand) => Py::Operator("pos", vec![operand]),
        (_, operand) => Py::Operator("invert", vec![operand]),
    }
}

/// Two operands; `0.5-2j` is one number.
fn combined<'t>(name: &'static str, left: Py<'t>, right: Py<'t>) -> Py<'t> {
    match (name, number(&left), &right) {
        ("add", Some(re), &Py::Complex(0.0, im)) => Py::Complex(re, im),
        ("sub", Some(re), &Py::Complex(0.0, im)) => Py::Complex(re, -im),
        _ => Py::Operator(name, vec![left, right]),
    }
}
