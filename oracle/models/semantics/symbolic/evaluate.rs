//! The evaluation of one graph, node by node in list order.

use super::arena::Arena;
use super::arguments::Call;
use super::evaluation::{Evaluation, Mutation, NumberId, Output, OutputValue, Produced, Tensor, TensorValue};
use super::hazard::{Hazard, HazardKind};
use super::key::{Tag, Words};
use super::layout;
use super::machine::{Machine, Reading, Stop};
use super::numbers::Sums;
use super::place::HERE;
use super::reason::Reason;
use super::run::Piece;
use super::source::{Source, ValueId};
use crate::analysis::{Draws, redundant_assertions};
use crate::expression::{normal_form, symbols_of};
use crate::graph::{ExprId, Graph, NodeId, Op, Out, Span, StorageId, Value};
use crate::ops::{Bound, Collective, Kind, OpInfo, Ops, Random};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// What an input of a graph is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// An unknown tensor or number. Inputs with equal numbers are equal, in all graphs of an arena.
    Free(u32),
    /// The tensor with this value: what another graph has returned, say.
    Given(ValueId),
    /// The number that another graph has returned.
    Number(NumberId),
}

/// What an evaluation begins with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Start {
    /// The inputs, by position; those beyond the end are free, numbered by position.
    pub inputs: Vec<Input>,
    /// The index of the rank that the graph was made for in process groups, by their names, where it is known.
    pub own: Vec<(String, u32)>,
}

/// The value that a node is known to have otherwise, if it is; asked as soon as the node was executed.
pub type Known<'k> = dyn FnMut(&mut Arena, &Evaluation, NodeId) -> Option<ValueId> + 'k;

/// Evaluates `graph` for one generic rank. Inputs are told apart by position.
pub fn evaluate<'g>(arena: &mut Arena, graph: &'g Graph, ops: &Ops) -> Evaluation<'g> {
    evaluate_from(arena, graph, ops, &Start::default())
}

/// Evaluates `graph` on given inputs: a backward graph on what its forward graph has returned, say.
pub fn evaluate_from<'g>(arena: &mut Arena, graph: &'g Graph, ops: &Ops, start: &Start) -> Evaluation<'g> {
    evaluate_knowing(arena, graph, ops, start, &mut |_, _, _| None)
}

/// The same where some nodes are known to have the values of others.
pub fn evaluate_knowing<'g>(
    arena: &mut Arena,
    graph: &'g Graph,
    ops: &Ops,
    start: &Start,
    known: &mut Known,
) -> Evaluation<'g> {
    let n = graph.len();
    let eval = Evaluation {
        graph,
        outputs: Vec::new(),
        mutations: Vec::new(),
        constants: Vec::new(),
        effects: Vec::new(),
        launches: Vec::new(),
        hazards: Vec::new(),
        runs: 0,
        broken: None,
        pool: Vec::with_capacity(4 * n),
        storages: Vec::with_capacity(n),
        produced: vec![Produced::Pending; n],
        items: Vec::new(),
        reasons: Vec::new(),
        seen: Vec::with_capacity(2 * n),
        seen_at: Vec::with_capacity(n),
    };
    let mut machine = Machine {
        arena,
        ops,
        graph,
        eval,
        flights: Vec::new(),
        node: NodeId(0),
        targets: Vec::new(),
        strings: Vec::new(),
        words: Words::default(),
        unknown_calls: 0,
        draws: Draws::new(graph, ops),
        redundant_assertions: redundant_assertions(graph, ops),
        unmodelled: 0,
        received: FxHashMap::default(),
        in_flight: Vec::new(),
        shown: Vec::new(),
        windows: FxHashMap::default(),
        pieces: None,
        sums: Sums::new(graph),
        own: &start.own,
        has_own_slots: false,
    };
    machine.run(start, known);
    machine.eval
}

/// An input or a constant and what its storage holds at first, to be compared with what it holds in the end.
#[derive(Clone, Copy)]
struct Held {
    holder: NodeId,
    tensor: Tensor,
    content: ValueId,
}

/// The constants of a graph, by target.
type Constants<'g> = BTreeMap<&'g str, Held>;

