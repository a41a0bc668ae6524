//! The host as a device: what a device may do, done in every order that it may.
//!
//! # The idea
//!
//! Streams are queues that run when somebody synchronizes. A seed then picks which of the streams that may go on does,
//! so that one seed is one legal interleaving; without a seed, commands run in the order in which they were enqueued.
//! [`Clocks`] say for every byte whether what touches it is ordered with what touched it before: that does not depend
//! on the interleaving or on values, so a missing wait is seen in every run. Values are computed too, so that a device
//! and this one can be compared bit for bit.
//!
//! Memory is pessimistic: an allocation counts at the call, a free when the stream gets there. Freed buffers are filled
//! with poison and, outside of an arena, never used again.

mod clocks;
pub mod kernels;

pub use clocks::{Clocks, Race};

use super::device::{Description, Device, FREED, GUARD, GUARD_BYTES, Placement, Trouble, UNWRITTEN, Usage};
use super::plan::{Kernel, Launch, Part, Plan, View};
use super::report::{Finding, Kind};
use crate::semantics::observe::Observed;
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Bytes to which the host rounds allocations: whole words, as the pool of a CUDA driver counts them.
pub const GRANULARITY: u64 = 4;

#[derive(Clone, Debug)]
enum Queued {
    Alloc(u32),
    Free(u32),
    Launch(Launch),
    Record(u32),
    Wait(u32),
}

/// Where a buffer stands in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Absent,
    Live,
    Freed(usize),
}

/// The host.
pub struct Host<'a, 'o> {
    plan: &'a Plan,
    observed: &'a mut Observed<'o>,
    /// The order of streams; `None`: the order of the calls.
    order: Option<Pcg64Mcg>,
    seed: Option<u64>,
    queues: Vec<VecDeque<(usize, Queued)>>,
    calls: VecDeque<u32>,
    /// The streams whose next command may run now, and those whose next command waits for an event, by that.
    ready: BTreeSet<usize>,
    waiting: BTreeMap<u32, Vec<usize>>,
    clocks: Clocks,
    placement: Placement,
    sizes: Vec<u64>,
    states: Vec<State>,
    /// Blocks of memory: one per buffer, or one for all.
    blocks: Vec<Vec<u8>>,
    usage: Usage,
    findings: Vec<Finding>,
}

impl<'a, 'o> Host<'a, 'o> {
    /// A host for a plan and the run that it was lowered from.
    pub fn new(plan: &'a Plan, observed: &'a mut Observed<'o>, seed: Option<u64>) -> Host<'a, 'o> {
        Host {
            plan,
            observed,
            order: None,
            seed,
            queues: Vec::new(),
            calls: VecDeque::new(),
            ready: BTreeSet::new(),
            waiting: BTreeMap::new(),
            clocks: Clocks::default(),
            placement: Placement::Allocator,
            sizes: Vec::new(),
            states: Vec::new(),
            blocks: Vec::new(),
            usage: Usage::default(),
            findings: Vec::new(),
        }
    }

    /// Block and first byte of a buffer.
    fn place(&self, buffer: u32) -> (usize, u64) {
        place(&self.placement, buffer)
    }

