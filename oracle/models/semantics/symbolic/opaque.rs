//! Calls that are not computed: their results are sources of their own, keyed by operator, constants and the
//! logical values of the inputs.

use super::algebra::write_whole_numbers;
use super::arguments::Call;
use super::evaluation::{Effect, Produced, Tensor};
use super::key::Tag;
use super::layout;
use super::machine::{Machine, Reading, Stop};
use super::moves::Moved;
use super::reason::Reason;
use super::source::{KeyId, Source, Symbol, ValueId};
use crate::analysis::bytes::{ByteSet, Overlap, meeting};
use crate::analysis::draws::{Draw, is_state, order_of_filling};
use crate::graph::{NodeId, Out, Value};
use crate::ops::{Kind, Move, OpInfo, Param, Random};
use crate::semantics::is_injective;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// Output numbers from here on are arguments that the call writes.
const WRITTEN: u32 = 1 << 31;

impl Machine<'_, '_> {
    /// Executes the current node as a function of its inputs that is not computed.
    pub(super) fn opaque(&mut self, info: &OpInfo, call: Option<&Call<'_>>) -> Result<Produced, Reason> {
        let target = self.target_symbol();
        self.opaque_as(target, info, call)
    }

    /// The same under another name than the target's.
    pub(super) fn opaque_as(
        &mut self,
        target: Symbol,
        info: &OpInfo,
        call: Option<&Call<'_>>,
    ) -> Result<Produced, Reason> {
        self.words.0.clear();
        self.words.symbol(Tag::Target, target);
        let draw = self.draws.of(self.node);
        if let Some(draw) = draw {
            self.put_draw(draw);
        }
        let unknown = matches!(info.kind, Kind::Unknown);
        if unknown {
            self.words.put(Tag::Effect, self.unknown_calls);
            self.unknown_calls = self.unknown_calls.wrapping_add(1);
        }
        match call {
            Some(call) => self.encode_bound(call, info.kind)?,
            None => self.encode_raw(self.node)?,
        }
        self.put_overlaps(info, call)?;
        if info.kind.is_elementwise() {
            write_whole_numbers(&mut self.words, self.arena.text(target));
            self.arena.write_relu(&mut self.words);
            self.arena.write_multiple(&mut self.words);
        } else {
            self.put_recorded_sizes(info.target.contains("stride"));
        }
        if let Some(call) = call
            && let Some(value) = self.arena.undone(&self.words.0)
            && let Some(given_back) = self.given_back(call, value)
        {
            return Ok(given_back);
        }
        self.arena.order_operands(&mut self.words);
        let key = self.take_key();
        if info.acts() && !self.redundant_assertions.contains(&self.node) {
            let ordered = !info.asserts();
            self.eval.effects.push(Effect { node: self.node, key, ordered, certain: !unknown });
        }
        match call {
            Some(call) => self.write_arguments(call, key)?,
            None if unknown => self.write_everything(key)?,
            None => {}
        }
        let mask = match (info.kind, call, draw) {
            (Kind::Random(Random::NativeDropout), Some(call), Some(draw)) => {
                Some(self.mask_key(target, call, draw)?)
            }
            _ => None,
        };
        self.results(key, mask, call)
    }

