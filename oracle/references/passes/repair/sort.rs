//! The walk itself, over any source of dependencies.

use crate::graph::NodeId;

const NONE: u32 = u32::MAX;

/// Scratch space of the walk, kept between calls so that sorting a small slice of a large graph costs what the
/// slice costs.
#[derive(Clone, Debug, Default)]
pub struct Sorter {
    /// Position of each node in the list being sorted; `NONE` outside a call.
    slot: Vec<u32>,
}

impl Sorter {
    /// The order of `list` by the rule of the [module](super). `deps` appends the dependencies of a node, in
    /// order; those that are not in `list` count as placed. Linear in nodes and dependencies. On failure: the
    /// nodes that could not be placed, in list order; at least one cycle runs among them.
    pub fn order(
        &mut self,
        list: &[NodeId],
        mut deps: impl FnMut(NodeId, &mut Vec<NodeId>),
    ) -> Result<Vec<NodeId>, Vec<NodeId>> {
        let slots = list.iter().map(|id| id.index() + 1).max().unwrap_or(0);
        if self.slot.len() < slots {
            self.slot.resize(slots, NONE);
        }
        for (i, id) in list.iter().enumerate() {
            self.slot[id.index()] = i as u32;
        }
        // Dependencies as slots, in rows.
        let mut end = Vec::with_capacity(list.len());
        let mut rows: Vec<u32> = Vec::with_capacity(2 * list.len());
        let mut found = Vec::new();
        let mut sorted = true;
        for (i, &id) in list.iter().enumerate() {
            found.clear();
            deps(id, &mut found);
            let slot = |dep: &NodeId| self.slot.get(dep.index()).copied().filter(|&s| s != NONE);
            let start = rows.len();
            rows.extend(found.iter().filter_map(slot));
            sorted &= rows[start..].iter().all(|&dep| (dep as usize) < i);
            end.push(rows.len() as u32);
        }
        for id in list {
            self.slot[id.index()] = NONE;
        }
        if sorted {
            return Ok(list.to_vec());
        }
        let (order, ready) = walk(end, &rows);
        if order.len() == list.len() {
            return Ok(order.into_iter().map(|i| list[i as usize]).collect());
        }
        Err(list.iter().zip(ready).filter(|&(_, ready)| !ready).map(|(&id, _)| id).collect())
    }
}

/// `end[i]` is where the row of node `i` ends in `rows`; it starts where the previous one ends.
fn walk(mut end: Vec<u32>, rows: &[u32]) -> (Vec<u32>, Vec<bool>) {
    let n = end.len();
    let start: Vec<u32> = std::iter::once(0).chain(end.iter().copied()).take(n).collect();
    let mut ready = vec![false; n];
    let mut order = Vec::with_capacity(n);
    let mut pending: Vec<u32> = (0..n as u32).rev().collect();
    // Waiting lists: a node waits for one thing at a time, so one link per node is enough.
    let (mut first, mut last, mut next) = (vec![NONE; n], vec![NONE; n], vec![NONE; n]);
    while let Some(node) = pending.pop() {
        let i = node as usize;
        // What was ready stays ready: the scan goes on where it stopped the last time.
        while end[i] > start[i] && ready[rows[end[i] as usize - 1] as usize] {
            end[i] -= 1;
        }
        if end[i] > start[i] {
            let dep = rows[end[i] as usize - 1] as usize;
            match last[dep] {
                NONE => first[dep] = node,
                tail => next[tail as usize] = node,
            }
            last[dep] = node;
            continue;
        }
        ready[i] = true;
        order.push(node);
        let mark = pending.len();
        let mut waiter = first[i];
        while waiter != NONE {
            pending.push(waiter);
            waiter = std::mem::replace(&mut next[waiter as usize], NONE);
        }
        pending[mark..].reverse();
    }
    (order, ready)
}

/// Drops from `deps[start..]` what occurred before in it.
pub(super) fn keep_first(deps: &mut Vec<NodeId>, start: usize) {
    let len = deps.len() - start;
    if len < 2 {
        return;
    }
    if len <= 16 {
        let mut kept = start;
        for i in start..deps.len() {
            if !deps[start..kept].contains(&deps[i]) {
                deps[kept] = deps[i];
                kept += 1;
            }
        }
        deps.truncate(kept);
        return;
    }
    let mut seen = rustc_hash::FxHashSet::default();
    let mut kept = start;
    for i in start..deps.len() {
        if seen.insert(deps[i]) {
            deps[kept] = deps[i];
            kept += 1;
        }
    }
    deps.truncate(kept);
}
