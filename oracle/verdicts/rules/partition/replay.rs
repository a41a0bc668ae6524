//! The contract of a replay: the second partition saves what the first one saved, item by item.

use super::super::{Checked, Code, Finding};
use super::compose::{item_of, returned_nodes, root_of};
use super::config::Method;
use super::evidence::{Earlier, PartitionEvidence, ValueClass, class_of};
use super::gathers::{any_is_to_be_repeated, any_is_to_be_saved, is_kept_next_round, is_let_go_next_round};
use super::tags::{NodeTags, Recompute};
use crate::analysis::bytes::Overlap;
use crate::analysis::storages::StorageIndex;
use crate::graph::{Graph, NodeId, Op};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Whether the replay contract was asked for.
fn is_replay(evidence: &PartitionEvidence) -> bool {
    evidence.config.method == Method::Replay || evidence.further.earlier.is_some()
}

/// The values of the joint graph that its tags say an earlier partition saved: tagged results, and tagged items of
/// tagged tuples. What has to be recomputed does not count, nor what is no tensor.
fn tagged(evidence: &PartitionEvidence) -> Vec<NodeId> {
    let graph = evidence.joint.graph;
    let tags = |id: NodeId| -> &NodeTags { &evidence.tags[id.index()] };
    let wanted = |id: &NodeId| {
        let id = *id;
        if graph.node(id).op != Op::Call || class_of(graph, id) != ValueClass::Tensor {
            return false;
        }
        if tags(id).must_be_recomputed() {
            return false;
        }
        match item_of(graph, id) {
            // Whether an item was saved is for its parent to say.
            Some((parent, index)) if tags(parent).replayed => {
                tags(parent).recompute != Some(Recompute::MustRecompute)
                    && tags(parent).replayed_items.as_ref().is_none_or(|items| items.contains(&index))
            }
            _ => tags(id).replayed,
        }
    };
    graph.ids().filter(wanted).collect()
}

/// Saved values that a replay speaks about: results of calls, tensors only.
fn saved_calls(evidence: &PartitionEvidence) -> impl Iterator<Item = NodeId> {
    let graph = evidence.joint.graph;
    let saved = evidence.saved.iter().filter(|saved| saved.class == ValueClass::Tensor);
    saved.filter_map(|saved| saved.joint).filter(|&id| graph.node(id).op == Op::Call)
}

/// Whether two values have the same memory, the whole of it.
fn is_saved_otherwise(evidence: &PartitionEvidence, saved: &FxHashSet<NodeId>, id: NodeId) -> bool {
    let storages = evidence.joint.storages();
    let Some(storage) = storages.storage_of(id) else { return false };
    saved.iter().any(|&other| storages.storage_of(other) == Some(storage))
}

/// Whether both parts compute a value of forward that is not saved, and backward needs it.
fn is_recomputed(evidence: &PartitionEvidence, saved: &FxHashSet<NodeId>, id: NodeId) -> bool {
    !saved.contains(&id)
        && evidence.in_forward[id.index()].is_some()
        && evidence.runs_in_backward(id)
        && !evidence.needs_tangent[id.index()]
        && !is_saved_otherwise(evidence, saved, id)
}

/// The node that a value goes by: itself, or, where neither part has it, an equal one that it was merged with. `None`
/// where it was dropped: then its tags are too.
fn what_stays(evidence: &PartitionEvidence, id: NodeId) -> Option<NodeId> {
    let stays =
        |id: &NodeId| evidence.in_forward[id.index()].is_some() || evidence.in_backward[id.index()].is_some();
    if stays(&id) {
        return Some(id);
    }
    // Who read it reads the other one now.
    let was_merged = evidence.joint.edges.users(id).iter().any(stays);
    let twins = was_merged.then(|| evidence.equal_nodes(id).iter().copied());
    twins.into_iter().flatten().find(stays)
}

