//! Who is judged by the memory rules: the reference, and mutants of it.
//!
//! A memory candidate looks at a graph and states a [`Claim`]. The reference states everything that it can: lives,
//! live bytes and peak by the replay, the same peak by both estimators of the scheduler's model, an incremental tracker
//! over a few swaps, and offsets in an arena. A mutant replaces one ingredient; reference code knows of none.
//! Sources of the mutants: K18, K19, K20, K24, K30, K31 and K33 of the bug benchmark.

use super::{Answer, Candidate, Capabilities, Refusal, Request};
use crate::analysis::{Dependences, Edges, Storages, Touch};
use crate::candidates::refusals::not_implemented;
use crate::family::Planted;
use crate::graph::{Graph, NodeId, Op, Value};
use crate::memory::replay::{Facts, Options, replay_ledger};
use crate::memory::scheduler::lower::LowerFault;
use crate::memory::scheduler::{Planning, ProgramFault, Timeline, lower};
use crate::memory::strategy::{Reference as ReferencePolicy, Strategy};
use crate::memory::{Devices, Ledger, Life, Replay, Sizes};
use crate::ops::{Kind, View};
use crate::rules::memory::{Claim, ClaimedLife, Increment, Offset};
use crate::rules::{Code, PassKind};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A memory candidate: the reference, with ingredients replaced.
pub struct MemoryCandidate {
    /// Its name.
    pub name: &'static str,
    /// What it gets wrong; empty for the reference.
    pub defect: &'static str,
    /// The rules of which one must convict it.
    pub convicted_by: &'static [&'static str],
    strategy: &'static (dyn Strategy + Sync),
    edit: Edit,
}

/// What a mutant does to the claim of the reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Edit {
    Nothing,
    /// The inputs and results of collectives in flight are free at the start.
    FreeAtStart,
    /// A step's peak is taken after its frees.
    NetDelta,
    /// The last use of a buffer stays with its old node when a swap changes it.
    LastUseStays,
    /// A storage is credited to the node that came first before the swaps.
    FirstStays,
    /// Every view counts.
    CountAliases,
    /// A life in the arena does not include its last step.
    HalfOpen,
    /// A buffer without a use has no life in the arena.
    EmptyLife,
    /// What a collective receives is placed in a buffer that others add to.
    ReceiveInAccumulator,
    /// A returned copy is replaced by what it is a copy of.
    ElideCopy,
    /// What nobody reads is kept to the end of the run.
    KeepDead,
    /// Peaks of swaps are foreseen from the state before the last swap.
    StaleState,
}

struct BaseOnly;
impl Strategy for BaseOnly {
    fn keeps_for(&self, _: &Graph, _: NodeId) -> bool {
        false
    }
}

struct NoIdentities;
impl Strategy for NoIdentities {
    fn keeps_for(&self, graph: &Graph, view: NodeId) -> bool {
        let kind = crate::ops::by_target(graph.target(view)).map(|info| info.kind);
        !matches!(kind, Some(Kind::View(View::Alias | View::Sizes) | Kind::GetItem))
    }
}

struct LaunchIsResult;
impl Strategy for LaunchIsResult {
    fn keeps_for(&self, graph: &Graph, view: NodeId) -> bool {
        let kind = crate::ops::by_target(graph.target(view)).map(|info| info.kind);
        kind != Some(Kind::Wait)
    }
}

struct DirectOutputs;
impl Strategy for DirectOutputs {
    fn keeps_returned_views(&self) -> bool {
        false
    }
}

struct NoInputsInFlight;
impl Strategy for NoInputsInFlight {
    fn holds_inputs_in_flight(&self) -> bool {
        false
    }
}

const LIVES: &[&str] = &["memory/no-use-after-free", "memory/protected-never-freed"];

