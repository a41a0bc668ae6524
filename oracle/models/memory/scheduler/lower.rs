//! The program that a graph stands for: one node for each call.
//!
//! Storages are those of the run time. A call with a storage of its own makes a buffer; a view makes an alias; a
//! call that writes its argument makes a new name of the buffer that it writes; a call that returns several tensors
//! makes a parent, and whoever takes an element makes a child. A wait makes a new name of its collective's result
//! and reads the collective's inputs, which therefore live until then. Ordering edges and the order of consecutive
//! collectives become dependencies that only order.
//!
//! Where it is not certain what a value shares memory with, it keeps all of it alive. Clusters are not grouped.

use super::super::replay::Facts;
use super::super::size::{Bytes, Sizes};
use super::super::steps::{Devices, MemoryFault};
use super::program::{Buffer, BufferId, Declared, Layout, NodeIndex, Program, ProgramFault};
use crate::analysis::{Edges, StorageIndex, Touch};
use crate::graph::{NodeId, Op, Out, Value};
use crate::limits::Limit;
use crate::ops::Kind;
use rustc_hash::{FxHashMap, FxHashSet};

/// Why a graph has no program.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LowerFault {
    /// Its memory has no size.
    #[error(transparent)]
    Memory(#[from] MemoryFault),
    /// It is no program.
    #[error(transparent)]
    Program(#[from] ProgramFault),
}

/// A graph as a program, with the graph's node of each of the program's.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The program.
    pub program: Program,
    /// The graph's node of each node.
    pub nodes: Vec<NodeId>,
}

/// Whether the scheduler never counts an input: by its name in the graph. `subgraph` is the name of the graph, where
/// it is itself compiled as a named subgraph. Source: `torch._inductor.utils.is_nonfreeable_buffers`.
pub fn is_protected(name: &str, subgraph: Option<&str>) -> bool {
    const KEPT: [&str; 5] = ["primals_", "arg", "fwd_rng_state", "bwd_rng_state", "tangents"];
    let stripped = subgraph.and_then(|own| name.strip_prefix(own)?.strip_prefix('_'));
    KEPT.iter().any(|prefix| stripped.unwrap_or(name).starts_with(prefix))
}

/// The program of a graph. `protected` tells which inputs the caller keeps; constants always are. Symbols without a
/// hint count as `unbacked`.
pub fn lower(
    facts: &Facts,
    devices: Devices,
    unbacked: Option<i64>,
    protected: &dyn Fn(&str) -> bool,
) -> Result<Lowered, LowerFault> {
    let graph = facts.graph;
    let sizes = Sizes::new(graph, unbacked);
    let edges = Edges::new(graph);
    let mut lowering = Lowering {
        facts,
        protected,
        sizes,
        devices,
        buffers: Vec::with_capacity(graph.len()),
        of_storage: vec![None; facts.storages.len()],
        of_node: vec![Vec::new(); graph.len()],
        unsized_: Vec::new(),
    };
    let mut declared = Vec::with_capacity(graph.len());
    let mut nodes: Vec<NodeId> = Vec::with_capacity(graph.len());
    let mut index_of: Vec<Option<NodeIndex>> = vec![None; graph.len()];
    let mut symbols: FxHashMap<String, NodeIndex> = FxHashMap::default();
    let mut last_launch: Option<NodeId> = None;
    let mut left = Limit::Dependences.standard();
    for id in graph.ids() {
        match graph.node(id).op {
            Op::Placeholder | Op::GetAttr => lowering.input(id),
            Op::Output => graph.for_each_input(id, &mut |returned| lowering.mark_output(returned)),
            Op::Call => {
                let index = nodes.len() as NodeIndex;
                index_of[id.index()] = Some(index);
                nodes.push(id);
                let mut d = Declared { name: graph.name(id).to_string(), ..Declared::default() };
                lowering.reads(id, &mut d);
                let rest = left.checked_sub(d.reads.len() as u64);
                left = rest.ok_or_else(|| ProgramFault::TooMany(d.name.clone()))?;
                for &before in edges.ordered_before(id) {
                    d.after.extend(&lowering.of_node[before.index()]);
                }
                if facts.collectives.launch_at(id).is_some()
                    && let Some(earlier) = last_launch.replace(id)
                {
                    d.after.extend(&lowering.of_node[earlier.index()]);
                }
                lowering.symbols(id, index, &mut symbols, &mut d);
                d.outputs = lowering.outputs(id, index, &d.name);
                declared.push(d);
            }
        }
    }
    if !lowering.unsized_.is_empty() {
        return Err(MemoryFault::Unsized(lowering.unsized_).into());
    }
    Ok(Lowered { program: Program::new(lowering.buffers, declared)?, nodes })
}

