//! The passes of a smoke run, each with one question. Their numbers are those of docs/gpu.md.
//!
//! | pass | question |
//! |--:|---|
//! | 0 | Can the device run plans, and do its kernels compute what the host's compute? |
//! | 1 | Is the plan sound as it stands: lifetimes, bounds, happens-before, order of collectives? |
//! | 2 | Do all interleavings that the seeds pick give the values of the interpreter on the host, without a race? |
//! | 3 | Step by step on one device: is memory in use exactly what was predicted, and every value right? |
//! | 4 | With guard bands, and no memory used twice: does anything write outside, or read what is gone? |
//! | 5 | On real streams, with memory reused at once and streams delayed at random: are the outputs right each time? |
//! | 6 | In one block, every buffer placed as early as its memory is free: are the outputs still right? |
//! | 7 | Captured as a CUDA graph and launched twice: are the outputs right both times? |

pub(super) mod arena;
mod inspect;
mod preflight;
mod replay;

pub use arena::earliest;
pub use inspect::inspect;
pub use preflight::preflight;
pub use replay::{How, Replayed, replay};

use super::device::{Device, Placement, Trouble};
use super::host::Host;
use super::inject::{Fault, Injected};
use super::plan::{Plan, Source, lower, small_inputs};
use super::report::{CaseReport, Finding, Kind, PassReport};
use crate::analysis::validate::validate;
use crate::graph::Graph;
use crate::limits::Limit;
use crate::ops::Ops;
use crate::semantics::observe::{Observed, observe};
use crate::semantics::{Concrete, Options as RunOptions, Program};

/// What a smoke run does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Where values, interleavings and delays are drawn from.
    pub seed: u64,
    /// Interleavings of pass 2.
    pub interleavings: u64,
    /// Repetitions of pass 5.
    pub repetitions: u64,
    /// A fault to plant.
    pub inject: Option<Fault>,
    /// The most elements that the ranks of a case may have together.
    pub max_elements: u64,
    /// The most ranks of a case.
    pub max_ranks: u64,
    /// The most entries of its clocks.
    pub max_clocks: u64,
    /// How the run is done again: the command without the case.
    pub command: String,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 0,
            interleavings: 20,
            repetitions: 10,
            inject: None,
            max_elements: Limit::Smoke.standard(),
            max_ranks: Limit::SmokeRanks.standard(),
            max_clocks: Limit::SmokeClocks.standard(),
            command: "graph-oracle smoke".to_string(),
        }
    }
}

/// A case: a graph that all ranks run, or one for each rank.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// What names it on the command line.
    pub file: Option<String>,
    /// The graphs.
    pub graphs: Vec<Graph>,
}

/// Lowers the graph of a case and gives the plan to `then`, with the run that it comes from.
///
/// # Errors
/// Why the graph cannot be executed or lowered.
pub fn with_plan<T>(
    case: &Case,
    options: &Options,
    then: impl FnOnce(Plan, &mut Observed) -> T,
) -> Result<T, String> {
    let first = case.graphs.first().ok_or("there is no graph")?;
    for graph in &case.graphs {
        if let Some(fault) = validate(graph).iter().find(|fault| fault.is_fatal()) {
            return Err(fault.to_string());
        }
    }
    let world = first.world.assume_mesh().ok_or("the ranks of its process groups are not known")?;
    let ops: Vec<Ops> = case.graphs.iter().map(Ops::of).collect();
    let programs: Result<Vec<Program>, _> =
        case.graphs.iter().zip(&ops).map(|(graph, ops)| Program::new(graph, ops, &world)).collect();
    let programs = programs.map_err(|failure| failure.to_string())?;
    let ranks = world.ranks.unwrap_or_else(|| {
        let all = world.groups.iter().flat_map(|group| group.instances.iter().flatten());
        all.copied().max().map_or(programs.len().max(1) as u32, |rank| rank.saturating_add(1))
    });
    if u64::from(ranks) > options.max_ranks {
        return Err(format!("it has {ranks} ranks, the limit is {}", options.max_ranks));
    }
    let largest = programs.iter().map(Program::elements).max().unwrap_or(0);
    let needs = largest.saturating_mul(u128::from(ranks));
    if needs > u128::from(options.max_elements) {
        return Err(format!("it needs {needs} elements, the limit is {}", options.max_elements));
    }
    let given = small_inputs(&programs, ranks, options.seed).map_err(|failure| failure.to_string())?;
    let domain = Concrete { seed: options.seed, large_every: 0, ..Concrete::default() };
    // A replay executes each node once more, beside everything that the run has made.
    let run =
        RunOptions { given, max_elements: options.max_elements.saturating_mul(4), ..RunOptions::default() };
    let mut observed = observe(&programs, &world, &domain, &run).map_err(|failure| failure.to_string())?;
    let source = Source { name: &case.name, graphs: &case.graphs, ops: &ops, world: &world };
    let plan = lower(source, &observed)?;
    let (streams, events) = (plan.streams.len() as u64, plan.events.len() as u64);
    let entries = streams.saturating_mul(streams + events);
    if entries > options.max_clocks {
        return Err(format!(
            "its {streams} streams and {events} events have clocks of {entries} entries, the limit is {}",
            options.max_clocks
        ));
    }
    Ok(then(plan, &mut observed))
}

