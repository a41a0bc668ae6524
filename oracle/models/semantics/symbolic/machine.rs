//! The machine that an evaluation runs on: storages, windows on them, collectives in flight.

use super::arena::{Arena, NOTHING};
use super::dynamic;
use super::evaluation::{Evaluation, Produced, Storage, Tensor};
use super::hazard::{Hazard, HazardKind};
use super::key::{Tag, Words};
use super::layout;
use super::numbers::Sums;
use super::place::GroupId;
use super::reason::Reason;
use super::source::{KeyId, Source, Symbol, Traits, ValueId};
use crate::analysis::Draws;
use crate::graph::layout::write_contiguous;
use crate::graph::{Dtype, Graph, NodeId, Out, TensorId};
use crate::ops::shape::{Window, Windows};
use crate::ops::{Kind, OpInfo, Ops, by_target};
use rustc_hash::{FxHashMap, FxHashSet};

/// Why a call is not followed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Stop {
    /// A size is symbolic, or there would be too many stretches: the call becomes an opaque function of its
    /// inputs.
    NotFollowed,
    /// Nothing can be said about the result.
    Unknown(Reason),
}

impl From<Reason> for Stop {
    fn from(reason: Reason) -> Stop {
        Stop::Unknown(reason)
    }
}

/// What a read minds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reading {
    /// The elements are moved; unwritten ones may stay behind.
    Moving,
    /// The elements are used: by an operator, a collective or the caller of the graph.
    Using,
}

/// A window that a collective in flight will write.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    /// Index into the evaluation's launches.
    pub(super) launch: usize,
    pub(super) target: Tensor,
    pub(super) result: ValueId,
    /// What it sends, and what that was at the start; `None` where the input lies in the memory that is written.
    pub(super) input: Option<(Tensor, ValueId)>,
}

/// One evaluation under way.
pub(super) struct Machine<'a, 'g> {
    pub(super) arena: &'a mut Arena,
    pub(super) ops: &'a Ops,
    pub(super) graph: &'g Graph,
    pub(super) eval: Evaluation<'g>,
    pub(super) flights: Vec<Flight>,
    /// The node being executed.
    pub(super) node: NodeId,
    /// Symbols of the graph's targets and strings, as far as they have been needed.
    pub(super) targets: Vec<Option<Symbol>>,
    pub(super) strings: Vec<Option<Symbol>>,
    pub(super) words: Words,
    /// Unknown operators met, and communication that is not modelled.
    pub(super) unknown_calls: u32,
    pub(super) unmodelled: u32,
    /// What each draw gets.
    pub(super) draws: Draws,
    /// Assertions that stop no run which the others let through.
    pub(super) redundant_assertions: FxHashSet<NodeId>,
    /// Messages received from each peer.
    pub(super) received: FxHashMap<(GroupId, i64), u32>,
    /// What each flight will write, with the launch's node.
    pub(super) in_flight: Vec<(ValueId, NodeId)>,
    /// Pairs of storages of which the first may be the second: results of operators of which nothing is known, and what
    /// these were given.
    pub(super) shown: Vec<(u32, u32)>,
    /// Windows of tensors of symbolic sizes, by storage and name.
    pub(super) windows: FxHashMap<(u32, Option<KeyId>), Window>,
    /// What the call that was last asked for shows of a storage, under a name.
    pub(super) pieces: Option<((NodeId, u32, Option<KeyId>), Windows)>,
    pub(super) sums: Sums,
    /// The index of the rank that the graph was made for in process groups, where it is known.
    pub(super) own: &'a [(String, u32)],
    /// Whether a gather into the buffer that holds its input was met: a graph that is another one on each rank.
    pub(super) has_own_slots: bool,
}

impl Machine<'_, '_> {
    pub(super) fn hazard(&mut self, kind: HazardKind) {
        self.eval.hazards.push(Hazard { node: self.node, kind });
    }

    pub(super) fn reason(&mut self, reason: Reason) -> Produced {
        self.eval.reasons.push((self.node, reason));
        Produced::Unknown(self.eval.reasons.len() as u32 - 1)
    }

