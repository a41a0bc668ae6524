//! `comm/*`: every collective is sent once, waited for once, and in the same order by all ranks.

use super::overlap;
use super::proved::{self, Extra, Packing, extra_of};
use super::values::ValueResult;
use super::{
    AnalyzedGraph, Checked, Code, Correspondence, Evidence, Finding, Merge, RankOutcome, Reason, Stage,
    messages,
};
use crate::analysis::bytes::Overlap;
use crate::analysis::storages::Touch;
use crate::analysis::streams::at_once;
use crate::analysis::{Access, CollectiveCall};
use crate::graph::{Dtype, Graph, NodeId, World};
use crate::ops::Kind;
use crate::semantics::symbolic::Member;
use crate::simulate::{Estimates, Options, Program, Programs, Report, Streams, simulate};
use crate::threads;
use crate::words;
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Every launch before survives or is carried by exactly one new launch, which carries nothing else.
pub(super) fn moved_exactly_once(evidence: &Evidence) -> Checked {
    let (before, after, c) = (&evidence.before, &evidence.after, &evidence.correspondence);
    let mut findings = Vec::new();
    for (launch, merges) in &c.carried_by {
        let call = &before.collectives.calls[*launch];
        let name = before.graph.name(call.node);
        match merges.as_slice() {
            [_] => {}
            [] => {
                findings.push(
                    evidence
                        .finding("comm/moved-exactly-once", Stage::After, format!("collective {name} is lost"))
                        .before_nodes(evidence, [call.node])
                        .fact(format!("before, {name} is {}", describe(before.graph, call)))
                        .expected("after, it must be itself or a member of one bucket")
                        .observed("no node after has its name, and no new collective packs its input or delivers its value"),
                );
            }
            several => {
                let into: Vec<NodeId> =
                    several.iter().map(|&m| after.collectives.calls[c.merges[m].launch].node).collect();
                let names: Vec<&str> = into.iter().map(|&n| after.graph.name(n)).collect();
                findings.push(
                    evidence
                        .finding(
                            "comm/moved-exactly-once",
                            Stage::After,
                            format!("collective {name} is carried {} times", several.len()),
                        )
                        .before_nodes(evidence, [call.node])
                        .after_nodes(evidence, into.iter().copied())
                        .fact(format!("before, {name} is {}", describe(before.graph, call)))
                        .expected("one collective after carries it")
                        .observed(format!("its users read from {}", names.join(" and from "))),
                );
            }
        }
    }
    let mut doubt = None;
    for merge in &c.merges {
        match payload_adds_up(evidence, merge) {
            Payload::AddsUp => {}
            Payload::Wrong(finding) => findings.push(*finding),
            Payload::MayBePadded(why) => {
                doubt.get_or_insert(Code::PayloadNotKnown.because(why));
            }
        }
    }
    for (id, twin) in c.survivors() {
        let (Some(old), Some(new)) = (before.collectives.launch_at(id), after.collectives.launch_at(twin))
        else {
            continue;
        };
        let (old, new) = (&before.collectives.calls[old], &after.collectives.calls[new]);
        if payload(before.graph, old).ne(payload(after.graph, new)) || !same_terms(old, new) {
            let (p, q) = (describe(before.graph, old), describe(after.graph, new));
            if p == q {
                continue;
            }
            if same_terms(old, new) && may_be_equal(payload(before.graph, old), payload(after.graph, new)) {
                let name = after.graph.name(twin);
                let why = format!("nothing is recorded of what {name} sends, and no rule gives its size");
                doubt.get_or_insert(Code::PayloadNotKnown.because(why));
                continue;
            }
            findings.push(
                evidence
                    .finding(
                        "comm/moved-exactly-once",
                        Stage::After,
                        format!("collective {} was changed", before.graph.name(id)),
                    )
                    .before_nodes(evidence, [id])
                    .expected(format!("before, it is {p}"))
                    .observed(format!("after, it is {q}")),
            );
        }
    }
    Checked::found(findings, doubt)
}

/// Whether a new launch takes in what its members send.
enum Payload {
    AddsUp,
    Wrong(Box<Finding>),
    /// It takes in more, and it is not known what: why.
    MayBePadded(String),
}

