//! Budgets and limits.

use super::super::Checked;
use super::evidence::{Evidence, Outcome, Tell};
use crate::analysis::Collectives;
use crate::graph::{NodeId, Op};
use crate::ops::{Collective, Kind};
use crate::simulate::{Flight, Options, Programs, simulate};

/// How many gathers, and how many scatters, are in flight at once.
pub(super) fn in_flight_limit(evidence: &Evidence) -> Checked {
    let Some(limit) = evidence.promises.in_flight else {
        return Checked::NotChecked("no limit of collectives in flight was promised".into());
    };
    let mut findings = Vec::new();
    for outcome in &evidence.outcomes {
        let after = &outcome.after;
        for kind in [Collective::AllGather, Collective::ReduceScatter] {
            let Some((at, flying)) = first_over(&after.collectives, kind, limit) else { continue };
            let name = |id: NodeId| after.graph.name(id);
            let others: Vec<&str> = flying.iter().map(|&id| name(id)).collect();
            let nodes: Vec<NodeId> =
                flying.iter().chain([&at]).filter_map(|&id| evidence.before(outcome).graph.find(name(id))).collect();
            findings.push(
                evidence
                    .finding("comm/in-flight-limit", outcome, format!("{} is launched while {} are in flight", name(at), flying.len()))
                    .with_nodes(evidence, outcome, &nodes)
                    .but(
                        format!("at most {limit} of kind {} are in flight", kind.name()),
                        format!("{} {} not been waited for", others.join(", "), if others.len() == 1 { "has" } else { "have" }),
                    ),
            );
        }
    }
    Checked::Findings(findings)
}

/// The first launch of a kind that is one too many, and what is in flight then.
fn first_over(collectives: &Collectives, kind: Collective, limit: usize) -> Option<(NodeId, Vec<NodeId>)> {
    let mut flying: Vec<(NodeId, Option<NodeId>)> = Vec::new();
    for (call, waits) in collectives.calls.iter().zip(&collectives.waits) {
        if call.kind != kind {
            continue;
        }
        // Whatever has its first wait behind it has landed.
        flying.retain(|(_, wait)| wait.is_none_or(|wait| wait > call.node));
        if flying.len() >= limit {
            return Some((call.node, flying.iter().map(|f| f.0).collect()));
        }
        flying.push((call.node, waits.iter().copied().find(|&wait| wait > call.node)));
    }
    None
}

/// The step of each node when groups are one step, in an order; and how many there are.
fn steps(evidence: &Evidence, outcome: &Outcome, place: &dyn Fn(NodeId) -> Option<u32>) -> (Vec<Option<usize>>, usize) {
    let graph = evidence.before(outcome).graph;
    let mut cluster_of = vec![None; graph.len()];
    for (i, cluster) in graph.clusters.iter().enumerate() {
        for member in &cluster.members {
            if let Some(of) = cluster_of.get_mut(member.index()) {
                *of = Some(i);
            }
        }
    }
    let is_step = |id: &NodeId| matches!(graph.node(*id).op, Op::Call | Op::GetAttr);
    let mut order: Vec<(u32, NodeId)> = graph.ids().filter(is_step).filter_map(|id| Some((place(id)?, id))).collect();
    order.sort_unstable();
    let mut first = vec![None; graph.clusters.len()];
    let mut step_of = vec![None; graph.len()];
    let mut count = 0;
    for (_, id) in order {
        let step = match cluster_of[id.index()] {
            Some(cluster) => *first[cluster].get_or_insert(count),
            None => count,
        };
        count = count.max(step + 1);
        step_of[id.index()] = Some(step);
    }
    (step_of, count)
}

