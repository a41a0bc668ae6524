//! Memory snapshots of PyTorch: what `torch.cuda.memory._snapshot()` returns, as a pickle (`_dump_snapshot`) or as
//! JSON.
//!
//! # The idea
//!
//! A snapshot has the state of the allocator (`segments` with their `blocks`), and for each device a trace of what it
//! did before (`device_traces`), as far as a ring of events goes back. Only what is needed to follow memory is read:
//! action, address, bytes, stream, and on request the place in the program.
//!
//! Sizes of events are what was asked for; the sizes of blocks are rounded by the allocator. Sources:
//! `torch/cuda/memory.py`, `c10/core/CachingDeviceAllocator.h` of PyTorch 2.15, `c10/cuda/CUDACachingAllocator.cpp`.
//!
//! # What it does not do
//!
//! Traces of pinned host memory (`host_traces`) are not read.

use super::objects::{Allowance, Item};
use crate::limits::Limit;

/// A snapshot.
#[derive(Clone, Default)]
pub struct MemorySnapshot<'o> {
    /// The devices that have a trace or segments.
    pub devices: Vec<Device<'o>>,
    /// Events of pinned host memory, which are not looked at.
    pub host_events: usize,
}

/// One device.
#[derive(Clone, Default)]
pub struct Device<'o> {
    /// Its number.
    pub number: usize,
    /// What its allocator did, in order.
    pub events: Vec<Event<'o>>,
    /// The blocks that somebody holds at the end.
    pub blocks: Vec<Block>,
    /// The bytes of all its segments at the end.
    pub reserved: i128,
}

/// What an allocator did.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Action {
    /// Memory was given to the program.
    Alloc,
    /// The program gave it back.
    FreeRequested,
    /// It can be given away again: no other stream uses it any more.
    FreeCompleted,
    /// Memory was taken from the device.
    SegmentAlloc,
    /// It was given back to the device.
    SegmentFree,
    /// Memory was mapped into an expandable segment.
    SegmentMap,
    /// It was unmapped.
    SegmentUnmap,
    /// A snapshot was made.
    Snapshot,
    /// There was not enough memory.
    OutOfMemory,
    /// Anything else.
    Other,
}

impl Action {
    fn parse(name: &str) -> Action {
        match name {
            "alloc" => Action::Alloc,
            // Before 2.0 one event stood for both.
            "free" | "free_completed" => Action::FreeCompleted,
            "free_requested" => Action::FreeRequested,
            "segment_alloc" => Action::SegmentAlloc,
            "segment_free" => Action::SegmentFree,
            "segment_map" => Action::SegmentMap,
            "segment_unmap" => Action::SegmentUnmap,
            "snapshot" => Action::Snapshot,
            "oom" => Action::OutOfMemory,
            _ => Action::Other,
        }
    }
}

/// One event.
#[derive(Clone, Copy)]
pub struct Event<'o> {
    /// What happened.
    pub action: Action,
    /// The first byte; 0 where there is none.
    pub address: i64,
    /// How many bytes were asked for.
    pub bytes: i64,
    /// The stream that it belongs to.
    pub stream: i64,
    frames: Option<Item<'o>>,
}

/// A block that somebody holds at the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// The first byte.
    pub address: i64,
    /// How many bytes were asked for.
    pub requested: i64,
    /// How many bytes it has.
    pub bytes: i64,
    /// Whether the program holds it; otherwise it has been given back, and another stream may still use it.
    pub allocated: bool,
}

/// Frames that are looked through for a place.
const FRAMES: usize = 256;

impl<'o> Event<'o> {
    /// Where in the program it happened: the node of an FX graph where the snapshot has them, else the innermost line
    /// of Python outside of PyTorch.
    pub fn place(&self) -> Option<String> {
        let frames = self.frames?.items()?.take(FRAMES);
        let text =
            |frame: Item<'o>, key: &str| frame.get(key).and_then(Item::text).filter(|text| !text.is_empty());
        if let Some(name) = frames.clone().find_map(|frame| text(frame, "fx_node_name")) {
            return Some(format!("node {name}"));
        }
        let python = |frame: &Item<'o>| text(*frame, "filename").is_some_and(|name| name.ends_with(".py"));
        let outside =
            |frame: &Item<'o>| text(*frame, "filename").is_some_and(|name| !name.contains("/torch/"));
        let mut lines = frames.filter(python);
        let frame = lines.clone().find(outside).or_else(|| lines.next())?;
        let line = frame.get("line").and_then(Item::integer).unwrap_or(0);
        let file = text(frame, "filename")?;
        Some(format!("{file}:{line} in {}", text(frame, "name").unwrap_or("?")))
    }
}

