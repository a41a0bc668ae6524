//! The text of definitions: blocks of lines, expressions as in Python.
//!
//! ```text
//! file = { "#" comment | def | op }
//! def  = "def" NAME "(" names ")" ( ":" expr | NEWLINE body )     a helper
//! op   = "op" TARGET { TARGET } NEWLINE ["contraction" { TARGET } | "zero-sign"] ["once"] [takes] body
//! takes = "takes" NAME DTYPE { "," NAME DTYPE }
//! body = { NAME "=" expr | "for" NAME "in" expr ":" body | "only" expr | "exact" expr
//!          | "writes" NAME expr | "return" expr }
//! ```
//!
//! Bodies are indented by two spaces. Where what follows `only` is not true, the body says nothing of the call.
//! `contraction` names the targets (all of the block, where it names none) whose kernels round elsewhere than the body
//! does, `zero-sign` says that zeros may have other signs; where what follows `exact` is true, neither is so. `once` says
//! that each element is one operation of another operator, which every device rounds as that operator does. `writes` says
//! what an argument holds afterwards, `None` what it held before. `takes` names the arguments whose tensors are of a dtype of
//! their own. A result that is `None` has no definition. The name
//! `to_the_bit` is true where results have to be the kernel's, with the signs of zeros.

use super::Rounded;
use crate::graph::Dtype;
use rustc_hash::{FxHashMap, FxHashSet};
use std::iter::Peekable;
use std::str::Lines;

/// An expression.
#[derive(Debug)]
pub(super) enum Expr {
    Int(i64),
    Float(f64),
    Text(String),
    Name(String),
    List(Vec<Expr>),
    /// `[element for NAME in list if condition]`
    Each(Box<Expr>, String, Box<Expr>, Option<Box<Expr>>),
    Item(Box<Expr>, Box<Expr>),
    Part(Box<Expr>, Option<Box<Expr>>, Option<Box<Expr>>),
    Call(String, Vec<Expr>),
    Unary(&'static str, Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    /// Condition, then, else.
    If(Box<Expr>, Box<Expr>, Box<Expr>),
}

/// A line of a body.
#[derive(Debug)]
pub(super) enum Statement {
    Let(String, Expr),
    For(String, Expr, Vec<Statement>),
    Only(Expr),
    Exact(Expr),
    Writes(String, Expr),
    Return(Expr),
}

/// A helper.
#[derive(Debug)]
pub(super) struct Function {
    pub params: Vec<String>,
    pub body: Vec<Statement>,
}

/// An operator.
#[derive(Debug)]
pub(super) struct Definition {
    /// How the operator's kernel on a CPU rounds otherwise than the body.
    pub rounded: Rounded,
    /// Whether it does not for some arguments.
    pub may_be_exact: bool,
    /// The parameters whose tensors are of a dtype of their own.
    pub takes: Vec<(String, Dtype)>,
    /// Whether the body rounds: kernels of other devices may do that elsewhere.
    pub rounds: bool,
    /// The body's place in [`Definitions::bodies`].
    pub body: usize,
}

/// What a file defines.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    pub functions: FxHashMap<String, Function>,
    pub operators: FxHashMap<String, Definition>,
    pub bodies: Vec<Vec<Statement>>,
}

/// A line that cannot be read: its number from 1, and why.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {why}")]
pub(super) struct SyntaxError {
    pub line: usize,
    pub why: String,
}

type Parsed<T> = Result<T, SyntaxError>;

fn fault<T>(line: usize, why: impl Into<String>) -> Parsed<T> {
    Err(SyntaxError { line, why: why.into() })
}

/// The lines that say something: number, indentation, text.
struct Rows<'t>(Peekable<std::iter::Enumerate<Lines<'t>>>);

impl<'t> Rows<'t> {
    fn peek(&mut self) -> Option<(usize, usize, &'t str)> {
        loop {
            let &(at, line) = self.0.peek()?;
            let text = line.trim();
            if !text.is_empty() && !text.starts_with('#') {
                return Some((at + 1, line.len() - line.trim_start().len(), text));
            }
            self.0.next();
        }
    }

