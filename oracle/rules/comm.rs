//! `comm/*`: every collective is sent once, waited for once, and in the same order by all ranks.

use super::{Checked, Evidence, Finding, Merge, Side, Stage};
use crate::analysis::{CollectiveCall, GroupName};
use crate::graph::{Dtype, Graph, NodeId};
use crate::ops::Kind;
use std::collections::BTreeMap;

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
                        .then("after, it must be itself or a member of one bucket")
                        .however("no node after has its name, and no new collective packs its input or delivers its value"),
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
                        .then("one collective after carries it")
                        .however(format!("its users read from {}", names.join(" and from "))),
                );
            }
        }
    }
    for merge in &c.merges {
        findings.extend(payload_adds_up(evidence, merge));
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
            findings.push(
                evidence
                    .finding(
                        "comm/moved-exactly-once",
                        Stage::After,
                        format!("collective {} was changed", before.graph.name(id)),
                    )
                    .before_nodes(evidence, [id])
                    .then(format!("before, it is {p}"))
                    .however(format!("after, it is {q}")),
            );
        }
    }
    Checked::Findings(findings)
}

/// The bytes that a new launch takes in are those of its members.
fn payload_adds_up(evidence: &Evidence, merge: &Merge) -> Option<Finding> {
    let (before, after) = (&evidence.before, &evidence.after);
    let call = &after.collectives.calls[merge.launch];
    let name = after.graph.name(call.node);
    if merge.members.is_empty() {
        return Some(
            evidence
                .finding(
                    "comm/moved-exactly-once",
                    Stage::After,
                    format!("collective {name} came from nowhere"),
                )
                .after_nodes(evidence, [call.node])
                .fact(format!("after, {name} is {}", describe(after.graph, call)))
                .then("every new collective stands for collectives of the graph before")
                .however("no erased collective has its input packed by it or its value delivered by it"),
        );
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
    let carried = sent(after.graph, call)?;
    let members = merge
        .members
        .iter()
        .try_fold(0i64, |sum, &m| sum.checked_add(sent(before.graph, &before.collectives.calls[m])?))?;
    if carried == members {
        return None;
    }
    let names: Vec<&str> =
        merge.members.iter().map(|&m| before.graph.name(before.collectives.calls[m].node)).collect();
    Some(
        evidence
            .finding(
                "comm/moved-exactly-once",
                Stage::After,
                format!("collective {name} does not carry its members' data"),
            )
            .after_nodes(evidence, [call.node])
            .before_nodes(evidence, merge.members.iter().map(|&m| before.collectives.calls[m].node))
            .fact(format!("{name} stands for {}", names.join(", ")))
            .then(format!("together they send {members} bytes per rank"))
            .however(format!("{name} sends {carried}")),
    )
}

/// The choice of buckets is the same on every rank.
pub(super) fn rank_invariant_choice(evidence: &Evidence) -> Checked {
    if evidence.ranks.len() < 2 {
        return Checked::NotChecked("the outcome of one rank only was given".into());
    }
    let plan = |side: &Side, c: &super::Correspondence| -> Vec<Vec<String>> {
        let mut plan: Vec<Vec<String>> = c
            .merges
            .iter()
            .map(|merge| {
                let names = merge.members.iter();
                let node = |&m: &usize| evidence.before.collectives.calls[m].node;
                names.map(|m| evidence.before.graph.name(node(m)).to_string()).collect()
            })
            .collect();
        let _ = side;
        plan.sort();
        plan
    };
    let first = &evidence.ranks[0];
    let expected = plan(&first.side, &first.correspondence);
    let mut findings = Vec::new();
    for other in &evidence.ranks[1..] {
        let found = plan(&other.side, &other.correspondence);
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
                .then(format!("rank {} has {mine}", first.rank))
                .however(format!("rank {} has {theirs}", other.rank)),
        );
    }
    Checked::Findings(findings)
}