/// A whole number at a key, from 0 to the highest size that is accepted.
fn number(of: Item, key: &str, at: &dyn Fn() -> String, most: i64) -> Result<i64, String> {
    let Some(value) = of.get(key) else { return Err(format!("{}: no {key}", at())) };
    match value.integer() {
        Some(number) if (0..=most).contains(&number) => Ok(number),
        Some(number) => Err(format!("{}.{key}: {number} is not within 0 to {most}", at())),
        None => Err(format!("{}.{key}: expected a whole number of 64 bits, found {}", at(), value.kind())),
    }
}

fn items<'o>(
    of: Option<Item<'o>>,
    at: &dyn Fn() -> String,
    allowance: &Allowance,
) -> Result<impl ExactSizeIterator<Item = Item<'o>>, String> {
    let Some(of) = of else { return Err(format!("{}: not there", at())) };
    let items = of.items().ok_or_else(|| format!("{}: expected a list, found {}", at(), of.kind()))?;
    allowance.take(items.len())?;
    Ok(items)
}

/// Charges for a dictionary, which is searched key by key.
fn dictionary(of: Item, at: &dyn Fn() -> String, allowance: &Allowance) -> Result<(), String> {
    let pairs = of.pairs().ok_or_else(|| format!("{}: expected a dictionary, found {}", at(), of.kind()))?;
    allowance.take(pairs.len())
}

/// Reads a snapshot.
///
/// # Errors
/// Where it has another form; the error says at which item.
pub fn read<'o>(root: Item<'o>, allowance: &Allowance) -> Result<MemorySnapshot<'o>, String> {
    let bytes = Limit::Tensor.most() as i64;
    let mut snapshot = MemorySnapshot::default();
    dictionary(root, &|| "the snapshot".to_string(), allowance)?;
    for (number_of, trace) in
        items(root.get("device_traces"), &|| "device_traces".into(), allowance)?.enumerate()
    {
        let place = || format!("device_traces[{number_of}]");
        let mut device = Device { number: number_of, ..Device::default() };
        for (i, event) in items(Some(trace), &place, allowance)?.enumerate() {
            let at = || format!("device_traces[{number_of}][{i}]");
            dictionary(event, &at, allowance)?;
            let action = event.get("action").and_then(Item::text).map(Action::parse);
            let action = action.ok_or_else(|| format!("{}: no action", at()))?;
            let (address, size) = match action {
                Action::Snapshot | Action::Other => (0, 0),
                Action::OutOfMemory => (0, number(event, "size", &at, i64::MAX)?),
                _ => (number(event, "addr", &at, i64::MAX - bytes)?, number(event, "size", &at, bytes)?),
            };
            let stream = event.get("stream").and_then(Item::integer).unwrap_or(0);
            device.events.push(Event { action, address, bytes: size, stream, frames: event.get("frames") });
        }
        snapshot.devices.push(device);
    }
    for (i, segment) in items(root.get("segments"), &|| "segments".into(), allowance)?.enumerate() {
        let at = || format!("segments[{i}]");
        dictionary(segment, &at, allowance)?;
        let on = segment.get("device").and_then(Item::integer).unwrap_or(0);
        let device = usize::try_from(on).ok().and_then(|on| snapshot.devices.get_mut(on));
        let device = device.ok_or_else(|| format!("{}.device: device_traces has no device {on}", at()))?;
        device.reserved += i128::from(number(segment, "total_size", &at, bytes)?);
        // Blocks of snapshots before 2.1 have no addresses: each begins where the one before ends.
        let mut next = number(segment, "address", &at, i64::MAX - bytes)?;
        for (k, block) in
            items(segment.get("blocks"), &|| format!("segments[{i}].blocks"), allowance)?.enumerate()
        {
            let at = || format!("segments[{i}].blocks[{k}]");
            dictionary(block, &at, allowance)?;
            let size = number(block, "size", &at, bytes)?;
            let address = match block.get("address") {
                Some(_) => number(block, "address", &at, i64::MAX - bytes)?,
                None => next,
            };
            next = address.saturating_add(size);
            let state =
                block.get("state").and_then(Item::text).ok_or_else(|| format!("{}: no state", at()))?;
            if state.starts_with("active") {
                let requested = match block.get("requested_size") {
                    Some(_) => number(block, "requested_size", &at, bytes)?,
                    None => size,
                };
                let allocated = state == "active_allocated";
                device.blocks.push(Block { address, requested, bytes: size, allocated });
            }
        }
    }
    let host = root.get("host_traces").and_then(Item::items);
    snapshot.host_events = host.map_or(0, |traces| traces.map(|trace| trace.length().unwrap_or(1)).sum());
    snapshot.devices.retain(|device| !device.events.is_empty() || device.reserved > 0);
    Ok(snapshot)
}

