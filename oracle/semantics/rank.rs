//! One rank of a run: its memory, the values of its nodes, and the step it is at.

use super::comm::Comm;
use super::domain::{Domain, Outcome, Trouble, raise, refuse};
use super::hash::{self, mix};
use super::layout::{self, Dims, StorageRef, Window};
use super::memory::{Block, Elements, Mark, Memory, joined, whole};
use super::number::Number;
use super::program::{Action, Program, Step};
use super::run::{
    Digest, Effect, Failure, FinalInput, Given, LaunchNote, Leaf, Options, RankRun, TensorValue, Waiting,
};
use crate::graph::{Dim, Dtype, NodeId, Op, Out, Str, Tensor, Value};

/// The value of a node.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    /// Its node has not run, or its value has been dropped.
    Unset,
    None,
    Tensor(Window),
    Number(Number),
    /// A string or object, by its hash.
    Object(u64),
    List(Vec<Item>),
    Dict(Vec<(Str, Item)>),
}

/// Where a rank stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Running,
    /// It waits for this launch of its own.
    Blocked(u32),
    Done,
}

/// What a step came to.
pub(crate) enum Progress {
    Value(Item),
    /// It has to wait for this launch of its own.
    Blocked(u32),
}

/// One rank.
pub(crate) struct Rank<'a, D> {
    pub rank: u32,
    pub program: &'a Program<'a>,
    pub domain: &'a D,
    pub memory: Memory,
    pub state: State,
    /// The launches of this rank, in order.
    pub launches: Vec<LaunchNote>,
    /// Executions of random operators so far.
    pub draws: u64,
    /// A hash of the operators of unknown effect so far, which may share state.
    pub unknown: u64,
    pub effects: Vec<Effect>,
    /// Launches of the present step that it has to see through before it has a value.
    pub blocking: Vec<u32>,
    pub items: Vec<Item>,
    inputs: Vec<Item>,
    /// How many windows of live values each storage has.
    holders: Vec<u32>,
    at: usize,
    outputs: Vec<(Vec<u32>, Leaf)>,
    trace: Vec<Digest>,
    options: &'a Options,
}

impl<'a, D: Domain> Rank<'a, D> {
    pub fn new(rank: u32, program: &'a Program<'a>, domain: &'a D, options: &'a Options, share: u64) -> Self {
        Rank {
            rank,
            program,
            domain,
            memory: Memory::new(share),
            state: State::Running,
            launches: Vec::new(),
            draws: 0,
            unknown: 0,
            effects: Vec::new(),
            blocking: Vec::new(),
            items: Vec::new(),
            inputs: Vec::new(),
            holders: Vec::new(),
            at: 0,
            outputs: Vec::new(),
            trace: Vec::new(),
            options,
        }
    }

    /// Goes back to the first node. The first time, the inputs get their values.
    pub fn begin(&mut self, repeat: u32) -> Result<(), Failure> {
        self.items.clear();
        self.items.resize(self.program.steps.len(), Item::Unset);
        if self.options.trace {
            self.trace = vec![Digest::default(); self.program.steps.len()];
        }
        (self.at, self.state) = (0, State::Running);
        if repeat == 0 {
            let mut shared = Vec::new();
            for index in 0..self.program.inputs.len() {
                let node = self.program.inputs[index].node;
                self.memory.node = node;
                let item = self.input(index, &mut shared).map_err(|trouble| self.failure(node, trouble))?;
                self.inputs.push(item);
            }
        }
        Ok(())
    }

    /// Runs until it is done or blocked; whether it got anywhere.
    pub fn advance(&mut self, comm: &mut Comm) -> Result<bool, Failure> {
        let program = self.program;
        let mut progress = false;
        while let Some(step) = program.steps.get(self.at) {
            let node = NodeId(self.at as u32);
            self.memory.node = node;
            let result = self.step(node, step, comm).map_err(|trouble| self.failure(node, trouble))?;
            comm.taint(&mut self.memory, &self.launches);
            match result {
                Progress::Blocked(launch) => {
                    let before = std::mem::replace(&mut self.state, State::Blocked(launch));
                    return Ok(progress || before != self.state);
                }
                Progress::Value(item) => self.settle(node, item)?,
            }
            self.at += 1;
            progress = true;
        }
        self.state = State::Done;
        Ok(true)
    }

