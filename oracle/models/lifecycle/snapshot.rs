//! A memory snapshot, judged: what PyTorch's allocator did, event by event.
//!
//! # The idea
//!
//! The blocks that are held are kept by their addresses. An event that cannot be right is a fault: memory is given away
//! that somebody holds, or that another stream may still use (its free is requested and not completed), or it is given
//! back twice. The rest is arithmetic: the most bytes held, the most that were reserved, what is held at the end.
//!
//! A trace is a ring: its beginning may be lost. So what is freed without having been allocated was there before, and
//! the blocks of the state that the trace does not mention were too; together with them the sums are those of the
//! process.
//!
//! Whoever records may leave out actions (`skip_actions`). An action that does not occur is taken as left out, and what
//! would rest on it is not judged; the notes say so. That a trace has no gaps in its middle is a premise.
//!
//! # What it does not do
//!
//! A snapshot says nothing of reads and writes. Nor does it say which blocks should have been freed: what is held at
//! the end is told, and is no fault.

use super::verifier::FaultKind;
use crate::format::memory_snapshot::{Action, Block, Device, Event};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fmt;

/// An event that cannot be right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotFault {
    /// What is wrong.
    pub kind: FaultKind,
    /// The device.
    pub device: usize,
    /// The number of the event in its trace, from 0 as in the file.
    pub event: usize,
    /// In words.
    pub message: String,
}

impl fmt::Display for SnapshotFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device {}, event {}: {}", self.device, self.event, self.message)
    }
}

/// Bytes, and how many blocks they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sum {
    /// Blocks.
    pub blocks: usize,
    /// Bytes that were asked for.
    pub bytes: i128,
}

impl Sum {
    fn add(&mut self, bytes: i64) {
        self.blocks += 1;
        self.bytes += i128::from(bytes);
    }
}

/// The most that there was, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Peak {
    /// Bytes.
    pub bytes: i128,
    /// After which event; `None`: before the first.
    pub event: Option<usize>,
}

impl Peak {
    fn see(&mut self, bytes: i128, event: usize) {
        if bytes > self.bytes {
            *self = Peak { bytes, event: Some(event) };
        }
    }

    fn above(self, base: i128) -> Peak {
        Peak { bytes: self.bytes + base, ..self }
    }
}

/// What the trace of a device came to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeviceReport {
    /// The device.
    pub device: usize,
    /// How many events there are.
    pub events: usize,
    /// Events that cannot be right.
    pub faults: Vec<SnapshotFault>,
    /// What was held before the first event.
    pub before: Sum,
    /// The most bytes that the program held.
    pub held: Peak,
    /// The same, with what other streams may still use.
    pub in_use: Peak,
    /// The most bytes that the allocator had taken from the device; `None` where that cannot be said.
    pub reserved: Option<Peak>,
    /// Allocations of the trace that are held at the end: their events, the largest first.
    pub at_end: Vec<usize>,
    /// What the program holds at the end.
    pub end: Sum,
    /// What is given back at the end and may still be in use.
    pub pending: Sum,
    /// Events at which memory did not suffice.
    pub out_of_memory: Vec<usize>,
    /// The bytes of every allocation, in order.
    pub allocations: Vec<i64>,
    /// What was not seen or not judged.
    pub notes: Vec<String>,
}

/// A block that somebody holds.
#[derive(Clone, Copy)]
struct Held {
    bytes: i64,
    /// The event that allocated it; `None`: it was there before.
    by: Option<usize>,
    stream: i64,
    /// The event that requested its free.
    freed: Option<usize>,
}

/// What of the events is recorded at all.
#[derive(Clone, Copy)]
struct Recorded {
    allocations: bool,
    requests: bool,
    completions: bool,
}

/// Bytes that come and go, beginning with 0, and the most that there were.
#[derive(Clone, Copy, Default)]
struct Level {
    now: i128,
    peak: Peak,
}

impl Level {
    fn rise(&mut self, bytes: i64, event: usize) {
        self.now += i128::from(bytes);
        self.peak.see(self.now, event);
    }

    fn fall(&mut self, bytes: i64) {
        self.now -= i128::from(bytes);
    }
}

struct Judge<'d, 'o> {
    device: &'d Device<'o>,
    recorded: Recorded,
    blocks: BTreeMap<i64, Held>,
    /// The last event at an address, where that gave it back.
    gone: FxHashMap<i64, usize>,
    /// By the trace alone, as if nothing had been there before.
    held: Level,
    in_use: Level,
    reserved: Level,
    /// What was given back before the first event, and not completed.
    pending_before: i128,
    report: DeviceReport,
}

