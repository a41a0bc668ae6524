//! Operator schemas in PyTorch's notation, and the binding of a node's arguments to them.
//!
//! `aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, ...) -> Tensor(a)` says everything about
//! aliasing and mutation: a letter in parentheses names an alias set, `!` a write, and `(a -> *)` or a list
//! return with a letter says that the elements of the list are views. Source: `torch/library.h`, the schema
//! grammar of `torch._C.FunctionSchema`.
//!
//! Not covered: wildcard alias sets other than `*` after an arrow, and annotations on dictionaries.

use crate::graph::layout::named_format;
use crate::graph::{Dtype, Graph, NodeId, Value};
use std::fmt;

/// A parsed schema.
#[derive(Clone, PartialEq, Debug)]
pub struct Schema {
    /// `aten`.
    pub namespace: String,
    /// `slice`.
    pub name: String,
    /// `Tensor`; `default` where the schema gives none.
    pub overload: String,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// Results in order.
    pub returns: Vec<Return>,
}

/// A parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its type without annotations: `Tensor`, `Tensor[]`, `int?`, ...
    pub ty: String,
    /// Whether it can only be given by keyword.
    pub keyword_only: bool,
    /// Its default, if it has one.
    pub default: Option<Default>,
    /// Its alias set.
    pub alias: Option<char>,
    /// Whether the operator writes to it.
    pub write: bool,
}

/// A default value, as text parsed into the kinds that matter.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum Default {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Ints(Vec<i64>),
    Text(String),
}

impl Default {
    /// The integer, if it is one (bools count as integers).
    fn int(&self) -> Option<i64> {
        match self {
            Default::Int(n) => Some(*n),
            Default::Bool(b) => Some(i64::from(*b)),
            _ => None,
        }
    }
}

/// A result.
#[derive(Clone, PartialEq, Debug)]
pub struct Return {
    /// Its type without annotations.
    pub ty: String,
    /// Its alias set; on a list type, that of each element.
    pub alias: Option<char>,
    /// Whether it is a written argument handed back.
    pub write: bool,
}

/// Why a schema text cannot be parsed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("schema {text:?}: {reason} at byte {at}")]
pub struct SchemaError {
    /// The text.
    pub text: String,
    /// Where.
    pub at: usize,
    /// Why.
    pub reason: &'static str,
}

impl Schema {
    /// Parses `namespace::name.overload(params) -> returns`.
    pub fn parse(text: &str) -> Result<Schema, SchemaError> {
        let fail = |at: usize, reason| SchemaError { text: text.to_string(), at, reason };
        let open = text.find('(').ok_or_else(|| fail(text.len(), "expected ("))?;
        let (namespace, rest) =
            text[..open].split_once("::").ok_or_else(|| fail(0, "expected namespace::name"))?;
        let (name, overload) = rest.split_once('.').unwrap_or((rest, "default"));
        let close = matching(text, open).ok_or_else(|| fail(open, "unclosed ("))?;
        let mut params = Vec::new();
        let mut keyword_only = false;
        for (at, part) in split_top(text, open + 1, close) {
            if part == "*" {
                keyword_only = true;
                continue;
            }
            params.push(parse_param(part, keyword_only).ok_or_else(|| fail(at, "expected a parameter"))?);
        }
        let arrow = text[close..].find("->").ok_or_else(|| fail(close, "expected ->"))? + close;
        let results = text[arrow + 2..].trim();
        let offset = text.len() - results.len();
        let parts = match results.strip_prefix('(') {
            Some(_) if matching(text, offset) == Some(text.len() - 1) => {
                split_top(text, offset + 1, text.len() - 1)
            }
            _ => vec![(offset, results)],
        };
        let returns = parts.into_iter().map(|(_, part)| {
            let (ty, alias, write, _) = parse_type(part);
            Return { ty, alias, write }
        });
        Ok(Schema {
            namespace: namespace.to_string(),
            name: name.to_string(),
            overload: overload.to_string(),
            params,
            returns: returns.collect(),
        })
    }

    /// The target that FX prints: `aten.slice.Tensor`.
    pub fn target(&self) -> String {
        format!("{}.{}.{}", self.namespace, self.name, self.overload)
    }

