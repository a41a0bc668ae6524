//! Budgets and limits.

use super::super::{AnalyzedGraph, Checked, Code};
use super::evidence::{Evidence, Explain, Outcome};
use crate::analysis::CollectiveCall;
use crate::graph::{NodeId, Op};
use crate::ops::{Collective, Kind, Move};
use crate::simulate::Flight;

/// How many gathers, and how many scatters, are in flight at once.
pub(super) fn in_flight_limit(evidence: &Evidence) -> Checked {
    let limits = [(evidence.promises.in_flight, false), (evidence.promises.fsdp_in_flight, true)];
    if limits.iter().all(|limit| limit.0.is_none()) {
        return Checked::NotChecked("no limit of collectives in flight was promised".into());
    }
    let mut findings = Vec::new();
    for outcome in &evidence.outcomes {
        let after = &outcome.after;
        for (limit, is_fsdp) in limits {
            let Some(limit) = limit else { continue };
            for kind in [Collective::AllGather, Collective::ReduceScatter] {
                let Some((at, flying)) = first_over(after, kind, limit, is_fsdp) else { continue };
                let name = |id: NodeId| after.graph.name(id);
                let others: Vec<&str> = flying.iter().map(|&id| name(id)).collect();
                let have = if others.len() == 1 { "has" } else { "have" };
                let named = flying.iter().chain([&at]).map(|&id| name(id));
                let nodes: Vec<NodeId> =
                    named.filter_map(|name| evidence.before(outcome).graph.find(name)).collect();
                let title = format!("{} is launched while {} {have} not landed", name(at), others.join(", "));
                findings.push(
                    evidence
                        .finding("comm/in-flight-limit", outcome, title)
                        .with_nodes(evidence, outcome, &nodes)
                        .contrast(
                            format!("at most {limit} of kind {} are in flight", kind.name()),
                            format!("{} {have} not been waited for", others.join(", ")),
                        ),
                );
            }
        }
    }
    Checked::Findings(findings)
}

/// The first launch of a kind that is one too many, and what is in flight then.
fn first_over(
    side: &AnalyzedGraph,
    kind: Collective,
    limit: usize,
    is_fsdp: bool,
) -> Option<(NodeId, Vec<NodeId>)> {
    let mut flying: Vec<(NodeId, NodeId)> = Vec::new();
    for (call, waits) in side.collectives.calls.iter().zip(&side.collectives.waits) {
        if call.kind != kind || (is_fsdp && !is_packed(side, call)) {
            continue;
        }
        // Whatever has its first wait behind it has landed.
        flying.retain(|&(_, wait)| wait > call.node);
        if flying.len() >= limit {
            return Some((call.node, flying.iter().map(|f| f.0).collect()));
        }
        // When one lands that nobody waits for is not known, and no order of the list can make it land earlier.
        if let Some(wait) = waits.iter().copied().find(|&wait| wait > call.node) {
            flying.push((call.node, wait));
        }
    }
    None
}

/// Whether FSDP packed what a collective sends.
fn is_packed(side: &AnalyzedGraph, call: &CollectiveCall) -> bool {
    let packs = |id: NodeId| match side.ops.call(side.graph, id).map(|info| info.kind) {
        Some(Kind::Move(Move::AllGatherCopyIn)) => call.kind == Collective::AllGather,
        Some(Kind::Move(Move::ChunkCat)) => call.kind == Collective::ReduceScatter,
        _ => false,
    };
    let storages = side.storages();
    let mut parts = call.inputs.iter().flat_map(|&input| storages.all_parts(input));
    parts.any(|part| {
        let touches = |node: NodeId| node < call.node && packs(node);
        touches(storages.storage(part.storage).by)
            || storages.writes_of(part.storage, None).any(|access| touches(access.node))
    })
}

