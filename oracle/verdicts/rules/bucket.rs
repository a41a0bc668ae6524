//! `bucket/*` soundness: members that may be merged, and users that read the right thing afterwards.

use super::values::ValueResult;
use super::{Checked, Code, Evidence, Stage};
use crate::analysis::TopologicalOrder;
use crate::analysis::collectives::CollectiveCall;
use crate::analysis::contraction::check_contraction_besides;
use crate::graph::{Dim, Dtype, Graph, NodeId, Tensor};
use crate::ops::shape::Packing;
use crate::ops::{Collective, Kind};
use rustc_hash::FxHashSet;
use std::fmt::Display;

/// Views between a packing operator and the launch that sends what it packs: PyTorch has one slice there.
const MOST_VIEWS: u32 = 16;

/// On refusal the input graph is as it was.
pub(super) fn failure_atomic(evidence: &Evidence) -> Checked {
    let Some(refusal) = &evidence.refused else {
        return Checked::NotChecked("the pass did not refuse".into());
    };
    let (before, left) = (evidence.before.graph, evidence.after.graph);
    let Some(difference) = before.difference(left) else {
        return Checked::Findings(Vec::new());
    };
    let finding = evidence
        .finding("bucket/failure-atomic", Stage::After, "the pass refused, but changed its input".into())
        .fact(format!("the pass refused: {refusal}"))
        .expected("the graph that it leaves is the graph that it was given")
        .observed(difference);
    Checked::Findings(vec![finding])
}

/// No member of a bucket reaches another.
pub(super) fn members_independent(evidence: &Evidence) -> Checked {
    let before = &evidence.before;
    let merges = &evidence.correspondence.merges;
    if merges.iter().all(|merge| merge.members.len() < 2) {
        return Checked::Findings(Vec::new());
    }
    let sets: Vec<&[usize]> = merges.iter().map(|merge| &merge.members[..]).collect();
    let paths = match before.launch_paths(&sets) {
        Ok(paths) => paths,
        Err(why) => return Checked::undecided(Code::CycleBefore, why),
    };
    let (mut findings, mut doubts) = (Vec::new(), None);
    for (merge, paths) in merges.iter().zip(paths) {
        for (from, to) in paths {
            let (from, to) = (merge.members[from], merge.members[to]);
            let (a, b) = (before.collectives.calls[from].node, before.collectives.calls[to].node);
            let (path, doubt) = before.explain_path(a, b);
            if let Some(doubt) = doubt {
                doubts.get_or_insert(Code::UncertainDependence.because(doubt));
                continue;
            }
            let bucket = evidence.after.collectives.calls[merge.launch].node;
            let (name_a, name_b) = (before.graph.name(a), before.graph.name(b));
            findings.push(
                    evidence
                        .finding(
                            "bucket/members-independent",
                            Stage::Before,
                            format!("{name_a} and {name_b} share a bucket, but {name_b} depends on {name_a}"),
                        )
                        .before_nodes(evidence, [a, b])
                        .after_nodes(evidence, [bucket])
                        .fact(format!(
                            "{} replaces {}",
                            evidence.after.graph.name(bucket),
                            evidence.member_names(merge)
                        ))
                        .expected(format!("it starts {name_a} and {name_b} at once, so nothing that {name_b} needs may come from {name_a}"))
                        .observed(path.join(";\n")),
                );
        }
    }
    Checked::found(findings, doubts)
}

