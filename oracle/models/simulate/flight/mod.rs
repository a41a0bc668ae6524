//! Dumps of the flight recorder, rank beside rank: who waits where, and what the others did there.
//!
//! # The idea
//!
//! The ranks of a process group launch its collectives in one order and number them. So what has one number on one
//! group should be one collective: where two ranks launched different ones, data are mixed up or the ranks hang. A rank
//! waits at the first launch of a group that is not complete; the report says what every other rank of the group did at
//! that number: launched it too (and how far that came), launched something else, has not come to it, or left no dump.
//!
//! A dump is a moment. That a rank has not come to a collective may be because it was slow; faults are what is launched
//! differently, what the watchdog gave up, and a rank without a dump: every live process writes one.
//!
//! The record is a ring that loses its beginning, and a writer may leave completed launches out: a number that is lower
//! than what a rank recorded is *not known*, never *missing*, and the first launch of such a record, of which a part
//! may be lost, is not compared. A library that records no progress (gloo) says of a launch only that it has ended;
//! then nothing is said of its state.
//!
//! # What it does not do
//!
//! Of messages between two ranks only the state is told: their numbers are not shared by the ranks, and what was lost
//! makes them hard to pair. Times are not looked at. What the graph says is in `align`.

mod align;
mod launched;

pub use align::{Alignment, Place, align};
pub use launched::Launched;

use crate::format::flight_recorder::{Entry, FlightDump, State};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// A process group, and who of it left a dump.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlightGroup {
    /// Its name.
    pub name: String,
    /// What it is called for people.
    pub description: String,
    /// Its ranks, where a dump says.
    pub ranks: Option<Vec<u32>>,
}

/// What one rank recorded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlightRank {
    /// Its launches, in order.
    pub launches: Vec<Launched>,
    /// How many records are lost before the first.
    pub lost: i64,
    /// Whether it records how far a launch came.
    pub has_progress: bool,
}

/// The dumps of a job.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Flights {
    /// The process groups, in order of first use.
    pub groups: Vec<FlightGroup>,
    /// The ranks of the job's groups, used or not, that left no dump.
    pub missing: Vec<u32>,
    /// What each rank recorded.
    pub ranks: BTreeMap<u32, FlightRank>,
}

impl FlightRank {
    /// Whether a launch is over, as far as that is recorded.
    pub fn is_over(&self, launch: &Launched) -> bool {
        launch.state == State::Completed || (!self.has_progress && launch.is_retired)
    }

    /// Whether the watchdog gave a launch up: it looks after it no more, and it is not complete.
    fn is_given_up(&self, launch: &Launched) -> bool {
        self.has_progress && launch.is_retired && launch.state != State::Completed
    }

    /// How far a launch came, in words.
    fn progress(&self, launch: &Launched) -> &'static str {
        match launch.state {
            _ if !self.has_progress && launch.is_retired => "ended (its library records no completion)",
            State::Completed => "completed",
            State::Started if launch.is_retired => "started, not completed, and given up by the watchdog",
            State::Started => "started, not completed",
            State::Scheduled if self.is_given_up(launch) => {
                "launched, not started, and given up by the watchdog"
            }
            State::Scheduled => "launched, not started",
        }
    }

    fn collectives(&self, group: usize) -> impl DoubleEndedIterator<Item = &Launched> {
        self.launches.iter().filter(move |launch| launch.group == group && !launch.is_message)
    }
}

impl Flights {
    /// The dumps of a job, each with its rank.
    pub fn new(dumps: &BTreeMap<u32, FlightDump>) -> Flights {
        let mut flights = Flights::default();
        // A name may stand for several groups, one for each set of ranks.
        let mut known: FxHashMap<(String, Option<Vec<u32>>), usize> = FxHashMap::default();
        for (&rank, dump) in dumps {
            let mut of = FlightRank {
                lost: dump.entries.first().map_or(0, |entry| entry.record.max(0)),
                has_progress: dump.entries.iter().any(|entry| entry.state != State::Scheduled),
                ..FlightRank::default()
            };
            let mut ranks_of: FxHashMap<&str, Option<Vec<u32>>> = FxHashMap::default();
            for entry in &dump.entries {
                let name = entry.group.as_str();
                ranks_of.entry(name).or_insert_with(|| members(name, rank, dump, dumps));
            }
            let mut at = 0;
            while let Some(first) = dump.entries.get(at) {
                let is_same = |other: &&Entry| {
                    (other.group == first.group && other.is_message == first.is_message)
                        && match first.is_message {
                            true => other.message == first.message,
                            false => other.collective == first.collective,
                        }
                };
                let entries: Vec<&Entry> = dump.entries[at..].iter().take_while(is_same).collect();
                let may_be_cut = at == 0 && of.lost > 0;
                at += entries.len().max(1);
                let key = (first.group.clone(), ranks_of.get(first.group.as_str()).cloned().flatten());
                let group = *known.entry(key).or_insert_with_key(|(name, ranks)| {
                    let (name, ranks, description) = (name.clone(), ranks.clone(), first.description.clone());
                    flights.groups.push(FlightGroup { name, description, ranks });
                    flights.groups.len() - 1
                });
                of.launches.extend(Launched::of(&entries, group, may_be_cut));
            }
            flights.ranks.insert(rank, of);
        }
        let listed = dumps.values().flat_map(|dump| dump.groups.iter().flat_map(|group| &group.ranks));
        let missing: BTreeSet<u32> = listed.copied().filter(|rank| !dumps.contains_key(rank)).collect();
        flights.missing = missing.into_iter().collect();
        flights
    }

