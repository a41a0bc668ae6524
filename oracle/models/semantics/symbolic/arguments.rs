//! Arguments of calls: as numbers, where they are known, and as words of a key.

use super::evaluation::Produced;
use super::key::Tag;
use super::machine::{Machine, Reading, Stop};
use super::reason::Reason;
use crate::graph::{NodeId, Span, Value};
use crate::ops::{Bound, Default, Kind, OpInfo, Param, Schema, kind_of_device};

/// A call of an operator with a schema.
pub(super) struct Call<'c> {
    pub(super) info: &'c OpInfo,
    pub(super) schema: &'c Schema,
    pub(super) bound: Bound<'c>,
}

impl<'c> Call<'c> {
    /// The parameter at `index` as a node.
    pub(super) fn node(&self, index: usize) -> Result<NodeId, Reason> {
        match self.bound.given(index) {
            Some(Value::Node(node)) => Ok(node),
            Some(Value::Dangling(_)) => Err(Reason::arguments("an argument refers to no node")),
            _ => Err(Reason::arguments(format!("argument {index} is no node"))),
        }
    }

    pub(super) fn param(&self, index: usize) -> Option<&'c Param> {
        self.schema.params.get(index)
    }

    pub(super) fn index(&self, name: &str) -> Option<usize> {
        self.schema.param(name)
    }
}

