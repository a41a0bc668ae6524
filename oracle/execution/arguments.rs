//! The arguments of a step, as the values that its rank holds.

use super::domain::{Outcome, Trouble, raise, refuse};
use super::hash::{self, mix};
use super::layout::{Dims, Window};
use super::number::Number;
use super::rank::{Item, Rank, too_many};
use crate::graph::{Dtype, Op, Value};
use crate::ops::shape::{Size, Sizes};

impl<'a> Rank<'a> {
    /// The value of an argument.
    pub fn item(&self, value: Value) -> Outcome<Item> {
        let graph = self.program.graph;
        let list = |span| graph.values(span).iter().map(|&v| self.item(v)).collect::<Outcome<Vec<_>>>();
        Ok(match value {
            Value::Node(node) => match self.items.get(node.index()) {
                Some(Item::Unset) | None => return Err(Trouble::Undefined(Some(node))),
                Some(item) => item.clone(),
            },
            Value::Dangling(_) => return Err(Trouble::Undefined(None)),
            Value::None => Item::None,
            Value::Bool(b) => Item::Number(Number::Bool(b)),
            Value::Int(n) => Item::Number(Number::Int(n)),
            Value::Float(x) => Item::Number(Number::Float(x)),
            Value::Symbolic(_) | Value::Complex(_) => Item::Number(self.number(value)?),
            Value::Str(s) | Value::Function(s) => Item::Object(hash::text(graph.text(s))),
            Value::Dtype(dtype) => Item::Object(mix(0x6474, dtype as u64)),
            Value::MemoryFormat(s) | Value::Layout(s) => Item::Object(hash::text(graph.text(s))),
            // Ranks differ in their device and in nothing that follows from it.
            Value::Device(_) => Item::Object(0x6465),
            Value::List(span) | Value::Slice(span) | Value::Dict(span) => Item::List(list(span)?),
        })
    }

    /// The value of a node, if the argument is one that has run.
    pub fn held(&self, value: Value) -> Outcome<Option<&Item>> {
        match value {
            Value::Node(node) => match self.items.get(node.index()) {
                Some(Item::Unset) | None => Err(Trouble::Undefined(Some(node))),
                Some(item) => Ok(Some(item)),
            },
            Value::Dangling(_) => Err(Trouble::Undefined(None)),
            _ => Ok(None),
        }
    }

    /// A tensor argument; `None` where the argument is something else.
    pub fn maybe_tensor(&self, value: Value) -> Outcome<Option<Window>> {
        Ok(match self.held(value)? {
            Some(Item::Tensor(window)) => Some(*window),
            _ => None,
        })
    }

    /// A tensor argument.
    pub fn tensor(&self, value: Value) -> Outcome<Window> {
        self.maybe_tensor(value)?.ok_or_else(|| self.unlike("a tensor", value))
    }

    /// A list of tensors.
    pub fn tensors(&self, value: Value) -> Outcome<Vec<Window>> {
        match value {
            Value::List(span) => self.program.graph.values(span).iter().map(|&v| self.tensor(v)).collect(),
            _ => match self.held(value)? {
                Some(Item::Tensor(window)) => Ok(vec![*window]),
                Some(Item::List(items)) => items
                    .iter()
                    .map(|item| match item {
                        Item::Tensor(window) => Ok(*window),
                        _ => Err(raise!("expects a list of tensors")),
                    })
                    .collect(),
                _ => Err(self.unlike("a list of tensors", value)),
            },
        }
    }

    /// A number.
    pub fn number(&self, value: Value) -> Outcome<Number> {
        let graph = self.program.graph;
        Ok(match value {
            Value::Bool(b) => Number::Bool(b),
            Value::Int(n) => Number::Int(n),
            Value::Float(x) => Number::Float(x),
            Value::Complex(span) => match graph.values(span) {
                [re, im] => Number::Complex(self.number(*re)?.float(), self.number(*im)?.float()),
                _ => return Err(raise!("a complex number has two parts")),
            },
            Value::Symbolic(expr) => match graph.expr(expr).hint {
                Some(hint) => Number::Int(hint),
                None => {
                    return Err(refuse!("{} is symbolic and has no hint", graph.text(graph.expr(expr).text)));
                }
            },
            _ => match self.held(value)? {
                Some(Item::Number(number)) => *number,
                _ => return Err(self.unlike("a number", value)),
            },
        })
    }