    /// Of a call that writes, which of its tensors share elements, and how all lie where one shows an element twice: what
    /// it leaves may depend on that.
    fn put_overlaps(&mut self, info: &OpInfo, call: Option<&Call<'_>>) -> Result<(), Reason> {
        // Each tensor that it is given, and whether it may write to it.
        let mut given: Vec<(NodeId, bool)> = Vec::new();
        match call {
            Some(call) if info.writes() => {
                let updated = info.updated(self.graph, self.node);
                for (index, param) in call.schema.params.iter().enumerate() {
                    let is_written = param.write || updated.contains(&index);
                    given.extend(call.bound.nodes(&param.name).into_iter().map(|node| (node, is_written)));
                }
            }
            // It is opaque where the part overlaps itself: then it is as if it wrote there.
            Some(call) if info.kind == Kind::Move(Move::AsStridedScatter) => {
                given.extend([call.node(0)?, call.node(1)?].map(|node| (node, false)));
            }
            None if info.kind == Kind::Unknown => {
                self.graph.for_each_input(self.node, &mut |node| given.push((node, true)));
            }
            _ => return Ok(()),
        }
        let mut tensors: Vec<(Tensor, bool)> = Vec::with_capacity(given.len());
        for (node, is_written) in given {
            if let Produced::Tensor(tensor, _) = self.produced(node)? {
                tensors.push((tensor, is_written));
            }
        }
        // Tensors that lie alike are looked at once.
        let (mut shared, mut alike): (Vec<i64>, Vec<(usize, usize)>) = Default::default();
        let mut known: FxHashMap<_, usize> = FxHashMap::default();
        let mut on_storage: BTreeMap<u32, Vec<(usize, bool)>> = BTreeMap::new();
        for (j, &(b, is_written)) in tensors.iter().enumerate() {
            let (sizes, strides) = (self.eval.sizes(b).to_vec(), self.eval.strides(b).to_vec());
            let first = *known.entry((b.storage, b.offset, b.path, b.dtype, sizes, strides)).or_insert(j);
            let here = on_storage.entry(b.storage).or_default();
            if first == j {
                here.push((j, is_written));
                continue;
            }
            if let Ok(at) = here.binary_search_by_key(&first, |&(i, _)| i) {
                here[at].1 |= is_written;
                alike.push((first, j));
            }
        }
        let windows = || on_storage.values();
        let pairs: Vec<(usize, usize)> = windows().flat_map(|of| self.overlapping(&tensors, of)).collect();
        let mut told: FxHashSet<usize> = pairs.iter().flat_map(|&(i, j)| [i, j]).collect();
        // Who takes corresponding elements may write where it reads.
        if !info.kind.is_elementwise() {
            told.extend(windows().flatten().filter(|(_, is_written)| *is_written).map(|&(i, _)| i));
        }
        for (i, j) in alike.into_iter().filter(|(first, _)| told.contains(first)) {
            shared.extend([-2, i as i64, j as i64]);
        }
        for (i, j) in pairs {
            let (a, b) = (tensors[i].0, tensors[j].0);
            shared.extend([i as i64, j as i64, b.offset.saturating_sub(a.offset)]);
            shared.extend([a.path, b.path].map(|path| path.map_or(-1, |path| i64::from(path.0))));
            shared.extend_from_slice(self.eval.strides(a));
            shared.extend_from_slice(self.eval.strides(b));
        }
        let scatters = info.kind == Kind::Move(Move::AsStridedScatter);
        if scatters || tensors.iter().any(|&(tensor, is_written)| is_written && self.shows_twice(tensor)) {
            for &(tensor, _) in &tensors {
                shared.push(-1);
                shared.extend_from_slice(self.eval.strides(tensor));
            }
        }
        if !shared.is_empty() {
            self.words.put(Tag::Argument, u32::from(u16::MAX));
            self.words.put(Tag::List, shared.len() as u32);
            shared.into_iter().for_each(|number| self.words.int(number));
        }
        Ok(())
    }

    /// Whether a window shows an element twice, as far as its sizes are known.
    pub(super) fn shows_twice(&self, tensor: Tensor) -> bool {
        !self.is_symbolic(tensor) && !is_injective(self.eval.sizes(tensor), self.eval.strides(tensor))
    }

