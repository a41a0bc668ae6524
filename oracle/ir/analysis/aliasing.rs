//! Which parts of which storages each place shows: the builder behind [`Storages`].

use super::bytes::ByteSet;
use super::edges::Edges;
use super::sharing::{argument, hands_back, holds_tensors, is_quiet, receives};
use super::storages::{Mode, Part, Place, Storage, StorageIndex, Storages};
use super::topological::TopologicalOrder;
use crate::expression::spelled_stride;
use crate::graph::layout::{format_of, lies_in};
use crate::graph::{Dim, DtypeClass, Graph, NodeId, Op, Out, StorageId, Tensor, Value};
use crate::ops::shape::{
    Inferred, Output, Size, TensorMeta, infer, is_contiguous, strides_of_symbolic_view, strides_of_view,
};
use crate::ops::{Bound, Collective, Kind, OpInfo, Ops, Schema, View, views_where_strides_allow};
use fixedbitset::FixedBitSet;
use petgraph::unionfind::UnionFind;
use rustc_hash::FxHashMap;

/// A place that may show more parts than this makes their storages one.
const MAX_PARTS: usize = 16;

pub(super) struct Aliasing<'a> {
    graph: &'a Graph,
    ops: &'a Ops,
    mode: Mode,
    result: Storages,
    /// For each place its first byte in its storage: where it has one part, and its window is known. The sizes
    /// and strides of a window are the recorded ones; where it begins may not be.
    start: Vec<Option<i64>>,
    inputs: FxHashMap<StorageId, StorageIndex>,
    /// By target.
    attributes: FxHashMap<&'a str, StorageIndex>,
    /// Nodes that return tuples or mappings in a tuple.
    nested: FixedBitSet,
    /// Storages to be made one: pairs.
    merged: Vec<(StorageIndex, StorageIndex)>,
}