/// The step of each node when groups are one step, in an order; and how many there are.
fn steps(
    evidence: &Evidence,
    outcome: &Outcome,
    place: &dyn Fn(NodeId) -> Option<u32>,
) -> (Vec<Option<usize>>, usize) {
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
    let mut order: Vec<(u32, NodeId)> =
        graph.ids().filter(is_step).filter_map(|id| Some((place(id)?, id))).collect();
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
    if evidence.promises.peak.is_none() {
        return Checked::NotChecked("no budget of peak memory was promised".into());
    }
    let (mut findings, mut doubt) = (Vec::new(), None);
    for outcome in &evidence.outcomes {
        let Some(budget) = evidence.peak_of(outcome) else { continue };
        let graph = evidence.before(outcome).graph;
        let buffers = evidence.buffers(outcome);
        let (was, n) = steps(evidence, outcome, &|id| Some(id.0));
        let (is, m) = steps(evidence, outcome, &|id| outcome.place[id.index()]);
        let (before, after) = (buffers.peak(&was, n), buffers.peak(&is, m));
        if (after.bytes - before.bytes) as f64 <= before.bytes as f64 * budget {
            continue;
        }
        if let Some(&node) = buffers.unknown.first() {
            // With it, the peak may have been as high before.
            let name = graph.name(node);
            doubt.get_or_insert_with(|| {
                format!(
                    "the peak grows from {} to {} bytes, and the size of {name} is not known",
                    before.bytes, after.bytes
                )
            });
            continue;
        }
        let at =
            |step_of: &[Option<usize>], step: usize| graph.ids().find(|id| step_of[id.index()] == Some(step));
        let nodes: Vec<NodeId> = at(&is, after.step).into_iter().chain(at(&was, before.step)).collect();
        let name =
            |step_of: &[Option<usize>], step| at(step_of, step).map_or("the beginning", |id| graph.name(id));
        findings.push(
            evidence
                .finding(
                    "schedule/peak-within-budget",
                    outcome,
                    format!("the peak grows to {} bytes", after.bytes),
                )
                .with_nodes(evidence, outcome, &nodes)
                .with_fact(format!(
                    "before, the peak is {} bytes, at {}",
                    before.bytes,
                    name(&was, before.step)
                ))
                .contrast(
                    format!("at most {:.1} % more are promised", budget * 100.0),
                    format!("after, it is {} bytes, at {}", after.bytes, name(&is, after.step)),
                ),
        );
    }
    Checked::found(findings, doubt.map(|doubt| Code::SizeNotKnown.because(doubt)))
}

/// Exposed time.
pub(super) fn exposed_time(evidence: &Evidence) -> Checked {
    let Some(budget) = evidence.promises.exposed else {
        return Checked::NotChecked("no budget of exposed time was promised".into());
    };
    let Some((_, before, after)) = evidence.reports().first() else { return Checked::Findings(Vec::new()) };
    if before.finishes() != Some(true) || after.finishes() != Some(true) {
        return Checked::undecided(Code::DoesNotFinish, "exposed time is known of programs that finish only");
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
    Checked::Findings(vec![finding.contrast(
        format!("at most {:.1} us are promised", limit * 1e6),
        format!("they are {:.1} us", is * 1e6),
    )])
}

/// All-gathers that are exposed, one by one.
pub(super) fn no_exposed_gather(evidence: &Evidence) -> Checked {
    let Some(budget) = evidence.promises.exposed_gather else {
        return Checked::NotChecked("no budget of exposed all-gathers was promised".into());
    };
    let Some((_, _, after)) = evidence.reports().first() else { return Checked::Findings(Vec::new()) };
    if after.finishes() != Some(true) {
        return Checked::undecided(Code::DoesNotFinish, "exposed time is known of programs that finish only");
    }
    let mut findings = Vec::new();
    for outcome in &evidence.outcomes {
        let before = evidence.before(outcome);
        let is_here = |rank: u32| outcome.ranks.is_empty() || outcome.ranks.contains(&rank);
        let Some(track) = after.timeline.tracks.iter().find(|track| is_here(track.rank)) else { continue };
        for flight in track.flights.iter().filter(|flight| flight.exposed as f64 * 1e-9 > budget) {
            let Some(node) = before.graph.find(&flight.name) else { continue };
            let kind = before.collectives.launch_at(node).map(|launch| before.collectives.calls[launch].kind);
            if kind != Some(Collective::AllGather) {
                continue;
            }
            let microseconds = flight.exposed as f64 / 1e3;
            let hidden = flight.hiding().map_or(0, |hiding| hiding.end - hiding.start) as f64 / 1e3;
            let title = format!("{} is exposed for {microseconds:.1} us", flight.name);
            findings.push(
                evidence.finding("comm/no-exposed-gather", outcome, title).with_nodes(evidence, outcome, &[node]).contrast(
                    format!("at most {:.1} us are promised", budget * 1e6),
                    format!("from its launch to its wait the rank has {hidden:.1} us of other work to hide it behind"),
                ),
            );
        }
    }
    Checked::Findings(findings)
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
        findings.push(evidence.finding("schedule/displacement", outcome, title).contrast(
            format!("at most {:.1} % are promised", budget * 100.0),
            format!("it takes {:.1} %", moved as f64 / n as f64 * 100.0),
        ));
    }
    Checked::Findings(findings)
}