    fn report(&mut self, finding: Finding) {
        const MOST: usize = 64;
        if self.findings.len() < MOST && !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    fn fill(&mut self, buffer: u32, word: u32) {
        let (block, base) = self.place(buffer);
        let (from, to) = (base as usize, (base + self.sizes[buffer as usize]) as usize);
        if let Some(bytes) = self.blocks[block].get_mut(from..to) {
            poison(bytes, word);
        }
    }

    /// Notes that a command touches bytes of a buffer.
    fn touch(&mut self, stream: u32, command: usize, buffer: u32, bytes: std::ops::Range<u64>, writes: bool) {
        let (block, base) = self.place(buffer);
        let place = base + bytes.start..base + bytes.end;
        if let Some(race) = self.clocks.touch(stream, command, block, &place, writes) {
            let finding = Finding::race(self.plan, race, buffer, race.byte.saturating_sub(base));
            self.report(finding);
        }
    }

    /// Notes that a kernel touches a part.
    fn touch_part(&mut self, stream: u32, command: usize, part: &Part, writes: bool) {
        let buffer = part.buffer;
        let size = self.sizes[buffer as usize];
        match self.states[buffer as usize] {
            State::Live => {}
            State::Absent => {
                let finding = Finding::at(self.plan, Kind::UseBeforeAlloc, command).of(self.plan, buffer);
                self.report(finding);
            }
            State::Freed(by) => {
                let finding = Finding::at(self.plan, Kind::UseAfterFree, command).of(self.plan, buffer);
                let finding = finding.with("freed by", self.plan.describe(by));
                self.report(finding);
            }
        }
        if part.view.end() > size {
            let past = part.view.end() - size;
            let what = if writes { "writes" } else { "reads" };
            let finding = Finding::at(self.plan, Kind::OutOfBounds, command)
                .of(self.plan, buffer)
                .with("how", format!("{what} {past} bytes past the end of {size} bytes"));
            self.report(finding);
        }
        for range in part.view.ranges() {
            self.touch(
                stream,
                command,
                buffer,
                range.start..range.end.min(size.max(range.start + 1)),
                writes,
            );
        }
    }

    fn execute(&mut self, stream: u32, command: usize, what: Queued) -> Result<(), Trouble> {
        self.clocks.advance(stream);
        match what {
            Queued::Alloc(buffer) => {
                if self.states[buffer as usize] == State::Live {
                    let finding = Finding::at(self.plan, Kind::AllocatedTwice, command).of(self.plan, buffer);
                    self.report(finding);
                }
                self.states[buffer as usize] = State::Live;
                self.touch(stream, command, buffer, 0..self.sizes[buffer as usize], true);
                self.fill(buffer, UNWRITTEN);
            }
            Queued::Free(buffer) => {
                if let State::Freed(by) = self.states[buffer as usize] {
                    let finding = Finding::at(self.plan, Kind::FreedTwice, command).of(self.plan, buffer);
                    let finding = finding.with("freed by", self.plan.describe(by));
                    self.report(finding);
                    return Ok(());
                }
                self.touch(stream, command, buffer, 0..self.sizes[buffer as usize], true);
                self.states[buffer as usize] = State::Freed(command);
                self.fill(buffer, FREED);
                self.usage.used = self.usage.used.saturating_sub(rounded(self.sizes[buffer as usize]));
            }
            Queued::Record(event) => {
                self.clocks.record(stream, event);
                for stream in self.waiting.remove(&event).unwrap_or_default() {
                    self.look_at(stream);
                }
            }
            Queued::Wait(event) => self.clocks.wait(stream, event),
            Queued::Launch(launch) => {
                for part in &launch.reads {
                    self.touch_part(stream, command, part, false);
                }
                for part in &launch.writes {
                    self.touch_part(stream, command, part, true);
                }
                self.run(&launch)?;
            }
        }
        Ok(())
    }

    fn run(&mut self, launch: &Launch) -> Result<(), Trouble> {
        let failed = |reason: String| {
            Trouble::Failed(format!("node {} of rank {}: {reason}", launch.node.0, launch.rank))
        };
        if launch.kernel == Kernel::Interpret {
            let (blocks, placement) = (&self.blocks, &self.placement);
            let plan = self.plan;
            let load = &mut |window: &crate::semantics::Window| {
                let view = View::of(window);
                let Some(buffer) = plan.buffer_of(launch.rank, window.storage) else {
                    return vec![0; view.count() * view.size()];
                };
                let (block, base) = place(placement, buffer);
                kernels::gather(&blocks[block], base as usize, &view)
            };
            let results = self.observed.evaluate(launch.rank, launch.node, load).map_err(failed)?;
            let mut writes = launch.writes.iter();
            for (window, bytes) in results {
                if View::of(&window).count() == 0 || plan.buffer_of(launch.rank, window.storage).is_none() {
                    continue;
                }
                let Some(part) = writes.next() else { break };
                let (block, base) = place(&self.placement, part.buffer);
                kernels::scatter(&bytes, &mut self.blocks[block], base as usize, &part.view);
            }
            return Ok(());
        }
        let reads: Vec<_> = launch
            .reads
            .iter()
            .map(|part| {
                let (block, base) = self.place(part.buffer);
                (part.view, kernels::gather(&self.blocks[block], base as usize, &part.view))
            })
            .collect();
        for part in &launch.writes {
            let (block, base) = self.place(part.buffer);
            let before = match launch.kernel {
                Kernel::Copy { .. } => kernels::gather(&self.blocks[block], base as usize, &part.view),
                _ => Vec::new(),
            };
            let after = kernels::compute(launch.kernel, &reads, &part.view, before).map_err(failed)?;
            kernels::scatter(&after, &mut self.blocks[block], base as usize, &part.view);
        }
        Ok(())
    }

    /// Finds out whether the head of a queue may run now.
    fn look_at(&mut self, stream: usize) {
        let runs = match self.queues[stream].front() {
            Some((_, Queued::Wait(event))) if !self.clocks.recorded(*event) => {
                self.waiting.entry(*event).or_default().push(stream);
                false
            }
            Some(_) => true,
            None => false,
        };
        match runs {
            true => self.ready.insert(stream),
            false => self.ready.remove(&stream),
        };
    }

    fn next(&mut self) -> Option<usize> {
        let Some(order) = &mut self.order else {
            let stream = self.calls.pop_front()? as usize;
            return Some(stream);
        };
        let start = order.next_u64() as usize % self.queues.len().max(1);
        self.ready.range(start..).next().or(self.ready.first()).copied()
    }
}

impl Device for Host<'_, '_> {
    fn describe(&self) -> Description {
        description()
    }

