//! Argument values and types.

use super::lexer::Token;
use super::parse::{Parse, Parser, unexpected};
use super::words::{self, Constant};
use crate::graph::{Dim, Dtype, Expr, ExprId, Out, StorageId, Tensor, Value};
use crate::ops::shape::row_major_strides;

impl Parser<'_> {
    /// An argument value.
    pub(super) fn value(&mut self) -> Parse<Value> {
        match self.peek().clone() {
            Token::Number(number) => self.number(number),
            Token::Text(text) => {
                self.bump();
                Ok(Value::Str(self.graph.intern(&text)))
            }
            Token::Mark('%') => self.reference(),
            Token::Mark('@') => {
                self.bump();
                let device = self.raw_or_text("a device such as `cuda:0`")?.0;
                Ok(Value::Device(self.graph.intern(&device)))
            }
            Token::Mark(open @ ('[' | '(')) => {
                self.bump();
                self.value_list(if open == '[' { ']' } else { ')' })
            }
            Token::Mark('{') => {
                self.bump();
                self.mapping()
            }
            Token::Word(word) => match self.second() {
                Token::Mark('(') => self.constructor(word),
                Token::Mark('[') => {
                    let fail = self.unexpected("a value without an index");
                    Err(fail.help(format!("give `{word}[...]` a name on a line of its own")))
                }
                _ => Ok(self.word_value(word)),
            },
            _ => Err(self.unexpected("a value")),
        }
    }

    fn number(&mut self, number: &str) -> Parse<Value> {
        let spanned = self.bump();
        let span = (spanned.start, spanned.end);
        if !number.contains(['.', 'e', 'E', 'i']) {
            return match number.parse() {
                Ok(n) => Ok(Value::Int(n)),
                Err(_) => Err(self.fail(span, "an integer that does not fit 64 bits")),
            };
        }
        match number.parse::<f64>() {
            Ok(x) if x.is_finite() || number.contains('i') => Ok(Value::Float(x)),
            _ => Err(self.fail(span, "a number that does not fit a float; infinity is written `inf`")),
        }
    }

    /// A word that is a value: a constant, a group, or else a node.
    fn word_value(&mut self, word: &str) -> Value {
        self.bump();
        match words::constant(word) {
            Some(Constant::None) => Value::None,
            Some(Constant::True) => Value::Bool(true),
            Some(Constant::False) => Value::Bool(false),
            Some(Constant::Infinity) => Value::Float(f64::INFINITY),
            Some(Constant::NaN) => Value::Float(f64::NAN),
            Some(Constant::End) => Value::Int(i64::MAX),
            Some(Constant::Dtype(dtype)) => Value::Dtype(dtype),
            Some(Constant::MemoryFormat(name)) => Value::MemoryFormat(self.graph.intern(name)),
            Some(Constant::Layout(name)) => Value::Layout(self.graph.intern(name)),
            None if words::is_bare_group(&self.groups, word) => Value::Str(self.graph.intern(word)),
            None => self.named(word),
        }
    }

    /// The node with a name, or a reference that is resolved when the graph is complete.
    fn named(&mut self, name: &str) -> Value {
        match self.graph.find(name) {
            Some(node) => Value::Node(node),
            None => Value::Dangling(self.graph.intern(name)),
        }
    }

    /// A node by name, whatever else the name may be.
    pub(super) fn reference(&mut self) -> Parse<Value> {
        let name = self.node_name()?;
        Ok(self.named(&name))
    }

    fn value_list(&mut self, close: char) -> Parse<Value> {
        let mark = self.values.len();
        self.list(close, |parser| {
            let value = parser.value()?;
            parser.values.push(value);
            Ok(())
        })?;
        let list = self.graph.push_values(&self.values[mark..]);
        self.values.truncate(mark);
        Ok(Value::List(list))
    }

    fn mapping(&mut self) -> Parse<Value> {
        let mark = self.values.len();
        self.list('}', |parser| {
            let key = parser.value()?;
            parser.values.push(key);
            parser.skip_lines();
            parser.require(':')?;
            parser.skip_lines();
            let value = parser.value()?;
            parser.values.push(value);
            Ok(())
        })?;
        let list = self.graph.push_values(&self.values[mark..]);
        self.values.truncate(mark);
        Ok(Value::Dict(list))
    }

    /// `slice(a, b, c)` and the like.
    fn constructor(&mut self, word: &str) -> Parse<Value> {
        let spanned = self.bump();
        let span = (spanned.start, spanned.end);
        let count = match word {
            "slice" => 3,
            "complex" => 2,
            "sym" | "fn" | "layout" | "memory_format" => 0,
            _ => {
                let fail = self.fail(span, "a call cannot stand inside arguments");
                return Err(fail.help(format!("give `{word}(...)` a name on a line of its own")));
            }
        };
        self.require('(')?;
        if count == 0 {
            self.skip_lines();
            let value = match word {
                "sym" => Value::Symbolic(self.expr()?),
                _ => {
                    let name = self.word_or_text("a name")?;
                    let name = self.graph.intern(&name);
                    match word {
                        "fn" => Value::Function(name),
                        "layout" => Value::Layout(name),
                        _ => Value::MemoryFormat(name),
                    }
                }
            };
            self.skip_lines();
            self.require(')')?;
            return Ok(value);
        }
        let Value::List(list) = self.value_list(')')? else { return Err(self.fail(span, "no list")) };
        if list.len() != count {
            return Err(self.fail(span, format!("`{word}` takes {count} values, got {}", list.len())));
        }
        Ok(if word == "slice" { Value::Slice(list) } else { Value::Complex(list) })
    }

    /// A declared symbol, or an expression as a string with its hint.
    fn expr(&mut self) -> Parse<ExprId> {
        let spanned = self.bump();
        match spanned.token {
            Token::Word(word) => self.symbol(word, (spanned.start, spanned.end)),
            Token::Text(ref text) => {
                let text = self.graph.intern(text);
                let hint = if self.eat(',') { Some(self.int("the hint, an integer")?) } else { None };
                Ok(self.graph.intern_expr(Expr { text, hint }))
            }
            _ => Err(unexpected(&spanned, "a symbol, or an expression as a string")),
        }
    }

    fn symbol(&mut self, word: &str, span: (usize, usize)) -> Parse<ExprId> {
        let symbols = &self.graph.symbols;
        let known = self.symbol_at.get(word).and_then(|&at| symbols.get(at)).filter(|s| s.name == word);
        let Some(symbol) = known.or_else(|| symbols.iter().find(|s| s.name == word)) else {
            let fail = self.fail(span, format!("no symbol is called `{word}`"));
            return Err(fail.help(format!("declare it at the head of the graph: `symbol {word} = 4`")));
        };
        let hint = symbol.hint;
        let text = self.graph.intern(word);
        Ok(self.graph.intern_expr(Expr { text, hint }))
    }

    /// A type: what stands behind the colon of a node.
    pub(super) fn ty(&mut self) -> Parse<Out> {
        let spanned = self.bump();
        match spanned.token {
            Token::Word("None") => Ok(Out::None),
            Token::Mark('?') => Ok(Out::Absent),
            Token::Mark('(') => {
                let mut parts = Vec::new();
                self.list(')', |parser| {
                    parts.push(parser.ty()?);
                    Ok(())
                })?;
                Ok(Out::Tuple(self.graph.push_outs(&parts)))
            }
            Token::Mark('{') => {
                let mut parts = Vec::new();
                self.list('}', |parser| {
                    let key = parser.text("a key in quotes")?;
                    let key = Out::Key(parser.graph.intern(&key));
                    parser.skip_lines();
                    parser.require(':')?;
                    parser.skip_lines();
                    let part = parser.ty()?;
                    parts.extend([key, part]);
                    Ok(())
                })?;
                Ok(Out::Dict(self.graph.push_outs(&parts)))
            }
            Token::Word(word @ ("int" | "symint" | "symbool" | "other")) => {
                self.require('(')?;
                self.skip_lines();
                let out = match word {
                    "int" => Out::Int(self.int("an integer")?),
                    "symint" => Out::SymInt(self.expr()?),
                    "symbool" => Out::SymBool(self.expr()?),
                    _ => {
                        let name = self.word_or_text("the name of a type")?;
                        Out::Other(self.graph.intern(&name))
                    }
                };
                self.skip_lines();
                self.require(')')?;
                Ok(out)
            }
            Token::Word(word) => match Dtype::parse_short(word) {
                Some(dtype) => self.tensor(dtype),
                None => {
                    let fail = self.fail((spanned.start, spanned.end), format!("no type is called `{word}`"));
                    Err(match Dtype::parse(word) {
                        Some(dtype) => fail.help(format!("it is written `{}`", dtype.short())),
                        None => {
                            let names: Vec<&str> = Dtype::ALL.iter().map(|d| d.short()).collect();
                            fail.help(format!("element types: {}", names.join(", ")))
                        }
                    })
                }
            },
            _ => Err(unexpected(&spanned, "a type such as `f32[4, 8]`")),
        }
    }

    fn dim(&mut self) -> Parse<Dim> {
        let second = self.second();
        match *self.peek() {
            Token::Word("sym") if second == Token::Mark('(') => {
                self.bump();
                self.bump();
                self.skip_lines();
                let expr = self.expr()?;
                self.skip_lines();
                self.require(')')?;
                Ok(Dim::Symbolic(expr))
            }
            Token::Word(word) => {
                let spanned = self.bump();
                Ok(Dim::Symbolic(self.symbol(word, (spanned.start, spanned.end))?))
            }
            _ => Ok(Dim::Static(self.int("a size: an integer or a symbol")?)),
        }
    }

    fn dims(&mut self) -> Parse<Vec<Dim>> {
        let mut dims = Vec::new();
        self.require('[')?;
        self.list(']', |parser| {
            dims.push(parser.dim()?);
            Ok(())
        })?;
        Ok(dims)
    }

    /// What follows the element type: `[4, 8] strides [1, 4] @cpu storage 3 offset 2 bytes 64 grad`.
    fn tensor(&mut self, dtype: Dtype) -> Parse<Out> {
        let start = self.here();
        let shape = self.dims()?;
        let shape_span = (start, self.end());
        let (mut stride, mut device, mut storage, mut offset, mut bytes, mut grad) =
            (None, None, None, 0, None, None);
        loop {
            if self.eat('@') {
                let name = self.raw_or_text("a device such as `cuda:0`")?.0;
                device = Some(self.graph.intern(&name));
                continue;
            }
            let Token::Word(word) = *self.peek() else { break };
            match word {
                "strides" => {
                    self.bump();
                    let dims = self.dims()?;
                    if dims.len() != shape.len() {
                        let message = format!("expected {} strides, found {}", shape.len(), dims.len());
                        return Err(self.fail((start, self.end()), message));
                    }
                    stride = Some(dims);
                }
                "storage" => {
                    self.bump();
                    storage = Some(StorageId(self.small_int("the number of a storage")?));
                }
                "offset" => {
                    self.bump();
                    offset = self.int("an offset in elements")?;
                }
                "bytes" => {
                    self.bump();
                    bytes = Some(if self.eat('?') { None } else { Some(self.dim()?) });
                }
                "grad" | "nograd" => {
                    self.bump();
                    grad = Some(word == "grad");
                }
                _ => break,
            }
        }
        let stride = match stride {
            Some(stride) => stride,
            None => row_major_strides(&shape).ok_or_else(|| {
                let fail = self.fail(shape_span, "the strides of this symbolic shape must be written");
                fail.help("for example `f32[4, s0] strides [s0, 1]`")
            })?,
        };
        let device = match device {
            Some(device) => device,
            None => self.graph.intern(&self.device),
        };
        let bytes = bytes.unwrap_or_else(|| super::default_bytes(storage, &shape, dtype));
        let shape = self.graph.intern_dims(&shape);
        let stride = self.graph.intern_dims(&stride);
        let tensor = Tensor {
            shape,
            stride,
            dtype,
            requires_grad: grad,
            device,
            storage,
            offset,
            storage_bytes: bytes,
            is_guessed: false,
        };
        Ok(Out::Tensor(self.graph.push_tensor(tensor)))
    }
}
