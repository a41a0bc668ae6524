//! Pass 1: the plan as it stands, without running it.
//!
//! The commands are gone through in the order in which they are enqueued, which is itself a legal execution: whatever
//! is unordered, dead or out of bounds shows here already, for none of that depends on values.

use super::replay::BEFORE;
use crate::gpu::host::Clocks;
use crate::gpu::plan::{Action, Origin, Part, Plan};
use crate::gpu::report::{Finding, Kind};
use fixedbitset::FixedBitSet;
use std::collections::BTreeMap;

struct Inspection<'a> {
    plan: &'a Plan,
    clocks: Clocks,
    /// Whether each buffer is there; if it was freed, by which command.
    live: Vec<bool>,
    freed: Vec<Option<usize>>,
    /// Which bytes of each buffer have been written.
    written: Vec<FixedBitSet>,
    findings: Vec<Finding>,
}

/// What is wrong with a plan. Linear in its size and in the bytes of its buffers.
pub fn inspect(plan: &Plan) -> Vec<Finding> {
    let buffers = plan.buffers.len();
    let mut this = Inspection {
        plan,
        clocks: Clocks::new(plan.streams.len(), plan.events.len(), buffers),
        live: plan.buffers.iter().map(|buffer| buffer.origin != Origin::Made).collect(),
        freed: vec![None; buffers],
        written: plan
            .buffers
            .iter()
            .map(|buffer| {
                let mut written = FixedBitSet::with_capacity(buffer.bytes as usize);
                if let Origin::Given(_) = buffer.origin {
                    written.insert_range(..);
                }
                written
            })
            .collect(),
        findings: Vec::new(),
    };
    // What the caller gives was written on the stream on which it calls.
    for (number, buffer) in plan.buffers.iter().enumerate() {
        if let Origin::Given(_) = buffer.origin {
            let stream = plan.compute(buffer.rank);
            this.clocks.advance(stream);
            this.clocks.touch(stream, BEFORE, number, &(0..buffer.bytes), true);
        }
    }
    for at in 0..plan.commands.len() {
        this.command(at);
    }
    // The caller goes on, on the compute stream: it reads what it gets, and may write what it gave.
    for last in &plan.finals {
        let part = last.expected.part;
        let stream = plan.compute(last.rank);
        for range in part.view.ranges() {
            let race = this.clocks.touch(stream, plan.commands.len(), part.buffer as usize, &range, false);
            if let Some(race) = race {
                this.report(Finding::race(plan, race, part.buffer, race.byte));
            }
        }
    }
    for (number, buffer) in plan.buffers.iter().enumerate() {
        if let Origin::Given(_) = buffer.origin {
            let bytes = 0..buffer.bytes;
            let race =
                this.clocks.touch(plan.compute(buffer.rank), plan.commands.len(), number, &bytes, true);
            if let Some(race) = race {
                this.report(Finding::race(plan, race, number as u32, race.byte));
            }
        }
        if this.live[number] && buffer.origin == Origin::Made && !plan.kept.contains(&(number as u32)) {
            let finding = Finding::new(Kind::Leak, buffer.to_string());
            this.findings.push(finding.with("what", format!("{} bytes are alive at the end", buffer.bytes)));
        }
    }
    order_of_collectives(plan, &mut this.findings);
    this.findings
}

