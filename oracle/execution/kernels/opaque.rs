//! Operators without kernel: uninterpreted functions of all their inputs.
//!
//! Element i of output k is a function of the operator, its constants, and the values of all its tensor
//! arguments. If any of these is poison, so is every output. What the schema says is written gets such a value
//! too. Sizes of fresh results come from the recorded metadata: there is no other source.
//!
//! An operator of unknown effect is also a function of the operators of unknown effect before it on its rank,
//! since they may share state, and is recorded as an effect. Its arguments are taken to be left unwritten.

use super::super::block::{Block, Mark};
use super::super::domain::{Outcome, Trouble, refuse};
use super::super::hash::{self, mix};
use super::super::layout::{self, Window};
use super::super::program::{Step, stated};
use super::super::rank::{Item, Rank};
use crate::analysis::is_state;
use crate::graph::{NodeId, Out, Tensor, Value};
use crate::ops::shape::Size;
use crate::ops::{Kind, OpInfo, Schema, may_hand_back, views_where_strides_allow};

impl<'a> Rank<'a> {
    pub(super) fn opaque(&mut self, node: NodeId, step: &Step<'a>) -> Outcome<Item> {
        let Some(info) = step.info else { return Err(refuse!("nothing is known of it")) };
        if let Some(item) = self.opaque_view(node, info)? {
            return Ok(item);
        }
        if !self.domain.interprets_everything() {
            return Err(refuse!("{} has no kernel", info.target));
        }
        let mut key = self.arguments(node, step.key)?;
        if self.program.draws.of(node).is_some() {
            key = mix(key, self.draw(node));
        }
        if info.effect {
            self.note_effect(node, key, None);
            if info.kind == Kind::Unknown {
                let given = self.given_in_any_order(node, step.key)?;
                self.effects.last_mut().iter_mut().for_each(|effect| effect.unknown = Some(given));
                self.unknown = mix(self.unknown, key);
                key = self.unknown;
            }
        }
        let results = self.unmodelled(node, step, key)?;
        if info.kind == Kind::Unknown {
            let mut windows = self.windows_given(node, 0)?;
            collect(&results, &mut windows);
            // Alone, a result is nothing else's, and an argument nobody's.
            if windows.len() > 1 {
                windows.iter().for_each(|window| self.memory.set_shown_elsewhere(window.storage));
            }
        }
        Ok(results)
    }

    /// Results, and new values of written arguments, that are a function of `key`.
    pub(super) fn unmodelled(&mut self, node: NodeId, step: &Step<'a>, key: u64) -> Outcome<Item> {
        let Some(info) = step.info else { return Err(refuse!("nothing is known of it")) };
        let graph = self.program.graph;
        if self.changes_a_shape(node, info)? {
            return Err(refuse!("{} gives a tensor another shape in place", info.target));
        }
        let poisoned = self.reads_poison(node)?;
        let mut output = 0;
        let written = match &info.schema {
            Some(schema) => self.write_opaque(node, schema, key, &mut output, poisoned)?,
            None => Vec::new(),
        };
        let returns = graph.node(node).out;
        let aliased: Vec<Option<usize>> = match &info.schema {
            Some(schema) => {
                (0..schema.returns.len()).map(|r| schema.aliases().find(|a| a.0 == r).map(|a| a.1)).collect()
            }
            None => Vec::new(),
        };
        // A result that is a written argument handed back is that argument.
        let handed_back = |r: usize| {
            let param = (*aliased.get(r)?)?;
            written.iter().find(|(p, _)| *p == param).map(|(_, item)| item.clone())
        };
        match returns {
            Out::Tuple(span) if aliased.len() > 1 || is_state(graph, node, 0) => {
                let mut items = Vec::new();
                for (r, &out) in graph.outs(span).iter().enumerate() {
                    items.push(match handed_back(r) {
                        Some(item) => item,
                        None if is_state(graph, node, r) => Item::Object(mix(key, r as u64)),
                        None => self.recorded_value(node, out, key, &mut output, poisoned)?,
                    });
                }
                Ok(Item::List(items))
            }
            _ => match handed_back(0) {
                Some(item) => Ok(item),
                None => self.recorded_value(node, returns, key, &mut output, poisoned),
            },
        }
    }

