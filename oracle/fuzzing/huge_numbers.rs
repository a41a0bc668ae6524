//! Small texts with huge numbers: whatever they say, the judge answers soon and in little memory.
//!
//! Most numbers in a graph stand for something that somebody could build: elements, pieces, ranks, bytes. A limit must
//! stop that before it is built (docs/limits.md). A fuzzer, or the test that replays this, gives the process little
//! memory.

use crate::candidates::{Outcome, Reference, judging};
use crate::case::{Case, PassConfig};
use crate::format::{dot, json, svg, text};
use crate::generate::{Seeded, Source};
use crate::gpu;
use crate::judge::{self, Options, Values, input_faults};
use crate::lifecycle::{Mode, Prediction, Verifier, events_of_replay};
use crate::limits::Limit;
use crate::memory::replay::{self, Facts, replay_facts};
use crate::report::memory::{self, MemoryReport};
use crate::rules::PassKind;
use crate::simulate::{self, Estimates, Programs};

/// Nodes of a text at most: a large graph may take its time.
const MOST_NODES: usize = 100;

/// Numbers that stand where something ends: of a type, of what can be counted, or of what anybody can hold.
pub const NUMBERS: &[i64] =
    &[0, 1, -1, i32::MAX as i64, 1 << 32, 1 << 40, 1 << 47, 1 << 53, 1 << 62, i64::MAX, i64::MIN];

/// Asks all that can be asked about a case: every pass, memory, time, a run on the host's device, every format.
pub fn check(data: &[u8]) {
    let Ok(case) = text::parse(data) else { return };
    if case.graph.len() > MOST_NODES {
        return;
    }
    formats(&case);
    let options = Options { element_limit: 1 << 16, run_again: true, ..judging() };
    for pass in PassKind::ALL {
        let config = case.pass.clone().filter(|config| config.name == pass.name());
        let config = config.unwrap_or_else(|| PassConfig::new(pass.name()));
        let unchanged = Outcome { unrepaired: None, repaired: case.graph.clone() };
        let _ = judge::judge_outcomes(&case.graph, &config, &[(None, unchanged)], &options);
        let case = Case { pass: Some(config), ..case.clone() };
        for values in [Values::Auto, Values::Agree] {
            let options = Options { values, ..options.clone() };
            let _ = judge::judge(&case, &Reference, &options);
            let _ = judge::judge_recorded(&case, &options);
        }
    }
    memory_over_time(&case);
    if input_faults(&case.graph, PassKind::Schedule).is_empty() {
        let tables = case.pass.as_ref().map_or(&[][..], |pass| &pass.estimates);
        let estimates = Estimates::of_ranks(tables).and_then(|ranks| Estimates::agreed(&ranks));
        let programs = Programs::spmd(&case.graph, &estimates.unwrap_or_default());
        let _ = simulate::simulate(&programs, simulate::Options::default()).to_string();
    }
    let options = gpu::passes::Options {
        interleavings: 2,
        repetitions: 1,
        max_elements: 1 << 12,
        ..gpu::passes::Options::default()
    };
    for case in gpu::suite::cases("case", None, &case, Limit::SmokeRanks.standard()).unwrap_or_default() {
        let _ = gpu::passes::smoke(&case, &options, None);
    }
}

/// The case in every format.
fn formats(case: &Case) {
    let _ = case.to_string();
    let _ = json::write(&case.graph, &mut Vec::new());
    let _ = dot::dot(&case.graph);
    let _ = svg::svg(&case.graph);
}

/// What is in memory step by step, and the events of that.
fn memory_over_time(case: &Case) {
    if !input_faults(&case.graph, PassKind::Memory).is_empty() {
        return;
    }
    if let Ok(report) = MemoryReport::new(&case.graph) {
        let _ = (report.text(), report.json(), memory::svg(&report), memory::trace(&report));
    }
    let facts = Facts::new(&case.graph);
    if let Ok(run) = replay_facts(&facts, replay::Options::default()) {
        let prediction = Prediction::of_replay(&case.graph, &run);
        let _ = Verifier::new(prediction, Mode::Log).judge(events_of_replay(&facts, &run));
    }
}

/// The numbers in a text, as ranges of bytes. What belongs to a name (`f32`, `x_1`) or to a fraction is none.
pub fn numbers(text: &str) -> Vec<std::ops::Range<usize>> {
    let bytes = text.as_bytes();
    let is_word = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.');
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let end = at + bytes[at..].iter().take_while(|b| is_word(b)).count();
        if bytes[at..end].iter().all(u8::is_ascii_digit) && end > at {
            found.push(at..end);
        }
        at = end.max(at + 1);
    }
    found
}

/// The text with a huge number at one place, or wherever the number of this place stands.
pub fn with_number(text: &str, place: &std::ops::Range<usize>, number: i64, everywhere: bool) -> String {
    let old = &text[place.clone()];
    let mut result = String::with_capacity(text.len() + 32);
    let mut end = 0;
    for other in numbers(text) {
        if other == *place || everywhere && &text[other.clone()] == old {
            result += &text[end..other.start];
            result += &number.to_string();
            end = other.end;
        }
    }
    result + &text[end..]
}

/// Another input near `data`: one of its numbers becomes a huge one. The same data and seed give the same result.
pub fn mutate(data: &[u8], seed: u32) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(data) else { return data.to_vec() };
    let mut source = Seeded::new(u64::from(seed));
    let places = numbers(text);
    if places.is_empty() {
        return data.to_vec();
    }
    let place = &places[source.below(places.len() as u32) as usize];
    let number = source.one_of(NUMBERS);
    with_number(text, place, number, source.percent(30)).into_bytes()
}