struct Lowering<'a> {
    facts: &'a Facts<'a>,
    protected: &'a dyn Fn(&str) -> bool,
    sizes: Sizes<'a>,
    devices: Devices,
    buffers: Vec<Buffer>,
    /// The buffer that owns each storage.
    of_storage: Vec<Option<BufferId>>,
    /// The buffers of each node.
    of_node: Vec<Vec<BufferId>>,
    unsized_: Vec<(String, super::super::NoSize)>,
}

impl Lowering<'_> {
    fn push(&mut self, buffer: Buffer) -> BufferId {
        self.buffers.push(buffer);
        self.buffers.len() as u32 - 1
    }

    /// The bytes of the storage that a place begins, or 0 where its device does not count.
    fn bytes(&mut self, id: NodeId, place: usize) -> i64 {
        let graph = self.facts.graph;
        let Some(tensor) = self.facts.storages.tensor(id, place) else { return 0 };
        let tensor = graph.tensor(tensor);
        match self.sizes.storage(tensor) {
            _ if !self.devices.count(graph, Some(tensor.device)) => 0,
            Ok(Bytes { count, .. }) => count,
            Err(why) => {
                self.unsized_.push((graph.name(id).to_string(), why));
                0
            }
        }
    }

    fn input(&mut self, id: NodeId) {
        let graph = self.facts.graph;
        let (name, constant) = (graph.name(id).to_string(), graph.node(id).op == Op::GetAttr);
        let mut made = Vec::new();
        for place in 0..self.facts.storages.places(id) {
            for part in self.facts.storages.parts(id, place) {
                let owner = self.of_storage[part.storage.index()];
                let name = if place == 0 { name.clone() } else { format!("{name}.{place}") };
                let protected = constant || (self.protected)(&name);
                let bytes = self.bytes(id, place);
                let buffer = match owner {
                    None => Buffer { name, bytes, protected, ..Buffer::default() },
                    Some(owner) => {
                        // Another name of an input: kept if either is.
                        self.buffers[owner as usize].protected |= protected;
                        Buffer {
                            name,
                            protected,
                            layout: Layout::Alias,
                            aliases: vec![owner],
                            ..Buffer::default()
                        }
                    }
                };
                let buffer = self.push(buffer);
                self.of_storage[part.storage.index()].get_or_insert(buffer);
                made.push(buffer);
            }
        }
        self.of_node[id.index()] = made;
    }

    /// What the output returns, and whose memory that is.
    fn mark_output(&mut self, returned: NodeId) {
        for &buffer in &self.of_node[returned.index()] {
            if self.buffers[buffer as usize].mutates.is_none() {
                self.buffers[buffer as usize].output = true;
            }
        }
        for part in self.facts.storages.all_parts(returned) {
            if let Some(owner) = self.of_storage[part.storage.index()] {
                self.buffers[owner as usize].output = true;
            }
        }
    }

    fn reads(&self, id: NodeId, d: &mut Declared) {
        let facts = self.facts;
        let mut read = |node: NodeId| {
            for part in facts.storages.all_parts(node) {
                d.reads.extend(self.of_storage[part.storage.index()]);
            }
            let own = self.of_node.get(node.index()).into_iter().flatten().copied();
            // A new name is found through the buffer that it is a name of.
            d.reads.extend(own.filter(|&b| self.buffers[b as usize].mutates.is_none()));
        };
        facts.graph.for_each_input(id, &mut read);
        let releases = facts.storages.accesses_by(id).iter().filter(|a| a.touch == Touch::Release);
        for access in releases.chain(facts.storages.kept_by(id)) {
            d.reads.extend(self.of_storage[access.part.storage.index()]);
        }
        let mut seen = FxHashSet::default();
        d.reads.retain(|&buffer| seen.insert(buffer));
    }

    /// Unbacked symbols: whoever takes the value out of a tensor defines them.
    fn symbols(
        &self,
        id: NodeId,
        index: NodeIndex,
        known: &mut FxHashMap<String, NodeIndex>,
        d: &mut Declared,
    ) {
        let graph = self.facts.graph;
        if let Out::SymInt(expr) = graph.node(id).out
            && self.facts.ops.get(graph, id).kind == Kind::Item
        {
            known.entry(graph.text(graph.expr(expr).text).to_string()).or_insert(index);
        }
        for &value in graph.args(id) {
            if let Value::Symbolic(expr) = value {
                d.symbols.extend(known.get(graph.text(graph.expr(expr).text)));
            }
        }
    }

    fn outputs(&mut self, id: NodeId, by: NodeIndex, name: &str) -> Vec<BufferId> {
        let facts = self.facts;
        let storages = &facts.storages;
        let places = storages.places(id);
        let mut written = FxHashSet::default();
        let writes: Vec<StorageIndex> = storages
            .accesses_by(id)
            .iter()
            .filter(|access| access.touch.writes() && access.part.certain)
            .map(|access| access.part.storage)
            .filter(|&storage| storages.storage(storage).by != id && written.insert(storage))
            .collect();
        let mut made = Vec::new();
        let fresh = |place: usize| {
            storages.parts(id, place).iter().any(|part| {
                let storage = storages.storage(part.storage);
                storage.by == id && storage.place as usize == place
            })
        };
        let is_tuple = matches!(facts.graph.node(id).out, Out::Tuple(_) | Out::Dict(_));
        if is_tuple && (0..places).any(fresh) {
            // The parent allocates them all; here the elements are buffers of the same node.
            let layout = Layout::MultiOutput;
            let parent =
                self.push(Buffer { name: name.to_string(), layout, by: Some(by), ..Buffer::default() });
            made.push(parent);
            for place in 0..places {
                let element = self.value(id, by, place, format!("{name}.{place}"), fresh(place));
                if fresh(place) {
                    self.buffers[element as usize].parent = Some(parent);
                }
                made.push(element);
            }
        } else if writes.is_empty() {
            for place in 0..places {
                let name = if places == 1 { name.to_string() } else { format!("{name}.{place}") };
                made.push(self.value(id, by, place, name, fresh(place)));
            }
        } else {
            for place in (0..places).filter(|&place| fresh(place)) {
                made.push(self.value(id, by, place, format!("{name}.{place}"), true));
            }
        }
        for storage in writes {
            let Some(owner) = self.of_storage[storage.index()] else { continue };
            let name = format!("{name}.{}", self.buffers[owner as usize].name);
            let layout = Layout::Nothing;
            made.push(self.push(Buffer {
                name,
                layout,
                by: Some(by),
                mutates: Some(owner),
                aliases: vec![owner],
                ..Buffer::default()
            }));
        }
        if made.is_empty() {
            // Others may have to come after it.
            let layout = Layout::Nothing;
            made.push(self.push(Buffer {
                name: name.to_string(),
                layout,
                by: Some(by),
                ..Buffer::default()
            }));
        }
        self.of_node[id.index()] = made.clone();
        made
    }

    /// The buffer of one place: memory of its own, or others'.
    fn value(&mut self, id: NodeId, by: NodeIndex, place: usize, name: String, fresh: bool) -> BufferId {
        let storages = &self.facts.storages;
        let parts = storages.parts(id, place);
        let owners: Vec<BufferId> =
            parts.iter().filter_map(|part| self.of_storage[part.storage.index()]).collect();
        // What may be memory of its own and may be others' counts, and keeps the others.
        let layout = match (fresh, owners.is_empty()) {
            (true, _) => Layout::Owned,
            (false, true) => Layout::Nothing,
            (false, false) => Layout::Alias,
        };
        let bytes = if fresh { self.bytes(id, place) } else { 0 };
        let buffer =
            self.push(Buffer { name, bytes, layout, by: Some(by), aliases: owners, ..Buffer::default() });
        for part in parts.iter().filter(|part| storages.storage(part.storage).by == id) {
            self.of_storage[part.storage.index()].get_or_insert(buffer);
        }
        buffer
    }
}
