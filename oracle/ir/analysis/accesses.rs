//! Who reads and writes which part of which storage, in list order: the second half of
//! [`Storages`](super::storages::Storages).
//!
//! A view or a `getitem` touches no data. Whatever only asks for sizes (`empty_like`, `sym_size`) reads nothing.
//! An argument that is only overwritten (`copy_`, `out=`, fills) is written, not read. An unknown operator reads
//! all it takes and maybe writes it. The output reads what it returns.
//!
//! A collective reads its inputs until its wait, and its result is there only then: the wait *releases* the
//! former and *lands* the latter. Of several waits for one value the first in the list does so; the others do
//! nothing. A wait for another launch into the same memory does so where a launch has no wait of its own: else the two
//! may come in either order. An input that is waited for came in flight, and lands too.

use super::aliasing::Aliasing;
use super::bytes::ByteSet;
use super::collectives::Collectives;
use super::edges::Edges;
use super::sharing::{argument, receives};
use super::storages::{Access, Mode, Part, Storages, Touch};
use crate::graph::{Graph, NodeId, Op, Value};
use crate::ops::{Collective, Fill, Kind, Move, OpInfo, Ops, Param, Schema};

impl Storages {
    /// Derives the storages of `graph`. Linear in its size, unknown operators on long chains included: a place
    /// that may show more than 16 storages makes them one.
    pub fn new(graph: &Graph, ops: &Ops, edges: &Edges, collectives: &Collectives, mode: Mode) -> Storages {
        let mut storages = Aliasing::new(graph, ops, mode).run(edges);
        collect(graph, ops, collectives, mode, &mut storages);
        storages
    }
}

fn collect(graph: &Graph, ops: &Ops, collectives: &Collectives, mode: Mode, storages: &mut Storages) {
    let mut collector = Collector {
        graph,
        storages,
        mode,
        accesses: Vec::with_capacity(3 * graph.len()),
        kept: Vec::new(),
        begin: 0,
    };
    let endings = endings(graph, collectives);
    let mut next_ending = endings.iter().peekable();
    let mut of_node = Vec::with_capacity(graph.len() + 1);
    for id in graph.ids() {
        of_node.push(collector.accesses.len() as u32);
        collector.begin = collector.accesses.len();
        match graph.node(id).op {
            Op::Output => {
                graph.for_each_input(id, &mut |input| collector.touch(id, input, Touch::Read, true))
            }
            Op::Placeholder | Op::GetAttr => {}
            Op::Call => {
                let info = ops.get(graph, id);
                if info.kind != Kind::Wait {
                    collector.call(id, info);
                }
                while let Some(ending) = next_ending.next_if(|ending| ending.wait == id) {
                    collector.end(ending, collectives);
                }
                if mode == Mode::Physical && collectives.idle_waits.binary_search(&id).is_ok() {
                    collector.land_inputs(id);
                }
            }
        }
    }
    of_node.push(collector.accesses.len() as u32);
    let (accesses, kept) = (collector.accesses, collector.kept);
    storages.of_node = of_node;
    storages.kept = kept;
    number(accesses, storages);
}

struct Collector<'a> {
    graph: &'a Graph,
    storages: &'a Storages,
    mode: Mode,
    accesses: Vec<Access>,
    kept: Vec<Access>,
    /// Where the accesses of the current node begin.
    begin: usize,
}