    /// The ranks of a group that are looked at: its own, or those that recorded something on it.
    fn members(&self, group: usize) -> Vec<u32> {
        match self.groups.get(group).and_then(|group| group.ranks.clone()) {
            Some(ranks) => ranks,
            None => {
                let uses = |(rank, of): (&u32, &FlightRank)| {
                    of.launches.iter().any(|launch| launch.group == group).then_some(*rank)
                };
                self.ranks.iter().filter_map(uses).collect()
            }
        }
    }

    /// `group 0 (default_pg)`
    pub fn group_name(&self, group: usize) -> String {
        match self.groups.get(group) {
            Some(group) if group.description.is_empty() || group.description == "undefined" => {
                format!("group {}", group.name)
            }
            Some(group) => format!("group {} ({})", group.name, group.description),
            None => "group ?".to_string(),
        }
    }

    /// The launch at which a rank waits on a group: the first that is not over, unless all are.
    pub fn waiting(&self, rank: u32) -> Vec<&Launched> {
        let Some(of) = self.ranks.get(&rank) else { return Vec::new() };
        let mut seen = BTreeSet::new();
        let open = of.launches.iter().filter(|launch| !of.is_over(launch));
        open.filter(|launch| seen.insert((launch.group, launch.is_message))).collect()
    }
}

/// The ranks of a group by the dump itself, or else by another rank's that lists this one.
fn members(name: &str, rank: u32, dump: &FlightDump, dumps: &BTreeMap<u32, FlightDump>) -> Option<Vec<u32>> {
    let listed = |dump: &FlightDump| {
        let group = dump.groups.iter().find(|group| group.name == name && group.ranks.contains(&rank));
        group.map(|group| group.ranks.clone())
    };
    listed(dump).or_else(|| dumps.values().find_map(listed))
}

/// What one rank of a group did at a number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The rank.
    pub rank: u32,
    /// Whether it has not come to it.
    pub is_behind: bool,
    /// In words.
    pub words: String,
}

/// A collective at which something is to be told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Meeting {
    /// The group: an index.
    pub group: usize,
    /// Its number on the group.
    pub number: i64,
    /// Why it cannot be one collective, where it cannot.
    pub mismatch: Option<String>,
    /// Whether the watchdog gave it up on some rank.
    pub is_given_up: bool,
    /// What each rank of the group did.
    pub parts: Vec<Part>,
}

/// What the dumps show.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlightReport {
    /// The ranks that left no dump.
    pub missing: Vec<u32>,
    /// On each group the first number at which ranks launched different collectives.
    pub mismatches: Vec<Meeting>,
    /// The collectives at which some rank waits.
    pub waits: Vec<Meeting>,
    /// Messages that are not complete.
    pub messages: Vec<String>,
    /// What is not known.
    pub notes: Vec<String>,
    /// How many collectives of the dumps are compared between ranks.
    pub compared: usize,
    /// Whether some rank's library records no completion.
    pub lacks_progress: bool,
}

impl FlightReport {
    /// Whether what is recorded is in order: every rank left a dump, and all is over and agrees. `None` where that
    /// cannot be decided: a rank waits, and the dumps do not say whether it would have gone on.
    pub fn is_in_order(&self) -> Option<bool> {
        let is_wrong = !self.missing.is_empty()
            || !self.mismatches.is_empty()
            || self.waits.iter().any(|wait| wait.is_given_up);
        let is_open = !self.waits.is_empty() || !self.messages.is_empty() || self.lacks_progress;
        match (is_wrong, is_open || self.compared == 0) {
            (true, _) => Some(false),
            (false, true) => None,
            (false, false) => Some(true),
        }
    }
}