#[cfg(test)]
mod tests {
    use super::super::objects::read_json;
    use super::*;

    fn with<T>(json: &str, look: impl FnOnce(Result<MemorySnapshot, String>) -> T) -> T {
        let allowance = Allowance::new(1000);
        let objects = read_json(json.as_bytes(), &allowance).unwrap();
        look(read(objects.root(), &allowance))
    }

    #[test]
    fn a_snapshot_is_read() {
        let json = r#"{"segments":[{"device":0,"address":4096,"total_size":2048,"blocks":[
            {"size":512,"requested_size":400,"state":"active_allocated"},
            {"size":512,"state":"active_pending_free"}, {"size":1024,"state":"inactive"}]}],
          "host_traces": [[{}, {}]],
          "device_traces":[[
            {"action":"alloc","addr":4096,"size":400,"stream":7,"frames":[
              {"name":"f","filename":"/x/torch/nn.py","line":1},{"name":"g","filename":"/x/model.py","line":9}]},
            {"action":"oom","size":99,"device_free":5}, {"action":"annotate","addr":1}], []]}"#;
        with(json, |snapshot| {
            let snapshot = snapshot.unwrap();
            assert_eq!((snapshot.devices.len(), snapshot.host_events), (1, 2));
            let device = &snapshot.devices[0];
            let actions: Vec<Action> = device.events.iter().map(|event| event.action).collect();
            assert_eq!(actions, [Action::Alloc, Action::OutOfMemory, Action::Other]);
            assert_eq!(device.events[0].place().as_deref(), Some("/x/model.py:9 in g"));
            assert_eq!((device.events[0].bytes, device.events[0].stream), (400, 7));
            let block = |address, requested, allocated| Block { address, requested, bytes: 512, allocated };
            assert_eq!(device.blocks, [block(4096, 400, true), block(4608, 512, false)]);
            assert_eq!(device.reserved, 2048);
        });
    }

    #[test]
    fn an_fx_node_is_the_best_place() {
        let json = r#"{"segments":[],"device_traces":[[{"action":"alloc","addr":1,"size":1,"frames":[
            {"name":"f","filename":"/x/model.py","line":1},{"name":"g","filename":"fx","line":9,"fx_node_name":"relu_1"}]}]]}"#;
        with(json, |snapshot| {
            assert_eq!(snapshot.unwrap().devices[0].events[0].place().as_deref(), Some("node relu_1"));
        });
    }

    #[test]
    fn what_has_another_form_is_refused_with_its_place() {
        let event = |fields: &str| format!(r#"{{"segments":[],"device_traces":[[{{{fields}}}]]}}"#);
        let cases = [
            ("{}".to_string(), "device_traces: not there"),
            ("[]".to_string(), "the snapshot: expected a dictionary, found a list"),
            (r#"{"device_traces":[[]]}"#.to_string(), "segments: not there"),
            (
                r#"{"segments":[],"device_traces":[5]}"#.to_string(),
                "device_traces[0]: expected a list, found a whole number",
            ),
            (event(""), "device_traces[0][0]: no action"),
            (event(r#""action":"alloc","size":1"#), "device_traces[0][0]: no addr"),
            (
                event(r#""action":"alloc","addr":"x","size":1"#),
                "addr: expected a whole number of 64 bits, found text",
            ),
            (event(r#""action":"alloc","addr":1,"size":-5"#), "size: -5 is not within 0 to"),
            (
                event(r#""action":"alloc","addr":1,"size":4611686018427387904"#),
                "size: 4611686018427387904 is not within",
            ),
            (
                r#"{"segments":[{"device":3}],"device_traces":[[]]}"#.to_string(),
                "device_traces has no device 3",
            ),
        ];
        for (json, why) in cases {
            with(&json, |snapshot| {
                let error = snapshot.err().unwrap();
                assert!(error.contains(why), "{json}: {error}");
            });
        }
    }

    /// A list of lists that are one and the same costs as much as it says it holds.
    #[test]
    fn what_is_shared_is_paid_for() {
        let mut bytes = b"\x80\x02}(X\x08\0\0\0segments]X\x0d\0\0\0device_traces](](".to_vec();
        bytes.extend([b'}'; 500]);
        bytes.extend(b"eq\0");
        bytes.extend(b"h\0".repeat(500));
        bytes.extend(b"eu.");
        let allowance = Allowance::new(5000);
        let objects = super::super::pickle::read(&bytes, &allowance).unwrap();
        for (most, why) in [(1 << 20, "no action"), (700, "more than 700 objects")] {
            let error = read(objects.root(), &Allowance::new(most)).err().unwrap();
            assert!(error.contains(why), "{error}");
        }
    }
}
