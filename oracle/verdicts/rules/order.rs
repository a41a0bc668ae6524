//! `order/*`: the list after is an order in which the graph may be executed, and the right one.

use super::correspondence::Calls;
use super::{AnalyzedGraph, Checked, Code, Evidence, Finding, Reason, Stage, device};
use crate::analysis::cycle::shortest_cycle;
use crate::analysis::origin::Hazard;
use crate::analysis::topological::{Violation, violations};
use crate::graph::{Dim, Graph, NodeId, OrderingEdge, Tensor};
use crate::ops::Kind;
use rustc_hash::FxHashSet;
use std::ops::Range;

/// No cycle over arguments and ordering edges.
pub(super) fn acyclic(evidence: &Evidence) -> Checked {
    let mut findings: Vec<Finding> = Vec::new();
    for (side, stage) in evidence.stages() {
        let Some(cycle) = shortest_cycle(&side.edges) else { continue };
        let names: Vec<&str> = cycle.nodes.iter().map(|&n| side.graph.name(n)).collect();
        let finding = evidence
            .finding("order/acyclic", stage, format!("{} form a cycle", names.join(", ")))
            .side_nodes(evidence, side, cycle.nodes.iter().copied())
            .expected("some order runs each of them after all that it needs")
            .observed(cycle.reasons(side.graph, &side.edges).join(";\n"));
        if !findings.iter().any(|f| f.title == finding.title) {
            findings.push(finding);
        }
    }
    Checked::Findings(findings)
}

/// The repaired list is topological. What stood behind the output before, or among calls as a placeholder, may stay there: no
/// edge asks for another place.
pub(super) fn list_topological(evidence: &Evidence) -> Checked {
    let (before, after) = (&evidence.before, &evidence.after);
    let place = |violation: &Violation| match *violation {
        Violation::UseBeforeDefinition { .. } => None,
        Violation::LatePlaceholder { node } => Some((node, true)),
        Violation::AfterOutput { node } => Some((node, false)),
    };
    let known: FxHashSet<_> = violations(before.graph, &before.edges).iter().filter_map(place).collect();
    let is_known = |violation: &Violation| {
        place(violation).is_some_and(|(node, kind)| {
            evidence.correspondence.before_of[node.index()].is_some_and(|twin| known.contains(&(twin, kind)))
        })
    };
    let found = violations(after.graph, &after.edges).into_iter().filter(|violation| !is_known(violation));
    let findings = found.map(|violation| {
        evidence
            .finding("order/list-topological", Stage::After, violation.describe(after.graph))
            .after_nodes(evidence, [violation.node()])
            .fact("the list is executed from top to bottom")
    });
    Checked::Findings(findings.collect())
}

