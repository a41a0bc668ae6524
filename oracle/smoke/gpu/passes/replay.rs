//! One replay of a plan on a device, and what it shows.

use crate::gpu::device::{Device, Placement, Trouble, Usage};
use crate::gpu::plan::{Action, Expected, Fnv, Live, Origin, Plan};
use crate::gpu::report::{Finding, Kind, Row, difference};
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// How a plan is replayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct How {
    /// Waits for the device after each step, and compares what the step wrote.
    pub lockstep: bool,
    /// Compares memory in use with the prediction. In lockstep only.
    pub memory: bool,
    /// Delays streams at points drawn from this seed.
    pub delays: Option<u64>,
    /// Captures the plan and launches it twice.
    pub captured: bool,
}

/// What a replay showed.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Replayed {
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// The table of steps, in lockstep.
    pub rows: Vec<Row>,
    /// Memory in use at the end, and its peak.
    pub usage: Usage,
    /// The predicted peak.
    pub predicted_peak: u64,
}

/// Stands for what comes before the first step: the commands that the runner itself enqueues, and the caller's.
pub(super) const BEFORE: usize = usize::MAX;

/// Replays a plan.
///
/// # Errors
/// Where the device fails.
pub fn replay(
    plan: &Plan,
    device: &mut dyn Device,
    placement: &Placement,
    how: How,
) -> Result<Replayed, Trouble> {
    let sizes: Vec<u64> = plan.buffers.iter().map(|buffer| buffer.bytes).collect();
    device.begin(plan.streams.len(), plan.events.len(), &sizes, placement)?;
    for (number, buffer) in plan.buffers.iter().enumerate() {
        if buffer.origin != Origin::Made {
            device.alloc(plan.compute(buffer.rank), number as u32, BEFORE)?;
        }
    }
    device.synchronize()?;
    give(plan, device)?;
    if how.captured {
        return captured(plan, device);
    }
    let granularity = device.describe().granularity.max(1);
    let (before, predicted) = plan.predicted(|bytes| bytes.div_ceil(granularity) * granularity);
    let mut replayed = Replayed {
        predicted_peak: predicted.iter().map(|live| live.peak).max().unwrap_or(before),
        ..Replayed::default()
    };
    let mut delays = how.delays.map(|seed| Pcg64Mcg::new(u128::from(seed) << 1 | 1));
    for (step, commands) in plan.by_step().into_iter().enumerate() {
        for at in commands.clone() {
            let command = &plan.commands[at];
            if let Some(delays) = &mut delays {
                delay(plan, device, command, delays)?;
            }
            enqueue(plan, device, at)?;
        }
        if how.lockstep {
            device.synchronize()?;
            let live = predicted.get(step).copied().unwrap_or_default();
            after_step(plan, device, step, commands, live, how.memory, &mut replayed)?;
        }
    }
    device.synchronize()?;
    replayed.findings.splice(0..0, device.findings()?);
    finals(plan, device, &mut replayed.findings)?;
    replayed.usage = device.usage()?;
    if how.memory && plan.doubt().is_none() && replayed.usage.peak != replayed.predicted_peak {
        let finding = Finding::new(Kind::Memory, "the peak is not what was predicted")
            .with("predicted", format!("{} bytes", replayed.predicted_peak))
            .with("measured", format!("{} bytes", replayed.usage.peak));
        replayed.findings.push(finding);
    }
    Ok(replayed)
}

/// Gives the inputs their values.
fn give(plan: &Plan, device: &mut dyn Device) -> Result<(), Trouble> {
    for (number, buffer) in plan.buffers.iter().enumerate() {
        if let Origin::Given(content) = &buffer.origin {
            let mut bytes = device.download(number as u32)?;
            for (at, byte) in bytes.iter_mut().enumerate() {
                if content.known.get(at).is_none_or(|&known| known) {
                    *byte = content.bytes.get(at).copied().unwrap_or(*byte);
                }
            }
            device.upload(number as u32, &bytes)?;
        }
    }
    Ok(())
}

fn enqueue(plan: &Plan, device: &mut dyn Device, at: usize) -> Result<(), Trouble> {
    let command = &plan.commands[at];
    let stream = command.stream;
    match &command.action {
        Action::Alloc(buffer) => device.alloc(stream, *buffer, at),
        Action::Free(buffer) => device.free(stream, *buffer, at),
        Action::Launch(launch) => device.launch(stream, launch, at),
        Action::Record(event) => device.record(stream, *event, at),
        Action::Wait(event) => device.wait(stream, *event, at),
    }
}