    /// What a node has produced, for use by the current one.
    pub(super) fn produced(&self, node: NodeId) -> Result<Produced, Reason> {
        let name = || self.graph.name(node).to_string();
        match self.eval.produced.get(node.index()) {
            None | Some(Produced::Pending) => Err(Reason::TooEarly(name())),
            Some(Produced::Unknown(_)) => Err(Reason::Input(name())),
            Some(&produced) => Ok(produced),
        }
    }

    /// The tensor that a node has produced.
    pub(super) fn tensor(&self, node: NodeId) -> Result<Tensor, Reason> {
        match self.produced(node)? {
            Produced::Tensor(tensor, _) => Ok(tensor),
            _ => Err(Reason::arguments(format!("{} is no tensor", self.graph.name(node)))),
        }
    }

    /// Stores sizes and strides.
    pub(super) fn window(
        &mut self,
        storage: u32,
        offset: i64,
        sizes: &[i64],
        strides: &[i64],
        dtype: Dtype,
    ) -> Tensor {
        let at = self.eval.pool.len() as u32;
        self.eval.pool.extend_from_slice(sizes);
        self.eval.pool.extend_from_slice(strides);
        Tensor { storage, offset, at, rank: sizes.len() as u16, dtype, path: None }
    }

    pub(super) fn storage(&mut self, content: ValueId, dtype: Dtype, symbolic: bool) -> u32 {
        self.eval.runs += self.arena.run_count(content);
        self.eval.storages.push(Storage { content, dtype, symbolic, room: None, flights: Vec::new() });
        self.eval.storages.len() as u32 - 1
    }

    pub(super) fn content(&self, tensor: Tensor) -> ValueId {
        self.eval.storages[tensor.storage as usize].content
    }

    /// A tensor as the result of the current node.
    pub(super) fn done(&self, tensor: Tensor) -> Produced {
        Produced::Tensor(tensor, self.content(tensor))
    }

    /// Several results.
    pub(super) fn list(&mut self, items: &[Produced]) -> Produced {
        let start = self.eval.items.len() as u32;
        self.eval.items.extend_from_slice(items);
        Produced::List(start, items.len() as u32)
    }

    /// A new tensor of known sizes with the given logical value; contiguous unless `strides` say otherwise.
    pub(super) fn fresh(
        &mut self,
        value: ValueId,
        sizes: &[i64],
        strides: Option<&[i64]>,
        dtype: Dtype,
    ) -> Result<Tensor, Reason> {
        // Strides that leave gaps or overlap are not followed: no operator but as_strided tells them from
        // contiguous ones in a fresh tensor.
        if let Some(strides) = strides.filter(|s| s.len() == sizes.len())
            && value != NOTHING
            && !layout::is_contiguous(sizes, strides)
        {
            let dims = layout::normal(sizes, strides);
            if let Some(back) = layout::inverse(&dims) {
                let content = self.arena.read(value, 0, &back, self.arena.len(value))?;
                let storage = self.storage(content, dtype, false);
                return Ok(self.window(storage, 0, sizes, strides, dtype));
            }
        }
        let storage = self.storage(value, dtype, false);
        Ok(self.contiguous(storage, 0, sizes, dtype))
    }

    /// A contiguous window.
    pub(super) fn contiguous(&mut self, storage: u32, offset: i64, sizes: &[i64], dtype: Dtype) -> Tensor {
        let at = self.eval.pool.len();
        self.eval.pool.extend_from_slice(sizes);
        self.eval.pool.resize(at + 2 * sizes.len(), 1);
        write_contiguous(sizes, &mut self.eval.pool[at + sizes.len()..]);
        Tensor { storage, offset, at: at as u32, rank: sizes.len() as u16, dtype, path: None }
    }

    /// A new tensor of symbolic sizes; `value` is its one element.
    pub(super) fn fresh_symbolic(&mut self, value: ValueId, dtype: Dtype) -> Tensor {
        let storage = self.storage(value, dtype, true);
        self.window(storage, 0, &[], &[], dtype)
    }

    /// The recorded metadata of the current node's `index`-th result.
    pub(super) fn metadata(&self, index: usize) -> Option<TensorId> {
        match self.graph.node(self.node).out {
            Out::Tensor(tensor) if index == 0 => Some(tensor),
            Out::Tuple(span) => match self.graph.outs(span).get(index) {
                Some(&Out::Tensor(tensor)) => Some(tensor),
                _ => None,
            },
            _ => None,
        }
    }