/// Judges the trace of a device. n log n.
pub fn judge_device(device: &Device) -> DeviceReport {
    let has = |action: Action| device.events.iter().any(|event| event.action == action);
    let recorded = Recorded {
        allocations: has(Action::Alloc),
        requests: has(Action::FreeRequested),
        completions: has(Action::FreeCompleted),
    };
    let report =
        DeviceReport { device: device.number, events: device.events.len(), ..DeviceReport::default() };
    let level = Level::default();
    let mut judge = Judge {
        device,
        recorded,
        blocks: BTreeMap::new(),
        gone: FxHashMap::default(),
        held: level,
        in_use: level,
        reserved: level,
        pending_before: 0,
        report,
    };
    judge.say_what_is_recorded();
    for (i, event) in device.events.iter().enumerate() {
        match event.action {
            Action::Alloc => judge.alloc(i, event),
            Action::FreeRequested => judge.request(i, event),
            Action::FreeCompleted => judge.complete(i, event),
            Action::SegmentAlloc | Action::SegmentMap => judge.reserved.rise(event.bytes, i),
            Action::SegmentFree | Action::SegmentUnmap => judge.reserved.fall(event.bytes),
            Action::OutOfMemory => judge.report.out_of_memory.push(i),
            Action::Snapshot | Action::Other => {}
        }
    }
    judge.finish()
}

impl Judge<'_, '_> {
    fn note(&mut self, note: impl Into<String>) {
        self.report.notes.push(note.into());
    }

    fn say_what_is_recorded(&mut self) {
        if self.report.events == 0 {
            return self.note("the trace is empty: record with torch.cuda.memory._record_memory_history()");
        }
        if !self.recorded.allocations {
            self.note("no allocation is recorded (skip_actions?)");
        }
        match (self.recorded.requests, self.recorded.completions) {
            (false, false) => self.note("no free is recorded (skip_actions?): overlaps are not judged"),
            (true, false) => self.note("no completed free is recorded: a requested one counts as completed"),
            (false, true) => self.note("no requested free is recorded: a completed one counts as both"),
            (true, true) => {}
        }
    }

    fn fault(&mut self, kind: FaultKind, event: usize, message: String) {
        self.report.faults.push(SnapshotFault { kind, device: self.report.device, event, message });
    }

    fn alloc(&mut self, i: usize, event: &Event) {
        self.report.allocations.push(event.bytes);
        let end = event.address + event.bytes.max(1);
        let is_judged = self.recorded.requests || self.recorded.completions;
        let mut is_first = true;
        while let Some((address, block)) = self.overlapped(event.address, end) {
            // One fault for each allocation; all that lies below it is forgotten, so that it is not told again.
            if std::mem::take(&mut is_first) && is_judged {
                self.overlap(i, event, address, block);
            }
            self.blocks.remove(&address);
            self.in_use.fall(block.bytes);
            if block.freed.is_none() {
                self.held.fall(block.bytes);
            }
        }
        self.gone.remove(&event.address);
        let block = Held { bytes: event.bytes, by: Some(i), stream: event.stream, freed: None };
        self.blocks.insert(event.address, block);
        self.held.rise(event.bytes, i);
        self.in_use.rise(event.bytes, i);
    }

    /// A block that shares a byte with these.
    fn overlapped(&self, start: i64, end: i64) -> Option<(i64, Held)> {
        let before = self.blocks.range(..=start).next_back();
        let before = before.filter(|(at, block)| **at + block.bytes.max(1) > start);
        before.or_else(|| self.blocks.range(start..end).next()).map(|(&address, &block)| (address, block))
    }

    fn overlap(&mut self, i: usize, event: &Event, address: i64, block: Held) {
        let of = match block.by {
            Some(by) => {
                format!("{} bytes at {address:#x} (event {by}, stream {})", block.bytes, block.stream)
            }
            None => format!("{} bytes at {address:#x}, which were there before", block.bytes),
        };
        let (kind, why) = match block.freed {
            None => (FaultKind::AllocatedTwice, "which the program holds".to_string()),
            Some(freed) => {
                let why = format!(
                    "whose free is requested (event {freed}) and not completed: a stream may use them"
                );
                (FaultKind::UseAfterFree, why)
            }
        };
        let (bytes, at, stream) = (event.bytes, event.address, event.stream);
        self.fault(
            kind,
            i,
            format!("{bytes} bytes at {at:#x} are allocated for stream {stream} over {of}, {why}"),
        );
    }

