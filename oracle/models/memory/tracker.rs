//! Live bytes while nodes are scheduled in any order.
//!
//! Source: `torch._inductor.fx_passes.memory_estimator.MemoryTracker` of PyTorch 2.15. Who allocates a storage and
//! who uses it is taken from the original order; a storage is freed once all its users, the output included, are
//! scheduled. On the original order the tracker tells the same peak as the profile, and after each node the
//! profile's second entry of that node.

use super::ledger::Ledger;
use super::profile::Releasable;
use super::steps::{self, Devices, MemoryFault};
use crate::graph::{Graph, NodeId, Op};

/// Why a node cannot be scheduled now.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TrackerFault {
    /// It was scheduled before.
    #[error("{0} is scheduled twice")]
    Twice(String),
    /// It uses a storage that is not live.
    #[error("{node} uses a storage of {of}, which is not live")]
    NotLive {
        /// The node.
        node: String,
        /// The storage's allocator.
        of: String,
    },
    /// It is none of the graph's nodes.
    #[error("node {0} is none of the graph")]
    Foreign(u32),
    /// The live bytes do not fit 64 bits.
    #[error("the live bytes do not fit 64 bits at {0}")]
    TooLarge(String),
}

/// Live bytes of a schedule that grows node by node.
pub struct Tracker<'a> {
    graph: &'a Graph,
    ledger: &'a Ledger,
    sizes: Vec<i64>,
    counted: Vec<bool>,
    releasable: Vec<bool>,
    live: Vec<bool>,
    scheduled: Vec<bool>,
    /// For each node how many distinct users are not scheduled yet.
    waiting: Vec<u32>,
    /// For each storage how many of the nodes that show it have such users.
    held: Vec<u32>,
    first_resize: Vec<u32>,
    current: i64,
    peak: i64,
    last_peak: i64,
}