    fn begin(
        &mut self,
        streams: usize,
        events: usize,
        buffers: &[u64],
        placement: &Placement,
    ) -> Result<(), Trouble> {
        self.order = self.seed.map(|seed| Pcg64Mcg::new(u128::from(seed) << 1 | 1));
        self.queues = vec![VecDeque::new(); streams];
        self.calls.clear();
        self.ready.clear();
        self.waiting.clear();
        self.sizes = buffers.to_vec();
        self.states = vec![State::Absent; buffers.len()];
        self.usage = Usage::default();
        self.findings.clear();
        self.placement = placement.clone();
        self.blocks = match placement {
            Placement::Arena { bytes, .. } => vec![vec![0; *bytes as usize]],
            Placement::Allocator => buffers.iter().map(|&size| vec![0; size as usize]).collect(),
            Placement::Guarded => buffers
                .iter()
                .map(|&size| {
                    let mut block = vec![0; (size + 2 * GUARD_BYTES) as usize];
                    poison(&mut block[..GUARD_BYTES as usize], GUARD);
                    poison(&mut block[(GUARD_BYTES + size) as usize..], GUARD);
                    block
                })
                .collect(),
        };
        self.clocks = Clocks::new(streams, events, self.blocks.len());
        if let Placement::Arena { bytes, .. } = placement {
            (self.usage.used, self.usage.peak, self.usage.reserved) = (*bytes, *bytes, *bytes);
        }
        Ok(())
    }

    fn alloc(&mut self, stream: u32, buffer: u32, command: usize) -> Result<(), Trouble> {
        if !matches!(self.placement, Placement::Arena { .. }) {
            self.usage.used += rounded(self.sizes[buffer as usize]);
            self.usage.peak = self.usage.peak.max(self.usage.used);
            self.usage.reserved = self.usage.peak;
        }
        self.push(stream, command, Queued::Alloc(buffer))
    }

    fn free(&mut self, stream: u32, buffer: u32, command: usize) -> Result<(), Trouble> {
        self.push(stream, command, Queued::Free(buffer))
    }

    fn launch(&mut self, stream: u32, launch: &Launch, command: usize) -> Result<(), Trouble> {
        self.push(stream, command, Queued::Launch(launch.clone()))
    }

    fn record(&mut self, stream: u32, event: u32, command: usize) -> Result<(), Trouble> {
        self.push(stream, command, Queued::Record(event))
    }

