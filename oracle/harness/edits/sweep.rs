//! Making the edits of the catalogue, one at a time, and judging each.

use super::{Edit, Part, Place, Reading, catalogue};
use crate::candidates::Outcome;
use crate::case::PassConfig;
use crate::family::Gives;
use crate::generate::{Seeded, Source};
use crate::graph::Graph;
use crate::judge::{self, CannotJudge, Judgement, Options, Verdict};
use crate::rules::partition::PartitionConfig;
use crate::rules::{PassKind, Reason};
use crate::threads::within_limit;
use crate::words;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A right outcome.
#[derive(Clone, Debug)]
pub struct Given {
    /// The graph before the pass.
    pub before: Graph,
    /// The pass and its options.
    pub pass: PassConfig,
    /// What came out: one graph for all ranks (`None`), or one per rank; of a partition forward and backward.
    pub outcomes: Vec<(Option<u32>, Outcome)>,
}

/// Whose graph is edited, where each rank has its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ranks {
    /// Those of all ranks, in the same place.
    #[default]
    All,
    /// Only that of this one.
    One(u32),
}

/// How much is tried, and how.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Decides which places are tried where there are more.
    pub seed: u64,
    /// Places of one edit in one graph at most.
    pub per_edit: usize,
    /// After how long a verdict is no longer waited for.
    pub time: Duration,
    /// Verdicts at the same time.
    pub jobs: usize,
    /// Whose graph is edited.
    pub ranks: Ranks,
    /// Names of edits; empty: all of them.
    pub only: Vec<String>,
    /// Names of edits that are not made.
    pub without: Vec<String>,
}

/// What the oracle said of one edit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    /// Violated, by this rule first.
    Violated(&'static str),
    /// It could not tell, or did not take it, for this reason.
    Undecided(String),
    /// Sound.
    Sound,
    /// Nothing within the limit.
    CutOff,
    /// It panicked, which is a fault of the oracle.
    Panicked,
}

/// One edit, made at one place.
#[derive(Clone, Debug)]
pub struct Edited {
    /// Index into [`catalogue`].
    pub edit: usize,
    /// Which graph: an index into the outcomes.
    pub graph: usize,
    /// What was changed.
    pub what: String,
    /// What the oracle said.
    pub said: Said,
    /// How long that took.
    pub time: Duration,
}

impl Edited {
    /// Whether a wrong outcome was called sound.
    pub fn slept(&self, catalogue: &[Edit]) -> bool {
        !catalogue[self.edit].keeps && self.said == Said::Sound
    }

    /// Whether a right outcome was convicted.
    pub fn is_wolf(&self, catalogue: &[Edit]) -> bool {
        catalogue[self.edit].keeps && matches!(self.said, Said::Violated(_))
    }
}

/// What a sweep gave.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// All edits that were made, by edit, then by place.
    pub edited: Vec<Edited>,
    /// For each edit of the catalogue the places that are certain, whether tried or not.
    pub places: Vec<usize>,
    /// For each edit of the catalogue the places that were left out.
    pub left_out: Vec<usize>,
    /// How long the verdict on the outcome itself took.
    pub right: Duration,
    /// Why the outcome itself was undecided, where it was.
    pub undecided: Vec<String>,
}

/// An edit to be made: which of the catalogue, in which graph, where.
struct Task {
    edit: usize,
    graph: usize,
    place: Place,
}