/// New writes are ordered against aliased reads by graph edges, not by luck. Where a surviving node conflicted with
/// an erased one and no edge ordered them before, the list was all that did, and it may go on doing so.
pub(super) fn write_before_aliased_read(evidence: &Evidence) -> Checked {
    let mut findings: Vec<Finding> = Vec::new();
    for (side, stage) in evidence.stages() {
        let is_new: Vec<bool> = side.graph.ids().map(|id| !evidence.is_survivor(side, id)).collect();
        let conflicts = side.certain_conflicts_of(&|id| is_new[id.index()]);
        let pairs: Vec<(NodeId, NodeId)> = conflicts.iter().map(|c| (c.before, c.after)).collect();
        let open = side.have_paths(&pairs).into_iter().enumerate().filter(|(_, has)| !has);
        let open: Vec<usize> = open.map(|(i, _)| i).collect();
        // A list that is not sorted yet says nothing about which of the two comes first.
        let turned = match stage {
            Stage::Unrepaired => {
                let turned: Vec<_> = open.iter().map(|&i| (pairs[i].1, pairs[i].0)).collect();
                side.have_paths(&turned)
            }
            _ => vec![false; open.len()],
        };
        for (conflict, turned) in open.iter().map(|&i| &conflicts[i]).zip(turned) {
            let (first, second) = (conflict.before, conflict.after);
            // When a value is read that nobody takes does not matter.
            let is_idle = |id: NodeId| is_new[id.index()] && side.edges.users(id).is_empty();
            let acts = |id: NodeId| {
                let info = side.ops.call(side.graph, id);
                info.is_none_or(|info| info.effect || info.writes() || info.collective().is_some())
            };
            let is_idle_read = match conflict.hazard {
                Hazard::ReadAfterWrite => is_idle(second) && !acts(second),
                Hazard::WriteAfterRead => is_idle(first) && !acts(first),
                Hazard::WriteAfterWrite => false,
            };
            if turned || is_idle_read {
                continue;
            }
            let survivor = [first, second].into_iter().find(|&id| !is_new[id.index()]);
            if survivor.is_some_and(|id| evidence.was_left_to_the_list(side.graph.name(id))) {
                continue;
            }
            let (a, b) = (side.graph.name(first), side.graph.name(second));
            let what = match conflict.hazard {
                Hazard::ReadAfterWrite => format!("{b} reads what {a} writes"),
                Hazard::WriteAfterRead => format!("{b} overwrites what {a} reads"),
                Hazard::WriteAfterWrite => format!("{b} overwrites what {a} writes"),
            };
            let title = format!("{what}, but no edge leads from {a} to {b}");
            let finding = evidence
                .finding("order/write-before-aliased-read", stage, title)
                .side_nodes(evidence, side, [first, second])
                .fact(format!("{a} and {b} reach one storage through different aliases"))
                .expected("every topological order of the graph keeps them in this order")
                .observed(format!("a sort is free to put {b} before {a}"));
            if !findings.iter().any(|f| f.title == finding.title) {
                findings.push(finding);
            }
        }
    }
    Checked::Findings(findings)
}

/// Ordering edges lead on between what stands for their ends.
pub(super) fn edges_kept(evidence: &Evidence) -> Checked {
    let (before, after) = (&evidence.before, &evidence.after);
    let mut findings = Vec::new();
    // For each edge what stands for its ends, and which pairs of these: one of them is enough. Where the second end is a
    // wait for what has been waited for, which does nothing, it is also enough that all follow that followed it. One for
    // which nothing stands is another rule's business.
    let mut asked: Vec<(&OrderingEdge, NodeId, NodeId, Vec<Range<usize>>)> = Vec::new();
    let mut pairs: Vec<(NodeId, NodeId)> = Vec::new();
    for edge in &before.graph.ordering {
        let first = evidence.stands_for(edge.before);
        let waits_again = before.collectives.first_wait(edge.after) != edge.after;
        let second = match waits_again {
            true => evidence.correspondence.after_of[edge.after.index()].into_iter().collect(),
            false => evidence.stands_for(edge.after),
        };
        let followers = if waits_again { before.followers_of_wait(edge.after) } else { Vec::new() };
        let followers = followers.into_iter().map(|follower| evidence.stands_for(follower));
        let followers: Vec<Vec<NodeId>> = followers.filter(|nodes| !nodes.is_empty()).collect();
        let start = pairs.len();
        let mut add = |second: &[NodeId]| {
            let start = pairs.len();
            pairs.extend(first.iter().flat_map(|&a| second.iter().map(move |&b| (a, b))));
            start..pairs.len()
        };
        let mut groups = vec![add(&second)];
        groups.extend(followers.iter().map(|follower| add(follower)));
        // One node for both ends needs no edge; an end that is gone altogether is another rule's business.
        match (first.first(), second.iter().chain(followers.iter().flatten()).next()) {
            (Some(&a), Some(&b)) if pairs[groups[0].clone()].iter().all(|(a, b)| a != b) => {
                asked.push((edge, a, b, groups));
            }
            _ => pairs.truncate(start),
        }
    }
    let has_path = after.have_paths(&pairs);
    for (edge, a, b, groups) in asked {
        let follows = |group: &Range<usize>| has_path[group.clone()].contains(&true);
        let followers = &groups[1..];
        if follows(&groups[0]) || !followers.is_empty() && followers.iter().all(follows) {
            continue;
        }
        let (old, new) = (|id| before.graph.name(id), |id| after.graph.name(id));
        // Where the value of a wait became a view of a buffer that is filled, the filling is what the edge should come
        // from.
        let through_memory = after.edges.predecessors(b).find_map(|follows| {
            let fills = |w: &NodeId| !after.has_path(*w, follows) && after.has_path(a, *w);
            let filled_by = after.writers_of(follows).into_iter().find(fills)?;
            Some(format!(
                ": {} follows {}, which shows what {} writes, and none leads from there",
                new(b),
                new(follows),
                new(filled_by)
            ))
        });
        let (a, b) = (new(a), new(b));
        findings.push(
            evidence
                .finding("order/edges-kept", Stage::After, format!("{b} no longer has to follow {a}"))
                .before_nodes(evidence, [edge.before, edge.after])
                .fact(format!(
                    "before, an ordering edge puts {} before {}",
                    old(edge.before),
                    old(edge.after)
                ))
                .expected(format!("after, {a} and {b} stand for them, so some path leads from {a} to {b}"))
                .observed(format!("none does{}", through_memory.unwrap_or_default())),
        );
    }
    Checked::Findings(findings)
}