/// With all buckets contracted, the graph before is acyclic.
pub(super) fn contracted_acyclic(evidence: &Evidence) -> Checked {
    let before = &evidence.before;
    let groups: Vec<Vec<NodeId>> = evidence.contracted_groups();
    if groups.is_empty() {
        return Checked::Findings(Vec::new());
    }
    // That a wait comes after another one of its bucket is kept: the bucket's wait is both.
    let is_wait = |id| before.ops.get(before.graph, id).kind == Kind::Wait;
    let is_kept = |from, to| is_wait(from) && is_wait(to);
    let Err(cycle) = check_contraction_besides(before.dependences(), &groups, is_kept) else {
        return Checked::Findings(Vec::new());
    };
    let uncertain = cycle.steps.iter().find_map(|step| before.doubt(step.from, step.to));
    if let Some(doubt) = uncertain {
        return Checked::undecided(Code::UncertainDependence, doubt);
    }
    let mut nodes: Vec<NodeId> = Vec::new();
    for step in &cycle.steps {
        nodes.extend([step.from, step.to]);
    }
    let finding = evidence
        .finding(
            "bucket/contracted-acyclic",
            Stage::Before,
            "the buckets depend on each other in a circle".into(),
        )
        .before_nodes(evidence, nodes.iter().copied())
        .facts(evidence.describe_buckets(&nodes))
        .facts(through_memory(evidence, &nodes).into_iter().collect())
        .expected("with each bucket as one node, some order starts every bucket after all that it needs")
        .observed(cycle.reasons(before.graph, before.dependences()).join(";\n"));
    Checked::Findings(vec![finding])
}

/// Why the edges of the graph after show no circle, where they show none: what one of the buckets that `nodes` belong
/// to brings is written to memory, and is read through a view that no edge joins to the write. The write needs what
/// reads it.
fn through_memory(evidence: &Evidence, nodes: &[NodeId]) -> Option<String> {
    let after = &evidence.after;
    TopologicalOrder::new(&after.edges).ok()?;
    let is_launch = |id: NodeId| after.collectives.launch_at(id).is_some();
    let is_new = |id: NodeId| evidence.correspondence.before_of[id.index()].is_none();
    let mut stack: Vec<NodeId> =
        evidence.buckets_of(nodes).map(|bucket| after.collectives.calls[bucket.launch].node).collect();
    let mut seen: FxHashSet<NodeId> = stack.iter().copied().collect();
    let mut pairs = Vec::new();
    while let Some(id) = stack.pop() {
        let users = after.edges.users(id).iter().copied();
        stack.extend(users.filter(|&user| is_new(user) && !is_launch(user) && seen.insert(user)));
        let shown: FxHashSet<NodeId> = after.showing_writes_of(id).into_iter().collect();
        // It writes through these, and they need no edge from it.
        let mut written = vec![id];
        let mut through: FxHashSet<NodeId> = FxHashSet::default();
        while let Some(id) = written.pop() {
            let inputs = after.edges.inputs(id).iter().copied();
            written.extend(inputs.filter(|&input| shown.contains(&input) && through.insert(input)));
        }
        pairs.extend(shown.difference(&through).map(|&view| (view, id)));
    }
    pairs.sort_unstable();
    let needs = after.have_paths(&pairs);
    let ((view, write), _) = pairs.into_iter().zip(needs).find(|&(_, needs)| needs)?;
    let name = |id| after.graph.name(id);
    Some(format!(
        "after, {} shows what {} writes, and no edge leads from there to it",
        name(view),
        name(write)
    ))
}

