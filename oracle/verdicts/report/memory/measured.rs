//! A memory snapshot for people and for machines, alone or beside what a graph says.
//!
//! # The idea
//!
//! A snapshot measures a process, and a graph is a part of what that does. So the two are put beside each other and
//! nothing is concluded: both peaks, and which storages of the graph have an allocation of just their size. What makes
//! them differ by right is said.

use super::MemoryReport;
use crate::format::memory_snapshot::MemorySnapshot;
use crate::lifecycle::{DeviceReport, Peak, judge_device};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A snapshot, judged.
pub struct Measured<'o> {
    snapshot: MemorySnapshot<'o>,
    /// What each device came to.
    pub devices: Vec<DeviceReport>,
}

/// How many blocks and storages are listed.
const LISTED: usize = 8;

impl<'o> Measured<'o> {
    /// Judges a snapshot.
    pub fn new(snapshot: MemorySnapshot<'o>) -> Measured<'o> {
        let devices = snapshot.devices.iter().map(judge_device).collect();
        Measured { snapshot, devices }
    }

    /// How many events cannot be right.
    pub fn faults(&self) -> usize {
        self.devices.iter().map(|device| device.faults.len()).sum()
    }

    /// Whether an allocation failed for want of memory.
    pub fn ran_out(&self) -> bool {
        self.devices.iter().any(|device| !device.out_of_memory.is_empty())
    }

    /// A failed allocation: how much was asked for, and where.
    pub fn ran_out_at(&self, device: usize, event: usize) -> String {
        let (bytes, place) = self.event(device, event);
        format!("event {event}: out of memory, {bytes} bytes were asked for ({place})")
    }

    /// Forgets all faults but the first.
    pub fn stop_at_first_fault(&mut self) {
        let mut left = 1;
        for device in &mut self.devices {
            device.faults.truncate(left);
            left -= device.faults.len();
        }
    }

    /// Whether there was any event to judge.
    pub fn has_events(&self) -> bool {
        self.devices.iter().any(|device| device.events > 0)
    }

    /// What is left out of all devices.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "reads and writes are not in a snapshot: whether memory is used after its free is not seen"
                .to_string(),
            "bytes are those that were asked for; the allocator rounds them up (to 512 bytes at least)"
                .to_string(),
        ];
        if self.has_events() {
            notes.push("a trace is taken to have no gaps after its first event".to_string());
        }
        match self.snapshot.host_events {
            0 => {}
            events => notes.push(format!("{events} events of pinned host memory are not looked at")),
        }
        notes
    }

    /// Where an event of a device happened, and how many bytes it is about.
    fn event(&self, device: usize, event: usize) -> (i64, String) {
        let event = self.snapshot.devices.get(device).and_then(|device| device.events.get(event));
        let place = event.and_then(|event| event.place()).unwrap_or_else(|| "no stack recorded".to_string());
        (event.map_or(0, |event| event.bytes), place)
    }

    /// The report for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (i, device) in self.devices.iter().enumerate() {
            for fault in &device.faults {
                let _ = writeln!(text, "{fault} ({})", self.event(i, fault.event).1);
            }
            self.device_text(i, device, &mut text);
        }
        if self.devices.is_empty() {
            text.push_str("no device has events or segments\n");
        }
        for note in self.notes() {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }

    fn device_text(&self, i: usize, device: &DeviceReport, text: &mut String) {
        let number = device.device;
        let found = match device.faults.len() {
            0 => "no fault".to_string(),
            1 => "1 fault".to_string(),
            faults => format!("{faults} faults"),
        };
        let failed = if device.out_of_memory.is_empty() { "" } else { ", but it ran out of memory" };
        let _ = writeln!(text, "device {number}: {found} in {} events{failed}", device.events);
        let mut row = |name: &str, peak: Peak, event: bool| {
            let place = match peak.event {
                Some(at) => format!("event {at} ({})", self.event(i, at).1),
                None if event => "before the first event".to_string(),
                None => String::new(),
            };
            let _ = writeln!(text, "  {}", format!("{name:<18} {:>16}  {place}", peak.bytes).trim_end());
        };
        row("held, at most", device.held, true);
        if device.in_use.bytes != device.held.bytes {
            row("in use, at most", device.in_use, true);
        }
        if let Some(reserved) = device.reserved {
            row("reserved, at most", reserved, true);
        }
        row("held before", Peak { bytes: device.before.bytes, event: None }, false);
        row("held at the end", Peak { bytes: device.end.bytes, event: None }, false);
        for &event in &device.out_of_memory {
            let _ = writeln!(text, "  {}", self.ran_out_at(i, event));
        }
        if device.pending.blocks > 0 {
            let (blocks, bytes) = (device.pending.blocks, device.pending.bytes);
            let _ = writeln!(
                text,
                "  {blocks} blocks, {bytes} bytes: given back, and still waiting for another stream"
            );
        }
        if !device.at_end.is_empty() {
            let _ = writeln!(
                text,
                "  allocated in the trace and held at the end (which of them are leaks is not known):"
            );
        }
        for &event in device.at_end.iter().take(LISTED) {
            let (bytes, place) = self.event(i, event);
            let _ = writeln!(text, "  {bytes:>16}  event {event}: {place}");
        }
        if device.at_end.len() > LISTED {
            let rest: i128 = device.at_end[LISTED..].iter().map(|&at| i128::from(self.event(i, at).0)).sum();
            let _ = writeln!(text, "  {rest:>16}  {} others", device.at_end.len() - LISTED);
        }
        for note in &device.notes {
            let _ = writeln!(text, "  note: {note}");
        }
    }

    /// The report for machines.
    pub fn json(&self) -> Value {
        let devices = self.devices.iter().enumerate().map(|(i, device)| {
            let peak = |peak: Peak| json!({ "bytes": number(peak.bytes), "event": peak.event });
            let at_end = device.at_end.iter().take(LISTED).map(|&event| {
                let (bytes, place) = self.event(i, event);
                json!({ "event": event, "bytes": bytes, "place": place })
            });
            json!({
                "device": device.device,
                "events": device.events,
                "faults": device.faults.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "held_peak": peak(device.held),
                "in_use_peak": peak(device.in_use),
                "reserved_peak": device.reserved.map(peak),
                "held_before_bytes": number(device.before.bytes),
                "held_at_end_bytes": number(device.end.bytes),
                "pending_bytes": number(device.pending.bytes),
                "allocations": device.allocations.len(),
                "allocated_and_held_at_end": device.at_end.len(),
                "largest_held_at_end": at_end.collect::<Vec<_>>(),
                "out_of_memory_events": device.out_of_memory,
                "notes": device.notes,
            })
        });
        json!({ "devices": devices.collect::<Vec<_>>(), "notes": self.notes() })
    }

    /// What the graph says beside it: lines, and the same for machines.
    pub fn beside(&self, report: &MemoryReport) -> (String, Value) {
        let (mut text, mut of_devices) = (String::new(), Vec::new());
        let predicted = report.replay_peak_bytes();
        // What the graph allocates, largest first. A storage of which nothing is recorded has no size to look for.
        let lives = report.replay.lives.iter();
        let mut storages: Vec<(i64, String)> = lives
            .filter(|life| life.start.is_some() && life.bytes > 0)
            .map(|life| (life.bytes, report.name(life.by)))
            .collect();
        storages.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        for device in &self.devices {
            let mut sizes: BTreeMap<i64, usize> = BTreeMap::new();
            device.allocations.iter().for_each(|&bytes| *sizes.entry(bytes).or_default() += 1);
            let missing: Vec<&(i64, String)> = storages
                .iter()
                .filter(|(bytes, _)| match sizes.get_mut(bytes) {
                    Some(left @ 1..) => {
                        *left -= 1;
                        false
                    }
                    _ => true,
                })
                .collect();
            let (number_of, peak, before) = (device.device, device.held.bytes, device.before.bytes);
            let found = storages.len() - missing.len();
            let _ = writeln!(text, "device {number_of} of the snapshot, beside the graph:");
            let _ = writeln!(text, "  measured_peak_bytes {peak:>16}  {}", {
                match device.held.event {
                    Some(event) => format!("after event {event}"),
                    None => "before the first event".to_string(),
                }
            });
            let _ = writeln!(text, "  replay_peak_bytes   {predicted:>16}  the graph with its inputs");
            let apart = peak - i128::from(predicted);
            let _ = writeln!(
                text,
                "  they part by        {apart:>+16}  {before} bytes were held before the first event"
            );
            let _ = writeln!(
                text,
                "  {found} of the {} storages that the graph allocates have an allocation of just their size",
                storages.len()
            );
            for (bytes, name) in missing.iter().take(LISTED) {
                let _ = writeln!(
                    text,
                    "  {bytes:>16}  {name}: no allocation of this size, or fewer than the graph makes"
                );
            }
            if missing.len() > LISTED {
                let _ = writeln!(text, "  and {} others", missing.len() - LISTED);
            }
            of_devices.push(json!({
                "device": number_of,
                "measured_peak_bytes": number(peak),
                "replay_peak_bytes": predicted,
                "held_before_bytes": number(before),
                "storages": storages.len(),
                "storages_with_an_allocation_of_their_size": found,
                "largest_without": missing.iter().take(LISTED).map(|(bytes, name)| json!({ "bytes": bytes, "node": name }))
                    .collect::<Vec<_>>(),
            }));
        }
        text += WHY_THEY_PART;
        (text, Value::Array(of_devices))
    }
}

