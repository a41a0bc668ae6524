//! A simulated timeline for people: Chrome's trace format, which Perfetto (ui.perfetto.dev) and `chrome://tracing`
//! open. A process is a rank, a thread a stream: computation, and one for each process group. Waits that stood still
//! are shown on the computing stream as `wait for ...`. Times are in microseconds.

use super::{Programs, Step, Timeline};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The trace of a timeline that [`simulate`](super::simulate) gave for these programs.
pub fn trace(programs: &Programs, timeline: &Timeline) -> Value {
    let mut events = Vec::new();
    for track in &timeline.tracks {
        let Some(program) = programs.of_rank.get(track.rank as usize).and_then(|&p| programs.programs.get(p))
        else {
            continue;
        };
        let mut groups: Vec<&str> = Vec::new();
        let mut thread_of: BTreeMap<&str, usize> = BTreeMap::new();
        for flight in &track.flights {
            thread_of.entry(&flight.group).or_insert_with(|| {
                groups.push(&flight.group);
                groups.len()
            });
        }
        events.push(name("process_name", track.rank, 0, &format!("rank {}", track.rank)));
        events.push(name("thread_name", track.rank, 0, "compute"));
        for (i, group) in groups.iter().enumerate() {
            events.push(name("thread_name", track.rank, i + 1, &format!("communication {group}")));
        }
        for &(step, start) in &track.computed {
            if let Some(Step::Compute { name, nanoseconds }) = program.steps.get(step) {
                events.push(span(name, "compute", track.rank, 0, start, start + nanoseconds));
            }
        }
        for (flight, operation) in track.flights.iter().zip(&program.operations) {
            let thread = thread_of.get(flight.group.as_str()).copied().unwrap_or(0);
            if flight.ended > 0 {
                let kind = operation.kind.name();
                events.push(span(&flight.name, kind, track.rank, thread, flight.started, flight.ended));
            }
            if let Some(waited) = flight.waited.filter(|_| flight.exposed > 0) {
                let title = format!("wait for {}", flight.name);
                events.push(span(&title, "exposed", track.rank, 0, waited, waited + flight.exposed));
            }
        }
    }
    json!({ "traceEvents": events, "displayTimeUnit": "ns" })
}

fn name(what: &str, rank: u32, thread: usize, name: &str) -> Value {
    json!({ "ph": "M", "name": what, "pid": rank, "tid": thread, "args": { "name": name } })
}

fn span(name: &str, category: &str, rank: u32, thread: usize, start: u64, end: u64) -> Value {
    let microseconds = |nanoseconds: u64| nanoseconds as f64 / 1e3;
    json!({
        "ph": "X",
        "name": name,
        "cat": category,
        "pid": rank,
        "tid": thread,
        "ts": microseconds(start),
        "dur": microseconds(end - start),
    })
}