    pub fn step(&mut self, node: NodeId, step: &'a Step<'a>, comm: &mut Comm) -> Outcome<Progress> {
        let item = match step.action {
            Action::Input(index) => self.inputs[index as usize].clone(),
            Action::Object => Item::Object(step.key),
            Action::Output => {
                self.collect_outputs(node)?;
                Item::None
            }
            Action::Communicate(kind, group) => return self.communicate(node, step, kind, group, comm),
            Action::Call(crate::ops::Kind::Wait) => return self.wait(step, comm),
            Action::Call(kind) => self.call(node, step, kind)?,
        };
        Ok(Progress::Value(item))
    }

    /// Stores a node's value, and drops the values that nothing refers to any more.
    fn settle(&mut self, node: NodeId, item: Item) -> Result<(), Failure> {
        if self.options.trace {
            self.trace[node.index()] = self.digest(&item).map_err(|trouble| self.failure(node, trouble))?;
        }
        if self.options.free_after_last_use {
            self.hold(&item);
            self.items[node.index()] = item;
            let mut over = vec![node];
            self.program.graph.for_each_input(node, &mut |input| over.push(input));
            for value in over {
                if self.program.last_use[value.index()] <= node {
                    let item = std::mem::replace(&mut self.items[value.index()], Item::Unset);
                    self.release(&item);
                }
            }
        } else {
            self.items[node.index()] = item;
        }
        Ok(())
    }

    fn hold(&mut self, item: &Item) {
        let mut storages = Vec::new();
        storages_of(item, &mut storages);
        for storage in storages {
            if self.holders.len() <= storage.index() {
                self.holders.resize(storage.index() + 1, 0);
            }
            self.holders[storage.index()] += 1;
        }
    }

    fn release(&mut self, item: &Item) {
        let mut storages = Vec::new();
        storages_of(item, &mut storages);
        let mut kept = Vec::new();
        self.inputs.iter().for_each(|input| storages_of(input, &mut kept));
        for storage in storages {
            let Some(holders) = self.holders.get_mut(storage.index()) else { continue };
            *holders = holders.saturating_sub(1);
            if *holders == 0 && !kept.contains(&storage) && !self.memory.is_busy(storage) {
                self.memory.free(storage);
            }
        }
    }

    pub fn failure(&self, node: NodeId, trouble: Trouble) -> Failure {
        let rank = self.rank;
        match trouble {
            Trouble::Refuse(reason) => Failure::Refused { rank, node, reason },
            Trouble::Raise(reason) => Failure::Raises { rank: Some(rank), node, reason },
            Trouble::Undefined(input) => Failure::Undefined { rank, node, input },
            Trouble::Mismatch(mismatch) => Failure::Mismatch(mismatch),
        }
    }

    /// What this rank waits for.
    pub fn waiting(&self, comm: &Comm, launch: u32) -> Waiting {
        comm.waiting(self.rank, NodeId(self.at as u32), &self.launches[launch as usize])
    }

    /// Everything found on this rank.
    pub fn finish(mut self) -> Result<RankRun, Failure> {
        let inputs = std::mem::take(&mut self.inputs);
        let mut finals = Vec::with_capacity(inputs.len());
        for (input, item) in self.program.inputs.iter().zip(&inputs) {
            let value = self.leaf(item).map_err(|trouble| self.failure(input.node, trouble))?;
            let written = matches!(item, Item::Tensor(w) if self.memory.is_written(w.storage));
            finals.push(FinalInput {
                name: input.name.clone(),
                attribute: input.attribute,
                written,
                value: value.unwrap_or(Leaf::None),
            });
        }
        Ok(RankRun {
            outputs: self.outputs,
            inputs: finals,
            effects: self.effects,
            launches: self.launches,
            trace: self.trace,
        })
    }
}

