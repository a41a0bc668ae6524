//! What a smoke run found: findings, the table of steps, and both as text and JSON.

use super::device::{Description, FREED, GUARD, UNWRITTEN};
use super::host::Race;
use super::plan::{Expected, Plan};
use serde_json::{Value, json};
use std::fmt::Write;

/// What is wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Nothing orders two touches of the same bytes.
    Race,
    /// A buffer is used before it is allocated.
    UseBeforeAlloc,
    /// A buffer is used after it was freed.
    UseAfterFree,
    /// A buffer is allocated while it is there.
    AllocatedTwice,
    /// A buffer is freed twice.
    FreedTwice,
    /// A kernel reaches past the end of its buffer.
    OutOfBounds,
    /// Bytes around a buffer have changed.
    GuardBroken,
    /// Bytes that nothing has written are read for a value that should be known.
    UnwrittenRead,
    /// A buffer is alive at the end that should not be.
    Leak,
    /// A stream waits for what is never recorded, or is recorded later.
    Deadlock,
    /// Ranks start the collectives of a group in different orders.
    CollectiveOrder,
    /// A value is not the interpreter's.
    Value,
    /// Memory in use is not what was predicted.
    Memory,
    /// Two buffers that live at the same time share bytes of the arena.
    Overlap,
    /// The device reports an error while it runs the plan.
    Device,
    /// A kernel of the device computes something else than the host's.
    SelfTest,
}

impl Kind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Race => "race",
            Kind::UseBeforeAlloc => "use-before-alloc",
            Kind::UseAfterFree => "use-after-free",
            Kind::AllocatedTwice => "allocated-twice",
            Kind::FreedTwice => "freed-twice",
            Kind::OutOfBounds => "out-of-bounds",
            Kind::GuardBroken => "guard-broken",
            Kind::UnwrittenRead => "unwritten-read",
            Kind::Leak => "leak",
            Kind::Deadlock => "deadlock",
            Kind::CollectiveOrder => "collective-order",
            Kind::Value => "value",
            Kind::Memory => "memory",
            Kind::Overlap => "overlap",
            Kind::Device => "device",
            Kind::SelfTest => "self-test",
        }
    }
}

/// Something wrong, with what is known about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What.
    pub kind: Kind,
    /// The step, by its number in the plan.
    pub step: Option<u32>,
    /// Where, in one line.
    pub place: String,
    /// More, each with its name.
    pub details: Vec<(&'static str, String)>,
}

impl Finding {
    /// Something that is wrong with the plan as a whole.
    pub fn new(kind: Kind, place: impl Into<String>) -> Finding {
        Finding { kind, step: None, place: place.into(), details: Vec::new() }
    }

    /// Something that a command does wrong.
    pub fn at(plan: &Plan, kind: Kind, command: usize) -> Finding {
        let step = plan.commands.get(command).map(|command| command.step);
        Finding { step, ..Finding::new(kind, plan.describe(command)) }
    }

    /// The same with one more detail.
    pub fn with(mut self, name: &'static str, detail: impl Into<String>) -> Finding {
        self.details.push((name, detail.into()));
        self
    }

    /// The same with the buffer that it is about, and who produces it.
    pub fn of(self, plan: &Plan, buffer: u32) -> Finding {
        let told = plan.buffers.get(buffer as usize).map(|buffer| buffer.to_string()).unwrap_or_default();
        self.with("buffer", told)
    }

    /// Two touches that nothing orders.
    pub fn race(plan: &Plan, race: Race, buffer: u32, byte: u64) -> Finding {
        let word = |writes: bool| if writes { "writes" } else { "reads" };
        let streams = [race.earlier, race.later]
            .map(|at| plan.commands.get(at).map(|c| plan.streams[c.stream as usize].to_string()));
        let [from, to] = streams.map(Option::unwrap_or_default);
        Finding::at(plan, Kind::Race, race.later)
            .of(plan, buffer)
            .with("with", plan.describe(race.earlier))
            .with("how", format!("the one {}, the other {}", word(race.writes.0), word(race.writes.1)))
            .with("byte", byte.to_string())
            .with("missing", format!("an event from {from} to {to}"))
    }