/// Members and the bucket's collective agree.
pub(super) fn homogeneous(evidence: &Evidence) -> Checked {
    let (before, after) = (&evidence.before, &evidence.after);
    let mut findings = Vec::new();
    for merge in &evidence.correspondence.merges {
        findings.extend(misplaced_piece(evidence, merge));
    }
    for merge in evidence.correspondence.merges.iter().filter(|merge| merge.certain) {
        let bucket = &after.collectives.calls[merge.launch];
        for &member in &merge.members {
            let call = &before.collectives.calls[member];
            let tensor = |graph, node| -> Option<&Tensor> {
                Graph::tensor_of(graph, node).or(graph.tensor_at(node, 0))
            };
            let tensors = tensor(before.graph, call.node).zip(tensor(after.graph, bucket.node));
            let mut differences = Vec::new();
            let mut differ = |what: &str, member: &dyn Display, bucket: &dyn Display| {
                differences.push(format!("{what} {member}, the bucket {bucket}"));
            };
            if call.kind != bucket.kind {
                differ("kind", &call.kind.name(), &bucket.kind.name());
            }
            if call.group != bucket.group {
                differ("process group", &call.group, &bucket.group);
            }
            if call.group_size != bucket.group_size {
                let size = |size: Option<i64>| size.map_or("unstated".to_string(), |n| n.to_string());
                differ("group size", &size(call.group_size), &size(bucket.group_size));
            }
            let (m, b) = (call.reduce_op.unwrap_or("none"), bucket.reduce_op.unwrap_or("none"));
            if m != b {
                differ("reduction", &m, &b);
            }
            if let Some((m, b)) = tensors {
                let (m, b) = (before.graph.text(m.device), after.graph.text(b.device));
                if m != b {
                    differ("device", &m, &b);
                }
            }
            if let Some((m, b)) = tensors.map(|(m, b)| (m.dtype, b.dtype))
                && m != b
            {
                // Bytes may be packed where nothing is computed, under any dtype that carries them.
                let values = &evidence.values;
                let arrives =
                    || matches!(values.proof(), Some(ValueResult::Equal(_))) || values.witness == Some(false);
                let is_carried = evidence.policies.multidtype || b == Dtype::U8 || arrives();
                if bucket.kind != Collective::AllGather || !is_carried {
                    differ("dtype", &m.name(), &b.name());
                }
            }
            if differences.is_empty() {
                continue;
            }
            let (name, into) = (before.graph.name(call.node), after.graph.name(bucket.node));
            findings.push(
                evidence
                    .finding(
                        "bucket/homogeneous",
                        Stage::After,
                        format!("{name} does not fit its bucket {into}"),
                    )
                    .before_nodes(evidence, [call.node])
                    .after_nodes(evidence, [bucket.node])
                    .fact(format!("{into} replaces {}", evidence.member_names(merge)))
                    .expected("one collective serves all members, so they agree with it")
                    .observed(format!("{name} has {}", differences.join("; "))),
            );
        }
    }
    Checked::Findings(findings)
}

/// An operator that packs bytes for a bucket and puts a piece where its dtype cannot be viewed, on this rank or on
/// another one of the group.
fn misplaced_piece(evidence: &Evidence, merge: &super::Merge) -> Option<super::Finding> {
    let after = &evidence.after;
    let bucket = &after.collectives.calls[merge.launch];
    let (packer, packing) = packer_of(evidence, bucket)?;
    let wrong = packing.misplaced_anywhere(bucket.group_size?)?;
    let (name, into) = (after.graph.name(packer), after.graph.name(bucket.node));
    let mut inputs = Vec::new();
    after.graph.for_each_input(packer, &mut |input| inputs.push(input));
    let piece =
        |i: usize| inputs.get(i).map_or_else(|| format!("input {i}"), |&id| after.graph.name(id).to_string());
    let unit = packing.dtype;
    let (count, _) = *packing.pieces.get(wrong.piece)?;
    let pieces: Vec<String> = packing
        .pieces
        .iter()
        .enumerate()
        .map(|(i, (count, dtype))| format!("{} as {count} of {}", piece(i), dtype.name()))
        .collect();
    let slot = packing.slot().map_or(String::new(), |len| format!(", {len} of them for each rank"));
    let title = format!("{name} puts {} where no {} can be viewed", piece(wrong.piece), wrong.dtype.name());
    let finding = evidence
        .finding("bucket/homogeneous", Stage::After, title)
        .after_nodes(evidence, [packer, bucket.node])
        .fact(format!("{into} replaces {}", evidence.member_names(merge)))
        .fact(format!("{name} packs elements of {}{slot}: {}", unit.name(), pieces.join(", ")))
        .expected("each piece begins at a multiple of its own element, on every rank: a tensor is viewed as another dtype only there")
        .observed(format!(
            "on rank {} of the group the {count} elements of {} begin at element {} of {}, which is byte {}, no multiple of {}",
            wrong.rank,
            piece(wrong.piece),
            wrong.element,
            unit.name(),
            wrong.element.saturating_mul(i64::from(unit.itemsize())),
            wrong.dtype.itemsize()
        ));
    Some(finding)
}

/// The operator that packs bytes for a bucket: backward from its launch through new nodes that pass on what they get.
fn packer_of(evidence: &Evidence, bucket: &CollectiveCall) -> Option<(NodeId, Packing)> {
    let after = &evidence.after;
    let mut at = *bucket.inputs.first()?;
    for _ in 0..MOST_VIEWS {
        if evidence.correspondence.before_of[at.index()].is_some() {
            return None;
        }
        if let Some(packing) = Packing::of(after.graph, &after.ops, at) {
            return Some((at, packing));
        }
        at = *after.edges.inputs(at).first()?;
    }
    None
}