/// The reference and all mutants.
pub static MEMORY_CANDIDATES: &[MemoryCandidate] = &[
    MemoryCandidate {
        name: "reference",
        defect: "",
        convicted_by: &[],
        strategy: &ReferencePolicy,
        edit: Edit::Nothing,
    },
    MemoryCandidate {
        name: "memory-freed-with-base",
        defect: "frees a storage at the last use of its base",
        convicted_by: LIVES,
        strategy: &BaseOnly,
        edit: Edit::Nothing,
    },
    MemoryCandidate {
        name: "memory-identities-hold-nothing",
        defect: "identity operators hold no storage",
        convicted_by: LIVES,
        strategy: &NoIdentities,
        edit: Edit::Nothing,
    },
    MemoryCandidate {
        name: "memory-views-keep-nothing",
        defect: "returned views do not keep what they are views of",
        convicted_by: &["memory/protected-never-freed"],
        strategy: &DirectOutputs,
        edit: Edit::Nothing,
    },
    MemoryCandidate {
        name: "memory-launch-for-result",
        defect: "takes the launch for the result: who reads the wait does not keep the memory",
        convicted_by: LIVES,
        strategy: &LaunchIsResult,
        edit: Edit::Nothing,
    },
    MemoryCandidate {
        name: "memory-freed-at-launch",
        defect: "gives the memory of a collective back when it starts",
        convicted_by: &["memory/no-use-after-free"],
        strategy: &ReferencePolicy,
        edit: Edit::FreeAtStart,
    },
    MemoryCandidate {
        name: "memory-input-freed-in-flight",
        defect: "frees the input of a collective before its wait",
        convicted_by: &["memory/no-use-after-free"],
        strategy: &NoInputsInFlight,
        edit: Edit::Nothing,
    },
    MemoryCandidate {
        name: "memory-first-in-old-order",
        defect: "credits a storage to the node that came first in the original order",
        convicted_by: &["memory/incremental-equals-recompute"],
        strategy: &ReferencePolicy,
        edit: Edit::FirstStays,
    },
    MemoryCandidate {
        name: "memory-peak-after-frees",
        defect: "takes the peak of a step after its frees",
        convicted_by: &["memory/estimate-equals-replay", "memory/timeline-conservation"],
        strategy: &ReferencePolicy,
        edit: Edit::NetDelta,
    },
    MemoryCandidate {
        name: "memory-stale-last-use",
        defect: "does not move the last use when two nodes are swapped",
        convicted_by: &["memory/incremental-equals-recompute"],
        strategy: &ReferencePolicy,
        edit: Edit::LastUseStays,
    },
    MemoryCandidate {
        name: "memory-counts-aliases",
        defect: "counts every alias",
        convicted_by: &["memory/distinct-storages"],
        strategy: &ReferencePolicy,
        edit: Edit::CountAliases,
    },
    MemoryCandidate {
        name: "memory-stale-peaks",
        defect: "foresees peaks of swaps from a stale state",
        convicted_by: &["memory/peak-after-each-swap"],
        strategy: &ReferencePolicy,
        edit: Edit::StaleState,
    },
    MemoryCandidate {
        name: "memory-open-lives",
        defect: "places buffers by lives that are open at the end",
        convicted_by: &["memory/placement-disjoint"],
        strategy: &ReferencePolicy,
        edit: Edit::HalfOpen,
    },
    MemoryCandidate {
        name: "memory-unused-without-life",
        defect: "places buffers without a use as if they had no life",
        convicted_by: &["memory/placement-disjoint"],
        strategy: &ReferencePolicy,
        edit: Edit::EmptyLife,
    },
    MemoryCandidate {
        name: "memory-elided-copy",
        defect: "elides a copy that protects the caller's memory",
        convicted_by: &["memory/alias-relation"],
        strategy: &ReferencePolicy,
        edit: Edit::ElideCopy,
    },
    MemoryCandidate {
        name: "memory-received-into-sum",
        defect: "receives into a buffer that others still add to",
        convicted_by: &["memory/placement-disjoint"],
        strategy: &ReferencePolicy,
        edit: Edit::ReceiveInAccumulator,
    },
    MemoryCandidate {
        name: "memory-keeps-unread",
        defect: "keeps what nobody reads to the end",
        convicted_by: &["memory/estimate-equals-replay"],
        strategy: &ReferencePolicy,
        edit: Edit::KeepDead,
    },
];

/// A mutant as a candidate.
pub struct MemoryMutant(&'static MemoryCandidate);

/// The mutants.
pub(crate) fn planted() -> Vec<Planted> {
    let mutants = MEMORY_CANDIDATES.iter().filter(|candidate| !candidate.defect.is_empty());
    let planted = |mutant: &'static MemoryCandidate| Planted {
        about: mutant.defect,
        origin: "",
        candidate: Box::new(MemoryMutant(mutant)),
    };
    mutants.map(planted).collect()
}

impl Candidate for MemoryMutant {
    fn name(&self) -> &str {
        self.0.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::of(&[PassKind::Memory])
    }