    /// Changed bytes around a buffer, `at` counted from the beginning of the guard band before it.
    pub fn guard(plan: &Plan, buffer: u32, at: u64, size: u64) -> Finding {
        let band = super::device::GUARD_BYTES;
        let told = match at < band {
            true => format!("{} bytes before the buffer", band - at),
            false => format!("{} bytes past its end", at - band - size),
        };
        let name = plan.buffers.get(buffer as usize).map(|b| b.to_string()).unwrap_or_default();
        Finding::new(Kind::GuardBroken, name).with("first changed byte", told)
    }

    /// One line, and one for each detail.
    pub fn text(&self) -> String {
        let step = self.step.map(|step| format!("step {step}: ")).unwrap_or_default();
        let mut text = format!("  {}: {step}{}\n", self.kind.name(), self.place);
        for (name, detail) in &self.details {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "    {name}: {detail}");
        }
        text
    }

    /// For machines.
    pub fn json(&self) -> Value {
        let mut value = json!({ "kind": self.kind.name(), "step": self.step, "place": self.place });
        for (name, detail) in &self.details {
            value[name] = json!(detail);
        }
        value
    }
}

/// Where what a device holds is not what it should hold; `None` where it is. `bytes` are those of the whole buffer.
///
/// Bits are compared. A NaN is equal to another NaN, for devices do not keep what a NaN carries; what the reference
/// does not know is not compared.
pub fn difference(expected: &Expected, bytes: &[u8]) -> Option<Difference> {
    let view = &expected.part.view;
    let size = view.size();
    let (content, mut found) = (&expected.content, None::<Difference>);
    for (i, at) in view.places().into_iter().enumerate() {
        let range = i * size..(i + 1) * size;
        let want = content.bytes.get(range.clone())?;
        if content.known.get(range).is_some_and(|known| known.iter().any(|&known| !known)) {
            continue;
        }
        let got = bytes.get(at..at + size).unwrap_or(&[]);
        if got == want || (is_nan(got, view.dtype) && is_nan(want, view.dtype)) {
            continue;
        }
        let difference = found.get_or_insert_with(|| Difference {
            element: i,
            expected: want.to_vec(),
            got: got.to_vec(),
            count: 0,
            poison: poison_of(got, at),
        });
        difference.count += 1;
    }
    found
}

/// Elements that are not what they should be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The first one, counted in row-major order.
    pub element: usize,
    /// Its bytes.
    pub expected: Vec<u8>,
    /// What is there.
    pub got: Vec<u8>,
    /// How many there are.
    pub count: usize,
    /// Which poison the first one may come from.
    pub poison: Option<&'static str>,
}

impl Difference {
    /// As details of a finding.
    pub fn detail(&self, finding: Finding) -> Finding {
        let bits = |bytes: &[u8]| bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>();
        let finding = finding
            .with("element", self.element.to_string())
            .with("expected bits", bits(&self.expected))
            .with("got bits", bits(&self.got))
            .with("differing elements", self.count.to_string());
        match self.poison {
            Some(poison) => finding.with("poison", poison),
            None => finding,
        }
    }
}

fn poison_of(got: &[u8], at: usize) -> Option<&'static str> {
    let is = |word: u32| {
        let word = word.to_le_bytes();
        !got.is_empty() && got.iter().enumerate().all(|(i, &byte)| byte == word[(at + i) % 4])
    };
    let nan = match got {
        [a, b] => (u16::from_le_bytes([*a, *b]) & 0x7FFF) > 0x7F80,
        [a, b, c, d] => f32::from_le_bytes([*a, *b, *c, *d]).is_nan(),
        _ => false,
    };
    match () {
        () if is(FREED) => Some("freed memory"),
        () if is(UNWRITTEN) => Some("memory that nothing has written"),
        () if is(GUARD) => Some("a guard band"),
        () if nan => Some("a NaN that may be derived from poison"),
        () => None,
    }
}