    fn wait(&mut self, stream: u32, event: u32, command: usize) -> Result<(), Trouble> {
        self.push(stream, command, Queued::Wait(event))
    }

    fn spin(&mut self, _: u32, nanoseconds: u64) -> Result<(), Trouble> {
        // There is no time here: a delay picks another interleaving.
        self.order = Some(Pcg64Mcg::new(u128::from(self.seed.unwrap_or(0) ^ nanoseconds) << 1 | 1));
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), Trouble> {
        while let Some(stream) = self.next() {
            if let Some((command, what)) = self.queues[stream].pop_front() {
                self.execute(stream as u32, command, what)?;
                self.look_at(stream);
            }
        }
        let stuck: Vec<usize> =
            self.queues.iter().filter_map(|queue| queue.front().map(|(at, _)| *at)).collect();
        for command in stuck {
            let finding = Finding::at(self.plan, Kind::Deadlock, command);
            self.report(finding);
        }
        self.queues.iter_mut().for_each(VecDeque::clear);
        self.calls.clear();
        self.ready.clear();
        self.waiting.clear();
        self.clocks.synchronize();
        Ok(())
    }

    fn upload(&mut self, buffer: u32, bytes: &[u8]) -> Result<(), Trouble> {
        let (block, base) = self.place(buffer);
        if let Some(to) = self.blocks[block].get_mut(base as usize..base as usize + bytes.len()) {
            to.copy_from_slice(bytes);
        }
        Ok(())
    }

    fn download(&mut self, buffer: u32) -> Result<Vec<u8>, Trouble> {
        let (block, base) = self.place(buffer);
        let range = base as usize..(base + self.sizes[buffer as usize]) as usize;
        Ok(self.blocks[block].get(range).unwrap_or(&[]).to_vec())
    }

    fn usage(&mut self) -> Result<Usage, Trouble> {
        Ok(self.usage)
    }

    fn findings(&mut self) -> Result<Vec<Finding>, Trouble> {
        if self.placement == Placement::Guarded {
            for buffer in 0..self.sizes.len() {
                let size = self.sizes[buffer];
                let block = &self.blocks[buffer];
                let bands = [(0, GUARD_BYTES), (GUARD_BYTES + size, size + 2 * GUARD_BYTES)];
                for (from, to) in bands {
                    let band = &block[from as usize..to as usize];
                    let word = GUARD.to_le_bytes();
                    let is_guard = |(at, byte): (usize, &u8)| *byte == word[at % 4];
                    if let Some(at) = band.iter().enumerate().position(|pair| !is_guard(pair)) {
                        let finding = Finding::guard(self.plan, buffer as u32, from + at as u64, size);
                        self.findings.push(finding);
                    }
                }
            }
        }
        Ok(std::mem::take(&mut self.findings))
    }
}

impl Host<'_, '_> {
    fn push(&mut self, stream: u32, command: usize, what: Queued) -> Result<(), Trouble> {
        self.queues[stream as usize].push_back((command, what));
        if self.queues[stream as usize].len() == 1 {
            self.look_at(stream as usize);
        }
        if self.order.is_none() {
            self.calls.push_back(stream);
        }
        Ok(())
    }
}

fn place(placement: &Placement, buffer: u32) -> (usize, u64) {
    match placement {
        Placement::Arena { offsets, .. } => (0, offsets.get(buffer as usize).copied().unwrap_or(0)),
        Placement::Allocator => (buffer as usize, 0),
        Placement::Guarded => (buffer as usize, GUARD_BYTES),
    }
}

/// What the host is, as a device.
pub fn description() -> Description {
    Description {
        device: "host".to_string(),
        driver: "none".to_string(),
        kernels: "Concrete".to_string(),
        granularity: GRANULARITY,
    }
}

/// Fills bytes with a word.
pub fn poison(bytes: &mut [u8], word: u32) {
    let word = word.to_le_bytes();
    bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = word[at % 4]);
}

fn rounded(bytes: u64) -> u64 {
    bytes.div_ceil(GRANULARITY) * GRANULARITY
}