/// The bytes that a new launch takes in are those of its members, and maybe padding: where both graphs are proved to
/// compute the same, the proof says what else it takes in.
fn payload_adds_up(evidence: &Evidence, merge: &Merge) -> Payload {
    let (before, after) = (&evidence.before, &evidence.after);
    let call = &after.collectives.calls[merge.launch];
    let name = after.graph.name(call.node);
    if merge.members.is_empty() {
        let finding = evidence
            .finding("comm/moved-exactly-once", Stage::After, format!("collective {name} came from nowhere"))
            .after_nodes(evidence, [call.node])
            .fact(format!("after, {name} is {}", describe(after.graph, call)))
            .expected("every new collective stands for collectives of the graph before")
            .observed("no erased collective has its input packed by it or its value delivered by it");
        return Payload::Wrong(Box::new(finding));
    }
    // A cast may be folded, so members count with the dtype that they send: that of their result.
    let sent = |graph: &Graph, call: &CollectiveCall| -> Option<i64> {
        call.inputs.iter().try_fold(0i64, |sum, &input| {
            let tensor = graph.tensor_of(input)?;
            let result =
                graph.tensor_of(call.node).or_else(|| graph.tensor_at(call.node, 0)).unwrap_or(tensor);
            let bytes = graph.numel(tensor)?.checked_mul(i64::from(result.dtype.itemsize()))?;
            sum.checked_add(bytes)
        })
    };
    let members = merge
        .members
        .iter()
        .try_fold(0i64, |sum, &m| sum.checked_add(sent(before.graph, &before.collectives.calls[m])?));
    let (Some(carried), Some(members)) = (sent(after.graph, call), members) else { return Payload::AddsUp };
    if carried == members {
        return Payload::AddsUp;
    }
    if carried > members {
        match evidence.values.proof() {
            Some(ValueResult::Equal(_)) => match extra_of(evidence, merge) {
                Extra::Padding => return Payload::AddsUp,
                Extra::SentAgain(member) => {
                    let sent = before.graph.name(member);
                    let title = format!("what {sent} sends is sent twice");
                    let finding = evidence.finding("comm/moved-exactly-once", Stage::After, title);
                    return Payload::Wrong(Box::new(
                        finding
                            .before_nodes(evidence, [member])
                            .after_nodes(evidence, [call.node])
                            .expected("one collective after carries it")
                            .observed(format!("{name} carries it, and so does another collective")),
                    ));
                }
                Extra::Unknown => {}
            },
            _ if evidence.values.witness == Some(true) => {}
            _ => {
                return Payload::MayBePadded(format!(
                    "{name} sends {carried} bytes per rank and its members {members}; whether the rest is padding \
                     is not known"
                ));
            }
        }
    }
    let names: Vec<&str> =
        merge.members.iter().map(|&m| before.graph.name(before.collectives.calls[m].node)).collect();
    let finding = evidence
        .finding(
            "comm/moved-exactly-once",
            Stage::After,
            format!("collective {name} does not carry its members' data"),
        )
        .after_nodes(evidence, [call.node])
        .before_nodes(evidence, merge.members.iter().map(|&m| before.collectives.calls[m].node))
        .fact(format!("{name} stands for {}", names.join(", ")))
        .expected(format!("together they send {members} bytes per rank"))
        .observed(format!("{name} sends {carried}"));
    Payload::Wrong(Box::new(finding))
}

/// The choice of buckets is the same on every rank.
pub(super) fn rank_invariant_choice(evidence: &Evidence) -> Checked {
    if evidence.ranks.len() < 2 {
        return Checked::NotChecked("the outcome of one rank only was given".into());
    }
    let plan = |c: &super::Correspondence| -> Vec<Vec<String>> {
        let mut plan: Vec<Vec<String>> = c
            .merges
            .iter()
            .map(|merge| {
                let names = merge.members.iter();
                let node = |&m: &usize| evidence.before.collectives.calls[m].node;
                names.map(|m| evidence.before.graph.name(node(m)).to_string()).collect()
            })
            .collect();
        plan.sort();
        plan
    };
    let first = &evidence.ranks[0];
    let expected = plan(&first.correspondence);
    let mut findings = Vec::new();
    for other in &evidence.ranks[1..] {
        let found = plan(&other.correspondence);
        if found == expected {
            continue;
        }
        let only = |a: &[Vec<String>], b: &[Vec<String>]| {
            let missing = a.iter().find(|bucket| !b.contains(bucket));
            missing.map_or("no bucket that the other lacks".to_string(), |b| {
                format!("bucket {{{}}}", b.join(", "))
            })
        };
        let (mine, theirs) = (only(&expected, &found), only(&found, &expected));
        let nodes: Vec<NodeId> = expected
            .iter()
            .chain(&found)
            .find(|bucket| !(expected.contains(bucket) && found.contains(bucket)))
            .map(|bucket| bucket.iter().filter_map(|name| evidence.before.graph.find(name)).collect())
            .unwrap_or_default();
        findings.push(
            evidence
                .finding(
                    "comm/rank-invariant-choice",
                    Stage::After,
                    format!("ranks {} and {} chose different buckets", first.rank, other.rank),
                )
                .across_ranks()
                .before_nodes(evidence, nodes)
                .expected(format!("rank {} has {mine}", first.rank))
                .observed(format!("rank {} has {theirs}", other.rank)),
        );
    }
    match findings.is_empty() {
        true => same_packing(evidence, "comm/rank-invariant-choice"),
        false => Checked::Findings(findings),
    }
}