/// What the tags say was saved is saved if backward needs it, and nothing else is.
pub(super) fn saves_match(evidence: &PartitionEvidence) -> Checked {
    const RULE: &str = "partition/replay-saves-match";
    if !is_replay(evidence) {
        return Checked::NotChecked("this is no replay".into());
    }
    let graph = evidence.joint.graph;
    let tagged: FxHashSet<NodeId> = tagged(evidence).into_iter().collect();
    let saved: FxHashSet<NodeId> = saved_calls(evidence).collect();
    let mut findings = Vec::new();
    for id in graph.ids().filter(|id| tagged.contains(id) && !saved.contains(id)) {
        // An item is for another rule to tell.
        if item_of(graph, id).is_some() || any_is_to_be_repeated(evidence, id) {
            continue;
        }
        let Some(stays) = what_stays(evidence, id) else { continue };
        if !is_recomputed(evidence, &saved, stays) {
            continue;
        }
        let (name, stays) = (graph.name(id), graph.name(stays));
        let told = evidence
            .finding(RULE, format!("{name} was saved and is recomputed now"))
            .nodes(evidence, [name, stays]);
        findings.push(told.contrast(
            "its tag says that the first partition saved it",
            match name == stays {
                true => "backward computes it again".to_string(),
                false => format!("it was merged with {stays}, which backward computes again"),
            },
        ));
    }
    for id in graph.ids().filter(|id| saved.contains(id) && !tagged.contains(id)) {
        // Of equal nodes one is left, with the tags of all.
        let kept = any_is_to_be_saved(evidence, id)
            || evidence.equal_nodes(id).iter().any(|twin| tagged.contains(twin));
        let kept = kept || is_listed_by_twin(evidence, id);
        if kept || is_item_of_tagged(evidence, id) || cannot_be_recomputed(evidence, id) {
            continue;
        }
        let name = graph.name(id);
        findings.push(
            evidence
                .finding(RULE, format!("{name} is saved, and no tag asks for it"))
                .nodes(evidence, [name])
                .contrast("no tag says that the first partition saved it", "forward saves it"),
        );
    }
    if let Some(earlier) = &evidence.further.earlier {
        match compare_with_earlier(evidence, earlier, &saved) {
            Ok(more) => findings.extend(more),
            Err(why) if findings.is_empty() => return Checked::undecided(Code::Decomposed, why),
            Err(_) => {}
        }
    }
    Checked::Findings(findings)
}

/// Whether the parent of an item is tagged: then its list of indices decides, under another rule.
fn is_item_of_tagged(evidence: &PartitionEvidence, id: NodeId) -> bool {
    item_of(evidence.joint.graph, id).is_some_and(|(parent, _)| evidence.tags[parent.index()].replayed)
}

/// Whether a node equal to the parent of an item lists it: they are merged, with the tags of both.
fn is_listed_by_twin(evidence: &PartitionEvidence, id: NodeId) -> bool {
    let Some((parent, index)) = item_of(evidence.joint.graph, id) else { return false };
    evidence.equal_nodes(parent).iter().any(|twin| {
        let tags = &evidence.tags[twin.index()];
        tags.replayed && tags.replayed_items.as_ref().is_none_or(|items| items.contains(&index))
    })
}

/// Values that have to be saved whatever the tags say: random draws that nothing replays, forced collectives, and what
/// reads memory that forward writes afterwards.
fn cannot_be_recomputed(evidence: &PartitionEvidence, id: NodeId) -> bool {
    let joint = &evidence.joint;
    let root = root_of(joint.graph, id);
    let communicates = joint.ops.call(joint.graph, root).is_some_and(|info| {
        info.collective().is_some() || info.kind == crate::ops::Kind::Wait || info.writes()
    });
    communicates || joint.ops.draws(joint.graph, root) || reads_what_forward_overwrites(evidence, root)
}

/// Whether backward would find other contents than `id` read: forward has written to them since.
fn reads_what_forward_overwrites(evidence: &PartitionEvidence, id: NodeId) -> bool {
    let joint = &evidence.joint;
    let storages = joint.storages();
    let writes = |node: NodeId| {
        joint.ops.call(joint.graph, node).is_some_and(|info| info.writes())
            && evidence.in_forward[node.index()].is_some()
    };
    storages.accesses_by(id).iter().any(|read| {
        storages
            .writes_of(read.part.storage, Some(id))
            .any(|access| access.part.bytes.overlap(read.part.bytes) != Overlap::No && writes(access.node))
    })
}

/// What a value is, in words that a retrace does not change.
fn description(graph: &Graph, id: NodeId) -> String {
    let (root, index) = match item_of(graph, id) {
        Some((parent, index)) => (parent, format!(" item {index}")),
        None => (id, String::new()),
    };
    let sizes = graph.tensor_of(id).map(|tensor| {
        let hints = graph.dims(tensor.shape).iter().map(|&dim| graph.hint(dim));
        format!("{}{:?}", tensor.dtype.short(), hints.map(|n| n.unwrap_or(-1)).collect::<Vec<_>>())
    });
    format!("{}{index} : {}", graph.target(root), sizes.unwrap_or_default())
}