impl<'g> Machine<'_, 'g> {
    /// A value as a known integer. A node that computes one counts.
    pub(super) fn int_value(&self, value: Value) -> Result<i64, Stop> {
        match value {
            Value::Int(n) => Ok(n),
            Value::Bool(b) => Ok(i64::from(b)),
            Value::Symbolic(_) => Err(Stop::NotFollowed),
            Value::Node(node) => match self.produced(node)? {
                Produced::Int(n) => Ok(n),
                Produced::Number(_) => Err(Stop::NotFollowed),
                _ => Err(Reason::arguments(format!("{} is no number", self.graph.name(node))).into()),
            },
            _ => Err(Reason::arguments("an argument is no integer").into()),
        }
    }

    /// The parameter at `index` as an integer; `None` where it is absent or `None`.
    pub(super) fn optional_int(&self, call: &Call<'_>, index: usize) -> Result<Option<i64>, Stop> {
        match call.bound.given(index) {
            Some(Value::None) => Ok(None),
            Some(value) => self.int_value(value).map(Some),
            None => Ok(call.bound.default_int(index)),
        }
    }

    /// The parameter at `index` as an integer.
    pub(super) fn int(&self, call: &Call<'_>, index: usize) -> Result<i64, Stop> {
        self.optional_int(call, index)?
            .ok_or_else(|| Stop::Unknown(Reason::arguments(format!("argument {index} is no integer"))))
    }

    /// The parameter called `name` as an integer.
    pub(super) fn named_int(&self, call: &Call<'_>, name: &str) -> Result<i64, Stop> {
        match call.index(name) {
            Some(index) => self.int(call, index),
            None => Err(Reason::arguments(format!("no parameter {name}")).into()),
        }
    }

    /// The parameter at `index` as integers; a single one counts as a list.
    pub(super) fn ints(&self, call: &Call<'_>, index: usize) -> Result<Vec<i64>, Stop> {
        match call.bound.given(index) {
            Some(Value::List(span)) => {
                self.graph.values(span).iter().map(|&value| self.int_value(value)).collect()
            }
            Some(value) => Ok(vec![self.int_value(value)?]),
            None => {
                match call.param(index).and_then(|p| p.default.as_ref()) {
                    Some(Default::Ints(ints)) => Ok(ints.clone()),
                    _ => call.bound.default_int(index).map(|n| vec![n]).ok_or_else(|| {
                        Stop::Unknown(Reason::arguments(format!("argument {index} is no list")))
                    }),
                }
            }
        }
    }

    /// The parameter at `index` as a list of nodes.
    pub(super) fn nodes(&self, call: &Call<'_>, index: usize) -> Result<Vec<NodeId>, Reason> {
        match call.bound.given(index) {
            Some(Value::Node(node)) => Ok(vec![node]),
            Some(Value::List(span)) => self
                .graph
                .values(span)
                .iter()
                .map(|value| match value {
                    Value::Node(node) => Ok(*node),
                    _ => Err(Reason::arguments(format!("argument {index} holds something else than nodes"))),
                })
                .collect(),
            _ => Err(Reason::arguments(format!("argument {index} is no list"))),
        }
    }

    /// Writes the arguments of a call as words: by the numbers of their parameters, defaults left out, buffers that
    /// are only written left out.
    pub(super) fn encode_bound(&mut self, call: &Call<'_>, kind: Kind) -> Result<(), Reason> {
        self.encode_arguments(call, kind.only_shape_of_first(call.schema))
    }

    /// The same; with `shape_only`, the first argument as dtype and sizes, and not as what it holds.
    pub(super) fn encode_arguments(&mut self, call: &Call<'_>, shape_only: bool) -> Result<(), Reason> {
        for (index, param) in call.schema.params.iter().enumerate() {
            if self.encode_recorded(call, index, param) {
                continue;
            }
            let Some(value) = call.bound.given(index) else { continue };
            if index == 0
                && shape_only
                && let Value::Node(node) = value
                && let Produced::Tensor(tensor, _) = self.produced(node)?
                && !self.is_symbolic(tensor)
            {
                self.words.dtype(tensor.dtype);
                for &size in self.eval.sizes(tensor) {
                    self.words.int(size);
                }
                continue;
            }
            if !call.bound.says(index, value) {
                continue;
            }
            match self.dims_of_first(call, index) {
                Some((dims, rank)) => {
                    let Some(dims) = call.info.dims_counted(index, dims, rank) else { continue };
                    self.words.put(Tag::Argument, index as u32);
                    self.words.put(Tag::List, dims.len() as u32);
                    dims.into_iter().for_each(|dim| self.words.int(dim));
                }
                None => {
                    self.words.put(Tag::Argument, index as u32);
                    match call.bound.one_for_all(index, value) {
                        Some(number) => self.words.int(number),
                        None => self.encode(value)?,
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes a dtype or device that is left open as it is recorded of the result, and a device without its number.
    /// Whether that is all to be written of the parameter.
    fn encode_recorded(&mut self, call: &Call<'_>, index: usize, param: &Param) -> bool {
        let Some(id) = self.metadata(0) else { return false };
        let (graph, result) = (self.graph, self.graph.tensor(id));
        let given = call.bound.given(index).filter(|&value| value != Value::None);
        match (param.name.as_str(), given) {
            ("dtype", None | Some(Value::Dtype(_))) if param.default.is_some() => {
                self.words.put(Tag::Argument, index as u32);
                self.words.dtype(match given {
                    Some(Value::Dtype(dtype)) => dtype,
                    _ => result.dtype,
                });
            }
            ("device", None | Some(Value::Device(_) | Value::Str(_))) => {
                let device = match given {
                    Some(Value::Device(text) | Value::Str(text)) => graph.text(text),
                    _ => graph.text(result.device),
                };
                self.words.put(Tag::Argument, index as u32);
                let device = self.arena.symbol(kind_of_device(device));
                self.words.symbol(Tag::Device, device);
            }
            ("layout", Some(Value::Layout(text))) => return graph.text(text) == "strided",
            ("pin_memory", Some(Value::Bool(false))) => {}
            _ => return false,
        }
        true
    }

    /// The dimensions of the first tensor that an argument names, and how many that has; `None` for other parameters,
    /// and where they are not known.
    fn dims_of_first(&self, call: &Call<'_>, index: usize) -> Option<(Vec<i64>, i64)> {
        if !call.info.counts_dims(index) {
            return None;
        }
        let rank = match call.info.whole() {
            Some(whole) => match call.bound.given(whole)? {
                Value::List(span) => span.len() as i64,
                _ => return None,
            },
            None => {
                let first = match call.bound.given(0)? {
                    Value::Node(node) => node,
                    _ => *self.nodes(call, 0).ok()?.first()?,
                };
                let Produced::Tensor(tensor, _) = self.produced(first).ok()? else { return None };
                if self.is_symbolic(tensor) {
                    return None;
                }
                self.eval.sizes(tensor).len() as i64
            }
        };
        let dims = match call.bound.given(index) {
            Some(Value::None) => Vec::new(),
            _ => self.ints(call, index).ok()?,
        };
        Some((dims, rank))
    }

    /// Writes the arguments of a node without a schema as words.
    pub(super) fn encode_raw(&mut self, node: NodeId) -> Result<(), Reason> {
        let graph = self.graph;
        for (index, &value) in graph.args(node).iter().enumerate() {
            self.words.put(Tag::Argument, index as u32);
            self.encode(value)?;
        }
        for (key, value) in graph.kwargs(node) {
            let key = self.arena.symbol(key);
            self.words.symbol(Tag::Named, key);
            self.encode(value)?;
        }
        Ok(())
    }

    fn encode_span(&mut self, tag: Tag, span: Span) -> Result<(), Reason> {
        self.words.put(tag, span.len() as u32);
        let graph = self.graph;
        graph.values(span).iter().try_for_each(|&value| self.encode(value))
    }

    /// Writes one value as words.
    pub(super) fn encode(&mut self, value: Value) -> Result<(), Reason> {
        match value {
            Value::None => self.words.put(Tag::None, 0),
            Value::Bool(b) => self.words.put(Tag::Bool, u32::from(b)),
            Value::Int(n) => self.words.int(n),
            Value::Float(x) => self.words.float(x),
            Value::Dtype(dtype) => self.words.dtype(dtype),
            Value::Str(text)
            | Value::Device(text)
            | Value::MemoryFormat(text)
            | Value::Layout(text)
            | Value::Function(text) => {
                let tag = match value {
                    Value::Device(_) => Tag::Device,
                    Value::MemoryFormat(_) => Tag::MemoryFormat,
                    Value::Layout(_) => Tag::Layout,
                    Value::Function(_) => Tag::Function,
                    _ => Tag::Text,
                };
                let symbol = self.string(text);
                self.words.symbol(tag, symbol);
            }
            Value::Symbolic(expr) => {
                let text = self.sums.text(expr);
                let number = self.symbolic_number(&text);
                self.encode_produced(number, self.node)?;
                // A symbol that stands for data is what the node gives that binds it.
                for node in self.sums.binders(&text) {
                    if let Ok(produced @ Produced::Number(_)) = self.produced(node) {
                        self.encode_produced(produced, node)?;
                    }
                }
            }
            Value::List(span) => self.encode_span(Tag::List, span)?,
            Value::Dict(span) => self.encode_span(Tag::Dict, span)?,
            Value::Slice(span) => self.encode_span(Tag::Slice, span)?,
            Value::Complex(span) => self.encode_span(Tag::Complex, span)?,
            Value::Dangling(name) => return Err(Reason::Dangling(self.graph.text(name).to_string())),
            Value::Node(node) => {
                let produced = self.produced(node)?;
                self.encode_produced(produced, node)?;
            }
        }
        Ok(())
    }

    fn encode_produced(&mut self, produced: Produced, node: NodeId) -> Result<(), Reason> {
        match produced {
            Produced::Nothing => self.words.put(Tag::None, 0),
            Produced::Int(n) => self.words.int(n),
            Produced::Number(key) => self.words.put(Tag::Number, key.0),
            Produced::Attribute(name) => self.words.symbol(Tag::Attribute, name),
            Produced::Tensor(tensor, _) => {
                let value = self.read(tensor, Some(node), Reading::Using)?;
                if self.is_symbolic(tensor) {
                    self.words.token(value, tensor.dtype);
                } else {
                    self.words.tensor(value, tensor.dtype, self.eval.sizes(tensor));
                }
            }
            Produced::List(start, len) => {
                self.words.put(Tag::List, len);
                for index in start..start + len {
                    let item = self.eval.items[index as usize];
                    self.encode_produced(item, node)?;
                }
            }
            Produced::Pending | Produced::Unknown(_) => {
                return Err(Reason::Input(self.graph.name(node).to_string()));
            }
        }
        Ok(())
    }
}
