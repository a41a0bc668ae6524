//! Judging events one by one.

use super::event::{Event, Touched};
use super::in_flight::Ranges;
use super::prediction::Prediction;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// What happens at a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// It is an error: the executor should stop.
    #[default]
    Assert,
    /// It is kept for the summary, and the run goes on.
    Log,
}

/// What is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum FaultKind {
    /// A storage is used, freed or written that was never allocated.
    Unknown,
    /// A storage is allocated that is there already.
    AllocatedTwice,
    /// A storage is used after it was freed.
    UseAfterFree,
    /// A storage is freed that was freed before.
    FreedTwice,
    /// Bytes outside of a storage are touched, or a size or range makes no sense.
    Bounds,
    /// Bytes that a collective in flight uses are touched.
    InFlight,
    /// A wait for what was never started, a start of what is in flight, or a flight that nobody ends.
    Flight,
    /// Step marks do not come in order.
    StepOrder,
    /// A predicted allocation did not happen.
    MissingAlloc,
    /// An allocation was not predicted.
    UnexpectedAlloc,
    /// A storage has another size than predicted.
    WrongSize,
    /// A predicted free did not happen.
    MissingFree,
    /// A free was not predicted.
    UnexpectedFree,
    /// At the end a storage is alive that should have been freed.
    Leak,
    /// At the end a storage is gone that belongs to the caller.
    Lost,
    /// The run ended before all its steps.
    Truncated,
}

/// A fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// The number of the event, from 1; `None` at the end of the run.
    pub event: Option<u64>,
    /// The step that it belongs to.
    pub step: u32,
    /// The storage or flight.
    pub subject: String,
    /// In words, without the place.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.event {
            Some(event) => write!(f, "event {event} (step {}): {}", self.step, self.message),
            None => write!(f, "at the end of the run (step {}): {}", self.step, self.message),
        }
    }
}

impl std::error::Error for Fault {}

/// What a run came to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// All faults, in order.
    pub faults: Vec<Fault>,
    /// How many events were told.
    pub events: u64,
    /// How many steps ended.
    pub steps: u32,
    /// The most bytes that were alive at once.
    pub peak: i64,
    /// The step in which that was.
    pub peak_step: u32,
    /// Bytes alive at the end.
    pub live: i64,
}

/// Judges runs by one prediction, or by memory safety alone.
#[derive(Clone, Debug, Default)]
pub struct Verifier {
    prediction: Option<Arc<Prediction>>,
    mode: Mode,
}

impl Verifier {
    /// Judges memory safety only.
    pub fn of_safety(mode: Mode) -> Verifier {
        Verifier { prediction: None, mode }
    }

    /// Judges by a prediction as well.
    pub fn new(prediction: Prediction, mode: Mode) -> Verifier {
        Verifier { prediction: Some(Arc::new(prediction)), mode }
    }

    /// Begins a run. Runs know nothing of each other.
    pub fn run(&self) -> Run {
        let mut state = State::default();
        if let Some(prediction) = &self.prediction {
            for (name, &bytes) in &prediction.before {
                state.live = state.live.saturating_add(bytes);
                state.storages.insert(name.clone(), Storage { bytes, alive: true, born: None });
            }
            state.summary.peak = state.live;
        }
        Run { prediction: self.prediction.clone(), mode: self.mode, state: Mutex::new(state) }
    }

    /// Judges all events of a run. In assert mode the summary ends with the first fault.
    pub fn judge(&self, events: impl IntoIterator<Item = Event>) -> Summary {
        let run = self.run();
        for event in events {
            if run.record(event).is_err() {
                break;
            }
        }
        run.finish()
    }
}

/// One run. Several threads may tell events of it: each is judged as a whole.
#[derive(Debug)]
pub struct Run {
    prediction: Option<Arc<Prediction>>,
    mode: Mode,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug)]
struct Storage {
    bytes: i64,
    alive: bool,
    /// The step in which it was allocated; `None`: it was there before.
    born: Option<u32>,
}

