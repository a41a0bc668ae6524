//! When buffers live in an order of the nodes, and how much memory that takes.
//!
//! Source: `torch._inductor.memory` of PyTorch 2.15: `compute_memory_timeline`, `estimate_peak_memory`,
//! `estimate_peak_memory_allocfree`, `live_memory_before_steps_from_buf_info_list`, `estimate_region_memory`.

use super::planning::Planning;
use super::program::{BufferId, NodeIndex, Program, ProgramFault};

/// The life of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// The buffer.
    pub buffer: BufferId,
    /// Bytes added at its start.
    pub alloc: i64,
    /// Bytes given back after its end.
    pub free: i64,
    /// The step that makes it; 0 for an input, which is there before.
    pub start: u32,
    /// The last step that needs it; `None`: it is never freed.
    pub end: Option<u32>,
}

/// The lives of all buffers in one order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timeline {
    /// Freeable inputs, then buffers in the order of their definition.
    pub records: Vec<Record>,
    /// Of each buffer the node at whose end it is freed.
    pub last_use: Vec<Option<NodeIndex>>,
    /// How many steps there are.
    pub steps: usize,
    /// How many of the records are inputs.
    pub inputs: usize,
}

/// The place of each node in an order.
pub fn steps_of(nodes: usize, order: &[NodeIndex]) -> Result<Vec<u32>, ProgramFault> {
    let mut step = vec![u32::MAX; nodes];
    let mut found = 0;
    for (i, &node) in order.iter().enumerate() {
        if let Some(slot) = step.get_mut(node as usize).filter(|slot| **slot == u32::MAX) {
            *slot = i as u32;
            found += 1;
        }
    }
    let whole = found == nodes && order.len() == nodes;
    if whole { Ok(step) } else { Err(ProgramFault::NotAPermutation { expected: nodes, found }) }
}

impl Timeline {
    /// The lives of the buffers of `program` when its nodes run in `order`.
    pub fn new(
        program: &Program,
        planning: &Planning,
        order: &[NodeIndex],
    ) -> Result<Timeline, ProgramFault> {
        let step = steps_of(program.nodes.len(), order)?;
        let mut timeline = Timeline {
            records: Vec::with_capacity(program.buffers.len()),
            last_use: vec![None; program.buffers.len()],
            steps: order.len(),
            inputs: planning.freeable.len(),
        };
        let last =
            |buffer: BufferId| planning.life.of(buffer).iter().copied().max_by_key(|&n| step[n as usize]);
        let mut record = |buffer: BufferId, start: u32, by: Option<NodeIndex>| {
            let size = planning.sizes[buffer as usize];
            let end = match planning.kept[buffer as usize] {
                true => None,
                // An input that is only waited for has no use: it goes after the first step.
                false => {
                    let node = last(buffer).or(by);
                    timeline.last_use[buffer as usize] = node.or(order.first().copied());
                    Some(node.map_or(0, |node| step[node as usize]))
                }
            };
            timeline.records.push(Record { buffer, alloc: size.alloc, free: size.free, start, end });
        };
        for &input in &planning.freeable {
            record(input, 0, None);
        }
        for (i, &node) in order.iter().enumerate() {
            for &output in &program.nodes[node as usize].outputs {
                record(output, i as u32, Some(node));
            }
        }
        Ok(timeline)
    }

    /// The peak, and live bytes after the allocations of each step with the frees of the steps before; one more
    /// value after the last step.
    pub fn estimate(&self) -> Option<(i64, Vec<i64>)> {
        let mut slots = vec![0i64; self.steps + 1];
        for record in &self.records {
            let start = slots.get_mut(record.start as usize)?;
            *start = start.checked_add(record.alloc)?;
            if let Some(end) = record.end {
                let after = slots.get_mut(end as usize + 1)?;
                *after = after.checked_sub(record.free)?;
            }
        }
        let (mut live, mut peak) = (0i64, 0i64);
        for slot in &mut slots {
            live = live.checked_add(*slot)?;
            *slot = live;
            peak = peak.max(live);
        }
        Some((peak, slots))
    }