    /// The next line, if it is indented so far.
    fn take(&mut self, indent: usize) -> Option<(usize, &'t str)> {
        let (at, _, text) = self.peek().filter(|&(_, found, _)| found == indent)?;
        self.0.next();
        Some((at, text))
    }
}

impl Definitions {
    /// Reads definitions.
    pub fn parse(text: &str) -> Parsed<Definitions> {
        let mut rows = Rows(text.lines().enumerate().peekable());
        let mut file = Definitions::default();
        while let Some((line, head)) = rows.take(0) {
            match head.split_once(' ') {
                Some(("def", rest)) => {
                    let (name, rest) = split(rest, '(', line)?;
                    let (params, rest) = split(rest, ')', line)?;
                    let params = params.split(',').map(|name| name.trim().to_string()).collect();
                    let body = match rest.trim().strip_prefix(':') {
                        Some(text) => vec![Statement::Return(Tokens::new(text, line)?.whole()?)],
                        None => body(&mut rows, 2)?,
                    };
                    file.functions.insert(name.to_string(), Function { params, body });
                }
                Some(("op", targets)) => {
                    let inexact = match rows.peek() {
                        Some((_, 2, text)) if text.split(' ').next() == Some("contraction") => {
                            rows.take(2);
                            Some(text.split(' ').skip(1).collect::<Vec<_>>())
                        }
                        _ => None,
                    };
                    let least = match rows.peek() {
                        Some((_, 2, "zero-sign")) => Rounded::Zeros,
                        _ => Rounded::Alike,
                    };
                    if least > Rounded::Alike {
                        rows.take(2);
                    }
                    let is_one_operation = matches!(rows.peek(), Some((_, 2, "once")));
                    if is_one_operation {
                        rows.take(2);
                    }
                    let mut takes = Vec::new();
                    if let Some((line, 2, text)) = rows.peek()
                        && let Some(pairs) = text.strip_prefix("takes ")
                    {
                        rows.take(2);
                        for (name, short) in pairs.split(", ").filter_map(|pair| pair.split_once(' ')) {
                            let Some(dtype) = dtype_called(short) else {
                                return fault(line, "expected a dtype");
                            };
                            takes.push((name.to_string(), dtype));
                        }
                    }
                    for target in targets.split(' ') {
                        let rounds = inexact.as_ref().is_some_and(|of| of.is_empty() || of.contains(&target));
                        let definition = Definition {
                            rounded: if rounds { Rounded::Otherwise } else { least },
                            may_be_exact: false,
                            takes: takes.clone(),
                            rounds: !is_one_operation,
                            body: file.bodies.len(),
                        };
                        file.operators.insert(target.to_string(), definition);
                    }
                    file.bodies.push(body(&mut rows, 2)?);
                }
                _ => return fault(line, format!("expected def or op, found {head}")),
            }
        }
        match rows.peek() {
            Some((line, ..)) => fault(line, "an indented line without a head"),
            None => Ok(file.with_roundings()),
        }
    }
}

impl Definitions {
    /// The definition of an operator, or that of the one which gives what this one writes in place: `aten.lerp.Scalar` for
    /// `aten.lerp_.Scalar`.
    pub fn of(&self, target: &str) -> Option<&Definition> {
        self.operators.get(target).or_else(|| {
            let (name, overload) = target.rsplit_once('.')?;
            self.operators.get(&format!("{}.{overload}", name.strip_suffix('_')?))
        })
    }

    /// Notes which bodies round, by themselves or by their helpers.
    fn with_roundings(mut self) -> Definitions {
        let mut helpers: FxHashSet<String> = FxHashSet::default();
        loop {
            let known = helpers.len();
            let rounding = self.functions.iter().filter(|(_, function)| rounds(&function.body, &helpers));
            let found: Vec<String> = rounding.map(|(name, _)| name.clone()).collect();
            helpers.extend(found);
            if helpers.len() == known {
                break;
            }
        }
        for definition in self.operators.values_mut() {
            let body = &self.bodies[definition.body];
            definition.rounds &= rounds(body, &helpers);
            definition.may_be_exact = body.iter().any(|statement| matches!(statement, Statement::Exact(_)));
        }
        self
    }
}