/// A collective that nobody has waited for yet.
#[derive(Debug)]
struct Flight {
    /// Its number in the order of the launches.
    number: u64,
    /// What it uses, and whether it writes it.
    uses: Vec<(Touched, bool)>,
}

/// What collectives in flight do to one storage.
#[derive(Debug, Default)]
struct InFlight {
    reads: Ranges,
    writes: Ranges,
    /// The flights that name it, also with no byte of it.
    flights: BTreeSet<u64>,
}

impl InFlight {
    fn ranges(&mut self, written: bool) -> &mut Ranges {
        if written { &mut self.writes } else { &mut self.reads }
    }
}

#[derive(Debug, Default)]
struct State {
    storages: FxHashMap<String, Storage>,
    /// By name, so that faults come in an order that does not depend on hashing.
    flights: BTreeMap<String, Flight>,
    /// How many flights were started.
    started: u64,
    /// The names of those in flight, by number.
    names: FxHashMap<u64, String>,
    /// What is in flight of each storage.
    in_flight: FxHashMap<String, InFlight>,
    step: u32,
    allocated: BTreeMap<String, i64>,
    freed: BTreeMap<String, ()>,
    live: i64,
    failed: bool,
    summary: Summary,
}

impl Run {
    /// Judges an event. In assert mode the first fault is returned, and nothing is judged after it.
    pub fn record(&self, event: Event) -> Result<(), Fault> {
        // A thread that panicked while it recorded an event says nothing about the others.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.failed {
            return Ok(());
        }
        state.summary.events += 1;
        let at = Some(state.summary.events);
        let begin = state.summary.faults.len();
        state.event(event, at, self.prediction.as_deref());
        self.outcome(&mut state, begin)
    }

    /// Ends the run: looks for leaks, and tells everything found.
    pub fn finish(self) -> Summary {
        let mut state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if !state.failed {
            state.finish(self.prediction.as_deref());
        }
        state.summary.live = state.live;
        state.summary.steps = state.step;
        state.summary
    }

    fn outcome(&self, state: &mut State, begin: usize) -> Result<(), Fault> {
        match (self.mode, state.summary.faults.get(begin)) {
            (Mode::Assert, Some(fault)) => {
                state.failed = true;
                Err(fault.clone())
            }
            _ => Ok(()),
        }
    }
}

impl State {
    fn fault(&mut self, kind: FaultKind, event: Option<u64>, subject: &str, message: String) {
        self.summary.faults.push(Fault {
            kind,
            event,
            step: self.step,
            subject: subject.to_string(),
            message,
        });
    }

    fn event(&mut self, event: Event, at: Option<u64>, prediction: Option<&Prediction>) {
        match event {
            Event::Alloc { storage, bytes } => self.alloc(storage, bytes, at),
            Event::Free { storage } => self.free(storage, at),
            Event::Read(touched) => {
                if self.usable(&touched, "read", at) {
                    self.against_flights(&touched, false, at);
                }
            }
            Event::Write(touched) => {
                if self.usable(&touched, "written", at) {
                    self.against_flights(&touched, true, at);
                }
            }
            Event::Launch { flight, reads, writes } => {
                if self.flights.contains_key(&flight) {
                    let message = format!("{flight} is started while it is in flight");
                    return self.fault(FaultKind::Flight, at, &flight, message);
                }
                for touched in &reads {
                    if self.usable(touched, "sent", at) {
                        self.against_flights(touched, false, at);
                    }
                }
                for touched in &writes {
                    if self.usable(touched, "received into", at) {
                        self.against_flights(touched, true, at);
                    }
                }
                self.take_off(flight, reads, writes);
            }
            Event::Wait { flight } => match self.flights.remove(&flight) {
                Some(ended) => self.land(ended),
                None => {
                    let message = format!("a wait for {flight}, which is not in flight");
                    self.fault(FaultKind::Flight, at, &flight, message);
                }
            },
            Event::Step { step } => {
                if step != self.step {
                    let message = format!("step {step} ends where step {} should", self.step);
                    self.fault(FaultKind::StepOrder, at, &step.to_string(), message);
                }
                if let Some(prediction) = prediction {
                    self.compare(prediction, at);
                }
                self.allocated.clear();
                self.freed.clear();
                self.step = step.max(self.step).saturating_add(1);
            }
        }
    }