    /// An integer that the interpreter has to know.
    pub fn int(&self, value: Value) -> Outcome<i64> {
        match self.number(value)? {
            Number::Term(_) => Err(refuse!("a size or index depends on data")),
            number => number.int().ok_or_else(|| raise!("expects an integer, got {number:?}")),
        }
    }

    /// An integer, or `None`.
    pub fn maybe_int(&self, value: Value) -> Outcome<Option<i64>> {
        if value == Value::None { Ok(None) } else { self.int(value).map(Some) }
    }

    /// Whether a flag is set; an absent one is not.
    pub fn flag(&self, value: Value) -> Outcome<bool> {
        Ok(self.maybe_int(value)?.unwrap_or(0) != 0)
    }

    /// A list of integers; one integer is a list of one, `None` the empty list.
    pub fn ints(&self, value: Value) -> Outcome<Vec<i64>> {
        match value {
            Value::List(span) => self.program.graph.values(span).iter().map(|&v| self.int(v)).collect(),
            Value::None => Ok(Vec::new()),
            _ => match self.held(value)? {
                Some(Item::List(items)) => items
                    .iter()
                    .map(|item| match item {
                        Item::Number(n) => n.int().ok_or_else(|| refuse!("a size depends on data")),
                        _ => Err(raise!("expects a list of integers")),
                    })
                    .collect(),
                _ => Ok(vec![self.int(value)?]),
            },
        }
    }

    /// The same, for the arithmetic of views.
    pub fn sizes(&self, value: Value) -> Outcome<Sizes> {
        let known = |n: i64| Size::Known(n);
        match value {
            Value::List(span) => {
                self.program.graph.values(span).iter().map(|&v| self.int(v).map(known)).collect()
            }
            _ => Ok(self.ints(value)?.into_iter().map(known).collect()),
        }
    }

    /// A list of sizes.
    pub fn dims(&self, value: Value) -> Outcome<Dims> {
        if let Value::List(span) = value {
            let values = self.program.graph.values(span);
            let mut dims = Dims::default();
            for &value in values {
                dims = dims.with_pushed(self.int(value)?).ok_or_else(|| too_many(values.len()))?;
            }
            return Ok(dims);
        }
        let ints = self.ints(value)?;
        Dims::new(&ints).ok_or_else(|| too_many(ints.len()))
    }

    /// A dtype; `None` where it is absent.
    pub fn dtype(&self, value: Value) -> Option<Dtype> {
        match value {
            Value::Dtype(dtype) => Some(dtype),
            _ => None,
        }
    }

    /// A string; `None` where it is absent.
    pub fn text(&self, value: Value) -> Option<&'a str> {
        match value {
            Value::Str(s) | Value::MemoryFormat(s) => Some(self.program.graph.text(s)),
            _ => None,
        }
    }

    /// An argument is not what is expected. Of what is not recorded it is not known what it is.
    fn unlike(&self, expected: &str, value: Value) -> Trouble {
        match self.held(value) {
            Ok(Some(Item::Object(_))) => refuse!("nothing is recorded of what it takes"),
            _ => raise!("expects {expected}, got {}", self.word(value)),
        }
    }

    /// What kind of thing an argument is, for messages.
    fn word(&self, value: Value) -> &'static str {
        match value {
            Value::None => "None",
            Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Complex(_) => "a number",
            Value::Str(_) => "a string",
            Value::List(_) => "a list",
            Value::Node(node) => match &self.items[node.index()] {
                Item::Number(_) => "a number",
                Item::List(_) | Item::Dict(_) => "a list",
                Item::None if self.program.graph.node(node).op == Op::Output => "the output",
                Item::None => "None",
                _ => "an object",
            },
            _ => "something else",
        }
    }
}