    /// Whether the tensor that a call writes to and hands back is recorded with another shape than it has.
    fn changes_a_shape(&self, node: NodeId, info: &OpInfo) -> Outcome<bool> {
        let graph = self.program.graph;
        let Some(schema) =
            info.schema.as_ref().filter(|schema| schema.returns.len() == 1 && schema.returns[0].write)
        else {
            return Ok(false);
        };
        let given =
            schema.mutated().next().and_then(|param| graph.argument(node, param, &schema.params[param].name));
        let (Some(value @ Value::Node(_)), Some(tensor)) = (given, graph.tensor_of(node)) else {
            return Ok(false);
        };
        let recorded = self.recorded(graph.dims(tensor.shape))?;
        Ok(self.maybe_tensor(value)?.is_some_and(|window| *window.shape != *recorded))
    }

    /// A hash of everything that a node is given: its operator and the values of its arguments. Of a first argument
    /// that only says shape and dtype, these.
    pub(super) fn arguments(&self, node: NodeId, key: u64) -> Outcome<u64> {
        let info = self.program.steps.get(node.index()).and_then(|step| step.info);
        let mut hash = key;
        for (param, value) in stated(self.program.graph, node, info) {
            let shape_of = match param == 0 && self.reads_shape_of_first(node) {
                true => self.maybe_tensor(value)?,
                false => None,
            };
            if let Some(window) = shape_of {
                hash = hash::words(
                    mix(mix(hash, param), window.dtype as u64),
                    window.shape.iter().map(|&n| n as u64),
                );
            } else if let Some((info, dims, rank)) = self.dims_of_first(node, param, value) {
                let Some(dims) = info.dims_counted(param as usize, dims, rank) else { continue };
                hash = hash::words(mix(hash, param), dims.into_iter().map(|dim| dim as u64));
            } else {
                hash = mix(mix(hash, param), self.digest(&self.item(value)?)?.hash);
            }
        }
        Ok(hash)
    }

    /// A hash of everything that a node is given, in any order.
    fn given_in_any_order(&self, node: NodeId, key: u64) -> Outcome<u64> {
        let info = self.program.steps.get(node.index()).and_then(|step| step.info);
        let values = stated(self.program.graph, node, info);
        let digest = |(_, value)| Ok(self.digest(&self.item(value)?)?.hash);
        let mut all = values.into_iter().map(digest).collect::<Outcome<Vec<u64>>>()?;
        all.sort_unstable();
        Ok(hash::words(key, all))
    }

    /// An argument that counts dimensions of the first tensor, and how many that has.
    fn dims_of_first(&self, node: NodeId, param: u64, value: Value) -> Option<(&OpInfo, Vec<i64>, i64)> {
        let info = self.program.steps.get(node.index())?.info?;
        if !info.counts_dims(param as usize) {
            return None;
        }
        let rank = match info.whole() {
            Some(whole) => self.ints(self.program.graph.argument(node, whole, "input_sizes")?).ok()?.len(),
            None => self.maybe_tensor(self.program.graph.arg(node, 0)?).ok()??.shape.len(),
        } as i64;
        Some((info, self.ints(value).ok()?, rank))
    }

    /// Whether the first argument of a node only says shape and dtype.
    fn reads_shape_of_first(&self, node: NodeId) -> bool {
        let info = self.program.steps.get(node.index()).and_then(|step| step.info);
        let schema = info.and_then(|info| info.schema.as_ref());
        info.zip(schema).is_some_and(|(info, schema)| info.kind.only_shape_of_first(schema))
    }

    /// The tensors that a node is given, the first `skipped` inputs aside.
    fn windows_given(&self, node: NodeId, skipped: usize) -> Outcome<Vec<Window>> {
        let (mut windows, mut inputs) = (Vec::new(), Vec::new());
        self.program.graph.for_each_input(node, &mut |input| inputs.push(input));
        for input in inputs.into_iter().skip(skipped) {
            collect(&self.item(Value::Node(input))?, &mut windows);
        }
        Ok(windows)
    }