    /// The block at an address that is given back; one that was there before where none is known.
    fn block_at(&mut self, i: usize, event: &Event) -> Option<Held> {
        let address = event.address;
        if let Some(block) = self.blocks.get(&address) {
            return Some(*block);
        }
        // Where allocations are not recorded, it may be another block at the same place.
        if let Some(first) = self.gone.get(&address).filter(|_| self.recorded.allocations) {
            let message = format!("the block at {address:#x} is freed twice: first in event {first}");
            self.fault(FaultKind::FreedTwice, i, message);
            return None;
        }
        Some(Held { bytes: event.bytes, by: None, stream: event.stream, freed: None })
    }

    fn request(&mut self, i: usize, event: &Event) {
        let Some(block) = self.block_at(i, event) else { return };
        if let Some(first) = block.freed {
            let message = format!("the block at {:#x} is freed twice: first in event {first}", event.address);
            return self.fault(FaultKind::FreedTwice, i, message);
        }
        self.let_go(block);
        if self.recorded.completions {
            self.blocks.insert(event.address, Held { freed: Some(i), ..block });
        } else {
            self.vanish(i, event.address, block);
        }
    }

    fn complete(&mut self, i: usize, event: &Event) {
        let Some(block) = self.block_at(i, event) else { return };
        match (block.freed, block.by) {
            (Some(_), _) => {}
            // Its request was recorded before the trace begins.
            (None, None) if self.recorded.requests => self.pending_before += i128::from(block.bytes),
            _ => self.let_go(block),
        }
        self.vanish(i, event.address, block);
    }

    /// The program does not hold it any more.
    fn let_go(&mut self, block: Held) {
        if block.by.is_none() {
            self.report.before.add(block.bytes);
        }
        self.held.fall(block.bytes);
    }

    /// Nobody uses it any more.
    fn vanish(&mut self, i: usize, address: i64, block: Held) {
        self.in_use.fall(block.bytes);
        self.blocks.remove(&address);
        self.gone.insert(address, i);
    }

    /// Adds what the state at the end says of before, and sums up.
    fn finish(mut self) -> DeviceReport {
        let freed_of_before = self.report.before.blocks;
        if freed_of_before > 0 {
            self.note(format!(
                "{freed_of_before} blocks are freed whose allocation the trace does not have: recording began later, \
                 or the ring lost its beginning"
            ));
        }
        let mut others = 0;
        let state: FxHashMap<i64, Block> =
            self.device.blocks.iter().map(|block| (block.address, *block)).collect();
        for block in &self.device.blocks {
            match (self.blocks.get(&block.address), block.allocated) {
                (Some(known), allocated) => others += usize::from(known.freed.is_none() != allocated),
                (None, _) if self.gone.contains_key(&block.address) => others += 1,
                (None, true) => {
                    self.report.before.add(block.requested);
                    self.report.end.blocks += 1;
                }
                (None, false) => {
                    self.pending_before += i128::from(block.requested);
                    self.report.pending.add(block.requested);
                }
            }
        }
        for (address, block) in &self.blocks {
            others += usize::from(!state.contains_key(address));
            match (block.freed, block.by) {
                (Some(_), _) => self.report.pending.add(block.bytes),
                (None, Some(by)) => {
                    self.report.end.blocks += 1;
                    self.report.at_end.push(by);
                }
                (None, None) => {}
            }
        }
        let Recorded { allocations, requests, completions } = self.recorded;
        if others > 0 && allocations && requests && completions {
            let blocks = if others == 1 { "block differs" } else { "blocks differ" };
            self.note(format!(
                "{others} {blocks} between the end of the trace and the state: the program went on between the \
                 copies, so the sums may be off by them"
            ));
        }
        let size =
            |&event: &usize| std::cmp::Reverse(self.device.events.get(event).map_or(0, |event| event.bytes));
        self.report.at_end.sort_by_key(|event| (size(event), *event));
        let before = self.report.before.bytes;
        self.report.end.bytes = before + self.held.now;
        self.report.held = self.held.peak.above(before);
        self.report.in_use = self.in_use.peak.above(before + self.pending_before);
        match self.device.reserved - self.reserved.now {
            base if base >= 0 => self.report.reserved = Some(self.reserved.peak.above(base)),
            _ => self.note("the trace takes more segments than the state has: reserved bytes are not known"),
        }
        self.report
    }
}

#[cfg(test)]
mod tests;