/// The saved set of the first partition against that of the second: by provenance where it is known, otherwise by
/// what the values are and how often.
fn compare_with_earlier(
    evidence: &PartitionEvidence,
    earlier: &Earlier,
    saved: &FxHashSet<NodeId>,
) -> Result<Vec<Finding>, String> {
    const RULE: &str = "partition/replay-saves-match";
    let (first, second) = (earlier.forward, evidence.joint.graph);
    // Items are traced again with the tags of the operator that gives them.
    let is_repeated = |id: NodeId| {
        [id, root_of(first, id)].into_iter().any(|id| {
            let of = earlier.joint.find(first.name(id)).map(|twin| NodeTags::of(earlier.joint, twin));
            of.unwrap_or_else(|| NodeTags::of(first, id)).must_be_recomputed()
        })
    };
    let nodes: Vec<NodeId> = returned_nodes(first, earlier.forward_outputs)
        .into_iter()
        .filter(|&id| first.node(id).op == Op::Call && class_of(first, id) == ValueClass::Tensor)
        .filter(|&id| !is_repeated(id))
        .collect();
    let mut findings = Vec::new();
    if !earlier.provenance.is_empty() {
        let newer: FxHashMap<&str, &str> =
            earlier.provenance.iter().map(|(old, new)| (old.as_str(), new.as_str())).collect();
        let older: FxHashMap<&str, &str> = newer.iter().map(|(&old, &new)| (new, old)).collect();
        for &id in &nodes {
            let name = first.name(id);
            let Some(&new) = newer.get(name) else { continue };
            let twin = second.find(new);
            // What only backward computes now is no recomputation: forward has no use for it.
            if twin.is_none_or(|twin| {
                is_recomputed(evidence, saved, twin) && !any_is_to_be_repeated(evidence, twin)
            }) {
                findings.push(
                    evidence
                        .finding(RULE, format!("{new} was saved as {name} and is not saved now"))
                        .nodes(evidence, [new])
                        .contrast("the first partition saved it", "the second one does not"),
                );
            }
        }
        let were: FxHashSet<&str> = returned_nodes(first, 0).into_iter().map(|id| first.name(id)).collect();
        let was_saved = |id: NodeId| older.get(second.name(id)).is_some_and(|old| were.contains(old));
        for id in second.ids().filter(|id| saved.contains(id)) {
            let kept = any_is_to_be_saved(evidence, id) || cannot_be_recomputed(evidence, id);
            if kept || was_saved(id) || evidence.equal_nodes(id).iter().any(|&twin| was_saved(twin)) {
                continue;
            }
            let name = second.name(id);
            findings.push(
                evidence
                    .finding(RULE, format!("{name} is saved now and was not"))
                    .nodes(evidence, [name])
                    .contrast("the first partition did not save it", "the second one does"),
            );
        }
        return Ok(findings);
    }
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    nodes.iter().for_each(|&id| counts.entry(description(first, id)).or_default().0 += 1);
    saved.iter().for_each(|&id| counts.entry(description(second, id)).or_default().1 += 1);
    let known: FxHashSet<&str> = second.targets().collect();
    for (what, (before, now)) in counts {
        let target = what.split(' ').next().unwrap_or_default();
        if before > now && !known.contains(target) {
            return Err(format!(
                "{target} was saved, and the second joint graph has none: it was decomposed"
            ));
        }
        if before != now {
            let title = format!("{what}: {before} were saved, {now} are saved now");
            let names = second.ids().filter(|id| saved.contains(id) && description(second, *id) == what);
            findings.push(
                evidence.finding(RULE, title).nodes(evidence, names.map(|id| second.name(id))).contrast(
                    format!("the first partition saves {before}"),
                    format!("the second saves {now}"),
                ),
            );
        }
    }
    Ok(findings)
}

/// Of a tagged tuple exactly those items are saved that were saved.
pub(super) fn index_fidelity(evidence: &PartitionEvidence) -> Checked {
    const RULE: &str = "partition/replay-index-fidelity";
    if !is_replay(evidence) {
        return Checked::NotChecked("this is no replay".into());
    }
    let graph = evidence.joint.graph;
    let saved: FxHashSet<NodeId> = saved_calls(evidence).collect();
    let mut findings = Vec::new();
    for id in graph.ids() {
        let Some((parent, index)) = item_of(graph, id) else { continue };
        let tags = &evidence.tags[parent.index()];
        if !tags.replayed || class_of(graph, id) != ValueClass::Tensor || any_is_to_be_saved(evidence, id) {
            continue;
        }
        let is_listed = tags.replayed_items.as_ref().is_none_or(|items| items.contains(&index));
        let repeats = |id: NodeId| evidence.tags[id.index()].must_be_recomputed();
        let was_saved = is_listed && !repeats(id) && !repeats(parent);
        let name = graph.name(id);
        let is_saved = saved.contains(&id);
        let recomputed = evidence.in_forward[id.index()].is_some() && evidence.runs_in_backward(id);
        let list = match &tags.replayed_items {
            Some(items) => format!("the tag of {} lists the items {items:?}", graph.name(parent)),
            None => format!("the tag of {} means all items", graph.name(parent)),
        };
        let (title, observed) = match (was_saved, is_saved) {
            (true, false) if recomputed && !any_is_to_be_repeated(evidence, id) => {
                (format!("item {index} was saved and is not: {name}"), "backward computes it again")
            }
            (false, true) if !cannot_be_recomputed(evidence, id) && !is_listed_by_twin(evidence, id) => {
                (format!("item {index} is saved and was not: {name}"), "forward saves it")
            }
            _ => continue,
        };
        findings.push(
            evidence
                .finding(RULE, title)
                .nodes(evidence, [name, graph.name(parent)])
                .contrast(list, observed),
        );
    }
    Checked::Findings(findings)
}

