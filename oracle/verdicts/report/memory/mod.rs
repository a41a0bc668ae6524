//! What there is to tell about the memory of a graph: PyTorch's count, the truth, and where and why they part.

mod grouped;
mod measured;
mod svg;
mod trace;

pub use grouped::Group;
pub use measured::Measured;
pub use svg::{BYTES_AT, STEPS_AT, svg};
pub use trace::trace;

use crate::graph::{Graph, NodeId};
use crate::memory::difference::{Difference, first_difference};
use crate::memory::profile::{Profile, Releasable, not_placeholder, profile_of, recorded_ledger};
use crate::memory::replay::{Facts, Options, contents, replay_facts};
use crate::memory::{Devices, Ledger, Life, MemoryFault, PYTORCH_UNBACKED, Replay, Steps};
use ir::words;
use std::fmt::Write;

/// Both counts of one graph.
pub struct MemoryReport<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// Which devices count.
    pub devices: Devices,
    /// The storages as recorded.
    pub ledger: Ledger,
    /// PyTorch's count.
    pub profile: Profile,
    /// The truth.
    pub replay: Replay,
    /// Where they part first.
    pub difference: Option<Difference>,
}

/// How many storages of a peak are listed.
const LISTED: usize = 12;

impl<'a> MemoryReport<'a> {
    /// Counts the memory of a graph in both ways, inputs never freed. A symbol without a hint counts as in PyTorch, and
    /// the report says so.
    pub fn new(graph: &'a Graph) -> Result<MemoryReport<'a>, MemoryFault> {
        MemoryReport::with(graph, &not_placeholder, Some(PYTORCH_UNBACKED), &|_, _| false)
    }

    /// The same with other suppositions: what the profile may release, what a symbol without a hint counts as (`None`:
    /// it is a fault), which inputs the caller gives away.
    pub fn with(
        graph: &'a Graph,
        releasable: Releasable,
        unbacked: Option<i64>,
        donated: Releasable,
    ) -> Result<MemoryReport<'a>, MemoryFault> {
        let ledger = recorded_ledger(graph);
        let devices = Devices::of(graph, &ledger);
        let replay = replay_facts(&Facts::new(graph), Options { devices, unbacked, donated })?;
        let profile = profile_of(graph, &ledger, devices, releasable)?;
        let difference = first_difference(graph, &profile.steps, Some((&ledger, &profile.lives)), &replay);
        Ok(MemoryReport { graph, devices, ledger, profile, replay, difference })
    }

    /// The peak by PyTorch's count.
    pub fn profile_peak_bytes(&self) -> i64 {
        self.profile.steps.peak().0
    }

    /// The true peak.
    pub fn replay_peak_bytes(&self) -> i64 {
        self.replay.steps.peak().0
    }

    fn name(&self, id: NodeId) -> String {
        cut(self.graph.name(id).to_string())
    }

    /// "step 12 (mm)".
    fn place(&self, steps: &Steps, step: Option<u32>) -> String {
        match step.and_then(|i| Some((i, steps.steps.get(i as usize)?))) {
            Some((i, step)) => format!("step {i} ({})", self.name(step.node)),
            None => "before the first step".to_string(),
        }
    }