/// What meets in a collective is what met there before, on all ranks in one order, where the ranks have graphs of their
/// own. A proof follows one program for all of them.
pub(super) fn same_payloads(evidence: &Evidence) -> Checked {
    if evidence.ranks.len() < 2 {
        return Checked::NotChecked("the outcome of one rank only was given".into());
    }
    match evidence.values.of_execution().any(|(_, result)| matches!(result, ValueResult::Equal(_))) {
        true => Checked::Findings(Vec::new()),
        false => same_packing(evidence, "rewrite/payloads"),
    }
}

/// What meets in a collective is laid out alike on all ranks: a rank that packs its members in another order gets other
/// ranks' pieces in the wrong places, though its graph would be right if all ranks ran it.
fn same_packing(evidence: &Evidence, rule: &'static str) -> Checked {
    let mut distinct: Vec<(u32, &Arc<AnalyzedGraph>)> = Vec::new();
    for outcome in &evidence.ranks {
        if !distinct.iter().any(|(_, side)| Arc::ptr_eq(side, &outcome.side)) {
            distinct.push((outcome.rank, &outcome.side));
        }
    }
    if distinct.len() < 2 {
        return Checked::Findings(Vec::new());
    }
    if evidence.ranks.iter().any(|outcome| !Arc::ptr_eq(&outcome.before, &evidence.before)) {
        let why = "the ranks ran graphs of their own before the pass, which are compared by execution only";
        return Checked::undecided(Code::PayloadNotKnown, why);
    }
    let packed: Vec<Packing> =
        threads::map(distinct.iter().collect(), |(_, side)| proved::packing(&evidence.before, side));
    let (first, rest) = match packed.split_first() {
        Some((first, rest)) => (first, rest),
        None => return Checked::Findings(Vec::new()),
    };
    let mut unknown = None;
    let mut findings = Vec::new();
    for ((rank, side), other) in distinct[1..].iter().zip(rest) {
        // Launches meet on their group. Another number of them is found by their order.
        let own = on_groups(distinct[0].1, first);
        let met = on_groups(side, other);
        let pairs = own.iter().filter_map(|(group, launches)| Some((launches, met.get(group)?)));
        let pairs = pairs.filter(|(a, b)| a.len() == b.len()).flat_map(|(a, b)| a.iter().zip(b));
        // Which of a rank's launches it is says nothing: those on other groups may stand elsewhere.
        let packed = |members: &[Member]| -> Vec<_> {
            members.iter().map(|m| (m.before, m.after.payload, m.elements.clone())).collect()
        };
        let differs = |&(&a, &b): &(&usize, &usize)| packed(&first.members[a]) != packed(&other.members[b]);
        let Some((&launch, &met)) = pairs.into_iter().find(differs) else { continue };
        let (own, theirs) =
            (distinct[0].1.graph.name(first.nodes[launch]), side.graph.name(other.nodes[met]));
        if !first.is_known[launch] || !other.is_known[met] {
            let why = format!("what {theirs} of rank {rank} packs is not known");
            unknown.get_or_insert(Code::PayloadNotKnown.because(why));
            continue;
        }
        let calls = &evidence.before.collectives.calls;
        let order = |members: &[Member]| {
            let name = |member: &Member| {
                calls.get(member.before.launch).map(|call| evidence.before.graph.name(call.node))
            };
            let names: Vec<&str> = members.iter().filter_map(name).collect();
            names.join(", ")
        };
        findings.push(
            evidence
                .finding(
                    rule,
                    Stage::After,
                    format!("ranks {} and {rank} pack one bucket in different ways", distinct[0].0),
                )
                .across_ranks()
                .expected(format!(
                    "rank {} packs {own} with {}",
                    distinct[0].0,
                    order(&first.members[launch])
                ))
                .observed(format!("rank {rank} packs {theirs} with {}", order(&other.members[met]))),
        );
    }
    Checked::found(findings, unknown)
}