    /// The position of a parameter.
    pub fn param(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|p| p.name == name)
    }

    /// The parameters that the operator writes to.
    pub fn mutated(&self) -> impl Iterator<Item = usize> {
        self.params.iter().enumerate().filter(|(_, p)| p.write).map(|(i, _)| i)
    }

    /// (result, parameter) pairs that share storage, by result. A result of list type shares it element by
    /// element: with every element of a list parameter of the same set, or as views of a tensor parameter.
    pub fn aliases(&self) -> impl Iterator<Item = (usize, usize)> {
        self.returns.iter().enumerate().flat_map(|(r, result)| {
            let same = move |p: &Param| result.alias.is_some() && p.alias == result.alias;
            self.params.iter().enumerate().filter(move |(_, p)| same(p)).map(move |(i, _)| (r, i))
        })
    }
}

fn matching(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (i, c) in text[open..].char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(open + i);
                }
            }
            _ => {}
        }
    }
    None
}

/// The parts of `text[from..to]` between commas at depth 0, trimmed, with their positions.
fn split_top(text: &str, from: usize, to: usize) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let (mut depth, mut start, mut quoted) = (0i32, from, false);
    for (i, c) in text[from..to].char_indices() {
        match c {
            '"' | '\'' => quoted = !quoted,
            '(' | '[' if !quoted => depth += 1,
            ')' | ']' if !quoted => depth -= 1,
            ',' if depth == 0 && !quoted => {
                parts.push((start, text[start..from + i].trim()));
                start = from + i + 1;
            }
            _ => {}
        }
    }
    if !text[start..to].trim().is_empty() {
        parts.push((start, text[start..to].trim()));
    }
    parts
}

