//! Which parts of which storages each place shows: the builder behind [`Storages`].

use super::bytes::ByteSet;
use super::edges::Edges;
use super::storages::{Mode, Part, Place, Storage, StorageIndex, Storages};
use super::topological::TopologicalOrder;
use super::window::Window;
use crate::graph::{Graph, NodeId, Op, Out, StorageId, TensorId, Value};
use crate::ops::{Bound, Collective, Kind, Move, OpInfo, Ops, Schema, View};
use petgraph::unionfind::UnionFind;
use rustc_hash::FxHashMap;

/// A place that may show more parts than this makes their storages one.
const MAX_PARTS: usize = 16;

/// Where the window of a place comes from. Known only for places with one part.
#[derive(Clone, Copy, Default)]
enum WindowOf {
    #[default]
    Unknown,
    Recorded(TensorId),
    Derived(u32),
}

pub(super) struct Aliasing<'a> {
    graph: &'a Graph,
    ops: &'a Ops,
    mode: Mode,
    result: Storages,
    windows: Vec<WindowOf>,
    derived: Vec<Window>,
    inputs: FxHashMap<StorageId, StorageIndex>,
    /// Storages to be made one: pairs.
    merged: Vec<(StorageIndex, StorageIndex)>,
}

impl<'a> Aliasing<'a> {
    pub(super) fn new(graph: &'a Graph, ops: &'a Ops, mode: Mode) -> Aliasing<'a> {
        let mut result = Storages { first_place: Vec::with_capacity(graph.len() + 1), ..Storages::default() };
        for id in graph.ids() {
            result.first_place.push(result.places.len() as u32);
            if graph.node(id).op != Op::Output {
                push_places(graph, graph.node(id).out, &mut result.places);
            }
        }
        result.first_place.push(result.places.len() as u32);
        Aliasing {
            graph,
            ops,
            mode,
            windows: vec![WindowOf::Unknown; result.places.len()],
            result,
            derived: Vec::new(),
            inputs: FxHashMap::default(),
            merged: Vec::new(),
        }
    }

    pub(super) fn run(mut self, edges: &Edges) -> Storages {
        match TopologicalOrder::new(edges.data()) {
            Ok(order) => order.order().iter().for_each(|&id| self.node(id)),
            // A cycle is a fault of the graph; what is not known yet then adds no part.
            Err(_) => self.graph.ids().for_each(|id| self.node(id)),
        }
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
                            self.fresh(id, i, place, true, false);
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
        self.result.places[place].tensor.is_some() || self.graph.node(id).out == Out::Absent
    }

    fn input(&mut self, id: NodeId, i: usize, place: usize) {
        let recorded = self.result.places[place].tensor.map(|t| self.graph.tensor(t));
        match recorded.and_then(|t| t.storage).and_then(|s| self.inputs.get(&s)) {
            // Another name of an input that came before.
            Some(&storage) => {
                let bytes = self.recorded_bytes(place);
                self.windows[place] = self.recorded_window(place);
                self.set(place, &[Part { storage, bytes, certain: true }]);
            }
            None if self.is_tensor(id, place) => {
                let storage = self.fresh(id, i, place, true, true);
                if let Some(recorded) = recorded.and_then(|t| t.storage) {
                    self.inputs.insert(recorded, storage);
                }
            }
            None => {}
        }
    }

    /// Makes `place` show a storage of its own; beside other parts if not `certain`.
    fn fresh(&mut self, by: NodeId, i: usize, place: usize, certain: bool, external: bool) -> StorageIndex {
        let bytes = self.recorded_bytes(place);
        let recorded = self.result.places[place].tensor.and_then(|t| self.graph.tensor(t).storage_bytes);
        let end = (bytes != ByteSet::ALL).then(|| bytes.span().1);
        let storage = StorageIndex(self.result.storages.len() as u32);
        let size = recorded.and_then(|b| b.known()).or(end);
        self.result.storages.push(Storage { by, place: i as u32, bytes: size, external, versions: 0 });
        if certain {
            self.windows[place] = self.recorded_window(place);
            self.set(place, &[Part { storage, bytes, certain }]);
        }
        storage
    }

    fn recorded_window(&self, place: usize) -> WindowOf {
        self.result.places[place].tensor.map_or(WindowOf::Unknown, WindowOf::Recorded)
    }

    /// The bytes of the recorded window; everything where it is not known.
    fn recorded_bytes(&self, place: usize) -> ByteSet {
        let tensor = self.result.places[place].tensor.map(|t| self.graph.tensor(t));
        let Some(tensor) = tensor else { return ByteSet::ALL };
        let (mut sizes, mut strides) = ([0i64; 8], [0i64; 8]);
        let (shape, stride) = (self.graph.dims(tensor.shape), self.graph.dims(tensor.stride));
        if shape.len() != stride.len() || shape.len() > sizes.len() {
            return ByteSet::ALL;
        }
        for (i, (size, stride)) in shape.iter().zip(stride).enumerate() {
            let (Some(size), Some(stride)) = (size.known(), stride.known()) else { return ByteSet::ALL };
            (sizes[i], strides[i]) = (size, stride);
        }
        let n = shape.len();
        ByteSet::of_window(tensor.offset, &sizes[..n], &strides[..n], i64::from(tensor.dtype.itemsize()))
    }

    fn window(&self, place: usize) -> Option<Window> {
        match self.windows[place] {
            WindowOf::Unknown => None,
            WindowOf::Recorded(tensor) => Window::recorded(self.graph, self.graph.tensor(tensor)),
            WindowOf::Derived(i) => Some(self.derived[i as usize].clone()),
        }
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
        (slot.first, slot.len) = (first, len);
        self.windows[place] = self.windows[source];
    }

    /// Makes `place` a view of `source`, with its window if that is known.
    fn view(&mut self, place: usize, source: usize, window: Option<Window>, stays_inside: bool) {
        let window = window.or_else(|| self.matching_record(place, source));
        match (self.result.parts_of(self.result.places[source]), window) {
            (&[part], Some(window)) => {
                let bytes = ByteSet::of_window(window.offset, &window.sizes, &window.strides, window.itemsize);
                self.windows[place] = WindowOf::Derived(self.derived.len() as u32);
                self.derived.push(window);
                self.set(place, &[Part { bytes, ..part }]);
            }
            (parts, _) => {
                let within = |bytes: ByteSet| if stays_inside { bytes } else { ByteSet::ALL }.inexact();
                let parts: Vec<Part> = parts.iter().map(|p| Part { bytes: within(p.bytes), ..*p }).collect();
                self.set(place, &parts);
            }
        }
    }

    /// The recorded window of a view, where the file saw it on the storage of its base and at the place that we
    /// found for the base.
    fn matching_record(&self, place: usize, source: usize) -> Option<Window> {
        let (result, base) = (self.result.places[place].tensor?, self.result.places[source].tensor?);
        let (result, base) = (self.graph.tensor(result), self.graph.tensor(base));
        let known = self.window(source).is_some_and(|w| w.offset == base.offset);
        (known && result.storage.is_some() && result.storage == base.storage)
            .then(|| Window::recorded(self.graph, result))?
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
            let storage = self.fresh(id, i, place, false, false);
            parts.push(Part { storage, bytes: ByteSet::ALL.inexact(), certain: false });
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
        let (Some(Value::Node(source)), index) = (self.graph.arg(id, 0), self.graph.arg(id, 1)) else { return };
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
                let before: usize = elements[..index].iter().map(|&out| count_places(self.graph, out)).sum();
                let count = count_places(self.graph, elements[index]);
                for (place, source) in self.range(id).zip(from.skip(before).take(count)) {
                    self.same(place, source);
                }
            }
            // Python indexing of a tensor: a view for a number, maybe a copy for anything else.
            (Out::Tensor(_), index) => {
                let Some(place) = self.range(id).next() else { return };
                match index.and_then(|index| self.window(from.start)?.index(index)) {
                    Some(window) => self.view(place, from.start, Some(window), true),
                    None if index.is_some() => self.view(place, from.start, None, true),
                    None => self.maybe(id, 0, place, &[from.start], true),
                }
            }
            // What the source returns is not recorded, or is a mapping: any of it.
            _ => {
                let sources: Vec<usize> = from.collect();
                for (i, place) in self.range(id).enumerate() {
                    if let [source] = sources[..] {
                        self.view(place, source, None, true);
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
                for part in &mut self.result.parts[first as usize..(first + len) as usize] {
                    part.bytes = ByteSet::ALL.inexact();
                }
            }
        }
    }

    fn by_schema(&mut self, id: NodeId, info: &OpInfo, schema: &Schema) {
        let quiet = self.mode == Mode::Physical && is_quiet(info, schema);
        if !quiet && schema.returns.iter().all(|r| r.alias.is_none()) {
            return;
        }
        // Arguments that do not fit are a fault of the graph; assume the least.
        let Ok(args) = Bound::new(self.graph, id, schema) else { return };
        if quiet {
            return self.quiet(id, info, schema, &args);
        }
        let mut pieces = match info.kind {
            Kind::View(view @ (View::Split | View::SplitWithSizes | View::Chunk | View::Unbind)) => {
                let base = self.source(&args, 0, 0).and_then(|source| self.window(source));
                base.and_then(|base| base.pieces(view, &args)).unwrap_or_default()
            }
            _ => Vec::new(),
        };
        pieces.reverse();
        for (r, result) in schema.returns.iter().enumerate() {
            let Some(set) = result.alias else { continue };
            let params: Vec<usize> =
                schema.params.iter().enumerate().filter(|(_, p)| p.alias == Some(set)).map(|(i, _)| i).collect();
            let places = self.places_of_return(id, schema, r);
            let written = result.write || params.iter().any(|&p| schema.params[p].write);
            for (element, (i, place)) in places.into_iter().enumerate() {
                let sources: Vec<usize> =
                    params.iter().filter_map(|&p| self.source(&args, p, element)).collect();
                let piece = pieces.pop();
                match sources[..] {
                    [] => {}
                    [source] if written => self.same(place, source),
                    [source] if piece.is_some() => self.view(place, source, piece, true),
                    [source] => self.schema_view(id, info, schema, &args, (i, place), source),
                    _ => self.maybe(id, i, place, &sources, false),
                }
            }
        }
    }

    /// The places of result `r`: (number within the node, place).
    fn places_of_return(&self, id: NodeId, schema: &Schema, r: usize) -> Vec<(usize, usize)> {
        let places = self.range(id).enumerate();
        if schema.returns.len() == 1 {
            let list = schema.returns[0].ty.contains('[');
            return places.take(if list { usize::MAX } else { 1 }).collect();
        }
        let Out::Tuple(span) = self.graph.node(id).out else { return Vec::new() };
        let parts = self.graph.outs(span);
        let Some(part) = parts.get(r) else { return Vec::new() };
        let before = parts[..r].iter().map(|&out| count_places(self.graph, out)).sum();
        places.skip(before).take(count_places(self.graph, *part)).collect()
    }

    /// The place that element `element` of a result shares storage with, given parameter `param`.
    fn source(&self, args: &Bound, param: usize, element: usize) -> Option<usize> {
        match args.given(param)? {
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

    /// A result that the schema calls a view of `source`.
    fn schema_view(
        &mut self,
        id: NodeId,
        info: &OpInfo,
        schema: &Schema,
        args: &Bound,
        (i, place): (usize, usize),
        source: usize,
    ) {
        let base = self.window(source);
        let result = self.result.places[place].tensor.map(|t| self.graph.tensor(t));
        match (info.kind, &schema.name[..]) {
            // A view where strides allow it, else a copy.
            (Kind::View(View::Sizes), "reshape") | (_, "flatten" | "reshape_as") => {
                let sizes = result.and_then(|t| self.graph.sizes(t.shape));
                match (&base, sizes) {
                    (Some(base), Some(_)) => match base.view(View::Sizes, args, self.graph, result) {
                        Some(window) => self.view(place, source, Some(window), true),
                        None => {
                            self.fresh(id, i, place, true, false);
                        }
                    },
                    _ => self.maybe(id, i, place, &[source], true),
                }
            }
            // Itself where it is contiguous already, else a copy.
            (_, "contiguous") => {
                let plain = matches!(args.text("memory_format"), None | Some("contiguous_format"));
                match base.filter(|_| plain).map(|base| base.is_contiguous()) {
                    Some(true) => self.same(place, source),
                    Some(false) => {
                        self.fresh(id, i, place, true, false);
                    }
                    None => self.maybe(id, i, place, &[source], true),
                }
            }
            // Itself where nothing changes.
            (_, "to" | "type_as" | "resolve_conj" | "resolve_neg") => {
                let before = self.result.places[source].tensor.map(|t| self.graph.tensor(t));
                let changes = before.zip(result).map(|(a, b)| (a.dtype, a.device) != (b.dtype, b.device));
                if changes == Some(true) || args.bool("copy") == Some(true) {
                    self.fresh(id, i, place, true, false);
                } else {
                    self.maybe(id, i, place, &[source], true);
                }
            }
            (Kind::View(view), _) => {
                let window = base.and_then(|base| base.view(view, args, self.graph, result));
                self.view(place, source, window, view != View::AsStrided);
            }
            _ => self.view(place, source, None, true),
        }
    }

    /// What happens at run time where the schema keeps quiet.
    fn quiet(&mut self, id: NodeId, info: &OpInfo, schema: &Schema, args: &Bound) {
        for (element, place) in self.range(id).enumerate() {
            match info.kind {
                Kind::Wait | Kind::Collective(Collective::Recv) => {
                    if let Some(source) = self.source(args, 0, element) {
                        self.same(place, source);
                    }
                }
                Kind::Collective(Collective::PointToPoint) => {
                    let tensors = schema.param("tensors").unwrap_or(usize::MAX);
                    if let Some(source) = self.source(args, tensors, element)
                        && receives(self.graph, args, element)
                    {
                        self.same(place, source);
                    }
                }
                Kind::View(view) => {
                    if let Some(source) = self.source(args, 0, element) {
                        let result = self.result.places[place].tensor.map(|t| self.graph.tensor(t));
                        let window = self.window(source).and_then(|w| w.view(view, args, self.graph, result));
                        self.view(place, source, window, true);
                    }
                }
                Kind::Move(Move::AllGatherCopyIn) => {
                    let Some(source) = args.node("all_gather_output").and_then(|n| self.range(n).next()) else {
                        continue;
                    };
                    match element {
                        0 => self.view(place, source, self.slot(args, source), true),
                        _ => self.same(place, source),
                    }
                }
                _ => {}
            }
        }
    }

    /// The slot of this rank in the buffer of `all_gather_copy_in`.
    fn slot(&self, args: &Bound, buffer: usize) -> Option<Window> {
        let (length, rank) = (args.int("all_gather_input_numel")?, args.int("rank")?);
        self.window(buffer)?.narrow(0, rank.checked_mul(length)?, length)
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
    }
}

/// Whether the run time shares storage where the schema does not say so.
fn is_quiet(info: &OpInfo, schema: &Schema) -> bool {
    match info.kind {
        Kind::Wait | Kind::Move(Move::AllGatherCopyIn) => true,
        Kind::Collective(Collective::Recv | Collective::PointToPoint) => true,
        Kind::View(View::Sizes) => schema.name == "_unsafe_view",
        _ => false,
    }
}

/// Whether element `element` of a `batch_p2p_ops` receives.
pub(super) fn receives(graph: &Graph, args: &Bound, element: usize) -> bool {
    match args.list("op_list").and_then(|ops| ops.get(element)) {
        Some(Value::Str(op)) => graph.text(*op) == "irecv",
        _ => false,
    }
}

/// Whether results of this operator can be tensors.
fn holds_tensors(info: &OpInfo) -> bool {
    let number = matches!(
        info.kind,
        Kind::Number(_) | Kind::SymSize | Kind::SymNumel | Kind::SymStride | Kind::Item | Kind::AssertScalar
    );
    !number && info.schema.as_ref().is_none_or(|s| s.returns.iter().any(|r| r.ty.starts_with("Tensor")))
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
