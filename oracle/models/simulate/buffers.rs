//! What a graph keeps in memory while it runs, in one list: each buffer with its maker, its size and its users.
//!
//! This is the slow and obvious model of the scheduler's memory (`torch._inductor.memory`): a buffer is allocated
//! whole when its maker runs and freed after its last user, whatever the order of the list. Aliases count once, on
//! the storage that they show, and whoever uses an alias uses the storage. A wait uses the inputs of its collective.
//! Graph outputs are never freed. Inputs whose names say that the caller keeps them (`primals_`, `arg`, ...), and
//! constants, do not count; other inputs are there from the beginning and freed after their last user. An input that
//! nobody uses is gone before anything happens.
//!
//! It does not know allocators, padding or streams. Sizes are by hint; a size without a hint counts 0.

use crate::analysis::storages::Storages;
use crate::analysis::{Collectives, Edges};
use crate::graph::{Graph, NodeId, Op};
use crate::ops::Ops;

/// A buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Buffer {
    /// The node that makes it; `None` for an input.
    pub by: Option<NodeId>,
    /// Bytes allocated when it is made.
    pub alloc: i64,
    /// Bytes freed when it dies.
    pub free: i64,
    /// Whether it is never freed.
    pub stays: bool,
    /// The nodes that use it, its maker aside, in list order.
    pub users: Vec<NodeId>,
}

/// The buffers of one graph.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Buffers {
    /// In order of allocation.
    pub buffers: Vec<Buffer>,
    /// The nodes that make a buffer of which no size is known; it counts 0.
    pub unknown: Vec<NodeId>,
}

/// The most bytes that are live at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peak {
    /// Bytes.
    pub bytes: i64,
    /// The first step at which they are live.
    pub step: usize,
}

/// Prefixes of inputs that the caller keeps. Source: `torch/_inductor/memory.py`, `get_freeable_input_buf`.
const KEPT: &[&str] = &["primals_", "arg", "fwd_rng_state", "bwd_rng_state", "tangents"];

impl Buffers {
    /// The buffers of a graph.
    pub fn of(graph: &Graph) -> Buffers {
        let ops = Ops::of(graph);
        let (edges, collectives) = (Edges::new(graph), Collectives::new(graph, &ops));
        let storages = Storages::new(graph, &ops, &edges, &collectives, Default::default());
        Buffers::new(graph, &edges, &storages)
    }

    /// The same from what is known of the graph. Linear in it.
    pub fn new(graph: &Graph, edges: &Edges, storages: &Storages) -> Buffers {
        let mut users: Vec<Vec<NodeId>> = vec![Vec::new(); storages.len()];
        let mut stays = vec![false; storages.len()];
        // All pieces of a split are in one storage, and each has a user of all of them.
        let shown = storages.shown(graph);
        for id in graph.ids() {
            for &storage in edges.inputs(id).iter().flat_map(|input| &shown[input.index()]) {
                users[storage.index()].push(id);
                stays[storage.index()] |= graph.node(id).op == Op::Output;
            }
            for access in storages.accesses_by(id).iter().chain(storages.kept_by(id)) {
                users[access.part.storage.index()].push(id);
            }
        }
        let (mut buffers, mut unknown) = (Vec::with_capacity(storages.len()), Vec::new());
        for (id, mut users) in storages.ids().zip(users) {
            let storage = storages.storage(id);
            let made = !storage.external && graph.node(storage.by).op == Op::Call;
            let is_kept = |name: &str| KEPT.iter().any(|prefix| name.starts_with(prefix));
            if !made && (graph.node(storage.by).op != Op::Placeholder || is_kept(graph.name(storage.by))) {
                continue;
            }
            let hinted = || {
                let tensor = storages.tensor(storage.by, storage.place as usize)?;
                graph.bytes(graph.tensor(tensor))
            };
            let bytes = storage.bytes.or_else(hinted);
            if bytes.is_none() {
                unknown.push(storage.by);
            }
            let bytes = bytes.unwrap_or(0).max(0);
            users.sort_unstable();
            users.dedup();
            users.retain(|&user| user != storage.by && graph.node(user).op == Op::Call);
            if !made && users.is_empty() && !stays[id.index()] {
                continue;
            }
            buffers.push(Buffer {
                by: made.then_some(storage.by),
                alloc: bytes,
                free: bytes,
                stays: stays[id.index()],
                users,
            });
        }
        Buffers { buffers, unknown }
    }

    /// The peak when node `n` runs in step `step_of[n]`; nodes without a step do not run. All allocations of a step
    /// come before its frees.
    pub fn peak(&self, step_of: &[Option<usize>], steps: usize) -> Peak {
        let mut change = vec![0i64; steps + 2];
        let step = |node: &NodeId| step_of.get(node.index()).copied().flatten();
        let mut live = 0i64;
        for buffer in &self.buffers {
            let made = buffer.by.as_ref().and_then(step);
            match (buffer.by, made) {
                (None, _) => live = live.saturating_add(buffer.alloc),
                (Some(_), Some(made)) => change[made] += buffer.alloc,
                (Some(_), None) => continue,
            }
            if !buffer.stays {
                let last = buffer.users.iter().filter_map(step).max().or(made).unwrap_or(0);
                change[last + 1] -= buffer.free;
            }
        }
        let mut peak = Peak { bytes: live, step: 0 };
        for (step, change) in change.iter().take(steps).enumerate() {
            live = live.saturating_add(*change);
            if live > peak.bytes {
                peak = Peak { bytes: live, step };
            }
        }
        peak
    }

    /// The peak when these nodes run one after the other.
    pub fn peak_of_order(&self, order: &[NodeId]) -> Peak {
        let nodes = order.iter().map(|id| id.index() + 1).max().unwrap_or(0);
        let mut step_of = vec![None; nodes];
        for (step, id) in order.iter().enumerate() {
            step_of[id.index()] = Some(step);
        }
        self.peak(&step_of, order.len())
    }
}