impl<'g> Machine<'_, 'g> {
    fn run(&mut self, start: &Start, known: &mut Known) {
        let graph = self.graph;
        let (mut held, mut constants) = (Vec::new(), BTreeMap::new());
        let mut recorded = FxHashMap::default();
        let mut position = 0u32;
        for node in graph.ids() {
            self.node = node;
            self.note_seen();
            let produced = match graph.node(node).op {
                Op::Placeholder => {
                    let input = start.inputs.get(position as usize).copied().unwrap_or(Input::Free(position));
                    position += 1;
                    self.placeholder(input, &mut held, &mut recorded)
                }
                Op::GetAttr => self.attribute(&mut constants, &mut recorded),
                Op::Call => self.call(),
                Op::Output => {
                    self.output();
                    Ok(Produced::Nothing)
                }
            };
            let produced = produced.unwrap_or_else(|reason| self.fail(reason));
            self.eval.produced[node.index()] = produced;
            if let Some(value) = known(self.arena, &self.eval, node)
                && let Some(known) = self.known(produced, value)
            {
                self.eval.produced[node.index()] = known;
            }
        }
        self.note_never_awaited();
        let storages = &self.eval.storages;
        let in_the_end = |Held { holder, tensor, content }: Held| {
            let now = storages[tensor.storage as usize].content;
            Mutation { holder, content: now, unchanged: now == content }
        };
        self.eval.mutations = held.into_iter().map(in_the_end).collect();
        let constants = constants.into_values().map(|held| (graph.target(held.holder), in_the_end(held)));
        self.eval.constants = constants.collect();
    }

    /// A tensor as it was produced, which holds what is known of it.
    fn known(&mut self, produced: Produced, value: ValueId) -> Option<Produced> {
        let Produced::Tensor(tensor, _) = produced else { return None };
        let fresh = if self.eval.is_symbolic(tensor) {
            self.fresh_symbolic(value, tensor.dtype)
        } else {
            let [sizes, strides] = [self.eval.sizes(tensor), self.eval.strides(tensor)].map(<[i64]>::to_vec);
            self.fresh(value, &sizes, Some(&strides), tensor.dtype).ok()?
        };
        Some(self.done(fresh))
    }

    /// Notes what the storages behind the current node's inputs hold, and inputs that do not exist yet.
    fn note_seen(&mut self) {
        self.eval.seen_at.push(self.eval.seen.len() as u32);
        let (graph, node) = (self.graph, self.node);
        let eval = &mut self.eval;
        let mut undefined = None;
        graph.for_each_input(node, &mut |input: NodeId| {
            let content = match eval.produced[input.index()] {
                Produced::Tensor(tensor, _) => eval.storages[tensor.storage as usize].content,
                Produced::Pending => {
                    undefined.get_or_insert(input);
                    super::arena::NOTHING
                }
                _ => super::arena::NOTHING,
            };
            eval.seen.push((input, content));
        });
        let mut dangling = false;
        graph.for_each_dangling(node, &mut |_| dangling = true);
        if dangling || undefined.is_some() {
            self.hazard(HazardKind::Undefined { input: undefined });
        }
    }

    /// Notes the collectives that are still in flight when the graph is done.
    fn note_never_awaited(&mut self) {
        let flights = self.eval.storages.iter().flat_map(|storage| &storage.flights);
        let mut launches: Vec<NodeId> =
            flights.map(|&flight| self.eval.launches[self.flights[flight as usize].launch].node).collect();
        launches.sort_unstable();
        launches.dedup();
        let hazard = |node| Hazard { node, kind: HazardKind::NeverAwaited };
        self.eval.hazards.extend(launches.into_iter().map(hazard));
    }

    /// Notes why the current node has no value, and whether the whole graph suffers from it.
    fn fail(&mut self, reason: Reason) -> Produced {
        let acts = match self.ops.call(self.graph, self.node) {
            Some(info) => info.effect || info.writes() || info.collective().is_some(),
            None => false,
        };
        if acts && self.eval.broken.is_none() {
            self.eval.broken = Some((self.node, reason.clone()));
        }
        self.reason(reason)
    }

    fn placeholder(
        &mut self,
        input: Input,
        held: &mut Vec<Held>,
        recorded: &mut FxHashMap<StorageId, u32>,
    ) -> Result<Produced, Reason> {
        let node = self.node;
        let out = self.graph.node(node).out;
        let id = match out {
            Out::Tensor(id) => id,
            Out::Int(n) => return Ok(Produced::Int(n)),
            Out::None => return Ok(Produced::Nothing),
            _ => {
                return match (input, out) {
                    // Inputs that carry one sum of symbols are equal, whatever their places.
                    (Input::Free(_), Out::SymInt(expr)) if self.is_of_symbols(expr) => {
                        Ok(self.symbolic_number(&self.sums.text(expr)))
                    }
                    (Input::Free(position), _) => Ok(self.free_number("placeholder", i64::from(position))),
                    (Input::Number(number), _) => Ok(Produced::Number(number.0)),
                    (Input::Given(_), _) => Err(Reason::NoMetadata),
                };
            }
        };
        let tensor = *self.graph.tensor(id);
        let origin = self.name_symbol(node);
        let (Some(sizes), Some(strides)) = (self.graph.sizes(tensor.shape), self.graph.sizes(tensor.stride))
        else {
            let value = match input {
                Input::Given(value) => value,
                Input::Number(_) => return Err(Reason::arguments("a number given for a tensor")),
                Input::Free(position) => {
                    let source = Source::Placeholder { position };
                    let source = self.arena.source_of(source, origin);
                    self.arena.all_of(source, 1)
                }
            };
            let known = tensor.storage.and_then(|id| recorded.get(&id).copied());
            if let Some(storage) = known {
                if !self.eval.storages[storage as usize].symbolic {
                    return Err(Reason::arguments("it lies in the storage of an input of other sizes"));
                }
                let other = self.window(storage, 0, &[], &[], tensor.dtype);
                let other = self.as_part(other, self.shares_recorded(&tensor));
                held.push(Held { holder: node, tensor: other, content: self.content(other) });
                return Ok(self.done(other));
            }
            let fresh = self.fresh_symbolic(value, tensor.dtype);
            if let Some(id) = tensor.storage {
                recorded.insert(id, fresh.storage);
            }
            let fresh = self.as_part(fresh, self.shares_recorded(&tensor));
            held.push(Held { holder: node, tensor: fresh, content: value });
            return Ok(self.done(fresh));
        };
        let count = layout::numel(&sizes).ok_or(Reason::Overflow)?;
        let known = tensor.storage.and_then(|id| recorded.get(&id).copied());
        if known.is_some_and(|storage| self.eval.storages[storage as usize].symbolic) {
            return Err(Reason::arguments("it lies in the storage of an input of symbolic sizes"));
        }
        if let Some(shared) = self.another_window(&tensor, &sizes, &strides, recorded) {
            held.push(Held { holder: node, tensor: shared, content: self.content(shared) });
            return Ok(self.done(shared));
        }
        let value = match input {
            Input::Given(value) if self.arena.len(value) == count => value,
            Input::Number(_) => return Err(Reason::arguments("a number given for a tensor")),
            Input::Given(value) => {
                let given = self.arena.len(value);
                return Err(Reason::arguments(format!("{given} elements given for an input of {count}")));
            }
            Input::Free(position) => {
                let source = Source::Placeholder { position };
                let source = self.arena.source_of(source, origin);
                self.arena.all_of(source, count)
            }
        };
        let fresh = self.input_window(input, value, &sizes, &strides, &tensor)?;
        if let Some(id) = tensor.storage {
            recorded.insert(id, fresh.storage);
        }
        held.push(Held { holder: node, tensor: fresh, content: self.content(fresh) });
        Ok(self.done(fresh))
    }

    /// Another window on an input or a constant that came before, by its recorded storage.
    fn another_window(
        &mut self,
        tensor: &crate::graph::Tensor,
        sizes: &[i64],
        strides: &[i64],
        recorded: &FxHashMap<StorageId, u32>,
    ) -> Option<Tensor> {
        let &storage = recorded.get(&tensor.storage?)?;
        let shared = self.window(storage, tensor.offset, sizes, strides, tensor.dtype);
        self.eval.shown(self.arena, shared, self.content(shared)).is_ok().then_some(shared)
    }

    /// The window of an input whose logical value is known, on a storage that may hold more than it shows.
    fn input_window(
        &mut self,
        input: Input,
        value: ValueId,
        sizes: &[i64],
        strides: &[i64],
        tensor: &crate::graph::Tensor,
    ) -> Result<Tensor, Reason> {
        let dims = layout::normal(sizes, strides);
        let count = self.arena.len(value);
        let extent = if count == 0 { Some(-1) } else { layout::extent(&dims) };
        let used = extent
            .and_then(|e| e.checked_add(1)?.checked_add(tensor.offset))
            .filter(|_| tensor.offset >= 0)
            .ok_or(Reason::Overflow)?;
        let width = i64::from(tensor.dtype.itemsize());
        let needs = used.checked_mul(width).ok_or(Reason::Overflow)?;
        let recorded = tensor.storage_bytes.and_then(|bytes| bytes.known());
        if let Some(recorded) = recorded.filter(|&recorded| recorded < needs && count > 0) {
            self.hazard(HazardKind::StorageTooSmall { needs, recorded });
        }
        let len = recorded.map_or(used, |recorded| (recorded / width).max(used));
        let dense = layout::inverse(&dims).is_some();
        if (len == count && dense) || count == 0 || strides.len() != sizes.len() {
            return self.fresh(value, sizes, Some(strides), tensor.dtype);
        }
        // The storage shows more than the input: what lies beyond is known by its place in the storage.
        let Input::Free(position) = input else {
            return self.fresh(value, sizes, None, tensor.dtype);
        };
        let source = self.arena.source(Source::Beyond { position });
        let beyond = self.arena.piece(Piece { len, offset: 0, source, place: HERE, step: 1 });
        let overlaps = dims.iter().any(|&(_, stride)| stride == 0);
        let content = if overlaps {
            // Elements that lie on each other are equal: the storage alone says what they are.
            beyond
        } else {
            self.arena.write(beyond, tensor.offset, &dims, value)?
        };
        let storage = self.storage(content, tensor.dtype, false);
        Ok(self.window(storage, tensor.offset, sizes, strides, tensor.dtype))
    }

    /// Whether another input is recorded in the storage of this one, and not as the same window on it.
    fn shares_recorded(&self, tensor: &crate::graph::Tensor) -> bool {
        let (graph, own) = (self.graph, self.node);
        tensor.storage.is_some()
            && graph.ids().any(|id| {
                graph.node(id).op == Op::Placeholder
                    && id != own
                    && graph.tensor_of(id).is_some_and(|other| {
                        let window = |of: &crate::graph::Tensor| (of.shape, of.stride, of.offset, of.dtype);
                        other.storage == tensor.storage && window(other) != window(tensor)
                    })
            })
    }

    /// Whether an expression is a sum of symbols that the graph declares.
    fn is_of_symbols(&self, expr: ExprId) -> bool {
        let text = self.graph.text(self.graph.expr(expr).text);
        let is_declared = |name: &str| self.graph.symbols.iter().any(|symbol| symbol.name == name);
        normal_form(text).is_some() && symbols_of(text).all(is_declared)
    }

    fn free_number(&mut self, what: &str, number: i64) -> Produced {
        let name = self.arena.symbol(what);
        self.words.0.clear();
        self.words.symbol(Tag::Target, name);
        self.words.int(number);
        Produced::Number(self.take_key())
    }

    fn attribute(
        &mut self,
        constants: &mut Constants<'g>,
        recorded: &mut FxHashMap<StorageId, u32>,
    ) -> Result<Produced, Reason> {
        let (graph, name) = (self.graph, self.target_symbol());
        let Out::Tensor(id) = graph.node(self.node).out else { return Ok(Produced::Attribute(name)) };
        let tensor = *graph.tensor(id);
        let target = graph.target(self.node);
        if let Some(held) = constants.get(target).filter(|held| graph.tensor_of(held.holder) == Some(&tensor))
        {
            return Ok(self.done(held.tensor));
        }
        if let (Some(sizes), Some(strides)) = (graph.sizes(tensor.shape), graph.sizes(tensor.stride))
            && let Some(shared) = self.another_window(&tensor, &sizes, &strides, recorded)
        {
            return Ok(self.done(shared));
        }
        let source = self.arena.source_of(Source::Attribute { name }, name);
        let fresh = match (self.graph.sizes(tensor.shape), self.graph.sizes(tensor.stride)) {
            (Some(sizes), strides) => {
                let count = layout::numel(&sizes).ok_or(Reason::Overflow)?;
                let value = self.arena.all_of(source, count);
                self.fresh(value, &sizes, strides.as_deref(), tensor.dtype)?
            }
            _ => {
                let value = self.arena.all_of(source, 1);
                self.fresh_symbolic(value, tensor.dtype)
            }
        };
        if let Some(id) = tensor.storage {
            recorded.entry(id).or_insert(fresh.storage);
        }
        let content = self.content(fresh);
        constants.entry(target).or_insert(Held { holder: self.node, tensor: fresh, content });
        Ok(self.done(fresh))
    }

    fn call(&mut self) -> Result<Produced, Reason> {
        let info: &OpInfo = self.ops.get(self.graph, self.node);
        let Some(schema) = &info.schema else {
            return match info.kind {
                Kind::GetItem => self.item(info),
                Kind::Number(op) => self.number(info, op),
                _ => self.opaque(info, None),
            };
        };
        let bound =
            Bound::new(self.graph, self.node, schema).map_err(|e| Reason::Arguments(e.to_string()))?;
        let call = Call { info, schema, bound };
        let done = match info.kind {
            Kind::Binary(op) => match self.identity(&call, op) {
                Ok(None) => return self.opaque(info, Some(&call)),
                Ok(Some(kept)) => Ok(kept),
                Err(stop) => Err(stop),
            },
            Kind::Random(Random::NativeDropout) if call.bound.bool("train") == Some(false) => {
                self.untrained(&call)
            }
            Kind::View(view) => self.view(&call, view),
            Kind::Move(kind) => self.movement(&call, kind),
            Kind::Cast => self.cast(&call),
            Kind::Fill(fill) => self.fill(&call, fill),
            Kind::Resize => self.resize(&call),
            Kind::Wait => self.wait(&call),
            // It takes a tensor at most to tell the allocator of it.
            Kind::Sync(_) => Ok(Produced::Nothing),
            Kind::Collective(Collective::Barrier) => {
                return self.opaque(info, Some(&call));
            }
            Kind::Collective(kind) => self.collective(&call, kind),
            Kind::SymSize | Kind::SymNumel | Kind::SymStride | Kind::Item => {
                self.number_of_tensor(info, &call)
            }
            _ => return self.opaque(info, Some(&call)),
        };
        match done {
            Ok(produced) => Ok(produced),
            Err(Stop::NotFollowed) => self.opaque(info, Some(&call)),
            // What a wait or a launch does to memory is not guessed; a launch has an opaque form of its own.
            Err(Stop::Unknown(reason))
                if reason.is_contradiction() && !matches!(info.kind, Kind::Wait | Kind::Collective(_)) =>
            {
                self.opaque(info, Some(&call))
            }
            Err(Stop::Unknown(reason)) => Err(reason),
        }
    }

    fn output(&mut self) {
        let graph = self.graph;
        self.output_span(graph.node(self.node).args);
    }

    fn output_span(&mut self, span: Span) {
        let graph = self.graph;
        for &value in graph.values(span) {
            match value {
                Value::List(inner) | Value::Slice(inner) => self.output_span(inner),
                Value::Dict(inner) => self.output_span(inner),
                Value::Node(node) => match self.produced(node) {
                    Ok(produced) => self.output_produced(node, produced),
                    Err(reason) => {
                        self.eval
                            .outputs
                            .push(Output { node: Some(node), value: OutputValue::Unknown(reason) });
                    }
                },
                Value::None => self.eval.outputs.push(Output { node: None, value: OutputValue::Nothing }),
                Value::Dangling(name) => {
                    let reason = Reason::Dangling(graph.text(name).to_string());
                    self.eval.outputs.push(Output { node: None, value: OutputValue::Unknown(reason) });
                }
                constant => {
                    let text = match constant {
                        Value::Int(n) => n.to_string(),
                        Value::Bool(b) => b.to_string(),
                        Value::Float(x) => format!("{x:?}"),
                        Value::Dtype(dtype) => dtype.name().to_string(),
                        Value::Symbolic(expr) => graph.text(graph.expr(expr).text).to_string(),
                        Value::Str(text)
                        | Value::Device(text)
                        | Value::MemoryFormat(text)
                        | Value::Layout(text)
                        | Value::Function(text) => graph.text(text).to_string(),
                        _ => String::from("complex"),
                    };
                    self.eval.outputs.push(Output { node: None, value: OutputValue::Constant(text) });
                }
            }
        }
    }

    fn output_produced(&mut self, node: NodeId, produced: Produced) {
        let value = match produced {
            Produced::Tensor(tensor, _) => match self.read(tensor, Some(node), Reading::Using) {
                Ok(value) => {
                    let sizes = (!self.is_symbolic(tensor)).then(|| self.eval.sizes(tensor).to_vec());
                    OutputValue::Tensor(TensorValue { value, sizes, dtype: tensor.dtype })
                }
                Err(reason) => OutputValue::Unknown(reason),
            },
            Produced::List(start, len) => {
                for index in start..start + len {
                    let item = self.eval.items[index as usize];
                    self.output_produced(node, item);
                }
                return;
            }
            Produced::Int(n) => OutputValue::Constant(n.to_string()),
            Produced::Number(key) => OutputValue::Number(NumberId(key)),
            Produced::Attribute(name) => OutputValue::Constant(self.arena.text(name).to_string()),
            Produced::Nothing | Produced::Pending => OutputValue::Nothing,
            Produced::Unknown(_) => OutputValue::Unknown(Reason::Input(self.graph.name(node).to_string())),
        };
        self.eval.outputs.push(Output { node: Some(node), value });
    }
}
