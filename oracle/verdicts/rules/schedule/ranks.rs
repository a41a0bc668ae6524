//! What ranks do to each other, and what they must decide alike.

use super::super::{Checked, Code, Finding, messages};
use super::evidence::{Evidence, Explain, Outcome};
use crate::analysis::GroupName;
use crate::graph::{Graph, NodeId};
use crate::simulate::{Mismatch, Options, Report, Streams};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// The launches of each group, in the order of the list after: nodes of the graph before.
fn launches(evidence: &Evidence, outcome: &Outcome, is_after: bool) -> Vec<(String, Vec<NodeId>)> {
    let before = evidence.before(outcome);
    let mut calls: Vec<(u32, NodeId, &str)> = Vec::new();
    for call in &before.collectives.calls {
        let GroupName::Text(group) = call.group else { continue };
        let place = if is_after { outcome.place[call.node.index()].unwrap_or(u32::MAX) } else { call.node.0 };
        calls.push((place, call.node, group));
    }
    calls.sort_unstable();
    let mut groups: BTreeMap<&str, Vec<NodeId>> = BTreeMap::new();
    for (_, node, group) in calls {
        groups.entry(group).or_default().push(node);
    }
    groups.into_iter().map(|(group, nodes)| (group.to_string(), nodes)).collect()
}

/// One order on each group.
pub(super) fn collective_order_aligned(evidence: &Evidence) -> Checked {
    let (mut findings, mut doubts): (Vec<Finding>, Vec<String>) = (Vec::new(), Vec::new());
    if let Some((_, before, after)) = evidence.reports().first() {
        // Launches that trade places in one graph are told below, by its nodes.
        let graph_of = |rank: u32| of_rank(evidence, rank).map(|outcome| outcome.before);
        let of_one_graph = |m: &Mismatch| m.elsewhere.is_some() && graph_of(m.ranks.0) == graph_of(m.ranks.1);
        for mismatch in after.mismatches.iter().filter(|m| !before.mismatches.contains(m) && !of_one_graph(m))
        {
            findings.push(mismatch_finding(evidence, mismatch));
        }
    }
    let mut first: Vec<Option<(&Outcome, Vec<(String, Vec<NodeId>)>)>> =
        evidence.before.iter().map(|_| None).collect();
    let meets = findings.is_empty();
    for outcome in evidence.outcomes.iter().filter(|_| meets) {
        let graph = evidence.before(outcome).graph;
        let found = launches(evidence, outcome, true);
        let Some((other, expected)) = &first[outcome.before] else {
            // With one order on all ranks that run this graph, only a change could have been decided by the rank alone.
            let was = launches(evidence, outcome, false);
            let is_alone = evidence.outcomes.iter().filter(|o| o.before == outcome.before).count() == 1;
            let seen_on_all = outcome.ranks.len() > 1 || !evidence.noisy.is_empty();
            if is_alone
                && !seen_on_all
                && let Some((group, at)) = changed(&was, &found)
            {
                let (a, b) = (graph.name(was[group].1[at]), graph.name(found[group].1[at]));
                doubts.push(format!(
                    "launch {at} on {} was {a} and is {b}; from one rank it cannot be seen whether all ranks decide so",
                    was[group].0
                ));
            }
            let before = evidence.before(outcome);
            let origins = |launch: usize| {
                let node = outcome.after.collectives.calls[launch].node;
                let twin = before.graph.find(outcome.after.graph.name(node));
                twin.and_then(|twin| before.collectives.launch_at(twin)).map(|launch| vec![launch])
            };
            if evidence.outcomes.len() == 1
                && let Some(why) = messages::holds_more([before, &outcome.after], &origins, &|_, _| false)
            {
                doubts.push(why.message);
            }
            first[outcome.before] = Some((outcome, found));
            continue;
        };
        let Some((group, at)) = changed(expected, &found) else { continue };
        let (a, b) = (expected[group].1[at], found[group].1[at]);
        let rank = |outcome: &Outcome| outcome.ranks.first().copied().unwrap_or(0);
        let (name, p, q) = (&expected[group].0, rank(other), rank(outcome));
        findings.push(
            evidence
                .finding(
                    "comm/collective-order-aligned",
                    outcome,
                    format!("ranks {p} and {q} disagree on group {name}"),
                )
                .with_nodes(evidence, outcome, &[a, b])
                .with_fact(format!("launch {at} on process group {name} (the first is 0)"))
                .contrast(
                    format!("rank {p} launches {}", graph.name(a)),
                    format!("rank {q} launches {}: the two are taken for one collective", graph.name(b)),
                ),
        );
    }
    Checked::found(findings, doubts.first().map(|doubt| Code::OneRankSeen.because(doubt)))
}

