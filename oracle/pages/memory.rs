//! Memory over the steps: the picture of a report, what lives at the step under the pointer, and the report in words.

use crate::page::Page;
use crate::report::memory::{BYTES_AT, MemoryReport, STEPS_AT, svg};
use crate::words::{bytes, line, visible};
use maud::{Markup, PreEscaped, html};
use serde_json::{Value, json};

/// Storages that the pointer knows, the largest.
const BLOCKS: usize = 400;

/// A page about the memory of one graph.
pub fn page(report: &MemoryReport) -> String {
    let title = format!("Memory of {}", report.graph.name);
    let body = html! {
        header.verdict { h1 { span.subject { (line(&title)) } } (peaks(report)) }
        main { (picture(report, 0)) (words(report)) }
    };
    Page { title, body, data: vec![("memory-0".to_string(), data(report))] }.render()
}

/// Both peaks in a line.
fn peaks(report: &MemoryReport) -> Markup {
    html! {
        p { "The peak is " b { (bytes(report.replay_peak_bytes())) } " at run time, and "
            (bytes(report.profile_peak_bytes())) " as PyTorch counts." }
    }
}

/// The picture; the script finds its data by the number.
pub(crate) fn picture(report: &MemoryReport, number: usize) -> Markup {
    // What stands in a page needs no name space. Names may hold anything.
    let picture = visible(&svg(report)).replacen(" xmlns=\"http://www.w3.org/2000/svg\"", "", 1);
    html! {
        div.picture.memory data-memory=(number) tabindex="0" role="group"
            aria-label="live memory over the steps; arrows move from step to step" {
            (PreEscaped(picture))
            div.at role="status" { span.quiet { "Point at a step to see what lives there." } }
        }
    }
}

/// The steps and the largest storages, for the pointer.
pub(crate) fn data(report: &MemoryReport) -> Value {
    let (profile, replay) = (&report.profile.steps, &report.replay.steps);
    let steps: Vec<Value> = replay
        .steps
        .iter()
        .enumerate()
        .map(|(i, step)| {
            let counted = profile.steps.get(i).map(|step| step.peak);
            json!([line(report.graph.name(step.node)), step.peak, counted])
        })
        .collect();
    let mut lives: Vec<usize> = (0..report.replay.lives.len()).collect();
    lives.sort_by_key(|&i| std::cmp::Reverse(report.replay.lives[i].bytes));
    let blocks: Vec<Value> = lives
        .iter()
        .take(BLOCKS)
        .map(|&i| {
            let life = &report.replay.lives[i];
            json!([line(report.graph.name(life.by)), life.bytes, life.start, life.end])
        })
        .collect();
    let known = blocks.len() == report.replay.lives.len();
    json!({ "steps": steps, "blocks": blocks, "all": known, "x": STEPS_AT, "y": BYTES_AT })
}

/// The report for people.
pub(crate) fn words(report: &MemoryReport) -> Markup {
    html! { section { h2 { "In words" } pre.report { (visible(&report.text())) } } }
}