/// The launches on each group, in list order, by their places among those of `packing`.
fn on_groups(side: &AnalyzedGraph, packing: &Packing) -> BTreeMap<String, Vec<usize>> {
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, &node) in packing.nodes.iter().enumerate() {
        let call = side.collectives.launch_at(node).map(|launch| &side.collectives.calls[launch]);
        groups.entry(call.map_or(String::new(), |call| call.group.to_string())).or_default().push(index);
    }
    groups
}

/// On each group all ranks launch the same sequence, messages meet, and no ranks wait for each other in a circle.
pub(super) fn same_order_across_ranks(evidence: &Evidence) -> Checked {
    let mut findings = spinning(evidence);
    if evidence.ranks.len() < 2 {
        if evidence.is_one_of_several {
            return match findings.is_empty() {
                true => Checked::NotChecked("it is looked at with the first graph".into()),
                false => Checked::Findings(findings),
            };
        }
        let (before, after) = (&evidence.before, &evidence.after);
        let origins = |launch: usize| origins(&evidence.correspondence, [before, after], launch);
        let (more, unknown) = messages::kept(evidence, [before, after], &origins, &|_, _| false);
        findings.extend(more);
        return Checked::found(findings, unknown);
    }
    let Some(world) = evidence.before.graph.world.assume_mesh() else {
        return Checked::undecided(Code::TooManyRanks, "the world has too many ranks");
    };
    let given: BTreeSet<u32> = evidence.ranks.iter().map(|outcome| outcome.rank).collect();
    let mut unknown = None;
    // Where all ranks are given, each message is simulated with its partner, and none is compared with the graph before.
    let is_whole = world.ranks.is_some_and(|ranks| (0..ranks).all(|rank| given.contains(&rank)));
    let lacks_partners = if is_whole { &[][..] } else { &evidence.ranks[..] };
    for outcome in lacks_partners {
        let is_given = |group: &str, peer: i64| {
            let place = world.group(group).and_then(|group| Some((group, group.instance_of(outcome.rank)?)));
            let Some((group, (instance, own))) = place else { return false };
            let peer = usize::try_from(peer).ok().filter(|&peer| peer != own);
            let peer = peer.and_then(|peer| group.instances[instance].get(peer));
            peer.is_some_and(|peer| given.contains(peer))
        };
        let sides: [&AnalyzedGraph; 2] = [&outcome.before, &outcome.side];
        let origins = |launch: usize| origins(&outcome.correspondence, sides, launch);
        let (more, open) = messages::kept(evidence, sides, &origins, &is_given);
        findings.extend(more);
        unknown = unknown.or(open);
    }
    if findings.is_empty() {
        let simulated = |streams| simulated(evidence, |outcome| &outcome.side, &world, streams);
        let mut report = simulated(Streams::PerGroup);
        // Launches that traded places before are those that were meant to meet.
        if report.mismatches.iter().any(|mismatch| mismatch.elsewhere.is_some()) {
            let before = self::simulated(evidence, |outcome| &outcome.before, &world, Streams::PerGroup);
            report.mismatches.retain(|one| one.elsewhere.is_none() || !before.mismatches.contains(one));
        }
        let (found, open) = stand_still(evidence, &report);
        (findings, unknown) = (found, unknown.or(open));
        // A device may run one communication after the other, and then waits at each.
        if findings.is_empty() && unknown.is_none() {
            let link =
                simulated(Streams::One).deadlock.and_then(|deadlock| deadlock.chain.into_iter().next());
            let before = || self::simulated(evidence, |outcome| &outcome.before, &world, Streams::One);
            // What the graphs before leave to the device, no pass is to blame for.
            let link = link.filter(|_| before().finishes() != Some(false));
            unknown = link.map(|link| {
                let why =
                    format!("devices that run one communication at a time would wait for each other: {link}");
                Code::SerialDeadlock.because(why)
            });
        }
    }
    Checked::found(findings, unknown)
}