/// Runs all passes over a case. `device` is another device than the host, if there is one.
///
/// # Errors
/// Where a device fails or cannot do what is asked.
pub fn smoke(case: &Case, options: &Options, device: Option<&mut dyn Device>) -> Result<CaseReport, Trouble> {
    let mut report =
        CaseReport { name: case.name.clone(), replay: again(case, options), ..CaseReport::default() };
    let planned = with_plan(case, options, |plan, observed| {
        let injected = match options.inject {
            Some(fault) => fault.plant(plan, options.seed)?,
            None => Injected { plan, offsets: None, what: String::new() },
        };
        Ok::<_, String>(run_passes(&injected, observed, options, device, &mut report))
    });
    match planned {
        Ok(Ok(result)) => result?,
        Ok(Err(reason)) | Err(reason) => report.refused = Some(reason),
    }
    Ok(report)
}

fn again(case: &Case, options: &Options) -> String {
    let inject = options.inject.map(|fault| format!(" --inject {}", fault.name())).unwrap_or_default();
    let of = case.file.as_deref().unwrap_or(&case.name);
    format!("{} --seed {}{inject} {of}", options.command, options.seed)
}

fn run_passes(
    injected: &Injected,
    observed: &mut Observed,
    options: &Options,
    device: Option<&mut dyn Device>,
    report: &mut CaseReport,
) -> Result<(), Trouble> {
    let plan = &injected.plan;
    report.hash = plan.hash();
    report.sizes =
        [plan.ranks as usize, plan.steps.len(), plan.commands.len(), plan.buffers.len(), plan.streams.len()];
    report.host_only = plan.host_only.clone();
    report.predicted = plan.predictions();
    report.injected = Some(injected.what.clone()).filter(|what| !what.is_empty());
    report.passes.push(PassReport {
        number: 1,
        name: "static",
        note: format!("{} commands, {} collectives", plan.commands.len(), plan.rounds.len()),
        findings: inspect(plan),
        ..PassReport::default()
    });
    report.passes.push(interleavings(plan, observed, options)?);
    let offsets = injected.offsets.clone().unwrap_or_else(|| earliest(plan));
    match device {
        None => {
            let mut host = Host::new(plan, observed, None);
            on_device(plan, &mut host, options, &offsets, report)
        }
        Some(_) if !plan.host_only.is_empty() => {
            let note = format!("no kernels for {}", plan.host_only.join(", "));
            for (number, name) in [(3, LOCKSTEP), (4, GUARDS), (5, STREAMS), (6, ARENA), (7, GRAPH)] {
                let note = note.clone();
                report.passes.push(PassReport { number, name, note, skipped: true, ..PassReport::default() });
            }
            Ok(())
        }
        Some(device) => match on_device(plan, device, options, &offsets, report) {
            // A device that fails says something about the plan; one that cannot go on does not.
            Err(Trouble::Failed(reason)) => {
                let findings = vec![Finding::new(Kind::Device, reason)];
                let note = "the passes after it were not run".to_string();
                let number = report.passes.last().map_or(3, |pass| pass.number + 1).max(3);
                report.passes.push(PassReport {
                    number,
                    name: "device",
                    note,
                    findings,
                    ..PassReport::default()
                });
                Ok(())
            }
            other => other,
        },
    }
}