/// The first group and launch at which two orders part.
fn changed(a: &[(String, Vec<NodeId>)], b: &[(String, Vec<NodeId>)]) -> Option<(usize, usize)> {
    let of_group = |(x, y): (&(String, Vec<NodeId>), &(String, Vec<NodeId>))| {
        x.1.iter().zip(&y.1).position(|(p, q)| p != q)
    };
    a.iter().zip(b).enumerate().find_map(|(group, pair)| Some((group, of_group(pair)?)))
}

/// The outcome of a rank.
fn of_rank<'e, 'a>(evidence: &'e Evidence<'a>, rank: u32) -> Option<&'e Outcome<'a>> {
    let owns = |outcome: &&Outcome| outcome.ranks.contains(&rank);
    evidence.outcomes.iter().find(owns).or(evidence.outcomes.first())
}

fn mismatch_finding(evidence: &Evidence, mismatch: &Mismatch) -> Finding {
    let told = mismatch.to_string();
    let (expected, observed) = told.split_once(", however ").unwrap_or((&told, "they do not meet"));
    let (a, b) = mismatch.ranks;
    let title = format!("ranks {a} and {b} disagree on group {}", mismatch.group);
    let Some(outcome) = of_rank(evidence, a) else {
        return blank("comm/collective-order-aligned", title);
    };
    let operations = mismatch.first.iter().chain(&mismatch.second);
    let graph = evidence.before(outcome).graph;
    let nodes: Vec<NodeId> = operations.filter_map(|operation| graph.find(&operation.name)).collect();
    evidence
        .finding("comm/collective-order-aligned", outcome, title)
        .with_nodes(evidence, outcome, &nodes)
        .contrast(expected, observed)
}

fn blank(rule: &'static str, title: String) -> Finding {
    let severity = super::severity_in(super::CATALOGUE, rule);
    Finding::new(rule, severity, super::super::Stage::After, title)
}

/// Nobody waits for ever.
pub(super) fn all_ranks_finish(evidence: &Evidence) -> Checked {
    finish(evidence, "comm/all-ranks-finish", &|options| options.streams == Streams::PerGroup)
}

/// Nobody waits for ever on one stream.
pub(super) fn overlapping_groups_ordered(evidence: &Evidence) -> Checked {
    finish(evidence, "comm/overlapping-groups-ordered", &|options| options.streams == Streams::One)
}

fn finish(evidence: &Evidence, rule: &'static str, wanted: &dyn Fn(&Options) -> bool) -> Checked {
    let mut findings: Vec<Finding> = Vec::new();
    let mut skipped = None;
    let mut undecided = None;
    for (options, before, after) in evidence.reports().iter().filter(|report| wanted(&report.0)) {
        if before.finishes() == Some(false) {
            let told = before.to_string();
            let first = told.lines().next().unwrap_or("they stand still").to_string();
            skipped.get_or_insert(format!("the programs before do not finish ({first})"));
            continue;
        }
        if !after.unmodelled.is_empty() {
            undecided.get_or_insert(after.unmodelled[0].clone());
        }
        // The same need not be told for every kind of message.
        if !findings.is_empty() {
            continue;
        }
        if let Some(deadlock) = &after.deadlock {
            findings.push(deadlock_finding(evidence, rule, options, after, deadlock));
        } else if options.streams == Streams::PerGroup
            && let (Some(hang), Some(outcome)) = (after.hangs.first(), evidence.outcomes.first())
        {
            let finding = evidence.finding(rule, outcome, hang.clone());
            findings.push(finding.contrast("all ranks finish, as before", "they may wait for ever"));
        }
    }
    match (findings.is_empty(), undecided, skipped) {
        (false, _, _) => Checked::Findings(findings),
        (true, Some(why), _) => Checked::undecided(Code::NotModelled, why),
        (true, None, Some(why)) => Checked::NotChecked(why),
        (true, None, None) => Checked::Findings(findings),
    }
}