/// Judges the outcome itself, then every edit of it. `shown` is called with each edited outcome that slept or was a
/// wolf, one at a time.
///
/// # Errors
/// The outcome cannot be judged, or is itself not right; there is no such edit or rank.
pub fn sweep(
    given: &Given,
    options: &Options,
    limits: &Limits,
    shown: &(dyn Fn(usize, &Edited, &[(Option<u32>, Outcome)]) + Sync),
) -> Result<Sweep, CannotJudge> {
    let pass = PassKind::named(&given.pass.name).map_err(CannotJudge::Pass)?;
    let catalogue = catalogue();
    if let Some(unknown) = limits
        .only
        .iter()
        .chain(&limits.without)
        .find(|name| !catalogue.iter().any(|edit| edit.name == **name))
    {
        let names: Vec<&str> = catalogue.iter().map(|edit| edit.name).collect();
        let why = format!("there is no edit {unknown:?}{}", words::choices(unknown, &names));
        return Err(CannotJudge::Pass(why));
    }
    let given = Arc::new(given.clone());
    let options = Arc::new(options.clone());
    let started = Instant::now();
    let judgement = judge::judge_outcomes(&given.before, &given.pass, &given.outcomes, &options)?;
    let right = started.elapsed();
    let undecided = match judgement.verdict {
        Verdict::Sound => Vec::new(),
        Verdict::Undecided(why) => why.iter().map(ToString::to_string).collect(),
        Verdict::Refused(why) => return Err(CannotJudge::Pass(why.message)),
        Verdict::Violated(_) => {
            let rules = judgement.violated_rules().join(", ");
            return Err(CannotJudge::Pass(format!("the outcome itself is not right: {rules}")));
        }
    };
    let mut sweep = Sweep { right, undecided, ..Sweep::default() };
    let tasks = tasks(&given, pass, &catalogue, limits, &mut sweep)?;
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Edited)>> = Mutex::new(Vec::new());
    let showing = Mutex::new(());
    std::thread::scope(|scope| {
        for _ in 0..within_limit(limits.jobs).clamp(1, tasks.len().max(1)) {
            scope.spawn(|| {
                while let Some((number, task)) = {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    tasks.get(number).map(|task| (number, task))
                } {
                    let outcomes = Arc::new(made(&given, task, limits.ranks, pass));
                    let (said, time) = judged(&given, &outcomes, &options, limits.time);
                    let what = task.place.what.clone();
                    let edited = Edited { edit: task.edit, graph: task.graph, what, said, time };
                    if edited.slept(&catalogue) || edited.is_wolf(&catalogue) {
                        let _guard = showing.lock();
                        shown(number, &edited, &outcomes);
                    }
                    if let Ok(mut done) = done.lock() {
                        done.push((number, edited));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(number, _)| *number);
    sweep.edited = done.into_iter().map(|(_, edited)| edited).collect();
    Ok(sweep)
}

/// The places of all edits, with at most as many of each as the limits allow.
fn tasks(
    given: &Given,
    pass: PassKind,
    catalogue: &[Edit],
    limits: &Limits,
    sweep: &mut Sweep,
) -> Result<Vec<Task>, CannotJudge> {
    let graphs: Vec<(usize, Part)> = match (pass.row().gives, limits.ranks) {
        (Gives::Parts, _) => {
            let config = PartitionConfig::from_pass(&given.pass).map_err(CannotJudge::Pass)?;
            let outputs = config.or_from_file(&given.before).forward_outputs.unwrap_or(1);
            vec![(0, Part::Forward { outputs }), (1, Part::Backward)]
        }
        (_, Ranks::All) => vec![(0, Part::Whole)],
        (_, Ranks::One(rank)) => {
            let own = given.outcomes.iter().position(|(of, _)| *of == Some(rank));
            let own =
                own.ok_or_else(|| CannotJudge::Pass(format!("there is no graph of rank {rank} alone")))?;
            vec![(own, Part::Whole)]
        }
    };
    let mut tasks = Vec::new();
    (sweep.places, sweep.left_out) = (vec![0; catalogue.len()], vec![0; catalogue.len()]);
    for (graph, part) in graphs {
        let Some((_, outcome)) = given.outcomes.get(graph) else { continue };
        let alone = limits.ranks != Ranks::All && given.outcomes.len() > 1;
        let reading = Reading::new(&given.before, &outcome.repaired, part, alone);
        for (number, edit) in catalogue.iter().enumerate() {
            let named = |names: &[String]| names.iter().any(|name| name == edit.name);
            let wanted = (limits.only.is_empty() || named(&limits.only)) && !named(&limits.without);
            if !wanted || !edit.passes.contains(&pass) {
                continue;
            }
            let places = edit.places(&reading);
            sweep.places[number] += places.found.len();
            sweep.left_out[number] += places.left_out;
            let chosen = sample(places.found, limits, edit.name);
            tasks.extend(chosen.into_iter().map(|place| Task { edit: number, graph, place }));
        }
    }
    tasks.sort_by_key(|task| task.edit);
    Ok(tasks)
}

/// Some of the places, by the seed and the name of the edit, in list order.
fn sample(found: Vec<Place>, limits: &Limits, name: &str) -> Vec<Place> {
    let spread = name.bytes().fold(0u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let mut source = Seeded::case(limits.seed, spread);
    let mut left: Vec<(usize, Place)> = found.into_iter().enumerate().collect();
    let mut chosen = Vec::new();
    while chosen.len() < limits.per_edit && !left.is_empty() {
        let at = source.below(u32::try_from(left.len()).unwrap_or(u32::MAX)) as usize;
        chosen.push(left.swap_remove(at));
    }
    chosen.sort_by_key(|(position, _)| *position);
    chosen.into_iter().map(|(_, place)| place).collect()
}

/// The outcome with one edit.
fn made(given: &Given, task: &Task, ranks: Ranks, pass: PassKind) -> Vec<(Option<u32>, Outcome)> {
    let mut outcomes = given.outcomes.clone();
    let edited_graph = outcomes.get(task.graph).map(|(_, outcome)| outcome.repaired.clone());
    let Some(of) = edited_graph else { return outcomes };
    for (index, (_, outcome)) in outcomes.iter_mut().enumerate() {
        let elsewhere =
            ranks == Ranks::All && pass.row().gives == Gives::Graph && has_same_nodes(&of, &outcome.repaired);
        if index == task.graph || elsewhere {
            *outcome = Outcome { unrepaired: None, repaired: (task.place.change)(&outcome.repaired) };
        }
    }
    outcomes
}

/// Whether two ranks' graphs have the same nodes, so that an edit of one can be made to the other.
fn has_same_nodes(a: &Graph, b: &Graph) -> bool {
    a.len() == b.len() && a.ids().all(|id| a.name(id) == b.name(id) && a.target(id) == b.target(id))
}

/// The verdict, if it comes in time. A judge that takes longer is left alone: its thread ends when it does.
fn judged(
    given: &Arc<Given>,
    outcomes: &Arc<Vec<(Option<u32>, Outcome)>>,
    options: &Arc<Options>,
    limit: Duration,
) -> (Said, Duration) {
    let (send, receive) = channel();
    let (given, outcomes, options) = (given.clone(), outcomes.clone(), options.clone());
    let work = move || {
        let started = Instant::now();
        let judgement = judge::judge_outcomes(&given.before, &given.pass, &outcomes, &options);
        let _ = send.send((said(judgement), started.elapsed()));
    };
    if std::thread::Builder::new().stack_size(64 << 20).spawn(work).is_err() {
        return (Said::Undecided("no thread could be started".into()), Duration::ZERO);
    }
    match receive.recv_timeout(limit) {
        Ok(answer) => answer,
        Err(RecvTimeoutError::Timeout) => (Said::CutOff, limit),
        Err(RecvTimeoutError::Disconnected) => (Said::Panicked, Duration::ZERO),
    }
}

fn said(judgement: Result<Judgement, CannotJudge>) -> Said {
    match judgement {
        Err(error) => Said::Undecided(error.to_string()),
        Ok(judgement) => match &judgement.verdict {
            Verdict::Sound => Said::Sound,
            Verdict::Violated(_) => Said::Violated(judgement.violated_rules().first().copied().unwrap_or("")),
            Verdict::Undecided(why) => Said::Undecided(Reason::joined(why).message),
            Verdict::Refused(why) => Said::Undecided(why.message.clone()),
        },
    }
}