const LOCKSTEP: &str = "lockstep, exact memory";
const GUARDS: &str = "lockstep, guards and quarantine";
const STREAMS: &str = "real streams with delays";
const ARENA: &str = "arena with earliest reuse";
const GRAPH: &str = "captured graph";

/// Pass 2.
fn interleavings(plan: &Plan, observed: &mut Observed, options: &Options) -> Result<PassReport, Trouble> {
    let mut pass = PassReport { number: 2, name: "host replay", ..PassReport::default() };
    let mut wrong = 0;
    for i in 0..options.interleavings {
        let mut host = Host::new(plan, observed, Some(options.seed.wrapping_add(i)));
        let replayed = replay(plan, &mut host, &Placement::Guarded, How::default())?;
        wrong += u64::from(!replayed.findings.is_empty());
        for mut finding in replayed.findings {
            // What every interleaving shows is told once.
            let known = |other: &Finding| other.kind == finding.kind && other.place == finding.place;
            if !pass.findings.iter().any(known) {
                finding = finding.with("interleaving", options.seed.wrapping_add(i).to_string());
                pass.findings.push(finding);
            }
        }
    }
    pass.note = format!("{} interleavings, {wrong} of them with findings", options.interleavings);
    Ok(pass)
}

/// Passes 3 to 7.
fn on_device(
    plan: &Plan,
    device: &mut dyn Device,
    options: &Options,
    offsets: &[u64],
    report: &mut CaseReport,
) -> Result<(), Trouble> {
    let lockstep = How { lockstep: true, ..How::default() };
    let exact = replay(plan, device, &Placement::Allocator, How { memory: true, ..lockstep })?;
    report.passes.push(PassReport {
        number: 3,
        name: LOCKSTEP,
        note: match plan.doubt() {
            None => format!("peak {} bytes, predicted {}", exact.usage.peak, exact.predicted_peak),
            Some(doubt) => format!("memory is not compared: {doubt}"),
        },
        findings: exact.findings,
        rows: exact.rows,
        skipped: false,
    });
    let guarded = replay(plan, device, &Placement::Guarded, lockstep)?;
    report.passes.push(PassReport {
        number: 4,
        name: GUARDS,
        note: format!("{} bytes on both sides", super::device::GUARD_BYTES),
        findings: guarded.findings,
        ..PassReport::default()
    });
    let mut streams = PassReport { number: 5, name: STREAMS, ..PassReport::default() };
    let mut high = 0;
    for i in 0..options.repetitions {
        let how = How { delays: Some(options.seed.wrapping_add(i)), ..How::default() };
        let replayed = replay(plan, device, &Placement::Allocator, how)?;
        high = high.max(replayed.usage.peak);
        if streams.findings.is_empty() {
            streams.findings = replayed.findings;
        }
    }
    let granularity = device.describe().granularity.max(1);
    let most: u64 = plan.buffers.iter().map(|buffer| buffer.bytes.div_ceil(granularity) * granularity).sum();
    streams.note = format!(
        "{} repetitions, high water {high} bytes, between {} in lockstep and {most} for all buffers",
        options.repetitions, exact.predicted_peak
    );
    report.passes.push(streams);
    let (placement, mut findings) = arena::placed(plan, offsets);
    let how = How { delays: Some(options.seed), ..How::default() };
    findings.extend(replay(plan, device, &placement, how)?.findings);
    let bytes = match &placement {
        Placement::Arena { bytes, .. } => *bytes,
        _ => 0,
    };
    let note = format!("{bytes} bytes for {most} bytes of buffers");
    report.passes.push(PassReport { number: 6, name: ARENA, note, findings, ..PassReport::default() });
    let mut graph = PassReport { number: 7, name: GRAPH, ..PassReport::default() };
    match device.captures() {
        false => (graph.skipped, graph.note) = (true, "the device captures no graphs".to_string()),
        true => {
            let how = How { captured: true, ..How::default() };
            graph.findings = replay(plan, device, &placement, how)?.findings;
            graph.note = "launched twice".to_string();
        }
    }
    report.passes.push(graph);
    Ok(())
}