/// The dtype of a short name; a bool is `b`.
pub(super) fn dtype_called(name: &str) -> Option<Dtype> {
    let mut all = Dtype::ALL.iter().copied();
    if name == "b" { Some(Dtype::Bool) } else { all.find(|dtype| dtype.short() == name) }
}

/// Functions that round; products and quotients do too.
const ROUNDING: &[&str] = &[
    "exp",
    "log",
    "sqrt",
    "sin",
    "cos",
    "pow",
    "sum",
    "prod",
    "matmul",
    "erf",
    "tanh",
    "expm1",
    "log1p",
    "log2",
    "exp2",
    "atan",
    "atan2",
    "lgamma",
    "digamma",
    "scatter_add",
];

fn rounds(body: &[Statement], helpers: &FxHashSet<String>) -> bool {
    body.iter().any(|statement| match statement {
        Statement::Let(_, expr) | Statement::Writes(_, expr) | Statement::Return(expr) => {
            expr_rounds(expr, helpers)
        }
        Statement::For(_, list, body) => expr_rounds(list, helpers) || rounds(body, helpers),
        Statement::Only(_) | Statement::Exact(_) => false,
    })
}

fn expr_rounds(expr: &Expr, helpers: &FxHashSet<String>) -> bool {
    let of = |expr: &Expr| expr_rounds(expr, helpers);
    match expr {
        Expr::Int(_) | Expr::Float(_) | Expr::Text(_) | Expr::Name(_) => false,
        Expr::List(all) => all.iter().any(of),
        Expr::Each(element, _, list, _) => of(element) || of(list),
        Expr::Item(list, _) | Expr::Part(list, ..) => of(list),
        Expr::Call(name, args) => {
            ROUNDING.contains(&name.as_str()) || helpers.contains(name) || args.iter().any(of)
        }
        Expr::Unary(_, one) => of(one),
        Expr::Binary(sign, left, right) => ["*", "/"].contains(sign) || of(left) || of(right),
        Expr::If(_, then, other) => of(then) || of(other),
    }
}

fn split(text: &str, at: char, line: usize) -> Parsed<(&str, &str)> {
    text.split_once(at).map_or_else(|| fault(line, format!("expected {at}")), Ok)
}

fn body(rows: &mut Rows, indent: usize) -> Parsed<Vec<Statement>> {
    let mut statements = Vec::new();
    while let Some((line, text)) = rows.take(indent) {
        if let Some(text) = text.strip_prefix("return ") {
            statements.push(Statement::Return(Tokens::new(text, line)?.whole()?));
        } else if let Some(text) = text.strip_prefix("only ") {
            statements.push(Statement::Only(Tokens::new(text, line)?.whole()?));
        } else if let Some(text) = text.strip_prefix("exact ") {
            statements.push(Statement::Exact(Tokens::new(text, line)?.whole()?));
        } else if let Some(text) = text.strip_prefix("writes ") {
            let (name, value) = text.split_once(' ').map_or_else(|| fault(line, "expected a value"), Ok)?;
            statements.push(Statement::Writes(name.to_string(), Tokens::new(value, line)?.whole()?));
        } else if let Some(text) = text.strip_prefix("for ") {
            let (name, list) = text.split_once(" in ").map_or_else(|| fault(line, "expected in"), Ok)?;
            let Some(list) = list.strip_suffix(':') else { return fault(line, "expected :") };
            let list = Tokens::new(list, line)?.whole()?;
            statements.push(Statement::For(name.to_string(), list, body(rows, indent + 2)?));
        } else {
            let (name, value) = text.split_once(" = ").map_or_else(|| fault(line, "expected ="), Ok)?;
            statements.push(Statement::Let(name.to_string(), Tokens::new(value, line)?.whole()?));
        }
    }
    Ok(statements)
}