    /// The peak with the phases of each step.
    pub fn phases(&self) -> Option<Phases> {
        let mut phases = Phases { peak: 0, steps: vec![Phase::default(); self.steps] };
        for (i, record) in self.records.iter().enumerate() {
            // PyTorch adds inputs to the first step; they are there before, in no step's allocations.
            if let Some(step) = phases.steps.get_mut(record.start as usize)
                && i >= self.inputs
            {
                step.alloc = step.alloc.checked_add(record.alloc)?;
            }
            if let Some(step) = record.end.and_then(|end| phases.steps.get_mut(end as usize)) {
                step.free = step.free.checked_add(record.free)?;
            }
        }
        let mut live = self.records[..self.inputs].iter().try_fold(0i64, |n, r| n.checked_add(r.alloc))?;
        phases.peak = if self.steps == 0 { live } else { 0 };
        for step in &mut phases.steps {
            live = live.checked_add(step.alloc)?;
            step.post_alloc = live;
            live = live.checked_sub(step.free)?;
            step.post_free = live;
            phases.peak = phases.peak.max(step.post_alloc);
        }
        Some(phases)
    }

    /// Live bytes before each step, and after the last one.
    pub fn live_before_steps(&self) -> Option<Vec<i64>> {
        let mut slots = vec![0i64; self.steps + 1];
        for (i, record) in self.records.iter().enumerate() {
            let start = if i < self.inputs { 0 } else { record.start as usize + 1 };
            let slot = slots.get_mut(start)?;
            *slot = slot.checked_add(record.alloc)?;
            if let Some(end) = record.end {
                let slot = slots.get_mut(end as usize + 1)?;
                *slot = slot.checked_sub(record.free)?;
            }
        }
        let mut live = 0i64;
        for slot in &mut slots {
            live = live.checked_add(*slot)?;
            *slot = live;
        }
        Some(slots)
    }
}

/// The memory of one step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Phase {
    /// Bytes allocated.
    pub alloc: i64,
    /// Bytes freed.
    pub free: i64,
    /// Live bytes after the allocations.
    pub post_alloc: i64,
    /// Live bytes after the frees.
    pub post_free: i64,
}

/// The memory of all steps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Phases {
    /// The most bytes after allocations.
    pub peak: i64,
    /// Step by step.
    pub steps: Vec<Phase>,
}

/// The memory of a window of steps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    /// The most bytes that are live.
    pub peak: i64,
    /// Live bytes before each step of the window, and after it.
    pub before: Vec<i64>,
    /// Live bytes after the allocations of each step.
    pub after: Vec<i64>,
}

/// The memory of a proposed order of the nodes in the steps `start..=end`: `window` are these nodes in the order
/// proposed, `step` the step of every node by the proposal, `live` the live bytes before. `None` where a node of the
/// window lies outside of it, or sums do not fit 64 bits.
pub fn estimate_region(
    program: &Program,
    planning: &Planning,
    window: &[NodeIndex],
    (start, end): (u32, u32),
    step: &dyn Fn(NodeIndex) -> u32,
    live: i64,
) -> Option<Region> {
    let length = end.checked_sub(start)? as usize + 1;
    let mut region = vec![(0i64, 0i64); length];
    for &node in window {
        let at = step(node);
        let slot = region.get_mut(at.checked_sub(start)? as usize)?;
        for &output in &program.nodes.get(node as usize)?.outputs {
            let size = planning.sizes[output as usize];
            slot.0 = slot.0.checked_add(size.alloc)?;
            if !planning.kept[output as usize] && planning.life.of(output).is_empty() {
                slot.1 = slot.1.checked_add(size.free)?;
            }
        }
        for &buffer in planning.needs.of(node) {
            let last = planning.life.of(buffer).iter().map(|&n| step(n)).max();
            if !planning.kept[buffer as usize] && last == Some(at) {
                slot.1 = slot.1.checked_add(planning.sizes[buffer as usize].free)?;
            }
        }
    }
    let mut result =
        Region { peak: live, before: Vec::with_capacity(length + 1), after: Vec::with_capacity(length) };
    let mut live = live;
    for (alloc, free) in region {
        result.before.push(live);
        live = live.checked_add(alloc)?;
        result.after.push(live);
        result.peak = result.peak.max(live);
        live = live.checked_sub(free)?;
    }
    result.before.push(live);
    Some(result)
}
