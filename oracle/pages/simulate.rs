//! The page of a simulation: whether all ranks finish, when what happened, and which communication is exposed.

use crate::lanes::lanes;
use crate::page::{Page, bar};
use crate::simulation::{Flight, Programs, Report, Track};
use crate::words::{line, visible};
use ir::words::duration;
use maud::{Markup, html};

/// Flights that are listed, those that are exposed for longest.
const LISTED: usize = 20;

/// A page about a simulation of these programs; `subject` says of what.
pub fn page(programs: &Programs, report: &Report, subject: &str) -> String {
    let (class, word) = match report.finishes() {
        Some(true) => ("sound", "ALL RANKS FINISH"),
        Some(false) => ("violated", "RANKS DO NOT FINISH"),
        None => ("undecided", "NOT DECIDED"),
    };
    let text = report.to_string();
    // Ranks that stood still at once have no times to tell.
    let has_time = report.timeline.end() > 0;
    let body = html! {
        header class={ "verdict " (class) } {
            h1 { span.word { (word) } " " span.subject { (line(subject)) } }
            @if has_time {
                p { (duration(report.timeline.end())) " by the estimates, " (duration(report.timeline.exposed()))
                    " of it at waits for communication" }
            }
            @if report.finishes() != Some(true) || !report.warnings.is_empty() { pre.report { (visible(&text)) } }
        }
        main {
            @if has_time {
                section #timeline { h2 { "Timeline" } (lanes(programs, &report.timeline)) }
                (tracks(programs, report))
            }
            (exposed(&report.timeline.tracks))
        }
    };
    Page { title: format!("{word}: {subject}"), body, data: Vec::new() }.render()
}

/// A row for each rank that was run; it stands for all that do the same.
fn tracks(programs: &Programs, report: &Report) -> Markup {
    let tracks = &report.timeline.tracks;
    let ranks = programs.of_rank.len();
    html! {
        @if !tracks.is_empty() {
            section {
                h2 { "Ranks" }
                @if tracks.len() < ranks {
                    p.quiet { (ranks) " ranks; those that do the same are told once" }
                }
                div.scroll { table {
                    thead { tr {
                        th { "rank" } th.number { "launches" } th.number { "ends at" } th.number { "exposed" }
                    } }
                    tbody { @for track in tracks { tr {
                        td { (track.rank) }
                        td.number { (track.flights.len()) }
                        td.number { (duration(track.end)) }
                        td.number { (duration(track.exposed())) }
                    } } }
                } }
            }
        }
    }
}

/// The communication of the rank that stands still for longest.
fn exposed(tracks: &[Track]) -> Markup {
    let worst = tracks.iter().max_by_key(|track| (track.exposed(), std::cmp::Reverse(track.rank)));
    let mut flights: Vec<&Flight> =
        worst.iter().flat_map(|track| &track.flights).filter(|flight| flight.exposed > 0).collect();
    flights.sort_by_key(|flight| std::cmp::Reverse(flight.exposed));
    let most = flights.first().map_or(1, |flight| flight.exposed);
    html! {
        @if let Some(track) = worst.filter(|_| !flights.is_empty()) {
            section {
                h2 { "Exposed communication of rank " (track.rank) }
                div.scroll { table.bars {
                    thead { tr {
                        th { "launch" } th { "group" } th.number { "launched" } th.number { "took" }
                        th.number { "exposed" } th {}
                    } }
                    tbody { @for flight in flights.iter().take(LISTED) { tr {
                        td { code { (line(&flight.name)) } }
                        td { (line(&flight.group)) }
                        td.number { (duration(flight.launched)) }
                        td.number { (duration(flight.ended.saturating_sub(flight.started))) }
                        td.number { (duration(flight.exposed)) }
                        td { (bar(flight.exposed, most)) }
                    } } }
                } }
                @if flights.len() > LISTED { p.quiet { "and " (flights.len() - LISTED) " more" } }
            }
        }
    }
}