#[derive(Clone, PartialEq, Debug)]
enum Token {
    Int(i64),
    Float(f64),
    Text(String),
    Word(String),
    Sign(&'static str),
}

/// Signs, the longer ones first.
const SIGNS: &[&str] = &[
    "//", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "&", "|", "~", "<", ">", "(", ")", "[", "]", ",",
    ":",
];

/// Operators of two operands that bind alike, the loosest first. Those of the third row are comparisons.
const LEVELS: &[&[&str]] = &[
    &["or"],
    &["and"],
    &["<", "<=", ">", ">=", "==", "!=", "is", "is not", "in", "not in"],
    &["|"],
    &["&"],
    &["+", "-"],
    &["*", "/", "//", "%"],
];

struct Tokens {
    tokens: Vec<Token>,
    at: usize,
    line: usize,
}

impl Tokens {
    fn new(text: &str, line: usize) -> Parsed<Tokens> {
        let mut tokens = Vec::new();
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let span = |is: fn(char) -> bool| rest.find(|c: char| !is(c)).unwrap_or(rest.len());
            let taken = if first.is_ascii_digit() {
                let end = number_end(rest);
                let text = &rest[..end];
                tokens.push(match (text.parse(), text.parse()) {
                    (Ok(n), _) => Token::Int(n),
                    (_, Ok(x)) => Token::Float(x),
                    _ => return fault(line, format!("{text} is no number")),
                });
                end
            } else if first.is_alphabetic() || first == '_' {
                let end = span(|c| c.is_alphanumeric() || c == '_');
                tokens.push(Token::Word(rest[..end].to_string()));
                end
            } else if first == '"' {
                let end = rest[1..].find('"').map_or_else(|| fault(line, "an open string"), Ok)?;
                tokens.push(Token::Text(rest[1..=end].to_string()));
                end + 2
            } else {
                let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
                let sign = sign.map_or_else(|| fault(line, format!("unexpected {first}")), Ok)?;
                tokens.push(Token::Sign(sign));
                sign.len()
            };
            rest = rest[taken..].trim_start();
        }
        Ok(Tokens { tokens, at: 0, line })
    }

    /// All of it as one expression.
    fn whole(mut self) -> Parsed<Expr> {
        let expr = self.expr()?;
        match self.tokens.get(self.at) {
            None => Ok(expr),
            Some(token) => fault(self.line, format!("unexpected {token:?}")),
        }
    }

    fn is(&self, text: &str) -> bool {
        match self.tokens.get(self.at) {
            Some(Token::Sign(sign)) => *sign == text,
            Some(Token::Word(word)) => word == text,
            _ => false,
        }
    }

    fn take(&mut self, text: &str) -> bool {
        let found = self.is(text);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, text: &str) -> Parsed<()> {
        if self.take(text) { Ok(()) } else { fault(self.line, format!("expected {text}")) }
    }

    fn expr(&mut self) -> Parsed<Expr> {
        let value = self.binary(0)?;
        if !self.take("if") {
            return Ok(value);
        }
        let condition = self.binary(0)?;
        self.expect("else")?;
        Ok(Expr::If(Box::new(condition), Box::new(value), Box::new(self.expr()?)))
    }

    fn binary(&mut self, level: usize) -> Parsed<Expr> {
        let Some(signs) = LEVELS.get(level) else { return self.unary() };
        if level == 2 && self.take("not") {
            return Ok(Expr::Unary("not", Box::new(self.binary(level)?)));
        }
        let mut left = self.binary(level + 1)?;
        while let Some(sign) = self.sign(signs) {
            left = Expr::Binary(sign, Box::new(left), Box::new(self.binary(level + 1)?));
        }
        Ok(left)
    }

    /// The next sign or word, if it is one of these. Some have two words.
    fn sign(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        let start = self.at;
        let found = signs.iter().rev().find(|sign| {
            let all = sign.split(' ').all(|word| self.take(word));
            if !all {
                self.at = start;
            }
            all
        });
        // `not` and `is` alone begin something else.
        found.copied()
    }

    fn unary(&mut self) -> Parsed<Expr> {
        for sign in ["-", "~"] {
            if self.take(sign) {
                return Ok(Expr::Unary(sign, Box::new(self.unary()?)));
            }
        }
        self.postfix()
    }