    /// The recorded strides of the current node's `index`-th result, if they are those of a tensor of these sizes
    /// that is not contiguous.
    fn recorded_strides(&self, index: usize, sizes: &[i64]) -> Option<Vec<i64>> {
        let tensor = self.graph.tensor(self.metadata(index)?);
        let (shape, strides) = (self.graph.dims(tensor.shape), self.graph.dims(tensor.stride));
        if shape.len() != sizes.len() || strides.len() != sizes.len() {
            return None;
        }
        let (mut expected, mut contiguous) = (1i64, true);
        for ((dim, stride), &size) in shape.iter().zip(strides).zip(sizes).rev() {
            if dim.known() != Some(size) {
                return None;
            }
            contiguous &= size == 1 || stride.known() == Some(expected);
            expected = expected.saturating_mul(size);
        }
        if contiguous { None } else { self.graph.sizes(tensor.stride) }
    }

    /// A new tensor as the current node's `index`-th result, with the strides that are recorded for it.
    pub(super) fn fresh_result(
        &mut self,
        index: usize,
        value: ValueId,
        sizes: &[i64],
        dtype: Dtype,
    ) -> Result<Tensor, Reason> {
        let strides = self.recorded_strides(index, sizes);
        self.fresh(value, sizes, strides.as_deref(), dtype)
    }

    pub(super) fn is_symbolic(&self, tensor: Tensor) -> bool {
        self.eval.is_symbolic(tensor)
    }

    /// Sizes of a tensor; stops at a symbolic one.
    pub(super) fn sizes(&self, tensor: Tensor) -> Result<Vec<i64>, Stop> {
        if self.is_symbolic(tensor) {
            return Err(Stop::NotFollowed);
        }
        Ok(self.eval.sizes(tensor).to_vec())
    }

    /// The logical value of a tensor, noting hazards. `input` is the argument that it stands for.
    pub(super) fn read(
        &mut self,
        tensor: Tensor,
        input: Option<NodeId>,
        reading: Reading,
    ) -> Result<ValueId, Reason> {
        let content = self.content(tensor);
        let value = self.eval.shown(self.arena, tensor, content)?;
        let traits = self.arena.traits(value);
        if traits.has(Traits::IN_FLIGHT) {
            let launch = self.find_flight(value);
            self.hazard(HazardKind::ReadsInFlight { input, launch });
        }
        if reading == Reading::Using && traits.has(Traits::POISON) {
            let elements = self.first_unwritten(value);
            self.hazard(HazardKind::ReadsUnwritten { input, elements });
        }
        Ok(value)
    }

    fn find_flight(&self, value: ValueId) -> Option<NodeId> {
        self.arena.runs(value).iter().find_map(|run| match self.arena.get(run.source) {
            Source::InFlight { result } => {
                self.in_flight.iter().rfind(|(id, _)| *id == result).map(|&(_, node)| node)
            }
            _ => None,
        })
    }

    fn first_unwritten(&self, value: ValueId) -> Option<std::ops::Range<i64>> {
        let mut start = 0;
        for run in self.arena.runs(value) {
            if matches!(self.arena.get(run.source), Source::Poison) {
                return Some(start..run.end);
            }
            start = run.end;
        }
        None
    }