    /// Whether an argument holds poison; what is in flight is noted as read.
    fn reads_poison(&mut self, node: NodeId) -> Outcome<bool> {
        let unread = usize::from(self.reads_shape_of_first(node));
        let mut poisoned = false;
        for window in self.windows_given(node, unread)? {
            let block = self.memory.cells(self.domain, &window)?;
            poisoned |= block.marks.iter().any(|&m| m != Mark::Known);
        }
        Ok(poisoned)
    }

    /// A view without kernel. If the argument lies as it was recorded, the recorded result says which window it is.
    fn opaque_view(&mut self, node: NodeId, info: &OpInfo) -> Outcome<Option<Item>> {
        let graph = self.program.graph;
        let Some(schema) = &info.schema else { return Ok(None) };
        let alias = schema.aliases().next().filter(|_| schema.returns.len() == 1 && !schema.returns[0].write);
        let Some((_, param)) = alias else { return Ok(None) };
        if schema.returns[0].ty.ends_with(']') {
            return Err(refuse!("{} gives views of which no rule tells the windows", info.target));
        }
        let value = graph.argument(node, param, &schema.params[param].name);
        let Some(Value::Node(base)) = value else { return Ok(None) };
        let (Some(window), Some(before), Some(after)) =
            (self.maybe_tensor(Value::Node(base))?, graph.tensor_of(base), graph.tensor_of(node))
        else {
            return Ok(None);
        };
        if may_hand_back(schema) && (before.storage.is_none() || after.storage.is_none()) {
            return Err(refuse!("{} may hand back what it is given", info.target));
        }
        if views_where_strides_allow(schema) {
            let sizes: Vec<Size> =
                self.recorded(graph.dims(after.shape))?.iter().map(|&n| Size::Known(n)).collect();
            return Ok(Some(Item::Tensor(self.viewed_or_copied(
                node,
                &window,
                &sizes,
                schema.name == "ravel",
            )?)));
        }
        // A tracer that gave the result another storage saw a copy.
        if before.storage.is_some() && before.storage != after.storage {
            return Ok(None);
        }
        let lies_as_recorded = *self.recorded(graph.dims(before.stride))? == *window.strides
            && *self.recorded(graph.dims(before.shape))? == *window.shape
            && before.dtype == window.dtype
            && window.dtype.itemsize() >= after.dtype.itemsize()
            && after.dtype.itemsize() > 0;
        let ratio = i64::from(window.dtype.itemsize() / after.dtype.itemsize().max(1));
        let view = Window {
            dtype: after.dtype,
            shape: self.recorded(graph.dims(after.shape))?,
            strides: self.recorded(graph.dims(after.stride))?,
            offset: (window.offset - before.offset).saturating_mul(ratio).saturating_add(after.offset),
            ..window
        };
        let (_, grain) = self.memory.size(window.storage);
        let inside = view.strides.len() == view.shape.len()
            && layout::numel(&view.shape).is_some()
            && view.extent().is_some_and(|(_, end)| end <= self.memory.capacity(window.storage, after.dtype))
            && after.dtype.itemsize() >= u32::from(grain);
        if !lies_as_recorded || !inside {
            return Err(refuse!(
                "{} is a view of which the recorded metadata do not tell the window",
                info.target
            ));
        }
        Ok(Some(Item::Tensor(view)))
    }

    /// Gives every written argument its new value: (parameter, the argument).
    fn write_opaque(
        &mut self,
        node: NodeId,
        schema: &Schema,
        key: u64,
        output: &mut u64,
        poisoned: bool,
    ) -> Outcome<Vec<(usize, Item)>> {
        let graph = self.program.graph;
        let mut written = Vec::new();
        let info = self.program.steps.get(node.index()).and_then(|step| step.info);
        let updated = info.map_or(&[][..], |info| info.updated(graph, node));
        for param in schema.mutated().chain(updated.iter().copied()) {
            let value = graph.argument(node, param, &schema.params[param].name);
            let Some(value) = value.filter(|&v| v != Value::None) else { continue };
            let mut windows = Vec::new();
            let item = self.item(value)?;
            collect(&item, &mut windows);
            for window in windows {
                let block =
                    self.unknown_block(&window.shape, window.dtype, key, *output, poisoned, &schema.name)?;
                *output += 1;
                self.memory.write(self.domain, &window, block)?;
            }
            written.push((param, item));
        }
        Ok(written)
    }