/// The last wait is not where it was of no use. Whoever moves waits one by one from the end finds the last one as it
/// stood before, so what was worth a move then has been moved; of the others this cannot be said.
pub(super) fn progress(evidence: &Evidence) -> Checked {
    if !evidence.promises.progress {
        return Checked::NotChecked("that waits are moved where it is worth it is promised by sink_waits_iterative in runtime mode, and by promises=[progress]".into());
    }
    let mut findings = Vec::new();
    for outcome in &evidence.outcomes {
        let before = evidence.before(outcome);
        let graph = before.graph;
        let seconds = evidence.promises.estimates.of(graph, &before.ops, &before.collectives);
        let last = before
            .collectives
            .waits
            .iter()
            .enumerate()
            .flat_map(|(launch, waits)| waits.iter().map(move |&wait| (wait, launch)));
        let Some((wait, launch)) = last.max() else { continue };
        let (start, next) = (before.collectives.calls[launch].node, NodeId(wait.0 + 1));
        let is_compute = |id: NodeId| {
            let info = before.ops.call(graph, id);
            before.collectives.launch_at(id).is_none()
                && info.is_some_and(|info| !matches!(info.kind, Kind::Wait | Kind::Unknown))
        };
        // What computes between launch and wait, in an order.
        let hidden = |place: &dyn Fn(NodeId) -> Option<u32>| -> f64 {
            let (from, to) = (place(start), place(wait));
            let communicates = |id: NodeId| before.collectives.launch_at(id).is_some();
            let is_between = |id: &NodeId| place(*id) > from && place(*id) < to && !communicates(*id);
            graph.ids().filter(is_between).map(|id| seconds[id.index()]).sum()
        };
        let was = seconds[start.index()] - hidden(&|id| Some(id.0));
        let is_free = next.index() < graph.len()
            && before.edges.inputs(wait) == [start]
            && is_compute(next)
            && seconds[next.index()] > 0.0
            && !before.dependences().before(next).any(|(before, _)| before == wait);
        if !is_free || was <= 0.0 || !graph.clusters.is_empty() {
            continue;
        }
        let buffers = evidence.buffers(outcome);
        let (step_of, n) = steps(evidence, outcome, &|id| Some(id.0));
        let peak = buffers.peak(&step_of, n).bytes;
        let allowed = peak as f64 * evidence.promises.peak.unwrap_or(0.0);
        let swapped = |id: NodeId| match id {
            id if id == wait => Some(next.0),
            id if id == next => Some(wait.0),
            id => Some(id.0),
        };
        let (step_of, n) = steps(evidence, outcome, &swapped);
        let is = seconds[start.index()] - hidden(&|id| outcome.place[id.index()]);
        let grown = buffers.peak(&step_of, n).bytes - peak;
        if grown as f64 > allowed || is <= 0.0 || outcome.is_reversed(wait, next) {
            continue;
        }
        let (w, c) = (graph.name(wait), graph.name(next));
        findings.push(
            evidence
                .finding(
                    "schedule/progress",
                    outcome,
                    format!("{w} stands still, and {c} behind it could go first"),
                )
                .with_nodes(evidence, outcome, &[wait, next])
                .with_fact(format!("{:.1} us of {} are not hidden", is * 1e6, graph.name(start)))
                .contrast(
                    format!(
                        "{c} needs nothing of {w} and takes {:.1} us, and the peak stays within its budget",
                        seconds[next.index()] * 1e6
                    ),
                    format!("{w} still stands in front of it"),
                ),
        );
    }
    Checked::Findings(findings)
}

/// The reference's order, on every rank.
pub(super) fn position_equal_reference(evidence: &Evidence) -> Checked {
    if evidence.expected_orders.is_empty() {
        return match evidence.promises.exact {
            true => Checked::undecided(
                Code::ReferenceRefuses,
                "the reference's order is promised, and the reference refuses",
            ),
            false => Checked::NotChecked("the exact order was not asked for".into()),
        };
    }
    let differs = |outcome: &Outcome| {
        let expected = evidence.expected_orders.get(outcome.before)?;
        super::ranks::differs_from(evidence, outcome, expected, "schedule/position-equal-reference")
    };
    Checked::Findings(evidence.outcomes.iter().filter_map(differs).collect())
}