    fn run(&self, request: &Request) -> Result<Vec<Answer>, Refusal> {
        request.once(|_| {
            let claim = self.0.claim(request.graph).map_err(|why| Refusal::of(Code::NoClaim, why))?;
            Ok(Answer::Claim(Box::new(claim)))
        })
    }
}

/// Makes a stretch of the arena free again, one with the free stretches beside it.
fn give_back(free: &mut BTreeMap<i64, i64>, mut from: i64, mut to: i64) {
    if let Some((&before, &end)) = free.range(..from).next_back()
        && end == from
    {
        free.remove(&before);
        from = before;
    }
    if let Some(end) = free.remove(&to) {
        to = end;
    }
    free.insert(from, to);
}

/// What the reference states about a graph.
pub(crate) fn reference(request: &Request) -> Result<Vec<Answer>, Refusal> {
    let reference = MEMORY_CANDIDATES.iter().find(|candidate| candidate.defect.is_empty());
    let reference = reference.ok_or_else(|| not_implemented("there is no reference".into()))?;
    MemoryMutant(reference).run(request)
}

/// How many swaps the incremental tracker is shown at.
const SWAPS: usize = 3;

impl MemoryCandidate {
    /// The candidate with this name.
    pub fn named(name: &str) -> Option<&'static MemoryCandidate> {
        MEMORY_CANDIDATES.iter().find(|candidate| candidate.name == name)
    }

    /// What it states about a graph; its reason, where it declines.
    pub fn claim(&self, graph: &Graph) -> Result<Claim, String> {
        let facts = Facts::new(graph);
        let ledger = Ledger::derived(graph, &Sizes::new(graph, None), &facts.storages);
        let devices = Devices::of(graph, &ledger);
        let options = Options { devices, ..Options::default() };
        let replay = replay_ledger(&facts, ledger, options, self.strategy).map_err(|why| why.to_string())?;
        let mut lives = replay.lives.clone();
        match self.edit {
            Edit::FreeAtStart => free_at_start(&facts, &replay, &mut lives),
            Edit::KeepDead => keep_dead(&replay, &mut lives),
            _ => {}
        }
        let mut claimed = claimed(graph, &replay, &lives);
        if self.edit == Edit::CountAliases {
            count_aliases(&facts, &lives, &mut claimed);
        }
        let resized = !replay.ledger.resizes.is_empty();
        let mut steps = match self.edit == Edit::Nothing || resized {
            true => replay.steps.steps.iter().map(|step| (step.peak, step.after)).collect(),
            false => sums(&claimed, replay.steps.steps.len()),
        };
        if self.edit == Edit::NetDelta {
            steps.iter_mut().for_each(|step| step.0 = step.1);
        }
        let peak = steps.iter().map(|&(peak, _)| peak).fold(replay.steps.before, i64::max);
        let after = (self.edit == Edit::ElideCopy).then(|| without_copy(graph));
        Ok(Claim {
            order: None,
            peak: Some(peak),
            before: Some(replay.steps.before),
            // A storage that changes its size has no single life that adds up.
            steps: Some(steps),
            lives: (!resized).then_some(claimed),
            estimates: self.estimates(&facts, devices, &replay)?,
            increments: (!resized).then(|| self.increments(&facts, &replay)),
            offsets: Some(self.offsets(&facts, &replay)),
            after: Some(after.unwrap_or_else(|| graph.clone())),
            verifier_runs: None,
        })
    }

    /// The peak by both estimators of the scheduler's model. Resizes are unknown to it, and of more dependences than
    /// their limit it makes none.
    fn estimates(
        &self,
        facts: &Facts,
        devices: Devices,
        replay: &Replay,
    ) -> Result<Vec<(String, i64)>, String> {
        if !replay.ledger.resizes.is_empty() {
            return Ok(Vec::new());
        }
        let lowered = match lower(facts, devices, None, &|_| true) {
            Ok(lowered) => lowered,
            Err(LowerFault::Program(ProgramFault::TooMany(_))) => return Ok(Vec::new()),
            Err(why) => return Err(why.to_string()),
        };
        let planning = Planning::new(&lowered.program).map_err(|why| why.to_string())?;
        let order: Vec<u32> = (0..lowered.nodes.len() as u32).collect();
        let timeline = Timeline::new(&lowered.program, &planning, &order).map_err(|why| why.to_string())?;
        let (Some((slots, _)), Some(phases)) = (timeline.estimate(), timeline.phases()) else {
            return Err("the sums do not fit 64 bits".to_string());
        };
        Ok(vec![("estimate_peak".to_string(), slots), ("allocfree".to_string(), phases.peak)])
    }

    /// First fit, in order of the start.
    fn offsets(&self, facts: &Facts, replay: &Replay) -> Vec<Offset> {
        let graph = facts.graph;
        let last = (replay.steps.steps.len() as u32).saturating_sub(1);
        let mut order: Vec<usize> = (0..replay.lives.len()).filter(|&i| replay.lives[i].bytes > 0).collect();
        order.sort_by_key(|&i| (replay.lives[i].start, i));
        // First fit: the free stretches by where they begin, and when what is placed ends.
        let mut free = BTreeMap::from([(0i64, i64::MAX)]);
        let mut placed: BinaryHeap<Reverse<(u32, i64, i64)>> = BinaryHeap::new();
        let mut offsets = Vec::new();
        for i in order {
            let life = replay.lives[i];
            let start = life.start.unwrap_or(0);
            let end = life.end.unwrap_or(last).max(start);
            while let Some(&Reverse((end, from, to))) = placed.peek() {
                if end > start || (end == start && self.edit != Edit::HalfOpen) {
                    break;
                }
                placed.pop();
                give_back(&mut free, from, to);
            }
            let fits = free.iter().find(|(from, to)| *to - *from >= life.bytes);
            let Some((&offset, &to)) = fits else { continue };
            let no_life = self.edit == Edit::EmptyLife && life.end == life.start;
            if !no_life {
                free.remove(&offset);
                if offset + life.bytes < to {
                    free.insert(offset + life.bytes, to);
                }
                placed.push(Reverse((end, offset, offset + life.bytes)));
            }
            offsets.push(Offset { name: name(graph, replay, i), offset, in_place_of: None });
        }
        if self.edit == Edit::ReceiveInAccumulator {
            receive_in_accumulator(facts, replay, &mut offsets);
        }
        offsets
    }

    /// A tracker that swaps neighbours, a few times, and brings its values up to date after each swap.
    fn increments(&self, facts: &Facts, replay: &Replay) -> Vec<Increment> {
        let graph = facts.graph;
        let edges = Edges::new(graph);
        let dependences = Dependences::new(
            graph,
            &facts.ops,
            &edges,
            &facts.storages,
            &facts.collectives,
            Default::default(),
        );
        let mut order: Vec<NodeId> = replay.steps.steps.iter().map(|step| step.node).collect();
        let mut lives: Vec<Life> = replay.lives.clone();
        let mut launch_of: Vec<Option<usize>> = vec![None; graph.len()];
        for (launch, waits) in facts.collectives.waits.iter().enumerate() {
            waits.iter().for_each(|wait| launch_of[wait.index()] = Some(launch));
        }
        let mut increments = Vec::new();
        let mut before_swap = step_sums(&lives, order.len());
        let mut at = 0;
        while increments.len() < SWAPS && at + 1 < order.len() {
            let (first, second) = (order[at], order[at + 1]);
            // Of two waits for one collective the first ends the flight: swapped, they change what they hold.
            let launch = launch_of[first.index()];
            let waits_for_one = launch.is_some() && launch == launch_of[second.index()];
            if waits_for_one || dependences.before(second).any(|(node, _)| node == first) {
                at += 1;
                continue;
            }
            let (a, b) = (at as u32, at as u32 + 1);
            for (i, life) in lives.iter_mut().enumerate() {
                life.start = life.start.map(|step| match step {
                    step if self.edit == Edit::FirstStays => step,
                    step if step == a => b,
                    step if step == b => a,
                    step => step,
                });
                life.end = life.end.map(|step| match step {
                    // Whoever also needs it and now runs later is the last one.
                    step if step == b && needs(facts, &facts.storages, first, i) => match self.edit {
                        Edit::LastUseStays => a,
                        _ => b,
                    },
                    step if step == a => b,
                    step if step == b => a,
                    step => step,
                });
            }
            order.swap(at, at + 1);
            let steps = step_sums(&lives, order.len());
            let known = if self.edit == Edit::StaleState { &before_swap } else { &steps };
            let potential = known[at].0.max(known[at + 1].0);
            let names =
                |of: &[NodeId]| of.iter().map(|&id| graph.name(id).to_string()).collect::<Vec<String>>();
            increments.push(Increment {
                order: names(&order),
                potential: Some((names(&[first, second]), potential)),
                steps: steps.clone(),
            });
            before_swap = steps;
            at += 2;
        }
        increments
    }
}

