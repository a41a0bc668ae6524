//! What should happen to memory, and what does by a graph's own replay.

use super::event::{Event, Range, Touched};
use crate::analysis::Touch;
use crate::analysis::storages::{Access, StorageIndex};
use crate::graph::{Graph, NodeId};
use crate::memory::Life;
use crate::memory::replay::{Facts, Replay};
use std::collections::{BTreeMap, BTreeSet};

/// What should happen in one step.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Expected {
    /// Storages that are allocated, with their sizes.
    pub allocated: BTreeMap<String, i64>,
    /// Storages that are freed, with their sizes.
    pub freed: BTreeMap<String, i64>,
}

/// What should happen in a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Prediction {
    /// Storages that are there before the first step, with their sizes.
    pub before: BTreeMap<String, i64>,
    /// The steps.
    pub steps: Vec<Expected>,
    /// Storages that are alive after the last step: the caller's.
    pub kept: BTreeSet<String>,
}

impl Prediction {
    /// The prediction that a replay is.
    pub fn of_replay(graph: &Graph, replay: &Replay) -> Prediction {
        let places = replay.ledger.entries.iter().map(|entry| entry.place);
        Prediction::of_lives(graph, replay.steps.steps.len(), replay.lives.iter().zip(places))
    }

    /// The prediction that lives are, each with the place that its storage begins at.
    pub fn of_lives<'l>(
        graph: &Graph,
        steps: usize,
        lives: impl Iterator<Item = (&'l Life, u32)>,
    ) -> Prediction {
        let mut prediction = Prediction { steps: vec![Expected::default(); steps], ..Prediction::default() };
        for (life, place) in lives {
            let name = storage_name(graph, life.by, place);
            match life.start {
                None => {
                    prediction.before.insert(name.clone(), life.bytes);
                }
                Some(start) => {
                    if let Some(step) = prediction.steps.get_mut(start as usize) {
                        step.allocated.insert(name.clone(), life.bytes);
                    }
                }
            }
            match life.end {
                None => {
                    prediction.kept.insert(name);
                }
                Some(end) => {
                    if let Some(step) = prediction.steps.get_mut(end as usize) {
                        step.freed.insert(name, life.bytes);
                    }
                }
            }
        }
        prediction
    }
}

/// The name of the storage that begins at a place of a node.
pub(super) fn storage_name(graph: &Graph, by: NodeId, place: u32) -> String {
    match place {
        0 => graph.name(by).to_string(),
        place => format!("{}.{place}", graph.name(by)),
    }
}

/// The events of a run that does exactly what the replay says, reads and writes included. What is uncertain is left
/// out, and so are flights that nobody ends.
pub fn events_of_replay(facts: &Facts, replay: &Replay) -> Vec<Event> {
    let graph = facts.graph;
    let steps = replay.steps.steps.len();
    let (mut starts, mut ends) = (vec![Vec::new(); steps], vec![Vec::new(); steps]);
    for (i, life) in replay.lives.iter().enumerate() {
        if let Some(start) = life.start {
            starts[start as usize].push(i);
        }
        if let Some(end) = life.end {
            ends[end as usize].push(i);
        }
    }
    let name = |i: usize| storage_name(graph, replay.lives[i].by, replay.ledger.entries[i].place);
    let touched = |access: &Access| {
        let StorageIndex(storage) = access.part.storage;
        let size = replay.lives[storage as usize].bytes;
        let (start, end) = access.part.bytes.span();
        // An inexact part may reach past the storage's end; zero-size storages have no bytes to touch.
        let bytes = Range { start: start.clamp(0, size), end: end.clamp(0, size) };
        // A storage of which nothing is recorded counts no bytes, but it may have some.
        let info = facts.storages.storage(access.part.storage);
        let is_known = info.bytes.is_some() || facts.storages.tensor(info.by, info.place as usize).is_some();
        Touched { storage: name(storage as usize), bytes: is_known.then_some(bytes) }
    };
    let mut ends_flights: Vec<Vec<usize>> = vec![Vec::new(); graph.len()];
    for (launch, waits) in facts.collectives.waits.iter().enumerate() {
        // Of several waits for one launch the first ends the flight of the bytes that it waits for.
        if let Some(wait) = waits.first() {
            ends_flights[wait.index()].push(launch);
        }
    }
    let mut events = Vec::new();
    for (step, node) in replay.steps.steps.iter().map(|step| step.node).enumerate() {
        for &i in &starts[step] {
            events.push(Event::Alloc { storage: name(i), bytes: replay.lives[i].bytes });
        }
        for &launch in &ends_flights[node.index()] {
            let start = facts.collectives.calls[launch].node;
            events.push(Event::Wait { flight: graph.name(start).to_string() });
        }
        touches(facts, node, &touched, &mut events);
        for &i in &ends[step] {
            events.push(Event::Free { storage: name(i) });
        }
        events.push(Event::Step { step: step as u32 });
    }
    events
}

/// What a node touches, or the flight that it begins.
fn touches(facts: &Facts, node: NodeId, touched: &dyn Fn(&Access) -> Touched, events: &mut Vec<Event>) {
    let calls = &facts.collectives;
    let own = facts.storages.accesses_by(node).iter().filter(|access| access.part.certain);
    let launch = calls.launch_at(node).filter(|&launch| !calls.waits[launch].is_empty());
    if launch.is_none() {
        events.extend(own.filter_map(|access| match access.touch {
            Touch::Read => Some(Event::Read(touched(access))),
            Touch::Write => Some(Event::Write(touched(access))),
            Touch::Release | Touch::Land => None,
        }));
        return;
    }
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for access in own {
        match access.touch.writes() {
            true => writes.push(touched(access)),
            false => reads.push(touched(access)),
        }
    }
    for &part in facts.storages.all_parts(node).filter(|part| part.certain) {
        let result = touched(&Access { node, touch: Touch::Write, part, version: 0 });
        if !writes.contains(&result) {
            writes.push(result);
        }
    }
    // Its fresh result is written while it is in flight; an input that it overwrites is written, not read.
    reads.retain(|read| !writes.contains(read));
    events.push(Event::Launch { flight: facts.graph.name(node).to_string(), reads, writes });
}
