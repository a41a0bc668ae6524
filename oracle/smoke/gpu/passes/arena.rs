//! Pass 6: one block of memory, and every buffer where memory is free first.
//!
//! A buffer may take the bytes of another one as soon as that one's free is enqueued, if both stand on one stream. So a
//! use that comes after the free, or that nothing orders before it, meets other data.

use crate::gpu::device::{GUARD_BYTES, Placement};
use crate::gpu::plan::{Action, Lane, Origin, Plan};
use crate::gpu::report::{Finding, Kind};
use crate::lifecycle::{self, check_arena};
use std::collections::BTreeMap;

/// Offsets of all buffers: first fit, in the order of the allocations, each stream that allocates in its own part. What is
/// freed on another stream is not used again.
pub fn earliest(plan: &Plan) -> Vec<u64> {
    let mut offsets = vec![0; plan.buffers.len()];
    let mut base = 0;
    for (stream, of) in (0..).zip(&plan.streams) {
        // Free bytes of this stream, from where to where, and where the buffers are that take the others.
        let (mut gaps, mut taken) = (BTreeMap::from([(base, u64::MAX)]), BTreeMap::new());
        let mut top = base;
        let size = |buffer: u32| aligned(plan.buffers[buffer as usize].bytes);
        let mut place = |buffer: u32, gaps: &mut BTreeMap<u64, u64>, taken: &mut BTreeMap<u32, u64>| {
            let size = size(buffer);
            let gap = gaps.iter().find(|&(start, end)| end - start >= size);
            let Some((at, end)) = gap.map(|(&start, &end)| (start, end)) else { return };
            gaps.remove(&at);
            if at + size < end {
                gaps.insert(at + size, end);
            }
            offsets[buffer as usize] = at;
            taken.insert(buffer, at);
            top = top.max(at + size);
        };
        for (number, buffer) in plan.buffers.iter().enumerate() {
            if buffer.rank == of.rank && of.lane == Lane::Compute && buffer.origin != Origin::Made {
                place(number as u32, &mut gaps, &mut taken);
            }
        }
        for command in plan.commands.iter().filter(|command| command.stream == stream) {
            match command.action {
                Action::Alloc(buffer) => place(buffer, &mut gaps, &mut taken),
                Action::Free(buffer) => {
                    if let Some(at) = taken.remove(&buffer) {
                        free(&mut gaps, at, size(buffer));
                    }
                }
                _ => {}
            }
        }
        base = top;
    }
    offsets
}

/// Adds free bytes, and joins them with those beside them.
fn free(gaps: &mut BTreeMap<u64, u64>, start: u64, size: u64) {
    let end = gaps.remove(&(start + size)).unwrap_or(start + size);
    match gaps.range_mut(..start).next_back() {
        Some((_, before)) if *before == start => *before = end,
        _ => drop(gaps.insert(start, end)),
    }
}

/// The placement, and the buffers that share bytes while both live.
pub(super) fn placed(plan: &Plan, offsets: &[u64]) -> (Placement, Vec<Finding>) {
    let last = plan.commands.len() as u32;
    let mut lives: Vec<(u32, u32)> = plan.buffers.iter().map(|_| (0, last)).collect();
    for (at, command) in plan.commands.iter().enumerate() {
        match command.action {
            Action::Alloc(buffer) => lives[buffer as usize].0 = at as u32 + 1,
            Action::Free(buffer) => lives[buffer as usize].1 = at as u32 + 1,
            _ => {}
        }
    }
    let placements: Vec<lifecycle::Placement> = plan
        .buffers
        .iter()
        .zip(&lives)
        .zip(offsets)
        .map(|((buffer, &(start, end)), &offset)| lifecycle::Placement {
            name: buffer.to_string(),
            offset: offset as i64,
            bytes: buffer.bytes as i64,
            start,
            end: end.max(start),
            in_place_of: None,
        })
        .collect();
    let ends = plan.buffers.iter().zip(offsets).map(|(buffer, &offset)| offset + aligned(buffer.bytes));
    let bytes = ends.max().unwrap_or(0);
    let faults = check_arena(&placements, Some(bytes as i64));
    let findings = faults.iter().map(|fault| Finding::new(Kind::Overlap, fault.to_string())).collect();
    (Placement::Arena { offsets: offsets.to_vec(), bytes }, findings)
}

fn aligned(bytes: u64) -> u64 {
    bytes.div_ceil(GUARD_BYTES) * GUARD_BYTES
}