/// Whether a node needs a storage: it takes or shows it, or ends a flight with it.
fn needs(facts: &Facts, storages: &Storages, node: NodeId, storage: usize) -> bool {
    let shows = |id: NodeId| storages.all_parts(id).any(|part| part.storage.index() == storage);
    let ends = storages.accesses_by(node).iter().chain(storages.kept_by(node)).any(|access| {
        matches!(access.touch, Touch::Release | Touch::Land) && access.part.storage.index() == storage
    });
    ends || shows(node) || facts.graph.inputs(node).into_iter().any(shows)
}

fn name(graph: &Graph, replay: &Replay, storage: usize) -> String {
    let (by, place) = (replay.lives[storage].by, replay.ledger.entries[storage].place);
    if place == 0 { graph.name(by).to_string() } else { format!("{}.{place}", graph.name(by)) }
}

fn claimed(graph: &Graph, replay: &Replay, lives: &[Life]) -> Vec<ClaimedLife> {
    let life = |(i, life): (usize, &Life)| ClaimedLife {
        name: name(graph, replay, i),
        bytes: life.bytes,
        alloc: life.start,
        frees: life.end.into_iter().collect(),
    };
    lives.iter().enumerate().map(life).collect()
}

fn step_sums(lives: &[Life], steps: usize) -> Vec<(i64, i64)> {
    let life = |life: &Life| ClaimedLife {
        name: String::new(),
        bytes: life.bytes,
        alloc: life.start,
        frees: life.end.into_iter().collect(),
    };
    sums(&lives.iter().map(life).collect::<Vec<_>>(), steps)
}