/// Surviving nodes that conflict keep their order.
pub(super) fn effects_preserved(evidence: &Evidence) -> Checked {
    let (before, c) = (&evidence.before, &evidence.correspondence);
    let (mut findings, mut doubt) = (Vec::new(), None);
    for (first, second, origin) in evidence.reversed_conflicts() {
        let (Some(a), Some(b)) = (c.after_of[first.index()], c.after_of[second.index()]) else { continue };
        // A node that stands before something it needs has no place to keep: a repair is there to find it one.
        if before.is_displaced(first) {
            continue;
        }
        let reason = origin.describe(before.graph, first, second);
        if !origin.certain() {
            let why = format!("{reason}; after, their order is reversed");
            doubt.get_or_insert(Code::UncertainDependence.because(why));
            continue;
        }
        let (x, y) = (before.graph.name(first), before.graph.name(second));
        findings.push(
            evidence
                .finding("order/effects-preserved", Stage::After, format!("{y} now runs before {x}"))
                .before_nodes(evidence, [first, second])
                .fact(reason)
                .expected(format!("{x} stays before {y}"))
                .observed(format!("after, {y} is at #{} and {x} at #{}", b.0, a.0)),
        );
    }
    // An effect that is gone is no longer in any order.
    for id in before.graph.ids() {
        let gone = c.after_of[id.index()].is_none();
        if gone && before.has_own_effect(id) && before.collectives.launch_at(id).is_none() {
            let name = before.graph.name(id);
            if before.ops.get(before.graph, id).kind == Kind::Unknown {
                let why =
                    format!("nothing is known of {}, and no node after is {name}", before.graph.target(id));
                doubt.get_or_insert(Code::UnknownOperator.because(why));
                continue;
            }
            findings.push(
                evidence
                    .finding("order/effects-preserved", Stage::After, format!("the effect of {name} is lost"))
                    .before_nodes(evidence, [id])
                    .fact(format!("{name} calls {}, which has an effect", before.graph.target(id)))
                    .expected("effects stay")
                    .observed(format!("no node after is {name}")),
            );
        }
    }
    // A draw leaves the generator in another state, be it read or not. Where others are gone, it may stand for them.
    let after = &evidence.after;
    let is_new = |id: &NodeId| c.before_of[id.index()].is_none() && after.draws(*id);
    let mut gone = before.graph.ids().filter(|&id| c.after_of[id.index()].is_none());
    if !gone.any(|id| before.draws(id)) {
        findings.extend(after.graph.ids().filter(is_new).map(|id| {
            let name = after.graph.name(id);
            evidence
                .finding("order/effects-preserved", Stage::After, format!("{name} draws random numbers anew"))
                .after_nodes(evidence, [id])
                .fact(format!(
                    "{name} calls {}, which moves the state of the generator",
                    after.graph.target(id)
                ))
                .expected("what is drawn after the graph is what was drawn after it before")
                .observed(format!("no node before is {name}"))
        }));
    }
    Checked::found(findings, doubt)
}