/// The launches before that one after stands for: its twin, or those that it carries.
fn origins(c: &Correspondence, [before, after]: [&AnalyzedGraph; 2], launch: usize) -> Option<Vec<usize>> {
    let twin = c.before_of[after.collectives.calls[launch].node.index()];
    if let Some(twin) = twin.and_then(|twin| before.collectives.launch_at(twin)) {
        return Some(vec![twin]);
    }
    let merge = c.merges.binary_search_by_key(&launch, |merge| merge.launch).ok()?;
    Some(c.merges[merge].members.clone()).filter(|members| !members.is_empty())
}

/// All ranks against each other, each with one of its graphs. Of ranks without one nothing is known.
fn simulated<'a>(
    evidence: &Evidence<'a>,
    graph: impl for<'o> Fn(&'o RankOutcome<'a>) -> &'o Arc<AnalyzedGraph<'a>>,
    world: &World,
    streams: Streams,
) -> Report {
    let mut graphs: Vec<&Graph> = Vec::new();
    let mut by_rank: BTreeMap<u32, usize> = BTreeMap::new();
    for outcome in &evidence.ranks {
        let own = graph(outcome).graph;
        // Ranks with one graph share what it launches.
        let known = graphs.iter().position(|known| std::ptr::eq(*known, own));
        by_rank.entry(outcome.rank).or_insert(known.unwrap_or(graphs.len()));
        if known.is_none() {
            graphs.push(own);
        }
    }
    let of_rank: Vec<usize> = (0..world.ranks.unwrap_or(0))
        .map(|rank| by_rank.get(&rank).copied().unwrap_or(graphs.len()))
        .collect();
    let mut programs = Programs::per_rank(&graphs, &of_rank, &Estimates::default());
    (programs.of_rank, programs.world) = (of_rank, world.clone());
    programs.programs.push(Program { is_unknown: true, ..Program::default() });
    simulate(&programs, Options { streams, ..Options::default() })
}

/// Two collectives of one group that spin at once on streams of their callers.
fn spinning(evidence: &Evidence) -> Vec<Finding> {
    let [before, after] = [&evidence.before, &evidence.after].map(|side| at_once(side.graph, &side.ops));
    let (Ok(None), Ok(Some((first, second)))) = (before, after) else { return Vec::new() };
    let [a, b] = [first, second].map(|id| evidence.after.graph.name(id));
    let finding = evidence
        .finding(
            "rewrite/collectives",
            Stage::After,
            format!("{b} does not wait for {a}, which holds its group"),
        )
        .after_nodes(evidence, [first, second])
        .fact("both run on streams of their callers, and meet their ranks in the same memory of one group")
        .expected(format!("an event holds {b} back until {a} has ended"))
        .observed("no event does: one rank may spin in the one, another in the other, for ever");
    vec![finding]
}

/// What does not meet, and ranks that wait for each other. What is not recorded is no difference.
fn stand_still(evidence: &Evidence, report: &Report) -> (Vec<Finding>, Option<Reason>) {
    let find = |title| evidence.finding("rewrite/collectives", Stage::After, title).across_ranks();
    let mut unknown = report.faults.first().map(|fault| Code::GroupNotKnown.because(fault));
    let mut findings = Vec::new();
    for mismatch in &report.mismatches {
        let ((a, b), number, group) = (mismatch.ranks, mismatch.index, &mismatch.group);
        let ends: Vec<_> = mismatch.first.iter().chain(&mismatch.second).collect();
        if let [one, other] = ends[..]
            && one.may_meet(other)
            && mismatch.elsewhere.is_none()
            && mismatch.parts.is_none()
        {
            let why = format!("it is not recorded on all ranks what {} sends", one.name);
            unknown.get_or_insert(Code::PayloadNotKnown.because(why));
            continue;
        }
        let (title, expected) = match (mismatch.is_message, ends.len()) {
            (true, 2) => (
                format!("message {number} from rank {a} to rank {b} on {group} is received as another one"),
                MESSAGE,
            ),
            (true, _) if mismatch.first.is_some() => {
                (format!("message {number} from rank {a} to rank {b} on {group} is not received"), MESSAGE)
            }
            (true, _) => {
                (format!("message {number} from rank {a} to rank {b} on {group} is not sent"), MESSAGE)
            }
            (false, _) => (format!("ranks {a} and {b} disagree on group {group}"), LAUNCH),
        };
        let mut finding = find(title).expected(expected).observed(mismatch.to_string());
        finding.nodes = ends.iter().map(|operation| evidence.mention(&operation.name)).collect();
        finding.nodes.dedup();
        findings.push(finding);
    }
    findings.extend(report.deadlock.iter().map(|deadlock| {
        let mut finding = find(format!("{} ranks wait for each other", deadlock.stuck))
            .expected("each goes on when the other does")
            .observed(deadlock.to_string().lines().last().unwrap_or("none can go on").to_string());
        finding.facts = deadlock.chain.iter().map(ToString::to_string).collect();
        let at = deadlock.chain.iter().filter_map(|link| link.at.as_ref());
        finding.nodes = at.map(|name| evidence.mention(name)).collect();
        finding.nodes.dedup();
        finding
    }));
    (findings, unknown)
}