/// Why a measured peak is another than a graph's, by right.
const WHY_THEY_PART: &str = "\
note: a snapshot measures the process: other graphs, the optimizer, libraries and copies count too, and which part of
      the trace ran this graph is not recorded; a compiled graph fuses nodes, reuses buffers and never makes many
      storages; what the caller keeps may be held elsewhere. So that they part is no finding
";

/// A number of JSON: as it is where it fits, else as text.
fn number(bytes: i128) -> Value {
    i64::try_from(bytes).map_or_else(|_| Value::String(bytes.to_string()), Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::objects::{Allowance, read_json};
    use crate::format::{memory_snapshot, text};

    const SNAPSHOT: &str = r#"{"segments":[{"address":0,"total_size":4096,"blocks":[
        {"address":0,"size":512,"requested_size":64,"state":"active_allocated"}]}],
        "device_traces":[[{"action":"alloc","addr":0,"size":64,"stream":0},
        {"action":"alloc","addr":512,"size":100,"stream":0},{"action":"free_requested","addr":512,"size":100},
        {"action":"free_completed","addr":512,"size":100}]]}"#;

    #[test]
    fn a_snapshot_is_put_beside_a_graph() {
        let case = text::parse(b"x = input : f32[16]\na = relu(x)\nb = exp(a)\noutput (b)\n").unwrap();
        let report = MemoryReport::new(&case.graph).unwrap();
        let allowance = Allowance::new(1000);
        let objects = read_json(SNAPSHOT.as_bytes(), &allowance).unwrap();
        let measured = Measured::new(memory_snapshot::read(objects.root(), &allowance).unwrap());
        assert_eq!((measured.faults(), measured.has_events()), (0, true));
        let (words, value) = measured.beside(&report);
        assert!(words.contains("1 of the 2 storages that the graph allocates"), "{words}");
        assert_eq!(value[0]["measured_peak_bytes"], 164);
        assert_eq!(value[0]["replay_peak_bytes"], report.replay_peak_bytes());
        assert_eq!(value[0]["largest_without"][0]["node"], "b");
        let alone = measured.text();
        assert!(alone.contains("device 0: no fault in 4 events"), "{alone}");
        assert!(alone.contains("64  event 0: no stack recorded"), "{alone}");
        assert_eq!(measured.json()["devices"][0]["held_peak"]["bytes"], 164);
    }
}