/// Compares the dumps of all ranks.
pub fn judge(flights: &Flights) -> FlightReport {
    let mut report = FlightReport { missing: flights.missing.clone(), ..FlightReport::default() };
    // For each rank and group its collectives by number. Of equal numbers (the ring was reset) the last one counts.
    let by_number: BTreeMap<(usize, u32), BTreeMap<i64, &Launched>> = {
        let mut all: BTreeMap<(usize, u32), BTreeMap<i64, &Launched>> = BTreeMap::new();
        for (&rank, of) in &flights.ranks {
            for launch in of.launches.iter().filter(|launch| !launch.is_message) {
                all.entry((launch.group, rank)).or_default().insert(launch.number, launch);
            }
        }
        all
    };
    let mut stuck: BTreeMap<(usize, u32), BTreeSet<i64>> = BTreeMap::new();
    for &rank in flights.ranks.keys() {
        for launch in flights.waiting(rank).into_iter().filter(|launch| !launch.is_message) {
            stuck.entry((launch.group, rank)).or_default().insert(launch.number);
        }
    }
    for group in 0..flights.groups.len() {
        let members = flights.members(group);
        let mut at: BTreeMap<i64, Vec<(u32, &Launched)>> = BTreeMap::new();
        for &rank in &members {
            for (&number, launch) in by_number.get(&(group, rank)).into_iter().flatten() {
                at.entry(number).or_default().push((rank, launch));
            }
        }
        let waits = |number: &i64| {
            let of_rank = |rank: &u32| stuck.get(&(group, *rank)).is_some_and(|all| all.contains(number));
            members.iter().any(of_rank)
        };
        let mut mismatch = None;
        for (&number, launches) in &at {
            report.compared += usize::from(launches.len() > 1);
            let Some((first, of_first)) = launches.first() else { continue };
            let differing =
                launches[1..].iter().find_map(|(rank, launch)| Some((rank, of_first.differs(launch)?)));
            if let Some((rank, why)) = differing
                && mismatch.is_none()
            {
                mismatch = Some(number);
                let why = format!("rank {first} and rank {rank} do not launch the same: {why}");
                report.mismatches.push(meeting(flights, &by_number, group, number, &members, Some(why)));
            }
            if mismatch != Some(number) && waits(&number) {
                report.waits.push(meeting(flights, &by_number, group, number, &members, None));
            }
        }
        if flights.groups[group].ranks.is_none() {
            let name = flights.group_name(group);
            report
                .notes
                .push(format!("{name}: no dump says which ranks it has; those that used it are compared"));
        }
    }
    for (&rank, of) in &flights.ranks {
        for launch in flights.waiting(rank).into_iter().filter(|launch| launch.is_message) {
            let (name, progress) = (flights.group_name(launch.group), of.progress(launch));
            report.messages.push(format!("rank {rank}, {name}: {launch}: {progress}"));
        }
        if of.lost > 0 {
            report.notes.push(format!(
                "rank {rank}: {} records before the first are not in its dump (the ring lost them, or completed ones \
                 are left out)",
                of.lost
            ));
        }
        if of.launches.is_empty() {
            report.notes.push(format!("rank {rank}: its dump has no launches"));
        } else if !of.has_progress {
            report.lacks_progress = true;
            report.notes.push(format!("rank {rank}: its library records no progress, only what has ended"));
        }
    }
    report
}

/// What each rank of a group did at a number.
fn meeting(
    flights: &Flights,
    by_number: &BTreeMap<(usize, u32), BTreeMap<i64, &Launched>>,
    group: usize,
    number: i64,
    members: &[u32],
    mismatch: Option<String>,
) -> Meeting {
    let mut is_given_up = false;
    let part = |&rank: &u32| {
        let Some(of) = flights.ranks.get(&rank) else {
            return Part { rank, is_behind: true, words: "no dump".to_string() };
        };
        let own = by_number.get(&(group, rank));
        if let Some(launch) = own.and_then(|own| own.get(&number)) {
            is_given_up |= of.is_given_up(launch);
            return Part { rank, is_behind: false, words: format!("{launch}: {}", of.progress(launch)) };
        }
        let is_unknown = |words: &str| (false, words.to_string());
        let (is_behind, words) =
            match (own.and_then(|own| own.first_key_value()), of.collectives(group).next_back()) {
                (Some((&first, _)), _) if number < first => is_unknown("not known: its record begins later"),
                (Some(_), Some(last)) if number < last.number => {
                    is_unknown("not known: its record has later ones only (completed ones may be left out)")
                }
                (Some(_), Some(last)) => {
                    let progress = of.progress(last);
                    let number = last.number;
                    (
                        true,
                        format!("has not come to it; its last on this group is {number}, {last}: {progress}"),
                    )
                }
                _ if of.lost > 0 => {
                    is_unknown("not known: its record has nothing on this group, and its beginning is lost")
                }
                _ => (true, "has not come to it: it launched nothing on this group".to_string()),
            };
        Part { rank, is_behind, words }
    };
    let parts = members.iter().map(part).collect();
    Meeting { group, number, mismatch, is_given_up, parts }
}

#[cfg(test)]
mod tests;