impl<'a> Aliasing<'a> {
    pub(super) fn new(graph: &'a Graph, ops: &'a Ops, mode: Mode) -> Aliasing<'a> {
        let mut result = Storages {
            first_place: Vec::with_capacity(graph.len() + 1),
            places: Vec::with_capacity(graph.len()),
            parts: Vec::with_capacity(graph.len()),
            storages: Vec::with_capacity(graph.len()),
            allocates: FixedBitSet::with_capacity(graph.len()),
            ..Storages::default()
        };
        let mut nested = FixedBitSet::with_capacity(graph.len());
        for id in graph.ids() {
            let out = graph.node(id).out;
            result.first_place.push(result.places.len() as u32);
            if graph.node(id).op != Op::Output {
                push_places(graph, out, &mut result.places);
            }
            if let Out::Tuple(span) = out {
                let flat = |out: &Out| !matches!(out, Out::Tuple(_) | Out::Dict(_) | Out::Key(_));
                nested.set(id.index(), !graph.outs(span).iter().all(flat));
            }
        }
        result.first_place.push(result.places.len() as u32);
        Aliasing {
            graph,
            ops,
            mode,
            start: vec![None; result.places.len()],
            result,
            inputs: FxHashMap::default(),
            attributes: FxHashMap::default(),
            nested,
            merged: Vec::new(),
        }
    }

    pub(super) fn run(mut self, edges: &Edges) -> Storages {
        // On a cycle, what is not known yet adds no part.
        TopologicalOrder::or_list(edges.data()).order().iter().for_each(|&id| self.node(id));
        self.merge();
        self.result
    }

    fn node(&mut self, id: NodeId) {
        let places = self.range(id);
        match self.graph.node(id).op {
            Op::Output => {}
            Op::Placeholder | Op::GetAttr => {
                for (i, place) in places.enumerate() {
                    self.input(id, i, place);
                }
            }
            Op::Call => {
                let info = self.ops.get(self.graph, id);
                match (&info.kind, &info.schema) {
                    (Kind::GetItem, _) => self.getitem(id),
                    (Kind::Unknown, _) => self.unknown(id),
                    (_, Some(schema)) => self.by_schema(id, info, schema),
                    (_, None) => {}
                }
                // Whatever has no part by now is fresh.
                if holds_tensors(info) {
                    for (i, place) in self.range(id).enumerate() {
                        if self.result.places[place].len == 0 && self.is_tensor(id, place) {
                            self.fresh(id, i, place, true);
                        }
                    }
                }
            }
        }
    }

    fn range(&self, id: NodeId) -> std::ops::Range<usize> {
        self.result.first_place[id.index()] as usize..self.result.first_place[id.index() + 1] as usize
    }

    /// Whether a place holds a tensor, as far as recorded. Nothing recorded means yes.
    fn is_tensor(&self, id: NodeId, place: usize) -> bool {
        let is_recorded = self.graph.node(id).out != Out::Absent || self.is_item_without_tensor(id);
        self.result.places[place].tensor.is_some() || !is_recorded
    }

    /// Whether a node takes an item of a tuple that records no tensor there, such as the absent result of an operator.
    fn is_item_without_tensor(&self, id: NodeId) -> bool {
        if !self.ops.call(self.graph, id).is_some_and(|info| info.kind == Kind::GetItem) {
            return false;
        }
        let (Some(Value::Node(source)), Some(Value::Int(index))) =
            (self.graph.arg(id, 0), self.graph.arg(id, 1))
        else {
            return false;
        };
        let Out::Tuple(span) = self.graph.node(source).out else { return false };
        let elements = self.graph.outs(span);
        let index = if index < 0 { index.saturating_add(elements.len() as i64) } else { index };
        let element = usize::try_from(index).ok().and_then(|index| elements.get(index));
        matches!(element, Some(Out::None | Out::Int(_) | Out::SymInt(_) | Out::SymBool(_) | Out::Other(_)))
    }

    fn input(&mut self, id: NodeId, i: usize, place: usize) {
        let recorded = self.tensor(place).and_then(|t| t.storage);
        let attribute = Some(self.graph.target(id)).filter(|_| self.graph.node(id).op == Op::GetAttr);
        let known = recorded.and_then(|s| self.inputs.get(&s));
        match known.or_else(|| self.attributes.get(attribute?)) {
            // Another name of an input that came before.
            Some(&storage) => {
                let bytes = self.recorded_bytes(place);
                let bytes = if bytes == ByteSet::ALL { bytes.inexact() } else { bytes };
                self.start[place] = self.tensor(place).and_then(start_of);
                self.set(place, &[Part { storage, bytes, certain: true }]);
            }
            None if self.is_tensor(id, place) => {
                let storage = self.fresh(id, i, place, true);
                self.result.storages[storage.index()].external = true;
                if let Some(recorded) = recorded {
                    self.inputs.insert(recorded, storage);
                }
                if let Some(attribute) = attribute {
                    self.attributes.insert(attribute, storage);
                }
            }
            None => {}
        }
    }

    /// Makes a storage for `place`, which shows it unless it may show others (not `alone`).
    fn fresh(&mut self, by: NodeId, i: usize, place: usize, alone: bool) -> StorageIndex {
        self.result.allocates.insert(by.index());
        let bytes = self.recorded_bytes(place);
        let recorded = self.tensor(place).and_then(|t| t.storage_bytes?.known());
        let end = Some(bytes.span().1).filter(|&end| end != i64::MAX);
        let storage = StorageIndex(self.result.storages.len() as u32);
        let bytes_of_all = recorded.or(end);
        let info = Storage { by, place: i as u32, bytes: bytes_of_all, external: false, versions: 0 };
        self.result.storages.push(info);
        if alone {
            self.start[place] = self.tensor(place).and_then(start_of);
            self.set(place, &[Part { storage, bytes, certain: true }]);
        }
        storage
    }

    fn tensor(&self, place: usize) -> Option<&'a Tensor> {
        self.result.places[place].tensor.map(|t| self.graph.tensor(t))
    }

    /// The bytes of the recorded window; everything where it is not known.
    fn recorded_bytes(&self, place: usize) -> ByteSet {
        let bytes = self.tensor(place).and_then(|tensor| {
            let (shape, stride) = (self.graph.dims(tensor.shape), self.graph.dims(tensor.stride));
            window_bytes(start_of(tensor)?, shape, stride, tensor.dtype.itemsize(), |dim| dim.known())
        });
        bytes.unwrap_or(ByteSet::ALL)
    }

    fn set(&mut self, place: usize, parts: &[Part]) {
        let first = self.result.parts.len() as u32;
        self.result.parts.extend_from_slice(parts);
        let slot = &mut self.result.places[place];
        (slot.first, slot.len) = (first, parts.len() as u32);
    }

    /// Makes `place` show what `source` shows.
    fn same(&mut self, place: usize, source: usize) {
        let Place { first, len, .. } = self.result.places[source];
        let slot = &mut self.result.places[place];
        (slot.first, slot.len, slot.base) = (first, len, Some(source as u32));
        // Recorded sizes and strides are believed where the two agree.
        let layout = |t: &Tensor| (t.shape, t.stride);
        let agree = self.tensor(place).map(layout) == self.tensor(source).map(layout);
        self.start[place] = self.start[source].filter(|_| agree);
    }

    /// Makes `place` a view of `source`. `meta` is what the shape rule says of it, given what is recorded of the
    /// source; where the source really begins is corrected for.
    fn view(&mut self, place: usize, source: usize, meta: Option<&TensorMeta>, kind: Kind) {
        let absolute = kind == Kind::View(View::AsStrided);
        let window = meta.and_then(|meta| self.window(place, source, meta, absolute));
        self.result.places[place].base = Some(source as u32);
        match (self.result.parts_of(self.result.places[source]), window) {
            (&[part], Some((start, bytes))) => {
                self.start[place] = self.agrees(place, meta).then_some(start);
                self.set(place, &[Part { bytes, ..part }]);
            }
            (parts, _) => {
                let is_all = self.shows_all(source, meta, kind);
                let within = |p: &Part| match absolute {
                    true => whole(&self.result.storages[p.storage.index()]),
                    false if is_all => p.bytes,
                    false => p.bytes.inexact(),
                };
                let parts: Vec<Part> = parts.iter().map(|p| Part { bytes: within(p), ..*p }).collect();
                self.set(place, &parts);
            }
        }
    }

    /// Whether a view shows every element of what it is a view of, whatever its sizes are.
    fn shows_all(&self, source: usize, meta: Option<&TensorMeta>, kind: Kind) -> bool {
        if let Kind::View(
            View::Sizes
            | View::Dtype
            | View::Permute
            | View::Transpose
            | View::T
            | View::Unsqueeze
            | View::Squeeze,
        ) = kind
        {
            return true;
        }
        let (Some(tensor), Some(TensorMeta { shape, stride: Some(stride), offset, .. })) =
            (self.tensor(source), meta)
        else {
            return false;
        };
        let sizes = |dims| self.graph.dims(dims).iter().map(|&dim| Size::from(dim));
        let is_known = !shape.iter().chain(stride).any(|&size| size == Size::Unknown);
        is_known
            && *offset == Size::Known(tensor.offset)
            && sizes(tensor.shape).eq(shape.iter().copied())
            && sizes(tensor.stride).eq(stride.iter().copied())
    }

    /// Whether what is recorded of a view is what the rule says, so that views of it can be built on that.
    fn agrees(&self, place: usize, meta: Option<&TensorMeta>) -> bool {
        let (Some(tensor), Some(TensorMeta { shape, stride: Some(stride), .. })) = (self.tensor(place), meta)
        else {
            return false;
        };
        let (sizes, strides) = (self.graph.dims(tensor.shape), self.graph.dims(tensor.stride));
        let same = |(&a, &b): (&Dim, &Size)| Size::from(a).same(b) == Some(true);
        sizes.len() == shape.len()
            && strides.len() == stride.len()
            && sizes.iter().zip(shape).all(same)
            && sizes
                .iter()
                .zip(strides.iter().zip(stride))
                .all(|(&size, pair)| size == Dim::Static(1) || same(pair))
    }

    /// First byte and bytes of a view.
    fn window(
        &self,
        place: usize,
        source: usize,
        meta: &TensorMeta,
        absolute: bool,
    ) -> Option<(i64, ByteSet)> {
        let base = self.tensor(source)?;
        let dtype = meta.dtype.or(self.tensor(place).map(|t| t.dtype))?;
        let start = meta.offset.known()?.checked_mul(i64::from(dtype.itemsize()))?;
        let moved = self.start[source]?.checked_sub(start_of(base)?)?;
        if moved != 0 && absolute {
            return None;
        }
        let start = start.checked_add(moved)?;
        let bytes = window_bytes(start, &meta.shape, meta.stride.as_ref()?, dtype.itemsize(), Size::known)?;
        Some((start, bytes))
    }

    /// Makes `place` show, maybe, any of what `sources` show, and a storage of its own if `or_fresh`.
    fn maybe(&mut self, id: NodeId, i: usize, place: usize, sources: &[usize], or_fresh: bool) {
        let mut parts: Vec<Part> = Vec::new();
        for &source in sources {
            for part in self.result.parts_of(self.result.places[source]) {
                let part = Part { bytes: part.bytes.inexact(), certain: false, ..*part };
                match parts.iter_mut().find(|p| p.storage == part.storage) {
                    Some(known) if known.bytes != part.bytes => known.bytes = ByteSet::ALL.inexact(),
                    Some(_) => {}
                    None => parts.push(part),
                }
            }
        }
        if or_fresh {
            let storage = self.fresh(id, i, place, false);
            parts.push(Part { storage, bytes: self.recorded_bytes(place).inexact(), certain: false });
        }
        if parts.len() > MAX_PARTS {
            let one = parts[0].storage;
            self.merged.extend(parts[1..].iter().map(|p| (one, p.storage)));
            parts.truncate(1);
            parts[0].bytes = ByteSet::ALL.inexact();
        }
        self.set(place, &parts);
    }

    fn getitem(&mut self, id: NodeId) {
        let (Some(Value::Node(source)), index) = (self.graph.arg(id, 0), self.graph.arg(id, 1)) else {
            return;
        };
        let index = match index {
            Some(Value::Int(index)) => Some(index),
            _ => None,
        };
        let from = self.range(source);
        match (self.graph.node(source).out, index) {
            (Out::Tuple(span), Some(index)) => {
                let elements = self.graph.outs(span);
                let index = if index < 0 { index.saturating_add(elements.len() as i64) } else { index };
                let Some(index) = usize::try_from(index).ok().filter(|&i| i < elements.len()) else { return };
                let (before, count): (usize, usize) = match self.nested.contains(source.index()) {
                    true => (
                        elements[..index].iter().map(|&out| count_places(self.graph, out)).sum(),
                        count_places(self.graph, elements[index]),
                    ),
                    false => (index, 1),
                };
                for (place, source) in self.range(id).zip(from.skip(before).take(count)) {
                    self.same(place, source);
                }
            }
            // Python indexing of a tensor: a view for a number, maybe a copy for anything else.
            (Out::Tensor(_), index) => {
                let Some(place) = self.range(id).next() else { return };
                match index {
                    Some(_) => self.view(place, from.start, None, Kind::GetItem),
                    None => self.maybe(id, 0, place, &[from.start], true),
                }
            }
            // What the source returns is not recorded, or is a mapping: any of it.
            _ => {
                let sources: Vec<usize> = from.collect();
                for (i, place) in self.range(id).enumerate() {
                    if let [source] = sources[..] {
                        self.view(place, source, None, Kind::GetItem);
                    } else {
                        self.maybe(id, i, place, &sources, false);
                    }
                }
            }
        }
    }

    /// An operator of which nothing is known: its results may be anything it takes, whole, or fresh.
    fn unknown(&mut self, id: NodeId) {
        let mut sources = Vec::new();
        self.graph.for_each_input(id, &mut |input| sources.extend(self.range(input)));
        for (i, place) in self.range(id).enumerate() {
            if self.is_tensor(id, place) {
                self.maybe(id, i, place, &sources, true);
                let Place { first, len, .. } = self.result.places[place];
                let parts = first as usize..(first + len) as usize;
                for part in &mut self.result.parts[parts] {
                    let storage = self.result.storages[part.storage.index()];
                    if storage.by != id {
                        part.bytes = whole(&storage);
                    }
                }
            }
        }
    }

    fn by_schema(&mut self, id: NodeId, info: &OpInfo, schema: &Schema) {
        let declared = schema.returns.iter().any(|r| r.alias.is_some());
        let quiet = self.mode == Mode::Physical && is_quiet(info, schema);
        if !declared && !quiet {
            return;
        }
        let inferred = infer_if_view(self.graph, self.ops, id, info);
        let meta = |i: usize| match &inferred {
            Some(Inferred::One(Output::Tensor(meta))) if i == 0 => Some(meta),
            Some(Inferred::Many(outputs)) => match outputs.get(i) {
                Some(Output::Tensor(meta)) => Some(meta),
                _ => None,
            },
            _ => None,
        };
        if quiet {
            return self.quiet(id, info, schema, &meta);
        }
        for (r, result) in schema.returns.iter().enumerate() {
            let Some(set) = result.alias else { continue };
            let of_set = |p: &usize| schema.params[*p].alias == Some(set);
            let params = || (0..schema.params.len()).filter(of_set);
            let written = result.write || params().any(|p| schema.params[p].write);
            let (skipped, count) = self.places_of_return(id, schema, r);
            let mut sources = Vec::with_capacity(1);
            for (element, (i, place)) in self.range(id).enumerate().skip(skipped).take(count).enumerate() {
                let argument = |p| argument(self.graph, id, schema, p);
                sources.clear();
                sources.extend(params().filter_map(|p| self.source(argument(p)?, element)));
                match sources[..] {
                    [] => {}
                    [source] if written => self.same(place, source),
                    [source] => match self.copies(id, schema, place, source) {
                        Some(true) => {
                            self.fresh(id, i, place, true);
                        }
                        Some(false) if hands_back(schema) => self.same(place, source),
                        Some(false) => self.view(place, source, meta(i), info.kind),
                        None => self.maybe(id, i, place, &[source], true),
                    },
                    _ => self.maybe(id, i, place, &sources, false),
                }
            }
        }
    }

    /// Whether what the schema calls a view of `source` is a copy this time; `None` where that is not known.
    fn copies(&self, id: NodeId, schema: &Schema, place: usize, source: usize) -> Option<bool> {
        let named = |name: &str| argument(self.graph, id, schema, schema.param(name)?);
        let sizes = |dims| self.graph.dims(dims).iter().map(|&d| Size::from(d)).collect::<Vec<Size>>();
        let layout = |t: &Tensor| (sizes(t.shape), sizes(t.stride));
        let numbers = |t: &Tensor| self.graph.sizes(t.shape).zip(self.graph.sizes(t.stride));
        let format = || Bound::new(self.graph, id, schema).ok()?.memory_format();
        match &schema.name[..] {
            // Itself where it is contiguous already; of `ravel` a view of that.
            "contiguous" | "ravel" => {
                let (shape, stride) = layout(self.tensor(source)?);
                match format() {
                    None | Some("contiguous_format") => is_contiguous(&shape, &stride).map(|is| !is),
                    Some(format) => {
                        let (sizes, strides) = numbers(self.tensor(source)?)?;
                        lies_in(format, &sizes, &strides).map(|is| !is)
                    }
                }
            }
            // A view where strides allow it.
            _ if views_where_strides_allow(schema) => {
                let (shape, stride) = layout(self.tensor(source)?);
                let (new, _) = layout(self.tensor(place)?);
                match strides_of_view(&shape, &stride, &new) {
                    Some(strides) => Some(strides.is_none()),
                    None => self.is_symbolic_view(self.tensor(source)?, self.tensor(place)?).then_some(false),
                }
            }
            // Itself where nothing changes.
            "to" | "type_as" => {
                let (before, after) = (self.tensor(source)?, self.tensor(place)?);
                let changes = (before.dtype, before.device) != (after.dtype, after.device);
                if changes || named("copy") == Some(Value::Bool(true)) {
                    return Some(true);
                }
                let Some(format) = format() else { return Some(false) };
                let (sizes, strides) = numbers(before)?;
                Some(format_of(&sizes, &strides) != format)
            }
            // Itself unless it shows conjugates, which is not recorded.
            "resolve_conj" | "resolve_neg" => {
                let real = self.tensor(source)?.dtype.class() != DtypeClass::Complex;
                real.then_some(false)
            }
            _ => Some(false),
        }
    }

    /// Whether the sizes of one tensor certainly show the elements of another one as they lie.
    fn is_symbolic_view(&self, of: &Tensor, new: &Tensor) -> bool {
        let [shape, strides, new] = [of.shape, of.stride, new.shape].map(|dims| self.graph.spelled(dims));
        let strides: Vec<String> = strides.iter().map(|stride| spelled_stride(stride)).collect();
        strides_of_symbolic_view(&shape, &strides, &new).is_some()
    }

    /// The places of result `r`: how many of the node's come before them, and how many they are.
    fn places_of_return(&self, id: NodeId, schema: &Schema, r: usize) -> (usize, usize) {
        if schema.returns.len() == 1 {
            let list = schema.returns[0].ty.contains('[');
            return (0, if list { usize::MAX } else { 1 });
        }
        let Out::Tuple(span) = self.graph.node(id).out else { return (0, 0) };
        let parts = self.graph.outs(span);
        let Some(part) = parts.get(r) else { return (0, 0) };
        let before = parts[..r].iter().map(|&out| count_places(self.graph, out)).sum();
        (before, count_places(self.graph, *part))
    }

    /// The place that element `element` of a result shares storage with, given the argument.
    fn source(&self, argument: Value, element: usize) -> Option<usize> {
        match argument {
            Value::Node(node) => {
                let range = self.range(node);
                // A list passed whole is taken element by element; one tensor is viewed by every element.
                if range.len() == 1 { Some(range.start) } else { range.clone().nth(element) }
            }
            Value::List(span) => match self.graph.values(span).get(element)? {
                Value::Node(node) => self.range(*node).next(),
                _ => None,
            },
            _ => None,
        }
    }

    /// What happens at run time where the schema keeps quiet.
    fn quiet<'m>(
        &mut self,
        id: NodeId,
        info: &OpInfo,
        schema: &Schema,
        meta: &impl Fn(usize) -> Option<&'m TensorMeta>,
    ) {
        for (element, place) in self.range(id).enumerate() {
            let source = |this: &Self, param: usize, element: usize| {
                this.source(argument(this.graph, id, schema, param)?, element)
            };
            match info.kind {
                Kind::View(_) => {
                    if let Some(source) = source(self, 0, element) {
                        self.view(place, source, meta(element), info.kind);
                    }
                }
                Kind::Collective(Collective::PointToPoint) => {
                    let tensors = schema.param("tensors").unwrap_or(usize::MAX);
                    match source(self, tensors, element) {
                        Some(source) if receives(self.graph, id, schema, element) => self.same(place, source),
                        _ => {}
                    }
                }
                // A list hands back its elements one by one.
                _ if schema.returns.len() == 1 => {
                    if let [(0, param)] = info.undeclared_aliases()
                        && let Some(source) = source(self, *param, element)
                    {
                        self.same(place, source);
                    }
                }
                // Windows, or the whole.
                _ => {
                    let param = info.undeclared_aliases().iter().find(|(r, _)| *r == element);
                    if let Some(source) = param.and_then(|&(_, param)| source(self, param, 0)) {
                        self.view(place, source, meta(element), info.kind);
                    }
                }
            }
        }
    }

    /// Makes storages one that were too many to keep apart.
    fn merge(&mut self) {
        if self.merged.is_empty() {
            return;
        }
        let n = self.result.storages.len();
        let mut joined = UnionFind::<u32>::new(n);
        for &(a, b) in &self.merged {
            joined.union(a.0, b.0);
        }
        let roots: Vec<usize> = (0..n as u32).map(|i| joined.find(i) as usize).collect();
        // The first storage of each set stands for all of them.
        let (mut first, mut members) = (vec![u32::MAX; n], vec![0u32; n]);
        let mut kept: Vec<Storage> = Vec::new();
        for (storage, &root) in self.result.storages.iter().zip(&roots) {
            members[root] += 1;
            if first[root] == u32::MAX {
                first[root] = kept.len() as u32;
                kept.push(*storage);
            } else {
                let of_all = &mut kept[first[root] as usize];
                of_all.bytes = None;
                of_all.external |= storage.external;
            }
        }
        for part in &mut self.result.parts {
            let root = roots[part.storage.index()];
            part.storage = StorageIndex(first[root]);
            if members[root] > 1 {
                part.certain = false;
                part.bytes = ByteSet::ALL.inexact();
            }
        }
        self.result.storages = kept;
        // Parts that have become the same. Places may share them: then each finds the same ones first.
        for i in 0..self.result.places.len() {
            let Place { first, len, .. } = self.result.places[i];
            let parts = &mut self.result.parts[first as usize..(first + len) as usize];
            let mut distinct = 0;
            for at in 0..parts.len() {
                if !parts[..distinct].contains(&parts[at]) {
                    parts.swap(distinct, at);
                    distinct += 1;
                }
            }
            self.result.places[i].len = distinct as u32;
        }
    }
}