    fn postfix(&mut self) -> Parsed<Expr> {
        let mut value = self.atom()?;
        while self.take("[") {
            let from = if self.is(":") { None } else { Some(Box::new(self.expr()?)) };
            value = match self.take(":") {
                false => Expr::Item(Box::new(value), from.map_or_else(|| fault(self.line, "no index"), Ok)?),
                true => {
                    let to = if self.is("]") { None } else { Some(Box::new(self.expr()?)) };
                    Expr::Part(Box::new(value), from, to)
                }
            };
            self.expect("]")?;
        }
        Ok(value)
    }

    fn atom(&mut self) -> Parsed<Expr> {
        let Some(token) = self.tokens.get(self.at).cloned() else {
            return fault(self.line, "an open expression");
        };
        self.at += 1;
        Ok(match token {
            Token::Int(n) => Expr::Int(n),
            Token::Float(x) => Expr::Float(x),
            Token::Text(text) => Expr::Text(text),
            Token::Word(name) if self.take("(") => Expr::Call(name, self.list(")")?),
            Token::Word(name) => Expr::Name(name),
            Token::Sign("(") => {
                let value = self.expr()?;
                self.expect(")")?;
                value
            }
            Token::Sign("[") => self.brackets()?,
            Token::Sign(sign) => return fault(self.line, format!("unexpected {sign}")),
        })
    }

    fn list(&mut self, close: &str) -> Parsed<Vec<Expr>> {
        let mut all = Vec::new();
        while !self.take(close) {
            if !all.is_empty() {
                self.expect(",")?;
            }
            all.push(self.expr()?);
        }
        Ok(all)
    }

    fn brackets(&mut self) -> Parsed<Expr> {
        if self.take("]") {
            return Ok(Expr::List(Vec::new()));
        }
        let first = self.expr()?;
        if !self.take("for") {
            let mut all = vec![first];
            if self.take(",") {
                all.extend(self.list("]")?);
            } else {
                self.expect("]")?;
            }
            return Ok(Expr::List(all));
        }
        let Some(Token::Word(name)) = self.tokens.get(self.at).cloned() else {
            return fault(self.line, "expected a name");
        };
        self.at += 1;
        self.expect("in")?;
        let list = self.binary(0)?;
        let condition = if self.take("if") { Some(Box::new(self.binary(0)?)) } else { None };
        self.expect("]")?;
        Ok(Expr::Each(Box::new(first), name, Box::new(list), condition))
    }
}

/// Where a number ends that a text begins with.
fn number_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_part = |at: usize| match bytes[at] {
        b'0'..=b'9' | b'.' | b'e' => true,
        b'-' | b'+' => bytes[at - 1] == b'e',
        _ => false,
    };
    (1..bytes.len()).find(|&at| !is_part(at)).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_bind_as_in_python() {
        let show = |text: &str| format!("{:?}", Tokens::new(text, 1).unwrap().whole().unwrap());
        for (text, same) in [
            ("a + b * c", "a + (b * c)"),
            ("a - b - c", "(a - b) - c"),
            ("-a * b", "(-a) * b"),
            ("a < b + 1 & c", "a < ((b + 1) & c)"),
            ("not a and b or c", "((not a) and b) or c"),
            ("a if b else c if d else e", "a if b else (c if d else e)"),
            ("a is not None and b in c", "(a is not None) and (b in c)"),
            ("x[1:][0]", "(x[1:])[0]"),
        ] {
            assert_eq!(show(text), show(same), "{text}");
        }
        for wrong in ["a +", "(a", "[a for 1 in b]", "a b", "\"open", "a[]", "1.2.3"] {
            assert!(Tokens::new(wrong, 1).and_then(Tokens::whole).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_names_its_line() {
        let line = |text: &str| Definitions::parse(text).unwrap_err().line;
        assert_eq!(line("op a.b.c\n  return x +\n"), 2);
        assert_eq!(line("# note\nwhat\n"), 2);
        assert_eq!(line("def f(x): x\n    return x\n"), 2);
    }
}