/// Whoever read a removed node reads its piece, with the same metadata and contents.
pub(super) fn users_rewired(evidence: &Evidence) -> Checked {
    let (before, c) = (&evidence.before, &evidence.correspondence);
    let (after, mut findings) = (&evidence.after, Vec::new());
    // Where all that comes out is the same, a node that has the name of another one may well be a new one, and what it
    // reads has traded places with something else.
    if matches!(evidence.values.proof(), Some(ValueResult::Equal(_)))
        || evidence.values.witness == Some(false)
    {
        return Checked::Findings(findings);
    }
    for &id in &c.changed {
        let name = before.graph.name(id);
        findings.push(
            evidence
                .finding(
                    "bucket/users-rewired",
                    Stage::After,
                    format!("the pass changed the arguments of {name}"),
                )
                .before_nodes(evidence, [id])
                .expected("a surviving node keeps its arguments, except that removed values are replaced")
                .observed("its arguments do not line up with those before"),
        );
    }
    let mut reported = FxHashSet::default();
    for rewire in &c.rewires {
        // Metadata of the value itself, once per pair; contents through values.
        if evidence.values.harmless.contains(rewire) || !reported.insert((rewire.old, rewire.new)) {
            continue;
        }
        let (old, new) = (before.graph.name(rewire.old), after.graph.name(rewire.new));
        let user = before.graph.name(rewire.user);
        let mut wrong = Vec::new();
        // Who takes something else although what it took is still there may make the same of it: a sum in two steps.
        let is_gone = c.after_of.get(rewire.old.index()).is_none_or(Option::is_none);
        if is_gone
            && let (Some(p), Some(q)) =
                (before.graph.tensor_of(rewire.old), after.graph.tensor_of(rewire.new))
            && !same_looks(before.graph, p, after.graph, q)
        {
            let (s, t) = (describe_tensor(before.graph, p), describe_tensor(after.graph, q));
            if s != t {
                wrong.push(format!("{new} is {t}, {old} was {s}"));
            }
        }
        wrong.extend(
            evidence.values.wrong.iter().filter(|(one, _)| one == rewire).map(|(_, what)| what.clone()),
        );
        if wrong.is_empty() {
            continue;
        }
        findings.push(
            evidence
                .finding(
                    "bucket/users-rewired",
                    Stage::After,
                    format!("{user} reads {new}, which is not what {old} was"),
                )
                .before_nodes(evidence, [rewire.user, rewire.old])
                .after_nodes(evidence, [rewire.new])
                .fact(format!("before, {user} reads {old}; after, it reads {new}"))
                .expected(format!("{new} holds what {old} held, with the same shape, dtype and device"))
                .observed(wrong.join("; ")),
        );
    }
    Checked::Findings(findings)
}

/// Whether shape, dtype and device are the same without symbols; otherwise the words decide.
fn same_looks(a: &Graph, p: &Tensor, b: &Graph, q: &Tensor) -> bool {
    let (shape, other) = (a.dims(p.shape), b.dims(q.shape));
    let same = |(x, y): (&Dim, &Dim)| matches!((x, y), (Dim::Static(x), Dim::Static(y)) if x == y);
    p.dtype == q.dtype
        && shape.len() == other.len()
        && shape.iter().zip(other).all(same)
        && a.text(p.device) == b.text(q.device)
}

/// Shape, dtype and device in words; symbolic sizes by their expressions.
pub(super) fn describe_tensor(graph: &Graph, tensor: &Tensor) -> String {
    let dims: Vec<String> = graph
        .dims(tensor.shape)
        .iter()
        .map(|&d| match d {
            Dim::Static(n) => n.to_string(),
            Dim::Symbolic(e) => graph.text(graph.expr(e).text).to_string(),
        })
        .collect();
    format!("{}[{}] on {}", tensor.dtype.short(), dims.join(", "), graph.text(tensor.device))
}