fn is_nan(bytes: &[u8], dtype: crate::graph::Dtype) -> bool {
    use crate::graph::Dtype;
    match (dtype, bytes) {
        (Dtype::F16, &[a, b]) => half::f16::from_le_bytes([a, b]).is_nan(),
        (Dtype::BF16, &[a, b]) => half::bf16::from_le_bytes([a, b]).is_nan(),
        (Dtype::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]).is_nan(),
        (Dtype::F64 | Dtype::C128, bytes) => bytes
            .chunks_exact(8)
            .any(|part| part.try_into().is_ok_and(|part| f64::from_le_bytes(part).is_nan())),
        (Dtype::C64, bytes) => bytes
            .chunks_exact(4)
            .any(|part| part.try_into().is_ok_and(|part| f32::from_le_bytes(part).is_nan())),
        _ => false,
    }
}

/// A line of the table of steps.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Row {
    /// Rank and node.
    pub step: String,
    /// The streams that its commands run on.
    pub streams: String,
    /// Events that it waits for.
    pub waits: usize,
    /// Buffers that it allocates and frees, and kernels that it launches.
    pub allocs: usize,
    #[allow(missing_docs)]
    pub frees: usize,
    #[allow(missing_docs)]
    pub launches: usize,
    /// Predicted live bytes after it.
    pub predicted: u64,
    /// Measured live bytes after it.
    pub measured: u64,
    /// What the allocator holds.
    pub reserved: u64,
    /// A hash of what it wrote; `None` where it wrote nothing.
    pub hash: Option<u64>,
    /// Whether that is what the interpreter wrote.
    pub right: bool,
}

/// One pass over a plan.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PassReport {
    /// Its number in docs/gpu.md.
    pub number: u32,
    /// Its name.
    pub name: &'static str,
    /// What it did, or why it did nothing, in one line.
    pub note: String,
    /// Whether it was left out.
    pub skipped: bool,
    /// What it found.
    pub findings: Vec<Finding>,
    /// The table, of the pass that makes one.
    pub rows: Vec<Row>,
}

/// All passes over the plan of a case.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CaseReport {
    /// The case.
    pub name: String,
    /// Why there is no plan.
    pub refused: Option<String>,
    /// Hash of the plan.
    pub hash: u64,
    /// How many ranks, steps, commands, buffers and streams the plan has.
    pub sizes: [usize; 5],
    /// Operators that only the host has.
    pub host_only: Vec<String>,
    /// For each rank the predicted live bytes, not rounded, node by node.
    pub predicted: Vec<Value>,
    /// The fault that was planted.
    pub injected: Option<String>,
    /// The passes.
    pub passes: Vec<PassReport>,
    /// The command that does this again.
    pub replay: String,
}

impl CaseReport {
    /// Whether a pass found something.
    pub fn is_violated(&self) -> bool {
        self.passes.iter().any(|pass| !pass.findings.is_empty())
    }
}

/// A smoke run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// The device.
    pub device: Description,
    /// The seed.
    pub seed: u64,
    /// The cases.
    pub cases: Vec<CaseReport>,
}

impl Report {
    /// For people. `table` adds the table of steps.
    pub fn text(&self, table: bool) -> String {
        let Description { device, driver, kernels, granularity } = &self.device;
        let mut text = format!(
            "device {device}, driver {driver}, kernels {kernels}, granularity {granularity} bytes, seed {}\n",
            self.seed
        );
        for case in &self.cases {
            text += &case.text(table);
        }
        let count =
            |wanted: &dyn Fn(&CaseReport) -> bool| self.cases.iter().filter(|case| wanted(case)).count();
        let (violated, refused) = (count(&CaseReport::is_violated), count(&|case| case.refused.is_some()));
        let clean = self.cases.len() - violated - refused;
        text + &format!(
            "{} cases: {clean} clean, {violated} with findings, {refused} not run\n",
            self.cases.len()
        )
    }