/// A repair keeps the nodes.
pub(super) fn same_nodes(evidence: &Evidence) -> Checked {
    let (before, after, c) = (&evidence.before, &evidence.after, &evidence.correspondence);
    let mut findings = Vec::new();
    let mut report = |title: String, old: Option<NodeId>, new: Option<NodeId>, observed: String| {
        findings.push(
            evidence
                .finding("order/same-nodes", Stage::After, title)
                .before_nodes(evidence, old)
                .after_nodes(evidence, new)
                .expected("a repair changes positions only")
                .observed(observed),
        );
    };
    let calls = Calls::new(before.graph, after.graph);
    for id in before.graph.ids() {
        let name = before.graph.name(id);
        match c.after_of[id.index()] {
            None => report(format!("{name} is gone"), Some(id), None, "no node after is it".into()),
            Some(twin) if !calls.same_arguments(id, twin) => {
                report(format!("{name} was changed"), Some(id), None, "its arguments differ".into());
            }
            Some(twin) => {
                if let Some(how) = other_record((before.graph, id), (after.graph, twin))
                    .or_else(|| device::fault(after.graph, &after.ops, twin, Some((before.graph, id))))
                {
                    report(format!("{name} was changed"), Some(id), None, how);
                }
            }
        }
    }
    for (id, how) in device::renumbered(before.graph, after.graph, &|id| c.before_of[id.index()]) {
        report(format!("{} was changed", after.graph.name(id)), None, Some(id), how);
    }
    for id in after.graph.ids().filter(|id| c.before_of[id.index()].is_none()) {
        let name = after.graph.name(id);
        report(format!("{name} was added"), None, Some(id), "no node before is it".into());
    }
    Checked::Findings(findings)
}

/// Why the graph before the repair is not one of this result, if it is not: either the repair edits nodes, or the graph
/// is another result's. Which, nobody can tell, so what is found in it convicts nobody.
pub(crate) fn foreign_unrepaired(evidence: &Evidence) -> Option<Reason> {
    let was = evidence.unrepaired.as_ref()?.graph;
    let is = evidence.after.graph;
    let calls = Calls::new(was, is);
    let changed = was.ids().find_map(|id| {
        let name = was.name(id);
        match is.find(name) {
            None => Some(format!("{name} is not in the result")),
            Some(twin) if was.target(id) != is.target(twin) || !calls.same_arguments(id, twin) => {
                Some(format!("{name} is another call in the result"))
            }
            Some(_) => None,
        }
    });
    let added = || is.ids().map(|id| is.name(id)).find(|name| was.find(name).is_none());
    let how = changed.or_else(|| added().map(|name| format!("{name} of the result is not in it")))?;
    Some(Code::OtherUnrepaired.because(format!(
        "the graph before the repair is not that of this result: {how}; either the repair edits nodes, or it is the graph \
         of another result"
    )))
}

