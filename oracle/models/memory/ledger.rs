//! Who makes each storage, and which storages each node's value keeps alive.
//!
//! Two ledgers of one graph, for two questions:
//! - *recorded*: the storages that the tracer recorded. This is what PyTorch counts
//!   (`torch._inductor.fx_passes.memory_estimator.GraphAliasTracker`).
//! - *physical*: the storages that exist at run time, by [`Storages`]: a wait hands back what its collective
//!   filled, a `permute` shares memory whatever the tracer saw.
//!
//! A node *shows* the storages of everything it returns, whole tuples included, and *uses* those that its inputs
//! show: while somebody still wants one element of a tuple, all of them are kept.

use super::size::{Bytes, NoSize, Sizes};
use crate::analysis::Storages;
use crate::graph::{Graph, NodeId, Op, Out, Str, Tensor, Value};
use rustc_hash::FxHashMap;

/// A storage of a ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The node that shows it first in list order, its allocator.
    pub by: NodeId,
    /// Which of the node's tensors, counted through all levels.
    pub place: u32,
    /// Its size when allocated.
    pub bytes: Result<Bytes, NoSize>,
    /// Its device.
    pub device: Option<Str>,
    /// Whether it exists before the first step: its allocator is an input or a constant.
    pub external: bool,
}

/// A node that changes the size of a storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resize {
    /// The node.
    pub node: NodeId,
    /// The storage: an index into [`Ledger::entries`].
    pub storage: u32,
    /// Its size from then on.
    pub bytes: Result<Bytes, NoSize>,
}

/// Who makes each storage, and who shows it.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// The storages, in list order of their allocators.
    pub entries: Vec<Entry>,
    /// Changes of size, in list order.
    pub resizes: Vec<Resize>,
    /// Nodes of which it is not certain which storages they show, in list order.
    pub uncertain: Vec<NodeId>,
    /// Nodes that may return tensors of which nothing is recorded: they count 0 bytes.
    pub unrecorded: Vec<NodeId>,
    first: Vec<u32>,
    shown: Vec<u32>,
}

impl Ledger {
    /// The storages as recorded. Where no tensor has a recorded storage, those of `logical`: what a tracer would
    /// record by the operators' schemas.
    pub fn recorded(graph: &Graph, sizes: &Sizes, logical: impl FnOnce() -> Storages) -> Ledger {
        let mut recorded = false;
        for node in graph.nodes() {
            for_each_tensor(graph, node.out, &mut |tensor| recorded |= tensor.storage.is_some());
            if recorded {
                return Ledger::from_file(graph, sizes);
            }
        }
        Ledger::derived(graph, sizes, &logical())
    }

    fn from_file(graph: &Graph, sizes: &Sizes) -> Ledger {
        let mut ledger = Ledger { first: Vec::with_capacity(graph.len() + 1), ..Ledger::default() };
        let mut known: FxHashMap<(u32, Str), (u32, Option<i64>)> = FxHashMap::default();
        let mut shown_by = Vec::with_capacity(graph.len());
        for id in graph.ids() {
            let node = graph.node(id);
            ledger.open();
            let mut place = 0;
            for_each_tensor(graph, node.out, &mut |tensor| {
                place += 1;
                let bytes = sizes.storage(tensor);
                let count = bytes.ok().map(|bytes| bytes.count);
                let new = ledger.entries.len() as u32;
                // A tensor without a recorded storage is on one of its own.
                let (storage, last) = match tensor.storage {
                    None => (new, count),
                    Some(recorded) => {
                        let slot = known.entry((recorded.0, tensor.device)).or_insert((new, count));
                        let last = std::mem::replace(&mut slot.1, count);
                        (slot.0, last)
                    }
                };
                if storage == new {
                    let external = matches!(node.op, Op::Placeholder | Op::GetAttr);
                    let device = Some(tensor.device);
                    ledger.entries.push(Entry { by: id, place: place - 1, bytes, device, external });
                    shown_by.push(NodeId(u32::MAX));
                } else if last != count {
                    ledger.resizes.push(Resize { node: id, storage, bytes });
                }
                ledger.show(id, storage, &mut shown_by);
            });
        }
        ledger.open();
        ledger
    }