/// Inputs and outputs.
impl<D: Domain> Rank<'_, D> {
    /// Makes the value of a graph input. `shared` holds the storages of inputs that the file says are shared.
    fn input(&mut self, index: usize, shared: &mut Vec<(u32, StorageRef)>) -> Outcome<Item> {
        let input = &self.program.inputs[index];
        let graph = self.program.graph;
        let name = hash::text(&input.name);
        let tensor = match graph.node(input.node).out {
            Out::Tensor(tensor) => graph.tensor(tensor),
            Out::Int(n) => return Ok(Item::Number(Number::Int(n))),
            Out::SymInt(expr) => {
                let hint = graph.expr(expr).hint;
                return hint
                    .map(|n| Item::Number(Number::Int(n)))
                    .ok_or_else(|| refuse!("a size without hint"));
            }
            Out::None => return Ok(Item::None),
            // A process group, a mesh: the same on every rank.
            _ => return Ok(Item::Object(name)),
        };
        let (shape, strides, dtype) = (
            self.recorded(graph.dims(tensor.shape))?,
            self.recorded(graph.dims(tensor.stride))?,
            tensor.dtype,
        );
        if strides.len() != shape.len() {
            return Err(refuse!("{} sizes but {} strides are recorded", shape.len(), strides.len()));
        }
        let mut window =
            Window { storage: StorageRef(0), dtype, conj: false, offset: tensor.offset, shape, strides };
        let extent = layout::numel(&shape).and(window.extent());
        let (_, end) =
            extent.ok_or_else(|| refuse!("shape {shape:?} with strides {strides:?} is impossible"))?;
        let grain = whole(dtype);
        let cells = usize::try_from(end).ok().and_then(|end| end.checked_mul(self.cells_per(dtype)));
        let cells = self.memory.room(cells.unwrap_or(usize::MAX))?;
        let known = tensor.storage.and_then(|s| shared.iter().find(|(id, _)| *id == s.0).map(|&(_, at)| at));
        window.storage = match known {
            Some(storage) => {
                self.memory.refine(self.domain, storage, grain);
                self.memory.grow(storage, cells, grain);
                storage
            }
            None => self.memory.allocate(Block::poison(cells, grain)),
        };
        if let Some(id) = tensor.storage {
            shared.push((id.0, window.storage));
        }
        // What an earlier input of this storage has filled stays.
        let mut block = self.memory.peek(self.domain, &window)?;
        let per = block.per_element(dtype).max(1);
        let key = mix(name, u64::from(self.rank));
        let mine = |given: &&Given| given.name == input.name && given.rank.is_none_or(|r| r == self.rank);
        let given = self.options.given.iter().find(mine);
        let each = self.cells_per(dtype);
        if let Some(given) = given
            && given.cells.len() != window.numel() * each
        {
            return Err(refuse!("{} cells are given for {} elements", given.cells.len(), window.numel()));
        }
        for element in 0..window.numel() {
            let range = element * per..(element + 1) * per;
            if block.marks.get(range.clone()).is_some_and(|marks| marks.contains(&Mark::Poison)) {
                let mut one = Block {
                    cells: (0..each)
                        .map(|part| match given {
                            Some(given) => given.cells[element * each + part],
                            None => self.domain.input(mix(key, part as u64), element as u64, dtype),
                        })
                        .collect(),
                    marks: Vec::new(),
                    grain,
                };
                one.refine(self.domain, block.grain);
                block.cells[range.clone()].copy_from_slice(&one.cells);
                block.marks[range].fill(Mark::Known);
            }
        }
        self.memory.fill(&window, &block);
        Ok(Item::Tensor(window))
    }

    /// Cells per element of a fresh tensor: 2 for complex128.
    fn cells_per(&self, dtype: Dtype) -> usize {
        dtype.itemsize() as usize / usize::from(whole(dtype))
    }

    /// Recorded sizes, symbolic ones by their hints.
    pub fn recorded(&self, dims: &[Dim]) -> Outcome<Dims> {
        let graph = self.program.graph;
        let sizes: Option<Vec<i64>> = dims.iter().map(|&d| graph.hint(d)).collect();
        let sizes = sizes.ok_or_else(|| refuse!("a size is symbolic and has no hint"))?;
        Dims::new(&sizes).ok_or_else(|| too_many(sizes.len()))
    }

    fn collect_outputs(&mut self, node: NodeId) -> Outcome<()> {
        let mut found = Vec::new();
        let args = self.program.graph.args(node);
        for (i, &arg) in args.iter().enumerate() {
            // The usual single argument adds no level to the paths.
            let mut path = if args.len() == 1 { Vec::new() } else { vec![i as u32] };
            self.collect_value(arg, &mut path, &mut found)?;
        }
        self.outputs = found;
        Ok(())
    }

    fn collect_value(
        &mut self,
        value: Value,
        path: &mut Vec<u32>,
        found: &mut Vec<(Vec<u32>, Leaf)>,
    ) -> Outcome<()> {
        if let Value::List(span) = value {
            for (i, &inner) in self.program.graph.values(span).iter().enumerate() {
                path.push(i as u32);
                self.collect_value(inner, path, found)?;
                path.pop();
            }
            return Ok(());
        }
        let item = self.item(value)?;
        self.collect_item(&item, path, found)
    }

    fn collect_item(
        &mut self,
        item: &Item,
        path: &mut Vec<u32>,
        found: &mut Vec<(Vec<u32>, Leaf)>,
    ) -> Outcome<()> {
        if let Some(leaf) = self.leaf(item)? {
            found.push((path.clone(), leaf));
            return Ok(());
        }
        let parts: Vec<&Item> = match item {
            Item::List(items) => items.iter().collect(),
            Item::Dict(items) => items.iter().map(|(_, item)| item).collect(),
            _ => Vec::new(),
        };
        for (i, part) in parts.into_iter().enumerate() {
            path.push(i as u32);
            self.collect_item(part, path, found)?;
            path.pop();
        }
        Ok(())
    }

    /// A value as a leaf; `None` for lists and mappings.
    fn leaf(&mut self, item: &Item) -> Outcome<Option<Leaf>> {
        Ok(Some(match item {
            Item::Unset | Item::None => Leaf::None,
            Item::Number(number) => Leaf::Number(*number),
            Item::Object(key) => Leaf::Object(*key),
            Item::List(_) | Item::Dict(_) => return Ok(None),
            Item::Tensor(window) => {
                let block = self.memory.cells(self.domain, window)?;
                let per = (usize::from(whole(window.dtype)) / usize::from(block.grain.max(1))).max(1);
                let poison = block.marks.chunks(per).map(|m| m.iter().any(|&m| m != Mark::Known)).collect();
                let alias = |input: &Item| matches!(input, Item::Tensor(w) if w.storage == window.storage);
                Leaf::Tensor(TensorValue {
                    dtype: window.dtype,
                    shape: window.shape,
                    cells: joined(self.domain, block.cells, block.grain, whole(window.dtype)),
                    poison,
                    alias_of: self.inputs.iter().position(alias).map(|i| i as u32),
                })
            }
        }))
    }

    /// A hash of a value as it is now.
    pub fn digest(&self, item: &Item) -> Outcome<Digest> {
        let mut digest = Digest { hash: 0, poisoned: 0 };
        self.digest_into(item, &mut digest)?;
        Ok(digest)
    }

    fn digest_into(&self, item: &Item, digest: &mut Digest) -> Outcome<()> {
        let hash = &mut digest.hash;
        match item {
            Item::Unset | Item::None => *hash = mix(*hash, 1),
            Item::Number(number) => *hash = mix(*hash, number.key()),
            Item::Object(key) => *hash = mix(mix(*hash, 2), *key),
            Item::List(items) => {
                *hash = mix(mix(*hash, 3), items.len() as u64);
                items.iter().try_for_each(|item| self.digest_into(item, digest))?;
            }
            Item::Dict(items) => {
                *hash = mix(mix(*hash, 4), items.len() as u64);
                for (key, item) in items {
                    digest.hash = mix(digest.hash, hash::text(self.program.graph.text(*key)));
                    self.digest_into(item, digest)?;
                }
            }
            Item::Tensor(window) => {
                let block = self.memory.peek(self.domain, window)?;
                let per = (usize::from(whole(window.dtype)) / usize::from(block.grain.max(1))).max(1);
                let cells = joined(self.domain, block.cells, block.grain, whole(window.dtype));
                *hash = mix(mix(*hash, 5), window.dtype as u64);
                *hash = hash::words(*hash, window.shape.iter().map(|&n| n as u64));
                for (i, &cell) in cells.iter().enumerate() {
                    let marks = block.marks.get(i * per..(i + 1) * per);
                    let poison = marks.is_some_and(|marks| marks.iter().any(|&m| m != Mark::Known));
                    digest.poisoned += u32::from(poison);
                    *hash = if poison { mix(*hash, 0x706F) } else { mix(*hash, cell) };
                }
            }
        }
        Ok(())
    }
}