/// The peak, recomputed.
pub(super) fn peak_within_budget(evidence: &Evidence) -> Checked {
    let Some(budget) = evidence.promises.peak else {
        return Checked::NotChecked("no budget of peak memory was promised".into());
    };
    let mut findings = Vec::new();
    for outcome in &evidence.outcomes {
        let graph = evidence.before(outcome).graph;
        let buffers = evidence.buffers(outcome);
        let (was, n) = steps(evidence, outcome, &|id| Some(id.0));
        let (is, m) = steps(evidence, outcome, &|id| outcome.place[id.index()]);
        let (before, after) = (buffers.peak(&was, n), buffers.peak(&is, m));
        if (after.bytes - before.bytes) as f64 <= before.bytes as f64 * budget {
            continue;
        }
        let at = |step_of: &[Option<usize>], step: usize| graph.ids().find(|id| step_of[id.index()] == Some(step));
        let nodes: Vec<NodeId> = at(&is, after.step).into_iter().chain(at(&was, before.step)).collect();
        let name = |step_of: &[Option<usize>], step| at(step_of, step).map_or("the beginning", |id| graph.name(id));
        findings.push(
            evidence
                .finding("schedule/peak-within-budget", outcome, format!("the peak grows to {} bytes", after.bytes))
                .with_nodes(evidence, outcome, &nodes)
                .with_fact(format!("before, the peak is {} bytes, at {}", before.bytes, name(&was, before.step)))
                .but(
                    format!("at most {:.1} % more are promised", budget * 100.0),
                    format!("after, it is {} bytes, at {}", after.bytes, name(&is, after.step)),
                ),
        );
    }
    Checked::Findings(findings)
}

/// Exposed time.
pub(super) fn exposed_time(evidence: &Evidence) -> Checked {
    let Some(budget) = evidence.promises.exposed else {
        return Checked::NotChecked("no budget of exposed time was promised".into());
    };
    let Some((_, before, after)) = evidence.reports().first() else { return Checked::Findings(Vec::new()) };
    if before.finishes() != Some(true) || after.finishes() != Some(true) {
        return Checked::Undecided("exposed time is known of programs that finish only".into());
    }
    let seconds = |nanoseconds: u64| nanoseconds as f64 * 1e-9;
    let (was, is) = (seconds(before.timeline.exposed()), seconds(after.timeline.exposed()));
    let limit = budget.limit(was);
    // Nanoseconds are rounded one by one.
    if is <= limit + 1e-9 * after.timeline.tracks.first().map_or(0, |t| t.flights.len()) as f64 {
        return Checked::Findings(Vec::new());
    }
    let Some(outcome) = evidence.outcomes.first() else { return Checked::Findings(Vec::new()) };
    let exposed = |flight: &&Flight| flight.exposed;
    let worst = after.timeline.tracks.iter().flat_map(|track| &track.flights).max_by_key(exposed);
    let graph = evidence.before(outcome).graph;
    let node = worst.and_then(|flight| graph.find(&flight.name));
    let nodes: Vec<NodeId> = node.into_iter().collect();
    let mut finding = evidence
        .finding("schedule/exposed-time", outcome, format!("{:.1} us of communication are exposed", is * 1e6))
        .with_nodes(evidence, outcome, &nodes)
        .with_fact(format!("before, {:.1} us were", was * 1e6));
    if let Some(flight) = worst {
        finding = finding.with_fact(format!(
            "most of it is {}: launched at {:.1} us, waited for at {:.1} us, complete at {:.1} us",
            flight.name,
            flight.launched as f64 / 1e3,
            flight.waited.unwrap_or(flight.ended) as f64 / 1e3,
            flight.ended as f64 / 1e3,
        ));
    }
    Checked::Findings(vec![finding.but(format!("at most {:.1} us are promised", limit * 1e6), format!("they are {:.1} us", is * 1e6))])
}