/// What is expected of messages, and of launches on a group.
const MESSAGE: &str = "each message is sent once and received once, with the same size, dtype and tag";
const LAUNCH: &str = "all ranks of a group launch the same on it, in one order";

/// Every launch is waited for exactly once, before any use.
pub(super) fn wait_before_use(evidence: &Evidence) -> Checked {
    // What the input already has is no fault of the pass.
    let excused: FxHashSet<(&str, &str)> = faults_of_waiting(&evidence.before)
        .into_iter()
        .map(|f| (evidence.before.graph.name(f.node), f.kind))
        .collect();
    let (mut findings, mut titles) = (Vec::new(), FxHashSet::default());
    for (side, stage) in evidence.stages() {
        // A list that is still to be sorted does not say what runs meanwhile.
        let faults = match std::ptr::eq(side, &*evidence.after) {
            true => [faults_of_waiting(side), faults_of_inputs(&evidence.before, side)].concat(),
            false => faults_of_waits(side),
        };
        for fault in faults {
            let name = side.graph.name(fault.node);
            // To wait for what is there already does nothing.
            let is_needless = evidence.policies.any_rewrite && ["twice", "idle"].contains(&fault.kind);
            if is_needless || excused.contains(&(name, fault.kind)) || !titles.insert(fault.title.clone()) {
                continue;
            }
            let finding = evidence
                .finding("rewrite/in-flight", stage, fault.title)
                .side_nodes(evidence, side, fault.nodes.iter().copied())
                .expected(fault.expected)
                .observed(fault.observed);
            findings.push(finding);
        }
    }
    Checked::Findings(findings)
}

/// A launch without its one wait, or a reader that does not wait.
#[derive(Clone)]
pub(super) struct WaitFault {
    pub(super) node: NodeId,
    pub(super) kind: &'static str,
    pub(super) title: String,
    pub(super) nodes: Vec<NodeId>,
    pub(super) expected: String,
    pub(super) observed: String,
}

/// What is wrong with the waits of one graph, and with what runs before them.
pub(super) fn faults_of_waiting(side: &AnalyzedGraph) -> Vec<WaitFault> {
    let mut faults = faults_of_waits(side);
    faults.extend(writes_into_what_is_sent(side));
    faults
}