    /// Writes a logical value through a window, noting hazards.
    pub(super) fn write(&mut self, tensor: Tensor, value: ValueId) -> Result<(), Reason> {
        let content = self.written(tensor, value, true)?;
        let Storage { room, dtype, .. } = self.eval.storages[tensor.storage as usize];
        let kept = room.map(|bytes| bytes / i64::from(dtype.itemsize().max(1)));
        if kept == Some(0) {
            return Ok(());
        }
        self.replace(tensor.storage, content);
        let len = self.arena.len(content);
        match kept {
            Some(kept) if kept < len && !self.is_symbolic(tensor) => {
                let lost = self.window(tensor.storage, kept, &[len - kept], &[1], dtype);
                let nothing = self.arena.poison(len - kept);
                let content = self.written(lost, nothing, false)?;
                self.replace(tensor.storage, content);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A storage holds something else from now on.
    pub(super) fn replace(&mut self, storage: u32, content: ValueId) {
        self.eval.runs += self.arena.run_count(content);
        self.eval.storages[storage as usize].content = content;
        self.spread(storage, content);
    }

    /// A result may show any of several tensors.
    pub(super) fn may_show(&mut self, result: Tensor, bases: &[Tensor]) {
        self.shown.extend(bases.iter().map(|base| (result.storage, base.storage)));
    }

    /// What was written to a storage may be seen in those that may be the same.
    fn spread(&mut self, storage: u32, content: ValueId) {
        let others = self.shown.iter().filter_map(|&(result, base)| match storage {
            _ if result == storage => Some(base),
            _ if base == storage => Some(result),
            _ => None,
        });
        for other in others.collect::<Vec<u32>>() {
            let known = &self.eval.storages[other as usize];
            let (old, dtype, written) =
                (known.content, known.dtype, self.eval.storages[storage as usize].dtype);
            let (count, len) = (self.arena.len(old), self.arena.len(content));
            let target = self.arena.symbol("as it was, or as it was written");
            self.words.0.clear();
            self.words.symbol(Tag::Target, target);
            self.words.tensor(old, dtype, &[count]);
            self.words.tensor(content, written, &[len]);
            self.eval.storages[other as usize].content = self.assumed(count);
        }
    }

    /// So many elements that are some function of the words, of which nothing else is known: others may equal them.
    pub(super) fn assumed(&mut self, count: i64) -> ValueId {
        let key = self.take_key();
        let source = self.arena.source(Source::Opaque { key, output: 0 });
        self.arena.all_of(source, count)
    }

    /// What the storage of `tensor` holds once `value` has been written.
    fn written(&mut self, tensor: Tensor, value: ValueId, note: bool) -> Result<ValueId, Reason> {
        if note && !self.eval.storages[tensor.storage as usize].flights.is_empty() {
            self.note_write_in_flight(tensor);
        }
        let storage = &self.eval.storages[tensor.storage as usize];
        let (content, stored) = (storage.content, storage.dtype);
        if self.is_symbolic(tensor) {
            return Ok(dynamic::written(self.arena, tensor, content, value));
        }
        let (sizes, strides) = (self.eval.sizes(tensor), self.eval.strides(tensor));
        let count = layout::numel(sizes).ok_or(Reason::Overflow)?;
        if count != self.arena.len(value) {
            let found = self.arena.len(value);
            return Err(Reason::arguments(format!("{found} elements for a tensor of {count}")));
        }
        if count == 0 {
            return Ok(content);
        }
        let dims = layout::normal(sizes, strides);
        let content = self.arena.retyped(content, stored, tensor.dtype)?;
        let content = self.arena.write(content, tensor.offset, &dims, value)?;
        self.arena.retyped(content, tensor.dtype, stored)
    }

    fn note_write_in_flight(&mut self, tensor: Tensor) {
        let (low, high) = self.bytes(tensor);
        for flight in self.eval.storages[tensor.storage as usize].flights.clone() {
            let flight = &self.flights[flight as usize];
            let (from, to) = self.bytes(flight.target);
            if low < to && from < high {
                let launch = self.eval.launches[flight.launch].node;
                self.hazard(HazardKind::WritesInFlight { launch });
            }
        }
    }

    /// The bytes between the first and the last element of a tensor; all for a symbolic one.
    pub(super) fn bytes(&self, tensor: Tensor) -> (i64, i64) {
        if self.is_symbolic(tensor) {
            return (0, i64::MAX);
        }
        let sizes = self.eval.sizes(tensor);
        if sizes.contains(&0) {
            return (0, 0);
        }
        let dims = layout::normal(sizes, self.eval.strides(tensor));
        let width = i64::from(tensor.dtype.itemsize());
        let last = layout::extent(&dims).unwrap_or(i64::MAX).saturating_add(tensor.offset);
        (tensor.offset.saturating_mul(width), last.saturating_add(1).saturating_mul(width))
    }

    /// Marks a window as being written by a collective.
    pub(super) fn take_off(&mut self, flight: Flight) -> Result<(), Reason> {
        let node = self.node;
        self.in_flight.push((flight.result, node));
        let source = self.arena.source(Source::InFlight { result: flight.result });
        let len = if self.is_symbolic(flight.target) { 1 } else { self.arena.len(flight.result) };
        let mark = self.arena.all_of(source, len);
        self.write(flight.target, mark)?;
        self.eval.storages[flight.target.storage as usize].flights.push(self.flights.len() as u32);
        self.flights.push(flight);
        Ok(())
    }

    /// Waits for the collectives that will write the storage of `tensor`: PyTorch keeps them by storage
    /// (`WorkRegistry` of torch/csrc/distributed/c10d/ProcessGroup.cpp).
    pub(super) fn land(&mut self, tensor: Tensor) -> Result<(), Reason> {
        let storage = tensor.storage as usize;
        if self.eval.storages[storage].flights.is_empty() {
            return Ok(());
        }
        for index in std::mem::take(&mut self.eval.storages[storage].flights) {
            let flight = self.flights[index as usize].clone();
            if let Some((input, sent)) = flight.input {
                let now = self.eval.shown(self.arena, input, self.content(input));
                if now.as_ref() != Ok(&sent) {
                    let launch = self.eval.launches[flight.launch].node;
                    let values = now.ok().map(|now| (now, sent));
                    self.hazard(HazardKind::InputChanged { launch, values });
                }
            }
            let content = self.written(flight.target, flight.result, false)?;
            self.eval.runs += self.arena.run_count(content);
            self.eval.storages[storage].content = content;
        }
        Ok(())
    }

    pub(super) fn target_symbol(&mut self) -> Symbol {
        let target = self.graph.node(self.node).target.0 as usize;
        if let Some(&Some(symbol)) = self.targets.get(target) {
            return symbol;
        }
        let own = self.graph.target(self.node);
        let symbol = match same_as(own) {
            Some(info) => self.arena.symbol(&info.target),
            None => self.arena.symbol(own),
        };
        if self.targets.len() <= target {
            self.targets.resize(target + 1, None);
        }
        self.targets[target] = Some(symbol);
        symbol
    }

    pub(super) fn string(&mut self, text: crate::graph::Str) -> Symbol {
        let index = text.index();
        if let Some(&Some(symbol)) = self.strings.get(index) {
            return symbol;
        }
        let symbol = self.arena.symbol(self.graph.text(text));
        if self.strings.len() <= index {
            self.strings.resize(index + 1, None);
        }
        self.strings[index] = Some(symbol);
        symbol
    }

    pub(super) fn name_symbol(&mut self, node: NodeId) -> Symbol {
        let name = self.graph.node(node).name;
        self.string(name)
    }

    /// Interns the words built so far and clears them.
    pub(super) fn take_key(&mut self) -> KeyId {
        let key = self.arena.key(&self.words);
        self.words.0.clear();
        key
    }
}

/// The operator that does what `target` does: that computes afresh what it writes in place (`mul` of `mul_`,
/// `index_put` of `index_put_`), and of a tensor and a number, element by element, what it takes for two tensors too
/// (`mul.Tensor` of `mul.Scalar`).
fn same_as(target: &str) -> Option<&'static OpInfo> {
    let info = by_target(target)?;
    let schema = info.schema.as_ref()?;
    let name = schema.name.strip_suffix('_').unwrap_or(&schema.name);
    let of = |overload: &str| {
        let twin = by_target(&format!("{}.{name}.{overload}", schema.namespace));
        let takes_alike = |twin: &&'static OpInfo| {
            let of_twin = twin.schema.iter().flat_map(|twin| &twin.params).map(|param| &param.name);
            twin.kind == info.kind && of_twin.eq(schema.params.iter().map(|param| &param.name))
        };
        twin.filter(takes_alike)
    };
    // Beside these, whoever moves elements gives them in the dtype of what it writes to, in place or not.
    let is_alike = info.kind.is_elementwise() || matches!(info.kind, Kind::Move(_) | Kind::Opaque);
    let scalar = (info.kind.is_elementwise() && schema.overload == "Scalar").then(|| of("Tensor")).flatten();
    scalar.or_else(|| of(&schema.overload).filter(|_| is_alike && name != schema.name))
}