impl<'a> Tracker<'a> {
    /// Nothing scheduled: inputs and constants are live.
    pub fn new(
        graph: &'a Graph,
        ledger: &'a Ledger,
        devices: Devices,
        releasable: Releasable,
    ) -> Result<Tracker<'a>, MemoryFault> {
        let (sizes, _) = steps::sizes_of(graph, ledger, devices)?;
        let counted: Vec<bool> = ledger.entries.iter().map(|e| devices.count(graph, e.device)).collect();
        let mut may_go: Vec<bool> = ledger.entries.iter().map(|e| releasable(graph, e.by)).collect();
        let mut waiting = vec![0u32; graph.len()];
        let mut seen = vec![NodeId(u32::MAX); graph.len()];
        for id in graph.ids() {
            graph.for_each_input(id, &mut |input| {
                if seen.get(input.index()).is_some_and(|&last| last != id) {
                    seen[input.index()] = id;
                    waiting[input.index()] += 1;
                }
            });
        }
        let mut held = vec![0u32; ledger.entries.len()];
        for id in graph.ids() {
            let is_kept = graph.node(id).op == Op::Placeholder && !releasable(graph, id);
            for &storage in ledger.shown(id) {
                held[storage as usize] += u32::from(waiting[id.index()] > 0);
                may_go[storage as usize] &= !is_kept;
            }
        }
        let mut current = 0i64;
        for (entry, &bytes) in ledger.entries.iter().zip(&sizes).filter(|(entry, _)| entry.external) {
            let too_large = || MemoryFault::TooLarge(graph.name(entry.by).to_string());
            current = current.checked_add(bytes).ok_or_else(too_large)?;
        }
        let live = ledger.entries.iter().map(|entry| entry.external).collect();
        let first_resize = (0..=graph.len() as u32)
            .map(|id| ledger.resizes.partition_point(|resize| resize.node.0 < id) as u32)
            .collect();
        Ok(Tracker {
            graph,
            ledger,
            sizes,
            counted,
            releasable: may_go,
            live,
            scheduled: vec![false; graph.len()],
            waiting,
            held,
            first_resize,
            current,
            peak: current,
            last_peak: current,
        })
    }

    /// Live bytes after what was scheduled.
    pub fn current(&self) -> i64 {
        self.current
    }

    /// The most bytes that were live at once.
    pub fn peak(&self) -> i64 {
        self.peak
    }

    /// Live bytes after the allocations of the last call that was scheduled.
    pub fn last_peak(&self) -> i64 {
        self.last_peak
    }

    /// Schedules a node. After an error the tracker is as it was before.
    pub fn schedule(&mut self, node: NodeId) -> Result<(), TrackerFault> {
        let name = |id: NodeId| self.graph.name(id).to_string();
        if node.index() >= self.scheduled.len() {
            return Err(TrackerFault::Foreign(node.0));
        }
        if self.scheduled[node.index()] {
            return Err(TrackerFault::Twice(name(node)));
        }
        if self.graph.node(node).op != Op::Call {
            self.scheduled[node.index()] = true;
            self.release(node, false);
            return Ok(());
        }
        for input in self.graph.inputs(node) {
            let dead = |&&s: &&u32| self.counted[s as usize] && !self.live[s as usize];
            if let Some(&storage) = self.ledger.shown(input).iter().find(dead) {
                let of = name(self.ledger.entries[storage as usize].by);
                return Err(TrackerFault::NotLive { node: name(node), of });
            }
        }
        let fresh = |&&s: &&u32| self.ledger.entries[s as usize].by == node && !self.live[s as usize];
        let mut peak = Some(self.current);
        for &storage in self.ledger.shown(node).iter().filter(fresh) {
            peak = peak.and_then(|peak| peak.checked_add(self.sizes[storage as usize]));
        }
        let mut shrinks = 0i64;
        for resize in self.resizes(node) {
            let storage = resize.storage as usize;
            if let (Ok(bytes), true, true) = (resize.bytes, self.counted[storage], self.live[storage]) {
                let grows = bytes.count - self.sizes[storage];
                peak = peak.and_then(|peak| peak.checked_add(grows.max(0)));
                shrinks += (-grows).max(0);
            }
        }
        let peak = peak.ok_or_else(|| TrackerFault::TooLarge(name(node)))?;
        self.scheduled[node.index()] = true;
        for &storage in self.ledger.shown(node) {
            self.live[storage as usize] |= self.ledger.entries[storage as usize].by == node;
        }
        for i in self.first_resize[node.index()]..self.first_resize[node.index() + 1] {
            let resize = self.ledger.resizes[i as usize];
            if let (Ok(bytes), true) = (resize.bytes, self.counted[resize.storage as usize]) {
                self.sizes[resize.storage as usize] = bytes.count;
            }
        }
        self.peak = self.peak.max(peak);
        self.last_peak = peak;
        self.current = peak - shrinks;
        self.release(node, true);
        Ok(())
    }

    fn resizes(&self, node: NodeId) -> &'a [super::Resize] {
        let range = self.first_resize[node.index()]..self.first_resize[node.index() + 1];
        &self.ledger.resizes[range.start as usize..range.end as usize]
    }

    /// `node` needs its inputs no more; `frees`: what nobody needs any more goes.
    fn release(&mut self, node: NodeId, frees: bool) {
        let ledger = self.ledger;
        for input in self.graph.inputs(node) {
            // A reference outside the graph is a fault that the validator reports.
            let Some(waiting) = self.waiting.get_mut(input.index()) else { continue };
            *waiting -= 1;
            if *waiting > 0 {
                continue;
            }
            for &storage in ledger.shown(input) {
                self.held[storage as usize] -= 1;
                if self.held[storage as usize] == 0 && frees {
                    self.free(storage as usize);
                }
            }
        }
        if frees {
            for &storage in ledger.shown(node) {
                if self.held[storage as usize] == 0 {
                    self.free(storage as usize);
                }
            }
        }
    }

    fn free(&mut self, storage: usize) {
        if self.releasable[storage] && self.live[storage] {
            self.live[storage] = false;
            self.current -= self.sizes[storage];
        }
    }
}