    /// From now on a collective reads and writes.
    fn take_off(&mut self, name: String, reads: Vec<Touched>, writes: Vec<Touched>) {
        let number = self.started;
        self.started += 1;
        let reads = reads.into_iter().map(|touched| (touched, false));
        let uses: Vec<_> = reads.chain(writes.into_iter().map(|touched| (touched, true))).collect();
        for (touched, is_written) in &uses {
            let of = self.in_flight.entry(touched.storage.clone()).or_default();
            of.flights.insert(number);
            of.ranges(*is_written).insert(touched.bytes, number);
        }
        self.names.insert(number, name.clone());
        self.flights.insert(name, Flight { number, uses });
    }

    /// It does no more.
    fn land(&mut self, Flight { number, uses }: Flight) {
        self.names.remove(&number);
        for (touched, is_written) in uses {
            let Some(of) = self.in_flight.get_mut(&touched.storage) else { continue };
            of.ranges(is_written).remove(touched.bytes, number);
            of.flights.remove(&number);
            if of.flights.is_empty() {
                self.in_flight.remove(&touched.storage);
            }
        }
    }

    /// The name of a flight.
    fn name(&self, flight: u64) -> &str {
        self.names.get(&flight).map_or("?", String::as_str)
    }

    fn alloc(&mut self, storage: String, bytes: i64, at: Option<u64>) {
        if bytes < 0 {
            let message = format!("{storage} is allocated with {bytes} bytes");
            return self.fault(FaultKind::Bounds, at, &storage, message);
        }
        if self.storages.get(&storage).is_some_and(|known| known.alive) {
            let message = format!("{storage} is allocated while it is alive");
            return self.fault(FaultKind::AllocatedTwice, at, &storage, message);
        }
        let Some(live) = self.live.checked_add(bytes) else {
            let message = format!("with {storage} the live bytes do not fit 64 bits");
            return self.fault(FaultKind::Bounds, at, &storage, message);
        };
        self.live = live;
        if live > self.summary.peak {
            (self.summary.peak, self.summary.peak_step) = (live, self.step);
        }
        self.storages.insert(storage.clone(), Storage { bytes, alive: true, born: Some(self.step) });
        self.allocated.insert(storage, bytes);
    }

    fn free(&mut self, storage: String, at: Option<u64>) {
        let Some(known) = self.storages.get_mut(&storage) else {
            let message = format!("{storage} is freed, but was never allocated");
            return self.fault(FaultKind::Unknown, at, &storage, message);
        };
        if !std::mem::replace(&mut known.alive, false) {
            return self.fault(FaultKind::FreedTwice, at, &storage, format!("{storage} is freed twice"));
        }
        self.live -= known.bytes;
        let held = self.in_flight.get(&storage).and_then(|of| of.flights.first());
        if let Some(&flight) = held {
            let message = format!("{storage} is freed while {} is in flight with it", self.name(flight));
            self.fault(FaultKind::InFlight, at, &storage, message);
        }
        self.freed.insert(storage, ());
    }

    /// Whether a part of a storage is there to be used; tells why not.
    fn usable(&mut self, touched: &Touched, verb: &str, at: Option<u64>) -> bool {
        let name = &touched.storage;
        let (kind, message) = match self.storages.get(name) {
            None => (FaultKind::Unknown, format!("{name} is {verb}, but was never allocated")),
            Some(known) if !known.alive => {
                (FaultKind::UseAfterFree, format!("{name} is {verb} after it was freed"))
            }
            Some(known) => match touched.bytes {
                Some(range) if range.start < 0 || range.start > range.end || range.end > known.bytes => (
                    FaultKind::Bounds,
                    format!("bytes {range} of {name} are {verb}, which has {} bytes", known.bytes),
                ),
                _ => return true,
            },
        };
        self.fault(kind, at, name, message);
        false
    }