fn deadlock_finding(
    evidence: &Evidence,
    rule: &'static str,
    options: &Options,
    report: &Report,
    deadlock: &crate::simulate::Deadlock,
) -> Finding {
    let ranks: Vec<String> = deadlock.chain.iter().map(|link| format!("rank {}", link.rank)).collect();
    let title = match deadlock.is_circle {
        true => format!("{} wait for each other", ranks.join(", ")),
        false => format!("{} waits for ever", ranks.join(", ")),
    };
    let first = deadlock.chain.first().and_then(|link| of_rank(evidence, link.rank));
    let mut finding = match first {
        Some(outcome) => evidence.finding(rule, outcome, title),
        None => blank(rule, title),
    };
    finding.facts = deadlock.chain.iter().map(ToString::to_string).collect();
    if options.streams == Streams::One {
        finding.facts.push("a device runs one communication kernel at a time, in launch order".into());
    }
    if report.timeline.tracks.len() > deadlock.stuck {
        finding.facts.push(format!(
            "{} of {} ranks stand still",
            deadlock.stuck,
            report.timeline.tracks.len()
        ));
    }
    for link in &deadlock.chain {
        let Some(outcome) = of_rank(evidence, link.rank) else { continue };
        let graph = evidence.before(outcome).graph;
        for name in link.at.iter().chain([&link.needs]) {
            if let Some(node) = graph.find(name) {
                let mention = evidence.mention(outcome, node);
                if !finding.nodes.contains(&mention) {
                    finding.nodes.push(mention);
                }
            }
        }
    }
    let observed = if deadlock.chain.len() == 2 { "neither can go on" } else { "none can go on" };
    finding.contrast("each goes on when the next one does", observed)
}

/// Again and under other names the same.
pub(super) fn deterministic(evidence: &Evidence) -> Checked {
    let Some(outcome) = evidence.outcomes.first() else { return Checked::Findings(Vec::new()) };
    if evidence.again.is_empty() {
        return Checked::NotChecked("the candidate was run once only".into());
    }
    let graph = outcome.after.graph;
    let findings = evidence.again.iter().filter_map(|(how, names)| {
        let at = first_difference(graph, names)?;
        let title = format!("{how}, the order is another");
        Some(order_finding(
            evidence,
            outcome,
            "schedule/deterministic",
            title,
            graph,
            names,
            at,
            "the first time",
        ))
    });
    Checked::Findings(findings.collect())
}

/// Every rank launches the same, whatever it measures.
pub(super) fn rank_noise(evidence: &Evidence) -> Checked {
    let Some(outcome) = evidence.outcomes.first() else { return Checked::Findings(Vec::new()) };
    if evidence.noisy.is_empty() || evidence.promises.of_given {
        return Checked::NotChecked(NOT_RUN_AS_SEVERAL.into());
    }
    let findings = evidence.noisy.iter().filter_map(|(rank, names)| {
        let (at, expected, found) = other_launch(evidence, outcome, names)?;
        let name = |name: Option<&str>| name.unwrap_or("nothing more").to_string();
        let before = evidence.before(outcome).graph;
        let nodes: Vec<NodeId> =
            [expected, found].into_iter().filter_map(|name| before.find(name?)).collect();
        let title = format!("rank {rank}, which estimates otherwise, launches in another order");
        Some(
            evidence
                .finding("schedule/rank-noise", outcome, title)
                .with_nodes(evidence, outcome, &nodes)
                .with_fact(format!("launch {at} over all process groups (the first is 0)"))
                .contrast(
                    format!("the first rank launches {}", name(expected)),
                    format!("rank {rank} launches {}", name(found)),
                ),
        )
    });
    Checked::Findings(findings.take(1).collect())
}

const NOT_RUN_AS_SEVERAL: &str = "the candidate was not run as several ranks with estimates of their own";

