//! The first step at which a prediction and the replay part, and why.

use super::ledger::Ledger;
use super::replay::{Held, Replay};
use super::steps::{Life, Steps};
use crate::graph::{Graph, NodeId};

/// Where two ways of counting part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The step; `None`: before the first one.
    pub step: Option<u32>,
    /// The node that runs there.
    pub node: Option<NodeId>,
    /// In which phase of it.
    pub phase: Phase,
    /// Live bytes by the prediction.
    pub predicted: i64,
    /// Live bytes by the replay.
    pub replayed: i64,
    /// The causes found, in words; the storages of the graph in list order.
    pub why: Vec<String>,
}

/// A phase of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// After its allocations.
    Peak,
    /// After its frees.
    After,
}

impl Difference {
    /// In one line, without the causes.
    pub fn describe(&self, graph: &Graph) -> String {
        let place = match (self.step, self.node) {
            (Some(step), Some(node)) => {
                let phase = match self.phase {
                    Phase::Peak => "after the allocations of",
                    Phase::After => "after the frees of",
                };
                format!("{phase} step {step} ({})", graph.name(node))
            }
            _ => "before the first step".to_string(),
        };
        let (more, less) = (self.predicted.max(self.replayed), self.predicted.min(self.replayed));
        format!(
            "{place}: {} bytes predicted, {} bytes live ({} by {})",
            self.predicted,
            self.replayed,
            if self.predicted > self.replayed { "too many" } else { "too few" },
            more.saturating_sub(less)
        )
    }
}

/// The first step at which `predicted` and the replay part; `None` where they never do. `lives` are the lives that
/// the prediction rests on, if it tells them, and `ledger` their storages.
pub fn first_difference(
    graph: &Graph,
    predicted: &Steps,
    lives: Option<(&Ledger, &[Life])>,
    replay: &Replay,
) -> Option<Difference> {
    let truth = &replay.steps;
    let found = |step: Option<u32>, node, phase, predicted, replayed| {
        let mut difference = Difference { step, node, phase, predicted, replayed, why: Vec::new() };
        if let Some((ledger, lives)) = lives {
            difference.why = causes(graph, &difference, ledger, lives, replay);
        }
        Some(difference)
    };
    if predicted.before != truth.before {
        return found(None, None, Phase::Peak, predicted.before, truth.before);
    }
    for (i, (a, b)) in predicted.steps.iter().zip(&truth.steps).enumerate() {
        let step = Some(i as u32);
        if a.peak != b.peak {
            return found(step, Some(b.node), Phase::Peak, a.peak, b.peak);
        }
        if a.after != b.after {
            return found(step, Some(b.node), Phase::After, a.after, b.after);
        }
    }
    None
}

/// What is allocated or freed at the step by one of the two only.
fn causes(graph: &Graph, at: &Difference, ledger: &Ledger, lives: &[Life], replay: &Replay) -> Vec<String> {
    let name = |id: NodeId| graph.name(id);
    let mut why = Vec::new();
    let moves = |life: &Life| match (at.step, at.phase) {
        (None, _) => life.start.is_none(),
        (step, Phase::Peak) => life.start == step,
        (step, Phase::After) => life.end == step,
    };
    let same = |a: &Life, b: &Life| a.by == b.by && a.bytes == b.bytes;
    let ours: Vec<usize> = (0..lives.len()).filter(|&i| lives[i].bytes > 0 && moves(&lives[i])).collect();
    let truth: Vec<usize> =
        (0..replay.lives.len()).filter(|&i| replay.lives[i].bytes > 0 && moves(&replay.lives[i])).collect();
    for &i in ours.iter().filter(|&&i| !truth.iter().any(|&j| same(&lives[i], &replay.lives[j]))) {
        let (Life { by, bytes, .. }, place) = (lives[i], ledger.entries[i].place);
        // The storage that the prediction takes for a new one, as the replay knows it.
        let shown = replay.ledger.shown(by);
        let real = shown.get(place as usize).or(shown.first()).map(|&s| s as usize);
        why.push(match (real, at.phase) {
            (Some(real), Phase::Peak) if replay.lives[real].by != by => format!(
                "the prediction allocates {bytes} bytes for {}; at run time {} is the memory of {}, which is live \
                 already",
                name(by),
                name(by),
                name(replay.lives[real].by)
            ),
            (Some(real), Phase::After) if replay.lives[real].by != by => format!(
                "the prediction frees {bytes} bytes of {}; at run time this is the memory of {}, and {}",
                name(by),
                name(replay.lives[real].by),
                replay.held[real].describe(graph)
            ),
            (Some(real), Phase::After) => format!(
                "the prediction frees {bytes} bytes of {}; at run time they are still held: {}",
                name(by),
                replay.held[real].describe(graph)
            ),
            (_, Phase::Peak) => {
                format!("the prediction allocates {bytes} bytes for {}; the run time does not", name(by))
            }
            (None, Phase::After) => {
                format!("the prediction frees {bytes} bytes of {}; the run time does not", name(by))
            }
        });
    }
    for &j in truth.iter().filter(|&&j| !ours.iter().any(|&i| same(&lives[i], &replay.lives[j]))) {
        let Life { by, bytes, .. } = replay.lives[j];
        why.push(match (at.phase, replay.held[j]) {
            (Phase::Peak, _) => {
                format!("the run time allocates {bytes} bytes for {}; the prediction does not", name(by))
            }
            (Phase::After, Held::Nobody) => {
                format!(
                    "the run time frees {bytes} bytes of {}, which nobody reads; the prediction does not",
                    name(by)
                )
            }
            (Phase::After, held) => format!(
                "the run time frees {bytes} bytes of {} ({}); the prediction does not",
                name(by),
                held.describe(graph)
            ),
        });
    }
    why
}