impl Collector<'_> {
    fn call(&mut self, id: NodeId, info: &OpInfo) {
        if reads_sizes_only(info.kind) {
            return;
        }
        if info.kind == Kind::Resize {
            return self.resize(id);
        }
        if info.kind == Kind::Unknown {
            let graph = self.graph;
            graph.for_each_input(id, &mut |input| self.touch(id, input, Touch::Read, true));
            graph.for_each_input(id, &mut |input| self.touch(id, input, Touch::Write, false));
            return;
        }
        let graph = self.graph;
        let Some(schema) = &info.schema else {
            return graph.for_each_input(id, &mut |input| self.touch(id, input, Touch::Read, true));
        };
        // A view reads nothing, nor does what hands its argument back; a copy that calls itself a view does.
        let shows = schema.returns.iter().all(|result| result.alias.is_some() && !result.write);
        let is_view = matches!(info.kind, Kind::View(_)) || shows && !schema.returns.is_empty();
        if is_view && !self.storages.allocates.contains(id.index()) {
            return;
        }
        for_each_argument(graph, id, schema, &mut |param, value| {
            let unread = param.is_some_and(|(i, param)| {
                overwrites(info.kind, param) || (i == 0 && info.kind.only_shape_of_first(schema))
            });
            if !unread {
                self.argument(id, value, Touch::Read);
            }
        });
        if schema.params.iter().any(|param| param.write) {
            for_each_argument(graph, id, schema, &mut |param, value| {
                if param.is_some_and(|(_, param)| param.write) {
                    self.argument(id, value, Touch::Write);
                }
            });
        }
        for &param in info.updated(graph, id) {
            if let Some(value) = argument(graph, id, schema, param) {
                self.argument(id, value, Touch::Write);
            }
        }
        if self.mode == Mode::Physical && !info.undeclared_writes().is_empty() {
            self.quiet(id, info.kind, schema);
        }
    }

    /// Memory that goes, or comes without a value, does so as a whole, whatever the argument shows of it.
    fn resize(&mut self, id: NodeId) {
        let Some(Value::Node(tensor)) = self.graph.argument(id, 0, "variable") else { return };
        for place in 0..self.storages.places(tensor) {
            let shown = self.storages.parts(tensor, place).iter();
            let whole: Vec<Part> = shown.map(|part| Part { bytes: ByteSet::ALL, ..*part }).collect();
            self.parts(id, &whole, Touch::Write, true);
        }
    }

    /// Writes that the schema does not tell of.
    fn quiet(&mut self, id: NodeId, kind: Kind, schema: &Schema) {
        let named = |name: &str| argument(self.graph, id, schema, schema.param(name)?);
        match kind {
            Kind::Collective(Collective::Recv) => {
                let tensor = argument(self.graph, id, schema, 0);
                tensor.into_iter().for_each(|value| self.argument(id, value, Touch::Write));
            }
            Kind::Collective(Collective::PointToPoint) => {
                let Some(Value::List(tensors)) = named("tensors") else { return };
                for (element, &value) in self.graph.values(tensors).iter().enumerate() {
                    if receives(self.graph, id, schema, element) {
                        self.argument(id, value, Touch::Write);
                    }
                }
            }
            Kind::Move(Move::AllGatherCopyIn) => {
                let parts = self.storages.parts(id, 0).to_vec();
                self.parts(id, &parts, Touch::Write, true);
            }
            _ => {}
        }
    }

    fn argument(&mut self, id: NodeId, value: Value, touch: Touch) {
        match value {
            Value::Node(node) => self.touch(id, node, touch, true),
            Value::List(span) => {
                for &value in self.graph.values(span) {
                    self.argument(id, value, touch);
                }
            }
            _ => {}
        }
    }

    fn touch(&mut self, id: NodeId, value: NodeId, touch: Touch, certain: bool) {
        for place in 0..self.storages.places(value) {
            self.parts(id, self.storages.parts(value, place), touch, certain);
        }
    }

    fn parts(&mut self, id: NodeId, parts: &[Part], touch: Touch, certain: bool) {
        for &part in parts {
            let part = Part { certain: part.certain && certain, ..part };
            let access = Access { node: id, touch, part, version: 0 };
            // The same argument twice is one access; looking back a little finds nearly all of these.
            let recent = self.accesses.len().saturating_sub(8).max(self.begin);
            if !self.accesses[recent..].contains(&access) {
                self.accesses.push(access);
            }
        }
    }

    /// A wait for what the graph was given.
    fn land_inputs(&mut self, wait: NodeId) {
        let graph = self.graph;
        graph.for_each_input(wait, &mut |value| {
            let lands = |part: &Part| {
                let has_landed = |access: &Access| access.touch == Touch::Land && access.part == *part;
                self.storages.storage(part.storage).external && !self.accesses.iter().any(has_landed)
            };
            let given: Vec<Part> = self.storages.all_parts(value).copied().filter(lands).collect();
            self.parts(wait, &given, Touch::Land, true);
        });
    }

    fn end(&mut self, ending: &Ending, collectives: &Collectives) {
        let call = &collectives.calls[ending.launch];
        let first = self.accesses.len();
        match ending.piece.filter(|&piece| call.coalesced && piece < call.inputs.len()) {
            Some(piece) => self.touch(ending.wait, call.inputs[piece], Touch::Release, true),
            None => {
                for &input in &call.inputs {
                    self.touch(ending.wait, input, Touch::Release, true);
                }
            }
        }
        if call.sends_a_copy() {
            self.kept.extend(self.accesses.drain(first..));
        }
        match self.mode {
            Mode::Physical => self.touch(ending.wait, ending.value, Touch::Land, true),
            // The wait's result is a copy of what it waits for.
            Mode::Logical => self.touch(ending.wait, ending.value, Touch::Read, true),
        }
    }
}

/// A wait that makes a value usable: the first one for it.
struct Ending {
    wait: NodeId,
    launch: usize,
    /// What it waits for: the launch, or a `getitem` of it.
    value: NodeId,
    /// The number of that `getitem`.
    piece: Option<usize>,
}