    /// The pairs of windows on one storage, one of which is written, that may share an element, in their order.
    fn overlapping(&self, tensors: &[(Tensor, bool)], windows: &[(usize, bool)]) -> BTreeSet<(usize, usize)> {
        let sets: Vec<ByteSet> = windows.iter().map(|&(at, _)| self.bytes_shown(tensors[at].0)).collect();
        let mut pairs = BTreeSet::new();
        let _ = meeting(&sets, &mut |i, j| {
            let [(a, writes_a), (b, writes_b)] = [windows[i], windows[j]];
            if (writes_a || writes_b) && sets[i].overlap(sets[j]) != Overlap::No {
                pairs.insert((a.min(b), a.max(b)));
            }
            Some(())
        });
        pairs
    }

    /// The bytes that a window shows; all of them where its sizes are not known.
    fn bytes_shown(&self, of: Tensor) -> ByteSet {
        if self.is_symbolic(of) {
            return ByteSet::ALL;
        }
        let width = i64::from(of.dtype.itemsize());
        let start = of.offset.saturating_mul(width);
        ByteSet::of_window(start, self.eval.sizes(of), self.eval.strides(of), width)
    }

    /// The result of a call that undoes another one, and so gives back what that was given.
    fn given_back(&mut self, call: &Call<'_>, value: ValueId) -> Option<Produced> {
        let tensor = self.tensor(call.node(0).ok()?).ok()?;
        let sizes = self.sizes(tensor).ok()?;
        self.deliver(call, Moved { value, sizes, dtype: tensor.dtype }).ok()
    }

    /// Dropout outside training: the tensor as it is, and a mask.
    pub(super) fn untrained(&mut self, call: &Call<'_>) -> Result<Produced, Stop> {
        let node = call.node(0)?;
        let tensor = self.tensor(node)?;
        let sizes = self.sizes(tensor)?;
        let value = self.read(tensor, Some(node), Reading::Using)?;
        let produced = self.opaque(call.info, Some(call))?;
        let Produced::List(start, 2) = produced else { return Ok(produced) };
        let kept = self.fresh_result(0, value, &sizes, tensor.dtype)?;
        let kept = self.done(kept);
        if let Some(item) = self.eval.items.get_mut(start as usize) {
            *item = kept;
        }
        Ok(produced)
    }

    /// Which numbers are drawn.
    fn put_draw(&mut self, draw: Draw) {
        let generator = self.arena.symbol(self.draws.generator(draw));
        self.words.symbol(Tag::Draw, generator);
        self.words.put(Tag::Draw, draw.position);
        for dim in order_of_filling(self.graph, self.node).into_iter().flatten() {
            self.words.int(dim as i64);
        }
    }

    /// The mask of a dropout: it is drawn, whatever the tensor holds that it is laid over.
    fn mask_key(&mut self, target: Symbol, call: &Call<'_>, draw: Draw) -> Result<KeyId, Reason> {
        self.words.symbol(Tag::Target, target);
        self.put_draw(draw);
        self.encode_arguments(call, true)?;
        Ok(self.take_key())
    }

    /// The results of the current node, numbered as outputs of `key`; with a `mask`, the second is of that key.
    fn results(
        &mut self,
        key: KeyId,
        mask: Option<KeyId>,
        call: Option<&Call<'_>>,
    ) -> Result<Produced, Reason> {
        let graph = self.graph;
        match graph.node(self.node).out {
            Out::Tuple(span) => {
                let outs = graph.outs(span);
                let mut items = Vec::with_capacity(outs.len());
                for (index, &out) in outs.iter().enumerate() {
                    let key = mask.filter(|_| index == 1).unwrap_or(key);
                    items.push(match is_state(graph, self.node, index) {
                        true => self.number_of(key, index as u32),
                        false => self.result(key, call, index, out)?,
                    });
                }
                Ok(self.list(&items))
            }
            Out::Dict(span) => {
                let mut items = Vec::new();
                for (index, pair) in graph.outs(span).chunks_exact(2).enumerate() {
                    items.push(self.result(key, None, index, pair[1])?);
                }
                Ok(self.list(&items))
            }
            out => self.result(key, call, 0, out),
        }
    }