/// Tagging, retracing and partitioning once more changes nothing.
pub(super) fn fixed_point(evidence: &PartitionEvidence) -> Checked {
    let Some(again) = &evidence.further.again else {
        return Checked::NotChecked("no further round was made".into());
    };
    let own: FxHashSet<&str> = evidence.saved.iter().map(|saved| saved.name.as_str()).collect();
    let next: FxHashSet<&str> = again.iter().map(String::as_str).collect();
    // Values are compared, not names: tracing may move a node past a write, and equal ones are merged then. And memory
    // is: a view keeps all that it is a view of.
    let graph = evidence.joint.graph;
    let storages = evidence.joint.storages();
    let storages_of = |name: &str| {
        graph.find(name).into_iter().flat_map(|id| storages.all_parts(id)).map(|part| part.storage)
    };
    let memory = |names: &FxHashSet<&str>| -> FxHashSet<StorageIndex> {
        names.iter().flat_map(|name| storages_of(name)).collect()
    };
    let (own_memory, next_memory) = (memory(&own), memory(&next));
    let is_among = |name: &str, others: &FxHashSet<&str>, their: &FxHashSet<StorageIndex>| {
        let equal = graph.find(name).map_or(&[][..], |id| evidence.equal_nodes(id));
        others.contains(name)
            || equal.iter().any(|&twin| others.contains(graph.name(twin)))
            || storages_of(name).any(|storage| their.contains(&storage))
    };
    let mut findings = Vec::new();
    // What hooks keep from the next round on is the tags' doing, and so is what need not be saved for it; and what is
    // no longer the end of a region, with what it is computed from instead.
    let by_tags = |name: &str, test: fn(&PartitionEvidence, NodeId) -> bool| {
        graph.find(name).is_some_and(|id| test(evidence, id))
    };
    let gained = again.iter().map(String::as_str).filter(|name| !is_among(name, &own, &own_memory));
    let (kept, gained): (Vec<&str>, Vec<&str>) = gained.partition(|name| by_tags(name, is_kept_next_round));
    // The state of a generator has a name that this round made up, and the next one makes up another.
    let named = evidence.saved.iter().filter(|saved| saved.class != ValueClass::Generator);
    let lost = named.map(|saved| saved.name.as_str()).filter(|name| !is_among(name, &next, &next_memory));
    let (let_go, lost): (Vec<&str>, Vec<&str>) = lost.partition(|name| by_tags(name, is_let_go_next_round));
    let lost = lost.into_iter().filter(|_| kept.is_empty()).map(|name| (name, "no longer saved"));
    let gained = gained.into_iter().filter(|_| let_go.is_empty()).map(|name| (name, "saved anew"));
    for (name, what) in lost.chain(gained) {
        findings.push(
            evidence
                .finding("partition/replay-fixed-point", format!("{name} is {what} in the next round"))
                .nodes(evidence, [name])
                .contrast("a further round repeats the choice", format!("{name} is {what}")),
        );
    }
    Checked::Findings(findings)
}

/// Tagging the forward graph leaves the others alone.
pub(super) fn tag_locality(evidence: &PartitionEvidence) -> Checked {
    let Some((joint, backward)) = evidence.further.after_tagging else {
        return Checked::NotChecked("the graphs after tagging are not known".into());
    };
    let mut findings = Vec::new();
    for (before, after, what) in
        [(evidence.joint.graph, joint, "the joint graph"), (evidence.backward.graph, backward, "backward")]
    {
        for id in before.ids() {
            let name = before.name(id);
            // Tagging moves nothing; names may have been matched with those of the joint graph since.
            let twin = if before.len() == after.len() { Some(id) } else { after.find(name) };
            let same = twin.is_some_and(|twin| NodeTags::of(before, id) == NodeTags::of(after, twin));
            if !same {
                findings.push(
                    evidence
                        .finding(
                            "partition/tag-locality",
                            format!("tagging forward changed {name} in {what}"),
                        )
                        .nodes(evidence, [name])
                        .contrast(
                            "a tag speaks of the forward graph alone",
                            format!("{what} has other tags now"),
                        ),
                );
            }
        }
    }
    Checked::Findings(findings)
}