/// Arguments.
impl<'a, D: Domain> Rank<'a, D> {
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
        self.maybe_tensor(value)?.ok_or_else(|| raise!("expects a tensor, got {}", self.word(value)))
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
                _ => Err(raise!("expects a list of tensors, got {}", self.word(value))),
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
                _ => return Err(raise!("expects a number, got {}", self.word(value))),
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

/// Results.
impl<D: Domain> Rank<'_, D> {
    /// Whole elements of a tensor.
    pub fn elements(&mut self, window: &Window) -> Outcome<Elements<'_>> {
        self.memory.elements(self.domain, window)
    }

    /// The number of elements of a shape that there is room for.
    pub fn room(&self, shape: &[i64]) -> Outcome<usize> {
        let count = layout::numel(shape).ok_or_else(|| raise!("impossible shape {shape:?}"))?;
        self.memory.room(count)
    }

    /// A fresh tensor whose layout is the recorded one where that can be, else row-major.
    pub fn fresh(&mut self, node: NodeId, output: usize, shape: Dims, dtype: Dtype, block: Block) -> Window {
        let recorded = self.program.graph.tensor_at(node, output);
        let strides = recorded.and_then(|t| self.recorded_strides(t, &shape));
        self.memory.fresh(shape, strides.unwrap_or_else(|| layout::contiguous(shape)), dtype, block)
    }

    /// The strides recorded for a result, if they are a dense layout of this shape.
    fn recorded_strides(&self, tensor: &Tensor, shape: &[i64]) -> Option<Dims> {
        let graph = self.program.graph;
        let same = graph.dims(tensor.shape).iter().map(|d| d.known()).eq(shape.iter().map(|&n| Some(n)));
        let strides = graph.dims(tensor.stride);
        if !same || strides.len() != shape.len() {
            return None;
        }
        let strides = Dims::collect(strides.iter().map(|d| d.known().unwrap_or(-1)))?;
        layout::is_dense(shape, &strides).then_some(strides)
    }

    /// Hands back a result: written into the step's destination if it has one, else fresh.
    pub fn deliver(
        &mut self,
        node: NodeId,
        step: &Step,
        shape: Dims,
        strides: Option<Dims>,
        dtype: Dtype,
        block: Block,
    ) -> Outcome<Item> {
        if let Some(into) = step.into {
            let window = self.tensor(into)?;
            self.store(&window, shape, dtype, block)?;
            return Ok(Item::Tensor(window));
        }
        Ok(Item::Tensor(match strides {
            Some(strides) => self.memory.fresh(shape, strides, dtype, block),
            None => self.fresh(node, 0, shape, dtype, block),
        }))
    }

    /// Writes a computed result into a window, in the window's dtype.
    pub fn store(&mut self, window: &Window, shape: Dims, dtype: Dtype, block: Block) -> Outcome<()> {
        if window.shape != shape {
            let wanted = &window.shape;
            return Err(raise!("the result has shape {shape:?}, its destination {wanted:?}"));
        }
        let block = self.cast_block(block, dtype, window.dtype)?;
        self.memory.write(self.domain, window, block)
    }

    /// Cells of one dtype as cells of another.
    pub fn cast_block(&self, block: Block, from: Dtype, to: Dtype) -> Outcome<Block> {
        if from == to {
            return Ok(block);
        }
        if from == Dtype::C128 || to == Dtype::C128 {
            return Err(refuse!("complex128 is moved, not computed with"));
        }
        let per = block.per_element(from).max(1);
        let poison: Vec<bool> =
            block.marks.chunks(per).map(|m| m.iter().any(|&m| m != Mark::Known)).collect();
        let cells = joined(self.domain, block.cells, block.grain, whole(from));
        Ok(Block::of_elements(self.domain.cast(&cells, from, to)?, poison, to))
    }
}

pub(crate) fn too_many(dims: usize) -> Trouble {
    refuse!("{dims} dimensions, the limit is {}", layout::MAX_DIMS)
}

fn storages_of(item: &Item, into: &mut Vec<StorageRef>) {
    match item {
        Item::Tensor(window) => into.push(window.storage),
        Item::List(items) => items.iter().for_each(|item| storages_of(item, into)),
        Item::Dict(items) => items.iter().for_each(|(_, item)| storages_of(item, into)),
        _ => {}
    }
}
