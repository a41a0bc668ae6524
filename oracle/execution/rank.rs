//! One rank of a run: its memory, the values of its nodes, and the step it is at.

use super::block::{Block, Elements, Mark, joined, whole};
use super::comm::Comm;
use super::domain::{Domain, Outcome, Trouble, raise, refuse};
use super::layout::{self, Dims, StorageRef, Window};
use super::memory::Memory;
use super::number::Number;
use super::ports::Known;
use super::program::{Action, Program, Step};
use super::run::{Digest, Effect, Failure, FinalInput, LaunchNote, Leaf, Options, RankRun};
use crate::graph::{Dtype, NodeId, Str, Tensor};
use rustc_hash::FxHashMap;

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
pub(crate) struct Rank<'a> {
    pub rank: u32,
    pub program: &'a Program<'a>,
    pub domain: &'a dyn Domain,
    pub memory: Memory,
    pub state: State,
    /// The launches of this rank, in order.
    pub launches: Vec<LaunchNote>,
    /// A hash of the operators of unknown effect so far, which may share state.
    pub unknown: u64,
    pub effects: Vec<Effect>,
    /// The first node that gave an index outside its dimension, or divided an integer by 0.
    pub outside: Option<NodeId>,
    /// Launches of the present step that it has to see through before it has a value.
    pub blocking: Vec<u32>,
    pub items: Vec<Item>,
    pub inputs: Vec<Item>,
    /// The first input that shows a storage.
    pub input_of: FxHashMap<u32, u32>,
    /// How many windows of live values each storage has.
    holders: Vec<u32>,
    at: usize,
    pub outputs: Vec<(Vec<u32>, Leaf)>,
    trace: Vec<Digest>,
    reads: Vec<Vec<Digest>>,
    pub options: &'a Options,
}

impl<'a> Rank<'a> {
    pub fn new(
        rank: u32,
        program: &'a Program<'a>,
        domain: &'a dyn Domain,
        options: &'a Options,
        share: u64,
    ) -> Self {
        Rank {
            rank,
            program,
            domain,
            memory: Memory::new(share),
            state: State::Running,
            launches: Vec::new(),
            unknown: 0,
            effects: Vec::new(),
            outside: None,
            blocking: Vec::new(),
            items: Vec::new(),
            inputs: Vec::new(),
            input_of: FxHashMap::default(),
            holders: Vec::new(),
            at: 0,
            outputs: Vec::new(),
            trace: Vec::new(),
            reads: Vec::new(),
            options,
        }
    }

    /// Goes back to the first node. The first time, the inputs get their values.
    pub fn begin(&mut self, repeat: u32) -> Result<(), Failure> {
        self.items.clear();
        self.items.resize(self.program.steps.len(), Item::Unset);
        if self.options.trace {
            self.trace = vec![Digest::default(); self.program.steps.len()];
            self.reads = vec![Vec::new(); self.program.steps.len()];
        }
        (self.at, self.state) = (0, State::Running);
        if repeat == 0 {
            let mut known = Known::of(self.options, self.rank);
            for index in 0..self.program.inputs.len() {
                let node = self.program.inputs[index].node;
                self.memory.node = node;
                let item = self.input(index, &mut known).map_err(|trouble| self.failure(node, trouble))?;
                if let Item::Tensor(window) = &item {
                    self.input_of.entry(window.storage.0).or_insert(index as u32);
                }
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
            if self.options.trace {
                self.reads[self.at] = self.read_by(node).map_err(|trouble| self.failure(node, trouble))?;
            }
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
        self.domain.enter(node);
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

    /// What a node is about to read.
    fn read_by(&self, node: NodeId) -> Outcome<Vec<Digest>> {
        let mut items = Vec::new();
        self.program.graph.for_each_input(node, &mut |input| items.push(self.items.get(input.index())));
        items.into_iter().map(|item| self.digest(item.unwrap_or(&Item::Unset))).collect()
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
        if let Some(mut watch) = self.memory.watch.take() {
            watch.settled(self, node).map_err(|trouble| self.failure(node, trouble))?;
            self.memory.watch = Some(watch);
        }
        Ok(())
    }

    /// The node that it runs next.
    pub fn at(&self) -> usize {
        self.at
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
            Trouble::Apart(how) => Failure::Apart(how),
        }
    }

    /// Everything found on this rank.
    pub fn finish(mut self) -> Result<RankRun, Failure> {
        let inputs = std::mem::take(&mut self.inputs);
        self.input_of.clear();
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
            outside: self.outside,
            launches: self.launches,
            trace: self.trace,
            reads: self.reads,
        })
    }
}

/// Results.
impl Rank<'_> {
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

    /// `count` elements that are this number.
    pub fn filled(&self, number: Number, dtype: Dtype, count: usize) -> Outcome<Block> {
        if number.overflows(dtype) {
            return Err(raise!("{number:?} cannot be converted to {} without overflow", dtype.name()));
        }
        Ok(self.repeated(number, dtype, count))
    }

    /// The same, for a number outside the range what its conversion gives.
    pub fn repeated(&self, number: Number, dtype: Dtype, count: usize) -> Block {
        let cells = if dtype == Dtype::C128 {
            let (re, im) = match number {
                Number::Complex(re, im) => (Number::Float(re), Number::Float(im)),
                other => (other, Number::Float(0.0)),
            };
            let pair = [re, im].map(|part| self.domain.constant(part, Dtype::F64));
            pair.iter().copied().cycle().take(count.saturating_mul(2)).collect()
        } else {
            vec![self.domain.constant(number, dtype); count]
        };
        Block { cells, marks: Vec::new(), grain: whole(dtype) }
    }

    /// Cells of one dtype as cells of another.
    pub fn cast_block(&self, block: Block, from: Dtype, to: Dtype) -> Outcome<Block> {
        if from == to {
            return Ok(block);
        }
        computed(from)?;
        computed(to)?;
        let per = block.per_element(from).max(1);
        let poison: Vec<bool> =
            block.marks.chunks(per).map(|m| m.iter().any(|&m| m != Mark::Known)).collect();
        let cells = joined(self.domain, block.cells, block.grain, whole(from));
        Ok(Block::of_elements(self.domain.cast(&cells, from, to)?, poison, to))
    }
}

/// Refuses the one dtype whose elements are two cells.
pub(crate) fn computed(dtype: Dtype) -> Outcome<()> {
    match dtype {
        Dtype::C128 => Err(refuse!("complex128 is moved, not computed with")),
        _ => Ok(()),
    }
}

pub(crate) fn too_many(dims: usize) -> Trouble {
    refuse!("{dims} dimensions, the limit is {}", layout::MAX_DIMS)
}

pub(crate) fn storages_of(item: &Item, into: &mut Vec<StorageRef>) {
    match item {
        Item::Tensor(window) => into.push(window.storage),
        Item::List(items) => items.iter().for_each(|item| storages_of(item, into)),
        Item::Dict(items) => items.iter().for_each(|(_, item)| storages_of(item, into)),
        _ => {}
    }
}
