//! When what happened in a simulation, and which communication was not hidden.
//!
//! Times are simulated nanoseconds. A collective starts when all its ranks have launched it and their streams are
//! free, and takes as long as the slowest of them estimates. A rank that waits stands still until it is complete:
//! this time is *exposed*; the rest of the flight is *hidden* behind what the rank computed between launch and wait.

use super::{Operation, Options, Programs, Report, simulate};

/// One operation on one rank.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Flight {
    /// The node that launches it.
    pub name: String,
    /// Its process group.
    pub group: String,
    /// When it was launched.
    pub launched: u64,
    /// When all ranks had come to it.
    pub started: u64,
    /// When it was complete; 0 if never.
    pub ended: u64,
    /// When the rank first waited for it.
    pub waited: Option<u64>,
    /// For how long that wait stood still.
    pub exposed: u64,
}

impl Flight {
    pub(super) fn of(operation: &Operation) -> Flight {
        Flight { name: operation.name.clone(), group: operation.group.clone(), ..Flight::default() }
    }

    /// The time, from its launch to the wait, in which the rank did something else; `None` if nobody waited.
    pub fn hiding(&self) -> Option<std::ops::Range<u64>> {
        self.waited.map(|waited| self.launched..waited)
    }
}

/// What happened on one rank.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Track {
    /// The rank; it stands for all that do the same.
    pub rank: u32,
    /// Its operations, in program order.
    pub flights: Vec<Flight>,
    /// The steps that computed: (step of the program, when).
    pub computed: Vec<(usize, u64)>,
    /// When everything was done.
    pub end: u64,
}

impl Track {
    /// Nanoseconds for which the rank stood still at waits.
    pub fn exposed(&self) -> u64 {
        self.flights.iter().map(|flight| flight.exposed).sum()
    }
}

/// What happened on every rank that was run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Timeline {
    /// By class of ranks.
    pub tracks: Vec<Track>,
}

impl Timeline {
    /// The longest time for which a rank stood still at waits, in nanoseconds.
    pub fn exposed(&self) -> u64 {
        self.tracks.iter().map(Track::exposed).max().unwrap_or(0)
    }

    /// When the last rank was done, in nanoseconds.
    pub fn end(&self) -> u64 {
        self.tracks.iter().map(|track| track.end).max().unwrap_or(0)
    }
}

/// Exposed time of one rank's graph in nanoseconds, on its own: all ranks do the same. `None` where it does not
/// finish.
pub fn exposure(programs: &Programs) -> Option<u64> {
    let report: Report = simulate(programs, Options::default());
    (report.finishes() == Some(true)).then(|| report.timeline.exposed())
}