/// In which way a node's recorded result is another one after, as far as both sides record it in numbers.
fn other_record((before, id): (&Graph, NodeId), (after, twin): (&Graph, NodeId)) -> Option<String> {
    let tensors =
        (0..).map_while(|index| Some((before.tensor_at(id, index)?, after.tensor_at(twin, index)?)));
    for (p, q) in tensors {
        if p.dtype != q.dtype {
            return Some(format!("it is recorded as {}, before as {}", q.dtype.name(), p.dtype.name()));
        }
        for (what, p, q) in [("sizes", p.shape, q.shape), ("strides", p.stride, q.stride)] {
            if let (Some(p), Some(q)) = (before.sizes(p), after.sizes(q))
                && p != q
            {
                return Some(format!("it is recorded with {what} {q:?}, before with {p:?}"));
            }
        }
        if p.offset != q.offset {
            return Some(format!("it is recorded at offset {}, before at {}", q.offset, p.offset));
        }
        let bytes = |tensor: &Tensor| tensor.storage_bytes.and_then(Dim::known);
        if let (Some(old), Some(new)) = (bytes(p), bytes(q))
            && old != new
        {
            return Some(format!("its storage is recorded with {new} bytes, before with {old}"));
        }
    }
    None
}

/// Repairing twice is repairing once, and a sorted list is left alone.
pub(super) fn sort_idempotent(evidence: &Evidence) -> Checked {
    let (before, after) = (&evidence.before, &evidence.after);
    let mut findings = Vec::new();
    let sorted = violations(before.graph, &before.edges).is_empty();
    if sorted && let Some((expected, found)) = first_move(before, after) {
        findings.push(
            evidence
                .finding("order/sort-idempotent", Stage::After, "a sorted list was reordered".into())
                .before_nodes(evidence, before.graph.find(&expected))
                .fact("the list before is topological")
                .expected(format!("it is left alone: {expected} comes next"))
                .observed(format!("{found} comes next")),
        );
    }
    match &evidence.again {
        Some(again) => {
            let again = AnalyzedGraph::new(again);
            if let Some((expected, found)) = first_move(after, &again) {
                findings.push(
                    evidence
                        .finding("order/sort-idempotent", Stage::After, "repairing again moves nodes".into())
                        .before_nodes(evidence, before.graph.find(&expected))
                        .expected(format!("a second repair changes nothing: {expected} comes next"))
                        .observed(format!("it puts {found} there")),
                );
            }
            Checked::Findings(findings)
        }
        None if findings.is_empty() && !sorted => Checked::NotChecked(
            "the candidate was not run on its own result, and the list before is not sorted".into(),
        ),
        None => Checked::Findings(findings),
    }
}

/// The first place where two lists differ: the names there.
fn first_move(a: &AnalyzedGraph, b: &AnalyzedGraph) -> Option<(String, String)> {
    let n = a.graph.len().max(b.graph.len());
    let name = |side: &AnalyzedGraph, i: usize| match i < side.graph.len() {
        true => side.graph.name(NodeId(i as u32)).to_string(),
        false => "the end".to_string(),
    };
    (0..n).map(|i| (name(a, i), name(b, i))).find(|(x, y)| x != y)
}

/// The order is the reference's.
pub(super) fn position_equal_reference(evidence: &Evidence) -> Checked {
    let Some(expected) = &evidence.expected_order else {
        return Checked::NotChecked("the exact order was not asked for".into());
    };
    let after = &evidence.after;
    let found: Vec<&str> = after.graph.ids().map(|id| after.graph.name(id)).collect();
    let n = expected.len().max(found.len());
    let at = (0..n).find(|&i| expected.get(i) != found.get(i));
    let Some(at) = at else { return Checked::Findings(Vec::new()) };
    let show = |name: Option<&str>| name.unwrap_or("the end").to_string();
    let (e, f) = (show(expected.get(at).copied()), show(found.get(at).copied()));
    let finding = evidence
        .finding("order/position-equal-reference", Stage::After, format!("{f} stands where {e} belongs"))
        .after_nodes(evidence, [&e, &f].into_iter().filter_map(|name| after.graph.find(name)))
        .fact(format!("position {at} of the list"))
        .expected(format!("the stable topological sort puts {e} there"))
        .observed(format!("the list has {f}"));
    Checked::Findings(vec![finding])
}
