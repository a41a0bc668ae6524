//! What a rewritten graph records of its values: dtypes, sizes, strides, storages and devices.

use super::sizes::{self, Sized, Sizes};
use super::{AnalyzedGraph, Checked, Code, Evidence, Reason, Stage, overlap};
use crate::analysis::computed;
use crate::analysis::disagreements::{Elsewhere, recorded_elsewhere, resized, views_elsewhere};
use crate::analysis::storages::StorageIndex;
use crate::graph::{Graph, NodeId};
use crate::ops::shape;

/// What `find` finds in the graph after, in list order, less the nodes of which it found the same before.
fn new_faults<T>(evidence: &Evidence, find: impl Fn(&AnalyzedGraph) -> Vec<(NodeId, T)>) -> Vec<(NodeId, T)> {
    let mut found = find(&evidence.after);
    if !found.is_empty() {
        let old = find(&evidence.before);
        let was = |twin: NodeId| old.binary_search_by_key(&twin, |(node, _)| *node).is_ok();
        found.retain(|(id, _)| !evidence.correspondence.before_of[id.index()].is_some_and(was));
    }
    found
}

/// Why a record of `id` may be true that does not fit its operator: the strides of `open` are a guess.
pub(super) fn strides_not_recorded(open: &str, id: &str) -> Reason {
    Code::NotRecorded.because(format!(
        "the strides of {open} are not recorded, and its operator does not tell them; what is recorded of {id} may be \
         true"
    ))
}

/// What is recorded of symbolic sizes and is not true where these are numbers.
fn untrue_at_sizes(evidence: &Evidence) -> Vec<super::Finding> {
    let (before, after) = (&evidence.before, &evidence.after);
    for Sized { sizes, after: graphs, .. } in
        Sizes::tried((before.graph, &before.ops), std::iter::once(after.graph), false)
    {
        let finding = |(id, why)| {
            let name = after.graph.name(id);
            let title = format!("the recorded result of {name} is not true where {}", sizes.words());
            let finding = evidence.finding("rewrite/metadata", Stage::After, title);
            let finding = finding.after_nodes(evidence, [id]);
            finding.fact(format!("{name} calls {}", after.graph.target(id))).observed(why)
        };
        let untrue: Vec<super::Finding> =
            graphs.iter().flat_map(|graph| sizes::misfits(graph, &after.ops)).map(finding).collect();
        if !untrue.is_empty() {
            return untrue;
        }
    }
    Vec::new()
}