    fn result(
        &mut self,
        key: KeyId,
        call: Option<&Call<'_>>,
        index: usize,
        out: Out,
    ) -> Result<Produced, Reason> {
        if let Some(call) = call
            && let Some(aliased) = self.aliased(call, index)?
        {
            return Ok(self.done(aliased));
        }
        // Of an operator of which nothing is known it may be a window on what it is given.
        let bases = if self.is_unknown() { self.tensors_given() } else { Vec::new() };
        if let (Out::Tensor(id), [base]) = (out, &bases[..]) {
            let base = *base;
            let name = self.arena.symbol("result");
            self.words.symbol(Tag::Target, name);
            self.words.put(Tag::Number, key.0);
            self.words.int(index as i64);
            let path = self.take_key();
            let dtype = self.graph.tensor(id).dtype;
            return Ok(self.done(Tensor { dtype, path: Some(path), ..base }));
        }
        let output = index as u32;
        Ok(match out {
            // Whatever it is, it is a function of the inputs.
            Out::Absent if call.is_none_or(|call| !call.schema.returns.is_empty()) => {
                self.number_of(key, output)
            }
            Out::Absent | Out::None => Produced::Nothing,
            Out::Tensor(id) => {
                let tensor = *self.graph.tensor(id);
                let origin = self.name_symbol(self.node);
                match self.graph.sizes(tensor.shape) {
                    Some(sizes) => {
                        let count = layout::numel(&sizes).ok_or(Reason::Overflow)?;
                        let source = Source::Opaque { key, output };
                        let source = self.arena.source_of(source, origin);
                        let value = self.arena.all_of(source, count);
                        let fresh = self.fresh_result(index, value, &sizes, tensor.dtype)?;
                        self.may_show(fresh, &bases);
                        self.done(fresh)
                    }
                    None => {
                        let source = Source::Opaque { key, output };
                        let source = self.arena.source_of(source, origin);
                        let value = self.arena.all_of(source, 1);
                        let fresh = self.fresh_symbolic(value, tensor.dtype);
                        self.may_show(fresh, &bases);
                        self.done(fresh)
                    }
                }
            }
            // What is recorded of a number nobody checks.
            Out::Int(_) | Out::SymInt(_) | Out::SymBool(_) | Out::Other(_) | Out::Key(_) => {
                self.number_of(key, output)
            }
            Out::Tuple(span) | Out::Dict(span) => {
                // Fused communication and wrapped functions nest their results.
                let mut items = Vec::new();
                for (inner, &out) in self.graph.outs(span).iter().enumerate() {
                    let name = self.arena.symbol("item");
                    self.words.symbol(Tag::Target, name);
                    self.words.put(Tag::Number, key.0);
                    self.words.int(index as i64);
                    let key = self.take_key();
                    items.push(self.result(key, None, inner, out)?);
                }
                self.list(&items)
            }
        })
    }

    /// Whether nothing is known of what the current node calls.
    fn is_unknown(&self) -> bool {
        self.ops.call(self.graph, self.node).is_some_and(|info| info.kind == Kind::Unknown)
    }

    /// The tensors that the node is given, one for each storage.
    fn tensors_given(&mut self) -> Vec<Tensor> {
        let mut all: Vec<Tensor> = Vec::new();
        let inputs = self.graph.inputs(self.node).into_iter();
        for tensor in inputs.filter_map(|input| self.tensor(input).ok()) {
            if all.iter().all(|known| known.storage != tensor.storage) {
                all.push(tensor);
            }
        }
        all
    }

    /// Output `output` of a call as a number.
    fn number_of(&mut self, key: KeyId, output: u32) -> Produced {
        if output == 0 {
            return Produced::Number(key);
        }
        let name = self.arena.symbol("output");
        self.words.symbol(Tag::Target, name);
        self.words.put(Tag::Number, key.0);
        self.words.int(i64::from(output));
        Produced::Number(self.take_key())
    }