    fn unknown_block(
        &self,
        shape: &[i64],
        dtype: crate::graph::Dtype,
        key: u64,
        output: u64,
        poisoned: bool,
        what: &str,
    ) -> Outcome<Block> {
        let per = dtype.itemsize() as usize / usize::from(super::super::block::whole(dtype));
        let count = self.room(shape)? * per;
        let cells = self.domain.uninterpreted(key, output, dtype, count, what)?;
        let marks = if poisoned { vec![Mark::Poison; count] } else { Vec::new() };
        Ok(Block { cells, marks, grain: super::super::block::whole(dtype) })
    }

    /// A value of the recorded type whose elements are uninterpreted.
    pub(super) fn recorded_value(
        &mut self,
        node: NodeId,
        out: Out,
        key: u64,
        output: &mut u64,
        poisoned: bool,
    ) -> Outcome<Item> {
        let graph = self.program.graph;
        // Values are counted, and not lists of them: so a result has the number that it has where it is written in
        // place.
        let of = *output;
        *output += u64::from(!matches!(out, Out::Tuple(_) | Out::Dict(_)));
        Ok(match out {
            Out::Tensor(tensor) => {
                Item::Tensor(self.unknown_tensor(node, graph.tensor(tensor), key, of, poisoned)?)
            }
            Out::Tuple(span) => {
                let outs = graph.outs(span);
                let parts = outs.iter().map(|&o| self.recorded_value(node, o, key, output, poisoned));
                Item::List(parts.collect::<Outcome<_>>()?)
            }
            Out::Dict(span) => {
                let mut items = Vec::new();
                for pair in graph.outs(span).chunks_exact(2) {
                    if let [Out::Key(name), value] = pair {
                        items.push((*name, self.recorded_value(node, *value, key, output, poisoned)?));
                    }
                }
                Item::Dict(items)
            }
            Out::Int(n) => Item::Number(super::super::number::Number::Int(n)),
            Out::SymInt(_) | Out::SymBool(_) => {
                Item::Number(super::super::number::Number::Term(mix(key, of)))
            }
            // Of what is not recorded no more is known than what it is made of.
            Out::Other(_) | Out::Absent => Item::Object(mix(key, of)),
            Out::None | Out::Key(_) => Item::None,
        })
    }

    fn unknown_tensor(
        &mut self,
        node: NodeId,
        tensor: &Tensor,
        key: u64,
        output: u64,
        poisoned: bool,
    ) -> Outcome<Window> {
        let graph = self.program.graph;
        let shape = self.recorded(graph.dims(tensor.shape)).map_err(|trouble| match trouble {
            Trouble::Refuse(reason) => refuse!("the size of its result: {reason}"),
            other => other,
        })?;
        let block =
            self.unknown_block(&shape, tensor.dtype, key, output, poisoned, self.program.graph.target(node))?;
        let strides = self
            .recorded(graph.dims(tensor.stride))
            .ok()
            .filter(|s| s.len() == shape.len() && layout::is_dense(&shape, s));
        let strides = strides.unwrap_or_else(|| layout::contiguous(shape));
        Ok(self.memory.fresh(shape, strides, tensor.dtype, block))
    }
}

pub(super) fn collect(item: &Item, into: &mut Vec<Window>) {
    match item {
        Item::Tensor(window) => into.push(*window),
        Item::List(items) => items.iter().for_each(|item| collect(item, into)),
        Item::Dict(items) => items.iter().for_each(|(_, item)| collect(item, into)),
        _ => {}
    }
}