/// Splits a type with annotations from what follows it: (type, alias set, write, rest).
fn parse_type(text: &str) -> (String, Option<char>, bool, &str) {
    let (mut ty, mut alias, mut write) = (String::new(), None, false);
    let mut rest = text.trim_start();
    while let Some(c) = rest.chars().next() {
        match c {
            ' ' => break,
            '(' => {
                let end = rest.find(')').unwrap_or(rest.len() - 1);
                let inside = &rest[1..end];
                alias = inside.chars().find(|c| c.is_ascii_lowercase()).or(alias);
                write |= inside.contains('!');
                rest = &rest[end + 1..];
            }
            _ => {
                ty.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    (ty, alias, write, rest.trim_start())
}

fn parse_param(text: &str, keyword_only: bool) -> Option<Param> {
    let (ty, alias, write, rest) = parse_type(text);
    let (name, default) = match rest.split_once('=') {
        Some((name, default)) => (name.trim(), Some(parse_default(default.trim()))),
        None => (rest.trim(), None),
    };
    if name.is_empty() || ty.is_empty() {
        return None;
    }
    Some(Param { name: name.to_string(), ty, keyword_only, default, alias, write })
}

fn parse_default(text: &str) -> Default {
    match text {
        "None" => Default::None,
        "True" => Default::Bool(true),
        "False" => Default::Bool(false),
        _ => {
            if let Ok(n) = text.parse::<i64>() {
                return Default::Int(n);
            }
            if let Ok(x) = text.parse::<f64>() {
                return Default::Float(x);
            }
            let list = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
            let ints = list.map(|t| {
                t.split(',').filter(|p| !p.trim().is_empty()).map(|p| p.trim().parse::<i64>()).collect()
            });
            match ints {
                Some(Ok(ints)) => Default::Ints(ints),
                _ => Default::Text(text.trim_matches(['"', '\'']).to_string()),
            }
        }
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let note = |alias: Option<char>, write: bool| match alias {
            Some(set) => format!("({set}{})", if write { "!" } else { "" }),
            None => String::new(),
        };
        // An annotation stands before the list brackets of its type.
        let typed = |ty: &str, alias, write| match ty.find(['[', '?']) {
            Some(i) => format!("{}{}{}", &ty[..i], note(alias, write), &ty[i..]),
            None => format!("{ty}{}", note(alias, write)),
        };
        let overload = if self.overload == "default" { String::new() } else { format!(".{}", self.overload) };
        write!(f, "{}::{}{overload}(", self.namespace, self.name)?;
        let mut keyword_only = false;
        for (i, p) in self.params.iter().enumerate() {
            if i > 0 {
                write!(f, ", ")?;
            }
            if p.keyword_only && !keyword_only {
                keyword_only = true;
                write!(f, "*, ")?;
            }
            write!(f, "{} {}", typed(&p.ty, p.alias, p.write), p.name)?;
            match &p.default {
                None => {}
                Some(Default::None) => write!(f, "=None")?,
                Some(Default::Bool(b)) => write!(f, "={}", if *b { "True" } else { "False" })?,
                Some(Default::Int(n)) => write!(f, "={n}")?,
                Some(Default::Float(x)) => write!(f, "={x:?}")?,
                Some(Default::Ints(ints)) => write!(f, "={ints:?}")?,
                Some(Default::Text(t)) => write!(f, "={t}")?,
            }
        }
        let returns: Vec<String> = self.returns.iter().map(|r| typed(&r.ty, r.alias, r.write)).collect();
        match returns.as_slice() {
            [one] => write!(f, ") -> {one}"),
            many => write!(f, ") -> ({})", many.join(", ")),
        }
    }
}

impl Param {
    /// Whether it is a buffer for the result, whose content does not matter.
    pub fn is_out(&self) -> bool {
        self.write && self.keyword_only
    }

    /// Whether a value given in `graph` says the same as the default.
    pub fn is_default(&self, graph: &Graph, value: Value) -> bool {
        match (value, &self.default) {
            (Value::None, Some(Default::None)) => true,
            (Value::Bool(b), Some(Default::Bool(d))) => b == *d,
            (Value::Int(n), Some(Default::Int(d))) => n == *d,
            (Value::Float(x), Some(Default::Float(d))) => x.to_bits() == d.to_bits(),
            (Value::Float(x), Some(Default::Int(d))) => x == *d as f64,
            (Value::Int(n), Some(Default::Float(d))) => n as f64 == *d,
            (Value::List(span), Some(Default::Ints(ints))) => say_the_same(graph.values(span), ints),
            (Value::List(span), Some(Default::Int(d))) => say_the_same(graph.values(span), &[*d]),
            (value @ Value::Int(_), Some(Default::Ints(ints))) => say_the_same(&[value], ints),
            (Value::Str(text), Some(Default::Text(d))) => graph.text(text) == d,
            // A variance counts one element less unless it is told otherwise.
            (Value::Int(1), Some(Default::None)) => self.name == "correction",
            (Value::Float(1.0), Some(Default::None)) => self.name == "correction",
            // What stands for no number, where nothing else is said.
            (Value::Float(x), Some(Default::None)) => self.name == "nan" && x.to_bits() == 0,
            // What makes a tensor makes it in plain memory unless it is told otherwise.
            (Value::Bool(false), Some(Default::None)) => self.name == "pin_memory",
            (Value::Layout(text), Some(Default::None)) => graph.text(text).ends_with("strided"),
            // The number of a dtype in PyTorch.
            (Value::Dtype(Dtype::I64), Some(Default::Int(4))) => self.ty.starts_with("ScalarType"),
            _ => false,
        }
    }
}

/// Whether two lists hold the same numbers, or one number for each dimension, said once or as often as it holds.
fn say_the_same(given: &[Value], default: &[i64]) -> bool {
    let one = default.first().filter(|&&first| default.iter().all(|&n| n == first));
    let is_each = |n: &i64| !given.is_empty() && given.iter().all(|value| *value == Value::Int(*n));
    let is_same =
        given.len() == default.len() && given.iter().zip(default).all(|(value, n)| *value == Value::Int(*n));
    is_same || one.is_some_and(is_each)
}

/// A node's arguments by parameter of its schema.
#[derive(Clone, Debug)]
pub struct Bound<'a> {
    pub(super) graph: &'a Graph,
    pub(super) schema: &'a Schema,
    pub(super) node: NodeId,
    args: &'a [Value],
}

/// Why a node's arguments do not fit its schema.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum ArityError {
    #[error("takes {takes} positional arguments, got {got}")]
    TooMany { takes: usize, got: usize },
    #[error("has no parameter {name:?}")]
    Unknown { name: String },
    #[error("got two values for parameter {name:?}")]
    Twice { name: String },
    #[error("lacks a value for parameter {name:?}")]
    Missing { name: String },
}

impl<'a> Bound<'a> {
    /// Binds the arguments of `node` to `schema`.
    pub fn new(graph: &'a Graph, node: NodeId, schema: &'a Schema) -> Result<Bound<'a>, ArityError> {
        let args = graph.args(node);
        let positional = schema.params.iter().filter(|p| !p.keyword_only).count();
        if args.len() > positional {
            return Err(ArityError::TooMany { takes: positional, got: args.len() });
        }
        for (i, (key, _)) in graph.kwargs(node).enumerate() {
            let index = schema.param(key).ok_or_else(|| ArityError::Unknown { name: key.to_string() })?;
            if index < args.len() || graph.kwargs(node).take(i).any(|(earlier, _)| earlier == key) {
                return Err(ArityError::Twice { name: key.to_string() });
            }
        }
        let bound = Bound { graph, schema, node, args };
        let mut others = schema.params.iter().enumerate().skip(args.len());
        if let Some((_, param)) = others.find(|&(i, p)| p.default.is_none() && bound.given(i).is_none()) {
            return Err(ArityError::Missing { name: param.name.clone() });
        }
        Ok(bound)
    }

    /// The value given for parameter `index`; `None` where the default holds.
    pub fn given(&self, index: usize) -> Option<Value> {
        if let Some(&value) = self.args.get(index) {
            return Some(value);
        }
        let name = &self.schema.params.get(index)?.name;
        self.graph.kwargs(self.node).find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// What is given and [says](Bound::says) something, by parameter: two calls that say the same have the same list, be
    /// it by position or by keyword, with one number for all dimensions or one for each, and with a dtype that is stated
    /// or the one that is recorded.
    pub fn stated(&self) -> impl Iterator<Item = (usize, Value)> {
        let value = |index: usize| {
            let param = self.schema.params.get(index)?;
            let given = self.given(index).filter(|value| *value != Value::None);
            match (param.name.as_str(), given) {
                // Where a result lies is recorded of it.
                ("device", _) | ("pin_memory", Some(Value::Bool(false))) => None,
                ("layout", Some(Value::Layout(layout))) if self.graph.text(layout) == "strided" => None,
                ("dtype", None) if param.default.is_some() => {
                    Some(Value::Dtype(self.graph.tensor_of(self.node)?.dtype))
                }
                _ => self.given(index),
            }
        };
        let all = (0..self.schema.params.len()).filter_map(move |index| Some((index, value(index)?)));
        all.filter(|&(index, value)| self.says(index, value))
            .map(|(index, value)| (index, self.one_for_all(index, value).map_or(value, Value::Int)))
    }

    /// The number that a list of strides, sizes of a window or the like holds for each dimension: `[1]` says what `[1,
    /// 1]` says.
    pub fn one_for_all(&self, index: usize, value: Value) -> Option<i64> {
        let param = self.schema.params.get(index)?;
        let is_for_each = ["stride", "padding", "dilation", "output_padding"].contains(&param.name.as_str())
            || ["[2]", "[3]"].iter().any(|sizes| param.ty.ends_with(sizes));
        let Value::List(span) = value else { return None };
        let numbers = self.graph.values(span);
        match numbers.first() {
            Some(&Value::Int(first)) if is_for_each && numbers.iter().all(|n| *n == Value::Int(first)) => {
                Some(first)
            }
            _ => None,
        }
    }

    /// The memory format that is asked for; `None` where none is, or the one that there is.
    pub fn memory_format(&self) -> Option<&'a str> {
        named_format(self.text("memory_format")?)
    }

    /// The value given for the parameter called `name`.
    pub fn named(&self, name: &str) -> Option<Value> {
        self.given(self.schema.param(name)?)
    }

    fn default(&self, name: &str) -> Option<&'a Default> {
        self.schema.params.iter().find(|p| p.name == name)?.default.as_ref()
    }

    /// The default of parameter `index`, if it is an integer.
    pub fn default_int(&self, index: usize) -> Option<i64> {
        self.schema.params.get(index)?.default.as_ref()?.int()
    }

    /// The parameter as a node.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        match self.named(name)? {
            Value::Node(node) => Some(node),
            _ => None,
        }
    }

    /// The parameter as an integer (bools count as integers); a default counts.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.named(name) {
            Some(Value::Int(n)) => Some(n),
            Some(Value::Bool(b)) => Some(i64::from(b)),
            Some(_) => None,
            None => self.default(name)?.int(),
        }
    }

    /// The parameter as a float (integers count); a default counts.
    pub fn float(&self, name: &str) -> Option<f64> {
        match self.named(name) {
            Some(Value::Float(x)) => Some(x),
            Some(_) => self.int(name).map(|n| n as f64),
            None => match self.default(name)? {
                Default::Float(x) => Some(*x),
                _ => self.int(name).map(|n| n as f64),
            },
        }
    }

    /// The parameter as a bool; a default counts.
    pub fn bool(&self, name: &str) -> Option<bool> {
        self.int(name).map(|n| n != 0)
    }

    /// Whether the call trains, which a dropout or a norm over a batch is told; `None` where nothing says so.
    pub fn trains(&self) -> Option<bool> {
        ["train", "training", "use_input_stats"].iter().find_map(|name| self.bool(name))
    }

    /// The parameter as a string; a default counts.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        match self.named(name) {
            Some(Value::Str(s) | Value::Device(s) | Value::MemoryFormat(s) | Value::Layout(s)) => {
                Some(self.graph.text(s))
            }
            Some(_) => None,
            None => match self.default(name)? {
                Default::Text(t) => Some(t),
                _ => None,
            },
        }
    }

    /// The parameter as a dtype.
    pub fn dtype(&self, name: &str) -> Option<Dtype> {
        match self.named(name)? {
            Value::Dtype(dtype) => Some(dtype),
            _ => None,
        }
    }

    /// The parameter as a list of values.
    pub fn list(&self, name: &str) -> Option<&'a [Value]> {
        match self.named(name)? {
            Value::List(span) => Some(self.graph.values(span)),
            _ => None,
        }
    }

    /// The parameter as a list of known integers (a single integer counts as a list of one); a default counts.
    pub fn ints(&self, name: &str) -> Option<Vec<i64>> {
        match self.named(name) {
            Some(Value::List(span)) => self
                .graph
                .values(span)
                .iter()
                .map(|v| match v {
                    Value::Int(n) => Some(*n),
                    _ => None,
                })
                .collect(),
            Some(Value::Int(n)) => Some(vec![n]),
            Some(_) => None,
            None => match self.default(name)? {
                Default::Ints(ints) => Some(ints.clone()),
                Default::Int(n) => Some(vec![*n]),
                _ => None,
            },
        }
    }

    /// The nodes in the parameter: one, or those of a list (other elements are passed over).
    pub fn nodes(&self, name: &str) -> Vec<NodeId> {
        match self.named(name) {
            Some(Value::Node(node)) => vec![node],
            Some(Value::List(span)) => self
                .graph
                .values(span)
                .iter()
                .filter_map(|v| match v {
                    Value::Node(node) => Some(*node),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_writes_and_defaults() {
        let s = Schema::parse(
            "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt step=1) -> Tensor(a)",
        )
        .unwrap();
        assert_eq!(s.target(), "aten.slice.Tensor");
        assert_eq!(s.aliases().collect::<Vec<_>>(), [(0, 0)]);
        assert_eq!(s.params[1].default, Some(Default::Int(0)));
        assert_eq!(s.params[2].ty, "SymInt?");
        let s = Schema::parse(
            "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
        );
        let s = s.unwrap();
        assert_eq!(s.mutated().collect::<Vec<_>>(), [0]);
        assert!(s.params[2].keyword_only && s.returns[0].write);
    }

    #[test]
    fn list_returns_alias_element_by_element() {
        let s = Schema::parse("aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]").unwrap();
        assert_eq!((s.returns[0].ty.as_str(), s.returns[0].alias), ("Tensor[]", Some('a')));
        assert_eq!(s.aliases().collect::<Vec<_>>(), [(0, 0)]);
    }

    #[test]
    fn several_and_no_results() {
        assert_eq!(Schema::parse("a::b(Tensor x) -> (Tensor, Tensor)").unwrap().returns.len(), 2);
        assert_eq!(Schema::parse("a::b(Tensor x) -> ()").unwrap().returns.len(), 0);
        let s = Schema::parse("a::b.out(int[] s=[0, 1], *, Tensor(a!)[] out) -> ()").unwrap();
        assert_eq!(s.params[0].default, Some(Default::Ints(vec![0, 1])));
        assert!(s.params[1].write);
    }

    #[test]
    fn bad_text_is_an_error() {
        for text in ["", "a::b", "a::b(", "ab(x) -> y", "a::b(Tensor) -> Tensor", "a::b(Tensor x)"] {
            assert!(Schema::parse(text).is_err(), "{text}");
        }
    }
}