/// Live bytes after the allocations and after the frees of each step.
fn sums(lives: &[ClaimedLife], steps: usize) -> Vec<(i64, i64)> {
    let (mut allocated, mut freed, mut live) = (vec![0i64; steps], vec![0i64; steps], 0i64);
    for life in lives {
        match life.alloc {
            None => live = live.saturating_add(life.bytes),
            Some(step) => allocated[step as usize] = allocated[step as usize].saturating_add(life.bytes),
        }
        for &step in &life.frees {
            freed[step as usize] = freed[step as usize].saturating_add(life.bytes);
        }
    }
    let mut sums = Vec::with_capacity(steps);
    for (allocated, freed) in allocated.into_iter().zip(freed) {
        let peak = live.saturating_add(allocated);
        live = peak.saturating_sub(freed);
        sums.push((peak, live));
    }
    sums
}

fn free_at_start(facts: &Facts, replay: &Replay, lives: &mut [Life]) {
    let calls = replay.steps.steps.iter().enumerate();
    for (step, node) in calls.map(|(i, step)| (i as u32, step.node)) {
        if facts.collectives.launch_at(node).is_none() {
            continue;
        }
        let inputs = facts.graph.inputs(node);
        for part in inputs.iter().chain([&node]).flat_map(|&id| facts.storages.all_parts(id)) {
            let life = &mut lives[part.storage.index()];
            if life.end.is_some_and(|end| end > step) {
                life.end = Some(step);
            }
        }
    }
}

fn keep_dead(replay: &Replay, lives: &mut [Life]) {
    let last = (replay.steps.steps.len() as u32).saturating_sub(1);
    for (life, held) in lives.iter_mut().zip(&replay.held) {
        if *held == crate::memory::Held::Nobody && life.start.is_some() {
            life.end = Some(last);
        }
    }
}

/// A life of its own for every node that shows memory of another one.
fn count_aliases(facts: &Facts, lives: &[Life], claimed: &mut Vec<ClaimedLife>) {
    let graph = facts.graph;
    let calls = graph.ids().filter(|&id| graph.node(id).op == Op::Call);
    for (step, id) in calls.enumerate() {
        if let [part] = facts.storages.parts(id, 0)
            && facts.storages.places(id) == 1
            && lives[part.storage.index()].by != id
        {
            let (start, end) = part.bytes.span();
            claimed.push(ClaimedLife {
                name: graph.name(id).to_string(),
                bytes: end.saturating_sub(start),
                alloc: Some(step as u32),
                frees: vec![lives[part.storage.index()].end.unwrap_or(0).max(step as u32)],
            });
        }
    }
}