/// The first launch at which the order of another rank parts from the first rank's: its number and both nodes.
fn other_launch<'n>(
    evidence: &'n Evidence,
    outcome: &'n Outcome,
    names: &'n [String],
) -> Option<(usize, Option<&'n str>, Option<&'n str>)> {
    let before = evidence.before(outcome);
    let launches: FxHashSet<&str> =
        before.collectives.calls.iter().map(|call| before.graph.name(call.node)).collect();
    let graph = outcome.after.graph;
    let mut first = graph.ids().map(|id| graph.name(id)).filter(|name| launches.contains(name));
    let mut other = names.iter().map(String::as_str).filter(|name| launches.contains(name));
    for at in 0.. {
        match (first.next(), other.next()) {
            (None, None) => break,
            (a, b) if a != b => return Some((at, a, b)),
            _ => {}
        }
    }
    None
}

/// Every rank the same order of all nodes, where that is promised.
pub(super) fn rank_order(evidence: &Evidence) -> Checked {
    if !evidence.promises.one_order {
        return Checked::NotChecked("one order of all nodes on all ranks is not promised".into());
    }
    let Some(outcome) = evidence.outcomes.first() else { return Checked::Findings(Vec::new()) };
    if evidence.noisy.is_empty() {
        let given = outcome.ranks.len();
        return match evidence.promises.of_given {
            true if given == evidence.world_ranks() as usize => Checked::Findings(Vec::new()),
            true => Checked::undecided(
                Code::RanksNotGiven,
                format!(
                    "one order of all nodes on all {} ranks is promised, and the outcomes of {given} were given",
                    evidence.world_ranks()
                ),
            ),
            false => Checked::NotChecked(NOT_RUN_AS_SEVERAL.into()),
        };
    }
    let graph = outcome.after.graph;
    // Launches in another order are told as such.
    let alike = evidence.noisy.iter().filter(|(_, names)| other_launch(evidence, outcome, names).is_none());
    let findings = alike.filter_map(|(rank, names)| {
        let at = first_difference(graph, names)?;
        let whose = if evidence.promises.of_given { "" } else { ", which estimates otherwise," };
        let title = format!("rank {rank}{whose} decides on another order");
        Some(order_finding(
            evidence,
            outcome,
            "schedule/rank-order",
            title,
            graph,
            names,
            at,
            "on the first rank",
        ))
    });
    Checked::Findings(findings.take(1).collect())
}

fn first_difference(graph: &Graph, names: &[String]) -> Option<usize> {
    let n = graph.len().max(names.len());
    (0..n).find(|&i| {
        let name = (i < graph.len()).then(|| graph.name(NodeId(i as u32)));
        name != names.get(i).map(String::as_str)
    })
}

fn order_finding(
    evidence: &Evidence,
    outcome: &Outcome,
    rule: &'static str,
    title: String,
    graph: &Graph,
    names: &[String],
    at: usize,
    whose: &str,
) -> Finding {
    let name = |name: Option<&str>| name.unwrap_or("the end").to_string();
    let expected = name((at < graph.len()).then(|| graph.name(NodeId(at as u32))));
    let found = name(names.get(at).map(String::as_str));
    let before = evidence.before(outcome).graph;
    let nodes: Vec<NodeId> = [&expected, &found].into_iter().filter_map(|name| before.find(name)).collect();
    evidence
        .finding(rule, outcome, title)
        .with_nodes(evidence, outcome, &nodes)
        .with_fact(format!("position {at} of the list"))
        .contrast(format!("{whose} {expected} stands there"), format!("here it is {found}"))
}

/// The reference's order, where it is asked for.
pub(super) fn differs_from(
    evidence: &Evidence,
    outcome: &Outcome,
    names: &[String],
    rule: &'static str,
) -> Option<Finding> {
    let graph = outcome.after.graph;
    let at = first_difference(graph, names)?;
    let found = if at < graph.len() { graph.name(NodeId(at as u32)) } else { "the end" };
    let expected = names.get(at).map_or("the end", String::as_str);
    let before = evidence.before(outcome).graph;
    let nodes: Vec<NodeId> = [expected, found].into_iter().filter_map(|name| before.find(name)).collect();
    Some(
        evidence
            .finding(rule, outcome, format!("{found} stands where {expected} belongs"))
            .with_nodes(evidence, outcome, &nodes)
            .with_fact(format!("position {at} of the list"))
            .contrast(format!("the reference puts {expected} there"), format!("the list has {found}")),
    )
}