    /// The tensor that result `index` shares memory with: a written argument itself, or a view of an argument that
    /// is not computed.
    fn aliased(&mut self, call: &Call<'_>, index: usize) -> Result<Option<Tensor>, Reason> {
        let returns = &call.schema.returns;
        // A single result of list type has as many entries as the list.
        let slot = if returns.len() == 1 && returns[0].ty.ends_with(']') { 0 } else { index };
        let Some(result) = returns.get(slot) else { return Ok(None) };
        let Some(set) = result.alias else { return Ok(None) };
        let Some(param) = call.schema.params.iter().position(|p| p.alias == Some(set)) else {
            return Ok(None);
        };
        let nodes = match call.bound.given(param) {
            Some(Value::Node(node)) => vec![node],
            Some(Value::List(_)) => self.nodes(call, param)?,
            _ => return Ok(None),
        };
        let several = nodes.len() > 1;
        let Some(&node) = nodes.get(if several { index } else { 0 }) else { return Ok(None) };
        let mut tensor = self.tensor(node)?;
        if result.write {
            let recorded = self.metadata(index).and_then(|id| self.graph.sizes(self.graph.tensor(id).shape));
            if recorded.is_some_and(|sizes| !self.is_symbolic(tensor) && sizes != self.eval.sizes(tensor)) {
                return Err(Reason::arguments("a tensor that gets another shape in place"));
            }
            return Ok(Some(tensor));
        }
        if let Kind::View(view) = call.info.kind
            && let Some(name) = self.window_name(call, view, tensor, index)
        {
            return Ok(Some(Tensor { path: name, ..tensor }));
        }
        let is_view = || self.is_shown_as_it_lies(node, tensor);
        if self.is_symbolic(tensor) && call.schema.name == "reshape" && !is_view() {
            return Err(Reason::arguments("it is not known whether the result is a copy"));
        }
        // A view that is not computed: named by the call, minus what it reads, which may change.
        let path = self.path(call, tensor, index)?;
        if let Some(id) = self.metadata(index) {
            tensor.dtype = self.graph.tensor(id).dtype;
        }
        tensor.path = Some(path);
        Ok(Some(tensor))
    }

    /// The sizes of what the current node takes, and the strides if these matter, where they are symbolic: what such a
    /// tensor holds does not say how large it is.
    fn put_recorded_sizes(&mut self, with_strides: bool) {
        for input in self.graph.inputs(self.node) {
            if matches!(self.produced(input), Ok(Produced::Tensor(tensor, _)) if self.is_symbolic(tensor))
                && let Some(tensor) = self.graph.tensor_of(input)
            {
                self.put_dims(tensor.shape);
                if with_strides {
                    self.put_dims(tensor.stride);
                }
            }
        }
    }

    /// The name of a view that is not computed: operator, constants, and the window that it is taken of.
    pub(super) fn path(&mut self, call: &Call<'_>, base: Tensor, index: usize) -> Result<KeyId, Reason> {
        // A reshape that is a view is that view.
        let target = match call.schema.name.as_str() {
            "reshape" => self.arena.symbol("aten.view.default"),
            _ => self.target_symbol(),
        };
        self.words.0.clear();
        self.words.symbol(Tag::Target, target);
        self.words.int(index as i64);
        for (number, _) in call.schema.params.iter().enumerate() {
            let Some(value) = call.bound.given(number) else { continue };
            if let Value::Node(node) = value
                && matches!(self.produced(node)?, Produced::Tensor(..))
            {
                continue;
            }
            self.words.put(Tag::Argument, number as u32);
            self.encode(value)?;
        }
        match base.path {
            Some(path) => self.words.put(Tag::Number, path.0),
            None if self.eval.storages[base.storage as usize].symbolic => {
                // What the storage holds is named by its elements: where they lie is part of the name.
                if let Some(whole) = self.windows.get(&(base.storage, None)).cloned() {
                    self.put_window(&whole);
                }
            }
            None => {
                self.words.int(base.offset);
                let at = base.at as usize;
                for i in at..at + 2 * base.rank as usize {
                    let n = self.eval.pool[i];
                    self.words.int(n);
                }
            }
        }
        Ok(self.take_key())
    }

