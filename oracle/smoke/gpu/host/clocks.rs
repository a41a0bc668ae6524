//! Happens-before: vector clocks over streams, and who last touched which bytes.
//!
//! Each stream has a clock with an entry per stream. Running a command advances the stream's own entry; recording an
//! event keeps a copy of the clock; waiting for the event takes the greater of both, entry by entry. A touch *t* of
//! stream *s* happened before a command of stream *u* exactly if the clock of *u* has seen entry *s* as of *t*.
//!
//! What the host has waited for comes before everything later, on every stream. It is kept once, beside the clocks: a
//! replay in lockstep waits after each step.
//!
//! Touches are kept by memory block *and byte range*: per block alone, two streams that write different parts of a
//! bucket would be a false alarm, and an older write to another part would be forgotten.

use std::collections::BTreeMap;
use std::ops::Range;

/// A touch: who, when on its own clock, and the command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Touch {
    stream: u32,
    time: u32,
    command: usize,
}

/// Bytes that were touched alike.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Segment {
    end: u64,
    write: Option<Touch>,
    reads: Vec<Touch>,
}

/// Two touches that nothing orders, at least one of them a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Race {
    /// The command that ran first.
    pub earlier: usize,
    /// The command that ran later.
    pub later: usize,
    /// Whether the earlier one writes, and whether the later one does.
    pub writes: (bool, bool),
    /// The first byte that both touch, in the block.
    pub byte: u64,
}

/// The clocks of all streams, and the touches of all blocks.
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    streams: Vec<Vec<u32>>,
    /// How far each stream was when the host last waited for everything.
    synchronized: Vec<u32>,
    events: Vec<Option<Vec<u32>>>,
    blocks: Vec<BTreeMap<u64, Segment>>,
}

impl Clocks {
    /// Nothing has happened.
    pub fn new(streams: usize, events: usize, blocks: usize) -> Clocks {
        Clocks {
            streams: vec![vec![0; streams]; streams],
            synchronized: vec![0; streams],
            events: vec![None; events],
            blocks: vec![BTreeMap::new(); blocks],
        }
    }

    /// A stream runs its next command.
    pub fn advance(&mut self, stream: u32) {
        self.streams[stream as usize][stream as usize] += 1;
    }

    /// A stream records an event.
    pub fn record(&mut self, stream: u32, event: u32) {
        self.events[event as usize] = Some(self.streams[stream as usize].clone());
    }

    /// Whether an event has been recorded.
    pub fn recorded(&self, event: u32) -> bool {
        self.events[event as usize].is_some()
    }

    /// A stream waits for an event that has been recorded.
    pub fn wait(&mut self, stream: u32, event: u32) {
        if let Some(event) = &self.events[event as usize] {
            join(&mut self.streams[stream as usize], event);
        }
    }

    /// The host waits for everything: what comes later comes after all of it.
    pub fn synchronize(&mut self) {
        // No clock knows more of a stream than its own.
        for (stream, (all, clock)) in self.synchronized.iter_mut().zip(&self.streams).enumerate() {
            *all = clock[stream];
        }
    }

    /// A stream's present command touches bytes of a block. The race that this shows, if any.
    pub fn touch(
        &mut self,
        stream: u32,
        command: usize,
        block: usize,
        bytes: &Range<u64>,
        writes: bool,
    ) -> Option<Race> {
        let now = &self.streams[stream as usize];
        let touch = Touch { stream, time: now[stream as usize], command };
        let before = |other: &Touch| {
            let stream = other.stream as usize;
            now[stream].max(self.synchronized[stream]) >= other.time
        };
        let segments = &mut self.blocks[block];
        split(segments, bytes.start);
        split(segments, bytes.end);
        let mut race = None;
        let mut at = bytes.start;
        let mut gaps = Vec::new();
        for (&start, segment) in segments.range_mut(bytes.start..bytes.end) {
            if at < start {
                gaps.push(at..start);
            }
            at = segment.end;
            let found = |other: &Touch, wrote| Race {
                earlier: other.command,
                later: command,
                writes: (wrote, writes),
                byte: start,
            };
            if race.is_none() {
                let write = segment.write.as_ref().filter(|write| !before(write));
                let read = segment.reads.iter().find(|read| writes && !before(read));
                race = write.map(|w| found(w, true)).or(read.map(|r| found(r, false)));
            }
            if writes {
                segment.write = Some(touch);
                segment.reads.clear();
            } else {
                segment.reads.retain(|read| read.stream != stream);
                segment.reads.push(touch);
            }
        }
        if at < bytes.end {
            gaps.push(at..bytes.end);
        }
        for gap in gaps {
            let (write, reads) = if writes { (Some(touch), Vec::new()) } else { (None, vec![touch]) };
            segments.insert(gap.start, Segment { end: gap.end, write, reads });
        }
        race
    }
}