/// Puts the first result of a collective where a storage lies that is written in place while it lives.
fn receive_in_accumulator(facts: &Facts, replay: &Replay, offsets: &mut [Offset]) {
    let graph = facts.graph;
    let last = replay.steps.steps.len() as u32;
    let span = |i: usize| (replay.lives[i].start.unwrap_or(0), replay.lives[i].end.unwrap_or(last));
    let meet = |a: (u32, u32), b: (u32, u32)| a.0 <= b.1 && b.0 <= a.1;
    let is_received = |i: usize| facts.collectives.launch_at(replay.lives[i].by).is_some();
    let is_added_to = |i: usize| {
        let accesses = facts.storages.accesses().iter();
        accesses.into_iter().any(|access| {
            access.touch == Touch::Write
                && access.part.storage.index() == i
                && access.node != replay.lives[i].by
                && facts.collectives.launch_at(access.node).is_none()
        })
    };
    let counts = |i: &usize| replay.lives[*i].bytes > 0;
    let all = || (0..replay.lives.len()).filter(counts);
    let pair = all().filter(|&i| is_received(i)).find_map(|received| {
        let fits = |&i: &usize| i != received && meet(span(i), span(received)) && is_added_to(i);
        Some((received, all().find(fits)?))
    });
    let Some((received, accumulator)) = pair else { return };
    let (received, accumulator) = (name(graph, replay, received), name(graph, replay, accumulator));
    let place = offsets.iter().find(|offset| offset.name == accumulator).map(|offset| offset.offset);
    let slot = offsets.iter_mut().find(|offset| offset.name == received);
    if let (Some(place), Some(slot)) = (place, slot) {
        slot.offset = place;
    }
}

/// The graph that returns what a returned clone is a clone of.
fn without_copy(graph: &Graph) -> Graph {
    let mut after = graph.clone();
    let Some(output) = graph.output() else { return after };
    let replace = |value: Value| match value {
        Value::Node(node) if graph.target(node) == "aten.clone.default" => {
            graph.arg(node, 0).unwrap_or(value)
        }
        value => value,
    };
    let args: Vec<Value> = graph
        .args(output)
        .iter()
        .map(|&value| match value {
            Value::List(span) => {
                let inner: Vec<Value> = graph.values(span).iter().map(|&value| replace(value)).collect();
                after.list(&inner)
            }
            value => replace(value),
        })
        .collect();
    after.node_mut(output).args = after.push_values(&args);
    after
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Seeded;
    use crate::generate::memory::MemoryCases;
    use crate::judge::Verdict;
    use crate::judge::judge_memory;
    use crate::rules::memory::MemoryConfig;

    fn config() -> MemoryConfig {
        MemoryConfig::default()
    }

    #[test]
    fn the_reference_is_sound_and_every_mutant_is_convicted() {
        let mut convicted = vec![None; MEMORY_CANDIDATES.len()];
        let cases: u64 = std::env::var("MEMORY_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(150);
        let mut declined = 0;
        for case in 0..cases {
            let mut source = Seeded::case(11, case);
            let generator =
                MemoryCases { never_waited: if case % 4 == 0 { 30 } else { 0 }, ..MemoryCases::default() };
            let text = generator.text(&mut source);
            let graph = crate::format::text::parse(&text).unwrap().graph;
            for (i, candidate) in MEMORY_CANDIDATES.iter().enumerate() {
                if i > 0 && convicted[i].is_some() {
                    continue;
                }
                let claim = match candidate.claim(&graph) {
                    Ok(claim) => claim,
                    Err(_) => {
                        declined += 1;
                        continue;
                    }
                };
                let judgement = judge_memory(&graph, &claim, &config()).unwrap();
                if i == 0 {
                    assert_eq!(judgement.verdict, Verdict::Sound, "case {case}\n{text}");
                } else if judgement.violated_rules().iter().any(|id| candidate.convicted_by.contains(id)) {
                    convicted[i] = Some(case);
                }
            }
        }
        for (candidate, case) in MEMORY_CANDIDATES.iter().zip(&convicted).skip(1) {
            assert!(case.is_some(), "{} lives on: it {}", candidate.name, candidate.defect);
            println!("{} after {} cases", candidate.name, case.unwrap_or_default() + 1);
        }
        println!("declined {declined}");
    }
}