    /// The storages that an analysis derives.
    pub fn derived(graph: &Graph, sizes: &Sizes, storages: &Storages) -> Ledger {
        let mut ledger = Ledger { first: Vec::with_capacity(graph.len() + 1), ..Ledger::default() };
        for id in storages.ids() {
            let info = storages.storage(id);
            let tensor = storages.tensor(info.by, info.place as usize).map(|t| graph.tensor(t));
            let bytes = match (tensor, info.bytes) {
                (Some(tensor), _) => sizes.storage(tensor),
                // Nothing is recorded: as in PyTorch, there is nothing to count.
                (None, count) => Ok(Bytes { count: count.unwrap_or(0), assumed: false }),
            };
            if tensor.is_none() && info.bytes.is_none() && !is_getitem(graph, info.by) && !info.external {
                ledger.unrecorded.push(info.by);
            }
            let device = tensor.map(|t| t.device);
            ledger.entries.push(Entry {
                by: info.by,
                place: info.place,
                bytes,
                device,
                external: info.external,
            });
        }
        let mut shown_by = vec![NodeId(u32::MAX); storages.len()];
        for id in graph.ids() {
            ledger.open();
            let mut certain = true;
            for part in storages.all_parts(id) {
                certain &= part.certain;
                ledger.show(id, part.storage.0, &mut shown_by);
            }
            if !certain {
                ledger.uncertain.push(id);
            }
            if let Some(bytes) = resized_to(graph, id, sizes) {
                let touched = graph.argument(id, 0, "variable").and_then(|value| match value {
                    Value::Node(node) => storages.storage_of(node),
                    _ => None,
                });
                ledger.resizes.extend(touched.map(|s| Resize { node: id, storage: s.0, bytes }));
            }
        }
        ledger.open();
        ledger
    }

    /// Begins the row of the next node.
    fn open(&mut self) {
        self.first.push(self.shown.len() as u32);
    }

    /// Adds a storage to the row of `node`, once.
    fn show(&mut self, node: NodeId, storage: u32, shown_by: &mut [NodeId]) {
        if std::mem::replace(&mut shown_by[storage as usize], node) != node {
            self.shown.push(storage);
        }
    }

    /// The most bytes that each storage has in its life, on whatever device.
    pub fn largest_sizes(&self) -> Vec<Result<i64, NoSize>> {
        let count = |bytes: Result<Bytes, NoSize>| bytes.map(|bytes| bytes.count);
        let mut sizes: Vec<_> = self.entries.iter().map(|entry| count(entry.bytes)).collect();
        for resize in &self.resizes {
            let size = &mut sizes[resize.storage as usize];
            *size = (*size).and_then(|known| Ok(known.max(count(resize.bytes)?)));
        }
        sizes
    }

    /// The storages that a node shows, each once: indices into [`Ledger::entries`].
    pub fn shown(&self, node: NodeId) -> &[u32] {
        let row = self.first.get(node.index()).zip(self.first.get(node.index() + 1));
        row.and_then(|(&from, &to)| self.shown.get(from as usize..to as usize)).unwrap_or(&[])
    }
}

/// Whether a node takes an element: what it is follows from what it is taken of.
fn is_getitem(graph: &Graph, id: NodeId) -> bool {
    graph.node(id).op == Op::Call && graph.target(id) == "operator.getitem"
}

/// The new size, if a node is a resize of the storage of its first argument.
fn resized_to(graph: &Graph, id: NodeId, sizes: &Sizes) -> Option<Result<Bytes, NoSize>> {
    if graph.node(id).op != Op::Call || graph.target(id) != "inductor.resize_storage_bytes_.default" {
        return None;
    }
    Some(match graph.argument(id, 1, "new_size")? {
        Value::Int(n) if n < 0 => Err(NoSize::Negative),
        Value::Int(n) => Ok(Bytes { count: n, assumed: false }),
        Value::Symbolic(expr) => sizes.dim(crate::graph::Dim::Symbolic(expr)),
        _ => Err(NoSize::NoHint),
    })
}

/// Calls `visit` with every tensor of a result, in order.
fn for_each_tensor<'g>(graph: &'g Graph, out: Out, visit: &mut impl FnMut(&'g Tensor)) {
    match out {
        Out::Tensor(tensor) => visit(graph.tensor(tensor)),
        Out::Tuple(span) | Out::Dict(span) => {
            for &part in graph.outs(span) {
                for_each_tensor(graph, part, visit);
            }
        }
        _ => {}
    }
}