    /// For machines.
    pub fn json(&self) -> Value {
        json!({
            "smoke_version": "graph-oracle-smoke/1",
            "device": self.device.device,
            "driver": self.device.driver,
            "kernels": self.device.kernels,
            "granularity_bytes": self.device.granularity,
            "seed": self.seed,
            "cases": self.cases.iter().map(CaseReport::json).collect::<Vec<_>>(),
        })
    }
}

impl CaseReport {
    fn text(&self, table: bool) -> String {
        let mut text = format!("\n{}\n", self.name);
        if let Some(reason) = &self.refused {
            return text + &format!("  not run: {reason}\n");
        }
        let [ranks, steps, commands, buffers, streams] = self.sizes;
        text += &format!(
            "  plan {:016x}: {ranks} ranks, {steps} steps, {commands} commands, {buffers} buffers, {streams} streams\n",
            self.hash
        );
        if let Some(injected) = &self.injected {
            text += &format!("  injected: {injected}\n");
        }
        for pass in &self.passes {
            let state = match (pass.skipped, pass.findings.len()) {
                (true, _) => "skipped".to_string(),
                (_, 0) => "ok".to_string(),
                (_, n) => format!("{n} findings"),
            };
            text += &format!("  pass {} {}: {state} ({})\n", pass.number, pass.name, pass.note);
            if table && !pass.rows.is_empty() {
                text += &rows(&pass.rows);
            }
            for finding in &pass.findings {
                text += &finding.text();
            }
        }
        if self.is_violated() {
            text += &format!("  again: {}\n", self.replay);
        }
        text
    }

    fn json(&self) -> Value {
        let [ranks, steps, commands, buffers, streams] = self.sizes;
        json!({
            "name": self.name,
            "refused": self.refused,
            "plan_hash": format!("{:016x}", self.hash),
            "ranks": ranks, "steps": steps, "commands": commands, "buffers": buffers, "streams": streams,
            "host_only": self.host_only,
            "predicted": self.predicted,
            "injected": self.injected,
            "replay": self.replay,
            "passes": self.passes.iter().map(|pass| json!({
                "pass": pass.number,
                "name": pass.name,
                "skipped": pass.skipped,
                "note": pass.note,
                "findings": pass.findings.iter().map(Finding::json).collect::<Vec<_>>(),
                "steps": pass.rows.iter().map(|row| json!({
                    "step": row.step, "streams": row.streams, "waits": row.waits, "allocs": row.allocs,
                    "frees": row.frees, "launches": row.launches, "predicted_bytes": row.predicted,
                    "measured_bytes": row.measured, "reserved_bytes": row.reserved,
                    "hash": row.hash.map(|hash| format!("{hash:016x}")), "right": row.right,
                })).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
        })
    }
}

/// The table of steps.
fn rows(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.step.len()).max().unwrap_or(0).max(4);
    let streams = rows.iter().map(|row| row.streams.len()).max().unwrap_or(0).max(7);
    let mut text = format!(
        "    {:width$}  {:streams$}  waits allocs frees launches  predicted   measured      delta   reserved  output\n",
        "step", "streams"
    );
    for row in rows {
        let delta = row.measured as i128 - row.predicted as i128;
        let output = match (row.hash, row.right) {
            (None, _) => "-".to_string(),
            (Some(hash), true) => format!("{hash:016x}"),
            (Some(hash), false) => format!("{hash:016x} WRONG"),
        };
        let _ = writeln!(
            text,
            "    {:width$}  {:streams$}  {:5} {:6} {:5} {:8} {:10} {:10} {:10} {:10}  {output}",
            row.step,
            row.streams,
            row.waits,
            row.allocs,
            row.frees,
            row.launches,
            row.predicted,
            row.measured,
            delta,
            row.reserved
        );
    }
    text
}