/// Recorded results follow from their operators, and lie in no other memory's storage. What the input already has is no
/// fault of the pass.
pub(super) fn metadata_true(evidence: &Evidence) -> Checked {
    let (before, after, c) = (&evidence.before, &evidence.after, &evidence.correspondence);
    let (mut findings, mut doubt) = (Vec::new(), None);
    let foreign = new_faults(evidence, |side| recorded_elsewhere(side.graph, side.storages()));
    // Who repeats a call copies its record, and those of what is written into the result and taken of it.
    let numbers = if foreign.is_empty() { Vec::new() } else { computed(after.graph) };
    let storages = after.storages();
    let made_of = |storage: StorageIndex| {
        let accesses = storages.writes_of(storage, None);
        let first = storages.storage(storage);
        let nodes = std::iter::once(first.by).chain(accesses.map(|access| access.node));
        (first.place, nodes.map(|id| numbers[id.index()]).collect::<Vec<_>>())
    };
    let is_repeated = |[copy, of]: [StorageIndex; 2]| {
        let is_new = c.before_of[storages.storage(copy).by.index()].is_none();
        is_new && made_of(copy) == made_of(of)
    };
    for (id, Elsewhere { other, storages, .. }) in foreign {
        if is_repeated(storages) {
            continue;
        }
        let (name, other_name) = (after.graph.name(id), after.graph.name(other));
        findings.push(
            evidence
                .finding(
                    "rewrite/metadata",
                    Stage::After,
                    format!("{name} is recorded in the storage of {other_name}"),
                )
                .after_nodes(evidence, [id, other])
                .fact(format!("{name} calls {}", after.graph.target(id)))
                .expected("tensors are recorded in one storage where they share memory")
                .observed(format!("{name} shares none with {other_name}")),
        );
    }
    for (id, base) in new_faults(evidence, |side| views_elsewhere(side.graph, &side.ops, side.storages())) {
        // What was a view of something else was true, and misleads nobody who follows the calls.
        let was = c.before_of[base.index()];
        let was_of = |old| before.storages().base(old, 0).map(|(base, _)| base);
        let is_stale = was.is_none() || c.before_of[id.index()].is_some_and(|old| was_of(old) != was);
        // A call that is refused gives no view.
        if is_stale || !shape::check(after.graph, &after.ops, id).is_empty() {
            continue;
        }
        let (name, base_name) = (after.graph.name(id), after.graph.name(base));
        let title = format!("{name} is not recorded in the storage of {base_name}");
        findings.push(
            evidence
                .finding("rewrite/metadata", Stage::After, title)
                .after_nodes(evidence, [id, base])
                .fact(format!("{name} calls {}", after.graph.target(id)))
                .expected(format!("{name} is a view of {base_name}, and lies where that lies"))
                .observed("it is recorded in a storage of its own"),
        );
    }
    for (id, why) in new_faults(evidence, |side| resized(side.graph, &side.ops, side.storages())) {
        let title = format!("the recorded storage of {} is not true", after.graph.name(id));
        findings.push(
            evidence
                .finding("rewrite/metadata", Stage::After, title)
                .after_nodes(evidence, [id])
                .fact(format!("{} calls {}", after.graph.name(id), after.graph.target(id)))
                .expected("a fresh result fills its storage, and a view has that of what it is a view of")
                .observed(why),
        );
    }
    for id in evidence.misfits_after() {
        let excused = c.before_of[id.index()]
            .is_some_and(|old| !shape::check(before.graph, &before.ops, old).is_empty());
        if excused {
            continue;
        }
        for fault in shape::check(after.graph, &after.ops, id) {
            let name = after.graph.name(id);
            if let Some(open) = after.graph.guess_behind(id).filter(|_| fault.may_follow_from_strides()) {
                doubt.get_or_insert_with(|| strides_not_recorded(after.graph.name(open), name));
                continue;
            }
            let mut finding = evidence
                .finding(
                    "rewrite/metadata",
                    Stage::After,
                    format!("the recorded result of {name} is not true"),
                )
                .after_nodes(evidence, [id])
                .fact(format!("{name} calls {}", after.graph.target(id)));
            // Passes stop at such calls when they bring metadata up to date.
            if let Some(&first) = after.edges.ordered_before(id).first() {
                finding = finding
                    .fact(format!("an ordering edge leads to {name} from {}", after.graph.name(first)));
            }
            findings.push(finding.observed(fault.to_string()));
        }
    }
    if findings.is_empty() {
        findings.extend(untrue_at_sizes(evidence));
    }
    for (id, why) in new_faults(evidence, |side| overlap::refused(side.graph, &side.ops, side.storages())) {
        let name = after.graph.name(id);
        let finding = evidence.finding("rewrite/metadata", Stage::After, format!("{name} raises"));
        let finding = finding.after_nodes(evidence, [id]);
        findings.push(finding.fact(format!("{name} calls {}", after.graph.target(id))).observed(why));
    }
    let mut renumbered = super::device::renumbered(before.graph, after.graph, &|id| c.before_of[id.index()])
        .into_iter()
        .peekable();
    let live = std::cell::LazyCell::new(|| super::partition::live(after));
    for id in after.graph.ids() {
        let twin = c.before_of[id.index()].map(|twin| (before.graph, twin));
        let was_mixed =
            |(graph, twin): (&Graph, NodeId)| super::device::mixed(graph, &before.ops, twin).is_some();
        // Nobody sees where a value lies that nobody reads; but a call of tensors on two devices raises.
        let fault = super::device::fault(after.graph, &after.ops, id, twin)
            .filter(|_| live[id.index()])
            .or_else(|| Some(renumbered.next_if(|(node, _)| *node == id)?.1))
            .or_else(|| {
                super::device::mixed(after.graph, &after.ops, id).filter(|_| !twin.is_some_and(was_mixed))
            })
            .or_else(|| super::device::strayed(after.graph, &after.ops, id).filter(|_| twin.is_none()));
        if let Some(why) = fault {
            let title = format!("the device of {} is not true", after.graph.name(id));
            let finding = evidence.finding("rewrite/metadata", Stage::After, title);
            findings.push(
                finding.after_nodes(evidence, [id]).expected("values stay on their device").observed(why),
            );
        }
    }
    Checked::found(findings, doubt.or_else(|| super::accepted::not_known_to_run(evidence)))
}