/// The ends of flights, in list order of the waits.
fn endings(graph: &Graph, collectives: &Collectives) -> Vec<Ending> {
    let mut endings = Vec::new();
    for launch in 0..collectives.calls.len() {
        let mut ended: Vec<NodeId> = Vec::new();
        let mut ended_pieces = rustc_hash::FxHashSet::default();
        for wait in collectives.own_waits(graph, launch) {
            graph.for_each_input(wait, &mut |mut value| {
                let is_part = |node| collectives.launch_of_value(node) == Some(launch);
                // A buffer that it writes into ends it where no part does.
                if !is_part(value) && graph.inputs(wait).into_iter().any(is_part) {
                    return;
                }
                // Of two launches into one storage either's tensor ends both, each where it lies.
                if !is_part(value) && !collectives.calls[launch].coalesced {
                    value = collectives.calls[launch].node;
                }
                // Of a view what it shows: the launch, or an item of it.
                let mut piece = None;
                while is_part(value)
                    && collectives.launch_at(value).is_none()
                    && let Some(Value::Node(of)) = graph.arg(value, 0)
                {
                    if collectives.calls[launch].coalesced && collectives.launch_at(of).is_some() {
                        piece = match graph.arg(value, 1) {
                            Some(Value::Int(piece)) => usize::try_from(piece).ok(),
                            _ => None,
                        };
                        break;
                    }
                    value = of;
                }
                let first = match piece {
                    Some(piece) => ended_pieces.insert(piece),
                    None => !ended.contains(&value),
                };
                if first {
                    if piece.is_none() {
                        ended.push(value);
                    }
                    endings.push(Ending { wait, launch, value, piece });
                }
            });
        }
        // One work stands for all tensors of a list: where one of them has no wait of its own, any wait ends it.
        let call = &collectives.calls[launch];
        let buffers =
            call.inputs.iter().enumerate().filter(|_| call.coalesced && call.in_place && ended.is_empty());
        let left = buffers.filter(|(piece, _)| !ended_pieces.contains(piece));
        let any = collectives.waits[launch].first();
        endings.extend(
            left.filter_map(|(piece, &value)| {
                Some(Ending { wait: *any?, launch, value, piece: Some(piece) })
            }),
        );
    }
    endings.sort_by_key(|ending| ending.wait);
    endings
}

/// Calls `visit` with every argument of a node and the parameter that it is for, if there is one.
fn for_each_argument<'s>(
    graph: &Graph,
    id: NodeId,
    schema: &'s Schema,
    visit: &mut impl FnMut(Option<(usize, &'s Param)>, Value),
) {
    for (i, &value) in graph.args(id).iter().enumerate() {
        visit(schema.params.get(i).map(|param| (i, param)), value);
    }
    for (key, value) in graph.kwargs(id) {
        visit(schema.params.iter().enumerate().find(|(_, param)| param.name == key), value);
    }
}

fn reads_sizes_only(kind: Kind) -> bool {
    matches!(kind, Kind::GetItem | Kind::SymSize | Kind::SymNumel | Kind::SymStride | Kind::Number(_))
}

/// Whether what was in a written argument does not matter.
fn overwrites(kind: Kind, param: &Param) -> bool {
    if matches!(kind, Kind::Move(Move::AllGatherCopyIn)) {
        return param.name == "all_gather_output";
    }
    param.write
        && (matches!(param.name.as_str(), "out" | "output")
            || matches!(kind, Kind::Move(Move::Copy | Move::ForeachCopy) | Kind::Random(_))
            || matches!(kind, Kind::Fill(Fill::Empty | Fill::Zeros | Fill::Ones | Fill::Full)))
}

/// Numbers the versions and sorts the accesses by storage.
fn number(mut accesses: Vec<Access>, storages: &mut Storages) {
    let mut start = vec![0u32; storages.storages.len() + 1];
    let mut last_writer = vec![NodeId(u32::MAX); storages.storages.len()];
    for access in &mut accesses {
        let storage = access.part.storage.index();
        start[storage + 1] += 1;
        let versions = &mut storages.storages[storage].versions;
        // Landing ends the write that made the version; a node that writes two parts makes one version.
        if access.touch == Touch::Write && last_writer[storage] != access.node {
            last_writer[storage] = access.node;
            *versions += 1;
        }
        access.version = *versions;
    }
    for i in 1..start.len() {
        start[i] += start[i - 1];
    }
    let mut at = start.clone();
    let mut in_storage = vec![0u32; accesses.len()];
    for (i, access) in accesses.iter().enumerate() {
        let slot = &mut at[access.part.storage.index()];
        in_storage[*slot as usize] = i as u32;
        *slot += 1;
    }
    let mut first_write = Vec::with_capacity(start.len());
    for range in start.windows(2) {
        first_write.push(storages.writes.len() as u32);
        let of = in_storage[range[0] as usize..range[1] as usize].iter();
        storages.writes.extend(of.filter(|&&i| accesses[i as usize].touch.writes()));
    }
    first_write.push(storages.writes.len() as u32);
    storages.first_write = first_write;
    (storages.of_storage, storages.in_storage, storages.accesses) = (start, in_storage, accesses);
}