    /// Nobody may write what a collective in flight reads, nor touch what it writes.
    fn against_flights(&mut self, touched: &Touched, writes: bool, at: Option<u64>) {
        let Some(of) = self.in_flight.get(&touched.storage) else { return };
        let (verb, storage) = (if writes { "written" } else { "read" }, &touched.storage);
        let message = if let Some(flight) = of.writes.meets(touched.bytes) {
            format!("{storage} is {verb} while {} is writing it", self.name(flight))
        } else if let Some(flight) = of.reads.meets(touched.bytes).filter(|_| writes) {
            format!("{storage} is written while {} is reading it", self.name(flight))
        } else {
            return;
        };
        self.fault(FaultKind::InFlight, at, &touched.storage, message);
    }

    /// What happened in the step that ends, against what was predicted.
    fn compare(&mut self, prediction: &Prediction, at: Option<u64>) {
        let expected = prediction.steps.get(self.step as usize);
        let (allocated, freed) = (std::mem::take(&mut self.allocated), std::mem::take(&mut self.freed));
        if expected.is_none() {
            let message =
                format!("step {} ends, the prediction has {} steps", self.step, prediction.steps.len());
            self.fault(FaultKind::StepOrder, at, &self.step.to_string(), message);
        }
        let none = super::prediction::Expected::default();
        let expected = expected.unwrap_or(&none);
        for name in expected.freed.keys().filter(|name| !freed.contains_key(*name)) {
            let message = format!("{name} should be freed at the end of this step and is not");
            self.fault(FaultKind::MissingFree, at, name, message);
        }
        for name in freed.keys().filter(|name| !expected.freed.contains_key(*name)) {
            self.fault(
                FaultKind::UnexpectedFree,
                at,
                name,
                format!("{name} is freed in this step, unexpectedly"),
            );
        }
        for (name, bytes) in &allocated {
            match expected.allocated.get(name) {
                None => {
                    let message = format!("{name} ({bytes} bytes) is allocated in this step, unexpectedly");
                    self.fault(FaultKind::UnexpectedAlloc, at, name, message);
                }
                Some(size) if size != bytes => {
                    let message = format!("{name} has {bytes} bytes, predicted were {size}");
                    self.fault(FaultKind::WrongSize, at, name, message);
                }
                Some(_) => {}
            }
        }
        for name in expected.allocated.keys().filter(|name| !allocated.contains_key(*name)) {
            let message = format!("{name} should be allocated in this step and is not");
            self.fault(FaultKind::MissingAlloc, at, name, message);
        }
    }

    fn finish(&mut self, prediction: Option<&Prediction>) {
        for flight in std::mem::take(&mut self.flights).into_keys() {
            self.fault(FaultKind::Flight, None, &flight, format!("nobody waits for {flight}"));
        }
        let Some(prediction) = prediction else { return };
        if (self.step as usize) < prediction.steps.len() {
            let message = format!("{} of {} steps were run", self.step, prediction.steps.len());
            // What is alive now says nothing.
            return self.fault(FaultKind::Truncated, None, "", message);
        }
        let mut alive: Vec<(&String, Storage)> =
            self.storages.iter().filter(|(_, s)| s.alive).map(|(name, s)| (name, *s)).collect();
        alive.sort_by(|a, b| a.0.cmp(b.0));
        let leaks: Vec<(String, Storage)> = alive
            .into_iter()
            .filter(|(name, _)| !prediction.kept.contains(*name))
            .map(|(name, storage)| (name.clone(), storage))
            .collect();
        for (name, storage) in leaks {
            let born = storage.born.map_or("before the run".to_string(), |step| format!("in step {step}"));
            let message = format!("{name} ({} bytes, allocated {born}) is still alive", storage.bytes);
            self.fault(FaultKind::Leak, None, &name, message);
        }
        for name in &prediction.kept {
            if !self.storages.get(name).is_some_and(|storage| storage.alive) {
                let message = format!("{name} belongs to the caller and is gone");
                self.fault(FaultKind::Lost, None, name, message);
            }
        }
    }
}