fn join(into: &mut [u32], from: &[u32]) {
    for (into, &from) in into.iter_mut().zip(from) {
        *into = (*into).max(from);
    }
}

/// Cuts the segment that covers `at` in two.
fn split(segments: &mut BTreeMap<u64, Segment>, at: u64) {
    let Some((_, segment)) = segments.range_mut(..at).next_back() else { return };
    if segment.end <= at {
        return;
    }
    let tail = segment.clone();
    segment.end = at;
    segments.insert(at, tail);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_orders_and_a_missing_wait_is_a_race() {
        for waits in [true, false] {
            let mut clocks = Clocks::new(2, 1, 1);
            clocks.advance(0);
            assert_eq!(clocks.touch(0, 10, 0, &(0..8), true), None);
            clocks.record(0, 0);
            if waits {
                clocks.wait(1, 0);
            }
            clocks.advance(1);
            let race = clocks.touch(1, 11, 0, &(4..12), false);
            let expected = Race { earlier: 10, later: 11, writes: (true, false), byte: 4 };
            assert_eq!(race, (!waits).then_some(expected));
        }
    }

    #[test]
    fn parts_of_one_block_are_told_apart() {
        let mut clocks = Clocks::new(2, 0, 1);
        clocks.advance(0);
        clocks.advance(1);
        assert_eq!(clocks.touch(0, 0, 0, &(0..8), true), None);
        assert_eq!(clocks.touch(1, 1, 0, &(8..16), true), None, "other bytes");
        // An older write to another part is not forgotten.
        clocks.advance(0);
        assert_eq!(
            clocks.touch(0, 2, 0, &(0..16), false).map(|race| (race.earlier, race.byte)),
            Some((1, 8))
        );
        clocks.synchronize();
        clocks.advance(1);
        assert_eq!(clocks.touch(1, 3, 0, &(0..16), true), None, "the host has waited");
    }

    /// Against a plain record of every touch, byte by byte.
    #[test]
    fn agrees_with_a_record_of_every_touch() {
        use crate::generate::{Seeded, Source};
        for case in 0..300 {
            let mut source = Seeded::case(7, case);
            let mut clocks = Clocks::new(3, 16, 1);
            let mut seen: Vec<(Vec<u32>, u32, Range<u64>, bool)> = Vec::new();
            for command in 0..40 {
                let stream = source.below(3);
                clocks.advance(stream);
                match source.below(7) {
                    0 | 1 => clocks.record(stream, source.below(16)),
                    2 | 3 => clocks.wait(stream, source.below(16)),
                    4 => {
                        // Whatever came before is ordered with whatever comes later.
                        clocks.synchronize();
                        seen.clear();
                    }
                    _ => {
                        let start = u64::from(source.below(12));
                        let bytes = start..start + 1 + u64::from(source.below(6));
                        let writes = source.below(2) == 0;
                        let clock = clocks.streams[stream as usize].clone();
                        let unordered = seen.iter().any(|(then, other, range, wrote)| {
                            let ordered = clock[*other as usize] >= then[*other as usize];
                            let meets = range.start < bytes.end && bytes.start < range.end;
                            !ordered && meets && (*wrote || writes)
                        });
                        let race = clocks.touch(stream, command, 0, &bytes, writes);
                        assert_eq!(race.is_some(), unordered, "case {case} command {command}");
                        seen.push((clock, stream, bytes, writes));
                        if unordered {
                            break;
                        }
                    }
                }
            }
        }
    }
}