    /// Lines that say on what the numbers rest.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.devices == Devices::All {
            notes.push("no tensor is on an accelerator: the CPU's memory counts".to_string());
        }
        notes.extend(self.replay.uncounted(self.graph, self.devices));
        let mut told = |of: usize, what: &str| {
            if of > 0 {
                notes.push(format!("{of} {what}"));
            }
        };
        told(
            self.replay.assumed.len(),
            "storages depend on a symbol without a hint: the sizes are assumed, not known",
        );
        told(self.replay.uncertain.len(), "nodes may or may not share memory: the replay is an upper bound");
        told(
            self.replay.ledger.unrecorded.len(),
            "nodes may return tensors of which nothing is recorded: they count nothing",
        );
        notes
    }

    /// Why the two counts differ at the profile's peak: each cause with its bytes, the largest storages as examples.
    pub fn peak_causes(&self) -> Vec<String> {
        let (_, step) = self.profile.steps.peak();
        let covers = |life: &Life| match step {
            Some(step) => life.covers(step),
            None => life.start.is_none(),
        };
        let mut told = Vec::new();
        let mut tell = |mut of: Vec<(i64, String)>, what: &str| {
            if of.is_empty() {
                return;
            }
            let sum = of.iter().map(|(bytes, _)| i128::from(*bytes)).sum::<i128>();
            of.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
            let examples: Vec<&str> = of.iter().take(3).map(|(_, words)| words.as_str()).collect();
            let more = if of.len() > 3 { format!(", and {} more", of.len() - 3) } else { String::new() };
            told.push(format!("{what} {sum} bytes: {}{more}", examples.join("; ")));
        };
        // The storage that the replay knows for a storage of the profile, by allocator and place.
        let real = |i: usize| {
            let (life, place) = (self.profile.lives[i], self.ledger.entries[i].place as usize);
            let shown = self.replay.ledger.shown(life.by);
            shown.get(place).or(shown.first()).map(|&s| s as usize)
        };
        let (mut twice, mut longer) = (Vec::new(), Vec::new());
        // Of several storages of the profile that are one at run time, the first counts by right.
        let mut counted: Vec<Option<usize>> = vec![None; self.replay.lives.len()];
        for (i, life) in self.profile.lives.iter().enumerate().filter(|(_, l)| l.bytes > 0 && covers(l)) {
            let Some(real) = real(i) else { continue };
            match counted[real] {
                None if covers(&self.replay.lives[real]) => counted[real] = Some(i),
                None => longer.push((life.bytes, self.name(life.by))),
                Some(first) => {
                    let first = self.name(self.profile.lives[first].by);
                    twice.push((life.bytes, format!("{} is the memory of {first}", self.name(life.by))));
                }
            }
        }
        let mut missed = Vec::new();
        for (i, life) in self.replay.lives.iter().enumerate().filter(|(_, l)| l.bytes > 0 && covers(l)) {
            if counted[i].is_none() {
                let why = self.replay.held[i].describe(self.graph);
                missed.push((life.bytes, format!("{} ({why})", self.name(life.by))));
            }
        }
        tell(twice, "the profile counts again");
        tell(longer, "the profile still counts");
        tell(missed, "the profile misses");
        told
    }

    /// The report for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let profile = self.place(&self.profile.steps, self.profile.steps.peak().1);
        let replay = self.place(&self.replay.steps, self.replay.steps.peak().1);
        let _ = writeln!(text, "profile_peak_bytes {:>16}  {profile}", self.profile_peak_bytes());
        let _ = writeln!(text, "replay_peak_bytes  {:>16}  {replay}", self.replay_peak_bytes());
        for note in self.notes() {
            let _ = writeln!(text, "note: {note}");
        }
        match &self.difference {
            None => text.push_str("profile and replay agree at every step\n"),
            Some(difference) => {
                let _ = writeln!(text, "they part first {}", difference.describe(self.graph));
                difference.why.iter().for_each(|why| {
                    let _ = writeln!(text, "  because {why}");
                });
                let causes = self.peak_causes();
                if !causes.is_empty() {
                    let _ = writeln!(text, "at the profile's peak, {profile}:");
                    causes.iter().for_each(|cause| {
                        let _ = writeln!(text, "  {cause}");
                    });
                }
            }
        }
        let _ = writeln!(text, "live at the replay's peak, {replay}:");
        for (bytes, what) in self.listed() {
            let _ = writeln!(text, "  {bytes:>16}  {what}");
        }
        for (what, groups) in [("kind", self.by_kind()), ("module", self.by_module())] {
            if !groups.is_empty() {
                let _ = writeln!(text, "  by {what}:");
            }
            for group in groups.iter().take(LISTED) {
                let _ = writeln!(
                    text,
                    "  {:>16}  {} ({})",
                    group.bytes,
                    group.name,
                    words::count(group.storages, "storage")
                );
            }
        }
        text
    }

    /// The largest storages at the replay's peak, then the sum of the others.
    fn listed(&self) -> Vec<(i64, String)> {
        let at = contents(&self.replay.lives, self.replay.steps.peak().1);
        let mut listed: Vec<(i64, String)> = at
            .iter()
            .take(LISTED)
            .map(|&i| {
                let life = self.replay.lives[i];
                let held = cut(self.replay.held[i].describe(self.graph));
                (life.bytes, format!("{}: {held}", self.name(life.by)))
            })
            .collect();
        if at.len() > LISTED {
            let rest =
                at[LISTED..].iter().fold(0i64, |sum, &i| sum.saturating_add(self.replay.lives[i].bytes));
            listed.push((rest, format!("{} others", at.len() - LISTED)));
        }
        listed
    }

    /// The report for machines.
    pub fn json(&self) -> serde_json::Value {
        let step = |steps: &Steps| {
            let step = steps.peak().1;
            let node = step.and_then(|i| steps.steps.get(i as usize)).map(|step| self.name(step.node));
            serde_json::json!({ "step": step, "node": node })
        };
        let difference = self.difference.as_ref().map(|difference| {
            serde_json::json!({
                "step": difference.step,
                "node": difference.node.map(|node| self.name(node)),
                "predicted_bytes": difference.predicted,
                "replayed_bytes": difference.replayed,
                "why": difference.why,
            })
        });
        let group = |group: &Group| serde_json::json!({ "what": group.name, "storages": group.storages, "bytes": group.bytes });
        let contents: Vec<_> = self
            .listed()
            .into_iter()
            .map(|(bytes, what)| serde_json::json!({ "bytes": bytes, "what": what }))
            .collect();
        serde_json::json!({
            "profile_peak_bytes": self.profile_peak_bytes(),
            "profile_peak": step(&self.profile.steps),
            "replay_peak_bytes": self.replay_peak_bytes(),
            "replay_peak": step(&self.replay.steps),
            "first_difference": difference,
            "peak_causes": self.peak_causes(),
            "peak_contents": contents,
            "peak_by_kind": self.by_kind().iter().map(group).collect::<Vec<_>>(),
            "peak_by_module": self.by_module().iter().map(group).collect::<Vec<_>>(),
            "notes": self.notes(),
        })
    }
}

/// A statement with an end: names may have megabytes.
fn cut(mut statement: String) -> String {
    words::cut(&mut statement);
    statement
}

#[cfg(test)]
mod tests;