/// What is wrong with the waits of one graph, in whatever order its list is.
fn faults_of_waits(side: &AnalyzedGraph) -> Vec<WaitFault> {
    let (graph, collectives) = (side.graph, &side.collectives);
    let mut faults = Vec::new();
    for (launch, call) in collectives.calls.iter().enumerate() {
        let name = graph.name(call.node);
        let results = if call.coalesced { call.inputs.len() } else { 1 };
        // In place and `out=` results may be waited for through the buffer, and a send or barrier returns nothing
        // to wait for: only what returns its value must be waited for through it.
        let waits = collectives.own_waits(graph, launch);
        let waits_all = waits.iter().any(|&w| {
            matches!(side.ops.get(graph, w).kind, Kind::Wait)
                && graph.args(w).first().is_some_and(|v| matches!(v, crate::graph::Value::List(_)))
        });
        if waits.is_empty() && !side.edges.users(call.node).is_empty() && !call.is_done_at_once {
            faults.push(WaitFault {
                node: call.node,
                kind: "never",
                title: format!("{name} is never waited for"),
                nodes: vec![call.node],
                expected: format!("the value of {name} is undefined until it is waited for"),
                observed: format!(
                    "no node waits for it, and {} reads it",
                    graph.name(side.edges.users(call.node)[0])
                ),
            });
        }
        if waits.len() > results && !waits_all {
            let names: Vec<&str> = waits.iter().map(|&w| graph.name(w)).collect();
            faults.push(WaitFault {
                node: call.node,
                kind: "twice",
                title: format!("{name} is waited for {} times", waits.len()),
                nodes: std::iter::once(call.node).chain(waits.iter().copied()).collect(),
                expected: format!("{name} has {}", words::count(results, "result")),
                observed: format!("{} all wait for it", names.join(", ")),
            });
        }
    }
    for id in graph.ids() {
        let is_wait = side.is_wait(id);
        // An item or a view, whose users read.
        let is_passed_on = collectives.launch_of_value(id).is_some() && collectives.launch_at(id).is_none();
        // What orders streams takes a tensor and reads nothing of it.
        let is_sync = side.ops.call(graph, id).is_some_and(|info| info.sync().is_some());
        if is_wait || is_sync || is_passed_on {
            continue;
        }
        for &input in side.edges.inputs(id) {
            if let Some(launch) = collectives.launch_of_value(input)
                && collectives.launch_at(id) != Some(launch)
                && !collectives.calls[launch].is_done_at_once
            {
                let (user, start) = (graph.name(id), graph.name(collectives.calls[launch].node));
                faults.push(WaitFault {
                    node: id,
                    kind: "raw",
                    title: format!("{user} uses the value of {start} before it is waited for"),
                    nodes: vec![id, collectives.calls[launch].node],
                    expected: format!("the value of {start} is undefined until its wait"),
                    observed: format!("{user} reads {} itself", graph.name(input)),
                });
            }
        }
    }
    for &wait in &collectives.idle_waits {
        faults.push(WaitFault {
            node: wait,
            kind: "idle",
            title: format!("{} waits for nothing", graph.name(wait)),
            nodes: vec![wait],
            expected: "a wait makes the value of one collective usable".into(),
            observed: "what it receives is no collective's value".into(),
        });
    }
    faults
}

/// Writes into what a launch sends, before anybody has waited for it.
fn writes_into_what_is_sent(side: &AnalyzedGraph) -> Vec<WaitFault> {
    let (graph, storages) = (side.graph, side.storages());
    let mut faults = Vec::new();
    for (launch, call) in side.collectives.calls.iter().enumerate() {
        let Some(&wait) = side.collectives.waits[launch].iter().min() else { continue };
        for part in
            call.held().iter().flat_map(|&input| storages.all_parts(input)).filter(|part| part.certain)
        {
            let mut meanwhile =
                storages.writes_of(part.storage, Some(call.node)).take_while(|access| access.node < wait);
            let is_over = |access: &&Access| {
                let is_sent = access.part.bytes.overlap(part.bytes) == Overlap::Yes;
                access.touch == Touch::Write && access.part.certain && is_sent
            };
            let Some(write) = meanwhile.find(is_over) else { continue };
            let [writer, start, end] = [write.node, call.node, wait].map(|id| graph.name(id));
            faults.push(WaitFault {
                node: write.node,
                kind: "sent",
                title: format!("{writer} writes into what {start} sends"),
                nodes: vec![write.node, call.node, wait],
                expected: format!("what {start} sends stays as it is until {end}"),
                observed: format!("{writer} writes into it before {end}"),
            });
        }
    }
    faults
}

/// What a graph is given and waits for, by what both graphs call it: the node, and the first wait for its memory. It is
/// in flight until then, unless a launch of the graph itself fills it before.
fn given_in_flight(side: &AnalyzedGraph) -> BTreeMap<String, (NodeId, NodeId)> {
    let (graph, storages) = (side.graph, side.storages());
    let mut found: BTreeMap<String, (NodeId, NodeId)> = BTreeMap::new();
    for &wait in &side.collectives.idle_waits {
        for part in storages.all_parts(wait).filter(|part| storages.storage(part.storage).external) {
            let by = storages.storage(part.storage).by;
            let is_filled = side.fillers(part.storage).iter().any(|&filler| filler < wait);
            if let (Some(name), false) = (graph.given_name(by), is_filled) {
                let (_, first) = found.entry(name).or_insert((by, wait));
                *first = wait.min(*first);
            }
        }
    }
    found
}

/// Who touches what an input holds before `wait`: nodes in list order, waits aside.
fn before_wait(side: &AnalyzedGraph, input: NodeId, wait: NodeId) -> impl Iterator<Item = NodeId> {
    let storages = side.storages();
    let accesses = storages.all_parts(input).flat_map(move |part| storages.accesses_of(part.storage));
    let is_early = move |id: &NodeId| *id < wait && !side.is_wait(*id);
    accesses.map(|access| access.node).filter(is_early)
}