/// On each group all ranks launch the same sequence, and no ranks wait for each other in a circle.
pub(super) fn same_order_across_ranks(evidence: &Evidence) -> Checked {
    if evidence.ranks.len() < 2 {
        return Checked::NotChecked(
            "the outcome of one rank only was given; ranks that run one graph agree with themselves".into(),
        );
    }
    let Some(world) = evidence.before.graph.world.assume_mesh() else {
        return Checked::Undecided("the world has too many ranks".into());
    };
    let mut findings = Vec::new();
    for group in &world.groups {
        for instance in &group.instances {
            let present: Vec<_> =
                instance.iter().filter_map(|&rank| evidence.ranks.iter().find(|r| r.rank == rank)).collect();
            let Some((first, others)) = present.split_first() else { continue };
            let expected = sequence(&first.side, &group.name);
            for other in others {
                let found = sequence(&other.side, &group.name);
                let at = (0..expected.len().max(found.len()))
                    .find(|&i| expected.get(i).map(|e| &e.1) != found.get(i).map(|f| &f.1));
                let Some(at) = at else { continue };
                let tell = |rank: u32, entry: Option<&(NodeId, String)>, side: &Side| match entry {
                    Some((node, what)) => format!("rank {rank} launches {} ({what})", side.graph.name(*node)),
                    None => format!("rank {rank} launches nothing more"),
                };
                let mut finding = evidence
                    .finding(
                        "comm/same-order-across-ranks",
                        Stage::After,
                        format!("ranks {} and {} disagree on group {}", first.rank, other.rank, group.name),
                    )
                    .across_ranks()
                    .fact(format!("launch {at} on process group {} (the first is 0)", group.name))
                    .then(tell(first.rank, expected.get(at), &first.side))
                    .however(format!(
                        "{}: the two are taken for one collective, or wait for ever",
                        tell(other.rank, found.get(at), &other.side)
                    ));
                if let Some((node, _)) = expected.get(at) {
                    finding = finding.after_nodes(evidence, [*node]);
                }
                findings.push(finding);
            }
        }
    }
    if findings.is_empty() {
        findings.extend(circle(evidence, &world));
    }
    Checked::Findings(findings)
}

/// The launches on a group, in list order, with what must agree between ranks.
fn sequence(side: &Side, group: &str) -> Vec<(NodeId, String)> {
    let calls = side.collectives.calls.iter();
    calls
        .filter(|call| call.group == GroupName::Text(group))
        .map(|call| (call.node, describe(side.graph, call)))
        .collect()
}