/// Delays communication streams often, and other streams before they wait.
fn delay(
    plan: &Plan,
    device: &mut dyn Device,
    command: &crate::gpu::plan::Command,
    delays: &mut Pcg64Mcg,
) -> Result<(), Trouble> {
    const MOST: u64 = 200_000;
    let communicates = plan.streams[command.stream as usize].communicates();
    let waits = matches!(command.action, Action::Wait(_));
    let one_in = match (communicates, waits) {
        (true, _) => 3,
        (false, true) => 2,
        (false, false) => 16,
    };
    match delays.next_u64() % one_in {
        0 => device.spin(command.stream, delays.next_u64() % MOST),
        _ => Ok(()),
    }
}

/// Compares and measures after a step.
fn after_step(
    plan: &Plan,
    device: &mut dyn Device,
    step: usize,
    commands: std::ops::Range<usize>,
    live: Live,
    memory: bool,
    replayed: &mut Replayed,
) -> Result<(), Trouble> {
    let what = &plan.steps[step];
    let usage = device.usage()?;
    let mut row = Row {
        step: what.to_string(),
        predicted: live.after,
        measured: usage.used,
        reserved: usage.reserved,
        right: true,
        ..Row::default()
    };
    let mut streams: Vec<String> = Vec::new();
    let mut freed = Vec::new();
    for command in &plan.commands[commands] {
        match &command.action {
            Action::Alloc(_) => row.allocs += 1,
            Action::Free(buffer) => {
                row.frees += 1;
                freed.push(*buffer);
            }
            Action::Launch(_) => row.launches += 1,
            Action::Wait(_) => row.waits += 1,
            Action::Record(_) => {}
        }
        let stream = plan.streams[command.stream as usize].to_string();
        if !streams.contains(&stream) {
            streams.push(stream);
        }
    }
    row.streams = match streams.len() {
        0..=2 => streams.join(" "),
        more => format!("{} and {} more", streams[0], more - 1),
    };
    let mut hash = Fnv::default();
    for expected in &what.expected {
        // What is freed in the step that wrote it is gone.
        if freed.contains(&expected.part.buffer) {
            continue;
        }
        let bytes = device.download(expected.part.buffer)?;
        for at in expected.part.view.places() {
            hash.add(bytes.get(at..at + expected.part.view.size()).unwrap_or(&[]));
        }
        row.hash = Some(hash.0);
        if let Some(difference) = difference(expected, &bytes) {
            row.right = false;
            if !replayed.findings.iter().any(|finding| finding.kind == Kind::Value) {
                let finding =
                    Finding { step: Some(step as u32), ..Finding::new(Kind::Value, what.to_string()) };
                let finding = finding.of(plan, expected.part.buffer).with("what", "first divergence");
                replayed.findings.push(difference.detail(finding));
            }
        }
    }
    let first = !replayed.findings.iter().any(|finding| finding.kind == Kind::Memory);
    if memory && first && plan.doubt().is_none() && row.measured != row.predicted {
        let finding = Finding { step: Some(step as u32), ..Finding::new(Kind::Memory, what.to_string()) };
        let finding = finding
            .with("what", "live bytes after the step")
            .with("predicted", format!("{} bytes", row.predicted))
            .with("measured", format!("{} bytes", row.measured));
        replayed.findings.push(finding);
    }
    replayed.rows.push(row);
    Ok(())
}

/// Compares what is returned, and what the inputs hold.
fn finals(plan: &Plan, device: &mut dyn Device, findings: &mut Vec<Finding>) -> Result<(), Trouble> {
    // Many results may be views of one buffer.
    let mut known: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for last in &plan.finals {
        let Expected { part, .. } = last.expected;
        let bytes = match known.entry(part.buffer) {
            Entry::Occupied(bytes) => bytes.into_mut(),
            Entry::Vacant(place) => place.insert(device.download(part.buffer)?),
        };
        if let Some(difference) = difference(&last.expected, bytes) {
            let finding = Finding::new(Kind::Value, format!("r{}.{} at the end", last.rank, last.name));
            findings.push(difference.detail(finding.of(plan, part.buffer)));
        }
    }
    Ok(())
}

/// Captures the plan and launches it twice, with fresh inputs each time.
fn captured(plan: &Plan, device: &mut dyn Device) -> Result<Replayed, Trouble> {
    device.capture()?;
    for at in 0..plan.commands.len() {
        enqueue(plan, device, at)?;
    }
    device.captured()?;
    let mut replayed = Replayed::default();
    for _ in 0..2 {
        give(plan, device)?;
        device.launch_captured()?;
        device.synchronize()?;
        finals(plan, device, &mut replayed.findings)?;
    }
    replayed.findings.splice(0..0, device.findings()?);
    Ok(replayed)
}
