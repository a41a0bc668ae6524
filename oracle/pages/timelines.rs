//! Graphs over time: who communicates when, and what memory lives, below one another for each graph.

use crate::judge::input_faults;
use crate::lanes::lanes;
use crate::memory;
use crate::report::memory::MemoryReport;
use crate::rules::PassKind;
use crate::simulation::{Estimates, Options, Programs, simulate};
use crate::view::Shown;
use crate::words::line;
use maud::{Markup, html};
use serde_json::Value;

/// The pictures, and the data of those that have a pointer. A graph that is at fault, that does not finish or whose
/// sizes are not known has none.
pub(crate) fn over_time<'g>(
    graphs: impl Iterator<Item = &'g Shown<'g>>,
    estimates: &Estimates,
    is_open: bool,
) -> (Markup, Vec<(String, Value)>) {
    let (mut ranks, mut memories, mut data) = (Vec::new(), Vec::new(), Vec::new());
    for shown in graphs {
        if !input_faults(shown.graph, PassKind::Schedule).is_empty() {
            continue;
        }
        let programs = Programs::spmd(shown.graph, estimates);
        let report = simulate(&programs, Options::default());
        if report.finishes() == Some(true)
            && report.timeline.tracks.iter().any(|track| !track.flights.is_empty())
        {
            ranks.push((&shown.title, lanes(&programs, &report.timeline)));
        }
        if let Ok(report) = MemoryReport::new(shown.graph) {
            let number = memories.len();
            memories.push((&shown.title, memory::picture(&report, number)));
            data.push((format!("memory-{number}"), memory::data(&report)));
        }
    }
    let section = |title: &str, pictures: &[(&String, Markup)]| {
        html! {
            @if !pictures.is_empty() {
                section {
                    details open[is_open] {
                        summary { h2 { (title) } }
                        @for (title, picture) in pictures { h3 { (line(title)) } (picture) }
                    }
                }
            }
        }
    };
    let body =
        html! { (section("Communication over time", &ranks)) (section("Memory over the steps", &memories)) };
    (body, data)
}