/// The fewest nodes that have to be moved to make one list of the other.
pub(super) fn displacement(evidence: &Evidence) -> Checked {
    let Some(budget) = evidence.promises.displacement else {
        return Checked::NotChecked("no budget of displacement was promised".into());
    };
    let mut findings = Vec::new();
    for outcome in &evidence.outcomes {
        // The longest rising sequence stays; its last elements, the smallest for each length.
        let mut tails: Vec<u32> = Vec::new();
        let places = outcome.place.iter().flatten();
        let n = places.clone().count();
        for &place in places {
            let at = tails.partition_point(|&tail| tail < place);
            match tails.get_mut(at) {
                Some(tail) => *tail = place,
                None => tails.push(place),
            }
        }
        let moved = n - tails.len();
        if moved as f64 <= budget * n as f64 {
            continue;
        }
        let title = format!("{moved} of {n} nodes are taken out of their order");
        findings.push(evidence.finding("schedule/displacement", outcome, title).but(
            format!("at most {:.1} % are promised", budget * 100.0),
            format!("it takes {:.1} %", moved as f64 / n as f64 * 100.0),
        ));
    }
    Checked::Findings(findings)
}

/// Nothing worth moving is left: no wait that stands still could change places with the computation behind it.
pub(super) fn progress(evidence: &Evidence) -> Checked {
    if !evidence.promises.progress {
        return Checked::NotChecked("it was not promised that waits are moved as far as it is worth".into());
    }
    let mut findings = Vec::new();
    for outcome in &evidence.outcomes {
        let after = &outcome.after;
        let graph = after.graph;
        let programs = Programs::spmd(graph, &evidence.promises.estimates);
        let report = simulate(&programs, Options::default());
        let Some(track) = report.timeline.tracks.first().filter(|_| report.finishes() == Some(true)) else {
            return Checked::Undecided("exposed time is known of programs that finish only".into());
        };
        let seconds = evidence.promises.estimates.of(graph, &after.ops, &after.collectives);
        let buffers = evidence.buffers(outcome);
        let (was, n) = steps(evidence, outcome, &|id| Some(id.0));
        let allowed = buffers.peak(&was, n).bytes as f64 * (1.0 + evidence.promises.peak.unwrap_or(0.0));
        for (call, waits) in after.collectives.calls.iter().zip(&after.collectives.waits) {
            let flight = track.flights.iter().find(|flight| flight.name == graph.name(call.node));
            let (Some(flight), &[wait]) = (flight.filter(|flight| flight.exposed > 0), &waits[..]) else { continue };
            let next = NodeId(wait.0 + 1);
            if next.index() >= graph.len() || seconds[next.index()] <= 0.0 {
                continue;
            }
            let is_compute = after.collectives.launch_at(next).is_none()
                && after.ops.call(graph, next).is_some_and(|info| !matches!(info.kind, Kind::Wait | Kind::Unknown));
            if !is_compute || after.dependences().before(next).any(|(before, _)| before == wait) {
                continue;
            }
            // With the two swapped, does memory still fit?
            let (first, second) = (wait.0, next.0);
            let swapped = |id: NodeId| {
                let place = outcome.place[id.index()]?;
                Some(if place == first { second } else if place == second { first } else { place })
            };
            let (step_of, m) = steps(evidence, outcome, &swapped);
            if buffers.peak(&step_of, m).bytes as f64 > allowed {
                continue;
            }
            let nodes: Vec<NodeId> =
                [wait, next].into_iter().filter_map(|id| evidence.before(outcome).graph.find(graph.name(id))).collect();
            let (w, c) = (graph.name(wait), graph.name(next));
            findings.push(
                evidence
                    .finding("schedule/progress", outcome, format!("{w} stands still, and {c} behind it could go first"))
                    .with_nodes(evidence, outcome, &nodes)
                    .with_fact(format!("{w} stands still for {:.1} us", flight.exposed as f64 / 1e3))
                    .but(
                        format!("{c} needs nothing of {w}, takes {:.1} us, and the peak stays within its budget", seconds[next.index()] * 1e6),
                        format!("{w} stands in front of it"),
                    ),
            );
        }
    }
    Checked::Findings(findings)
}

/// The reference's order.
pub(super) fn position_equal_reference(evidence: &Evidence) -> Checked {
    match &evidence.expected_order {
        None => Checked::NotChecked("the exact order was not asked for".into()),
        Some(names) => Checked::Findings(
            super::ranks::differs_from(evidence, names, "schedule/position-equal-reference").into_iter().collect(),
        ),
    }
}
