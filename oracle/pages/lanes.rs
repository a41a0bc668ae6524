//! Who does what when: for each rank a lane of computation and one for each process group, drawn to time.
//!
//! What is shorter than half a pixel is drawn together with its neighbours, so that a picture of a large graph is no
//! larger than one of a small one. Ranks that do the same are drawn once.

use crate::simulation::{Programs, Step, Timeline, Track};
use crate::words::line;
use ir::words::duration;
use maud::{Markup, html};
use std::collections::BTreeMap;

const LEFT: f64 = 170.0;
const WIDTH: f64 = 1120.0;
const LANE: f64 = 22.0;
const GAP: f64 = 14.0;
const TOP: f64 = 26.0;

/// Ranks that are drawn.
const RANKS: usize = 16;

/// A stretch of a lane.
struct Bar {
    from: u64,
    to: u64,
    class: &'static str,
    first: String,
    last: String,
    /// Nodes in it.
    count: usize,
}

/// A lane: its title, and what is on it in the order of time.
struct Lane {
    title: String,
    bars: Vec<Bar>,
}

/// The lanes of a timeline that these programs gave; empty where nothing takes time.
pub(crate) fn lanes(programs: &Programs, timeline: &Timeline) -> Markup {
    let end = timeline.end();
    let mut placed: Vec<(f64, Lane)> = Vec::new();
    let mut height = TOP;
    for track in timeline.tracks.iter().take(RANKS) {
        for lane in lanes_of(programs, track, end) {
            placed.push((height, lane));
            height += LANE;
        }
        height += GAP;
    }
    let width = LEFT + WIDTH + 20.0;
    html! {
        @if end > 0 {
            div.picture tabindex="0" {
                svg.lanes viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height) role="img"
                    aria-label="communication and computation of each rank over time" {
                    @for tick in 0..=4u64 { (ruled(tick, end, height)) }
                    @for (y, lane) in &placed {
                        text x=(LEFT - 10.0) y=(y + 15.0) text-anchor="end" {
                            (shortened(&lane.title)) title { (line(&lane.title)) }
                        }
                        @for bar in &lane.bars { (drawn(bar, *y, end)) }
                    }
                }
            }
            p.legends {
                span.legend.compute { "computes" } span.legend.comm { "communicates" }
                span.legend.exposed { "stands still at a wait" }
                @if timeline.tracks.len() > RANKS {
                    span.quiet { "and " (timeline.tracks.len() - RANKS) " more ranks that do otherwise" }
                }
            }
        }
    }
}

/// A line through all lanes at a quarter of the time, with that time.
fn ruled(tick: u64, end: u64, height: f64) -> Markup {
    let x = LEFT + WIDTH * tick as f64 / 4.0;
    let anchor = (tick == 4).then_some("end");
    html! {
        line.grid x1=(x) x2=(x) y1=(TOP - 6.0) y2=(height) {}
        text.quiet x=(x) y="14" text-anchor=[anchor] { (duration((end as f64 * tick as f64 / 4.0) as u64)) }
    }
}

fn lanes_of(programs: &Programs, track: &Track, end: u64) -> Vec<Lane> {
    let program = programs.of_rank.get(track.rank as usize).and_then(|&number| programs.programs.get(number));
    let mut computed: Vec<Bar> = Vec::new();
    for &(step, start) in &track.computed {
        if let Some(Step::Compute { name, nanoseconds }) = program.and_then(|program| program.steps.get(step))
        {
            computed.push(bar(start, start.saturating_add(*nanoseconds), "compute", name));
        }
    }
    let mut groups: BTreeMap<&str, Vec<Bar>> = BTreeMap::new();
    for flight in &track.flights {
        let bars = groups.entry(&flight.group).or_default();
        if flight.ended > 0 {
            bars.push(bar(flight.started, flight.ended, "comm", &flight.name));
        }
        if let Some(waited) = flight.waited.filter(|_| flight.exposed > 0) {
            computed.push(bar(waited, waited.saturating_add(flight.exposed), "exposed", &flight.name));
        }
    }
    let own = Lane { title: format!("rank {}: compute", track.rank), bars: merged(computed, end) };
    let others = groups.into_iter().map(|(group, bars)| Lane {
        title: format!("on {}", if group.is_empty() { "\u{2014}" } else { group }),
        bars: merged(bars, end),
    });
    std::iter::once(own).chain(others).collect()
}

fn bar(from: u64, to: u64, class: &'static str, name: &str) -> Bar {
    Bar { from, to, class, first: name.to_string(), last: name.to_string(), count: 1 }
}

/// In the order of time, those together that nobody could tell apart.
fn merged(mut bars: Vec<Bar>, end: u64) -> Vec<Bar> {
    let least = (end as f64 / WIDTH / 2.0) as u64;
    bars.retain(|bar| bar.to > bar.from);
    bars.sort_by_key(|bar| (bar.from, bar.to));
    let mut merged: Vec<Bar> = Vec::new();
    for bar in bars {
        match merged.last_mut() {
            Some(last)
                if last.class == bar.class
                    && bar.from <= last.to.saturating_add(least)
                    && (bar.to - bar.from <= least || last.to - last.from <= least) =>
            {
                last.to = last.to.max(bar.to);
                last.last = bar.last;
                last.count += bar.count;
            }
            _ => merged.push(bar),
        }
    }
    merged
}

fn drawn(bar: &Bar, y: f64, end: u64) -> Markup {
    let x = |time: u64| LEFT + WIDTH * time as f64 / end as f64;
    let (from, to) = (x(bar.from), x(bar.to));
    let names = match bar.count {
        1 => line(&bar.first),
        count => format!("{count} nodes from {} to {}", line(&bar.first), line(&bar.last)),
    };
    let what = if bar.class == "exposed" { "stands still for " } else { "" };
    let took = duration(bar.to - bar.from);
    html! {
        rect class=(bar.class) x=(format!("{from:.1}")) y=(format!("{:.1}", y + 2.0))
            width=(format!("{:.1}", (to - from).max(0.5))) height=(LANE - 4.0) {
            title { (what) (names) ": " (took) ", from " (duration(bar.from)) }
        }
    }
}

/// As much of a title as there is room for.
fn shortened(text: &str) -> String {
    const MOST: usize = 24;
    let text = line(text);
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
