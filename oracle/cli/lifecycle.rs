//! `graph-oracle lifecycle`: events of an executor, judged one by one.

use super::files;
use super::{CouldNotRun, Format, Status, formats, print};
use crate::format::pickle;
use crate::format::recognise::Kind;
use crate::graph::Graph;
use crate::lifecycle::{Mode, Prediction, Summary, Verifier, events_of_replay, read_events, write_events};
use crate::limits::Limits;
use crate::memory::Replay;
use crate::memory::replay::{Facts, Options, replay_facts};
use crate::report::memory::MemoryReport;
use crate::rules::PassKind;
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub(super) struct Lifecycle {
    /// Events, a JSON object a line, or a memory snapshot of PyTorch (docs/memory.md). Without it, the events of the
    /// graph's own run are printed.
    events: Option<PathBuf>,
    /// The graph whose allocations and frees are predicted; without it only memory safety is judged. Beside a snapshot:
    /// the graph that it is put beside.
    #[arg(long, value_name = "GRAPH")]
    graph: Option<PathBuf>,
    /// Stop at the first fault.
    #[arg(long)]
    assert: bool,
    /// The format of the report.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

impl Lifecycle {
    pub(super) fn run(&self, limits: &Limits, out: &mut dyn Write) -> Result<Status, CouldNotRun> {
        let graph = self.graph.as_ref().map(|path| read_graph(path, limits)).transpose()?;
        let Some(path) = &self.events else {
            let (Some(graph), Some(path)) = (&graph, &self.graph) else {
                return Err(CouldNotRun::new("give EVENTS, or --graph GRAPH"));
            };
            let (facts, replay) = replayed(graph, path)?;
            print(out, &write_events(&events_of_replay(&facts, &replay)))?;
            return Ok(Status::Sound);
        };
        let text = files::plain(path, limits)?;
        if matches!(files::kind(&text, limits), Some(Kind::Events)) {
            files::check_parts(path, &text, limits)?;
        }
        let events = match read_events(&text) {
            Ok(events) => events,
            Err(error) => {
                let is_pickle = pickle::is_pickle(&text);
                return match if is_pickle { Some(Kind::MemorySnapshot) } else { files::kind(&text, limits) } {
                    Some(Kind::MemorySnapshot) => self.snapshot(path, &text, graph.as_ref(), limits, out),
                    None | Some(Kind::Events) => Err(files::in_file(path, &error)),
                    Some(kind) => Err(files::in_file(path, &kind.advice())),
                };
            }
        };
        let mode = if self.assert { Mode::Assert } else { Mode::Log };
        let mut notes = Vec::new();
        let verifier = match (&graph, &self.graph) {
            (Some(graph), Some(path)) => {
                let replay = replayed(graph, path)?.1;
                notes = notes_of(&replay);
                Verifier::new(Prediction::of_replay(graph, &replay), mode)
            }
            _ => Verifier::of_safety(mode),
        };
        let summary = verifier.judge(events);
        let results = || formats::runs::lifecycle(&summary, &notes, path, &text);
        self.format.print(out, || text_of(&summary, &notes), || json(&summary, &notes), results)?;
        Ok(match (summary.faults.is_empty(), summary.events) {
            (false, _) => Status::Violated,
            (true, 0) => Status::Undecided,
            (true, _) => Status::Sound,
        })
    }
}

impl Lifecycle {
    /// Judges a memory snapshot.
    fn snapshot(
        &self,
        path: &Path,
        bytes: &[u8],
        graph: Option<&Graph>,
        limits: &Limits,
        out: &mut dyn Write,
    ) -> Result<Status, CouldNotRun> {
        let report = graph.map(MemoryReport::new).transpose();
        let report = report.map_err(|fault| match &self.graph {
            Some(graph) => files::in_file(graph, &fault),
            None => CouldNotRun::new(fault),
        })?;
        files::with_snapshot(path, bytes, limits, |mut measured| {
            if self.assert {
                measured.stop_at_first_fault();
            }
            let beside = report.as_ref().map(|report| measured.beside(report));
            let json = || {
                let mut value = measured.json();
                if let Some(object) = value.as_object_mut() {
                    object.insert("snapshot_version".into(), "graph-oracle-snapshot/1".into());
                    let graph = beside.as_ref().map_or(serde_json::Value::Null, |(_, value)| value.clone());
                    object.insert("graph".into(), graph);
                }
                value
            };
            let text = || measured.text() + beside.as_ref().map_or("", |(text, _)| text);
            self.format.print(out, text, json, || formats::runs::snapshot(&measured, path))?;
            Ok(match (measured.faults() > 0 || measured.ran_out(), measured.has_events()) {
                (true, _) => Status::Violated,
                (false, true) => Status::Sound,
                (false, false) => Status::Undecided,
            })
        })
    }
}

fn read_graph(path: &Path, limits: &Limits) -> Result<Graph, CouldNotRun> {
    let graph = files::read(path, limits)?.into_graph(path)?;
    let faults = crate::judge::input_faults(&graph, PassKind::Memory);
    if !faults.is_empty() {
        return Err(CouldNotRun::faults(path, &faults));
    }
    Ok(graph)
}

fn replayed<'g>(graph: &'g Graph, path: &Path) -> Result<(Facts<'g>, Replay), CouldNotRun> {
    let facts = Facts::new(graph);
    let replay = replay_facts(&facts, Options::default())
        .map_err(|fault| CouldNotRun::new(format_args!("{}: {fault}", path.display())))?;
    Ok((facts, replay))
}

/// What is not held against the graph, and what the prediction does not know.
fn notes_of(replay: &Replay) -> Vec<String> {
    let unknown = [
        (replay.uncertain.len(), "may or may not share memory: the prediction is an upper bound"),
        (
            replay.ledger.unrecorded.len(),
            "may return tensors of which nothing is recorded: 0 bytes are predicted for them",
        ),
    ];
    let nodes = |n: usize| if n == 1 { "1 node".to_string() } else { format!("{n} nodes") };
    let known = "allocations and frees are held against the graph; reads, writes, launches and waits are not, only \
                 against what is live and in flight";
    let doubts = unknown.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", nodes(*n)));
    std::iter::once(known.to_string()).chain(doubts).collect()
}

fn text_of(summary: &Summary, notes: &[String]) -> String {
    let mut text: String = summary.faults.iter().map(|fault| format!("{fault}\n")).collect();
    let found = match summary.faults.len() {
        0 => "no fault".to_string(),
        1 => "1 fault".to_string(),
        n => format!("{n} faults"),
    };
    text += &format!(
        "{found} in {} events and {} steps; at most {} bytes live, in step {}; {} at the end\n",
        summary.events, summary.steps, summary.peak, summary.peak_step, summary.live
    );
    notes.iter().for_each(|note| text += &format!("note: {note}\n"));
    text
}

fn json(summary: &Summary, notes: &[String]) -> serde_json::Value {
    serde_json::json!({
        "lifecycle_version": "graph-oracle-lifecycle/1",
        "faults": summary.faults.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "events": summary.events,
        "steps": summary.steps,
        "peak_bytes": summary.peak,
        "peak_step": summary.peak_step,
        "live_bytes": summary.live,
        "notes": notes,
    })
}