/// Ranks that wait for each other in a circle although each group's sequence agrees: every rank blocks at a wait,
/// and goes on when all ranks of that launch's group have launched it.
fn circle(evidence: &Evidence, world: &crate::graph::World) -> Option<Finding> {
    // What each rank does, in list order: launches and waits, as (is wait, group, number on the group).
    let ranks: Vec<u32> = evidence.ranks.iter().map(|r| r.rank).collect();
    let programs: Vec<Vec<(bool, usize, usize, NodeId)>> =
        evidence.ranks.iter().map(|r| program(&r.side, world)).collect();
    let mut at = vec![0usize; programs.len()];
    let mut launched: BTreeMap<(usize, usize, u32), usize> = BTreeMap::new();
    let ready = |launched: &BTreeMap<(usize, usize, u32), usize>, group: usize, number: usize, rank: u32| {
        let Some((instance, _)) = world.groups[group].instance_of(rank) else { return true };
        let members = world.groups[group].instances[instance].iter();
        members
            .filter(|r| ranks.contains(r))
            .all(|&r| launched.get(&(group, instance, r)).is_some_and(|&count| count > number))
    };
    loop {
        let mut moved = false;
        for (i, program) in programs.iter().enumerate() {
            while let Some(&(is_wait, group, number, _)) = program.get(at[i]) {
                if is_wait && !ready(&launched, group, number, ranks[i]) {
                    break;
                }
                if !is_wait && let Some((instance, _)) = world.groups[group].instance_of(ranks[i]) {
                    *launched.entry((group, instance, ranks[i])).or_insert(0) += 1;
                }
                at[i] += 1;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    let stuck: Vec<usize> = (0..programs.len()).filter(|&i| at[i] < programs[i].len()).collect();
    if stuck.is_empty() {
        return None;
    }
    let mut finding = evidence.finding(
        "comm/same-order-across-ranks",
        Stage::After,
        format!("{} ranks wait for each other", stuck.len()),
    );
    for &i in stuck.iter().take(4) {
        let (_, group, number, node) = programs[i][at[i]];
        let graph = evidence.ranks[i].side.graph;
        let name = &world.groups[group].name;
        let lacking = stuck.iter().find(|&&j| {
            world.groups[group].instance_of(ranks[j]).map(|x| x.0)
                == world.groups[group].instance_of(ranks[i]).map(|x| x.0)
                && j != i
        });
        let who = lacking.map_or("another rank".to_string(), |&j| format!("rank {}", ranks[j]));
        finding = finding.fact(format!(
            "rank {} waits at {} for launch {number} on group {name}, which {who} has not made",
            ranks[i],
            graph.name(node)
        ));
        if evidence.after.graph.find(graph.name(node)).is_some() && i == 0 {
            finding = finding.after_nodes(evidence, [node]);
        }
    }
    Some(finding.across_ranks().then("each goes on when the other does").however("none can go on"))
}

fn program(side: &Side, world: &crate::graph::World) -> Vec<(bool, usize, usize, NodeId)> {
    let mut events: Vec<(NodeId, bool, usize)> = Vec::new();
    for (launch, call) in side.collectives.calls.iter().enumerate() {
        events.push((call.node, false, launch));
        events.extend(side.collectives.waits[launch].iter().map(|&wait| (wait, true, launch)));
    }
    events.sort();
    let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
    let mut number_of = vec![None; side.collectives.calls.len()];
    let mut program = Vec::new();
    for (node, is_wait, launch) in events {
        let GroupName::Text(name) = side.collectives.calls[launch].group else { continue };
        let Some(group) = world.groups.iter().position(|g| g.name == name) else { continue };
        if !is_wait {
            let count = numbers.entry(group).or_insert(0);
            number_of[launch] = Some(*count);
            *count += 1;
        }
        if let Some(number) = number_of[launch] {
            program.push((is_wait, group, number, node));
        }
    }
    program
}

/// Every launch is waited for exactly once, before any use.
pub(super) fn wait_before_use(evidence: &Evidence) -> Checked {
    // What the input already has is no fault of the pass.
    let excused: Vec<(String, String)> = faults_of_waiting(&evidence.before)
        .into_iter()
        .map(|f| (evidence.before.graph.name(f.node).to_string(), f.kind.to_string()))
        .collect();
    let mut findings = Vec::new();
    for (side, stage) in evidence.stages() {
        for fault in faults_of_waiting(side) {
            let name = side.graph.name(fault.node);
            if excused.iter().any(|(n, k)| n == name && k == fault.kind) {
                continue;
            }
            let finding = evidence
                .finding("comm/wait-before-use", stage, fault.title)
                .side_nodes(evidence, side, fault.nodes.iter().copied())
                .then(fault.then)
                .however(fault.however);
            let known = |f: &Finding| f.title == finding.title;
            if !findings.iter().any(known) {
                findings.push(finding);
            }
        }
    }
    Checked::Findings(findings)
}

struct WaitFault {
    node: NodeId,
    kind: &'static str,
    title: String,
    nodes: Vec<NodeId>,
    then: String,
    however: String,
}

fn faults_of_waiting(side: &Side) -> Vec<WaitFault> {
    let (graph, collectives) = (side.graph, &side.collectives);
    let mut faults = Vec::new();
    for (launch, call) in collectives.calls.iter().enumerate() {
        let name = graph.name(call.node);
        let results = if call.coalesced { call.inputs.len() } else { 1 };
        // In place and `out=` results may be waited for through the buffer, and a send or barrier returns nothing
        // to wait for: only what returns its value must be waited for through it.
        let waits = &collectives.waits[launch];
        let waits_all = waits.iter().any(|&w| {
            matches!(side.ops.get(graph, w).kind, Kind::Wait)
                && graph.args(w).first().is_some_and(|v| matches!(v, crate::graph::Value::List(_)))
        });
        if waits.is_empty() && !side.edges.users(call.node).is_empty() {
            faults.push(WaitFault {
                node: call.node,
                kind: "never",
                title: format!("{name} is never waited for"),
                nodes: vec![call.node],
                then: format!("the value of {name} is undefined until it is waited for"),
                however: format!(
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
                then: format!("{name} has {results} result{}", if results == 1 { "" } else { "s" }),
                however: format!("{} all wait for it", names.join(", ")),
            });
        }
    }
    for id in graph.ids() {
        let is_wait = side.is_wait(id);
        let is_getitem = side.ops.call(graph, id).is_some_and(|i| matches!(i.kind, Kind::GetItem));
        if is_wait || (is_getitem && collectives.launch_of_value(id).is_some()) {
            continue;
        }
        for &input in side.edges.inputs(id) {
            if let Some(launch) = collectives.launch_of_value(input)
                && collectives.launch_at(id) != Some(launch)
            {
                let (user, start) = (graph.name(id), graph.name(collectives.calls[launch].node));
                faults.push(WaitFault {
                    node: id,
                    kind: "raw",
                    title: format!("{user} uses the value of {start} before it is waited for"),
                    nodes: vec![id, collectives.calls[launch].node],
                    then: format!("the value of {start} is undefined until its wait"),
                    however: format!("{user} reads {} itself", graph.name(input)),
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
            then: "a wait makes the value of one collective usable".into(),
            however: "what it receives is no collective's value".into(),
        });
    }
    faults
}

/// Whether two launches agree in all but what they move.
fn same_terms(a: &CollectiveCall, b: &CollectiveCall) -> bool {
    let terms = |call: &CollectiveCall| (call.kind, call.group_size);
    terms(a) == terms(b) && a.reduce_op == b.reduce_op && a.group == b.group
}

/// What a launch moves: its dtype, and the elements of each input.
fn payload<'a>(
    graph: &'a Graph,
    call: &'a CollectiveCall,
) -> impl Iterator<Item = (Option<Dtype>, Option<i64>)> + use<'a> {
    let tensor = graph.tensor_of(call.node).or_else(|| graph.tensor_at(call.node, 0));
    let dtype = std::iter::once((tensor.map(|t| t.dtype), None));
    dtype.chain(call.inputs.iter().map(|&input| (None, graph.tensor_of(input).and_then(|t| graph.numel(t)))))
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
    text + &format!(", {} of {} elements", dtype.unwrap_or("?"), sizes.join(" + "))
}
