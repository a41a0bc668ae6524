//! Memory over the steps: the picture of a report, what lives at the step under the pointer, and the report in words.

use crate::page::Page;
use crate::report::memory::{BYTES_AT, MemoryReport, STEPS_AT, svg};
use crate::words::{line, visible};
use ir::words::bytes;
use maud::{Markup, PreEscaped, html};
use models::memory::Life;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Storages that are told at a step, the largest.
const TOLD: usize = 8;

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

/// The steps, and the storages that are among the largest at one of them, for the pointer.
pub(crate) fn data(report: &MemoryReport) -> Value {
    let (profile, replay) = (&report.profile.steps, &report.replay.steps);
    let (told, counts) = largest(&report.replay.lives, replay.steps.len());
    let steps: Vec<Value> = replay
        .steps
        .iter()
        .zip(counts)
        .enumerate()
        .map(|(i, (step, count))| {
            let counted = profile.steps.get(i).map(|step| step.peak);
            json!([line(report.graph.name(step.node)), step.peak, counted, count])
        })
        .collect();
    let blocks: Vec<Value> = told
        .iter()
        .map(|life| json!([line(report.graph.name(life.by)), life.bytes, life.start, life.end]))
        .collect();
    json!({ "steps": steps, "blocks": blocks, "told": TOLD, "x": STEPS_AT, "y": BYTES_AT })
}

/// The storages that are among the largest at some step, the largest first; and how many live at each step.
fn largest(lives: &[Life], steps: usize) -> (Vec<Life>, Vec<usize>) {
    let mut begins: Vec<Vec<usize>> = vec![Vec::new(); steps + 1];
    let mut ends: Vec<Vec<usize>> = vec![Vec::new(); steps + 1];
    for (i, life) in lives.iter().enumerate().filter(|(_, life)| life.bytes > 0) {
        let end = life.end.map_or(steps, |end| end as usize).min(steps);
        if let Some(begins) = begins.get_mut(life.start.unwrap_or(0) as usize) {
            begins.push(i);
            ends[end].push(i);
        }
    }
    let (mut live, mut told, mut counts) = (BTreeSet::new(), BTreeSet::new(), Vec::with_capacity(steps));
    let rank = |i: usize| (Reverse(lives[i].bytes), i);
    for step in 0..steps {
        live.extend(begins[step].iter().map(|&i| rank(i)));
        told.extend(live.iter().take(TOLD).copied());
        counts.push(live.len());
        ends[step].iter().for_each(|&i| {
            live.remove(&rank(i));
        });
    }
    (told.into_iter().map(|(_, i)| lives[i]).collect(), counts)
}

/// The report for people.
pub(crate) fn words(report: &MemoryReport) -> Markup {
    html! { section { h2 { "In words" } pre.report { (visible(&report.text())) } } }
}