/// Any bytes of a storage.
fn whole(storage: &Storage) -> ByteSet {
    storage.bytes.map_or(ByteSet::ALL, |end| ByteSet::range(0, end)).inexact()
}

/// What the shape rule says of a node whose windows matter.
fn infer_if_view(graph: &Graph, ops: &Ops, id: NodeId, info: &OpInfo) -> Option<Inferred> {
    let wanted = matches!(info.kind, Kind::View(_)) || info.undeclared_aliases().len() > 1;
    if wanted { infer(graph, ops, id).ok() } else { None }
}

/// The first byte of a recorded window.
fn start_of(tensor: &Tensor) -> Option<i64> {
    tensor.offset.checked_mul(i64::from(tensor.dtype.itemsize()))
}

/// The bytes of a window, if its sizes and strides are known.
fn window_bytes<T: Copy>(
    start: i64,
    shape: &[T],
    stride: &[T],
    itemsize: u32,
    known: impl Fn(T) -> Option<i64>,
) -> Option<ByteSet> {
    const RANK: usize = 16;
    let (mut sizes, mut strides) = ([0i64; RANK], [0i64; RANK]);
    let rank = shape.len();
    if rank != stride.len() {
        return None;
    }
    if rank > RANK {
        return Some(ByteSet::ALL.inexact());
    }
    for (i, (&size, &stride)) in shape.iter().zip(stride).enumerate() {
        (sizes[i], strides[i]) = (known(size)?, known(stride)?);
    }
    Some(ByteSet::of_window(start, &sizes[..rank], &strides[..rank], i64::from(itemsize)))
}

fn push_places(graph: &Graph, out: Out, places: &mut Vec<Place>) {
    match out {
        Out::Tuple(span) | Out::Dict(span) => {
            graph.outs(span).iter().for_each(|&part| push_places(graph, part, places));
        }
        Out::Key(_) => {}
        Out::Tensor(tensor) => places.push(Place { tensor: Some(tensor), ..Place::default() }),
        _ => places.push(Place::default()),
    }
}

fn count_places(graph: &Graph, out: Out) -> usize {
    match out {
        Out::Tuple(span) | Out::Dict(span) => {
            graph.outs(span).iter().map(|&part| count_places(graph, part)).sum()
        }
        Out::Key(_) => 0,
        _ => 1,
    }
}