/// What the graph before is given and waits for, and the graph after touches without that wait.
pub(super) fn faults_of_inputs(before: &AnalyzedGraph, after: &AnalyzedGraph) -> Vec<WaitFault> {
    let old = given_in_flight(before);
    if old.is_empty() {
        return Vec::new();
    }
    let new = given_in_flight(after);
    let mut faults = Vec::new();
    for (given, (input, wait)) in old {
        let name = before.graph.name(input);
        let is_own = |id: &NodeId| after.graph.given_name(*id).as_ref() == Some(&given);
        let Some(own) = after.graph.ids().find(is_own) else { continue };
        let expected = format!("{name} may be in flight until {}", before.graph.name(wait));
        let Some(&(_, first)) = new.get(&given) else {
            faults.push(WaitFault {
                node: own,
                kind: "never",
                title: format!("{name} is never waited for"),
                nodes: vec![own],
                expected,
                observed: "no node waits for it".into(),
            });
            continue;
        };
        // Who raced before may have another name now.
        let raced = before_wait(before, input, wait).next().is_some();
        let early = before_wait(after, own, first).next().filter(|_| !raced);
        if let Some(early) = early {
            let user = after.graph.name(early);
            faults.push(WaitFault {
                node: early,
                kind: "raw",
                title: format!("{user} uses {name} before it is waited for"),
                nodes: vec![early, own],
                expected,
                observed: format!("{user} comes before {}", after.graph.name(first)),
            });
        }
    }
    faults
}

/// Whether two launches agree in all but what they move.
fn same_terms(a: &CollectiveCall, b: &CollectiveCall) -> bool {
    let terms = |call: &CollectiveCall| (call.kind, call.group_size);
    terms(a) == terms(b) && a.reduce_op == b.reduce_op && a.group == b.group
}

/// A dtype or a number of elements, where recorded.
type Moved = (Option<Dtype>, Option<i64>);

/// What a launch moves: its dtype, and the elements of each input.
fn payload<'a>(graph: &'a Graph, call: &'a CollectiveCall) -> impl Iterator<Item = Moved> + use<'a> {
    let tensor = graph.tensor_of(call.node).or_else(|| graph.tensor_at(call.node, 0));
    let dtype = std::iter::once((tensor.map(|t| t.dtype), None));
    dtype.chain(call.inputs.iter().map(|&input| (None, graph.tensor_of(input).and_then(|t| graph.numel(t)))))
}

/// Whether two launches move the same as far as their sizes and dtypes are known.
fn may_be_equal(a: impl Iterator<Item = Moved>, b: impl Iterator<Item = Moved>) -> bool {
    fn may_be<T: PartialEq>(a: Option<T>, b: Option<T>) -> bool {
        a.is_none() || b.is_none() || a == b
    }
    let (a, b): (Vec<Moved>, Vec<Moved>) = (a.collect(), b.collect());
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| may_be(a.0, b.0) && may_be(a.1, b.1))
}

/// What must agree: kind, group, reduction, dtype and sizes.
pub(super) fn describe(graph: &Graph, call: &CollectiveCall) -> String {
    let mut text = call.kind.name().to_string();
    if let Some(op) = call.reduce_op {
        text += &format!(" {op}");
    }
    text += &format!(" on group {}", call.group);
    if let Some(size) = call.group_size {
        text += &format!(" of {size}");
    }
    let sizes: Vec<String> = call
        .inputs
        .iter()
        .map(|&input| match graph.tensor_of(input) {
            Some(tensor) => match graph.numel(tensor) {
                Some(n) => n.to_string(),
                None => "?".into(),
            },
            None => "?".into(),
        })
        .collect();
    let dtype = graph.tensor_of(call.node).or_else(|| graph.tensor_at(call.node, 0)).map(|t| t.dtype.name());
    text += &format!(", {} of {} elements", dtype.unwrap_or("?"), sizes.join(" + "));
    if graph.target(call.node).starts_with("_c10d_functional.all_reduce_.")
        && let Some(strides) = call.inputs.first().and_then(|&input| overlap::strides_in_memory(graph, input))
    {
        text += &format!(" with strides {strides:?}");
    }
    text
}