    /// Writes what the call writes into its arguments.
    fn write_arguments(&mut self, call: &Call<'_>, key: KeyId) -> Result<(), Reason> {
        let mut output = WRITTEN;
        let updated = call.info.updated(self.graph, self.node);
        let is_written = |(index, param): &(usize, &Param)| param.write || updated.contains(index);
        for (index, param) in call.schema.params.iter().enumerate().filter(is_written) {
            let nodes = match call.bound.given(index) {
                Some(Value::Node(node)) => vec![node],
                Some(Value::List(_)) => self.nodes(call, index)?,
                _ => Vec::new(),
            };
            for node in nodes {
                let tensor = self.tensor(node)?;
                // The only thing written is the result: then the written value is the result.
                let number =
                    if param.is_out() || call.schema.returns.len() <= 1 { output - WRITTEN } else { output };
                self.write_source(tensor, key, number)?;
                output = output.wrapping_add(1);
            }
        }
        Ok(())
    }

    fn write_source(&mut self, tensor: Tensor, key: KeyId, output: u32) -> Result<(), Reason> {
        if self.shows_twice(tensor) {
            return self.write_where_elements_overlap(tensor, key, output);
        }
        let origin = self.name_symbol(self.node);
        let source = self.arena.source_of(Source::Opaque { key, output }, origin);
        let count = if self.is_symbolic(tensor) {
            1
        } else {
            layout::numel(self.eval.sizes(tensor)).ok_or(Reason::Overflow)?
        };
        let value: ValueId = self.arena.all_of(source, count);
        self.write(tensor, value)
    }

    /// Of elements that lie on each other it is not known what is left: all memory that they lie in becomes a function of
    /// what it was, and of the call.
    fn write_where_elements_overlap(
        &mut self,
        tensor: Tensor,
        key: KeyId,
        output: u32,
    ) -> Result<(), Reason> {
        let whole = self.eval.storages[tensor.storage as usize].clone();
        let (name, count) =
            (self.arena.symbol("overlapping elements written"), self.arena.len(whole.content));
        self.words.0.clear();
        self.words.symbol(Tag::Target, name);
        self.words.put(Tag::Number, key.0);
        self.words.int(i64::from(output));
        self.words.int(tensor.offset);
        self.words.tensor(whole.content, whole.dtype, &[count]);
        let content = self.assumed(count);
        self.replace(tensor.storage, content);
        Ok(())
    }

    /// An operator of which nothing is known may write to everything that it is given.
    fn write_everything(&mut self, key: KeyId) -> Result<(), Reason> {
        let mut inputs: Vec<NodeId> = Vec::new();
        self.graph.for_each_input(self.node, &mut |input| inputs.push(input));
        for (index, input) in inputs.into_iter().enumerate() {
            let output = WRITTEN + index as u32;
            if self.graph.node(input).out == Out::Absent
                && matches!(self.produced(input), Ok(Produced::Number(_)))
            {
                self.eval.produced[input.index()] = self.number_of(key, output);
            }
            let tensors: Vec<Tensor> = match self.produced(input) {
                Ok(Produced::Tensor(tensor, _)) => vec![tensor],
                Ok(Produced::List(start, len)) => (start..start + len)
                    .filter_map(|i| match self.eval.items[i as usize] {
                        Produced::Tensor(tensor, _) => Some(tensor),
                        _ => None,
                    })
                    .collect(),
                _ => Vec::new(),
            };
            for tensor in tensors {
                self.write_source(tensor, key, output)?;
            }
        }
        Ok(())
    }
}