impl Inspection<'_> {
    fn report(&mut self, finding: Finding) {
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    fn command(&mut self, at: usize) {
        let plan = self.plan;
        let command = &plan.commands[at];
        let stream = command.stream;
        self.clocks.advance(stream);
        match &command.action {
            &Action::Alloc(buffer) => {
                if self.live[buffer as usize] {
                    self.report(Finding::at(plan, Kind::AllocatedTwice, at).of(plan, buffer));
                }
                self.live[buffer as usize] = true;
                self.touch(at, buffer, 0..plan.buffers[buffer as usize].bytes, true);
            }
            &Action::Free(buffer) => {
                if !self.live[buffer as usize] {
                    self.report(Finding::at(plan, Kind::FreedTwice, at).of(plan, buffer));
                }
                self.live[buffer as usize] = false;
                self.freed[buffer as usize] = Some(at);
                self.touch(at, buffer, 0..plan.buffers[buffer as usize].bytes, true);
            }
            Action::Launch(launch) => {
                let step = &plan.steps[command.step as usize];
                let known = step.expected.iter().all(|expected| expected.content.known.is_empty());
                for part in &launch.reads {
                    self.part(at, part, false);
                    if known {
                        self.unwritten(at, part);
                    }
                }
                for part in &launch.writes {
                    self.part(at, part, true);
                    for range in part.view.ranges() {
                        let written = &mut self.written[part.buffer as usize];
                        let end = (range.end as usize).min(written.len());
                        written.insert_range((range.start as usize).min(end)..end);
                    }
                }
            }
            &Action::Record(event) => self.clocks.record(stream, event),
            &Action::Wait(event) => match self.clocks.recorded(event) {
                true => self.clocks.wait(stream, event),
                false => self.report(
                    Finding::at(plan, Kind::Deadlock, at)
                        .with("what", "the event is not recorded before: on a device the wait does nothing"),
                ),
            },
        }
    }

    fn part(&mut self, at: usize, part: &Part, writes: bool) {
        let plan = self.plan;
        let bytes = plan.buffers[part.buffer as usize].bytes;
        if !self.live[part.buffer as usize] {
            let finding = match self.freed[part.buffer as usize] {
                None => Finding::at(plan, Kind::UseBeforeAlloc, at).of(plan, part.buffer),
                Some(by) => Finding::at(plan, Kind::UseAfterFree, at)
                    .of(plan, part.buffer)
                    .with("freed by", plan.describe(by)),
            };
            self.report(finding);
        }
        if part.view.end() > bytes {
            let past = part.view.end() - bytes;
            let what = if writes { "writes" } else { "reads" };
            let how = format!("{what} {past} bytes past the end of {bytes} bytes");
            self.report(Finding::at(plan, Kind::OutOfBounds, at).of(plan, part.buffer).with("how", how));
        }
        for range in part.view.ranges() {
            self.touch(at, part.buffer, range.start..range.end.min(bytes.max(range.start + 1)), writes);
        }
    }

    fn touch(&mut self, at: usize, buffer: u32, bytes: std::ops::Range<u64>, writes: bool) {
        let stream = self.plan.commands[at].stream;
        if let Some(race) = self.clocks.touch(stream, at, buffer as usize, &bytes, writes) {
            self.report(Finding::race(self.plan, race, buffer, race.byte));
        }
    }

    /// A step whose results are known may not read what nothing has written.
    fn unwritten(&mut self, at: usize, part: &Part) {
        let written = &self.written[part.buffer as usize];
        let missing = part.view.ranges().into_iter().find(|range| {
            let end = (range.end as usize).min(written.len());
            !written.contains_all_in_range((range.start as usize).min(end)..end)
        });
        if let Some(range) = missing {
            let finding = Finding::at(self.plan, Kind::UnwrittenRead, at)
                .of(self.plan, part.buffer)
                .with("bytes", format!("within [{}, {})", range.start, range.end));
            self.report(finding);
        }
    }
}

/// On every rank the collectives of a channel are started in the order of the channel.
fn order_of_collectives(plan: &Plan, findings: &mut Vec<Finding>) {
    let mut begun: BTreeMap<(u32, crate::graph::NodeId), usize> = BTreeMap::new();
    for (at, step) in plan.steps.iter().enumerate() {
        begun.entry((step.rank, step.node)).or_insert(at);
    }
    let mut rounds: Vec<_> = plan.rounds.iter().collect();
    rounds.sort_by_key(|round| (round.channel, round.number));
    for pair in rounds.windows(2).filter(|pair| pair[0].channel == pair[1].channel) {
        for (before, after) in pair[0].members.iter().zip(&pair[1].members) {
            if begun.get(before) > begun.get(after) {
                let place = format!("rank {} starts {} before {}", before.0, pair[1].what, pair[0].what);
                findings.push(Finding::new(Kind::CollectiveOrder, place));
            }
        }
    }
}
